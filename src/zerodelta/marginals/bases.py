"""Compute orthogonal coefficients of tables, and group sets of columns into orbits.

A column of c categories has c - 1 orthogonal integer functions that add up to 0. Products of these
functions over the columns of a set U are the coefficients of U; for two categories they are the
signs ±1, the Walsh coefficients. A table of S is determined by the coefficients of the sets U ⊆ S,
so tables share coefficients.

`Transform` multiplies fast by orthonormal functions of several axes: small axes by matrices, up to
64 categories at once. A large axis that may use any orthonormal functions uses the reflection that
swaps the first unit vector and the constant one: two passes over the data, where a matrix needs one
for each category.
"""

from __future__ import annotations

import math
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.marginals.domain import Columns, Domain, TableWorkload
from zerodelta.value import value

MAXIMUM_CATEGORIES = 1 << 11
"""The most categories of a column whose functions are stored as a matrix: 32 MB."""
LARGEST_MATRIX = 64
"""The most categories that are multiplied by one matrix."""


@value(eq=False)
class Span:
    """The range, from `low` to `high`, of a row's summand in each coefficient of a set of columns.

    A row with an out-of-domain value in one of these columns adds 0, which is in the range. `norms`
    are the Euclidean norms of the functions over all cells.
    """

    low: npt.NDArray[np.object_]
    high: npt.NDArray[np.object_]
    norms: Floats

    @property
    def width(self) -> npt.NDArray[np.object_]:
        """The sensitivity of each coefficient to a replaced row."""
        return np.asarray(self.high - self.low)


@lru_cache(maxsize=32)
def column_basis(categories: int) -> Integers:
    """Return a square integer matrix with orthogonal rows, the first all ones.

    Powers of 2 have Hadamard's matrix of signs, other sizes Helmert's rows 1..1, -j, 0..0.

    >>> column_basis(3).tolist()
    [[1, 1, 1], [1, -1, 0], [1, 1, -2]]
    """
    if categories & (categories - 1) == 0:
        basis = np.ones((1, 1), dtype=np.int64)
        while len(basis) < categories:
            basis = np.block([[basis, basis], [basis, -basis]])
    else:
        basis = np.ones((categories, categories), dtype=np.int64)
        for j in range(1, categories):
            basis[j, j] = -j
            basis[j, j + 1 :] = 0
    basis.setflags(write=False)
    return basis


