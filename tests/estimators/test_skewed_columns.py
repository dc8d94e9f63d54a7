"""Skewed columns in bounds of 1, 2 and 20 times their width: with ε to spare, the optimum.

Incomes, children and the like lie in a corner of their bounds. A default that cuts rows to a ball
takes their size from them, whatever ε is.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans as PlainMeans
from sklearn.linear_model import LinearRegression as Line
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import zerodelta as zd
from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.regression.certified_losses import STEPS
from zerodelta.regression.encoded_columns import ColumnBounds, RowBox
from zerodelta.regression.features import Features
from zerodelta.regression.linear import linear_methods
from zerodelta.regression.objective import LOG_ODDS, Shape, plan_logistic
from zerodelta.sklearn import (
    PCA,
    BoundedScaler,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MLPClassifier,
    NearestCentroid,
    SparseRegression,
)

N, EPSILON = 6000, 1000
TOP = np.array([200.0, 10.0, 40.0, 100.0])
"""Of income, children, years, age."""
WIDTHS: dict[str, Any] = {"1": 1.0, "2": 2.0, "20": 20.0, "one 20": np.array([20.0, 1, 1, 1])}
widths = pytest.mark.parametrize("width", WIDTHS)


@functools.cache
def people(seed: int) -> tuple[Any, Any, Any, Any]:
    """Rows, two classes, three classes, and a number to predict."""
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            np.minimum(rng.exponential(20, N), 200),
            np.minimum(rng.poisson(1.2, N), 10),
            np.minimum(rng.exponential(3, N), 40),
            rng.uniform(18, 60, N),
        ]
    )
    score = 0.06 * (x[:, 0] - 20) + 0.5 * (x[:, 1] - 1.2) - 0.3 * (x[:, 2] - 3) + 0.5
    two = (score + rng.logistic(size=N) > 0).astype(int)
    three = np.digitize(score + rng.logistic(size=N), [-0.7, 1.2])
    spent = 30 + 0.5 * x[:, 0] - 3 * x[:, 1] + x[:, 2] + rng.normal(0, 5, N)
    return x, two, three, np.clip(spent, 0, 150)


def bounds(width: str) -> tuple[Any, Any]:
    return np.zeros(4), TOP * WIDTHS[width]


def data_set(width: str, classes: int) -> Any:
    x, two, three, _ = people(0)
    columns: dict[str, Any] = {
        name: zd.number(0, float(top)) for name, top in zip("0123", bounds(width)[1], strict=True)
    }
    columns["4"] = zd.category(range(classes))
    return zd.open(np.column_stack([x, two if classes == 2 else three]), columns=columns)


def judged(model: Any, classes: int) -> tuple[float, float]:
    """Return accuracy and log loss on fresh rows."""
    x, two, three, _ = people(1)
    y = two if classes == 2 else three
    return float(model.score(x, y)), float(log_loss(y, model.predict_proba(x)))


@functools.cache
def optimum(classes: int) -> tuple[float, float]:
    x, two, three, _ = people(0)
    plain = PlainLogistic(C=1e6, max_iter=5000)
    model = make_pipeline(StandardScaler(), plain)
    return judged(model.fit(x, two if classes == 2 else three), classes)


# -- lines of classes ------------------------------------------------------------------------------


@widths
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", ["auto", "data set", "pipeline"])
def test_lines_reach_the_optimum(method: str, classes: int, width: str) -> None:
    x, two, three, _ = people(0)
    y = two if classes == 2 else three
    if method == "data set":
        data = data_set(width, classes)
        model: Any = LogisticRegression(epsilon=EPSILON).fit(data[list("0123")], data["4"])
    elif method == "auto":
        model = LogisticRegression(epsilon=EPSILON, bounds=bounds(width), classes=range(classes))
        model.fit(x, y)
    else:
        model = make_pipeline(
            BoundedScaler(bounds=bounds(width), data_norm=1),
            LogisticRegression(epsilon=EPSILON, data_norm=1, classes=range(classes)),
        ).fit(x, y)
    accuracy, loss = judged(model, classes)
    best = optimum(classes)
    assert loss < best[1] + 0.015  # the penalty, where coefficients are 20 times larger
    assert accuracy > best[0] - 0.02


@pytest.mark.parametrize(("width", "classes"), [("1", 3), ("2", 2), ("20", 2), ("one 20", 3)])
def test_networks_are_near_the_best_line(width: str, classes: int) -> None:
    """They lose up to a tenth of the rows, and are above equal probabilities."""
    x, two, three, _ = people(0)
    model = MLPClassifier(epsilon=EPSILON, bounds=bounds(width), classes=range(classes))
    accuracy, loss = judged(model.fit(x, two if classes == 2 else three), classes)
    assert accuracy > optimum(classes)[0] - 0.1
    assert loss < math.log(classes)


# -- lines of numbers ------------------------------------------------------------------------------


@widths
def test_lines_of_numbers_reach_the_best_line(width: str) -> None:
    """Sums would be the better choice for rows that fill their bounds, and are far off here."""
    x, _, _, y = people(0)
    fresh, _, _, truth = people(1)
    best = Line().fit(x, y).score(fresh, truth)
    for _ in range(3):
        model = LinearRegression(epsilon=EPSILON).fit(*spending(width))
        assert model.score(fresh, truth) > best - 0.01


def test_the_forecast_of_a_line_is_that_of_rows_in_a_quarter_of_their_bounds() -> None:
    model = LinearRegression(epsilon=1).fit(*spending("1"))
    given: dict[str, Any] = {"epsilon": 1, "n": N, "dimension": 4}
    quarter, even = linear_methods(**given, row_length=math.sqrt(1 / 48)), linear_methods(**given)
    assert model.release_.error == pytest.approx(quarter[0].error * 75**2)
    assert quarter[0].error > 5 * even[0].error
    plain = LinearRegression(epsilon=1, data_norm=1, bounds_y=(-1, 1))
    assert plain.fit(np.zeros((N, 4)), np.zeros(N)).release_.error == pytest.approx(even[0].error)
    assert "for rows that fill a quarter of their bounds" in repr(model.release_)


def spending(width: str) -> tuple[Any, Any]:
    """Numbers to predict, and what to predict, of one data set."""
    x, _, _, y = people(0)
    tops = [*bounds(width)[1], 150.0]
    columns = {str(i): zd.number(0, float(top)) for i, top in enumerate(tops)}
    data = zd.open(np.column_stack([x, y]), columns=columns)
    return data[list("0123")], data["4"]


# -- class means -----------------------------------------------------------------------------------


def nearest(x: Any, y: Any, fresh: Any, width: str) -> Any:
    """Labels by the nearest mean of scaled columns, one variance and the frequencies."""
    top = bounds(width)[1]
    x, fresh = 2 * x / top - 1, 2 * fresh / top - 1
    means = np.array([x[y == c].mean(axis=0) for c in range(int(y.max()) + 1)])
    scores = -((fresh[:, None] - means) ** 2).sum(axis=2) / 2 / np.mean((x - means[y]) ** 2)
    return (scores + np.log(np.bincount(y) / len(y))).argmax(axis=1)


@widths
@pytest.mark.parametrize("classes", [2, 3])
def test_class_means_are_those_of_the_same_method_without_noise(classes: int, width: str) -> None:
    x, two, three, _ = people(0)
    fresh, two_of_it, three_of_it, _ = people(1)
    y, truth = (two, two_of_it) if classes == 2 else (three, three_of_it)
    given: dict[str, Any] = {
        "epsilon": EPSILON,
        "bounds": bounds(width),
        "classes": range(classes),
    }
    centroid = judged(NearestCentroid(**given).fit(x, y), classes)
    assert centroid[0] > np.mean(nearest(x, y, fresh, width) == truth) - 0.01


# -- centers, components, few coefficients ---------------------------------------------------------


@widths
def test_centers_are_as_good_as_those_without_noise(width: str) -> None:
    rows = people(0)[0]
    top = bounds(width)[1]
    plain = PlainMeans(3, n_init=5, random_state=0).fit(2 * rows / top - 1)
    model = KMeans(n_clusters=3, epsilon=EPSILON, bounds=bounds(width)).fit(rows)
    centers = 2 * model.cluster_centers_ / top - 1
    squares = ((2 * rows / top - 1)[:, None] - centers) ** 2
    inertia = squares.sum(axis=2).min(axis=1).sum()
    assert inertia < 1.5 * plain.inertia_


@widths
def test_components_are_those_of_the_rows(width: str) -> None:
    """As far as noise lets them in bounds so wide; clipped rows would lose three quarters."""
    rows = people(0)[0] / TOP
    top = bounds(width)[1] / TOP
    model = PCA(epsilon=EPSILON, bounds=(np.zeros(4), top)).fit(rows)
    found = (model.components_.T * model.explained_variance_) @ model.components_
    gap = np.abs(found - np.cov(rows.T, ddof=0)).mean()
    limit = 0.6 if width == "20" else 0.1
    assert gap < limit * np.abs(np.cov(rows.T, ddof=0)).mean()


@pytest.mark.parametrize("width", ["1", "2"])
def test_few_coefficients_reach_the_best_line(width: str) -> None:
    """Twenty times is beyond the length of the coefficients that there are steps for."""
    x, _, _, y = people(0)
    fresh, _, _, truth = people(1)
    best = Line().fit(x, y).score(fresh, truth)
    model = SparseRegression(epsilon=EPSILON, bounds=bounds(width), bounds_y=(0, 150)).fit(x, y)
    assert model.score(fresh, truth) > best - 0.02


def test_few_coefficients_in_bounds_far_too_wide_say_more_than_their_mean() -> None:
    x, _, _, y = people(0)
    fresh, _, _, truth = people(1)
    for width in ("20", "one 20"):
        model = SparseRegression(epsilon=EPSILON, bounds=bounds(width), bounds_y=(0, 150))
        short = SparseRegression(radius=1, **{k: getattr(model, k) for k in ALIKE})
        assert model.fit(x, y).score(fresh, truth) > short.fit(x, y).score(fresh, truth) + 0.1


ALIKE = ("epsilon", "bounds", "bounds_y")


# -- a fit and its predictions see the same rows ---------------------------------------------------


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("kind", ["data set", "array", "bounds"])
def test_predictions_clip_rows_as_the_fit_did(kind: str, centered: bool) -> None:
    """What was learned of clipped rows is said of clipped rows; the others stay as they are."""
    x = people(0)[0]
    given: dict[str, Any] = {"epsilon": 16, "fit_intercept": centered}
    radius, norm = ("1/2", 1.0) if centered else ("1/4", 0.5)
    scale = TOP / 2 if centered else TOP
    middle = TOP / 2 if centered else 0 * TOP
    if kind == "data set":
        data = data_set("1", 2)
        model: Any = LogisticRegression(radius=radius, **given)
        model.fit(data[list("0123")], data["4"])
    elif kind == "bounds":
        model = LogisticRegression(bounds=bounds("1"), radius=radius, classes=range(2), **given)
        model.fit(x, people(0)[1])
    else:
        scale, middle, norm = np.ones(4), np.zeros(4), 1.0
        model = LogisticRegression(data_norm=1, classes=range(2), **given).fit(x, people(0)[1])
    assert model.data_norm_ == norm
    scaled = (x - middle) / scale
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    assert (lengths > norm).sum() > 1000
    clipped = middle + scale * scaled / np.maximum(1, lengths / norm)
    by_hand = clipped @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(x), by_hand, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.release_.value.decision(x)[:, 0], by_hand, atol=1e-4)
    inside = lengths[:, 0] < norm
    plain = x @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_array_equal(model.decision_function(x)[inside], plain[inside])


def test_lines_of_numbers_are_asked_of_clipped_rows_too() -> None:
    x = np.array([[1.0], [2.0]] * 500)
    model = LinearRegression(epsilon=10, data_norm=1, bounds_y=(0, 1)).fit(x, np.zeros(1000))
    assert model.predict([[7.0]]) == model.predict([[1.0]])
    assert model.predict([[np.nan]]) == model.intercept_
    sparse = SparseRegression(epsilon=10, bounds=(0, 1), bounds_y=(0, 1)).fit(x, np.zeros(1000))
    assert sparse.predict([[7.0]]) == sparse.predict([[1.0]])


def test_bounds_beyond_which_no_row_is_longer_clip_values_only() -> None:
    x, y, _, _ = people(0)
    model = LogisticRegression(epsilon=16, bounds=bounds("1"), classes=range(2)).fit(x, y)
    assert model.data_norm_ is None
    far = [[1e9, 1, 1, -np.inf]]
    np.testing.assert_array_equal(
        model.decision_function(far), model.decision_function([[200.0, 1, 1, 0]])
    )


# -- the choice, and what the forecast is of -------------------------------------------------------


def chosen(n: int, d: int, epsilon: Any) -> float | None:
    """The length that rows are clipped to by default, of a fit on zeros: public numbers say it."""
    model = LogisticRegression(epsilon=epsilon, bounds=(-1, 1), classes=range(2))
    length: float | None = model.fit(np.zeros((n, d)), np.zeros(n)).data_norm_
    return length


def test_rows_are_clipped_only_where_nothing_is_learned_of_whole_ones() -> None:
    assert chosen(100, 16, 1) == 2
    assert chosen(100, 2, "1/10") == 1
    assert chosen(100, 1, "1/10") is None  # on a line half way is a face, and no row is beyond
    assert chosen(10_000, 16, 1) is None
    assert chosen(100, 16, 1000) is None


def test_the_choice_is_the_smaller_forecast_for_rows_in_a_corner() -> None:
    box = RowBox(numbers=16)
    for error, best in ((0.1, 4.0), (0.2, 4.0), (0.3, 2.0)):
        assert box.best({4.0: error, 2.0: 0.0}.__getitem__, blind=0.2) == best
    # on two columns a face is beyond the middle of the corner: not all size is lost
    assert 0.6 < RowBox(numbers=2).kept(1) < 0.8


def test_what_is_kept_is_the_squared_correlation_with_what_rows_differ_in() -> None:
    """Of rows in the corner quarter of their bounds that differ in size only."""
    size = np.random.default_rng(0).uniform(0.5, 1, size=200_000)
    for numbers, categories, norm in ((9, 0, 2.0), (9, 0, 2.7), (2, 0, 1.2), (3, 2, 2.0)):
        box = RowBox(numbers=numbers, categories=categories)
        lengths = np.sqrt(categories + numbers * size**2)
        cut = np.sqrt((np.minimum(lengths, norm) ** 2 - categories) / numbers)
        assert box.kept(norm) == pytest.approx(np.corrcoef(size, cut)[0, 1] ** 2, abs=0.01)
    assert RowBox(numbers=4).kept(2) == 1
    assert RowBox(numbers=4).kept(1) == 0
    assert RowBox(numbers=0, categories=3).kept(0.5) == 1  # all rows are shorter by one factor


def test_the_forecast_is_that_of_rows_in_a_corner() -> None:
    shape = Shape.of(rows=N, dimension=4, epsilon=1)
    model = LogisticRegression(epsilon=1, bounds=bounds("1"), classes=range(2))
    quarter = Shape.of(
        rows=N,
        dimension=4,
        epsilon=1,
        expected=LOG_ODDS.updated(row_length=Fraction(math.sqrt(1 / 48)), signal=None),
    )
    x, y, _, _ = people(0)
    whole = float(model.fit(x, y).release_.error)
    assert whole == pytest.approx(plan_logistic(quarter).predicted_error, rel=1e-9)
    assert whole > 5 * plan_logistic(shape).predicted_error
    clipped = float(model.set_params(radius="1/2").fit(x, y).release_.error)
    assert clipped == pytest.approx(plan_logistic(shape).blind_error)
    part = float(model.set_params(radius="3/4").fit(x, y).release_.error)
    assert whole < part < clipped
    assert part > 0.19 * clipped  # a fifth of what size tells is lost


def test_the_forecast_of_clipped_rows_holds_in_a_corner() -> None:
    """Rows that differ in size only: clipped ones tell nothing, and that is what is forecast."""
    rng = np.random.default_rng(4)
    size = rng.uniform(0.5, 1, size=4000)
    rows, y = np.outer(size, np.ones(4)), (size + 0.1 * rng.logistic(size=4000) > 0.75).astype(int)
    losses, errors = {}, {}
    for radius in ("1", "1/2"):
        model = LogisticRegression(epsilon=100, bounds=(-1, 1), radius=radius, classes=range(2))
        losses[radius] = log_loss(y, model.fit(rows, y).predict_proba(rows))
        errors[radius] = float(model.release_.error)
    assert losses["1/2"] == pytest.approx(math.log(2), abs=0.01)
    assert losses["1/2"] - losses["1"] < 1.5 * (errors["1/2"] - errors["1"])
    assert errors["1/2"] < 3 * (losses["1/2"] - losses["1"])


def test_components_are_of_whole_rows_unless_noise_is_worse() -> None:
    rows = np.random.default_rng(0).uniform(0.5, 1, size=(2000, 6))
    whole, few = (PCA(epsilon=e, bounds=(-1, 1)).fit(rows).release_ for e in (10, "1/100"))
    named = [
        PCA(epsilon=e, bounds=(-1, 1), radius=r).fit(rows).release_
        for e, r in ((10, 1), ("1/100", "1/2"))
    ]
    assert [whole.error, few.error] == [each.error for each in named]
    clipped = PCA(epsilon=10, bounds=(-1, 1), radius="1/2").fit(rows).release_
    # rows in the corner lose all of their size, and at least that is forecast
    assert float(clipped.error) > 1 / 48
    assert float(whole.error) < 1 / 48


def test_no_integer_row_is_longer_than_the_noise_is_for() -> None:
    """What the proof needs of rows, whatever their bounds and the length that is asked for."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(500, 4)) * 10.0 ** rng.integers(-300, 300, size=(500, 1))
    rows[::50, 1], rows[::70, 2] = np.inf, np.nan
    scale = ColumnBounds(lower=np.array([-1.0, 0, -1e-9, 5]), upper=np.array([1.0, 1e6, 1, 6]))
    table, missing = np.column_stack([rows, np.ones(500)]), np.isnan(rows).any(axis=1)
    norms: tuple[Any, ...] = (2, 1, "1/100")
    for intercept, norm, bounds in itertools.product((True, False), norms, (scale, None)):
        features = Features.of(4, norm, intercept, bounds=bounds)
        found = features.integers(opened(ArraySource(table)))[0].values.astype(object)
        squares = (found**2).sum(axis=1)
        assert max(squares) <= STEPS**2
        assert max(squares) > 0.9 * STEPS**2
        alone = features.integers(opened(ArraySource(table[7:8])))[0].values
        np.testing.assert_array_equal(found[7:8].astype(float), alone)
        assert not found[missing].any()


