"""Statistics of columns: what each one sums, and what follows from noisy sums (theory P, G2, I).

A value of a column, or what a statistic sums instead of it, is center + half·y, with y in [-1, 1]
between public bounds. Of each line, a group or all rows, Σ1, Σy and Σy² are measured with noise, as
far as a statistic needs them. Its value, its error, the forecast of that, what errors are relative
to, and its interval are methods of one object here. A new statistic is one more class: tables,
advice, saved files and intervals find it by its name in `STATISTICS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.exact.noise_tails import NoisySums
from zerodelta.exact.rational import inner_ends
from zerodelta.exact.sums import whole_counts
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.privacy.intervals import Ends, LineIntervals

Covariances: TypeAlias = Sequence[Sequence[float]]
"""Of the noise on Σ1, Σy and Σy²; 0 for what is not measured."""

EXPECTED = 0.75
"""The expected absolute error over the standard error: 0.71 for Laplace noise, 0.75 for two."""

_SPREAD = 1 / 3
"""Of half the width of the bounds: the std that a forecast assumes, bounds being three away."""

_ROUNDED = 2.0**-48
"""More than the float arithmetic of numbers up to 1 is off."""

_ROOT = 100.0
"""The root of 1e-14, below which nothing is left of a difference of numbers up to 1, over the 1e-9
that the float arithmetic of a saved value may be off."""


def expected_count(deviation: float) -> float:
    """Return the expected absolute error of a whole number with this standard error.

    An integer is at most its own square: where noise is mostly 0 that is less.
    """
    return min(EXPECTED * deviation, deviation**2)


@value(eq=False)
class PowerSums:
    """Noisy Σ1, Σy and Σy² of each line, as far as they are measured; values are center + half·y.

    `ends` are the bounds, as floats between which a value is clipped. Where the noisy number of
    values is not positive, nothing is known: the mean is the middle, and the variance of y is 1/2.
    """

    sums: Sequence[Floats]
    center: Any
    half: Any
    ends: tuple[Any, Any]

    @classmethod
    def of(cls, sums: NoisySums, column: str | None) -> PowerSums:
        """Return those of a column, or of one for each line, read off noisy integers."""
        lower, upper = sums.bounds[str(column)]
        pairs = [(lower, upper)]
        if isinstance(lower, (list, tuple)):
            pairs = list(zip(lower, upper, strict=True))
        places = [(float((a + b) / 2), float((b - a) / 2), *inner_ends(a, b)) for a, b in pairs]
        one = len(pairs) == 1 and not isinstance(lower, (list, tuple))
        center, half, low, high = places[0] if one else np.array(places).T
        return cls(
            sums=[floats_of(form, sums.integers) for form in sums.forms[column]],
            center=center,
            half=half,
            ends=(low, high),
        )

    @property
    def count(self) -> Floats:
        """The number of values of each line."""
        return self.sums[0]

    @property
    def mean(self) -> Floats:
        """The mean of y."""
        return np.where(self._known, np.clip(self._divided(1), -1, 1), 0.0)

    @property
    def variance(self) -> Floats:
        """The variance of y."""
        spread = np.clip(self._divided(2) - self.mean**2, 0, 1)
        return np.where(self._known, spread, 0.5)

    @property
    def _known(self) -> Any:
        return self.count > 0

    def _divided(self, power: int) -> Floats:
        with np.errstate(all="ignore"):
            return self.sums[power] / np.where(self._known, self.count, 1.0)


class Statistic(ABC):
    """A number for each line of noisy sums, and where the true one lies."""

    name: ClassVar[str]
    of_population: ClassVar[bool] = True
    """Whether a population has it, of which only a sample and not the size is known."""

    @abstractmethod
    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return the lower and upper ends of each line."""

    def values(self, sums: NoisySums, column: str | None) -> tuple[Any, Any]:
        """Return the values of saved sums, and how large the numbers are that they are made of."""
        raise AssertionError(f"{self.name} is projected, not read off sums")  # pragma: no cover


# -- What is read off noisy integers by itself ----------------------------------------------------


