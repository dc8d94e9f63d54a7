"""Every entry of a ledger checked anew, and releases that were paid for, against their entries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zerodelta.data.account import Receipt
from zerodelta.errors import LedgerError
from zerodelta.ledger.balances import Balances
from zerodelta.ledger.chain import START, damaged
from zerodelta.ledger.store import Store

__all__ = ["verified"]


def verified(store: Store, records: Sequence[Any]) -> int:
    """Check all entries and records, and return the number of entries."""
    store.check()
    with store.reading():
        anew, hashes = Balances(name=store.name), [START]
        for row in store.rows(0):
            hashes.append(anew.add(row, store.find).hash)
        known = store.catch_up()
    if (anew.number, anew.hash) != (known.number, known.hash):
        raise damaged(store.name, "earlier entries were changed")
    _check_records(records, anew, hashes)
    return anew.number


def _check_records(records: Sequence[Any], balances: Balances, hashes: Sequence[str]) -> None:
    """Refuse a ledger that lacks an entry with which a release was paid for.

    `hashes` are those of its entries, by number.
    """
    for receipt in (each for record in records for each in _receipts(record)):
        if receipt["ledger"] != balances.id:
            raise LedgerError(
                f"a record names another ledger than {balances.name}: verify it with its own."
            )
        entry = receipt["entry"]
        there = type(entry) is int and 0 < entry < len(hashes)
        if not there or hashes[entry] != receipt["hash"]:
            raise damaged(
                balances.name,
                f"a release was paid for with entry {entry!r:.20}, which is not in it: its end was "
                "removed, or an old copy was put back",
            )


def _receipts(record: Any) -> Iterator[Mapping[str, Any]]:
    """Yield whatever names an entry of a ledger in a record."""
    if isinstance(record, Receipt):
        yield record.to_json()
    elif isinstance(record, (str, os.PathLike)):
        text = os.fspath(record)
        try:
            if not text.lstrip().startswith(("{", "[")):
                text = Path(text).read_text(encoding="utf-8")
            found = json.loads(text)
        except (OSError, ValueError, RecursionError):
            raise LedgerError(
                "a record cannot be read: pass paths of saved releases, or their JSON."
            ) from None
        yield from _receipts(found)
    elif isinstance(record, Mapping):
        if {"ledger", "entry", "hash"} <= record.keys():
            yield record
        else:
            for each in record.values():
                if isinstance(each, (Mapping, list, tuple)):
                    yield from _receipts(each)
    elif isinstance(record, (list, tuple)):
        for each in record:
            if isinstance(each, (Mapping, list, tuple)):
                yield from _receipts(each)
    else:
        raise LedgerError("a record is a path, a text, a dict or a receipt.")
