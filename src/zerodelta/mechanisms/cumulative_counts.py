"""How many rows lie up to each cell, from noisy counts of all cells (theory P1, Q).

All cells are counted, and where that is better also blocks of neighboring ones, each with half of
ε; least squares makes one set of numbers of both, and the cumulative ones are made monotone.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import isotonic_regression

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value

MOST_CELLS = 1 << 24


@value
class CumulativeCounts:
    """Releases how many rows of each group lie up to each of its cells.

    **Neighbors**, **Guarantee**: those of `noise`, on the counts of all groups together (P1, P2).
    **Public**: everything stored here; `total` is the number of rows where it is public and every
    row is in a cell.
    **Error**: `rank_error`.

    >>> CumulativeCounts.for_epsilon(epsilon=1, cells=10).width
    1
    >>> CumulativeCounts.for_epsilon(epsilon=1, cells=400).width
    20
    """

    cells: int
    width: int
    """Cells of a block; 1 if there are no blocks."""
    groups: int
    total: int | None
    noise: PartitionNoise

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        cells: int,
        groups: int = 1,
        total: int | None = None,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> CumulativeCounts:
        """Return the counts with exactly this ε: flat or in blocks, by forecast."""
        count = as_count(cells, "cells", minimum=1)
        require(
            count * groups <= MOST_CELLS,
            "cells",
            count * groups,
            expected="at most 2^24 of them, in all groups together",
            remedy="use a coarser grid, or fewer groups",
        )
        plans = []
        for width in {1, max(1, math.isqrt(count))}:
            blocks = 0 if width == 1 else -(-count // width)
            noise = PartitionNoise.for_epsilon(
                epsilon=epsilon,
                cells=groups * (count + blocks),
                row_total=1 if width == 1 else 2,  # a row is in a cell and in a block
                neighbors=neighbors,
            )
            plan = cls(cells=count, width=width, groups=groups, total=total, noise=noise)
            plans.append(plan)
        return min(plans, key=lambda plan: plan.rank_error)

    @property
    def rank_error(self) -> float:
        """The expected absolute error of a cumulative count, averaged over the cells.

        Least squares leaves a block of k cells k/(k+1) of the variance of its own count, and
        i(1-a)² + (k-i+1)a² of it, a = i/(k+1), to the first i of its cells. A known total takes
        away the part j/b of the variance of j of b blocks. Normal errors have a mean of √(2/π) of
        their deviation.
        """
        variance = self.noise.covariance([1], [1])
        place = np.arange(1, self.cells + 1, dtype=np.float64)
        k, blocks = self.width, -(-self.cells // self.width)
        if k == 1:
            summed = place if self.total is None else place * (1 - place / self.cells)
        else:
            full, inside = np.divmod(place, k)
            a = inside / (k + 1)
            left = 1.0 if self.total is None else 1 - full / blocks
            summed = full * k / (k + 1) * left + inside * (1 - a) ** 2 + (k - inside + 1) * a**2
        return float(np.sqrt(np.maximum(summed, 0) * variance).mean() * math.sqrt(2 / math.pi))

    def release(self, counts: Integers, bits: BitSource) -> Floats:
        """Return noisy cumulative counts from (groups, cells) exact ones, monotone in each group.

        The last one of a group is its number of rows.
        """
        return self.fitted(self.noisy(counts, bits))

    def noisy(self, counts: Integers, bits: BitSource) -> IntegerArray:
        """Return the noisy counts of (groups, cells and blocks), from exact ones of the cells."""
        rows = np.asarray(counts).reshape(self.groups, self.cells)
        if self.width > 1:
            starts = np.arange(0, self.cells, self.width)
            rows = np.concatenate([rows, np.add.reduceat(rows, starts, axis=1)], axis=1)
        return self.noise.apply(rows.ravel(), bits).reshape(self.groups, -1)

    def fitted(self, noisy: IntegerArray) -> Floats:
        """Return monotone cumulative counts from noisy ones of cells and blocks."""
        return np.array([self._fitted(group) for group in noisy.astype(np.float64)])

    def forms(self, place: int) -> tuple[tuple[Fraction, ...], ...]:
        """Return forms of noisy counts: how many rows there are, and twice those up to a cell less.

        For a known total. The fewest counts that make up the cells, or what is above them.
        """
        if self.total is None:
            raise AssertionError("without a total a share is a ratio of many counts")
        total = Fraction(self.total)
        below, above = self._parts(0, place + 1), self._parts(place + 1, self.cells)
        few, sign = (below, 2) if len(below) <= len(above) else (above, -2)
        size = self.cells + (0 if self.width == 1 else -(-self.cells // self.width))
        chosen = [Fraction(sign if each in few else 0) for each in range(size)]
        none = [Fraction(0)] * size
        return (*none, total), (*chosen, -total if sign > 0 else total)

    def _parts(self, start: int, end: int) -> set[int]:
        """Return the places of cells and whole blocks that make up the first or the last cells."""
        k = self.width
        if k == 1:
            return set(range(start, end))
        first, last = -(-start // k), -(-end // k) if end == self.cells else end // k
        if first >= last:
            return set(range(start, end))
        edges = {*range(start, first * k), *range(min(last * k, end), end)}
        return edges | {self.cells + block for block in range(first, last)}

    def _fitted(self, noisy: Floats) -> Floats:
        cells, k = noisy[: self.cells], self.width
        starts = np.arange(0, self.cells, k)
        sizes = np.diff(np.append(starts, self.cells)).astype(np.float64)
        sums = np.add.reduceat(cells, starts)
        best, spread = sums, sizes
        if k > 1:
            best = (sums + sizes * noisy[self.cells :]) / (sizes + 1)
            spread = sizes / (sizes + 1)
        if self.total is not None:
            best = best + (self.total - best.sum()) * spread / spread.sum()
        fitted = cells + np.repeat((best - sums) / sizes, sizes.astype(np.int64))
        cumulative: Floats = isotonic_regression(np.cumsum(fitted)).x
        return np.maximum(cumulative, 0.0)
