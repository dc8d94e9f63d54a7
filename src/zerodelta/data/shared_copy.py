"""Some columns of rows that several parts of one release read: a query is run once for a ticket.

A query may yield other rows the next time, so all that a release asks comes from one copy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from zerodelta.data.kept_copy import Keeping
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, OwnColumn
from zerodelta.data.threads import Piece
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.value import value

UNIT: Any = OwnColumn.UNIT
"""What stands for the name of a column with the number of each row's unit."""


@final
class ColumnsOf(Rows):
    """Columns of opened rows, by name and in any order; `may_miss` is that of the columns.

    Of the column `itself`, if named, only whether it is there is taken: as 1.
    """

    __slots__ = ("_choice", "_itself", "_may_miss", "_names", "_shared")

    def __init__(
        self, shared: Rows, names: tuple[str, ...], *, may_miss: bool, itself: str | None = None
    ) -> None:
        self._shared, self._names, self._may_miss = shared, names, may_miss
        self._itself = itself
        places = [shared.columns.index(name) for name in names]
        together = places == list(range(places[0], places[0] + len(places)))
        self._choice = _Choice(
            # then a block is only looked at, not copied
            places=slice(places[0], places[0] + len(places)) if together else places,
            itself=None if itself is None else names.index(itself),
        )

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
        if last is not UNIT:
            return None
        names, itself = (*self._names, UNIT), self._itself
        return ColumnsOf(self._shared, names, may_miss=self._may_miss, itself=itself)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows."""
        return map(self._choice, self._shared.blocks())

    def pieces(self) -> Sequence[Piece]:
        """Return the blocks in pieces that threads may read."""
        return [partial(_chosen, piece, self._choice) for piece in self._shared.pieces()]

    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...], **how: Any
    ) -> Iterator[IntegerArray]:
        """Yield sums, added up where the rows are."""
        return self._shared._partials(partial(_of, work, self._choice), shape, **how)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        # a key names columns by their places, which are those of other columns of the copy
        return self._shared._answer(
            None if key is None else (self._names, self._itself, key), compute
        )


@value
class _Choice:
    """Some columns of a block, one of which may say only that it is there."""

    places: slice | list[int]
    itself: int | None

    def __call__(self, block: Block) -> Block:
        chosen: Block = block[:, self.places]
        if self.itself is not None:
            chosen = np.array(chosen)
            chosen[:, self.itself] = np.where(np.isnan(chosen[:, self.itself]), np.nan, 1.0)
        return chosen


def _chosen(piece: Piece, choice: _Choice) -> Iterator[Block]:
    return map(choice, piece())


def _of(work: Callable[[Block], IntegerArray], choice: _Choice, block: Block) -> IntegerArray:
    return work(choice(block))
