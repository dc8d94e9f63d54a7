"""Opened rows, each prepared by a function of this library's, where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, final

from zerodelta.data.kept_copy import Keeping
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.exact.exact_sums import IntegerArray


@final
class PreparedRows(Rows):
    """What a function makes of other rows, of each by itself; sums are added where those are."""

    __slots__ = ("_names", "_prepare", "_rows")

    def __init__(
        self, rows: Rows, prepare: Callable[[Block], Block], columns: tuple[str, ...]
    ) -> None:
        self._rows, self._prepare, self._names = rows, prepare, columns

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows.rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._rows.whole

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the prepared columns."""
        return self._names

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self._rows.keeping

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process."""
        return self._rows.adds_here

    def blocks(self) -> Iterator[Block]:
        """Yield all rows."""
        return map(self._prepare, self._rows.blocks())

    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...], **how: Any
    ) -> Iterator[IntegerArray]:
        prepare = self._prepare  # and nothing of self: it is sent to where the rows are
        return self._rows._partials(lambda block: work(prepare(block)), shape, **how)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        return compute()
