"""Plan the methods of k-means, noise on a grid, on rounds or on one mean, and forecast them.

A histogram on a public grid has sensitivity two for any number of cells, and finds the clusters.
One or two rounds of Lloyd's algorithm with K-norm noise then locate their centers precisely. Where
noise would drown these, one private mean serves as every center. A longer Lloyd's algorithm inside
a study is not offered: publishing k·d numbers costs more than its rounds save.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.clustering.kmeans import (
    MAXIMUM_AXES,
    ROW_NORM,
    CellGrid,
    Centers,
    Frame,
    grid_for,
    refined,
    seeds_from,
)
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Rowwise
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.sum_noise import KNorm, RoundedLaplace
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Step
from zerodelta.spaces import Box
from zerodelta.spine.plan import Method, ReleasePlan, ranked
from zerodelta.value import value

# -- Forecasts of the excess inertia of each method, from public numbers --------------------------
# Forecasts are of (inertia / best inertia) - 1, for clusters of equal size with a deviation of 0.06
# of the bounds, centers anywhere in the middle 0.7 of them, and at least 5 deviations between two.
# A center has n/k rows, so the noise of a round moves each coordinate by about k/n times its
# deviation, in units of the clusters' radius. On a grid, the noise and the size of cells move it. A
# round corrects the error of seeds, unless two clusters share a center: that is rare, and costs
# more than all other errors. The factors of noise and cells were fitted to the clusters of
# `bench/tasks_forecasts.py`.

LLOYD_DIVISOR = 2
"""ε divided by this is for the grid of "lloyd", the rest for its rounds."""

_RADIUS, _SMALLEST_DISTANCE, _CENTER_RANGE = 0.06, 0.3, 0.7
"""The deviation of a cluster, the smallest distance and the range of centers, in units of the
bounds."""

_MISS_EXPONENT = 1.4
"""The rate at which pairs of clusters share a center less often if that loses more, in `_missed`:
a maximum likelihood estimate from 3450 runs with 3 to 10 columns, no script of which remains. That
two cells of noise compete for a center was estimated from the same runs."""

_MAXIMUM_EXCESS = 10.0
"""The approximate excess of centers spread evenly over the bounds."""

_MAXIMUM_PROJECTED_EXCESS = 12.0
"""The approximate excess of centers seeded on a few directions and moved away by noisy rounds."""


def kmeans_methods(
    *, rows: int, clusters: int, epsilon: float, sides: Floats
) -> tuple[Method, ...]:
    """Return the methods of `kmeans`, best forecast first, for bounds with these sides.

    >>> [m.name for m in kmeans_methods(rows=500, clusters=4, epsilon=0.5, sides=np.ones(2))]
    ['histogram', 'lloyd', 'one-center']
    >>> kmeans_methods(rows=10_000, clusters=5, epsilon=1.0, sides=np.ones(10))[0].name
    'lloyd'
    >>> kmeans_methods(rows=2000, clusters=10, epsilon=1.0, sides=np.ones(64))[0].name
    'one-center'
    """
    d = len(sides)

    def histogram_error(grid_epsilon: float) -> float:
        """Forecast the error if only a noisy histogram on a grid is clustered."""
        grid = grid_for(sides, rows=rows, clusters=clusters, epsilon=grid_epsilon)
        noise = 8 / grid_epsilon**2 * grid.size * clusters / rows**2
        cell_size = 0.7 * (clusters / grid.size) ** (4 / len(grid.shape))
        return _limited(6 / d * noise + cell_size + missed(grid, grid_epsilon), grid)

    def lloyd_error(deviation: float, grid_epsilon: float) -> float:
        grid = grid_for(sides, rows=rows, clusters=clusters, epsilon=grid_epsilon)
        noise = (2 + d / 4) * d * (deviation * clusters / rows) ** 2
        return _limited(noise + missed(grid, grid_epsilon), grid)

    def missed(grid: CellGrid, grid_epsilon: float) -> float:
        return _missed(grid, noise=2 / grid_epsilon, rows=rows / clusters, clusters=clusters)

    grid_part, rounds = epsilon / LLOYD_DIVISOR, lloyd_rounds(d)
    k_norm = 2 * ROW_NORM * rounds / (epsilon - grid_part) * math.sqrt(d + 2)
    return ranked(
        Method(
            name="histogram",
            error=histogram_error(epsilon) if d <= MAXIMUM_AXES else math.inf,
            spends="ε on a noisy histogram",
            why="one count a row, whatever the grid"
            if d <= MAXIMUM_AXES
            else f"a grid is too coarse on more than {MAXIMUM_AXES} columns",
        ),
        Method(
            name="lloyd",
            error=lloyd_error(k_norm, grid_part),
            spends=f"ε/{LLOYD_DIVISOR} on a noisy histogram, the rest on {rounds} round(s)",
            why="the histogram finds the clusters, a round measures them off the grid",
        ),
        Method(
            name="one-center",
            error=_one_center(sides, rows=rows, clusters=clusters, epsilon=epsilon),
            spends="ε on the mean of all rows",
            why="finds no clusters, but its center is where the rows are",
        ),
    )


def mean_kept(*, rows: int, epsilon: float, dimension: int) -> float:
    """Return the factor that shrinks a noisy mean toward the middle of the bounds.

    The factor v/(v + w) has the smallest error: a mean somewhere in the middle half of the bounds
    has a variance v of 1/48 of the squared width, and its noise a variance w = (d+1)(d+2)/(3(nε)²)
    of it (theory C10.4). Where noise drowns the mean the result is the public middle.

    >>> round(mean_kept(rows=2000, epsilon=1, dimension=64), 4)
    0.9831
    """
    return 1 / (1 + 48 * _mean_noise(rows, epsilon, dimension))


def _mean_noise(rows: int, epsilon: float, dimension: int) -> float:
    """Return the variance of a mean's l∞ noise in one column, in squared widths."""
    return (dimension + 1) * (dimension + 2) / 3 / (rows * epsilon) ** 2


