"""Run a plan: the only place that makes a ticket and hands rows to a mechanism; or try it without.

    question -> plan -> certificate -> ticket -> rows and bits to the mechanism -> release

Whatever raises before the ticket exists does so on public grounds, and nothing has been spent. What
raises before a row is read is taken back, if there is a ledger; after that a debit stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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

# -- A dry run: what a release would cost and promise, found without a debit, a ticket or a row ---
# The call is made as it is meant, and stopped where its certificate has been issued. Nothing but
# what is public has been looked at by then.

_WANTED: ContextVar[bool] = ContextVar("preview", default=False)

_LATER = "depends on the value that is released"


@value
class Preview:
    """What is known of a release before it is run; all of it is public."""

    certificate: Certificate
    price: Fraction | None
    """The pure ε that it costs; None for a claim that is not pure."""
    error: float | str
    """The forecast of its error."""
    complete_error: float | None
    """The forecast if no cell is missing (missing=None), where cells may be."""
    seconds: float | None
    methods: tuple[Method, ...]
    """What was weighed, best first."""
    details: str
    """What was decided, such as the shares of ε in a table."""

    @property
    def claim(self) -> Claim:
        """What would be claimed; with `price` it is what a ledger can price."""
        return self.certificate.claim


@final
class _Stopped(BaseException):
    """Leaves a call that is only previewed; no handler of errors is to catch it."""

    def __init__(self, found: Preview) -> None:
        super().__init__()
        self.found = found


def preview(call: Callable[[], Any]) -> Preview:
    """Return what one release would be, by making the call up to its debit.

    >>> import numpy as np, zerodelta as zd
    >>> found = preview(lambda: zd.mean(np.zeros(1000), bounds=(0, 1), epsilon="1/2"))
    >>> found.price, found.error
    (Fraction(1, 2), 0.002)
    """
    token = _WANTED.set(True)
    try:
        call()
    except _Stopped as stopped:
        return stopped.found
    finally:
        _WANTED.reset(token)
    raise ParameterError("call", expected="one that makes a release", remedy="pass zd.mean, say")


def stop_if_previewed(plan: ReleasePlan[Any], certificate: Certificate) -> None:
    """Leave the call here if it is only previewed: called before anything is paid."""
    if not _WANTED.get():
        return
    raise _Stopped(
        Preview(
            certificate=certificate,
            price=plan.price,
            error=_LATER if callable(plan.error) else plan.error,
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
    """What a ticket opens: a `Source` or a `Sealed`."""

    def open(self, ticket: Ticket) -> R_co:
        """Return the rows."""
        ...  # pragma: no cover


@final
class Opened(Generic[R]):
    """A release under way: certified, paid for before its first row. It ends in one `Release`."""

    __slots__ = (
        "_aside",
        "_bill",
        "_certificate",
        "_plan",
        "_protection",
        "_read",
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
        aside: Aside | None = None,
        read: Diagnostics | None = None,
        bill: Bill,
    ) -> None:
        self._plan, self._certificate, self._protection = plan, certificate, protection
        self._aside, self._read, self._bill = aside, read, bill
        self.ticket, self.bits = ticket, bits

    def pay(self) -> None:
        """Debit what the release costs, unless that was done; rows may be read from then on."""
        self._check_bits()
        if self.ticket.due:
            self.ticket.settle(self._bill.pay().receipts)

    def check(self) -> None:
        """Raise what paying would raise by now."""
        self._bill.check()

    def _check_bits(self) -> None:
        """Raise if bits come from elsewhere by now: a test replays some for a part of a release.

        It would have them drawn from other bits than it meant; `self.bits` stay those certified.
        """
        now = current_bits()
        same = now is self.bits or (is_private(now) and is_private(self.bits))
        require(
            same,
            "bits",
            expected="the source of random bits for which the certificate was issued",
            remedy="make and run a study inside the same `testing.replayed`, or both outside",
        )

    def take_back(self) -> None:
        """Take the debit back, and make the ticket void, unless a row may have been read.

        For an error before that, which has public grounds; without a ledger nothing happens.
        """
        if self._bill.paid.debits and not self.ticket.used:
            self.ticket.void()
            self._bill.take_back()

    def replanned(self, plan: ReleasePlan[Q]) -> Opened[Q]:
        """Return this release, with the same bill, by another plan of the same claim.

        For a study, whose program decides as it runs how it ends; the certificate is issued now.
        """
        made = plan if self._aside is None else plan.beside(self._aside.plan)
        require(
            made.claim == self._plan.claim,
            "claim",
            made.claim,
            expected=f"{self._plan.claim}, for which the ticket was taken",
            remedy="begin another release",
        )
        return Opened(
            made,
            made.certificate(self.bits, self._protection),
            self.ticket,
            self.bits,
            protection=self._protection,
            aside=self._aside,
            read=self._read,
            bill=self._bill,
        )

    def rehearsed(self) -> Opened[R]:
        """Return the same release for a rehearsal, which reads no row: its fractions are NaN."""
        none = Diagnostics(used=math.nan, clipped=math.nan, unreadable=math.nan)
        return Opened(
            self._plan,
            self._certificate,
            Ticket(self._certificate),  # it costs nothing, and opens nothing that was given
            self.bits,
            protection=self._protection,
            aside=self._aside,
            read=None if self._aside is None else none,
            bill=Bill(self._bill.paid.record),
        )

    def read(self) -> Diagnostics | None:
        """Return how the rows are read, if that was asked for: once, and the same ever after.

        A study does this before its program has an internal answer: a program might change an
        array by one, and these fractions do not go through the channel.
        """
        if self._aside is not None and self._read is None:
            self._read = self._aside.plan.answer(self._aside.source.open(self.ticket), self.bits)
        return self._read

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
            diagnostics=self.read(),
            sums=sums,
            plan=self._plan.details,
            record=self._bill.paid.record_at(self.ticket.time, self._certificate),
            paid_by=tuple((account, receipt.entry) for account, receipt in self._bill.paid.debits),
        )


@value
class Beside:
    """How the rows of a release are read, asked beside it for a share of its ε."""

    question: Question
    source: Source
    share: Fraction


@value
class Aside:
    """What is asked beside a release, planned: a part of the same certificate."""

    plan: ReleasePlan[Rows]
    source: Source


def left(epsilon: Rational, beside: Beside | None) -> Fraction:
    """Return the ε that is left for a release if something is asked beside it."""
    exact = as_usable_epsilon(epsilon)
    return exact if beside is None else exact * (1 - beside.share)


def aside(beside: Beside | None, epsilon: Rational) -> Aside | None:
    """Plan what is asked beside a release, at its share of the ε of both."""
    if beside is None:
        return None
    share = as_usable_epsilon(epsilon) * beside.share
    return Aside(plan=planned(beside.question, beside.source, share), source=beside.source)


def begin(
    plan: ReleasePlan[R],
    source: Openable[Any],
    *,
    aside: Aside | None = None,
) -> Opened[R]:
    """Issue the certificate, and look whether it can be paid for; no row is read before that is.

    For programs that ask many times (`zd.Study`), which pay just before their first row: a mistake
    that shows until then has cost nothing. Everything else is one `run`.
    """
    opened = _opened(plan, source, aside=aside)
    opened.check()
    return opened


def _opened(plan: ReleasePlan[R], source: Openable[Any], *, aside: Aside | None) -> Opened[R]:
    bits = current_bits()
    protection = _protection(source)
    made = plan if aside is None else plan.beside(aside.plan)
    certificate = made.certificate(bits, protection)
    stop_if_previewed(made, certificate)
    bill = billed(certificate, protection)
    ticket = Ticket(certificate, diagnosed=None if aside is None else aside.source, due=True)
    return Opened(made, certificate, ticket, bits, protection=protection, aside=aside, bill=bill)


def run(
    plan: ReleasePlan[R],
    source: Openable[R],
    *,
    aside: Aside | None = None,
) -> Release:
    """Return the release: certificate, then ticket, then rows, in this order."""
    opened = _opened(plan, source, aside=aside)
    opened.pay()  # raises BudgetError, and then nothing was spent
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
    beside: Beside | None = None,
    facts: Facts | None = None,
    units: type[UnitTheorem] = Units,
) -> Release:
    """Plan what is asked of a source for whom it protects, and run the plan.

    What is asked `beside` costs its share of ε, and is a part of the same certificate. `facts` and
    `units` as for `planned`.
    """
    plan = planned(question, source, epsilon, facts=facts, beside=beside, units=units)
    return run(plan, source, aside=aside(beside, epsilon))


def planned(
    question: Question,
    source: Openable[Any],
    epsilon: Rational,
    *,
    facts: Facts | None = None,
    beside: Beside | None = None,
    units: type[UnitTheorem] = Units,
) -> Any:
    """Return the plan of a question: for a unit, that of one of its rows at its share of ε.

    `facts`: what is public of the rows, where that is not `Facts.of` the source. What is asked
    `beside` takes its share of ε first. `units`: the theorem that says what a unit's rows cost.
    """
    protection, exact = _protection(source), left(epsilon, beside)
    known = Facts.of(source) if facts is None and isinstance(source, Source) else facts
    if known is None:  # pragma: no cover
        raise AssertionError("what is no source comes with its facts")
    share = exact
    if protection.unit is not None:
        share = units(max_rows=protection.max_rows).of_row(exact)
    plan = question.plan(known, share)
    if not known.counted and isinstance(plan, ReleasePlan) and isinstance(source, Source):
        # lattices and forecasts follow from what stands in for it, so the certificate lists that
        public = tuple(dict.fromkeys([*plan.public, source.row_count_phrase]))
        plan = replace(plan, public=public)
    if isinstance(plan, ReleasePlan):
        plan = replace(plan, public=tuple(known.as_number(each) for each in plan.public))
    complete = known.complete
    if complete is not None and isinstance(plan, ReleasePlan):
        plan = replace(plan, if_complete=lambda: question.plan(complete, share))
    if protection.unit is None:
        return plan
    if isinstance(plan, ReleasePlan):
        return plan.protecting(protection, units)
    return plan.protecting(protection)  # a study protects units in its own way


def _protection(source: Openable[Any]) -> Protection:
    # what a foreign class says of itself is not believed
    return source.protection if type(source) is Sealed else protection_of(source)


def post_processed(release: Release, *, value: Any, error: float | str) -> Release:
    """Return a release of what was made of a released value, which costs no ε.

    Its noise law is not known any more.
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
    """Return a release that was saved, from its fields."""
    return Release(**fields)
