"""The rows of each group on a grid, in bounded memory (theory Q).

Up to some millions of rows are sorted at once. Of more, rows are counted by group, and read again
for as many groups as fit; a group that does not fit is counted by cell (`grid_runs`). Rows that are
on a cluster stay there (`cluster_runs`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from zerodelta.data.group_keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, Column, OwnColumn
from zerodelta.exact.arrays import Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.joint_ranks import SortedRuns
from zerodelta.exact.rank_bounds import Ranks
from zerodelta.exact.rank_messages import Runs
from zerodelta.mechanisms.cluster_runs import ClusterLine, cluster_runs
from zerodelta.mechanisms.grid_runs import grid_runs
from zerodelta.mechanisms.joint_exponential import CELL_BITS, fine_rows
from zerodelta.mechanisms.near_ranks import GridRows
from zerodelta.mechanisms.ranks import EvenPoints, ListedPoints
from zerodelta.value import value

_HELD = 1 << 22
"""Up to so many rows are held in memory: 64 MiB."""


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
        """Return how many rows of each group are at each point, one group after the other."""
        size = self.points.size
        if not self.rows.adds_here:
            columns = list(range(len(self.rows.columns)))
            shape = (self.groups * size,)
            found = self.rows.total(self._on_a_line, columns, shape=shape, bound=1, keyed=True)
            return found.astype(np.int64)
        total = np.zeros(self.groups * size, dtype=np.int64)
        for codes, points in self._parts():
            np.add.at(total, codes * size + points, 1)
        return total

    def runs(self, bits: BitSource, *, near: Callable[[int], Sequence[Ranks]]) -> Iterator[Runs]:
        """Yield the runs of every group on the fine grid; a group without rows has one.

        `near` tells which ranks of so many will be asked for first.
        """
        if not self.rows.adds_here:
            line = ClusterLine(
                self.rows, self._on_a_line, groups=self.groups, size=self.points.size
            )
            yield from cluster_runs(line, bits, near=near)
            return
        sizes, waiting = np.zeros(self.groups, dtype=np.int64), 0
        held: list[tuple[Integers, Integers]] = []
        for codes, points in self._parts():
            sizes += np.bincount(codes, minlength=self.groups)
            waiting += len(codes)
            held.append((codes, points))
            if waiting > _HELD:
                held.clear()
        if waiting <= _HELD:
            yield from self._sorted(held, 0, self.groups, bits)
            return
        first = 0
        while first < self.groups:  # as many groups as fit, at least one
            fit = int(np.searchsorted(np.cumsum(sizes[first:]), _HELD, side="right"))
            if fit == 0:
                yield grid_runs(self._alone(first), bits)
                first += 1
                continue
            last = first + fit
            some = []
            for codes, points in self._parts():
                inside = (codes >= first) & (codes < last)
                some.append((codes[inside], points[inside]))
            yield from self._sorted(some, first, last, bits)
            first = last

    def _sorted(
        self, held: list[tuple[Integers, Integers]], first: int, last: int, bits: BitSource
    ) -> Iterator[Runs]:
        """Yield the runs of groups `first` to `last` - 1, of which these are all rows."""
        none = np.zeros(0, dtype=np.int64)
        codes = np.concatenate([none, *(each[0] for each in held)])
        fine = fine_rows(np.concatenate([none, *(each[1] for each in held)]), bits)
        order = np.lexsort((fine, codes))
        edges = np.searchsorted(codes[order], np.arange(first, last + 1)).tolist()
        ordered, size = fine[order], self.points.size << CELL_BITS
        for start, end in itertools.pairwise(edges):
            yield SortedRuns(rows=ordered[start:end], points=size)

    def _alone(self, group: int) -> GridRows:
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
        """Yield group and point of every row that has both."""
        place = self._place(self.column)
        for block in self.rows.blocks():
            codes, values = self._codes(block), block[:, place]
            kept = codes >= 0
            if self.skip:
                kept &= ~np.isnan(values)
            yield codes[kept], self.points.snap(values[kept])

    @property
    def _on_a_line(self) -> Callable[[Block], Integers]:
        """What returns group times size plus point of the rows of a block that have both."""
        places, place = [self._place(name) for name in self.keys.columns], self._place(self.column)
        keys, points, skip = self.keys, self.points, self.skip

        def on_a_line(block: Block) -> Integers:  # holds nothing of the rows: it runs elsewhere
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
        if isinstance(column, OwnColumn):
            return list[Column](self.rows.columns).index(column)
        return self.rows.columns.index(column) if isinstance(column, str) else int(column)
