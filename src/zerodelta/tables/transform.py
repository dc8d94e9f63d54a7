"""Orthonormal functions of several axes together, the first of each axis constant: fast products.

Small axes are multiplied with matrices, up to 64 categories at once. A large axis for which any
orthonormal functions will do has those of the reflection that swaps the first unit vector with the
constant one: it takes two passes, where a matrix would take one for each category.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.tables.bases import Floats, orthonormal

__all__ = ["LARGEST_MATRIX", "AxisFunctions", "Transform"]

Integers: TypeAlias = npt.NDArray[np.int64]

LARGEST_MATRIX = 64


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
