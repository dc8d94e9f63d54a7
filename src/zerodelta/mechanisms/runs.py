"""Find the rows around given ranks, for each group, and count rows by cell (theory P1, Q).

A *run* is a set of neighboring grid points with equally many rows up to them. On a cluster the grid
points of all groups are laid out one group after the other on one line. Its cells are counted;
large cells around the wanted ranks are split and counted again, and only the points of small ones
are sent to the driver. How many passes that takes depends on the rows, but only time does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from zerodelta.data.keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, Column, ExtraColumn
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.joint_ranks import Ranks, Runs, SortedRuns
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.joint_quantiles import (
    CELL_BITS,
    MAXIMUM_BATCH,
    PlacedCell,
    fine_rows,
    grid_runs,
)
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.ranks import EvenPoints, GridRows, ListedPoints
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

_CELLS = 1 << 20
"""Cells that a pass counts: 8 MiB from each partition."""
_FETCHED = 1 << 20
"""Rows whose points come to the driver together: 8 MiB."""
_SPLIT = 1 << 16
"""Cells that one pass splits."""


@final
class ClusterLine:
    """The number of rows in each cell of the line; only cells with rows, from left to right.

    `keys` returns where the rows of a block are: group times `size` plus point. It runs on the
    workers.
    """

    __slots__ = ("_behind", "_counts", "_keys", "_rows", "_starts", "_widths", "bases", "size")

    def __init__(
        self, rows: Rows, keys: Callable[[Block], Integers], *, groups: int, size: int
    ) -> None:
        shift = 0
        while groups * (((size - 1) >> shift) + 1) > max(_CELLS, groups):
            shift += 1
        cells = ((size - 1) >> shift) + 1

        # sent to the workers, so it must not capture `self`, which holds the rows
        def cell_of(block: Block) -> IntegerArray:
            key = keys(block)
            return key // size * cells + ((key % size) >> shift)

        self._rows, self._keys, self.size = rows, keys, size
        counts = self._counted(cell_of, groups * cells)
        self.bases = np.append(0, np.cumsum(counts.reshape(groups, cells).sum(axis=1)))
        """The rank of the first row of each group, and the number of all rows."""
        occupied = np.flatnonzero(counts)
        group, cell = occupied // cells, occupied % cells
        widths = np.minimum(1 << shift, size - (cell << shift))
        self._set(group * size + (cell << shift), widths, counts[occupied])

    def fetch(self, first: Integers, stop: Integers) -> None:
        """Find the points of the rows of ranks `first` to `stop` - 1, for several such ranges."""
        while len(cells := self._unresolved(first, stop)):
            counts = self._counts[cells]
            if counts.sum() <= _FETCHED:
                self._gather(cells)
                return
            # split the largest cells; small ones with half a fetch of rows together stay for later
            order = np.argsort(counts)
            small = int(np.searchsorted(np.cumsum(counts[order]), _FETCHED // 2, side="right"))
            self._split(np.sort(cells[order[small:][-_SPLIT:]]))

    def points(self, first: int, stop: int) -> tuple[Integers, Integers, int]:
        """Return the fetched points of the rows of these ranks, their counts, and the first rank.

        The counts include rows of other ranks on the same points.
        """
        low, high = np.searchsorted(self._behind, [first, stop - 1], side="right")
        inside = slice(int(low), int(high) + 1)
        counts = self._counts[inside]
        return self._starts[inside], counts, int(self._behind[low] - self._counts[low])

    def _set(self, starts: Integers, widths: Integers, counts: Integers) -> None:
        order = np.argsort(starts)
        self._starts, self._widths, self._counts = starts[order], widths[order], counts[order]
        self._behind = np.cumsum(self._counts)

    def _unresolved(self, first: Integers, stop: Integers) -> Integers:
        """Return the cells that hold a row of these ranks and are wider than one point."""
        nonempty = first < stop
        low = np.searchsorted(self._behind, first[nonempty], side="right")
        high = np.searchsorted(self._behind, stop[nonempty] - 1, side="right")
        # +1 where a range begins and -1 where it ends: the running sum counts the ranges at a cell
        starts_less_ends = np.zeros(len(self._counts) + 1, dtype=np.int64)
        np.add.at(starts_less_ends, low, 1)
        np.add.at(starts_less_ends, high + 1, -1)
        return np.flatnonzero((np.cumsum(starts_less_ends)[:-1] > 0) & (self._widths > 1))

    def _gather(self, cells: Integers) -> None:
        """Replace cells by the points of their rows, which are sent to the driver."""
        place = self._cell_finder(cells)

        def keys_inside(block: Block) -> Integers:
            key, _, inside = place(block)
            return key[inside]

        keys, counts = np.unique(self._rows.gathered(keys_inside), return_counts=True)
        self._replace(cells, keys, np.ones_like(keys), counts.astype(np.int64))

    def _split(self, cells: Integers) -> None:
        """Replace cells by narrower ones, as many as one pass may count, and count these."""
        place, starts, widths = self._cell_finder(cells), self._starts[cells], self._widths[cells]
        bits = max(1, (_CELLS // len(cells)).bit_length() - 1)
        lengths = np.array([(int(width) - 1).bit_length() for width in widths])
        shifts = np.maximum(0, lengths - bits)

        def cell_of(block: Block) -> IntegerArray:
            """Return the narrower cell of each key that lies in a cell being split."""
            key, parent, inside = place(block)
            parent = parent[inside]
            offset = key[inside] - starts[parent]
            cell: Integers = (parent << bits) + (offset >> shifts[parent])
            return cell

        counts = self._counted(cell_of, len(cells) << bits)
        occupied = np.flatnonzero(counts)
        parent = occupied >> bits
        offsets = (occupied - (parent << bits)) << shifts[parent]
        narrow = np.minimum(1 << shifts[parent], widths[parent] - offsets)
        self._replace(cells, starts[parent] + offsets, narrow, counts[occupied])

    def _cell_finder(
        self, cells: Integers
    ) -> Callable[[Block], tuple[Integers, Integers, npt.NDArray[np.bool_]]]:
        """Return a function from a block to its keys, the cell each may be in, and if it is."""
        keys, starts, widths = self._keys, self._starts[cells], self._widths[cells]

        def place(block: Block) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
            """Return keys, the cell each falls in, and whether it is inside that cell."""
            key = keys(block)
            cell = np.maximum(np.searchsorted(starts, key, side="right") - 1, 0)
            distance = key - starts[cell]
            return key, cell, (distance >= 0) & (distance < widths[cell])

        return place

    def _counted(self, cell_of: Callable[[Block], IntegerArray], size: int) -> Integers:
        """Return the number of rows in each of `size` cells."""
        columns = list(range(len(self._rows.columns)))
        counts = self._rows.total(cell_of, columns, shape=(size,), bound=1, keyed=True)
        return counts.astype(np.int64)

    def _replace(
        self, cells: Integers, starts: Integers, widths: Integers, counts: Integers
    ) -> None:
        """Put narrower cells in the place of `cells`; each keeps its number of rows."""
        parents = np.searchsorted(self._starts[cells], starts, side="right") - 1
        sums = np.zeros(len(cells), dtype=np.int64)
        np.add.at(sums, parents, counts)
        # if the source changed between the passes, all rows of such a cell are put at its start
        lost = cells[sums != self._counts[cells]]
        kept = np.setdiff1d(np.arange(len(self._counts)), cells, assume_unique=True)
        consistent = (sums == self._counts[cells])[parents]
        self._set(
            np.concatenate([self._starts[kept], self._starts[lost], starts[consistent]]),
            np.concatenate([self._widths[kept], np.ones(len(lost), np.int64), widths[consistent]]),
            np.concatenate([self._counts[kept], self._counts[lost], counts[consistent]]),
        )


@final
class ClusterRuns:
    """The rows of one group on the fine grid; a row's place in its cell is drawn once and kept."""

    __slots__ = ("_bits", "_group", "_line", "_placed")

    def __init__(self, line: ClusterLine, group: int, bits: BitSource) -> None:
        self._line, self._group, self._bits = line, group, bits
        self._placed: dict[int, Integers | PlacedCell] = {}

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self._line.bases[self._group + 1] - self._line.bases[self._group])

    @property
    def points(self) -> int:
        """The number of points of the fine grid."""
        return self._line.size << CELL_BITS

    def fetch(self, ranges: Sequence[Ranks]) -> None:
        """Find the rows next to these ranks."""
        self._line.fetch(*self.needs(ranges))

    def needs(self, ranges: Sequence[Ranks]) -> tuple[Integers, Integers]:
        """Return the first rank on the line, and the one after the last, that each range needs."""
        base = int(self._line.bases[self._group])
        first = [base + max(0, ranks.first - 1) for ranks in ranges]
        stop = [base + min(self.count, ranks.last + 1) for ranks in ranges]
        return np.array(first, dtype=np.int64), np.array(stop, dtype=np.int64)

    def borders(self, first: int, last: int) -> Integers:
        """Return the fine points where runs `first` to `last` begin, and where the last one ends.

        Run i lies between the rows of rank i - 1 and i; the outer runs end with the grid.
        """
        ranks = Ranks(first=first, last=last)
        self.fetch([ranks])
        start, stop = (int(bounds[0]) for bounds in self.needs([ranks]))
        pieces = [np.zeros(1 if first == 0 else 0, dtype=np.int64)]
        if start < stop:
            keys, counts, rank = self._line.points(start, stop)
            points = keys - self._group * self._line.size
            self._place(points, counts)
            for point, count in zip(points.tolist(), counts.tolist(), strict=True):
                low, high, rows = max(0, start - rank), min(count, stop - rank), self._placed[point]
                piece = rows.rows(low, high) if isinstance(rows, PlacedCell) else rows[low:high]
                pieces.append(piece)
                rank += count
        end = [self.points] if last == self.count else []
        return np.concatenate([*pieces, np.array(end, dtype=np.int64)])

    def _place(self, points: Integers, counts: Integers) -> None:
        """Draw places for the rows of new points; those of points with few rows in one batch."""
        new = np.array([point not in self._placed for point in points.tolist()], dtype=np.bool_)
        points, counts = points[new], counts[new]
        few = counts <= MAXIMUM_BATCH // max(1, len(points))
        batch = np.sort(fine_rows(np.repeat(points[few], counts[few]), self._bits))
        parts = np.split(batch, np.cumsum(counts[few])[:-1])
        self._placed.update(zip(points[few].tolist(), parts, strict=False))
        for place in np.flatnonzero(~few).tolist():
            alone = slice(place, place + 1)
            self._placed[int(points[place])] = PlacedCell(points[alone], counts[alone], self._bits)


