"""What a caller passed, shut until there is a ticket: for tasks that read rows their own way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, TypeVar, final

from zerodelta.data.protection import Protection
from zerodelta.data.source import protection_of
from zerodelta.data.ticket import Ticket
from zerodelta.privacy.neighbors import Neighbors

__all__ = ["Given"]

T = TypeVar("T")


@final
class Given(Generic[T]):
    """One value, or a tuple of several, that only a ticket opens.

    `reads` names the sources among them: what they yield is caller-asserted unless they are ours.
    `neighbors` is the relation of a value that a mechanism with a claim made elsewhere.
    """

    __slots__ = ("_protection", "_value")

    def __init__(
        self,
        value: T,
        *,
        reads: tuple[Any, ...] | None = None,
        neighbors: Neighbors | None = None,
    ) -> None:
        sources = (value,) if reads is None else reads
        self._value = value
        found = protection_of(*sources)
        self._protection = found if neighbors is None else replace(found, neighbors=neighbors)

    @property
    def protection(self) -> Protection:
        """Who is protected: what the sources among them say."""
        return self._protection

    def open(self, ticket: Ticket) -> T:
        """Return what was given."""
        Ticket.use(ticket)
        return self._value
