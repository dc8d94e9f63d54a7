"""One exact number per coordinate, stored once where all are equal.

A float is an exact rational, so a million float bounds stay floats; other numbers are Fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational, as_count, as_rational, is_long
from zerodelta.value import value

Given: TypeAlias = "Rational | Sequence[Rational] | npt.NDArray[np.generic] | Coordinates"
"""One number for all coordinates, or one for each."""

LARGEST = Fraction(2**500)
"""Sizes stay between its inverse and this, so that no square or quotient of two overflows."""


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
    def of(cls, given: Given, name: str) -> Coordinates:
        """Read a parameter, refusing what is not finite or larger than 2^500."""
        if isinstance(given, Coordinates):
            return given
        plain_given = given.tolist() if isinstance(given, np.ndarray) else given
        if isinstance(plain_given, str) or not isinstance(plain_given, Sequence):
            plain_given = [plain_given]
        if not plain_given:
            raise ParameterError(name, given, expected="at least one number", remedy="give some")
        values = tuple(_shortest(item, name) for item in plain_given)
        if max(values) > LARGEST or min(values) < -LARGEST:
            raise ParameterError(
                name, given, expected="at most 2^500 in magnitude", remedy="rescale the coordinates"
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


def common_dimension(dimension: int | None, **given: Given) -> int:
    """Return the dimension that is said or listed, 1 if none is; refuse a contradiction."""
    listed = {name: _listed(value) for name, value in given.items()}
    if dimension is not None:
        listed["dimension"] = as_count(dimension, "dimension", minimum=1)
    found = {length for length in listed.values() if length is not None}
    if len(found) > 1:
        raise ParameterError(
            "dimension",
            {name: length for name, length in listed.items() if length is not None},
            expected="the same number of coordinates everywhere",
            remedy="list as many numbers as there are coordinates, or a single one for all",
        )
    return found.pop() if found else 1


def _listed(given: Given) -> int | None:
    """Return how many numbers a parameter lists, None if it is a single one for all."""
    if isinstance(given, Coordinates):
        return len(given.values) if len(given.values) > 1 else None
    if isinstance(given, np.ndarray):
        return len(given) if given.ndim else None
    return len(given) if isinstance(given, Sequence) and not isinstance(given, str) else None


def _shortest(item: Rational, name: str) -> float | Fraction:
    """Keep a float where it is exact: it needs a tenth of the memory of a Fraction."""
    if type(item) is float and math.isfinite(item):
        return item
    exact = _writable(as_rational(item, name), name)
    if abs(exact) <= LARGEST and Fraction(float(exact)) == exact:
        return float(exact)
    return exact


def as_length(value: Rational, name: str) -> Fraction:
    """Return an exact number, refusing what is not between 2^-500 and 2^500."""
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
    """Refuse what could not be written into a certificate."""
    remedy = "round it to a float, or to fewer digits"
    require(not is_long(exact), name, expected="a number of fewer digits", remedy=remedy)
    return exact


def plain(value: float | Fraction) -> int | str:
    """Write a rational as JSON without loss: an integer, or "p/q"."""
    numerator, denominator = value.as_integer_ratio()
    return numerator if denominator == 1 else f"{numerator}/{denominator}"
