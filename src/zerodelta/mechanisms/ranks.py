"""Group the points of a public grid by their rank distance from a wanted rank (theory C10.2).

One row changes the rank distance of every point by at most 1. All points at one distance are two
intervals of the grid, so a selection among 2^40 points costs no more time than one among few. The
wanted rank is the *aim*; where the number of rows is private it follows that number (`PrivateAim`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.kinds import Boolean, Kind, Number
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import is_list, require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.rational import (
    Rational,
    as_bounds,
    as_count,
    as_float,
    as_rational,
    float_within,
)
from zerodelta.exact.sums import IntegerArray
from zerodelta.value import value

MOST_POINTS = (1 << 40) + 1
"""Also the default, whatever the bounds: more points cost no time, and a grid that is coarser than
the gaps between crowded rows adds error (measured in bench/defaults.py)."""


@value
class Within:
    """The grid points at a rank distance of at most k: all from `low[k]` to `high[k]`."""

    low: Integers
    high: Integers

    def members(self) -> Integers:
        """Return the number of points at exactly the distance k from the aim, for each k."""
        sizes = self.high - self.low
        sizes += 1
        sizes[1:] -= sizes[:-1].copy()
        return sizes

    def member(self, distance: int, place: int) -> int:
        """Return the point at `place` among all points at this distance, from left to right."""
        first = int(self.low[distance])
        if distance == 0:
            return first + place
        left = int(self.low[distance - 1]) - first
        return first + place if place < left else int(self.high[distance - 1]) + 1 + place - left


def wanted_ranks(q: Fraction, n: int) -> tuple[int, int]:
    """Return the ranks ⌊qn⌋ and ⌈qn⌉ between which a q-quantile lies.

    At most ⌊qn⌋ rows are below a q-quantile, and at least ⌈qn⌉ are not above it. If the two are
    equal, every point from that row to the next is a quantile. The ranks are clipped so that
    q = 0 is the first row and q = 1 the last.

    >>> half = Fraction(1, 2)
    >>> wanted_ranks(half, 7), wanted_ranks(half, 8), wanted_ranks(Fraction(1), 8)
    ((3, 4), (4, 4), (7, 8))
    """
    return min(math.floor(q * n), n - 1), max(math.ceil(q * n), 1)


def aimed_ranks(q: Fraction, n: int, *, margin: int = 0) -> tuple[int, int]:
    """Return the wanted ranks, moved at least `margin` rows away from both ends, at most to n/2.

    The part of the bounds before the first row may hold nearly all points. Their distance is the
    wanted rank k, so if k < (2/ε) ln(their number for each gap between rows) the released point
    lies there, k rows off. An aim t rows further inside is t rows off where it helps, so it can
    gain only if t < k, and where rows fill the bounds it only loses. The default is therefore none
    (measured in bench/quantile_margins.py). The scores of `rank_distances` have sensitivity 1 for
    *any* ranks that do not depend on the rows, so the privacy claim does not depend on the margin.

    >>> [aimed_ranks(Fraction(1, k), 10**4, margin=60) for k in (1000, 100, 2)]
    [(60, 60), (100, 100), (5000, 5000)]
    """
    first, last = wanted_ranks(q, n)
    e = min(margin, n // 2)
    if last < e:
        return e, e
    return (n - e, n - e) if first > n - e else (first, last)


@value
class Aim:
    """The wanted ranks: a point is max(0, u·L - (u·a + f), (u·b - g) - u·U)/u ranks away from them.

    L rows are below the point and U are not above it; a = `first`, b = `last`, u = `unit`,
    f = `after`, g = `before`. With u = 1 and f = g = 0 the aim is a pair of ranks; with
    u·a + f = u·b - g it is one number between two ranks.
    """

    first: int
    last: int
    unit: int = 1
    after: int = 0
    before: int = 0

    def distance(self, below: int, not_above: int) -> int:
        """Return the distance of a point, times `unit`."""
        right = self.unit * (below - self.first) - self.after
        left = self.unit * (self.last - not_above) - self.before
        return max(0, right, left)


@value
class PrivateAim:
    """The aim among N rows that count, where N is private and only `of` receives it.

    `follows`: both ranks grow by 0 or 1 for each further row, so a row that is added, removed or
    replaced changes a distance by at most 1. Otherwise the aim is the number q·N itself, and a row
    that is added or removed changes a distance by at most max(q, 1 - q); this is for add-remove
    (theory C10.2).
    """

    q: Fraction
    follows: bool = True
    margin: int = 0

    @property
    def sensitivity(self) -> int:
        """By how much one row can change a distance, times its unit."""
        if self.follows:
            return 1
        return max(self.q.numerator, self.q.denominator - self.q.numerator)

    def of(self, count: int) -> Aim:
        """Return the ranks to aim at among `count` rows; they change by at most 1 with a row.

        >>> private = PrivateAim(q=Fraction(1, 2), margin=60)
        >>> [(aim.first, aim.last) for aim in map(private.of, (0, 1, 2, 3))]
        [(0, 0), (0, 1), (1, 1), (1, 2)]
        >>> PrivateAim(q=Fraction(1, 4), follows=False).of(5)
        Aim(first=1, last=2, unit=4, after=1, before=3)
        """
        if not self.follows:
            unit, aimed = self.q.denominator, self.q.numerator * count
            first, last = aimed // unit, -(-aimed // unit)
            after, before = aimed - unit * first, unit * last - aimed
            return Aim(first=first, last=last, unit=unit, after=after, before=before)
        e = min(self.margin, count // 2)
        # each term grows by 0 or 1 with each row, and so do their minima and maxima: sensitivity 1
        first = min(math.floor(self.q * count), max(count - 1, 0))
        last = max(math.ceil(self.q * count), min(count, 1))
        first, last = (min(max(rank, e), count - e) for rank in (first, last))
        return Aim(first=first, last=last)


def rank_distances(
    ordered: Integers,
    *,
    ranks: tuple[int, int],
    points: int,
    skipped: int = 0,
    count: int | None = None,
    levels: int | None = None,
) -> Within:
    """Return the grid points 0..points-1 within each distance max(0, L - a, b - U).

    L rows are below a point and U are not above it; a and b are the ranks. One replaced row
    changes L and U by at most 1 each, and therefore the distance by at most 1. L <= a + k means
    that the point is not above row a + k + 1, and U >= b - k that it is not below row b - k, so the
    points within distance k lie between two rows, or between a row and an end of the grid.
    `ordered` holds the points of the rows in rising order. Of `count` rows in all it may leave out
    the first `skipped` and some last ones, if the first `levels` distances need none of them.

    >>> within = rank_distances(np.array([2, 2, 5]), ranks=(1, 2), points=8)
    >>> within.low.tolist(), within.high.tolist(), within.members().tolist()
    ([2, 2, 0], [2, 5, 7], [1, 3, 4])
    """
    first, last = ranks
    n = len(ordered) if count is None else count
    all_levels = max(last, n - first) + 1
    size = all_levels if levels is None else min(levels, all_levels)
    low, high = np.zeros(size, np.int64), np.full(size, points - 1, np.int64)
    left, right = min(last, size), min(n - first, size)
    low[:left] = ordered[last - left - skipped : last - skipped][::-1]
    high[:right] = ordered[first - skipped : first + right - skipped]
    return Within(low=low, high=high)


def as_level(q: Rational) -> Fraction:
    """Return a level exactly as it is written: 0.9 means 9/10, not the nearest float to it."""
    level = as_rational(repr(float(q)) if isinstance(q, (float, np.floating)) else q, "q")
    require(0 <= level <= 1, "q", q, expected="a number from 0 to 1", remedy="pass q=0.5")
    return level


def grid_of(kind: Kind) -> int | None:
    """Return the number of values of a column declared as integer or boolean, if not too many."""
    if isinstance(kind, Boolean):
        return 2
    if not isinstance(kind, Number) or not kind.integer:
        return None
    size = int(kind.upper - kind.lower) + 1
    return size if size <= MOST_POINTS else None


def as_points(bounds: Any, grid: Any) -> EvenPoints | ListedPoints:
    """Return the grid of possible answers: evenly spaced in the bounds, or as listed."""
    if grid is None or isinstance(grid, (int, np.integer)):
        lower, upper = as_bounds(bounds)
        size = MOST_POINTS if grid is None else as_count(int(grid), "grid", minimum=2)
        require(
            size <= MOST_POINTS,
            "grid",
            grid,
            expected="at most 2^40 + 1 points",
            remedy="use a coarser grid",
        )
        return EvenPoints(lower=lower, upper=upper, size=size)
    points = np.zeros(0)
    if isinstance(grid, (Sequence, np.ndarray)) and is_list(grid):
        points = np.array([as_float(point, "grid") for point in grid])
    require(
        len(points) > 0 and bool(np.all(points[1:] > points[:-1])),
        "grid",
        grid,
        expected="a number of points, or points in rising order",
        remedy="pass grid=1001, or sorted(set(points))",
    )
    return ListedPoints(points=points)


@value
class EvenPoints:
    """Evenly spaced points from `lower` to `upper`, both included."""

    lower: Fraction
    upper: Fraction
    size: int

    def snap(self, values: Floats) -> Integers:
        """Return the nearest grid point of each value, by elementwise operations only.

        NaN becomes the middle point.
        """
        top = float(self.size - 1)
        with np.errstate(all="ignore"):
            scaled = values - float(self.lower)  # the only copy: columns may be long
            scaled /= float(self.upper - self.lower)
            scaled *= top
            np.nan_to_num(scaled, copy=False, nan=top)
            scaled[np.isnan(values)] = float((self.size - 1) // 2)
            np.clip(scaled, 0.0, top, out=scaled)
            return np.rint(scaled, out=scaled).astype(np.int64)

    def value(self, point: int) -> float:
        """Return the value of the point with this number."""
        exact = self.lower + (self.upper - self.lower) * Fraction(point, self.size - 1)
        return float_within(exact, self.lower, self.upper)


@value
class ListedPoints:
    """Points in rising order, listed by the caller."""

    points: Floats

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.points)

    def snap(self, values: Floats) -> Integers:
        """Return the nearest point of each value: the number of midpoints below the value."""
        middles = self.points[:-1] / 2 + self.points[1:] / 2
        nearest = np.searchsorted(middles, values, side="left")
        return np.where(np.isnan(values), (self.size - 1) // 2, nearest).astype(np.int64)

    def value(self, point: int) -> float:
        """Return the value of the point with this number."""
        return float(self.points[point])


# -- Rows near the aim, in bounded memory (theory C10.2) ------------------------------------------
# Up to some millions of rows are sorted in memory. Of more, a first pass counts the rows in coarse
# cells of the grid, and a second one collects the rows of the few cells around the aim. Points
# farther away get a common bound on their scores; only if the selection reaches that bound is one
# of them scored. The law of the result is the same in all cases.

Points = EvenPoints | ListedPoints

_HELD = 1 << 21
"""The largest number of rows that are held in memory: 16 MiB."""
_ONE_PASS = 1 << 24
"""The largest number of points that are counted one by one."""
_CELL_BITS = 20
"""A larger grid is first counted in at most 2^20 cells."""


@value
class RankGroups:
    """Points of the grid in groups of equal score: minus their distance from the aim, in its unit.

    If `beyond`, the last group holds all points that are farther away than the levels, and its
    score is an upper bound of theirs.
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
        """Return the groups of points at each level, and one group of all points beyond them."""
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
        occupied = members > 0
        scores, members, levels = scores[occupied], members[occupied], levels[occupied]
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
        """Return the point at `place` in a group, from left to right."""
        if self.beyond and group == len(self.scores) - 1:
            return self.far_point(place)
        level = int(self.levels[group])
        if self.aim.unit == 1 or level == 0:
            return self.within.member(level, place)
        if level < 0:
            return int(self.within.low[-level]) + place
        return int(self.within.high[level - 1]) + 1 + place

    def far_point(self, place: int) -> int:
        """Return the point at `place` among the points beyond all levels."""
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
    """The function that tells which rows of a block count; by default every one does."""

    def groups(self, aim_of: Callable[[int], Aim], *, reach: int) -> RankGroups:
        """Return the points by their distance from the aim, scored up to `reach` rows from it.

        `aim_of` receives the number of rows that count, which may be private.
        """
        rows, cells = self.first_pass()
        count = int(cells.sum()) if rows is None else len(rows)
        aim = aim_of(count)
        first, last = min(aim.first, count), min(aim.last, count)
        start, stop = max(0, last - reach), min(count, first + reach)
        within = rank_distances(
            self._window(cells, start, stop) if rows is None else np.sort(rows)[start:stop],
            ranks=(first, last),
            points=self.points.size,
            skipped=start,
            count=count,
            levels=reach,
        )
        return RankGroups.of(within, aim, points=self.points.size)

    def ranks(self, point: int) -> tuple[int, int]:
        """Return the number of rows below a point, and the number of rows not above it."""
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
        """Return the number of rows at each point, for a grid small enough to be a table."""
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
        """The function from a block to the points of its rows that count."""
        points, skip, column, inside = self.points, self.skip, self.column, self.inside

        # may be sent to the workers, so it must not capture `self`, which holds the rows
        def snapped(block: Block) -> Integers:
            """Return the grid points of a block's rows that count and are present."""
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
        """The number of low bits of a point's number that its cell's number lacks."""
        size = self.points.size
        return 0 if size <= _ONE_PASS else max(0, (size - 1).bit_length() - _CELL_BITS)

    def first_pass(self) -> tuple[Integers | None, Integers]:
        """Return the points of all rows if they fit into memory, else the rows in each cell.

        The result is (points, empty array) or (None, counts).
        """
        if not self.rows.adds_here:
            size = ((self.points.size - 1) >> self.shift) + 1
            return None, self._counted_there(0, size, self.shift)
        shift, largest = self.shift, max(_HELD, self.points.size >> 2 if self.shift == 0 else 0)
        cells = np.zeros(0, dtype=np.int64)
        held: list[Integers] = []
        held_rows = 0
        for part in self.parts():
            held.append(part)
            held_rows += len(part)
            if held_rows > largest:
                cells, held, held_rows = self._counted(cells, held, shift), [], 0
        if not len(cells):
            return _joined(held), cells
        return None, self._counted(cells, held, shift)

    def _counted(self, cells: Integers, held: list[Integers], shift: int) -> Integers:
        """Return the counts of `cells` with the held rows added; an empty array has no counts."""
        size = ((self.points.size - 1) >> shift) + 1
        counted = np.bincount(_joined(held) >> shift, minlength=size)
        return counted if not len(cells) else np.add(cells, counted, out=cells)

    def tally(self, wanted: Integers, cells: Integers) -> tuple[Integers, Integers]:
        """Return the points of the rows in the wanted cells, in order, and their numbers of rows.

        `cells` are the counts of all cells.
        """
        if self.shift == 0:
            return wanted, cells[wanted]
        inside = np.zeros(len(cells), dtype=np.bool_)
        inside[wanted] = True
        points, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        held: list[Integers] = []
        held_rows = 0
        for part in self.parts():
            held.append(part[inside[part >> self.shift]])
            held_rows += len(held[-1])
            if held_rows > _HELD:
                (points, counts), held, held_rows = _merged(points, counts, held), [], 0
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
        ordered = np.sort(light)
        before = int(behind[low - 1]) if low else 0
        skipped = before + (int(cells[low]) if low in heavy else 0)
        pieces = [ordered[max(0, start - skipped) : max(0, stop - skipped)]]
        for cell, counts in heavy.items():
            begins = int(behind[cell]) - int(cells[cell])
            ranks = wanted[(wanted >= begins) & (wanted < int(behind[cell]))] - begins
            points = np.searchsorted(np.cumsum(counts), ranks, side="right") + (cell << shift)
            pieces.insert(0 if cell == low else len(pieces), points)
        window = np.concatenate(pieces)
        # the planned number of rows, even if the source changed between the two passes
        return window if len(window) == len(wanted) else np.sort(np.resize(window, len(wanted)))

    def _second_pass(
        self, low: int, high: int, ends: list[int]
    ) -> tuple[dict[int, Integers], Integers]:
        """Return the row counts of each point of the heavy cells, and the rows of the others.

        The cells `low` to `high` are read; the heavy ones are listed in `ends`.
        """
        shift, snap = self.shift, self.snap

        # may be sent to the workers, so it must not capture `self`, which holds the rows
        def light(block: Block) -> Integers:
            """Return the points of a block in the wanted cells that are not heavy."""
            part = snap(block)
            cells = part >> shift
            kept = (cells >= low) & (cells <= high)
            for heavy in ends:
                kept &= cells != heavy
            return part[kept]

        if not self.rows.adds_here:
            heavy_counts = {
                cell: self._counted_there(cell << shift, 1 << shift, 0) for cell in ends
            }
            return heavy_counts, self.rows.gathered(light)
        heavy_counts = {cell: np.zeros(1 << shift, np.int64) for cell in ends}
        light_rows: list[Integers] = []
        for block in self.rows.blocks():
            light_rows.append(light(block))
            for cell, counts in heavy_counts.items():
                part = snap(block)
                inside = part[part >> shift == cell] - (cell << shift)
                if len(inside):
                    counts += np.bincount(inside, minlength=1 << shift)
        return heavy_counts, _joined(light_rows)

    def _counted_there(self, first: int, size: int, shift: int) -> Integers:
        """Return the number of rows in each of `size` cells, counted where the rows are."""
        snap = self.snap

        def keys(block: Block) -> IntegerArray:
            cell = (snap(block) - first) >> shift
            return cell[(cell >= 0) & (cell < size)]

        counts = self.rows.total(keys, self._columns, shape=(size,), bound=1, keyed=True)
        return counts.astype(np.int64)


def _merged(points: Integers, counts: Integers, held: list[Integers]) -> tuple[Integers, Integers]:
    """Return points and counts with the held rows, which were not counted yet, added."""
    new_points, new_counts = np.unique(_joined(held), return_counts=True)
    merged, places = np.unique(np.concatenate([points, new_points]), return_inverse=True)
    total = np.zeros(len(merged), dtype=np.int64)
    np.add.at(total, places, np.concatenate([counts, new_counts]))
    return merged, total


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
