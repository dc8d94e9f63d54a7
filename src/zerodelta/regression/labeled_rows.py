"""Rows with one label each, as integers, opened by a ticket; what does not fit is mapped.

A row with a missing cell, and a row whose label is no class (whose target is missing), becomes
the zero row: its gradient is 0 whatever the parameters. Longer rows are clipped to the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import numbers
from zerodelta.data.dataset import Dataset
from zerodelta.data.derived_source import DerivedSource
from zerodelta.data.prepared_rows import PreparedRows
from zerodelta.data.protection import Protection
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import FOREIGN_SOURCE, ours
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.data.unread import Unread
from zerodelta.data.written_here import is_written_here
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.label_values import ClassLabels, Targets, label_kind, one_label_each
from zerodelta.spine.facts import Facts
from zerodelta.value import value

_Prepare: TypeAlias = Callable[[Block], Block]

_BLOCK_ENTRIES = 1 << 17
_MOST_ROWS = 1 << 13


@ours
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
            known and type(encode) in (Encoding, type(None)) and is_written_here(prepare),
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
        self._of = rows.beside(labels)
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
    def drops(self) -> bool:
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
        whole = self.whole
        return Facts(
            rows=self.rows if whole else None,
            expected_rows=None if whole else self.rows,
            columns=self.columns,
            drops=self.drops,
            neighbors=self.protection.neighbors,
            memory=self.keeping.memory,
            remote=self.remote,
        )

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release; those of units are chosen once, and kept."""
        if self.remote and self._prepared is not None:
            return PreparedRows(self._of.open(ticket), self._prepared, self.columns)
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
        labels, start = read(ticket.once(given, given.read)[0]), 0
        whole = self._of.blocks(ticket) if self._array is None else [self._array]
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
