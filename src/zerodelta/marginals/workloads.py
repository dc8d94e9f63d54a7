"""Define linear queries on a finite universe: marginals of {0,1}^d, or a matrix of values (C7).

A query sums a bounded integer over the rows, so answers on data are exact integers. On a synthetic
distribution the same code answers in floats.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import as_source, public_table
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, try_function
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.rational import as_count
from zerodelta.value import value

Counts: TypeAlias = npt.NDArray[np.int64]
Weights: TypeAlias = npt.NDArray[np.float64]

_MAXIMUM_DIMENSION = 20
"""The largest d of a distribution over {0,1}^d, which is held in memory: 8 MB at d = 20."""

_MAXIMUM_ENTRIES = 1 << 26

WORKLOAD = (
    "the workload's keys treat rows one by one, keep no state and show nothing, and its answers "
    "stay within its bound"
)
"""The premise that a certificate lists as caller-asserted for a workload of the caller's class."""


class Workload(ABC):
    """Public queries q_1..q_K, each from items of the universe to integers in 0..bound.

    Write a subclass for other queries. The guarantee of a release then rests on the caller's
    assertion that the subclass treats rows one by one.

    Attributes
    ----------
    universe : int
        The number of items |X|, at least 2.
    queries : int
        The number of queries K.
    bound : int
        The largest value B of a query on one row.
    columns : int
        The number of columns of a row.

    """

    __slots__ = ()

    universe: int
    queries: int
    bound: int
    columns: int

    @abstractmethod
    def keys(self, rows: Block) -> Weights:
        """Return the item of each row, NaN for an invalid row; row by row, elementwise."""

    @abstractmethod
    def rows_of(self, items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return a row for each item."""

    @abstractmethod
    def totals(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the K sums Σ_x weight(x) q(x): exact for integer counts, else in floats."""

    @abstractmethod
    def reweight(self, weights: Weights, query: int, exponent: float) -> None:
        """Multiply each weight(x) by exp(exponent · q(x) / bound), in place."""

    def answers(self, rows: Any) -> Weights:
        """Return the K averages q(rows)/n of *public* rows, such as synthetic ones, without noise.

        >>> Marginals(dimension=2, order=1).answers(np.array([[0, 1], [1, 1]]))
        array([0.5, 0.5, 0. , 1. ])
        """
        items = self.keys(public_table(rows))
        known = (items >= 0) & (items < self.universe) & (items == np.floor(items))  # False for NaN
        counts = np.bincount(np.where(known, items, 0).astype(np.int64), minlength=self.universe)
        return np.asarray(self.totals(counts) / counts.sum(), dtype=np.float64)


@value
class Marginals(Workload):
    """All `order`-way marginals of {0,1}^d: a query for each set of columns and their values.

    The item of a row x is Σ_i x_i 2^i. A row with an entry other than 0 and 1 counts as item 0.

    Parameters
    ----------
    dimension : int
        The number d of binary columns, at most 20: the universe is held in memory.
    order : int, default=2
        The number of columns of a query.

    Examples
    --------
    >>> two_way = Marginals(dimension=16, order=2)
    >>> two_way.queries, two_way.universe, two_way.describe(5)
    (480, 65536, 'column 0 is 1 and column 2 is 0')

    """

    dimension: int
    order: int = 2
    universe: int = field(init=False)
    queries: int = field(init=False)
    bound: int = field(init=False)
    columns: int = field(init=False)

    def __post_init__(self) -> None:
        as_count(self.order, "order", minimum=1)
        require(
            self.order <= as_count(self.dimension, "dimension", minimum=1) <= _MAXIMUM_DIMENSION,
            "dimension",
            self.dimension,
            expected=f"at least the order {self.order} and at most {_MAXIMUM_DIMENSION}",
            remedy="choose fewer columns: the universe has 2^dimension items in memory",
        )
        sets = math.comb(self.dimension, self.order)
        _set(self, 1 << self.dimension, sets << self.order, bound=1, columns=self.dimension)

    def describe(self, query: int) -> str:
        """Describe the rows that a query counts, in words."""
        chosen, values = self._columns_and_values(query)
        pairs = zip(chosen, values, strict=True)
        return " and ".join(f"column {column} is {value}" for column, value in pairs)

    def keys(self, rows: Block) -> Weights:
        """Return Σ_i x_i 2^i, NaN where an entry is neither 0 nor 1."""
        key = np.zeros(len(rows))
        for i in range(self.dimension):  # column by column, so that rows do not mix
            entry = rows[:, i]
            key += np.where((entry == 0) | (entry == 1), entry * (1 << i), np.nan)
        return key

    def rows_of(self, items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return an (n, d) array of bits."""
        return np.asarray(items)[:, None] >> np.arange(self.dimension) & 1

    def totals(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return all marginals, computed from the Walsh coefficients of subsets of columns.

        Marginal(S, a) = 2^-|S| Σ_{U⊆S} (-1)^{|a_U|} ŵ(U). For integer weights below 2^(63 - order)
        all intermediate numbers are exact in int64.
        """
        coefficients = _walsh(weights)
        size = 1 << self.order
        sets = np.array(list(itertools.combinations(range(self.dimension), self.order)))
        inner = (np.arange(size)[:, None] >> np.arange(self.order)) & 1  # value bits, as numbers
        masks = (inner[None, :, :] << sets[:, None, :]).sum(axis=2)  # (sets, subsets)
        gathered = coefficients[masks]
        sums = []
        for entry in range(size):
            signs = [1 - 2 * ((entry & subset).bit_count() & 1) for subset in range(size)]
            sums.append((gathered * signs).sum(axis=1))
        total = np.stack(sums, axis=1).reshape(-1)
        return total / size if total.dtype.kind == "f" else total >> self.order

    def reweight(self, weights: Weights, query: int, exponent: float) -> None:
        """Multiply the weights of the subcube on which the query is 1."""
        chosen, values = self._columns_and_values(query)
        index: list[Any] = [slice(None)] * self.dimension
        for column, entry in zip(chosen, values, strict=True):
            index[self.dimension - 1 - column] = entry  # the last axis is column 0
        weights.reshape((2,) * self.dimension)[tuple(index)] *= math.exp(exponent)

    def _columns_and_values(self, query: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the columns of a query, and the value that it counts in each."""
        sets, value = divmod(query, 1 << self.order)
        combinations = itertools.combinations(range(self.dimension), self.order)
        chosen = next(itertools.islice(combinations, sets, None))
        return chosen, tuple(value >> place & 1 for place in range(self.order))


@final
@dataclass(frozen=True, eq=False, repr=False, slots=True)
class LinearQueries(Workload):
    """Queries with any integer values in 0..bound; a row of the data is one item 0..|X|-1.

    An invalid row counts as item 0.

    Parameters
    ----------
    table : array of integers of shape (K, |X|)
        The value of each query on each item, from 0 to a bound below 2^31.

    Examples
    --------
    >>> LinearQueries([[0, 1, 2], [1, 0, 0]]).answers(np.array([2, 2, 0, 99]))
    array([1. , 0.5])

    """

    table: Any
    universe: int = field(init=False)
    queries: int = field(init=False)
    bound: int = field(init=False)
    columns: int = field(init=False)

    def __post_init__(self) -> None:
        values = np.asarray(self.table)
        require(
            values.ndim == 2
            and values.shape[0] >= 1
            and values.shape[1] >= 2
            and values.dtype.kind in "iu"
            and values.size <= _MAXIMUM_ENTRIES,
            "table",
            f"{values.dtype} of shape {values.shape}",
            expected="integers, one row for each query and one column for each of >= 2 items",
            remedy="scale the queries to integers, and list their values on every item",
        )
        require(
            values.min() >= 0 and 1 <= values.max() < 1 << 31,
            "table",
            (int(values.min()), int(values.max())),
            expected="values from 0 to a bound of at least 1 and below 2^31",
            remedy="shift and scale the queries",
        )
        exact = values.astype(np.int64)
        exact.setflags(write=False)
        object.__setattr__(self, "table", exact)
        _set(self, exact.shape[1], exact.shape[0], bound=int(exact.max()), columns=1)

    def keys(self, rows: Block) -> Weights:
        """Return the number in the row's only column."""
        return rows[:, 0]

    def rows_of(self, items: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the items."""
        return np.asarray(items)

    def totals(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return table · weights."""
        return np.asarray(self.table @ weights)

    def reweight(self, weights: Weights, query: int, exponent: float) -> None:
        """Multiply by the exponential of the query's row."""
        weights *= np.exp(exponent / self.bound * self.table[query])


def _set(workload: Workload, universe: int, queries: int, *, bound: int, columns: int) -> None:
    """Set the derived fields of a frozen workload."""
    for name, entry in (
        *(("universe", universe), ("queries", queries)),
        *(("bound", bound), ("columns", columns)),
    ):
        object.__setattr__(workload, name, entry)


def workload_assumed(workload: Workload) -> tuple[str, ...]:
    """Return the premises that a certificate lists as caller-asserted: none for built-in classes.

    The type decides, since an attribute of a caller's class could hold anything.
    """
    return () if type(workload) in (Marginals, LinearQueries) else (WORKLOAD,)


def source_of(rows: Any, workload: Workload) -> Source:
    """Convert rows to a `Source` and check their shape against the workload, without reading them.

    The workload's `keys` are tried on made-up rows.
    """
    source = as_source(rows)
    require(
        len(source.columns) == workload.columns and source.rows >= 1,
        "rows",
        f"{source.rows} rows of {len(source.columns)} columns",
        expected=f"at least 1 row of {workload.columns} column(s)",
        remedy="pass the columns of the workload, in its order",
    )
    try_function(workload.keys, workload.columns, width=1)
    return source


def histogram(rows: Rows, workload: Workload) -> Counts:
    """Return the number of rows of each item; an invalid row counts as item 0.

    Replacing a row lowers one count by one and raises another, so the total of a query has
    sensitivity `workload.bound`.
    """
    # n is public under replace-one, so counts must add up to n: invalid rows cannot be dropped
    return rows.counts(workload.keys, workload.universe, invalid=0)


def _walsh(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the Walsh coefficients ŵ(U) = Σ_x (-1)^{|x & U|} w(x) of all U.

    Pairs are added in a fixed order, not by a NumPy reduction whose order depends on the memory
    layout, so that equal weights give equal bits.
    """
    values: npt.NDArray[Any] = weights.copy()
    half = 1
    while half < len(values):
        pairs = values.reshape(-1, 2, half)
        first, second = pairs[:, 0, :], pairs[:, 1, :]
        total = first + second
        np.subtract(first, second, out=second)
        first[...] = total
        half *= 2
    return values
