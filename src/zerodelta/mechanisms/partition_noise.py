"""Add noise to the cells of a table at an ε that no number of groups raises (theory P1, P2, G2).

`PartitionNoise` is for cells to which one row adds at most a fixed total (counts, histograms,
`BernsteinCells`), `BlockNoise` for several sums of each group (`ChebyshevBlock`). Both are
calibrated from public numbers by `for_epsilon`, and `apply` adds their noise to exact integer sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zerodelta.data.keys import GroupKeys
from zerodelta.data.pieces import add_powers
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, Column, as_function
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise import discrete_laplace, rounded_count_noise, rounded_k_norm
from zerodelta.exact.noise_tails import CountsLaw, CubeLaw, GeometricLaw
from zerodelta.exact.sums import INT64_MOST, IntegerArray
from zerodelta.mechanisms.sum_noise import ScaledNoise
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.noise import BlockKNorm, PartitionKNorm, PartitionLaplace
from zerodelta.value import value

_MOST_JOINT = 6
"""The largest number of cells for one joint draw; beyond it the gain over independent Laplace
noise, which needs no memory for all cells, is small (theory P2)."""


@value
class PartitionNoise(ScaledNoise):
    """Releases integer cells plus noise, where a row adds at most `row_total` to all together.

    **Neighbors**: one unit's rows, at most `unit_rows`, replaced, or added or removed.
    **Guarantee**: pure DP. "laplace": independent discrete Laplace noise (the two-sided geometric
    law), ε = 2mM/scale for replaced rows and several cells, else mM/scale (P1). "k-norm": one draw
    over *all* cells, ε = mM/scale (P2). "auto" is the one with the smaller variance.
    **Public**: everything stored here. `cells` counts those of all groups; ε is not split.
    **Error**: `covariance`.

    >>> from zerodelta.exact.bits import SystemBits
    >>> table = PartitionNoise.for_epsilon(epsilon=1, cells=24, row_total=10)
    >>> table.method, table.scale
    ('laplace', Fraction(20, 1))
    >>> table.apply(np.zeros(24, dtype=np.int64), SystemBits()).shape
    (24,)
    >>> PartitionNoise.for_epsilon(epsilon=1, cells=2, row_total=10).method
    'k-norm'
    """

    method: Literal["auto", "laplace", "k-norm"] = "auto"
    cells: int
    row_total: int = 1
    unit_rows: int = 1
    scale: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    def __post_init__(self) -> None:
        require(
            self.method in ("auto", "laplace", "k-norm"),
            "method",
            self.method,
            expected='"auto", "laplace" or "k-norm"',
            remedy="pass one of these names",
        )
        ScaledNoise.__post_init__(self)
        if self.method == "auto":
            joint = self.neighbors is Neighbors.REPLACE and 1 < self.cells <= _MOST_JOINT
            object.__setattr__(self, "method", "k-norm" if joint else "laplace")

    @property
    def theorem(self) -> PartitionLaplace | PartitionKNorm:
        """Theorem P1 or P2."""
        laplace = self.method == "laplace"
        theorem = PartitionLaplace if laplace else PartitionKNorm
        return theorem(
            cells=self.cells,
            row_total=self.row_total,
            unit_rows=self.unit_rows,
            scale=self.scale,
        )

    @property
    def length(self) -> int:
        """The number of cells."""
        return self.cells

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return one vector for the cells of all groups.

        A joint draw for each group would cost twice ε: a replaced row may change two groups.
        """
        if self.method == "k-norm":
            return rounded_count_noise(dimension=self.cells, scale=self.scale, bits=bits)
        return discrete_laplace(scale=self.scale, size=self.cells, bits=bits)

    @property
    def noise_law(self) -> GeometricLaw | CountsLaw:
        """Independent noise on the cells, or one draw over all of them."""
        if self.method == "laplace":
            return GeometricLaw(scale=self.scale)
        return CountsLaw(scale=self.scale, dimension=self.cells)


