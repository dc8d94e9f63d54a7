"""What the ways to publish k-means centres are predicted to lose, from public numbers only.

The unit is (inertia / best inertia) - 1, for compact clusters of equal size that a grid can tell
apart. Of a centre that n/k rows share, a round's noise moves each coordinate by about k/n times its
deviation, in units of the clusters' radius; of a grid, all cells' noise and the cells' size do. A
round corrects what seeds are off, unless a cluster was missed: the more, the noisier the grid. The
factors were fitted to the clusters of bench/tasks_forecasts.py.
"""

from __future__ import annotations

import math

import numpy as np

from zerodelta.tasks.kmeans_grid import MOST_AXES, Floats, Grid, grid_for
from zerodelta.tasks.kmeans_rounds import ROW_NORM
from zerodelta.tasks.methods import Method, ranked

__all__ = ["LLOYD_SHARE", "PURIFIED_SHARES", "kmeans_methods", "lloyd_rounds"]

LLOYD_SHARE = 2
"""One in so many parts of ε is for the grid of "lloyd", the rest for its rounds."""

PURIFIED_SHARES = (3, 2, 2, 2)
"""The shares of the hidden histogram of "purified", and of its rounds."""

_MISSED, _MISSED_UNSEEN = 10.0, 500.0
"""What missed clusters cost over the square of a grid's noise, if it has all columns and if not."""

_MOST = 10.0
"""Centres spread evenly are about so much worse than the best."""


def kmeans_methods(
    *, rows: int, clusters: int, epsilon: float, sides: Floats | None = None, dimension: int = 2
) -> tuple[Method, ...]:
    """Return the methods of `kmeans`, least predicted error first.

    `sides` are those of the bounds, by default `dimension` equal ones.

    >>> [way.name for way in kmeans_methods(rows=500, clusters=4, epsilon=0.5)]
    ['histogram', 'lloyd', 'purified']
    >>> kmeans_methods(rows=10_000, clusters=5, epsilon=1.0, dimension=10)[0].name
    'lloyd'
    """
    lengths = np.ones(dimension) if sides is None else sides
    d = len(lengths)

    def noise(share: float) -> tuple[Grid, float]:
        grid = grid_for(lengths, rows=rows, clusters=clusters, epsilon=share)
        return grid, 8 / share**2 * grid.size * clusters / rows**2

    def cells(share: float) -> float:
        grid, noisy = noise(share)
        return _limited(6 / d * noisy + 0.7 * (clusters / grid.size) ** (4 / len(grid.shape)))

    def moves(deviation: float, share: float) -> float:
        missed = (_MISSED if d <= MOST_AXES else _MISSED_UNSEEN) * noise(share)[1] ** 2
        return _limited((2 + d / 4) * d * (deviation * clusters / rows) ** 2 + missed)

    part, rounds = epsilon / LLOYD_SHARE, lloyd_rounds(d)
    k_norm = 2 * ROW_NORM * rounds / (epsilon - part) * math.sqrt(d + 2)
    nats = clusters * d * math.log(1 + 10 * d) + 7  # what publishing so many coordinates takes
    mu, total = epsilon / math.sqrt(2 * nats), sum(PURIFIED_SHARES)
    hidden = math.sqrt(PURIFIED_SHARES[0] / total) * mu
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
            error=moves(gaussian, 2 * hidden),
            spends=f"{len(PURIFIED_SHARES)} hidden questions, one lattice point published",
            why=f"publishing {clusters}·{d} numbers takes about {nats:.0f} nats",
        ),
    )


def lloyd_rounds(columns: int) -> int:
    """Return the rounds of "lloyd": two where the seeds' few directions miss most columns."""
    return 1 if columns <= MOST_AXES else 2


def _limited(excess: float) -> float:
    return excess * _MOST / (excess + _MOST)
