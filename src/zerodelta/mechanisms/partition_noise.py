"""Noise on the cells of a table, whatever the number of its groups: pure DP (theory P1, P2, G2).

`PartitionNoise` is for cells to which a row adds at most a fixed total (counts, histograms,
`BernsteinCells`), `BlockNoise` for several sums of each group (`ChebyshevBlock`). Both are made
from public numbers by `for_epsilon`, and add their noise to exact integer sums with `apply`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, TypeAlias

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
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import INT64_MOST, IntegerArray
from zerodelta.mechanisms.sum_noise import CountNoise, add_exactly, check_sums
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.noise import (
    block_epsilon,
    partition_k_norm_epsilon,
    partition_laplace_epsilon,
)
from zerodelta.value import value

_Method: TypeAlias = Literal["laplace", "k-norm"]
_Coefficients: TypeAlias = Sequence[Fraction | float]

_MOST_JOINT = 6
"""Up to so many cells one joint draw is worth it; Laplace noise is independent and streams (P2)."""


@value
class PartitionNoise:
    """Releases integer cells plus noise, where a row adds at most `row_total` to all of them.

    **Neighbors**: one unit's rows, at most `unit_rows`, replaced, or added or removed.
    **Guarantee**: pure DP. "laplace": independent discrete Laplace noise (the two-sided geometric
    law), ε = 2mM/scale for replaced rows and several cells, else mM/scale (P1). "k-norm": one draw
    over *all* cells, ε = mM/scale (P2).
    **Public**: everything stored here. `cells` is that of all groups together; ε is not split.
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

    method: _Method
    cells: int
    row_total: int
    unit_rows: int
    scale: Fraction
    neighbors: Neighbors

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        cells: int,
        row_total: int = 1,
        unit_rows: int = 1,
        neighbors: Neighbors = Neighbors.REPLACE,
        method: str = "auto",
    ) -> PartitionNoise:
        """Return the noise with exactly this ε; "auto": the method with the smaller variance."""
        require(
            method in ("auto", "laplace", "k-norm"),
            "method",
            method,
            expected='"auto", "laplace" or "k-norm"',
            remedy="pass one of these names",
        )
        count = as_count(cells, "cells", minimum=1)
        joint = neighbors is Neighbors.REPLACE and 1 < count <= _MOST_JOINT
        unit = cls(
            method="k-norm" if method == "k-norm" or (method == "auto" and joint) else "laplace",
            cells=count,
            row_total=as_count(row_total, "row_total", minimum=1),
            unit_rows=as_count(unit_rows, "unit_rows", minimum=1),
            scale=Fraction(1),
            neighbors=neighbors,
        )
        return replace(unit, scale=unit.epsilon / as_positive(epsilon, "epsilon"))

    @property
    def epsilon(self) -> Fraction:
        """What one release costs, as the theorem says."""
        if self.method == "k-norm":
            return partition_k_norm_epsilon(
                row_total=self.row_total, unit_rows=self.unit_rows, scale=self.scale
            )
        return partition_laplace_epsilon(
            cells=self.cells,
            row_total=self.row_total,
            unit_rows=self.unit_rows,
            scale=self.scale,
            neighbors=self.neighbors,
        )

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one release."""
        return Step(
            theorem=f"partition-{self.method}",
            numbers={
                "cells": self.cells,
                "row_total": self.row_total,
                "unit_rows": self.unit_rows,
                "scale": self.scale,
            },
            neighbors=self.neighbors,
        )

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy cells, one vector for all groups; never wraps around."""
        check_sums(sums, dimension=self.cells)
        if self.method == "k-norm":  # one draw over all groups: one for each would cost twice ε
            noise = rounded_count_noise(dimension=self.cells, scale=self.scale, bits=bits)
        else:
            noise = discrete_laplace(scale=self.scale, size=self.cells, bits=bits)
        return add_exactly(sums, noise)

    def law(self, *, unit: Fraction) -> NoiseLaw:
        """Return the law of the noise on the cells, one integer being `unit` of the value."""
        if self.method == "k-norm":
            return NoiseLaw(family="counts", dimension=self.cells, scale=self.scale, unit=unit)
        return NoiseLaw(family="geometric", scale=self.scale, unit=unit)

    def error(self) -> float:
        """Return the expected absolute error of a cell: 1/sinh(1/b) for discrete Laplace noise."""
        if self.method == "k-norm":
            return CountNoise(dimension=self.cells, scale=self.scale).error()
        rate = float(1 / self.scale)
        return 0.0 if rate > 700 else 1 / math.sinh(rate)

    def covariance(self, first: _Coefficients, second: _Coefficients) -> float:
        """Return the covariance of two linear forms of the noise on some of the cells.

        Discrete Laplace noise has variance 2q/(1-q)² = 1/(2 sinh²(1/(2b))), q = e^(-1/b). The joint
        draw has variance 4p(2p+1)/((p+1)(p+2))·s² and correlation -1/p, before rounding.
        """
        product = math.fsum(float(a) * float(b) for a, b in zip(first, second, strict=True))
        if self.method == "laplace":
            half_rate = float(1 / (2 * self.scale))
            if half_rate > 300:
                return 0.0
            return product / (2 * math.sinh(half_rate) ** 2)
        p, sums = self.cells, math.fsum(map(float, first)) * math.fsum(map(float, second))
        variance = 4 * p * (2 * p + 1) / ((p + 1) * (p + 2)) * float(self.scale) ** 2
        return variance * ((1 + 1 / p) * product - sums / p)


