"""Show a ledger's entries, export them, and check saved releases against them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, final

from zerodelta.data.source import Receipt
from zerodelta.errors import CertificateError, LedgerError, printable, require
from zerodelta.ledger.balances import START, Balances, Entry, Key, Row, checked_entry, damaged
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
    """Entries as a list of dicts that all have the fields `FIELDS`; `print` shows a table."""

    __slots__ = ("_rows",)

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._rows = tuple(
            {name: {**entry.body, "hash": entry.hash}.get(name) for name in FIELDS}
            for entry in entries
        )

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        rows = self._rows[index]
        return dict(rows) if isinstance(rows, dict) else [dict(row) for row in rows]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(row) for row in self._rows)

    def to_json(self) -> str:
        """Return all fields as JSON."""
        return json.dumps(list(self._rows), indent=2)

    def to_csv(self) -> str:
        """Return all fields as CSV; texts are escaped so that no spreadsheet runs formulas."""
        return csv_lines(FIELDS, ([row[name] for name in FIELDS] for row in self._rows))

    def __repr__(self) -> str:
        used = [n for n in _SHOWN if any(row[n] is not None for row in self._rows)]
        lines = [used, *([_shown(row[name]) for name in used] for row in self._rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(used))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def entries_of(rows: Iterable[Row], key: Key, *, name: str) -> list[Entry]:
    """Return the entries about an account; a data set's account includes those of its analysts."""
    entries, before = [], START
    for number, row in enumerate(rows, 1):
        entry = checked_entry(row, number, before, name=name)
        before = entry.hash
        same_data = entry.body.get("data") == key[0]
        if same_data and (key[1] is None or entry.body["analyst"] == key[1]):
            entries.append(entry)
    return entries


def _shown(value: Any) -> str:
    text = "" if value is None else str(value)
    plain = printable(text)
    return plain if len(plain) <= 40 else plain[:37] + "..."


