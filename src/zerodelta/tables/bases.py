"""Orthogonal coefficients of tables: each set of columns has its own, shared by all larger tables.

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats, Integers
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
