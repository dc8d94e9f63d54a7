"""What a caller passed, shut until there is a ticket: for tasks that read rows their own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, final

from zerodelta.data.protection import Protection
from zerodelta.data.source import FOREIGN_SOURCE, protection_of
from zerodelta.data.ticket import Ticket
from zerodelta.privacy.neighbors import Neighbors

T = TypeVar("T")


@final
class Given(Generic[T]):
    """One value, or a tuple of several, that only a ticket opens.

    `reads` names the sources among them: what they yield is caller-asserted unless they are ours,
    and so are the rows of a container that is not `known`.
    `neighbors` is the relation of a value that a mechanism with a claim made elsewhere.
    `read` makes cells of what was given, when it is opened.
    """

    __slots__ = ("_protection", "_read", "_value")

    def __init__(
        self,
        value: Any,
        *,
        reads: tuple[Any, ...] | None = None,
        neighbors: Neighbors | None = None,
        known: bool = True,
        read: Callable[[], T] | None = None,
    ) -> None:
        sources = (value,) if reads is None else reads
        self._value, self._read = value, read
        found = protection_of(*sources)
        if not known:
            found = replace(found, premise=FOREIGN_SOURCE)
        self._protection = found if neighbors is None else replace(found, neighbors=neighbors)

    @property
    def protection(self) -> Protection:
        """Who is protected: what the sources among them say."""
        return self._protection

    def open(self, ticket: Ticket) -> T:
        """Return what was given."""
        Ticket.use(ticket)
        opened: T = self._value if self._read is None else self._read()
        return opened
