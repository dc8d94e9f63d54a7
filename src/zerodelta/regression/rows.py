"""Read rows with one label each; unusable rows become zero rows, long rows are clipped.

A row is unusable if a cell is missing or its label is not among the classes (for a regression: if
its target is missing). The gradient of a zero row is 0 at any parameters, so it adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import OptionIndex, numbers
from zerodelta.data.columns import Unread
from zerodelta.data.dataset import Dataset
from zerodelta.data.isolation import is_trusted_code
from zerodelta.data.kinds import Category, Kind, Text
from zerodelta.data.pieces import Piece
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import FOREIGN_SOURCE, DerivedSource, Protection, Ticket, trusted_source
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.certified_losses import STEPS
from zerodelta.regression.encoded_columns import ColumnBounds, Encoding
from zerodelta.spine.plan import Facts
from zerodelta.value import published, value

# -- Label values ---------------------------------------------------------------------------------
# Labels become indices of public classes, targets become numbers within public bounds.

_Cells: TypeAlias = npt.NDArray[Any]

_LARGEST_BOUND = 10**100


@final
@dataclass(frozen=True, slots=True)
class ClassLabels:
    """Map a label to its index in the public classes, and any other value to NaN.

    A number and a text that spells it are the same label. No value raises an error.

    >>> ClassLabels(("no", "yes"))(["yes", "no", None])
    array([ 1.,  0., nan])
    """

    classes: tuple[Any, ...]

    def __call__(self, labels: Any) -> Floats:
        """Return the indices."""
        places = OptionIndex(self.classes, "classes").places(as_column(labels))
        return np.where(places < 0, np.nan, places)


@final
@dataclass(frozen=True, slots=True)
class Targets:
    """Map a target t to (clip(t) - middle)/half in [-1, 1], and non-numeric cells to NaN.

    Without an intercept `middle` is 0: no coefficient could undo the subtraction.

    >>> Targets.of((0, 4), True)([1, 9, "x"]), Targets.of((0, 4), False)([1, 9, "x"])
    (array([-0.5,  1. ,  nan]), array([0.25, 1.  ,  nan]))
    """

    bounds: tuple[Fraction, Fraction]
    intercept: bool

    @staticmethod
    def of(bounds: tuple[Rational, Rational] | None, intercept: bool) -> Targets:
        """Return the map of targets to [-1, 1]; refuse bounds that floats cannot work with."""
        pair = bounds if isinstance(bounds, (tuple, list)) and len(bounds) == 2 else None
        low, high = (as_rational(end, "bounds_y") for end in pair or (0, 0))
        require(
            low < high and max(-low, high, 1 / (high - low)) <= _LARGEST_BOUND,
            "bounds_y",
            bounds,
            expected="two public numbers, the lower first, within 1e100 and 1e-100 apart",
            remedy="pass bounds_y=(lower, upper): the range that targets can have, not the range "
            "that they have in the data",
        )
        return Targets((low, high), as_flag(intercept, "intercept"))

    @property
    def middle(self) -> float:
        """The number subtracted from a target."""
        return float(sum(self.bounds) / 2) if self.intercept else 0.0

    @property
    def half(self) -> float:
        """The divisor: half the range of targets, or without an intercept the largest target."""
        low, high = self.bounds
        return float((high - low) / 2 if self.intercept else max(abs(low), abs(high)))

    def __call__(self, targets: Any) -> Floats:
        """Return the scaled targets, in [-1, 1]."""
        low, high = (float(end) for end in self.bounds)
        values: Floats = numbers(as_column(targets))
        with np.errstate(all="ignore"):
            return np.clip((np.clip(values, low, high) - self.middle) / self.half, -1.0, 1.0)


def as_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Check that `classes` are at least two different labels, and return them as a tuple."""
    listed = isinstance(classes, Sized) and (is_list(classes) or isinstance(classes, Set))
    labels = tuple(classes) if classes is not None and listed else ()
    OptionIndex(labels, "classes")  # refuses two labels that spell the same number
    require(
        len(labels) >= 2,
        "classes",
        classes,
        expected="two or more different labels",
        remedy="pass classes=[...]: all labels that can occur, whether or not the data has them",
    )
    return labels


def as_column(values: Any) -> _Cells:
    """Return the values as a one-dimensional array; entries of a list keep their types."""
    return unread_labels(values).read()[0]


def unread_labels(values: Any) -> Unread:
    """Return one column of labels whose cells have not been read."""
    column = values if isinstance(values, Unread) else Unread(values)
    require(
        len(column.shape) in (1, 2) and column.width == 1,
        "labels",
        f"shape {column.shape}",
        expected="one value for each row",
        remedy="pass a one-dimensional array or a list",
    )
    return column


