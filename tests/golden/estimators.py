"""A case of every estimator and of every method that it offers, fitted to arrays and data sets."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier, is_regressor

from estimators.instances import ALL, parameters
from golden.rows import LABELS, NUMBERS, SPARSE, TARGET, people
from golden.verbs import ADDED, UNIT, Case, with_methods


def _on_arrays(y: Any = None, rows: Any = NUMBERS, **given: Any) -> Case:
    given = {"epsilon": 1, **given}
    return lambda f, **o: f(**given, **o).fit(rows, *([] if y is None else [y]))


def _on_people(
    features: list[str], label: str | None = None, *, opened: Any = None, **given: Any
) -> Case:
    given = {"epsilon": 1, **given}

    def case(f: Any, **o: Any) -> Any:
        data = people(**(opened or {}))
        return f(**given, **o).fit(data[features], *([] if label is None else [data[label]]))

    return case


_TWO: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1]}
_LINE: dict[str, Any] = {"data_norm": 2, "bounds_y": (0, 1)}
_CLASS: dict[str, Any] = {"data_norm": 2, "classes": [0, 1]}

_CASES: dict[str, Case] = {
    "BoundedScaler": lambda f, **o: f(bounds=(0, 1)).fit_transform(NUMBERS[:8]),
    **with_methods(
        "KMeans",
        _on_arrays(n_clusters=2, bounds=(0, 1)),
        *("histogram", "lloyd", "one-center"),
    ),
    "KMeans, data set": _on_people(["age", "income"], n_clusters=2),
    **with_methods(
        "LinearRegression",
        _on_arrays(TARGET, **_LINE),
        *("huber", "statistics"),
    ),
    "LinearRegression, one feature": lambda f, **o: f(
        epsilon=1, data_norm=1, bounds_y=(0, 1), fit_intercept=False, method="statistics", **o
    ).fit(NUMBERS[:, :1], TARGET),
    "LinearRegression, no intercept": _on_arrays(TARGET, fit_intercept=False, **_LINE),
    "LinearRegression, data set": _on_people(["age", "city"], "income", diagnostics="1/10"),
    "LinearRegression, unit": _on_people(["age", "city"], "income", opened=UNIT),
    **with_methods(
        "LogisticRegression",
        _on_arrays(LABELS, **_CLASS),
        *("objective", "descent"),
    ),
    "LogisticRegression, three classes": _on_arrays(
        LABELS + (NUMBERS[:, 1] > 0.5), data_norm=2, classes=[0, 1, 2]
    ),
    "LogisticRegression, data set": _on_people(["age", "town"], "member"),
    "MLPClassifier": _on_arrays(LABELS, rounds=2, hidden_units=2, **_TWO),
    "MLPClassifier, data set": _on_people(["age"], "member", rounds=2, hidden_units=2),
    "NearestCentroid": _on_arrays(LABELS, **_TWO),
    "NearestCentroid, ball": _on_arrays(LABELS, block="l2", **_TWO),
    "NearestCentroid, data set": _on_people(["age", "day"], "member", diagnostics="1/10"),
    "NearestCentroid, add-remove": _on_people(["age"], "member", opened=ADDED),
    **with_methods("PCA", _on_arrays(bounds=(0, 1)), "matrix", "frobenius", "max"),
    "PCA, data set": _on_people(["age", "income"], n_components=1),
    "RandomForestClassifier": _on_arrays(LABELS, **_TWO),
    "RandomForestClassifier, random state": _on_arrays(LABELS, random_state=3, **_TWO),
    "RandomForestClassifier, data set": _on_people(
        ["age", "income", "city"], "member", n_estimators=3, max_depth=2
    ),
    **with_methods(
        "SparseRegression",
        _on_arrays(TARGET, rows=SPARSE, bounds=(0, 1), bounds_y=(0, 1)),
        *("composition", "transcript"),
    ),
    "SparseRegression, data set": _on_people(["age", "member"], "income"),
}


def _cases_of(estimator: Any) -> dict[str, Case]:
    """Return the cases of an estimator that has none above: arrays, and a data set."""
    name = type(estimator).__name__
    given, declared = parameters(estimator), parameters(estimator, declared=True)
    y: Any = None
    label: str | None = None
    if is_classifier(estimator):
        y, label = LABELS, "member"
    elif is_regressor(estimator):
        y, label = TARGET, "income"
    features = ["age", "city"] if label else ["age", "income"]
    return {
        name: _on_arrays(y, **given),
        f"{name}, data set": _on_people(features, label, **declared),
    }


_BY_HAND = {name.partition(", ")[0] for name in _CASES}
for _estimator in reversed(ALL):
    if type(_estimator).__name__ not in _BY_HAND:
        _CASES |= _cases_of(_estimator)

CASES = {f"sklearn.{name}": case for name, case in _CASES.items()}
