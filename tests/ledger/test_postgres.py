"""A ledger on a real PostgreSQL server: exact, shared, killed, and with an analyst's rights."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from ledger.contention import contend, debits, kill
from ledger.postgres_server import PASSWORD, Server, as_user, new_analyst
from ledger.spenders import EPSILON, as_a_new_process, charge
from zerodelta.ledger.balances import seal
from zerodelta.ledger.ledger import reading
from zerodelta.ledger.postgres import PostgresStore
from zerodelta.ledger.store import close_all, debit

psycopg: Any = pytest.importorskip("psycopg", reason="pip install 'zerodelta[postgres]'")


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


def test_processes_and_threads_spend_exactly_the_budget(url: str) -> None:
    contend(url, processes=3, threads=3, times=30)


@pytest.mark.slow
def test_a_hundred_thousand_reservations_on_a_server(url: str) -> None:
    contend(url, processes=8, threads=4, times=3150)


def test_kills_of_clients_lose_nothing(url: str) -> None:
    kill(url, times=6)


@pytest.mark.slow
def test_two_hundred_kills_of_clients_lose_nothing(url: str) -> None:
    kill(url, times=200)


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

    for round_ in range(2):
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
    assert len(errors) == 2
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


# -- the rights of an analyst ---------------------------------------------------------------------


@pytest.fixture
def name(url: str) -> str:
    return analyst_beside_bob(url)


@pytest.fixture(scope="module")
def unchanged(server: Server) -> tuple[str, str]:
    """A ledger that no test changes, and an analyst."""
    url = server.new_database("unchanged")
    return url, analyst_beside_bob(url)


def analyst_beside_bob(url: str) -> str:
    """Make a ledger; return an analyst with half of the budget, as bob has."""
    whole = zd.Ledger(url, budget=1)
    made = new_analyst(url)
    whole.account(analyst=made, budget="1/2").debit(charge("1/10"))
    whole.account(analyst="bob", budget="1/2").debit(charge("1/10"))
    return made


def entries(url: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        found: list[Any] = connection.execute(
            "SELECT number, question, body, hash FROM public.zerodelta_entry ORDER BY number"
        ).fetchall()
    connection.close()
    return found


def following(url: str, **changed: Any) -> Any:
    """The next entry as whoever knows how to seal one writes it."""
    last = entries(url)[-1]
    body = {
        "kind": "debit",
        "data": "data",
        "analyst": "bob",
        "task": "mean()",
        "unit": None,
        "epsilon": "1/10",
        "booked": "1/10",
        "neighbors": "replace",
        "question": None,
        "certificate": "",
        "record": "",
        "time": "9999-01-01T00:00:00Z",
        **changed,
    }
    return seal(last[0] + 1, body, last[3])


def inserted(url: str, row: Any) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO public.zerodelta_entry VALUES (%s, %s, %s, %s)", row)
    connection.close()


REFUSED: dict[str, Callable[[str, str], Any]] = {
    "a raise": lambda url, me: following(url, kind="raise", analyst=me, limit="9", reason="mine"),
    "a raise for all": lambda url, me: following(
        url, kind="raise", analyst=None, limit="9", reason="mine"
    ),
    "a refund": lambda url, me: following(
        url, kind="return", analyst=me, booked="1/10", of=4, reason="mine"
    ),
    "an account": lambda url, me: following(
        url, kind="account", analyst="carl", limit=None, neighbors="replace", unit=None
    ),
    "another ledger": lambda url, me: following(url, kind="ledger", format=1, id="x"),
    "a gift": lambda url, me: following(url, kind="gift", analyst=me),
    "another's name": lambda url, me: following(url, analyst="bob"),
    "no name": lambda url, me: following(url, analyst=None),
    "a name that nobody opened": lambda url, me: following(url, analyst=me, data="other"),
    "nothing": lambda url, me: following(url, analyst=me, epsilon="0", booked="0"),
    "no thirds": lambda url, me: following(url, analyst=me, epsilon="0/3", booked="0/3"),
    "less than nothing": lambda url, me: following(url, analyst=me, epsilon="-1", booked="-1"),
    "a gift in booking": lambda url, me: following(url, analyst=me, booked="-1/10"),
    "no number": lambda url, me: following(url, analyst=me, epsilon="1e-3", booked="1e-3"),
    "another question": lambda url, me: (
        *(row := following(url, analyst=me))[:1],
        "q",
        *row[2:],
    ),
    "another hash": lambda url, me: (*following(url, analyst=me)[:3], "0" * 64),
    "a later place": lambda url, me: (99, *following(url, analyst=me)[1:]),
    "an earlier place": lambda url, me: (0, *following(url, analyst=me)[1:]),
    "no entry": lambda url, me: (7, None, "junk", "0" * 64),
    "no object": lambda url, me: (7, None, "[1]", "0" * 64),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_analyst_writes_debits_and_nothing_else(unchanged: tuple[str, str], what: str) -> None:
    url, name = unchanged
    before = entries(url)
    row = REFUSED[what](url, name)
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.DataError)):
        inserted(as_user(url, name), row)
    assert entries(url) == before
    as_a_new_process()
    assert zd.Ledger(url).verify() == len(before)


def test_a_debit_of_ones_own_is_written(url: str, name: str) -> None:
    """What the attacks above differ from is allowed; by hand, too."""
    inserted(as_user(url, name), following(url, analyst=name))
    assert zd.Ledger(url, analyst=name).spent == Fraction(1, 5)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE public.zerodelta_entry SET body = '{}'",
        "DELETE FROM public.zerodelta_entry",
        "TRUNCATE public.zerodelta_entry",
        "DROP TABLE public.zerodelta_entry",
        "ALTER TABLE public.zerodelta_entry DISABLE ROW LEVEL SECURITY",
        "DROP POLICY zerodelta_debit ON public.zerodelta_entry",
        "CREATE POLICY more ON public.zerodelta_entry FOR INSERT WITH CHECK (true)",
        "INSERT INTO public.zerodelta_saved VALUES (6, 'x', 'y')",  # bob's release
        "INSERT INTO public.zerodelta_file VALUES ('data', 'y')",
        "SELECT * FROM public.zerodelta_file",
    ],
)
def test_an_analyst_changes_nothing(unchanged: tuple[str, str], statement: str) -> None:
    url, name = unchanged
    with (
        psycopg.connect(as_user(url, name)) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement)
    connection.close()


def test_through_the_library_neither(url: str, name: str) -> None:
    mine = as_user(url, name)
    ana = zd.Ledger(mine, analyst=name)
    receipt = ana.debit(charge("1/10"))
    assert not hasattr(ana, "take_back")
    tried: list[Callable[[], Any]] = [
        lambda: ana._take_back(receipt, "mine"),
        lambda: ana.raise_budget(9, "mine"),
        lambda: zd.Ledger(mine).raise_budget(9, "mine"),
        lambda: zd.Ledger(mine).debit(charge("1/10")),
        lambda: zd.Ledger(mine, analyst="bob").debit(charge("1/10")),
        lambda: zd.Ledger(mine, analyst="carl"),
        lambda: zd.Ledger(mine, data="other", budget=9),
    ]
    for attempt in tried:
        with pytest.raises(zd.errors.LedgerError, match="an account of the user's own name"):
            attempt()
    assert (ana.spent, zd.Ledger(url).spent) == (Fraction(1, 5), Fraction(3, 10))
    with pytest.raises(zd.errors.BudgetError, match="3/10 of 1/2 is left"):
        ana.debit(charge("4/10"))


def test_tables_in_ones_own_schema_are_not_taken_for_the_ledger(url: str, name: str) -> None:
    """They are what is found first by a plain name."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
    connection.close()
    with psycopg.connect(as_user(url, name), autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {name}.zerodelta_entry AS SELECT * FROM public.zerodelta_entry "
            "WHERE number < 4"
        )
        (there,) = connection.execute("SELECT count(*) FROM zerodelta_entry").fetchone()
        assert there == 3
    connection.close()
    assert zd.Ledger(as_user(url, name), analyst=name).spent == Fraction(1, 10)


