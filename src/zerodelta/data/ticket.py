"""The right to read rows: made in `spine/run.py`, after the certificate was issued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

from zerodelta.privacy.certificate import Certificate

__all__ = ["Ticket"]

T = TypeVar("T")


@final
class Ticket:
    """Opens sources for one release. Only the runner makes one, after certificate and debit.

    >>> Ticket.check(None)
    Traceback (most recent call last):
        ...
    TypeError: rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)
    """

    __slots__ = ("_beside", "_certificate", "_made", "_used")

    def __init__(self, certificate: Certificate, *, beside: Any = None) -> None:
        self._certificate, self._used, self._beside = certificate, False, beside
        self._made: dict[int, tuple[Any, Any]] = {}

    @property
    def certificate(self) -> Certificate:
        """What the rows are read for."""
        return self._certificate

    @property
    def beside(self) -> Any:
        """Another source of the same rows, which this ticket opens too; None if there is none."""
        return self._beside

    def once(self, owner: Any, make: Callable[[], T]) -> T:
        """Return what is made of an owner's rows, once for the ticket."""
        if id(owner) not in self._made:
            self._made[id(owner)] = owner, make()  # the owner, too: no other gets its identity
        made: T = self._made[id(owner)][1]
        return made

    @property
    def used(self) -> bool:
        """Whether rows may have been read; a debit is final from then on."""
        return self._used

    @staticmethod
    def check(ticket: Any) -> None:
        """Refuse anything that is no ticket."""
        if type(ticket) is not Ticket:
            raise TypeError(
                "rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)"
            )

    @staticmethod
    def use(ticket: Any) -> None:
        """Check a ticket and mark it as used: rows are read from now on."""
        Ticket.check(ticket)
        ticket._used = True