def coefficients(table: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the coefficients of the set of *all* columns of a table, exact for integers.

    >>> coefficients(np.array([5, 1, 2, 2]), (2, 2)).tolist()
    [[4]]
    """
    values = table.reshape(shape)
    for axis, size in enumerate(shape):
        functions, before, after = column_basis(size)[1:], values.shape[:axis], shape[axis + 1 :]
        blocks = values.reshape(math.prod(before), size, math.prod(after))
        # NumPy multiplies integers without BLAS and without floats
        values = (functions @ blocks).reshape(*before, len(functions), *after)
    return values


@lru_cache(maxsize=1024)
def spans(shape: tuple[int, ...]) -> Span:
    """Return the range and the norm of each coefficient of columns with these sizes.

    >>> spans((2, 3)).width.tolist(), spans((4,)).norms.tolist()
    ([[2, 4]], [2.0, 2.0, 2.0])
    """
    sizes = tuple(size - 1 for size in shape)
    low, high = np.ones(sizes, dtype=object), np.ones(sizes, dtype=object)
    norms = np.ones(sizes)
    for axis, size in enumerate(shape):
        functions = column_basis(size)[1:]
        index = tuple(slice(None) if a == axis else None for a in range(len(shape)))
        ends = [end.astype(object)[index] for end in (functions.min(axis=1), functions.max(axis=1))]
        products = [end * other for end in ends for other in (low, high)]
        low = np.minimum.reduce(np.broadcast_arrays(*products))
        high = np.maximum.reduce(np.broadcast_arrays(*products))
        norms = norms * np.sqrt((functions.astype(np.float64) ** 2).sum(axis=1))[index]
    return Span(low=low, high=high, norms=norms)


def margin(cells: Floats, axes: Sequence[int]) -> Floats:
    """Sum over all axes but `axes`, and return the array with those axes in this order.

    >>> margin(np.arange(8.0).reshape(2, 2, 2), (2, 1))
    array([[ 4.,  8.],
           [ 6., 10.]])
    """
    names = string.ascii_letters
    kept = "".join(names[axis] for axis in axes)
    return np.asarray(np.einsum(f"{names[: cells.ndim]}->{kept}", cells))


@lru_cache(maxsize=32)
def orthonormal(categories: int) -> Floats:
    """Return `column_basis` with rows scaled to length 1."""
    basis = column_basis(categories).astype(np.float64)
    scaled: Floats = basis / np.sqrt((basis**2).sum(axis=1, keepdims=True))
    return scaled


@final
@dataclass(frozen=True, slots=True)
class AxisFunctions:
    """The `size` orthonormal functions of an axis: those of `orthonormal`, or the reflection."""

    size: int
    reflected: bool = False


@final
class Transform:
    """The linear map by all products of functions of the axes, or by those with flat index `used`.

    >>> two = Transform([AxisFunctions(2), AxisFunctions(2)])
    >>> two.read(np.array([5.0, 1.0, 2.0, 2.0]))
    array([5., 2., 1., 2.])
    >>> Transform([AxisFunctions(4, True)]).spread(np.array([1.0, 0.0, 0.0, 0.0]))
    array([0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, axes: Sequence[AxisFunctions], used: Integers | None = None) -> None:
        self._blocks: Sequence[_Block] = _blocks(tuple(axes))
        self._places: Integers | slice = slice(None)
        if used is not None:
            self._keep(used)

    def _keep(self, used: Integers) -> None:
        """Drop the functions of each block that occur in no used product."""
        blocks, places = [], []
        sizes = [block.size for block in self._blocks]
        for block, indices in zip(self._blocks, np.unravel_index(used, sizes), strict=True):
            if block.functions is None:
                blocks.append(block)
                places.append(indices)
            else:
                kept, place = np.unique(indices, return_inverse=True)
                blocks.append(_Block(block.size, block.functions[kept]))
                places.append(place.reshape(-1))
        self._blocks = blocks
        self._places = np.ravel_multi_index(places, [block.rows for block in blocks])

    def read(self, values: Floats) -> Floats:
        """Return the coefficients of a table: the sums over cells of values times functions."""
        before, after = 1, values.size
        for block in self._blocks:
            after //= block.size
            values = block.applied(values.reshape(before, block.size, after))
            before *= block.rows
        chosen: Floats = values.reshape(-1)[self._places]
        return chosen

    def spread(self, coefficients: Floats) -> Floats:
        """Return a table: in each cell the sum of coefficients times functions.

        This is the transpose of `read`, and its inverse if all functions are used.
        """
        before, after = math.prod(block.rows for block in self._blocks), 1
        values = np.zeros(before)
        values[self._places] = coefficients
        for block in reversed(self._blocks):
            before //= block.rows
            values = block.transposed().applied(values.reshape(before, block.rows, after))
            after *= block.size
        return values.reshape(-1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The functions of consecutive axes as the rows of a matrix; None for a reflection."""

    size: int
    functions: Floats | None

    @property
    def rows(self) -> int:
        """The number of functions."""
        return self.size if self.functions is None else len(self.functions)

    def transposed(self) -> _Block:
        """Return the block of the transposed matrix; a reflection is symmetric."""
        return self if self.functions is None else _Block(self.rows, self.functions.T)

    def applied(self, values: Floats) -> Floats:
        """Multiply values by the block's functions along the middle of three axes."""
        if self.functions is None:
            return _reflected(values)
        if values.shape[2] == 1:  # one product of matrices is faster than many with vectors
            return np.asarray(values[:, :, 0] @ self.functions.T)
        return np.asarray(self.functions @ values)


def _reflected(values: Floats) -> Floats:
    """Return (1 - 2vvᵀ/vᵀv)·values along the middle axis, v = constant - first unit vector."""
    root = math.sqrt(values.shape[1])
    projection = values.sum(axis=1) / root - values[:, 0]
    reflected = values - (projection / (root - 1))[:, None]
    reflected[:, 0] = values[:, 0] + projection
    return np.asarray(reflected)


@lru_cache(maxsize=256)
def _blocks(axes: tuple[AxisFunctions, ...]) -> tuple[_Block, ...]:
    """Join consecutive small matrices to Kronecker products of up to 64 categories."""
    blocks: list[_Block] = []
    for axis in axes:
        for factor in _factors(axis):
            last = blocks[-1].functions if blocks else None
            matrix = factor.functions
            if last is None or matrix is None or last.size * matrix.size > LARGEST_MATRIX**2:
                blocks.append(factor)
            else:
                joined = np.asarray(np.kron(last, matrix), dtype=np.float64)
                blocks[-1] = _Block(len(joined), joined)
    return tuple(blocks)


def _factors(axis: AxisFunctions) -> list[_Block]:
    """Return matrices whose Kronecker product is that of the axis; only Hadamard's has several."""
    if axis.reflected:
        return [_Block(axis.size, None)]
    pairs = axis.size.bit_length() - 1
    if axis.size == 1 << pairs:
        return [_Block(2, orthonormal(2))] * pairs
    return [_Block(axis.size, orthonormal(axis.size))]


# -- Orbits ---------------------------------------------------------------------------------------
# An orbit is a group of sets of columns with equal forecasts, so that plans need not list all sets.
#
# Two columns of equal size are alike if swapping them maps the workload to itself. Being alike is
# transitive, as (i k) = (i j)(j k)(i j), so columns fall into classes, and all permutations within
# classes map the workload to itself. Hence a table represents all sets with the same number of
# columns of each class: these are tables, too. One table of 20 binary columns has a million subsets
# and 20 orbits. Sets of equal sizes within the same tables form one orbit, too.

_MAXIMUM_EFFORT = 1 << 19
"""The limit on the work of `_sets`, in orbits of tables: a few seconds."""
_FEW_ORBITS = 8
"""Sets within at most this many orbits of tables skip classes that do not occur in them."""


@value
class Orbit:
    """`count` sets of columns equivalent to `example`, and the tables that contain it."""

    example: Columns
    count: int
    tables: tuple[tuple[Columns, int], ...]
    """A representative of each orbit of tables, and how many of its tables contain the example."""
    table_count: int
    """The number of tables that contain the example."""
    table_cells: float
    """The mean number of cells of these tables."""
    cells: int
    """The number N_U of cells of the table of the example."""
    size: int
    """The number of coefficients of the example."""
    importance: float
    """Σ_{S⊇U} N_U/N_S: the sum over all cells of the variance caused by variance 1 in U."""

    @property
    def order(self) -> int:
        """The number of columns."""
        return len(self.example)

    @property
    def coefficients(self) -> int:
        """The number of coefficients of all sets of this orbit."""
        return self.count * self.size


@lru_cache(maxsize=8)
def orbits(domain: Domain, workload: TableWorkload) -> tuple[Orbit, ...]:
    """Return all orbits of nonempty subsets of tables, those of small sets first.

    A workload with too many orbits is refused; domain and workload alone decide.

    >>> from zerodelta.marginals.domain import as_domain, as_workload
    >>> domain = as_domain({"a": 2, "b": 2, "c": 3})
    >>> [(k.example, k.count) for k in orbits(domain, as_workload([("a", "b", "c")], domain))]
    [((0,), 2), ((2,), 1), ((0, 1), 1), ((0, 2), 2), ((0, 1, 2), 1)]
    """
    classes = _classes(domain, workload)
    class_of = {column: i for i, columns in enumerate(classes) for column in columns}
    tables: dict[_Counts, Columns] = {}
    for table in workload.tables:
        counts = Counter(class_of[column] for column in table)
        tables.setdefault(tuple(sorted(counts.items())), table)
    representatives = [(table, domain.cells_of(table)) for table in tables.values()]
    all_orbits = [
        _orbit(domain, sets, representatives) for sets in _sets(domain, classes, list(tables))
    ]
    return tuple(sorted(all_orbits, key=lambda orbit: (orbit.order, orbit.example)))


_Counts: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of a class and the number of its columns in a table, for classes that occur in it."""
_Key: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""The sizes of the columns of a set, and the number of tables of each orbit that contain it."""


@final
@dataclass(kw_only=True, slots=True)
class _Sets:
    """`count` equivalent sets of columns, with an example and the tables that contain it."""

    example: Columns
    count: int
    tables: dict[int, int]

    def grown(self, columns: Columns, size: int, of_class: Mapping[int, int]) -> _Sets:
        """Add columns of a class with `size` columns to the sets.

        `of_class` is the number of columns of that class in a table of each orbit.
        """
        added = len(columns)
        return _Sets(
            example=self.example + columns,
            count=self.count * math.comb(size, added),
            # of a table's choices of columns of the class, those that contain the added ones
            tables={
                table: self.tables[table]
                * math.comb(size - added, of_class[table] - added)
                // math.comb(size, of_class[table])
                for table in sorted(self.tables.keys() & of_class.keys())
                if of_class[table] >= added
            },
        )


def _sets(domain: Domain, classes: Sequence[Columns], tables: Sequence[_Counts]) -> Iterator[_Sets]:
    """Yield every nonempty set of columns that a table contains, with equivalent sets merged.

    Sets grow class by class. Sets of equal sizes that are in the same tables are merged.
    """
    of_class: list[dict[int, int]] = [{} for _ in classes]
    for i, counts in enumerate(tables):
        for place, number in counts:
            of_class[place][i] = number
    # at index i the sets of columns of the first i classes, at the end all sets
    waiting: list[dict[_Key, _Sets]] = [{} for _ in range(len(classes) + 1)]

    def put(key: _Key, sets: _Sets, place: int) -> None:
        """Queue sets before the first class that changes them; equal keys are merged."""
        if len(sets.tables) <= _FEW_ORBITS:
            later = [p for table in sets.tables for p, _ in tables[table] if p >= place]
            place = min(later, default=len(classes))
        merged = waiting[place].setdefault(key, sets)
        if merged is not sets:
            merged.count += sets.count

    table_counts = [
        math.prod(math.comb(len(classes[p]), number) for p, number in counts) for counts in tables
    ]
    put(((), ()), _Sets(example=(), count=1, tables=dict(enumerate(table_counts))), 0)
    effort = 0
    for place, columns in enumerate(classes):
        for key, sets in waiting[place].items():
            for added in range(1, len(columns) + 1):
                grown = sets.grown(columns[:added], len(columns), of_class[place])
                if not grown.tables:
                    break
                sizes = tuple(sorted(domain.shape(grown.example)))
                put((sizes, tuple(grown.tables.items())), grown, place + 1)
                effort += 1 + len(grown.tables)
                require(
                    effort <= _MAXIMUM_EFFORT,
                    "workload",
                    f"{sum(table_counts)} tables",
                    expected="tables with fewer orbits of sets of columns: the error of each orbit "
                    "is forecast, and here that would take too long",
                    remedy="ask for fewer or smaller tables, or for one table that contains them "
                    "all",
                )
            put(key, sets, place + 1)
        waiting[place] = {}
    return (sets for sets in waiting[-1].values() if sets.example)


def _orbit(domain: Domain, sets: _Sets, tables: Sequence[tuple[Columns, int]]) -> Orbit:
    """Return the orbit of equivalent sets; `tables` are representatives with their cells."""
    example = tuple(sorted(sets.example))
    cells = domain.cells_of(example)
    containing = [(*tables[i], number) for i, number in sets.tables.items()]
    table_count = sum(sets.tables.values())
    return Orbit(
        example=example,
        count=sets.count,
        tables=tuple((table, number) for table, _, number in containing),
        table_count=table_count,
        table_cells=sum(size * number for _, size, number in containing) / table_count,
        cells=cells,
        size=math.prod(categories - 1 for categories in domain.shape(example)),
        importance=math.fsum(number * cells / size for _, size, number in containing),
    )


def _classes(domain: Domain, workload: TableWorkload) -> list[Columns]:
    """Return classes of columns that may be exchanged without changing the set of tables.

    Either no two columns of a class share a table; then removing them from their tables leaves the
    same sets, the `remainders`. Or all do; then a column is compared with the first column of each
    class that shares a table with it.
    """
    tables, sizes = set(map(frozenset, workload.tables)), domain.sizes
    tables_of: dict[int, list[frozenset[int]]] = defaultdict(list)
    for table in tables:
        for column in table:
            tables_of[column].append(table)
    classes: dict[int, list[int]] = {}  # by the first column
    first_with: dict[tuple[int, frozenset[frozenset[int]]], int] = {}
    for column in sorted(tables_of):
        size, remainders = sizes[column], frozenset(table - {column} for table in tables_of[column])
        first = first_with.setdefault((size, remainders), column)
        if first == column:
            neighbors = sorted(classes.keys() & frozenset().union(*remainders))
            first = next(
                (
                    other
                    for other in neighbors
                    if sizes[other] == size
                    and len(tables_of[other]) == len(remainders)
                    and all(other in rest or rest | {other} in tables for rest in remainders)
                ),
                column,
            )
        classes.setdefault(first, []).append(column)
    return [tuple(columns) for columns in classes.values()]
