"""Compute statistics of columns, their errors and intervals, from noisy sums (theory P, G2, I).

A value of a column, or the function of it that a statistic sums, is center + half·y, with y in
[-1, 1] between public bounds. For each line, a group or all rows, Σ1, Σy and Σy² are measured with
noise, as far as a statistic needs them. A `Measurement` holds these integers, the law of their
noise and their linear forms. The value of a statistic, its error, its forecast, the size to which
errors are relative, and its interval are methods of one object. A new statistic is one more class:
tables, advice, saved files and intervals look it up by name in `STATISTICS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.rational import inner_ends
from zerodelta.exact.sums import Form, IntegerArray, whole_counts
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.privacy.intervals import Ends, LineIntervals

Covariances: TypeAlias = Sequence[Sequence[float]]
"""The covariances of the noise on Σ1, Σy and Σy²; 0 for sums that are not measured."""

EXPECTED = 0.75
"""The expected absolute error divided by the standard error: 0.71 for Laplace noise, 0.75 for the
sum of two Laplace noises."""

_SPREAD = 1 / 3
"""The standard deviation that a forecast assumes, relative to half the width of the bounds."""

_ROUNDED = 2.0**-48
"""An upper bound for rounding errors in float arithmetic of numbers up to 1."""

_ROOT = 100.0
"""Rounding may change a difference of numbers up to 1 by 1e-14, and its root by 1e-7: 100 times the
relative error of 1e-9 that is allowed for the float arithmetic of a saved value."""


def expected_count(deviation: float) -> float:
    """Return the expected absolute error of an integer with this standard error.

    The absolute value of an integer is at most its square, which is the smaller bound where the
    noise is mostly 0.
    """
    return min(EXPECTED * deviation, deviation**2)


@value(eq=False)
class Measurement:
    """Integers with noise of a public law, and their linear forms: what a value was computed from.

    `integers` has one line for each group. `law` is the law of their noise ("counts": on all lines
    together, "k-norm": on each line, or with ``joint=True`` on all together, "laplace" and
    "geometric": on each integer). `forms` has linear forms of a line: under None the one of the
    number of rows, under each column those of Σ y^0, Σ y and Σ y² over its values, as far as they
    are known. The last coefficient of a form is a constant. y is a value scaled so that its bounds,
    in `bounds`, become -1 and 1. Under a pair of columns y and z are the forms of Σ 1, Σ y, Σ z,
    Σ yz and, for a correlation, Σ y² and Σ z²; its bounds are those of a covariance.
    """

    law: NoiseLaw
    integers: IntegerArray
    forms: Mapping[str | None, tuple[Form, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """One pair for all lines, or of two lists with a number for each line."""
    joint: bool = False
    statistics: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    """For each released number of a line, by its name: its column and the name of its statistic."""
    labels: Sequence[Any] | None = None
    """The names of the lines, if the value has none itself."""
    resolution: Fraction = Fraction(0)
    """The largest distance of a quantized y from the clipped one."""
    rows: int | None = None
    """The number of rows, the largest possible count; None where it is private."""
    rest: int | None = None
    """The place of an omitted line, whose integer is `rows` minus the sum of the others."""

    def values(self, name: str) -> tuple[Any, Any]:
        """Return the released numbers of this name, and the sizes to which rounding is relative."""
        column, statistic = self.statistics[name]
        return STATISTICS[statistic].values(self, column)

    def column(self, name: str | None) -> PowerSums:
        """Return the noisy sums of a column as floats; its bounds may differ for each line."""
        lower, upper = self.bounds[str(name)]
        by_line = isinstance(lower, (list, tuple))
        pairs = list(zip(lower, upper, strict=True)) if by_line else [(lower, upper)]
        places = [(float((a + b) / 2), float((b - a) / 2), *inner_ends(a, b)) for a, b in pairs]
        center, half, low, high = np.array(places).T if by_line else places[0]
        return PowerSums(
            sums=[floats_of(form, self.integers) for form in self.forms[name]],
            center=center,
            half=half,
            ends=(low, high),
        )


@final
class LazyForms(Mapping[str | None, tuple[Form, ...]]):
    """Forms of many columns, each created on access, since all have quadratically many entries.

    >>> forms = LazyForms(("a", "b"), lambda place: ((Fraction(place),),))
    >>> list(forms), forms["b"]
    (['a', 'b'], ((Fraction(1, 1),),))
    """

    __slots__ = ("_make", "_places")

    def __init__(
        self, names: Sequence[str | None], make: Callable[[int], tuple[Form, ...]]
    ) -> None:
        self._places, self._make = {name: place for place, name in enumerate(names)}, make

    def __getitem__(self, name: str | None) -> tuple[Form, ...]:
        return self._make(self._places[name])

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@value(eq=False)
class PowerSums:
    """Noisy Σ1, Σy and Σy² of each line, as far as they are measured; values are center + half·y.

    `ends` are the bounds as floats, to which means are clipped. Where the noisy number of values is
    not positive, the mean is the middle of the bounds, and the variance of y is 1/2.
    """

    sums: Sequence[Floats]
    center: Any
    half: Any
    ends: tuple[Any, Any]

    @property
    def count(self) -> Floats:
        """The noisy number of values of each line."""
        return self.sums[0]

    @property
    def mean(self) -> Floats:
        """The mean of y."""
        return np.where(self._has_values, np.clip(self._average(1), -1, 1), 0.0)

    @property
    def variance(self) -> Floats:
        """The variance of y: at most 1 less the square of the mean, since y² is at most 1."""
        square = np.minimum(self._average(2), 1.0)
        spread = np.clip(square - self.mean**2, 0, 1)
        return np.where(self._has_values, spread, 0.5)

    @property
    def _has_values(self) -> Any:
        """Whether the noisy number of values of each line is positive."""
        return self.count > 0

    def _average(self, power: int) -> Floats:
        """Return Σy^power divided by the number of values, where that is positive."""
        with np.errstate(all="ignore"):
            return self.sums[power] / np.where(self._has_values, self.count, 1.0)


class Statistic(ABC):
    """A number for each line of noisy sums, with an interval of the true number."""

    name: ClassVar[str]
    of_population: ClassVar[bool] = True
    """Whether a population of unknown size has it: a mean does, a count or a sum does not."""

    @abstractmethod
    def interval(self, line: LineIntervals) -> Ends:
        """Return the lower and upper ends of each line."""

    def values(self, sums: Measurement, column: str | None) -> tuple[Any, Any]:
        """Return the values of saved sums, and the size of the numbers from which they result.

        Rounding errors of a value are relative to that size.
        """
        # a matrix is projected to be semi-definite, so its entries do not follow from one line
        raise AssertionError(f"{self.name} does not follow from sums alone")  # pragma: no cover


# -- Statistics of noisy integers themselves, and of pairs of columns -----------------------------


@final
class Integers(Statistic):
    """The noisy integers themselves, times the unit of their law."""

    name = "integers"
    of_population = False

    def interval(self, line: LineIntervals) -> Ends:
        """Return the integers less and plus the quantile of the noise."""
        return line.integers()

    def values(self, sums: Measurement, column: str | None) -> tuple[Any, Any]:
        """Return the noisy integers in units of the data, and their absolute values."""
        units = sums.law.unit
        flat = [int(k) for k in sums.integers.reshape(-1).tolist()]
        units = units if isinstance(units, tuple) else (units,) * len(flat)
        values = np.array([float(k * unit) for k, unit in zip(flat, units, strict=True)])
        return values, np.abs(values)


@final
class LinearForm(Statistic):
    """The first linear form of a column, clipped to its bounds."""

    name = "form"
    of_population = False

    def interval(self, line: LineIntervals) -> Ends:
        """Return the ends of the form, clipped."""
        lower, upper, _, _ = line.place
        low, high = line.linear(line.forms[0])
        return np.clip(low, lower, upper), np.clip(high, lower, upper)

    def values(self, sums: Measurement, column: str | None) -> tuple[Any, Any]:
        """Return the values of the form, clipped."""
        lower, upper = map(float, sums.bounds[str(column)])
        values = floats_of(sums.forms[column][0], sums.integers)
        return np.clip(values, lower, upper), max(abs(lower), abs(upper))


@final
class Covariance(Statistic):
    """The covariance of a pair of columns."""

    name = "covariance"

    def interval(self, line: LineIntervals) -> Ends:
        """Return the ends of the scaled covariance in the unit of the data, within its bounds."""
        lower, upper, _, half = line.place
        low, high = line.covariance()
        return np.clip(low * half, lower, upper), np.clip(high * half, lower, upper)


@final
class Correlation(Statistic):
    """The correlation of a pair of columns."""

    name = "correlation"

    def interval(self, line: LineIntervals) -> Ends:
        """Return the ends of the correlation, between -1 and 1."""
        return line.correlation()


# -- Statistics of the values of a column ---------------------------------------------------------


class ColumnStatistic(Statistic):
    """A statistic of the values of one column, which tables offer by its name."""

    degree: ClassVar[int]
    """The highest power of the values whose sum it needs."""
    guess: ClassVar[float] = 0.5
    """The largest error of a guess without rows, in units of `unit`."""

    def summands(self, values: Floats) -> Floats:
        """Return the summand of each value: a function of that value alone, to the last bit.

        By default it is the value itself. Statistics with the same function are measured together.
        """
        return values

    def summand_bounds(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """Return the bounds of the summands of values between `lower` and `upper`."""
        return lower, upper

    @property
    def sums_values(self) -> bool:
        """Whether the values themselves are summed."""
        return type(self).summands is ColumnStatistic.summands

    @abstractmethod
    def value(self, sums: PowerSums) -> Any:
        """Return the value of each line: post-processing."""

    def size(self, sums: PowerSums) -> Any:
        """Return the size of the numbers from which a value results; rounding is relative to it."""
        return np.abs(sums.center) + sums.half

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return the expected absolute error of each line, from its noisy count and mean.

        It is of first order in the noise, and at most the error of guessing the middle of the
        bounds. By default it is the forecast, the same for all lines.
        """
        of_line = self.forecast(noise, rows=1, center=sums.center, half=sums.half)
        return np.full(len(sums.count), of_line)

    @abstractmethod
    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return the expected absolute error for `rows` values that are not known yet.

        Where it depends on the mean, its square is averaged over all means between the bounds, for
        values close to the mean. It is at most the error of guessing the middle of the bounds.
        """

    def unit(self, width: float, rows: float) -> float:
        """Return the size to which errors are relative: by default the width of the bounds."""
        return width

    def values(self, sums: Measurement, column: str | None) -> tuple[Any, Any]:
        """Return the values of saved sums, and the size of the numbers from which they result."""
        powers = sums.column(column)
        return self.value(powers), self.size(powers)


@final
class Count(ColumnStatistic):
    """The number of values, or of rows."""

    name = "count"
    of_population = False
    degree = 0
    guess = 1.0

    def value(self, sums: PowerSums) -> Any:
        """Return integers that are not negative."""
        return whole_counts(sums.count)

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return the expected absolute noise on a count."""
        return expected_count(math.sqrt(noise[0][0]))

    def unit(self, width: float, rows: float) -> float:
        """Return the number of rows."""
        return rows

    def interval(self, line: LineIntervals) -> Ends:
        """Return integers from 0 to the number of all rows."""
        return line.counts()


