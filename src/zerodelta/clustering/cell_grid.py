"""The public grid of k-means: how large its cells are, and into which one a row falls.

Everything here is made of public numbers, and a row's cell is computed elementwise from that row
alone (theory C0), so counts of cells have sensitivity 2 in the l1 norm.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.spaces import Box
from zerodelta.value import value

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
class Grid:
    """Equal cells along a few axes: the columns, or orthonormal directions with ``low`` != 0.

    >>> grid = Grid(axes=np.eye(2), middle=np.zeros(2), low=np.zeros(2), side=0.25, shape=(4, 2))
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


def grid_for(sides: Floats, *, rows: int, clusters: int, epsilon: float) -> Grid:
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
    return Grid(axes=axes, middle=sides / 2, low=low, side=side, shape=shape)


def _side(lengths: Floats, cells: float) -> float:
    """Return the side of about so many cubes in a box; shorter sides of it count as one cell."""
    left = np.sort(lengths)[::-1]
    side = float(left[0])
    for count in range(len(left), 0, -1):
        side = math.exp((np.log(left[:count]).sum() - math.log(cells)) / count)
        if side <= left[count - 1]:
            break
    return side
