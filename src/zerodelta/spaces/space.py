"""Define the contract of spaces, and read any Python object as a value without raising an error.

A space is public. `project` maps any Python object to an element, so that no result of an internal
analysis can make a release raise an error.
"""

from __future__ import annotations

import math
import numbers
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError

# -- Reading any Python object as a number, as items, or as a vector, without an exception --------
# The result of an internal analysis depends on data, and an exception is an output (theory A14.4).
# So `BaseException` is caught on purpose: any method of an object may raise anything.

_MOST_EXACT_DIGITS = 10_000
"""Decimals of up to this many digits are read exactly."""


def read_integer(value: object) -> int | None:
    """Return the integer that `value` equals, or None if it is not an integer.

    Booleans, NumPy integers, zero-dimensional arrays and integral floats are whole numbers;
    strings are not.

    >>> read_integer(np.int8(3)), read_integer(3.0), read_integer(True)
    (3, 3, 1)
    >>> read_integer("3"), read_integer(2.5), read_integer(float("nan"))
    (None, None, None)
    """
    number = read_number(value)
    return int(number) if number is not None and number.denominator == 1 else None


def read_number(value: object) -> int | Fraction | None:
    """Return the finite real number that `value` equals, exactly, or None if it is not a number.

    Numbers are what `read_integer` reads, and any other finite float, fraction or decimal, however
    large. A masked value is not a number.

    >>> read_number(2.5), read_number(np.array(3)), read_number(True)
    (Fraction(5, 2), 3, 1)
    >>> read_number("3"), read_number(float("inf")), read_number(None), read_number([1])
    (None, None, None, None)
    """
    try:
        return _number(value)
    except BaseException:
        return None


def _number(value: Any) -> int | Fraction | None:
    """Return the number that an object equals, or None; the object may raise any error."""
    if isinstance(value, np.ndarray):
        if value.ndim or np.ma.is_masked(value):
            return None
        value = np.asarray(value)[()]
    if isinstance(value, (str, bytes, bytearray, complex, np.complexfloating)):
        return None
    if isinstance(value, np.bool_):  # as an index it makes older NumPy warn
        return int(value)
    if hasattr(type(value), "__index__"):
        return operator.index(value)
    if isinstance(value, Decimal):
        return _decimal(value) if value.is_finite() else None
    if isinstance(value, (Fraction, np.floating)):  # may be too large for a float
        return Fraction(*value.as_integer_ratio())  # raises for NaN and infinities
    number = float(value)
    return Fraction(number) if math.isfinite(number) else None


def _decimal(value: Decimal) -> Fraction:
    """Return a finite decimal; one with a huge exponent is replaced by ±10^10000 or 0."""
    if value.adjusted() > _MOST_EXACT_DIGITS:
        return Fraction((-1 if value.is_signed() else 1) * 10**_MOST_EXACT_DIGITS)
    return Fraction(value) if value.adjusted() >= -_MOST_EXACT_DIGITS else Fraction(0)


def read_items(value: object, limit: int) -> Iterator[Any]:
    """Yield at most `limit` items of an iterable, and stop if it raises an error.

    A string, and an object that cannot be iterated, has no items. The limit makes this end for
    infinite iterators too.

    >>> import itertools
    >>> list(read_items([3, 1], 5)), list(read_items(itertools.count(), 2)), list(read_items(7, 5))
    ([3, 1], [0, 1], [])
    """
    try:
        items: Iterator[Any] = iter(() if isinstance(value, (str, bytes)) else value)  # type: ignore[call-overload]
    except BaseException:
        return
    for _ in range(limit):
        try:
            item = next(items)
        except BaseException:
            return
        yield item


def read_vector(value: object, dimension: int) -> npt.NDArray[np.float64] | None:
    """Return a new vector of `dimension` finite float64, or None if `value` is not such a vector.

    In dimension 1 a plain number is a vector. Strings and complex numbers are not numbers here.

    >>> read_vector([1, 2.5], 2), read_vector([1, float("inf")], 2), read_vector("12", 2)
    (array([1. , 2.5]), None, None)
    """
    try:
        with np.errstate(all="ignore"):
            return _vector(value, dimension)
    except BaseException:
        return None


def _vector(value: Any, dimension: int) -> npt.NDArray[np.float64] | None:
    """Return the vector that an object equals, or None; the object may raise any error."""
    if isinstance(value, (str, bytes, bytearray)):
        return None
    if hasattr(value, "__array__") or not hasattr(value, "__iter__"):
        array = np.asarray(value)
    else:
        array = np.array(list(read_items(value, dimension + 1)))
    if (
        np.ma.is_masked(value)
        or array.dtype.kind not in "biufO"
        or array.size != dimension
        or array.ndim > 1
    ):
        return None
    if array.dtype == object or array.dtype.itemsize > 8:
        array = np.array([_nearest_float(entry) for entry in array.flat])
    vector = np.array(array, dtype=np.float64).reshape(dimension)
    return vector if bool(np.isfinite(vector).all()) else None


