"""Define boxes, and balls in the l1, l2 and linf norms (theory B2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import ParameterError
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.rational import Rational, as_count, inner_ends
from zerodelta.spaces.lattices import (
    LARGEST,
    BallLattice,
    Coordinates,
    GridLattice,
    Numbers,
    UnequalGrid,
    as_length,
    common_dimension,
    plain,
)
from zerodelta.spaces.space import EuclideanSpace, as_norm, read_vector, trusted_space

# -- Boxes: every coordinate between its own public bounds (theory B2, cube) ----------------------


@trusted_space
@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Box(EuclideanSpace):
    """The vectors with ``lower <= x <= upper`` in every coordinate.

    Parameters
    ----------
    lower, upper : number or list
        One bound for all coordinates or a list of one for each, kept exactly; public, never
        computed from the data.
    dimension : int, optional
        The number of coordinates; by default the length of a list, or 1.

    Examples
    --------
    >>> import math
    >>> box = Box([0, -1], [1, "1/3"])
    >>> box.project([0.25, 7.0]), box.project([0.25, math.nan])
    (array([0.25      , 0.33333333]), array([ 0.5       , -0.33333333]))
    >>> Box(0, 1, dimension=10**6).diameter()
    1000.0

    """

    lower: Coordinates
    upper: Coordinates
    dimension: int

    def __init__(self, lower: Numbers, upper: Numbers, *, dimension: int | None = None) -> None:
        object.__setattr__(self, "dimension", common_dimension(dimension, lower=lower, upper=upper))
        object.__setattr__(self, "lower", Coordinates.of(lower, "lower"))
        object.__setattr__(self, "upper", Coordinates.of(upper, "upper"))
        if not all(low < high for low, high in self.ends()) or np.any(
            self.widths() < float(1 / LARGEST)
        ):
            raise ParameterError(
                "lower, upper",
                (lower, upper),
                expected="lower < upper in every coordinate, at least 2^-500 apart",
                remedy="drop constant coordinates, and pass the lower end first",
            )

    def ends(self) -> Iterator[tuple[float | Fraction, float | Fraction]]:
        """Yield the bounds of each coordinate, or one pair if all are equal."""
        lows, highs = self.lower.values, self.upper.values
        length = max(len(lows), len(highs))
        return zip(lows * (length // len(lows)), highs * (length // len(highs)), strict=True)

    def widths(self) -> npt.NDArray[np.float64]:
        """Return ``upper - lower`` as floats, of shape (1,) if all coordinates are equal."""
        return np.array([_difference(high, low) for low, high in self.ends()])

    def middle(self) -> npt.NDArray[np.float64]:
        """Return the center."""
        center = self.lower.floats() / 2 + self.upper.floats() / 2
        return np.repeat(center, self.dimension // len(center))

    def diameter(self, norm: float = 2) -> float:
        """Return a float at least the largest l_norm distance of two elements.

        >>> Box([0, 0], [3, 4]).diameter(), Box([0, 0], [3, 4]).diameter(norm=1)
        (5.0, 7.0)
        """
        power = as_norm(norm)

        def evaluate() -> arb:
            """Return the norm of the box's widths as an interval."""
            widths = [ball(high) - ball(low) for low, high in self.ends()]
            repeats = self.dimension // len(widths)
            if power == 1:
                return repeats * sum(widths, arb(0))
            if power == 2:
                return (repeats * sum((width * width for width in widths), arb(0))).sqrt()
            largest = widths[0]
            for width in widths:
                largest = largest.max(width)
            return largest

        return upper(evaluate)

    def grid(self, cells: int) -> GridLattice:
        """Return the lattice of `cells` equal cells per coordinate.

        >>> Box(0, 1).grid(10).quantize(0.57)
        array([5])
        """
        return GridLattice(box=self, cells=cells)

    def unequal_grid(self, cells: Sequence[int]) -> UnequalGrid:
        """Return the lattice with its own number of equal cells in every coordinate.

        >>> Box([0, 0], [1, 10]).unequal_grid([2, 20]).quantize([0.7, 3.2])
        array([1, 6])
        """
        return UnequalGrid(box=self, cells=tuple(cells))

    def project(self, value: object) -> npt.NDArray[np.float64]:
        """Return the nearest element as a new array, exactly within the bounds if floats allow it.

        A value of a wrong shape, and a vector with a NaN or an infinity, becomes the center.
        """
        point = EuclideanSpace.project(self, value)
        if all(isinstance(end, float) for end in (*self.lower.values, *self.upper.values)):
            return point  # floats are exact bounds
        ends = np.array([inner_ends(Fraction(low), Fraction(high)) for low, high in self.ends()])
        return np.clip(point, ends[:, 0], ends[:, 1])

    def _holds(self, vector: npt.NDArray[np.float64]) -> bool:
        above = (self.lower.floats() <= vector).all()
        return bool(above and (vector <= self.upper.floats()).all())

    def _nearest(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.clip(vector, self.lower.floats(), self.upper.floats())

    def describe(self) -> dict[str, Any]:
        """Return the exact bounds and the dimension.

        >>> Box(-1, "1/3", dimension=5).describe()
        {'kind': 'box', 'lower': -1, 'upper': '1/3', 'dimension': 5}
        """
        return {
            "kind": "box",
            "lower": self.lower.numbers(),
            "upper": self.upper.numbers(),
            "dimension": self.dimension,
        }

    def __repr__(self) -> str:
        return f"Box({self.lower}, {self.upper}, dimension={self.dimension})"


def _difference(high: float | Fraction, low: float | Fraction) -> float:
    """Return ``high - low`` rounded once."""
    if isinstance(high, float) and isinstance(low, float):
        return high - low
    return float(Fraction(high) - Fraction(low))


_SLACK = 2.0**-44
"""How far outside float rounding may leave a projected point, relative to radius and center."""


@trusted_space
@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Ball(EuclideanSpace):
    """The vectors within `radius` of `center` in the l1, l2 or linf norm.

    All parameters are public; they must not be computed from the data.

    Parameters
    ----------
    dimension : int
        The number of coordinates.
    radius : int, float, Fraction or str
        The radius, kept exactly.
    norm : 1, 2 or math.inf
        The norm of the distance to the center.
    center : number or list
        One number for all coordinates, or a list of one for each.

    Examples
    --------
    >>> unit = Ball(2, 1)
    >>> unit.project([3.0, 4.0]), unit.project([math.nan, 4.0]), unit.contains([0.6, 0.8])
    (array([0.6, 0.8]), array([0., 0.]), True)
    >>> Ball(2, 1, norm=1, center=[0, 5]).project([1.0, 6.5])
    array([0.25, 5.75])

    """

    dimension: int
    radius: Fraction
    norm: float
    center: Coordinates

    def __init__(
        self, dimension: int, radius: Rational, *, norm: float = 2, center: Numbers = 0
    ) -> None:
        dimension = as_count(dimension, "dimension", minimum=1)
        object.__setattr__(self, "dimension", common_dimension(dimension, center=center))
        object.__setattr__(self, "radius", as_length(radius, "radius"))
        object.__setattr__(self, "norm", as_norm(norm))
        object.__setattr__(self, "center", Coordinates.of(center, "center"))

    def middle(self) -> npt.NDArray[np.float64]:
        """Return the center."""
        center = self.center.floats()
        return np.repeat(center, self.dimension // len(center))

    def diameter(self, norm: float = 2) -> float:
        """Return a float at least the largest l_norm distance of two elements.

        This is 2r d^max(0, 1/p - 1/q) for the l_p diameter of an l_q ball.

        >>> Ball(4, 1).diameter(), Ball(4, 1).diameter(norm=1), Ball(4, 1, norm=1).diameter()
        (2.0, 4.0, 2.0)
        """
        halves = max(0, _INVERSE_DOUBLED[as_norm(norm)] - _INVERSE_DOUBLED[self.norm])
        return upper(lambda: 2 * ball(self.radius) * ball(self.dimension).sqrt() ** halves)

    def bounding_box(self) -> Box:
        """Return the smallest box around the ball (for linf, the ball itself).

        If `center` lists different numbers, the bounds are floats, rounded outwards.

        >>> Ball(3, 2, center=1).bounding_box().describe()
        {'kind': 'box', 'lower': -1, 'upper': 3, 'dimension': 3}
        """
        if len(self.center.values) == 1:
            (center,) = self.center.exact()
            return Box(center - self.radius, center + self.radius, dimension=self.dimension)
        centers, radius = self.center.floats(), math.nextafter(float(self.radius), math.inf)
        lower = np.nextafter(np.nextafter(centers, -math.inf) - radius, -math.inf)
        return Box(lower, np.nextafter(np.nextafter(centers, math.inf) + radius, math.inf))

    def grid(self, cells: int) -> GridLattice:
        """Return, for norm inf, the lattice of `cells` equal cells per coordinate.

        >>> Ball(2, 1, norm=math.inf).grid(4).quantize([-1.0, 0.1])
        array([0, 2])
        """
        if self.norm != math.inf:
            raise ParameterError(
                "norm",
                self.norm,
                expected="math.inf for a grid",
                remedy="use lattice(spacing), or bounding_box().grid(cells)",
            )
        return self.bounding_box().grid(cells)

    def lattice(self, spacing: Rational) -> BallLattice:
        """Return, for norms 1 and 2, the lattice of points `spacing` apart.

        >>> Ball(2, 1).lattice("1/10").quantize([0.57, -0.22])
        array([ 6, -2])
        """
        return BallLattice(ball=self, spacing=as_length(spacing, "spacing"))

    def centered(self, value: object) -> npt.NDArray[np.float64]:
        """Return ``project(value) - center``, without the rounding of adding the center."""
        vector = read_vector(value, self.dimension)
        if vector is None:
            return np.zeros(self.dimension)
        with np.errstate(all="ignore"):
            offset = vector - self.center.floats()
            inside = _length(offset / float(self.radius), self.norm) <= 1
            return offset if inside else self._projected(offset)

    def _holds(self, vector: npt.NDArray[np.float64]) -> bool:
        radius, center = float(self.radius), self.center.floats()
        # Rounding changes a coordinate of center + offset in proportion to the sizes of both.
        far = _length(np.repeat(center / radius, self.dimension // len(center)), self.norm)
        return _length((vector - center) / radius, self.norm) <= 1 + _SLACK * (1 + far)

    def _nearest(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        center = self.center.floats()
        nearest: npt.NDArray[np.float64] = center + self._projected(vector - center)
        return nearest

    def _projected(self, offset: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the l2-nearest point of the ball around 0 to a finite `offset` outside it."""
        nearest: npt.NDArray[np.float64]
        radius = float(self.radius)
        if self.norm == math.inf:
            return np.clip(offset, -radius, radius)
        if self.norm == 2:
            nearest = offset / np.abs(offset).max()  # so that no square overflows
            nearest *= radius / _length(nearest, 2)
            return nearest
        # Lower the largest sizes to a common level: |x_i| becomes (t - gap_i)+ with gap_i the
        # distance below the largest, in radii, and t such that they add up to 1 (one radius).
        sizes = np.abs(offset)
        gaps = (sizes.max() - sizes) / radius
        ordered = np.sort(gaps)
        levels = (1 + np.cumsum(ordered)) / np.arange(1, self.dimension + 1)
        level = levels[np.flatnonzero(levels > ordered)[-1]]  # the first is 1 > 0
        nearest = np.maximum(level - gaps, 0.0)
        nearest *= radius / nearest.sum()
        return np.copysign(nearest, offset)

    def describe(self) -> dict[str, Any]:
        """Return the exact parameters.

        >>> Ball(3, "1/2", norm=math.inf).describe()
        {'kind': 'ball', 'dimension': 3, 'radius': '1/2', 'norm': 'inf', 'center': 0}
        """
        return {
            "kind": "ball",
            "dimension": self.dimension,
            "radius": plain(self.radius),
            "norm": "inf" if self.norm == math.inf else int(self.norm),
            "center": self.center.numbers(),
        }

    def __repr__(self) -> str:
        return f"Ball({self.dimension}, {self.radius}, norm={self.norm:g}, center={self.center})"


_INVERSE_DOUBLED = {1.0: 2, 2.0: 1, math.inf: 0}
"""2/q for each norm."""


def _length(vector: npt.NDArray[np.float64], norm: float) -> float:
    """Return the norm of a vector (inf if it overflows), without overflow of its squares."""
    largest = float(np.abs(vector).max())
    if norm == math.inf or largest == 0 or not math.isfinite(largest):
        return largest
    scaled = np.abs(vector / largest)
    return largest * float(scaled.sum() if norm == 1 else math.sqrt((scaled * scaled).sum()))
