"""Where entries are kept: one small interface, for SQLite and for PostgreSQL.

An open connection belongs to this module, not to a ledger: a ledger holds its address only. One
process has one connection to a ledger, used by one thread at a time; a fork closes it first, so
that no child inherits one. What the process has seen of a ledger outlives its connections, and is
handed on to children: a ledger that lacks it is an older one, whoever put it there.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, final

from zerodelta.errors import BudgetError, LedgerError, ParameterError
from zerodelta.ledger.balances import Balances
from zerodelta.ledger.chain import Row, damaged, seal

_MOST_OPEN = 8
_FEW = 100
"""How many entries of others may be checked while nobody else can write."""


@final
@dataclass(kw_only=True, slots=True)
class Known:
    """What this process has seen of the ledger at an address, over whichever connection."""

    balances: Balances
    """As of the latest entry that was read here."""
    seen: tuple[str, int, str] | None = None
    """The ledger, its latest entry and that one's hash: it must have this for ever."""


class Store(ABC):
    """The entries of one ledger, over one connection, and what is known of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = Known(balances=Balances(name=name))
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
    def last(self) -> int:
        """Return the number of the latest entry, in no transaction."""

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
    def data_of(self, mac: str) -> list[str]:
        """Return the data sets that have a file with this hash."""

    @abstractmethod
    def check(self) -> None:
        """Refuse a file or database that is damaged; what its own tools can find."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def append(self, body: Mapping[str, Any]) -> Row:
        """Seal and write the next entry, inside `writing`."""
        balances = self.known.balances
        row = seal(balances.number + 1, body, balances.hash)
        self.insert(row)
        self._written.append(row)
        return row

    def settle(self) -> None:
        """Add up what was written here, once it is committed: from now on it must be there."""
        written, self._written = self._written, []
        self._add(written)

    def prepare(self) -> None:
        """Check what others wrote while they may go on writing, all but a few entries."""
        while self.last() - self.known.balances.number > _FEW:
            with self.reading():
                self.catch_up()

    def catch_up(self) -> Balances:
        """Check and add up what was written since this process last looked."""
        self._written.clear()
        if self.known.seen is not None:
            self._demand(*self.known.seen)
        self._add(self.rows(self.known.balances.number))
        if not self.known.balances.number:
            raise damaged(self.name, "it has no entries")
        return self.known.balances

    def _demand(self, id: str, number: int, hash: str) -> None:
        """Refuse a ledger that lacks an entry which was there."""
        row, first = self.find(number), self.find(1)
        if row is not None and row[3] == hash:
            return
        try:
            same = first is not None and json.loads(first[2])["id"] == id
        except (ValueError, KeyError, TypeError, RecursionError):
            same = True
        what = f"entry {number} was there and is not any more: an old copy was put back, or a "
        what += "server answers that lags behind"
        raise damaged(
            self.name, what if same else "another ledger is in its place, where nothing is spent"
        )

    def _add(self, rows: Iterable[Row]) -> None:
        balances = self.known.balances
        try:
            for row in rows:
                balances.add(row, self.find)
        except BaseException:  # an entry may be added up by half: next time from the first one
            self.known.balances = Balances(name=self.name)
            raise
        if balances.number:
            self.known.seen = balances.id, balances.number, balances.hash


@final
class _Place:
    """An address: what is known of the ledger there, and the connection to it, if one is open."""

    __slots__ = ("known", "lock", "store")

    def __init__(self, address: str) -> None:
        self.known = Known(balances=Balances(name=address))
        self.lock = threading.Lock()
        self.store: Store | None = None

    def close(self) -> None:
        """Close the connection; called by whoever holds the lock."""
        store, self.store = self.store, None
        if store is not None:
            store.close()


_PLACES: dict[str, _Place] = {}
"""By address, the latest used last; none is ever forgotten."""

_TABLE = threading.Lock()
"""Held to look at `_PLACES`; whoever holds a place does not wait for it."""


@contextmanager
def using(address: str, connect: Callable[[], Store]) -> Iterator[Store]:
    """Hold the process's one store at an address; a failure of the store closes it."""
    with _TABLE:
        place = _PLACES.pop(address) if address in _PLACES else _Place(address)
        _PLACES[address] = place
    try:
        with place.lock:
            store = place.store
            if store is None or not store.usable():
                place.close()
                store = connect()
                store.known = place.known
            place.store, works = None, False
            try:
                yield store
                works = True
            except (BudgetError, ParameterError) as refused:
                works = not isinstance(refused, LedgerError)  # a plain refusal writes nothing
                raise
            finally:
                if works:
                    place.store = store
                else:
                    store.close()
    finally:
        _close_surplus()


def _close_surplus(most: int = _MOST_OPEN) -> None:
    with _TABLE:
        opened = [place for place in _PLACES.values() if place.store is not None]
        for place in opened[: max(0, len(opened) - most)]:
            if place.lock.acquire(blocking=False):  # else it is in use, and not the oldest
                place.close()
                place.lock.release()


def close_all() -> None:
    """Close what this process has open, such as before a ledger is moved."""
    with _TABLE:
        places = list(_PLACES.values())
    for place in places:
        with place.lock:
            place.close()


def _before_fork() -> None:
    _TABLE.acquire()
    for place in _PLACES.values():
        place.lock.acquire()
        place.close()


def _after_fork() -> None:
    for place in _PLACES.values():
        place.lock.release()
    _TABLE.release()


atexit.register(_close_surplus, 0)  # a store knows better than Python's end how it is closed
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
