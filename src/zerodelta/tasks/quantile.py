"""A quantile on a public grid: selection by rank, exact for grids of any size (theory C10.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.items import column
from zerodelta.data.source import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.mechanisms.selection import SELECTIONS, worst_gap
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.public_inputs import as_bounds, as_source, one_column
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

__all__ = [
    "QuantileQuestion",
    "Within",
    "aimed_ranks",
    "median",
    "quantile",
    "quantile_methods",
    "rank_distances",
    "wanted_ranks",
]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_MOST_POINTS = (1 << 40) + 1
"""Also the default, whatever the bounds: rows cost time and points do not, and a grid that is
coarser than the rows where they crowd loses (bench/defaults.py)."""

_SURE = 3.0
"""An answer falls beyond all rows with a probability of at most e^-3, far less on most data."""

_FILLED = 100
"""Forecasts are for rows that lie evenly in one part of the bounds out of so many."""


def quantile(
    rows: Any,
    *,
    q: Rational,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    margin: int | None = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release a q-quantile of one bounded column, like `np.quantile`, but private.

    Use it where a few rows may be far away from all others. The answer is the ⌈q·n⌉-th smallest
    row, or any point from there to the next row if q·n is whole.

    Parameters
    ----------
    rows : array, list, series, frame of one column, or Source
        Values are clipped to the bounds and moved to the nearest point; a NaN counts as the middle
        point.
    q : number from 0 to 1
        Which quantile, as it is written: 0.9 of 10 rows is row 9.
    bounds : (lower, upper)
        Where the points lie, known without the rows; not needed if `grid` lists them.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    grid : int or sequence
        How many points lie evenly between the bounds (2^40 + 1 if not given, which is the most;
        whole numbers deserve their own), or the points themselves, in rising order. If it is known
        where rows crowd, points that are about 3/ε rows apart there are a little better.
    margin : int
        The aim is at least so many rows inside the first and the last one, because near the ends
        the empty part of wide bounds would be chosen instead. If not given it is about 60/ε (less
        on coarse grids), at most n/10; pass 0 if rows fill the bounds to their ends.
    method : str
        "permute-and-flip", "exponential", or "auto", the one with the least predicted error.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the grid of rank near q·n.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.2), proven: the rank score of a point has sensitivity 1.
    **Neighbors**: replace-one; the number of rows is public.
    **Error**: the expected rank error in rows, about 2/ε where rows lie evenly around the quantile
    on a finer grid, margin included; how much that is in the unit of the data depends on unseen
    rows. It is for rows that fill a hundredth of the bounds: with few rows at a small ε it says
    that most answers lie beyond all rows.

    Examples
    --------
    >>> ages = np.arange(100_000) % 100
    >>> quantile(ages, q=0.855, bounds=(0, 120), grid=121, epsilon=1).value
    85.0

    """
    source = as_source(rows)
    question = QuantileQuestion(q=q, bounds=bounds, grid=grid, margin=margin, method=method)
    return run(question.plan(Facts.of(source), epsilon), source, bits=bits)


