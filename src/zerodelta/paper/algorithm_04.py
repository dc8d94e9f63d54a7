"""Run DP-SGD under pure DP: Algorithm 4 (`alg:pure_dp_sgd`, `thm:dp-sgd-pure`).

As in the paper: Algorithm 3, then Algorithm 1 with Corollary 1's parameters.
`pure_dp_sgd_on_lattice` publishes the same run through the lattice of the l2 ball, at no extra ε
(theory C1).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from zerodelta.channels.channel import Purifier
from zerodelta.channels.mixes import GaussianMix
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.paper.algorithm_01_02 import channel_for, corollary_1
from zerodelta.paper.algorithm_03 import PlannedDescent, dp_sgd, plan_descent, release_point
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Ball
from zerodelta.spine.verbs import Paying, debited
from zerodelta.training.gradients import GradientFunction, gradients_of
from zerodelta.training.losses import Loss

if TYPE_CHECKING:
    from typing_extensions import Unpack


@partial(debited, rows=("features", "labels"), like=dp_sgd)
def pure_dp_sgd(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    radius: Rational,
    mixing_weight: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    dimension: int | None = None,
    regularization: Rational = 0,
    steps: int | None = None,
    batch: int | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Minimize an empirical risk over the l2 ball under pure DP, as in the paper.

    Use it to reproduce Algorithm 4: Algorithm 3's average, purified by Algorithm 1.
    `pure_dp_sgd_on_lattice` and `zd.Study.minimize` need no extra ε.

    Parameters
    ----------
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of the run, Algorithm 3; half of `epsilon` by default. The rest is ε' of Algorithm 1.
    mixing_weight : number, optional
        ω; Corollary 1's 1/n² by default.
    log_delta, delta : number, optional
        ln δ or δ of the run, at most one of the two; Corollary 1's δ by default.

    Returns
    -------
    Release
        Its value is a point of the ball, and nothing else of the run.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' (Lemma WOR or R2, then Theorem 1 by Theorem W). `proven` for
    a built-in loss, `asserted` for a function gradient(theta, rows).
    **Neighbors**: replace-one (n is public).
    **Error**: excess empirical risk, the bound of the run plus L times the purifier's rms.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.training.losses import Squared
    >>> x = np.linspace(-1, 1, 10_000).reshape(-1, 1)
    >>> release = pure_dp_sgd(
    ...     x, x[:, 0], loss=Squared(label_bound=1), data_norm=1, radius="1/2",
    ...     epsilon=2, steps=400, batch=10_000,
    ... )
    >>> release.value.round(1), release.certificate.claim.exact_epsilon
    (array([0.5]), Fraction(2, 1))

    """
    base, _ = split_epsilon(epsilon, base_epsilon)
    log_of = None if delta is log_delta is None else log_delta_from(delta, log_delta)
    gradients = gradients_of(
        features,
        labels,
        loss=loss,
        radius=radius,
        data_norm=data_norm,
        clip=clip,
        dimension=dimension,
    )
    # theory A1b: Θ is the ball that the run is projected onto, not "a ball of diameter C around C".
    ball = Ball(gradients.dimension, radius)
    if mixing_weight is None or log_of is None:
        defaults = corollary_1(
            rows=gradients.rows, dimension=gradients.dimension, diameter=2 * ball.radius
        )
        mixing_weight = defaults.mixing_weight if mixing_weight is None else mixing_weight
        log_of = defaults.log_delta if log_of is None else log_of
    channel = channel_for(
        ball=ball,
        epsilon=epsilon,
        base_epsilon=base,
        log_delta=log_of,
        mixing_weight=mixing_weight,
    )
    plan = plan_descent(
        gradients,
        epsilon=base,
        log_delta=log_of,
        radius=radius,
        regularization=regularization,
        steps=steps,
        batch=batch,
    )
    return _published(plan, channel, PureDP(epsilon))


