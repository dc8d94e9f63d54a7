"""Define the lattices on which boxes and balls are published, with membership in integers.

Theory B2. Privacy depends on the number of integer points (or the smallest probability of a mixing
draw), never on how accurately a value is rounded; floats only choose the integers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational, as_count, as_rational, inner_ends, is_long
from zerodelta.exact.sums import IntegerArray, arithmetic
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.spaces.boxes import Ball, Box


# -- One exact number for each coordinate, stored once where all are equal ------------------------
# A float is an exact rational and needs a tenth of the memory of a Fraction, so floats are kept.

Numbers: TypeAlias = "Rational | Sequence[Rational] | npt.NDArray[np.generic] | Coordinates"
"""One number for all coordinates, or one for each."""

LARGEST = Fraction(2**500)
"""Sizes are between its inverse and this, so that squares and quotients of two do not overflow."""


@value
class Coordinates:
    """Exact numbers: a single one shared by all coordinates, or one per coordinate.

    >>> Coordinates.of([1, "1/3"], "center").exact()
    (Fraction(1, 1), Fraction(1, 3))
    >>> Coordinates.of([2, 2.0, "4/2"], "center") == Coordinates.of(2, "center")
    True
    """

    values: tuple[float | Fraction, ...]

    @classmethod
    def of(cls, numbers: Numbers, name: str) -> Coordinates:
        """Read a parameter, refusing numbers that are not finite or exceed 2^500."""
        if isinstance(numbers, Coordinates):
            return numbers
        listed = numbers.tolist() if isinstance(numbers, np.ndarray) else numbers
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            listed = [listed]
        if not listed:
            raise ParameterError(
                name, numbers, expected="at least one number", remedy="pass a number or a list"
            )
        values = tuple(_compact(item, name) for item in listed)
        if max(values) > LARGEST or min(values) < -LARGEST:
            raise ParameterError(
                name,
                numbers,
                expected="at most 2^500 in magnitude",
                remedy="rescale the coordinates",
            )
        shared = values.count(values[0]) == len(values)
        return cls(values=values[:1] if shared else values)

    def __str__(self) -> str:
        shown = [min(str(plain(value)), repr(float(value)), key=len) for value in self.values[:3]]
        if len(self.values) == 1:
            return shown[0]
        return f"[{', '.join(shown)}{', ...' if len(self.values) > 3 else ''}]"

    def exact(self) -> tuple[Fraction, ...]:
        """Return the numbers as Fractions: a single one if it is shared."""
        return tuple(Fraction(value) for value in self.values)

    def floats(self) -> npt.NDArray[np.float64]:
        """Return the nearest floats, as an array of shape (1,) or (dimension,)."""
        return np.array([float(value) for value in self.values])

    def numbers(self) -> int | str | list[int | str]:
        """Return the numbers as exact JSON, the inverse of `of`.

        >>> Coordinates.of([0.5, 2], "lower").numbers()
        ['1/2', 2]
        """
        described = [plain(value) for value in self.values]
        return described if len(described) > 1 else described[0]


def common_dimension(dimension: int | None, **parameters: Numbers) -> int:
    """Return the dimension, from the argument or the lists' lengths, else 1; refuse differences."""
    listed = {name: _listed_length(value) for name, value in parameters.items()}
    if dimension is not None:
        listed["dimension"] = as_count(dimension, "dimension", minimum=1)
    lengths = {length for length in listed.values() if length is not None}
    if len(lengths) > 1:
        raise ParameterError(
            "dimension",
            {name: length for name, length in listed.items() if length is not None},
            expected="the same number of coordinates everywhere",
            remedy="list as many numbers as there are coordinates, or a single one for all",
        )
    return lengths.pop() if lengths else 1


def _listed_length(numbers: Numbers) -> int | None:
    """Return the length of a list of numbers; None for a single number for all coordinates."""
    if isinstance(numbers, Coordinates):
        return len(numbers.values) if len(numbers.values) > 1 else None
    if isinstance(numbers, np.ndarray):
        return len(numbers) if numbers.ndim else None
    return len(numbers) if isinstance(numbers, Sequence) and not isinstance(numbers, str) else None


