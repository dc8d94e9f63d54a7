"""Keep an account of ε for a data set, debited before a row is read: `zd.Ledger`."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from zerodelta.data.source import Charge, Receipt
from zerodelta.errors import LedgerError, ParameterError, require
from zerodelta.exact.rational import Rational, number_text
from zerodelta.ledger.balances import Balance, Balances, Entry, Key
from zerodelta.ledger.history import (
    History,
    count_paid,
    entries_of,
    receipts_in,
    registry,
    verify_entries,
)
from zerodelta.ledger.postgres import PostgresStore, make_tables
from zerodelta.ledger.sqlite import SqliteStore, make_file
from zerodelta.ledger.store import (
    Store,
    as_address,
    as_budget,
    as_name,
    check_same,
    checked_price,
    debit,
    first_entries,
    is_url,
    open_account,
    priced,
    raise_budget,
    take_back,
    using,
)
from zerodelta.privacy.parameters import Neighbors, as_unit
from zerodelta.privacy.readable import write_new
from zerodelta.privacy.verify import as_neighbors

# -- Connections to a ledger at an address (a file or a server), and opening its accounts ---------


def connected(address: str) -> AbstractContextManager[Store]:
    """Hold the only connection that this process has to a ledger."""
    return using(address, lambda: (PostgresStore if is_url(address) else SqliteStore)(address))


@contextmanager
def writing(address: str) -> Iterator[tuple[Store, Balances]]:
    """Hold the only write transaction; yield the store and the current balances."""
    with connected(address) as store:
        store.prepare()
        with store.writing():
            yield store, store.catch_up()
        store.settle()


@contextmanager
def reading(address: str) -> Iterator[tuple[Store, Balances]]:
    """Hold a read transaction; yield the store and the current balances."""
    with connected(address) as store, store.reading():
        yield store, store.catch_up()


def only_data_set(address: str, default: str) -> str:
    """Return the only data set that has an account in a ledger, or `default` if none has one.

    A damaged ledger raises no error here: opening it, which comes next, does.
    """
    known: list[str] = []
    if is_url(address) or os.path.lexists(address):
        with suppress(LedgerError), reading(address) as (_, balances):
            known = [data for data, analyst in balances.accounts if analyst is None]
    require(
        len(known) <= 1,
        "data",
        None,
        expected=f"the name of one of the data sets of this ledger, {known[:10]}",
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
    """Check that an account exists, or open it; create the ledger if there is none.

    With `convert` an existing account may have other neighbors or another unit: each debit is
    converted then.
    """
    server = is_url(address)
    absent = server or not os.path.lexists(address)
    if absent and limit is not None and key[1] is None:
        make = make_tables if server else make_file
        make(address, first_entries(key, limit, neighbors, unit))
    with reading(address) as (_, balances):
        account = balances.accounts.get(key)
    if account is None:
        with writing(address) as (store, balances):
            account = balances.accounts.get(key)  # another process may have been faster
            if account is None:
                open_account(store, balances, key, limit, neighbors, unit)
                return
    check_same(account, limit, neighbors, unit, convert=convert)


# -- Recognition ----------------------------------------------------------------------------------
# Hashes by which data are recognized: of files, with a key, and of the paths that were opened.
#
# A keyed hash depends on every row, so it is in no entry, record or export: whoever knows the key
# could try out guesses of rows. That of a path depends on no row. It shows that a file which has
# an account is opened under a second name, where its rows would have a second budget.


def mac_of(path: str | os.PathLike[str], key: bytes) -> str:
    """Return the HMAC-SHA256 of a file."""
    require(
        type(key) is bytes and len(key) >= 16,
        "key",
        expected="a secret of at least 16 bytes",
        remedy="keep secrets.token_bytes(32) somewhere safe, and pass it",
    )
    mac = hmac.new(key, digestmod=hashlib.sha256)
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            mac.update(block)
    return mac.hexdigest()


def place_of(path: str) -> str:
    """Return the text that a ledger notes about a path that was opened: a hash of the path."""
    return "path " + hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


def refuse_second_name(address: str, data: str, places: Sequence[str]) -> None:
    """Refuse a new account for files that already have an account under another name."""
    if not places or not (is_url(address) or os.path.lexists(address)):
        return
    names: list[str] = []
    with suppress(LedgerError), reading(address) as (store, balances):  # opening it says why
        if (data, None) not in balances.accounts:
            names = [name for place in places for name in store.data_of(place)]
    if names:
        raise ParameterError(
            "name",
            data,
            expected=f"{names[0]!r}, under which this file has an account here: another name is "
            "another budget for the same people",
            remedy=f"use name={names[0]!r}; if these are other data, open their account first: "
            "zd.Ledger(path, budget=…, data=…)",
        )


def note_places(address: str, data: str, places: Sequence[str]) -> None:
    """Note the files that an account was opened for, if this user may write notes."""
    with suppress(LedgerError):  # a user who may only debit cannot open an account either
        with reading(address) as (store, _):
            new = [place for place in places if data not in store.data_of(place)]
        if new:
            with writing(address) as (store, _):
                for place in new:
                    store.note_file(data, place)


DEFAULT_DATA = "data"
"""The name of the account for data without a name."""


@final
class Ledger:
    """Keep an account of ε, which every release debits before it reads a row.

    Use it wherever more than one question is asked: in one script, by many processes, or by a team
    (with PostgreSQL). Debits survive a crash; the ε of a release that crashed stays spent.

    Parameters
    ----------
    address : path or URL
        A file on a local disk, created if it does not exist and a budget is passed; or
        ``postgresql://user@host/database``.
    budget : number, optional
        The total ε that may be spent. Needed once, to open the account; later calls may leave it
        out, or pass the same number (`raise_budget` changes it).
    data : str, optional
        The name of the data set; a ledger may have accounts of several. Optional if the ledger has
        only one.
    analyst : str, optional
        The name of an analyst who spends from the data set's budget, at most `budget` if that is
        passed.
    neighbors : "replace" or "add-remove", optional
        The relation for which the account adds up ε; replace by default. In a replace account the ε
        of an add-remove release counts twice; an add-remove account refuses replace releases.
    unit : str, optional
        The unit that is protected, such as "person"; by default one row. Releases for another unit
        are refused.

    Notes
    -----
    A `Ledger` object holds the address only: a copy, a pickle or a fork is the same account. The
    password of a URL is in none of them, nor in the repr.

    Examples
    --------
    >>> import tempfile, numpy as np, zerodelta as zd
    >>> ledger = zd.Ledger(tempfile.mkdtemp() + "/budget.db", budget="1")
    >>> ages = np.arange(100_000) % 101
    >>> round(zd.mean(ages, bounds=(0, 120), epsilon="1/4", ledger=ledger).value)
    50
    >>> ledger.remaining
    Fraction(3, 4)
    >>> zd.mean(ages, bounds=(0, 120), epsilon=0.8, ledger=ledger)
    Traceback (most recent call last):
    ...
    zerodelta.errors.BudgetError: this release costs 4/5, but 3/4 of 1 is left in the account of \
