"""Ask the questions of `bench/tables.py` with Tumult Analytics, in its own interpreter.

    python bench/tables_tumult.py people.parquet EPSILON RUNS

Tumult protects one added or removed row; its ε is given by the caller. It needs older packages than
everything else here, so it gets the rows in a file and prints answers, seconds and lines as JSON.
Seconds are those of the clock: the work is done by Spark.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.tables_report import lines_of
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    BinningSpec,
    KeySet,
    PureDPBudget,
    QueryBuilder,
    Session,
)

warnings.simplefilter("ignore")

WIDTH = 200_000
CITIES = [f"city {letter}" for letter in "abcdefghijkl"]
KEYS = {"city": CITIES}
BINS = [10_000.0 * i for i in range(21)]


def counts(people: Any, epsilon: float) -> Any:
    query = QueryBuilder("people").groupby(KeySet.from_dict(KEYS)).count()
    return people.evaluate(query, PureDPBudget(epsilon)).toPandas()


def means(people: Any, epsilon: float) -> Any:
    groups = QueryBuilder("people").groupby(KeySet.from_dict(KEYS))
    half = PureDPBudget(epsilon / 2)
    count = people.evaluate(groups.count(), half).toPandas()
    mean = people.evaluate(groups.average("income", 0, WIDTH, name="mean"), half).toPandas()
    return count.merge(mean, on="city")


def variances(people: Any, epsilon: float) -> Any:
    groups = QueryBuilder("people").groupby(KeySet.from_dict(KEYS))
    third = PureDPBudget(epsilon / 3)
    count = people.evaluate(groups.count(), third).toPandas()
    mean = people.evaluate(groups.average("income", 0, WIDTH, name="mean"), third).toPandas()
    query = groups.variance("income", 0, WIDTH, name="variance")
    return count.merge(mean, on="city").merge(people.evaluate(query, third).toPandas(), on="city")


def two_way(people: Any, epsilon: float) -> Any:
    keys = KeySet.from_dict({**KEYS, "decade": [*range(10)]})
    query = QueryBuilder("people").groupby(keys).count()
    return people.evaluate(query, PureDPBudget(epsilon)).toPandas().sort_values(["city", "decade"])


def histogram(people: Any, epsilon: float) -> Any:
    query = QueryBuilder("people").histogram("income", BinningSpec(BINS, right=False))
    frame = people.evaluate(query, PureDPBudget(epsilon)).toPandas()
    frame["left"] = [float(name.strip("[(").split(",")[0]) for name in frame["income_binned"]]
    return frame.sort_values("left")


TASKS = {
    "counts": counts,
    "means": means,
    "variances": variances,
    "two_way": two_way,
    "histogram": histogram,
}


def main() -> None:
    path, epsilon, runs = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 4)
    spark = session.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.read.parquet(path)
    for task, program in TASKS.items():
        for _ in range(runs):
            start = time.perf_counter()
            budget = PureDPBudget(epsilon)
            people = Session.from_dataframe(budget, "people", rows, protected_change=AddOneRow())
            answers = program(people, epsilon)
            seconds = time.perf_counter() - start
            wanted = [name for name in ("city", "count", "mean", "variance") if name in answers]
            answer = {name: answers[name].tolist() for name in wanted}
            line = {"task": task, "seconds": seconds, "lines": lines_of(program), "answer": answer}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