def _nearest_float(entry: Any) -> float:
    """Return the float nearest to a finite number; NaN for anything else."""
    number = read_number(entry)
    if number is None:
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max if number > 0 else -sys.float_info.max


def read_exactly(value: Any, dimension: int) -> list[Fraction] | None:
    """Return the entries of a vector as exact rationals, or None if `value` is not a vector.

    Wider types than float64 (big integers, Fractions, long doubles) are not rounded to it, since no
    theorem accounts for such a rounding.

    >>> read_exactly([0.5, Fraction(1, 3)], 2), read_exactly([0.5, float("nan")], 2)
    ([Fraction(1, 2), Fraction(1, 3)], None)
    """
    vector = read_vector(value, dimension)
    if vector is None or (isinstance(value, np.ndarray) and value.dtype == np.float64):
        return None if vector is None else [Fraction(float(entry)) for entry in vector]
    single = dimension == 1 and not hasattr(value, "__iter__")
    entries = [value] if single else list(read_items(value, dimension))
    try:
        exact = [Fraction(*entry.as_integer_ratio()) for entry in map(_scalar, entries)]
    except BaseException:  # no error of the entries may become an output
        return None
    return exact if len(exact) == dimension else None


def _scalar(entry: Any) -> Any:
    """Return a NumPy integer or boolean as a Python int, which has an integer ratio."""
    return int(entry) if isinstance(entry, (np.integer, np.bool_)) else entry


class Space(ABC):
    """A set of values that may be published. Spaces are immutable, comparable, hashable, public."""

    __slots__ = ()

    @abstractmethod
    def project(self, value: object) -> Any:
        """Return an element for any object, the object itself if it is one; never raise."""

    @abstractmethod
    def contains(self, value: object) -> bool:
        """Tell whether `value` denotes an element; False, never an exception, for anything else."""

    @abstractmethod
    def denotes(self, value: object) -> bool:
        """Tell whether ``project(value)`` is computed from the value and not a default element.

        A finite number denotes the nearest element; None, NaN and texts that are not options denote
        nothing. Never raises an error.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return an exact description in integers, strings and lists, with its "kind", for JSON.

        Different spaces have different descriptions.
        """


_Kind = TypeVar("_Kind", bound=type)

_TRUSTED: list[type] = []
"""Final classes of this library, compared by identity so that no other class can pass for one."""


def trusted_space(kind: _Kind) -> _Kind:
    """Register a final class of spaces, whose elements are its own only (a decorator)."""
    _TRUSTED.append(kind)
    return kind


def is_known(space: object) -> bool:
    """Tell whether this library wrote the space; any other class may publish anything."""
    return any(type(space) is kind for kind in _TRUSTED)


class FiniteSpace(Space):
    """A space of `size` elements, numbered 0..size-1; element 0 is the default for other values."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """The exact number of elements, however large (ln N of theory B1 is its logarithm)."""

    @abstractmethod
    def index(self, value: object) -> int:
        """Return the number of ``project(value)``; 0 for a value that denotes nothing."""

    @abstractmethod
    def element(self, index: int) -> Any:
        """Return the element with the number `index` (0..size-1), without enumerating."""


class EuclideanSpace(Space):
    """A bounded convex set of vectors; its center is the default for other values."""

    __slots__ = ()
    dimension: int

    @abstractmethod
    def diameter(self, norm: float = 2) -> float:
        """Return a float at least the largest l_norm distance of two elements."""

    @abstractmethod
    def middle(self) -> npt.NDArray[np.float64]:
        """Return the center."""

    @abstractmethod
    def _holds(self, vector: npt.NDArray[np.float64]) -> bool:
        """Tell whether a finite vector lies inside, up to float rounding."""

    @abstractmethod
    def _nearest(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the nearest element (in l2) to a finite vector outside."""

    def project(self, value: object) -> npt.NDArray[np.float64]:
        """Return the nearest element, up to float rounding, as a new array.

        A value of a wrong shape, and a vector with a NaN or an infinity, becomes the center.
        """
        vector = read_vector(value, self.dimension)
        if vector is None:
            return self.middle()
        with np.errstate(all="ignore"):
            return vector if self._holds(vector) else self._nearest(vector)

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is a finite vector of the right dimension."""
        return read_vector(value, self.dimension) is not None

    def contains(self, value: object) -> bool:
        """Tell whether `value` is a vector in the space, up to the float rounding of `project`."""
        vector = read_vector(value, self.dimension)
        with np.errstate(all="ignore"):
            return vector is not None and self._holds(vector)


def as_norm(norm: float, name: str = "norm") -> float:
    """Return 1.0, 2.0 or inf; the text "inf" of a description is read too."""
    plain = isinstance(norm, (numbers.Real, str)) and not isinstance(norm, bool)
    if not plain or norm not in (1, 2, math.inf, "inf"):
        raise ParameterError(
            name, norm, expected="1, 2 or math.inf", remedy="pass one of these three norms"
        )
    return float(norm)
