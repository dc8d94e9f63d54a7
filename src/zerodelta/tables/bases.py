"""Orthogonal coefficients of tables: each set of columns has its own, shared by all larger tables.

For a column of c categories, c - 1 integer functions that add up to 0 are orthogonal to each other;
products over the columns of a set U are the coefficients of U. For two categories they are the
signs ±1, the Walsh coefficients. A table of S is a sum over the sets U within S.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "MOST_CATEGORIES",
    "Floats",
    "Span",
    "coefficients",
    "column_basis",
    "margin",
    "orthonormal",
    "spans",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

MOST_CATEGORIES = 1 << 11
"""Of columns whose functions are written out: a matrix of 32 MB."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Span:
    """What one row can add to each coefficient of a set of columns: from `low` to `high`.

    A row with a stray value in one of these columns adds 0, which lies within. `norms` are the
    Euclidean norms of the functions over all cells.
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
