"""Run a plan, or preview it: the only module that makes tickets and hands rows to mechanisms.

    question -> plan -> certificate -> ticket -> rows and bits to the mechanism -> release

An error before the ticket exists depends on public inputs only, and nothing has been spent. After
an error before the first row is read, ledgers take their debits back; later, debits stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar, final

from zerodelta.data.rows import Rows
from zerodelta.data.source import Protection, Sealed, Source, Ticket, protection_of
from zerodelta.errors import ParameterError, require
from zerodelta.exact.bits import BitSource, current_bits, is_private
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Diagnostics, Release
from zerodelta.privacy.theorems.subsampling import Units, UnitTheorem
from zerodelta.spine.plan import Facts, Measured, Method, Question, ReleasePlan
from zerodelta.spine.verbs import Bill, billed
from zerodelta.value import value

# -- A preview: what a release would cost and claim, without a debit, a ticket or a row -----------
# The real call is made, and left by an exception once its certificate is issued: so a preview
# cannot disagree with the release. Only public inputs have been used by then.

_PREVIEWING: ContextVar[bool] = ContextVar("preview", default=False)

_ERROR_UNKNOWN = "depends on the value that is released"


@value
class Preview:
    """A release before it is run: certificate, price and forecast, all of it public."""

    certificate: Certificate
    price: Fraction | None
    """The pure ε that it costs; None for a claim that is not pure."""
    error: float | str
    """The forecast of its error."""
    complete_error: float | None
    """The forecast for missing=None (no cell is missing); None where that is the same."""
    seconds: float | None
    methods: tuple[Method, ...]
    """The methods that were compared, best first."""
    details: str
    """The decisions of the plan, such as the shares of ε in a table."""

    @property
    def claim(self) -> Claim:
        """The claim that the certificate would prove."""
        return self.certificate.claim


@final
class _Previewed(BaseException):
    """Leaves a call that is only previewed; `except Exception` does not catch it."""

    def __init__(self, preview: Preview) -> None:
        super().__init__()
        self.preview = preview


def preview(call: Callable[[], Any]) -> Preview:
    """Return price, certificate and forecast of the release that `call` would make.

    >>> import numpy as np, zerodelta as zd
    >>> seen = preview(lambda: zd.mean(np.zeros(1000), bounds=(0, 1), epsilon="1/2"))
    >>> seen.price, seen.error
    (Fraction(1, 2), 0.002)
    """
    token = _PREVIEWING.set(True)
    try:
        call()
    except _Previewed as previewed:
        return previewed.preview
    finally:
        _PREVIEWING.reset(token)
    raise ParameterError("call", expected="one that makes a release", remedy="pass zd.mean, say")


def stop_if_previewed(plan: ReleasePlan[Any], certificate: Certificate) -> None:
    """Leave a call that is only previewed; `run` calls this before anything is paid."""
    if not _PREVIEWING.get():
        return
    raise _Previewed(
        Preview(
            certificate=certificate,
            price=plan.price,
            error=_ERROR_UNKNOWN if callable(plan.error) else plan.error,
            complete_error=plan.complete_error,
            seconds=plan.seconds,
            methods=tuple(plan.methods),
            details="" if plan.details is None else str(plan.details),
        )
    )


R = TypeVar("R")
Q = TypeVar("Q")
R_co = TypeVar("R_co", covariant=True)


class Openable(Protocol[R_co]):
    """Rows, or sealed values, that a ticket opens: a `Source` or a `Sealed`."""

    def open(self, ticket: Ticket) -> R_co:
        """Return the rows."""
        ...  # pragma: no cover


@final
class Opened(Generic[R]):
    """A release under way: certified, paid for before its first row, ending in one `Release`."""

    __slots__ = (
        "_bill",
        "_certificate",
        "_diagnosis",
        "_diagnostics",
        "_plan",
        "_protection",
        "bits",
        "ticket",
    )

    def __init__(
        self,
        plan: ReleasePlan[R],
        certificate: Certificate,
        ticket: Ticket,
        bits: BitSource,
        *,
        protection: Protection,
        diagnosis: PlannedDiagnosis | None = None,
        diagnostics: Diagnostics | None = None,
        bill: Bill,
    ) -> None:
        self._plan, self._certificate, self._protection = plan, certificate, protection
        self._diagnosis, self._diagnostics, self._bill = diagnosis, diagnostics, bill
        self.ticket, self.bits = ticket, bits

    def pay(self) -> None:
        """Debit the ε of the release, once; rows may be read from then on."""
        self._check_bits()
        if self.ticket.due:
            self.ticket.settle(self._bill.pay().receipts)

    def check(self) -> None:
        """Raise the error that paying would raise now; nothing is debited."""
        self._bill.check()

    def _check_bits(self) -> None:
        """Refuse to draw from another source of bits than the one certified.

        A test may replay bits for the certificate and leave the context before the noise is drawn,
        or the other way round; `self.bits` stay those certified.
        """
        current = current_bits()
        same_source = current is self.bits or (is_private(current) and is_private(self.bits))
        require(
            same_source,
            "bits",
            expected="the source of random bits for which the certificate was issued",
            remedy="make and run a study inside the same `testing.replayed`, or both outside",
        )

    def take_back(self) -> None:
        """Take the debit back and void the ticket, unless a row may have been read.

        For errors before the first row, which depend on public inputs only. Without a ledger
        nothing happens.
        """
        if self._bill.paid.debits and not self.ticket.used:
            self.ticket.void()
            self._bill.take_back()

    def replanned(self, plan: ReleasePlan[Q]) -> Opened[Q]:
        """Return this release, with the same bill, by another plan of the same claim.

        A study replans when it publishes: it is begun as if its program were guarded (run inside
        `Study.run` or a `with` block) and published through its own channel. Only its end shows
        whether the program was guarded, which decides what the certificate assumes, and whether
        `minimize` published by a descent, whose proof has other steps. Claim and price stay.
        """
        full = plan if self._diagnosis is None else plan.joined_with(self._diagnosis.plan)
        require(
            full.claim == self._plan.claim,
            "claim",
            full.claim,
            expected=f"{self._plan.claim}, for which the ticket was taken",
            remedy="begin another release",
        )
        return Opened(
            full,
            full.certificate(self.bits, self._protection),
            self.ticket,
            self.bits,
            protection=self._protection,
            diagnosis=self._diagnosis,
            diagnostics=self._diagnostics,
            bill=self._bill,
        )

    def rehearsed(self) -> Opened[R]:
        """Return the same release for a rehearsal, which reads no row: its diagnostics are NaN."""
        unknown = Diagnostics(used=math.nan, clipped=math.nan, unreadable=math.nan)
        return Opened(
            self._plan,
            self._certificate,
            Ticket(self._certificate),  # another ticket: it does not open the caller's rows
            self.bits,
            protection=self._protection,
            diagnosis=self._diagnosis,
            diagnostics=None if self._diagnosis is None else unknown,
            bill=Bill(self._bill.paid.record),
        )

    def diagnostics(self) -> Diagnostics | None:
        """Return the noisy diagnostics, measured at the first call; None if they are not asked for.

        A study calls this before its program has an internal answer. A program could write such an
        answer into the caller's array, and diagnostics do not go through the study's channel.
        """
        diagnosis = self._diagnosis
        if diagnosis is not None and self._diagnostics is None:
            rows = diagnosis.source.open(self.ticket)
            self._diagnostics = diagnosis.plan.answer(rows, self.bits)
        return self._diagnostics

    def release(self, value: Any) -> Release:
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
            diagnostics=self.diagnostics(),
            sums=sums,
            plan=self._plan.details,
            record=self._bill.paid.record_at(self.ticket.time, self._certificate),
            paid_by=tuple((account, receipt.entry) for account, receipt in self._bill.paid.debits),
        )


@value
class Diagnosis:
    """The question how many rows are used, clipped or unreadable, at a share of a release's ε."""

    question: Question
    source: Source
    share: Fraction


