"""State theorems of Gaussian noise on random batches (A6, Lemma WOR), and of units of rows (V).

A batch of fixed size b out of n rows, without replacement, neighbors by replacement. At an integer
order a the step has R(a) = ln(1 + 2S)/(a-1), S = Σ_k C(a,k) (1-γ)^(a-k) γ^k (e^(k(k-1)μ²/2) - 1)
over k ≥ 2, and never more than the a μ²/2 of the step without sampling. Where every row is in the
batch with probability γ by itself (Poisson sampling) and neighbors are by adding or removing a row,
the 2 is a 1 (theory, Poisson sampling). Neither holds for the other's sampling or neighbors.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import CertificateError, require
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import RDP
from zerodelta.privacy.composition import Composed
from zerodelta.privacy.parameters import Neighbors, as_at_least_zero
from zerodelta.privacy.renyi import Curve, SumCurve, saturated
from zerodelta.privacy.steps import Count, NotNegative, Positive, Rows
from zerodelta.privacy.theorems.noise import PermuteAndFlipTheorem, RoundedGaussianTheorem
from zerodelta.privacy.theorems.theorem import BaseTheorem, Theorem
from zerodelta.value import value

_LARGEST_ORDER = 1_000_000
_TINY = Fraction(1, 1 << 400)
_DEPTH = 60.0
"""Terms this many nats below the sum (and below its 1/a) are bounded, not added."""


def subsampled_gaussian(
    *,
    rows: int,
    batch: int,
    sensitivity_squared: Rational,
    variance: Rational,
    steps: int = 1,
) -> RDP:
    """Return the claim of `steps` Gaussian steps, each on a fresh random batch of the rows.

    Releases: at each step, the sum of a bounded function over `batch` of the `rows` rows, drawn
    without replacement, plus N(0, variance) on every coordinate; steps may be adaptive.
    Neighbors: replace-one (the number of rows is public).
    Guarantee: Rényi differential privacy at integer orders, Lemma WOR; orders are evaluated when
    they are asked for, up to 10^6. `sensitivity_squared` bounds the squared l2 change of the sum
    when one row of the *batch* is replaced: (2L)² for rows of norm at most L.
    Public: all parameters.

    >>> claim = subsampled_gaussian(
    ...     rows=1000, batch=10, sensitivity_squared=4, variance=100, steps=100
    ... )
    >>> claim.log_delta(1)
    -212.02727981828488
    """
    curve = SubsampledGaussianCurve(
        rows=as_count(rows, "rows", minimum=1),
        batch=as_count(batch, "batch", minimum=1),
        mu_squared=as_at_least_zero(sensitivity_squared, "sensitivity_squared")
        / as_positive(variance, "variance"),
    )
    require(
        curve.batch <= curve.rows, "batch", batch, f"at most rows = {rows}", "draw a smaller batch"
    )
    return RDP(SumCurve((curve,), as_count(steps, "steps", minimum=1)))


@value
class SamplingWithoutReplacement(BaseTheorem):
    """Gaussian steps on batches drawn without replacement."""

    label = "sampling-without-replacement"
    every_row = True
    section = "WOR"
    sentence = (
        "{steps} Gaussian steps of variance {variance} on batches of {batch} of {rows} rows drawn "
        "without replacement, of squared l2 sensitivity {sensitivity_squared}: Rényi DP."
    )
    replace_only = True
    costly = True

    rows: Rows
    batch: Rows
    sensitivity_squared: NotNegative
    variance: Positive
    steps: Count

    def _claim(self, neighbors: Neighbors) -> RDP:
        return subsampled_gaussian(**self.values())


class _SampledCurve(Curve):
    """R(a) of one Gaussian step on a random batch, for integer orders a."""

    __slots__ = ()

    copies: ClassVar[int]
    """The factor of S in R(a): 2 by replacement, 1 by adding or removing a row."""
    mu_squared: Fraction

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """The probability γ that a row is in the batch."""

    @property
    def integer(self) -> bool:  # type: ignore[override]
        """The lemmas are for integer orders."""
        return True

    @property
    def largest(self) -> float:  # type: ignore[override]
        """The largest order for which the sum is evaluated; beyond it would take long."""
        return _LARGEST_ORDER

    def value(self, order: Fraction) -> Fraction:
        """Return a bound on R(order): at the next integer order, or without sampling if less."""
        integer_order = max(math.ceil(order), 2)
        unsampled = order * self.mu_squared / 2
        if not self._amplified or integer_order > _LARGEST_ORDER:
            return unsampled
        return min(unsampled, Fraction(_certified(self, integer_order)))

    def estimate(self, order: float) -> float:
        """Return R(order) in floats."""
        unsampled = order * saturated(self.mu_squared) / 2
        return min(unsampled, _estimated(self, round(order))) if self._amplified else unsampled

    @property
    def _amplified(self) -> bool:
        """Whether amplification by sampling is evaluated; not if floats could overflow."""
        return _TINY < self.rate < 1 and _TINY < self.mu_squared < 1 / _TINY


@value
class SubsampledGaussianCurve(_SampledCurve):
    """A batch without replacement, neighbors by replacement: Lemma WOR."""

    copies = 2

    rows: int
    batch: int
    mu_squared: Fraction

    @property
    def rate(self) -> Fraction:
        """The share of the rows that is in a batch."""
        return Fraction(self.batch, self.rows)


@value
class PoissonGaussianCurve(_SampledCurve):
    """Each row is in the batch with a fixed probability, neighbors by adding or removing a row.

    >>> curve = PoissonGaussianCurve(probability=Fraction(1, 100), mu_squared=Fraction(1, 4))
    >>> round(float(curve.value(Fraction(8))), 9)
    0.000115756
    """

    copies = 1

    probability: Fraction
    mu_squared: Fraction

    @property
    def rate(self) -> Fraction:
        """The probability with which a row is in the batch."""
        return self.probability


@lru_cache(maxsize=1 << 16)
def _estimated(curve: _SampledCurve, order: int) -> float:
    return _Terms.of(curve, order).estimate(curve.copies) / (order - 1)


@lru_cache(maxsize=1 << 12)
def _certified(curve: _SampledCurve, order: int) -> float:
    terms = _Terms.of(curve, order)
    return upper(lambda: (curve.copies * terms.total()).log1p() / (order - 1))


@value
class _Terms:
    """The terms k = 2 … a of S at one order, each at most e^f(k).

    f(k) = ln C(a,k) + (a-k) ln(1-γ) + k ln γ + k(k-1)μ²/2 is concave up to `convex[0]`, convex
    within `convex` and concave from there on, because its slope f(k+1) - f(k) has the derivative
    μ² - (a+1)/((a-k)(k+1)). So it has at most two peaks: only `windows` around them are added
    up, and in between f is at most its larger value at the two ends.
    """

    order: int
    rate: Fraction
    mu_squared: Fraction
    convex: tuple[int, int]
    windows: tuple[tuple[int, int], ...]

    @staticmethod
    def of(curve: _SampledCurve, order: int) -> _Terms:
        """Return the terms of one order, with windows found in floats."""
        rate = curve.rate
        convex = _convex_part(order, curve.mu_squared)
        log = _FloatLog(order, rate, curve.mu_squared)
        windows = _find_windows(log, convex)
        return _Terms(
            order=order,
            rate=rate,
            mu_squared=curve.mu_squared,
            convex=convex,
            windows=windows,
        )

    def estimate(self, copies: int) -> float:
        """Return ln(1 + 2S), or ln(1 + S), in floats."""
        log = _FloatLog(self.order, self.rate, self.mu_squared)
        logs = np.concatenate([log.terms(first, last) for first, last in self.windows])
        top = float(logs.max())
        log_copies = math.log(copies) + top + math.log(np.exp(logs - top).sum())
        return float(np.logaddexp(0.0, log_copies))

    def total(self) -> arb:
        """Return a ball whose upper end is at least S; nearly tight."""
        total, next_ = arb(0), 2
        for first, last in self.windows:
            total += self._remainder(next_, first - 1) + self._added(first, last)
            next_ = last + 1
        return total + self._remainder(next_, self.order)

    def _added(self, first: int, last: int) -> arb:
        """Return the sum of the terms first … last, each from the one before."""
        odds, growth = ball(self.rate / (1 - self.rate)), ball(self.mu_squared).exp()
        chance = self._log_chance(first).exp()
        spread = ball(self.mu_squared * first * (first - 1) / 2).exp()
        power = ball(self.mu_squared * first).exp()
        total = arb(0)
        for k in range(first, last + 1):
            total += chance * (spread - 1)
            chance = chance * odds * (self.order - k) / (k + 1)
            spread = spread * power
            power = power * growth
        return total

    def _remainder(self, first: int, last: int) -> arb:
        """Return an upper bound on the sum of the terms first … last, from the shape of f."""
        low, high = self.convex
        total = arb(0)
        for start, end, bent in ((2, low - 1, False), (low, high, True), (high + 1, last, False)):
            start, end = max(start, first), min(end, last)
            if start <= end:
                total += (end - start + 1) * self._largest(start, end, bent).exp()
        return total

    def _largest(self, first: int, last: int, convex: bool) -> arb:
        """Return an upper bound on f over first … last: at an end if a slope shows it, else inf."""
        if convex or last - first < 2:
            return self._log_bound(first).max(self._log_bound(last))
        if self._slope(first) <= 0:
            return self._log_bound(first)
        if self._slope(last - 1) >= 0:
            return self._log_bound(last)
        return arb.pos_inf()

    def _log_chance(self, k: int) -> arb:
        """Return ln of the binomial probability of k."""
        a = self.order
        choose = ball(a + 1).lgamma() - ball(k + 1).lgamma() - ball(a - k + 1).lgamma()
        return choose + (a - k) * ball(-self.rate).log1p() + k * ball(self.rate).log()

    def _log_bound(self, k: int) -> arb:
        return self._log_chance(k) + ball(self.mu_squared * k * (k - 1) / 2)

    def _slope(self, k: int) -> arb:
        """Return f(k+1) - f(k)."""
        odds = self.rate / (1 - self.rate)
        return ball(odds * (self.order - k) / (k + 1)).log() + ball(self.mu_squared * k)


def _convex_part(order: int, mu_squared: Fraction) -> tuple[int, int]:
    """Return the first and last integer k with μ²(a-k)(k+1) ≥ a+1; the middle twice without any.

    The left side is symmetric about (a-1)/2, where it is largest.
    """

    def bent(k: int) -> bool:
        return mu_squared * (order - k) * (k + 1) >= order + 1

    middle = (order - 1) // 2
    if not bent(middle):
        return middle, middle
    first = bisect_left(range(middle), True, key=bent)
    return first, order - 1 - first


class _FloatLog:
    """f and the logarithm of a term, in floats."""

    def __init__(self, order: int, rate: Fraction, mu_squared: Fraction) -> None:
        self.order = order
        self.log_rate, self.log_rest = math.log(rate), math.log1p(-rate)
        self.half = float(mu_squared) / 2

    def bound(self, k: int) -> float:
        """Return f(k)."""
        a = self.order
        choose = math.lgamma(a + 1) - math.lgamma(k + 1) - math.lgamma(a - k + 1)
        return choose + (a - k) * self.log_rest + k * self.log_rate + k * (k - 1) * self.half

    def term(self, k: int) -> float:
        """Return the logarithm of term k."""
        return float(self.terms(k, k)[0])

    def terms(self, first: int, last: int) -> npt.NDArray[np.float64]:
        """Return the logarithms of the terms first … last."""
        k = np.arange(first, last + 1.0)
        odds = self.log_rate - self.log_rest
        slopes = np.log((self.order - k[:-1]) / (k[:-1] + 1)) + odds + 2 * self.half * k[:-1]
        bounds = self.bound(first) + np.concatenate([[0.0], np.cumsum(slopes)])
        logs: npt.NDArray[np.float64] = bounds + np.log(-np.expm1(-k * (k - 1) * self.half))
        return logs

    def slope(self, k: int) -> float:
        """Return f(k+1) - f(k)."""
        odds = self.log_rate - self.log_rest
        return math.log((self.order - k) / (k + 1)) + odds + 2 * k * self.half


def _find_windows(log: _FloatLog, convex: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges around the peaks of f whose terms are added up, by bisection."""
    a = log.order
    low, high = (min(max(k, 2), a) for k in convex)
    first = _first(range(2, low), lambda k: log.slope(k) <= 0)
    valley = _first(range(low, high), lambda k: log.slope(k) >= 0)
    second = _first(range(high, a), lambda k: log.slope(k) <= 0)
    floor = max(log.term(first), log.term(second)) - _DEPTH - math.log(a)
    windows = []
    for peak, start, end in ((first, 2, valley), (second, valley, a)):
        # a negligible peak is a window of one term, so that no gap between windows has a peak
        left = _first(range(start, peak), lambda k: log.bound(k) >= floor)
        right = _first(range(peak, end), lambda k: log.bound(k) < floor)
        windows.append((left, right))
    (left, right), (next_left, next_right) = windows
    return ((left, next_right),) if right + 1 >= next_left else tuple(windows)


