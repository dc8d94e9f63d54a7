"""Store the entries of a ledger: its address, its connection, and the writing of debits.

Connections belong to this module: a `Ledger` holds its address only. One process has one
connection to a ledger, used by one thread at a time; a fork closes it first, so that no child
inherits one. The latest entry that a process has read outlives its connections and is handed on to
its children: a ledger that lacks this entry is an older copy, and is refused.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final
from urllib.parse import unquote

from zerodelta.data.source import Charge, Receipt
from zerodelta.errors import BudgetError, LedgerError, ParameterError, may_be_url, require
from zerodelta.exact.rational import Rational, number_text
from zerodelta.ledger.balances import (
    FORMAT,
    START,
    Balance,
    Balances,
    Key,
    Row,
    booked,
    damaged,
    new_id,
    seal,
    timestamp,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon, decimal_meant

_MAXIMUM_OPEN = 8
"""Number of ledgers that stay connected; the least recently used ones are closed."""

_MAXIMUM_WHILE_WRITING = 100
"""Number of other processes' entries that may be checked while nobody else can write."""


@final
@dataclass(kw_only=True, slots=True)
class Known:
    """The balances and the latest entry that this process has read at an address."""

    balances: Balances
    """The balances after the latest entry that was read."""
    seen: tuple[str, int, str] | None = None
    """Id of the ledger, number and hash of its latest entry: the ledger must always have it."""


class Store(ABC):
    """The entries of one ledger, read and written over one connection."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = Known(balances=Balances(name=name))
        self._written: list[Row] = []

    @abstractmethod
    def usable(self) -> bool:
        """Tell whether the connection still works and still leads to this ledger."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Hold the only write transaction, and commit it durably."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """Hold a read transaction, which sees one state of the ledger."""

    @abstractmethod
    def rows(self, after: int) -> Iterator[Row]:
        """Yield all entries after this number, in order."""

    @abstractmethod
    def find(self, number: int) -> Row | None:
        """Return one entry."""

    @abstractmethod
    def last(self) -> int:
        """Return the number of the latest entry, outside of a transaction."""

    @abstractmethod
    def entries_of_question(self, question: str) -> list[int]:
        """Return the numbers of the entries that paid for a question, the latest first."""

    @abstractmethod
    def insert(self, row: Row) -> None:
        """Write an entry, inside `writing`."""

    @abstractmethod
    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Note where the release of an entry was saved, inside `writing`."""

    @abstractmethod
    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return the places and digests under which the release was saved, the latest last."""

    @abstractmethod
    def note_file(self, data: str, mac: str) -> None:
        """Note the keyed hash of a file, inside `writing`; it is in no entry."""

    @abstractmethod
    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""

    @abstractmethod
    def data_of(self, mac: str) -> list[str]:
        """Return the names of the data sets that have a file with this hash."""

    @abstractmethod
    def check(self) -> None:
        """Refuse a file or database that SQLite's or PostgreSQL's own checks call damaged."""

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
        """Add the entries of `append` to the balances, once they are committed."""
        written, self._written = self._written, []
        self._add(written)

    def prepare(self) -> None:
        """Check most entries that others wrote before `writing` stops them from writing more."""
        while self.last() - self.known.balances.number > _MAXIMUM_WHILE_WRITING:
            with self.reading():
                self.catch_up()

    def catch_up(self) -> Balances:
        """Check and add up the entries written since this process last read the ledger."""
        self._written.clear()
        if self.known.seen is not None:
            self._demand(*self.known.seen)
        self._add(self.rows(self.known.balances.number))
        if not self.known.balances.number:
            raise damaged(self.name, "it has no entries")
        return self.known.balances

    def _demand(self, id: str, number: int, hash: str) -> None:
        """Refuse a ledger that lacks an entry which this process has read before."""
        row, first = self.find(number), self.find(1)
        if row is not None and row[3] == hash:
            return
        try:
            same = first is not None and json.loads(first[2])["id"] == id
        except (ValueError, KeyError, TypeError, RecursionError):
            same = True
        older = (
            f"entry {number} was there and is not any more: an old copy was put back, or a server "
            "answers that lags behind"
        )
        other = "another ledger is in its place, which does not know what was spent"
        raise damaged(self.name, older if same else other)

    def _add(self, rows: Iterable[Row]) -> None:
        """Add new entries to the known balances; on any error forget them all."""
        balances = self.known.balances
        try:
            for row in rows:
                balances.add(row, self.find)
        except BaseException:  # an entry may be half applied: start again from the first one
            self.known.balances = Balances(name=self.name)
            raise
        if balances.number:
            self.known.seen = balances.id, balances.number, balances.hash


