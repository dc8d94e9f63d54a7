"""Records to integer rows and labels, one by one: what does not fit is mapped, never refused.

A row with a missing cell, and a row whose label is no class (whose target is missing), becomes
the zero row: its gradient is 0 whatever the parameters. Longer rows are scaled to the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.columns import as_cells, as_rows
from zerodelta.data.options import Options
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.integer_rows import STEPS, Floats, IntegerRows
from zerodelta.spine.transition import opened

__all__ = [
    "Features",
    "Rows",
    "as_classes",
    "as_target_bounds",
    "read_classes",
    "read_targets",
    "target_scale",
]

_Labels: TypeAlias = npt.NDArray[np.int64]

_BLOCK_ENTRIES = 1 << 17
_MOST_COLUMNS = 1 << 20
_LARGEST = 10**100


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Features:
    """How rows of `dimension` features become integers, and parameters become coefficients.

    The row (x, data_norm/2) is scaled to length at most 1, so features take `steps` of the
    `length` steps (2^22) and the intercept `constant` of them; steps² + constant² <= length².
    """

    dimension: int
    data_norm: Fraction
    intercept: bool
    length: int = STEPS

    @staticmethod
    def of(rows: Any, data_norm: Rational | None, intercept: bool) -> tuple[Features, Rows]:
        """Check the public shape of the rows; nothing is read."""
        source = Rows.of(rows)
        if not 1 <= source.columns < _MOST_COLUMNS:
            raise ParameterError(
                "rows",
                f"{source.columns} columns",
                expected="between 1 and 2^20 - 1 columns",
                remedy="pass one column for each feature",
            )
        if data_norm is None:
            raise ParameterError(
                "data_norm",
                None,
                expected="a public bound on the l2 length of a row",
                remedy="pass data_norm=..., from what is known of the columns, not from the rows",
            )
        bound = as_positive(data_norm, "data_norm")
        flag = as_flag(intercept, "intercept")
        features = Features(dimension=source.columns, data_norm=bound, intercept=flag)
        features.lattice()  # refuses a bound that floats cannot work with
        return features, source

    @property
    def steps(self) -> int:
        """The steps of a feature vector of length `data_norm`."""
        return math.isqrt(4 * self.length**2 // 5) if self.intercept else self.length

    @property
    def constant(self) -> int:
        """The steps of the constant feature."""
        return math.isqrt(self.length**2 // 5) if self.intercept else 0

    def lattice(self) -> FixedPoint:
        """Return the lattice of the features."""
        return FixedPoint.ball(dimension=self.dimension, bound=self.data_norm, steps=self.steps)

    def integers(self, source: Rows, factors: Floats) -> IntegerRows:
        """Return the rows times their factor: 0 for no row, ±1."""
        values = np.empty((source.count, self.dimension + self.intercept))
        size = max(1, _BLOCK_ENTRIES // self.dimension)
        buffer, start = np.empty((size, self.dimension)), 0  # without gaps between the lines
        for block in source.blocks(size):
            where = slice(start, start + len(block))
            part, factor = buffer[: len(block)], factors[where]
            unusable = self.quantize(block, part)
            if unusable.any():
                factor = np.where(unusable, 0.0, factor)
            np.multiply(part, factor[:, None], out=values[where, : self.dimension])
            if self.intercept:
                np.multiply(factor, float(self.constant), out=values[where, -1])
            start = where.stop
        return IntegerRows(values=values)

    def quantize(self, block: Floats, out: Floats) -> npt.NDArray[np.bool_]:
        """Write integer rows of length at most `steps` to `out`; return which lack a number.

        Most rows are inside the bound: cut entry by entry, with a squared length that is exact in
        floats up to 2^53 in any order, hence a function of the row alone. `FixedPoint` does
        the others; entries are never larger than 2^22 there either.
        """
        with np.errstate(all="ignore"):
            np.multiply(block, float(self.steps / self.data_norm), out=out)
            np.trunc(out, out=out)  # toward 0: a row of just that length stays inside
            inside = np.einsum("ij,ij->i", out, out) <= float(self.steps) ** 2
        if inside.all():
            return np.zeros(len(block), dtype=np.bool_)
        out[~inside] = self.lattice().quantize(block[~inside])
        return np.asarray(np.isnan(block).any(axis=1), dtype=np.bool_)

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return slopes and intercepts, lines by output, for rows as they were given."""
        slope = theta[: self.dimension].T * float(self.steps / (self.length * self.data_norm))
        if not self.intercept:
            return slope, np.zeros(theta.shape[1])
        return slope, theta[-1] * (self.constant / self.length)


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rows:
    """Rows as blocks of floats."""

    count: int
    columns: int
    array: npt.NDArray[Any] | None
    source: ArraySource | None

    @staticmethod
    def of(rows: Any) -> Rows:
        """Take rows as they are given; nothing is read."""
        if type(rows) is np.ndarray and rows.ndim == 2 and rows.dtype.kind in "biuf":
            return Rows(count=len(rows), columns=rows.shape[1], array=rows, source=None)
        batch = 1 << 12
        source = ArraySource(rows, batch=batch)
        return Rows(count=source.rows, columns=len(source.columns), array=None, source=source)

    def blocks(self, size: int) -> Iterator[Floats]:
        """Yield all rows in order, at most so many at a time."""
        if self.source is not None:
            for block in opened(self.source).blocks():
                for start in range(0, len(block), size):
                    yield block[start : start + size]
        elif self.array is not None:
            with np.errstate(all="ignore"):  # an extended float may overflow
                for start in range(0, self.count, size):
                    yield self.array[start : start + size].astype(np.float64, copy=False)


