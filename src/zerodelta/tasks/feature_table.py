"""Features and a target scaled by public bounds: what feature selection reads of a row.

Only elementwise operations touch rows and columns are added one by one, so that what is made of a
row depends on that row alone, whatever the batch (theory C0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.row_queries import Bounds
from zerodelta.data.rowwise import Column, whole_rows
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_positive

__all__ = ["FeatureTable", "Floats"]

Floats: TypeAlias = npt.NDArray[np.float64]

_TYPICAL = 0.4
"""A row spread evenly over [-1, 1]^d has norm 0.58√d; scaling most rows down to 0.4√d costs little,
for it only weighs rows, and noise follows the norm."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FeatureTable:
    """A source, which of its columns are features, and the public scaling of each.

    With bounds, features are cut to them and scaled to [-1, 1]; the target is cut to its bounds and
    scaled to [-1, 1]. Then a row whose features are longer than `norm` is scaled down as a whole,
    which leaves a linear relation as it is.
    """

    source: Source
    features: tuple[int, ...]
    names: tuple[Column, ...]
    target: int
    centers: Floats
    halves: Floats | None
    norm: float
    target_center: float
    target_half: float

    @classmethod
    def of(
        cls,
        rows: Any,
        *,
        target: Column,
        features: Sequence[Column] | None,
        bounds: Bounds | None,
        data_norm: Rational | None,
        target_bounds: Bounds | None,
    ) -> FeatureTable:
        """Return the table, refusing what is malformed or missing before a row is read."""
        named = not isinstance(rows, (np.ndarray, list, tuple))
        source = rows if isinstance(rows, Source) else ArraySource(rows)
        if source.rows < 1:
            raise ParameterError("rows", "no rows", expected="some rows", remedy="pass the data")
        columns = source.columns
        label = column_position(target, columns, "target")
        chosen = (
            [i for i in range(len(columns)) if i != label]
            if features is None
            else [column_position(column, columns, "features") for column in features]
        )
        if not chosen or label in chosen or len(set(chosen)) < len(chosen):
            raise ParameterError(
                "features",
                features,
                expected="different columns, at least one, without the target",
                remedy="name the columns to choose from",
            )
        box = None if bounds is None else _box(bounds, len(chosen), "bounds")
        if box is None and data_norm is None:
            raise ParameterError(
                "bounds",
                None,
                expected="public bounds of the features, or data_norm",
                remedy="pass bounds=(lower, upper), one pair for all or two lists; rows are cut",
            )
        if target_bounds is None:
            raise ParameterError(
                "target_bounds",
                None,
                expected="the public range of the target",
                remedy="pass target_bounds=(lower, upper); the target is cut to it",
            )
        center, half = _ends(_box(target_bounds, 1, "target_bounds"))
        centers, halves = (np.zeros(len(chosen)), None) if box is None else _ends(box)
        default = _TYPICAL * math.sqrt(len(chosen)) if len(chosen) > 2 else math.sqrt(len(chosen))
        return cls(
            source=source,
            features=tuple(chosen),
            names=tuple(columns[i] if named else i for i in chosen),
            target=label,
            centers=centers,
            halves=halves,
            norm=default if data_norm is None else float(as_positive(data_norm, "data_norm")),
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
        cut: Floats = np.clip(scaled, -1.0, 1.0)
        return cut

    def boxed(self, rows: Floats) -> Floats:
        """Return the features, one line each, on [-1, 1] if they have bounds.

        NaN for a row in which a used cell is missing.
        """
        columns = self._used(rows)[:, :-1].T
        if self.halves is None:
            return np.ascontiguousarray(columns)
        scaled = (columns - self.centers[:, None]) / self.halves[:, None]
        cut: Floats = np.clip(scaled, -1.0, 1.0)
        return cut

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


def _box(bounds: Bounds, width: int, name: str) -> FixedPoint:
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ParameterError(
            name,
            bounds,
            expected="a pair (lower, upper)",
            remedy="pass two numbers, or two lists with one number for each column",
        )
    return FixedPoint.box(dimension=width, lower=bounds[0], upper=bounds[1], steps=1)


def _ends(box: FixedPoint) -> tuple[Floats, Floats]:
    """Return centers and half-widths."""
    center, half = (
        np.array([float(part) for part in given] if isinstance(given, tuple) else float(given))
        for given in (box.center, box.bound)
    )
    return np.broadcast_to(center, box.dimension), np.broadcast_to(half, box.dimension)
