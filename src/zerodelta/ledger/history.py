"""The entries of a ledger for people and programs; and records held to what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, final

from zerodelta.data.source import Receipt
from zerodelta.errors import CertificateError, LedgerError, printable, require
from zerodelta.ledger.balances import START, Balances, Entry, Key, Row, damaged, opened
from zerodelta.ledger.store import Store
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.release import Record, Release
from zerodelta.privacy.release_file import Saved, read_data, read_text
from zerodelta.privacy.shown_release import csv_lines
from zerodelta.value import value

FIELDS = (
    *("number", "time", "kind", "data", "analyst", "task", "epsilon", "neighbors", "unit"),
    *("booked", "limit", "reason", "of", "certificate", "record", "question", "hash"),
)
_SHOWN = ("number", "time", "kind", "data", "analyst", "task", "booked", "limit", "reason")


@final
class History(Sequence[dict[str, Any]]):
    """Entries as a list of dicts, each with the same fields; `print` shows a table."""

    __slots__ = ("_rows",)

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._rows = tuple(
            {name: {**entry.body, "hash": entry.hash}.get(name) for name in FIELDS}
            for entry in entries
        )

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        found = self._rows[place]
        return dict(found) if isinstance(found, dict) else [dict(row) for row in found]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(row) for row in self._rows)

    def to_json(self) -> str:
        """Return all fields as JSON."""
        return json.dumps(list(self._rows), indent=2)

    def to_csv(self) -> str:
        """Return all fields as CSV, texts so that no spreadsheet takes one for a formula."""
        return csv_lines(FIELDS, ([row[name] for name in FIELDS] for row in self._rows))

    def __repr__(self) -> str:
        used = [n for n in _SHOWN if any(row[n] is not None for row in self._rows)]
        lines = [used, *([_shown(row[name]) for name in used] for row in self._rows)]
        wide = [max(len(line[i]) for line in lines) for i in range(len(used))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip()
            for line in lines
        )


def entries_of(rows: Iterable[Row], key: Key, *, name: str) -> list[Entry]:
    """Return the entries that concern an account: of a data set those of its analysts, too."""
    found, before = [], START
    for number, row in enumerate(rows, 1):
        entry = opened(row, number, before, name=name)
        before = entry.hash
        mine = entry.body.get("data") == key[0]
        if mine and (key[1] is None or entry.body["analyst"] == key[1]):
            found.append(entry)
    return found


def _shown(value: Any) -> str:
    text = "" if value is None else str(value)
    plain = printable(text)
    return plain if len(plain) <= 40 else plain[:37] + "..."


def registry(balances: Balances, key: Key, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the fields that a registry of deployments asks for, those that a ledger knows filled.

    Those of the Differential Privacy Deployments Registry that NIST has proposed to host; what an
    owner has to say is None.
    """
    account = balances.balance(key)
    made = [e for e in entries if e.kind == "debit" and e.number not in balances.returned]
    replaced = account.neighbors is Neighbors.REPLACE
    unit = "one row" if account.unit is None else f"all rows of one {account.unit}"
    change = "replaced" if replaced else "added or removed"
    return {
        "deployment": {
            "name": key[0],
            "data_curator": None,
            "intended_use": None,
            "data_product_description": None,
            "publication_date": made[-1].body["time"][:10] if made else None,
        },
        "flavor_of_differential_privacy": {
            "name": "pure differential privacy",
            "data_domain": "declared columns, each with its kind and bounds",
            "unprotected_quantities": "what each certificate lists as public",
            "neighboring_data_sets": f"{unit} {change}",
        },
        "privacy_loss": {
            "privacy_unit": unit,
            "privacy_unit_description": None,
            "epsilon": str(account.spent),
            "epsilon_limit": None if account.limit is None else str(account.limit),
            "delta": "0",
        },
        "deployment_model": {"name": "central", "actors": None},
        "privacy_accounting": {
            "composition": "pure ε adds up over all releases",
            "post_processing": "free, and not counted",
            "releases": [
                {
                    "date": entry.body["time"],
                    "task": entry.body["task"],
                    "epsilon": entry.body["booked"],
                    "certificate": entry.body["certificate"],
                }
                for entry in made
            ],
        },
        "implementation": {
            "library": "zerodelta",
            "mechanisms": sorted({str(e.body["task"]).partition("(")[0] for e in made}),
            "justification": "a certificate for each release, which `zerodelta verify` checks",
            "pre_processing": None,
        },
        "additional_information": {"ledger": balances.id, "entries": balances.number},
    }


# -- Verification ---------------------------------------------------------------------------------
# Every entry of a ledger checked anew, and releases that were paid for, against their entries.


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


@value
class _Saved:
    """A file in a folder: the data sets that it names, and the entries that it was paid with."""

    data: tuple[Any, ...]
    receipts: list[Mapping[str, Any]]


def receipts_in(folder: str | os.PathLike[str]) -> list[_Saved]:
    """Return what the releases saved in a folder, or below it, were paid for with."""
    place = Path(folder)
    remedy = "make it first, or check the path"
    require(place.is_dir(), "records", os.fspath(folder), "a folder of saved releases", remedy)
    found: list[_Saved] = []
    for path in sorted(place.rglob("*.json")):
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            found.append(_Saved(data=_names(said), receipts=list(_receipts(said))))
        except (OSError, ValueError, RecursionError):
            raise LedgerError(
                f"{path} cannot be read, and may name an entry that the ledger lacks: nothing was "
                "spent. Put it back as it was saved, or move it elsewhere if it is no release."
            ) from None
    return found


def demanded(store: Store, balances: Balances, data: str, saved: Sequence[_Saved]) -> int:
    """Refuse a ledger that lacks an entry with which a release was paid for; return how many.

    Also one that is not the ledger with which a release of these data was paid for: another is new.
    """
    number = 0
    for each in saved:
        here = [receipt for receipt in each.receipts if receipt["ledger"] == balances.id]
        if each.receipts and not here and data in each.data:
            raise LedgerError(
                f"a release of {data!r} was paid for with another ledger than {balances.name}, "
                "which does not know what was spent: use that one. If these are other data, name "
                "them otherwise, or keep the releases in another folder."
            )
        for receipt in here:
            entry = receipt["entry"]
            row = store.find(entry) if type(entry) is int and 0 < entry <= balances.number else None
            if row is None or row[3] != receipt["hash"]:
                raise _lacks(balances.name, entry)
        number += len(here)
    return number


def _names(saved: Any) -> tuple[Any, ...]:
    """Return the names of the data sets that a saved release is of."""
    try:
        return tuple(each["name"] for each in saved["record"]["data"])
    except (KeyError, TypeError):
        return ()


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
    same = body.get("record") == record.request_digest and body.get("time") == receipt["time"]
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
            return _of_saved(read_data(dict(record)))
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
