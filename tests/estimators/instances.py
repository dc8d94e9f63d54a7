"""Each estimator with the public inputs that scikit-learn's checks and our tests need.

From here follow its golden releases (unless tests/golden/estimators.py has cases of its own), its
call for the fuzzers (`tests/attacks/public_calls.py`), and all tests of estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import pytest

from golden.seams import replayed
from zerodelta.sklearn import (
    PCA,
    BoundedScaler,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MLPClassifier,
    NearestCentroid,
    RandomForestClassifier,
    SparseRegression,
)

REGRESSORS: list[Any] = [
    LinearRegression(epsilon=1, data_norm=10, bounds_y=(-100, 100)),
    SparseRegression(epsilon=1, bounds=(-10, 10), bounds_y=(-100, 100)),
]
CLASSIFIERS: list[Any] = [
    LogisticRegression(epsilon=1, data_norm=10, classes=[0, 1]),
    LogisticRegression(epsilon=1, data_norm=10, classes=[0, 1, 2]),
    LogisticRegression(epsilon=1, bounds=(-10, 10), classes=[0, 1, 2], radius="1/2"),
    MLPClassifier(epsilon=1, bounds=(-10, 10), classes=[0, 1], rounds=5, hidden_units=2),
    MLPClassifier(epsilon=1, bounds=(-10, 10), classes=[0, 1, 2], rounds=5, hidden_units=2),
    NearestCentroid(epsilon=1, bounds=(-10, 10), classes=[0, 1]),
    NearestCentroid(epsilon=1, bounds=(-10, 10), classes=[0, 1, 2], block="l2"),
    RandomForestClassifier(epsilon=1, bounds=(-10, 10), classes=[0, 1]),
    RandomForestClassifier(epsilon=1, bounds=(-10, 10), classes=[0, 1, 2], random_state=3),
]
PRIVATE: list[Any] = [
    *REGRESSORS,
    *CLASSIFIERS,
    KMeans(n_clusters=3, epsilon=1, bounds=(-10, 10)),
    PCA(epsilon=1, bounds=(-10, 10)),
]
ALL: list[Any] = [*PRIVATE, BoundedScaler(bounds=(-10, 10))]

_LINE = {"coef_", "intercept_"}
LEARNED: dict[Any, set[str]] = {
    KMeans: {"cluster_centers_"},
    LinearRegression: {*_LINE, "data_norm_"},
    LogisticRegression: {*_LINE, "data_norm_"},
    MLPClassifier: {"network_"},
    NearestCentroid: {"centroids_", "class_prior_"},
    PCA: {
        *("components_", "n_components_", "mean_"),
        *("explained_variance_", "explained_variance_ratio_"),
    },
    RandomForestClassifier: {"forest_"},
    SparseRegression: _LINE,
}
"""What the fit of each publishes, beside what all of its kind do."""

PASSED: dict[str, set[str]] = {}
"""By `name` the checks of scikit-learn that an instance passes, and others of its kind cannot."""

NOT_COMPARED: dict[str, str] = {
    "MLPClassifier": "its error depends on the curves of boundaries: no public number tells",
}
"""The classifiers that `zd.advise("classifier")` and its planner leave out, and why."""

_PUBLIC = ("bounds", "bounds_y", "classes", "data_norm")


def parameters(estimator: Any, *, declared: bool = False) -> dict[str, Any]:
    """Return the parameters of an instance that it was given; none that a data set declares."""
    default = type(estimator)().get_params(deep=False)
    given = estimator.get_params(deep=False)
    left = _PUBLIC if declared else ()
    return {key: v for key, v in given.items() if v is not default[key] and key not in left}


def name(estimator: Any) -> str:
    classes = getattr(estimator, "classes", None)
    return type(estimator).__name__ + (f"-{len(classes)}" if classes else "")


def examples(rows: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(rows, 3)), rng.integers(0, 3, size=rows).astype(float)


@contextmanager
def same_noise_in_every_fit() -> Iterator[None]:
    """Replay the same bits from the start of each fit: whatever still differs is not noise."""
    with replayed("a fit") as tape, pytest.MonkeyPatch.context() as patch:

        def restarting(fit: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(fit)
            def fitted(*args: Any, **kwargs: Any) -> Any:
                tape.place = 0
                return fit(*args, **kwargs)

            return fitted

        for kind in {type(estimator) for estimator in PRIVATE}:
            patch.setattr(kind, "fit", restarting(kind.fit))
        yield