@final
class _Place:
    """The connection to the ledger at one address, if it is open, and the entries read there."""

    __slots__ = ("known", "lock", "store")

    def __init__(self, address: str) -> None:
        self.known = Known(balances=Balances(name=address))
        self.lock = threading.Lock()
        self.store: Store | None = None

    def close(self) -> None:
        """Close the connection; the caller holds the lock."""
        store, self.store = self.store, None
        if store is not None:
            store.close()


_PLACES: dict[str, _Place] = {}
"""By address, the most recently used last; an address is never removed."""

_TABLE = threading.Lock()
"""Held while `_PLACES` is read; a thread that holds the lock of a place never waits for it."""


@contextmanager
def using(address: str, connect: Callable[[], Store]) -> Iterator[Store]:
    """Hold the only store that this process has at an address; close it after a failure."""
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
                works = not isinstance(refused, LedgerError)  # a refused budget is no failure
                raise
            finally:
                if works:
                    place.store = store
                else:
                    store.close()
    finally:
        _close_surplus()


def _close_surplus(maximum_open: int = _MAXIMUM_OPEN) -> None:
    """Close the oldest idle connections beyond the largest number of open ones."""
    with _TABLE:
        connected = [place for place in _PLACES.values() if place.store is not None]
        for place in connected[: max(0, len(connected) - maximum_open)]:
            if place.lock.acquire(blocking=False):  # otherwise it is in use
                place.close()
                place.lock.release()


def close_all() -> None:
    """Close all connections of this process, such as before a ledger is moved."""
    with _TABLE:
        places = list(_PLACES.values())
    for place in places:
        with place.lock:
            place.close()


def _before_fork() -> None:
    """Close all connections and hold their locks, so that no child process shares one."""
    _TABLE.acquire()
    for place in _PLACES.values():
        place.lock.acquire()
        place.close()


def _after_fork() -> None:
    for place in _PLACES.values():
        place.lock.release()
    _TABLE.release()


atexit.register(_close_surplus, 0)  # close in order, before the interpreter takes modules apart
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


# -- Addresses of ledgers: a path, or the URL of a server without the secrets that were in it -----
# Secrets stay in the memory of this process, apart from the addresses that ledgers hold; a new
# process takes the password from PGPASSWORD or from the file .pgpass. A text that is no address is
# refused without repeating it: it may hold a password.

_SECRETS: dict[str, dict[str, str]] = {}
"""Passwords by address, in this process and its forks; in no repr, record or pickle."""

_HOST = r"(?:[^\[\]:@/?#,\s]*|\[[0-9A-Fa-f:.%]+\])(?::\d*)?"
_URL = re.compile(
    r"(?i:postgres(?:ql)?)://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^:@/?#\s]*)?(?:\?(?P<query>[^@?#\s]*))?"
)
"""A URL as libpq reads it; inside a part the separators are percent-encoded."""

_SECRET = re.compile(r"passw|secret|scram", re.IGNORECASE)
_SHOWN = re.compile(
    r"host(addr)?|port|dbname|user|options|service(file)?|passfile|replication|client_encoding"
    r"|(fallback_)?application_name|connect_timeout|target_session_attrs|load_balance_hosts"
    r"|channel_binding|require_auth|requirepeer|requiressl|tcp_user_timeout|keepalives\w*|krbsrvname"
    r"|gss\w*|ssl\w*|(min|max)_protocol_version|oauth_(issuer|client_id|scope)"
)
"""Options of libpq that hold no secret; any other name is refused, as its value may be one."""

_SCHEMA = re.compile(r"search_path\s*=\s*([a-z_][a-z0-9_]*)(?![^\s&])")


def as_address(path_or_url: str | os.PathLike[str]) -> str:
    """Return the absolute path, or the URL without its secrets, which this process remembers.

    >>> as_address("POSTGRES://ana:secret@db.example/budgets?sslmode=require")
    'postgresql://ana@db.example/budgets?sslmode=require'
    """
    path = os.fspath(path_or_url) if isinstance(path_or_url, (str, os.PathLike)) else ""
    try:
        if type(path) is str and path and "\0" not in path:
            os.fsencode(path)
            # one file, one connection: closing a second one would drop the locks of the first
            return _without_secrets(path) if may_be_url(path) else os.path.realpath(path)
    except (ValueError, OSError):  # neither a path nor a URL
        pass
    raise ParameterError(
        "ledger",
        expected="a path, or a URL such as postgresql://user@host/database (the address is not "
        "repeated here, as it may hold a password)",
        remedy='pass "people.ledger", say; in a URL write %40, %3A, %2F, %3F, %23 for @ : / ? #',
    )


