"""One small table in every format that may be opened, and odd cells that a format can hold."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import zerodelta as zd
from data.odd_cells import ODD

Row = tuple[Any, ...]
Rows = Sequence[Row]

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 120),
    "income": zd.number(0, 1000, missing=None),
    "height": zd.number(-3, 3, missing=1),
    "city": zd.category(["oslo", "rome"], other=True),
    "town": zd.category(["oslo", "3"]),
    "member": zd.boolean(),
    "day": zd.date("2020-01-01", "2020-12-31"),
}
NAMES = ("who", *COLUMNS)
NUMBERS, BOOLEANS, DATES = {1, 2, 3}, {6}, {7}


def _day(month: int) -> datetime.date:
    return datetime.date(2020, month, 5)


BASE: tuple[Row, ...] = (
    ("ann", 17.0, 100.0, 1.0, "oslo", "oslo", True, _day(1)),
    ("bob", 30.0, 0.0, -3.0, "rome", "3", False, _day(2)),
    ("ann", 44.5, 1000.0, 2.0, "paris", "oslo", True, _day(3)),
    ("cid", 60.0, 250.0, 1.0, "oslo", "3", True, _day(3)),
    ("ann", 120.0, 250.0, 0.0, "rome", "3", False, _day(12)),
    ("dee", 0.0, 31.0, 3.0, "oslo", "oslo", True, _day(7)),
    ("bob", 35.0, 999.0, -1.0, "rome", "oslo", False, _day(7)),
    ("eve", 80.0, 42.0, 0.0, "oslo", "3", False, _day(8)),
)


def text(cell: Any) -> str | None:
    """Return a plain cell as a text; one that is a text, or missing, stays what it is."""
    if cell is None or isinstance(cell, str):
        return cell
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


# -- odd cells ------------------------------------------------------------------------------------

TEXTS: tuple[Any, ...] = (
    *(cell for cell in ODD.values() if type(cell) is str),
    *(None, "NaN", "-inf", "1e308", "-1e308", "1e999", "9" * 400, "0", "-0", "1e-400", "120.00001"),
    *("'", '"', '""', '"1', '1"', "1,2", "a;b", "\t", "\\", "\\N", "NULL", "#REF!", "=1+1", "\x00"),
    *("a\nb", "\r\n", "é", "Ünïcödé", "\ufeff1", "𝟙", "\u2028", "x" * 3000, "2020-02-30", "true"),
    *("2020-06-01", "2020-06-01T10:00", "1999-12-31", "1e5", "+7", "7.", ".5", "oslo", " oslo"),
)
FLOATS: tuple[Any, ...] = (
    *(None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 120.0, 121.0, 1e300, 2**60),
)
TIMES: tuple[Any, ...] = (None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), _day(6))
BYTES: tuple[bytes, ...] = (
    *(b"", b"\xff", b"\xff\xfe1\x00", b"\x00", b"\xc3\x28", b"\xed\xa0\x80", b"1,2", b'"', b"'"),
    *("é".encode("latin-1"), "é".encode("utf-16"), b"1e999", b"-1e308", b"nan", b"NULL", b"7"),
)
LINES: tuple[bytes, ...] = (
    *(b"", b",", b",,,,,,,", b",,,,,,,,,,,,,,,,", b'"', b'"ann,1,2', b'ann,"1"x",2', b"\xff\xfe"),
    *(b"\x00" * 40, b"ann,\xff,\xc3\x28,1,\xe9,oslo,\xff,2020", b"ann,1", b"ann\t1\t2", b";;;;"),
    *(b"ann,1e999,-1e999,nan,oslo,3,true,2020-01-05", b"ann,1,2,3,oslo\r\r", b"\r", b"#", b"--"),
    *(b"who,age,income,height,city,town,member,day", b"x" * (1 << 21), b"a," * (1 << 20)),
    *(b'ann,"1,5","","""","a""b",3,yes,"2020-01-05"', b"\xef\xbb\xbf1,2", b"ann,,,,,,,", b"'1',2"),
)
OBJECTS: tuple[Any, ...] = (*ODD.values(), *TEXTS[-40:], *BYTES)


