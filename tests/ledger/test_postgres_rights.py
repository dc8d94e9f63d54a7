"""What an analyst can do to a ledger on a server with the rights of docs/ledger.md: debit."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
from ledger.postgres_server import Server, as_user, new_analyst
from ledger.spenders import as_a_new_process, charge
from zerodelta.ledger.balances import seal
from zerodelta.ledger.ledger import reading
from zerodelta.ledger.store import close_all

psycopg: Any = pytest.importorskip("psycopg", reason="pip install 'zerodelta[postgres]'")


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