def shown_address(path_or_url: str) -> str:
    """Return an address without secrets, for messages.

    >>> shown_address("people.ledger"), shown_address("postgresql://ana:secret@db/budgets")
    ('people.ledger', 'postgresql://ana@db/budgets')
    """
    return as_address(path_or_url) if may_be_url(path_or_url) else path_or_url


def is_url(address: str) -> bool:
    """Tell whether an address is that of a server."""
    return address.startswith("postgresql://")


def secrets_of(address: str) -> dict[str, str]:
    """Return the secrets that a URL held, such as its password, as options of the driver."""
    return dict(_SECRETS.get(address, {}))


def schema_of(address: str) -> str:
    """Return the schema that holds the tables: "public", or the one that the URL's options name.

    It is never "$user": another user who may create schemas could then replace the tables.

    >>> schema_of("postgresql://db/budgets?options=-csearch_path%3Dteam")
    'team'
    """
    options = unquote(address.partition("?")[2])
    match = _SCHEMA.search(options)
    if match is None and "search_path" in options:
        raise ParameterError(
            "ledger",
            address,
            expected="one schema as its search_path, in small letters",
            remedy="write ?options=-csearch_path%3Dteam, say",
        )
    return "public" if match is None else match.group(1)


def _without_secrets(url: str) -> str:
    """Return the URL with secrets taken out, and remember them for connecting."""
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError
    secrets: dict[str, str] = {}
    shown_options = []
    for option in (parts["query"] or "").split("&"):
        name, _, value = option.partition("=")
        if _SECRET.search(unquote(name)):
            secrets[unquote(name)] = unquote(value)
        elif _SHOWN.fullmatch(name):
            shown_options.append(option)
        elif option:
            raise ValueError
    if parts["password"]:
        secrets["password"] = unquote(parts["password"])
    user = "" if parts["user"] is None else f"{parts['user']}@"
    query = f"?{'&'.join(shown_options)}" if shown_options else ""
    clean = f"postgresql://{user}{parts['hosts']}{parts['database'] or ''}{query}"
    if secrets:
        _SECRETS[clean] = secrets
    return clean


# -- Spending -------------------------------------------------------------------------------------
# The entries that are written when an account is opened, debited, refunded or raised.


def as_budget(value: Rational, name: str) -> Fraction:
    """Return an amount of ε; a float means the decimal that it prints as."""
    exact = decimal_meant(value, name)
    require(0 < exact <= 10**6, name, value, "a number above 0, at most 1e6", 'pass "1", say')
    return exact


def as_name(value: Any, name: str) -> str:
    """Return a name or a reason, which must be a text of one line."""
    require(
        type(value) is str and value.strip() == value != "" and value.isprintable(),
        name,
        value,
        expected="a text of one line",
        remedy="pass a few words",
    )
    return str(value)


def check_same(
    account: Balance,
    limit: Fraction | None,
    neighbors: Neighbors | None,
    unit: str | None,
    *,
    convert: bool,
) -> None:
    """Refuse a budget, neighbors or a unit that differ from those of an existing account.

    With `convert` the neighbors and the unit may differ: each debit is converted or refused then.
    """
    budget = None if account.limit is None else number_text(account.limit)
    remedy = "leave it out, or call ledger.raise_budget(to, reason)"
    expected = f"{budget}, the budget of this account"
    require(limit in (None, account.limit), "budget", limit, expected, remedy)
    remedy = "leave it out, or open another account"
    for name, argument, stated in (
        ("neighbors", neighbors, account.neighbors),
        ("unit", unit, account.unit),
    ):
        same = convert or argument in (None, stated)
        require(same, name, argument, f"{stated!r}, as in this account", remedy)


def first_entries(
    key: Key, limit: Fraction, neighbors: Neighbors | None, unit: str | None
) -> list[Row]:
    """Return the first two entries of a new ledger: its id and format, and its first account."""
    now = timestamp("")
    one = seal(1, {"kind": "ledger", "format": FORMAT, "id": new_id(), "time": now}, START)
    opening = _account(key, limit, neighbors or Neighbors.REPLACE, unit, now)
    return [one, seal(2, opening, one[3])]


def open_account(
    store: Store,
    balances: Balances,
    key: Key,
    limit: Fraction | None,
    neighbors: Neighbors | None,
    unit: str | None,
) -> None:
    """Write the entry that opens an account; an analyst's must fit the data set's."""
    data, analyst = key
    relation = neighbors or Neighbors.REPLACE
    if analyst is None:
        if limit is None:
            balances.balance(key)  # raises the error that names the known accounts
    else:
        data_set = balances.balance((data, None))
        require(
            neighbors in (None, data_set.neighbors) and unit in (None, data_set.unit),
            "neighbors, unit",
            (neighbors, unit),
            expected="those of the data set's account",
            remedy="leave them out",
        )
        relation, unit = data_set.neighbors, data_set.unit
    now = timestamp(balances.time)
    store.append(_account(key, limit, relation, unit, now))


