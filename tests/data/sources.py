"""One table in every kind of source: lists, arrays, frames, files, streams and queries."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

Holder: TypeAlias = Callable[[pa.Table, Path], Any]


def lists(table: pa.Table) -> list[list[Any]]:
    return [list(row.values()) for row in table.to_pylist()]


def structured(table: pa.Table, _: Path | None = None) -> Any:
    """Return an array whose fields are what NumPy makes of the columns."""
    columns = {name: table[name].to_numpy() for name in table.column_names}
    found = np.empty(len(table), dtype=[(name, each.dtype) for name, each in columns.items()])
    for name, column in columns.items():
        found[name] = column
    return found


def csv_text(table: pa.Table) -> bytes:
    """Return a table in CSV; a text that is no valid UTF-8 is written as it is."""

    def cell(value: Any) -> bytes:
        text = value if isinstance(value, bytes) else str("" if value is None else value).encode()
        return b'"' + text.replace(b'"', b'""') + b'"' if {*b'",'} & {*text} else text

    columns = [
        (column.cast(pa.binary()) if pa.types.is_string(column.type) else column).to_pylist()
        for column in table.columns
    ]
    lines = [b",".join(map(cell, row)) for row in zip(*columns, strict=True)]
    return b"".join(line + b"\n" for line in [",".join(table.column_names).encode(), *lines])


def csv(table: pa.Table, folder: Path, name: str = "people.csv") -> Path:
    path, content = folder / name, csv_text(table)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


WRITERS: dict[str, Callable[[pa.Table, Path], object]] = {
    ".csv": lambda table, path: path.write_bytes(csv_text(table)),
    ".parquet": lambda table, path: pq.write_table(table, path, row_group_size=4),
}
"""How a file of each format is written, in several parts if it can have them.

That it is a source, its odd cells, its damage and its pickling follow in test_readers.py.
"""


def written(ending: str, table: pa.Table, folder: Path) -> Path:
    path = folder / f"people{ending}"
    WRITERS[ending](table, path)
    return path


FILES = {f"file {ending}": partial(written, ending) for ending in WRITERS}


def parquet(table: pa.Table, folder: Path, groups: int = 1) -> Path:
    path = folder / "people.parquet"
    pq.write_table(table, path, row_group_size=max(1, -(-len(table) // groups)))
    return path


def split(table: pa.Table, folder: Path) -> str:
    size = -(-len(table) // 3)
    for i in range(3):
        pq.write_table(table.slice(i * size, size), folder / f"part{i}.parquet")
    return str(folder / "part*.parquet")


def polars(table: pa.Table, _: Path | None = None) -> Any:
    return pl.from_arrow(table)


def relation(table: pa.Table, _: Path | None = None) -> Any:
    return duckdb.connect().from_arrow(table)


def query(table: pa.Table, _: Path) -> Any:
    connection = duckdb.connect()
    connection.register("people", table)
    return "select * from people", connection


HOLDERS: dict[str, Holder] = {
    "list": lambda table, _: lists(table),
    "array of objects": lambda table, _: np.array(lists(table), dtype=object),
    "structured array": structured,
    "pandas": lambda table, _: table.to_pandas(),
    "pandas objects": lambda table, _: pd.DataFrame(
        lists(table), columns=table.column_names, dtype=object
    ),
    "pandas arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars,
    "polars lazy": lambda table, _: polars(table).lazy(),
    "arrow": lambda table, _: table,
    "arrow pieces": lambda table, _: pa.concat_tables(
        [table.slice(i, 7) for i in range(0, len(table), 7)]
    ),
    "arrow batch": lambda table, _: table.combine_chunks().to_batches()[0],
    "arrow stream": lambda table, _: table.to_reader(max_chunksize=50),
    "arrow dataset": lambda table, folder: ds.dataset(parquet(table, folder, 2)),
    "arrow dataset in memory": lambda table, _: ds.dataset(table),
    "parquet": parquet,
    "parquet, 7 groups": lambda table, folder: str(parquet(table, folder, 7)),
    "parquet, 100 groups": lambda table, folder: parquet(table, folder, 100),
    "parquet, 3 files": split,
    "parquet, list of files": lambda table, folder: [
        *Path(split(table, folder)).parent.glob("*.parquet")
    ],
    "csv": csv,
    "csv.gz": lambda table, folder: csv(table, folder, "people.csv.gz"),
    **FILES,
    "duckdb": relation,
    "duckdb query": query,
}
"""How a source holds a table; files are written to the folder."""