def as_target_bounds(bounds: tuple[Rational, Rational] | None) -> tuple[Fraction, Fraction]:
    """Return the public bounds of targets."""
    pair = bounds if isinstance(bounds, (tuple, list)) and len(bounds) == 2 else None
    low, high = (as_rational(end, "bounds_y") for end in pair or (0, 0))
    if not low < high or max(-low, high, 1 / (high - low)) > _LARGEST:
        raise ParameterError(
            "bounds_y",
            bounds,
            expected="two public numbers, the lower first, within 1e100 and 1e-100 apart",
            remedy="pass bounds_y=(lower, upper), what targets can be, not what they are",
        )
    return low, high


def target_scale(bounds: tuple[Fraction, Fraction], intercept: bool) -> tuple[float, float]:
    """Return what is subtracted from targets, 0 without an intercept to undo it, and the unit.

    >>> [target_scale((Fraction(0), Fraction(6)), intercept) for intercept in (True, False)]
    [(3.0, 3.0), (0.0, 6.0)]
    """
    low, high = bounds
    if intercept:
        return float((low + high) / 2), float((high - low) / 2)
    return 0.0, float(max(abs(low), abs(high)))


def as_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the public classes, at least two and all different."""
    given = () if classes is None or isinstance(classes, str) else tuple(classes)
    Options(given, "classes")  # refuses labels that are read alike
    if len(given) < 2:
        raise ParameterError(
            "classes",
            classes,
            expected="two or more different labels",
            remedy="pass classes=[...], all that can occur, not those that are in the data",
        )
    return given


def read_classes(labels: Any, classes: tuple[Any, ...], count: int) -> _Labels:
    """Return each label's place among the classes, -1 for any other.

    A number and a text that spells it are one label, and nothing raises.
    """
    values = _as_column(labels)
    _check_count(len(values), count)
    return Options(classes, "classes").places(values)


def read_targets(
    targets: Any, bounds: tuple[Fraction, Fraction], count: int, *, intercept: bool = True
) -> Floats:
    """Return targets cut to their bounds, in [-1, 1] by `target_scale`; NaN for no number."""
    values = _as_column(targets)
    _check_count(len(values), count)
    low, high = (float(end) for end in bounds)
    middle, half = target_scale(bounds, intercept)
    blocks = list(opened(ArraySource(values)).blocks())
    read = np.concatenate(blocks)[:, 0] if blocks else np.zeros(0)
    with np.errstate(all="ignore"):
        return np.clip((np.clip(read, low, high) - middle) / half, -1.0, 1.0)


def _as_column(values: Any) -> npt.NDArray[Any]:
    """Return the values as a one-dimensional array; entries of a list stay what they are."""
    array = as_rows(values) if isinstance(values, (list, tuple)) else as_cells(values)
    if array.ndim not in (1, 2) or array.size != len(array):
        raise ParameterError(
            "labels",
            type(values).__name__,
            expected="one value for each row",
            remedy="pass a one-dimensional array or a list",
        )
    return array.reshape(-1)


def _check_count(found: int, count: int) -> None:
    if found != count:
        raise ParameterError(
            "labels",
            f"{found} values",
            expected=f"as many as there are rows, {count}",
            remedy="pass one value for each row",
        )
