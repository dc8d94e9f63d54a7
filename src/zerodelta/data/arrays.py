"""Rows held in memory: arrays, lists of rows, and data frames of any kind that narwhals reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, final

import numpy as np

from zerodelta.data.cells import numbers
from zerodelta.data.columns import READABLE, as_frame, as_one_column
from zerodelta.data.protection import Protection
from zerodelta.data.rowwise import Block
from zerodelta.data.source import FOREIGN_SOURCE, Source, ours
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.data.unread import Unread
from zerodelta.errors import is_list, require
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count, as_float

DEFAULT_MISSING: Any = object()
"""What a missing cell counts as was not said: nowhere in a frame, as the center in an array."""

_BLOCK_ENTRIES = 1 << 20


@ours
@final
class ArraySource(Source):
    """The rows of an array or a list (one column, or several), or named columns of a data frame.

    No cell is read, or becomes another object, before a ticket is shown. A container that is of no
    library we know (`is_known`) runs code of its own, so its rows are caller-asserted.

    An array has the columns "0", "1", …; a one-dimensional one has one column. The width of a list
    of rows is that of its first row. Of a frame, name the columns that may be used; one whose
    declared type is text (Arrow, Polars, pandas "string") is refused. Every cell is read by itself
    as a number (`cells.number`): a text is the number it spells, an infinity the largest float, and
    what is missing or no number is NaN. So one odd cell, which may turn a whole array of integers
    into texts, changes no other row. (A float32 spells another float64: convert such an array
    before texts can get into it.) `missing`: "skip" (counts nowhere; for frames), None (counts as
    the center; for arrays), or the number that it counts as.

    >>> source = ArraySource(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]))
    >>> source.rows, source.columns
    (3, ('0', '1'))
    """

    # nothing can be put in the place of a method
    __slots__ = ("__weakref__", "_batch", "_fill", "_names", "_rows", "_skip", "_tables")

    def __init__(
        self,
        data: Any,
        *,
        columns: Sequence[str] | None = None,
        missing: Any = DEFAULT_MISSING,
        batch: int | None = None,
    ) -> None:
        array = isinstance(data, (np.ndarray, list, tuple))
        self._skip, self._fill = _as_missing(missing, skip=not array)
        if array or (isinstance(data, Unread) and not data.is_frame):
            require(
                columns is None,
                "columns",
                columns,
                expected="None for an array",
                remedy="select columns by slicing",
            )
            table = _as_table(data)
        else:
            table = data if isinstance(data, Unread) else _as_frame(data)
            chosen = _chosen(columns, table.names)
            table = table.choose([table.names.index(name) for name in chosen]).check_numbers()
        self._tables: tuple[Unread, ...] = (table,)
        self._names = tuple(map(str, table.names))  # pandas numbers them by default
        self._rows = table.rows
        entries = max(1, _BLOCK_ENTRIES // max(1, len(self._names)))
        self._batch = entries if batch is None else as_count(batch, "batch", minimum=1)

    @classmethod
    def beside(cls, features: Any, labels: Any) -> ArraySource:
        """Return features with a column of labels, one for each row, behind them.

        >>> ArraySource.beside(np.zeros((3, 2)), [0, 1, 1]).columns
        ('0', '1', '2')
        """
        table, answers = cls(features), cls(labels)
        require(
            (answers.rows, len(answers.columns)) == (table.rows, 1),
            "labels",
            f"shape ({answers.rows}, {len(answers.columns)})",
            expected=f"one label for each of the {table.rows} rows",
            remedy="pass a one-dimensional array as long as features",
        )
        table._tables = (*table._tables, *answers._tables)
        table._names = tuple(str(i) for i in range(len(table.columns) + 1))
        return table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def may_miss(self) -> bool:
        """Whether a missing cell counts nowhere."""
        return self._skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @property
    def protection(self) -> Protection:
        """One row is protected; what a container that we do not know yields is asserted."""
        known = all(table.known for table in self._tables)
        return Protection(premise=None if known else FOREIGN_SOURCE)

    @property
    def unfilled(self) -> ArraySource:
        """The same rows, in which a missing cell is NaN whatever it counts as."""
        bare = copy(self)
        bare._fill = None
        return bare

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows in order, `batch` at a time; a block may be read-only."""
        for piece in self.pieces(ticket):
            yield from piece()

    def pieces(self, ticket: Ticket) -> Sequence[Piece]:
        """Return each block as a piece."""
        Ticket.use(ticket)
        return self._pieces([ticket.once(table, table.read) for table in self._tables])

    def _public(self) -> Iterator[Block]:
        for piece in self._pieces([table.read() for table in self._tables]):
            yield from piece()

    def _pieces(self, tables: list[list[Array]]) -> list[Piece]:
        parts = [part for table in tables for part in table]
        return [partial(self._blocks, parts, start) for start in range(0, self._rows, self._batch)]

    def _blocks(self, parts: list[Array], start: int) -> Iterator[Block]:
        """Yield one block."""
        stop = min(start + self._batch, self._rows)
        block = np.empty((len(parts), stop - start)).T  # each column in one piece
        for i, part in enumerate(parts):
            numbers(part[start:stop], out=block[:, i])
        if self._fill is not None:
            block[np.isnan(block)] = self._fill
        yield block


def public_table(data: Any, *, columns: Sequence[str] | None = None) -> Block:
    """Return all rows of what the caller gave as public: made-up examples, centers, queries.

    Never the rows of the data, which are read with a ticket only.
    """
    source = data if isinstance(data, ArraySource) else ArraySource(data, columns=columns)
    return np.concatenate([np.empty((0, len(source.columns))), *source._public()])


def _as_table(data: Any) -> Unread:
    if isinstance(data, np.ndarray):
        require(
            data.ndim in (1, 2) and data.dtype.kind in READABLE,
            "data",
            f"{data.dtype} array with {data.ndim} dimensions",  # never a cell
            expected="an array of real numbers with 1 or 2 dimensions",
            remedy="convert dates to numbers, and reshape to (rows, columns)",
        )
    return data if isinstance(data, Unread) else Unread(data)


def _as_frame(data: Any) -> Unread:
    as_frame(as_one_column(data))  # what is none is refused by its type
    return Unread(data)


def _as_missing(missing: Any, *, skip: bool) -> tuple[bool, float | None]:
    """Return whether missing cells count nowhere, and else the number that they count as."""
    if missing is DEFAULT_MISSING or missing is None:
        return skip and missing is DEFAULT_MISSING, None
    if isinstance(missing, str) and missing == "skip":
        return True, None
    return False, as_float(missing, "missing")


def _chosen(columns: Sequence[str] | None, available: Sequence[str]) -> tuple[str, ...]:
    if columns is None:
        return tuple(available)
    named = tuple(columns) if is_list(columns) else ()
    names = all(isinstance(name, (str, int)) for name in named)
    require(
        named and names and len(set(named)) == len(named) and set(named) <= set(available),
        "columns",
        columns,
        expected=f"a list of some of {list(available)[:10]}, each once",
        remedy="name columns of the frame",
    )
    return named
