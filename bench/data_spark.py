"""Define the jobs of `bench/data.py --spark`: queries to zerodelta, Spark itself and DuckDB.

Ours clip and add integers on the workers (`mapInArrow`); Spark's own aggregates do neither, and run
inside the JVM. The session starts before the first of three runs, of which the least counts.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import duckdb
from bench.data_jobs import CITIES, FEATURES, NORM, WIDTH, Job, opened

import zerodelta as zd
from zerodelta.exact.fixed_point import FixedPoint

_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
_NUMBER = zd.number(-10, 10, missing=None)
_KEPT: dict[Path, Any] = {}


@lru_cache(maxsize=1)
def session() -> Any:
    """Return a session with as many workers as there are processors."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.master(f"local[{len(os.sched_getaffinity(0))},4]")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _frame(path: Path) -> Any:
    return session().read.parquet(str(path))


def _wide(path: Path, names: list[str]) -> Any:
    return zd.open(_frame(path).select(*names), columns=dict.fromkeys(names, _NUMBER))


def total(path: Path) -> Any:
    lattice = FixedPoint.box(dimension=1, lower=-10, upper=10, steps=1 << 30)
    return opened(_wide(path, ["x0"])).sum([0], lattice)


def gram(path: Path) -> Any:
    return _gram(opened(_wide(path, FEATURES)))


def gram_again(path: Path) -> Any:
    """Ask rows that were asked before: from the copy that the workers keep."""
    if path not in _KEPT:
        _KEPT[path] = opened(_wide(path, FEATURES))
    _KEPT[path]._sums.clear()  # and not for the sum that is known
    return _gram(_KEPT[path])


def _gram(rows: Any) -> Any:
    lattice = FixedPoint.ball(dimension=WIDTH, bound=str(NORM), steps=1 << 20)
    return rows.gram(list(range(WIDTH)), lattice)


def counts(path: Path) -> Any:
    people = zd.open(_frame(path).select("city"), columns={"city": zd.category(CITIES)})
    return opened(people).counts(0, len(CITIES))


_PRODUCTS = [f"sum({a} * {b})" for a, b in combinations_with_replacement(FEATURES, 2)]


def query(text: str) -> Job:
    """Return a job of DuckDB; {} is the path."""

    def run(path: Path) -> Any:
        with duckdb.connect() as connection:
            connection.execute(f"SET threads={len(os.sched_getaffinity(0))}")
            return connection.execute(text.format(path)).fetchall()

    return run


def _aggregated(*sums: str) -> Job:
    from_frame = [f"{expression} as s{i}" for i, expression in enumerate(sums)]
    return lambda path: _frame(path).selectExpr(*from_frame).collect()


SPARK_JOBS: dict[str, tuple[str, dict[str, Job]]] = {
    "sum": (
        "wide",
        {
            "ours": total,
            "Spark": _aggregated("sum(x0)"),
            "DuckDB": query("SELECT sum(x0) FROM read_parquet('{}')"),
        },
    ),
    "XᵀX": (
        "wide",
        {
            "ours": gram,
            "Spark": _aggregated(*_PRODUCTS),
            "ours again": gram_again,
            "DuckDB": query(f"SELECT {', '.join(_PRODUCTS)} FROM read_parquet('{{}}')"),
        },
    ),
    "counts": (
        "keys",
        {
            "ours": counts,
            "Spark": lambda path: _frame(path).groupBy("city").count().collect(),
            "DuckDB": query("SELECT city, count(*) FROM read_parquet('{}') GROUP BY city"),
        },
    ),
}
"""As `JOBS`: which file is read, and who does the work; the second is the measure."""
