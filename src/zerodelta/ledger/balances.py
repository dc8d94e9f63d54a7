"""What the entries of a ledger add up to, each held to the one before it by its hash.

Every entry is judged by the rules by which it may be written: one that books less than its ε,
spends what is not there, or opens an account once more is not added up, whatever its hash.

A data set has an account; analysts may have accounts under it. What an analyst spends is spent of
the data set, too. Under replace a debit for add-remove counts twice; the other way there is no
conversion (theory H), and one unit is never converted into another.
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
# The entries of a ledger: numbered, never changed, each sealed with the hash of all before it.
#
# hash = SHA-256(hash of the entry before + newline + the entry as JSON)
#
# Nothing in an entry is computed from rows: what was asked, what it cost, when.

FORMAT = 1
"""Of the entries; a ledger with a later one is refused."""

START = "0" * 64
"""What stands for the hash before the first entry."""

_NUMBER = re.compile(r"[0-9]+(/[0-9]+)?")
"""As `str` writes a fraction: an exponent could stand for a number that nobody can compute."""

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
        """What was asked, as a hash, if it was written down."""
        asked = self.body.get("question")
        return asked if isinstance(asked, str) else None


def seal(number: int, body: Mapping[str, Any], before: str) -> Row:
    """Return the row of an entry that follows the one with hash `before`.

    >>> row = seal(1, {"kind": "ledger"}, START)
    >>> row[2], len(row[3])
    ('{"kind":"ledger","number":1}', 64)
    """
    text = json.dumps({**body, "number": number}, sort_keys=True, separators=(",", ":"))
    question = body.get("question")
    return number, question, text, _hash(before, text)


def opened(row: Row, number: int, before: str, *, name: str) -> Entry:
    """Return the entry of a row, which must be this number, and follow the hash `before`."""
    found, question, text, stated = row
    if found != number:
        raise damaged(name, f"entry {number} is missing")
    if type(text) is not str or _hash(before, text) != stated:
        raise damaged(name, f"entry {number} does not fit its hash: it was changed")
    try:
        body = json.loads(text)
        entry = Entry(number=body["number"], kind=body["kind"], body=body, hash=stated)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(name, f"entry {number} cannot be read") from None
    if entry.number != number or entry.question != question:
        raise damaged(name, f"entry {number} is not what its row says")
    return entry


def damaged(name: str, what: str) -> LedgerError:
    """Return the error of a ledger that is not what it was when it was written."""
    return LedgerError(
        f"the ledger {name} cannot be trusted: {what}. Nothing was changed or spent. Keep it as it "
        "is, restore the latest backup, and check that against saved releases with "
        "ledger.verify(records=[…]); see docs/ledger.md."
    )


def number_of(text: Any) -> Fraction:
    """Return the positive number of an entry's field; anything odd raises ValueError."""
    if type(text) is not str or len(text) > 10_000 or _NUMBER.fullmatch(text) is None:
        raise ValueError
    number = Fraction(text)
    if number <= 0:
        raise ValueError
    return number


def new_id() -> str:
    """Return a random name for a new ledger, by which records know it."""
    return secrets.token_hex(16)


