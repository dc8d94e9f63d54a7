"""The methods of k-means: noise on a grid, on rounds, or on one mean; and their forecasts.

A histogram on a public grid costs one row's two counts whatever its size, and tells where clusters
are; one or two rounds of Lloyd's algorithm with K-norm noise then say where exactly. Where noise
would drown these, one private mean serves as the only center. A longer Lloyd inside a study is no
method: kd published numbers cost more nats than its rounds save.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.clustering.kmeans import (
    MOST_AXES,
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

# -- What the methods of k-means are predicted to lose, from public numbers only ------------------
# The unit is (inertia / best inertia) - 1, for clusters of equal size with a deviation of 0.06 of
# the bounds, centers anywhere in the middle 0.7 of them, and at least 5 deviations between two. Of
# a center that n/k rows share, a round's noise moves each coordinate by about k/n times its
# deviation, in units of the clusters' radius; of a grid, all cells' noise and the cells' size do.
# A round corrects what seeds are off, unless a cluster was missed: that is rare, and costs more
# than all the rest. The factors of noise and cells were fitted to the clusters of
# bench/tasks_forecasts.py.

LLOYD_SHARE = 2
"""One in so many parts of ε is for the grid of "lloyd", the rest for its rounds."""

_RADIUS, _APART, _MIDDLE = 0.06, 0.3, 0.7
"""Deviation of a cluster, least distance and range of centers, in units of the bounds."""

_FALL = 1.4
"""How fast pairs are missed less often where more is lost: likeliest in 3450 runs with 3 to 10
columns, as is the number of two cells of noise for a center."""

_MOST = 10.0
"""Centers spread evenly are about so much worse than the best."""

_MOST_PROJECTED = 12.0
"""So are those that a few directions of many columns found and noisy rounds moved away."""


def kmeans_methods(
    *, rows: int, clusters: int, epsilon: float, sides: Floats
) -> tuple[Method, ...]:
    """Return the methods of `kmeans`, least predicted error first, for bounds with these sides.

    >>> [m.name for m in kmeans_methods(rows=500, clusters=4, epsilon=0.5, sides=np.ones(2))]
    ['histogram', 'lloyd', 'one-center']
    >>> kmeans_methods(rows=10_000, clusters=5, epsilon=1.0, sides=np.ones(10))[0].name
    'lloyd'
    >>> kmeans_methods(rows=2000, clusters=10, epsilon=1.0, sides=np.ones(64))[0].name
    'one-center'
    """
    d = len(sides)

    def cells(share: float) -> float:
        grid = grid_for(sides, rows=rows, clusters=clusters, epsilon=share)
        noisy = 8 / share**2 * grid.size * clusters / rows**2
        coarse = 0.7 * (clusters / grid.size) ** (4 / len(grid.shape))
        return _limited(6 / d * noisy + coarse + missed(grid, share), grid)

    def moves(deviation: float, share: float) -> float:
        grid = grid_for(sides, rows=rows, clusters=clusters, epsilon=share)
        moved = (2 + d / 4) * d * (deviation * clusters / rows) ** 2
        return _limited(moved + missed(grid, share), grid)

    def missed(grid: CellGrid, share: float) -> float:
        return _missed(grid, noise=2 / share, rows=rows / clusters, clusters=clusters)

    part, rounds = epsilon / LLOYD_SHARE, lloyd_rounds(d)
    k_norm = 2 * ROW_NORM * rounds / (epsilon - part) * math.sqrt(d + 2)
    return ranked(
        Method(
            name="histogram",
            error=cells(epsilon) if d <= MOST_AXES else math.inf,
            spends="ε on a noisy histogram",
            why="one count a row, whatever the grid"
            if d <= MOST_AXES
            else f"a grid is too coarse on more than {MOST_AXES} columns",
        ),
        Method(
            name="lloyd",
            error=moves(k_norm, part),
            spends=f"ε/{LLOYD_SHARE} on a noisy histogram, the rest on {rounds} round(s)",
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
    """Return how much of a noisy mean's distance from the middle of the bounds to keep.

    The share v/(v + w) errs least: a mean somewhere in the middle half of the bounds has a variance
    v of 1/48 of the squared width, its noise has w = (d+1)(d+2)/(3(nε)²) of it (theory C10.4). So
    where noise drowns the mean the center is the public middle.

    >>> round(mean_kept(rows=2000, epsilon=1, dimension=64), 4)
    0.9831
    """
    return 1 / (1 + 48 * _mean_noise(rows, epsilon, dimension))


def _mean_noise(rows: int, epsilon: float, dimension: int) -> float:
    """Return the variance of a mean's l∞ noise in one column, in squared widths."""
    return (dimension + 1) * (dimension + 2) / 3 / (rows * epsilon) ** 2


