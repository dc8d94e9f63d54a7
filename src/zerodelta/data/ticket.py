"""The right to read rows: made in `spine/run.py`, after the certificate was issued."""

from __future__ import annotations

from typing import Any, final

from zerodelta.privacy.certificate import Certificate

__all__ = ["Ticket"]


@final
class Ticket:
    """Opens sources for one release. Only the runner makes one, after certificate and debit.

    >>> Ticket.check(None)
    Traceback (most recent call last):
        ...
    TypeError: rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)
    """

    __slots__ = ("_certificate", "_used")

    def __init__(self, certificate: Certificate) -> None:
        self._certificate, self._used = certificate, False

    @property
    def certificate(self) -> Certificate:
        """What the rows are read for."""
        return self._certificate

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