@final
class Integers(Statistic):
    """The integers themselves, times the unit of the law."""

    name = "integers"
    of_population = False

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return them: the noise reaches so many units."""
        return line.integers()

    def values(self, sums: NoisySums, column: str | None) -> tuple[Any, Any]:
        """Return integers times units."""
        units = sums.law.unit
        flat = [int(each) for each in sums.integers.reshape(-1).tolist()]
        each = units if isinstance(units, tuple) else (units,) * len(flat)
        found = np.array([float(k * unit) for k, unit in zip(flat, each, strict=True)])
        return found, np.abs(found)


@final
class LinearForm(Statistic):
    """The first form of a column, between its bounds."""

    name = "form"
    of_population = False

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return them: those of the form, clipped."""
        lower, upper = line.bounds(column)
        low, high = line.linear(line.forms(column)[0])
        return np.clip(low, lower, upper), np.clip(high, lower, upper)

    def values(self, sums: NoisySums, column: str | None) -> tuple[Any, Any]:
        """Return the form, clipped."""
        lower, upper = map(float, sums.bounds[str(column)])
        found = floats_of(sums.forms[column][0], sums.integers)
        return np.clip(found, lower, upper), max(abs(lower), abs(upper))


@final
class Covariance(Statistic):
    """The covariance of a pair of columns."""

    name = "covariance"

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return them, between the bounds of a covariance."""
        lower, upper, _, half = line.place(column)
        low, high = line.covariance(column)
        return np.clip(low * half, lower, upper), np.clip(high * half, lower, upper)


@final
class Correlation(Statistic):
    """The correlation of a pair of columns."""

    name = "correlation"

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return them, between -1 and 1."""
        return line.correlation(column)


# -- Statistics of the values of a column ---------------------------------------------------------


