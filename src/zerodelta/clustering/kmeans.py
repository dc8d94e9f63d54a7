"""Count rows on a public grid, seed centers from noisy counts, and refine them by Lloyd's rounds.

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

# -- The public grid of k-means -------------------------------------------------------------------
# The grid is computed from public numbers, and a row's cell elementwise from that row alone (theory
# C0), so the counts of cells have l1 sensitivity 2.

MAXIMUM_AXES = 5
"""The largest number of columns for a grid on the columns; above, it is on a few directions."""

_DIRECTIONS = 4
"""The number of random directions of a grid for many columns."""

_FINENESS = 1.9
"""There are 1.9·(nε)^(1/(2+axes)) cells along an axis: measured best on blobs by
`bench/study_kmeans.py`."""

_MAXIMUM_CELLS = 1 << 20
_REACH = 2.6
"""Half of a direction's range, in standard deviations of the uniform law on the box; coordinates
beyond are clipped."""


@value
class Frame:
    """The map of rows to units of the box's longest side, from its lower corner.

    In these units no value overflows or underflows.

    >>> frame = Frame.of(Box([0, 10], [4, 12]))
    >>> frame.sides.tolist(), frame.rows(np.array([[1.0, 99.0], [np.nan, 11.0]])).tolist()
    ([1.0, 0.5], [[0.25, 0.5], [nan, nan]])
    """

    lower: Floats
    unit: float
    sides: Floats

    @classmethod
    def of(cls, box: Box) -> Frame:
        """Return the frame that scales a box so that its widest side is 1."""
        widths = np.broadcast_to(box.widths(), box.dimension)
        lower = np.broadcast_to(box.lower.floats(), box.dimension)
        unit = float(widths.max())
        return cls(lower=lower.copy(), unit=unit, sides=widths / unit)

    def rows(self, block: Floats) -> Floats:
        """Return the rows clipped to the box; a row with a NaN becomes all NaN."""
        scaled = np.clip((block - self.lower) / self.unit, 0.0, self.sides)
        missing = np.isnan(scaled).any(axis=1, keepdims=True)
        return np.where(missing, np.nan, scaled)

    def back(self, centers: Floats) -> Floats:
        """Return centers in the units of the data."""
        return self.lower + self.unit * centers


@value
class CellGrid:
    """A grid of equal cubes, along the columns or along a few orthonormal directions.

    >>> low = middle = np.zeros(2)
    >>> grid = CellGrid(axes=np.eye(2), middle=middle, low=low, side=0.25, shape=(4, 2))
    >>> grid.keys(np.array([[0.3, 0.1], [1.0, 0.5], [np.nan, np.nan]]))
    array([ 2.,  7., nan])
    """

    axes: Floats
    """The directions, as the columns of a matrix."""
    middle: Floats
    """The middle of the box, where the coordinates along directions are 0."""
    low: Floats
    """The lower end of each axis."""
    side: float
    """The side of a cell."""
    shape: tuple[int, ...]
    """The number of cells along each axis."""

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def projects(self) -> bool:
        """Whether the axes are directions, fewer than the columns."""
        return len(self.axes) > len(self.shape)

    def coordinates(self, rows: Floats) -> Floats:
        """Return the rows projected on the grid's axes, or unchanged if they are the columns.

        Products are added column by column, not by BLAS, whose rounding depends on other rows.
        """
        if not self.projects:
            return rows
        places = np.zeros((len(rows), self.axes.shape[1]))
        for column, weights in enumerate(self.axes):
            places += (rows[:, column : column + 1] - self.middle[column]) * weights
        return places

    def keys(self, rows: Floats) -> Floats:
        """Return the index of each row's cell; NaN for a row with a NaN, which is not counted."""
        places = self.coordinates(rows)
        keys = np.zeros(len(rows))
        for axis, cells in enumerate(self.shape):
            cell = np.floor((places[:, axis] - self.low[axis]) / self.side)
            keys = keys * cells + np.clip(cell, 0, cells - 1)
        return keys

    def points(self, cells: npt.NDArray[np.int64]) -> Floats:
        """Return the middles of cells, in coordinates along the axes."""
        indices = np.stack(np.unravel_index(cells, self.shape), axis=1)
        return self.low + self.side * (indices + 0.5)

    def in_columns(self, points: Floats) -> Floats:
        """Convert points from coordinates along the axes to columns."""
        return self.middle + points @ self.axes.T if self.projects else points


