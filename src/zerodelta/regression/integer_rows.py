"""Rows as integers of length at most 2^22, and products with them that BLAS computes exactly.

The real row is k / 2^22. Products with limbs of parameters and of slopes are sums of integers whose
partial sums stay below 2^53, so every one of them is exact in float64, in any order (theory C0).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["ROW_BITS", "SLOPE_BITS", "STEPS", "Floats", "IntegerRows", "parameter_bits"]

Floats: TypeAlias = npt.NDArray[np.float64]

ROW_BITS = 22
STEPS = 1 << ROW_BITS
"""The largest length of an integer row."""

SLOPE_BITS = 18
_MOST_ROWS = 1 << 13
"""2^22 · 2^18 · 2^13 = 2^53: a block's sum of rows times slope limbs of at most 2^18 is exact."""

_BLOCK_ENTRIES = 1 << 17
"""One MiB: a block of rows is read once and stays in the second-level cache."""


def parameter_bits(dimension: int) -> int:
    """Return the width s of parameter limbs: ‖k‖ ‖limb‖ <= 2^22 · 2^(s-1) √d <= 2^52."""
    return 31 - math.ceil(math.log2(dimension) / 2)


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class IntegerRows:
    """An (n, d) array of integers held as float64; no line is longer than 2^22 in l2."""

    values: Floats

    @property
    def count(self) -> int:
        """The number n of rows, zero rows included."""
        return int(self.values.shape[0])

    @property
    def dimension(self) -> int:
        """The number d of columns, with that of the intercept."""
        return int(self.values.shape[1])

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield pieces of at most 8192 rows, each with where it lies."""
        size = min(_MOST_ROWS, max(64, _BLOCK_ENTRIES // self.dimension))
        for start in range(0, self.count, size):
            where = slice(start, min(start + size, self.count))
            yield where, self.values[where]

    def thinned(self, every: int) -> IntegerRows:
        """Return every so-manyth row."""
        return IntegerRows(values=np.ascontiguousarray(self.values[::every]))
