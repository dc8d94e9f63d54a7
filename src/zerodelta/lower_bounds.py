"""Compute lower bounds on errors and sample sizes of private mechanisms, for δ = 0 and δ > 0.

The bounds are those of theory A13 (Section 6 and appendices: `thm: mean_est_lb`,
`thm: lb_selection`, `lem: packing_lb_l1`), with proved constants only. Results are rounded so that
the bounds hold; each function refuses parameters outside its conditions. Neighbors: replace-one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.logs import ball, lower
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.value import value

__all__ = [
    "ApproximateBound",
    "from_pure_bound",
    "l1_erm_rows",
    "l1_vertex_rows",
    "mean_estimation_rows",
    "packing_distance",
    "packing_mean_theorem",
    "rounded_cells",
    "selection_distance",
]


def packing_distance(
    *, epsilon: Rational, datasets: int, success: Rational, log_delta: float | None = None
) -> int:
    """Return the distance that two of K datasets must have for a mechanism to tell all apart.

    Suppose that K datasets are pairwise within h replacements, each has its own set of correct
    outputs, these sets are disjoint, and an (ε, δ)-DP mechanism is correct with probability p or
    more on each of them. Then p + (K-1) e^(-hε) (p - δ_h) <= 1, where
    δ_h = δ (e^(hε) - 1)/(e^ε - 1) (theory A13; the paper's δ_h <= δ e^(hε) is false below
    ε = ln 2). This is solved for h and rounded up to an integer.

    Parameters
    ----------
    epsilon : number
        The mechanism's ε.
    datasets : int
        The number K of datasets.
    success : number
        The probability p, above 1/K and below 1.
    log_delta : float, optional
        The mechanism's ln δ; without it the mechanism is pure.

    Returns
    -------
    int
        The distance h.

    Examples
    --------
    >>> packing_distance(epsilon=1, datasets=1024, success="2/3")
    8
    >>> packing_distance(epsilon=1, datasets=1024, success="2/3", log_delta=-3.0)
    4

    """
    t, count, p = _packing(epsilon, datasets, success)

    def distance() -> arb:
        leak = _delta(log_delta) / ball(t).expm1()
        return ((ball(p) + leak) / (ball((1 - p) / (count - 1)) + leak)).log() / ball(t)

    return max(0, math.ceil(lower(distance)))


def mean_estimation_rows(
    *,
    epsilon: Rational,
    dimension: int,
    accuracy: Rational,
    success: Rational = "2/3",
    log_delta: float | None = None,
) -> int:
    """Return the smallest number of rows of [-1,1]^d from which the mean can be estimated.

    n copies of each of the 2^d corners are pairwise within n replacements, and balls of radius α
    around the corners are disjoint (`packing_distance`; valid for every δ).

    Parameters
    ----------
    epsilon : number
        The mechanism's ε.
    dimension : int
        The number d of coordinates.
    accuracy, success : number
        On every dataset the l2 error is at most α = `accuracy` < 1 with probability `success`.
    log_delta : float, optional
        The mechanism's ln δ; without it the mechanism is pure.

    Returns
    -------
    int
        The smallest n that the bound allows.

    Examples
    --------
    >>> mean_estimation_rows(epsilon=1, dimension=20, accuracy="0.9", log_delta=-30.0)
    15

    """
    d = as_count(dimension, "dimension", minimum=1)
    _check_accuracy(accuracy)
    return packing_distance(epsilon=epsilon, datasets=1 << d, success=success, log_delta=log_delta)


def packing_mean_theorem(
    *, epsilon: Rational, dimension: int, accuracy: Rational, rows: int, log_delta: float
) -> float:
    """Return (ln 2/ε)(d - 1): from fewer rows no (ε, δ)-DP mean has l2 error α w.p. 2/3.

    The paper's theorem (appendix `apx:thm9_alt`) as theory A13 corrects it: α < 1, strictly, as
    closed balls of radius 1 touch, and δ <= (e^ε - 1) e^(-nε)/6, where the paper has e^(-nε)/6.
    Whenever this rules out `rows`, `mean_estimation_rows` does, without a condition on δ.

    Parameters
    ----------
    epsilon, log_delta : number
        The mechanism's ε and ln δ.
    dimension : int
        The number d of coordinates.
    accuracy : number
        The l2 error α, below 1.
    rows : int
        The number n of rows, for the condition on δ.

    Returns
    -------
    float
        The bound, rounded down; `GuaranteeError` if δ is too large for the theorem.

    Examples
    --------
    >>> packing_mean_theorem(
    ...     epsilon=1, dimension=20, accuracy="1/2", rows=10, log_delta=-12.0
    ... ) > 13
    True

    """
    t, n = as_positive(epsilon, "epsilon"), as_count(rows, "rows", minimum=1)
    d = as_count(dimension, "dimension", minimum=1)
    _check_accuracy(accuracy)
    log = as_log_delta(log_delta)
    largest = lower(lambda: ball(t).expm1().log() - ball(6).log() - ball(n * t))
    if log > largest:
        raise GuaranteeError(
            f"log_delta = {log}: the theorem needs ln δ <= ln((e^ε - 1)/6) - nε = {largest:.6g}; "
            "use mean_estimation_rows, which has no condition on δ."
        )
    return lower(lambda: ball(2).log() * (d - 1) / ball(t))


def selection_distance(
    *, epsilon: Rational, items: int, success: Rational, log_delta: float | None = None
) -> int:
    """Return the distance of `packing_distance` for selecting one of N items, by purification.

    With w = δN/(δN + e^ε - 1), mixing in a uniform item makes the mechanism ε-DP at no further
    cost (B1), with success p' = (1-w) p + w/N; so h >= ln((N-1) p'/(1-p'))/ε (theory A13, in place
    of `thm: lb_selection`, whose constants are unspecified).

    Parameters
    ----------
    epsilon : number
        The mechanism's ε.
    items : int
        The number N of items, and of datasets.
    success : number
        The probability p, above 1/N and below 1.
    log_delta : float, optional
        The mechanism's ln δ; without it the mechanism is pure.

    Returns
    -------
    int
        The distance h.

    Examples
    --------
    >>> selection_distance(epsilon=1, items=1024, success="2/3", log_delta=-12.0)
    8

    """
    t, count, p = _packing(epsilon, items, success)

    def distance() -> arb:
        """Return ln of the purified odds of selecting right, divided by epsilon."""
        leak = _delta(log_delta) * count
        weight = leak / (leak + ball(t).expm1())
        purified = (1 - weight) * ball(p) + weight / count
        return ((count - 1) * purified / (1 - purified)).log() / ball(t)

    return max(0, math.ceil(lower(distance)))


def l1_erm_rows(
    *, epsilon: Rational, points: Sequence[Sequence[Rational]], accuracy: Rational
) -> int:
    """Return the smallest number of rows that an ε-DP minimizer over the unit l1 ball needs.

    The losses ‖θ - x‖_2 at n copies of one of K points make any ε-DP algorithm that is α-accurate
    with probability 1/2 need n >= ln(K-1)/ε (theory A13, in place of `lem: packing_lb_l1`, whose
    constant is not proved and whose loss is not smooth).

    Parameters
    ----------
    epsilon : number
        The algorithm's ε.
    points : list of lists
        K public points of the ball, pairwise more than 2α apart in l2, which is checked exactly.
    accuracy : number
        The excess loss α.

    Returns
    -------
    int
        The smallest n that the bound allows.

    Examples
    --------
    >>> l1_erm_rows(epsilon="1/10", points=[[1, 0], [-1, 0], [0, 1], [0, -1]], accuracy="0.7")
    11

    """
    exact = [tuple(as_rational(entry, "points") for entry in point) for point in points]
    alpha = as_positive(accuracy, "accuracy")
    inside = all(sum(map(abs, point)) <= 1 and len(point) == len(exact[0]) for point in exact)
    if len(exact) < 3 or not inside:
        raise ParameterError(
            "points",
            f"{len(exact)} points",
            expected="at least 3 points of one dimension with l1 norm at most 1",
            remedy="scale the points into the unit l1 ball",
        )
    for a, b in itertools.combinations(exact, 2):
        if sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) <= (2 * alpha) ** 2:
            raise ParameterError(
                "accuracy",
                accuracy,
                expected="below half the smallest distance between two points",
                remedy="choose a smaller accuracy, or points that are further apart",
            )
    return packing_distance(epsilon=epsilon, datasets=len(exact), success="1/2")


def l1_vertex_rows(*, epsilon: Rational, dimension: int, accuracy: Rational) -> int:
    """Return `l1_erm_rows` at the 2d vertices, √2 apart: n >= ln(2d-1)/ε.

    Parameters
    ----------
    epsilon : number
        The algorithm's ε.
    dimension : int
        The number d of coordinates.
    accuracy : number
        The excess loss α, below 1/√2.

    Returns
    -------
    int
        The smallest n that the bound allows.

    Examples
    --------
    >>> l1_vertex_rows(epsilon="1/10", dimension=1000, accuracy="0.7")
    77

    """
    d, alpha = as_count(dimension, "dimension", minimum=2), as_positive(accuracy, "accuracy")
    if 2 * alpha**2 >= 1:
        raise ParameterError(
            "accuracy",
            accuracy,
            expected="below 1/√2, as the vertices are √2 apart",
            remedy="choose a smaller accuracy",
        )
    return packing_distance(epsilon=epsilon, datasets=2 * d, success="1/2")


@value
class ApproximateBound:
    """A lower bound for δ > 0: each (ε, δ)-DP mechanism has at least this error on some dataset.

    Parameters
    ----------
    epsilon : Fraction
        The mechanism's ε.
    log_delta : float
        The bound holds for every ln δ up to this.
    error, probability : float, Fraction
        On some dataset the error is at least `error` with at least this probability.

    """

    epsilon: Fraction
    log_delta: float
    error: float
    probability: Fraction

    def rate_constant(
        self, *, rows: int, dimension: int, log_delta: float, power: Rational = "1/2"
    ) -> float:
        """Return the constant κ of the paper's form, error = κ d^c ln(1/δ)^(1-c)/(nε).

        Refuses a δ for which the bound was not proved.
        """
        log, c = as_log_delta(log_delta), as_rational(power, "power")
        if not log <= self.log_delta or not 0 < c < 1:
            raise GuaranteeError(
                f"log_delta = {log}, power = {c}: the bound holds for ln δ <= {self.log_delta} and "
                "is written with 0 < power < 1."
            )
        n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
        error, t = Fraction(self.error), self.epsilon
        return lower(
            lambda: (
                ball(error * n * t)
                / (ball(d).log() * ball(c) + ball(-log).log() * ball(1 - c)).exp()
            )
        )


def from_pure_bound(
    *,
    epsilon: Rational,
    error: Rational,
    probability: Rational,
    kept_probability: Rational,
    outcomes: int,
    rounding: Rational = 0,
) -> ApproximateBound:
    """Turn a lower bound for pure DP into one for (ε, δ), by the argument of Section 6.

    Proof: mixing with w/(1-w) = (β - β')/(1 - β) makes the rounded mechanism ε-DP (B1), so it has
    that error with probability β <= (1-w) P + w, and (β - w)/(1-w) = β'. Unlike the paper's route,
    ε stays what it was, no noise is added, and there is no lower end of the range of δ: the
    paper's only serves to write the error in terms of ln(1/δ) (see `rate_constant`).

    Parameters
    ----------
    epsilon : number
        The ε of the mechanisms.
    error, probability : number
        The pure bound: every ε-DP mechanism has, on some dataset, at least this error with
        probability at least β = `probability`.
    kept_probability : number
        The probability β' < β that is claimed for δ > 0.
    outcomes : int
        The number N of outcomes to which answers are rounded (`rounded_cells`).
    rounding : number
        The largest error that this rounding adds.

    Returns
    -------
    ApproximateBound
        Error >= `error` - `rounding` with probability at least β' for every (ε, δ)-DP mechanism
        with δ <= (e^ε - 1)(β - β')/((1 - β) N).

    Examples
    --------
    >>> bound = from_pure_bound(
    ...     epsilon=1, error="1/2", probability="1/2", kept_probability="1/4", outcomes=1024
    ... )
    >>> round(bound.log_delta, 4), bound.error
    (-7.0833, 0.5)

    """
    t, alpha = as_positive(epsilon, "epsilon"), as_positive(error, "error")
    beta, kept = (
        as_positive(probability, "probability"),
        as_positive(kept_probability, "kept_probability"),
    )
    count, added = as_count(outcomes, "outcomes", minimum=2), as_rational(rounding, "rounding")
    if not kept < beta < 1:
        raise ParameterError(
            "kept_probability",
            kept_probability,
            expected="above 0 and below probability, which is below 1",
            remedy="choose a smaller kept_probability: the difference pays for δ",
        )
    if not 0 <= added < alpha:
        raise ParameterError(
            "rounding",
            rounding,
            expected="at least 0 and below error",
            remedy="use more outcomes: see rounded_cells",
        )
    odds = (beta - kept) / (1 - beta) / count
    return ApproximateBound(
        epsilon=t,
        log_delta=min(0.0, lower(lambda: ball(t).expm1().log() + ball(odds).log())),
        error=lower(lambda: ball(alpha - added)),
        probability=kept,
    )


def rounded_cells(*, dimension: int, side: Rational, rounding: Rational) -> int:
    """Return the number N = K^d of cells of a cube such that centers are within `rounding`.

    In the l2 norm, half a cell's diagonal is side·√d/(2K). Answers outside the cube are first
    projected onto it, which never increases their distance to a point inside.

    Parameters
    ----------
    dimension : int
        The number d of coordinates.
    side : number
        The length of the cube's side.
    rounding : number
        The l2 error allowed.

    Returns
    -------
    int
        The number N of cells.

    Examples
    --------
    >>> rounded_cells(dimension=4, side=2, rounding="1/2")
    256

    """
    d, width = as_count(dimension, "dimension", minimum=1), as_positive(side, "side")
    squared = d * (width / (2 * as_positive(rounding, "rounding"))) ** 2  # K² must be at least this
    cells = math.isqrt(math.ceil(squared))
    total: int = (cells if cells * cells >= squared else cells + 1) ** d
    return total


def _packing(epsilon: Rational, count: int, success: Rational) -> tuple[Fraction, int, Fraction]:
    """Return the checked parameters of a packing bound: ε, datasets, success probability."""
    t, k = as_positive(epsilon, "epsilon"), as_count(count, "datasets", minimum=2)
    p = as_rational(success, "success")
    if not Fraction(1, k) < p < 1:
        raise ParameterError(
            "success",
            success,
            expected=f"above 1/{k}, which guessing reaches, and below 1",
            remedy="pass the success probability that the mechanism promises",
        )
    return t, k, p


def _check_accuracy(accuracy: Rational) -> None:
    if as_positive(accuracy, "accuracy") >= 1:
        raise ParameterError(
            "accuracy",
            accuracy,
            expected="below 1: closed balls of radius 1 around two corners can touch",
            remedy="pass a smaller accuracy",
        )


def _delta(log_delta: float | None) -> arb:
    return arb(0) if log_delta is None else ball(as_log_delta(log_delta)).exp()
