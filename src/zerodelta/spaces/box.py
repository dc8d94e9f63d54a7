"""Boxes: every coordinate between its own public bounds (theory B2, cube)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.rational import inner_ends
from zerodelta.spaces.coordinates import LARGEST, Coordinates, Given, common_dimension
from zerodelta.spaces.lattices import GridLattice, UnequalGrid
from zerodelta.spaces.space import EuclideanSpace, as_norm, named_numbers


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Box(EuclideanSpace):
    """The vectors with ``lower <= x <= upper`` in every coordinate.

    Parameters
    ----------
    lower, upper : number or list
        One bound for all coordinates or a list of one for each, kept exactly; public, never read
        off the data.
    dimension : int, optional
        The number of coordinates; with two single numbers it is 1 unless said.

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

    def __init__(self, lower: Given, upper: Given, *, dimension: int | None = None) -> None:
        object.__setattr__(self, "dimension", common_dimension(dimension, lower=lower, upper=upper))
        object.__setattr__(self, "lower", Coordinates.of(lower, "lower"))
        object.__setattr__(self, "upper", Coordinates.of(upper, "upper"))
        if not all(low < high for low, high in self.ends()) or np.any(
            self.widths() < float(1 / LARGEST)
        ):
            raise ParameterError(
                "lower, upper",
                (lower, upper),
                expected="lower < upper in every coordinate, 2^-500 apart at least",
                remedy="drop constant coordinates and do not swap the ends",
            )

    def ends(self) -> Iterator[tuple[float | Fraction, float | Fraction]]:
        """Yield the bounds of each coordinate, or once if all are alike."""
        lows, highs = self.lower.values, self.upper.values
        length = max(len(lows), len(highs))
        return zip(lows * (length // len(lows)), highs * (length // len(highs)), strict=True)

    def widths(self) -> npt.NDArray[np.float64]:
        """Return ``upper - lower`` as floats, of shape (1,) if all coordinates are alike."""
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
        """Return the nearest element as a new array, exactly within the bounds if a float is.

        A wrong shape, and a vector with a NaN or an infinity in it, becomes the center.
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

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Box:
        """Return the space of a description."""
        lower, upper, dimension = named_numbers(numbers, "box", ("lower", "upper", "dimension"))
        return cls(lower, upper, dimension=dimension)

    def __repr__(self) -> str:
        return f"Box({self.lower}, {self.upper}, dimension={self.dimension})"


def _difference(high: float | Fraction, low: float | Fraction) -> float:
    """Return ``high - low`` rounded once."""
    if isinstance(high, float) and isinstance(low, float):
        return high - low
    return float(Fraction(high) - Fraction(low))
