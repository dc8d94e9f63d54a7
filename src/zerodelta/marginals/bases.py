"""Orthogonal coefficients of tables, shared by all larger tables; and which of them are alike.

For a column of c categories, c - 1 integer functions that add up to 0 are orthogonal to each other;
products over the columns of a set U are the coefficients of U. For two categories they are the
signs ±1, the Walsh coefficients. A table of S is a sum over the sets U within S.

`Transform` multiplies fast with orthonormal functions of several axes: small axes by matrices, up
to 64 categories at once. A large axis for which any orthonormal functions will do has those of the
reflection that swaps the first unit vector with the constant one: it takes two passes, where a
matrix would take one for each category.
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

MOST_CATEGORIES = 1 << 11
"""Of columns whose functions are written out: a matrix of 32 MB."""
LARGEST_MATRIX = 64


@value(eq=False)
class Span:
    """What one row can add to each coefficient of a set of columns: from `low` to `high`.

    A row with an out-of-domain value in one of these columns adds 0, which lies within. `norms` are
    the Euclidean norms of the functions over all cells.
    """

    low: npt.NDArray[np.object_]
    high: npt.NDArray[np.object_]
    norms: Floats

    @property
    def width(self) -> npt.NDArray[np.object_]:
        """How far replacing one row can move each coefficient."""
        return np.asarray(self.high - self.low)


@lru_cache(maxsize=32)
def column_basis(categories: int) -> Integers:
    """Return a square integer matrix with orthogonal rows, the first of ones.

    Powers of 2 have the signs of Hadamard's matrix, else Helmert's functions 1..1, -j, 0..0.

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

    NumPy multiplies integers without BLAS and without floats.

    >>> coefficients(np.array([5, 1, 2, 2]), (2, 2)).tolist()
    [[4]]
    """
    values = table.reshape(shape)
    for axis, size in enumerate(shape):
        functions, before, after = column_basis(size)[1:], values.shape[:axis], shape[axis + 1 :]
        blocks = values.reshape(math.prod(before), size, math.prod(after))
        values = (functions @ blocks).reshape(*before, len(functions), *after)
    return values


@lru_cache(maxsize=1024)
def spans(shape: tuple[int, ...]) -> Span:
    """Return the range and the norm of every coefficient of columns of these sizes.

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
    """Return the sums over all axes but these, which come in this order.

    >>> margin(np.arange(8.0).reshape(2, 2, 2), (2, 1))
    array([[ 4.,  8.],
           [ 6., 10.]])
    """
    names = string.ascii_letters
    wanted = "".join(names[axis] for axis in axes)
    return np.asarray(np.einsum(f"{names[: cells.ndim]}->{wanted}", cells))


@lru_cache(maxsize=32)
def orthonormal(categories: int) -> Floats:
    """Return the basis of a column with rows of length 1."""
    basis = column_basis(categories).astype(np.float64)
    scaled: Floats = basis / np.sqrt((basis**2).sum(axis=1, keepdims=True))
    return scaled


@final
@dataclass(frozen=True, slots=True)
class AxisFunctions:
    """`size` functions: those of `orthonormal`, or of the reflection."""

    size: int
    reflected: bool = False