def _one_center(sides: Floats, *, rows: int, clusters: int, epsilon: float) -> float:
    """Return the expected excess of one center for all clusters: their variance, and its error."""
    squares = float(np.mean(sides**2)) / _RADIUS**2
    spread = _CENTER_RANGE**2 / 12  # the variance of a cluster's center; that of their mean is 1/k
    noise = _mean_noise(rows, epsilon, len(sides))
    kept = mean_kept(rows=rows, epsilon=epsilon, dimension=len(sides))
    squared_error = kept**2 * noise + (1 - kept) ** 2 * spread / clusters
    return squares * (spread * (clusters - 1) / clusters + squared_error)


def lloyd_rounds(columns: int) -> int:
    """Return the rounds of "lloyd": two where seeds lie on a few directions of many columns."""
    return 1 if columns <= MAXIMUM_AXES else 2


def _missed(grid: CellGrid, *, noise: float, rows: float, clusters: int) -> float:
    """Return the expected excess by pairs of clusters, of `rows` rows each, that share a center.

    The k-means of noisy counts may place a center at cells of pure noise. With Laplace noise of
    scale b on G cells the two fullest have about b·ln(G/2) rows each, at a squared distance of
    D²k^(-2/a) from the nearest of k centers along a axes: a center there gains their product. It is
    taken from two clusters of m rows at a distance δ, which loses m(δ²/2 + 4σ²/π). If gain and loss
    are equal half of the pairs share a center; the chance falls with their ratio. In columns that
    the grid does not see a shared center is off by the distance of any two centers.
    """
    columns, axes = len(grid.axes), len(grid.shape)
    # of a center, in a column
    variance = float(np.mean((_CENTER_RANGE * 2 * grid.middle) ** 2)) / 12
    squared_radius = float(((grid.side * np.array(grid.shape)) ** 2).sum()) / 12 + axes * variance
    smallest = 0 if grid.projects else _SMALLEST_DISTANCE
    distance = np.linspace(smallest, 3 * math.sqrt(columns), 3000)[1:]
    density = distance ** (axes - 1) * np.exp(-(distance**2) / (4 * variance))
    loss = rows * (distance**2 / 2 + 4 / math.pi * (_RADIUS**2 + grid.side**2 / 12))
    noise_rows = 2 * noise * math.log(max(2.0, grid.size / 2))
    gain = noise_rows * squared_radius * clusters ** (-2 / axes)
    chance = density / density.sum() * 0.5 ** ((loss / gain) ** _MISS_EXPONENT)
    squared = distance**2 + 2 * variance * (columns - axes)
    pair = float(chance @ squared) / (2 * clusters * columns * _RADIUS**2)
    return clusters * (clusters - 1) / 2 * pair


