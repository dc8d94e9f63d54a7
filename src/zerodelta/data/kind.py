"""What a declared kind of column is: public, and the reading of each cell by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, TypeAlias

from zerodelta.exact.arrays import Array

Bounds: TypeAlias = tuple[Fraction, Fraction]


class Kind(ABC):
    """What the cells of a column are read to."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The number of codes 0, 1, ... that cells are read to; None for numbers and texts."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds | None:
        """The smallest and the largest number or code, exactly; None for texts."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Any, ...] | None:
        """What each code stands for; None where there are no codes."""

    @property
    @abstractmethod
    def declaration(self) -> dict[str, Any]:
        """The kind as a schema file has it: its name with what it must have, then options."""

    @abstractmethod
    def read(self, column: Any) -> Array:
        """Return the numbers, codes or texts of a column, each cell read by itself.

        `column` is a NumPy array of one dimension, a `pyarrow.Array` or a `ChunkedArray`, of any
        type; nothing raises because of a cell. The result is float64 with NaN where a cell is
        missing, and may be a read-only view of the column; for texts it holds objects, None where
        missing.
        """

    def __str__(self) -> str:
        (name, given), *options = self.declaration.items()
        listed = given if name in ("number", "date") else [given]
        shown = [] if name == "boolean" else [_short(value) for value in listed]
        return f"{name}({', '.join(shown + [f'{key}={_short(v)}' for key, v in options])})"


class Coded(Kind):
    """A kind whose cells are read to codes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of codes."""

    @property
    def bounds(self) -> Bounds:
        """The first and the last code."""
        return Fraction(0), Fraction(self.size - 1)


def _short(value: Any) -> str:
    shown = str(value) if not isinstance(value, (str, list)) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
