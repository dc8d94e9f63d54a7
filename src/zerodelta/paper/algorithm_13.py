"""Algorithm 13 (`alg: pure_ada_ssp`): linear regression by AdaSSP, and made pure (A9, C6).

AdaSSP (Wang 2018) adds Gaussian noise to XᵀX, Xᵀy and λ_min(XᵀX) and solves a ridge regression
whose penalty adapts to the noise. Here rows are integers, all statistics are exact integers, and
the noise is exactly rounded, so the joint guarantee is Gaussian DP with the sensitivities of A9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from zerodelta.channels.kernel import Body
from zerodelta.channels.wasserstein import AlgorithmOne, laplace_scale
from zerodelta.data.arrays import ArraySource
from zerodelta.data.rows import Rows
from zerodelta.errors import require
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_log_delta, log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.regression.adassp import (
    LatticeAdassp,
    adassp_error,
    calibrated_statistics,
    trust_radius,
)
from zerodelta.regression.labeled_rows import LabeledRows
from zerodelta.spaces import Ball, BallLattice
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PUBLIC = ("the number of rows", "the number of features", "data_norm", "target_bound")


def paper_multiplier_squared(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return the printed noise multiplier, squared: ln(6/δ)/(ε/3)², rounded up. Do not use it.

    theory A9: it is calibrated to add-remove neighbors. Under the paper's replace-one relation
    it gives ln δ(1) = -94.0 where -100 is claimed.
    """
    target, exact = as_log_delta(log_delta), as_positive(epsilon, "epsilon")
    return Fraction(upper(lambda: (ball(6).log() - ball(target)) * 9 / ball(exact**2)))


def adassp_log_delta(
    *, rows: int, dimension: int, radius: Rational, mixing_weight: Rational
) -> float:
    """Return ln δ of δ = 2ω/(16 d^(3/2) R̃ n²)^d, rounded down; refuse where δ would exceed 1.

    >>> round(adassp_log_delta(rows=1000, dimension=5, radius=1, mixing_weight="1e-6"), 2)
    -108.13
    """
    n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
    weight, r = as_weight(mixing_weight), as_positive(radius, "radius")
    value = lower(
        lambda: ball(2 * weight).log() - d * (ball(16 * r * n * n) * ball(d**3).sqrt()).log()
    )
    below = "a logarithm below 0"
    require(value < 0, "log_delta", value, expected=below, remedy="pass log_delta= yourself")
    return value