def _first(stretch: range, holds: Callable[[int], bool]) -> int:
    """Return the first k of a range from which on the condition holds, else the range's end."""
    return stretch.start + bisect_left(stretch, True, key=holds)


# -- Units of several rows: group privacy, or mechanisms that treat a unit as one row (theory V) --


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitTheorem(Theorem):
    """The cost of all rows of a unit: `times` the cost that is proven for one row.

    As the last step of a part it multiplies the part's ε. Before a channel it multiplies the pure ε
    and the μ of the earlier steps, and their ρ by the square.
    """

    last: ClassVar[bool] = True
    """Whether it may be the last step."""
    misplaced: ClassVar[str]
    """The error message if it stands in another place."""

    max_rows: Count

    @property
    def times(self) -> int:
        """The factor from the cost of one row to that of a unit."""
        return self.max_rows

    def of_row(self, epsilon: Fraction) -> Fraction:
        """Return the ε for one row that gives this ε for a unit."""
        return epsilon / self.times

    def of_unit(self, row: Composed) -> Composed:
        """Return the claim for a unit from the claim for one row."""
        return row.of_group(self.times)

    def check_part(self, before: Sequence[Theorem]) -> None:
        """Refuse earlier steps of a part to which it does not apply as the last step."""

    def check_bases(self, bases: Sequence[BaseTheorem]) -> None:
        """Refuse base steps to which it does not apply before a channel."""