def _compact(item: Rational, name: str) -> float | Fraction:
    """Return the number as a float if that is exact, else as a Fraction."""
    if type(item) is float and math.isfinite(item):
        return item
    exact = _writable(as_rational(item, name), name)
    if abs(exact) <= LARGEST and Fraction(float(exact)) == exact:
        return float(exact)
    return exact


def as_length(value: Rational, name: str) -> Fraction:
    """Return an exact number, refusing numbers outside of 2^-500 to 2^500."""
    exact = _writable(as_rational(value, name), name)
    if not 1 / LARGEST <= exact <= LARGEST:
        raise ParameterError(
            name,
            value,
            expected="a number above 0, between 2^-500 and 2^500",
            remedy="rescale the coordinates",
        )
    return exact


def _writable(exact: Fraction, name: str) -> Fraction:
    """Refuse a number with too many digits for a certificate."""
    remedy = "round it to a float, or to fewer digits"
    require(not is_long(exact), name, expected="a number of at most 4300 digits", remedy=remedy)
    return exact


def plain(value: float | Fraction) -> int | str:
    """Write a rational as JSON without loss: an integer, or "p/q"."""
    numerator, denominator = value.as_integer_ratio()
    return numerator if denominator == 1 else f"{numerator}/{denominator}"


_Floats: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]

_LARGEST_COUNT = 1 << 53
"""The largest count or coordinate: up to it integers are exact in float64, and so is clipping."""

_ROUNDING = 2.0**-48
"""A bound of the error of a point computed in floats, relative to the bounds."""

_FARTHEST = 1 << 400
"""Draws are clipped to this before conversion to floats; they are projected to the edge anyway."""


class _Grid(ABC):
    """A box cut into cells, numbered from 0 in every coordinate."""

    __slots__ = ()
    box: Box

    @property
    @abstractmethod
    def counts(self) -> _Integers:
        """The number of cells in each coordinate, of shape (1,) if all are equal."""

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.box.dimension

    def quantize(self, value: object) -> _Integers:
        """Return the integer coordinates of the cell in which the projection of `value` lies."""
        point = self.box.project(value)
        with np.errstate(all="ignore"):
            scaled = (point - self.box.lower.floats()) * (self.counts / self.box.widths())
            integers = np.floor(scaled).astype(np.int64)
        return np.clip(integers, 0, self.counts - 1)

    def points(self, integers: IntegerArray) -> _Floats:
        """Return the center of the cell; integers outside the grid count as the nearest."""
        checked = _checked_integers(integers, self.dimension)
        inside = np.clip(checked, 0, self.counts - 1).astype(np.float64)
        sides = self.box.widths() / self.counts
        points = self.box.project(self.box.lower.floats() + (inside + 0.5) * sides)
        return self._between_centers(points, inside, sides)

    def _between_centers(self, points: _Floats, inside: _Floats, sides: _Floats) -> _Floats:
        """Return the points, clipped to the first and the last center of each coordinate.

        Rounding may lead beyond these centers, which are the bounds of an order statistic (whose
        box is half a cell wider on each side), so that a quantile would be outside its bounds.
        """
        low, high = self.box.lower.floats(), self.box.upper.floats()
        slack = _ROUNDING * (np.abs(low) + np.abs(high))
        near = (points < low + sides / 2 + slack) | (points > high - sides / 2 - slack)
        counts, ends = self.counts.tolist(), list(self.box.ends())
        alike = len(counts) == len(ends) == 1
        for place in [0] if alike else np.flatnonzero(near).tolist():
            lower, upper = (Fraction(end) for end in ends[place % len(ends)])
            half = (upper - lower) / (2 * counts[place % len(counts)])
            first_center, last_center = inner_ends(lower + half, upper - half)
            which, count = slice(None) if alike else place, counts[place % len(counts)]
            points[which] = np.where(inside[which] == count - 1, last_center, points[which])
            points[which] = np.where(inside[which] == 0, first_center, points[which])
            points[which] = np.clip(points[which], first_center, last_center)
        return points

    def contains(self, integers: object) -> bool:
        """Tell whether this is an integer array in the lattice."""
        if not _is_integers(integers, self.dimension):
            return False
        return bool(np.all((integers >= 0) & (integers < self.counts)))


