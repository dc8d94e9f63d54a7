"""The spine is the only way from public inputs to a release: structure, not care."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import TICKET
from spine.calls import PACKAGE, calls
from zerodelta.data.arrays import ArraySource
from zerodelta.data.source import FOREIGN_SOURCE, Protection, Sealed, Source, Ticket
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Part, Status
from zerodelta.spine.plan import Facts, Question, ReleasePlan
from zerodelta.spine.run import begin, post_processed, run
from zerodelta.tasks.features import FeaturesQuestion
from zerodelta.tasks.kmeans import KMeansQuestion
from zerodelta.tasks.quantiles import QuantileQuestion
from zerodelta.tasks.robust import TrimmedMeanQuestion
from zerodelta.tasks.statistics import MeanQuestion


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("Ticket", "spine/run.py"),
        ("Release", "spine/run.py"),
        ("issue", "spine/plan.py"),
    ],
)
def test_only_the_spine_issues_admits_and_releases(name: str, home: str) -> None:
    assert set(calls(name)) == {home}


@pytest.mark.parametrize("ticket", [None, 1, "ticket", object()])
def test_rows_open_with_a_ticket_only(ticket: Any) -> None:
    source = ArraySource(np.ones(3))
    given: Sealed[Any] = Sealed(np.ones(3))
    reads: list[Any] = [source.open, given.open, lambda t: next(source.blocks(t))]
    for read in reads:
        with pytest.raises(TypeError, match="ticket"):
            read(ticket)


def test_a_ticket_knows_that_it_was_used() -> None:
    """A debit is final from the first row on, not from the making of a study."""
    ticket = Ticket(TICKET.certificate)
    rows = ArraySource(np.ones(3)).open(ticket)
    assert not ticket.used
    next(rows.blocks())
    assert ticket.used
    study = zd.Study(np.ones((20, 1)), epsilon=1, publish=zd.Finite(2), rounds=2, bounds=(0, 1))
    assert not study._opened.ticket.used
    study.mean(0)
    assert study._opened.ticket.used


class Log(Source):
    """A source that writes down when it is read."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    @property
    def rows(self) -> int:
        return 3

    @property
    def columns(self) -> tuple[str, ...]:
        return ("0",)

    def blocks(self, ticket: Ticket) -> Any:
        assert ticket.certificate.claim == PureDP(1)
        self.log.append("rows")
        yield np.ones((3, 1))


def plan_of(log: list[str], **changes: Any) -> ReleasePlan[Any]:
    made = MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), 1)

    def answer(rows: Any, bits: Any) -> Any:
        log.append("answer")
        return made.answer(rows, bits)

    fields = {name: getattr(made, name) for name in ("claim", "steps", "error", "public")}
    return ReleasePlan(**{**fields, "answer": answer, **changes})


def test_the_certificate_comes_before_the_rows() -> None:
    log: list[str] = []
    release = run(plan_of(log), Log(log))
    assert log == ["answer", "rows"]
    assert zd.verify(release.certificate, epsilon=1) == PureDP(1)


def test_a_plan_that_proves_less_than_it_claims_reads_nothing() -> None:
    log: list[str] = []
    with pytest.raises(zd.errors.CertificateError):
        run(plan_of(log, claim=PureDP("1/2")), Log(log))
    with pytest.raises(zd.errors.CertificateError):
        begin(plan_of(log, claim=PureDP("1/2")), Log(log))
    assert log == []


def test_foreign_sources_make_a_certificate_asserted_whatever_they_say_of_themselves() -> None:
    class Boasting(Log):
        @property
        def ours(self) -> bool:
            return True

    for source in (Log([]), Boasting([])):
        certificate = run(plan_of([]), source).certificate
        assert certificate.status is Status.ASSERTED
        assert FOREIGN_SOURCE in certificate.assumed
    mine = run(plan_of([]), ArraySource(np.ones(3))).certificate
    assert mine.status is Status.PROVEN
    assert FOREIGN_SOURCE not in mine.assumed


def test_a_forecast_may_depend_on_the_released_value_only() -> None:
    plan = plan_of([], error=lambda value: f"of {value}")
    release = run(plan, ArraySource(np.ones(3)))
    assert release.error == f"of {release.value}"


def test_private_numbers_of_rows_are_planned_with_what_is_expected() -> None:
    with pytest.raises(zd.errors.ParameterError, match="expected_rows"):
        Facts(rows=None).planned_rows  # noqa: B018
    assert Facts(rows=None, expected_rows=1000).planned_rows == 1000
    assert Facts(rows=1000).planned_rows == Facts(rows=1000).public_rows == 1000


