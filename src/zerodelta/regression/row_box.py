"""How long scaled rows may be: the length of a corner, or a shorter one that clips rows.

A public choice. Shorter rows need less noise, but rows in a corner of their bounds that are clipped
lose their size, so forecasts are those of rows in a corner: a quarter of each column's bounds, at
an end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from zerodelta.errors import require
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.regression.expected import Expected
from zerodelta.value import value

_HALF = 0.5
"""The shorter length, as a part of the way from the middle of the bounds to a corner: of
`bench/defaults_classifiers.py`, which tells 0.8 from the rest, but not 0.3 to 0.6 from each other.
Of these, 1/2 clips fewer rows than smaller ones."""

_NUMBER = 1 / 48
"""The variance of a number in [-1, 1] that fills a quarter of its bounds."""

_CATEGORY = 1 / 4
"""The mean squared distance of a category, a 1 among zeros, if one in seven has another than most:
1 - p² - (1 - p)² at p = 6/7."""


@value
class RowBox:
    """Rows of so many numbers in [-1, 1], and of so many categories, one 1 among zeros each."""

    numbers: int
    categories: int = 0

    @property
    def corner(self) -> float:
        """The length of a row whose numbers are all at a bound: no row is longer.

        A category adds 1 to the square whatever its options.
        """
        return math.sqrt(self.numbers + self.categories)

    @property
    def half_way(self) -> float:
        """The length of a row half of the way from the middle to a corner; categories count fully.

        Of one to three numbers on a face, which clips no row that differs from the middle in one.
        """
        return math.sqrt(self.categories + min(self.numbers, max(1.0, _HALF**2 * self.numbers)))

    def reach(self, radius: Fraction) -> float:
        """Return the length of a row whose numbers are so far on the way to a corner."""
        return math.sqrt(self.categories + float(radius) ** 2 * self.numbers)

    def kept(self, norm: float) -> float:
        """Return which part of what the size of rows in a corner tells is left within `norm`."""
        if norm >= self.corner or not self.numbers:
            return 1.0
        return size_kept(math.sqrt(max(0.0, norm**2 - self.categories) / self.numbers))

    def expected(self, norm: float, typical: Expected) -> Expected:
        """Return what is expected of rows that fill a quarter of their bounds, scaled to `norm`."""
        spread = math.sqrt(_NUMBER * self.numbers + _CATEGORY * self.categories)
        length = Fraction(max(min(1.0, spread / norm), 1e-3))
        return typical.given(row_length=length, signal=typical.signal)

    def worst(self, norm: float, *, error: float, blind: float) -> float:
        """Return the forecast for rows in a corner: `error` unclipped, `blind` if nothing is known.

        Rows may differ in nothing but their size.

        >>> box = RowBox(numbers=4)
        >>> [box.worst(norm, error=0.1, blind=0.3) for norm in (2.0, 1.0)]
        [0.1, 0.3]
        """
        kept = self.kept(norm)
        return kept * error + (1 - kept) * blind

    def best(self, error: Callable[[float], float], *, blind: float) -> float:
        """Return the length with the smaller worst forecast, of equal ones the corner.

        So rows are clipped only where next to nothing could be learned of whole ones.
        """
        return min(
            (self.corner, self.half_way),
            key=lambda norm: self.worst(norm, error=error(norm), blind=blind),
        )


def size_kept(reach: float) -> float:
    """Return the squared correlation of t, even on [1/2, 1], with min(t, reach).

    >>> [round(size_kept(reach), 2) for reach in (0.4, 0.5, 0.75, 1)]
    [0.0, 0.0, 0.8, 1.0]
    """
    u = min(1.0, max(0.0, 2 * reach - 1))
    return u * (3 - 2 * u) ** 2 / (4 - 3 * u)


def variance_kept(reach: float) -> float:
    """Return the variance of min(t, reach), t even on [1/2, 1]: all of 1/48 at 1.

    >>> [round(48 * variance_kept(reach), 2) for reach in (0.5, 0.75, 1)]
    [0.0, 0.31, 1.0]
    """
    u = min(1.0, max(0.0, 2 * reach - 1))
    return u**3 * (4 - 3 * u) / 48


def as_radius(radius: Rational) -> Fraction:
    """Return a part of the distance from the middle of the bounds to a corner."""
    part = as_rational(radius, "radius")
    require(
        Fraction(1, 10**6) <= part <= 1,
        "radius",
        radius,
        expected="a part of the distance from the middle to a corner, 1e-6 to 1",
        remedy="pass radius=1 to clip no row, or leave it out",
    )
    return part
