"""Every release is paid for before a row is read, once, by whom it should be."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import public
import zerodelta as zd
from zerodelta.data.source import (
    Charge,
    Protection,
    Receipt,
    Sealed,
    Source,
    Ticket,
    trusted_source,
)
from zerodelta.spine.plan import Facts, ReleasePlan
from zerodelta.spine.run import begin, run
from zerodelta.spine.verbs import billed, debited, inside_same_release, paying, request_of
from zerodelta.tasks.statistics import MeanQuestion
from zerodelta.testing import replayed


class Purse:
    """An account in memory that writes down what happens."""

    def __init__(self, log: list[str], name: str = "debit", *, refuse: bool = False) -> None:
        self.log, self.name, self.refuse = log, name, refuse
        self.charges: list[Charge] = []

    def check(self, charge: Charge) -> None:
        if self.refuse:
            raise zd.errors.BudgetError("no")

    def debit(self, charge: Charge) -> Receipt:
        self.check(charge)
        self.log.append(self.name)
        self.charges.append(charge)
        return Receipt(ledger=self.name, entry=len(self.log), hash="", time="2026-01-02T03:04:05Z")

    def _take_back(self, receipt: Receipt, reason: str) -> None:
        self.log.append(f"{self.name} taken back")

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        self.log.append(f"saved {entry}")

    def covers(self, other: Any) -> bool:
        return self is other

    @property
    def line(self) -> str:
        return "budget: all"


@trusted_source
class Logged(Source):
    """Rows that write down when they are read, and may fail before."""

    def __init__(self, log: list[str], *, fail: type[BaseException] | None = None) -> None:
        self.log, self.fail = log, fail

    @property
    def rows(self) -> int:
        return 3

    @property
    def columns(self) -> tuple[str, ...]:
        return ("0",)

    def open(self, ticket: Ticket, *, keep: bool = False) -> Any:
        if self.fail is not None:
            raise self.fail("before a row")
        return super().open(ticket, keep=keep)

    def blocks(self, ticket: Ticket) -> Any:
        self.log.append("rows")
        yield np.ones((3, 1))


def test_whatever_makes_a_release_takes_a_ledger() -> None:
    paper = [getattr(zd.paper, name) for name in dir(zd.paper)]
    made: list[Any] = [
        verb
        for verb in (*public.VERBS.values(), *paper)
        if inspect.isfunction(verb) and verb.__annotations__.get("return") == "Release"
    ]
    assert len(made) >= 50
    estimators = [getattr(zd.sklearn, name) for name in zd.sklearn.__all__]
    made += [each for each in estimators if "epsilon" in inspect.signature(each).parameters]
    for each in (*made, zd.Study):
        parameters = inspect.signature(each).parameters
        defaults = [parameters[name].default for name in ("ledger", "again")]
        assert defaults == [None, False], each.__name__


def test_the_debit_comes_after_the_certificate_and_before_the_rows() -> None:
    log: list[str] = []
    purse = Purse(log)
    release = zd.mean(Logged(log), bounds=(0, 2), epsilon=1, ledger=purse)
    assert log == ["debit", "rows"]
    (charge,) = purse.charges
    assert charge.epsilon == 1
    assert charge.certificate == release.certificate.digest
    assert (charge.task, charge.question) == ("mean()", None)


def test_nothing_is_read_where_the_budget_is_refused() -> None:
    log: list[str] = []
    with pytest.raises(zd.errors.BudgetError):
        zd.mean(Logged(log), bounds=(0, 2), epsilon=1, ledger=Purse(log, refuse=True))
    assert log == []


def test_nothing_is_spent_where_the_question_is_malformed() -> None:
    log: list[str] = []
    with pytest.raises(zd.errors.ParameterError):
        zd.mean(Logged(log), bounds=(2, 0), epsilon=1, ledger=Purse(log))
    with pytest.raises(TypeError, match="unexpected keyword argument 'bound'"):
        zd.mean(Logged(log), bound=(0, 2), epsilon=1, ledger=Purse(log))  # type: ignore[call-arg]
    assert log == []


def test_an_error_before_the_first_row_takes_the_debit_back() -> None:
    log: list[str] = []
    with pytest.raises(ValueError, match="before a row"):
        zd.mean(Logged(log, fail=ValueError), bounds=(0, 2), epsilon=1, ledger=Purse(log))
    assert log == ["debit", "debit taken back"]


def test_an_interrupt_leaves_the_debit() -> None:
    log: list[str] = []
    source = Logged(log, fail=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        zd.mean(source, bounds=(0, 2), epsilon=1, ledger=Purse(log))
    assert log == ["debit"]


def test_an_error_after_the_first_row_leaves_the_debit() -> None:
    log: list[str] = []
    made = MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), 1)

    def answer(rows: Any, bits: Any) -> Any:
        made.answer(rows, bits)
        raise ValueError("after")

    fields = {name: getattr(made, name) for name in ("claim", "steps", "error", "public")}
    with pytest.raises(ValueError, match="after"), paying(Purse(log), task="mine", arguments={}):
        run(ReleasePlan(**fields, answer=answer), Logged(log))
    assert log == ["debit", "rows"]


def test_a_ticket_whose_debit_was_taken_back_opens_nothing() -> None:
    log: list[str] = []
    plan = MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), 1)
    with paying(Purse(log), task="mine", arguments={}):
        opened = begin(plan, Logged(log))
    opened.pay()
    opened.take_back()
    opened.take_back()
    assert log == ["debit", "debit taken back"]
    with pytest.raises(RuntimeError, match="taken back"):
        Sealed(1).open(opened.ticket)
    with paying(Purse(log), task="mine", arguments={}):
        used = begin(plan, Logged(log))
    used.pay()
    Sealed(1).open(used.ticket)
    used.take_back()
    assert log[2:] == ["debit"]
    with pytest.raises(RuntimeError, match="its debit stays"):
        used.ticket.void()


def test_a_debit_is_not_taken_back_while_another_thread_begins_to_read() -> None:
    """To be used and to be void are decided one after the other."""
    for first, second, said in (
        (lambda ticket: ticket.void(), Ticket.use, "was taken back"),
        (Ticket.use, lambda ticket: ticket.void(), "its debit stays"),
    ):
        opened = begin(MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), 1), Logged([]))
        opened.pay()
        ticket = opened.ticket
        failed: list[str] = []

        def late(ticket: Ticket = ticket, act: Any = second, failed: list[str] = failed) -> None:
            try:
                act(ticket)
            except RuntimeError as error:
                failed.append(str(error))

        other = threading.Thread(target=late)
        with ticket._lock:  # the first is under way
            other.start()
            other.join(0.05)
            assert other.is_alive()
            ticket._void, ticket._used = first is not Ticket.use, first is Ticket.use
        other.join()
        assert said in failed[0]


def test_a_study_pays_before_its_first_row_and_for_whatever_it_publishes() -> None:
    """A mistake that shows before has cost nothing, and the same study runs the mended program."""
    log: list[str] = []

    def study(ledger: Any) -> zd.Study:
        space = zd.Finite(["no", "yes"])
        options: dict[str, Any] = {"publish": space, "otherwise": "?", "rounds": 2}
        return zd.Study(np.ones((900, 1)), bounds=(0, 1), epsilon=1, ledger=ledger, **options)

    def mended(s: zd.Study) -> str:
        return "yes" if s.mean(0) > 0.5 else "no"

    def entered(s: zd.Study) -> None:
        with s:
            assert log == ["debit"]

    paid = study(Purse(log))
    with pytest.raises(zd.errors.ParameterError, match="nonsense"):
        paid.run(lambda s: s.nonsense)  # type: ignore[attr-defined]
    assert log == []
    assert paid.run(mended).record is not None
    assert log == ["debit"]
    ways: list[Callable[[zd.Study], Any]] = [
        lambda s: s.mean(0),
        lambda s: s.publish("yes"),
        lambda s: s.run(lambda _: 1 / 0, rehearse=False),
        entered,
    ]
    for use in ways:
        log.clear()
        use(study(Purse(log)))
        assert log == ["debit"]


def test_a_study_that_cannot_pay_any_more_reads_and_publishes_nothing() -> None:
    """Another release may have spent the rest since the study was made."""
    for use in ("mean", "publish", "run", "__enter__"):
        log: list[str] = []
        purse = Purse(log)
        options: dict[str, Any] = {"publish": zd.Finite(2), "rounds": 2, "bounds": (0, 1)}
        study = zd.Study(np.ones((900, 1)), epsilon=1, ledger=purse, **options)
        purse.refuse = True
        given: dict[str, tuple[Any, ...]] = {"mean": (0,), "publish": (1,), "run": (lambda s: 1,)}
        with pytest.raises(zd.errors.BudgetError):
            getattr(study, use)(*given.get(use, ()))
        with pytest.raises(zd.errors.ParameterError, match="nothing yet"):
            _ = study.release
        assert log == []
    with pytest.raises(zd.errors.BudgetError):  # and one that cannot from the start is not made
        zd.Study(np.ones((900, 1)), epsilon=1, ledger=purse, **options)


def test_a_bill_is_paid_once_by_all_or_by_none() -> None:
    log: list[str] = []

    class Failing(Purse):
        def check(self, charge: Charge) -> None:
            """Nothing is wrong yet."""

        def debit(self, charge: Charge) -> Receipt:
            raise zd.errors.BudgetError("no")

    first, certificate = Purse(log, "first"), zd.count([1.0], epsilon=1).certificate
    plan = zd.mean([1.0], bounds=(0, 2), epsilon=1).certificate
    for second, spent in ((Purse(log, "second"), True), (Failing(log), False)):
        log.clear()
        with paying(second, task="mine", arguments={}):
            bill = billed(plan, Protection(accounts=(first,)))
        if spent:
            assert bill.pay() is bill.pay()
            assert log == ["first", "second"]
            continue
        with pytest.raises(zd.errors.BudgetError):
            bill.pay()
        assert log == ["first", "first taken back"]
        assert bill.paid.debits == ()
    assert billed(certificate, Protection(accounts=(first,))).pay().debits == ()  # ε = 0


def test_the_time_of_a_ticket_is_that_of_its_debit() -> None:
    plan = MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), 1)
    with paying(Purse([]), task="mine", arguments={}):
        opened = begin(plan, Logged([]))
    opened.pay()
    ticket = opened.ticket
    assert ticket.time == ticket.receipts[0].time == "2026-01-02T03:04:05Z"
    unpaid = begin(plan, Logged([]))
    with pytest.raises(RuntimeError, match="not been paid for"):
        Ticket.use(unpaid.ticket)
    unpaid.pay()
    free = unpaid.ticket
    assert free.receipts == ()
    assert free.time > "2026-01-02T03:04:05Z"
    ticket.settle(())  # by a thread that is late: rows may have been read since
    assert ticket.time == ticket.receipts[0].time == "2026-01-02T03:04:05Z"


def test_one_ledger_pays_for_one_release_only() -> None:
    """A program that a verb runs may ask something of its own: that is another release."""
    log: list[str] = []

    @debited
    def outer(**_: Any) -> None:
        zd.mean([1.0], bounds=(0, 2), epsilon=7)  # such as a caller's function that is tried
        inside_same_release(zd.mean)([1.0], bounds=(0, 2), epsilon=1)
        inside_same_release(zd.mean)([1.0], bounds=(0, 2), epsilon=7)

    purse = Purse(log)
    outer(ledger=purse)
    assert log == ["debit"]
    assert [charge.epsilon for charge in purse.charges] == [1]
    zd.mean([1.0], bounds=(0, 2), epsilon=1)
    assert log == ["debit"]
    plan = MeanQuestion(bounds=(0, 2)).plan(Facts(rows=3), 1)
    with paying(Purse(log), task="mine", arguments={}):
        for opened in (begin(plan, Logged(log)), begin(plan, Logged(log))):
            opened.pay()
            opened.pay()
    assert log == ["debit", "debit"]


def test_who_joins_hands_nothing_on() -> None:
    """What a verb that joins another is given, such as a function, does not join by itself."""
    log: list[str] = []

    @debited
    def inner(**_: Any) -> None:
        zd.mean([1.0], bounds=(0, 2), epsilon=7)
        zd.Study([1.0], publish=zd.Finite(2), rounds=1, bounds=(0, 2), epsilon=7)
        inside_same_release(zd.mean)([1.0], bounds=(0, 2), epsilon=1)

    @debited
    def outer(**_: Any) -> None:
        inside_same_release(inner)()

    purse = Purse(log)
    outer(ledger=purse)
    (charge,) = purse.charges
    assert charge.epsilon == 1
    assert charge.task == "test_who_joins_hands_nothing_on.<locals>.outer()"


ROWS = np.linspace(0, 100, 2000).reshape(-1, 2)


def private_choice(block: Any) -> int:
    return int(zd.median(block[:, 0], bounds=(0, 100), epsilon="1/1000").value > 50)


def private_score(index: int, rows: Any) -> Any:
    private_choice(rows)
    zd.paper.mode([0, 1], universe=2, epsilon="1/1000")
    zd.sklearn.PCA(n_components=1, bounds=(0, 100), epsilon="1/1000").fit(rows)
    return rows[:, index]


@pytest.mark.parametrize(
    "asked",
    [
        lambda **more: zd.queries.vote(ROWS, private_choice, options=[0, 1], epsilon=2, **more),
        lambda **more: zd.select_model(
            ROWS, {"a": 0, "b": 1}, score=private_score, bounds=(0, 100), epsilon=2, **more
        ),
    ],
)
def test_a_function_that_asks_by_itself_does_not_use_up_the_payment(
    asked: Callable[..., Any],
) -> None:
    """It is tried on made-up rows before the ticket: the release of the verb is still paid for."""
    purse = Purse([])
    release = asked(ledger=purse)
    assert [charge.epsilon for charge in purse.charges] == [2]
    assert [each["entry"] for each in release.record.entries] == [1]
    assert release.record.task in ("vote", "select_model")


def test_an_algorithm_of_the_paper_is_paid_for() -> None:
    purse = Purse([])
    features, labels = np.ones((50, 2)) / 2, np.ones(50)
    release = zd.paper.lattice_adassp(
        features,
        labels,
        data_norm=1,
        target_bound=1,
        epsilon=3,
        mixing_weight="1/100",
        ledger=purse,
    )
    (charge,) = purse.charges
    assert charge.epsilon == 3
    assert charge.question is None
    assert "features" not in release.record.parameters
    assert "target" not in release.record.parameters
    assert release.record.parameters["data_norm"] == 1
    with pytest.raises(zd.errors.ParameterError, match="a pure release"):
        zd.paper.adassp(
            features, labels, data_norm=1, target_bound=1, epsilon=1, log_delta=-9, ledger=purse
        )
    zd.sklearn.SparseRegression(epsilon=2, bounds=(0, 1), bounds_y=(0, 1), ledger=purse).fit(
        features, labels
    )
    assert [charge.task for charge in purse.charges] == ["lattice_adassp()", "SparseRegression()"]


def people(tmp_path: Path, **options: Any) -> Any:
    table = np.zeros(1000, dtype=[("age", np.float64), ("city", "U5"), ("id", np.int64)])
    table["age"] = np.arange(1000) % 90
    table["city"] = np.where(np.arange(1000) % 3 > 0, "oslo", "rome")
    table["id"] = np.arange(1000) // 2
    kinds = {
        "age": zd.number(0, 120),
        "city": zd.category(["oslo", "rome"]),
        "id": zd.number(0, 500, missing=None),
    }
    given = {"ledger": tmp_path / "people.ledger", "budget": 100, "name": "people", **options}
    return zd.open(table, columns=kinds, **given)


def spent(tmp_path: Path) -> Fraction:
    return zd.Ledger(tmp_path / "people.ledger", data="people").spent


ASKED: dict[str, Callable[..., Any]] = {
    "count()": lambda data, **more: zd.count(data.where("age > 3"), epsilon=1, **more),
    "count(city)": lambda data, **more: zd.count(data, by="city", epsilon=1, **more),
    "sum(age)": lambda data, **more: zd.sum(data, "age", epsilon=1, **more),
    "mean(age)": lambda data, **more: zd.mean(data, "age", epsilon=1, diagnostics="1/100", **more),
    "mean(age, city)": lambda data, **more: zd.mean(data, "age", by="city", epsilon=1, **more),
    "mean(age, id)": lambda data, **more: zd.mean(data, ["age", "id"], epsilon=1, **more),
    "std(age)": lambda data, **more: zd.std(data, "age", epsilon=1, **more),
    "median(age)": lambda data, **more: zd.median(data["age"], epsilon=1, **more),
    "quantiles(age)": lambda data, **more: zd.quantiles(
        data, "age", q=[0.2, 0.5], epsilon=1, **more
    ),
    "cdf(age)": lambda data, **more: zd.cdf(data, "age", epsilon=1, **more),
    "mode(city)": lambda data, **more: zd.mode(data, "city", epsilon=1, **more),
    "histogram(city)": lambda data, **more: zd.histogram(data, "city", epsilon=1, **more),
    "table(age, city)": lambda data, **more: zd.table(
        data, by=["city"], of={"age": ["mean"]}, epsilon=1, **more
    ),
    "table(id, age)": lambda data, **more: zd.table(
        data, by={"age": zd.bins([0, 60, 120])}, of={"id": ["mean"]}, epsilon=1, **more
    ),
}
"""By what the history says of each."""


@pytest.mark.parametrize("name", ASKED)
def test_a_data_set_pays_for_what_it_is_asked(tmp_path: Path, name: str) -> None:
    data = people(tmp_path)
    ASKED[name](data)
    assert spent(tmp_path) == 1
    history = zd.Ledger(tmp_path / "people.ledger", data="people").history
    assert history[-1]["task"] == name
    with pytest.raises(zd.errors.BudgetError, match="again=True"):
        ASKED[name](data)
    other = zd.Ledger(tmp_path / "other.ledger", budget=1)
    ASKED[name](data, again=True, ledger=other)
    assert [spent(tmp_path), other.spent] == [2, 1]
    with pytest.raises(zd.errors.BudgetError, match="0 of 1 is left"):
        ASKED[name](data, again=True, ledger=other)
    assert [spent(tmp_path), other.spent] == [2, 1]  # what the first had paid is taken back


def test_another_question_is_no_repetition(tmp_path: Path) -> None:
    data = people(tmp_path)
    questions: list[Callable[[], Any]] = [
        lambda: zd.mean(data, "age", epsilon=1),
        lambda: zd.mean(data, "age", epsilon=2),
        lambda: zd.mean(data, "age", epsilon=1, bounds=(0, 60)),
        lambda: zd.mean(data.where("age < 60"), "age", epsilon=1),
        lambda: zd.mean(data.where("age < 61"), "age", epsilon=1),
        lambda: zd.sum(data, "age", epsilon=1),
    ]
    for asked in questions:
        asked()
    assert spent(tmp_path) == 7


def test_spaces_are_written_in_full(tmp_path: Path) -> None:
    """What is printed of a long list is its beginning: that is not all that was asked."""
    data = people(tmp_path)
    many, middle = [f"city {place}" for place in range(100)], np.arange(3000.0)
    spaces: list[Any] = [zd.Finite([*many, last]) for last in ("oslo", "rome")]
    spaces += [zd.purification.Multiset(options, 2) for options in spaces]
    spaces += [zd.Ball(3000, 1, center=c) for c in (middle, middle + (middle == 1500))]
    asked = [request_of("task", {"rows": data, "space": each}, repeats=True) for each in spaces]
    assert len({each.question for each in asked} - {None}) == len(spaces)
    assert "'oslo'" in str(asked[0].parameters)


def test_the_same_is_recognized_however_it_is_written(tmp_path: Path) -> None:
    zd.mean(people(tmp_path)["age"], epsilon=1)
    for epsilon in ("1.0", Fraction(1), 1.0):
        with pytest.raises(zd.errors.BudgetError, match="again=True"):
            zd.mean(people(tmp_path)["age"], epsilon=epsilon)
    assert spent(tmp_path) == 1


def test_the_message_names_the_saved_release(tmp_path: Path) -> None:
    data = people(tmp_path)
    zd.mean(data, "age", epsilon=1).save(tmp_path / "age.json")
    ledger = zd.Ledger(tmp_path / "people.ledger", data="people")
    with pytest.raises(zd.errors.BudgetError, match=r"zd\.load, saved as '.*age\.json'"):
        zd.mean(data, "age", epsilon=1)
    assert ledger.verify(records=[tmp_path / "age.json"]) == 3
    zd.mean(data, "age", epsilon=1, again=True)
    with pytest.raises(zd.errors.BudgetError, match=r"entry 3 .*, saved as '.*age\.json'"):
        zd.mean(data, "age", epsilon=1)


def test_a_question_that_was_taken_back_may_be_asked(tmp_path: Path) -> None:
    from ledger.spenders import charge

    ledger = zd.Ledger(tmp_path / "b.db", budget=1)
    receipt = ledger.debit(charge("1/2", question="q"))
    ledger._take_back(receipt, "an error")
    ledger._take_back(receipt, "an error")
    assert ledger.spent == 0
    ledger.debit(charge("1/2", question="q"))
    assert ledger.spent == Fraction(1, 2)
    assert ledger.verify() == 5


def test_a_verb_that_runs_a_study_pays_once(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    ledger = zd.Ledger(tmp_path / "b.db", budget=5)
    zd.kmeans(rows, clusters=2, bounds=(-1, 1), epsilon=1, method="lloyd", ledger=ledger)
    assert ledger.spent == 1
    assert ledger.history[-1]["task"] == "kmeans()"
    zd.Study(people(tmp_path), publish=zd.Finite(2), rounds=1, epsilon=1).publish(0)
    history = zd.Ledger(tmp_path / "people.ledger", data="people").history
    assert history[-1]["task"] == "Study(age, city, id)"


def test_an_analyst_is_not_charged_twice(tmp_path: Path) -> None:
    data = people(tmp_path)
    ana = zd.Ledger(tmp_path / "people.ledger", data="people", analyst="ana", budget=3)
    zd.mean(data, "age", epsilon=1, ledger=ana)
    assert [ana.spent, spent(tmp_path)] == [1, 1]
    zd.mean(people(tmp_path, ledger=ana, budget=None), "age", epsilon=1, again=True)
    assert [ana.spent, spent(tmp_path)] == [2, 2]


def test_a_data_set_shows_what_is_left(tmp_path: Path) -> None:
    data = people(tmp_path)
    zd.mean(data, "age", epsilon="1/4")
    assert repr(data).splitlines()[-1].startswith("  budget: 399/4 of 100 left in ")
    with pytest.raises(zd.errors.ParameterError, match="a ledger to keep it in"):
        zd.open(np.ones(3), columns={"0": zd.number(0, 1)}, budget=1)
    with pytest.raises(zd.errors.ParameterError, match="raise_budget"):
        people(tmp_path, budget=7)


def test_estimators_pay(tmp_path: Path) -> None:
    from sklearn.base import clone

    from zerodelta.sklearn import LinearRegression, LogisticRegression

    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(200, 2))
    ledger = zd.Ledger(tmp_path / "b.db", budget=5)
    model = LogisticRegression(epsilon=1, data_norm=1, classes=[0, 1], ledger=ledger)
    clone(model).fit(rows, rows[:, 0] > 0)
    assert ledger.spent == 1
    assert clone(model).get_params()["ledger"] == ledger
    LinearRegression(epsilon=1, data_norm=1, bounds_y=(-1, 1), ledger=ledger).fit(rows, rows[:, 0])
    assert ledger.spent == 2
    assert [row["task"] for row in ledger.history][-1] == "LinearRegression()"
    data = people(tmp_path)
    fitted = LogisticRegression(epsilon=1, ledger=ledger)
    fitted.fit(data[["age"]], data["city"])
    assert [spent(tmp_path), ledger.spent] == [1, 3]
    with pytest.raises(zd.errors.BudgetError, match="again=True"):
        LogisticRegression(epsilon=1).fit(data[["age"]], data["city"])
    LogisticRegression(epsilon=1, again=True).fit(data[["age"]], data["city"])
    assert spent(tmp_path) == 2


def test_a_ledger_is_no_path_in_a_verb() -> None:
    for odd in ("x.db", 7, object()):
        with pytest.raises(zd.errors.ParameterError, match="a Ledger"):
            zd.mean([1.0], bounds=(0, 1), epsilon=1, ledger=odd)  # type: ignore[arg-type]
    with pytest.raises(zd.errors.ParameterError, match="again"):
        zd.mean([1.0], bounds=(0, 1), epsilon=1, again="yes")  # type: ignore[arg-type]


def test_replayed_bits_are_paid_for_too() -> None:
    log: list[str] = []
    replayed("x")(zd.mean)([1.0], bounds=(0, 1), epsilon=1, ledger=Purse(log))
    assert log == ["debit"]


def test_what_is_public_already_costs_nothing(tmp_path: Path) -> None:
    zd.count(people(tmp_path), epsilon=1)
    assert spent(tmp_path) == 0