def label_kind(labels: Any) -> Kind:
    """Return the declared kind of a data set's label column; refuse anything else."""
    if not isinstance(labels, Dataset) or len(labels.columns) != 1:
        raise ParameterError(
            "y",
            type(labels).__name__ if not isinstance(labels, Dataset) else list(labels.columns),
            expected="one column of the data set that the features come from",
            remedy='pass fit(people[["age", "income"]], people["member"])',
        )
    kind = labels.kinds[labels.columns[0]]
    require(
        not isinstance(kind, Text),
        "y",
        labels.columns[0],
        expected="a category, a boolean, a date or a number",
        remedy="declare a text as zd.category([...])",
    )
    return kind


def declared_classes(labels: Any) -> tuple[Any, ...] | None:
    """Return the declared labels of a column of a data set; None for arrays and for numbers."""
    return label_kind(labels).labels if isinstance(labels, Dataset) else None


def unit_encoding(rows: Any, intercept: Any) -> Encoding | None:
    """Return the encoding of a data set's columns in [-1, 1]; None for other rows."""
    if not isinstance(rows, Dataset):
        return None
    return Encoding.of(rows.kinds).to_unit(centered=as_flag(intercept, "intercept"))


def declared_bounds(labels: Any) -> tuple[Fraction, Fraction]:
    """Return the declared bounds of a target of a data set; refuse a category."""
    kind = label_kind(labels)
    if isinstance(kind, Category) or kind.bounds is None:
        raise ParameterError(
            "y",
            labels.columns[0],
            expected="a number, a boolean or a date",
            remedy="use a classifier for a category",
        )
    return kind.bounds


_Prepare: TypeAlias = Callable[[Block], Block]

_BLOCK_ENTRIES = 1 << 17
_BLOCK_ROWS = 1 << 13
"""The largest numbers of entries and of rows of a block of array rows."""