@final
class Transform:
    """All products of functions of the axes, or the `used` ones of them, by flat place.

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
        """Leave out those functions of each block that no used product has."""
        blocks, places = [], []
        sizes = [block.size for block in self._blocks]
        for block, of_block in zip(self._blocks, np.unravel_index(used, sizes), strict=True):
            if block.functions is None:
                blocks.append(block)
                places.append(of_block)
            else:
                kept, place = np.unique(of_block, return_inverse=True)
                blocks.append(_Block(block.size, block.functions[kept]))
                places.append(place.reshape(-1))
        self._blocks = blocks
        self._places = np.ravel_multi_index(places, [block.rows for block in blocks])

    def read(self, values: Floats) -> Floats:
        """Return the coefficients of one number for each cell."""
        before, after = 1, values.size
        for block in self._blocks:
            after //= block.size
            values = block.applied(values.reshape(before, block.size, after))
            before *= block.rows
        chosen: Floats = values.reshape(-1)[self._places]
        return chosen

    def spread(self, coefficients: Floats) -> Floats:
        """Return for each cell the sum of coefficients times functions: the transpose of `read`."""
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
    """Functions of consecutive axes, as rows; None for a reflection."""

    size: int
    functions: Floats | None

    @property
    def rows(self) -> int:
        return self.size if self.functions is None else len(self.functions)

    def transposed(self) -> _Block:
        return self if self.functions is None else _Block(self.rows, self.functions.T)

    def applied(self, values: Floats) -> Floats:
        """Return the products along the middle of three axes."""
        if self.functions is None:
            return _reflected(values)
        if values.shape[2] == 1:  # one product of matrices, not many with vectors
            return np.asarray(values[:, :, 0] @ self.functions.T)
        return np.asarray(self.functions @ values)


def _reflected(values: Floats) -> Floats:
    """Return (1 - 2vvᵀ/vᵀv)·values along the middle axis, v = constant - first unit vector."""
    root = math.sqrt(values.shape[1])
    along = values.sum(axis=1) / root - values[:, 0]
    found = values - (along / (root - 1))[:, None]
    found[:, 0] = values[:, 0] + along
    return np.asarray(found)


@lru_cache(maxsize=256)
def _blocks(axes: tuple[AxisFunctions, ...]) -> tuple[_Block, ...]:
    """Return products of consecutive matrices of up to 64 categories, and reflections."""
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
    """Return matrices whose product, by Kronecker, is that of the axis: Hadamard's has factors."""
    if axis.reflected:
        return [_Block(axis.size, None)]
    pairs = axis.size.bit_length() - 1
    if axis.size == 1 << pairs:
        return [_Block(2, orthonormal(2))] * pairs
    return [_Block(axis.size, orthonormal(axis.size))]


# -- Orbits ---------------------------------------------------------------------------------------
# Orbits: sets of columns that no forecast can tell apart, so that plans need not list them all.
#
# Two columns of one size are alike if swapping them maps the workload to itself. Such swaps
# generate all permutations of columns that are alike: (i k) = (i j)(j k)(i j) shows that being
# alike is transitive. So a table stands for all sets with as many columns of each class; they are
# all tables. One table of 20 binary columns and all its pairs have a million sets of columns, and
# 20 orbits. Sets of the same sizes within the same tables are one orbit, too: those within 22
# prefixes of the columns are told apart by their last column and their number.

_MOST_EFFORT = 1 << 19
"""Orbits of tables around all sets that are looked at: a few seconds."""
_FEW = 8
"""Sets within so few orbits of tables only grow by classes that these have."""


@value
class Orbit:
    """`count` sets of columns that are like `example`, and the tables around that one."""

    example: Columns
    count: int
    tables: tuple[tuple[Columns, int], ...]
    """Of each orbit of tables around the example one (of that orbit), and how many are around."""
    around: int
    """The number of all tables around it."""
    table_cells: float
    """The number of cells of these tables, on average."""
    cells: int
    """The number N_U of cells of the example's own table."""
    size: int
    """The number of coefficients of the example."""
    importance: float
    """Σ_{S⊇U} N_U/N_S: how much a unit of variance in U adds to all cells together."""

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
    """Return all orbits of sets of columns within a table but the empty one, small ones first.

    Too many are refused, by the domain and the workload alone.

    >>> from zerodelta.marginals.domain import as_domain, as_workload
    >>> domain = as_domain({"a": 2, "b": 2, "c": 3})
    >>> [(k.example, k.count) for k in orbits(domain, as_workload([("a", "b", "c")], domain))]
    [((0,), 2), ((2,), 1), ((0, 1), 1), ((0, 2), 2), ((0, 1, 2), 1)]
    """
    classes = _classes(domain, workload)
    home = {column: place for place, some in enumerate(classes) for column in some}
    tables: dict[_Counts, Columns] = {}
    for table in workload.tables:
        counts = Counter(home[column] for column in table)
        tables.setdefault(tuple(sorted(counts.items())), table)
    each = [(table, domain.cells_of(table)) for table in tables.values()]
    found = [_orbit(domain, sets, each) for sets in _sets(domain, classes, list(tables))]
    return tuple(sorted(found, key=lambda orbit: (orbit.order, orbit.example)))


