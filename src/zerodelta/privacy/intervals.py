"""Compute intervals of released statistics, from noisy integers and their public law (theory I).

All of it is post-processing. With at least the stated level, a sample interval covers the statistic
of the clipped values of the rows that count, and a population interval that of the population from
which rows (or units) were drawn independently. The error probability a = 1 - level is divided
between the events that may make an interval miss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.privacy.statistics import STATISTICS, Measurement, as_floats, floats_of, values_of
from zerodelta.value import value

# -- Ends of deviations, covariances and correlations, from ends of the means of y, z, yz and y² --
# Values are scaled so that their bounds are -1 and 1. A statement that holds for all means within
# the ends holds for the true means, with the probability that all of these are within.

Ends: TypeAlias = tuple[Floats, Floats]

PAIR_SHARES: Mapping[int, tuple[Fraction, ...]] = {
    3: tuple(Fraction(part, 10) for part in (1, 1, 8)),
    5: tuple(Fraction(part, 10) for part in (1, 1, 4, 2, 2)),
}
"""By the number of means, the share of the error probability for each. yz has the largest share,
because the means of y and z matter little for values around the middle of their bounds."""

_ROUNDED = 2.0**-48
"""An upper bound for rounding errors in float arithmetic of numbers up to 1."""


_LEAST = 1e-100
"""The deviation that replaces 0 in a denominator."""


def covariance_ends(means: Sequence[Ends], resolution: float) -> Ends:
    """Return the ends of the covariance: the mean of yz less the mean of y times that of z.

    Quantizing values by at most ρ changes it by at most 2ρ + ρ², because no deviation exceeds 1.
    """
    first, second, product = means[:3]
    corners = [first_end * second_end for first_end in first for second_end in second]
    slack = 2 * resolution + resolution**2 + _ROUNDED
    low = product[0] - np.maximum.reduce(corners) - slack
    high = product[1] - np.minimum.reduce(corners) + slack
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def correlation_ends(means: Sequence[Ends], resolution: float) -> Ends:
    """Return the ends of the covariance divided by both deviations, which may be nearly 0."""
    low, high = covariance_ends(means, resolution)
    pairs = zip(means[:2], means[3:], strict=True)
    deviations = [deviation_ends(mean, square) for mean, square in pairs]
    smallest, largest = (
        np.prod([np.clip(ends[side] + change, _LEAST, 1.0) for ends in deviations], axis=0)
        for side, change in ((0, -resolution), (1, resolution))
    )
    low = low / np.where(low < 0, smallest, largest) * (1 + _ROUNDED * np.sign(-low))
    high = high / np.where(high > 0, smallest, largest) * (1 + _ROUNDED * np.sign(high))
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def deviation_ends(mean: Ends, square: Ends) -> Ends:
    """Return the ends of the deviation: √(the mean of y² less the square of the mean)."""
    sizes = np.abs(mean[0]), np.abs(mean[1])
    nearest = np.where((mean[0] <= 0) & (mean[1] >= 0), 0.0, np.minimum(*sizes))  # to 0
    low = np.clip(square[0] - np.maximum(*sizes) ** 2 - _ROUNDED, 0, 1)
    high = np.clip(square[1] - nearest**2 + _ROUNDED, 0, 1)
    return np.sqrt(low) * (1 - _ROUNDED), np.sqrt(high) * (1 + _ROUNDED)


Form: TypeAlias = tuple[Fraction, ...]
Pair: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]

_HALVINGS = 52
"""Bisection steps for an end: the number of bits of a float's mantissa."""


@value
class Level:
    """The level of intervals, of the sample or the population, for each cell or for all together.

    A unit has at most `unit_rows` rows; with units the units are independent, and rows are not.
    """

    level: Fraction
    population: bool = False
    simultaneous: bool = False
    unit_rows: int | None = None

    def share(self, sums: Sequence[Measurement], names: int) -> Fraction:
        """Return the error probability for one of `names` statistics of one line.

        For simultaneous intervals: lines with independent noise all hold with the product of their
        probabilities. Error probabilities add up (union bound) for statistics of one line, for
        lines with joint noise, and for a line that is implied by the others.
        """
        if not self.simultaneous:
            return 1 - self.level
        lines = max(len(part.integers) + (part.rest is not None) for part in sums)
        independent = all(
            not part.law.noise.joint and not part.joint and part.rest is None for part in sums
        )
        if lines == 1 or not independent or self.population:
            return (1 - self.level) / (lines * names)
        of_line = -math.expm1(math.log(self.level) / lines)
        return Fraction(of_line) * (1 - Fraction(1, 1 << 40)) / names  # rounded down


