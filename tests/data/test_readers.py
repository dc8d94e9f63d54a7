"""Every source hands out the same cells, whatever its batches and parts; engines stay silent."""

from __future__ import annotations

import datetime
import io
import itertools
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import zerodelta as zd
from data.odd_rows import BYTES, FLOATS, TEXTS
from data.opening import opened
from data.sources import FILES, HOLDERS, WRITERS, csv, parquet, polars, written
from zerodelta.data import declare
from zerodelta.data.arrays import array_reader, reader_of
from zerodelta.data.chosen import OpenedDataset
from zerodelta.data.dataset import Dataset
from zerodelta.data.readers import FOREIGN_CODE, Reader, guarded, is_path, parquet_reader
from zerodelta.errors import ParameterError

KINDS = {
    "age": declare.number(0, 120, integer=True),
    "income": declare.number(-1000, 1000),
    "city": declare.category(["Oslo", "Rome", "1"], other=True, missing=True),
    "member": declare.boolean(),
    "name": declare.text(6),
    "day": declare.date("2020-01-01", "2021-12-31"),
    "paid": declare.number(0, 100),
}
NUMBERS = frozenset({"age", "income", "paid"})
N = 230


def records() -> list[dict[str, Any]]:
    cities = ["Oslo", "Rome", "Lima", "1", 'Mål, "x"', None]
    return [
        {
            "age": None if i % 17 == 3 else i,
            "income": [1.5 * i, -0.1 * i, 1e300, None, 1 / 3][i % 5],
            "city": cities[i % 6],
            "member": [True, False, None][i % 3],
            "name": f"n{i % 40}" if i % 11 else None,
            "day": datetime.date(2020, 1 + i % 12, 1 + i % 28) if i % 7 else None,
            "paid": Decimal(i * 37 % 12001) / 100,
        }
        for i in range(N)
    ]


SCHEMA = pa.schema(
    {
        "age": pa.int64(),
        "income": pa.float64(),
        "city": pa.string(),
        "member": pa.bool_(),
        "name": pa.string(),
        "day": pa.date32(),
        "paid": pa.decimal128(9, 2),
    }
)


def arrow() -> pa.Table:
    return pa.Table.from_pylist(records(), schema=SCHEMA)


SOURCES: dict[str, Callable[[Path], Any]] = {
    **{name: lambda folder, hold=hold: hold(arrow(), folder) for name, hold in HOLDERS.items()},  # type: ignore[misc]
    "pandas categorical": lambda _: arrow().to_pandas().astype({"city": "category"}),
    "polars categorical": lambda _: (
        polars(arrow()).lazy().with_columns(pl.col("city").cast(pl.Categorical))
    ),
    "arrow dataset, filtered": lambda folder: ds.dataset(parquet(arrow(), folder)).filter(
        ds.field("paid").is_valid()
    ),
}


def read(reader: Reader, batch: int, names: dict[str, str], threads: int = 1) -> dict[str, Any]:
    columns = tuple(names.values())
    numbers = frozenset(names[name] for name in NUMBERS)

    def each(part: Any) -> list[list[Any]]:
        batches = list(part())
        assert all(len(column) <= batch for found in batches for column in found)
        return [[KINDS[name].read(c) for name, c in zip(names, b, strict=True)] for b in batches]

    parts = reader.parts(columns, batch=batch, numbers=numbers)
    with ThreadPoolExecutor(threads) as pool:
        blocks = [block for blocks in pool.map(each, parts) for block in blocks]
    return {name: np.concatenate([block[i] for block in blocks]) for i, name in enumerate(names)}


def named(reader: Reader) -> dict[str, str]:
    return dict(zip(KINDS, reader.names if reader.names[0] == "0" else KINDS, strict=True))


def by_definition() -> dict[str, Any]:
    cells = {name: np.array([row[name] for row in records()], dtype=object) for name in KINDS}
    return {name: kind.read(cells[name]) for name, kind in KINDS.items()}


@pytest.mark.parametrize("batch", [1, 13, 10_000])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_hands_out_the_same_cells(source: str, batch: int, tmp_path: Path) -> None:
    reader = reader_of(SOURCES[source](tmp_path))
    assert reader.count() == N
    expected = by_definition()
    found = read(reader, batch, named(reader), threads=3)
    for name in KINDS:
        assert found[name].tolist() == pytest.approx(expected[name].tolist(), abs=0, nan_ok=True)
    assert reader.text
    assert "\n" not in reader.text


