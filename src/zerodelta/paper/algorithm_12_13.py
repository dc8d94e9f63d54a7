"""Release the mode, and regression by AdaSSP, under pure DP: Algorithms 12 and 13.

`alg: mode`, `alg: pure_ada_ssp`. AdaSSP (Wang 2018) adds Gaussian noise to XᵀX, Xᵀy and λ_min(XᵀX)
and solves a ridge regression whose penalty adapts to the noise. Here rows and statistics are exact
integers and the noise is exactly rounded, so the joint guarantee is Gaussian DP with the
sensitivities of A9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from zerodelta.channels.kernels import Body
from zerodelta.data.arrays import ArraySource
from zerodelta.data.keys import as_items, tally
from zerodelta.data.rows import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.noisy_test import ClearLead
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, AlgorithmTwo, code_length
from zerodelta.paper.algorithm_09_10_11 import paper_threshold
from zerodelta.paper.gaussian_statistics import (
    LatticeAdassp,
    adassp_error,
    calibrated_statistics,
    trust_radius,
)
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.parameters import (
    Neighbors,
    as_log_delta,
    as_relation,
    log_delta_from,
    split_epsilon,
)
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.testing import ProposeTestRelease
from zerodelta.regression.rows import LabeledRows
from zerodelta.spaces import Ball, BallLattice, Finite
from zerodelta.spine.plan import ReleasePlan
from zerodelta.spine.public_inputs import as_universe, unknown_index
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Algorithm 12 (`alg: mode`): release the most frequent item, `thm:mode` (theory A5, C5) -------
# A noisy test of the mode's lead decides between the mode and a uniform item. With the right
# threshold that alone is pure ε-DP; the paper adds the binary embedding and pays 2ε.

_PUBLIC = ("the universe of items",)


def mode_log_delta(*, points: int, base_epsilon: Rational) -> float:
    """Return ln δ = -d ln(8d³/ε), d = ⌈log2|X|⌉ at least 1, rounded down.

    >>> round(mode_log_delta(points=1024, base_epsilon=1), 3)
    -89.872
    """
    d = code_length(points)
    exact = as_positive(base_epsilon, "base_epsilon")
    # theory A5: Theorem 3 needs (2d)^3 = 8d³ here; the algorithm prints 2d³
    value = lower(lambda: -ball(8 * d**3 / exact).log() * d)
    require(
        value < 0,
        "base_epsilon",
        base_epsilon,
        expected=f"less than {8 * d**3} for {points} items (else ln δ is not below 0)",
        remedy="use zd.mode, which needs no δ",
    )
    return value


def stable_mode(items: Any, universe: Finite, *, unknown: int | None = None) -> tuple[int, int]:
    """Return the index of the mode of *public* items, and ⌈lead/2⌉ - 1 (`ClearLead`)."""
    return ClearLead.stability(tally(items, universe, unknown=unknown))


@debited
def mode(
    items: Any,
    *,
    universe: int | Iterable[Any] | Finite,
    epsilon: Rational,
    unknown: Any = None,
    neighbors: Neighbors = Neighbors.REPLACE,
    **paying: Unpack[Paying],
) -> Release:
    """Release the most frequent item if its lead is clear, as ``zd.mode(method="stability")`` does.

    Use it to compare with the paper's `embedded_mode`; `zd.mode` has better methods too.

    Parameters
    ----------
    items : list, array or series
        The dataset D, one item for each row.
    universe : list, int or Finite
        The public set 𝒳 of all items, or N for the integers 0..N-1.
    unknown : item, optional
        The public item as which items outside the universe count; by default they are ignored.
    neighbors : Neighbors
        REPLACE or ADD_REMOVE; the same proof covers both.

    Returns
    -------
    Release
        Its value is one item of the universe.

    Notes
    -----
    **Guarantee**: pure ε-DP: dp·(N + e^ε - 1) <= e^ε - 1, dp = e^(-ετ)/2 (theory C5): a failed test
    releases a uniform item, which is mixing.
    **Neighbors**: replace-one (default) or add-remove.
    **Error**: the smallest lead, in rows, with which 9 of 10 releases are the mode.

    Examples
    --------
    >>> mode(["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1).value
    'tea'

    """
    space, exact, relation = (
        as_universe(universe),
        as_positive(epsilon, "epsilon"),
        as_relation(neighbors),
    )
    index, (source, _) = unknown_index(unknown, space), as_items(items)
    test = ClearLead.for_epsilon(epsilon=exact, items=space.size, neighbors=relation)

    def answer(items: Any, bits: BitSource) -> Any:
        return space.element(test.apply(tally(items, space, unknown=index), bits))

    plan: ReleasePlan[Any] = ReleasePlan(
        claim=PureDP(exact, neighbors=relation),
        steps=(test.step(),),
        answer=answer,
        error=_sufficient_lead(test),
        public=_PUBLIC,
    )
    return run(plan, source)


@partial(debited, like=mode)
def embedded_mode(
    items: Any,
    *,
    universe: int | Iterable[Any] | Finite,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    unknown: Any = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the most frequent item as the paper does: noisy test, then Algorithm 2.

    Use it to reproduce Algorithm 12; `mode` needs a quarter of the lead at half the privacy cost.

    Parameters
    ----------
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of the test; half of `epsilon` by default. The rest is ε' of Algorithm 2.
    log_delta, delta : number, optional
        ln δ or δ of the test, at most one of the two; `mode_log_delta` by default.

    Returns
    -------
    Release
        Its value is one item of the universe.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' (theory A5, C3, and B3 on the binary code).
    **Neighbors**: replace-one.
    **Error**: the smallest lead, in rows, with which 9 of 10 releases are the mode; inf if ω = 2^-d
    alone prevents it. The paper's bound: P(wrong) <= 3/|X| for leads of at least 4⌈ln(1/δ)/ε⌉ (if
    |X| is not tiny, theory A4).

    Examples
    --------
    >>> release = embedded_mode([7] * 4000, universe=1 << 30, epsilon=2)
    >>> release.value, release.certificate.claim.exact_epsilon
    (7, Fraction(2, 1))

    """
    space, (base, extra) = as_universe(universe), split_epsilon(epsilon, base_epsilon)
    index, (source, _) = unknown_index(unknown, space), as_items(items)
    if delta is None and log_delta is None:
        log_delta = mode_log_delta(points=space.size, base_epsilon=base)
    log_of = log_delta_from(delta, log_delta)
    theorem = ProposeTestRelease(
        test_epsilon=base,
        release_epsilon=Fraction(0),
        threshold=paper_threshold(base_epsilon=base, log_delta=log_of),
        noise="real",
    )
    test = ClearLead(items=space.size, epsilon=base, threshold=theorem.threshold)
    claim = theorem.claim(Neighbors.REPLACE)
    purifier = AlgorithmTwo.behind(claim, space, base_epsilon=base, extra_epsilon=extra)

    def answer(items: Any, bits: BitSource) -> Any:
        # theory A5: ⊥ becomes a uniform item *before* Algorithm 2, and is not shown: showing it
        # would void the guarantee
        draft = test.apply(tally(items, space, unknown=index), bits)
        return purifier.apply(space.element(draft), bits)

    plan: ReleasePlan[Any] = ReleasePlan(
        claim=PureDP(base + extra),
        steps=(theorem.step(), purifier.step()),
        answer=answer,
        error=_sufficient_lead(test, kept=1 - purifier.expected_error()),
        public=_PUBLIC,
    )
    return run(plan, source)


def _sufficient_lead(test: ClearLead, *, kept: float = 1.0) -> float:
    """Return the smallest lead with which 9 of 10 releases are the mode.

    `kept` is the probability that purification leaves the item unchanged.
    """
    if test.items == 1:
        return 0.0
    # a failed test releases a uniform item, which is the mode with probability 1/items
    return test.lead_for((1 - 9 / 10 / kept) / (1 - 1 / test.items))


def wrong_probability(*, points: int, epsilon: Rational, gap: int) -> float:
    """Return the probability that `mode` does not release a mode with this lead.

    >>> wrong_probability(points=1024, epsilon=1, gap=40) < 1e-5
    True
    """
    test = ClearLead.for_epsilon(epsilon=as_positive(epsilon, "epsilon"), items=points)
    return (1 - 1 / points) * test.fails(as_count(gap, "gap"))


# -- Algorithm 13 (`alg: pure_ada_ssp`): AdaSSP, then Algorithm 1 (theory A9) ---------------------

_ADASSP_PUBLIC = ("the number of rows", "the number of features", "data_norm", "target_bound")


def paper_multiplier_squared(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return the printed noise multiplier, squared: ln(6/δ)/(ε/3)², rounded up. Do not use it.

    It is calibrated to add-remove neighbors (theory A9). Under the paper's replace-one relation it
    has ln δ(1) = -94.0 where -100 is claimed.
    """
    target, exact = as_log_delta(log_delta), as_positive(epsilon, "epsilon")
    return Fraction(upper(lambda: (ball(6).log() - ball(target)) * 9 / ball(exact**2)))


def adassp_log_delta(
    *, rows: int, dimension: int, radius: Rational, mixing_weight: Rational
) -> float:
    """Return ln δ of δ = 2ω/(16 d^(3/2) R̃ n²)^d, rounded down; refuse δ >= 1.

    >>> round(adassp_log_delta(rows=1000, dimension=5, radius=1, mixing_weight="1e-6"), 2)
    -108.13
    """
    n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
    weight, r = as_weight(mixing_weight), as_positive(radius, "radius")
    value = lower(
        lambda: ball(2 * weight).log() - d * (ball(16 * r * n * n) * ball(d**3).sqrt()).log()
    )
    require(
        value < 0,
        "log_delta",
        value,
        expected="a logarithm below 0",
        remedy="pass log_delta=, as the default formula does not apply here",
    )
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
    **paying: Unpack[Paying],
) -> Release:
    """Release regression coefficients by AdaSSP: ridge regression with an adaptive penalty.

    Use it to see the result before Algorithm 13's purification; for pure DP see
    `zd.sklearn.LinearRegression`.

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
        ζ, the failure probability of AdaSSP's penalty; it affects accuracy only.

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

    return run(_plan(statistics.claim(), (statistics.step(),), answer, error), source)


@partial(debited, rows=("features", "target"), like=adassp)
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
    **paying: Unpack[Paying],
) -> Release:
    """Release regression coefficients by AdaSSP, clipped to a public ball, then Algorithm 1.

    Use it to reproduce Algorithm 13; `lattice_adassp` and `zd.sklearn.LinearRegression` need no
    extra ε.

    Parameters
    ----------
    epsilon : number
        ε + ε' of the paper: the pure ε of the release.
    base_epsilon : number, optional
        ε of AdaSSP; half of `epsilon` by default. The rest is ε' of Algorithm 1.
    log_delta, delta : number, optional
        ln δ or δ of AdaSSP, at most one of the two; by default δ = 2ω/(16 d^(3/2) R̃ n²)^d as in
        the paper.
    mixing_weight : number, optional
        ω of Algorithm 1; the paper's 1/n² by default.

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
        # δ depends on R̃, and R̃ on the noise, which depends on δ. The paper's Õ(1 + nε/d) fixes a
        # first R̃, for a noise multiplier of about √d/ε.
        first_multiplier = max(1.0, math.sqrt(dimension) / float(base))
        first_radius = trust_radius(
            rows=rows,
            dimension=dimension,
            multiplier=first_multiplier,
            ridge_factor=factor / 2,
            scale=1.0,  # theory A3: in units of ‖Y‖/‖X‖, or δ would depend on the unit
        )
        log_delta = adassp_log_delta(
            rows=rows, dimension=dimension, radius=first_radius, mixing_weight=weight
        )
    log_of = log_delta_from(delta, log_delta)
    statistics = calibrated_statistics(
        dimension, data_norm, target_bound, epsilon=base, log_delta=log_of, eigenvalue=True
    )
    # theory A9: R̃ from public numbers; with noise the penalized matrix is at least half as large
    radius = trust_radius(
        rows=rows,
        dimension=dimension,
        multiplier=math.sqrt(statistics.multiplier_squared),
        ridge_factor=factor / 2,
        scale=statistics.scale,
    )
    lattice = BallLattice(ball=Ball(dimension, radius), spacing=radius / (1 << 40))
    purifier = AlgorithmOne.behind(
        statistics.claim(),
        Body(lattice=lattice),
        base_epsilon=base,
        extra_epsilon=extra,
        mixing_weight=weight,
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
        theta = statistics.solve(rows, bits, ridge=factor, caution=caution)
        return purifier.apply(theta, bits)

    plan = _plan(PureDP(base + extra), (statistics.step(), purifier.step()), answer, error)
    return run(plan, source)


@partial(debited, rows=("features", "target"), like=adassp)
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
    **paying: Unpack[Paying],
) -> Release:
    """Release regression coefficients from noisy statistics through a lattice: pure, no extra ε.

    Use it for more than about 22 features; for fewer, pure noise on the statistics (C10.5) is
    better. The penalty is computed from the noisy matrix, without a query for its smallest
    eigenvalue (theory C6).

    Parameters
    ----------
    mixing_weight : number
        The probability ω of a rounded Gaussian in place of the coefficients.
    resolution : int, optional
        The trust radius in lattice spacings; by default the number of rows.
    ridge_factor : float
        The ridge penalty is `ridge_factor` · √d, in units of the noise on XᵀX.

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
    adassp_plan = LatticeAdassp.plan(
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

    lattice, weight = adassp_plan.channel.lattice, adassp_plan.channel.mixing_weight
    error = adassp_error(
        adassp_plan.statistics,
        rows=source.rows,
        ridge=adassp_plan.ridge,
        added=lattice.dimension * lattice.spacing**2 / 12,
        random=2 * weight * lattice.ball.radius**2,
    )
    return run(_plan(claim, adassp_plan.steps, adassp_plan.answer, error), source)


def _plan(
    claim: Claim, steps: tuple[Step, ...], answer: Callable[[Rows, BitSource], Any], error: float
) -> ReleasePlan[Rows]:
    """Return the plan of a regression with its public numbers."""
    return ReleasePlan(claim=claim, steps=steps, answer=answer, error=error, public=_ADASSP_PUBLIC)


def _ridge_factor(dimension: int, failure: float) -> float:
    """Return √(d ln(2d²/ζ)), AdaSSP's penalty in units of m·A, ζ the failure probability."""
    require(
        0 < failure < 1,
        "failure",
        failure,
        expected="a number in (0, 1)",
        remedy="pass failure=0.05",
    )
    return math.sqrt(dimension * math.log(2 * dimension**2 / failure))


def _caution(failure: float) -> float:
    """Return c = √(2 ln(6/ζ)): the noisy λ_min less c·m·A exceeds λ_min with probability ζ/6.

    AdaSSP has ln(6/δ) here, which is needlessly large for the tiny δ of purification (theory A9).
    """
    return math.sqrt(2 * math.log(6 / failure))


def _examples(features: Any, target: Any) -> LabeledRows:
    """Return unread rows with the target as their last column."""
    x, y = ArraySource(features), ArraySource(target)
    require(
        len(y.columns) == 1 and x.rows == y.rows and x.rows >= 1 and len(x.columns) >= 1,
        "shape of features and target",
        ((x.rows, len(x.columns)), (y.rows, len(y.columns))),
        expected="(n, d) and (n,), n and d at least 1",
        remedy="pass one target for each row",
    )
    return LabeledRows(features, target)