def cluster_runs(
    line: ClusterLine, bits: BitSource, *, read_first: Callable[[int], Sequence[Ranks]]
) -> Iterator[ClusterRuns]:
    """Yield the runs of each group, fetching the rows of many groups in one pass.

    `read_first` returns, for a number of rows, the ranks that a draw reads first: the rows around
    them are fetched for many groups in one pass.
    """
    waiting: list[ClusterRuns] = []
    needs: list[tuple[Integers, Integers]] = []
    rows = 0
    for group in range(len(line.bases) - 1):
        runs = ClusterRuns(line, group, bits)
        first, stop = runs.needs(read_first(runs.count))
        waiting.append(runs)
        needs.append((first, stop))
        rows += int(np.maximum(stop - first, 0).sum())
        if rows > _FETCHED // 2 or group == len(line.bases) - 2:
            line.fetch(*(np.concatenate(ranks) for ranks in zip(*needs, strict=True)))
            yield from waiting
            waiting, needs, rows = [], [], 0


# -- Cumulative numbers of rows, from noisy counts of all cells (theory P1, Q) --------------------
# All cells are counted, and where that lowers the error also blocks of neighboring cells, each with
# half of ε. Least squares reconciles both, and the cumulative counts are then made monotone.

MOST_CELLS = 1 << 24