def registry(balances: Balances, key: Key, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the fields of a deployment registry, filled where the ledger knows the answer.

    The fields are those of the Differential Privacy Deployments Registry that NIST has proposed to
    host; those that only the owner can fill in are None.
    """
    account = balances.balance(key)
    debits = [e for e in entries if e.kind == "debit" and e.number not in balances.returned]
    replaced = account.neighbors is Neighbors.REPLACE
    unit = "one row" if account.unit is None else f"all rows of one {account.unit}"
    change = "replaced" if replaced else "added or removed"
    return {
        "deployment": {
            "name": key[0],
            "data_curator": None,
            "intended_use": None,
            "data_product_description": None,
            "publication_date": debits[-1].body["time"][:10] if debits else None,
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
                for entry in debits
            ],
        },
        "implementation": {
            "library": "zerodelta",
            "mechanisms": sorted({str(e.body["task"]).partition("(")[0] for e in debits}),
            "justification": "a certificate for each release, which `zerodelta verify` checks",
            "pre_processing": None,
        },
        "additional_information": {"ledger": balances.id, "entries": balances.number},
    }


# -- Verification ---------------------------------------------------------------------------------
# All entries are read and checked from the first one, then saved releases against their entries.


@value
class _Paid:
    """The receipts that a release names, and its record and digests if they are known."""

    receipts: list[Mapping[str, Any]]
    record: Record | None = None
    digests: tuple[str, ...] = field(default=())


def verify_entries(store: Store, records: Sequence[Any]) -> int:
    """Check the chain of all entries, and that it paid for the records; count the entries."""
    releases = [_read(record) for record in records]  # may take long: before a lock is held
    store.check()
    with store.reading():
        balances, hashes = Balances(name=store.name), [START]
        for row in store.rows(0):
            hashes.append(balances.add(row, store.find).hash)
        cached = store.catch_up()
        if (balances.number, balances.hash) != (cached.number, cached.hash):
            raise damaged(store.name, "earlier entries were changed")
        for release in releases:
            _check(release, store, balances, hashes)
    return balances.number


@value
class _SavedReceipts:
    """The names of the data sets in one saved file, and the ledger entries that paid for it."""

    data: tuple[Any, ...]
    receipts: list[Mapping[str, Any]]


def receipts_in(folder: str | os.PathLike[str]) -> list[_SavedReceipts]:
    """Return the receipts of all releases saved in a folder or below it."""
    place = Path(folder)
    remedy = "make it first, or check the path"
    require(place.is_dir(), "records", os.fspath(folder), "a folder of saved releases", remedy)
    saved: list[_SavedReceipts] = []
    for path in sorted(place.rglob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            receipts = list(_receipts(content))
        except (OSError, ValueError, RecursionError):
            raise LedgerError(
                f"{path} cannot be read, and may name an entry that the ledger lacks: nothing was "
                "spent. Restore the file as it was saved, or move it elsewhere if it is no release."
            ) from None
        saved.append(_SavedReceipts(data=_names(content), receipts=receipts))
    return saved


def count_paid(store: Store, balances: Balances, data: str, saved: Sequence[_SavedReceipts]) -> int:
    """Count a data set's receipts in this ledger; refuse a ledger that lacks or did not pay them.

    Also refuse a ledger if a release of the same data was paid for with another one: whoever puts
    a new ledger in the place of the old one would get a second budget.
    """
    number = 0
    for release in saved:
        here = [receipt for receipt in release.receipts if receipt["ledger"] == balances.id]
        if release.receipts and not here and data in release.data:
            raise LedgerError(
                f"a release of {data!r} was paid for with another ledger than {balances.name}, "
                "which does not know what was spent: use that other ledger. If these are different "
                "data, give them another name, or keep their releases in another folder."
            )
        for receipt in here:
            entry = receipt["entry"]
            row = store.find(entry) if type(entry) is int and 0 < entry <= balances.number else None
            if row is None or row[3] != receipt["hash"]:
                raise _lacks(balances.name, entry)
        number += len(here)
    return number


def _names(saved: Any) -> tuple[Any, ...]:
    """Return the names of the data sets in the record of a saved release."""
    try:
        return tuple(source["name"] for source in saved["record"]["data"])
    except (KeyError, TypeError):
        return ()


def _check(release: _Paid, store: Store, balances: Balances, hashes: Sequence[str]) -> None:
    """Refuse a ledger without the entries that paid for a release, or with them taken back."""
    here = [receipt for receipt in release.receipts if receipt["ledger"] == balances.id]
    if not here:
        raise LedgerError(
            f"a record names another ledger than {balances.name}: verify it with its own."
        )
    for receipt in here:
        entry = receipt["entry"]
        exists = type(entry) is int and 0 < entry < len(hashes)
        if not exists or hashes[entry] != receipt["hash"]:
            raise _lacks(balances.name, entry)
        if entry in balances.returned:
            raise LedgerError(
                f"a release names entry {entry}, whose debit was taken back: it was not paid for."
            )
        if release.record is not None:
            _check_record(release.record, release.digests, receipt, store)


def _lacks(name: str, entry: Any) -> LedgerError:
    return damaged(
        name,
        f"a release was paid for with entry {entry!r:.20}, which is not in it: its last entries "
        "were removed, or an old copy was put back",
    )


def _check_record(
    record: Record, digests: tuple[str, ...], receipt: Mapping[str, Any], store: Store
) -> None:
    """Refuse a record that differs from the one that the entry was written for."""
    entry = receipt["entry"]
    row = store.find(entry)
    body = {} if row is None else json.loads(row[2])
    stated = {name: str(record.claim.get(name)) for name in ("epsilon", "neighbors", "unit")}
    same = body.get("record") == record.request_digest and body.get("time") == receipt["time"]
    if not same or stated != {name: str(body.get(name)) for name in stated}:
        raise LedgerError(
            f"a release is not what entry {entry} was written for: its record states something "
            "else than was paid for. Take the file from where it was saved."
        )
    noted = {digest for _, digest in store.saved(entry)}
    if noted and digests and not noted & set(digests):
        raise LedgerError(
            f"the release of entry {entry} was changed after it was saved: its value or its record "
            "is not the one that was noted. Take the file from where it was saved."
        )


def _read(record: Any) -> _Paid:
    """Return the receipts and the record in a release, a record, a receipt, a file or a text."""
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
        receipts = list(_receipts(record))
        if receipts:
            return _Paid(receipts=receipts)
    raise LedgerError("pass each record as a saved release, its path or text, a dict or a receipt.")


def _of_saved(saved: Saved) -> _Paid:
    return _Paid(receipts=list(saved.record.entries), record=saved.record, digests=(saved.digest,))


def _of_text(text_or_path: str) -> _Paid:
    """Read what a record paid, from a saved release or receipts, as JSON or a path."""
    try:
        is_text = text_or_path.lstrip().startswith("{")
        text = text_or_path if is_text else Path(text_or_path).read_text(encoding="utf-8")
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
    """Yield all receipts in a record, however deeply they are nested."""
    if isinstance(record, Mapping):
        if {"ledger", "entry", "hash"} <= record.keys():
            yield record
        else:
            for part in record.values():
                yield from _receipts(part)
    elif isinstance(record, (list, tuple)):
        for part in record:
            yield from _receipts(part)
