"""A quantile on a public grid: selection by rank, exact for grids of any size (theory C10.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.tasks.methods import Method, choose, ranked
from zerodelta.tasks.public_inputs import as_bounds, as_source, column, for_source, row_count
from zerodelta.tasks.select import SELECTIONS, worst_gap

__all__ = ["Runs", "median", "quantile", "quantile_methods", "rank_runs", "wanted_ranks"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LEAST_DEFAULT, _MOST_POINTS = 1 << 16, 1 << 40


def quantile(
    rows: Any,
    *,
    q: Rational,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release a q-quantile of one column: a point of a public grid of rank near q·n.

    It is the ⌈q·n⌉-th smallest row, or any point from there to the next row if q·n is whole.

    **Releases**: a grid point. `grid` is how many points lie evenly between the bounds (2 to 2^40;
    about 1024·n if not given; whole numbers deserve their own), or the points themselves. If it is
    known where rows crowd, points that are about 3/ε rows apart there are a little better.
    `method`: "permute-and-flip", "exponential".
    **Neighbors**: replace-one (n is public).
    **Guarantee**: pure ε-DP (PF, EM): one row moves the rank score of every point by at most 1;
    proven.
    **Public**: n, q, `bounds` or the grid's points. Rows are moved to the nearest grid point, those
    beyond the ends to the ends; a NaN counts as the middle point.
    **Error**: the expected rank error in rows, about 2/ε where rows lie evenly around the quantile
    on a finer grid; how much that is in the unit of the data depends on unseen rows.

    >>> ages = np.arange(10_000) % 100
    >>> release = quantile(ages, q=0.9, bounds=(0, 120), grid=121, epsilon=1)
    >>> 88 <= release.value <= 91, round(release.error, 2)
    (True, 2.04)
    """
    bits = SystemBits() if bits is None else bits
    exact, level = as_usable_epsilon(epsilon), _as_level(q)
    source = as_source(rows)
    n = row_count(source)
    points = _Even.of(bounds, grid, n) if _counts_points(grid) else _Listed.of(grid)
    chosen = choose(quantile_methods(epsilon=exact, n=n, points=points.size, q=level), method)
    mechanism = SELECTIONS[chosen.name].for_epsilon(epsilon=exact, sensitivity=1)
    certificate = issue(
        claim=PureDP(exact),
        steps=(mechanism.step(),),
        bits=bits,
        public=("the number of rows", "the grid of possible answers", "which quantile"),
    )
    ordered = np.sort(points.snap(column(source)))
    runs = rank_runs(ordered, ranks=wanted_ranks(level, n), points=points.size)
    members = np.bincount(runs.distances, weights=runs.lengths).astype(np.int64)  # at most 2^40
    levels = np.flatnonzero(members)
    members = members[levels]
    winner = mechanism.select(-levels, bits, members=members)
    place = int(uniform_below(int(members[winner]), size=1, bits=bits)[0])
    return Release(
        value=points.value(runs.member(int(levels[winner]), place)),
        certificate=for_source(certificate, source),
        error=chosen.error,
    )


