"""What a caller passed, shut until there is a ticket: for tasks that read rows their own way."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

from zerodelta.data.source import Source, is_ours
from zerodelta.data.ticket import Ticket

__all__ = ["Given"]

T = TypeVar("T")


@final
class Given(Generic[T]):
    """One value, or a tuple of several, that only a ticket opens.

    `reads` names the sources among them: what they yield is caller-asserted unless they are ours.
    """

    __slots__ = ("_ours", "_value")

    def __init__(self, value: T, *, reads: tuple[Any, ...] | None = None) -> None:
        sources = (value,) if reads is None else reads
        self._value = value
        self._ours = all(is_ours(each) for each in sources if isinstance(each, Source))

    @property
    def ours(self) -> bool:
        """Whether no foreign source is among them."""
        return self._ours

    def open(self, ticket: Ticket) -> T:
        """Return what was given."""
        Ticket.use(ticket)
        return self._value
