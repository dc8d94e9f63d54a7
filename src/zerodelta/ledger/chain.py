"""The entries of a ledger: numbered, never changed, each sealed with the hash of all before it.

    hash = SHA-256(hash of the entry before + newline + the entry as JSON)

Nothing in an entry is computed from rows: what was asked, what it cost, when.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

from zerodelta.errors import LedgerError
from zerodelta.value import value

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
