"""A hidden vector read as the exact rationals that its numbers are, without ever raising."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.spaces.reading import read_items, read_vector

__all__ = ["read_exactly"]


def read_exactly(value: Any, dimension: int) -> list[Fraction] | None:
    """Return the exact rationals that the value's entries are, or None if it is not a vector.

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