@value
class PlannedDiagnosis:
    """The plan of a diagnosis; it becomes a part of the release's certificate."""

    plan: ReleasePlan[Rows]
    source: Source


def epsilon_without(epsilon: Rational, diagnosis: Diagnosis | None) -> Fraction:
    """Return the ε of the release itself: the total without the share of its diagnosis."""
    exact = as_usable_epsilon(epsilon)
    return exact if diagnosis is None else exact * (1 - diagnosis.share)


def plan_diagnosis(diagnosis: Diagnosis | None, epsilon: Rational) -> PlannedDiagnosis | None:
    """Plan a diagnosis at its share of the total ε; None without a diagnosis."""
    if diagnosis is None:
        return None
    share, source = as_usable_epsilon(epsilon) * diagnosis.share, diagnosis.source
    return PlannedDiagnosis(plan=planned(diagnosis.question, source, share), source=source)


def begin(
    plan: ReleasePlan[R],
    source: Openable[Any],
    *,
    diagnosis: PlannedDiagnosis | None = None,
) -> Opened[R]:
    """Issue the certificate, and check that accounts can pay; the first row is read after `pay`.

    For a `Study`, which reads rows many times and pays just before its first row, so that an
    earlier mistake costs nothing. Everything else is one `run`.
    """
    opened = _opened(plan, source, diagnosis=diagnosis)
    opened.check()
    return opened