@value
class CumulativeCounts:
    """Releases for each group the number of rows up to each of its cells.

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
    """The number of cells in a block; 1 if there are no blocks."""
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
        """Return the counts with exactly this ε, flat or in blocks: whichever errs less."""
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

        With v the variance of one noisy count, least squares gives the sum of a block of k cells
        the variance v·k/(k+1), and the sum of its first i cells v·(i(1-a)² + (k-i+1)a²) with
        a = i/(k+1). A known total removes the fraction j/b of the variance of the first j of b
        blocks. The mean absolute value of a normal error is √(2/π) of its standard deviation.
        """
        variance = self.noise.covariance([1], [1])
        place = np.arange(1, self.cells + 1, dtype=np.float64)
        k, blocks = self.width, -(-self.cells // self.width)
        if k == 1:
            summed = place if self.total is None else place * (1 - place / self.cells)
        else:
            full, inside = np.divmod(place, k)
            a = inside / (k + 1)
            remaining = 1.0 if self.total is None else 1 - full / blocks
            of_blocks = full * k / (k + 1) * remaining
            summed = of_blocks + inside * (1 - a) ** 2 + (k - inside + 1) * a**2
        return float(np.sqrt(np.maximum(summed, 0) * variance).mean() * math.sqrt(2 / math.pi))

    def release(self, counts: Integers, bits: BitSource) -> Floats:
        """Return noisy cumulative counts from (groups, cells) exact ones, monotone in each group.

        The last one of a group is its number of rows.
        """
        return self.fitted(self.noisy(counts, bits))

    def noisy(self, counts: Integers, bits: BitSource) -> IntegerArray:
        """Return noisy counts of shape (groups, cells + blocks) from exact counts of the cells."""
        rows = np.asarray(counts).reshape(self.groups, self.cells)
        if self.width > 1:
            starts = np.arange(0, self.cells, self.width)
            rows = np.concatenate([rows, np.add.reduceat(rows, starts, axis=1)], axis=1)
        return self.noise.apply(rows.ravel(), bits).reshape(self.groups, -1)

    def fitted(self, noisy: IntegerArray) -> Floats:
        """Return monotone cumulative counts from noisy counts of cells and blocks."""
        return np.array([self._fitted(group) for group in noisy.astype(np.float64)])

    def forms(self, place: int) -> tuple[tuple[Fraction, ...], ...]:
        """Return two linear forms of the noisy counts for a known total N: N, and 2·(count) - N.

        (count) is the number of rows up to the cell at `place`, so that the quotient of the forms
        is the share of these rows, scaled to [-1, 1]. It is the sum of the fewest cells and blocks
        that cover them, or N less the sum of those that cover the rows above.
        """
        if self.total is None:
            raise AssertionError("without a total a share is a ratio of many counts")
        total = Fraction(self.total)
        below, above = self._parts(0, place + 1), self._parts(place + 1, self.cells)
        fewest, sign = (below, 2) if len(below) <= len(above) else (above, -2)
        size = self.cells + (0 if self.width == 1 else -(-self.cells // self.width))
        chosen = [Fraction(sign if place in fewest else 0) for place in range(size)]
        zeros = [Fraction(0)] * size
        return (*zeros, total), (*chosen, -total if sign > 0 else total)

    def _parts(self, start: int, end: int) -> set[int]:
        """Return the places of the counts whose sum is that of the cells `start` to `end` - 1."""
        k = self.width
        if k == 1:
            return set(range(start, end))
        first, last = -(-start // k), -(-end // k) if end == self.cells else end // k
        if first >= last:
            return set(range(start, end))
        edges = {*range(start, first * k), *range(min(last * k, end), end)}
        return edges | {self.cells + block for block in range(first, last)}

    def _fitted(self, noisy: Floats) -> Floats:
        """Return rising cumulative counts of one group, fitted to cell and block counts."""
        cells, k = noisy[: self.cells], self.width
        starts = np.arange(0, self.cells, k)
        sizes = np.diff(np.append(starts, self.cells)).astype(np.float64)
        sums = np.add.reduceat(cells, starts)
        best, variance = sums, sizes  # of each block, in units of the variance of a count
        if k > 1:  # a weighted mean of the sum of s cells (variance s) and the block's count (1)
            best = (sums + sizes * noisy[self.cells :]) / (sizes + 1)
            variance = sizes / (sizes + 1)
        if self.total is not None:
            best = best + (self.total - best.sum()) * variance / variance.sum()
        fitted = cells + np.repeat((best - sums) / sizes, sizes.astype(np.int64))
        cumulative: Floats = isotonic_regression(np.cumsum(fitted)).x
        return np.maximum(cumulative, 0.0)


# -- The rows of each group on a grid, in bounded memory (theory Q) -------------------------------
# Up to `_HELD` rows are sorted in memory. Of more, rows are counted by group and read again for as
# many groups as fit into memory; a group that does not fit is counted by cell (`grid_runs`). Rows
# that are on a cluster stay there (`cluster_runs`).

_HELD = 1 << 22
"""The largest number of rows that are held in memory: 64 MiB."""


@value
class GroupedColumn:
    """One column of opened rows by group, each row moved to its point of the grid.

    A row without a key is in no group, and with `skip` neither is one without a value.
    """

    rows: Rows
    keys: GroupKeys
    column: Column
    points: EvenPoints | ListedPoints
    skip: bool

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.keys.count

    def counts(self) -> Integers:
        """Return the number of rows at each point of each group, one group after the other."""
        size = self.points.size
        if not self.rows.adds_here:
            columns = list(range(len(self.rows.columns)))
            shape = (self.groups * size,)
            counts = self.rows.total(self._on_a_line, columns, shape=shape, bound=1, keyed=True)
            return counts.astype(np.int64)
        total = np.zeros(self.groups * size, dtype=np.int64)
        for codes, points in self._parts():
            np.add.at(total, codes * size + points, 1)
        return total

    def runs(
        self, bits: BitSource, *, read_first: Callable[[int], Sequence[Ranks]]
    ) -> Iterator[Runs]:
        """Yield the runs of every group on the fine grid; a group without rows has one run.

        `read_first` returns, for a number of rows, the ranks that a draw reads first.
        """
        if not self.rows.adds_here:
            line = ClusterLine(
                self.rows, self._on_a_line, groups=self.groups, size=self.points.size
            )
            yield from cluster_runs(line, bits, read_first=read_first)
            return
        sizes, row_count = np.zeros(self.groups, dtype=np.int64), 0
        held: list[tuple[Integers, Integers]] = []
        for codes, points in self._parts():
            sizes += np.bincount(codes, minlength=self.groups)
            row_count += len(codes)
            held.append((codes, points))
            if row_count > _HELD:
                held.clear()
        if row_count <= _HELD:
            yield from self._sorted(held, 0, self.groups, bits)
            return
        first = 0
        while first < self.groups:  # as many groups as fit into memory, at least one
            fitting = int(np.searchsorted(np.cumsum(sizes[first:]), _HELD, side="right"))
            if fitting == 0:
                yield grid_runs(self._rows_of_group(first), bits)
                first += 1
                continue
            last = first + fitting
            parts = []
            for codes, points in self._parts():
                inside = (codes >= first) & (codes < last)
                parts.append((codes[inside], points[inside]))
            yield from self._sorted(parts, first, last, bits)
            first = last

    def _sorted(
        self, held: list[tuple[Integers, Integers]], first: int, last: int, bits: BitSource
    ) -> Iterator[Runs]:
        """Yield the runs of groups `first` to `last` - 1, all of whose rows are `held`."""
        empty = np.zeros(0, dtype=np.int64)
        codes = np.concatenate([empty, *(part_codes for part_codes, _ in held)])
        fine = fine_rows(np.concatenate([empty, *(points for _, points in held)]), bits)
        order = np.lexsort((fine, codes))
        edges = np.searchsorted(codes[order], np.arange(first, last + 1)).tolist()
        ordered, size = fine[order], self.points.size << CELL_BITS
        for start, end in itertools.pairwise(edges):
            yield SortedRuns(rows=ordered[start:end], points=size)

    def _rows_of_group(self, group: int) -> GridRows:
        """Return the rows of one group, which are read again where they are needed."""

        def inside(block: Block) -> npt.NDArray[np.bool_]:
            return np.asarray(self._codes(block) == group)

        return GridRows(
            rows=self.rows,
            points=self.points,
            skip=self.skip,
            column=self._place(self.column),
            inside=inside,
        )

    def _parts(self) -> Iterator[tuple[Integers, Integers]]:
        """Yield the groups and the points of the rows that have both, block by block."""
        place = self._place(self.column)
        for block in self.rows.blocks():
            codes, values = self._codes(block), block[:, place]
            kept = codes >= 0
            if self.skip:
                kept &= ~np.isnan(values)
            yield codes[kept], self.points.snap(values[kept])

    @property
    def _on_a_line(self) -> Callable[[Block], Integers]:
        """The function from a block to group times size plus point, of rows that have both."""
        places, place = [self._place(name) for name in self.keys.columns], self._place(self.column)
        keys, points, skip = self.keys, self.points, self.skip

        # sent to the workers, so it must not capture `self`, which holds the rows
        def on_a_line(block: Block) -> Integers:
            """Return group times size plus point for each row of a block that has both."""
            codes, kept = keys.codes(block[:, places])
            values = block[:, place]
            if skip:
                kept = kept & ~np.isnan(values)
            return codes[kept].astype(np.int64) * points.size + points.snap(values[kept])

        return on_a_line

    def _codes(self, block: Block) -> Integers:
        """Return the group of each row, -1 for none."""
        places = [self._place(name) for name in self.keys.columns]
        codes, inside = self.keys.codes(block[:, places])
        return np.where(inside, codes, -1)

    def _place(self, column: Column) -> int:
        if isinstance(column, ExtraColumn):
            return list[Column](self.rows.columns).index(column)
        return self.rows.columns.index(column) if isinstance(column, str) else int(column)