def intervals(sums: Sequence[Measurement], level: Level) -> dict[str, Pair]:
    """Return for each statistic that has an interval its lower and upper ends, line by line.

    For rows that several parts count it is the interval of the part with the least noise.
    """
    parts: dict[str, Measurement] = {}
    for part in sums:
        for name, (column, statistic) in part.statistics.items():
            if level.population and not STATISTICS[statistic].of_population:
                continue
            if name not in parts or _has_less_noise(part, parts[name], column):
                parts[name] = part
    if not parts:
        return {}
    a = level.share(list(parts.values()), len(parts))
    ends = {}
    for name, part in parts.items():
        column, statistic = part.statistics[name]
        forms = part.forms.get(column, ())  # not computed twice, as they may be many
        line = LineIntervals(sums=part, column=column, forms=forms, level=level, a=a)
        ends[name] = STATISTICS[statistic].interval(line)
    return ends


def _has_less_noise(first: Measurement, second: Measurement, column: str | None) -> bool:
    """Tell whether the first form of a column has less noise in the first part."""
    radii = [
        part.law.noise.form_radius(part.forms[column][0][:-1], Fraction(1, 20))
        for part in (first, second)
    ]
    return radii[0] < radii[1]


@value
class LineIntervals:
    """Intervals of true numbers of one column for each line, at error probability `a`.

    Means, deviations and covariances are those of y, which is -1 and 1 at the bounds. All methods
    return the lower and the upper ends of all lines.
    """

    sums: Measurement
    column: str | None
    forms: Sequence[Form]
    """Those of Σ1, Σy and so on; without a column the form of the number of rows."""
    level: Level
    a: Fraction

    @property
    def place(self) -> tuple[Any, Any, Any, Any]:
        """The bounds, their middle and half their width: for all lines, or one for each."""
        lower, upper = map(np.array, map(as_floats, self.sums.bounds[str(self.column)]))
        return lower, upper, lower / 2 + upper / 2, upper / 2 - lower / 2

    # -- linear statistics --------------------------------------------------------------------

    def integers(self) -> Pair:
        """Return the intervals of the integers themselves, in units of the law."""
        law, noisy = self.sums.law, self.sums.integers.reshape(-1).tolist()
        units = law.unit if isinstance(law.unit, tuple) else (law.unit,) * len(noisy)
        k = law.noise.integer_radius(self.a)
        low = [_down((int(i) - k) * unit) for i, unit in zip(noisy, units, strict=True)]
        high = [_up((int(i) + k) * unit) for i, unit in zip(noisy, units, strict=True)]
        return np.array(low), np.array(high)

    def counts(self) -> Pair:
        """Return the intervals of counts: integers from 0 to the number of all rows."""
        form = self.forms[0]
        radius = self.sums.law.noise.form_radius(form[:-1], self.a)
        values = values_of(form, self.sums.integers)
        low = [math.ceil(value - radius) for value in values]
        high = [math.floor(value + radius) for value in values]
        place, rows = self.sums.rest, self.sums.rows
        if place is not None and rows is not None:  # the implied count: n less all others
            implied = rows - sum(map(int, values))
            implied_radius = self.sums.law.noise.rest_radius(len(values), self.a)
            low.insert(place, implied - implied_radius)
            high.insert(place, implied + implied_radius)
        largest = (1 << 62) if rows is None else rows
        ends = np.clip(np.array([low, high], dtype=object), 0, largest)
        return ends[0].astype(np.int64), ends[1].astype(np.int64)

    def total(self) -> Ends:
        """Return the intervals of the sum of the values, not of y.

        If the number of values is public, they are clipped to the bounds of that many values.
        """
        (lower, upper), forms = self.sums.bounds[str(self.column)], self.forms
        center, half = (lower + upper) / 2, (upper - lower) / 2
        form = tuple(center * c + half * y for c, y in zip(forms[0], forms[1], strict=True))
        low, high = self.linear(form)
        if not any(forms[0][:-1]):  # the number of values is public
            rows = forms[0][-1]
            return _within(low, high, _down(rows * lower), _up(rows * upper))
        return low, high

    def linear(self, form: Form) -> Ends:
        """Return the intervals of the value of a linear form."""
        radius = self.sums.law.noise.form_radius(form[:-1], self.a)
        values = values_of(form, self.sums.integers)
        return (
            np.array([_down(value - radius) for value in values]),
            np.array([_up(value + radius) for value in values]),
        )

    # -- ratios -------------------------------------------------------------------------------

    def mean(self) -> Ends:
        """Return the intervals of the mean."""
        (low, high), change = self._mean(), float(self.sums.resolution)
        return np.maximum(low - change, -1), np.minimum(high + change, 1)

    def deviation(self) -> Ends:
        """Return the intervals of the standard deviation."""
        (low, high), change = self._deviation(), float(self.sums.resolution)
        return np.maximum(low - change, 0), np.minimum(high + change, 1)

    def covariance(self) -> Ends:
        """Return the intervals of the covariance of a pair of columns."""
        return covariance_ends(self._means_of_pair(), float(self.sums.resolution))

    def correlation(self) -> Ends:
        """Return the intervals of the correlation of a pair of columns."""
        return correlation_ends(self._means_of_pair(), float(self.sums.resolution))

    def _mean(self) -> Ends:
        """Return the intervals of the mean of y: Fieller's set, widened for sampling.

        For sampling it takes the smaller of Hoeffding's bound and, if the deviation is known from
        Σy², the empirical Bernstein bound. The bounds and the ratio share the error probability.
        """
        if not self.level.population:
            return self._ratio(1, self.a)
        spread = len(self.forms) == 3 and self.level.unit_rows is None
        share = self.a / (self._events + (2 if spread else 0))
        low, high = self._ratio(1, share)
        rows = self._smallest_rows(share)
        radius = self._hoeffding(rows, share, width=2)
        if spread:
            _, deviation = self._sample_deviation(share)
            x = _log_up(3 / share)
            with np.errstate(all="ignore"):
                bernstein = np.sqrt(2 * deviation**2 * x / rows) + 6 * x / rows
            radius = np.fmin(radius, bernstein)
        return _widened(low, high, radius, -1.0, 1.0)

    def _deviation(self) -> Ends:
        """Return the intervals of the standard deviation of y, the values scaled to [-1, 1]."""
        if not self.level.population:
            return self._sample_deviation(self.a)
        share = self.a / (self._events + 2)
        rows = self._smallest_rows(share)
        mean = self._ratio(1, share)
        square = self._ratio(2, share)
        return deviation_ends(
            _widened(*mean, self._hoeffding(rows, share, width=2), -1.0, 1.0),
            _widened(*square, self._hoeffding(rows, share, width=1), 0.0, 1.0),
        )

    def _sample_deviation(self, a: Fraction) -> Ends:
        """Return the intervals from those of the means of y and y², at a/2 each."""
        return deviation_ends(self._ratio(1, a / 2), self._ratio(2, a / 2))

    def _means_of_pair(self) -> list[Ends]:
        """Return the intervals of the means of y, z, yz and, for a correlation, of y² and z².

        All hold together with error probability `a`; for a population half of it is for sampling.
        """
        means, parts = [], PAIR_SHARES[len(self.forms) - 1]
        for place, (form, part) in enumerate(zip(self.forms[1:], parts, strict=True)):
            lower, share = -1.0 if place < 3 else 0.0, self.a * part  # squares are not negative
            if not self.level.population:
                means.append(_hull(self.sums, form, self.forms[0], share, lower=lower))
                continue
            low, high = _hull(self.sums, form, self.forms[0], share / 2, lower=lower)
            rows = self._smallest_rows(self.a / 4)
            radius = self._hoeffding(rows, share / 4, width=2 if place < 3 else 1)
            means.append(_widened(low, high, radius, lower, 1.0))
        return means

    @property
    def _events(self) -> int:
        """The number of bounds that may fail: noise, sampling, and the number of values."""
        return 3 if any(self.forms[0][:-1]) else 2

    def _smallest_rows(self, a: Fraction) -> Floats:
        """Return a lower bound for the number of values: one-sided, hence the radius at 2a."""
        form = self.forms[0]
        radius = self.sums.law.noise.form_radius(form[:-1], 2 * a)
        values = values_of(form, self.sums.integers)
        return np.array([float(max(0, math.ceil(value - radius))) for value in values])

    def _hoeffding(self, rows: Floats, a: Fraction, *, width: int) -> Floats:
        """Return Hoeffding's bound on the distance of a mean from its expectation.

        With units of at most m rows, the sum over a unit has a range of m widths, and there are at
        most as many units as rows: m·width·√(ln(2/a)/(2n)).
        """
        m = 1 if self.level.unit_rows is None else self.level.unit_rows
        with np.errstate(all="ignore"):
            return np.asarray(m * width * np.sqrt(_log_up(2 / a) / (2 * rows)))

    def _ratio(self, power: int, a: Fraction) -> Ends:
        """Return the intervals of the sample mean of y or y²."""
        lower = -1.0 if power == 1 else 0.0
        return _hull(self.sums, self.forms[power], self.forms[0], a, lower=lower)