def checked_price(store: Store, balances: Balances, key: Key, charge: Charge) -> Fraction:
    """Return the price of a release; refuse one that exceeds the budget or was released before."""
    account = balances.balance(key)
    amount = booked(charge.epsilon, neighbors=charge.neighbors, unit=charge.unit, account=account)
    if charge.question is not None and not charge.again:
        _refuse_repeated(store, balances, charge, key[0])
    balances.check(key, amount)
    return amount


def debit(store: Store, balances: Balances, key: Key, charge: Charge) -> Receipt:
    """Write a debit; refuse one that exceeds the budget or repeats an earlier question."""
    amount = checked_price(store, balances, key, charge)
    now = timestamp(balances.time)
    body = {
        "kind": "debit",
        "data": key[0],
        "analyst": key[1],
        "task": charge.task,
        "epsilon": str(charge.epsilon),
        "neighbors": charge.neighbors.value,
        "unit": charge.unit,
        "booked": str(amount),
        "question": charge.question,
        "certificate": charge.certificate,
        "record": charge.record,
        "time": now,
    }
    row = store.append(body)
    return Receipt(ledger=balances.id, entry=row[0], hash=row[3], time=now)


def take_back(store: Store, balances: Balances, receipt: Receipt, reason: str) -> None:
    """Write an entry that undoes a debit, unless it is undone already or is not in this ledger."""
    row = store.find(receipt.entry)
    if row is None or row[3] != receipt.hash or receipt.entry in balances.returned:
        return
    debited = json.loads(row[2])
    fields = {name: debited[name] for name in ("data", "analyst", "booked")}
    body = {"kind": "return", **fields, "of": receipt.entry, "reason": reason}
    store.append({**body, "time": timestamp(balances.time)})


def raise_budget(store: Store, balances: Balances, key: Key, limit: Fraction, reason: str) -> None:
    """Write an entry that raises the budget of an account."""
    old = balances.balance(key).limit
    stated = "none" if old is None else number_text(old)
    require(
        old is not None and limit > old,
        "to",
        number_text(limit),
        expected=f"more than the present budget, {stated}",
        remedy="pass a larger number: a budget can only be raised",
    )
    body = {"kind": "raise", "data": key[0], "analyst": key[1], "limit": str(limit)}
    store.append({**body, "reason": reason, "time": timestamp(balances.time)})


def priced(plan: Any, account: Balance) -> Fraction:
    """Return the price of a plan, or of a number, in an account."""
    if isinstance(plan, (int, float, str, Fraction)):
        return as_usable_epsilon(plan)
    price = getattr(plan, "price", None)
    if not isinstance(price, Fraction):
        raise ParameterError(
            "plans",
            type(plan).__name__,
            expected="plans of releases under pure differential privacy",
            remedy="choose a pure method, or pass its epsilon",
        )
    claim = getattr(plan, "claim", None)
    if claim is None:
        return price
    issued = getattr(plan, "certificate", None)  # a preview has one
    unit = getattr(issued if isinstance(issued, Certificate) else plan, "unit", account.unit)
    return booked(price, neighbors=claim.neighbors, unit=unit, account=account)


def _account(
    key: Key, limit: Fraction | None, neighbors: Neighbors, unit: str | None, now: str
) -> dict[str, Any]:
    return {
        "kind": "account",
        "data": key[0],
        "analyst": key[1],
        "limit": None if limit is None else str(limit),
        "neighbors": neighbors.value,
        "unit": unit,
        "time": now,
    }


def _refuse_repeated(store: Store, balances: Balances, charge: Charge, data: str) -> None:
    """Refuse to pay twice for a question whose earlier release is free to load."""
    before: list[tuple[int, str, str | None]] = []
    for number in store.entries_of_question(charge.question or ""):
        row = store.find(number)
        body = {} if row is None else json.loads(row[2])
        if number not in balances.returned and body.get("data") == data:
            places = store.saved(number)
            before.append((number, body["time"], places[-1][0] if places else None))
    if not before:
        return
    number, when, place = next((entry for entry in before if entry[2] is not None), before[0])
    saved = "if it was saved" if place is None else f"saved as {place!r}"
    raise BudgetError(
        f"{charge.task} was released before, at the same epsilon: entry {number} of {when}. That "
        f"release is free: load it with zd.load, {saved}; or pay once more with again=True."
    )