@pytest.mark.parametrize(
    "question",
    [
        MeanQuestion(bounds=(0, 1)),
        TrimmedMeanQuestion(trim="1/10", bounds=(0, 1), spread=1),
    ],
    ids=lambda question: type(question).__name__,
)
def test_mechanisms_without_a_theorem_for_a_private_number_refuse(question: Any) -> None:
    """Rule: where the number of rows is private, nothing uses it, and nothing guesses it."""
    with pytest.raises(zd.errors.ParameterError, match="public number"):
        question.plan(Facts(rows=None, expected_rows=1000), 1)


def test_a_plan_may_have_several_parts_and_a_unit() -> None:
    made = plan_of([])
    half = MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), "1/2")
    parts = (Part(steps=half.steps), Part(steps=half.steps))
    plan = replace(made, steps=(), parts=parts)
    for source in (ArraySource(np.ones(3)), Log([])):
        certificate = run(plan, source).certificate
        assert zd.verify(certificate, epsilon=1) == PureDP(1)
        assert (certificate.status is Status.PROVEN) == isinstance(source, ArraySource)
    customer = Protection(unit="customer", max_rows=2)
    certificate = plan.protecting(customer).certificate(SystemBits(), customer)
    assert zd.verify(certificate, epsilon=2, unit="customer") == PureDP(2)
    with pytest.raises(zd.errors.CertificateError, match="unit"):
        zd.verify(certificate, epsilon=2)


def test_a_plan_is_not_run_on_data_opened_for_others() -> None:
    """A plan for rows on data opened for units would promise what nobody has proven."""
    plan, customer = plan_of([]), Protection(unit="customer", max_rows=2)
    for other in (customer, Protection(neighbors=zd.records.Neighbors.ADD_REMOVE)):
        with pytest.raises(zd.errors.GuaranteeError, match="cannot be run"):
            plan.certificate(SystemBits(), other)
    with pytest.raises(zd.errors.GuaranteeError, match="cannot be run"):
        plan.protecting(customer).certificate(SystemBits())


def test_a_release_keeps_its_noise_law() -> None:
    """b = 2·steps/ε integers, each worth the quantum/n: half the width over steps, over n."""
    release = zd.mean(np.ones(1000), bounds=(0, 8), epsilon=2)
    law = release.noise
    assert isinstance(law, NoiseLaw)
    assert isinstance(law.unit, Fraction)
    assert law.scale * law.unit == Fraction(8, 2 * 1000)
    assert release.error == float(law.scale * law.unit)


def test_a_release_states_the_seconds_of_its_plan_and_measures_none() -> None:
    assert run(replace(plan_of([]), seconds=12.5), ArraySource(np.ones(3))).seconds == 12.5
    assert run(plan_of([]), ArraySource(np.ones(3))).seconds is None


def test_post_processing_keeps_the_certificate_and_forgets_the_noise_law() -> None:
    release = zd.mean(np.ones(1000), bounds=(0, 8), epsilon=2)
    rounded = post_processed(release, value=round(release.value), error="rounded")
    assert rounded.certificate is release.certificate
    assert (rounded.value, rounded.error, rounded.noise) == (round(release.value), "rounded", None)


def test_nobody_rewrites_a_release() -> None:
    """`dataclasses.replace` of a release would keep a noise law that no longer holds."""
    for path in PACKAGE.rglob("*.py"):
        assert "replace(release, value" not in path.read_text(encoding="utf-8"), path
        assert "replace(release, error" not in path.read_text(encoding="utf-8"), path


def questions() -> list[type]:
    names = [
        f"zerodelta.{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}"
        for room in ("tasks", "regression")
        for path in (PACKAGE / room).glob("*.py")
        if path.stem != "__init__"
    ]
    found = [
        kind
        for name in names
        for kind in vars(import_module(name)).values()
        if isinstance(kind, type) and kind.__module__ == name and kind.__name__.endswith("Question")
    ]
    assert len(found) >= 15
    return found


@pytest.mark.parametrize("kind", questions(), ids=lambda kind: kind.__name__)
def test_a_question_is_frozen_and_plans_from_facts_and_epsilon(kind: Any) -> None:
    assert vars(kind)["__dataclass_params__"].frozen
    assert list(inspect.signature(vars(kind)["plan"]).parameters) == ["self", "facts", "epsilon"]


def test_questions_keep_the_protocol() -> None:
    asked: list[Question] = [
        MeanQuestion(bounds=(0, 1)),
        QuantileQuestion(q="1/2", bounds=(0, 1)),
        TrimmedMeanQuestion(trim="1/10", bounds=(0, 1), spread=1),
        KMeansQuestion(clusters=2, bounds=(0, 1), method="lloyd"),
    ]
    plans = [question.plan(Facts(rows=100), "1/3") for question in asked]
    assert all(plan.methods for plan in plans)
    assert [plan.price for plan in plans] == [Fraction(1, 3)] * len(plans)
    study = FeaturesQuestion(
        size=1, target=-1, bounds=(-1, 1), target_bounds=(-1, 1), method="gram"
    )
    assert study.plan(Facts(rows=100, columns=("0", "1", "2")), "1/3").price == Fraction(1, 3)
