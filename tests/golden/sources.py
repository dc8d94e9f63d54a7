"""The same means of the same rows from every kind of source; releases that a ledger paid for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zerodelta as zd
from golden import rows
from golden.rows import COLUMNS, people
from golden.verbs import Case

SOURCES = ("arrow", "csv", "csv.gz", "duckdb", "pandas", "parquet", "polars", "polars lazy")
"""The kinds of sources; the values of their releases are equal."""


def _source(kind: str, folder: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(rows.rows_of())
    if kind == "arrow":
        return table
    if kind in ("csv", "csv.gz"):
        return _csv(kind, folder)
    if kind == "parquet":
        pq.write_table(table, folder / "people.parquet")
        return folder / "people.parquet"
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    if kind == "pandas":
        return table.to_pandas()
    import polars as pl

    frame: Any = pl.from_arrow(table)
    return frame if kind == "polars" else frame.lazy()


def _csv(kind: str, folder: Path) -> Path:
    import gzip

    columns = rows.rows_of()
    lines = [",".join(columns)]
    lines += [
        ",".join("" if cell is None else str(cell) for cell in line)
        for line in zip(*columns.values(), strict=True)
    ]
    path, text = folder / f"people.{kind}", ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    return path


def _mean(kind: str) -> Case:
    def case(f: Any, **o: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            data = zd.open(_source(kind, Path(folder)), columns=COLUMNS, name="people")
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
