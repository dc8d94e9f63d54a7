"""Exact running sums in 64 bits and beyond, keys as codes, and sums of powers by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.rowwise import Block
from zerodelta.exact.exact_sums import INT64_MOST, IntegerArray
from zerodelta.exact.fixed_point import FixedPoint

CACHED = 1 << 14
"""Keys that are looked at while they are in the cache."""


@final
class Keys:
    """One column of a batch as it is stored: integers, or places in a short list of values."""

    __slots__ = ("_places", "_values")

    def __init__(
        self, places: npt.NDArray[Any], values: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._places, self._values = places, values

    def __len__(self) -> int:
        return len(self._places)

    def counts(self, size: int, invalid: int | None) -> npt.NDArray[np.int64]:
        """Return how many rows have each key 0..size-1; all others count as `invalid`, if given.

        >>> Keys(np.array([0, 1, 1, 0]), np.array([2.0, np.nan])).counts(3, None)
        array([0, 0, 2])
        """
        found = np.zeros(size, dtype=np.int64)
        if self._values is None:
            for start in range(0, len(self), CACHED):
                part = codes_of(self._places[start : start + CACHED], size, invalid)
                found += np.bincount(part, minlength=size)
            return found
        listed = len(self._values)
        rows = np.zeros(listed, dtype=np.int64)
        for start in range(0, len(self), CACHED):
            rows += np.bincount(self._places[start : start + CACHED], minlength=listed)[:listed]
        codes = codes_of(self._values, size, size if invalid is None else invalid)
        inside = codes < size
        np.add.at(found, codes[inside], rows[inside])
        return found


_LIMB = 31
"""Bits of the lower half of numbers whose sums do not fit a float."""

_FEW = 1 << 16
"""Rows that are worth a call."""


@final
class RunningSum:
    """An exact sum in 64 bits, and in Python integers beyond what these hold."""

    __slots__ = ("_bound", "_keyed", "_many", "_part", "_room", "_sums")

    def __init__(
        self,
        part: Callable[[Block], IntegerArray],
        shape: tuple[int, ...],
        bound: int,
        *,
        keyed: bool,
    ) -> None:
        self._part, self._bound, self._keyed = part, bound, keyed
        self._sums: npt.NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self._room = INT64_MOST // bound
        """How many more rows fit, whatever is in them."""
        self._many: npt.NDArray[np.object_] | None = None

    def add(self, block: Block) -> None:
        """Add what the rows of a block have."""
        added: npt.NDArray[Any] = self._part(block)
        if len(block) > self._room:
            self._many, self._room = self._exact(), INT64_MOST // self._bound
            self._sums[...] = 0
        if added.dtype == np.object_:
            self._many = added if self._many is None else self._many + added
        elif self._keyed:
            np.add.at(self._sums, added, 1)
        else:
            self._sums += added
        self._room -= len(block)

    def total(self) -> IntegerArray:
        """Return the sum."""
        return self._sums if self._many is None else self._exact()

    def _exact(self) -> npt.NDArray[np.object_]:
        known = self._sums.astype(np.object_)
        return known if self._many is None else known + self._many


def codes_of(found: npt.NDArray[Any], size: int, invalid: int | None) -> npt.NDArray[np.int64]:
    """Return the keys 0..size-1 among some numbers, and `invalid` for all others, or nothing."""
    with np.errstate(all="ignore"):
        codes = found.astype(np.int64, copy=False)
    valid = codes.view(np.uint64) < np.uint64(size)
    if found.dtype.kind == "f":
        valid &= codes == found  # NaN and fractions: not valid
    if valid.all():
        return codes
    return codes[valid] if invalid is None else np.where(valid, codes, invalid)


def group_codes(
    columns: Iterable[npt.NDArray[np.float64]], sizes: Sequence[int], rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the group of each row, by columns of codes 0..size-1; and which rows are in one.

    >>> group_codes([np.array([1.0, 0.0]), np.array([2.0, np.nan])], (2, 3), rows=2)
    (array([5, 0]), array([ True, False]))
    """
    codes, inside = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    for column, size in zip(columns, sizes, strict=True):
        known = (column >= 0) & (column < size)  # NaN: in no group
        if not known.all():
            column = np.where(known, column, 0)
            inside &= known
        codes *= size
        codes += column.astype(np.int64)
    return codes, inside


def add_powers(
    found: IntegerArray,
    codes: npt.NDArray[np.int64],
    values: Block,
    lattice: FixedPoint | None,
    degree: int,
) -> None:
    """Add to each group the number of its values, and the sums of their powers, exactly."""
    present = ~np.isnan(values[:, 0])
    if not present.all():
        codes, values = codes[present], values[present]
    found[:, 1] = np.bincount(codes, minlength=len(found))
    if lattice is None:
        return
    integers = lattice.quantize(values)[:, 0]
    for power in range(1, degree + 1):
        bound = lattice.steps**power
        if bound >= 1 << 62:
            np.add.at(found[:, 1 + power], codes, integers.astype(np.object_) ** power)
        else:
            found[:, 1 + power] += _by_group(integers**power, bound, codes, len(found))


def _by_group(
    added: npt.NDArray[np.int64], bound: int, codes: npt.NDArray[np.int64], groups: int
) -> IntegerArray:
    """Return the exact sum of each group, in 64 bits if these hold it whatever is in the rows."""
    fits = len(added) * bound <= INT64_MOST
    if groups == 1 and fits:
        return np.array([added.sum()])
    most = (1 << 53) // bound
    if most < _FEW:  # sums of floats are exact for halves of the bits
        high = _by_group(added >> _LIMB, (bound >> _LIMB) + 1, codes, groups)
        low = _by_group(added & ((1 << _LIMB) - 1), 1 << _LIMB, codes, groups)
        wide: Any = high if fits else high.astype(np.object_)
        joined: IntegerArray = wide * (1 << _LIMB) + low
        return joined
    total: IntegerArray = np.zeros(groups, dtype=np.int64)
    for start in range(0, len(codes), most):
        part = slice(start, start + most)
        weights = added[part].astype(np.float64)
        total += np.bincount(codes[part], weights=weights, minlength=groups).astype(np.int64)
    return total
