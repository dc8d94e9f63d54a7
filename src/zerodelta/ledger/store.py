"""Where entries are kept: one small interface, for SQLite and for PostgreSQL.

An open connection belongs to this module, not to a ledger: a ledger holds its address only. One
process has one connection to a ledger, used by one thread at a time; a fork closes it first, so
that no child inherits one.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from zerodelta.errors import BudgetError, LedgerError, ParameterError
from zerodelta.ledger.balances import Balances
from zerodelta.ledger.chain import Row, damaged, seal

__all__ = ["Store", "close_all", "using"]

_MOST_OPEN = 8
_LOCK = threading.Lock()
_OPEN: dict[str, Store] = {}


class Store(ABC):
    """The entries of one ledger, and the balances as of the latest that was read here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.balances = Balances(name=name)
        self._written: list[Row] = []

    @abstractmethod
    def usable(self) -> bool:
        """Tell whether the connection is still one to this ledger."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Begin a transaction that nobody else may have at the time; commit it, durably."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """Begin a transaction that sees one state."""

    @abstractmethod
    def rows(self, after: int) -> Iterator[Row]:
        """Yield all entries after this number, in order."""

    @abstractmethod
    def find(self, number: int) -> Row | None:
        """Return one entry."""

    @abstractmethod
    def asked(self, question: str) -> list[int]:
        """Return the entries of a question, the latest first."""

    @abstractmethod
    def insert(self, row: Row) -> None:
        """Write an entry, inside `writing`."""

    @abstractmethod
    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Write down where the release of an entry was saved, inside `writing`."""

    @abstractmethod
    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return where the release of an entry was saved, and the digests, the latest last."""

    @abstractmethod
    def note_file(self, data: str, mac: str) -> None:
        """Write down the keyed hash of a file, inside `writing`; it is in no entry."""

    @abstractmethod
    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""

    @abstractmethod
    def check(self) -> None:
        """Refuse a file or database that is damaged; what its own tools can find."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def append(self, body: Mapping[str, Any]) -> Row:
        """Seal and write the next entry, inside `writing`."""
        row = seal(self.balances.number + 1, body, self.balances.hash)
        self.insert(row)
        self._written.append(row)
        return row

    def settle(self) -> None:
        """Add up what was written here, once it is committed: from now on it must be there."""
        while self._written:
            self.balances.add(self._written.pop(0), self.find)

    def catch_up(self) -> Balances:
        """Check and add up what was written since this process last looked."""
        balances = self.balances
        if balances.number:
            last = self.find(balances.number)
            if last is None or last[3] != balances.hash:
                raise damaged(self.name, f"entry {balances.number} was there and is not any more")
        for row in self.rows(balances.number):
            balances.add(row, self.find)
        if not balances.number:
            raise damaged(self.name, "it has no entries")
        return balances


@contextmanager
def using(address: str, connect: Callable[[], Store]) -> Iterator[Store]:
    """Hold the process's one store at an address; a failure of the store closes it."""
    with _LOCK:
        store = _OPEN.pop(address, None)
        if store is not None and not store.usable():
            store.close()
            store = None
        if store is None:
            store = connect()
        works = False
        try:
            yield store
            works = True
        except (BudgetError, ParameterError) as refused:
            works = not isinstance(refused, LedgerError)  # a plain refusal writes nothing
            raise
        finally:
            if works:
                _keep(address, store)
            else:
                store.close()


def _keep(address: str, store: Store) -> None:
    while len(_OPEN) >= _MOST_OPEN:
        _OPEN.pop(next(iter(_OPEN))).close()
    _OPEN[address] = store


def close_all() -> None:
    """Close what this process has open, such as before a ledger is moved."""
    with _LOCK:
        _close()


def _close() -> None:
    while _OPEN:
        _OPEN.popitem()[1].close()


def _before_fork() -> None:
    _LOCK.acquire()
    _close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )
