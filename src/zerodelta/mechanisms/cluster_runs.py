"""Runs of rows that stay on a cluster, found by counts that its workers make (theory Q).

The points of all groups, one group after the other, are one line. Its cells are counted; of those
around the ranks that are asked for, large ones are split and counted again, and only of what is
left do the points come to the driver. How often depends on the rows: time, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.exact.arrays import Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rank_bounds import Ranks
from zerodelta.mechanisms.grid_runs import MOST_TOGETHER, PlacedCell
from zerodelta.mechanisms.joint_exponential import CELL_BITS, fine_rows

_CELLS = 1 << 20
"""Cells that a pass counts: 8 MiB from each partition."""
_FETCHED = 1 << 20
"""Rows whose points come to the driver together: 8 MiB."""
_SPLIT = 1 << 16
"""Cells that are split at once."""


@final
class ClusterLine:
    """How many rows are in each cell of the line; only cells with rows, from left to right.

    `keys` tells where a block's rows are, group times `size` plus point; it runs on the workers.
    """

    __slots__ = ("_behind", "_counts", "_keys", "_rows", "_starts", "_widths", "bases", "size")

    def __init__(
        self, rows: Rows, keys: Callable[[Block], Integers], *, groups: int, size: int
    ) -> None:
        shift = 0
        while groups * (((size - 1) >> shift) + 1) > max(_CELLS, groups):
            shift += 1
        cells = ((size - 1) >> shift) + 1

        def cell_of(block: Block) -> IntegerArray:  # holds nothing of the rows: it runs elsewhere
            key = keys(block)
            return key // size * cells + ((key % size) >> shift)

        self._rows, self._keys, self.size = rows, keys, size
        counts = self._counted(cell_of, groups * cells)
        self.bases = np.append(0, np.cumsum(counts.reshape(groups, cells).sum(axis=1)))
        """The rank of the first row of each group, and the number of all rows."""
        found = np.flatnonzero(counts)
        group, cell = found // cells, found % cells
        widths = np.minimum(1 << shift, size - (cell << shift))
        self._set(group * size + (cell << shift), widths, counts[found])

    def fetch(self, first: Integers, stop: Integers) -> None:
        """Find the points of the rows of ranks `first` to `stop` - 1, for several such ranges."""
        while len(cells := self._unknown(first, stop)):
            counts = self._counts[cells]
            if counts.sum() <= _FETCHED:
                self._gather(cells)
                return
            order = np.argsort(counts)
            few = int(np.searchsorted(np.cumsum(counts[order]), _FETCHED // 2, side="right"))
            self._split(np.sort(cells[order[few:][-_SPLIT:]]))

    def points(self, first: int, stop: int) -> tuple[Integers, Integers, int]:
        """Return the fetched points of the rows of these ranks, their counts, and the first rank.

        Rows of other ranks on the same points are counted, too.
        """
        low, high = np.searchsorted(self._behind, [first, stop - 1], side="right")
        inside = slice(int(low), int(high) + 1)
        counts = self._counts[inside]
        return self._starts[inside], counts, int(self._behind[low] - self._counts[low])

    def _set(self, starts: Integers, widths: Integers, counts: Integers) -> None:
        order = np.argsort(starts)
        self._starts, self._widths, self._counts = starts[order], widths[order], counts[order]
        self._behind = np.cumsum(self._counts)

    def _unknown(self, first: Integers, stop: Integers) -> Integers:
        """Return the cells of several points that hold a row of these ranks."""
        some = first < stop
        low = np.searchsorted(self._behind, first[some], side="right")
        high = np.searchsorted(self._behind, stop[some] - 1, side="right")
        begun = np.zeros(len(self._counts) + 1, dtype=np.int64)
        np.add.at(begun, low, 1)
        np.add.at(begun, high + 1, -1)
        return np.flatnonzero((np.cumsum(begun)[:-1] > 0) & (self._widths > 1))

    def _gather(self, cells: Integers) -> None:
        place = self._placing(cells)

        def picked(block: Block) -> Integers:
            key, _, inside = place(block)
            return key[inside]

        keys, counts = np.unique(self._rows.gathered(picked), return_counts=True)
        self._replace(cells, keys, np.ones_like(keys), counts.astype(np.int64))

    def _split(self, cells: Integers) -> None:
        place, starts, widths = self._placing(cells), self._starts[cells], self._widths[cells]
        bits = max(1, (_CELLS // len(cells)).bit_length() - 1)
        lengths = np.array([(int(width) - 1).bit_length() for width in widths])
        shifts = np.maximum(0, lengths - bits)

        def cell_of(block: Block) -> IntegerArray:
            key, at, inside = place(block)
            at = at[inside]
            found: Integers = (at << bits) + ((key[inside] - starts[at]) >> shifts[at])
            return found

        counts = self._counted(cell_of, len(cells) << bits)
        found = np.flatnonzero(counts)
        at = found >> bits
        offsets = (found - (at << bits)) << shifts[at]
        narrow = np.minimum(1 << shifts[at], widths[at] - offsets)
        self._replace(cells, starts[at] + offsets, narrow, counts[found])

    def _placing(
        self, cells: Integers
    ) -> Callable[[Block], tuple[Integers, Integers, npt.NDArray[np.bool_]]]:
        """Return what finds the keys of a block, which of these cells each is in, and if so."""
        keys, starts, widths = self._keys, self._starts[cells], self._widths[cells]

        def place(block: Block) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
            key = keys(block)
            at = np.maximum(np.searchsorted(starts, key, side="right") - 1, 0)
            distance = key - starts[at]
            return key, at, (distance >= 0) & (distance < widths[at])

        return place

    def _counted(self, cell_of: Callable[[Block], IntegerArray], size: int) -> Integers:
        columns = list(range(len(self._rows.columns)))
        found = self._rows.total(cell_of, columns, shape=(size,), bound=1, keyed=True)
        return found.astype(np.int64)

    def _replace(
        self, cells: Integers, starts: Integers, widths: Integers, counts: Integers
    ) -> None:
        """Put narrower cells in the place of some, as many rows as before in each."""
        parents = np.searchsorted(self._starts[cells], starts, side="right") - 1
        sums = np.zeros(len(cells), dtype=np.int64)
        np.add.at(sums, parents, counts)
        # whatever happened to the source in between: the rows of such a cell are at its start
        lost = cells[sums != self._counts[cells]]
        kept = np.setdiff1d(np.arange(len(self._counts)), cells, assume_unique=True)
        good = (sums == self._counts[cells])[parents]
        self._set(
            np.concatenate([self._starts[kept], self._starts[lost], starts[good]]),
            np.concatenate([self._widths[kept], np.ones(len(lost), np.int64), widths[good]]),
            np.concatenate([self._counts[kept], self._counts[lost], counts[good]]),
        )


@final
class ClusterRuns:
    """The runs of one group on the fine grid; a row's place in its cell is drawn once, and kept."""

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
        """Find the rows at the borders of these ranges."""
        self._line.fetch(*self.needs(ranges))

    def needs(self, ranges: Sequence[Ranks]) -> tuple[Integers, Integers]:
        """Return the ranks of these rows on the line, from and up to."""
        base = int(self._line.bases[self._group])
        first = [base + max(0, ranks.first - 1) for ranks in ranges]
        stop = [base + min(self.count, ranks.last + 1) for ranks in ranges]
        return np.array(first, dtype=np.int64), np.array(stop, dtype=np.int64)

    def borders(self, first: int, last: int) -> Integers:
        """Return where runs `first` to `last` begin, and where the last one ends."""
        ranks = Ranks(first=first, last=last)
        self.fetch([ranks])
        start, stop = (int(each[0]) for each in self.needs([ranks]))
        found = [np.zeros(1 if first == 0 else 0, dtype=np.int64)]
        if start < stop:
            keys, counts, at = self._line.points(start, stop)
            points = keys - self._group * self._line.size
            self._place(points, counts)
            for point, count in zip(points.tolist(), counts.tolist(), strict=True):
                low, high, rows = max(0, start - at), min(count, stop - at), self._placed[point]
                some = rows.rows(low, high) if isinstance(rows, PlacedCell) else rows[low:high]
                found.append(some)
                at += count
        end = [self.points] if last == self.count else []
        return np.concatenate([*found, np.array(end, dtype=np.int64)])

    def _place(self, points: Integers, counts: Integers) -> None:
        """Draw the places of rows that have none, those of points with few rows together."""
        new = np.array([point not in self._placed for point in points.tolist()], dtype=np.bool_)
        points, counts = points[new], counts[new]
        few = counts <= MOST_TOGETHER // max(1, len(points))
        together = np.sort(fine_rows(np.repeat(points[few], counts[few]), self._bits))
        parts = np.split(together, np.cumsum(counts[few])[:-1])
        self._placed.update(zip(points[few].tolist(), parts, strict=False))
        for at in np.flatnonzero(~few).tolist():
            alone = slice(at, at + 1)
            self._placed[int(points[at])] = PlacedCell(points[alone], counts[alone], self._bits)


def cluster_runs(
    line: ClusterLine, bits: BitSource, *, near: Callable[[int], Sequence[Ranks]]
) -> Iterator[ClusterRuns]:
    """Yield the runs of each group; `near` tells which ranks of so many will be asked for first.

    The rows around these are found for many groups together.
    """
    waiting: list[ClusterRuns] = []
    needs: list[tuple[Integers, Integers]] = []
    rows = 0
    for group in range(len(line.bases) - 1):
        runs = ClusterRuns(line, group, bits)
        first, stop = runs.needs(near(runs.count))
        waiting.append(runs)
        needs.append((first, stop))
        rows += int(np.maximum(stop - first, 0).sum())
        if rows > _FETCHED // 2 or group == len(line.bases) - 2:
            line.fetch(*(np.concatenate(each) for each in zip(*needs, strict=True)))
            yield from waiting
            waiting, needs, rows = [], [], 0