def timestamp(last: str) -> str:
    """Return the time now (UTC), but never one before that of the last entry.

    >>> timestamp("9999-01-01T00:00:00Z")
    '9999-01-01T00:00:00Z'
    """
    return max(last, datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _hash(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


_FINEST, _UNIT = 10**9, 10**30
"""Amounts with a larger denominator are booked as multiples of 1/10^30, never less than they are.
Decimals of up to thirty places stay what they are."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

Key = tuple[str, "str | None"]
"""An account: the name of the data set, and the analyst, if it is one's."""


@final
@dataclass(kw_only=True, slots=True)
class Balance:
    """One account."""

    limit: Fraction | None
    """The budget; None for an analyst without a limit of one's own."""
    neighbors: Neighbors
    unit: str | None
    spent: Fraction = Fraction(0)
    entries: int = 0
    """How many entries concern it: of a data set those of its analysts, too."""


@final
@dataclass(kw_only=True, slots=True)
class Balances:
    """All accounts of one ledger, from its first entry to the latest that was read."""

    name: str
    """Of the ledger, in messages."""
    id: str = ""
    number: int = 0
    hash: str = START
    time: str = ""
    accounts: dict[Key, Balance] = field(default_factory=dict)
    returned: set[int] = field(default_factory=set)
    """The debits that were taken back."""

    def add(self, row: Row, find: Callable[[int], Row | None]) -> Entry:
        """Check the next entry and add it up; `find` reads an earlier one."""
        entry = opened(row, self.number + 1, self.hash, name=self.name)
        try:
            self._apply(entry, find)
        except LedgerError:
            raise
        except (KeyError, TypeError, ValueError, ZeroDivisionError, BudgetError):
            raise damaged(self.name, f"entry {entry.number} makes no sense") from None
        self.number, self.hash, self.time = entry.number, entry.hash, entry.body["time"]
        return entry

    def _apply(self, entry: Entry, find: Callable[[int], Row | None]) -> None:
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
        for each in dict.fromkeys([key, (key[0], None)]):
            self.accounts[each].entries += 1

    def _open(self, key: Key, body: Mapping[str, Any]) -> None:
        limit = None if body["limit"] is None else number_of(body["limit"])
        unit = None if body["unit"] is None else _text(body["unit"])
        made = Balance(limit=limit, neighbors=Neighbors(body["neighbors"]), unit=unit)
        if key[1] is None:
            well = limit is not None
        else:
            whole = self.accounts[key[0], None]
            well = (whole.neighbors, whole.unit) == (made.neighbors, made.unit)
        if key in self.accounts or not well:  # opened once more, it would have spent nothing
            raise ValueError
        self.accounts[key] = made

    def _raise(self, key: Key, body: Mapping[str, Any]) -> None:
        account, limit = self.accounts[key], number_of(body["limit"])
        if account.limit is None or limit <= account.limit:
            raise ValueError
        account.limit = limit

    def _debit(self, key: Key, body: Mapping[str, Any]) -> None:
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
        of, body = entry.body["of"], entry.body
        if type(of) is not int or not 0 < of < entry.number or of in self.returned:
            raise ValueError
        undone = _body_of(find(of))
        same = all(undone[each] == body[each] for each in ("data", "analyst", "booked"))
        if undone["kind"] != "debit" or not same:
            raise ValueError
        self.returned.add(of)
        self._spend(key, -number_of(body["booked"]))

    def _spend(self, key: Key, amount: Fraction) -> None:
        for each in dict.fromkeys([key, (key[0], None)]):
            self.accounts[each].spent += amount

    def balance(self, key: Key) -> Balance:
        """Return an account, which must have been opened."""
        found = self.accounts.get(key)
        if found is None:
            known = sorted({data for data, _ in self.accounts})
            raise ParameterError(
                "data" if key[1] is None or (key[0], None) not in self.accounts else "analyst",
                key[0] if key[1] is None or (key[0], None) not in self.accounts else key[1],
                expected=f"an account of the ledger {self.name}, which has {known[:10]}",
                remedy="open it: zd.Ledger(path, budget=…, data=…)",
            )
        return found

    def left(self, key: Key) -> Fraction:
        """Return what may still be spent: the least of the account's and the data set's."""
        own, whole = self.balance(key), self.balance((key[0], None))
        rests = [each.limit - each.spent for each in (own, whole) if each.limit is not None]
        return max(min(rests), Fraction(0))

    def check(self, key: Key, amount: Fraction) -> None:
        """Refuse a debit that is not covered."""
        for each in dict.fromkeys([key, (key[0], None)]):
            account = self.balance(each)
            if account.limit is not None and account.spent + amount > account.limit:
                whose = f"{each[0]!r}" if each[1] is None else f"{each[1]!r} in {each[0]!r}"
                left = max(account.limit - account.spent, Fraction(0))
                less = f", ask for epsilon={number_text(left)!r} or less" if left else ""
                raise BudgetError(
                    f"{number_text(amount)} is asked of {whose}, where {number_text(left)} of "
                    f"{number_text(account.limit)} is left: nothing was spent or read. Load what "
                    f"was released{less}, or ledger.raise_budget(to, reason)."
                )


def booked(
    epsilon: Fraction, *, neighbors: Neighbors, unit: str | None, account: Balance
) -> Fraction:
    """Return what a release costs in an account, which may be for another relation.

    >>> account = Balance(limit=Fraction(1), neighbors=Neighbors.REPLACE, unit=None)
    >>> booked(Fraction(1, 4), neighbors=Neighbors.ADD_REMOVE, unit=None, account=account)
    Fraction(1, 2)
    """
    if unit != account.unit:
        raise ParameterError(
            "unit",
            unit,
            expected=f"{_whom(account.unit)}, whom this account protects",
            remedy="open another account for these data: zd.Ledger(path, budget=…, data=…, unit=…)",
        )
    if neighbors is account.neighbors:
        return _bookable(epsilon)
    if account.neighbors is Neighbors.ADD_REMOVE:
        raise ParameterError(
            "neighbors",
            neighbors.value,
            expected="add-remove, as in this account: a claim for replace says nothing about it",
            remedy='open the data with neighbors="add-remove", or an account for "replace"',
        )
    return _bookable(2 * epsilon)  # one row replaced is one removed and one added


def _bookable(amount: Fraction) -> Fraction:
    """Return an amount, rounded up where its exact sums would grow without bound.

    >>> _bookable(Fraction(1, 3)), 10**30 * _bookable(Fraction(1, 3**40))
    (Fraction(1, 3), Fraction(82252633400, 1))
    """
    if amount.denominator <= _FINEST:
        return amount
    return Fraction(-(-amount.numerator * _UNIT // amount.denominator), _UNIT)


def _whom(unit: str | None) -> str:
    return "None (one row)" if unit is None else repr(unit)


def too_new(name: str) -> LedgerError:
    """Return the error of a ledger that a later version has written."""
    return LedgerError(
        f"the ledger {name} was made by a newer zerodelta, and is left as it is: upgrade with "
        "pip install --upgrade zerodelta."
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError
    return value


def _is_time(value: Any) -> bool:
    return type(value) is str and _TIME.fullmatch(value) is not None


def _body_of(row: Row | None) -> dict[str, Any]:
    if row is None:
        raise ValueError
    found: dict[str, Any] = json.loads(row[2])
    return found