@value
class BlockNoise(ScaledNoise):
    """Releases `dimension` integer sums of each group plus l∞ noise, one draw for each group.

    **Neighbors**: one unit's rows, at most `unit_rows`, replaced, or added or removed. A row adds
    at most `row_bound` to every sum of its own group, and nothing elsewhere.
    **Guarantee**: pure DP with ε = 2mB/scale (replaced) or mB/scale (added or removed), for any
    number of groups (G2).
    **Public**: everything stored here.
    **Error**: `covariance`; a sum has variance scale²·(d+1)(d+2)/3 before rounding.

    >>> from zerodelta.exact.bits import SystemBits
    >>> table = BlockNoise.for_epsilon(epsilon=1, blocks=12, dimension=3, row_bound=10)
    >>> table.scale, table.apply(np.zeros(36, dtype=np.int64), SystemBits()).shape
    (Fraction(20, 1), (36,))
    """

    blocks: int
    dimension: int
    row_bound: int
    unit_rows: int = 1
    scale: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> BlockKNorm:
        """Theorem G2."""
        return BlockKNorm(
            blocks=self.blocks,
            dimension=self.dimension,
            row_bound=self.row_bound,
            unit_rows=self.unit_rows,
            scale=self.scale,
        )

    @property
    def length(self) -> int:
        """The sums of all groups."""
        return self.blocks * self.dimension

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return the noises, group by group in one vector."""
        noise = rounded_k_norm(
            norm=math.inf,
            dimension=self.dimension,
            scale=self.scale,
            size=self.blocks,
            bits=bits,
        )
        return noise.reshape(-1)

    @property
    def noise_law(self) -> CubeLaw:
        """One draw for each group."""
        return CubeLaw(scale=self.scale, dimension=self.dimension)


# -- Power sums -----------------------------------------------------------------------------------
# Exact sums of powers of quantized columns by group, in one pass over opened rows (theory P).


def power_sums(
    rows: Rows,
    keys: GroupKeys,
    of: Sequence[Column],
    lattices: Sequence[FixedPoint],
    degrees: Sequence[int],
    *,
    missing: Sequence[bool],
) -> tuple[IntegerArray, list[IntegerArray]]:
    """Return the number of rows of each group and, for each column, the sums of 1, k, k², ….

    The sums of a column have shape (groups, 1 + degree); k = lattice.quantize(value). A row without
    a group adds nothing. An absent value adds nothing if the column may have `missing` values, and
    otherwise counts as the center, k = 0.
    """
    sums = _PowerSums(
        keys=keys, lattices=tuple(lattices), degrees=tuple(degrees), missing=tuple(missing)
    )
    columns: list[Column] = [*keys.columns, *of]
    if not columns:  # all rows are one group
        columns = [0]
    table = rows.total(sums, columns, shape=(keys.count, sums.width), bound=sums.bound)
    return table[:, 0], [table[:, sums.place(i) : sums.place(i + 1)] for i in range(len(of))]


@value
class _PowerSums:
    """Function from a block of rows, whose first columns are keys, to its table of sums.

    Workers of a cluster get a copy, so it holds public numbers only.
    """

    keys: GroupKeys
    lattices: tuple[FixedPoint, ...]
    degrees: tuple[int, ...]
    missing: tuple[bool, ...]

    def place(self, column: int) -> int:
        """Return the place in a group where the sums of a column begin."""
        return 1 + sum(1 + degree for degree in self.degrees[:column])

    @property
    def width(self) -> int:
        """The number of sums of a group."""
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
        table: IntegerArray = np.zeros(shape, np.int64) if fits else np.zeros(shape, np.object_)
        table[:, 0] = np.bincount(codes, minlength=groups)
        for i, degree in enumerate(self.degrees):
            start, column = self.place(i), first + i
            # `add_powers` does not write to its first column, which is not one of this column's
            sums = table[:, start - 1 : start + 1 + degree]
            values = block[:, column : column + 1]
            if not self.missing[i]:
                values = np.where(np.isnan(values), float(self._center(i)), values)
            add_powers(sums, codes, values, self.lattices[i], degree)
        return table

    def _center(self, column: int) -> Fraction:
        center = self.lattices[column].center
        return center[0] if isinstance(center, tuple) else center


def present_counts(rows: Rows, of: Sequence[Column]) -> IntegerArray:
    """Return for each column the number of rows with a value, in one pass."""
    columns = as_function(list(of), rows.columns)
    ones = FixedPoint.box(dimension=len(of), lower=-1, upper=1, steps=1)
    return rows.sum(lambda block: (~np.isnan(columns(block))).astype(np.float64), ones)
