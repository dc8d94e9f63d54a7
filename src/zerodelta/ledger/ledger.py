"""`zd.Ledger`: how much ε may be spent on data, and what was; debited before a row is read."""

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
from zerodelta.ledger.history import History, demanded, entries_of, receipts_in, registry, verified
from zerodelta.ledger.postgres import PostgresStore, make_tables
from zerodelta.ledger.sqlite import SqliteStore, make_file
from zerodelta.ledger.store import (
    Store,
    as_address,
    as_budget,
    as_name,
    check_same,
    checked,
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

# -- Connections to a ledger at an address, by file or server, and its accounts opened or found ---


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
    made = hmac.new(key, digestmod=hashlib.sha256)
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
    return made.hexdigest()


def place_of(path: str) -> str:
    """Return what is noted of a path that was opened."""
    return "path " + hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


def refuse_second_name(address: str, data: str, places: Sequence[str]) -> None:
    """Refuse to open an account of files that have one under another name."""
    if not places or not (is_url(address) or os.path.lexists(address)):
        return
    names: list[str] = []
    with suppress(LedgerError), reading(address) as (store, balances):  # told when it is opened
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
    """Note which files an account was opened for, if this user may."""
    with suppress(LedgerError):  # one who only may debit opens no account either
        with reading(address) as (store, _):
            new = [place for place in places if data not in store.data_of(place)]
        if new:
            with writing(address) as (store, _):
                for place in new:
                    store.note_file(data, place)


DEFAULT_DATA = "data"
"""The account of data without a name."""


@final
class Ledger:
    """An account of ε, which every release debits before it reads a row.

    Use it wherever more than one question is asked: in one script, by many processes, or by a team
    (with PostgreSQL). What is spent survives a crash; a release that died on the way stays paid.

    Parameters
    ----------
    address : path or URL
        A file on a local disk, made if a budget is given and it is not there; or
        ``postgresql://user@host/database``.
    budget : number, optional
        How much ε may be spent in all. Needed once, when the account is opened; given again it must
        be the same (`raise_budget` changes it).
    data : str, optional
        The data set, by its name; a ledger may have accounts of several. By default the only one
        that it has.
    analyst : str, optional
        One who spends of the data set's budget, with `budget` as one's own limit if it is given.
    neighbors : "replace" or "add-remove", optional
        What the account adds up; by default replace. There ε for add-remove counts twice; a release
        for replace is refused in an account for add-remove.
    unit : str, optional
        Who is protected, if it is not a row; another one is refused.

    Notes
    -----
    It holds the address only: a copy, a pickle or a fork is the same account. The password of a URL
    is in none of them, nor in its repr.

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
    zerodelta.errors.BudgetError: 4/5 is asked of 'data', where 3/4 of 1 is left: nothing was \
spent or read. Load what was released, ask for epsilon='3/4' or less, or \
ledger.raise_budget(to, reason).

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
            only_data(self._address, DEFAULT_DATA) if data is None else as_name(data, "data")
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
        """Return the account of a data set, which is opened for these neighbors if it is new.

        One that there is keeps its own: each debit is converted to them, or refused. One that is
        new is refused if another name has an account of one of the same `files`.
        """
        made = _ledger_at(as_address(address), as_name(data, "name"), None)
        limit = None if budget is None else as_budget(budget, "budget")
        places = [place_of(file) for file in files]
        refuse_second_name(made._address, data, places)
        open_or_make(made._address, made._key, limit, neighbors, unit, convert=True)
        note_places(made._address, data, places)
        return made

    # -- what there is --------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The path, or the URL without its password."""
        return self._address

    @property
    def data(self) -> str:
        """The data set whose account this is."""
        return self._data

    @property
    def analyst(self) -> str | None:
        """Whose account it is, under the data set's."""
        return self._analyst

    @property
    def budget(self) -> Fraction | None:
        """How much may be spent in all; None for an analyst without a limit of one's own."""
        return self._balance().limit

    @property
    def spent(self) -> Fraction:
        """How much was spent."""
        return self._balance().spent

    @property
    def remaining(self) -> Fraction:
        """How much may still be spent: of an analyst, no more than is left for the data set."""
        with reading(self._address) as (_, balances):
            return balances.left(self._key)

    @property
    def neighbors(self) -> Neighbors:
        """Which data sets are neighbors, in this account."""
        return self._balance().neighbors

    @property
    def unit(self) -> str | None:
        """Who is protected, if it is not a row."""
        return self._balance().unit

    @property
    def entries(self) -> int:
        """How many entries the history has."""
        return self._balance().entries

    @property
    def history(self) -> History:
        """The entries of the account, of a data set those of its analysts too; print it."""
        return History(self._entries())

    @property
    def line(self) -> str:
        """What is left, in one line."""
        try:
            with reading(self._address) as (_, balances):
                account, left = balances.balance(self._key), balances.left(self._key)
        except (LedgerError, ParameterError):
            return f"budget: unknown, {self._address} cannot be read"
        whole = "" if account.limit is None else f" of {number_text(account.limit)}"
        return f"budget: {number_text(left)}{whole} left in {self._address}"

    def account(
        self,
        data: str | None = None,
        *,
        analyst: str | None = None,
        budget: Rational | None = None,
        neighbors: Neighbors | str | None = None,
        unit: str | None = None,
    ) -> Ledger:
        """Return another account of the same ledger, opened if a budget is given.

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
        """Return what several plans would cost here together, before any is run.

        Parameters
        ----------
        plans : list
            Plans of releases, or anything with a `price` (and a `claim`), or numbers.

        Returns
        -------
        Fraction
            The sum; compare it with `remaining`.

        """
        account = self._balance()
        return sum((priced(plan, account) for plan in plans), Fraction(0))

    def debit(self, charge: Charge) -> Receipt:
        """Pay for a release, durably; called by the runner, before a row is read."""
        with writing(self._address) as (store, balances):
            return debit(store, balances, self._key, charge)

    def check(self, charge: Charge) -> None:
        """Refuse what `debit` would refuse by now; called by the runner where several pay."""
        with reading(self._address) as (store, balances):
            checked(store, balances, self._key, charge)

    def _take_back(self, receipt: Receipt, reason: str) -> None:
        """Undo a debit for which no row was read; called by the runner."""
        with writing(self._address) as (store, balances):
            take_back(store, balances, receipt, reason)

    def covers(self, other: Any) -> bool:
        """Tell whether a debit here is one of the other account, too."""
        return isinstance(other, Ledger) and (
            (self._address, self._data) == (other._address, other._data)
            and other._analyst in (None, self._analyst)
        )

    def raise_budget(self, to: Rational, reason: str) -> None:
        """Allow more to be spent; an entry says so, and why.

        Parameters
        ----------
        to : number
            The new budget, above the old one.
        reason : str
            Why, for whoever reads the history.

        """
        limit, said = as_budget(to, "to"), as_name(reason, "reason")
        with writing(self._address) as (store, balances):
            raise_budget(store, balances, self._key, limit, said)

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        """Write down where a release was saved, for whoever asks the same again.

        Called by `release.save`; `verify` compares the digest. It is no entry of the chain.
        """
        with writing(self._address) as (store, _):
            store.note_saved(entry, place, digest)

    # -- recognizing the data -------------------------------------------------------------------

    def remember(self, path: str | os.PathLike[str], key: bytes) -> None:
        """Keep a keyed hash of a file of the data, so that its owner can recognize it later.

        It depends on every row, so it is kept apart: in no entry, record or export.

        Parameters
        ----------
        path : path
            The file.
        key : bytes
            A secret of at least 16 bytes, kept elsewhere: with it anyone can try guesses of rows.

        """
        mac = mac_of(path, key)
        with writing(self._address) as (store, _):
            if mac not in store.files(self._data):
                store.note_file(self._data, mac)

    def recognize(self, path: str | os.PathLike[str], key: bytes) -> bool:
        """Tell whether `remember` was given a file with the same key: not to be published."""
        mac = mac_of(path, key)
        with reading(self._address) as (store, _):
            return any(hmac.compare_digest(mac, each) for each in store.files(self._data))

    # -- checking and taking along --------------------------------------------------------------

    def verify(self, records: Iterable[Any] = ()) -> int:
        """Check every entry of the ledger against its hash, and add all up anew.

        Edits are found in the ledger itself. A removed end, or an old copy that was put back, is
        found only by what was written later: pass saved releases.

        Parameters
        ----------
        records : list, optional
            Saved releases or their records, as paths, texts, dicts or receipts.

        Returns
        -------
        int
            The number of entries.

        """
        given = list(records)  # before the ledger is held: whoever makes them may use it
        with connected(self._address) as store:
            return verified(store, given)

    def demand(self, folder: str | os.PathLike[str]) -> int:
        """Refuse this ledger unless it has the entries that saved releases name.

        A process that is new cannot know by the ledger itself that its end was removed, or an old
        copy or a new ledger put in its place; what is saved in a folder shows it. Faster than
        `verify`, which checks all.

        Parameters
        ----------
        folder : path
            Where releases are saved; other files than ``.json`` are not looked at.

        Returns
        -------
        int
            How many releases there were paid for with this ledger.

        """
        given = receipts_in(folder)  # before the ledger is held
        with reading(self._address) as (store, balances):
            return demanded(store, balances, self._data, given)

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
        fine = format in ("json", "csv", "registry")
        require(fine, "format", format, '"json", "csv" or "registry"', 'pass format="json"')
        history = self.history
        text = history.to_csv() if format == "csv" else history.to_json()
        if format == "registry":
            text = json.dumps(self.to_registry(), indent=2, ensure_ascii=False)
        write_new(path, text)

    def to_registry(self) -> dict[str, Any]:
        """Return what a registry of deployments asks for; None is for the owner to fill in."""
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
        whose = "" if self._analyst is None else f", analyst={self._analyst!r}"
        return f"Ledger({self._address!r}, data={self._data!r}{whose})"


def _ledger_at(address: str, data: str, analyst: str | None) -> Ledger:
    """Return an account that was opened before; nothing is looked up."""
    made = object.__new__(Ledger)
    made._address, made._data, made._analyst = address, data, analyst
    return made
