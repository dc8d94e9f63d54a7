"""Points of a public grid by their rank among the rows, near ones first (theory C10.2).

The rank distance of every point to the aim has sensitivity 1; all points of one distance are two
runs of the grid, so grids of any size cost nothing. Where the number of rows is private the aim
follows it (`PrivateAim`).
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
from zerodelta.exact.rational import Rational, as_count, as_float, as_rational, float_within
from zerodelta.exact.sums import IntegerArray
from zerodelta.spine.public_inputs import as_bounds
from zerodelta.value import value

MOST_POINTS = (1 << 40) + 1
"""Also the default, whatever the bounds: rows cost time and points do not, and a grid that is
coarser than the rows where they crowd loses (bench/defaults.py)."""

_SURE = 3.0
"""An answer falls beyond all rows with a probability of at most e^-3, far less on most data."""


@value
class Within:
    """The grid points at a rank distance of at most k: all from `low[k]` to `high[k]`."""

    low: Integers
    high: Integers

    def members(self) -> Integers:
        """Return how many points are at each distance k."""
        sizes = self.high - self.low
        sizes += 1
        sizes[1:] -= sizes[:-1].copy()
        return sizes

    def member(self, distance: int, place: int) -> int:
        """Return the point of that place among all points at this distance, from left to right."""
        first = int(self.low[distance])
        if distance == 0:
            return first + place
        left = int(self.low[distance - 1]) - first
        return first + place if place < left else int(self.high[distance - 1]) + 1 + place - left


def wanted_ranks(q: Fraction, n: int) -> tuple[int, int]:
    """Return (⌊qn⌋, ⌈qn⌉): at most so many rows below a q-quantile, at least so many not above it.

    If they are the same, all points from that row to the next are quantiles. The first and the
    last row are the ends.

    >>> half = Fraction(1, 2)
    >>> wanted_ranks(half, 7), wanted_ranks(half, 8), wanted_ranks(Fraction(1), 8)
    ((3, 4), (4, 4), (7, 8))
    """
    return min(math.floor(q * n), n - 1), max(math.ceil(q * n), 1)


def aimed_ranks(
    q: Fraction, n: int, *, points: int, epsilon: Fraction, margin: int | None = None
) -> tuple[int, int]:
    """Return the wanted ranks, but at least e rows away from both ends; e = `margin` if given.

    The part of the bounds beyond the first row may hold nearly all points. They are at a distance
    of the wanted rank, so for ranks below (2/ε) ln(points) their number outweighs their distance,
    and the answer would be somewhere in the empty part. e = (2/ε)(ln(points) + 3) makes that rarer
    than e^-3 whatever the rows are (theory C10.2), but no aim leaves the first or the last tenth
    of the rows that it was in. All of this is public, and the scores of `rank_distances` have a
    sensitivity of 1 for *any* ranks that do not depend on the rows: the claim is not touched.

    >>> tight = Fraction(1)
    >>> [aimed_ranks(Fraction(1, k), 10**4, points=2**40, epsilon=tight) for k in (1000, 100, 2)]
    [(61, 61), (100, 100), (5000, 5000)]
    """
    first, last = wanted_ranks(q, n)
    most, parts = end_margin(points=points, epsilon=epsilon, margin=margin)
    e = min(most, n // parts)
    if last < e:
        return e, e
    return (n - e, n - e) if first > n - e else (first, last)


def end_margin(*, points: int, epsilon: Fraction, margin: int | None) -> tuple[int, int]:
    """Return how many rows the aim stays away from both ends, and from which part of the rows on.

    >>> end_margin(points=2**40, epsilon=Fraction(1), margin=None)
    (61, 10)
    """
    if margin is not None:
        return as_count(margin, "margin", minimum=0), 2
    return math.floor(2 * (math.log(points) + _SURE) / min(float(epsilon), 1e6)), 10


@value
class Aim:
    """What the distance of a point is measured from: max(0, u·L - (u·a + f), (u·b - g) - u·U)/u.

    L rows are below a point and U are not above it; a = `first`, b = `last`, u = `unit`,
    f = `after`, g = `before`. With u = 1, f = g = 0 the aim is a pair of ranks; with
    u·a + f = u·b - g it is one number between them.
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
    """The aim among N rows that count, where N is private; only `of` is told it.

    `follows`: both ranks grow with N by 0 or 1 for each row more, so that a row that comes, goes or
    is replaced moves a distance by at most 1. Else the aim is the number q·N itself, and a row that
    comes or goes moves a distance by at most max(q, 1 - q): for add-remove (theory C10.2).
    """

    q: Fraction
    follows: bool = True
    margin: int = 0
    parts: int = 10

    @property
    def sensitivity(self) -> int:
        """By how much one row can move a distance, times its unit."""
        if self.follows:
            return 1
        return max(self.q.numerator, self.q.denominator - self.q.numerator)

    def of(self, count: int) -> Aim:
        """Return the aim for so many rows.

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
        e = min(self.margin, count // self.parts)
        # every term grows by 0 or 1 with the number of rows, and so do their minima and maxima
        first = min(math.floor(self.q * count), max(count - 1, 0))
        last = max(math.ceil(self.q * count), min(count, 1))
        inside = [min(max(rank, e), count - e) for rank in (first, last)]
        return Aim(first=inside[0], last=inside[1])


def rank_distances(
    ordered: Integers,
    *,
    ranks: tuple[int, int],
    points: int,
    skipped: int = 0,
    count: int | None = None,
    levels: int | None = None,
) -> Within:
    """Return which grid points 0..points-1 are within each distance max(0, L - a, b - U).

    L rows are below a point and U are not above it, a and b are the ranks. One replaced row
    moves L and U by at most 1 each, and therefore this by at most 1. L <= a + k means that the
    point is not above row a + k + 1, and U >= b - k that it is not below row b - k: the points
    within k are those between two rows, or up to an end of the grid. `ordered` may leave out that
    many rows before it (`skipped`) and others behind it, of `count` rows in all, if the first
    `levels` distances need none of them.

    >>> within = rank_distances(np.array([2, 2, 5]), ranks=(1, 2), points=8)
    >>> within.low.tolist(), within.high.tolist(), within.members().tolist()
    ([2, 2, 0], [2, 5, 7], [1, 3, 4])
    """
    first, last = ranks
    n = len(ordered) if count is None else count
    every = max(last, n - first) + 1
    asked = every if levels is None else min(levels, every)
    low, high = np.zeros(asked, np.int64), np.full(asked, points - 1, np.int64)
    left, right = min(last, asked), min(n - first, asked)
    low[:left] = ordered[last - left - skipped : last - skipped][::-1]
    high[:right] = ordered[first - skipped : first + right - skipped]
    return Within(low=low, high=high)


def as_level(q: Rational) -> Fraction:
    """Return the level as it is written: 0.9 of 10 rows is row 9, whatever its nearest float is."""
    level = as_rational(repr(float(q)) if isinstance(q, (float, np.floating)) else q, "q")
    require(0 <= level <= 1, "q", q, expected="a number from 0 to 1", remedy="pass q=0.5")
    return level


def grid_of(kind: Kind) -> int | None:
    """Return how many values a column has that was declared to be whole, if not too many."""
    if isinstance(kind, Boolean):
        return 2
    if not isinstance(kind, Number) or not kind.integer:
        return None
    size = int(kind.upper - kind.lower) + 1
    return size if size <= MOST_POINTS else None


def as_points(bounds: Any, grid: Any) -> EvenPoints | ListedPoints:
    """Return the public grid of possible answers."""
    if grid is None or isinstance(grid, (int, np.integer)):
        lower, upper = as_bounds(bounds)
        size = MOST_POINTS if grid is None else as_count(int(grid), "grid", minimum=2)
        remedy = "use a coarser grid"
        most = size <= MOST_POINTS
        require(most, "grid", grid, expected="at most 2^40 + 1 points", remedy=remedy)
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
        """Return the nearest grid point of each value, by elementwise operations only."""
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
        """Return the point of that number."""
        exact = self.lower + (self.upper - self.lower) * Fraction(point, self.size - 1)
        return float_within(exact, self.lower, self.upper)


@value
class ListedPoints:
    """Given points in rising order."""

    points: Floats

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.points)

    def snap(self, values: Floats) -> Integers:
        """Return the nearest point of each value: how many midpoints are below it."""
        middles = self.points[:-1] / 2 + self.points[1:] / 2
        found = np.searchsorted(middles, values, side="left")
        return np.where(np.isnan(values), (self.size - 1) // 2, found).astype(np.int64)

    def value(self, point: int) -> float:
        """Return the point of that number."""
        return float(self.points[point])


# -- Near ranks -----------------------------------------------------------------------------------
# The rows around a rank, found by counting on the public grid in bounded memory (theory C10.2).
#
# Up to some millions of rows are sorted. Of more, coarse cells of the grid are counted in one
# pass, and a second one collects the rows of the few cells around the aim. Points beyond are not
# scored, only bounded, unless the selection asks for one: the law is the same in all cases.

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