@value
class BlockNoise:
    """Releases `dimension` integer sums of each group plus l∞ noise, drawn anew for each group.

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
    unit_rows: int
    scale: Fraction
    neighbors: Neighbors

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        blocks: int,
        dimension: int,
        row_bound: int,
        unit_rows: int = 1,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> BlockNoise:
        """Return the noise with exactly this ε."""
        bound = as_count(row_bound, "row_bound", minimum=1)
        rows = as_count(unit_rows, "unit_rows", minimum=1)
        cost = block_epsilon(row_bound=bound, unit_rows=rows, scale=1, neighbors=neighbors)
        return cls(
            blocks=as_count(blocks, "blocks", minimum=1),
            dimension=as_count(dimension, "dimension", minimum=1),
            row_bound=bound,
            unit_rows=rows,
            scale=cost / as_positive(epsilon, "epsilon"),
            neighbors=neighbors,
        )

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        epsilon = block_epsilon(
            row_bound=self.row_bound,
            unit_rows=self.unit_rows,
            scale=self.scale,
            neighbors=self.neighbors,
        )
        return PureDP(epsilon, neighbors=self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one release."""
        numbers = {
            "blocks": self.blocks,
            "dimension": self.dimension,
            "row_bound": self.row_bound,
            "unit_rows": self.unit_rows,
            "scale": self.scale,
        }
        return Step(theorem="block-k-norm", numbers=numbers, neighbors=self.neighbors)

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy sums, group by group in one vector; never wraps around."""
        check_sums(sums, dimension=self.blocks * self.dimension)
        noise = rounded_k_norm(
            norm=math.inf,
            dimension=self.dimension,
            scale=self.scale,
            size=self.blocks,
            bits=bits,
        )
        return add_exactly(sums, noise.reshape(-1))

    def law(self, *, unit: Fraction) -> NoiseLaw:
        """Return the law of the noise on one group, one integer being `unit` of the value."""
        return NoiseLaw(
            family="k-norm",
            norm=math.inf,
            dimension=self.dimension,
            scale=self.scale,
            unit=unit,
        )

    def covariance(self, first: _Coefficients, second: _Coefficients) -> float:
        """Return the covariance of two linear forms of the noise on one group, before rounding."""
        product = math.fsum(float(a) * float(b) for a, b in zip(first, second, strict=True))
        d = self.dimension
        return product * float(self.scale) ** 2 * (d + 1) * (d + 2) / 3


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
