"""The same ledger on a real PostgreSQL server: exact, shared, killed and started again."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from ledger import spenders
from ledger.postgres_server import PASSWORD, Server, as_user, new_analyst
from ledger.spenders import EPSILON, as_a_new_process, charge
from zerodelta.ledger.postgres import PostgresStore
from zerodelta.ledger.store import as_address, close_all, debit

psycopg: Any = pytest.importorskip("psycopg", reason="pip install 'zerodelta[postgres]'")


def debits(ledger: zd.Ledger) -> list[int]:
    return [row["number"] for row in ledger.history if row["kind"] == "debit"]


def ran(url: str, *arguments: object) -> dict[str, Any]:
    """Run spenders that take the password from the environment."""
    asked, *numbers = map(str, arguments)
    command = [sys.executable, spenders.__file__, asked, as_address(url), *numbers]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_same_semantics(url: str, tmp_path: Path) -> None:
    ledger = zd.Ledger(url, budget=1)
    release = zd.mean(np.ones(100), bounds=(0, 2), epsilon=0.25, ledger=ledger)
    assert zd.verify(release.certificate, epsilon=0.25)
    assert (ledger.spent, ledger.remaining) == (Fraction(1, 4), Fraction(3, 4))
    assert zd.Ledger(url, budget="1") == ledger
    with pytest.raises(zd.errors.ParameterError, match="raise_budget"):
        zd.Ledger(url, budget=2)
    ana = ledger.account(analyst="ana", budget="1/4")
    receipt = ana.debit(charge("1/4", question="q"))
    with pytest.raises(zd.errors.BudgetError, match="'ana' in 'data'"):
        ana.debit(charge("1/100"))
    ledger.note_saved(receipt.entry, "income.json", "0" * 64)
    release.save(tmp_path / "mean.json")
    assert ledger.verify(records=[receipt, tmp_path / "mean.json"]) == 5
    ledger.remember(tmp_path / "mean.json", b"a secret of some length")
    assert ledger.recognize(tmp_path / "mean.json", b"a secret of some length")
    with pytest.raises(zd.errors.BudgetError, match=r"saved as 'income\.json'"):
        ledger.debit(charge("1/4", question="q"))
    ana._take_back(receipt, "an error")
    ledger.raise_budget(2, "agreed")
    assert (ana.spent, ledger.remaining) == (Fraction(0), Fraction(7, 4))
    assert ledger.verify() == 7
    with pytest.raises(zd.errors.LedgerError, match="taken back"):
        ledger.verify(records=[receipt])
    assert [row["kind"] for row in ledger.history] == [
        *("account", "debit", "account", "debit", "return", "raise"),
    ]


def test_without_a_budget_nothing_is_made(url: str) -> None:
    with pytest.raises(zd.errors.LedgerError, match="there is no ledger"):
        zd.Ledger(url)


def test_the_password_is_nowhere(url: str, server: Server) -> None:
    ledger = zd.Ledger(url, budget=1)
    data = zd.open(np.ones(9), columns={"0": zd.number(0, 1)}, ledger=url, name="d", budget=1)
    shown = [repr(ledger), ledger.address, repr(data), str(ledger.to_registry()), ledger.line]
    shown += [repr(ledger.history), repr(pickle.dumps(ledger)), repr(ledger.__reduce__())]
    from zerodelta.sklearn import LogisticRegression

    model = LogisticRegression(epsilon=1, ledger=ledger)
    shown += [repr(model), repr(model.get_params()), repr(pickle.dumps(model))]
    for wrong in (server.url("no_such"), server.url("postgres", password="wrong-s3cret")):
        with pytest.raises(zd.errors.LedgerError) as caught:
            zd.Ledger(wrong, budget=1)
        assert caught.value.__cause__ is None
        shown.append(str(caught.value))
    assert not [text for text in shown if "s3cret" in text or PASSWORD in text]
    assert copy.deepcopy(ledger).remaining == pickle.loads(pickle.dumps(ledger)).remaining == 1


def test_a_password_in_the_query_is_nowhere_either() -> None:
    clean = as_address("postgresql://h/d?password=s3cret&sslmode=require&sslpassword=x")
    assert clean == "postgresql://h/d?sslmode=require"


def contend(url: str, *, processes: int, threads: int, times: int) -> None:
    asked = processes * threads * times
    ledger = zd.Ledger(url, budget=(asked - 20) * EPSILON)
    close_all()
    told = ran(url, "many", processes, threads, times)["acknowledged"]
    assert sorted(told) == debits(ledger)
    assert len(told) == asked - 20
    assert ledger.remaining == 0
    assert ledger.verify() == asked - 20 + 2


def test_processes_and_threads_spend_exactly_the_budget(url: str) -> None:
    contend(url, processes=3, threads=3, times=30)


@pytest.mark.slow
def test_a_hundred_thousand_reservations_on_a_server(url: str) -> None:
    contend(url, processes=8, threads=4, times=3150)


def killed(url: str, *, times: int) -> None:
    ledger = zd.Ledger(url, budget=10**6)
    close_all()
    told = ran(url, "kill", times)["acknowledged"]
    found = debits(ledger)
    assert set(told) <= set(found)
    assert len(found) - len(told) <= 2 * times
    assert ledger.verify() == len(found) + 2


def test_kills_of_clients_lose_nothing(url: str) -> None:
    killed(url, times=6)


@pytest.mark.slow
def test_two_hundred_kills_of_clients_lose_nothing(url: str) -> None:
    killed(url, times=200)


def test_a_killed_server_loses_nothing(url: str, server: Server) -> None:
    ledger = zd.Ledger(url, budget=1000)
    told: list[int] = []
    errors: list[zd.errors.LedgerError] = []

    def spend() -> None:
        try:
            while True:
                told.append(ledger.debit(charge()).entry)
        except zd.errors.LedgerError as error:
            errors.append(error)

    for round_ in range(3):
        before = len(told)
        spending = threading.Thread(target=spend)
        spending.start()
        while len(told) < before + 20 + round_:
            time.sleep(0.01)
        server.kill()
        spending.join()
        server.start()
        found = debits(ledger)
        assert set(told) <= set(found)
        assert len(found) <= len(told) + 1 + round_
        assert ledger.verify() == len(found) + 2
        assert ledger.spent == len(found) * EPSILON
    assert len(errors) == 3
    assert "the server does not answer" in str(errors[0])


@pytest.mark.parametrize(
    "edit",
    [
        """UPDATE zerodelta_entry SET body = replace(body, '"1/1000"', '"1/2000"')""",
        "DELETE FROM zerodelta_entry WHERE number = 4",
        "UPDATE zerodelta_entry SET question = 'x' WHERE number = 4",
    ],
)
def test_what_is_edited_by_hand_is_found(url: str, edit: str) -> None:
    ledger = zd.Ledger(url, budget=1)
    for _ in range(4):
        ledger.debit(charge())
    as_a_new_process()
    with psycopg.connect(url) as connection:
        connection.execute(edit)
    connection.close()
    for use in (lambda: ledger.debit(charge()), lambda: ledger.spent, ledger.verify):
        with pytest.raises(zd.errors.LedgerError, match="cannot be trusted"):
            use()


def test_one_who_may_not_write_is_told_so(url: str, server: Server) -> None:
    zd.Ledger(url, budget=1)
    name = new_analyst(url, rights="SELECT")
    reader = zd.Ledger(as_user(url, name))
    assert reader.remaining == 1
    with pytest.raises(zd.errors.LedgerError, match="GRANT SELECT, INSERT"):
        reader.debit(charge())


def test_an_analyst_needs_no_right_to_change_entries(url: str) -> None:
    """As docs/ledger.md says: SELECT and INSERT, not UPDATE and DELETE."""
    owner = zd.Ledger(url, budget=1)
    name = new_analyst(url)
    owner.account(analyst=name)
    analyst = zd.Ledger(as_user(url, name), analyst=name)
    analyst.debit(charge())
    analyst.note_saved(4, "a.json", "digest")
    assert analyst.verify() == 4
    assert owner.spent == analyst.spent > 0


def test_writers_see_what_others_wrote_whatever_the_server_prefers(url: str) -> None:
    zd.Ledger(url, budget=1)
    with psycopg.connect(url, autocommit=True) as connection:
        (name,) = connection.execute("SELECT current_database()").fetchone()
        asked = f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"
        connection.execute(asked)
    connection.close()
    first, second = PostgresStore(url), PostgresStore(url)

    def write(store: PostgresStore) -> None:
        debit(store, store.catch_up(), ("data", None), charge())

    def wait_and_write() -> None:
        with second.writing():
            write(second)

    other = threading.Thread(target=wait_and_write)
    with first.writing():
        other.start()
        while not first._one("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            time.sleep(0.01)
        write(first)
    other.join()
    first.close()
    second.close()
    assert zd.Ledger(url).verify() == 4


def set_fsync(url: str, change: str, expected: str) -> None:
    """Change the server's setting, and wait until new connections see it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM {change}")
        connection.execute("SELECT pg_reload_conf()")
    connection.close()
    for _ in range(500):
        with psycopg.connect(url) as connection:
            (now,) = connection.execute("SHOW fsync").fetchone()
        connection.close()
        if now == expected:
            return
        time.sleep(0.01)
    raise AssertionError(now)


def test_a_server_that_does_not_sync_is_refused(url: str) -> None:
    zd.Ledger(url, budget=1)
    close_all()
    set_fsync(url, "SET fsync = off", "off")
    try:
        with pytest.raises(zd.errors.LedgerError, match="Set fsync = on"):
            zd.Ledger(url)
    finally:
        set_fsync(url, "RESET fsync", "on")
    assert zd.Ledger(url).spent == 0


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"zerodelta\[postgres\]"):
        zd.Ledger("postgresql://127.0.0.1:1/none", budget=1)
