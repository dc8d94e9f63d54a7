"""Connections to a ledger at an address, by file or server, and its accounts opened or found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from fractions import Fraction

from zerodelta.errors import LedgerError, require
from zerodelta.ledger.addresses import is_url
from zerodelta.ledger.balances import Balances, Key
from zerodelta.ledger.postgres_store import PostgresStore, make_tables
from zerodelta.ledger.spending import check_same, first_entries, open_account
from zerodelta.ledger.sqlite_store import SqliteStore, make_file
from zerodelta.ledger.store import Store, using
from zerodelta.privacy.neighbors import Neighbors


def connected(address: str) -> AbstractContextManager[Store]:
    """Hold the process's one connection to a ledger."""
    return using(address, lambda: (PostgresStore if is_url(address) else SqliteStore)(address))


@contextmanager
def writing(address: str) -> Iterator[tuple[Store, Balances]]:
    """Hold the only write transaction, and the balances as they are."""
    with connected(address) as store:
        store.prepare()
        with store.writing():
            yield store, store.catch_up()
        store.settle()


@contextmanager
def reading(address: str) -> Iterator[tuple[Store, Balances]]:
    """Hold a read transaction, and the balances as they are."""
    with connected(address) as store, store.reading():
        yield store, store.catch_up()


def only_data(address: str, default: str) -> str:
    """Return the data set that a ledger has an account of, `default` where there is none yet.

    Of one that is damaged, whoever opens it next is told what is wrong.
    """
    known: list[str] = []
    if is_url(address) or os.path.lexists(address):
        with suppress(LedgerError), reading(address) as (_, balances):
            known = [data for data, analyst in balances.accounts if analyst is None]
    require(
        len(known) <= 1,
        "data",
        None,
        expected=f"one of the data sets of this ledger, {known[:10]}",
        remedy=f"name it: zd.Ledger(path, data={known[0] if known else default!r})",
    )
    return known[0] if known else default


def open_or_make(
    address: str,
    key: Key,
    limit: Fraction | None,
    neighbors: Neighbors | None,
    unit: str | None,
    *,
    convert: bool = False,
) -> None:
    """Find an account, or open it, and make the ledger if there is none.

    With `convert` one that there is may be for other neighbors, or another unit.
    """
    server = is_url(address)
    absent = server or not os.path.lexists(address)
    if absent and limit is not None and key[1] is None:
        make = make_tables if server else make_file
        make(address, first_entries(key, limit, neighbors, unit))
    with reading(address) as (_, balances):
        found = balances.accounts.get(key)
    if found is None:
        with writing(address) as (store, balances):
            found = balances.accounts.get(key)  # another process may have been faster
            if found is None:
                open_account(store, balances, key, limit, neighbors, unit)
                return
    check_same(found, limit, neighbors, unit, convert=convert)