def for_texts(cell: Any) -> Row:
    return (cell,) * 7


def for_types(number: Any, word: Any, truth: Any, day: Any) -> Row:
    return (number, number, number, word, word, truth, day)


TYPED = tuple(
    for_types(
        FLOATS[i % len(FLOATS)],
        word,
        (None, True, False)[i % 3],
        TIMES[i % len(TIMES)],
    )
    for i, word in enumerate(TEXTS)
)
UNTYPED = tuple(map(for_texts, OBJECTS))
TEXTUAL = tuple(map(for_texts, TEXTS))


# -- formats --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a table is written, and cells other than those of the base that it can hold."""

    build: Callable[[Rows, Path], Any]
    odd: tuple[Row, ...]
    """Cells of all columns but the id."""
    lines: tuple[bytes, ...] = ()
    """Whole rows of any other shape."""
    options: tuple[tuple[str, Any], ...] = ()


def structured(rows: Rows, _folder: Path) -> Any:
    table = np.empty(len(rows), dtype=[(name, object) for name in NAMES])
    for place, name in enumerate(NAMES):
        for i, row in enumerate(rows):
            table[name][i] = row[place]
    return table


def objects(rows: Rows, _folder: Path) -> Any:
    columns = {}
    for place, name in enumerate(NAMES):
        cells = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            cells[i] = row[place]
        columns[name] = pd.Series(cells, dtype=object)
    return pd.DataFrame(columns)


def pandas_typed(rows: Rows, _folder: Path) -> Any:
    types = ["string", "float64", "float64", "Float64", "string", "category", "boolean"]
    columns = [[row[place] for row in rows] for place in range(8)]
    found = {
        name: pd.Series(cells, dtype=kind)
        for name, cells, kind in zip(NAMES, columns, types, strict=False)
    }
    return pd.DataFrame({**found, "day": pd.Series(columns[7], dtype=object)})


def columns_of(rows: Rows, *, texts: bool) -> list[list[Any]]:
    return [[text(row[i]) if texts else row[i] for row in rows] for i in range(8)]


def arrow(rows: Rows, _folder: Path) -> Any:
    kinds = [pa.string(), *[pa.float64()] * 3, *[pa.string()] * 2, pa.bool_(), pa.date32()]
    arrays = [
        pa.array(map(_plain, cells), kind, from_pandas=False)
        for cells, kind in zip(columns_of(rows, texts=False), kinds, strict=True)
    ]
    return pa.table(arrays, names=list(NAMES))


def _plain(cell: Any) -> Any:
    return float(cell) if type(cell) is int else cell


def arrow_texts(rows: Rows, _folder: Path) -> Any:
    arrays = [pa.array(cells, pa.string()) for cells in columns_of(rows, texts=True)]
    arrays[4] = arrays[4].dictionary_encode()
    return pa.table(arrays, names=list(NAMES))


def arrow_decimals(rows: Rows, _folder: Path) -> Any:
    """Numbers of many digits, integers and seconds."""

    def of(cell: Any) -> Any:
        return None if cell is None or cell != cell else Decimal(str(cell))

    table = arrow([(row[0], 0.0, 0.0, 0.0, *row[4:7], None) for row in rows], _folder)
    exact = pa.array([of(row[1]) for row in rows], pa.decimal256(70, 6))
    whole = pa.array([None if row[2] is None else int(row[2]) for row in rows], pa.int64())
    small = pa.array([None if row[3] is None else int(row[3]) for row in rows], pa.int8())
    seconds = [None if row[7] is None else _seconds(row[7]) for row in rows]
    table = table.set_column(1, "age", exact).set_column(2, "income", whole)
    table = table.set_column(7, "day", pa.array(seconds, pa.timestamp("s")))
    return table.set_column(3, "height", small)


def _seconds(day: Any) -> int:
    if isinstance(day, int):
        return day
    return int((day - datetime.date(1970, 1, 1)).days) * 86400


LARGE = tuple(
    (exact, whole, small, word, word, truth, seconds)
    for exact, whole, small, word, truth, seconds in (
        (Decimal("9" * 60), 2**63 - 1, 127, "9" * 30, None, 2**62),
        (Decimal("-" + "9" * 60), -(2**63), -128, "-1", True, -(2**63)),
        (None, None, None, None, None, None),
        (Decimal("0.000001"), 0, 0, "", False, 0),
    )
)