def _hull(sums: Measurement, top: Form, bottom: Form, a: Fraction, *, lower: float) -> Ends:
    """Return the hull, in [lower, 1], of Fieller's set for the quotient of two forms.

    The set has all m for which |top - m·bottom| is at most q_m plus rounding: the noise of
    top - m·bottom before rounding exceeds its quantile q_m with probability a, and rounding adds
    at most half of the sum of the coefficients. q_m is convex in m (quantiles of a symmetric
    log-concave law are a norm of the coefficients), so the excluded m on one side of top/bottom are
    an interval, and bisection finds its end. If the noisy bottom is not positive the hull is
    [lower, 1].
    """
    over, under = (floats_of(form, sums.integers) for form in (top, bottom))
    if not any(bottom[:-1]):  # the number of values is public
        rows = bottom[-1]
        if rows <= 0:
            return np.full(len(over), lower), np.ones(len(over))
        radius = float(sums.law.noise.form_radius(top[:-1], a) / rows) * (1 + _ROUNDED)
        middle, slack = over / float(rows), _ROUNDED * np.abs(over / float(rows))
        return _within(middle - radius - slack, middle + radius + slack, lower, 1.0)
    used = [i for i, pair in enumerate(zip(top[:-1], bottom[:-1], strict=True)) if any(pair)]
    unit = max(abs(bottom[i]) for i in used)
    up, down = (np.array([float(form[i] / unit) for i in used]) for form in (top, bottom))
    over, under = over / float(unit), under / float(unit)
    noise = sums.law.noise

    def excluded(m: Floats) -> npt.NDArray[np.bool_]:
        """Tell for each entry whether the quotient m is outside of Fieller's set."""
        coefficients = up - m[:, None] * down
        rounding = np.abs(coefficients).sum(axis=1) / 2
        gap = np.abs(over - m * under) - _ROUNDED * (np.abs(over) + np.abs(under))
        return noise.exceeded(coefficients, gap - rounding, a)

    positive = under > 0
    inner = np.where(positive, np.clip(over / np.where(positive, under, 1.0), lower, 1.0), 0.0)
    ends = []
    for end in (lower, 1.0):
        outside, inside = np.full(len(over), end), inner.copy()
        cut = positive & excluded(outside)
        for _ in range(_HALVINGS if cut.any() else 0):
            middle = (outside + inside) / 2
            beyond = excluded(middle)
            outside, inside = np.where(beyond, middle, outside), np.where(beyond, inside, middle)
        ends.append(np.where(cut, outside, end))
    return ends[0], ends[1]


def _widened(low: Floats, high: Floats, radius: Floats, lower: float, upper: float) -> Ends:
    """Return intervals widened by a radius, within [lower, upper]; NaN widens without limit."""
    width = np.where(np.isnan(radius), np.inf, radius) * (1 + _ROUNDED)
    return np.maximum(low - width, lower), np.minimum(high + width, upper)


def _within(low: Floats, high: Floats, lower: Any, upper: Any) -> Ends:
    """Return the intervals clipped to the range of the statistic; they are never empty."""
    return np.clip(low, lower, upper), np.clip(high, lower, upper)


def _log_up(x: Fraction) -> float:
    """Return an upper bound for ln x, x > 1."""
    return (math.log(x.numerator) - math.log(x.denominator)) * (1 + 2.0**-40) + 2.0**-40


def _down(value: Fraction) -> float:
    """Return the largest float that is at most `value`."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def _up(value: Fraction) -> float:
    """Return the smallest float that is at least `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
