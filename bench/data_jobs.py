"""Define the jobs of `bench/data.py`, each run in its own process to measure its own memory.

Ours read through `zd.open`; the others do the same work in plain floats over the same row groups,
with as many threads, or are DuckDB's own queries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import zerodelta as zd
from zerodelta.data.rows import Rows
from zerodelta.data.source import Ticket
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.training.gradient_sums import Examples
from zerodelta.training.gradients import LinearGradients
from zerodelta.training.losses import Logistic

WIDTH = 20
NORM = 5.5
"""A normal row of 20 columns is longer than this once in fourteen times: it is clipped."""
CITIES = [f"city {i}" for i in range(51)]
KEYS = 1000
BLOCK, BATCH = 1 << 15, 1 << 16
FEATURES = [f"x{i}" for i in range(WIDTH)]
THETA = np.linspace(-0.3, 0.3, WIDTH)

Job: TypeAlias = Callable[[Path], Any]


# -- files ------------------------------------------------------------------------------------


def written(folder: Path, kind: str, rows: int) -> Path:
    """Return a file of made-up rows, made at the first call: the same rows for every size."""
    text = kind in ("csv", "quoted")
    path = folder / f"{kind}-{rows}.{'csv' if text else 'parquet'}"
    if path.exists():
        return path
    partial_path = path.with_suffix(".part")
    group = {"wide": 100_000}.get(kind, 500_000 if text else 1_000_000)
    if text:
        mark = '"' if kind == "quoted" else ""
        between = f"{mark},{mark}"
        with open(partial_path, "w", encoding="utf-8") as file:
            for part in _parts(kind, rows, group):
                columns = [column.cast(pa.string()).to_pylist() for column in part.columns]
                lines = zip(*columns, strict=True)
                named = [part.column_names] if not file.tell() else []
                file.writelines(f"{mark}{between.join(c)}{mark}\n" for c in [*named, *lines])
    else:
        schema = next(_parts(kind, 1, group)).schema
        with pq.ParquetWriter(partial_path, schema) as writer:
            for part in _parts(kind, rows, group):
                writer.write_table(part, row_group_size=group)
    partial_path.rename(path)
    return path


def _parts(kind: str, rows: int, group: int) -> Iterator[pa.Table]:
    for start in range(0, rows, group):
        rng, count = np.random.default_rng(start), min(group, rows - start)
        if kind == "wide":
            columns = {name: rng.normal(size=count) for name in FEATURES}
            yield pa.table({**columns, "label": rng.integers(0, 2, count).astype(float)})
        elif kind == "numbers":
            yield pa.table({"x0": rng.normal(size=count)})
        elif kind == "keys":
            cities = pa.DictionaryArray.from_arrays(
                rng.integers(0, len(CITIES), count).astype(np.int32), pa.array(CITIES)
            )
            yield pa.table({"city": cities.cast(pa.string()), "key": rng.integers(0, KEYS, count)})
        else:
            numbers = {name: rng.normal(100, 20, count).round(3) for name in "ab"}
            later = {name: rng.integers(0, 10**6, count) for name in "cde"}
            yield pa.table({**numbers, "income": rng.gamma(2, 2e4, count).round(2), **later})


# -- ours -------------------------------------------------------------------------------------


def opened(people: Any) -> Rows:
    """Return rows without a release: what is measured are sums, not noise."""
    rows: Rows = people.open(Ticket(None))  # type: ignore[arg-type]
    return rows


def _wide(path: Path) -> Any:
    columns = {name: zd.number(-10, 10, missing=None) for name in FEATURES}
    return zd.open(path, columns={**columns, "label": zd.number(0, 1, missing=None)})


def gram(path: Path) -> Any:
    lattice = FixedPoint.ball(dimension=WIDTH, bound=str(NORM), steps=1 << 20)
    return opened(_wide(path)[FEATURES]).gram(list(range(WIDTH)), lattice)


def gradient(path: Path) -> Any:
    people = _wide(path)
    examples = Examples.of(people, label="label")
    gradients = LinearGradients(examples, loss=Logistic(), radius=2, data_norm=str(NORM))
    return gradients.on(opened(people)).total_once(THETA)


def _keys(path: Path) -> Any:
    return zd.open(
        path, columns={"city": zd.category(CITIES), "key": zd.number(0, KEYS - 1, integer=True)}
    )


def counts_text(path: Path) -> Any:
    return opened(_keys(path)[["city"]]).counts(0, len(CITIES))


def counts_integer(path: Path) -> Any:
    return opened(_keys(path)[["key"]]).counts(0, KEYS)


def counts_two(path: Path) -> Any:
    rows = opened(_keys(path)[["city", "key"]])
    return rows.group_sums((0, 1), (len(CITIES), KEYS), None, None)


def mean_csv(path: Path) -> Any:
    people = zd.open(path, columns={"income": zd.number(0, 10**6)})
    return zd.mean(people, "income", epsilon=1)


def median(path: Path) -> Any:
    people = zd.open(path, columns={"x0": zd.number(-10, 10, missing=None)})
    return zd.quantile(people["x0"], q="1/2", epsilon=1)


# -- the same work in floats ------------------------------------------------------------------


def _float_sum(path: Path, names: list[str], part: Callable[[Any], Any]) -> Any:
    """Add up what floats give, block by block, one thread for each row group."""
    footer = pq.read_metadata(path)

    def group(index: int) -> Any:
        total: Any = 0.0
        with pq.ParquetFile(path, metadata=footer, pre_buffer=False, buffer_size=1 << 20) as file:
            batches = file.iter_batches(BATCH, row_groups=[index], columns=names, use_threads=False)
            for batch in batches:
                table = np.empty((len(names), len(batch)))
                for i, column in enumerate(batch.columns):
                    table[i] = column.to_numpy(zero_copy_only=False)
                for start in range(0, len(batch), BLOCK):
                    total = total + part(table[:, start : start + BLOCK])
        return total

    threads = len(os.sched_getaffinity(0))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(group, range(footer.num_row_groups)))


def _clipped(block: Any) -> Any:
    norms = np.sqrt(np.einsum("ij,ij->j", block, block))
    if (norms > NORM).any():
        block *= np.minimum(1.0, NORM / norms)
    return block


def float_gram(path: Path) -> Any:
    def part(block: Any) -> Any:
        clipped = _clipped(block)
        return clipped @ clipped.T

    return _float_sum(path, FEATURES, part)


def float_gradient(path: Path) -> Any:
    def part(block: Any) -> Any:
        rows, labels = _clipped(block[:-1]), block[-1]
        slopes = 1 / (1 + np.exp(-(THETA @ rows))) - labels
        return rows @ slopes

    return _float_sum(path, [*FEATURES, "label"], part)


def _naive_groups(path: Path, names: list[str]) -> Iterator[Any]:
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=names)
        yield np.column_stack([column.to_numpy() for column in table.columns])


def _shortened(rows: Any) -> Any:
    return rows * np.minimum(1.0, NORM / np.linalg.norm(rows, axis=1))[:, None]


def naive_gram(path: Path) -> Any:
    return sum(x.T @ x for x in map(_shortened, _naive_groups(path, FEATURES)))


def naive_gradient(path: Path) -> Any:
    total = np.zeros(WIDTH)
    for table in _naive_groups(path, [*FEATURES, "label"]):
        rows = _shortened(table[:, :-1])
        total += rows.T @ (1 / (1 + np.exp(-(rows @ THETA))) - table[:, -1])
    return total


def _query(text: str) -> Job:
    def run(path: Path) -> Any:
        with duckdb.connect() as connection:
            connection.execute(f"SET threads={len(os.sched_getaffinity(0))}")
            return connection.execute(text.format(path)).fetchall()

    return run


JOBS: dict[str, tuple[str, dict[str, Job]]] = {
    "XᵀX": ("wide", {"ours": gram, "floats": float_gram, "naive floats": naive_gram}),
    "clipped gradient": (
        "wide",
        {"ours": gradient, "floats": float_gradient, "naive floats": naive_gradient},
    ),
    "median": (
        "numbers",
        {"ours": median, "DuckDB": _query("SELECT median(x0) FROM read_parquet('{}')")},
    ),
    "counts by text": (
        "keys",
        {
            "ours": counts_text,
            "DuckDB": _query("SELECT city, count(*) FROM read_parquet('{}') GROUP BY city"),
        },
    ),
    "counts by integer": (
        "keys",
        {
            "ours": counts_integer,
            "DuckDB": _query("SELECT key, count(*) FROM read_parquet('{}') GROUP BY key"),
        },
    ),
    "counts by both": (
        "keys",
        {
            "ours": counts_two,
            "DuckDB": _query("SELECT city, key, count(*) FROM read_parquet('{}') GROUP BY ALL"),
        },
    ),
    "mean from CSV": (
        "csv",
        {"ours": mean_csv, "DuckDB": _query("SELECT avg(income) FROM read_csv('{}')")},
    ),
    "mean from quoted CSV": (
        "quoted",
        {"ours": mean_csv, "DuckDB": _query("SELECT avg(income) FROM read_csv('{}')")},
    ),
}
"""By name: which file is read, and who does the work; the first is ours, the second its measure."""
