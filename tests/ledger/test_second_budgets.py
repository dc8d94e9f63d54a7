"""What would open a second budget for the same people, or give back what was spent."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from ledger.spenders import as_a_new_process, charge
from zerodelta.ledger.balances import Balance, booked
from zerodelta.ledger.store import close_all
from zerodelta.privacy.parameters import Neighbors

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


ASKED: dict[str, Callable[[Any], Any]] = {
    "mean(age)": lambda data: zd.mean(data, "age", epsilon=1),
    "mean(age, city)": lambda data: zd.mean(data, "age", by="city", epsilon=1),
    "median(age)": lambda data: zd.median(data["age"], epsilon=1),
    "count()": lambda data: zd.count(data.where("age > 40"), epsilon=1),
    "count(city)": lambda data: zd.count(data, by="city", epsilon=1),
    "histogram(city)": lambda data: zd.histogram(data, "city", epsilon=1),
    "table(age, city)": lambda data: zd.table(data, by=["city"], of={"age": ["mean"]}, epsilon=1),
    "table(member, age)": lambda data: zd.table(
        data, by={"age": zd.bins([0, 60, 120])}, of={"member": ["mean"]}, epsilon=1
    ),
    "mean(age, member)": lambda data: zd.mean(data, ["age", "member"], epsilon=1),
    "Study(age, city, member)": lambda data: zd.Study(
        data, publish=zd.Finite(2), rounds=1, epsilon=1
    ).publish(0),
}


@pytest.mark.parametrize("task", ASKED)
def test_the_history_names_the_columns_that_were_asked(path: str, task: str) -> None:
    import numpy as np

    table = np.zeros(500, dtype=[("age", float), ("city", "U4"), ("member", float)])
    table["city"] = "oslo"
    kinds = {
        "age": zd.number(0, 120, missing=None),
        "city": zd.category(["oslo", "rome"]),
        "member": zd.number(0, 1, missing=None),
    }
    data = zd.open(table, columns=kinds, name="d", ledger=path, budget=9)
    ASKED[task](data)
    assert [row["task"] for row in zd.Ledger(path).history][-1] == task


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
