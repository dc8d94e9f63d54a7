"""Rows made of those of another source: what is public of both is the same."""

from __future__ import annotations

from zerodelta.data.kept_copy import Keeping
from zerodelta.data.protection import Protection
from zerodelta.data.source import Source, protection_of


class DerivedSource(Source):
    """A source that makes one row of each row of another (`_of`), from that row alone.

    Whether a cell of it may be missing it says itself.
    """

    __slots__ = ("_of",)

    _of: Source

    @property
    def rows(self) -> int:
        """The number of rows, or where that is private one to plan with."""
        return self._of.rows

    @property
    def whole(self) -> bool:
        """Whether the number of rows is public, and each of them is yielded."""
        return self._of.whole

    @property
    def drops(self) -> bool:
        """Whether some rows may count nowhere."""
        return self._of.drops

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept."""
        return self._of.keeping

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return self._of.remote

    @property
    def told(self) -> str:
        """Which number a plan uses for that of the rows."""
        return self._of.told

    @property
    def protection(self) -> Protection:
        """Who is protected: what the other source says, if it is believed."""
        return protection_of(self._of)
