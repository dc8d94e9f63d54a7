"""Which statistics of which columns a table is asked for, and what is public of these columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from zerodelta.errors import ParameterError, did_you_mean, require
from zerodelta.mechanisms.ranks import as_level
from zerodelta.value import value

ColumnStatistic: TypeAlias = str | Fraction
"""The name of a statistic, or the level of a quantile."""

STATISTICS = ("count", "sum", "mean", "variance", "std")

_DEGREE = {"count": 0, "sum": 1, "mean": 1, "variance": 2, "std": 2}
_MOST_LEVELS = 10_000
_LEAST = 1e-300
"""What a width counts as whose square is 0 for a float."""

_EXAMPLE = 'pass of={"income": ["mean", "std"]}'


@value
class AskedColumn:
    """A column of numbers between public bounds, and the statistics that are asked of it."""

    name: str
    bounds: tuple[Fraction, Fraction]
    missing: bool
    statistics: tuple[str, ...]
    levels: tuple[Fraction, ...] = ()
    """Of the quantiles that are asked."""
    grid: int | None = None
    """How many points quantiles may be, if the values are whole."""

    @property
    def degree(self) -> int:
        """The highest power of the values whose sum is needed."""
        return max((_DEGREE[each] for each in self.statistics), default=0)

    @property
    def numbers(self) -> list[str]:
        """The names of all columns of the result, and of their errors."""
        found = [self.named(each) + end for each in self.statistics for end in ("", "_error")]
        levels = [self.named(level_name(each)) for each in self.levels]
        return found + [name + end for name in levels for end in ("", "_rank_error")]

    @property
    def results(self) -> list[str]:
        """The names of the columns of the result, without those of their errors."""
        levels = [level_name(each) for each in self.levels]
        return [self.named(each) for each in (*self.statistics, *levels)]

    @property
    def width(self) -> float:
        """How far the bounds are apart."""
        return float(self.bounds[1] - self.bounds[0])

    def named(self, statistic: str) -> str:
        """Return the name of a column of the result."""
        return f"{self.name}_{statistic}"

    def unit(self, statistic: str, rows: float) -> float:
        """Return what an error is relative to, for a group of so many rows: public numbers.

        The width of the column; its square for a variance; for sums, and for counts without the
        width, times the number of rows of a group.
        """
        scale = {"count": rows, "sum": rows * self.width, "variance": self.width * self.width}
        return max(scale.get(statistic, self.width), _LEAST)


def level_name(level: Fraction) -> str:
    """Return what a quantile is called, by its percentage.

    >>> level_name(Fraction(1, 10)), level_name(Fraction(1, 2)), level_name(Fraction(1, 40))
    ('q10', 'median', 'q2.5')
    """
    return "median" if level == Fraction(1, 2) else f"q{float(100 * level):.10g}"


def as_statistics(of: Any) -> dict[str, tuple[ColumnStatistic, ...]]:
    """Return the statistics of each column, quantiles by their levels; what is none is refused.

    >>> as_statistics({"income": ["mean", "std"], "age": ["mean", "median"]})
    {'income': ('mean', 'std'), 'age': ('mean', Fraction(1, 2))}
    """
    require(
        isinstance(of, Mapping) and of,
        "of",
        of,
        expected="statistics of one column or more",
        remedy=f"{_EXAMPLE}; for rows alone ask zd.count(data, by=…)",
    )
    found = {}
    for column, given in of.items():
        require(isinstance(column, str), "of", column, "names of columns", _EXAMPLE)
        listed = [given] if isinstance(given, (str, Mapping)) else given
        several = isinstance(listed, Sequence) and len(listed) > 0
        require(several, f"of[{column!r}]", given, "one statistic or more", _EXAMPLE)
        every = [each for one in listed for each in _statistics(column, one)]
        found[column] = tuple(dict.fromkeys(every))
    return found


def _statistics(column: str, given: Any) -> list[ColumnStatistic]:
    if isinstance(given, str) and given in STATISTICS:
        return [given]
    if isinstance(given, str) and given == "median":
        return [Fraction(1, 2)]
    if isinstance(given, Mapping) and set(given) == {"quantiles"}:
        return list(_levels(column, given["quantiles"]))
    known = (*STATISTICS, "median")
    names = ", ".join(f'"{each}"' for each in known)
    remedy = did_you_mean(given, known, "pass some of these names")
    expected = f'some of {names}, {{"quantiles": [0.1, 0.9]}}'
    raise ParameterError(f"of[{column!r}]", given, expected=expected, remedy=remedy)


def _levels(column: str, given: Any) -> list[Fraction]:
    listed = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes))
    require(
        listed and 0 < len(given) <= _MOST_LEVELS,
        f"of[{column!r}]",
        given if not listed else len(given),
        expected=f"a list of 1 to {_MOST_LEVELS} levels from 0 to 1",
        remedy='pass {"quantiles": [0.1, 0.5, 0.9]}',
    )
    return [as_level(level) for level in given]