def _limited(excess: float, grid: CellGrid) -> float:
    """Limit an excess by that of centers that do not depend on the rows.

    On the columns the transition is slow. On a few directions rounds either work or fail, so it is
    sharp: measured with 10 to 64 columns (13 and 64 in `bench/defaults.py`).
    """
    if grid.projects:
        return excess / math.hypot(1, excess / _MAXIMUM_PROJECTED_EXCESS)
    return excess * _MAXIMUM_EXCESS / (excess + _MAXIMUM_EXCESS)


_STEPS = 1 << 20


@value
class Problem:
    """k-means problem: number of centers and rows, bounds, ε, and the methods compared."""

    box: Box
    frame: Frame
    clusters: int
    rows: int
    epsilon: Fraction
    methods: tuple[Method, ...]
    error: float
    """The forecast of the chosen method."""
    counted: bool = True
    """Whether `rows` is the exact number, which then is public, or an expected number."""

    def grid(self, epsilon: float) -> CellGrid:
        """Return the grid for counts with Laplace noise of this ε."""
        return grid_for(self.frame.sides, rows=self.rows, clusters=self.clusters, epsilon=epsilon)

    def cells(self, grid: CellGrid) -> Rowwise:
        """Return the function that maps rows to the indices of their cells."""
        frame = self.frame
        return Rowwise(lambda block: grid.keys(frame.rows(block)))

    def value(self, points: Floats) -> Floats:
        """Return centers in the units of the data, within the bounds."""
        centers = self.frame.back(points.reshape(self.clusters, self.box.dimension))
        return np.stack([self.box.project(center) for center in centers])

    def plan(
        self,
        steps: tuple[Step, ...],
        centers: Callable[[Rows, BitSource], Floats],
        *public: str,
    ) -> ReleasePlan[Rows]:
        """Return the plan of a mechanism that returns centers in units of the frame."""
        rows = "of rows, " if self.counted else "a number of rows to plan with, "
        known = (
            f"the bounds {self.box!r}, the number of clusters, {self.clusters}, and {rows}"
            f"{self.rows}"
        )
        return ReleasePlan(
            claim=PureDP(self.epsilon),
            steps=steps,
            answer=lambda rows, bits: self.value(centers(rows, bits)),
            error=self.error,
            methods=self.methods,
            public=(known, *public, "every number in the steps"),
        )