def median(
    rows: Any,
    *,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release a median of one column: `quantile` with q = 1/2.

    **Releases**, **Neighbors**, **Guarantee**, **Public**, **Error**: as for `quantile`.

    >>> 40 <= median(np.arange(1000) % 100, bounds=(0, 100), epsilon=1).value <= 60
    True
    """
    return quantile(
        rows, q="1/2", bounds=bounds, epsilon=epsilon, grid=grid, method=method, bits=bits
    )


def quantile_methods(
    *, epsilon: Rational, n: int, points: int | None = None, q: Rational = "1/2"
) -> tuple[Method, ...]:
    """Return the ways to release a quantile, best first.

    Errors are expected rank errors in rows. If every gap between rows has equally many grid points,
    P(rank error = k) ∝ x^k, x = e^(-ε/2), k = 1, 2, …, on two sides, and once k = 0 if q·n is
    whole: the means are 1/(1 - x) and 2x/(1 - x²). Gaps of random rows are unequal, which adds
    about min(1/8, εx) by simulation. A few points are no worse than any choice among so many.

    >>> [round(quantile_methods(epsilon=1, n=n)[0].error, 2) for n in (1000, 1001)]
    [2.04, 2.67]
    """
    scale = 2 / as_usable_epsilon(epsilon)
    rows = as_count(n, "n", minimum=1)
    size = as_count(_default_points(rows) if points is None else points, "points", minimum=1)
    first, last = wanted_ranks(_as_level(q), rows)
    rate = min(max(1 / float(scale), 1e-15), 700.0)
    equal = 1 / math.sinh(rate) if first == last else -1 / math.expm1(-rate)
    fine = min(equal + min(0.125, 2 * rate * math.exp(-rate)), rows / 2)
    reasons = {
        "permute-and-flip": "its rank error is stochastically the smaller at equal ε",
        "exponential": "the same on fine grids, never better",
    }
    return ranked(
        *(
            Method(
                name=name,
                error=min(fine, worst_gap(size, scale, method=name)),
                spends="ε on one choice",
                why=why,
            )
            for name, why in reasons.items()
        )
    )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """Grid points in runs of equal rank distance: where each starts, its length, its distance."""

    starts: Integers
    lengths: Integers
    distances: Integers

    def member(self, distance: int, place: int) -> int:
        """Return the grid point of that rank among all points at this distance."""
        chosen = np.flatnonzero(self.distances == distance)
        ends = np.cumsum(self.lengths[chosen])
        run = int(np.searchsorted(ends, place, side="right"))
        before = int(ends[run - 1]) if run else 0
        return int(self.starts[chosen[run]]) + place - before


def wanted_ranks(q: Fraction, n: int) -> tuple[int, int]:
    """Return (⌊qn⌋, ⌈qn⌉): at most so many rows below a q-quantile, at least so many not above it.

    If they are the same, all points from that row to the next are quantiles. The first and the
    last row are the ends.

    >>> half = Fraction(1, 2)
    >>> wanted_ranks(half, 7), wanted_ranks(half, 8), wanted_ranks(Fraction(1), 8)
    ((3, 4), (4, 4), (7, 8))
    """
    return min(math.floor(q * n), n - 1), max(math.ceil(q * n), 1)


def rank_runs(ordered: Integers, *, ranks: tuple[int, int], points: int) -> Runs:
    """Return max(0, L - a, b - U) for all grid points 0..points-1, in at most 2n + 1 runs.

    L rows are below a point and U are not above it, a and b are the wanted ranks. One replaced row
    moves L and U by at most 1 each, and therefore this by at most 1.

    >>> runs = rank_runs(np.array([2, 2, 5]), ranks=(1, 2), points=8)
    >>> runs.starts.tolist(), runs.lengths.tolist(), runs.distances.tolist()
    ([2, 5, 0, 3, 6], [1, 1, 2, 2, 2], [0, 1, 2, 1, 2])
    """
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    values, not_above = ordered[last], last + 1
    below = np.append(0, not_above[:-1])
    starts = np.concatenate([values, [0], values + 1])
    ends = np.concatenate([values + 1, values, [points]])
    low = np.concatenate([below, [0], not_above])
    high = np.concatenate([not_above, [0], not_above])
    distances = np.maximum(0, np.maximum(low - ranks[0], ranks[1] - high))
    kept = ends > starts
    return Runs(starts=starts[kept], lengths=(ends - starts)[kept], distances=distances[kept])


def _as_level(q: Rational) -> Fraction:
    """Return the level as it is written: 0.9 of 10 rows is row 9, whatever its nearest float is."""
    level = as_rational(repr(float(q)) if isinstance(q, (float, np.floating)) else q, "q")
    if not 0 <= level <= 1:
        raise ParameterError("q", q, expected="a number from 0 to 1", remedy="pass q=0.5")
    return level


def _default_points(n: int) -> int:
    """Return 2^k + 1 of at least 1024·n points: finer than the rows, wherever they crowd."""
    return min(max(_LEAST_DEFAULT, 1 << (1024 * n - 1).bit_length()) + 1, _MOST_POINTS)


def _counts_points(grid: Any) -> bool:
    return grid is None or isinstance(grid, (int, np.integer))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class _Even:
    """Evenly spaced points from `lower` to `upper`, both included."""

    lower: Fraction
    upper: Fraction
    size: int

    @staticmethod
    def of(bounds: Any, grid: Any, n: int) -> _Even:
        lower, upper = as_bounds(bounds)
        size = _default_points(n) if grid is None else as_count(grid, "grid", minimum=2)
        if size > _MOST_POINTS:
            raise ParameterError(
                "grid", grid, expected="at most 2^40 points", remedy="use a coarser grid"
            )
        return _Even(lower=lower, upper=upper, size=size)

    def snap(self, values: Floats) -> Integers:
        """Return the nearest grid point of each value, by elementwise operations only."""
        top = float(self.size - 1)
        with np.errstate(all="ignore"):
            scaled = (values - float(self.lower)) / float(self.upper - self.lower) * top
            scaled = np.where(np.isnan(values), float((self.size - 1) // 2), scaled)
            return np.rint(np.clip(np.nan_to_num(scaled, nan=top), 0.0, top)).astype(np.int64)

    def value(self, point: int) -> float:
        return float(self.lower + (self.upper - self.lower) * Fraction(point, self.size - 1))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class _Listed:
    """Given points in rising order."""

    points: Floats

    @staticmethod
    def of(grid: Any) -> _Listed:
        try:
            points = np.array([float(as_rational(point, "grid")) for point in grid])
        except TypeError:
            points = np.zeros(0)
        if len(points) == 0 or bool(np.any(points[1:] <= points[:-1])):
            raise ParameterError(
                "grid",
                grid,
                expected="a number of points, or points in rising order",
                remedy="pass grid=1001, or sorted(set(points))",
            )
        return _Listed(points=points)

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