@partial(debited, rows=("features", "labels"), like=dp_sgd)
def pure_dp_sgd_on_lattice(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    epsilon: Rational,
    radius: Rational,
    mixing_weight: Rational = Fraction(1, 100),
    resolution: Rational | None = None,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    dimension: int | None = None,
    regularization: Rational = 0,
    steps: int,
    batch: int | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Minimize an empirical risk over the l2 ball under pure ε-DP, by theory C1.

    Use it to compare with `pure_dp_sgd`: the run may spend all of ε, with the δ that publishing on
    a lattice allows. To train a model see `zd.Study.minimize`.

    Parameters
    ----------
    mixing_weight : number
        The probability ω of a rounded Gaussian in place of the average.
    resolution : number, optional
        The spacing of the lattice; `default_resolution` by default.
    steps, batch : int
        T and the size of a batch, which is all rows by default.

    Returns
    -------
    Release
        Its value is a point of the ball, and nothing else of the run.

    Notes
    -----
    **Guarantee**: pure ε-DP (R2 or Lemma WOR, then R(v)). `proven` for a built-in loss, `asserted`
    for a function gradient(theta, rows).
    **Neighbors**: replace-one (n is public).
    **Error**: excess empirical risk, the bound of the run plus L times rounding and mixing.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.training.losses import Squared
    >>> x = np.linspace(-1, 1, 10_000).reshape(-1, 1)
    >>> release = pure_dp_sgd_on_lattice(
    ...     x, x[:, 0], loss=Squared(label_bound=1), data_norm=1, radius="1/2",
    ...     epsilon=1, steps=400, mixing_weight="1e-9",
    ... )
    >>> release.value.round(1), release.certificate.claim.exact_epsilon
    (array([0.5]), Fraction(1, 1))

    """
    target = as_positive(epsilon, "epsilon")
    gradients = gradients_of(
        features,
        labels,
        loss=loss,
        radius=radius,
        data_norm=data_norm,
        clip=clip,
        dimension=dimension,
    )
    ball = Ball(gradients.dimension, radius)
    channel = lattice_channel(
        ball=ball,
        rows=gradients.rows,
        epsilon=target,
        mixing_weight=mixing_weight,
        resolution=resolution,
    )
    plan = plan_descent(
        gradients,
        epsilon=target,
        log_delta=min(channel.log_delta_required(target), -(2.0**-20)),
        radius=radius,
        regularization=regularization,
        steps=steps,
        batch=gradients.rows if batch is None else batch,
    )
    return _published(plan, channel, PureDP(target))


def _published(plan: PlannedDescent, channel: Purifier, claim: PureDP) -> Release:
    """Run the descent, and release its last point through the channel.

    The channel projects the point to the ball, so that the loss is defined there (theory A6.8).
    """
    return release_point(
        plan.gradients,
        claim,
        (plan.proof_step(), channel.step()),
        lambda rows, bits: channel.apply(plan.run(rows, bits), bits),
        space=f"the ball {plan.ball!r}",
        error=plan.error() + float(plan.gradients.lipschitz) * channel.expected_error(),
        seconds=plan.seconds(),
    )


def lattice_channel(
    *,
    ball: Ball,
    rows: int,
    epsilon: Rational,
    mixing_weight: Rational,
    resolution: Rational | None = None,
) -> GaussianMix:
    """Return the l2-ball lattice with rounded Gaussian mixing (R(v)) of this resolution."""
    spacing = (
        default_resolution(ball=ball, rows=rows, epsilon=epsilon)
        if resolution is None
        else as_positive(resolution, "resolution")
    )
    return GaussianMix(
        lattice=ball.lattice(spacing), mixing_weight=as_weight(mixing_weight, "mixing_weight")
    )


def default_resolution(*, ball: Ball, rows: int, epsilon: Rational) -> Fraction:
    """Return the radius over a power of two, at most r·min(1, √d/(nε)).

    Rounding then moves the average by about a third of r·d/(nε), the error rate of the run.

    >>> default_resolution(ball=Ball(4, 1), rows=1000, epsilon=1)
    Fraction(1, 512)
    """
    budget = rows * float(as_positive(epsilon, "epsilon"))
    cells = max(1.0, budget / math.sqrt(ball.dimension))
    return ball.radius / (1 << min(math.ceil(math.log2(cells)), 45))