@trusted_source
@final
class LabeledRows(DerivedSource):
    """Features and, as the last column, one label for each row; nothing is read without a ticket.

    `read` maps labels to numbers, unusable ones to NaN (default: the number in the cell).
    `prepare` maps a block of features to `width` columns, row by row; prepared rows are kept for
    later passes. Features and labels of one data set are read together; `encode` turns its declared
    columns into features.
    """

    __slots__ = (
        *("__weakref__", "_array", "_batch", "_labels", "_prepare", "_prepared"),
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
            known and type(encode) in (Encoding, type(None)) and is_trusted_code(prepare),
            "prepare",
            type(prepare),
            expected="a preparation of rows by this library",
            remedy="prepare the rows, each by itself, before they are passed",
        )
        self._read, self._prepare = read, prepare
        self._array: Any = None
        self._labels: Unread | None = None
        self._prepared: _Prepared | None = None
        if isinstance(rows, Dataset):
            columns = self._declare(rows, labels, encode)
        else:
            columns = self._hold(rows, labels)
        self._width = columns if width is None else width
        self._batch = min(_BLOCK_ROWS, max(64, _BLOCK_ENTRIES // max(1, columns)))

    def _hold(self, rows: Any, labels: Any) -> int:
        """Keep an array or a frame with its labels, unread; return the number of features."""
        require(
            not isinstance(labels, Dataset),
            "y",
            "a data set",
            expected="values as the features are: an array, a list or a series",
            remedy='pass features and labels of one data set: fit(people[["age"]], people["y"])',
        )
        self._of = rows if isinstance(rows, ArraySource) else ArraySource(rows)
        self._labels = unread_labels(labels)
        if type(rows) is np.ndarray and rows.ndim == 2 and rows.dtype.kind in "biuf":
            self._array = rows  # blocks are slices of it: faster than column by column
        require(
            self._labels.rows == self.rows,
            "labels",
            f"{self._labels.rows} values",
            expected=f"as many as there are rows, {self.rows}",
            remedy="pass one value for each row",
        )
        return len(self._of.columns)

    def _declare(self, rows: Dataset, labels: Any, encode: Encoding | None) -> int:
        """Keep two selections of a data set, unread; return the number of encoded features."""
        kind, codes = label_kind(labels), None
        if isinstance(self._read, ClassLabels) and kind.labels is not None:
            codes = self._read(list(kind.labels))
        self._of = rows.with_columns_of(labels)
        encode = Encoding.of(rows.kinds) if encode is None else encode
        self._prepared = _Prepared(
            encode=encode, read=self._read, codes=codes, prepare=self._prepare
        )
        return encode.width

    @property
    def protection(self) -> Protection:
        """The protection of the features, asserted if labels are in an unknown container."""
        protection = super().protection
        known = self._labels is None or self._labels.known
        return protection if known else replace(protection, premise=FOREIGN_SOURCE)

    @property
    def drops_rows(self) -> bool:
        """Whether some rows of a data set may be zero rows, as cells may be missing."""
        return self.declared is not None and self.declared.may_miss

    @property
    def columns(self) -> tuple[str, ...]:
        """The column numbers as names; the label is the last column."""
        return tuple(str(i) for i in range(self._width + 1))

    @property
    def declared(self) -> Dataset | None:
        """The columns of the data set; None for an array or a frame."""
        return self._of if isinstance(self._of, Dataset) else None

    @property
    def facts(self) -> Facts:
        """The public facts about the rows; zero rows are allowed."""
        public_count = self.row_count_is_public
        return Facts(
            rows=self.rows if public_count else None,
            expected_rows=None if public_count else self.rows,
            columns=self.columns,
            drops_rows=self.drops_rows,
            neighbors=self.protection.neighbors,
            memory=self.keeping.memory,
            remote=self.remote,
        )

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return rows with their labels as the last column, for one release.

        Rows are kept for later passes if they are prepared, or bounded by unit: which rows of a
        unit count is chosen once.
        """
        if self.remote and self._prepared is not None:
            return self._of.open(ticket).mapped(self._prepared, self.columns)
        unit = self.protection.unit is not None
        return super().open(ticket, keep=keep or self._prepare is not None or unit)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows in order, at most 8192 at a time."""
        Ticket.use(ticket)
        read = numbers if self._read is None else self._read
        if self._prepared is not None:
            yield from map(self._prepared, _cut(self._of.blocks(ticket), self._batch))
            return
        column: Any = self._labels
        labels, start = read(ticket.compute_once(column, column.read)[0]), 0
        blocks = self._of.blocks(ticket) if self._array is None else [self._array]
        for part in _cut(blocks, self._batch):
            with np.errstate(all="ignore"):  # an extended float may overflow
                floats = part.astype(np.float64, copy=False)
            block = np.empty((len(part), self._width + 1))
            block[:, :-1] = floats if self._prepare is None else self._prepare(floats)
            block[:, -1] = labels[start : start + len(part)]
            yield block
            start += len(part)

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return the rows in the pieces of their data set, which may be read in parallel."""
        prepared, batch = self._prepared, self._batch
        if prepared is None:
            return super().pieces(ticket)

        def prepare(piece: Piece) -> Iterator[Block]:
            return map(prepared, _cut(piece(), batch))

        return [partial(prepare, piece) for piece in self._of.pieces(ticket)]


@value(eq=False)
class _Prepared:
    """Turn declared columns of a data set, the label last, into features and a numeric label.

    A value without references to the rows, so that it can be sent to a cluster.
    """

    encode: Encoding
    read: ClassLabels | Targets | None
    codes: Floats | None
    """The class index of each code of a category; None if labels are no category."""
    prepare: _Prepare | None

    def __call__(self, block: Block) -> Block:
        features = self.encode(block[:, :-1])
        if self.prepare is not None:
            features = self.prepare(features)
        joined = np.empty((len(block), features.shape[1] + 1))
        joined[:, :-1], joined[:, -1] = features, self._label(block[:, -1])
        return joined

    def _label(self, column: Block) -> Block:
        """Return the labels as numbers, NaN for unusable ones."""
        if self.codes is None:
            return column if self.read is None else self.read(np.ascontiguousarray(column))
        missing = np.isnan(column)
        return np.where(missing, np.nan, self.codes[np.where(missing, 0, column).astype(np.int64)])


def _cut(blocks: Iterable[Any], maximum_rows: int) -> Iterator[Any]:
    """Cut blocks into pieces of at most `maximum_rows` rows."""
    for block in blocks:
        for start in range(0, len(block), maximum_rows):
            yield block[start : start + maximum_rows]


# -- Row limits -----------------------------------------------------------------------------------
# Clip rows that are too long or out of bounds, in predictions as in the fit. A fit ignores rows
# with a missing cell; a prediction takes the middle of its bounds.


@published
@value(eq=False)
class RowLimits:
    """Clip rows to `bounds`, then to the ball where (row - middle)/half has length <= `norm`.

    Bounds may be None. A fit sees only clipped rows, so a prediction clips rows the same way.
    Rows inside are unchanged, to the last bit. A missing cell becomes the middle of its bounds,
    without bounds that of the ball.

    >>> one = np.ones(2)
    >>> limits = RowLimits(middle=one, half=2 * one, norm=Fraction(1))
    >>> limits(np.array([[1.0, 2.5], [1.0, 9.0], [np.nan, 9.0]])).tolist()
    [[1.0, 2.5], [1.0, 3.0], [1.0, 3.0]]
    """

    middle: Floats
    half: Floats
    norm: Fraction | None
    bounds: ColumnBounds | None = None

    def __call__(self, rows: Floats) -> Floats:
        """Return the clipped rows, without NaN."""
        rows = rows if self.bounds is None else self.bounds.clipped(rows)
        middle = self.middle if self.bounds is None else self.bounds.middle
        rows = np.where(np.isnan(rows), middle, rows)
        if self.norm is None:
            return rows
        with np.errstate(all="ignore"):
            scaled = (rows - self.middle) / self.half
            inside = np.einsum("ij,ij->i", scaled, scaled) <= float(self.norm) ** 2
        if inside.all():
            return rows
        ball = FixedPoint.ball(dimension=rows.shape[1], bound=self.norm, steps=STEPS)
        clipped = np.array(rows, dtype=np.float64)
        cut = ball.quantize(scaled[~inside]) * float(self.norm / STEPS)
        clipped[~inside] = self.middle + self.half * cut
        return clipped
