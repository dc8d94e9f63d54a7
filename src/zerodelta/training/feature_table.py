"""Features and a target scaled by public bounds: what feature selection reads of a row.

Only elementwise operations touch rows and columns are added one by one, so that what is made of a
row depends on that row alone, whatever the batch (theory C0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from zerodelta.data.row_queries import Bounds
from zerodelta.data.rowwise import Column, whole_rows
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.spine.public_inputs import needed
from zerodelta.value import value

_TYPICAL = 0.4
"""A row spread evenly over [-1, 1]^d has norm 0.58√d; scaling most rows down to 0.4√d costs little,
for it only weighs rows, and noise follows the norm."""


@value(eq=False)
class FeatureTable:
    """Which columns are features, which is the target, and the public scaling of each.

    With bounds, features are clipped to them and scaled to [-1, 1]; so is the target. Then a row
    whose features are longer than `norm` is scaled down as a whole, which leaves a linear relation
    as it is.
    """

    features: tuple[int, ...]
    target: int
    centers: Floats
    halves: Floats | None
    norm: float
    target_center: float
    target_half: float

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        *,
        target: Column,
        features: Sequence[Column] | None,
        bounds: Bounds | None,
        data_norm: Rational | None,
        target_bounds: Bounds | None,
    ) -> FeatureTable:
        """Return the table of rows with these columns; what is malformed or missing is refused."""
        label = column_position(target, columns, "target")
        others: Sequence[Column] = [i for i in range(len(columns)) if i != label]
        wanted = others if features is None else features if is_list(features) else []
        chosen = [column_position(column, columns, "features") for column in wanted]
        require(
            chosen and label not in chosen and len(set(chosen)) == len(chosen),
            "features",
            features,
            expected="different columns, at least one, without the target",
            remedy="name the columns to choose from",
        )
        if data_norm is None:
            remedy = "pass bounds=(lower, upper), one pair for all or two lists, or data_norm="
            needed(bounds, "bounds", remedy)
        remedy = "pass target_bounds=(lower, upper); the target is clipped to it"
        center, half = _ends(needed(target_bounds, "target_bounds", remedy), 1, "target_bounds")
        width = len(chosen)
        centers, halves = (
            (np.zeros(width), None) if bounds is None else _ends(bounds, width, "bounds")
        )
        default = (_TYPICAL if width > 2 else 1.0) * math.sqrt(width)
        return cls(
            features=tuple(chosen),
            target=label,
            centers=centers,
            halves=halves,
            norm=default if data_norm is None else _as_norm(data_norm),
            target_center=float(center[0]),
            target_half=float(half[0]),
        )

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.features)

    def labels(self, rows: Floats) -> Floats:
        """Return the targets on [-1, 1]; NaN for a row in which a used cell is missing."""
        scaled = (self._used(rows)[:, -1] - self.target_center) / self.target_half
        clipped: Floats = np.clip(scaled, -1.0, 1.0)
        return clipped

    def boxed(self, rows: Floats) -> Floats:
        """Return the features, one line each, on [-1, 1] if they have bounds.

        NaN for a row in which a used cell is missing.
        """
        columns = self._used(rows)[:, :-1].T
        if self.halves is None:
            return np.ascontiguousarray(columns)
        scaled = (columns - self.centers[:, None]) / self.halves[:, None]
        clipped: Floats = np.clip(scaled, -1.0, 1.0)
        return clipped

    def _used(self, rows: Floats) -> Floats:
        return whole_rows(rows[:, [*self.features, self.target]])

    def within_norm(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return features, one line each, and the factors <= 1 that scale rows down to the norm."""
        columns = self.boxed(rows)
        squares = np.zeros(len(rows))
        for column in columns:
            squares += column * column
        factors = np.minimum(1.0, self.norm / np.sqrt(np.maximum(squares, 1e-300)))
        return columns * factors, factors


def column_position(column: Column, columns: Sequence[str], name: str) -> int:
    """Return the place of a column given by name, or by position (-1: the last)."""
    if isinstance(column, str) and column in columns:
        return list(columns).index(column)
    if type(column) is int and -len(columns) <= column < len(columns):
        return column % len(columns)
    raise ParameterError(
        name,
        column,
        expected=f"one of {list(columns)[:10]}, or its position",
        remedy="name a column of the rows",
    )


def _as_norm(data_norm: Rational) -> float:
    exact = as_rational(data_norm, "data_norm")
    usable = Fraction(1, 10**100) <= exact <= 10**100  # its square is a float, too
    require(usable, "data_norm", data_norm, "a number between 1e-100 and 1e100", "pass 1, say")
    return float(exact)


def _ends(bounds: Bounds, width: int, name: str) -> tuple[Floats, Floats]:
    """Return the centers and half-widths of public bounds on so many columns."""
    require(
        isinstance(bounds, (tuple, list)) and len(bounds) == 2,
        name,
        bounds,
        expected="a pair (lower, upper)",
        remedy="pass two numbers, or two lists with one number for each column",
    )
    box = FixedPoint.box(dimension=width, lower=bounds[0], upper=bounds[1], steps=1)
    center, half = (
        np.array([float(part) for part in given] if isinstance(given, tuple) else float(given))
        for given in (box.center, box.bound)
    )
    return np.broadcast_to(center, width), np.broadcast_to(half, width)
