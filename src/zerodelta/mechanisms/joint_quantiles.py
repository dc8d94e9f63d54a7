"""Draw several quantiles together, from rows on a fine grid (theory Q).

Up to some millions of rows are sorted in memory. Of more, a first pass counts the rows of each cell
of the grid, and a second one collects the rows of the cells around the wanted ranks. The place of a
row within the cell of its point is drawn when that point is first looked at, and then kept, so that
the law of the result is the same in both cases.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import final

import numpy as np

from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.joint_ranks import Ranks, Runs, SortedRuns, joint_points, ranks_asked_first
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.ranks import GridRows
from zerodelta.mechanisms.sum_noise import PureMechanism
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.noise import JointQuantiles
from zerodelta.value import value

# -- The mechanism: the number of quantiles costs no ε (theory Q) ---------------------------------
# `JointExponential` reads rows on a grid that is finer than the public one: each row is moved to a
# random place within its own cell, independently of all others, which separates rows on one public
# point (`fine_rows`). Only the public cell of a drawn point is published.

CELL_BITS = 20
"""A cell of the public grid has 2^20 places."""


@value
class JointExponential(PureMechanism):
    """Releases m points in rising order, for each group, drawn by the row counts between them.

    **Neighbors**: one row replaced, or added or removed; a row may be absent, or in no group.
    **Guarantee**: pure DP with ε = 4·rate for one group, twice 4·rate·(1 - the smallest gap) for
    several, half of that for add-remove; gaps are the differences of 0, levels and 1 (theory Q).
    **Public**: everything stored here. The number N of rows is not: level q aims at rank q·N.
    **Error**: `rank_error`.

    >>> joint = JointExponential.for_epsilon(epsilon=1, levels=["1/4", "1/2", "3/4"])
    >>> joint.rate, joint.gaps[0], round(joint.rank_error, 1)
    (Fraction(1, 4), Fraction(1, 4), 3.3)
    """

    levels: tuple[Fraction, ...]
    rate: Fraction
    groups: int
    neighbors: Neighbors

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        levels: Sequence[Rational],
        groups: int = 1,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> JointExponential:
        """Return the mechanism for these rising levels with exactly this ε."""
        exact = tuple(Fraction(level) for level in levels)
        rising = all(a < b for a, b in itertools.pairwise(exact))
        require(
            bool(exact) and rising and exact[0] >= 0 and exact[-1] <= 1,
            "levels",
            [str(level) for level in exact],
            expected="numbers from 0 to 1 in rising order",
            remedy="pass each level once, sorted",
        )
        unit = cls(levels=exact, rate=Fraction(1), groups=groups, neighbors=neighbors)
        return replace(unit, rate=as_positive(epsilon, "epsilon") / unit.epsilon)

    @property
    def gaps(self) -> tuple[Fraction, ...]:
        """The part of the rows that should lie before, between and behind the points."""
        ends = (Fraction(0), *self.levels, Fraction(1))
        return tuple(b - a for a, b in itertools.pairwise(ends))

    @property
    def theorem(self) -> JointQuantiles:
        """Theorem Q."""
        return JointQuantiles(
            rate=self.rate,
            levels=len(self.levels),
            least_gap=min(self.gaps),
            groups=self.groups,
        )

    def draw(self, runs: Runs, bits: BitSource) -> list[int]:
        """Return the cells of the drawn points, in rising order."""
        # wanted gaps are exact fractions of N: rounded to whole ranks they could change by 1 where
        # N does, which theory Q does not allow for
        gaps = [runs.count * gap for gap in self.gaps]
        points = joint_points(runs, gaps, rate=self.rate, bits=bits)
        return [point >> CELL_BITS for point in points]

    def ranks_read_first(self, count: int, *, points: int) -> tuple[Ranks, ...]:
        """Return the ranks among `count` rows that a draw reads first: this affects speed only."""
        gaps = [count * gap for gap in self.gaps]
        return ranks_asked_first(count, gaps, self.rate, points=points << CELL_BITS)

    @property
    def rank_error(self) -> float:
        """The expected rank error of a point, in rows, where rows lie densely.

        1.9·√m/ε at ε = 4·rate, measured in bench/tables_quantiles.py.
        """
        return 1.9 * math.sqrt(len(self.levels)) / float(4 * self.rate)


def fine_rows(points: Integers, bits: BitSource) -> Integers:
    """Return for each row a place of the fine grid, uniform among the places of its cell.

    >>> from zerodelta.exact.bits import SystemBits
    >>> (fine_rows(np.array([3, 3]), SystemBits()) >> CELL_BITS).tolist()
    [3, 3]
    """
    places = bits.words(len(points)) >> np.uint64(64 - CELL_BITS)
    rows: Integers = (points << CELL_BITS) | places.astype(np.int64)
    return rows


MAXIMUM_BATCH = 1 << 22
"""How many rows of one point get their random places in one array."""


def grid_runs(column: GridRows, bits: BitSource) -> Runs:
    """Return the rows of one column on the fine grid, sorted or counted by cell."""
    rows, cells = column.first_pass()
    points = column.points.size << CELL_BITS
    if rows is not None:
        return SortedRuns(rows=np.sort(fine_rows(rows, bits)), points=points)
    return CountedRuns(column, cells, bits)


@final
class CountedRuns:
    """Rows that were counted by cell; cells around the wanted ranks are read a second time."""

    __slots__ = ("_behind", "_bits", "_cells", "_column", "_pieces")

    def __init__(self, column: GridRows, cells: Integers, bits: BitSource) -> None:
        self._column, self._cells, self._bits = column, cells, bits
        self._behind = np.cumsum(cells)
        self._pieces: dict[int, tuple[int, PlacedCell]] = {}
        """For each cell that was read again, the rank of its first row, and its rows."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self._behind[-1])

    @property
    def points(self) -> int:
        """The number of points of the fine grid."""
        return self._column.points.size << CELL_BITS

    def fetch(self, ranges: Sequence[Ranks]) -> None:
        """Read, in one pass, all cells that hold rows next to these ranks."""
        wanted: set[int] = set()
        for ranks in ranges:
            start, stop = max(0, ranks.first - 1), min(self.count, ranks.last + 1)
            if start < stop:
                low, high = np.searchsorted(self._behind, [start, stop - 1], side="right")
                inside = np.arange(int(low), int(high) + 1)
                wanted.update(inside[self._cells[inside] > 0].tolist())
        missing = np.array(sorted(wanted - set(self._pieces)), dtype=np.int64)
        if not len(missing):
            return
        points, counts = self._column.tally(missing, self._cells)
        shift = self._column.shift
        # points are in rising order, so those of one cell stand together
        edges = np.searchsorted(points >> shift, np.append(missing, self._cells.size))
        for place, cell in enumerate(missing.tolist()):
            part, total = slice(int(edges[place]), int(edges[place + 1])), int(self._cells[cell])
            piece = PlacedCell(*_as_counted(points[part], counts[part], total), self._bits)
            self._pieces[cell] = int(self._behind[cell]) - total, piece

    def borders(self, first: int, last: int) -> Integers:
        """Return the fine points where runs `first` to `last` begin, and where the last one ends.

        Run i lies between the rows of rank i - 1 and i; the outer runs end with the grid.
        """
        self.fetch([Ranks(first=first, last=last)])
        start, stop = max(0, first - 1), min(self.count, last + 1)
        low = np.searchsorted(self._behind, start, side="right")
        pieces: list[Integers] = [np.zeros(1 if first == 0 else 0, dtype=np.int64)]
        rank, cell = start, int(low)
        while rank < stop:
            if self._cells[cell]:
                begins, piece = self._pieces[cell]
                ends = begins + int(self._cells[cell])
                pieces.append(piece.rows(rank - begins, min(stop, ends) - begins))
                rank = ends
            cell += 1
        end = [self.points] if last == self.count else []
        return np.concatenate([*pieces, np.array(end, dtype=np.int64)])