@value
class GridLattice(_Grid):
    """A box cut into `cells` equal cells per coordinate, numbered 0..cells-1.

    **Guarantee**: `quantize` returns one of exactly ``cells ** dimension`` integer vectors for any
    object.

    >>> from zerodelta.spaces import Box
    >>> grid = GridLattice(box=Box(0, 10), cells=5)
    >>> grid.quantize([3.0]), grid.quantize([99.0]), grid.points(np.array([1]))
    (array([1]), array([4]), array([3.]))
    """

    box: Box
    cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", _as_cells(self.cells))

    @property
    def counts(self) -> _Integers:
        """The number of cells, of shape (1,)."""
        return np.array([self.cells])


@value
class UnequalGrid(_Grid):
    """A box with its own number of equal cells in every coordinate.

    **Guarantee**: `quantize` returns one of exactly ``prod(cells)`` integer vectors for any object.

    >>> from zerodelta.spaces import Box
    >>> grid = UnequalGrid(box=Box([0, 0], [1, 10]), cells=(1, 5))
    >>> grid.quantize([0.7, 3.0]), grid.quantize(None), grid.sides()
    (array([0, 1]), array([0, 2]), [(1, 1), (5, 1)])
    """

    box: Box
    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        cells = tuple(_as_cells(count) for count in self.cells)
        if len(cells) != self.dimension:
            raise ParameterError(
                "cells",
                f"{len(cells)} numbers",
                expected=f"one for each of the {self.dimension} coordinates",
                remedy="pass one number for each coordinate, or use grid(cells)",
            )
        object.__setattr__(self, "cells", cells)

    @property
    def counts(self) -> _Integers:
        """The number of cells in each coordinate."""
        return np.array(self.cells)

    def sides(self) -> list[tuple[int, int]]:
        """Return each number of cells with how many coordinates have it, from the smallest on."""
        return sorted(Counter(self.cells).items())


