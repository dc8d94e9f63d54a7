"""Minimize a risk by two directly pure mechanisms, the paper's baselines (`tab: dp_erm`).

They are Laplace noisy gradient descent (`lem: laplace_NGD`, corrected by theory A6.9), and the
exponential mechanism of Bassily, Smith and Thakurta on a grid, drawn exactly instead of by a Markov
chain.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import exact_sum
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.paper.algorithm_03 import descend, descent_seconds, dp_sgd, release_point
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Release
from zerodelta.spaces import Ball
from zerodelta.spine.plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.training.gradient_sums import Examples
from zerodelta.training.gradients import GradientFunction, LinearGradients, gradients_of
from zerodelta.training.losses import Loss

if TYPE_CHECKING:
    from typing_extensions import Unpack


_SCORE_STEPS = 1 << 20
_MAXIMUM_POINTS = 1 << 20
_BLOCK_ENTRIES = 1 << 21
_SECONDS_PER_LOSS = 3e-8
"""The time of one loss, measured once on one core."""


@partial(debited, rows=("features", "labels"), like=dp_sgd)
def laplace_noisy_descent(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    epsilon: Rational,
    radius: Rational,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    dimension: int | None = None,
    steps: int | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Minimize an empirical risk over the l2 ball by full-batch descent with Laplace noise.

    Use it to compare with `pure_dp_sgd`; to train a model see `zd.Study.minimize`.

    Parameters
    ----------
    steps : int, optional
        The number T of steps; `laplace_steps` by default.

    Returns
    -------
    Release
        Its value is the average of T iterates.

    Notes
    -----
    **Guarantee**: pure ε-DP: T steps of ε/T each, l1 sensitivity 2√d L (theory R). `proven` for a
    built-in loss, `asserted` for a function gradient(theta, rows).
    **Neighbors**: replace-one (n is public).
    **Error**: the lemma's bound on the excess empirical risk, 2C√(n²L² + 2dσ²)/(n√T).

    Examples
    --------
    >>> from zerodelta.training.losses import Squared
    >>> x = np.linspace(-1, 1, 40_000).reshape(-1, 1)
    >>> release = laplace_noisy_descent(
    ...     x, x[:, 0], loss=Squared(label_bound=1), data_norm=1, radius="1/2", epsilon=1, steps=300
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
    n, d, ball = gradients.rows, gradients.dimension, Ball(gradients.dimension, radius)
    count = (
        laplace_steps(rows=n, dimension=d, epsilon=target)
        if steps is None
        else as_count(steps, "steps", minimum=1)
    )
    # theory A6.9: Δ_1 = 2√d L under replace-one (printed √d L), here ⌈√(d (2L)²)⌉ in quanta.
    sensitivity = math.isqrt(d * (2 * gradients.bound) ** 2 - 1) + 1
    noise = RoundedLaplace.for_epsilon(epsilon=target / count, sensitivity=sensitivity)
    sigma = float(gradients.quantum * noise.scale)
    moment = (n * float(gradients.lipschitz)) ** 2 + 2 * d * sigma**2
    width = 2 * float(ball.radius)
    rate = width / math.sqrt(count * moment)
    return release_point(
        gradients,
        PureDP(target),
        (replace(noise.step().times(count), status=gradients.status),),
        lambda rows, bits: descend(
            gradients.on(rows),
            ball=ball,
            steps=count,
            batch=n,
            noise=noise,
            rates=lambda _: rate,
            regularization=0.0,
            bits=bits,
        ),
        space=f"the ball {ball!r}",
        error=2 * width * math.sqrt(moment / count) / n,
        seconds=descent_seconds(rows=n, dimension=d, steps=count, batch=n),
    )


def laplace_steps(*, rows: int, dimension: int, epsilon: Rational) -> int:
    """Return T = εnL/(Δ_1√d) = εn/(2d) as an integer of at least 1; nT gradient evaluations.

    >>> laplace_steps(rows=1000, dimension=5, epsilon=1)
    100
    """
    n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
    # theory A6.9: T is an integer, and Δ_1 = 2√d L.
    return max(1, math.floor(as_positive(epsilon, "epsilon") * n / (2 * d)))


@partial(debited, rows=("features", "labels"), like=dp_sgd)
def exponential_mechanism_on_grid(
    features: Any,
    labels: Any,
    *,
    loss: Loss,
    epsilon: Rational,
    radius: Rational,
    data_norm: Rational,
    cells: int,
    **paying: Unpack[Paying],
) -> Release:
    """Choose a parameter among the grid points of the l2 ball by the exponential mechanism.

    Use it in low dimensions: each point of the grid is scored.

    Parameters
    ----------
    loss : Loss
        A built-in loss (`zerodelta.models`).
    cells : int
        The bounding cube has `cells`^d cells; the candidates are their centers within the ball.

    Returns
    -------
    Release
        Its value is a point of the grid.

    Notes
    -----
    **Guarantee**: pure ε-DP (EM): a row's score, its loss less that at θ = 0, is clipped to ±Lr and
    quantized, so each score has sensitivity 2Lr. `proven`.
    **Neighbors**: replace-one (n is public).
    **Error**: excess empirical risk, 4Lr ln(points)/(nε) plus L times half a cell's diagonal.

    Examples
    --------
    >>> from zerodelta.training.losses import Squared
    >>> x = np.linspace(-1, 1, 10_000).reshape(-1, 1)
    >>> release = exponential_mechanism_on_grid(
    ...     x, x[:, 0], loss=Squared(label_bound=1), data_norm=1, radius="1/2", epsilon=1, cells=10
    ... )
    >>> release.value.round(2), release.certificate.claim.exact_epsilon
    (array([0.45]), Fraction(1, 1))

    """
    gradients = LinearGradients(
        Examples.of_arrays(features, labels), loss=loss, radius=radius, data_norm=data_norm
    )
    points = grid_points(ball=gradients.ball, cells=cells)
    mechanism = ExponentialMechanism.for_epsilon(epsilon=epsilon, sensitivity=2 * _SCORE_STEPS)
    slope, radius_float = float(gradients.lipschitz), float(gradients.radius)
    unit = slope * radius_float / _SCORE_STEPS
    half_diagonal = radius_float / cells * math.sqrt(gradients.dimension)

    def answer(rows: Rows, bits: BitSource) -> Floats:
        scores = _scores(gradients.on(rows), points, slope * radius_float)
        return np.array(points[mechanism.select(scores, bits)])

    plan: ReleasePlan[Rows] = ReleasePlan(
        claim=PureDP(epsilon),
        steps=(mechanism.step(),),
        answer=answer,
        error=mechanism.error(len(points)) * unit / gradients.rows + slope * half_diagonal,
        seconds=len(points) * gradients.rows * _SECONDS_PER_LOSS,
        public=(f"the grid of {cells} cells per coordinate in {gradients.ball!r}",),
    )
    return run(plan, cast(Source, gradients.source))


def grid_points(*, ball: Ball, cells: int) -> Floats:
    """Return the cell centers of the bounding cube that lie in the ball, one in each row.

    >>> grid_points(ball=Ball(2, 1), cells=3).shape
    (9, 2)
    """
    count, d = as_count(cells, "cells", minimum=1), ball.dimension
    require(
        d * math.log(count) <= math.log(_MAXIMUM_POINTS) + 1e-9,
        "cells",
        cells,
        expected=f"at most {_MAXIMUM_POINTS} grid points, cells ** {d}",
        remedy="use fewer cells: the exponential mechanism is for low dimensions",
    )
    axis = (np.arange(count) + 0.5) * (2 / count) - 1
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    inside = (grid**2).sum(axis=1) <= 1
    unit_points = grid[inside] if inside.any() else np.zeros((1, d))
    points: Floats = unit_points * float(ball.radius) + ball.middle()
    return points


def _scores(gradients: LinearGradients, points: Floats, bound: float) -> list[int]:
    """Return -Σ_i round((f(θ; x_i) - f(0; x_i))·steps/bound), each term clipped to ±steps."""
    start = gradients.values(np.zeros((gradients.dimension, 1)))
    block = max(1, _BLOCK_ENTRIES // gradients.rows)
    scores: list[int] = []
    for first in range(0, len(points), block):
        values = gradients.values(points[first : first + block].T) - start
        clipped = np.clip(np.rint(values * (_SCORE_STEPS / bound)), -_SCORE_STEPS, _SCORE_STEPS)
        sums = exact_sum(clipped.astype(np.int64), bound=_SCORE_STEPS)
        scores.extend(-int(total) for total in sums)
    return scores