@value
class Units(UnitTheorem):
    """At most `max_rows` rows of a unit are used, and an absent row contributes nothing.

    So a unit is a group of `max_rows` rows, and group privacy multiplies the cost of one.
    """

    label = "units"
    section = "V"
    sentence = (
        "at most {max_rows} rows of one unit were kept, by a rule that looks at its own rows only; "
        "what the steps before prove for one row holds for all of them together at {max_rows} "
        "times the ε (or μ; the square of that for ρ)."
    )
    misplaced = (
        "theorem 'units' is about all steps before it: only the last step, or the one before a "
        "channel, is."
    )


@value
class ClippedUnits(UnitTheorem):
    """The rows of a unit count like at most `weight` rows, because their sum is clipped.

    It stands before a channel, after steps that are sums with Gaussian noise for one row's bound.
    """

    label = "clipped-units"
    section = "V2"
    sentence = (
        "at most {max_rows} rows of one unit were kept, by a rule that looks at its own rows only, "
        "and what they add up to was clipped to {weight} times the l2 norm of one row; so the sums "
        "have {weight} times the sensitivity (μ) for a unit that they have for one row."
    )
    last = False
    misplaced = (
        "theorem 'clipped-units' is about all steps before it: only the one before a channel, is."
    )

    weight: Count

    @property
    def times(self) -> int:
        """The weight, and never more than all rows."""
        return min(self.weight, self.max_rows)

    def check_bases(self, bases: Sequence[BaseTheorem]) -> None:
        """Refuse all but sums with Gaussian noise."""
        if not all(type(base) is RoundedGaussianTheorem for base in bases):
            raise CertificateError(
                "theorem 'clipped-units' is about sums with Gaussian noise: another step goes "
                "before it."
            )


