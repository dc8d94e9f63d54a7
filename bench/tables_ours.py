"""Make the people of `bench/tables.py`, and ask about them with zerodelta."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from bench.tables_report import EPSILON

import zerodelta as zd

Floats: TypeAlias = npt.NDArray[np.float64]

WIDTH = 200_000
CITIES = [f"city {letter}" for letter in "abcdefghijkl"]
EDGES = np.linspace(0, WIDTH, 21)
SIZES = {"city": 12, "decade": 10, "plan": 4, "member": 2}
PAIRS = list(itertools.combinations(SIZES, 2))
KINDS = {
    "city": zd.category(CITIES),
    "decade": zd.category(range(10)),
    "plan": zd.category(range(4)),
    "member": zd.category(range(2)),
    "income": zd.number(0, WIDTH, missing=None),
}


def made_people() -> pl.DataFrame:
    """2e5 people of 12 cities of unlike sizes, and columns that OpenDP needs prepared."""
    rng, n = np.random.default_rng(16), 200_000
    weights = 1 / np.arange(1, 13)
    city = rng.choice(12, size=n, p=weights / weights.sum())
    income = np.clip(np.exp(rng.normal(10.3 + 0.03 * city, 0.6)), 0, WIDTH)
    off = income - WIDTH / 2
    return pl.DataFrame(
        {
            "city": np.array(CITIES)[city],
            "decade": np.clip(rng.normal(4.5, 2, n), 0, 9).astype(np.int64),
            "plan": rng.choice(4, size=n, p=[0.6, 0.25, 0.1, 0.05]),
            "member": rng.integers(2, size=n),
            "income": income,
            "square": income**2,
            "off": off,
            "bent": off**2 - WIDTH**2 / 8,
        }
    )


def opened(rows: Any, columns: Any, relation: str) -> Any:
    """Open rows with us."""
    expected: dict[str, Any] = {} if relation == "replace" else {"expected_rows": len(rows)}
    return zd.open(rows, columns=columns, neighbors=relation, **expected)


def our_counts(people: Any) -> Any:
    return zd.count(people, by="city", epsilon=EPSILON).value


def our_means(people: Any) -> Any:
    return zd.mean(people, "income", by="city", epsilon=EPSILON).value


def our_variances(people: Any) -> Any:
    return zd.table(people, by="city", of={"income": ["mean", "variance"]}, epsilon=EPSILON).value


def our_two_way(people: Any) -> Any:
    return zd.count(people, by=["city", "decade"], epsilon=EPSILON).value


def our_tables(people: Any) -> Any:
    return zd.answer_queries(people, [*SIZES], workload=2, epsilon=EPSILON).value


def our_histogram(people: Any) -> Any:
    return zd.histogram(people, "income", bins=EDGES, epsilon=EPSILON).value


def our_quantiles(people: Any, levels: Floats) -> Any:
    return zd.quantiles(people, q=levels, epsilon=EPSILON).value


def our_top(items: Any, epsilon: float) -> Any:
    return zd.top_k(items, k=10, epsilon=epsilon).value.names


def our_keys(items: Any, goal: str) -> Any:
    return zd.heavy_hitters(items, epsilon=EPSILON, goal=goal, false_keys=1).value.names
