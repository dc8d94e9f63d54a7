"""Points of a public grid by their rank among the rows (theory C10.2).

The rank distance of every point to a public aim has sensitivity 1; all points of one distance are
two runs of the grid, so grids of any size cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.rational import as_count, as_rational, float_within
from zerodelta.spine.public_inputs import as_bounds

__all__ = [
    "MOST_POINTS",
    "EvenPoints",
    "ListedPoints",
    "Within",
    "aimed_ranks",
    "as_points",
    "rank_distances",
    "wanted_ranks",
]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_POINTS = (1 << 40) + 1
"""Also the default, whatever the bounds: rows cost time and points do not, and a grid that is
coarser than the rows where they crowd loses (bench/defaults.py)."""

_SURE = 3.0
"""An answer falls beyond all rows with a probability of at most e^-3, far less on most data."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
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
    if margin is None:
        e = min(math.floor(2 * (math.log(points) + _SURE) / min(float(epsilon), 1e6)), n // 10)
    else:
        e = min(as_count(margin, "margin", minimum=0), n // 2)
    if last < e:
        return e, e
    return (n - e, n - e) if first > n - e else (first, last)


def rank_distances(ordered: Integers, *, ranks: tuple[int, int], points: int) -> Within:
    """Return which grid points 0..points-1 are within each distance max(0, L - a, b - U).

    L rows are below a point and U are not above it, a and b are the ranks. One replaced row
    moves L and U by at most 1 each, and therefore this by at most 1. L <= a + k means that the
    point is not above row a + k + 1, and U >= b - k that it is not below row b - k: the points
    within k are those between two rows, or up to an end of the grid.

    >>> within = rank_distances(np.array([2, 2, 5]), ranks=(1, 2), points=8)
    >>> within.low.tolist(), within.high.tolist(), within.members().tolist()
    ([2, 2, 0], [2, 5, 7], [1, 3, 4])
    """
    first, last = ranks
    n = len(ordered)
    count = max(last, n - first) + 1
    low, high = np.zeros(count, np.int64), np.full(count, points - 1, np.int64)
    low[:last] = ordered[:last][::-1]
    high[: n - first] = ordered[first:]
    return Within(low=low, high=high)


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
    if isinstance(grid, (Sequence, np.ndarray)) and not isinstance(grid, (str, bytes)):
        points = np.array([float(as_rational(point, "grid")) for point in grid])
    require(
        len(points) > 0 and bool(np.all(points[1:] > points[:-1])),
        "grid",
        grid,
        expected="a number of points, or points in rising order",
        remedy="pass grid=1001, or sorted(set(points))",
    )
    return ListedPoints(points=points)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
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


@final
@dataclass(frozen=True, kw_only=True, slots=True)
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