@value
class UnitVotes(UnitTheorem):
    """All rows of a unit are dealt to one block, so a unit moves one vote, as one row does.

    It is the last step, after permute-and-flip on votes.
    """

    label = "unit-votes"
    section = "V3"
    sentence = (
        "at most {max_rows} rows of one unit were kept, by a rule that looks at its own rows only, "
        "and all of them are in the one block that the unit drew; so a unit moves one vote, and "
        "what the step before proves for one row holds for all of them together."
    )
    asserted = True
    misplaced = "theorem 'unit-votes' is about permute-and-flip before it, and the last step."

    @property
    def times(self) -> int:
        """The factor 1: a unit changes one vote."""
        return 1

    def check_part(self, before: Sequence[Theorem]) -> None:
        """Refuse votes that are not counted by permute-and-flip: one of them moves by one."""
        flips = [theorem for theorem in before if isinstance(theorem, PermuteAndFlipTheorem)]
        alone = len(flips) == len(before) == 1
        if not (alone and flips[0].sensitivity >= 1 and not flips[0].monotone):
            raise CertificateError(
                "theorem 'unit-votes' is about permute-and-flip on votes, which move by 1 up or "
                "down: another step goes before it."
            )

    def check_bases(self, bases: Sequence[BaseTheorem]) -> None:
        """Refuse a channel after it."""
        raise CertificateError(self.misplaced)
