"""One release on any source: the integers are identical, whatever the engine, batches, threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zerodelta as zd
from data.opening import opened
from data.sources import HOLDERS, structured
from data.test_spark import COLUMNS, answers, table
from zerodelta.data import chosen as base
from zerodelta.data import rows

ROWS = 1003
CITIES = ["oslo", "rome", "bern"]


def rows_of() -> list[Any]:
    """Numbers on both sides of their bounds, odd ones, and cells that are missing or unknown."""
    rng = np.random.default_rng(5)
    ages, heights = rng.integers(-5, 130, ROWS), 100 + 60 * rng.normal(size=ROWS)
    heights[::50], heights[::70], heights[::31] = np.nan, 1e308, -1e300
    heights[1], heights[2], heights[3] = 200.0, np.nextafter(200, 201), 5e-324
    cities, members = rng.integers(0, 5, ROWS), rng.integers(0, 3, ROWS)
    return [
        (
            str(i % 300),
            "x" if i % 40 == 3 else str(ages[i]),
            None if i % 90 == 7 else float(heights[i]),
            ("oslo", "rome", "paris", "", None)[cities[i]],
            (True, False, None)[members[i]],
        )
        for i in range(ROWS)
    ]


TABLE = table(rows_of())
SOURCES = ("structured array", "pandas", "polars", "polars lazy", "arrow", "csv", "duckdb")
FILES = ("parquet", "parquet, 7 groups")


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    """What one thread makes of a table in memory; by definition: test_sums.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "processors", lambda: 1)
        return answers(zd.open(structured(TABLE), columns=COLUMNS))


@pytest.mark.parametrize(("threads", "batch"), [(1, 1 << 16), (2, 1 << 16), (5, 37)])
@pytest.mark.parametrize("source", [*SOURCES, *FILES])
def test_every_source_gives_the_same_integers(
    source: str,
    threads: int,
    batch: int,
    reference: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "processors", lambda: threads)
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    monkeypatch.setattr(base, "_BATCH", batch)
    people = zd.open(HOLDERS[source](TABLE, tmp_path), columns=COLUMNS)
    assert answers(people) == reference


@pytest.mark.parametrize("size", [70_000, ROWS])
def test_many_keys_are_counted_where_they_are(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_LARGE_TABLE", 1000)
    keys = np.random.default_rng(0).integers(-5, size + 5, ROWS).astype(float)
    keys[:3] = np.nan, 0.5, 1e300
    people = zd.open(keys[:, None], columns={"0": zd.number(-9, 99_999)})
    right = [int((keys == key).sum()) for key in range(size)]
    assert opened(people).counts(0, size).tolist() == right
    right[7] += ROWS - sum(right)
    assert opened(people).counts(0, size, invalid=7).tolist() == right


@pytest.mark.parametrize("invalid", [None, 2])
@pytest.mark.parametrize("groups", [1, 7])
def test_columns_are_counted_as_they_are_stored(
    groups: int, invalid: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts by their dictionaries, integers as such: what floats of the same cells give."""
    rng = np.random.default_rng(1)
    texts = rng.choice([*CITIES, "elsewhere", "", "1.0"], ROWS).tolist()
    integers = rng.integers(-3, 8, ROWS)
    integers[:3] = [2**62, -(2**62), 2**53 + 1]
    table = pa.table(
        {
            "text": texts,
            "null": [None if i % 5 == 0 else text for i, text in enumerate(texts)],
            "int64": integers,
            "uint64": np.abs(integers).astype(np.uint64) * 2,
            "int8": (integers % 100).astype(np.int8),
            "gap": pa.array([None if i % 7 == 0 else int(k) for i, k in enumerate(integers)]),
        }
    )
    path = tmp_path / "stored.parquet"
    pq.write_table(table, path, row_group_size=-(-ROWS // groups))
    city = zd.category(CITIES)
    kinds = {
        **dict.fromkeys(("text", "null"), city),
        **{name: zd.number(-9, 99, integer=True) for name in ("int64", "uint64", "int8", "gap")},
    }
    people = zd.open(path, columns=kinds)
    monkeypatch.setattr(rows, "processors", lambda: 2)
    for name in kinds:
        found = {}
        for entries in (0, 1 << 60):  # in threads, as stored; in one, as floats
            monkeypatch.setattr(rows, "_FEWEST_ENTRIES", entries)
            found[entries] = opened(people[[name]]).counts(0, 3, invalid=invalid).tolist()
        codes = [CITIES.index(c) if c in CITIES else -1 for c in table[name].to_pylist()]
        if isinstance(kinds[name], type(kinds["int8"])):
            codes = [k if k is not None and 0 <= k < 3 else -1 for k in table[name].to_pylist()]
        right = [codes.count(key) for key in range(3)]
        if invalid is not None:
            right[invalid] += codes.count(-1)
        assert found == {0: right, 1 << 60: right}, name