'data': nothing was spent or read. Load an earlier release, ask for epsilon='3/4' or less, or \
call ledger.raise_budget(to, reason).

    """

    __slots__ = ("_address", "_analyst", "_data")

    _address: str
    _data: str
    _analyst: str | None

    def __init__(
        self,
        address: str | os.PathLike[str],
        *,
        budget: Rational | None = None,
        data: str | None = None,
        analyst: str | None = None,
        neighbors: Neighbors | str | None = None,
        unit: str | None = None,
    ) -> None:
        self._address = as_address(address)
        self._data = (
            only_data_set(self._address, DEFAULT_DATA) if data is None else as_name(data, "data")
        )
        self._analyst = None if analyst is None else as_name(analyst, "analyst")
        open_or_make(
            self._address,
            self._key,
            None if budget is None else as_budget(budget, "budget"),
            None if neighbors is None else as_neighbors(neighbors),
            as_unit(unit),
        )

    @staticmethod
    def of_data(
        address: str | os.PathLike[str],
        data: str,
        *,
        budget: Rational | None,
        neighbors: Neighbors,
        unit: str | None,
        files: Sequence[str] = (),
    ) -> Ledger:
        """Return the account of a data set; open it with these neighbors if it is new.

        An existing account keeps its neighbors: each debit is converted to them, or refused. A new
        account is refused if one of the `files` has an account under another name.
        """
        ledger = _ledger_at(as_address(address), as_name(data, "name"), None)
        limit = None if budget is None else as_budget(budget, "budget")
        places = [place_of(file) for file in files]
        refuse_second_name(ledger._address, data, places)
        open_or_make(ledger._address, ledger._key, limit, neighbors, unit, convert=True)
        note_places(ledger._address, data, places)
        return ledger

    # -- the account ----------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The path, or the URL without its password."""
        return self._address

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self._data

    @property
    def analyst(self) -> str | None:
        """The name of the analyst, or None for the data set's own account."""
        return self._analyst

    @property
    def budget(self) -> Fraction | None:
        """The total ε that may be spent; None for an analyst without a limit of their own."""
        return self._balance().limit

    @property
    def spent(self) -> Fraction:
        """The ε that was spent so far."""
        return self._balance().spent

    @property
    def remaining(self) -> Fraction:
        """The ε that may still be spent; for an analyst, at most what is left for the data set."""
        with reading(self._address) as (_, balances):
            return balances.remaining(self._key)

    @property
    def neighbors(self) -> Neighbors:
        """The neighboring relation for which the account adds up ε."""
        return self._balance().neighbors

    @property
    def unit(self) -> str | None:
        """The unit that is protected, or None for one row."""
        return self._balance().unit

    @property
    def entries(self) -> int:
        """The number of entries in the history."""
        return self._balance().entries

    @property
    def history(self) -> History:
        """The entries of the account, for a data set those of its analysts too; print it."""
        return History(self._entries())

    @property
    def line(self) -> str:
        """One line that says how much ε is left."""
        try:
            with reading(self._address) as (_, balances):
                account, rest = balances.balance(self._key), balances.remaining(self._key)
        except (LedgerError, ParameterError):
            return f"budget: unknown, {self._address} cannot be read"
        total = "" if account.limit is None else f" of {number_text(account.limit)}"
        return f"budget: {number_text(rest)}{total} left in {self._address}"

    def account(
        self,
        data: str | None = None,
        *,
        analyst: str | None = None,
        budget: Rational | None = None,
        neighbors: Neighbors | str | None = None,
        unit: str | None = None,
    ) -> Ledger:
        """Return another account of the same ledger; open it if a budget is passed.

        Parameters
        ----------
        data : str, optional
            The data set; by default this one.
        analyst, budget, neighbors, unit : optional
            As for `Ledger`.

        Returns
        -------
        Ledger
            The account.

        """
        return Ledger(
            self._address,
            budget=budget,
            data=self._data if data is None else data,
            analyst=analyst,
            neighbors=neighbors,
            unit=unit,
        )

    # -- spending -------------------------------------------------------------------------------

    def price(self, plans: Iterable[Any]) -> Fraction:
        """Return what several plans together would cost in this account, before any is run.

        Parameters
        ----------
        plans : list
            Plans of releases, other objects with a `price` (and a `claim`), or numbers.

        Returns
        -------
        Fraction
            The sum of their prices; compare it with `remaining`.

        """
        account = self._balance()
        return sum((priced(plan, account) for plan in plans), Fraction(0))

    def debit(self, charge: Charge) -> Receipt:
        """Pay for a release, durably; the runner calls it before a row is read."""
        with writing(self._address) as (store, balances):
            return debit(store, balances, self._key, charge)

    def check(self, charge: Charge) -> None:
        """Refuse what `debit` would refuse; the runner calls it first when several accounts pay."""
        with reading(self._address) as (store, balances):
            checked_price(store, balances, self._key, charge)

    def _take_back(self, receipt: Receipt, reason: str) -> None:
        """Undo a debit for which no row was read; called by the runner."""
        with writing(self._address) as (store, balances):
            take_back(store, balances, receipt, reason)

    def covers(self, other: Any) -> bool:
        """Tell whether a debit in this account is also a debit in the other account."""
        return isinstance(other, Ledger) and (
            (self._address, self._data) == (other._address, other._data)
            and other._analyst in (None, self._analyst)
        )

    def raise_budget(self, to: Rational, reason: str) -> None:
        """Raise the budget; an entry states the new budget and the reason.

        Parameters
        ----------
        to : number
            The new budget, above the old one.
        reason : str
            The reason, for readers of the history.

        """
        limit, stated_reason = as_budget(to, "to"), as_name(reason, "reason")
        with writing(self._address) as (store, balances):
            raise_budget(store, balances, self._key, limit, stated_reason)

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        """Note where a release was saved, so that whoever repeats its question can load it instead.

        Called by `release.save`; `verify` compares the digest. The note is no entry of the chain.
        """
        with writing(self._address) as (store, _):
            store.note_saved(entry, place, digest)

    # -- recognizing the data -------------------------------------------------------------------

    def remember(self, path: str | os.PathLike[str], key: bytes) -> None:
        """Keep a keyed hash of a file of the data, so that its owner can recognize it later.

        The hash depends on every row, so it is in no entry, record or export.

        Parameters
        ----------
        path : path
            The file.
        key : bytes
            A secret of at least 16 bytes, kept elsewhere: with it anyone can test guesses of rows.

        """
        mac = mac_of(path, key)
        with writing(self._address) as (store, _):
            if mac not in store.files(self._data):
                store.note_file(self._data, mac)

    def recognize(self, path: str | os.PathLike[str], key: bytes) -> bool:
        """Tell whether `remember` hashed this file with the same key; the answer is not private."""
        mac = mac_of(path, key)
        with reading(self._address) as (store, _):
            return any(hmac.compare_digest(mac, known) for known in store.files(self._data))

    # -- checking and exporting -----------------------------------------------------------------

    def verify(self, records: Iterable[Any] = ()) -> int:
        """Check the hash of every entry in the ledger, and add all entries up from the first one.

        Edited entries are detected in the ledger itself. Removed last entries, or an old copy that
        was put back, can be detected only by releases saved later: pass them as `records`.

        Parameters
        ----------
        records : list, optional
            Saved releases or their records, as paths, texts, dicts or receipts.

        Returns
        -------
        int
            The number of entries.

        """
        releases = list(
            records
        )  # before the ledger is held: a generator of them may use the ledger
        with connected(self._address) as store:
            return verify_entries(store, releases)

    def demand(self, folder: str | os.PathLike[str]) -> int:
        """Refuse this ledger unless it has the entries that saved releases name.

        A new process cannot see in the ledger itself that its last entries were removed, or that an
        old copy or a new ledger was put in its place; releases saved in a folder show it. Faster
        than `verify`, which checks all entries.

        Parameters
        ----------
        folder : path
            The folder of saved releases; only its ``.json`` files are read.

        Returns
        -------
        int
            The number of debits of this ledger that the saved releases name.

        """
        saved = receipts_in(folder)  # before the ledger is held
        with reading(self._address) as (store, balances):
            return count_paid(store, balances, self._data, saved)

    def export(self, path: str | os.PathLike[str], *, format: str = "json") -> None:
        """Write the history to a new file.

        Parameters
        ----------
        path : path
            The file, a new one.
        format : "json", "csv" or "registry"
            All fields of all entries; or the fields of the registry of deployments that NIST has
            proposed, as JSON.

        """
        known = format in ("json", "csv", "registry")
        require(known, "format", format, '"json", "csv" or "registry"', 'pass format="json"')
        history = self.history
        text = history.to_csv() if format == "csv" else history.to_json()
        if format == "registry":
            text = json.dumps(self.to_registry(), indent=2, ensure_ascii=False)
        write_new(path, text)

    def to_registry(self) -> dict[str, Any]:
        """Return the fields of a deployment registry; the owner fills in those that are None."""
        entries = self._entries()
        with reading(self._address) as (_, balances):
            return registry(balances, self._key, entries)

    @property
    def _key(self) -> Key:
        return self._data, self._analyst

    def _balance(self) -> Balance:
        with reading(self._address) as (_, balances):
            return balances.balance(self._key)

    def _entries(self) -> list[Entry]:
        with reading(self._address) as (store, _):
            return entries_of(store.rows(0), self._key, name=self._address)

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[str, str, str | None]]:
        return _ledger_at, (self._address, self._data, self._analyst)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return (self._address, self._key) == (other._address, other._key)

    def __hash__(self) -> int:
        return hash((self._address, self._key))

    def __repr__(self) -> str:
        analyst = "" if self._analyst is None else f", analyst={self._analyst!r}"
        return f"Ledger({self._address!r}, data={self._data!r}{analyst})"


def _ledger_at(address: str, data: str, analyst: str | None) -> Ledger:
    """Return an account that was opened before, without reading the ledger."""
    ledger = object.__new__(Ledger)
    ledger._address, ledger._data, ledger._analyst = address, data, analyst
    return ledger
