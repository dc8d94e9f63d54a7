"""Intervals of released statistics, from the noisy integers and their public law (theory I).

All of it is post-processing. A sample interval covers the statistic of the clipped values of the
rows that count, with at least the level; a population interval that of whom rows (or units) were
drawn from independently. Shares of a = 1 - level pay for what may go wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.exact.noise_tails import NoisySums
from zerodelta.privacy.statistics import STATISTICS, as_floats, floats_of, values_of
from zerodelta.value import value

# -- Moment boxes ---------------------------------------------------------------------------------
# Where deviations, covariances and correlations lie, given where means of y, z, yz and y² lie.
#
# Values are scaled so that their bounds are -1 and 1. Boxes only: whatever holds for all means of
# a box holds for the true ones, with the probability that all of these are inside.

Ends: TypeAlias = tuple[Floats, Floats]

PAIR_SHARES: Mapping[int, tuple[Fraction, ...]] = {
    3: tuple(Fraction(part, 10) for part in (1, 1, 8)),
    5: tuple(Fraction(part, 10) for part in (1, 1, 4, 2, 2)),
}
"""By the number of means, how much of the error probability each one has: most for yz, because the
means of y and z, for values around the middle of their bounds, matter little."""

_ROUNDED = 2.0**-48
"""More than the float arithmetic of numbers up to 1 is off."""


_LEAST = 1e-100
"""What a deviation counts as that may be 0."""


def covariance_ends(means: Sequence[Ends], resolution: float) -> Ends:
    """Return the ends of the mean of yz less that of y times that of z.

    Values that moved by at most ρ move it by at most 2ρ + ρ²: no deviation exceeds 1.
    """
    first, second, product = means[:3]
    corners = [one * other for one in first for other in second]
    slack = 2 * resolution + resolution**2 + _ROUNDED
    low = product[0] - np.maximum.reduce(corners) - slack
    high = product[1] - np.minimum.reduce(corners) + slack
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def correlation_ends(means: Sequence[Ends], resolution: float) -> Ends:
    """Return the ends of the covariance over both deviations, which may be as good as 0."""
    low, high = covariance_ends(means, resolution)
    pairs = zip(means[:2], means[3:], strict=True)
    ends = [deviation_ends(mean, square) for mean, square in pairs]
    least, most = (
        np.prod([np.clip(each[side] + move, _LEAST, 1.0) for each in ends], axis=0)
        for side, move in ((0, -resolution), (1, resolution))
    )
    low = low / np.where(low < 0, least, most) * (1 + _ROUNDED * np.sign(-low))
    high = high / np.where(high > 0, least, most) * (1 + _ROUNDED * np.sign(high))
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def deviation_ends(mean: Ends, square: Ends) -> Ends:
    """Return the ends of √(the mean of y² less the square of the mean)."""
    sizes = np.abs(mean[0]), np.abs(mean[1])
    nearest = np.where((mean[0] <= 0) & (mean[1] >= 0), 0.0, np.minimum(*sizes))
    low = np.clip(square[0] - np.maximum(*sizes) ** 2 - _ROUNDED, 0, 1)
    high = np.clip(square[1] - nearest**2 + _ROUNDED, 0, 1)
    return np.sqrt(low) * (1 - _ROUNDED), np.sqrt(high) * (1 + _ROUNDED)


Form: TypeAlias = tuple[Fraction, ...]
Pair: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]

_HALVINGS = 52


@value
class Level:
    """What is asked: which level, of the sample or the population, cell by cell or of all cells.

    `unit_rows` is how many rows a unit has at most; with units these are independent, rows not.
    """

    level: Fraction
    population: bool = False
    simultaneous: bool = False
    unit_rows: int | None = None

    def share(self, sums: Sequence[NoisySums], names: int) -> Fraction:
        """Return what may go wrong in one cell.

        Of all cells together: lines whose noise is independent are all right with the product of
        their probabilities; statistics of one line, lines with joint noise, and one that is what
        the others leave add up.
        """
        if not self.simultaneous:
            return 1 - self.level
        lines = max(len(each.integers) + (each.rest is not None) for each in sums)
        apart = all(
            not each.law.noise.joint and not each.joint and each.rest is None for each in sums
        )
        if lines == 1 or not apart or self.population:
            return (1 - self.level) / (lines * names)
        each = -math.expm1(math.log(self.level) / lines)
        return Fraction(each) * (1 - Fraction(1, 1 << 40)) / names


def intervals(sums: Sequence[NoisySums], asked: Level) -> dict[str, Pair]:
    """Return for each statistic its lower and upper ends, one for each line; none for some.

    Rows that several parts count have the interval of the one with the least noise.
    """
    named: dict[str, NoisySums] = {}
    for each in sums:
        for name, (column, statistic) in each.statistics.items():
            if asked.population and not STATISTICS[statistic].of_population:
                continue
            if name not in named or _tighter(each, named[name], column):
                named[name] = each
    if not named:
        return {}
    a = asked.share(list(named.values()), len(named))
    found = {}
    for name, each in named.items():
        column, statistic = each.statistics[name]
        line = LineIntervals(sums=each, asked=asked, a=a)
        found[name] = STATISTICS[statistic].interval(line, column)
    return found


def _tighter(one: NoisySums, other: NoisySums, column: str | None) -> bool:
    usual = Fraction(1, 20)
    mine, theirs = (
        each.law.noise.form_radius(each.forms[column][0][:-1], usual) for each in (one, other)
    )
    return mine < theirs


@value
class LineIntervals:
    """Where true numbers of the lines of one table of sums lie, if `a` may go wrong in each.

    Means, deviations and covariances are those of y, which is -1 and 1 at the bounds.
    """

    sums: NoisySums
    asked: Level
    a: Fraction

    def forms(self, column: str | None) -> Sequence[Form]:
        """Return the forms whose values are Σ1, Σy and so on; None: the number of rows."""
        return self.sums.forms[column]

    def bounds(self, column: str | None) -> tuple[Any, Any]:
        """Return the bounds of a column as floats, one for all lines or for each."""
        lower, upper = self.sums.bounds[str(column)]
        return np.array(as_floats(lower)), np.array(as_floats(upper))

    def place(self, column: str | None) -> tuple[Any, Any, Any, Any]:
        """Return the bounds, their middle and half their width."""
        lower, upper = self.bounds(column)
        return lower, upper, lower / 2 + upper / 2, upper / 2 - lower / 2

    # -- linear statistics --------------------------------------------------------------------

    def integers(self) -> Pair:
        """Return where the integers of all lines are, in units of the law."""
        law, given = self.sums.law, self.sums.integers.reshape(-1).tolist()
        units = law.unit if isinstance(law.unit, tuple) else (law.unit,) * len(given)
        k = law.noise.integer_radius(self.a)
        low = [_down((int(i) - k) * unit) for i, unit in zip(given, units, strict=True)]
        high = [_up((int(i) + k) * unit) for i, unit in zip(given, units, strict=True)]
        return np.array(low), np.array(high)

    def counts(self, form: Form) -> Pair:
        """Return whole numbers: a count is one, at least 0 and at most that of all rows."""
        radius = self.sums.law.noise.form_radius(form[:-1], self.a)
        values = values_of(form, self.sums.integers)
        low = [math.ceil(value - radius) for value in values]
        high = [math.floor(value + radius) for value in values]
        place, rows = self.sums.rest, self.sums.rows
        if place is not None and rows is not None:
            last, far = (
                rows - sum(map(int, values)),
                self.sums.law.noise.rest_radius(len(values), self.a),
            )
            low.insert(place, last - far)
            high.insert(place, last + far)
        most = (1 << 62) if rows is None else rows
        ends = np.clip(np.array([low, high], dtype=object), 0, most)
        return ends[0].astype(np.int64), ends[1].astype(np.int64)

    def total(self, column: str | None) -> Ends:
        """Return where the sum of the values is, not of y; within the bounds of so many values."""
        (lower, upper), forms = self.sums.bounds[str(column)], self.forms(column)
        center, half = (lower + upper) / 2, (upper - lower) / 2
        form = tuple(center * c + half * y for c, y in zip(forms[0], forms[1], strict=True))
        low, high = self.linear(form)
        if not any(forms[0][:-1]):  # the number of values is public
            rows = forms[0][-1]
            return _within(low, high, _down(rows * lower), _up(rows * upper))
        return low, high

    def linear(self, form: Form) -> Ends:
        """Return where the value of a form is."""
        radius = self.sums.law.noise.form_radius(form[:-1], self.a)
        values = values_of(form, self.sums.integers)
        return (
            np.array([_down(value - radius) for value in values]),
            np.array([_up(value + radius) for value in values]),
        )

    # -- ratios -------------------------------------------------------------------------------

    def mean(self, column: str | None) -> Ends:
        """Return where the mean is."""
        (low, high), moved = self._mean(self.forms(column)), float(self.sums.resolution)
        return np.maximum(low - moved, -1), np.minimum(high + moved, 1)

    def deviation(self, column: str | None) -> Ends:
        """Return where the standard deviation is."""
        (low, high), moved = self._deviation(self.forms(column)), float(self.sums.resolution)
        return np.maximum(low - moved, 0), np.minimum(high + moved, 1)

    def covariance(self, column: str | None) -> Ends:
        """Return where the covariance of a pair of columns is."""
        return covariance_ends(self._means_of_pair(self.forms(column)), float(self.sums.resolution))

    def correlation(self, column: str | None) -> Ends:
        """Return where the correlation of a pair of columns is."""
        return correlation_ends(
            self._means_of_pair(self.forms(column)), float(self.sums.resolution)
        )

    def _mean(self, forms: Sequence[Form]) -> Ends:
        """Return where the mean of y is: Fieller's set, and what sampling adds."""
        if not self.asked.population:
            return self._ratio(forms, 1, self.a)
        spread = len(forms) == 3 and self.asked.unit_rows is None
        share = self.a / (_events(forms) + (2 if spread else 0))
        low, high = self._ratio(forms, 1, share)
        rows = self._least_rows(forms[0], share)
        far = self._hoeffding(rows, share, width=2)
        if spread:
            _, deviation = self._sample_deviation(forms, share)
            x = _log_up(3 / share)
            with np.errstate(all="ignore"):
                near = np.sqrt(2 * deviation**2 * x / rows) + 6 * x / rows
            far = np.fmin(far, near)
        return _spread(low, high, far, -1.0, 1.0)

    def _deviation(self, forms: Sequence[Form]) -> Ends:
        """Return where the deviation of y is."""
        if not self.asked.population:
            return self._sample_deviation(forms, self.a)
        share = self.a / (_events(forms) + 2)
        rows = self._least_rows(forms[0], share)
        first = self._ratio(forms, 1, share)
        second = self._ratio(forms, 2, share)
        return deviation_ends(
            _spread(*first, self._hoeffding(rows, share, width=2), -1.0, 1.0),
            _spread(*second, self._hoeffding(rows, share, width=1), 0.0, 1.0),
        )

    def _sample_deviation(self, forms: Sequence[Form], a: Fraction) -> Ends:
        """Return it from the box of the means of y and y², each of which may fail with a/2."""
        return deviation_ends(self._ratio(forms, 1, a / 2), self._ratio(forms, 2, a / 2))

    def _means_of_pair(self, forms: Sequence[Form]) -> list[Ends]:
        """Return where the means of y, z, yz and, for a correlation, of y² and z² are.

        Together they fail with `a`; of a population half of it is for sampling.
        """
        found, parts = [], PAIR_SHARES[len(forms) - 1]
        for place, (form, part) in enumerate(zip(forms[1:], parts, strict=True)):
            least, share = -1.0 if place < 3 else 0.0, self.a * part
            if not self.asked.population:
                found.append(_hull(self.sums, form, forms[0], share, least=least))
                continue
            low, high = _hull(self.sums, form, forms[0], share / 2, least=least)
            rows = self._least_rows(forms[0], self.a / 4)
            far = self._hoeffding(rows, share / 4, width=2 if place < 3 else 1)
            found.append(_spread(low, high, far, least, 1.0))
        return found

    def _least_rows(self, form: Form, a: Fraction) -> Floats:
        """Return so many values there are at least: a one-sided bound of a symmetric law."""
        radius = (
            self.sums.law.noise.form_radius(form[:-1], 2 * a) if any(form[:-1]) else Fraction(0)
        )
        values = values_of(form, self.sums.integers)
        return np.array([float(max(0, math.ceil(value - radius))) for value in values])

    def _hoeffding(self, rows: Floats, a: Fraction, *, width: int) -> Floats:
        """Return how far a mean of independent values may be from what it is expected to be.

        Of units with at most m rows, no more of them than rows count, each sum of deviations has a
        range of m widths: √(N ln(2/a)/2) of that, over n >= N rows.
        """
        m = 1 if self.asked.unit_rows is None else self.asked.unit_rows
        with np.errstate(all="ignore"):
            return np.asarray(m * width * np.sqrt(_log_up(2 / a) / (2 * rows)))

    def _ratio(self, forms: Sequence[Form], power: int, a: Fraction) -> Ends:
        least = -1.0 if power == 1 else 0.0
        return _hull(self.sums, forms[power], forms[0], a, least=least)


