"""Empty, broken, huge and senseless inputs: what is documented, or a clear error on public grounds.

A secret stands in the data of every test; no message, warning, log or line on the screen tells it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zerodelta as zd
from data.opening import opened
from data.sources import HOLDERS
from zerodelta.data.dataset import Dataset

SECRET = "s3cr3t"
NUMBER = 48151.6234
AGE: dict[str, Any] = {"age": zd.number(0, 120)}
SURE: dict[str, Any] = {"age": zd.number(0, 120, missing=None)}


@pytest.fixture(autouse=True)
def nothing_tells(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    captured = capfd.readouterr()
    for told in (captured.out, captured.err, caplog.text):
        assert not secret(told)


def secret(told: str) -> bool:
    return SECRET in told or "48151" in told or "6234" in told


def refused(ask: Callable[[], Any], match: str | None = None) -> None:
    """Check that an error is ours, and that neither it nor one that it chains tells a cell."""
    with pytest.raises(zd.errors.ZeroDeltaError, match=match) as error:
        ask()
    told: BaseException | None = error.value
    while told is not None:
        assert not secret(f"{told} {told.args}")
        told = told.__cause__ or told.__context__


def ages(people: Dataset) -> Any:
    return np.concatenate([np.empty((0, 1)), *opened(people["age"]).blocks()])[:, 0]


# -- how many rows --------------------------------------------------------------------------------


HELD = ("arrow", "pandas", "pandas objects", "polars", "polars lazy", "structured array", "duckdb")
IN_FILES = ("parquet", "csv", "csv.gz")


def tables(folder: Path, cells: list[Any]) -> Iterator[Any]:
    """Yield the same column from every kind of source."""
    for holder in (*HELD, *IN_FILES):
        yield HOLDERS[holder](pa.table({"age": pa.array(cells, pa.float64())}), folder)


def test_no_rows_are_refused_where_their_number_is_public(tmp_path: Path) -> None:
    for source in tables(tmp_path, []):
        for kinds in (AGE, SURE):
            people = zd.open(source, columns=kinds)
            for verb in (zd.mean, zd.sum, zd.std, zd.median):
                refused(lambda: verb(people, "age", epsilon=1), "at least one row")  # noqa: B023


def test_no_rows_are_a_release_like_any_other_where_their_number_is_private(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    nothing = list(tables(tmp_path / "none", []))
    something = list(tables(tmp_path, [30.0, 40.0, None, NUMBER]))
    bare: list[Any] = [[], np.zeros(0), np.zeros((0, 1)), [[]]]
    for none in bare:
        people = zd.open(none, columns={"0": AGE["age"]}, neighbors="add-remove", expected_rows=100)
        assert 0 <= zd.mean(people, "0", epsilon=1).value <= 120
    for none, some in zip(nothing, something, strict=True):
        empty, filled = (
            zd.open(source, columns=AGE, neighbors="add-remove", expected_rows=100)
            for source in (none, some)
        )
        for verb in (zd.mean, zd.sum, zd.count, zd.variance, zd.median):
            one, two = (verb(people, "age", epsilon=1) for people in (empty, filled))
            assert one.certificate == two.certificate
            assert one.error == two.error
            assert type(one.value) is type(two.value)
        assert type(zd.count(empty, epsilon=1).value) is int
        left = zd.open(some, columns=AGE).where("age > 119 and age < 119")
        assert 0 <= zd.mean(left, "age", epsilon=1).value <= 120
        assert 0 <= zd.median(left, "age", epsilon=1).value <= 120


def test_columns_of_the_type_null_are_read_as_missing(tmp_path: Path) -> None:
    table = pa.table({"age": pa.nulls(4), "city": pa.nulls(4), "who": pa.nulls(4)})
    pq.write_table(table, tmp_path / "people.parquet")
    kinds = {**AGE, "city": zd.category(["oslo"], other=True)}
    for source in (table, tmp_path / "people.parquet", table.to_pandas(), pl.from_arrow(table)):
        people = zd.open(source, columns=kinds)
        np.testing.assert_array_equal(ages(people), [np.nan] * 4)
        assert zd.mode(people, "city", epsilon=50).value == "other"
        unit = zd.open(source, columns=kinds, unit="who", max_rows=2)
        assert len(ages(unit)) == 2
        assert unit.rows == 2


def test_thousands_of_columns(tmp_path: Path) -> None:
    names = [f"column {i}" for i in range(3000)]
    table = pa.table({name: pa.array([1.0, NUMBER]) for name in names})
    pq.write_table(table, tmp_path / "wide.parquet")
    line = ",".join(["1.0"] * 3000)
    text = "\n".join([",".join(names), line, line.replace("1.0", str(NUMBER))]) + "\n"
    (tmp_path / "wide.csv").write_text(text)
    for source in (tmp_path / "wide.parquet", tmp_path / "wide.csv", table.to_pandas()):
        one = zd.open(source, columns={names[-1]: zd.number(0, 10)})
        assert zd.mean(one, names[-1], epsilon=1000).value == pytest.approx(5.5, abs=1)
        refused(lambda: zd.open(source, columns={"column": zd.number(0, 1)}), "column")  # noqa: B023
    many = dict.fromkeys(names[:300], zd.number(0, 10))
    every = zd.open(tmp_path / "wide.parquet", columns=many)
    for verb, expected in ((zd.mean, 5.5), (zd.sum, 11.0)):
        found = verb(every, epsilon=10**6).value
        assert found.shape == (300,)
        np.testing.assert_allclose(found, expected, atol=0.5)


@pytest.mark.parametrize("missing", ["skip", None])
def test_the_number_of_passes_does_not_grow_with_the_columns(
    missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = [0]
    read = Dataset.blocks

    def counted(self: Dataset, ticket: Any) -> Any:
        passes[0] += 1
        return read(self, ticket)

    monkeypatch.setattr(Dataset, "blocks", counted)
    frame = pd.DataFrame({f"c{i}": [1.0, NUMBER, None] for i in range(40)})
    people = zd.open(frame, columns=dict.fromkeys(frame.columns, zd.number(0, 10, missing=missing)))
    for verb, expected in ((zd.mean, 5.5), (zd.sum, 11.0)):
        passes[0] = 0
        found = verb(people, epsilon=10**6).value
        assert passes[0] <= 2
        filled = 5.0 if verb is zd.sum else -0.5 / 3  # what is missing counts as the middle
        np.testing.assert_allclose(found, expected + (0 if missing else filled), atol=0.01)


# -- broken files ---------------------------------------------------------------------------------


def test_a_truncated_parquet_file_is_refused_without_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    table = pa.table({"age": [NUMBER] * 5000, "who": [SECRET] * 5000})
    pq.write_table(table, path, row_group_size=1000, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    for size in (0, 3, 4, 100, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(lambda: zd.open(path, columns=AGE), "source")


def test_a_file_that_is_not_what_it_is_called(tmp_path: Path) -> None:
    for name in ("people.parquet", "people.csv.gz"):
        path = tmp_path / name
        path.write_text(f"age,who\n{NUMBER},{SECRET}\n")
        refused(lambda: zd.mean(zd.open(path, columns=AGE), "age", epsilon=1), "source")  # noqa: B023


# -- names and patterns ---------------------------------------------------------------------------


def test_a_schema_that_names_no_column(tmp_path: Path) -> None:
    path, schema = tmp_path / "people.csv", tmp_path / "people.toml"
    path.write_text(f"{SECRET},{NUMBER}\n{NUMBER},{SECRET}\n")
    for text in ("", "[columns]\n", 'name = "people"\n'):
        schema.write_text(text)
        refused(lambda: zd.open(path, schema=zd.data.read_schema(schema)), "columns")
    refused(lambda: zd.open(path, columns={}), "columns")
    refused(lambda: zd.open(path, columns=AGE), "age")  # and its header is not shown
    refused(lambda: zd.open(path, columns=AGE, unit="who", max_rows=1), "age")
    schema.write_text("[columns\n")
    refused(lambda: zd.data.read_schema(schema))