def _one_center(sides: Floats, *, rows: int, clusters: int, epsilon: float) -> float:
    """Return the expected excess of one center for all clusters: what lies between them, noise."""
    squares = float(np.mean(sides**2)) / _RADIUS**2
    spread = _MIDDLE**2 / 12  # of the clusters' centers, and for k of them 1/k of it of their mean
    noise = _mean_noise(rows, epsilon, len(sides))
    kept = mean_kept(rows=rows, epsilon=epsilon, dimension=len(sides))
    off = kept**2 * noise + (1 - kept) ** 2 * spread / clusters
    return squares * (spread * (clusters - 1) / clusters + off)


def lloyd_rounds(columns: int) -> int:
    """Return the rounds of "lloyd": two where the seeds' few directions miss most columns."""
    return 1 if columns <= MOST_AXES else 2


def _missed(grid: CellGrid, *, noise: float, rows: float, clusters: int) -> float:
    """Return the expected cost of clusters that share a center, each of so many rows.

    The k-means of a grid's cells wants a center for cells of noise: the fullest two have some
    b·ln(G/2) rows each, at a squared distance of D²k^(-2/a) from the nearest of k centers along a
    axes. It takes that center from two clusters of m rows at a distance δ if less is lost there:
    m(δ²/2 + 4σ²/π), as halving the two saves. Where both are equal half of the pairs are missed.
    Columns that the grid does not see are then off by the distance of any two centers.
    """
    columns, axes = len(grid.axes), len(grid.shape)
    variance = float(np.mean((_MIDDLE * 2 * grid.middle) ** 2)) / 12  # of a center, in a column
    away = float(((grid.side * np.array(grid.shape)) ** 2).sum()) / 12 + axes * variance
    distance = np.linspace(0 if grid.projects else _APART, 3 * math.sqrt(columns), 3000)[1:]
    density = distance ** (axes - 1) * np.exp(-(distance**2) / (4 * variance))
    lost = rows * (distance**2 / 2 + 4 / math.pi * (_RADIUS**2 + grid.side**2 / 12))
    wanted = 2 * noise * math.log(max(2.0, grid.size / 2)) * away * clusters ** (-2 / axes)
    chance = density / density.sum() * 0.5 ** ((lost / wanted) ** _FALL)
    squared = distance**2 + 2 * variance * (columns - axes)
    each = float(chance @ squared) / (2 * clusters * columns * _RADIUS**2)
    return clusters * (clusters - 1) / 2 * each


def _limited(excess: float, grid: CellGrid) -> float:
    """Return an excess that is no larger than that of centers which the rows did not decide.

    Along the columns small and large ones blend slowly; on a few directions rounds either work or
    fail, measured with 10 to 64 columns (13 and 64 in bench/defaults.py).
    """
    if grid.projects:
        return excess / math.hypot(1, excess / _MOST_PROJECTED)
    return excess * _MOST / (excess + _MOST)


_STEPS = 1 << 20


