"""Where entries are kept: addresses, one small interface for both stores, and the spending on it.

An open connection belongs to this module, not to a ledger: a ledger holds its address only. One
process has one connection to a ledger, used by one thread at a time; a fork closes it first, so
that no child inherits one. What the process has seen of a ledger outlives its connections, and is
handed on to children: a ledger that lacks it is an older one, whoever put it there.
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


# -- Where a ledger is: a path, or the URL of a server without the secrets that were in it --------
# Secrets are kept by this process alone, apart from the addresses that ledgers hold; a process
# that was started anew takes a password from PGPASSWORD or from the file .pgpass. What is no
# address is refused without repeating it: it may hold one.

_SECRETS: dict[str, dict[str, str]] = {}
"""By address, of this process and those forked from it; in no repr, record or pickle."""

_HOST = r"(?:[^\[\]:@/?#,\s]*|\[[0-9A-Fa-f:.%]+\])(?::\d*)?"
_URL = re.compile(
    r"(?i:postgres(?:ql)?)://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^:@/?#\s]*)?(?:\?(?P<query>[^@?#\s]*))?"
)
"""As libpq reads one; what separates its parts is percent-encoded inside of them."""

_SECRET = re.compile(r"passw|secret|scram", re.IGNORECASE)
_SHOWN = re.compile(
    r"host(addr)?|port|dbname|user|options|service(file)?|passfile|replication|client_encoding"
    r"|(fallback_)?application_name|connect_timeout|target_session_attrs|load_balance_hosts"
    r"|channel_binding|require_auth|requirepeer|requiressl|tcp_user_timeout|keepalives\w*|krbsrvname"
    r"|gss\w*|ssl\w*|(min|max)_protocol_version|oauth_(issuer|client_id|scope)"
)
"""What libpq takes beside a secret; any other name is refused, as its value may be one."""

_SCHEMA = re.compile(r"search_path\s*=\s*([a-z_][a-z0-9_]*)(?![^\s&])")


def as_address(given: str | os.PathLike[str]) -> str:
    """Return the absolute path, or the URL without its secrets, which this process remembers.

    >>> as_address("POSTGRES://ana:secret@db.example/budgets?sslmode=require")
    'postgresql://ana@db.example/budgets?sslmode=require'
    """
    path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    try:
        if type(path) is str and path and "\0" not in path:
            os.fsencode(path)
            # one file, one connection: closing a second one would drop the locks of the first
            return _without_secrets(path) if may_be_url(path) else os.path.realpath(path)
    except (ValueError, OSError):  # no path or URL at all
        pass
    raise ParameterError(
        "ledger",
        expected="a path, or a URL such as postgresql://user@host/database; it is not repeated "
        "here, as it may hold a password",
        remedy='pass "people.ledger", say; in a URL write %40, %3A, %2F, %3F, %23 for @ : / ? #',
    )


def shown(given: str) -> str:
    """Return an address as it was given, without secrets, for messages.

    >>> shown("people.ledger"), shown("postgresql://ana:secret@db/budgets")
    ('people.ledger', 'postgresql://ana@db/budgets')
    """
    return as_address(given) if may_be_url(given) else given


def is_url(address: str) -> bool:
    """Tell whether an address is one of a server."""
    return address.startswith("postgresql://")


def secrets_of(address: str) -> dict[str, str]:
    """Return what a URL said that its address does not: a password, as the driver takes it."""
    return dict(_SECRETS.get(address, {}))


def schema_of(address: str) -> str:
    """Return the schema that holds the tables: "public", or what the URL's options name.

    Never that of "$user", which whoever may make schemas could put before it.

    >>> schema_of("postgresql://db/budgets?options=-csearch_path%3Dteam")
    'team'
    """
    options = unquote(address.partition("?")[2])
    found = _SCHEMA.search(options)
    if found is None and "search_path" in options:
        raise ParameterError(
            "ledger",
            address,
            expected="one schema as its search_path, in small letters",
            remedy="write ?options=-csearch_path%3Dteam, say",
        )
    return "public" if found is None else found.group(1)


def _without_secrets(url: str) -> str:
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError
    said: dict[str, str] = {}
    shown = []
    for each in (parts["query"] or "").split("&"):
        name, _, value = each.partition("=")
        if _SECRET.search(unquote(name)):
            said[unquote(name)] = unquote(value)
        elif _SHOWN.fullmatch(name):
            shown.append(each)
        elif each:
            raise ValueError
    if parts["password"]:
        said["password"] = unquote(parts["password"])
    user = "" if parts["user"] is None else f"{parts['user']}@"
    query = f"?{'&'.join(shown)}" if shown else ""
    clean = f"postgresql://{user}{parts['hosts']}{parts['database'] or ''}{query}"
    if said:
        _SECRETS[clean] = said
    return clean


# -- Spending -------------------------------------------------------------------------------------
# What is written to a ledger when something is spent, taken back, or may be spent from now on.


def as_budget(value: Rational, name: str) -> Fraction:
    """Return an amount of ε; a float means the decimal that it prints as."""
    exact = decimal_meant(value, name)
    require(0 < exact <= 10**6, name, value, "a number above 0, at most 1e6", 'pass "1", say')
    return exact


def as_name(value: Any, name: str) -> str:
    """Return a text of one line."""
    require(
        type(value) is str and value.strip() == value != "" and value.isprintable(),
        name,
        value,
        expected="a text of one line",
        remedy="say it in a few words",
    )
    return str(value)


def check_same(
    found: Balance,
    limit: Fraction | None,
    neighbors: Neighbors | None,
    unit: str | None,
    *,
    convert: bool,
) -> None:
    """Refuse to open an account as another than it is.

    With `convert` it may be for other neighbors, or another unit: each debit is looked at.
    """
    told = None if found.limit is None else number_text(found.limit)
    remedy = "leave it out, or ledger.raise_budget(to, reason)"
    require(limit in (None, found.limit), "budget", limit, f"{told}, as it is", remedy)
    remedy = "leave it out, or open another account"
    for name, given, stated in (
        ("neighbors", neighbors, found.neighbors),
        ("unit", unit, found.unit),
    ):
        same = convert or given in (None, stated)
        require(same, name, given, f"{stated!r}, as it is", remedy)


def first_entries(
    key: Key, limit: Fraction, neighbors: Neighbors | None, unit: str | None
) -> list[Row]:
    """Return the first two entries of a new ledger: what it is, and its first account."""
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
    """Write the entry of a new account."""
    data, analyst = key
    relation = neighbors or Neighbors.REPLACE
    if analyst is None:
        if limit is None:
            balances.balance(key)  # says that there is none
    else:
        whole = balances.balance((data, None))
        require(
            neighbors in (None, whole.neighbors) and unit in (None, whole.unit),
            "neighbors, unit",
            (neighbors, unit),
            expected="those of the data set's account",
            remedy="leave them out",
        )
        relation, unit = whole.neighbors, whole.unit
    now = timestamp(balances.time)
    store.append(_account(key, limit, relation, unit, now))


def checked(store: Store, balances: Balances, key: Key, charge: Charge) -> Fraction:
    """Return what a debit costs, if it is covered and was not asked before."""
    account = balances.balance(key)
    amount = booked(charge.epsilon, neighbors=charge.neighbors, unit=charge.unit, account=account)
    if charge.question is not None and not charge.again:
        _refuse_repeated(store, balances, charge, key[0])
    balances.check(key, amount)
    return amount


def debit(store: Store, balances: Balances, key: Key, charge: Charge) -> Receipt:
    """Write a debit, if it is covered and was not asked before."""
    amount = checked(store, balances, key, charge)
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
    """Write that a debit is undone; once, and only that very one."""
    row = store.find(receipt.entry)
    if row is None or row[3] != receipt.hash or receipt.entry in balances.returned:
        return
    undone = json.loads(row[2])
    fields = {name: undone[name] for name in ("data", "analyst", "booked")}
    body = {"kind": "return", **fields, "of": receipt.entry, "reason": reason}
    store.append({**body, "time": timestamp(balances.time)})


def raise_budget(store: Store, balances: Balances, key: Key, limit: Fraction, reason: str) -> None:
    """Write that more may be spent."""
    old = balances.balance(key).limit
    told = "none" if old is None else number_text(old)
    require(
        old is not None and limit > old,
        "to",
        number_text(limit),
        expected=f"more than the budget, {told}",
        remedy="a budget can only be raised",
    )
    body = {"kind": "raise", "data": key[0], "analyst": key[1], "limit": str(limit)}
    store.append({**body, "reason": reason, "time": timestamp(balances.time)})


def priced(plan: Any, account: Balance) -> Fraction:
    """Return what a plan, or a number, costs in an account."""
    if isinstance(plan, (int, float, str, Fraction)):
        return as_usable_epsilon(plan)
    price = getattr(plan, "price", None)
    if not isinstance(price, Fraction):
        raise ParameterError(
            "plans",
            type(plan).__name__,
            expected="plans of pure releases",
            remedy="choose a pure method, or pass its epsilon",
        )
    claim = getattr(plan, "claim", None)
    if claim is None:
        return price
    issued = getattr(plan, "certificate", None)  # that of a preview
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
    before: list[tuple[int, str, str | None]] = []
    for number in store.asked(charge.question or ""):
        row = store.find(number)
        body = {} if row is None else json.loads(row[2])
        if number not in balances.returned and body.get("data") == data:
            places = store.saved(number)
            before.append((number, body["time"], places[-1][0] if places else None))
    if not before:
        return
    number, when, place = next((each for each in before if each[2] is not None), before[0])
    saved = "if it was saved" if place is None else f"saved as {place!r}"
    raise BudgetError(
        f"{charge.task} was asked before, at the same epsilon: entry {number} of {when}. That "
        f"release is free: load it with zd.load, {saved}; or pay once more with again=True."
    )
