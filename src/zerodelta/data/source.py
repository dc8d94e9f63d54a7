"""A source of rows, which a ticket opens: then they answer exact integer sums and counts by key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, final

import numpy as np

from zerodelta.data.kept_copy import Keeping, kept
from zerodelta.data.progress import rows_in, shown
from zerodelta.data.protection import Protection
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.errors import require
from zerodelta.exact.exact_sums import IntegerArray

FOREIGN_SOURCE = "the source's own code yields each row by itself, keeps no state and shows nothing"
"""The premise of a certificate whose rows come from a source that is not `is_ours`."""

_MOST_SUMS, _LARGEST_SUM = 256, 1 << 14
"""How many sums of named columns are kept, and of how many entries each: at most 32 MiB."""

_Kind = TypeVar("_Kind", bound=type)

_OURS: list[type] = []
"""Final classes that this library wrote, compared by identity: no other class can pass for one.

They have slots: nothing can take the place of an object's method either.
"""


class Source(ABC):
    """Rows of numbers that yield nothing without a ticket.

    A new kind of source gives `rows`, `columns` and `blocks`; what it is asked follows (`Rows`).
    """

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, or where that is private a public number to plan with."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The public names of the columns, in the order in which a function sees them."""

    @abstractmethod
    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN.

        Infinities are clipped like any large number. A block may be read-only.
        """

    def pieces(self, ticket: Ticket) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time."""
        return [partial(self.blocks, ticket)]

    def stored_pieces(self, ticket: Ticket) -> Sequence[Piece]:
        """Return the same pieces, in which the only column may be a block or `Keys`."""
        return self.pieces(ticket)

    @property
    def whole(self) -> bool:
        """Whether the number of rows is public, and each of them is yielded."""
        return True

    @property
    def may_miss(self) -> bool:
        """Whether a missing cell counts nowhere, so that the number of those present is private."""
        return False

    @property
    def drops(self) -> bool:
        """Whether some rows may count nowhere, so that the number of those that do is private."""
        return not self.whole

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept: in memory, unless said otherwise."""
        return Keeping()

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster, which adds them up."""
        return False

    @property
    def by_unit(self) -> Source | None:
        """The same rows with one more column, the number of their unit; None if it is not known."""
        return None

    @property
    def told(self) -> str:
        """Which number a plan uses for that of the rows, where what counts of them is private."""
        return "the number of rows"

    @property
    def protection(self) -> Protection:
        """Who is protected, and what that assumes."""
        return Protection()

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release.

        With `keep` they are read once, when first asked, into a copy from which all answers come:
        changing the data in between changes nothing. Sums of named columns are kept too.
        """
        Ticket.check(ticket)
        return _OpenRows(self, ticket, keep=keep)


@final
class _OpenRows(Rows):
    """The rows of a source."""

    __slots__ = (
        *("_by_unit", "_keep", "_keeping", "_kept", "_may_miss", "_names"),
        *("_rows", "_source", "_sums", "_ticket", "_whole"),
    )

    def __init__(self, source: Source, ticket: Ticket, *, keep: bool) -> None:
        self._rows, self._whole, self._names = source.rows, source.whole, source.columns
        self._may_miss, self._keeping = source.may_miss, source.keeping
        self._by_unit = source.by_unit
        self._source: Source | None = source
        self._ticket, self._keep = ticket, keep
        self._kept: tuple[Block, ...] = ()
        self._sums: dict[Hashable, IntegerArray] = {}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._whole

    @property
    def may_miss(self) -> bool:
        """Whether missing cells count nowhere."""
        return self._may_miss

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self._keeping

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    def by_unit(self) -> Rows | None:
        """Return the rows with one more column, the number of their unit."""
        return None if self._by_unit is None else self._by_unit.open(self._ticket, keep=True)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a block may be read-only."""
        if self._source is not None and self._keep:
            # whole before it is kept: an interrupt leaves no table half filled
            floats = (np.asarray(block, np.float64) for block in self._read(self._source))
            self._kept, self._source = kept(floats, self._keeping), None
        yield from self.blocks_once()

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows, of which no copy is made."""
        if self._source is None:
            yield from self._kept
        else:
            yield from self._read(self._source)

    def _read(self, source: Source) -> Iterator[Block]:
        Ticket.use(self._ticket)
        number = self._rows if self._whole else None
        yield from shown(source.blocks(self._ticket), "rows", number, rows_in)

    def pieces(self) -> Sequence[Piece]:
        """Return the blocks in pieces that threads may read; of a copy each block is one."""
        if self._source is None or self._keep:
            return [partial(iter, (block,)) for block in self.blocks()]
        Ticket.use(self._ticket)
        return self._source.pieces(self._ticket)

    def stored_pieces(self) -> Sequence[Piece]:
        """Return the same pieces, the only column as it is stored where there is no copy."""
        if self._source is None or self._keep:
            return self.pieces()
        Ticket.use(self._ticket)
        return self._source.stored_pieces(self._ticket)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        # an exact sum of the copy is the same whenever it is computed; only noise is fresh
        if key is None or not self._keep:
            return compute()
        known = self._sums.get(key)
        if known is None:
            known = compute()
            if known.size <= _LARGEST_SUM:
                while len(self._sums) >= _MOST_SUMS:
                    del self._sums[next(iter(self._sums))]
                self._sums[key] = known
        answer: IntegerArray = known.copy()
        return answer


def ours(kind: _Kind) -> _Kind:
    """Register a final class of sources whose reading of rows is proven (a decorator)."""
    _OURS.append(kind)
    return kind


def is_ours(source: object) -> bool:
    """Tell whether this library reads the rows; any other source is caller-asserted.

    >>> from zerodelta.data.arrays import ArraySource
    >>> is_ours(ArraySource(np.zeros(3)))
    True
    """
    return any(type(source) is kind for kind in _OURS)


def protection_of(*sources: Any) -> Protection:
    """Return who is protected where all of these are read together; they must not differ in it.

    What a source that is not ours says of itself is not believed: it is caller-asserted.
    """
    found = [
        each.protection if is_ours(each) else Protection(premise=FOREIGN_SOURCE)
        for each in sources
        if isinstance(each, Source)
    ]
    for other in found[1:]:
        require(
            other == found[0],
            "data",
            "from several data sets",
            expected="rows of one data set, protected in one way",
            remedy="take all columns from one people = zd.open(…)",
        )
    return found[0] if found else Protection()