_Counts: TypeAlias = tuple[tuple[int, int], ...]
"""How many columns of which class, for classes of which there are some."""
_Key: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""The sizes of columns, and how many tables of each orbit are around."""


@final
@dataclass(kw_only=True, slots=True)
class _Sets:
    """`count` sets of columns, one of them, and how many tables of each orbit are around it."""

    example: Columns
    count: int
    tables: dict[int, int]

    def grown(self, some: Columns, size: int, of_class: Mapping[int, int]) -> _Sets:
        """Return the sets with more columns, `some` of a new class of this size."""
        more = len(some)
        return _Sets(
            example=self.example + some,
            count=self.count * math.comb(size, more),
            tables={
                table: self.tables[table]
                * math.comb(size - more, of_class[table] - more)
                // math.comb(size, of_class[table])
                for table in sorted(self.tables.keys() & of_class.keys())
                if of_class[table] >= more
            },
        )


def _sets(domain: Domain, classes: Sequence[Columns], tables: Sequence[_Counts]) -> Iterator[_Sets]:
    """Return all sets of columns within tables but the empty one.

    They grow class by class; those of the same sizes with the same tables around are put together.
    """
    of_class: list[dict[int, int]] = [{} for _ in classes]
    for i, counts in enumerate(tables):
        for place, most in counts:
            of_class[place][i] = most
    # before each class: the sets of columns of earlier ones; at last all of them
    waiting: list[dict[_Key, _Sets]] = [{} for _ in range(len(classes) + 1)]

    def put(key: _Key, sets: _Sets, place: int) -> None:
        if len(sets.tables) <= _FEW:
            later = [p for table in sets.tables for p, _ in tables[table] if p >= place]
            place = min(later, default=len(classes))
        same = waiting[place].setdefault(key, sets)
        if same is not sets:
            same.count += sets.count

    numbers = [math.prod(math.comb(len(classes[p]), most) for p, most in some) for some in tables]
    put(((), ()), _Sets(example=(), count=1, tables=dict(enumerate(numbers))), 0)
    effort = 0
    for place, columns in enumerate(classes):
        for key, sets in waiting[place].items():
            for more in range(1, len(columns) + 1):
                grown = sets.grown(columns[:more], len(columns), of_class[place])
                if not grown.tables:
                    break
                sizes = tuple(sorted(domain.shape(grown.example)))
                put((sizes, tuple(grown.tables.items())), grown, place + 1)
                effort += 1 + len(grown.tables)
                require(
                    effort <= _MOST_EFFORT,
                    "workload",
                    f"{sum(numbers)} tables",
                    expected="tables that have fewer orbits of sets of columns in common: the "
                    "error of each orbit is forecast, and here that would take too long",
                    remedy="ask for fewer or smaller tables, or only for one that has them all",
                )
            put(key, sets, place + 1)
        waiting[place] = {}
    return (sets for sets in waiting[-1].values() if sets.example)


def _orbit(domain: Domain, sets: _Sets, tables: Sequence[tuple[Columns, int]]) -> Orbit:
    example = tuple(sorted(sets.example))
    cells = domain.cells_of(example)
    near = [(*tables[i], number) for i, number in sets.tables.items()]
    around = sum(sets.tables.values())
    return Orbit(
        example=example,
        count=sets.count,
        tables=tuple((table, number) for table, _, number in near),
        around=around,
        table_cells=sum(size * number for _, size, number in near) / around,
        cells=cells,
        size=math.prod(categories - 1 for categories in domain.shape(example)),
        importance=math.fsum(number * cells / size for _, size, number in near),
    )


def _classes(domain: Domain, workload: TableWorkload) -> list[Columns]:
    """Return the columns of tables, those that are alike together.

    Either no two columns of a class share a table, and then they complete the same rests to tables;
    or all do, and then a column is compared with the first ones of classes around it.
    """
    tables, sizes = set(map(frozenset, workload.tables)), domain.sizes
    around: dict[int, list[frozenset[int]]] = defaultdict(list)
    for table in tables:
        for column in table:
            around[column].append(table)
    classes: dict[int, list[int]] = {}  # by the first column
    apart: dict[tuple[int, frozenset[frozenset[int]]], int] = {}
    for column in sorted(around):
        size, rests = sizes[column], frozenset(table - {column} for table in around[column])
        first = apart.setdefault((size, rests), column)
        if first == column:
            near = sorted(classes.keys() & frozenset().union(*rests))
            first = next(
                (
                    other
                    for other in near
                    if sizes[other] == size
                    and len(around[other]) == len(rests)
                    and all(other in rest or rest | {other} in tables for rest in rests)
                ),
                column,
            )
        classes.setdefault(first, []).append(column)
    return [tuple(some) for some in classes.values()]
