"""Exact sums of powers of quantized columns by group, in one pass over opened rows (theory P)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from zerodelta.data.group_keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, Column, as_function
from zerodelta.data.tallies import add_powers
from zerodelta.exact.exact_sums import INT64_MOST, IntegerArray
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.value import value


def power_sums(
    rows: Rows,
    keys: GroupKeys,
    of: Sequence[Column],
    lattices: Sequence[FixedPoint],
    degrees: Sequence[int],
    *,
    missing: Sequence[bool],
) -> tuple[IntegerArray, list[IntegerArray]]:
    """Return the rows of each group and, for each column, its values and the sums of k, k², ….

    The latter are of shape (groups, 1 + degree); k = lattice.quantize(value). A row without a
    group adds nothing; a value that is not there is no value if it may be `missing`, else 0.
    """
    sums = _PowerSums(
        keys=keys, lattices=tuple(lattices), degrees=tuple(degrees), missing=tuple(missing)
    )
    columns: list[Column] = [*keys.columns, *of]
    if not columns:  # all rows are one group
        columns = [0]
    found = rows.total(sums, columns, shape=(keys.count, sums.width), bound=sums.bound)
    return found[:, 0], [found[:, sums.place(i) : sums.place(i + 1)] for i in range(len(of))]


@value
class _PowerSums:
    """What a block of rows adds; its first columns are keys. Workers of a cluster get a copy."""

    keys: GroupKeys
    lattices: tuple[FixedPoint, ...]
    degrees: tuple[int, ...]
    missing: tuple[bool, ...]

    def place(self, column: int) -> int:
        """Return where the sums of a column begin."""
        return 1 + sum(1 + degree for degree in self.degrees[:column])

    @property
    def width(self) -> int:
        """How many sums a group has."""
        return self.place(len(self.degrees))

    @property
    def bound(self) -> int:
        """The most that a row adds to a sum."""
        powers = zip(self.lattices, self.degrees, strict=True)
        return int(max([1, *(lattice.steps**degree for lattice, degree in powers)]))

    def __call__(self, block: Block) -> IntegerArray:
        codes, inside = self.keys.codes(block)
        if not inside.all():
            codes, block = codes[inside], block[inside]
        groups, first = self.keys.count, len(self.keys.keys)
        fits = len(block) * self.bound <= INT64_MOST
        shape = (groups, self.width)
        found: IntegerArray = np.zeros(shape, np.int64) if fits else np.zeros(shape, np.object_)
        found[:, 0] = np.bincount(codes, minlength=groups)
        for i, degree in enumerate(self.degrees):
            start, column = self.place(i), first + i
            own = found[:, start - 1 : start + 1 + degree]  # the first is not this column's
            values = block[:, column : column + 1]
            if not self.missing[i]:
                values = np.where(np.isnan(values), float(self._center(i)), values)
            add_powers(own, codes, values, self.lattices[i], degree)
        return found

    def _center(self, column: int) -> Fraction:
        center = self.lattices[column].center
        return center[0] if isinstance(center, tuple) else center


def present_counts(rows: Rows, of: Sequence[Column]) -> IntegerArray:
    """Return in how many rows each of some columns has a value, in one pass."""
    columns = as_function(list(of), rows.columns)
    ones = FixedPoint.box(dimension=len(of), lower=-1, upper=1, steps=1)
    return rows.sum(lambda block: (~np.isnan(columns(block))).astype(np.float64), ones)
