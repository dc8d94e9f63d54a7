"""A case of every verb of the package and of every method that it offers.

A case is called by what it is: `verb, what is special, method=name`. The verb is looked up by that
name and handed to the case; the method is handed to it as an option.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import zerodelta as zd
from golden.rows import ITEMS, NUMBERS, SPARSE, TARGET, people

Case = Callable[..., Any]

WHERE = "(age >= 40 or not city == 'rome') and day < '2020-09-01'"
UNIT: dict[str, Any] = {"unit": "who", "max_rows": 2, "units": 60}
ADDED: dict[str, Any] = {"neighbors": "add-remove", "expected_rows": 120}
BITS = {name: [0, 1] for name in range(3)}


def with_methods(name: str, case: Case, *methods: str) -> dict[str, Case]:
    """Return the case by itself, and once with each method."""
    return {name: case} | {f"{name}, method={method}": case for method in methods}


def _first(rows: Any) -> int:
    return int(np.nansum(rows[:, 0]) > len(rows) / 2)


def _networks() -> dict[str, Any]:
    return {
        name: zd.models.NetworkModel(
            features=["age"], label="member", lower=(0,), upper=(100,), units=units
        )
        for name, units in (("one", 1), ("two", 2))
    }


def _middle(rows: Any) -> Any:
    return np.mean(np.concatenate(list(rows.blocks())))


def _fit(candidate: int, rows: Any) -> Any:
    return candidate


def _score(candidate: int, rows: Any) -> Any:
    return rows[:, candidate]


_SIMULATED = {"select_model", "vote"}
"""Tasks whose forecasts are simulated: from which row count on they pay is read off floats."""

MEDIAN = zd.queries.Median(bounds=(0, 100), steps=50)
THRESHOLDS: Any = {"age": [30, 60], "income": [0]}

CASES: dict[str, Case] = {
    # -- sums and means ---------------------------------------------------------------------------
    **with_methods(
        "mean",
        lambda f, **o: f(NUMBERS, bounds=(0, 1), epsilon=1, **o),
        *("k-norm", "k-norm-max", "laplace"),
    ),
    "mean, data set": lambda f: f(people(), ["age", "income"], epsilon=1),
    "mean, data norm": lambda f: f(NUMBERS, data_norm=2, epsilon="1/3"),
    "mean, norm 1": lambda f: f(people(), ["income", "age"], data_norm=40, norm=1, epsilon=1),
    "mean, by": lambda f: f(people(), "income", by=["city", "day"], epsilon=2),
    "mean, by bins": lambda f: f(people(), "income", by={"age": zd.bins([0, 30, 60])}, epsilon=2),
    "mean, where": lambda f: f(people().where(WHERE), "income", epsilon=1),
    "mean, where, by": lambda f: f(people().where("member"), "age", by="town", epsilon=1),
    "mean, unit": lambda f: f(people(**UNIT), ["age", "income"], epsilon=1),
    "mean, unit, where": lambda f: f(people(**UNIT).where("member"), "income", epsilon=1),
    "mean, add-remove": lambda f: f(people(**ADDED), ["age", "income"], epsilon=1),
    "mean, diagnostics": lambda f: f(people(), "income", epsilon=2, diagnostics="1/10"),
    "mean, no cell missing": lambda f: f(people(), "age", epsilon=1),
    "mean, bare frame": lambda f: f(_frame(), ["x", "y"], bounds=(0, 1), epsilon=1),
    "sum": lambda f: f(people(), ["age", "income"], epsilon=1),
    "sum, array": lambda f: f(NUMBERS, bounds=(0, 1), epsilon=1),
    "sum, by": lambda f: f(people(), "income", by="city", epsilon=1),
    "sum, where": lambda f: f(people().where(WHERE), "age", epsilon="1/3"),
    "sum, unit": lambda f: f(people(**UNIT), "age", epsilon=1),
    "sum, add-remove": lambda f: f(people(**ADDED), "income", epsilon=1),
    "sum, diagnostics": lambda f: f(people(), "income", epsilon=1, diagnostics="1/10"),
    "count": lambda f: f(people(), "income", epsilon=1),
    "count, public": lambda f: f(people(), epsilon=1),
    "count, where": lambda f: f(people().where(WHERE), epsilon=1),
    "count, by": lambda f: f(people(), by=["city", "town"], epsilon=1),
    "count, unit": lambda f: f(people(**UNIT), by="city", epsilon=1),
    "count, add-remove": lambda f: f(people(**ADDED), epsilon=1),
    "variance": lambda f: f(people(), ["age", "income"], epsilon=1),
    "variance, by": lambda f: f(people(), "income", by="city", epsilon=2),
    "variance, where": lambda f: f(people().where(WHERE), "income", epsilon=1),
    "std": lambda f: f(people(), "income", epsilon=1),
    "std, array": lambda f: f(NUMBERS, bounds=(0, 1), epsilon=1),
    "std, unit": lambda f: f(people(**UNIT), "age", epsilon=1),
    "std, add-remove": lambda f: f(people(**ADDED), "age", epsilon=1),
    # -- second moments ---------------------------------------------------------------------------
    **with_methods(
        "covariance",
        lambda f, **o: f(people(), ["age", "income"], epsilon=1, **o),
        *("matrix", "frobenius", "max"),
    ),
    "covariance, unit": lambda f: f(people(**UNIT), ["age", "income"], epsilon=1),
    "covariance, where": lambda f: f(people().where("member"), ["age", "income"], epsilon=1),
    **with_methods(
        "correlation",
        lambda f, **o: f(NUMBERS, bounds=(0, 1), epsilon=1, **o),
        *("matrix", "frobenius", "max"),
    ),
    "correlation, diagnostics": lambda f: f(
        people(), ["age", "income"], epsilon=1, diagnostics="1/10"
    ),
    **with_methods(
        "pca",
        lambda f, **o: f(people(), ["age", "income"], components=1, epsilon=1, **o),
        *("matrix", "frobenius", "max"),
    ),
    # -- quantiles --------------------------------------------------------------------------------
    **with_methods(
        "median",
        lambda f, **o: f(people(), "age", grid=101, epsilon=1, **o),
        "permute-and-flip",
    ),
    "median, where": lambda f: f(people().where(WHERE), "income", epsilon=1),
    **with_methods(
        "quantile",
        lambda f, **o: f(people(), "income", q="9/10", epsilon=1, **o),
        "permute-and-flip",
    ),
    "quantile, margin": lambda f: f(people(), "age", q="1/4", margin=5, grid=11, epsilon=1),
    "quantile, unit": lambda f: f(people(**UNIT), "age", q="1/2", grid=21, epsilon=1),
    "quantile, add-remove": lambda f: f(people(**ADDED), "age", q="1/2", grid=21, epsilon=1),
    **with_methods(
        "quantiles",
        lambda f, **o: f(people(), "age", q=["1/10", "1/2", "9/10"], grid=25, epsilon=1, **o),
        *("joint", "counts"),
    ),
    **with_methods(
        "quantiles, one",
        lambda f, **o: f(people(), "age", q=["1/2"], grid=25, epsilon=1, **o),
        "permute-and-flip",
    ),
    "quantiles, where": lambda f: f(
        people().where(WHERE), "income", q=["1/4", "3/4"], grid=7, epsilon=1
    ),
    "quantiles, diagnostics": lambda f: f(
        people(), "income", q=["1/4", "3/4"], epsilon=1, diagnostics="1/10"
    ),
    **with_methods(
        "cdf",
        lambda f, **o: f(people(), "income", at=[0, 100, 500], epsilon=1, **o),
        "counts",
    ),
    **with_methods(
        "cdf, whole", lambda f, **o: f(people(), "age", grid=9, epsilon=1, **o), "quantiles"
    ),
    **with_methods(
        "trimmed_mean",
        lambda f, **o: f(NUMBERS[:, 0], trim="1/10", bounds=(0, 1), spread=1, epsilon=1, **o),
        *("smooth-sensitivity", "propose-test-release", "laplace"),
    ),
    "trimmed_mean, data set": lambda f: f(people(), "age", trim="1/10", epsilon=1),
    # -- counts of keys ---------------------------------------------------------------------------
    **with_methods(
        "histogram",
        lambda f, **o: f(people(), "city", epsilon=1, **o),
        *("k-norm", "laplace"),
    ),
    "histogram, bins": lambda f: f(people(), "income", bins=4, epsilon=1),
    "histogram, items": lambda f: f(ITEMS, universe=["a", "b", "c"], epsilon=1),
    "histogram, days": lambda f: f(people().where(WHERE), "day", epsilon=1),
    "histogram, unit": lambda f: f(people(**UNIT), "town", epsilon=1),
    "histogram, add-remove": lambda f: f(people(**ADDED), "city", epsilon=1),
    "histogram, diagnostics": lambda f: f(people(), "town", epsilon=1, diagnostics="1/10"),
    **with_methods(
        "mode",
        lambda f, **o: f(ITEMS, universe=["a", "b", "c"], epsilon=1, **o),
        *("permute-and-flip", "stability"),
    ),
    **with_methods(
        "mode, many", lambda f, **o: f(range(120), universe=200, epsilon=4, **o), "asymmetric"
    ),
    "mode, data set": lambda f: f(people(), "city", epsilon=1),
    "mode, where": lambda f: f(people().where("age < 50"), "town", epsilon=1),
    **with_methods(
        "top_k",
        lambda f, **o: f(people(), "town", k=2, epsilon=1, **o),
        *("asymmetric", "symmetric"),
    ),
    **with_methods(
        "top_k, scores",
        lambda f, **o: f(scores=[9, 4, 7, 1], sensitivity=1, k=2, epsilon=1, **o),
        *("joint", "peeling"),
    ),
    "top_k, text keys": lambda f: f(people(), "note", k=2, epsilon=4),
    "top_k, unit": lambda f: f(people(**UNIT), "town", k=2, epsilon=2),
    "heavy_hitters": lambda f: f(people(), ["city", "day"], epsilon=1),
    "heavy_hitters, text keys": lambda f: f(people(), "note", epsilon=4),
    "heavy_hitters, items": lambda f: f(ITEMS, universe=["a", "b", "c"], epsilon=1),
    "heavy_hitters, unit": lambda f: f(people(**UNIT), "note", epsilon=4),
    "heavy_hitters, add-remove": lambda f: f(people(**ADDED), "note", epsilon=4),
    # -- tables -----------------------------------------------------------------------------------
    "table": lambda f: f(people(), by="city", of={"age": "mean"}, epsilon=1),
    "table, statistics": lambda f: f(
        people(),
        by=["city", "day"],
        of={"age": ["mean", "std"], "income": ["sum", "variance"]},
        epsilon=2,
        diagnostics="1/10",
    ),
    "table, quantiles": lambda f: f(
        people(), by="city", of={"income": ["median", {"quantiles": ["1/4", "3/4"]}]}, epsilon=2
    ),
    "table, where, no groups": lambda f: f(
        people().where(WHERE), of={"age": ["mean", "std"]}, epsilon=1
    ),
    "table, text keys": lambda f: f(people(), by="note", of={"age": "mean"}, epsilon=8),
    "table, goal": lambda f: f(
        people(),
        by="town",
        of={"age": ["mean", "std"], "income": "mean"},
        goal="least total error",
        epsilon=2,
    ),
    "table, unit": lambda f: f(people(**UNIT), by="city", of={"income": "mean"}, epsilon=2),
    "table, add-remove": lambda f: f(
        people(**ADDED), by="city", of={"income": ["mean", "std"]}, epsilon=2
    ),
    **with_methods(
        "answer_queries",
        lambda f, **o: f(people(), ["city", "town"], epsilon=1, **o),
        *("k-norm", "counts", "laplace", "mwem"),
    ),
    **with_methods(
        "answer_queries, array",
        lambda f, **o: f(SPARSE, domain=BITS, epsilon=1, **o),
        "mwem",
    ),
    "answer_queries, where": lambda f: f(people().where(WHERE), ["town", "day"], epsilon=1),
    "answer_queries, unit": lambda f: f(people(**UNIT), ["city", "member"], epsilon=1),
    "answer_queries, add-remove": lambda f: f(people(**ADDED), ["city", "member"], epsilon=1),
    **with_methods(
        "synthesize",
        lambda f, **o: f(people(), ["city", "member"], size=5, epsilon=1, **o),
        *("k-norm", "counts", "laplace", "mwem"),
    ),
    **with_methods(
        "synthesize, array",
        lambda f, **o: f(SPARSE, domain=BITS, size=5, epsilon=1, **o),
        "mwem",
    ),
    # -- models and selections --------------------------------------------------------------------
    **with_methods(
        "kmeans",
        lambda f, **o: f(people(), ["age", "income"], clusters=2, epsilon=1, **o),
        *("histogram", "lloyd", "one-center"),
    ),
    "kmeans, where": lambda f: f(people().where("member"), ["age"], clusters=2, epsilon=1),
    "kmeans, six columns": lambda f: f(
        np.tile(NUMBERS, (1, 2)), clusters=2, bounds=(0, 1), method="lloyd", epsilon=1
    ),
    "decision_tree": lambda f: f(people(), label="member", thresholds=THRESHOLDS, epsilon=1),
    **with_methods(
        "select",
        lambda f, **o: f([9, 4, 7, 1], sensitivity=1, epsilon=1, **o),
        "permute-and-flip",
    ),
    "select, columns": lambda f: f(people(), ["age", "income"], bounds=(-5, 100), epsilon=1),
    **with_methods(
        "select_features",
        lambda f, **o: f(
            people(), ["age", "income", "member"], target="income", size=1, epsilon=1, **o
        ),
    ),
    **with_methods(
        "select_features, array",
        lambda f, **o: f(
            NUMBERS, target=2, size=1, bounds=(0, 1), target_bounds=(0, 1), epsilon=1, **o
        ),
        *("gram", "stepwise"),
    ),
    "select_model, scores": lambda f: f(
        NUMBERS, {"a": 0, "b": 1}, score=_score, bounds=(0, 1), epsilon=1
    ),
    **with_methods(
        "select_model",
        lambda f, **o: f(
            people(), _networks(), columns=["age", "member"], rounds=1, epsilon=1, **o
        ),
        "study",
    ),
    **with_methods(
        "select_model, votes",
        lambda f, **o: f(
            NUMBERS,
            {"a": 0, "b": 1},
            fit=_fit,
            score=lambda candidate, fitted, rows: rows[:, fitted],
            bounds=(0, 1),
            least_rows=10,
            epsilon=1,
            **o,
        ),
        "vote",
    ),
    "vote": lambda f: f(people(), _first, ["age"], options=[0, 1], least_rows=10, epsilon=1),
    "vote, blocks": lambda f: f(
        NUMBERS,
        lambda rows: ["no", "yes"][_first(rows)],
        options=["no", "yes"],
        blocks=4,
        epsilon=1,
    ),
    "vote, unit": lambda f: f(people(**UNIT), _first, ["age"], options=[0, 1], blocks=4, epsilon=1),
    # -- stable queries ---------------------------------------------------------------------------
    **with_methods(
        "propose_test_release",
        lambda f, **o: f(people(), "age", query=MEDIAN, proposed_bound=1, epsilon=2, **o),
        "free-mixing",
    ),
    "propose_test_release, own query": lambda f: f(
        people()["age"],
        query=_middle,
        stability=lambda rows, bound: 0,
        proposed_bound=1,
        bounds=(0, 100),
        epsilon=2,
    ),
    **with_methods(
        "bounded_local_sensitivity",
        lambda f, **o: f(people(), "age", query=MEDIAN, epsilon=2, **o),
        "mixing",
    ),
    # -- what makes no release of rows ------------------------------------------------------------
    "advise, mean": lambda f: str(f("mean", n=1000, bounds=(0, 1), epsilon=1)).splitlines(),
    "advise, all tasks": lambda f: {
        advice.task: str(advice).splitlines() for advice in f() if advice.task not in _SIMULATED
    },
    "advise, error": lambda f: str(f("mean", error="1/100", bounds=(0, 1), epsilon=1)).splitlines(),
    "calibrate": lambda f: f(epsilon=1, log_delta=-20.0, sensitivity=1),
    "is_purifier": lambda f: f(
        [["1/2", "1/2"], ["1/2", "1/2"]], epsilon=1, claim=zd.ApproxDP(1, -20.0)
    ),
    "verify": lambda f: f(
        zd.plan(zd.Finite(4), epsilon=1).certificate(zd.GaussianDP("1/10")), epsilon=1
    ),
}


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"x": NUMBERS[:, 0], "y": TARGET})