def _events(forms: Sequence[Form]) -> int:
    """Return how many things may go wrong: noise, sampling, and the number of values if private."""
    return 3 if any(forms[0][:-1]) else 2


def _hull(sums: NoisySums, top: Form, bottom: Form, a: Fraction, *, least: float) -> Ends:
    """Return the hull of Fieller's set {m : |top - m·bottom| is not surprising}, in [least, 1].

    Noise of top - m·bottom before rounding reaches its quantile q_m with probability a, and
    rounding adds half of the coefficients. q_m is convex in m (quantiles of a symmetric log-concave
    law are a norm of the coefficients), so what is excluded on one side of top/bottom is an
    interval, and halving finds its end. Where the noisy bottom is not positive all of [least, 1].
    """
    over, under = (floats_of(form, sums.integers) for form in (top, bottom))
    if not any(bottom[:-1]):  # the number of values is public
        rows = bottom[-1]
        if rows <= 0:
            return np.full(len(over), least), np.ones(len(over))
        far = float(sums.law.noise.form_radius(top[:-1], a) / rows) * (1 + _ROUNDED)
        middle, slack = over / float(rows), _ROUNDED * np.abs(over / float(rows))
        return _within(middle - far - slack, middle + far + slack, least, 1.0)
    used = [i for i, pair in enumerate(zip(top[:-1], bottom[:-1], strict=True)) if any(pair)]
    unit = max(abs(bottom[i]) for i in used)
    up, down = (np.array([float(form[i] / unit) for i in used]) for form in (top, bottom))
    over, under = over / float(unit), under / float(unit)
    noise = sums.law.noise

    def excluded(m: Floats) -> npt.NDArray[np.bool_]:
        coefficients = up - m[:, None] * down
        rounding = np.abs(coefficients).sum(axis=1) / 2
        gap = np.abs(over - m * under) - _ROUNDED * (np.abs(over) + np.abs(under))
        return noise.exceeded(coefficients, gap - rounding, a)

    known = under > 0
    inner = np.where(known, np.clip(over / np.where(known, under, 1.0), least, 1.0), 0.0)
    ends = []
    for end in (least, 1.0):
        out, inside = np.full(len(over), end), inner.copy()
        cut = known & excluded(out)
        for _ in range(_HALVINGS if cut.any() else 0):
            middle = (out + inside) / 2
            beyond = excluded(middle)
            out, inside = np.where(beyond, middle, out), np.where(beyond, inside, middle)
        ends.append(np.where(cut, out, end))
    return ends[0], ends[1]


def _spread(low: Floats, high: Floats, far: Floats, least: float, most: float) -> Ends:
    reach = np.where(np.isnan(far), np.inf, far) * (1 + _ROUNDED)
    return np.maximum(low - reach, least), np.minimum(high + reach, most)


def _within(low: Floats, high: Floats, least: Any, most: Any) -> Ends:
    """Return the interval intersected with where the statistic can be; never empty."""
    return np.clip(low, least, most), np.clip(high, least, most)


def _log_up(x: Fraction) -> float:
    return (math.log(x.numerator) - math.log(x.denominator)) * (1 + 2.0**-40) + 2.0**-40


def _down(value: Fraction) -> float:
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def _up(value: Fraction) -> float:
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
