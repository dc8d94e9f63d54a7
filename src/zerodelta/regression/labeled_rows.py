"""Rows with one label each, as integers, opened by a ticket; what does not fit is mapped.

A row with a missing cell, and a row whose label is no class (whose target is missing), becomes
the zero row: its gradient is 0 whatever the parameters. Longer rows are clipped to the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import numbers
from zerodelta.data.columns import as_cells, as_rows
from zerodelta.data.options import Options
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Rows, Source, ours
from zerodelta.data.ticket import Ticket
from zerodelta.data.written_here import is_written_here
from zerodelta.errors import require
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.integer_rows import STEPS, Floats, IntegerRows
from zerodelta.spine.facts import Facts

__all__ = [
    "ClassLabels",
    "Features",
    "LabeledRows",
    "LinearModel",
    "Targets",
    "as_classes",
]

_Cells: TypeAlias = npt.NDArray[Any]
_Prepare: TypeAlias = Callable[[Block], Block]

_BLOCK_ENTRIES = 1 << 17
_MOST_ROWS = 1 << 13
_MOST_COLUMNS = 1 << 20
_LARGEST = 10**100


@ours
@final
class LabeledRows(Source):
    """Features and, as the last column, one label for each row; nothing is read without a ticket.

    `read` turns the labels into numbers, NaN for none (by default the number that a cell is);
    `prepare` turns a block of features into `width` columns, row by row. Prepared rows are read
    once and kept.
    """

    __slots__ = (
        *("__weakref__", "_batch", "_count", "_features", "_labels", "_prepare", "_read"),
        "_width",
    )

    def __init__(
        self,
        rows: Any,
        labels: Any,
        *,
        read: ClassLabels | Targets | None = None,
        prepare: _Prepare | None = None,
        width: int | None = None,
    ) -> None:
        require(
            type(read) in (ClassLabels, Targets, type(None)) and is_written_here(prepare),
            "prepare",
            type(prepare),
            expected="a preparation of rows by this library",
            remedy="prepare the rows, each by itself, before they are passed",
        )
        plain = type(rows) is np.ndarray and rows.ndim == 2 and rows.dtype.kind in "biuf"
        held: Any = rows if plain or isinstance(rows, ArraySource) else ArraySource(rows)
        count, columns = held.shape if plain else (held.rows, len(held.columns))
        self._features, self._count = held, int(count)
        self._labels = _as_column(labels)
        require(
            len(self._labels) == self._count,
            "labels",
            f"{len(self._labels)} values",
            expected=f"as many as there are rows, {self._count}",
            remedy="pass one value for each row",
        )
        self._read, self._prepare = read, prepare
        self._width = columns if width is None else width
        self._batch = min(_MOST_ROWS, max(64, _BLOCK_ENTRIES // max(1, columns)))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._count

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers of the columns; the label is the last."""
        return tuple(str(i) for i in range(self._width + 1))

    @property
    def facts(self) -> Facts:
        """What is public of the rows; there may be none of them."""
        return Facts(rows=self.rows, columns=self.columns)

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release."""
        return super().open(ticket, keep=keep or self._prepare is not None)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows in order, at most 8192 at a time."""
        Ticket.check(ticket)
        labels = numbers(self._labels) if self._read is None else self._read(self._labels)
        start = 0
        for part in self._parts(ticket):
            block = np.empty((len(part), self._width + 1))
            block[:, :-1] = part if self._prepare is None else self._prepare(part)
            block[:, -1] = labels[start : start + len(part)]
            start += len(part)
            yield block

    def _parts(self, ticket: Ticket) -> Iterator[Block]:
        whole = self._features
        for block in whole.blocks(ticket) if isinstance(whole, ArraySource) else [whole]:
            for start in range(0, len(block), self._batch):
                with np.errstate(all="ignore"):  # an extended float may overflow
                    yield block[start : start + self._batch].astype(np.float64, copy=False)


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinearModel:
    """Coefficients and intercepts for rows as they were given: rows @ coefficients.T + intercept.

    One line for two classes (positive: the second) or a regression, else one line for each class.
    """

    coefficients: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]
    classes: tuple[Any, ...] = ()
    temperature: float = 1.0
    """What scores are divided by before they become probabilities; public numbers alone say it."""

    def decision(self, rows: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
        """Return the linear predictors of rows, one line for each row."""
        values: npt.NDArray[np.float64] = np.asarray(rows) @ self.coefficients.T + self.intercept
        return values


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
    def of(
        columns: int, data_norm: Rational | None, intercept: bool, *, length: int = STEPS
    ) -> Features:
        """Check the public shape and bound of the rows."""
        require(
            1 <= columns < _MOST_COLUMNS,
            "rows",
            f"{columns} columns",
            expected="between 1 and 2^20 - 1 columns",
            remedy="pass one column for each feature",
        )
        require(
            data_norm is not None,
            "data_norm",
            None,
            expected="a public bound on the l2 length of a row",
            remedy="pass data_norm=..., from what is known of the columns, not from the rows",
        )
        features = Features(
            dimension=columns,
            data_norm=as_positive(data_norm or 0, "data_norm"),
            intercept=as_flag(intercept, "intercept"),
            length=length,
        )
        features.lattice()  # refuses a bound that floats cannot work with
        return features

    @property
    def width(self) -> int:
        """The number of columns with the constant one."""
        return self.dimension + self.intercept

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

    def integers(self, rows: Rows, *, signed: bool = False) -> tuple[IntegerRows, Floats]:
        """Return integer rows and labels; zero rows for those that lack a cell or a label.

        With `signed` a row is multiplied by the sign of its label, the place 0 or 1 of a class.
        """
        values, labels = np.empty((rows.rows, self.width)), np.empty(rows.rows)
        start = 0
        for block in rows.blocks():
            where, label = slice(start, start + len(block)), block[:, -1]
            part = np.empty((len(block), self.dimension))
            unusable = self.quantize(block[:, :-1], part) | np.isnan(label)
            factor = np.where(unusable, 0.0, 2 * label - 1 if signed else 1.0)
            np.multiply(part, factor[:, None], out=values[where, : self.dimension])
            if self.intercept:
                np.multiply(factor, float(self.constant), out=values[where, -1])
            labels[where] = np.where(unusable, 0.0, label)
            start = where.stop
        return IntegerRows(values=values), labels

    def __call__(self, block: Block) -> Block:
        """Return rows of length at most 1, the constant as their last column."""
        scaled = np.empty((len(block), self.width))
        part = np.empty((len(block), self.dimension))
        unusable = self.quantize(block, part)
        scaled[:, : self.dimension] = part
        scaled[:, self.dimension :] = self.constant
        scaled[unusable] = 0.0
        return scaled / self.length

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

    def model(self, theta: Floats, *, targets: Targets | None = None, **others: Any) -> LinearModel:
        """Return the model of θ of shape (columns, outputs), for rows and targets as given."""
        middle, half = (0.0, 1.0) if targets is None else (targets.middle, targets.half)
        theta = theta * half
        slope = theta[: self.dimension].T * float(self.steps / (self.length * self.data_norm))
        constant = np.zeros(theta.shape[1])
        if self.intercept:
            constant = theta[-1] * (self.constant / self.length)
        return LinearModel(coefficients=slope, intercept=constant + middle, **others)


@final
@dataclass(frozen=True, slots=True)
class ClassLabels:
    """Reads a label as its place among public classes, NaN for any other.

    A number and a text that spells it are one label, and nothing raises.

    >>> ClassLabels(("no", "yes"))(["yes", "no", None])
    array([ 1.,  0., nan])
    """

    classes: tuple[Any, ...]

    def __call__(self, labels: Any) -> Floats:
        """Return the places."""
        places = Options(self.classes, "classes").places(_as_column(labels))
        return np.where(places < 0, np.nan, places)


@final
@dataclass(frozen=True, slots=True)
class Targets:
    """Reads targets clipped to public bounds, less `middle` over `half`; NaN for no number.

    Without an intercept to undo it nothing is subtracted.

    >>> Targets.of((0, 4), True)([1, 9, "x"]), Targets.of((0, 4), False)([1, 9, "x"])
    (array([-0.5,  1. ,  nan]), array([0.25, 1.  ,  nan]))
    """

    bounds: tuple[Fraction, Fraction]
    intercept: bool

    @staticmethod
    def of(bounds: tuple[Rational, Rational] | None, intercept: bool) -> Targets:
        """Check the public bounds."""
        pair = bounds if isinstance(bounds, (tuple, list)) and len(bounds) == 2 else None
        low, high = (as_rational(end, "bounds_y") for end in pair or (0, 0))
        require(
            low < high and max(-low, high, 1 / (high - low)) <= _LARGEST,
            "bounds_y",
            bounds,
            expected="two public numbers, the lower first, within 1e100 and 1e-100 apart",
            remedy="pass bounds_y=(lower, upper), what targets can be, not what they are",
        )
        return Targets((low, high), as_flag(intercept, "intercept"))

    @property
    def middle(self) -> float:
        """What is subtracted."""
        return float(sum(self.bounds) / 2) if self.intercept else 0.0

    @property
    def half(self) -> float:
        """The unit: half the range, or the largest target."""
        low, high = self.bounds
        return float((high - low) / 2 if self.intercept else max(abs(low), abs(high)))

    def __call__(self, targets: Any) -> Floats:
        """Return the scaled targets, in [-1, 1]."""
        low, high = (float(end) for end in self.bounds)
        read: Floats = numbers(_as_column(targets))
        with np.errstate(all="ignore"):
            return np.clip((np.clip(read, low, high) - self.middle) / self.half, -1.0, 1.0)


def as_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the public classes, at least two and all different."""
    given = () if classes is None or isinstance(classes, str) else tuple(classes)
    Options(given, "classes")  # refuses labels that are read alike
    require(
        len(given) >= 2,
        "classes",
        classes,
        expected="two or more different labels",
        remedy="pass classes=[...], all that can occur, not those that are in the data",
    )
    return given


def _as_column(values: Any) -> _Cells:
    """Return the values as a one-dimensional array; entries of a list stay what they are."""
    array = as_rows(values) if isinstance(values, (list, tuple)) else as_cells(values)
    require(
        array.ndim in (1, 2) and array.size == len(array),
        "labels",
        type(values).__name__,
        expected="one value for each row",
        remedy="pass a one-dimensional array or a list",
    )
    return array.reshape(-1)
