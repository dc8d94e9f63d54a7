"""The same means of the same rows from every kind of source; releases that a ledger paid for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import zerodelta as zd
from data.sources import HOLDERS
from golden import rows
from golden.rows import COLUMNS, people
from golden.verbs import Case

SOURCES = ("arrow", "csv", "csv.gz", "duckdb", "pandas", "parquet", "polars", "polars lazy")
"""The kinds of sources; the values of their releases are equal."""


def _mean(kind: str) -> Case:
    def case(f: Any, **o: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            source = HOLDERS[kind](pa.table(rows.rows_of()), Path(folder))
            data = zd.open(source, columns=COLUMNS, name="people")
            return f(data, ["age", "income"], by="city", epsilon=2, **o)

    return case


def _with_ledger(call: Callable[[Any, Any], Any]) -> Case:
    def case(f: Any, **o: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            return call(f, zd.Ledger(Path(folder) / "spent.db", budget=3, data="people"))

    return case


CASES: dict[str, Case] = {
    **{f"mean, from {kind}": _mean(kind) for kind in SOURCES},
    "mean, ledger": _with_ledger(
        lambda f, ledger: f(people(name="people"), "age", ledger=ledger, epsilon=1)
    ),
    "mean, ledger of the data": _with_ledger(
        lambda f, ledger: f(people(name="people", ledger=ledger), "age", epsilon=1)
    ),
}