def test_what_is_proven_and_what_is_assumed(tmp_path: Path) -> None:
    asserted = {"polars lazy", "polars categorical", "duckdb", "duckdb query"}
    asserted |= {"arrow stream", "arrow dataset, filtered", "arrow dataset in memory"}
    for name, source in SOURCES.items():
        folder = tmp_path / name
        folder.mkdir()
        made = source(folder)
        reader = reader_of(made)
        assert reader.premise == (FOREIGN_CODE if name in asserted else None), name
        file = is_path(made) or name == "arrow dataset"  # of files
        query = name.startswith("duckdb") or name in {"polars lazy", "polars categorical"}
        assert reader.bare == (not file and not query), name
    csv_file = reader_of(csv(arrow(), tmp_path))
    assert (csv_file.row, csv_file.text) == ("one line of the file", "CSV file people.csv")
    row = "one row of the file, its column types fixed"
    assert reader_of(parquet(arrow(), tmp_path)).row == row


@pytest.mark.parametrize("source", SOURCES)
def test_no_reader_shows_a_cell(source: str, tmp_path: Path) -> None:
    """What a reader holds is rows, and some containers write these out when they are shown."""
    reader = reader_of(SOURCES[source](tmp_path))
    people = Dataset(OpenedDataset(reader=reader, kinds={named(reader)["city"]: KINDS["city"]}))
    for shown in (reader, people.chosen, people._base, people, opened(people)):
        assert "Lima" not in repr(shown) + str(shown)


@pytest.mark.parametrize("source", SOURCES)
def test_columns_may_be_asked_for_twice_and_in_another_order_and_parts_again(
    source: str, tmp_path: Path
) -> None:
    reader, expected = reader_of(SOURCES[source](tmp_path)), by_definition()
    asked = ("paid", "age", "paid")
    for columns in (asked, asked[:1]):
        parts = reader.parts(tuple(named(reader)[name] for name in columns), batch=64)
        for _ in range(2):
            batches = [b for part in parts for b in part()]
            for place, name in enumerate(columns):
                values = np.concatenate([KINDS[name].read(b[place]) for b in batches])
                np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize("source", SOURCES)
def test_a_column_that_is_not_there_is_named_and_nothing_else(source: str, tmp_path: Path) -> None:
    reader = reader_of(SOURCES[source](tmp_path))
    with pytest.raises(ParameterError, match="column 'incme'") as raised:
        reader.parts(("incme",), batch=9)
    assert not any(f"'{name}'" in str(raised.value) for name in KINDS)


@pytest.mark.parametrize("ending", WRITERS)
def test_files_of_one_table_have_the_same_columns_in_any_order(ending: str, tmp_path: Path) -> None:
    tables = {"a": {"x.y": [1, 2], "x": [3, 4]}, "b": {"x": [5], "x.y": [6]}, "c": {}}
    for name, columns in tables.items():
        (tmp_path / name).mkdir()
        held = pa.table(columns) if columns else pa.table(tables["a"]).slice(0, 0)
        written(ending, held, tmp_path / name)
    pattern = str(tmp_path / "*" / f"people{ending}")
    reader, paid = reader_of(pattern), KINDS["paid"]
    assert reader.count() == 3
    found = [b for part in reader.parts(("x", "x.y"), batch=1) for b in part() if len(b[0])]
    rows = [[paid.read(cells).tolist() for cells in batch] for batch in found]
    assert rows == [[[3], [1]], [[4], [2]], [[5], [6]]]
    written(ending, pa.table({"x": [1]}), tmp_path / "c")
    with pytest.raises(ParameterError, match="files with the same column names"):
        reader_of(pattern)


def test_parquet_without_rows_and_with_nulls_only(tmp_path: Path) -> None:
    pq.write_table(arrow().slice(0, 0), tmp_path / "a.parquet")
    pq.write_table(pa.table({name: pa.nulls(5) for name in KINDS}), tmp_path / "b.parquet")
    reader = reader_of(str(tmp_path / "*.parquet"))
    assert reader.count() == 5
    found = read(reader, 2, named(reader))
    assert found["city"].tolist() == [3.0] * 5  # the option for missing cells
    assert found["name"].tolist() == [None] * 5
    for name in ("age", "income", "member", "day", "paid"):
        assert np.isnan(found[name]).all()


def test_files_of_other_types_are_read_by_their_own(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["2.5", "y"]}), tmp_path / "b.parquet")
    parts = reader_of(str(tmp_path / "*.parquet")).parts(("x",), batch=9, numbers=frozenset("x"))
    read_to = np.concatenate([KINDS["paid"].read(b[0]) for part in parts for b in part()])
    np.testing.assert_array_equal(read_to, [1, 2, 2.5, np.nan])


