"""The right to read rows: made in `spine/run.py`, after the certificate was issued."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, TypeVar, final

from zerodelta.data.account import Receipt
from zerodelta.privacy.certificate import Certificate

T = TypeVar("T")


@final
class Ticket:
    """Opens sources for one release. Only the runner makes one, after the certificate.

    One that is due opens nothing until it is paid for.

    >>> Ticket.check(None)
    Traceback (most recent call last):
        ...
    TypeError: rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)
    """

    __slots__ = (
        *("_beside", "_certificate", "_due", "_lock", "_made", "_receipts", "_time", "_used"),
        "_void",
    )

    def __init__(
        self,
        certificate: Certificate,
        *,
        beside: Any = None,
        due: bool = False,
    ) -> None:
        self._certificate, self._used, self._beside = certificate, False, beside
        self._receipts: tuple[Receipt, ...] = ()
        self._due, self._void, self._lock = due, False, threading.Lock()
        self._time = _now()
        self._made: dict[int, tuple[Any, Any]] = {}

    @property
    def certificate(self) -> Certificate:
        """What the rows are read for."""
        return self._certificate

    @property
    def beside(self) -> Any:
        """Another source of the same rows, which this ticket opens too; None if there is none."""
        return self._beside

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Where it was paid for; empty where there is no ledger."""
        return self._receipts

    @property
    def time(self) -> str:
        """When the ticket was taken (UTC), before a row was read: the time of the debit."""
        return self._time

    def settle(self, receipts: tuple[Receipt, ...]) -> None:
        """Say where a ticket that is due was paid for: rows may be read from now on."""
        with self._lock:
            if self._due:  # another thread may have been faster, and read rows by now
                self._receipts, self._due = receipts, False
                self._time = receipts[0].time if receipts else _now()

    def void(self) -> None:
        """Make a ticket, whose debit is taken back, useless; one that was used cannot be."""
        with self._lock:
            if self._used:
                raise RuntimeError("rows may have been read with this ticket: its debit stays")
            self._void = True

    def once(self, owner: Any, make: Callable[[], T]) -> T:
        """Return what is made of an owner's rows, once for the ticket."""
        if id(owner) not in self._made:
            self._made[id(owner)] = owner, make()  # the owner, too: no other gets its identity
        made: T = self._made[id(owner)][1]
        return made

    def made(self, owner: Any) -> Any:
        """Return what was made of an owner's rows for the ticket; None if nothing was."""
        return self._made.get(id(owner), (owner, None))[1]

    def forget(self) -> None:
        """Let go of what was made of rows: nothing more is read for the release."""
        self._made.clear()

    @property
    def due(self) -> bool:
        """Whether it has still to be paid for, before a row is read."""
        return self._due

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
        with ticket._lock:  # another thread may be about to take its debit back
            if ticket._due:
                raise RuntimeError("this ticket has not been paid for: rows are read afterwards")
            if ticket._void:
                raise RuntimeError(
                    "the debit for this ticket was taken back: begin another release"
                )
            ticket._used = True


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