def grid_for(sides: Floats, *, rows: int, clusters: int, epsilon: float) -> CellGrid:
    """Return cells as fine as the noise allows, of all columns or a few public directions.

    >>> grid_for(np.ones(2), rows=100_000, clusters=5, epsilon=1.0).shape
    (34, 34)
    >>> grid_for(np.ones(10), rows=100_000, clusters=5, epsilon=1.0).shape
    (13, 13, 13, 13)
    """
    columns = len(sides)
    if columns <= MAXIMUM_AXES:
        axes, low, lengths = np.eye(columns), np.zeros(columns), sides
    else:
        # public directions, the same for all data of this width
        draws = np.random.default_rng(0).normal(size=(columns, _DIRECTIONS))
        axes = np.linalg.qr(draws)[0]
        lengths = 2 * _REACH * np.sqrt((axes**2 * sides[:, None] ** 2).sum(axis=0) / 12)
        low = -lengths / 2
    count = len(lengths)
    cells = (_FINENESS * max(1.0, rows * epsilon) ** (1 / (2 + count))) ** count
    side = _side(lengths, min(max(cells, 4.0 * clusters), _MAXIMUM_CELLS))
    shape = tuple(max(1, round(float(length / side))) for length in lengths)
    return CellGrid(axes=axes, middle=sides / 2, low=low, side=side, shape=shape)


def _side(lengths: Floats, cells: float) -> float:
    """Return the side of cubes of which about `cells` fill a box; shorter sides are one cell."""
    falling = np.sort(lengths)[::-1]
    side = float(falling[0])
    for count in range(len(falling), 0, -1):  # of sides that are longer than a cube
        side = math.exp((np.log(falling[:count]).sum() - math.log(cells)) / count)
        if side <= falling[count - 1]:
            break
    return side


# -- Seeds and rounds -----------------------------------------------------------------------------


ROW_NORM = math.sqrt(2)
"""The norm of the vector of a row at distance r of its center; longer vectors are scaled to it."""

_RESTARTS = 20
_WIDTH = 1.5
"""The distance r, over the estimated deviation of a cluster. `bench/study_kmeans.py` prints the
inertia of centers; the factor was chosen by hand."""

_SIGNIFICANT = 3
"""The number of standard deviations of noise that a count must exceed for its center to move."""


@value
class Seeds:
    """Centers computed from noisy counts, and the typical distance of rows from them."""

    places: Floats
    """The centers in coordinates along the grid's axes."""
    radius: float


def seeds_from(
    counts: npt.NDArray[Any], grid: CellGrid, *, clusters: int, threshold: float
) -> Seeds:
    """Return the k-means of the cells whose noisy count exceeds a threshold (post-processing).

    Restarts use a fixed seed. With fewer such cells than clusters the cells with the largest counts
    are the centers.

    >>> grid = CellGrid(axes=np.eye(1), middle=np.zeros(1), low=np.zeros(1), side=0.25, shape=(4,))
    >>> seeds_from(np.array([90, 3, -2, 80]), grid, clusters=2, threshold=9).places.ravel().tolist()
    [0.125, 0.875]
    """
    weights = counts.astype(np.float64)
    used = max(int((weights > threshold).sum()), min(clusters, grid.size))
    fullest = np.argsort(-weights, kind="stable")[:used]
    points, mass = grid.points(fullest), np.maximum(weights[fullest], 1.0)
    if used <= clusters:
        places = points[np.arange(clusters) % used]
        return Seeds(places=places[_order(places)], radius=grid.side)
    from sklearn.cluster import KMeans  # an extra, which `kmeans` requires before rows are read

    # one thread: faster on few points, and sums are always added in the same order
    with quiet(), threadpool_limits(1):
        fitted = KMeans(clusters, n_init=_RESTARTS, random_state=0)
        fitted.fit(points, sample_weight=mass / mass.max())
    places = fitted.cluster_centers_
    spread = math.sqrt(fitted.inertia_ * mass.max() / mass.sum())
    return Seeds(places=places[_order(places)], radius=max(spread, grid.side / 2))


