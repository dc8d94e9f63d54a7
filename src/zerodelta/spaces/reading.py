"""Any Python object read as a number, as items, or as a vector, without ever raising.

What an internal analysis hands over depends on data, and an exception is an output (theory A14.4).
So `BaseException` is caught on purpose: an object may raise anything from any of its methods.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

_MOST_DIGITS = 10_000
"""Decimals are read exactly up to so many digits."""


def read_integer(value: object) -> int | None:
    """Return the whole number that `value` is, or None if it is not one.

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
    """Return the finite real number that `value` is, exactly, or None if it is not one.

    What counts as a number is what `read_integer` reads, and any other finite float, fraction or
    decimal, however large. What is masked is no number.

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
    if isinstance(value, (Fraction, np.floating)):  # which may be beyond the floats
        return Fraction(*value.as_integer_ratio())  # raises for NaN and infinities
    number = float(value)
    return Fraction(number) if math.isfinite(number) else None


def _decimal(value: Decimal) -> Fraction:
    """Return a finite decimal; one with a huge exponent as a number that is as far from any."""
    if value.adjusted() > _MOST_DIGITS:
        return Fraction((-1 if value.is_signed() else 1) * 10**_MOST_DIGITS)
    return Fraction(value) if value.adjusted() >= -_MOST_DIGITS else Fraction(0)


def read_items(value: object, most: int) -> Iterator[Any]:
    """Yield the items of an iterable, at most `most` of them, and stop where it raises.

    A string has no items, nor has anything that cannot be iterated. The limit makes this end
    for endless iterators too.

    >>> import itertools
    >>> list(read_items([3, 1], 5)), list(read_items(itertools.count(), 2)), list(read_items(7, 5))
    ([3, 1], [0, 1], [])
    """
    try:
        items: Iterator[Any] = iter(() if isinstance(value, (str, bytes)) else value)  # type: ignore[call-overload]
    except BaseException:
        return
    for _ in range(most):
        try:
            item = next(items)
        except BaseException:
            return
        yield item


def read_vector(value: object, dimension: int) -> npt.NDArray[np.float64] | None:
    """Return a fresh vector of `dimension` finite float64, or None if `value` is not one.

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
    """Return the exact rationals that a vector's entries are, or None if `value` is not one.

    A float64 is exact as it stands; anything wider (big integers, Fractions, long doubles) must not
    be rounded to one: that rounding would be part of a theorem that knows nothing of it.

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
    except BaseException:  # whatever the entries do, it must not become an output
        return None
    return exact if len(exact) == dimension else None


def _scalar(entry: Any) -> Any:
    """Return a NumPy integer or boolean as a Python int, which has an integer ratio."""
    return int(entry) if isinstance(entry, (np.integer, np.bool_)) else entry
