"""Jobs on a Spark session of their own, run by `test_spark.py` in another process.

Each prints what it has checked, a line each; anything else is a failure.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import zerodelta as zd
from data.full_releases import COLUMNS as DECLARED
from data.full_releases import RELEASES, made_up, run
from data.opening import opened
from data.test_spark import COLUMNS, FINE, ODD_NUMBERS, ODD_TEXTS, OF_UNITS, QUESTIONS, kept, table
from zerodelta.data.spark import OnCluster

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.log.level": "OFF",
}


def session(mode: str, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    place = "local[2,4]"  # four attempts: by default a failed task ends a local job
    builder = builder.remote(place) if mode == "connect" else builder.master(place)
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": str(folder / "tables")}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def odd_rows() -> pa.Table:
    usual = [
        (str(i % 7), str(i), float(i), "oslo" if i % 3 else "rome", i % 2 == 0) for i in range(60)
    ]
    texts = [(None, each, 1.0, each, None) for each in [*ODD_TEXTS, None]]
    numbers = [("7", "40", each, "paris", True) for each in ODD_NUMBERS]
    return table([*usual, *texts, *numbers, *usual[:9]])


def integers(spark: Any, folder: Path) -> None:
    cells = odd_rows()
    spread = spark.createDataFrame(cells).repartition(4)
    cases: dict[str, dict[str, Any]] = {"rows": {}, "units": {"unit": "who", "max_rows": 3}}
    asked = {"rows": QUESTIONS, "units": OF_UNITS}
    for name, options in cases.items():
        there, here = (zd.open(each, columns=COLUMNS, **options) for each in (spread, cells))
        assert there.rows == here.rows
        rows, expected = (
            opened(there.where("not (height < 3)")),
            opened(here.where("not (height < 3)")),
        )
        for question in asked[name]:
            ask = QUESTIONS[question]
            found, known = ask(rows), ask(expected)
            assert found.dtype == known.dtype, question
            np.testing.assert_array_equal(found, known)
            print(f"{name}: {question}")
        del rows
        assert kept(there["age"]) == kept(here["age"])
        print(f"{name}: blocks")
    retried(spread, cells, folder)
    forgotten(spark, spread)


def dies_once(folder: str) -> Callable[[Any], Any]:
    """Return a function of rows that ends its process the first time that it sees any."""

    def function(block: Any) -> Any:
        if len(block) > 1 or block.any():
            try:
                os.close(os.open(os.path.join(folder, "died"), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return block / 3
            os._exit(1)
        return block / 3

    return function


def retried(spread: Any, cells: Any, folder: Path) -> None:
    people = zd.open(spread, columns=COLUMNS)["age"]
    found = opened(people).sum(dies_once(str(folder)), FINE)
    assert (folder / "died").exists()  # a worker went, and its task was run again
    expected = opened(zd.open(cells, columns=COLUMNS)["age"]).sum(lambda block: block / 3, FINE)
    assert found.tolist() == expected.tolist()
    print("retried")


def forgotten(spark: Any, spread: Any) -> None:
    """The copy on the workers is given up with the rows."""
    rows: Any = opened(zd.open(spread, columns=COLUMNS)["age"])
    rows.counts("age", 5)
    copied = rows.held._copied
    assert copied.storageLevel.useMemory
    del rows
    gc.collect()
    assert not copied.storageLevel.useMemory
    print("forgotten")


def releases(spark: Any, folder: Path) -> None:
    """Releases for which no row comes to the driver."""
    rows = 100_000
    who = pa.array(np.arange(rows) % 25_000)
    spread = spark.createDataFrame(made_up(rows).append_column("who", who)).repartition(4)
    people = zd.open(spread, columns=DECLARED)

    def refused(self: Any) -> Any:
        raise AssertionError("rows came to the driver")

    OnCluster.blocks = refused  # type: ignore[method-assign]
    for name in RELEASES:
        run(name, people, rows)
        print(name)
    assert abs(zd.median(people.where("age >= 10"), "height", epsilon=1).value - 100) < 5
    print("median")
    made = zd.synthesize(people, ["city", "member"], size=1000, epsilon=1).value
    assert len(made["city"]) == 1000
    print("synthetic rows")
    release = zd.mean(zd.open(spread, columns=DECLARED, unit="who", max_rows=3), "age", epsilon=1)
    assert abs(release.value - 50) < 1
    assert zd.verify(release.certificate, unit="who") == zd.purification.PureDP(1)
    print("unit mean")
    study(people)


def study(people: Any) -> None:
    """Twenty rounds on the copy that the workers keep."""

    def program(asked: zd.Study) -> Any:
        answers = [asked.mean("age", bounds=(0, 100)) for _ in range(20)]
        return np.mean(answers, axis=0)

    asked = zd.Study(
        people["age"], epsilon=2, publish=zd.Box(0, 100), rounds=20, mixing_probability=1e-6
    )
    assert abs(float(np.ravel(asked.run(program).value)[0]) - 50) < 5
    print("study")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    job, mode, place = sys.argv[1:]
    spark = session(mode, Path(place))
    jobs = {"integers": integers, "releases": releases}
    jobs[job](spark, Path(place))
    spark.stop()
