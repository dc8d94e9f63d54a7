"""A ledger as its owner meets it: budgets, accounts, relations, history, export."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from ledger.spenders import charge
from zerodelta.ledger.balances import Balance, Balances, Row, booked, seal
from zerodelta.ledger.ledger import Ledger, reading
from zerodelta.ledger.store import first_entries
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


@given(st.lists(st.fractions(min_value="1/1000", max_value=1, max_denominator=10**9), max_size=20))
def test_what_is_spent_is_the_exact_sum(amounts: list[Fraction]) -> None:
    account = Balance(limit=None, neighbors=Neighbors.REPLACE, unit=None)
    rows = first_entries(("data", None), Fraction(20), None, None)
    for amount in amounts:
        cost = booked(amount, neighbors=Neighbors.REPLACE, unit=None, account=account)
        body = {"kind": "debit", "data": "data", "analyst": None, "booked": str(cost)}
        body |= {"epsilon": str(amount), "neighbors": "replace", "unit": None, "task": "mean"}
        body |= {"certificate": "", "record": "", "time": "9999-01-01T00:00:00Z"}
        rows.append(seal(len(rows) + 1, body, rows[-1][3]))
    found: dict[int, Row] = {row[0]: row for row in rows}
    balances = Balances(name="x")
    for row in rows:
        balances.add(row, found.get)
    assert balances.accounts["data", None].spent == sum(amounts, Fraction(0))


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
