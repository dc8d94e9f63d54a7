"""Rows with one label each, as integers, opened by a ticket; what does not fit is mapped.

A row with a missing cell, and a row whose label is no class (whose target is missing), becomes
the zero row: its gradient is 0 whatever the parameters. Longer rows are clipped to the bound.
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
from zerodelta.value import value

# -- Label values ---------------------------------------------------------------------------------
# Labels and targets as numbers: places among public classes, or numbers within public bounds.

_Cells: TypeAlias = npt.NDArray[Any]

_LARGEST = 10**100


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
        places = OptionIndex(self.classes, "classes").places(as_column(labels))
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
        read: Floats = numbers(as_column(targets))
        with np.errstate(all="ignore"):
            return np.clip((np.clip(read, low, high) - self.middle) / self.half, -1.0, 1.0)


def as_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the public classes, at least two and all different."""
    listed = isinstance(classes, Sized) and (is_list(classes) or isinstance(classes, Set))
    given = tuple(classes) if classes is not None and listed else ()
    OptionIndex(given, "classes")  # refuses labels that are read alike
    require(
        len(given) >= 2,
        "classes",
        classes,
        expected="two or more different labels",
        remedy="pass classes=[...], all that can occur, not those that are in the data",
    )
    return given


def as_column(values: Any) -> _Cells:
    """Return the values as a one-dimensional array; entries of a list stay what they are."""
    return one_label_each(values).read()[0]


def one_label_each(values: Any) -> Unread:
    """Return one column of labels, unread."""
    given = values if isinstance(values, Unread) else Unread(values)
    require(
        len(given.shape) in (1, 2) and given.width == 1,
        "labels",
        f"shape {given.shape}",
        expected="one value for each row",
        remedy="pass a one-dimensional array or a list",
    )
    return given


def label_kind(labels: Any) -> Kind:
    """Return what the column of labels of a data set was declared as; anything else is refused."""
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
    """Return the labels that a column of a data set can have; None for arrays and for numbers."""
    return label_kind(labels).labels if isinstance(labels, Dataset) else None


def declared_bounds(labels: Any) -> tuple[Fraction, Fraction]:
    """Return the bounds of a target of a data set; a category has none."""
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
_MOST_ROWS = 1 << 13


@trusted_source
@final
class LabeledRows(DerivedSource):
    """Features and, as the last column, one label for each row; nothing is read without a ticket.

    `read` turns the labels into numbers, NaN for none (by default the number that a cell is);
    `prepare` turns a block of features into `width` columns, row by row. Prepared rows are read
    once and kept. Two selections of one data set are read together; `encode` makes features of its
    declared columns.
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
        self._of = rows if isinstance(rows, ArraySource) else ArraySource(rows)
        self._labels = one_label_each(labels)
        if type(rows) is np.ndarray and rows.ndim == 2 and rows.dtype.kind in "biuf":
            self._array = rows  # read by rows, not column by column
        require(
            self._labels.rows == self.rows,
            "labels",
            f"{self._labels.rows} values",
            expected=f"as many as there are rows, {self.rows}",
            remedy="pass one value for each row",
        )
        return len(self._of.columns)

    def _declare(self, rows: Dataset, labels: Any, encode: Encoding | None) -> int:
        """Take two selections of a data set; return the number of encoded features."""
        kind, codes = label_kind(labels), None
        if isinstance(self._read, ClassLabels) and kind.labels is not None:
            codes = self._read(list(kind.labels))
        self._of = rows.with_columns_of(labels)
        made = Encoding.of(rows.kinds) if encode is None else encode
        self._prepared = _Prepared(encode=made, read=self._read, codes=codes, prepare=self._prepare)
        return made.width

    @property
    def protection(self) -> Protection:
        """Who is protected; labels in a container that we do not know are asserted."""
        found = super().protection
        known = self._labels is None or self._labels.known
        return found if known else replace(found, premise=FOREIGN_SOURCE)

    @property
    def drops_rows(self) -> bool:
        """Whether some rows of a data set may be zero rows: those that lack a cell, too."""
        return self.declared is not None and self.declared.may_miss

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers of the columns; the label is the last."""
        return tuple(str(i) for i in range(self._width + 1))

    @property
    def declared(self) -> Dataset | None:
        """The columns of the data set; None for an array or a frame."""
        return self._of if isinstance(self._of, Dataset) else None

    @property
    def facts(self) -> Facts:
        """What is public of the rows; there may be none of them."""
        whole = self.row_count_is_public
        return Facts(
            rows=self.rows if whole else None,
            expected_rows=None if whole else self.rows,
            columns=self.columns,
            drops_rows=self.drops_rows,
            neighbors=self.protection.neighbors,
            memory=self.keeping.memory,
            remote=self.remote,
        )

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release; those of units are chosen once, and kept."""
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
        given: Any = self._labels
        labels, start = read(ticket.compute_once(given, given.read)[0]), 0
        whole = self._of.blocks(ticket) if self._array is None else [self._array]
        for part in _cut(whole, self._batch):
            with np.errstate(all="ignore"):  # an extended float may overflow
                floats = part.astype(np.float64, copy=False)
            block = np.empty((len(part), self._width + 1))
            block[:, :-1] = floats if self._prepare is None else self._prepare(floats)
            block[:, -1] = labels[start : start + len(part)]
            yield block
            start += len(part)

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return the rows of a data set in the pieces that it has."""
        prepared, most = self._prepared, self._batch
        if prepared is None:
            return super().pieces(ticket)

        def prepare(piece: Piece) -> Iterator[Block]:
            return map(prepared, _cut(piece(), most))

        return [partial(prepare, piece) for piece in self._of.pieces(ticket)]


@value(eq=False)
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


# -- Row limits -----------------------------------------------------------------------------------
# What a fit makes of a row that is too long or beyond its bounds, and a prediction does, too.


@value(eq=False)
class RowLimits:
    """Rows are clipped to `bounds`, then to a ball: (row - middle)/half has length <= `norm`.

    None for a bound that does not exist.

    Coefficients were learned of such rows, so scores of rows that were left as they are would be
    those of another model. Rows inside stay as they are, to the last bit.

    >>> one = np.ones(2)
    >>> limits = RowLimits(middle=one, half=2 * one, norm=Fraction(1))
    >>> limits(np.array([[1.0, 2.5], [1.0, 9.0], [np.nan, 9.0]])).tolist()
    [[1.0, 2.5], [1.0, 3.0], [nan, nan]]
    """

    middle: Floats
    half: Floats
    norm: Fraction | None
    bounds: ColumnBounds | None = None

    def __call__(self, rows: Floats) -> Floats:
        """Return the rows within; one with a NaN has no others then."""
        rows = rows if self.bounds is None else self.bounds.clipped(rows)
        if self.norm is None:
            return rows
        with np.errstate(all="ignore"):
            scaled = (rows - self.middle) / self.half
            inside = np.einsum("ij,ij->i", scaled, scaled) <= float(self.norm) ** 2
        if inside.all():
            return rows
        ball = FixedPoint.ball(dimension=rows.shape[1], bound=self.norm, steps=STEPS)
        found = np.array(rows, dtype=np.float64)
        cut = ball.quantize(scaled[~inside]) * float(self.norm / STEPS)
        missing = np.isnan(scaled[~inside]).any(axis=1, keepdims=True)
        found[~inside] = np.where(missing, np.nan, self.middle + self.half * cut)
        return found