@final
class PlacedCell:
    """The rows of one cell, counted by point; rows of a point get places when first needed."""

    __slots__ = ("_behind", "_bits", "_counts", "_placed", "_points")

    def __init__(self, points: Integers, counts: Integers, bits: BitSource) -> None:
        self._points, self._counts, self._bits = points, counts, bits
        self._behind = np.cumsum(counts)
        self._placed: dict[int, Integers] = {}
        if len(counts) and self._behind[-1] <= MAXIMUM_BATCH:  # all at once
            rows = np.sort(fine_rows(np.repeat(points, counts), bits))
            self._points, self._counts = points[:1], self._behind[-1:]
            self._behind, self._placed = self._counts, {0: rows}

    def rows(self, start: int, stop: int) -> Integers:
        """Return the fine rows from rank `start` on and before `stop` in this cell."""
        low, high = np.searchsorted(self._behind, [start, stop - 1], side="right")
        pieces = []
        for place in range(int(low), int(high) + 1):
            begins = int(self._behind[place] - self._counts[place])
            ranks = np.arange(max(start, begins), min(stop, int(self._behind[place]))) - begins
            pieces.append(self._rows_of_point(place, ranks))
        return np.concatenate(pieces)

    def _rows_of_point(self, place: int, ranks: Integers) -> Integers:
        """Return the fine rows of these ranks among the rows of one point."""
        count = int(self._counts[place])
        if place not in self._placed:
            self._placed[place] = self._placed_rows(int(self._points[place]), count)
        placed = self._placed[place]
        if count <= MAXIMUM_BATCH:
            return placed[ranks]
        fine_places = np.searchsorted(placed, ranks, side="right")
        rows: Integers = (int(self._points[place]) << CELL_BITS) + fine_places
        return rows

    def _placed_rows(self, point: int, count: int) -> Integers:
        """Place the rows of one point at random in its fine places, in order.

        Of more than `MAXIMUM_BATCH` rows return instead the number of rows up to each fine place.
        """
        if count <= MAXIMUM_BATCH:
            return np.sort(fine_rows(np.full(count, point, dtype=np.int64), self._bits))
        places = np.zeros(1 << CELL_BITS, dtype=np.int64)
        for start in range(0, count, MAXIMUM_BATCH):
            batch = np.zeros(min(MAXIMUM_BATCH, count - start), dtype=np.int64)
            places += np.bincount(fine_rows(batch, self._bits), minlength=1 << CELL_BITS)
        return np.cumsum(places)


def _as_counted(points: Integers, counts: Integers, total: int) -> tuple[Integers, Integers]:
    """Return points and counts with `total` rows, the number that the first pass counted.

    A source that changed between the passes may yield another number; a wrong number here would
    raise later, at a time that depends on the rows.
    """
    if int(counts.sum()) == total:
        return points, counts
    if not len(points):
        return np.zeros(1, dtype=np.int64), np.array([total])
    counts = counts.copy()
    counts[0] += max(0, total - int(counts.sum()))
    behind = np.minimum(np.cumsum(counts), total)
    return points, np.diff(behind, prepend=0)