def noisy_lloyd(problem: Problem, *, refine: bool) -> ReleasePlan[Rows]:
    """Plan a noisy histogram and, with `refine`, rounds with K-norm noise on each cluster."""
    clusters, epsilon, d = problem.clusters, problem.epsilon, problem.box.dimension
    rounds = lloyd_rounds(d) if refine else 0
    share = Fraction(1, LLOYD_DIVISOR) if rounds else Fraction(1)
    grid = problem.grid(float(epsilon * share))
    laplace = RoundedLaplace.for_epsilon(epsilon=epsilon * share, sensitivity=2)
    # the largest of G Laplace numbers is about scale · ln(G): few cells of noise exceed this
    threshold = 0.7 * float(laplace.scale) * math.log(grid.size)
    lattice = FixedPoint.ball(dimension=clusters * (d + 1), bound=ROW_NORM, steps=_STEPS)
    noise = KNorm.for_epsilon(
        epsilon=epsilon * (1 - share) / rounds if rounds else epsilon,  # without rounds: unused
        norm=2,
        dimension=d + 1,
        sensitivity=2 * _STEPS,
    )

    def centers(rows: Rows, bits: BitSource) -> Floats:
        """Return centers: seeds from a noisy grid, refined by noisy rounds of Lloyd."""
        counts = laplace.apply(rows.counts(problem.cells(grid), grid.size), bits)
        seeds = seeds_from(counts, grid, clusters=clusters, threshold=threshold)

        def sums(centers: Centers) -> Any:
            blocks = np.split(rows.sum(Rowwise(centers.vectors), lattice), clusters)
            return np.concatenate([noise.apply(block, bits) for block in blocks])

        deviation = float(noise.scale) * math.sqrt(d + 2)
        return refined(problem.frame, grid, seeds, sums, [deviation] * rounds)

    round_numbers = (
        "the lattice of a round; a row has an l2 norm of at most half the sensitivity in the block "
        "of one cluster and 0 in the others, and the noise's norm is the sum of the l2 norms of "
        "the blocks"
    )
    return problem.plan(
        (laplace.step(), *(noise.step(quantum=lattice.quantum, blocks=True),) * rounds),
        centers,
        "the grid; replacing a row moves two of its counts by 1, together by 2",
        *([round_numbers] if rounds else []),
    )


def one_center(problem: Problem) -> ReleasePlan[Rows]:
    """Plan a noisy mean as every center, shrunk to the middle of the bounds by a public factor."""
    frame, n, d = problem.frame, problem.rows, problem.box.dimension
    sides = np.maximum(frame.sides, 1e-300)
    lattice = FixedPoint.box(dimension=d, lower=0, upper=sides.tolist(), steps=_STEPS)
    extra = 0 if problem.counted else 1  # one more coordinate measures a private number of rows
    noise = KNorm.for_epsilon(
        epsilon=problem.epsilon, norm=math.inf, dimension=d + extra, sensitivity=2 * _STEPS
    )
    kept = mean_kept(rows=n, epsilon=float(problem.epsilon), dimension=d)
    quantum, unit = lattice.quantum, Fraction(frame.unit)  # the unit of a frame: the longest side
    quanta = quantum if isinstance(quantum, tuple) else (quantum,) * d

    def shifts(rows: Rows, bits: BitSource) -> Floats:
        """Return the noisy mean of all rows, less the middle of the bounds."""
        if problem.counted:
            noisy = noise.apply(rows.sum(Rowwise(frame.rows), lattice), bits)
            return lattice.dequantize(noisy, rows=n) / n - sides / 2
        # a dropped row adds 0 to all coordinates, so that the sensitivity is the same (theory P)
        present, sums = rows.present_sums(Rowwise(frame.rows), lattice, joint=True)
        first, *noisy_sums = noise.apply(np.array([_STEPS * present[0], *sums]), bits).tolist()
        if first <= 0:
            return np.zeros(d)
        means = (
            float(q * total * _STEPS / first) for q, total in zip(quanta, noisy_sums, strict=True)
        )
        return np.clip(list(means), -sides / 2, sides / 2)

    def centers(rows: Rows, bits: BitSource) -> Floats:
        point = np.clip(sides / 2 + kept * shifts(rows, bits), 0, frame.sides)
        return np.tile(point, (problem.clusters, 1))

    return problem.plan(
        (noise.step(quantum=(*[Fraction(1, _STEPS)] * extra, *(unit * q for q in quanta))),),
        centers,
        "the lattice of the sum; replacing a row moves each column by at most the sensitivity, and "
        "the noise's norm is the largest coordinate",
    )