@value
class BallLattice:
    """The integer points k with ``‖k‖₂² <= bound`` (l2) or ``‖k‖₁ <= bound`` (l1).

    k stands for the point ``center + spacing · k``. For l2 the bound is ⌊(r/s + √d/2)²⌋, which
    rounding a point of the ball to the nearest never exceeds. For l1 the bound is ⌊r/s⌋, which
    rounding toward 0 never exceeds, so nearest rounding is undone in as few coordinates as needed.

    **Guarantee**: `quantize` returns a point of the lattice for any object, verified
    in integers.

    >>> from zerodelta.spaces import Ball
    >>> lattice = BallLattice(ball=Ball(2, 1), spacing=Fraction(1, 10))
    >>> lattice.bound, lattice.quantize([0.6, 0.77]), lattice.quantize([math.nan, 1.0])
    (114, array([6, 8]), array([0, 0]))
    """

    ball: Ball
    spacing: Fraction

    def __post_init__(self) -> None:
        if self.ball.norm == math.inf:
            raise ParameterError(
                "norm",
                self.ball.norm,
                expected="1 or 2 for a ball lattice",
                remedy="use grid(cells) for norm inf",
            )
        if self._most > _LARGEST_COUNT:
            raise ParameterError(
                "spacing",
                str(self.spacing),
                expected="a radius of at most about 2^53 spacings",
                remedy="use a coarser spacing",
            )

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.ball.dimension

    @property
    def norm(self) -> float:
        """1.0 or 2.0."""
        return self.ball.norm

    @property
    def bound(self) -> int:
        """The largest l1 norm, or the largest **squared** l2 norm, of a point."""
        steps = self.ball.radius / self.spacing
        if self.norm == 1:
            return math.floor(steps)
        # (a/b + √d/2)² = (4a² + d b² + √(16 a² b² d)) / 4b², whose floor needs only ⌊√·⌋
        a, b, d = steps.numerator, steps.denominator, self.dimension
        return (4 * a * a + d * b * b + math.isqrt(16 * a * a * b * b * d)) // (4 * b * b)

    @property
    def _most(self) -> int:
        """The largest coordinate of a point."""
        return self.bound if self.norm == 1 else math.isqrt(self.bound)

    def quantize(self, value: object) -> _Integers:
        """Return the integers of the lattice point that `value` is rounded to."""
        with np.errstate(all="ignore"):
            most = float(self._most)
            scaled = np.clip(self.ball.centered(value) / float(self.spacing), -most, most)
            integers = np.clip(np.rint(scaled).astype(np.int64), -self._most, self._most)
        return self._shrunk(integers, scaled)

    def _shrunk(self, integers: _Integers, scaled: _Floats) -> _Integers:
        """Move coordinates that were rounded outwards most toward 0, until the integers are inside.

        Floats choose the number of coordinates; integers decide when to stop. Steps double, so this
        ends soon (at 0 at the latest) whatever the float errors.
        """
        step = 1
        while (excess := self._norm_of(integers) - self.bound) > 0:
            sizes = np.abs(integers)
            order = np.argsort(np.abs(scaled) - sizes, kind="stable")
            order = order[sizes[order] > 0]
            cuts = np.minimum(sizes[order], step)
            gains = cuts.astype(np.float64)
            if self.norm == 2:  # k² - (k - c)²
                gains *= 2.0 * sizes[order] - gains
            count = 1 + int(np.searchsorted(np.cumsum(gains), float(excess)))
            chosen = order[:count]
            integers[chosen] -= np.sign(integers[chosen]) * cuts[:count]
            step *= 2
        return integers

    def _norm_of(self, integers: IntegerArray) -> int:
        """Return ‖k‖₁ or ‖k‖₂² of coordinates of at most `_most`, exactly."""
        if integers.dtype != object and arithmetic(self.dimension, self.bound) == "python":
            integers = integers.astype(np.object_)
        return int(np.sum(np.abs(integers) if self.norm == 1 else integers * integers))

    def points(self, integers: IntegerArray) -> _Floats:
        """Return ``center + spacing · k`` projected onto the ball, for any integers k.

        A mixing draw may lie outside the lattice: projecting it is post-processing.
        """
        checked = _checked_integers(integers, self.dimension)
        if checked.dtype == object:
            checked = np.clip(checked, -_FARTHEST, _FARTHEST)
        scaled = checked.astype(np.float64) * float(self.spacing)
        return self.ball.project(self.ball.center.floats() + scaled)

    def contains(self, integers: object) -> bool:
        """Tell whether this is an integer array in the lattice, in exact arithmetic."""
        if not _is_integers(integers, self.dimension):
            return False
        return self._norm_of(integers.astype(np.object_)) <= self.bound


def _as_cells(count: int) -> int:
    """Return a number of cells from 1 to 2^53, refusing others."""
    cells = as_count(count, "cells", minimum=1)
    if cells > _LARGEST_COUNT:
        raise ParameterError(
            "cells", cells, expected="at most 2^53", remedy="use fewer cells per coordinate"
        )
    return cells


def _is_integers(integers: object, dimension: int) -> TypeGuard[IntegerArray]:
    """Tell whether this is an integer array of shape (dimension,)."""
    if type(integers) is not np.ndarray or integers.shape != (dimension,):
        return False
    if integers.dtype == object:
        return all(type(value) is int for value in integers)
    return integers.dtype.kind in "iu"


def _checked_integers(integers: IntegerArray, dimension: int) -> npt.NDArray[Any]:
    """Return an integer array of shape (dimension,), refusing anything else."""
    if not _is_integers(integers, dimension):
        raise ParameterError(
            "integers",
            type(integers),
            expected=f"an integer array of shape ({dimension},)",
            remedy="pass what quantize returned, or a draw on the same lattice",
        )
    return integers
