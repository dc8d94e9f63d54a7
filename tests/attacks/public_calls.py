"""A call of every public function that works: fuzzing changes one argument of it, or several.

The rows hold secrets; whatever a call says on its way out must not show them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import zerodelta as zd
from estimators.instances import ALL, parameters
from golden.golden import call_of
from public import public
from zerodelta.mechanisms.stable_queries import Median
from zerodelta.tasks.registry import verbs

SECRETS = ("48151.6", "s3cr3t", "62342.1")
"""Parts of cells that no message may contain."""


def _rows(width: int = 1) -> Any:
    rows = np.random.default_rng(0).uniform(0, 100, size=(60, width))
    rows[0], rows[1, 0] = 48151.625, 62342.125  # beyond the bounds
    return rows[:, 0] if width == 1 else rows


def _items() -> list[Any]:
    return ["s3cr3t", *["a", "b", "c"] * 20]


NUMBERS, TABLE, ITEMS = _rows(), _rows(3), _items()
RECORD = "release.json"
"""A saved release, in the folder in which the calls are made."""
DOMAIN = {name: [0, 1] for name in range(3)}


def _choose(rows: Any) -> int:
    return 0


def _score(index: int, rows: Any) -> Any:
    return rows[:, index]


CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "RDP": (({2: 1},), {}),
    "ZCDP": (("1/2",), {}),
    "ApproxDP": ((1, -20.0), {}),
    "Ball": ((2, 1), {"norm": 2}),
    "Box": ((0, 1), {"dimension": 2}),
    "Finite": ((4,), {}),
    "GaussianDP": (("1/10",), {}),
    "Ledger": (("ledger.db",), {"budget": 1}),
    "Multiset": ((4, 2), {}),
    "PureDP": ((1,), {}),
    "Study": ((TABLE,), {"epsilon": 1, "publish": zd.Finite(4), "rounds": 2, "bounds": (0, 100)}),
    "Subsets": ((), {"of": 4, "size": 2}),
    "advise": (("mean",), {"n": 1000, "bounds": (0, 1), "epsilon": 1}),
    "answer_queries": ((TABLE,), {"domain": DOMAIN, "epsilon": 1}),
    "bins": (([0, 1, 2],), {}),
    "boolean": ((), {"missing": True}),
    "bounded_local_sensitivity": (
        (NUMBERS,),
        {"query": Median(bounds=(0, 100), steps=20), "epsilon": 1},
    ),
    "calibrate": ((), {"epsilon": 1, "log_delta": -20.0, "sensitivity": 1}),
    "category": ((["a", "b"],), {"other": True}),
    "cdf": ((NUMBERS,), {"at": [20, 50], "bounds": (0, 100), "epsilon": 1}),
    "compose": ((zd.purification.PureDP(1),), {"count": 2}),
    "correlation": ((TABLE,), {"bounds": (0, 100), "epsilon": 1}),
    "count": ((NUMBERS,), {"epsilon": 1}),
    "covariance": ((TABLE,), {"bounds": (0, 100), "epsilon": 1}),
    "date": (("2020-01-01", "2020-12-31"), {"by": "month"}),
    "decision_tree": (
        (TABLE,),
        {"label": 2, "thresholds": {0: [20, 50]}, "classes": (0, 1), "epsilon": 1},
    ),
    "fake": ((None,), {"rows": 10}),
    "heavy_hitters": ((ITEMS,), {"universe": ["a", "b", "c"], "epsilon": 1}),
    "histogram": ((ITEMS,), {"universe": ["a", "b", "c"], "epsilon": 1}),
    "is_purifier": (([["1/2", "1/2"], ["1/2", "1/2"]], 1, zd.ApproxDP(1, -20.0)), {}),
    "kmeans": ((TABLE,), {"clusters": 2, "bounds": (0, 100), "epsilon": 1}),
    "load": ((RECORD,), {}),
    "mean": ((NUMBERS,), {"bounds": (0, 100), "epsilon": 1}),
    "median": ((NUMBERS,), {"bounds": (0, 100), "epsilon": 1}),
    "mode": ((ITEMS,), {"universe": ["a", "b", "c"], "epsilon": 1}),
    "number": ((0, 1), {"missing": "skip", "integer": False}),
    "open": ((TABLE,), {"columns": {"0": zd.number(0, 100)}}),
    "pca": ((TABLE,), {"components": 1, "bounds": (0, 100), "epsilon": 1}),
    "plan": ((zd.Finite(4),), {"epsilon": 1, "base": zd.GaussianDP("1/10")}),
    "propose_test_release": (
        (NUMBERS,),
        {"query": Median(bounds=(0, 100), steps=20), "proposed_bound": 10, "epsilon": 1},
    ),
    "purify": ((3,), {"space": zd.Finite(4), "claim": zd.GaussianDP("1/10"), "epsilon": 1}),
    "quantile": ((NUMBERS,), {"q": "1/4", "bounds": (0, 100), "epsilon": 1}),
    "quantiles": ((NUMBERS,), {"q": ["1/4", "3/4"], "bounds": (0, 100), "epsilon": 1}),
    "select": (([1, 2, 3],), {"sensitivity": 1, "epsilon": 1}),
    "select_features": (
        (TABLE,),
        {"target": 2, "size": 1, "bounds": (0, 100), "target_bounds": (0, 100), "epsilon": 1},
    ),
    "select_model": (
        (TABLE,),
        {"candidates": {"a": 0, "b": 1}, "score": _score, "bounds": (0, 100), "epsilon": 1},
    ),
    "std": ((NUMBERS,), {"bounds": (0, 100), "epsilon": 1}),
    "sum": ((NUMBERS,), {"bounds": (0, 100), "epsilon": 1}),
    "synthesize": ((TABLE,), {"domain": DOMAIN, "epsilon": 1}),
    "table": (
        (zd.open(TABLE, columns={"0": zd.number(0, 100), "1": zd.number(0, 100)}),),
        {"by": {"1": zd.bins([0, 50, 100])}, "of": {"0": "mean"}, "epsilon": 1},
    ),
    "text": ((20,), {"exact": True}),
    "top_k": ((ITEMS,), {"k": 2, "universe": ["a", "b", "c"], "epsilon": 1}),
    "trimmed_mean": ((NUMBERS,), {"trim": "1/10", "bounds": (0, 100), "epsilon": 1}),
    "variance": ((NUMBERS,), {"bounds": (0, 100), "epsilon": 1}),
    "verify": ((zd.plan(zd.Finite(4), epsilon=1).certificate(zd.GaussianDP("1/10")),), {}),
    "vote": ((TABLE, _choose), {"options": [0, 1], "least_rows": 5, "epsilon": 1}),
}
CALLS["fake"] = (CALLS["table"][0], {"rows": 10})
CALLS |= {name: call_of(f"{name}, array") for name in verbs() if name not in CALLS}

FITTED: dict[str, dict[str, Any]] = {
    type(estimator).__name__: parameters(estimator) for estimator in reversed(ALL)
}
CALLS |= {f"sklearn.{name}": ((), given) for name, given in FITTED.items()}


def function(name: str) -> Callable[..., Any]:
    """Return what a name calls: an estimator is made and fitted."""
    home, _, last = name.rpartition(".")
    if not home:
        called: Callable[..., Any] = public(last)
        return called
    estimator = getattr(zd.sklearn, last)

    @wraps(estimator)
    def fitted(**given: Any) -> Any:
        return estimator(**given).fit(TABLE[:, :2], TABLE[:, 2] > 50)

    return fitted