@partial(debited, rows=("features", "target"))
def adassp(
    features: Any,
    target: Any,
    *,
    data_norm: Rational,
    target_bound: Rational,
    epsilon: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
    failure: float = 0.05,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release regression coefficients by AdaSSP: ridge regression with an adaptive penalty.

    Use it to see what Algorithm 13 purifies; for pure DP see `zd.sklearn.LinearRegression`.

    Parameters
    ----------
    features : array or list
        X, one row for each example.
    target : array or list
        y, one number for each row.
    data_norm : number
        ‖𝒳‖, a public bound on the l2 norm of a row, to which longer rows are clipped.
    target_bound : number
        ‖𝒴‖, a public bound on the targets, to which larger ones are clipped.
    epsilon : number
        ε of the claim.
    log_delta, delta : number
        ln δ or δ of the claim, one of the two.
    failure : float
        ζ, the failure probability of AdaSSP's penalty; it changes accuracy only.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value θ̃ has one coefficient for each feature.

    Notes
    -----
    **Guarantee**: μ-Gaussian DP, μ² = (16/3 + 2/A + 1/A²)/m² (theory A9, C6), and so (ε, δ)-DP.
    **Neighbors**: replace-one; the numbers of rows and features are public.
    **Error**: the expected excess of the mean squared error, for rows that vary evenly in all
    directions and typical targets; larger if XᵀX has a small eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> release = adassp(x, x[:, 0] / 2, data_norm=1, target_bound=1, epsilon=1, delta=1e-9)
    >>> release.value.round(1), release.certificate.claim.log_delta(1) <= -20.7
    (array([0.5]), True)

    """
    source = _examples(features, target)
    dimension = len(source.columns) - 1
    statistics = calibrated_statistics(
        dimension,
        data_norm,
        target_bound,
        epsilon=epsilon,
        log_delta=log_delta_from(delta, log_delta),
        eigenvalue=True,
    )
    ridge, caution = _ridge_factor(dimension, failure), _caution(failure)
    error = adassp_error(statistics, rows=source.rows, ridge=ridge, caution=caution)

    def answer(rows: Rows, bits: BitSource) -> Any:
        return statistics.solve(rows, bits, ridge=ridge, caution=caution)

    return run(_plan(statistics.claim(), (statistics.step(),), answer, error), source, bits=bits)


@partial(debited, rows=("features", "target"))
def pure_adassp(
    features: Any,
    target: Any,
    *,
    data_norm: Rational,
    target_bound: Rational,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    mixing_weight: Rational | None = None,
    failure: float = 0.05,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release regression coefficients by AdaSSP, clipped to a public ball, then Algorithm 1.

    Use it to reproduce Algorithm 13; `lattice_adassp` and `zd.sklearn.LinearRegression` need no
    extra ε.

    Parameters
    ----------
    features, target, data_norm, target_bound, failure
        As in `adassp`.
    epsilon : number
        ε + ε' of the paper: the pure ε of the release.
    base_epsilon : number, optional
        ε of AdaSSP; half of `epsilon` by default. The rest is ε' of Algorithm 1.
    log_delta, delta : number, optional
        ln δ or δ of AdaSSP, at most one of the two; by default δ = 2ω/(16 d^(3/2) R̃ n²)^d as in
        the paper.
    mixing_weight : number, optional
        ω of Algorithm 1; the paper's 1/n² by default.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value has one coefficient for each feature, in Θ, the ball of radius R̃.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' (theory A9, labels C6 and W).
    **Neighbors**: replace-one; the numbers of rows and features are public.
    **Error**: as for `adassp` at the tiny δ, plus Algorithm 1's noise and ω times the ball.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> release = pure_adassp(x, x[:, 0] / 2, data_norm=1, target_bound=1, epsilon=2)
    >>> release.value.round(1), release.certificate.claim.exact_epsilon
    (array([0.5]), Fraction(2, 1))

    """
    source = _examples(features, target)
    rows, dimension = source.rows, len(source.columns) - 1
    base, extra = split_epsilon(epsilon, base_epsilon)
    weight = Fraction(1, max(2, rows) ** 2) if mixing_weight is None else as_weight(mixing_weight)
    factor = _ridge_factor(dimension, failure)
    if delta is None and log_delta is None:
        # the paper's Õ(1 + nε/d) names R̃ before δ and the noise are known: m ~ √d/ε
        guess = max(1.0, math.sqrt(dimension) / float(base))
        first = trust_radius(  # theory A3: in units of ‖Y‖/‖X‖, or δ would depend on the unit
            rows=rows, dimension=dimension, multiplier=guess, ridge_factor=factor / 2, scale=1.0
        )
        log_delta = adassp_log_delta(
            rows=rows, dimension=dimension, radius=first, mixing_weight=weight
        )
    log_of = log_delta_from(delta, log_delta)
    statistics = calibrated_statistics(
        dimension, data_norm, target_bound, epsilon=base, log_delta=log_of, eigenvalue=True
    )
    # theory A9: R̃ from public numbers; half of the penalized matrix is what survives the noise
    radius = trust_radius(
        rows=rows,
        dimension=dimension,
        multiplier=math.sqrt(statistics.multiplier_squared),
        ridge_factor=factor / 2,
        scale=statistics.scale,
    )
    lattice = BallLattice(ball=Ball(dimension, radius), spacing=radius / (1 << 40))
    body = Body(lattice=lattice)
    purifier = AlgorithmOne(
        body=body,
        scale=laplace_scale(
            norm=2,
            dimension=dimension,
            diameter=2 * body.radius,
            weight=weight,
            claim=statistics.claim(),
            epsilon=base,
            extra_epsilon=extra,
        ),
        mixing_weight=weight,
        base_epsilon=base,
    )
    caution = _caution(failure)
    error = adassp_error(
        statistics,
        rows=rows,
        ridge=factor,
        caution=caution,
        added=2 * dimension * (purifier.scale * lattice.spacing) ** 2,
        random=2 * weight * radius**2,
    )

    def answer(rows: Rows, bits: BitSource) -> Any:
        drafted = statistics.solve(rows, bits, ridge=factor, caution=caution)
        return purifier.apply(drafted, bits)

    plan = _plan(PureDP(base + extra), (statistics.step(), purifier.step()), answer, error)
    return run(plan, source, bits=bits)


@partial(debited, rows=("features", "target"))
def lattice_adassp(
    features: Any,
    target: Any,
    *,
    data_norm: Rational,
    target_bound: Rational,
    epsilon: Rational,
    mixing_weight: Rational,
    resolution: int | None = None,
    ridge_factor: float = 2.0,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release regression coefficients from noisy statistics through a lattice: pure, no extra ε.

    Use it above about 22 features: below, pure noise on the statistics (C10.5) is better. The
    penalty comes from the noisy matrix itself, so there is no eigenvalue query (theory C6).

    Parameters
    ----------
    features, target, data_norm, target_bound
        As in `adassp`.
    epsilon : number
        The pure ε of the release.
    mixing_weight : number
        The probability ω of a rounded Gaussian in place of the coefficients.
    resolution : int, optional
        The trust radius in lattice spacings; by default the number of rows.
    ridge_factor : float
        The ridge penalty is this times √d, in units of the noise on XᵀX.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value has one coefficient for each feature, in the ball of radius R̃.

    Notes
    -----
    **Guarantee**: pure ε-DP: μ² = (9/2)/m² and ln δ(ε) + ln(1/q_min) <= ln(w/(1-w)) + ln(e^ε-1)
    (theory C6, R(v)).
    **Neighbors**: replace-one; the numbers of rows and features are public.
    **Error**: as for `adassp`, plus the lattice and ω times the ball.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> release = lattice_adassp(x, x[:, 0] / 2, data_norm=1, target_bound=1, epsilon=1,
    ...                          mixing_weight="1e-8")
    >>> release.value.round(1), release.certificate.claim.exact_epsilon
    (array([0.5]), Fraction(1, 1))

    """
    source = _examples(features, target)
    planned = LatticeAdassp.plan(
        rows=source.rows,
        dimension=len(source.columns) - 1,
        data_norm=data_norm,
        target_bound=target_bound,
        epsilon=epsilon,
        mixing_weight=mixing_weight,
        resolution=resolution,
        ridge_factor=ridge_factor,
    )
    claim = PureDP(as_positive(epsilon, "epsilon"))

    def answer(rows: Rows, bits: BitSource) -> Any:
        return planned.answer(rows, bits)

    lattice, weight = planned.channel.lattice, planned.channel.mixing_weight
    error = adassp_error(
        planned.statistics,
        rows=source.rows,
        ridge=planned.ridge,
        added=lattice.dimension * lattice.spacing**2 / 12,
        random=2 * weight * lattice.ball.radius**2,
    )
    return run(_plan(claim, planned.steps, answer, error), source, bits=bits)


def _plan(
    claim: Claim, steps: tuple[Step, ...], answer: Callable[[Rows, BitSource], Any], error: float
) -> ReleasePlan[Rows]:
    return ReleasePlan(claim=claim, steps=steps, answer=answer, error=error, public=_PUBLIC)


def _ridge_factor(dimension: int, failure: float) -> float:
    """Return √(d ln(2d²/ζ)), AdaSSP's penalty in units of m·A, ζ the failure probability."""
    inside = "a number in (0, 1)"
    require(0 < failure < 1, "failure", failure, expected=inside, remedy="pass failure=0.05")
    return math.sqrt(dimension * math.log(2 * dimension**2 / failure))


def _caution(failure: float) -> float:
    """Return √(2 ln(6/ζ)): the noisy λ_min less this many m·A is below λ_min, but for ζ/6.

    theory A9: AdaSSP has ln(6/δ) here, of no use with a δ that is tiny for another reason.
    """
    return math.sqrt(2 * math.log(6 / failure))


def _examples(features: Any, target: Any) -> LabeledRows:
    """Return the rows with the target as their last column; nothing is read."""
    x, y = ArraySource(features), ArraySource(target)
    require(
        len(y.columns) == 1 and x.rows == y.rows and x.rows >= 1 and len(x.columns) >= 1,
        "shape of features and target",
        ((x.rows, len(x.columns)), (y.rows, len(y.columns))),
        expected="(n, d) and (n,), n and d at least 1",
        remedy="pass one line per row",
    )
    return LabeledRows(features, target)
