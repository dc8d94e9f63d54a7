"""Run a plan: the only place that makes a ticket and hands rows to a mechanism.

    question -> plan -> certificate -> ticket -> rows and bits to the mechanism -> release

Whatever raises before the ticket exists does so on public grounds, and nothing has been spent.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, final

from zerodelta.data.given import Given
from zerodelta.data.source import is_ours
from zerodelta.data.ticket import Ticket
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.release import Release
from zerodelta.spine.release_plan import ReleasePlan

__all__ = ["Openable", "Opened", "begin", "post_processed", "run"]

R = TypeVar("R")
Q = TypeVar("Q")
R_co = TypeVar("R_co", covariant=True)


class Openable(Protocol[R_co]):
    """What a ticket opens: a `Source` or a `Given`."""

    def open(self, ticket: Ticket) -> R_co:
        """Return the rows."""
        ...  # pragma: no cover


@final
class Opened(Generic[R]):
    """A release under way: certified, paid for, rows at hand. It ends in one `Release`."""

    __slots__ = ("_certificate", "_ours", "_plan", "bits", "ticket")

    def __init__(
        self,
        plan: ReleasePlan[R],
        certificate: Certificate,
        ticket: Ticket,
        bits: BitSource,
        *,
        ours: bool,
    ) -> None:
        self._plan, self._certificate, self._ours = plan, certificate, ours
        self.ticket, self.bits = ticket, bits

    def replanned(self, plan: ReleasePlan[Q]) -> Opened[Q]:
        """Return this release, paid for already, by another plan of the same claim.

        For a study, whose program decides as it runs how it ends; the certificate is issued now.
        """
        require(
            plan.claim == self._plan.claim,
            "claim",
            plan.claim,
            expected=f"{self._plan.claim}, for which the ticket was taken",
            remedy="begin another release",
        )
        certificate = plan.certificate(self.bits, ours=self._ours)
        return Opened(plan, certificate, self.ticket, self.bits, ours=self._ours)

    def release(self, value: Any) -> Release:
        """Return the value with its certificate and forecast, and nothing else of the run."""
        error = self._plan.error
        return Release(
            value=value,
            certificate=self._certificate,
            error=error(value) if callable(error) else error,
            noise=self._plan.noise,
            seconds=self._plan.seconds,
        )


def begin(
    plan: ReleasePlan[R], source: Openable[Any], *, bits: BitSource | None = None
) -> Opened[R]:
    """Issue the certificate, debit, and take the ticket; no row has been read when this returns.

    For programs that ask many times (`zd.Study`); everything else is one `run`.
    """
    drawn = SystemBits() if bits is None else bits
    # `ours` of a foreign class could say anything
    ours = source.ours if type(source) is Given else is_ours(source)
    certificate = plan.certificate(drawn, ours=ours)
    # A ledger debits here, between the certificate and the ticket.
    return Opened(plan, certificate, Ticket(certificate), drawn, ours=ours)


def run(plan: ReleasePlan[R], source: Openable[R], *, bits: BitSource | None = None) -> Release:
    """Return the release: certificate, then ticket, then rows, in this order."""
    opened = begin(plan, source, bits=bits)
    return opened.release(plan.answer(source.open(opened.ticket), opened.bits))


def post_processed(release: Release, *, value: Any, error: float | str) -> Release:
    """Return a release of what was made of a released value, which costs no ε.

    Its noise law is not known any more.
    """
    return Release(value=value, certificate=release.certificate, error=error)
