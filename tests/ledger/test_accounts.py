"""A ledger as its owner meets it, and what would open a second budget for the same people."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
import pickle
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from ledger.spenders import as_a_new_process, charge
from zerodelta.ledger.balances import Balance, booked
from zerodelta.ledger.ledger import Ledger, reading
from zerodelta.ledger.store import close_all
from zerodelta.privacy.parameters import Neighbors
from zerodelta.spine.plan import Facts
from zerodelta.spine.run import preview
from zerodelta.tasks.statistics import MeanQuestion


def test_a_budget_is_spent_exactly_and_no_further(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.debit(charge("1/3"))
    assert [ledger.spent, ledger.remaining] == [1, 0]
    with pytest.raises(zd.errors.BudgetError, match="0 of 1 is left"):
        ledger.debit(charge("1/1000000000"))
    assert ledger.spent == 1


def test_ten_floats_of_a_tenth_are_one(ledger: Ledger) -> None:
    ages = np.arange(100.0)
    for _ in range(10):
        release = zd.mean(ages, bounds=(0, 100), epsilon=0.1, ledger=ledger)
        assert release.certificate.claim.exact_epsilon == Fraction(1, 10)  # type: ignore[attr-defined]
        zd.verify(release.certificate, epsilon=0.1)
    assert ledger.remaining == 0


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, np.float32(0.1), np.float64(0.3)])
def test_a_float_allows_the_decimal_that_it_prints_as(epsilon: float) -> None:
    release = zd.mean([1.0, 2.0], bounds=(0, 4), epsilon=epsilon)
    stated = release.certificate.claim.exact_epsilon  # type: ignore[attr-defined]
    assert stated == Fraction(str(epsilon))
    zd.verify(release.certificate, epsilon=epsilon)


def test_reopening_with_another_budget_raises(path: str, ledger: Ledger) -> None:
    assert Ledger(path).budget == Ledger(path, budget="1").budget == 1
    with pytest.raises(zd.errors.ParameterError, match=r"raise_budget\(to, reason\)"):
        Ledger(path, budget=2)
    with pytest.raises(zd.errors.ParameterError, match="this account"):
        Ledger(path, neighbors="add-remove")
    with pytest.raises(zd.errors.ParameterError, match="this account"):
        Ledger(path, unit="customer")
    assert Ledger(path).budget == 1


def test_the_only_data_set_needs_no_name(path: str) -> None:
    Ledger(path, budget=3, data="people")
    assert Ledger(path).data == Ledger(path, budget=3).data == "people"
    assert Ledger(path, analyst="ana", budget=1).data == "people"
    assert Ledger(path, analyst="ana").budget == 1
    with pytest.raises(zd.errors.ParameterError, match=r"raise_budget\(to, reason\)"):
        Ledger(path, budget=2)  # not another account, by which more could be spent
    assert [data for data, _ in accounts(path)] == ["people", "people"]


def test_one_of_several_data_sets_is_named(path: str) -> None:
    Ledger(path, budget=1, data="people")
    Ledger(path, budget=1, data="data")
    for more in ({}, {"budget": 1}, {"analyst": "ana"}):
        said = r"\['people', 'data'\]; name it: zd.Ledger\(path, data='people'\)"
        with pytest.raises(zd.errors.ParameterError, match=said):
            Ledger(path, **more)
    assert Ledger(path, data="data").data == "data"


def accounts(path: str) -> list[Any]:
    with reading(path) as (_, balances):
        return list(balances.accounts)


def test_without_a_budget_nothing_is_made(path: str) -> None:
    with pytest.raises(zd.errors.LedgerError, match="it does not exist"):
        Ledger(path)
    assert not Path(path).exists()
    with pytest.raises(zd.errors.LedgerError, match="it does not exist"):
        Ledger(path, analyst="ana", budget=1)


def test_raising_a_budget_is_an_entry(path: str, ledger: Ledger) -> None:
    ledger.raise_budget("3/2", "the board agreed")
    assert Ledger(path, budget=1.5).remaining == Fraction(3, 2)
    (entry,) = [row for row in ledger.history if row["kind"] == "raise"]
    assert (entry["limit"], entry["reason"]) == ("3/2", "the board agreed")
    with pytest.raises(zd.errors.ParameterError, match="more than the present budget"):
        ledger.raise_budget("1.5", "the same again")
    with pytest.raises(zd.errors.ParameterError, match="reason"):
        ledger.raise_budget(2, "")


def test_an_analyst_spends_of_the_data_sets_budget(path: str, ledger: Ledger) -> None:
    ana = ledger.account(analyst="ana", budget="1/2")
    bob = ledger.account(analyst="bob")
    ana.debit(charge("1/2"))
    with pytest.raises(zd.errors.BudgetError, match="'ana' in 'data'"):
        ana.debit(charge("1/100"))
    assert (bob.budget, bob.remaining) == (None, Fraction(1, 2))
    bob.debit(charge("1/2"))
    assert [2 * ana.spent, 2 * bob.spent, ledger.spent] == [1, 1, 1]
    with pytest.raises(zd.errors.BudgetError, match="of 'data'"):
        bob.debit(charge("1/100"))
    assert [row["analyst"] for row in ledger.history] == [None, "ana", "bob", "ana", "bob"]
    assert {row["analyst"] for row in ana.history} == {"ana"}


def test_data_sets_do_not_share_a_budget(path: str, ledger: Ledger) -> None:
    other = ledger.account("shops", budget=2, unit="shop")
    other.debit(charge(2, unit="shop"))
    assert [other.remaining, ledger.remaining] == [0, 1]
    with pytest.raises(zd.errors.ParameterError, match="an account of the ledger"):
        ledger.account("people")


def test_relations_and_units_are_converted_or_refused(ledger: Ledger) -> None:
    ledger.debit(charge("1/4", neighbors=Neighbors.ADD_REMOVE))
    assert ledger.spent == Fraction(1, 2)
    assert [(row["epsilon"], row["booked"]) for row in ledger.history][-1] == ("1/4", "1/2")
    with pytest.raises(zd.errors.ParameterError, match="that this account protects"):
        ledger.debit(charge("1/4", unit="customer"))
    added = ledger.account("added", budget=1, neighbors="add-remove")
    added.debit(charge("1/4", neighbors=Neighbors.ADD_REMOVE))
    assert added.spent == Fraction(1, 4)
    with pytest.raises(zd.errors.ParameterError, match="a replace claim cannot"):
        added.debit(charge("1/4"))
    account = Balance(limit=None, neighbors=Neighbors.REPLACE, unit="shop")
    with pytest.raises(zd.errors.ParameterError, match="unit = None"):
        booked(Fraction(1), neighbors=Neighbors.REPLACE, unit=None, account=account)


def test_prices_add_up(ledger: Ledger) -> None:
    plan = MeanQuestion(bounds=(0, 1)).plan(Facts(rows=100), "1/4")
    added = Facts(rows=None, expected_rows=100, may_miss=True, neighbors=Neighbors.ADD_REMOVE)
    twice = MeanQuestion(bounds=(0, 1)).plan(added, "1/4")
    assert ledger.price([plan, "1/8", 0.1]) == Fraction(1, 4) + Fraction(1, 8) + Fraction(1, 10)
    assert ledger.price([twice]) == Fraction(1, 2)
    assert ledger.price([]) == 0
    table = np.zeros(100, dtype=[("age", np.float64), ("id", np.int64)])
    units = zd.open(
        table, columns={"age": zd.number(0, 120)}, unit="id", max_rows=2, units=50, name="u"
    )
    previewed = preview(lambda: zd.sum(units, "age", epsilon="1/4"))
    assert ledger.account("u", budget=1, unit="id").price([previewed]) == Fraction(1, 4)
    with pytest.raises(zd.errors.ParameterError, match="that this account protects"):
        ledger.price([previewed])
    assert ledger.spent == 0
    with pytest.raises(zd.errors.ParameterError, match="releases under pure differential privacy"):
        ledger.price([object()])


def test_what_is_exported_can_be_read_back(tmp_path: Path, ledger: Ledger) -> None:
    ledger.account(analyst="=cmd()").debit(charge("1/3"))
    for kind in ("json", "csv", "registry"):
        ledger.export(tmp_path / kind, format=kind)
    entries = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert [entry["kind"] for entry in entries] == ["account", "account", "debit"]
    assert sum(Fraction(e["booked"]) for e in entries if e["kind"] == "debit") == ledger.spent
    table = list(csv.DictReader(io.StringIO((tmp_path / "csv").read_text(encoding="utf-8"))))
    assert [row["number"] for row in table] == ["2", "3", "4"]
    assert table[-1]["analyst"] == "'=cmd()"
    fields = json.loads((tmp_path / "registry").read_text(encoding="utf-8"))
    assert fields["privacy_loss"]["epsilon"] == "1/3"
    assert fields["privacy_loss"]["delta"] == "0"
    assert fields["deployment_model"]["name"] == "central"
    assert len(fields["privacy_accounting"]["releases"]) == 1
    with pytest.raises(zd.errors.ParameterError, match="format"):
        ledger.export(tmp_path / "x", format="xml")


def test_the_history_is_a_table(ledger: Ledger) -> None:
    ledger.debit(charge("1/3"))
    lines = repr(ledger.history).splitlines()
    assert lines[0].split() == ["number", "time", "kind", "data", "task", "booked", "limit"]
    assert lines[2].split()[2:] == ["debit", "data", "mean(income)", "1/3"]
    assert ledger.history[-1]["booked"] == "1/3"
    assert len(ledger.history[0:2]) == 2


def test_a_ledger_is_its_address(ledger: Ledger) -> None:
    for same in (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert same == ledger
        assert hash(same) == hash(ledger)
        same.debit(charge("1/8"))
    assert ledger.spent == Fraction(3, 8)
    assert ledger != ledger.account(analyst="ana")
    assert (ledger == 1) is False


def test_a_path_is_the_same_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("here.db", budget=1)
    monkeypatch.chdir("/")
    ledger.debit(charge("1/2"))
    assert Ledger(tmp_path / "here.db").remaining == Fraction(1, 2)


def test_a_link_is_the_ledger_that_it_leads_to(path: str, tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "link.db").symlink_to(path)
    assert Ledger(tmp_path / "link.db") == ledger


@pytest.mark.parametrize("budget", [0, -1, "x", float("inf"), float("nan"), 1e7, None, [1]])
def test_odd_budgets_are_refused(path: str, budget: object) -> None:
    with pytest.raises(zd.errors.ZeroDeltaError):
        Ledger(path, budget=budget)  # type: ignore[arg-type]
    assert not Path(path).exists()


@pytest.mark.parametrize("name", ["", " a", "a\nb", 7, "\x1b[31m"])
def test_odd_names_are_refused(path: str, name: object) -> None:
    with pytest.raises(zd.errors.ParameterError):
        Ledger(path, budget=1, data=name)  # type: ignore[arg-type]
    with pytest.raises(zd.errors.ParameterError):
        Ledger(path, budget=1, analyst=name)  # type: ignore[arg-type]
    assert not Path(path).exists()


@pytest.mark.parametrize("address", ["", 7, None])
def test_odd_addresses_are_refused(address: object) -> None:
    with pytest.raises(zd.errors.ParameterError, match="a path, or a URL"):
        Ledger(address, budget=1)  # type: ignore[arg-type]


# -- second budgets -------------------------------------------------------------------------------


COLUMNS = {"age": zd.number(0, 120)}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    place = tmp_path / "people.csv"
    place.write_text("age,city\n41,oslo\n42,rome\n")
    return place


def test_a_second_name_of_a_file_opens_no_second_budget(
    path: str, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the file is called: by a relative path, through a link, in a list, by a pattern."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.csv").symlink_to(people)
    opened: dict[str, Any] = {"columns": COLUMNS, "ledger": path}
    zd.sum(zd.open(people, name="people", budget=1, **opened), "age", epsilon=1)
    for same in (people, str(people), "people.csv", "./link.csv", [people], "pe*.csv", "l*.csv"):
        with pytest.raises(
            zd.errors.ParameterError, match="'people', under which this file has an acc"
        ):
            zd.open(same, name="people 2026", budget=1, **opened)
        with pytest.raises(zd.errors.ParameterError, match="under which this file"):
            zd.open(same, budget=1, **opened)  # without a name it is called "data"
    assert zd.open(people, name="people", **opened).protection.accounts[0].spent == 1  # type: ignore[attr-defined]
    assert zd.Ledger(path).data == "people"
    other = shutil.copy(people, tmp_path / "other.csv")
    assert zd.open(other, name="others", budget=1, **opened).name == "others"


def test_an_account_that_was_there_first_is_noted_when_the_file_is_opened(
    path: str, people: Path
) -> None:
    zd.Ledger(path, data="people", budget=1)
    opened: dict[str, Any] = {"columns": COLUMNS, "ledger": path}
    zd.open(people, name="people", **opened)
    with pytest.raises(zd.errors.ParameterError, match="under which this file"):
        zd.open(people, name="people 2026", budget=1, **opened)
    zd.Ledger(path, data="other people", budget=1)  # its owner says so, in so many words
    assert zd.open(people, name="other people", **opened).name == "other people"


def test_nor_does_a_file_of_a_pattern(path: str, people: Path) -> None:
    opened: dict[str, Any] = {"columns": COLUMNS, "ledger": path, "budget": 1}
    pattern = str(people.parent / "*.csv")
    zd.open(pattern, name="people", **opened)
    for same in (people, pattern, pattern.replace("*", "p*")):
        with pytest.raises(zd.errors.ParameterError, match="'people', under which this file"):
            zd.open(same, name="people 2026", **opened)


def test_a_note_of_a_path_is_not_a_file_that_is_recognized(path: str, people: Path) -> None:
    zd.open(people, columns=COLUMNS, name="people", budget=1, ledger=path)
    ledger = zd.Ledger(path)
    assert not ledger.recognize(people, b"a secret of some length")
    ledger.remember(people, b"a secret of some length")
    assert ledger.recognize(people, b"a secret of some length")
    shown = [repr(ledger.history), ledger.history.to_json(), json.dumps(ledger.to_registry())]
    assert not [text for text in shown if str(people) in text]


def amount_of(epsilon: Fraction, neighbors: Neighbors = Neighbors.REPLACE) -> Fraction:
    account = Balance(limit=None, neighbors=Neighbors.REPLACE, unit=None)
    return booked(epsilon, neighbors=neighbors, unit=None, account=account)


@given(st.fractions(min_value="1/1000000000", max_value=10**6))
def test_what_is_booked_is_never_less_and_hardly_more(epsilon: Fraction) -> None:
    for neighbors, cost in ((Neighbors.REPLACE, epsilon), (Neighbors.ADD_REMOVE, 2 * epsilon)):
        amount = amount_of(epsilon, neighbors)
        assert cost <= amount < cost + Fraction(1, 10**30)
        assert amount == cost or cost.denominator > 10**9
        assert amount.denominator <= 10**30


@pytest.mark.parametrize("epsilon", ["1/3", "1/999999937", "0.1", repr(math.pi), "1e-29"])
def test_what_is_short_is_booked_as_it_is(epsilon: str) -> None:
    assert amount_of(Fraction(epsilon)) == Fraction(epsilon)


def test_long_fractions_do_not_make_a_ledger_slow(path: str) -> None:
    """Sums of exact ones have as many digits as all of them together."""
    ledger = zd.Ledger(path, budget=1)
    for k in range(60):
        ledger.debit(charge(Fraction(1, 10**4000 + 2 * k + 1) + Fraction(1, 1000)))
    assert Fraction(60, 1000) < ledger.spent < Fraction(60, 1000) + Fraction(61, 10**30)
    assert ledger.spent.denominator <= 10**30
    assert ledger.verify() == 62
    entry = ledger.history[-1]
    assert Fraction(entry["booked"]) > Fraction(entry["epsilon"])


def test_entries_are_counted_without_reading_them(
    ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = ledger.account(analyst="ana", budget="1/2")
    receipt = ana.debit(charge("1/3"))
    ana._take_back(receipt, "an error")
    ledger.account("other", budget=1).debit(charge("1/3"))
    ledger.debit(charge("1/3"))
    assert (ledger.entries, ana.entries) == (len(ledger.history), len(ana.history)) == (5, 3)
    as_a_new_process()
    assert ledger.entries == 5
    monkeypatch.setattr(zd.Ledger, "history", None)
    from zerodelta.report import page

    assert ("entries", "5") in page._budget(ledger)


def test_a_debit_is_not_taken_back_by_who_asked(ledger: zd.Ledger) -> None:
    assert not [name for name in dir(ledger) if "back" in name and not name.startswith("_")]


# -- saved releases show what a ledger has forgotten ------------------------------------------


def saved(ledger: zd.Ledger, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    zd.mean([1.0, 2.0], bounds=(0, 3), epsilon="1/4", ledger=ledger).save(folder / name)


def test_releases_in_a_folder_demand_their_entries(
    path: str, ledger: zd.Ledger, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    saved(ledger, folder / "a", "first.json")
    close_all()
    old = shutil.copy(path, tmp_path / "old.db")
    other = zd.Ledger(tmp_path / "other.db", budget=1)
    saved(other, folder, "other.json")
    assert ledger.demand(folder) == 1
    saved(ledger, folder / "b", "second.json")
    assert (ledger.demand(folder), other.demand(folder)) == (2, 1)
    as_a_new_process()
    shutil.copy(old, path)
    with pytest.raises(zd.errors.LedgerError, match="entry 4, which is not in it"):
        ledger.demand(folder)
    ledger.debit(charge("1/8"))  # another entry with that number
    with pytest.raises(zd.errors.LedgerError, match="an old copy was put back"):
        ledger.demand(folder)
    (folder / "b" / "second.json").write_text("{")
    with pytest.raises(zd.errors.LedgerError, match=r"second\.json cannot be read"):
        ledger.demand(folder)
    with pytest.raises(zd.errors.ParameterError, match="a folder of saved releases"):
        ledger.demand(tmp_path / "none")