@final
class Sum(ColumnStatistic):
    """The sum of the values: center·Σ1 + half·Σy."""

    name = "sum"
    of_population = False
    degree = 1

    def value(self, sums: PowerSums) -> Any:
        """Return the unbiased sum."""
        with np.errstate(all="ignore"):
            return sums.center * sums.count + sums.half * sums.sums[1]

    def size(self, sums: PowerSums) -> Any:
        """Return the sum of the sizes of both terms."""
        with np.errstate(all="ignore"):
            return np.abs(sums.center * sums.count) + np.abs(sums.half * sums.sums[1])

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return the expected absolute noise on center·Σ1 + half·Σy."""
        large = max(abs(center), half)  # divided out, because its square may exceed all floats
        c, h = center / large, half / large
        total = c * c * noise[0][0] + 2 * c * h * noise[0][1] + h * h * noise[1][1]
        return EXPECTED * (large * math.sqrt(max(total, 0.0)))

    def unit(self, width: float, rows: float) -> float:
        """Return the width of the bounds times the number of rows."""
        return rows * width

    def interval(self, line: LineIntervals) -> Ends:
        """Return the ends of a linear form; within the bounds if the number of values is public."""
        return line.total()


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
        """Return the released mean on the scale of y."""
        with np.errstate(all="ignore"):
            return np.asarray(np.nan_to_num((self.value(sums) - sums.center) / sums.half))

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return √E Var(z₁ - μz₀)/n; the average of μ² over [-1, 1] is 1/3."""
        mean = math.sqrt(noise[1][1] + noise[0][0] / 3) / rows
        return EXPECTED * (half * min(mean, 1.0))

    def interval(self, line: LineIntervals) -> Ends:
        """Return the ends of the mean of y, scaled back to the values."""
        lower, upper, center, half = line.place
        low, high = line.mean()
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
        """Return the variance of y times half², without a power, which may overflow and raise."""
        with np.errstate(all="ignore"):
            return sums.variance * sums.half * sums.half

    def size(self, sums: PowerSums) -> Any:
        """Return the square of half the width: a variance is a difference of such numbers."""
        return sums.half * sums.half

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return √Var(z₂ - 2μz₁ + (2μ² - E y²)z₀)/n."""
        n, mu, half = np.maximum(sums.count, 0.0), MEAN.place(sums), sums.half
        with np.errstate(all="ignore"):
            y2 = mu**2 - np.nan_to_num(self.value(sums) / half / half)  # 2μ² - E y²
            variances = noise[2][2] + 4 * mu**2 * noise[1][1] + y2**2 * noise[0][0]
            mixed = 2 * y2 * noise[0][2] - 4 * mu * noise[1][2] - 4 * mu * y2 * noise[0][1]
            error = np.minimum(np.sqrt(np.maximum(variances + mixed, 0)) / n, 0.5)
            scaled = half * (half * np.where(n > 0, error, 0.5))
        return np.asarray(EXPECTED * scaled)

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return the standard error times the ratio `EXPECTED`."""
        return EXPECTED * self.deviation(noise, rows=rows, half=half)

    def deviation(self, noise: Covariances, *, rows: float, half: float) -> float:
        """Return √E Var(z₂ - 2μz₁ + μ²z₀)/n for μ uniform on [-1, 1].

        Odd powers of μ have average 0, and μ⁴ has average 1/5.
        """
        square = noise[2][2] + (4 * noise[1][1] + 2 * noise[0][2]) / 3 + noise[0][0] / 5
        return half * half * min(math.sqrt(max(square, 0.0)) / rows, 0.5)

    def unit(self, width: float, rows: float) -> float:
        """Return the square of the width."""
        return width * width

    def interval(self, line: LineIntervals) -> Ends:
        """Return the squared ends of the standard deviation."""
        low, high = STD.interval(line)
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
        """Return half the width times `_ROOT`: rounding changes the root of a variance more."""
        return sums.half * _ROOT

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return the error of the variance divided by 2·std, at most the root of that error."""
        variance_error, std = VARIANCE.error(sums, noise), self.value(sums)
        with np.errstate(all="ignore"):
            error = np.where(std > 0, variance_error / (2 * std), np.inf)
        return np.asarray(np.minimum(np.minimum(error, np.sqrt(variance_error)), sums.half))

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return the error of the variance divided by 2·std, for bounds three deviations away."""
        variance_error = VARIANCE.deviation(noise, rows=rows, half=half)
        return EXPECTED * min(variance_error / (2 * _SPREAD * half), half)

    def interval(self, line: LineIntervals) -> Ends:
        """Return the ends of the deviation of y, in the unit of the values."""
        _, _, _, half = line.place
        low, high = line.deviation()
        return low * half * (1 - _ROUNDED), np.minimum(high * half * (1 + _ROUNDED), half)