def arrow_bytes(rows: Rows, _folder: Path) -> Any:
    def of(cell: Any) -> bytes | None:
        found = cell if isinstance(cell, bytes) else text(cell)
        return found.encode() if isinstance(found, str) else found

    ids = pa.array([row[0] for row in rows], pa.string())
    others = [pa.array([of(row[i]) for row in rows], pa.binary()) for i in range(1, 8)]
    return pa.table([ids, *others], names=list(NAMES))


def polars(rows: Rows, _folder: Path) -> Any:
    kinds = [pl.String, *[pl.Float64] * 3, *[pl.String] * 2, pl.Boolean, pl.Date]
    cells = zip(NAMES, columns_of(rows, texts=False), kinds, strict=True)
    return pl.DataFrame({name: pl.Series(name, found, dtype=kind) for name, found, kind in cells})


def polars_texts(rows: Rows, _folder: Path) -> Any:
    cells = zip(NAMES, columns_of(rows, texts=True), strict=True)
    return pl.DataFrame({name: pl.Series(name, found, dtype=pl.String) for name, found in cells})


def parquet_of(table: Callable[[Rows, Path], Any]) -> Callable[[Rows, Path], Any]:
    def written(rows: Rows, folder: Path) -> Any:
        path = folder / "people.parquet"
        pq.write_table(table(rows, folder), path, row_group_size=3)
        return path

    return written


def duckdb_of(table: Callable[[Rows, Path], Any]) -> Callable[[Rows, Path], Any]:
    def relation(rows: Rows, folder: Path) -> Any:
        return duckdb.arrow(table(rows, folder))

    return relation


def csv(rows: Rows, folder: Path) -> Any:
    return _csv(rows, folder, b",", "utf-8")


def csv_semicolons(rows: Rows, folder: Path) -> Any:
    return _csv(rows, folder, b";", "latin-1")


def _csv(rows: Rows, folder: Path, comma: bytes, encoding: str) -> Any:
    def of(cell: Any) -> bytes:
        if isinstance(cell, bytes):
            return cell
        found = text(cell) or ""
        if type(cell) is float and comma == b";":
            found = found.replace(".", ",")
        return found.replace("\n", " ").encode(encoding, errors="replace")

    lines = [comma.join(name.encode() for name in NAMES)]
    lines += [row[0] if len(row) == 1 else comma.join(map(of, row)) for row in rows]
    path = folder / "people.csv"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


BYTEWISE = tuple(map(for_texts, BYTES))

FORMATS: dict[str, Format] = {
    "numpy": Format(build=structured, odd=UNTYPED),
    "pandas objects": Format(build=objects, odd=UNTYPED),
    "pandas typed": Format(build=pandas_typed, odd=TYPED),
    "polars typed": Format(build=polars, odd=TYPED),
    "polars texts": Format(build=polars_texts, odd=TEXTUAL),
    "arrow typed": Format(build=arrow, odd=TYPED),
    "arrow texts": Format(build=arrow_texts, odd=TEXTUAL),
    "arrow large": Format(build=arrow_decimals, odd=LARGE),
    "arrow bytes": Format(build=arrow_bytes, odd=BYTEWISE),
    "parquet typed": Format(build=parquet_of(arrow), odd=TYPED),
    "parquet texts": Format(build=parquet_of(arrow_texts), odd=TEXTUAL),
    "parquet bytes": Format(build=parquet_of(arrow_bytes), odd=BYTEWISE),
    "duckdb typed": Format(build=duckdb_of(arrow), odd=TYPED),
    "duckdb texts": Format(build=duckdb_of(arrow_texts), odd=TEXTUAL),
    "csv": Format(build=csv, odd=(*TEXTUAL, *BYTEWISE), lines=LINES),
    "csv semicolons": Format(
        build=csv_semicolons,
        odd=TEXTUAL[::3],
        lines=LINES[::2],
        options=(("delimiter", ";"), ("decimal", ","), ("encoding", "latin-1")),
    ),
}