def test_names_with_dots_and_of_structs(tmp_path: Path) -> None:
    struct = pa.array([{"b": 1}, {"b": 2}])
    pq.write_table(pa.table({"a": struct, "a.b": [3, 4]}), tmp_path / "x.parquet")
    (part,) = reader_of(tmp_path / "x.parquet").parts(("a.b",), batch=9)
    assert [b[0].to_pylist() for b in part()] == [[3, 4]]


def test_a_field_of_arrays_is_no_column() -> None:
    """Refused by its type, when it is named: not by NumPy, when it has been paid for."""
    rows = np.zeros(5, dtype=[("a", "f8", (2,)), ("b", "f8")])
    assert array_reader(rows).names == ("b",)
    with pytest.raises(ParameterError, match="column 'a'"):
        zd.open(rows, columns={"a": zd.number(0, 1)})


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays(
        [pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"]
    )
    stored = [written(ending, twice, tmp_path) for ending in WRITERS]
    for source in (twice, *stored, duckdb.sql("select 1 as a, 2 as a, 3 as b")):
        reader = reader_of(source)
        with pytest.raises(ParameterError, match="one column of that name"):
            reader.parts(("a",), batch=9)
    for source in (twice, *stored):
        (part,) = reader_of(source).parts(("b",), batch=9)
        assert [KINDS["paid"].read(b[0]).tolist() for b in part()] == [[3]]
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ParameterError, match="a different name for each column"):
        reader_of(frame)


# -- one odd cell -----------------------------------------------------------------------------

ODD_TEXTS = (*TEXTS[::3], *BYTES[1:4])
ODD_NUMBERS = [None if each is None else float(each) for each in FLOATS]


TEXT_TYPES: dict[str, Any] = {
    "string": pa.string(),
    "large": pa.large_string(),
    "dictionary": pa.string(),
}


def typed(texts: list[Any], numbers: list[Any], kind: str = "string") -> pa.Table:
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    # unsafe: a file may hold texts of any type that are no valid UTF-8
    column: Any = pa.array(encoded, type=pa.binary()).cast(TEXT_TYPES[kind], safe=False)
    if kind == "dictionary":
        column = column.dictionary_encode()
    return pa.table({"city": column, "paid": pa.array(numbers, type=pa.float64())})


ANY_BYTES = ("arrow", "arrow stream", "arrow dataset in memory", *FILES)
VALID_TEXTS = ("pandas arrow", "polars", "polars lazy", "duckdb")


@pytest.mark.parametrize(
    ("holder", "kind"),
    [
        *((holder, "string") for holder in (*ANY_BYTES, *VALID_TEXTS)),
        *itertools.product(sorted({*ANY_BYTES} - {"file .csv"}), ("large", "dictionary")),
    ],
)
def test_an_odd_cell_changes_no_other(holder: str, kind: str, tmp_path: Path, capfd: Any) -> None:
    texts: list[Any] = ["Oslo", "Rome", "Lima"] * 4
    numbers: list[Any] = [float(i) for i in range(12)]

    def both(texts: list[Any], numbers: list[Any]) -> list[Any]:
        reader = reader_of(HOLDERS[holder](typed(texts, numbers, kind), tmp_path))
        parts = reader.parts(("city", "paid"), batch=5, numbers=frozenset({"paid"}))
        batches = [found for part in parts for found in part()]
        return [
            np.concatenate([KINDS[name].read(found[i]) for found in batches])
            for i, name in enumerate(("city", "paid"))
        ]

    usual = both(texts, numbers)
    pairs = [(text, 7.0) for text in ODD_TEXTS] + [("Rome", number) for number in ODD_NUMBERS]
    for text, number in pairs:
        if isinstance(text, bytes) and holder not in ANY_BYTES:
            continue  # such a container cannot hold it
        if holder == "file .csv" and isinstance(text, str) and "\n" in text:
            continue  # a line is a row
        odd = both([*texts[:7], text, *texts[8:]], [*numbers[:7], number, *numbers[8:]])
        for before, after in zip(usual, odd, strict=True):
            assert len(after) == 12
            assert np.flatnonzero(before != after).tolist() in ([], [7])
    assert capfd.readouterr() == ("", "")


# -- what cannot be read ----------------------------------------------------------------------


