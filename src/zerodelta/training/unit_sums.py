"""The gradients of all rows of a unit, added up and clipped together (theory V2).

Exact integers: a unit's sum is cut to an l2 norm that is checked in integers, rounded up, so that
the sum over all units has sensitivity twice that bound when the rows of one unit are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.rowwise import Block
from zerodelta.exact.arrays import Integers
from zerodelta.training.gradient_sums import Examples

_CHECKED_BITS = 26
"""Norms are compared to so many bits, so that squares add up in 64: for more than 2^10 columns to
fewer."""


def unit_blocks(examples: Examples, *, most: int) -> Iterator[tuple[Block, Integers]]:
    """Yield the rows of whole units, about `most` rows at a time, and where each unit starts.

    Features come first, the label last. Where no units are known each row is one.
    """
    numbered = examples.opened.by_unit()
    if numbered is None:
        for block in examples.blocks():
            yield block, np.arange(len(block))
        return
    table = np.concatenate([np.empty((0, len(numbered.columns))), *numbered.blocks()])
    table = table[np.argsort(table[:, -1], kind="stable")]
    begins = np.flatnonzero(np.diff(table[:, -1], prepend=-1.0))
    place = 0
    while place < len(begins):
        first = begins[place]
        after = max(place + 1, int(np.searchsorted(begins, first + most)))
        last = begins[after] if after < len(begins) else len(table)
        yield table[first:last, examples.order], begins[place:after] - first
        place = after


def clipped_units(gradients: npt.NDArray[Any], starts: Integers, bound: int) -> list[int]:
    """Return the sum over units of their rows' integer gradients, each unit's cut to the bound.

    >>> gradients = np.array([[3, 0], [0, 4], [6, 8]])
    >>> clipped_units(gradients, np.array([0, 2]), 100), clipped_units(gradients, np.array([0]), 10)
    ([9, 12], [5, 7])

    A cut sum is a little shorter than it could be.
    """
    if not len(starts):
        return [0] * gradients.shape[1]
    sums: Integers = np.add.reduceat(gradients.astype(np.int64), starts, axis=0)
    over = ~_inside(sums, bound)
    if over.any():
        cut = sums[over].astype(np.float64)
        lengths = np.sqrt((cut * cut).sum(axis=1, keepdims=True))
        # a little short of the bound, so that it passes the check, which rounds up
        margin = 1 - (math.sqrt(sums.shape[1]) + 2) * 2.0 ** (3 - _bits(sums.shape[1]))
        shrunk = np.trunc(cut * (bound * margin / lengths)).astype(np.int64)
        shrunk[~_inside(shrunk, bound)] = 0  # never, and decided in integers
        sums[over] = shrunk
    return [sum(column) for column in sums.T.tolist()]  # how many units there are is private


def _bits(columns: int) -> int:
    return min(_CHECKED_BITS, (62 - columns.bit_length()) // 2)


def _inside(sums: Integers, bound: int) -> npt.NDArray[np.bool_]:
    """Tell in integers whether ‖sum‖ <= bound certainly holds: entries are rounded up, it down."""
    shift = max(0, bound.bit_length() - _bits(sums.shape[1]))
    rounded = -(-np.abs(sums) >> shift)
    most = bound >> shift
    small: npt.NDArray[np.bool_] = np.logical_and.reduce(rounded <= most, axis=1)
    squares = np.where(small[:, None], rounded, 0) ** 2
    inside: npt.NDArray[np.bool_] = small & (squares.sum(axis=1) <= most**2)
    return inside
