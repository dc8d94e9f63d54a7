"""Read a ledger's entries, check the chain of their hashes, and add up the balance of each account.

Every entry is checked by the rules for writing it: one that books less than its ε, spends more
than remains, or opens an account a second time is refused, even if its hash is right.

A data set has an account; analysts may have accounts under it. What an analyst spends is debited
from the data set's account too. In a replace account an add-remove debit counts twice; a replace
debit cannot be converted for an add-remove account (theory H), nor one unit into another.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import BudgetError, LedgerError, ParameterError
from zerodelta.exact.rational import number_text
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- Chain ----------------------------------------------------------------------------------------
# Entries are numbered and never changed; each is sealed with the hash of all entries before it.
#
# hash = SHA-256(hash of the entry before + newline + the entry as JSON)
#
# Nothing in an entry is computed from rows: it states the question, its price and the time.

FORMAT = 1
"""Version of the entries' format; a ledger with a later version is refused."""

START = "0" * 64
"""The hash that the first entry follows."""

_NUMBER = re.compile(r"[0-9]+(/[0-9]+)?")
"""A fraction as `str` writes it. Exponents are refused: 1e999999999 would exhaust the memory."""

Row = tuple[int, "str | None", str, str]
"""An entry as it is stored: number, question, body, hash."""


@value
class Entry:
    """One entry whose hash was checked."""

    number: int
    kind: str
    body: Mapping[str, Any]
    hash: str

    @property
    def question(self) -> str | None:
        """The hash of the question that was paid for, if the entry has one."""
        question = self.body.get("question")
        return question if isinstance(question, str) else None


def seal(number: int, body: Mapping[str, Any], before: str) -> Row:
    """Return the row of an entry that follows the one with hash `before`.

    >>> row = seal(1, {"kind": "ledger"}, START)
    >>> row[2], len(row[3])
    ('{"kind":"ledger","number":1}', 64)
    """
    text = json.dumps({**body, "number": number}, sort_keys=True, separators=(",", ":"))
    question = body.get("question")
    return number, question, text, _hash(before, text)


def checked_entry(row: Row, number: int, before: str, *, name: str) -> Entry:
    """Return the entry that a row holds; refuse a number or a hash that is wrong."""
    stored_number, question, text, stated_hash = row
    if stored_number != number:
        raise damaged(name, f"entry {number} is missing")
    if type(text) is not str or _hash(before, text) != stated_hash:
        raise damaged(name, f"entry {number} does not fit its hash: it was changed")
    try:
        body = json.loads(text)
        entry = Entry(number=body["number"], kind=body["kind"], body=body, hash=stated_hash)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(name, f"entry {number} cannot be read") from None
    if entry.number != number or entry.question != question:
        raise damaged(name, f"entry {number} differs from the number or question stored beside it")
    return entry


def damaged(name: str, reason: str) -> LedgerError:
    """Return the error for a ledger whose entries were changed, removed or cut off."""
    return LedgerError(
        f"the ledger {name} cannot be trusted: {reason}. Nothing was changed or spent. Keep it as "
        "it is, restore the latest backup, and check the backup against saved releases with "
        "ledger.verify(records=[…]); see docs/ledger.md."
    )


def number_of(text: Any) -> Fraction:
    """Return the positive fraction that a field of an entry states; raise ValueError otherwise."""
    if type(text) is not str or len(text) > 10_000 or _NUMBER.fullmatch(text) is None:
        raise ValueError
    number = Fraction(text)
    if number <= 0:
        raise ValueError
    return number


def new_id() -> str:
    """Return a random id for a new ledger, which records of its releases state."""
    return secrets.token_hex(16)


