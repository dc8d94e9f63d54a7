"""Seeds from noisy counts, and rounds of Lloyd's algorithm as one exact integer sum each.

A row adds the vector ((x - c)/r, 1) of its nearest center, scaled down to an l2 norm of √2, to that
center's block and nothing to the others. So the sum of the blocks' l2 norms has sensitivity 2√2
*in total*: noise of density ∝ exp(-Σⱼ‖zⱼ‖₂/b), independent K-norm noise per block, costs
2√2/b in any dimension and for any number of clusters (theory R, C10.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from zerodelta.clustering.cell_grid import Frame, Grid
from zerodelta.data.quiet import quiet
from zerodelta.exact.arrays import Floats
from zerodelta.value import value

ROW_NORM = math.sqrt(2)
"""A row at distance r of its center has this norm; farther ones are scaled down to it."""

_RESTARTS = 20
_WIDTH = 1.5
"""Rows farther from a center than 1.5 times the estimated deviation are scaled down."""

_SIGNIFICANT = 3


@value
class Seeds:
    """Centers along the grid's axes and their rows' typical distance; made of noisy counts only."""

    places: Floats
    radius: float


def seeds_from(counts: npt.NDArray[Any], grid: Grid, *, clusters: int, threshold: float) -> Seeds:
    """Return the k-means of the cells whose noisy count exceeds a threshold: post-processing.

    It is a function of its arguments, with restarts of a fixed generator. With fewer such cells
    than clusters the fullest cells take their place.

    >>> grid = Grid(axes=np.eye(1), middle=np.zeros(1), low=np.zeros(1), side=0.25, shape=(4,))
    >>> seeds_from(np.array([90, 3, -2, 80]), grid, clusters=2, threshold=9).places.ravel().tolist()
    [0.125, 0.875]
    """
    weights = counts.astype(np.float64)
    wanted = max(int((weights > threshold).sum()), min(clusters, grid.size))
    fullest = np.argsort(-weights, kind="stable")[:wanted]
    points, mass = grid.points(fullest), np.maximum(weights[fullest], 1.0)
    if wanted <= clusters:
        places = points[np.arange(clusters) % wanted]
        return Seeds(places=places[_order(places)], radius=grid.side)
    from sklearn.cluster import KMeans  # an extra; whoever reads rows requires it before

    # One thread: faster on so few points, and sums are then always added in the same order.
    with quiet(), threadpool_limits(1):
        fitted = KMeans(clusters, n_init=_RESTARTS, random_state=0)
        fitted.fit(points, sample_weight=mass / mass.max())
    places = fitted.cluster_centers_
    spread = math.sqrt(fitted.inertia_ * mass.max() / mass.sum())
    return Seeds(places=places[_order(places)], radius=max(spread, grid.side / 2))


def _order(places: Floats) -> npt.NDArray[np.int64]:
    """Sort centers: which is called the first says nothing."""
    return np.lexsort(places.T[::-1])


@value
class Centers:
    """Centers to which rows are assigned: in the columns, or (the first time) along a grid's axes.

    `places` are what a row is compared with; `points` what its vector is measured from.
    """

    frame: Frame
    points: Floats
    radius: float
    places: Floats
    grid: Grid | None = None

    @classmethod
    def seeded(cls, frame: Frame, grid: Grid, seeds: Seeds) -> Centers:
        """Return the centers of the first round."""
        if not grid.projects:
            points = np.clip(seeds.places, 0, frame.sides)
            return cls(frame=frame, points=points, radius=_WIDTH * seeds.radius, places=points)
        points = np.clip(grid.in_columns(seeds.places), 0, frame.sides)
        reach = math.sqrt(float((frame.sides**2).sum())) / 4  # where the cluster is off the axes
        return cls(frame=frame, points=points, radius=reach, places=seeds.places, grid=grid)

    def after(self, sums: npt.NDArray[Any], deviation: float, seeds: Seeds) -> Centers:
        """Return the centers of the next round, after noisy sums of `vectors`.

        A center stays where it is unless its noisy count exceeds 3 deviations of the noise.
        """
        clusters, columns = self.points.shape
        totals = np.asarray(sums, dtype=np.float64).reshape(clusters, columns + 1)
        counts = totals[:, columns:]
        trusted = counts > _SIGNIFICANT * deviation
        step = self.radius * totals[:, :columns] / np.where(trusted, counts, 1.0)
        points = np.clip(self.points + np.where(trusted, step, 0.0), 0, self.frame.sides)
        growth = math.sqrt(columns / self.places.shape[1])
        radius = self.radius if self.grid is None else _WIDTH * seeds.radius * growth
        return Centers(frame=self.frame, points=points, radius=radius, places=points)

    def nearest(self, rows: Floats) -> npt.NDArray[np.int64]:
        """Return the number of each row's nearest center, coordinate by coordinate."""
        compared = rows if self.grid is None else self.grid.coordinates(rows)
        best, least = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.inf)
        for number, place in enumerate(self.places):
            distance = np.zeros(len(rows))
            for axis, coordinate in enumerate(place):
                distance += (compared[:, axis] - coordinate) ** 2
            closer = distance < least
            best[closer], least[closer] = number, distance[closer]
        return best

    def vectors(self, block: Floats) -> Floats:
        """Return each row's vector: ((x - c)/r, 1) in the block of its center, 0 elsewhere.

        A row with a NaN has NaN there, which the lattice turns into the zero row.
        """
        rows = self.frame.rows(block)
        number = self.nearest(rows)
        clusters, columns = self.points.shape
        vectors = np.zeros((len(rows), clusters, columns + 1))
        each = np.arange(len(rows))
        vectors[each, number, :columns] = (rows - self.points[number]) / self.radius
        vectors[each, number, columns] = 1.0
        return vectors.reshape(len(rows), clusters * (columns + 1))


def refined(
    frame: Frame,
    grid: Grid,
    seeds: Seeds,
    sums: Callable[[Centers], npt.NDArray[Any]],
    deviations: Sequence[float],
) -> Floats:
    """Return the points after one round of Lloyd's algorithm for each deviation of its noise.

    `sums` answers with the noisy sum over the rows of `Centers.vectors`.
    """
    centers = Centers.seeded(frame, grid, seeds)
    for deviation in deviations:
        centers = centers.after(sums(centers), deviation, seeds)
    return centers.points