COUNT, SUM, MEAN, VARIANCE, STD = Count(), Sum(), Mean(), Variance(), Deviation()

COLUMN_STATISTICS: Mapping[str, ColumnStatistic] = {
    statistic.name: statistic for statistic in (COUNT, SUM, MEAN, VARIANCE, STD)
}
"""The statistics of a column that tables offer, by name."""

_OTHERS: tuple[Statistic, ...] = (Integers(), LinearForm(), Covariance(), Correlation())

STATISTICS: Mapping[str, Statistic] = {
    **COLUMN_STATISTICS,
    **{statistic.name: statistic for statistic in _OTHERS},
}
"""All statistics of noisy sums, by name."""


def values_of(form: Sequence[Fraction], integers: npt.NDArray[Any]) -> list[Fraction]:
    """Return the exact value of a form for each line; the last coefficient is a constant."""
    places = [place for place, c in enumerate(form[:-1]) if c]
    denominator = math.lcm(*(c.denominator for c in form))
    exact, constant = [int(form[p] * denominator) for p in places], int(form[-1] * denominator)
    return [
        Fraction(sum((c * int(k) for c, k in zip(exact, line, strict=True)), constant), denominator)
        for line in integers[:, places].tolist()
    ]


def floats_of(form: Sequence[Fraction], integers: npt.NDArray[Any]) -> Floats:
    """Return the values of a form for each line as floats, fast.

    >>> form = (Fraction(1, 4), Fraction(-1, 4), Fraction(0))
    >>> floats_of(form, np.array([[2**62, -(2**62)], [3, 1]])).tolist()
    [2.305843009213694e+18, 0.5]
    """
    places = [place for place, c in enumerate(form[:-1]) if c]
    denominator = math.lcm(*(form[place].denominator for place in places))
    exact = [int(form[place] * denominator) for place in places]
    table = integers[:, places]
    largest = 2 * int(np.abs(table // 2).max(initial=0)) + 2  # |-2^63| does not fit into int64
    small = table.dtype != np.object_ and largest * sum(map(abs, exact)) < 1 << 63
    if form[-1] or not small:
        # noise does not exceed the range of floats, because ε is at least 1e-9
        return np.array([float(value) for value in values_of(form, integers)])
    return np.asarray(table @ np.array(exact, dtype=np.int64), np.float64) / float(denominator)


def as_floats(values: Any) -> Any:
    """Return one exact number as a float, or several as a list."""
    if isinstance(values, (list, tuple)):
        return [float(value) for value in values]
    return float(values)


def widths_of(lower: Any, upper: Any) -> Floats:
    """Return upper - lower, subtracted exactly: far from 0, floats may be coarser than this."""
    if isinstance(lower, (list, tuple)):
        return np.array([float(b - a) for a, b in zip(lower, upper, strict=True)])
    return np.array(float(upper - lower))