def median(
    rows: Any,
    *,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release a median of one bounded column, like `np.median`, but private.

    It is `quantile` with q = 1/2. Use it instead of a mean where a few rows may be far away.

    Parameters
    ----------
    rows : array, list, series, frame of one column, or Source
        Values are clipped to the bounds and moved to the nearest point; a NaN counts as the middle
        point.
    bounds : (lower, upper)
        Where the points lie, known without the rows; not needed if `grid` lists them.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    grid : int or sequence
        How many points lie evenly between the bounds (2^40 + 1 if not given, which is the most;
        whole numbers deserve their own), or the points themselves, in rising order. If it is known
        where rows crowd, points that are about 3/ε rows apart there are a little better.
    method : str
        "permute-and-flip", "exponential", or "auto", the one with the least predicted error.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the grid of rank near n/2.

    Notes
    -----
    **Guarantee**, **Neighbors**, **Error**: as for `quantile`.

    Examples
    --------
    >>> median(np.arange(101_000) % 101, bounds=(0, 100), grid=101, epsilon=1).value
    50.0

    """
    return quantile(
        rows, q="1/2", bounds=bounds, epsilon=epsilon, grid=grid, method=method, bits=bits
    )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class QuantileQuestion:
    """A quantile of one column is asked, as a point of a public grid."""

    q: Rational
    bounds: tuple[Rational, Rational] | None = None
    grid: int | Sequence[Rational] | None = None
    margin: int | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the ranks to aim at, and calibrate the selection."""
        one_column(facts)
        exact, level, n = as_usable_epsilon(epsilon), _as_level(self.q), facts.planned_rows
        points = _points(self.bounds, self.grid)
        methods = quantile_methods(
            epsilon=exact, n=n, points=points.size, q=level, margin=self.margin
        )
        chosen = choose(methods, self.method)
        mechanism = SELECTIONS[chosen.name].for_epsilon(epsilon=exact, sensitivity=1)
        aim = aimed_ranks(level, n, points=points.size, epsilon=exact, margin=self.margin)

        def answer(rows: Rows, bits: BitSource) -> float:
            ordered = points.snap(column(rows))
            ordered.sort()
            within = rank_distances(ordered, ranks=aim, points=points.size)
            members = within.members()
            levels = np.flatnonzero(members)
            members = members[levels]
            winner = mechanism.select(-levels, bits, members=members)
            place = int(uniform_below(int(members[winner]), size=1, bits=bits)[0])
            return points.value(within.member(int(levels[winner]), place))

        return ReleasePlan(
            claim=PureDP(exact),
            steps=(mechanism.step(),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the number of rows", "the grid of possible answers", "which quantile"),
        )


def quantile_methods(
    *,
    epsilon: Rational,
    n: int,
    points: int | None = None,
    q: Rational = "1/2",
    margin: int | None = None,
) -> tuple[Method, ...]:
    """Return the methods that release a quantile, best first.

    Errors are expected rank errors in rows, for rows that lie evenly in a hundredth of the bounds
    or more. Near the ends they include how far inside `aimed_ranks` aims, and with few rows at a
    small ε the answers that fall beyond all of them. A few points are no worse than any choice
    among so many.

    >>> [round(quantile_methods(epsilon=1, n=n)[0].error, 2) for n in (1000, 1001)]
    [2.04, 2.67]
    >>> round(quantile_methods(epsilon=1, n=10_000, q="0.001")[0].error)
    51
    """
    exact = as_usable_epsilon(epsilon)
    rows = as_count(n, "n", minimum=1)
    size = as_count(_MOST_POINTS if points is None else points, "points", minimum=1)
    level = _as_level(q)
    wanted = wanted_ranks(level, rows)
    aim = aimed_ranks(level, rows, points=size, epsilon=exact, margin=margin)
    far = abs(sum(aim) - sum(wanted)) / 2
    fine = _rank_error(rows, wanted, aim, min(max(float(exact) / 2, 1e-15), 700.0))
    reasons = {
        "permute-and-flip": "its rank error is stochastically the smaller at equal ε",
        "exponential": "the same on fine grids, never better",
    }
    return ranked(
        *(
            Method(
                name=name,
                error=min(fine, far + worst_gap(size, 2 / exact, method=name)),
                spends="ε on one choice",
                why=why,
            )
            for name, why in reasons.items()
        )
    )


def _rank_error(n: int, wanted: tuple[int, int], aim: tuple[int, int], rate: float) -> float:
    """Return the expected rank error on a fine grid, with x = e^-rate = e^(-ε/2).

    If every gap between rows has equally many grid points, P(rank error = k) ∝ x^k, k = 1, 2, …,
    on two sides, and once k = 0 if q·n is whole: the means are 1/(1 - x) and 2x/(1 - x²). Gaps of
    random rows are unequal, which adds about min(1/8, εx) by simulation. An aim d rows off gives
    d + 2x^(d+1)/(1 - x²). Each empty side of the bounds has the points of so many gaps.
    """
    off = abs(sum(aim) - sum(wanted)) / 2
    if off:
        near = off + math.exp(-rate * off) / math.sinh(rate)
    else:
        near = 1 / math.sinh(rate) if aim[0] == aim[1] else -1 / math.expm1(-rate)
    near = min(near + min(0.125, 2 * rate * math.exp(-rate)), n / 2)
    gaps = 1 / math.tanh(rate / 2)  # x^|k| summed over all k: what the points near the aim weigh
    empty = n * (_FILLED - 1) / 2
    left, right = (empty * math.exp(-rate * rank) for rank in (aim[1], n - aim[0]))
    lost = left * wanted[1] + right * (n - wanted[0])
    return (gaps * near + lost) / (gaps + left + right)


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


def _as_level(q: Rational) -> Fraction:
    """Return the level as it is written: 0.9 of 10 rows is row 9, whatever its nearest float is."""
    level = as_rational(repr(float(q)) if isinstance(q, (float, np.floating)) else q, "q")
    require(0 <= level <= 1, "q", q, expected="a number from 0 to 1", remedy="pass q=0.5")
    return level


def _points(bounds: Any, grid: Any) -> _Even | _Listed:
    """Return the public grid of possible answers."""
    if grid is None or isinstance(grid, (int, np.integer)):
        lower, upper = as_bounds(bounds)
        size = _MOST_POINTS if grid is None else as_count(int(grid), "grid", minimum=2)
        remedy = "use a coarser grid"
        most = size <= _MOST_POINTS
        require(most, "grid", grid, expected="at most 2^40 + 1 points", remedy=remedy)
        return _Even(lower=lower, upper=upper, size=size)
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
    return _Listed(points=points)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class _Even:
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
        return float(self.lower + (self.upper - self.lower) * Fraction(point, self.size - 1))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class _Listed:
    """Given points in rising order."""

    points: Floats

    @property
    def size(self) -> int:
        return len(self.points)

    def snap(self, values: Floats) -> Integers:
        """Return the nearest point of each value: how many midpoints are below it."""
        middles = self.points[:-1] / 2 + self.points[1:] / 2
        found = np.searchsorted(middles, values, side="left")
        return np.where(np.isnan(values), (self.size - 1) // 2, found).astype(np.int64)

    def value(self, point: int) -> float:
        return float(self.points[point])
