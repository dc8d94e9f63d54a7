"""Adding integer noise to exact integer sums without ever wrapping around (theory R).

A sum that wraps or saturates *before* the noise has another sensitivity than the one that was
proved, so wherever 64 bits might not do, Python integers are used.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.exact_sums import IntegerArray

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


def check_sums(sums: npt.NDArray[np.generic], *, dimension: int | None = None) -> None:
    """Refuse anything but one vector of integers, looking at shape and types only."""
    array = isinstance(sums, np.ndarray)
    require(
        array and sums.ndim == 1 and _holds_integers(sums),
        "type of sums",
        f"{sums.dtype}, {sums.ndim}-d" if array else type(sums),  # never an entry: it may be data
        expected="a one-dimensional NumPy array of integers",
        remedy="pass what Rows.sum, Rows.counts or exact_sum returns",
    )
    require(
        dimension is None or len(sums) == dimension,
        "length of sums",
        len(sums),
        expected=f"{dimension}, the dimension of the noise",
        remedy="build the mechanism for the dimension of the sum",
    )


def add_exactly(sums: npt.NDArray[Any], noise: npt.NDArray[Any]) -> IntegerArray:
    """Return sums + noise: int64 if every result fits, else Python integers.

    The type follows from the *result*, never from the sums: it is part of what is released.

    >>> add_exactly(np.array([2**63 - 1, 5]), np.array([1, -7]))
    array([9223372036854775808, -2], dtype=object)
    """
    if len(sums) == 0:
        return np.zeros(0, dtype=np.int64)
    wide = object in (sums.dtype, noise.dtype)
    low, high = int(sums.min()) + int(noise.min()), int(sums.max()) + int(noise.max())
    if not wide and low >= _SMALLEST and high <= _LARGEST:
        return np.add(sums.astype(np.int64), noise.astype(np.int64))
    total = [int(value) + int(draw) for value, draw in zip(sums, noise, strict=True)]
    fits = min(total) >= _SMALLEST and max(total) <= _LARGEST
    return np.array(total, dtype=np.int64) if fits else np.array(total, dtype=np.object_)


def _holds_integers(sums: npt.NDArray[np.generic]) -> bool:
    if sums.dtype == object:
        return all(isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in sums)
    return sums.dtype.kind in "iu"
