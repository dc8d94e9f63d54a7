"""Run a plan: the only place that makes a ticket and hands rows to a mechanism.

    question -> plan -> certificate -> ticket -> rows and bits to the mechanism -> release

Whatever raises before the ticket exists does so on public grounds, and nothing has been spent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar, final

from zerodelta.data.given import Given
from zerodelta.data.protection import Protection
from zerodelta.data.source import Source, protection_of
from zerodelta.data.ticket import Ticket
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Diagnostics, Release
from zerodelta.spine.facts import Facts, Question
from zerodelta.spine.release_plan import Measured, ReleasePlan

__all__ = ["Beside", "Openable", "Opened", "ask", "begin", "planned", "post_processed", "run"]

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

    __slots__ = ("_certificate", "_plan", "_protection", "bits", "ticket")

    def __init__(
        self,
        plan: ReleasePlan[R],
        certificate: Certificate,
        ticket: Ticket,
        bits: BitSource,
        *,
        protection: Protection,
    ) -> None:
        self._plan, self._certificate, self._protection = plan, certificate, protection
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
        certificate = plan.certificate(self.bits, self._protection)
        return Opened(plan, certificate, self.ticket, self.bits, protection=self._protection)

    def release(self, value: Any, *, diagnostics: Diagnostics | None = None) -> Release:
        """Return the value with its certificate and forecast, and nothing else of the run."""
        error, sums = self._plan.error, ()
        if type(value) is Measured:
            value, sums = value.value, value.sums
        return Release(
            value=value,
            certificate=self._certificate,
            error=error(value) if callable(error) else error,
            noise=self._plan.noise,
            seconds=self._plan.seconds,
            diagnostics=diagnostics,
            sums=sums,
            plan=self._plan.details,
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """How the rows of a release are read, asked beside it for a share of its ε."""

    question: Question
    source: Source
    share: Fraction


def begin(
    plan: ReleasePlan[R], source: Openable[Any], *, bits: BitSource | None = None
) -> Opened[R]:
    """Issue the certificate, debit, and take the ticket; no row has been read when this returns.

    For programs that ask many times (`zd.Study`); everything else is one `run`.
    """
    drawn = SystemBits() if bits is None else bits
    protection = _protection(source)
    certificate = plan.certificate(drawn, protection)
    # A ledger debits here, between the certificate and the ticket.
    return Opened(plan, certificate, Ticket(certificate), drawn, protection=protection)


def run(plan: ReleasePlan[R], source: Openable[R], *, bits: BitSource | None = None) -> Release:
    """Return the release: certificate, then ticket, then rows, in this order."""
    opened = begin(plan, source, bits=bits)
    return opened.release(plan.answer(source.open(opened.ticket), opened.bits))


def ask(
    question: Question,
    source: Openable[Any],
    *,
    epsilon: Rational,
    bits: BitSource | None = None,
    beside: Beside | None = None,
    facts: Facts | None = None,
) -> Release:
    """Plan what is asked of a source for whom it protects, and run the plan.

    What is asked `beside` costs its share of ε, and is a part of the same certificate. `facts` as
    for `planned`.
    """
    if beside is None:
        return run(planned(question, source, epsilon, facts=facts), source, bits=bits)
    exact = as_usable_epsilon(epsilon)
    plan = planned(question, source, exact * (1 - beside.share), facts=facts)
    require(
        isinstance(plan, ReleasePlan) and (plan.steps or plan.parts),
        "diagnostics",
        str(beside.share),
        expected="a method that is one release: the chosen one runs a study",
        remedy="pass another method=, or leave diagnostics out",
    )
    readings = planned(beside.question, beside.source, exact * beside.share)
    opened = begin(plan.beside(readings), source, bits=bits)
    value = plan.answer(source.open(opened.ticket), opened.bits)
    read = readings.answer(beside.source.open(opened.ticket), opened.bits)
    return opened.release(value, diagnostics=read)


def planned(
    question: Question, source: Openable[Any], epsilon: Rational, *, facts: Facts | None = None
) -> Any:
    """Return the plan of a question: for a unit, that of one of its rows at its share of ε.

    `facts`: what is public of the rows, where that is not `Facts.of` the source.
    """
    protection, exact = _protection(source), as_usable_epsilon(epsilon)
    known = Facts.of(source) if facts is None and isinstance(source, Source) else facts
    if known is None:  # pragma: no cover
        raise AssertionError("what is no source comes with its facts")
    plan = question.plan(known, exact / protection.max_rows)
    private = known.may_miss or known.rows is None
    if private and isinstance(plan, ReleasePlan) and isinstance(source, Source):
        # lattices and forecasts follow from it, so the certificate lists it
        public = tuple(dict.fromkeys([*plan.public, source.told]))
        plan = replace(plan, public=public)
    return plan if protection.unit is None else plan.protecting(protection)


def _protection(source: Openable[Any]) -> Protection:
    # what a foreign class says of itself is not believed
    return source.protection if type(source) is Given else protection_of(source)


def post_processed(release: Release, *, value: Any, error: float | str) -> Release:
    """Return a release of what was made of a released value, which costs no ε.

    Its noise law is not known any more.
    """
    return Release(
        value=value,
        certificate=release.certificate,
        error=error,
        diagnostics=release.diagnostics,
    )