def timestamp(last: str) -> str:
    """Return the time now (UTC), or that of the last entry if the clock was set back.

    >>> timestamp("9999-01-01T00:00:00Z")
    '9999-01-01T00:00:00Z'
    """
    return max(last, datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _hash(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


_LARGEST_DENOMINATOR, _UNIT = 10**9, 10**30
"""Amounts with a larger denominator are booked as multiples of 1/10^30, rounded up.
Decimals of up to thirty places are booked exactly."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

Key = tuple[str, "str | None"]
"""An account: the name of the data set, and of the analyst (None: the data set's own account)."""


@final
@dataclass(kw_only=True, slots=True)
class Balance:
    """The budget of one account, and what was spent from it."""

    limit: Fraction | None
    """The budget; None for an analyst limited only by the data set's budget."""
    neighbors: Neighbors
    unit: str | None
    spent: Fraction = Fraction(0)
    entries: int = 0
    """Number of entries about it; a data set's account counts those of its analysts too."""


@final
@dataclass(kw_only=True, slots=True)
class Balances:
    """All accounts of one ledger, from its first entry to the latest that was read."""

    name: str
    """The name of the ledger in messages."""
    id: str = ""
    number: int = 0
    hash: str = START
    time: str = ""
    accounts: dict[Key, Balance] = field(default_factory=dict)
    returned: set[int] = field(default_factory=set)
    """The numbers of the debits that were taken back."""

    def add(self, row: Row, find: Callable[[int], Row | None]) -> Entry:
        """Check the next entry and apply it to its account; `find` reads an earlier entry."""
        entry = checked_entry(row, self.number + 1, self.hash, name=self.name)
        try:
            self._apply(entry, find)
        except LedgerError:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError, BudgetError):
            raise damaged(self.name, f"entry {entry.number} breaks the rules for entries") from None
        self.number, self.hash, self.time = entry.number, entry.hash, entry.body["time"]
        return entry

    def _apply(self, entry: Entry, find: Callable[[int], Row | None]) -> None:
        """Check an entry by its kind and book it; any entry that does not fit raises."""
        body = entry.body
        if (entry.number == 1) is not (entry.kind == "ledger"):
            raise ValueError
        if entry.kind == "ledger" and (type(body["format"]) is not int or body["format"] > FORMAT):
            raise too_new(self.name)
        if not _is_time(body["time"]) or body["time"] < self.time:
            raise ValueError
        if entry.kind == "ledger":
            self.id = _text(body["id"])
            return
        key = _text(body["data"]), None if body["analyst"] is None else _text(body["analyst"])
        apply = {"account": self._open, "raise": self._raise, "debit": self._debit}
        if entry.kind == "return":
            self._return(key, entry, find)
        elif entry.kind in apply:
            apply[entry.kind](key, body)
        else:
            raise ValueError
        for account in _debited(key):
            self.accounts[account].entries += 1

    def _open(self, key: Key, body: Mapping[str, Any]) -> None:
        """Book the opening of an account; a second opening is refused."""
        limit = None if body["limit"] is None else number_of(body["limit"])
        unit = None if body["unit"] is None else _text(body["unit"])
        account = Balance(limit=limit, neighbors=Neighbors(body["neighbors"]), unit=unit)
        if key[1] is None:
            allowed = limit is not None
        else:
            data_set = self.accounts[key[0], None]
            allowed = (data_set.neighbors, data_set.unit) == (account.neighbors, account.unit)
        if key in self.accounts or not allowed:  # a second opening would reset what was spent
            raise ValueError
        self.accounts[key] = account

    def _raise(self, key: Key, body: Mapping[str, Any]) -> None:
        """Book a raised budget; one that is not higher is refused."""
        account, limit = self.accounts[key], number_of(body["limit"])
        if account.limit is None or limit <= account.limit:
            raise ValueError
        account.limit = limit

    def _debit(self, key: Key, body: Mapping[str, Any]) -> None:
        """Book a debit after computing its amount again and checking the budget."""
        account, relation = self.accounts[key], Neighbors(body["neighbors"])
        amount = number_of(body["booked"])
        epsilon = number_of(body["epsilon"])
        if amount != booked(epsilon, neighbors=relation, unit=body["unit"], account=account):
            raise ValueError
        for name in ("task", "certificate", "record"):
            _text(body[name])
        self.check(key, amount)
        self._spend(key, amount)

    def _return(self, key: Key, entry: Entry, find: Callable[[int], Row | None]) -> None:
        """Book the return of one earlier debit, in full and once."""
        of, body = entry.body["of"], entry.body
        if type(of) is not int or not 0 < of < entry.number or of in self.returned:
            raise ValueError
        debit = _body_of(find(of))
        same = all(debit[name] == body[name] for name in ("data", "analyst", "booked"))
        if debit["kind"] != "debit" or not same:
            raise ValueError
        self.returned.add(of)
        self._spend(key, -number_of(body["booked"]))

    def _spend(self, key: Key, amount: Fraction) -> None:
        for account in _debited(key):
            self.accounts[account].spent += amount

    def balance(self, key: Key) -> Balance:
        """Return the balance of an account; refuse one that was never opened."""
        account = self.accounts.get(key)
        if account is None:
            data, analyst = key
            unknown_data = analyst is None or (data, None) not in self.accounts
            known = sorted({name for name, _ in self.accounts})
            raise ParameterError(
                "data" if unknown_data else "analyst",
                data if unknown_data else analyst,
                expected=f"an account of the ledger {self.name}, which has {known[:10]}",
                remedy="open it: zd.Ledger(path, budget=…, data=…)",
            )
        return account

    def remaining(self, key: Key) -> Fraction:
        """Return what may still be spent: the smaller of the account's and the data set's rest."""
        balances = [self.balance(account) for account in _debited(key)]
        rests = [balance.limit - balance.spent for balance in balances if balance.limit is not None]
        return max(min(rests), Fraction(0))

    def check(self, key: Key, amount: Fraction) -> None:
        """Refuse a debit that exceeds what remains of the account or of its data set."""
        for data, analyst in _debited(key):
            account = self.balance((data, analyst))
            if account.limit is not None and account.spent + amount > account.limit:
                owner = f"{data!r}" if analyst is None else f"{analyst!r} in {data!r}"
                rest = max(account.limit - account.spent, Fraction(0))
                less = f", ask for epsilon={number_text(rest)!r} or less" if rest else ""
                raise BudgetError(
                    f"this release costs {number_text(amount)}, but {number_text(rest)} of "
                    f"{number_text(account.limit)} is left in the account of {owner}: nothing was "
                    f"spent or read. Load an earlier release{less}, or call "
                    "ledger.raise_budget(to, reason)."
                )


def _debited(key: Key) -> list[Key]:
    """Return the accounts that a debit of this one concerns: itself, and that of its data set."""
    return list(dict.fromkeys([key, (key[0], None)]))


def booked(
    epsilon: Fraction, *, neighbors: Neighbors, unit: str | None, account: Balance
) -> Fraction:
    """Return the price of a release in an account, converted to the account's neighbors.

    >>> account = Balance(limit=Fraction(1), neighbors=Neighbors.REPLACE, unit=None)
    >>> booked(Fraction(1, 4), neighbors=Neighbors.ADD_REMOVE, unit=None, account=account)
    Fraction(1, 2)
    """
    if unit != account.unit:
        raise ParameterError(
            "unit",
            unit,
            expected=f"{_unit_text(account.unit)}, the unit that this account protects",
            remedy="open another account for these data: zd.Ledger(path, budget=…, data=…, unit=…)",
        )
    if neighbors is account.neighbors:
        return _bookable(epsilon)
    if account.neighbors is Neighbors.ADD_REMOVE:
        raise ParameterError(
            "neighbors",
            neighbors.value,
            expected="add-remove, as in this account: a replace claim cannot be converted to it",
            remedy='open the data with neighbors="add-remove", or pay from a "replace" account',
        )
    return _bookable(2 * epsilon)  # one row replaced is one removed and one added


def _bookable(amount: Fraction) -> Fraction:
    """Return an amount, rounded up if its denominator is large, so that sums stay short.

    >>> _bookable(Fraction(1, 3)), 10**30 * _bookable(Fraction(1, 3**40))
    (Fraction(1, 3), Fraction(82252633400, 1))
    """
    if amount.denominator <= _LARGEST_DENOMINATOR:
        return amount
    return Fraction(-(-amount.numerator * _UNIT // amount.denominator), _UNIT)


def _unit_text(unit: str | None) -> str:
    return "None (one row)" if unit is None else repr(unit)


def too_new(name: str) -> LedgerError:
    """Return the error for a ledger that a later version has written."""
    return LedgerError(
        f"the ledger {name} was made by a newer zerodelta and was not changed: upgrade with "
        "pip install --upgrade zerodelta."
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError
    return value


def _is_time(value: Any) -> bool:
    return type(value) is str and _TIME.fullmatch(value) is not None


def _body_of(row: Row | None) -> dict[str, Any]:
    """Return the JSON body of a stored entry; raises if there is no entry."""
    if row is None:
        raise ValueError
    body: dict[str, Any] = json.loads(row[2])
    return body
