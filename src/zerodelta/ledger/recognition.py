"""Hashes by which data are recognized: of files, with a key, and of the paths that were opened.

A keyed hash depends on every row, so it is in no entry, record or export: whoever knows the key
could try out guesses of rows. That of a path depends on no row. It shows that a file which has an
account is opened under a second name, where its rows would have a second budget.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from zerodelta.errors import LedgerError, ParameterError, require
from zerodelta.ledger.addresses import is_url
from zerodelta.ledger.connections import reading, writing


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
