"""Every entry of a ledger checked anew, and releases that were paid for, against their entries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from zerodelta.data.account import Receipt
from zerodelta.errors import CertificateError, LedgerError, require
from zerodelta.ledger.balances import Balances
from zerodelta.ledger.chain import START, damaged
from zerodelta.ledger.store import Store
from zerodelta.privacy.record import Record
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import Saved, judged, read_text
from zerodelta.value import value


@value
class _Paid:
    """A release that says with which entries it was paid for; its record, if that is known."""

    receipts: list[Mapping[str, Any]]
    record: Record | None = None
    digests: tuple[str, ...] = field(default=())


def verified(store: Store, records: Sequence[Any]) -> int:
    """Check all entries and records, and return the number of entries."""
    given = [_read(record) for record in records]  # which may take long: nothing waits for it
    store.check()
    with store.reading():
        anew, hashes = Balances(name=store.name), [START]
        for row in store.rows(0):
            hashes.append(anew.add(row, store.find).hash)
        known = store.catch_up()
        if (anew.number, anew.hash) != (known.number, known.hash):
            raise damaged(store.name, "earlier entries were changed")
        for paid in given:
            _check(paid, store, anew, hashes)
    return anew.number


def receipts_in(folder: str | os.PathLike[str]) -> list[Mapping[str, Any]]:
    """Return the entries that the releases saved in a folder, or below it, were paid for with."""
    place = Path(folder)
    remedy = "make it first, or check the path"
    require(place.is_dir(), "records", os.fspath(folder), "a folder of saved releases", remedy)
    found: list[Mapping[str, Any]] = []
    for path in sorted(place.rglob("*.json")):
        try:
            found += _receipts(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            raise LedgerError(
                f"{path} cannot be read, and may name an entry that the ledger lacks: nothing was "
                "spent. Put it back as it was saved, or move it elsewhere if it is no release."
            ) from None
    return found


def demanded(store: Store, balances: Balances, receipts: Sequence[Mapping[str, Any]]) -> int:
    """Refuse a ledger that lacks an entry with which a release was paid for; return how many."""
    here = [each for each in receipts if each["ledger"] == balances.id]
    for receipt in here:
        entry = receipt["entry"]
        row = store.find(entry) if type(entry) is int and 0 < entry <= balances.number else None
        if row is None or row[3] != receipt["hash"]:
            raise _lacks(balances.name, entry)
    return len(here)


def _check(paid: _Paid, store: Store, balances: Balances, hashes: Sequence[str]) -> None:
    """Refuse a ledger that lacks an entry with which a release was paid for, or has another."""
    here = [each for each in paid.receipts if each["ledger"] == balances.id]
    if not here:
        raise LedgerError(
            f"a record names another ledger than {balances.name}: verify it with its own."
        )
    for receipt in here:
        entry = receipt["entry"]
        there = type(entry) is int and 0 < entry < len(hashes)
        if not there or hashes[entry] != receipt["hash"]:
            raise _lacks(balances.name, entry)
        if entry in balances.returned:
            raise LedgerError(
                f"a release names entry {entry}, whose debit was taken back: it was not paid for."
            )
        if paid.record is not None:
            _check_record(paid.record, paid.digests, receipt, store)


def _lacks(name: str, entry: Any) -> LedgerError:
    return damaged(
        name,
        f"a release was paid for with entry {entry!r:.20}, which is not in it: its end was removed,"
        " or an old copy was put back",
    )


def _check_record(
    record: Record, digests: tuple[str, ...], receipt: Mapping[str, Any], store: Store
) -> None:
    """Refuse a record that is not the one which an entry is chained with."""
    entry = receipt["entry"]
    row = store.find(entry)
    body = {} if row is None else json.loads(row[2])
    stated = {name: str(record.claim.get(name)) for name in ("epsilon", "neighbors", "unit")}
    same = body.get("record") == record.asked and body.get("time") == receipt["time"]
    if not same or stated != {name: str(body.get(name)) for name in stated}:
        raise LedgerError(
            f"a release is not what entry {entry} was written for: its record says something else "
            "than was paid for. Take the file from where it was saved."
        )
    noted = {digest for _, digest in store.saved(entry)}
    if noted and digests and not noted & set(digests):
        raise LedgerError(
            f"the release of entry {entry} was changed after it was saved: its value or its record "
            "is not the one that was noted. Take the file from where it was saved."
        )


def _read(record: Any) -> _Paid:
    """Return what a saved release, its record, or a receipt says."""
    if isinstance(record, Receipt):
        return _Paid(receipts=[record.to_json()])
    if isinstance(record, Release):
        record = record.record
    if isinstance(record, Record):
        return _Paid(receipts=list(record.entries), record=record)
    if isinstance(record, (str, os.PathLike)):
        return _of_text(os.fspath(record))
    if isinstance(record, Mapping):
        if "schema" in record:
            return _of_saved(judged(dict(record)))
        found = list(_receipts(record))
        if found:
            return _Paid(receipts=found)
    raise LedgerError("a record is a saved release, its path or text, a dict or a receipt.")


def _of_saved(saved: Saved) -> _Paid:
    return _Paid(receipts=list(saved.record.entries), record=saved.record, digests=(saved.digest,))


def _of_text(given: str) -> _Paid:
    try:
        is_text = given.lstrip().startswith("{")
        text = given if is_text else Path(given).read_text(encoding="utf-8")
        data = json.loads(text)
        if isinstance(data, dict) and "schema" in data:
            return _of_saved(read_text(text))
        return _Paid(receipts=list(_receipts(data)))
    except CertificateError as error:
        raise LedgerError(f"a record cannot be used: {error}") from None
    except (OSError, ValueError, RecursionError):
        raise LedgerError(
            "a record cannot be read: pass paths of saved releases, or their JSON."
        ) from None


def _receipts(record: Any) -> Iterator[Mapping[str, Any]]:
    """Yield whatever names an entry of a ledger."""
    if isinstance(record, Mapping):
        if {"ledger", "entry", "hash"} <= record.keys():
            yield record
        else:
            for each in record.values():
                yield from _receipts(each)
    elif isinstance(record, (list, tuple)):
        for each in record:
            yield from _receipts(each)
