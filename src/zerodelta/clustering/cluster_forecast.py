"""What the methods of k-means are predicted to lose, from public numbers only.

The unit is (inertia / best inertia) - 1, for clusters of equal size with a deviation of 0.06 of the
bounds, centers anywhere in the middle 0.7 of them, and at least 5 deviations between two. Of a
center that n/k rows share, a round's noise moves each coordinate by about k/n times its deviation,
in units of the clusters' radius; of a grid, all cells' noise and the cells' size do. A round
corrects what seeds are off, unless a cluster was missed: that is rare, and costs more than all the
rest. The factors of noise and cells were fitted to the clusters of bench/tasks_forecasts.py.
"""

from __future__ import annotations

import math

import numpy as np

from zerodelta.clustering.cell_grid import MOST_AXES, Grid, grid_for
from zerodelta.clustering.lloyd import ROW_NORM
from zerodelta.exact.arrays import Floats
from zerodelta.spine.methods import Method, ranked

LLOYD_SHARE = 2
"""One in so many parts of ε is for the grid of "lloyd", the rest for its rounds."""

PURIFIED_SHARES = (3, 2, 2, 2)
"""The shares of the internal histogram of "purified", and of its rounds."""

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
    ['histogram', 'lloyd', 'purified', 'one-center']
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

    def missed(grid: Grid, share: float) -> float:
        return _missed(grid, noise=2 / share, rows=rows / clusters, clusters=clusters)

    part, rounds = epsilon / LLOYD_SHARE, lloyd_rounds(d)
    k_norm = 2 * ROW_NORM * rounds / (epsilon - part) * math.sqrt(d + 2)
    nats = clusters * d * math.log(1 + 10 * d) + 7  # what publishing so many coordinates takes
    mu, total = epsilon / math.sqrt(2 * nats), sum(PURIFIED_SHARES)
    first = math.sqrt(PURIFIED_SHARES[0] / total) * mu
    gaussian = 2 * ROW_NORM / (mu * math.sqrt(PURIFIED_SHARES[-1] / total))
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
            name="purified",
            error=moves(gaussian, 2 * first),
            spends=f"{len(PURIFIED_SHARES)} internal queries, one lattice point published",
            why=f"publishing {clusters}·{d} numbers takes about {nats:.0f} nats",
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


def _missed(grid: Grid, *, noise: float, rows: float, clusters: int) -> float:
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


def _limited(excess: float, grid: Grid) -> float:
    """Return an excess that is no larger than that of centers which the rows did not decide.

    Along the columns small and large ones blend slowly; on a few directions rounds either work or
    fail, measured with 10 to 64 columns (13 and 64 in bench/defaults.py).
    """
    if grid.projects:
        return excess / math.hypot(1, excess / _MOST_PROJECTED)
    return excess * _MOST / (excess + _MOST)