@value
class Problem:
    """So many centers of so many rows within public bounds, at this ε; what was weighed for it."""

    box: Box
    frame: Frame
    clusters: int
    rows: int
    epsilon: Fraction
    methods: tuple[Method, ...]
    error: float
    """The forecast of the method that was chosen."""
    counted: bool = True
    """Whether `rows` is the number of rows, which is public, or a public guess."""

    def grid(self, epsilon: float) -> CellGrid:
        """Return the grid for counts with Laplace noise of this ε."""
        return grid_for(self.frame.sides, rows=self.rows, clusters=self.clusters, epsilon=epsilon)

    def cells(self, grid: CellGrid) -> Rowwise:
        """Return the function that gives each row the number of its cell."""
        frame = self.frame
        return Rowwise(lambda block: grid.keys(frame.rows(block)))

    def value(self, points: Floats) -> Floats:
        """Return centers in the units of the data, within the bounds."""
        each = points.reshape(self.clusters, self.box.dimension)
        return np.stack([self.box.project(point) for point in self.frame.back(each)])

    def plan(
        self,
        steps: tuple[Step, ...],
        centers: Callable[[Rows, BitSource], Floats],
        *public: str,
    ) -> ReleasePlan[Rows]:
        """Return the plan of a mechanism that yields centers in the frame."""
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
    """Plan a noisy histogram, and to refine it rounds with K-norm noise in each cluster's block."""
    clusters, epsilon, d = problem.clusters, problem.epsilon, problem.box.dimension
    rounds = lloyd_rounds(d) if refine else 0
    share = Fraction(1, LLOYD_SHARE) if rounds else Fraction(1)
    grid = problem.grid(float(epsilon * share))
    laplace = RoundedLaplace.for_epsilon(epsilon=epsilon * share, sensitivity=2)
    threshold = 0.7 * float(laplace.scale) * math.log(grid.size)
    lattice = FixedPoint.ball(dimension=clusters * (d + 1), bound=ROW_NORM, steps=_STEPS)
    noise = KNorm.for_epsilon(
        epsilon=epsilon * (1 - share) / rounds if rounds else epsilon,  # without rounds: unused
        norm=2,
        dimension=d + 1,
        sensitivity=2 * _STEPS,
    )

    def centers(rows: Rows, bits: BitSource) -> Floats:
        counts = laplace.apply(rows.counts(problem.cells(grid), grid.size), bits)
        seeds = seeds_from(counts, grid, clusters=clusters, threshold=threshold)

        def sums(centers: Centers) -> Any:
            blocks = np.split(rows.sum(Rowwise(centers.vectors), lattice), clusters)
            return np.concatenate([noise.apply(block, bits) for block in blocks])

        deviation = float(noise.scale) * math.sqrt(d + 2)
        return refined(problem.frame, grid, seeds, sums, [deviation] * rounds)

    a_round = (
        "the lattice of a round; a row has an l2 norm of at most half the sensitivity in the block "
        "of one cluster and 0 in the others, and the noise's norm is the sum of the l2 norms of "
        "the blocks"
    )
    return problem.plan(
        (laplace.step(), *(noise.step(quantum=lattice.quantum, blocks=True),) * rounds),
        centers,
        "the grid; replacing a row moves two of its counts by 1, together by 2",
        *([a_round] if rounds else []),
    )


def one_center(problem: Problem) -> ReleasePlan[Rows]:
    """Plan a noisy mean as every center, shrunk to the middle of the bounds by a public factor."""
    frame, n, d = problem.frame, problem.rows, problem.box.dimension
    sides = np.maximum(frame.sides, 1e-300)
    lattice = FixedPoint.box(dimension=d, lower=0, upper=sides.tolist(), steps=_STEPS)
    counted = 0 if problem.counted else 1  # a coordinate for the number of rows, times the steps
    noise = KNorm.for_epsilon(
        epsilon=problem.epsilon, norm=math.inf, dimension=d + counted, sensitivity=2 * _STEPS
    )
    kept = mean_kept(rows=n, epsilon=float(problem.epsilon), dimension=d)
    quantum, unit = lattice.quantum, Fraction(frame.unit)  # of the frame: the longest side
    each = quantum if isinstance(quantum, tuple) else (quantum,) * d

    def shifts(rows: Rows, bits: BitSource) -> Floats:
        """Return how far the mean is from the middle of the bounds."""
        if problem.counted:
            noisy = noise.apply(rows.sum(Rowwise(frame.rows), lattice), bits)
            return lattice.dequantize(noisy, rows=n) / n - sides / 2
        # rows that count nowhere are (0, 0): no coordinate of another moves by more (theory P)
        present, sums = rows.present_sums(Rowwise(frame.rows), lattice, joint=True)
        first, *noisy_sums = noise.apply(np.array([_STEPS * present[0], *sums]), bits).tolist()
        if first <= 0:
            return np.zeros(d)
        shares = (
            float(q * total * _STEPS / first) for q, total in zip(each, noisy_sums, strict=True)
        )
        return np.clip(list(shares), -sides / 2, sides / 2)

    def centers(rows: Rows, bits: BitSource) -> Floats:
        point = np.clip(sides / 2 + kept * shifts(rows, bits), 0, frame.sides)
        return np.tile(point, (problem.clusters, 1))

    return problem.plan(
        (noise.step(quantum=(*[Fraction(1, _STEPS)] * counted, *(unit * one for one in each))),),
        centers,
        "the lattice of the sum; replacing a row moves each column by at most the sensitivity, and "
        "the noise's norm is the largest coordinate",
    )
