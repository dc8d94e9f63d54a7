"""Rows with one label each, as integers, opened by a ticket; what does not fit is mapped.

A row with a missing cell, and a row whose label is no class (whose target is missing), becomes
the zero row: its gradient is 0 whatever the parameters. Longer rows are clipped to the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import numbers
from zerodelta.data.dataset import Dataset
from zerodelta.data.kept_copy import Keeping, together
from zerodelta.data.prepared_rows import PreparedRows
from zerodelta.data.protection import Protection
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Rows, Source, ours
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.data.written_here import is_written_here
from zerodelta.errors import require
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.integer_rows import STEPS, Floats, IntegerRows
from zerodelta.regression.label_values import ClassLabels, Targets, as_column, label_kind
from zerodelta.spine.facts import Facts

__all__ = ["Features", "LabeledRows", "LinearModel"]

_Prepare: TypeAlias = Callable[[Block], Block]

_BLOCK_ENTRIES = 1 << 17
_MOST_ROWS = 1 << 13
_MOST_COLUMNS = 1 << 20


@ours
@final
class LabeledRows(Source):
    """Features and, as the last column, one label for each row; nothing is read without a ticket.

    `read` turns the labels into numbers, NaN for none (by default the number that a cell is);
    `prepare` turns a block of features into `width` columns, row by row. Prepared rows are read
    once and kept. Two selections of one data set are read together; `encode` makes features of its
    declared columns.
    """

    __slots__ = (
        *("__weakref__", "_batch", "_features", "_labels", "_prepare", "_prepared"),
        *("_read", "_width"),
    )

    def __init__(
        self,
        rows: Any,
        labels: Any,
        *,
        read: ClassLabels | Targets | None = None,
        encode: Encoding | None = None,
        prepare: _Prepare | None = None,
        width: int | None = None,
    ) -> None:
        known = type(read) in (ClassLabels, Targets, type(None))
        require(
            known and type(encode) in (Encoding, type(None)) and is_written_here(prepare),
            "prepare",
            type(prepare),
            expected="a preparation of rows by this library",
            remedy="prepare the rows, each by itself, before they are passed",
        )
        self._read, self._prepare = read, prepare
        self._features: Any
        self._labels: Any = None
        self._prepared: _Prepared | None = None
        if isinstance(rows, Dataset):
            columns = self._declare(rows, labels, encode)
        else:
            columns = self._hold(rows, labels)
        self._width = columns if width is None else width
        self._batch = min(_MOST_ROWS, max(64, _BLOCK_ENTRIES // max(1, columns)))

    def _hold(self, rows: Any, labels: Any) -> int:
        """Take an array or a frame, and labels of their own; return the number of features."""
        require(
            not isinstance(labels, Dataset),
            "y",
            "a data set",
            expected="values as the features are: an array, a list or a series",
            remedy='pass features and labels of one data set: fit(people[["age"]], people["y"])',
        )
        plain = type(rows) is np.ndarray and rows.ndim == 2 and rows.dtype.kind in "biuf"
        held: Any = rows if plain or isinstance(rows, ArraySource) else ArraySource(rows)
        self._features, self._labels = held, as_column(labels)
        require(
            len(self._labels) == self.rows,
            "labels",
            f"{len(self._labels)} values",
            expected=f"as many as there are rows, {self.rows}",
            remedy="pass one value for each row",
        )
        return held.shape[1] if plain else len(held.columns)

    def _declare(self, rows: Dataset, labels: Any, encode: Encoding | None) -> int:
        """Take two selections of a data set; return the number of encoded features."""
        kind, codes = label_kind(labels), None
        if isinstance(self._read, ClassLabels) and kind.labels is not None:
            codes = self._read(list(kind.labels))
        self._features = rows.beside(labels)
        made = Encoding.of(rows.kinds) if encode is None else encode
        self._prepared = _Prepared(encode=made, read=self._read, codes=codes, prepare=self._prepare)
        return made.width

    @property
    def rows(self) -> int:
        """The number of rows, or where that is private one to plan with."""
        held = self._features
        return len(held) if isinstance(held, np.ndarray) else int(held.rows)

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        held = self._features
        return held.whole if isinstance(held, Dataset) else True

    @property
    def protection(self) -> Protection:
        """Who is protected: what the data set says."""
        held = self._features
        return held.protection if isinstance(held, Dataset) else Protection()

    @property
    def told(self) -> str:
        """Which number plans use for that of the rows."""
        held = self._features
        return held.told if isinstance(held, Dataset) else super().told

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers of the columns; the label is the last."""
        return tuple(str(i) for i in range(self._width + 1))

    @property
    def declared(self) -> Dataset | None:
        """The columns of the data set; None for an array or a frame."""
        return self._features if isinstance(self._features, Dataset) else None

    @property
    def facts(self) -> Facts:
        """What is public of the rows; there may be none of them."""
        whole = self.whole
        return Facts(
            rows=self.rows if whole else None,
            expected_rows=None if whole else self.rows,
            columns=self.columns,
            neighbors=self.protection.neighbors,
            memory=self.keeping.memory,
            remote=self.remote,
        )

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept: as the data set says."""
        held = self._features
        return held.keeping if isinstance(held, Dataset) else super().keeping

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return isinstance(self._features, Dataset) and self._features.remote

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release; those of units are chosen once, and kept."""
        if self.remote and self._prepared is not None:
            return PreparedRows(self._features.open(ticket), self._prepared, self.columns)
        unit = self.protection.unit is not None
        return super().open(ticket, keep=keep or self._prepare is not None or unit)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows in order, at most 8192 at a time."""
        Ticket.check(ticket)
        held, read = self._features, numbers if self._read is None else self._read
        if self._prepared is not None:
            yield from map(self._prepared, _cut(held.blocks(ticket), self._batch))
            return
        labels, start = read(self._labels), 0
        whole = held.blocks(ticket) if isinstance(held, ArraySource) else [held]
        for part in _cut(whole, self._batch):
            with np.errstate(all="ignore"):  # an extended float may overflow
                floats = part.astype(np.float64, copy=False)
            block = np.empty((len(part), self._width + 1))
            block[:, :-1] = floats if self._prepare is None else self._prepare(floats)
            block[:, -1] = labels[start : start + len(part)]
            yield block
            start += len(part)

    def pieces(self, ticket: Ticket) -> Sequence[Piece]:
        """Return the rows of a data set in the pieces that it has."""
        prepared, most = self._prepared, self._batch
        if prepared is None:
            return super().pieces(ticket)

        def prepare(piece: Piece) -> Iterator[Block]:
            return map(prepared, _cut(piece(), most))

        return [partial(prepare, piece) for piece in self._features.pieces(ticket)]


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Prepared:
    """What is made of the declared columns of a data set, the label last: sent to a cluster."""

    encode: Encoding
    read: ClassLabels | Targets | None
    codes: Floats | None
    """The classes of the codes of a category."""
    prepare: _Prepare | None

    def __call__(self, block: Block) -> Block:
        features = self.encode(block[:, :-1])
        if self.prepare is not None:
            features = self.prepare(features)
        joined = np.empty((len(block), features.shape[1] + 1))
        joined[:, :-1], joined[:, -1] = features, self._label(block[:, -1])
        return joined

    def _label(self, column: Block) -> Block:
        """Return the labels as numbers; NaN for none."""
        if self.codes is None:
            return column if self.read is None else self.read(np.ascontiguousarray(column))
        missing = np.isnan(column)
        return np.where(missing, np.nan, self.codes[np.where(missing, 0, column).astype(np.int64)])


def _cut(blocks: Iterable[Any], most: int) -> Iterator[Any]:
    """Yield pieces of at most so many rows."""
    for block in blocks:
        for start in range(0, len(block), most):
            yield block[start : start + most]


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinearModel:
    """Coefficients and intercepts for rows as they were given: rows @ coefficients.T + intercept.

    One line for two classes (positive: the second) or a regression, else one line for each class.
    For a data set the coefficients belong to `encoding.names`: a category has one for each option.
    """

    coefficients: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]
    classes: tuple[Any, ...] = ()
    temperature: float = 1.0
    """What scores are divided by before they become probabilities; public numbers alone say it."""
    encoding: Encoding | None = None
    """How the declared columns of a data set became features."""

    def decision(self, rows: Any) -> npt.NDArray[np.float64]:
        """Return the linear predictors of rows, one line for each row."""
        table = np.asarray(rows) if self.encoding is None else self.encoding.read(rows)
        values: npt.NDArray[np.float64] = table @ self.coefficients.T + self.intercept
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
            data_norm=as_positive(0 if data_norm is None else data_norm, "data_norm"),
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

        def read(block: Block) -> Block:
            values, label = np.empty((len(block), self.width + 1)), block[:, -1]
            part = np.empty((len(block), self.dimension))
            unusable = self.quantize(block[:, :-1], part) | np.isnan(label)
            factor = np.where(unusable, 0.0, 2 * label - 1 if signed else 1.0)
            np.multiply(part, factor[:, None], out=values[:, : self.dimension])
            if self.intercept:
                np.multiply(factor, float(self.constant), out=values[:, -2])
            values[:, -1] = np.where(unusable, 0.0, label)
            return values

        table = together(
            map(read, rows.blocks()), self.width + 1, planned=rows.rows, keeping=rows.keeping
        )
        return IntegerRows(values=table[:, :-1]), np.ascontiguousarray(table[:, -1])

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

    def model(
        self,
        theta: Floats,
        *,
        targets: Targets | None = None,
        encoding: Encoding | None = None,
        **others: Any,
    ) -> LinearModel:
        """Return the model of θ of shape (columns, outputs), for rows and targets as given."""
        middle, half = (0.0, 1.0) if targets is None else (targets.middle, targets.half)
        theta = theta * half
        slope = theta[: self.dimension].T * float(self.steps / (self.length * self.data_norm))
        constant = np.zeros(theta.shape[1])
        if self.intercept:
            constant = theta[-1] * (self.constant / self.length)
        constant = constant + middle
        if encoding is not None:
            slope, constant = encoding.in_units(slope, constant)
        return LinearModel(coefficients=slope, intercept=constant, encoding=encoding, **others)