def test_a_damaged_page_is_one_fixed_message(tmp_path: Path) -> None:
    path = parquet(arrow(), tmp_path)
    whole = bytearray(path.read_bytes())
    whole[4:2000] = b"\xff" * 1996
    path.write_bytes(whole)
    (part,) = parquet_reader(path).parts(("age",), batch=9)
    with pytest.raises(ParameterError) as raised:
        list(part())
    assert str(raised.value) == (
        "source: expected rows that can be read to the end; "
        "check the file or the query with its own tools."
    )
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_whatever_is_wrong_with_a_file_its_reader_says_what_it_may(
    ending: str, share: float, tmp_path: Path, capfd: Any
) -> None:
    """It has no cause or context, which may hold cells."""
    path = written(ending, arrow(), tmp_path)
    whole = bytearray(path.read_bytes())
    start = int(share * len(whole))
    whole[start : start + len(whole) // 9] = b"\xff" * (len(whole) // 9)
    for damaged in (bytes(whole), path.read_bytes().replace(b"income", b"inc\xffme")):
        path.write_bytes(damaged)
        refused = why_unread(path)
        if refused is not None:
            assert refused.__cause__ is None
            assert refused.__context__ is None
            assert "Lima" not in str(refused)
    assert capfd.readouterr() == ("", "")


def why_unread(path: Path) -> ParameterError | None:
    try:
        reader = reader_of(path)
        assert reader.count() >= 0
        columns = tuple(name for name in KINDS if name in reader.names)
        for part in reader.parts(columns, batch=50):
            for batch in part():
                assert {len(column) for column in batch} == {len(batch[0])}
    except ParameterError as refused:
        return refused
    return None


def test_a_query_that_fails_while_it_runs_says_nothing() -> None:
    connection = duckdb.connect()
    reader = reader_of(("select i as x from range(9) t(i) where error('secret')", connection))
    for ask in (reader.count, lambda: [list(part()) for part in reader.parts(("x",), batch=2)]):
        with pytest.raises(ParameterError, match="rows that can be read") as raised:
            ask()
        assert raised.value.__context__ is None
    assert connection.execute("select 7").fetchall() == [(7,)]  # not blocked


@pytest.mark.parametrize("query", ["select * from nowhere", "selec"])
def test_a_query_that_selects_nothing_is_refused(query: str) -> None:
    with pytest.raises(ParameterError, match="a query that selects rows") as raised:
        reader_of((query, duckdb.connect()))
    assert raised.value.__context__ is None


def test_a_lazy_frame_that_fails_says_nothing() -> None:
    def fail(_: Any) -> Any:
        raise ValueError("secret")

    frame = pl.LazyFrame({"x": [1, 2]}).select(pl.col("x").map_batches(fail, return_dtype=pl.Int64))
    reader = reader_of(frame)
    (part,) = reader.parts(("x",), batch=9)
    with pytest.raises(ParameterError, match="rows that can be read") as raised:
        list(part())
    assert raised.value.__context__ is None


def test_a_query_that_warns_while_it_runs_says_nothing() -> None:
    def warn(x: Any) -> Any:
        warnings.warn("secret", stacklevel=1)
        return x

    frame = pl.LazyFrame({"x": [1, 2]}).select(pl.col("x").map_batches(warn, return_dtype=pl.Int64))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (part,) = reader_of(frame).parts(("x",), batch=9)
        assert [found[0].tolist() for found in part()] == [[1, 2]]
    assert caught == []


def test_a_result_left_early_frees_its_connection() -> None:
    connection = duckdb.connect()
    (part,) = reader_of(("select range as x from range(100000)", connection)).parts(("x",), batch=9)
    batches = part()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert connection.execute("select 7").fetchall() == [(7,)]


class Panic(BaseException):
    """What an engine written in another language raises."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Panic, GeneratorExit])
def test_whatever_an_engine_raises_is_one_message(kind: type[BaseException]) -> None:
    def failed() -> Any:
        raise kind("a secret")
        yield

    with pytest.raises(ParameterError, match="rows that can be read to the end") as told:
        list(guarded(failed))
    assert told.value.__context__ is None
    assert told.value.__cause__ is None


def test_an_interrupt_is_no_failure_of_the_engine() -> None:
    def interrupted() -> Any:
        signal.raise_signal(signal.SIGINT)
        yield

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(guarded(interrupted))
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for source in ("*.parquet", "none.csv", "*.csv", ""):
        with pytest.raises(ParameterError, match="a pattern that matches files"):
            reader_of(str(tmp_path / source))
    with pytest.raises(ParameterError, match="a pattern that matches files"):
        reader_of([csv(arrow(), tmp_path), tmp_path / "none.csv"])


def test_endings_of_files_tell_their_format(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"x\ty\n1\t2\n")
    assert reader_of(tmp_path / "a.tsv").names == ("x", "y")
    assert reader_of(tmp_path / "a.tsv", {"delimiter": ","}).names == ("x\ty",)
    parquet(arrow(), tmp_path)
    (tmp_path / "b.parquet.gz").write_bytes(b"")
    (tmp_path / "c.xlsx").write_bytes(b"")
    for name in ("*a*", "b.parquet.gz", "c.xlsx"):
        with pytest.raises(ParameterError, match="files that end in"):
            reader_of(str(tmp_path / name))


def test_a_list_of_texts_is_a_column_and_not_paths() -> None:
    reader = reader_of(["people.csv", "*.csv", "x"])
    assert (reader.count(), reader.names) == (3, ("0",))


@pytest.mark.parametrize(
    "source",
    [None, 7, {"a": [1]}, object(), io.BytesIO(b"a\n1\n"), {1, 2}, b"people.csv", iter([1])],
    ids=lambda source: type(source).__name__,
)
def test_other_types_are_refused_by_name(source: Any) -> None:
    with pytest.raises(ParameterError, match=r"source = .*expected an array, a list of rows"):
        reader_of(source)


def test_unknown_options_are_refused_for_every_source(tmp_path: Path) -> None:
    for source in (csv(arrow(), tmp_path), np.zeros(3)):
        with pytest.raises(ParameterError, match='did you mean "delimiter"'):
            reader_of(source, {"delimeter": ";"})


def test_an_array_of_three_dimensions_is_refused() -> None:
    for array in (np.zeros((2, 2, 2)), np.array(1.0)):
        with pytest.raises(ParameterError, match="one or two dimensions"):
            reader_of(array)


def test_datasets_whose_types_come_from_rows_are_refused(tmp_path: Path) -> None:
    csv(arrow(), tmp_path)
    with pytest.raises(ParameterError, match="PyArrow infers"):
        reader_of(ds.dataset(tmp_path / "people.csv", format="csv"))


def test_partitions_are_columns(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2, 3], "year": [2020, 2021, 2021]})
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=["year"])
    parted = ds.dataset(tmp_path, partitioning=["year"])
    reader = reader_of(parted)
    assert (reader.count(), reader.premise) == (3, FOREIGN_CODE)
    parts = reader.parts(("year", "x"), batch=9)
    rows: list[Any] = []
    for year, x in (batch for part in parts for batch in part()):
        rows += zip(year.to_pylist(), x.to_pylist(), strict=True)
    assert sorted(rows) == [(2020, 1), (2021, 2), (2021, 3)]


@pytest.mark.parametrize("kind", [*FILES, "partitions", "lazy"])
def test_what_names_its_rows_can_be_sent_to_another_process(kind: str, tmp_path: Path) -> None:
    table, path = pa.table({"x": [1.0, 2.0, 3.0]}), tmp_path / "rows"
    source: Any
    if kind in FILES:
        source = FILES[kind](table, tmp_path)
    elif kind == "partitions":
        table = table.append_column("year", pa.array([1, 2, 2]))
        ds.write_dataset(table, path, format="parquet", partitioning=["year"])
        source = ds.dataset(path, partitioning=["year"])
    else:
        source = pl.scan_parquet(parquet(table, tmp_path))
    people = zd.open(source, columns={"x": zd.number(0, 5)})
    sent = pickle.loads(pickle.dumps(people))
    assert sent.rows == 3
    assert round(zd.sum(sent["x"], epsilon=1000).value) == 6


def test_what_is_left_of_a_stream_that_failed_is_never_taken_for_its_rows() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1.0, 1.0])], names=["x"])
        raise ValueError("PLANTED")

    schema = pa.schema([("x", pa.float64())])
    reader = reader_of(pa.RecordBatchReader.from_batches(schema, batches()))
    for ask in (reader.count, lambda: reader.parts(("x",), batch=9), reader.count):
        with pytest.raises(ParameterError, match="read to the end") as raised:
            ask()
        assert raised.value.__context__ is None


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("pyarrow", "duckdb", "polars", "pandas"), None))
import numpy as np
from zerodelta.data.arrays import reader_of
print(reader_of(np.zeros((2, 3))).count())
for part in reader_of(sys.argv[1]).parts(("x",), batch=9, numbers=frozenset("x")):
    print(*part())
try:
    reader_of(sys.argv[2])
except ImportError as error:
    print(error)
"""


def test_arrays_and_csv_need_no_extra_and_the_rest_says_which(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x\n1\ny\n")
    pq.write_table(arrow(), tmp_path / "a.parquet")
    run = [sys.executable, "-c", WITHOUT, str(tmp_path / "a.csv"), str(tmp_path / "a.parquet")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2",
        "(array([ 1., nan]),)",
        "pyarrow is not installed: pip install 'zerodelta[data]'.",
    ]
