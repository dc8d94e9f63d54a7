"""The entries of a ledger for people and programs: a table, JSON, CSV, a registry's fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

from zerodelta.errors import printable
from zerodelta.ledger.balances import Balances, Key
from zerodelta.ledger.chain import START, Entry, Row, opened
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.written_csv import csv_lines

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
