"""Training and prediction tell the same rows apart: both clip, scale and encode them alike.

What training sees of a row is what its mechanisms are handed; what prediction sees is its score. If
two rows are the same in training, they have the same score, and if training tells them apart, so do
scores. Both are read off without knowing the estimator, so that a new one is covered, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import zerodelta as zd
from estimators.instances import PRIVATE, examples, name
from golden.seams import replayed, spied
from zerodelta.regression.objective import RegressionPlan
from zerodelta.sklearn import LinearRegression, LogisticRegression

pandas = pytest.importorskip("pandas")

NAN, INF = float("nan"), float("inf")

FINE: dict[str, dict[str, Any]] = {
    "RandomForestClassifier": {"n_estimators": 12, "max_depth": 8},
    "KMeans": {"method": "one-center"},
}
"""Options with which few rows share a cell, so that training tells them apart."""
INSTANCES: list[Any] = [
    *(clone(each).set_params(**FINE.get(type(each).__name__, {})) for each in PRIVATE),
    LinearRegression(epsilon=1, data_norm=10, bounds_y=(-100, 100), method="statistics"),
    LogisticRegression(epsilon=1, bounds=(-10, 10), classes=[0, 1], fit_intercept=False),
    LogisticRegression(epsilon=1, data_norm=10, classes=[0, 1], method="descent"),
]
every = pytest.mark.parametrize("estimator", INSTANCES, ids=name)


def seen_in(fit: Callable[[], Any]) -> tuple[str, Any]:
    """Return all that mechanisms are handed in a fit with the same noise each time, and its model.

    Noise in an objective is drawn from integer rows: they are what it is handed.
    """
    handed: list[Any] = []
    publish = RegressionPlan.publish

    def publishing(plan: Any, rows: Any, loss: Any, bits: Any) -> Any:
        handed.append(rows.values.tolist())
        return publish(plan, rows, loss, bits)

    with (
        replayed("rows"),
        spied(lambda listed: handed.append([np.asarray(part).tolist() for part in listed])),
        patch.object(RegressionPlan, "publish", publishing),
    ):
        model = fit()
    return repr(handed), model


def scores(model: Any, rows: Any) -> Any:
    """Return the numbers from which predictions follow, with all their digits."""
    for method in ("decision_function", "transform"):
        if hasattr(model, method):
            return np.ravel(getattr(model, method)(rows))
    return np.ravel(model.predict(rows) if is_regressor(model) else model.score(rows))


def alike(one: Any, two: Any) -> bool:
    """Whether two scores are equal but for the rounding of rows to integers."""
    return bool(np.allclose(one, two, rtol=1e-5, atol=1e-5))


class Fits:
    """Fits to the same rows but one, which is handed over."""

    def __init__(self, fit: Callable[[Any], Any], nothing: Any, typical: Any) -> None:
        self._fit, self._known = fit, dict[str, str]()
        self.model = seen_in(lambda: fit(typical))[1]
        self.ignored = self.seen(nothing)

    def seen(self, row: Any) -> str:
        key = repr(row)
        if key not in self._known:
            self._known[key] = seen_in(lambda: self._fit(row))[0]
        return self._known[key]


def check(fits: Fits, pairs: list[tuple[Any, Any]], table: Callable[[Any], Any]) -> None:
    """Check the law for pairs of rows; of a row that training ignores it says nothing."""
    # a line does not show the columns whose coefficient is 0
    sparse = not np.all(getattr(fits.model, "coef_", 1))
    found = set()
    for one, two in pairs:
        seen = fits.seen(one), fits.seen(two)
        if fits.ignored in seen:
            continue
        in_training = seen[0] == seen[1]
        in_prediction = [scores(fits.model, table(row)) for row in (one, two)]
        if in_training:
            assert alike(*in_prediction), (one, two)
        elif not sparse:
            assert not np.array_equal(*in_prediction), (one, two)
        found.add(in_training)
    assert found == {True, False}  # the law is not empty: some rows are the same, some are not


ROW_PAIRS: list[tuple[list[float], list[float]]] = [
    ([30, -2, 45], [10, -2, 10]),
    ([INF, 1, -2], [10, 1, -2]),
    ([INF, 1, -2], [1e300, 1, -2]),
    ([30, -20, 45], [60, -40, 90]),
    ([30, -20, 45], [10, -10, 10]),
    ([9.6, 9, -9.6], [9, 8.4375, -9]),
    ([1, 2, 3], [1, 2, -3.5]),
    ([-7, 2, 3], [6, 2, 3]),
]


@every
def test_rows_of_arrays(estimator: Any) -> None:
    rows, y = examples()

    def fit(row: list[float]) -> Any:
        changed = rows.copy()
        changed[0] = row
        return clone(estimator).fit(changed, y)

    fits = Fits(fit, [NAN, NAN, NAN], rows[0].tolist())
    check(fits, ROW_PAIRS, np.atleast_2d)


@every
def test_a_missing_cell_of_an_array_is_the_middle_of_its_bounds(estimator: Any) -> None:
    model = clone(estimator).fit(*examples())
    missing, middle = np.array([[NAN, 2.0, 30.0]]), np.array([[0.0, 2.0, 30.0]])
    np.testing.assert_array_equal(scores(model, missing), scores(model, middle))


COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 100),
    "change": zd.number(-10, 30, missing=None),
    "city": zd.category(["oslo", "rome"], other=True),
    "color": zd.category(["red", "blue"]),
    "smokes": zd.boolean(missing=True),
    "since": zd.date("2020-01-01", "2020-12-31", by="month"),
    "member": zd.boolean(),
    "spent": zd.number(0, 500),
}
TYPICAL: dict[str, Any] = {
    "age": 30,
    "change": 0,
    "city": "oslo",
    "color": "red",
    "smokes": "yes",
    "since": "2020-05-03",
    "member": "no",
    "spent": 200,
}
NUMBERS = ["age", "change"]
FEATURES = list(COLUMNS)[:-2]
CELL_PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"age": 150}, {"age": 100}),
    ({"age": "150"}, {"age": 1e300}),
    ({"age": -INF}, {"age": 0}),
    ({"age": 30}, {"age": 70}),
    ({"age": 0, "change": -10}, {"age": 0, "change": -999}),
    ({"age": 98, "change": 28}, {"age": 95, "change": 26.875}),
    ({"change": None}, {"change": 10}),
    ({"change": "ten"}, {"change": 10}),
    ({"city": "bonn"}, {"city": "paris"}),
    ({"city": "bonn"}, {"city": "oslo"}),
    ({"city": None}, {"city": "paris"}),
    ({"color": "blue"}, {"color": "red"}),
    ({"color": "green"}, {"color": "red"}),
    ({"smokes": None}, {"smokes": "perhaps"}),
    ({"smokes": None}, {"smokes": "no"}),
    ({"since": "2020-05-03"}, {"since": "2020-05-29"}),
    ({"since": "2020-05-03"}, {"since": "2020-11-29"}),
]


def frame(rows: list[dict[str, Any]]) -> Any:
    return pandas.DataFrame([{**TYPICAL, **row} for row in rows]).astype(object)


def bare(estimator: Any) -> Any:
    """Return the estimator without the bounds that a data set declares."""
    declared = {"bounds", "data_norm", "bounds_y", "classes"} & estimator.get_params().keys()
    return clone(estimator).set_params(**dict.fromkeys(declared))


def label_of(estimator: Any) -> str | None:
    """Return the column that the estimator learns."""
    return {is_classifier(estimator): "member", is_regressor(estimator): "spent"}.get(True)


def others() -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    return [
        {
            "age": rng.uniform(0, 100),
            "change": rng.uniform(-10, 30),
            "city": rng.choice(["oslo", "rome", "bonn"]),
            "color": rng.choice(["red", "blue"]),
            "smokes": rng.choice(["yes", "no", ""]),
            "since": f"2020-{rng.integers(1, 13):02}-01",
            "member": rng.choice(["yes", "no"]),
            "spent": rng.uniform(0, 500),
        }
        for _ in range(11)
    ]


@pytest.mark.parametrize(
    ("estimator", "columns"),
    [
        *((each, NUMBERS) for each in INSTANCES),
        *((each, FEATURES) for each in INSTANCES if label_of(each)),
    ],
    ids=lambda part: f"{len(part)} columns" if isinstance(part, list) else name(part),
)
def test_rows_of_data_sets(estimator: Any, columns: list[str]) -> None:
    label = label_of(estimator)

    def fit(row: dict[str, Any]) -> Any:
        people = zd.open(frame([row, *others()]), columns=COLUMNS)
        return bare(estimator).fit(people[columns], None if label is None else people[label])

    fits = Fits(fit, dict.fromkeys(columns), {})
    pairs = [(one, two) for one, two in CELL_PAIRS if {*one, *two} <= {*columns}]
    check(fits, pairs, lambda row: frame([row])[columns])
    for missing, middle in (({"age": None}, {"age": 50}), ({"color": "green"}, {"color": None})):
        if not {*missing} <= {*columns}:
            continue
        one, two = (scores(fits.model, frame([row])[columns]) for row in (missing, middle))
        np.testing.assert_array_equal(one, two)
