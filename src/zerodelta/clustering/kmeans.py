"""The public grid of k-means, seeds from its noisy counts, and the rounds of Lloyd's algorithm.

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

from zerodelta.data.isolation import quiet
from zerodelta.exact.arrays import Floats
from zerodelta.spaces import Box
from zerodelta.value import value

# -- The public grid of k-means: how large its cells are, and into which one a row falls ----------
# Everything here is made of public numbers, and a row's cell is computed elementwise from that row
# alone (theory C0), so counts of cells have sensitivity 2 in the l1 norm.

MOST_AXES = 5
"""Up to so many columns the grid is on the columns themselves; above, on a few directions."""

_DIRECTIONS = 4
_FINENESS = 1.9
"""Cells along an axis are 1.9·(nε)^(1/(2+axes)): measured best on blobs, bench/study_kmeans.py."""

_MOST_CELLS = 1 << 20
_REACH = 2.6
"""Half of a direction's range, in deviations of the uniform law on the box: beyond is clipped."""


@value
class Frame:
    """Rows in units of the box's longest side, from its lower corner; no value over- or underflows.

    >>> frame = Frame.of(Box([0, 10], [4, 12]))
    >>> frame.sides.tolist(), frame.rows(np.array([[1.0, 99.0], [np.nan, 11.0]])).tolist()
    ([1.0, 0.5], [[0.25, 0.5], [nan, nan]])
    """

    lower: Floats
    unit: float
    sides: Floats

    @classmethod
    def of(cls, box: Box) -> Frame:
        """Return the frame of a public box."""
        widths = np.broadcast_to(box.widths(), box.dimension)
        lower = np.broadcast_to(box.lower.floats(), box.dimension)
        unit = float(widths.max())
        return cls(lower=lower.copy(), unit=unit, sides=widths / unit)

    def rows(self, block: Floats) -> Floats:
        """Return the rows, clipped to the box; a row with a NaN is NaN throughout."""
        scaled = np.clip((block - self.lower) / self.unit, 0.0, self.sides)
        missing = np.isnan(scaled).any(axis=1, keepdims=True)
        return np.where(missing, np.nan, scaled)

    def back(self, centers: Floats) -> Floats:
        """Return centers in the units of the data."""
        return self.lower + self.unit * centers


@value
class CellGrid:
    """Equal cells along a few axes: the columns, or orthonormal directions with ``low`` != 0.

    >>> low = middle = np.zeros(2)
    >>> grid = CellGrid(axes=np.eye(2), middle=middle, low=low, side=0.25, shape=(4, 2))
    >>> grid.keys(np.array([[0.3, 0.1], [1.0, 0.5], [np.nan, np.nan]]))
    array([ 2.,  7., nan])
    """

    axes: Floats
    middle: Floats
    low: Floats
    side: float
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def projects(self) -> bool:
        """Whether the axes are fewer than the columns."""
        return len(self.axes) > len(self.shape)

    def coordinates(self, rows: Floats) -> Floats:
        """Return each row's place along the axes, added up column by column: no BLAS on rows."""
        if not self.projects:
            return rows
        places = np.zeros((len(rows), self.axes.shape[1]))
        for column, weights in enumerate(self.axes):
            places += (rows[:, column : column + 1] - self.middle[column]) * weights
        return places

    def keys(self, rows: Floats) -> Floats:
        """Return the number of each row's cell; NaN for a row with a NaN, which counts nowhere."""
        places = self.coordinates(rows)
        keys = np.zeros(len(rows))
        for axis, cells in enumerate(self.shape):
            cell = np.floor((places[:, axis] - self.low[axis]) / self.side)
            keys = keys * cells + np.clip(cell, 0, cells - 1)
        return keys

    def points(self, cells: npt.NDArray[np.int64]) -> Floats:
        """Return the middles of cells, along the axes."""
        indices = np.stack(np.unravel_index(cells, self.shape), axis=1)
        return self.low + self.side * (indices + 0.5)

    def in_columns(self, points: Floats) -> Floats:
        """Return points given along the axes in the columns' coordinates."""
        return self.middle + points @ self.axes.T if self.projects else points


def grid_for(sides: Floats, *, rows: int, clusters: int, epsilon: float) -> CellGrid:
    """Return the grid for so many rows: all from public numbers.

    >>> grid_for(np.ones(2), rows=100_000, clusters=5, epsilon=1.0).shape
    (34, 34)
    >>> grid_for(np.ones(10), rows=100_000, clusters=5, epsilon=1.0).shape
    (13, 13, 13, 13)
    """
    columns = len(sides)
    if columns <= MOST_AXES:
        axes, low, lengths = np.eye(columns), np.zeros(columns), sides
    else:
        draws = np.random.default_rng(0).normal(size=(columns, _DIRECTIONS))  # public, always same
        axes = np.linalg.qr(draws)[0]
        lengths = 2 * _REACH * np.sqrt((axes**2 * sides[:, None] ** 2).sum(axis=0) / 12)
        low = -lengths / 2
    count = len(lengths)
    wanted = (_FINENESS * max(1.0, rows * epsilon) ** (1 / (2 + count))) ** count
    side = _side(lengths, min(max(wanted, 4.0 * clusters), _MOST_CELLS))
    shape = tuple(max(1, round(float(length / side))) for length in lengths)
    return CellGrid(axes=axes, middle=sides / 2, low=low, side=side, shape=shape)


def _side(lengths: Floats, cells: float) -> float:
    """Return the side of about so many cubes in a box; shorter sides of it count as one cell."""
    left = np.sort(lengths)[::-1]
    side = float(left[0])
    for count in range(len(left), 0, -1):
        side = math.exp((np.log(left[:count]).sum() - math.log(cells)) / count)
        if side <= left[count - 1]:
            break
    return side


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


def seeds_from(
    counts: npt.NDArray[Any], grid: CellGrid, *, clusters: int, threshold: float
) -> Seeds:
    """Return the k-means of the cells whose noisy count exceeds a threshold: post-processing.

    It is a function of its arguments, with restarts of a fixed generator. With fewer such cells
    than clusters the fullest cells take their place.

    >>> grid = CellGrid(axes=np.eye(1), middle=np.zeros(1), low=np.zeros(1), side=0.25, shape=(4,))
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
    grid: CellGrid | None = None

    @classmethod
    def seeded(cls, frame: Frame, grid: CellGrid, seeds: Seeds) -> Centers:
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
    grid: CellGrid,
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
