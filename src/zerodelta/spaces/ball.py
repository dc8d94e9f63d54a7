"""Balls in the l1, l2 and linf norms (theory B2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.rational import Rational, as_count
from zerodelta.spaces.box import Box
from zerodelta.spaces.coordinates import Coordinates, Given, as_length, common_dimension, plain
from zerodelta.spaces.lattices import BallLattice, GridLattice
from zerodelta.spaces.reading import read_vector
from zerodelta.spaces.space import EuclideanSpace, as_norm, named_numbers

_SLACK = 2.0**-44
"""How far, relative to radius and center, float rounding may leave a projected point outside."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Ball(EuclideanSpace):
    """The vectors within `radius` of `center` in the l1, l2 or linf norm.

    All parameters are public; they must not be read off the data.

    Parameters
    ----------
    dimension : int
        The number of coordinates.
    radius : int, float, Fraction or str
        The radius, kept exactly.
    norm : 1, 2 or math.inf
        In which norm the distance to the center is measured.
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
        self, dimension: int, radius: Rational, *, norm: float = 2, center: Given = 0
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
            return offset if inside else self._pulled_in(offset)

    def _holds(self, vector: npt.NDArray[np.float64]) -> bool:
        radius, center = float(self.radius), self.center.floats()
        # Rounding moves a coordinate of center + offset by its share of their sizes.
        far = _length(np.repeat(center / radius, self.dimension // len(center)), self.norm)
        return _length((vector - center) / radius, self.norm) <= 1 + _SLACK * (1 + far)

    def _nearest(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        center = self.center.floats()
        nearest: npt.NDArray[np.float64] = center + self._pulled_in(vector - center)
        return nearest

    def _pulled_in(self, offset: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Ball:
        """Return the space of a description."""
        names = ("dimension", "radius", "norm", "center")
        dimension, radius, norm, center = named_numbers(numbers, "ball", names)
        return cls(dimension, radius, norm=norm, center=center)

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
