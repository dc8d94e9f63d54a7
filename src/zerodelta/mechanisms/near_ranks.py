"""The rows around a rank, found by counting on the public grid in bounded memory (theory C10.2).

Up to some millions of rows are sorted. Of more, coarse cells of the grid are counted in one pass,
and a second one collects the rows of the few cells around the aim. Points beyond are not scored,
only bounded, unless the selection asks for one: the law is the same in all cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.exact.arrays import Integers
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.mechanisms.ranks import Aim, EvenPoints, ListedPoints, Within, rank_distances
from zerodelta.value import value

Points = EvenPoints | ListedPoints

_HELD = 1 << 21
"""Up to so many rows are held in memory: 16 MiB."""
_ONE_PASS = 1 << 24
"""A grid of so many points is counted point by point."""
_CELL_BITS = 20
"""A larger one in at most 2^20 cells first."""


@value
class RankGroups:
    """Points of the grid in groups of one score: minus their distance from the aim, times its unit.

    If `beyond`, the last group holds all points that are farther away, and its score is a bound.
    """

    scores: Integers
    members: Integers
    beyond: bool
    within: Within
    levels: Integers
    """The level of each group; for a unit above 1, minus that for the points on the left."""
    aim: Aim

    @staticmethod
    def of(within: Within, aim: Aim, *, points: int) -> RankGroups:
        """Return the groups that the levels make up."""
        low, high = within.low, within.high
        if aim.unit == 1:
            members = within.members()
            levels = np.arange(len(members))
            scores = -levels
        else:  # the two sides of a level have different scores
            steps = np.arange(1, len(low))
            levels = np.concatenate([[0], -steps, steps])
            left, right = aim.before - aim.unit * steps, aim.after - aim.unit * steps
            scores = np.concatenate([[0], left, right])
            members = np.concatenate([[high[0] - low[0] + 1], -np.diff(low), np.diff(high)])
        some = members > 0
        scores, members, levels = scores[some], members[some], levels[some]
        beyond = points - (int(high[-1]) - int(low[-1]) + 1)
        if beyond:
            bound = max(aim.after, aim.before) - aim.unit * len(low)
            scores, members = np.append(scores, bound), np.append(members, beyond)
        return RankGroups(
            scores=scores,
            members=members,
            beyond=beyond > 0,
            within=within,
            levels=levels,
            aim=aim,
        )

    def point(self, group: int, place: int) -> int:
        """Return the point of that place in a group, from left to right."""
        if self.beyond and group == len(self.scores) - 1:
            return self.far_point(place)
        level = int(self.levels[group])
        if self.aim.unit == 1 or level == 0:
            return self.within.member(level, place)
        if level < 0:
            return int(self.within.low[-level]) + place
        return int(self.within.high[level - 1]) + 1 + place

    def far_point(self, place: int) -> int:
        """Return the point of that place among those beyond all levels."""
        first, last = int(self.within.low[-1]), int(self.within.high[-1])
        return place if place < first else place + last - first + 1


@value
class GridRows:
    """One column of opened rows, each moved to its point of the grid.

    A cell without a value counts at the middle point, or nowhere (`skip`).
    """

    rows: Rows
    points: Points
    skip: bool
    column: int = 0
    inside: Callable[[Block], npt.NDArray[np.bool_]] | None = None
    """Which rows count at all; by default every one."""

    def groups(self, aim_of: Callable[[int], Aim], *, reach: int) -> RankGroups:
        """Return the points by their distance from the aim, scored up to `reach` rows from it.

        `aim_of` is told how many rows count, which may be private.
        """
        held, cells = self.first_pass()
        count = int(cells.sum()) if held is None else len(held)
        aim = aim_of(count)
        first, last = min(aim.first, count), min(aim.last, count)
        start, stop = max(0, last - reach), min(count, first + reach)
        within = rank_distances(
            self._window(cells, start, stop) if held is None else np.sort(held)[start:stop],
            ranks=(first, last),
            points=self.points.size,
            skipped=start,
            count=count,
            levels=reach,
        )
        return RankGroups.of(within, aim, points=self.points.size)

    def ranks(self, point: int) -> tuple[int, int]:
        """Return how many rows are below a point, and how many are not above it."""
        snap = self.snap

        def counted(block: Block) -> IntegerArray:
            part = snap(block)
            return np.array([np.count_nonzero(part < point), np.count_nonzero(part <= point)])

        below, not_above = self.rows.total(counted, self._columns, shape=(2,), bound=1)
        return int(below), int(not_above)

    def parts(self) -> Iterator[Integers]:
        """Yield the points of all rows that count."""
        return map(self.snap, self.rows.blocks())

    def counts(self) -> Integers:
        """Return how many rows are at each point of a grid that is no larger than a table."""
        if not self.rows.adds_here:
            return self._counted_there(0, self.points.size, 0)
        counts = np.zeros(self.points.size, dtype=np.int64)
        for part in self.parts():
            counts += np.bincount(part, minlength=self.points.size)
        return counts

    @property
    def _columns(self) -> list[int]:
        return list(range(len(self.rows.columns)))

    @property
    def snap(self) -> Callable[[Block], Integers]:
        """What returns the points of the rows of a block that count."""
        points, skip, column, inside = self.points, self.skip, self.column, self.inside

        def snapped(block: Block) -> Integers:  # holds nothing of the rows: it may run elsewhere
            values = block[:, column]
            if inside is not None:
                values = values[inside(block)]
            if skip:
                absent = np.isnan(values)
                values = values[~absent] if absent.any() else values
            return points.snap(values)

        return snapped

    @property
    def shift(self) -> int:
        """By how many bits a point's number is longer than that of its cell."""
        size = self.points.size
        return 0 if size <= _ONE_PASS else max(0, (size - 1).bit_length() - _CELL_BITS)

    def first_pass(self) -> tuple[Integers | None, Integers]:
        """Return the points of all rows if they are few, else how many rows each cell has."""
        if not self.rows.adds_here:
            size = ((self.points.size - 1) >> self.shift) + 1
            return None, self._counted_there(0, size, self.shift)
        shift, most = self.shift, max(_HELD, self.points.size >> 2 if self.shift == 0 else 0)
        cells = np.zeros(0, dtype=np.int64)
        held: list[Integers] = []
        waiting = 0
        for part in self.parts():
            held.append(part)
            waiting += len(part)
            if waiting > most:
                cells, held, waiting = self._counted(cells, held, shift), [], 0
        if not len(cells):
            return _joined(held), cells
        return None, self._counted(cells, held, shift)

    def _counted(self, cells: Integers, held: list[Integers], shift: int) -> Integers:
        size = ((self.points.size - 1) >> shift) + 1
        counted = np.bincount(_joined(held) >> shift, minlength=size)
        return counted if not len(cells) else np.add(cells, counted, out=cells)

    def tally(self, wanted: Integers, cells: Integers) -> tuple[Integers, Integers]:
        """Return the points of the rows in some cells, in order, and how many rows each has."""
        if self.shift == 0:
            return wanted, cells[wanted]
        inside = np.zeros(len(cells), dtype=np.bool_)
        inside[wanted] = True
        points, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        held: list[Integers] = []
        waiting = 0
        for part in self.parts():
            held.append(part[inside[part >> self.shift]])
            waiting += len(held[-1])
            if waiting > _HELD:
                (points, counts), held, waiting = _merged(points, counts, held), [], 0
        return _merged(points, counts, held)

    def _window(self, cells: Integers, start: int, stop: int) -> Integers:
        """Return the rows from rank `start` on and before `stop`, in rising order."""
        behind, shift = np.cumsum(cells), self.shift
        wanted = np.arange(start, stop)
        if shift == 0 or not len(wanted):
            return np.searchsorted(behind, wanted, side="right")
        low, high = (int(np.searchsorted(behind, rank, side="right")) for rank in (start, stop - 1))
        # only a cell at an end of the window can have many more rows than the window
        ends = [cell for cell in {low, high} if cells[cell] > _HELD]
        heavy, light = self._second_pass(low, high, sorted(ends))
        found = np.sort(light)
        before = int(behind[low - 1]) if low else 0
        skipped = before + (int(cells[low]) if low in heavy else 0)
        pieces = [found[max(0, start - skipped) : max(0, stop - skipped)]]
        for at, counts in heavy.items():
            begins = int(behind[at]) - int(cells[at])
            ranks = wanted[(wanted >= begins) & (wanted < int(behind[at]))] - begins
            points = np.searchsorted(np.cumsum(counts), ranks, side="right") + (at << shift)
            pieces.insert(0 if at == low else len(pieces), points)
        window = np.concatenate(pieces)
        # as many as planned whatever happened to the source in between
        return window if len(window) == len(wanted) else np.sort(np.resize(window, len(wanted)))

    def _second_pass(
        self, low: int, high: int, ends: list[int]
    ) -> tuple[dict[int, Integers], Integers]:
        """Return how many rows each point of the heavy cells has, and the rows of the others."""
        shift, snap = self.shift, self.snap

        def light(block: Block) -> Integers:  # holds nothing of the rows: it may run elsewhere
            part = snap(block)
            cell = part >> shift
            kept = (cell >= low) & (cell <= high)
            for at in ends:
                kept &= cell != at
            return part[kept]

        if not self.rows.adds_here:
            within = self._counted_there
            there = {at: within(at << shift, 1 << shift, 0) for at in ends}
            return there, self.rows.gathered(light)
        counted = {at: np.zeros(1 << shift, np.int64) for at in ends}
        found: list[Integers] = []
        for block in self.rows.blocks():
            found.append(light(block))
            for at, counts in counted.items():
                part = snap(block)
                inside = part[part >> shift == at] - (at << shift)
                if len(inside):
                    counts += np.bincount(inside, minlength=1 << shift)
        return counted, _joined(found)

    def _counted_there(self, first: int, size: int, shift: int) -> Integers:
        """Return how many rows are in each of `size` cells, counted where the rows are."""
        snap = self.snap

        def keys(block: Block) -> IntegerArray:
            cell = (snap(block) - first) >> shift
            return cell[(cell >= 0) & (cell < size)]

        counts = self.rows.total(keys, self._columns, shape=(size,), bound=1, keyed=True)
        return counts.astype(np.int64)


def _merged(points: Integers, counts: Integers, held: list[Integers]) -> tuple[Integers, Integers]:
    """Return the points and their counts together with rows that were not counted yet."""
    more, added = np.unique(_joined(held), return_counts=True)
    both = np.concatenate([points, more])
    found, where = np.unique(both, return_inverse=True)
    total = np.zeros(len(found), dtype=np.int64)
    np.add.at(total, where, np.concatenate([counts, added]))
    return found, total


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
