"""Which of several public groups a row is in, by its own cells: the keys of a table (theory P).

A key is a column of codes (a category, a boolean, a date), or a column of numbers cut at public
edges (`zd.bins`). Groups are all combinations of keys, the last key fastest; a row with a missing
key is in none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.kind import Bounds
from zerodelta.data.rowwise import Block
from zerodelta.data.tallies import group_codes
from zerodelta.errors import is_list, require
from zerodelta.exact.rational import Rational, as_rational, number_text
from zerodelta.value import value

Codes: TypeAlias = npt.NDArray[np.int64]
Inside: TypeAlias = npt.NDArray[np.bool_]


@value
class Bins:
    """Intervals between public edges, each with its lower edge, the last with both.

    Made by `zd.bins`.
    """

    edges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        floats = [float(edge) for edge in self.edges]
        require(
            len(floats) >= 2 and all(a < b for a, b in itertools.pairwise(floats)),
            "bins",
            [number_text(edge) for edge in self.edges],
            expected="two edges or more, each larger than the one before",
            remedy="pass them in rising order, as in zd.bins([0, 18, 65, 120])",
        )

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins as texts.

        >>> bins([0, "0.5", 2]).labels
        ('[0, 0.5)', '[0.5, 2]')
        """
        ends = [_shown(edge) for edge in self.edges]
        pairs = list(itertools.pairwise(ends))
        return (*(f"[{a}, {b})" for a, b in pairs[:-1]), f"[{pairs[-1][0]}, {pairs[-1][1]}]")

    def codes(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the place of each number among the bins; NaN beyond the edges, and for NaN.

        >>> bins([0, 18, 65]).codes(np.array([-1.0, 0.0, 18.0, 65.0, 66.0, np.nan]))
        array([nan,  0.,  1.,  1., nan, nan])
        """
        edges = np.array([float(edge) for edge in self.edges])
        places = np.searchsorted(edges, values, side="right") - 1
        places = np.where(values == edges[-1], self.size - 1, places)
        inside = (values >= edges[0]) & (values <= edges[-1])
        return np.where(inside, places, np.nan)


def bins(edges: Iterable[Rational]) -> Bins:
    """Declare the public edges by which a column of numbers is cut into groups.

    A bin has its lower edge, the last one both, as in `np.histogram`; a number beyond the edges is
    in none.

    Parameters
    ----------
    edges : list of numbers
        In rising order, known without the rows.

    Returns
    -------
    Bins
        For ``by={"age": zd.bins([0, 18, 65, 120])}``.

    Examples
    --------
    >>> bins([0, 18, 65, 120]).labels
    ('[0, 18)', '[18, 65)', '[65, 120]')
    """
    remedy = "pass them in rising order, as in zd.bins([0, 18, 65, 120])"
    require(is_list(edges), "bins", edges, "a list of edges", remedy)
    return Bins(edges=tuple(as_rational(edge, "bins") for edge in edges))


@value
class GroupKey:
    """One column by which rows are grouped, what its codes stand for, and how these are found.

    `bins`: the column holds numbers, clipped to `ends` if they have declared bounds, which are cut
    there; otherwise it holds codes 0, 1, … itself.
    """

    name: str
    labels: tuple[Any, ...]
    bins: Bins | None = None
    ends: Bounds | None = None
    complete: bool = False
    """Whether every row that counts has a code."""

    def codes(self, column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the code of each cell; NaN, or no code at all, where it is in no group."""
        if self.bins is None:
            return column
        if self.ends is not None:
            column = np.clip(column, float(self.ends[0]), float(self.ends[1]))
        return self.bins.codes(column)


@value
class GroupKeys:
    """The keys of a table; without any, all rows are one group."""

    keys: tuple[GroupKey, ...] = ()
    possible: int | None = None
    """How many groups there can be, where keys are yet to be found: these have no labels."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each key."""
        return tuple(len(key.labels) for key in self.keys)

    @property
    def count(self) -> int:
        """The number of groups."""
        return math.prod(self.sizes) if self.possible is None else self.possible

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the keys."""
        return tuple(key.name for key in self.keys)

    @property
    def complete(self) -> bool:
        """Whether every row that counts is in a group."""
        return all(key.complete for key in self.keys)

    def labels(self) -> Iterator[tuple[Any, ...]]:
        """Yield the labels of each group, the last key fastest."""
        return itertools.product(*(key.labels for key in self.keys))

    def codes(self, block: Block) -> tuple[Codes, Inside]:
        """Return the group of each row, and whether it is in one, from the columns of the keys."""
        found = (key.codes(block[:, place]) for place, key in enumerate(self.keys))
        return group_codes(found, self.sizes, len(block))


def _shown(edge: Fraction) -> str:
    """Return an edge as it is read best."""
    if edge.denominator == 1 and abs(edge) < 10**15:
        return str(edge.numerator)
    return repr(float(edge))  # of different edges never the same