def _order(places: Floats) -> npt.NDArray[np.int64]:
    """Return an order of centers that depends on their positions only."""
    return np.lexsort(places.T[::-1])


@value
class Centers:
    """The centers of a round."""

    frame: Frame
    points: Floats
    """The centers in columns, from which a row's vector is measured."""
    radius: float
    """The distance at which a row's vector has the largest norm."""
    places: Floats
    """The centers with which a row is compared: `points` or, in the first round of a grid along
    directions, the seeds in coordinates along these."""
    grid: CellGrid | None = None
    """The grid of such directions."""

    @classmethod
    def seeded(cls, frame: Frame, grid: CellGrid, seeds: Seeds) -> Centers:
        """Return the seeds of the grid as centers, with the radius that rows are clipped to."""
        if not grid.projects:
            points = np.clip(seeds.places, 0, frame.sides)
            return cls(frame=frame, points=points, radius=_WIDTH * seeds.radius, places=points)
        points = np.clip(grid.in_columns(seeds.places), 0, frame.sides)
        # seeds are far off in the columns that the directions do not see
        radius = math.sqrt(float((frame.sides**2).sum())) / 4
        return cls(frame=frame, points=points, radius=radius, places=seeds.places, grid=grid)

    def after(self, sums: npt.NDArray[Any], deviation: float, seeds: Seeds) -> Centers:
        """Move each center by noisy sum over noisy count, where the count is clearly not 0.

        A center moves if its noisy count exceeds 3 standard deviations of the noise.
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
        """Return the index of each row's nearest center; squares are added column by column."""
        coordinates = rows if self.grid is None else self.grid.coordinates(rows)
        nearest, smallest = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.inf)
        for index, place in enumerate(self.places):
            distance = np.zeros(len(rows))
            for axis, coordinate in enumerate(place):
                distance += (coordinates[:, axis] - coordinate) ** 2
            closer = distance < smallest
            nearest[closer], smallest[closer] = index, distance[closer]
        return nearest

    def vectors(self, block: Floats) -> Floats:
        """Return each row's vector: ((x - c)/r, 1) in the block of its center, 0 elsewhere.

        A row with a NaN has NaN there, which the lattice turns into the zero row.
        """
        rows = self.frame.rows(block)
        center = self.nearest(rows)
        clusters, columns = self.points.shape
        vectors = np.zeros((len(rows), clusters, columns + 1))
        all_rows = np.arange(len(rows))
        vectors[all_rows, center, :columns] = (rows - self.points[center]) / self.radius
        vectors[all_rows, center, columns] = 1.0
        return vectors.reshape(len(rows), clusters * (columns + 1))


def refined(
    frame: Frame,
    grid: CellGrid,
    seeds: Seeds,
    sums: Callable[[Centers], npt.NDArray[Any]],
    deviations: Sequence[float],
) -> Floats:
    """Return the centers after rounds of Lloyd's algorithm, one for each entry of `deviations`.

    `sums` returns the noisy sum of `Centers.vectors` over the rows; `deviations` are the standard
    deviations of that noise.
    """
    centers = Centers.seeded(frame, grid, seeds)
    for deviation in deviations:
        centers = centers.after(sums(centers), deviation, seeds)
    return centers.points
