"""Which statistics of which columns a table is asked for, and what is public of these columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import ParameterError, did_you_mean, require

__all__ = ["STATISTICS", "AskedColumn", "as_statistics"]

STATISTICS = ("count", "sum", "mean", "variance", "std")

_DEGREE = {"count": 0, "sum": 1, "mean": 1, "variance": 2, "std": 2}
_LEAST = 1e-300
"""What a width counts as whose square is 0 for a float."""

_EXAMPLE = 'pass of={"income": ["mean", "std"]}'


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class AskedColumn:
    """A column of numbers between public bounds, and the statistics that are asked of it."""

    name: str
    bounds: tuple[Fraction, Fraction]
    missing: bool
    statistics: tuple[str, ...]

    @property
    def degree(self) -> int:
        """The highest power of the values whose sum is needed."""
        return max(_DEGREE[each] for each in self.statistics)

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


def as_statistics(of: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the statistics of each column; what is none is refused.

    >>> as_statistics({"income": ["mean", "std"], "age": "mean"})
    {'income': ('mean', 'std'), 'age': ('mean',)}
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
        found[column] = tuple(dict.fromkeys(_statistic(column, each) for each in listed))
    return found


def _statistic(column: str, given: Any) -> str:
    if isinstance(given, str) and given in STATISTICS:
        return given
    if given == "median" or (isinstance(given, Mapping) and "quantiles" in given):
        _refuse_quantiles(column, given)
    names = ", ".join(f'"{each}"' for each in STATISTICS)
    remedy = did_you_mean(given, STATISTICS, "pass some of these names")
    raise ParameterError(f"of[{column!r}]", given, expected=f"some of {names}", remedy=remedy)


def _refuse_quantiles(column: str, given: Any) -> None:
    """Say that quantiles of groups are not there: the place where they are joined to a table."""
    raise ParameterError(
        f"of[{column!r}]",
        given,
        expected="counts, sums, means, variances or stds: a table has no quantiles yet",
        remedy="ask zd.quantile for those of all rows",
    )