# -- how rows were read ----------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1, "1/2"])
@pytest.mark.parametrize("kind", ["logistic", "pca", "pca of an array"])
def test_diagnostics_count_rows_that_are_too_long(kind: str, radius: Any) -> None:
    x = people(0)[0]
    beyond = (x > TOP).any(axis=1)
    if radius != 1:
        beyond |= np.linalg.norm(2 * np.minimum(x, TOP) / TOP - 1, axis=1) > 1
    data = data_set("1", 2)
    given: dict[str, Any] = {"epsilon": 1000, "diagnostics": "1/10", "radius": radius}
    if kind == "logistic":
        model: Any = LogisticRegression(**given).fit(data[list("0123")], data["4"])
    elif kind == "pca":
        model = PCA(**given).fit(data[list("0123")])
    else:
        model = PCA(bounds=bounds("1"), **given).fit(x)
    assert model.diagnostics_.clipped == pytest.approx(beyond.mean(), abs=0.002)
    assert (radius != 1) == (beyond.mean() > 0.5)
    line = LinearRegression(epsilon=1000, diagnostics="1/10", data_norm=1 if radius != 1 else 2)
    if kind == "logistic":
        line.fit(data[list("012")], data[["3"]])
        assert line.diagnostics_ is not None
        assert (line.diagnostics_.clipped > 0.5) == (radius != 1)


# -- what is refused -------------------------------------------------------------------------------


def test_two_ways_to_say_how_long_rows_are_refused() -> None:
    x, y, _, _ = people(0)
    data = data_set("1", 2)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data_norm": 1, "radius": 1}, "radius"),
        ({"bounds": (0, 1), "data_norm": 1, "radius": 1}, "radius"),
        ({"radius": 1}, "radius"),
        ({"bounds": (0, 1), "radius": 2}, "radius"),
        ({"bounds": (0, 1), "radius": 0}, "radius"),
        ({}, "data_norm"),
    ]
    for given, name in wrong:
        with pytest.raises(zd.errors.ParameterError, match=f"^{name}"):
            LogisticRegression(epsilon=1, classes=[0, 1], **given).fit(x, y)
    with pytest.raises(zd.errors.ParameterError, match="has them declared"):
        LogisticRegression(epsilon=1, bounds=(0, 1)).fit(data[list("0123")], data["4"])
