"""What users of Tumult Analytics write for `bench/tables.py`, which runs this in their environment.

    python bench/tables_tumult.py rows.csv asked.json

Prints one JSON line: for each task a list of (answers by city or bin, seconds). It needs Java.
ε is for one added row; the columns of the CSV file are city and income.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, BinningSpec, KeySet, PureDPBudget, QueryBuilder, Session


def counts(people: Any, keys: Any, epsilon: float) -> list[Any]:
    return [people.evaluate(QueryBuilder("people").groupby(keys).count(), PureDPBudget(epsilon))]


def means(people: Any, keys: Any, epsilon: float, width: float) -> list[Any]:
    each, by = PureDPBudget(epsilon / 2), QueryBuilder("people").groupby(keys)
    return [
        people.evaluate(by.count(), each),
        people.evaluate(by.average("income", 0, width), each),
    ]


def variances(people: Any, keys: Any, epsilon: float, width: float) -> list[Any]:
    each, by = PureDPBudget(epsilon / 3), QueryBuilder("people").groupby(keys)
    return [
        people.evaluate(by.count(), each),
        people.evaluate(by.average("income", 0, width), each),
        people.evaluate(by.variance("income", 0, width), each),
    ]


def histogram(people: Any, edges: list[float], epsilon: float) -> list[Any]:
    bins = BinningSpec(edges, names=list(range(len(edges) - 1)), right=False)
    asked = QueryBuilder("people").histogram("income", bins)
    return [people.evaluate(asked, PureDPBudget(epsilon))]


def main() -> None:
    asked = json.loads(sys.argv[2])
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.csv(sys.argv[1], header=True, schema="city string, income double")
    frame = frame.fillna(0.0).cache()
    frame.count()
    keys, epsilon = KeySet.from_dict({"city": asked["cities"]}), asked["epsilon"]
    budget = PureDPBudget(float("inf"))
    programs = {
        "counts": lambda people: counts(people, keys, epsilon),
        "means": lambda people: means(people, keys, epsilon, asked["width"]),
        "variances": lambda people: variances(people, keys, epsilon, asked["width"]),
        "histogram": lambda people: histogram(people, asked["edges"], epsilon),
    }
    found: dict[str, list[Any]] = {}
    for name, run in programs.items():
        for _ in range(asked["runs"]):
            start = time.perf_counter()
            people = Session.from_dataframe(budget, "people", frame, protected_change=AddOneRow())
            tables = [answer.toPandas() for answer in run(people)]
            seconds = time.perf_counter() - start
            columns = [t.sort_values(t.columns[0]).iloc[:, 1].tolist() for t in tables]
            found.setdefault(name, []).append((columns, seconds))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
