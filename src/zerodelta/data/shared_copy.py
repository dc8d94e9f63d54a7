"""Some columns of rows that several parts of one release read: a query is run once for a ticket.

A query may yield other rows the next time, so all that a release asks comes from one copy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, final

from zerodelta.data.kept_copy import Keeping
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.threads import Piece
from zerodelta.exact.exact_sums import IntegerArray

__all__ = ["UNIT", "ColumnsOf"]

UNIT = "\0"
"""The name of a column with the number of each row's unit: no source has such a name."""


@final
class ColumnsOf(Rows):
    """Columns of opened rows, by name and in any order; `may_miss` is that of the columns."""

    __slots__ = ("_may_miss", "_names", "_places", "_shared")

    def __init__(self, shared: Rows, names: tuple[str, ...], *, may_miss: bool) -> None:
        self._shared, self._names, self._may_miss = shared, names, may_miss
        places = [shared.columns.index(name) for name in names]
        together = places == list(range(places[0], places[0] + len(places)))
        self._places: slice | list[int] = places
        if together:  # then a block is only looked at, not copied
            self._places = slice(places[0], places[0] + len(places))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._shared.rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._shared.whole

    @property
    def may_miss(self) -> bool:
        """Whether missing cells of these columns count nowhere."""
        return self._may_miss

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self._shared.keeping

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process."""
        return self._shared.adds_here

    def by_unit(self) -> Rows | None:
        """Return the rows with the number of their unit, the last column of the copy if known."""
        last = self._shared.columns[-1]
        if last != UNIT:
            return None
        return ColumnsOf(self._shared, (*self._names, UNIT), may_miss=self._may_miss)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows."""
        return (block[:, self._places] for block in self._shared.blocks())

    def pieces(self) -> Sequence[Piece]:
        """Return the blocks in pieces that threads may read."""
        return [partial(_chosen, piece, self._places) for piece in self._shared.pieces()]

    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...], **how: Any
    ) -> Iterator[IntegerArray]:
        """Yield sums, added up where the rows are."""
        return self._shared._partials(partial(_of, work, self._places), shape, **how)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        # a key names columns by their places, which are those of other columns of the copy
        return self._shared._answer(None if key is None else (self._names, key), compute)


def _chosen(piece: Piece, places: slice | list[int]) -> Iterator[Block]:
    return (block[:, places] for block in piece())


def _of(
    work: Callable[[Block], IntegerArray], places: slice | list[int], block: Block
) -> IntegerArray:
    return work(block[:, places])
