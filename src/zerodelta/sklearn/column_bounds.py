"""Columns moved to [-1, 1] by public bounds, elementwise: no row has a say in another's scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.sklearn.reading import Floats
from zerodelta.spaces import Box

__all__ = ["ColumnBounds"]


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ColumnBounds:
    """The middle and half the width of each column.

    >>> bounds = ColumnBounds.of(([0, -5], [10, 5]), columns=2)
    >>> bounds.scaled(np.array([[0.0, 2.5], [99.0, np.nan]])).tolist()
    [[-1.0, 0.5], [1.0, nan]]
    """

    lower: Floats
    upper: Floats

    @staticmethod
    def of(bounds: Any, *, columns: int) -> ColumnBounds:
        """Read (lower, upper), each a number or one for each column."""
        if not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
            raise ParameterError(
                "bounds",
                bounds,
                expected="a public pair (lower, upper)",
                remedy="pass bounds=(0, 1), or ([0, -5], [1, 5]) column by column: what values can "
                "be, not what they are",
            )
        box = Box(bounds[0], bounds[1], dimension=columns)
        ends = (np.broadcast_to(end.floats(), columns).copy() for end in (box.lower, box.upper))
        return ColumnBounds(**dict(zip(("lower", "upper"), ends, strict=True)))

    @property
    def middle(self) -> Floats:
        """The middle of each column."""
        return self.lower / 2 + self.upper / 2

    @property
    def half(self) -> Floats:
        """Half the width of each column."""
        return self.upper / 2 - self.lower / 2

    def around_zero(self) -> ColumnBounds:
        """Return the narrowest bounds with these inside and 0 in the middle."""
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        return ColumnBounds(lower=-reach, upper=reach)

    def clipped(self, rows: Floats) -> Floats:
        """Return the rows inside the bounds; NaN stays NaN."""
        return np.clip(rows, self.lower, self.upper)

    def scaled(self, rows: Floats) -> Floats:
        """Return the rows in [-1, 1], what was beyond the bounds at an end; NaN stays NaN."""
        scaled: Floats = (self.clipped(rows) - self.middle) / self.half
        return np.clip(scaled, -1.0, 1.0)  # a quotient may round to more
