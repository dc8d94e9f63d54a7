"""Points of a public grid by their rank among the rows (theory C10.2).

The rank distance of every point to the aim has sensitivity 1; all points of one distance are two
runs of the grid, so grids of any size cost nothing. Where the number of rows is private the aim
follows it (`PrivateAim`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.kind import Kind
from zerodelta.data.kinds import Boolean, Number
from zerodelta.errors import is_list, require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.rational import Rational, as_count, as_float, as_rational, float_within
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