def test_a_schema_that_is_named_holds_a_ledger_of_its_own(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA team")
    connection.close()
    there = url + "?options=-csearch_path%3Dteam"
    other = zd.Ledger(there, budget=5)
    other.debit(charge(1))
    assert other.remaining == 4
    assert zd.Ledger(url).remaining == Fraction(8, 10)
    with pytest.raises(zd.errors.ParameterError, match="one schema"):
        zd.Ledger(url + "?options=-csearch_path%3D%22%24user%22", budget=1)


def test_where_one_account_refuses_the_other_pays_nothing(url: str, name: str) -> None:
    """One that only may debit takes nothing back: so all are asked before one pays."""
    import tempfile

    mine = zd.Ledger(as_user(url, name), analyst=name)
    people = zd.open([[1.0], [2.0]], columns={"0": zd.number(0, 3)}, name="data", ledger=mine)
    poor = zd.Ledger(tempfile.mkdtemp() + "/poor.db", budget="1/1000")
    with pytest.raises(zd.errors.BudgetError, match="1/1000 of 1/1000 is left"):
        zd.mean(people, "0", epsilon="1/10", ledger=poor)
    assert mine.spent == Fraction(1, 10)


def test_a_lagging_server_is_refused(url: str, name: str) -> None:
    """As after a failover to one that has not got the latest entries."""
    ledger = zd.Ledger(url, analyst="bob")
    ledger.debit(charge("1/10"))
    close_all()
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM public.zerodelta_entry WHERE number = 7")
    connection.close()
    for use in (lambda: ledger.debit(charge("1/10")), lambda: ledger.spent, ledger.verify):
        with pytest.raises(zd.errors.LedgerError, match="a server answers that lags behind"):
            use()


def test_a_restored_dump_is_refused(url: str, name: str) -> None:
    """Even where as much was written to it as had been there."""
    ledger = zd.Ledger(url)
    ledger.debit(charge("1/10"))
    close_all()
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM public.zerodelta_entry WHERE number = 7")
    connection.close()
    inserted(url, following(url, task="another()"))
    with pytest.raises(zd.errors.LedgerError, match="entry 7 was there and is not any more"):
        ledger.debit(charge("1/10"))
    as_a_new_process()
    with reading(ledger.address) as (_, balances):
        assert balances.number == 7
    assert json.loads(entries(url)[-1][2])["task"] == "another()"
