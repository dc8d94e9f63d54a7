"""Rows with a key each and numbers beside it, read once: keys are found first, then summed up.

A query may yield other rows the next time, so both come from one copy. In the copy a key is a
number, in the order in which keys occur; only the groups that were found leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.derived_source import DerivedSource
from zerodelta.data.kept_copy import Keeping, kept
from zerodelta.data.key_source import KeySource, is_absent, keys_in, not_floats
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import ours
from zerodelta.data.ticket import Ticket
from zerodelta.exact.exact_sums import IntegerArray

GROUP = "\1"
"""The name of the column with the group of each row: no source has such a name."""


@ours
@final
class RowsByKey(DerivedSource):
    """Columns of numbers of a data set, and other columns that are the key of a row.

    As a source it has the columns of numbers; opened it is a `KeyedRows`.
    """

    __slots__ = ("_values", "keys")

    _of: Dataset

    def __init__(self, dataset: Dataset, by: Sequence[str], of: Sequence[str]) -> None:
        self.keys = KeySource(dataset[list(by)])
        self._of = dataset[list(dict.fromkeys([*by, *of]))]
        self._values = dataset[list(of)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return self._values.columns

    @property
    def may_miss(self) -> bool:
        """Whether a row may have no key."""
        return True

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield the columns of numbers."""
        return self._values.blocks(ticket)

    def open(self, ticket: Ticket, *, keep: bool = False) -> Any:
        """Return the rows, of which the first question makes a copy."""
        if keep:  # for programs that ask many times
            return super().open(ticket, keep=keep)
        Ticket.check(ticket)
        return KeyedRows(self, ticket)

    def _coded(self, ticket: Ticket, numbers: dict[Any, int]) -> Iterator[Block]:
        """Yield the rows that count, before their numbers that of their key; -1 without one."""
        kinds, values = self.keys.kinds, self._values.chosen
        for cells, counts in self._of.cells(ticket, whole=not_floats(kinds)):
            block = values.read({name: cells[name] for name in values.needed})
            found = keys_in(kinds, cells, counts)
            codes = [
                -1 if is_absent(key) else numbers.setdefault(key, len(numbers)) for key in found
            ]
            kept_rows = block if counts is None else block[counts]
            yield np.column_stack([np.array(codes, dtype=np.float64), kept_rows])


@final
class KeyedRows:
    """Rows that a ticket has opened: how often each key occurs, then rows by groups of keys."""

    __slots__ = ("_blocks", "_numbers", "_source", "_ticket")

    def __init__(self, source: RowsByKey, ticket: Ticket) -> None:
        self._source, self._ticket = source, ticket
        self._numbers: dict[Any, int] = {}
        self._blocks: tuple[Block, ...] | None = None

    def _copy(self) -> tuple[Block, ...]:
        if self._blocks is None:
            read = self._source._coded(self._ticket, self._numbers)
            self._blocks = kept(read, self._source.keeping)
        return self._blocks

    def counts(self) -> dict[Any, int]:
        """Return how often each key occurs, in no order that means anything."""
        blocks = self._copy()
        total = np.zeros(len(self._numbers), dtype=np.int64)
        for block in blocks:
            codes = block[:, 0].astype(np.int64)
            total += np.bincount(codes[codes >= 0], minlength=len(total))
        return dict(zip(self._numbers, total.tolist(), strict=True))

    def by_group(self, groups: Mapping[Any, int], rest: int) -> Rows:
        """Return the same rows with a column `GROUP`: that of their key, `rest` for all others."""
        blocks = self._copy()
        codes = np.full(len(self._numbers) + 1, rest, dtype=np.float64)  # the last: without a key
        for key, group in groups.items():
            if key in self._numbers:
                codes[self._numbers[key]] = group
        return _GroupedRows(self._source, blocks, codes)


@final
class _GroupedRows(Rows):
    """Rows of the copy by group."""

    __slots__ = ("_blocks", "_codes", "_source")

    def __init__(self, source: RowsByKey, blocks: tuple[Block, ...], codes: Block) -> None:
        self._source, self._blocks, self._codes = source, blocks, codes

    @property
    def rows(self) -> int:
        """A number of rows to plan with."""
        return self._source.rows

    @property
    def whole(self) -> bool:
        """False: rows that count nowhere were left out."""
        return False

    @property
    def may_miss(self) -> bool:
        """Whether missing cells count nowhere."""
        return True

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self._source.keeping

    @property
    def columns(self) -> tuple[str, ...]:
        """The group, then the columns of numbers."""
        return (GROUP, *self._source.columns)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows."""
        for block in self._blocks:
            group = self._codes[block[:, 0].astype(np.int64)]
            yield np.column_stack([group, block[:, 1:]])

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        return compute()