class ColumnStatistic(Statistic):
    """A statistic of the values of one column, which tables offer by its name."""

    degree: ClassVar[int]
    """The highest power of the values whose sum it needs."""
    guess: ClassVar[float] = 0.5
    """How far a guess without rows may be off, relative to what errors are relative to."""

    def summands(self, values: Floats) -> Floats:
        """Return what is summed for each value: a function of it alone, to the last bit.

        By default the values. Statistics with the same function are measured together.
        """
        return values

    def summand_bounds(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """Return the bounds of what is summed, of values between such bounds."""
        return lower, upper

    @property
    def sums_values(self) -> bool:
        """Whether the values themselves are summed."""
        return type(self).summands is ColumnStatistic.summands

    @abstractmethod
    def value(self, sums: PowerSums) -> Any:
        """Return the value of each line: post-processing."""

    def size(self, sums: PowerSums) -> Any:
        """Return how large the numbers are that a value is made of: floats round relative to it."""
        return np.abs(sums.center) + sums.half

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return the expected absolute error of each line, from its own count and mean.

        First order in the noise, and no more than what the middle would do. By default that of the
        noise, which is the same for all lines.
        """
        one = self.forecast(noise, rows=1, center=sums.center, half=sums.half)
        return np.full(len(sums.count), one)

    @abstractmethod
    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return the expected absolute error for so many values, before there are any.

        What depends on where the mean lies is averaged (squared) over all places between the
        bounds, for values close together. None exceeds what the middle would do.
        """

    def unit(self, width: float, rows: float) -> float:
        """Return what errors are relative to: by default the width of the bounds."""
        return width

    def values(self, sums: NoisySums, column: str | None) -> tuple[Any, Any]:
        """Return the values of saved sums, and how large the numbers are that they are made of."""
        powers = PowerSums.of(sums, column)
        return self.value(powers), self.size(powers)


@final
class Count(ColumnStatistic):
    """How many values there are, or rows."""

    name = "count"
    of_population = False
    degree = 0
    guess = 1.0

    def value(self, sums: PowerSums) -> Any:
        """Return whole numbers that are not negative."""
        return whole_counts(sums.count)

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return that of the noise."""
        return expected_count(math.sqrt(noise[0][0]))

    def unit(self, width: float, rows: float) -> float:
        """Return the rows."""
        return rows

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return whole numbers, at least 0 and at most all rows."""
        return line.counts(line.forms(column)[0])


@final
class Sum(ColumnStatistic):
    """The sum of the values: center·Σ1 + half·Σy."""

    name = "sum"
    of_population = False
    degree = 1

    def value(self, sums: PowerSums) -> Any:
        """Return it, unbiased."""
        with np.errstate(all="ignore"):
            return sums.center * sums.count + sums.half * sums.sums[1]

    def size(self, sums: PowerSums) -> Any:
        """Return both terms."""
        with np.errstate(all="ignore"):
            return np.abs(sums.center * sums.count) + np.abs(sums.half * sums.sums[1])

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return that of the noise."""
        large = max(abs(center), half)  # its square may be beyond all floats
        c, h = center / large, half / large
        total = c * c * noise[0][0] + 2 * c * h * noise[0][1] + h * h * noise[1][1]
        return EXPECTED * (large * math.sqrt(max(total, 0.0)))

    def unit(self, width: float, rows: float) -> float:
        """Return the width of the bounds, once for each row."""
        return rows * width

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return those of a linear form; within the bounds if the number of values is public."""
        return line.total(column)


@final
class Mean(ColumnStatistic):
    """The mean of the values, between the bounds."""

    name = "mean"
    degree = 1

    def value(self, sums: PowerSums) -> Any:
        """Return the quotient of a noisy sum and a noisy count."""
        return np.clip(sums.center + sums.half * sums.mean, *sums.ends)

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return √Var(z₁ - μz₀)/n, μ being the mean of y."""
        n, mu = np.maximum(sums.count, 0.0), self.place(sums)
        with np.errstate(all="ignore"):
            square = noise[1][1] - 2 * mu * noise[0][1] + mu**2 * noise[0][0]
            mean = np.minimum(np.sqrt(np.maximum(square, 0)) / n, 1.0)
        return np.asarray(EXPECTED * (sums.half * np.where(n > 0, mean, 1.0)))

    def place(self, sums: PowerSums) -> Floats:
        """Return y where the released mean is."""
        with np.errstate(all="ignore"):
            return np.asarray(np.nan_to_num((self.value(sums) - sums.center) / sums.half))

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return √E Var(z₁ - μz₀)/n: the mean of μ² over [-1, 1] is 1/3."""
        mean = math.sqrt(noise[1][1] + noise[0][0] / 3) / rows
        return EXPECTED * (half * min(mean, 1.0))

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return those of y, moved to where the values are."""
        lower, upper, center, half = line.place(column)
        low, high = line.mean(column)
        slack = _ROUNDED * (np.abs(center) + half)
        low, high = center + half * low - slack, center + half * high + slack
        return np.clip(low, lower, upper), np.clip(high, lower, upper)


@final
class Variance(ColumnStatistic):
    """The variance of the values, divided by their number: at most the square of half the width."""

    name = "variance"
    degree = 2
    guess = 0.25

    def value(self, sums: PowerSums) -> Any:
        """Return that of y, times half² (a power of a large float would raise)."""
        with np.errstate(all="ignore"):
            return sums.variance * sums.half * sums.half

    def size(self, sums: PowerSums) -> Any:
        """Return the square of half the width: a small variance is what is left of such numbers."""
        return sums.half * sums.half

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return √Var(z₂ - 2μz₁ + (2μ² - E y²)z₀)/n."""
        n, mu, half = np.maximum(sums.count, 0.0), MEAN.place(sums), sums.half
        with np.errstate(all="ignore"):
            y2 = mu**2 - np.nan_to_num(self.value(sums) / half / half)
            one = noise[2][2] + 4 * mu**2 * noise[1][1] + y2**2 * noise[0][0]
            two = 2 * y2 * noise[0][2] - 4 * mu * noise[1][2] - 4 * mu * y2 * noise[0][1]
            variance = np.minimum(np.sqrt(np.maximum(one + two, 0)) / n, 0.5)
            found = half * (half * np.where(n > 0, variance, 0.5))
        return np.asarray(EXPECTED * found)

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return that of the noise."""
        return EXPECTED * self.deviation(noise, rows=rows, half=half)

    def deviation(self, noise: Covariances, *, rows: float, half: float) -> float:
        """Return √E Var(z₂ - 2μz₁ + μ²z₀)/n: odd powers of μ vanish, the mean of μ⁴ is 1/5."""
        square = noise[2][2] + (4 * noise[1][1] + 2 * noise[0][2]) / 3 + noise[0][0] / 5
        return half * half * min(math.sqrt(max(square, 0.0)) / rows, 0.5)

    def unit(self, width: float, rows: float) -> float:
        """Return the square of the width."""
        return width * width

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return the squares of those of the standard deviation."""
        low, high = STD.interval(line, column)
        return low * low, high * high


@final
class Deviation(ColumnStatistic):
    """The standard deviation of the values: the root of their variance."""

    name = "std"
    degree = 2

    def value(self, sums: PowerSums) -> Any:
        """Return the root of the variance."""
        return np.sqrt(VARIANCE.value(sums))

    def size(self, sums: PowerSums) -> Any:
        """Return half the width; the root of a small variance errs by more."""
        return sums.half * _ROOT

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return that of a root; where the variance is near 0 it errs by more."""
        wrong, std = VARIANCE.error(sums, noise), self.value(sums)
        with np.errstate(all="ignore"):
            error = np.where(std > 0, wrong / (2 * std), np.inf)
        return np.asarray(np.minimum(np.minimum(error, np.sqrt(wrong)), sums.half))

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return that of a root, for bounds three standard deviations away."""
        wrong = VARIANCE.deviation(noise, rows=rows, half=half)
        return EXPECTED * min(wrong / (2 * _SPREAD * half), half)

    def interval(self, line: LineIntervals, column: str | None) -> Ends:
        """Return those of y, in the unit of the values."""
        _, _, _, half = line.place(column)
        low, high = line.deviation(column)
        return low * half * (1 - _ROUNDED), np.minimum(high * half * (1 + _ROUNDED), half)


COUNT, SUM, MEAN, VARIANCE, STD = Count(), Sum(), Mean(), Variance(), Deviation()

COLUMN_STATISTICS: Mapping[str, ColumnStatistic] = {
    each.name: each for each in (COUNT, SUM, MEAN, VARIANCE, STD)
}
"""What tables offer for the values of a column, by name."""

STATISTICS: Mapping[str, Statistic] = {
    **COLUMN_STATISTICS,
    **{each.name: each for each in (Integers(), LinearForm(), Covariance(), Correlation())},
}
"""All statistics that noisy sums can have, by name."""


def values_of(form: Sequence[Fraction], integers: npt.NDArray[Any]) -> list[Fraction]:
    """Return the exact value of a form of each line; the last coefficient is a constant."""
    places = [place for place, c in enumerate(form[:-1]) if c]
    denominator = math.lcm(*(c.denominator for c in form))
    exact, constant = [int(form[p] * denominator) for p in places], int(form[-1] * denominator)
    return [
        Fraction(sum((c * int(k) for c, k in zip(exact, line, strict=True)), constant), denominator)
        for line in integers[:, places].tolist()
    ]


def floats_of(form: Sequence[Fraction], integers: npt.NDArray[Any]) -> Floats:
    """Return the same values as floats, fast.

    >>> form = (Fraction(1, 4), Fraction(-1, 4), Fraction(0))
    >>> floats_of(form, np.array([[2**62, -(2**62)], [3, 1]])).tolist()
    [2.305843009213694e+18, 0.5]
    """
    places = [place for place, c in enumerate(form[:-1]) if c]
    denominator = math.lcm(*(form[place].denominator for place in places))
    exact = [int(form[place] * denominator) for place in places]
    table = integers[:, places]
    largest = 2 * int(np.abs(table // 2).max(initial=0)) + 2  # that of -2^63 is no int64
    small = table.dtype != np.object_ and largest * sum(map(abs, exact)) < 1 << 63
    if form[-1] or not small:
        # noise is never beyond the range of floats: ε is at least 1e-9
        return np.array([float(each) for each in values_of(form, integers)])
    return np.asarray(table @ np.array(exact, dtype=np.int64), np.float64) / float(denominator)


def as_floats(values: Any) -> Any:
    """Return one exact number as a float, or several as a list."""
    return [float(each) for each in values] if isinstance(values, (list, tuple)) else float(values)


def widths_of(lower: Any, upper: Any) -> Floats:
    """Return how far ends are apart: floats far from 0 may be as far from each other as these."""
    if isinstance(lower, (list, tuple)):
        return np.array([float(b - a) for a, b in zip(lower, upper, strict=True)])
    return np.array(float(upper - lower))