def _opened(
    plan: ReleasePlan[R], source: Openable[Any], *, diagnosis: PlannedDiagnosis | None
) -> Opened[R]:
    """Issue the certificate and return the release, still to be paid; a preview ends here."""
    bits = current_bits()
    protection = _protection(source)
    full = plan if diagnosis is None else plan.joined_with(diagnosis.plan)
    certificate = full.certificate(bits, protection)
    stop_if_previewed(full, certificate)
    bill = billed(certificate, protection)
    diagnosed = None if diagnosis is None else diagnosis.source
    ticket = Ticket(certificate, diagnosed=diagnosed, due=True)
    return Opened(
        full, certificate, ticket, bits, protection=protection, diagnosis=diagnosis, bill=bill
    )


def run(
    plan: ReleasePlan[R],
    source: Openable[R],
    *,
    diagnosis: PlannedDiagnosis | None = None,
) -> Release:
    """Issue the certificate, pay, read the rows and add noise, in this order."""
    opened = _opened(plan, source, diagnosis=diagnosis)
    opened.pay()  # a BudgetError here has spent nothing
    try:
        return opened.release(plan.answer(source.open(opened.ticket), opened.bits))
    except Exception:
        opened.take_back()
        raise


def ask(
    question: Question,
    source: Openable[Any],
    *,
    epsilon: Rational,
    diagnosis: Diagnosis | None = None,
    facts: Facts | None = None,
    units: type[UnitTheorem] = Units,
) -> Release:
    """Plan a question about a source, and run the plan.

    A `diagnosis` takes its share of ε, and is a part of the same certificate. `facts` and `units`
    as for `planned`.
    """
    plan = planned(question, source, epsilon, facts=facts, diagnosis=diagnosis, units=units)
    return run(plan, source, diagnosis=plan_diagnosis(diagnosis, epsilon))


def planned(
    question: Question,
    source: Openable[Any],
    epsilon: Rational,
    *,
    facts: Facts | None = None,
    diagnosis: Diagnosis | None = None,
    units: type[UnitTheorem] = Units,
) -> Any:
    """Return the plan of a question about a source: a `ReleasePlan` or a `StudyProgram`.

    With units the question is planned for one row, at the ε that a row may cost, and the plan is
    then extended to all rows of a unit (theory V). `facts` are the public facts about the rows,
    where they are not `Facts.of` the source. `units` is the theorem about the rows of a unit.
    """
    protection, row_epsilon = _protection(source), epsilon_without(epsilon, diagnosis)
    public_facts = Facts.of(source) if facts is None and isinstance(source, Source) else facts
    if public_facts is None:  # pragma: no cover
        raise AssertionError("rows that are no Source come with their facts")
    if protection.unit is not None:
        row_epsilon = units(max_rows=protection.max_rows).of_row(row_epsilon)
    plan = question.plan(public_facts, row_epsilon)
    if not isinstance(plan, ReleasePlan):
        # a study lists its own public numbers, and protects units in its own way
        return plan if protection.unit is None else plan.protecting(protection)
    sentences: Iterable[str] = plan.public
    if not public_facts.counted and isinstance(source, Source):
        # n is private: lattices and forecasts follow from a public number in its place
        sentences = dict.fromkeys([*sentences, source.row_count_phrase])
    plan = replace(plan, public=tuple(map(public_facts.as_number, sentences)))
    complete = public_facts.complete
    if complete is not None:
        plan = replace(plan, if_complete=lambda: question.plan(complete, row_epsilon))
    return plan if protection.unit is None else plan.protecting(protection, units)


def _protection(source: Openable[Any]) -> Protection:
    """Return whom a source protects; a foreign class's own statement is not believed."""
    return source.protection if type(source) is Sealed else protection_of(source)


def post_processed(release: Release, *, value: Any, error: float | str) -> Release:
    """Return the release with a value computed from the released one, which costs no ε.

    The noise law of the new value is not known, so it has no intervals.
    """
    return Release(
        value=value,
        certificate=release.certificate,
        error=error,
        diagnostics=release.diagnostics,
        record=release.record,
        paid_by=release.paid_by,
    )


def restored(fields: Mapping[str, Any]) -> Release:
    """Return a saved release from its fields."""
    return Release(**fields)
