"""Estimators on columns of a data set: the integers of arrays, and nothing of a private n."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import zerodelta as zd
from data.opening import opened
from estimators.instances import same_noise_in_every_fit
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.features import Features
from zerodelta.regression.rows import ClassLabels, LabeledRows, Targets
from zerodelta.regression.statistics import LENGTH, exact_statistics
from zerodelta.sklearn import (
    PCA,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MLPClassifier,
    NearestCentroid,
    RandomForestClassifier,
    SparseRegression,
)

pandas = pytest.importorskip("pandas")

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 100),
    "income": zd.number(-1000, 3000),
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
    "spent": zd.number(0, 500),
    "note": zd.text(length=20),
}
FEATURES = ["age", "income", "city"]
COLUMNS_OF_UNITS = {name: COLUMNS[name] for name in ("age", "spent", "member")}


def frame(rows: int = 400) -> Any:
    rng = np.random.default_rng(7)
    age, income = rng.uniform(-10, 120, rows), rng.uniform(-1000, 3000, rows)
    city = rng.choice(["oslo", "rome", "bonn"], rows)
    table = pandas.DataFrame(
        {
            "who": np.arange(rows) // 2,
            "age": age,
            "income": income,
            "city": city,
            "member": age / 100 + (city == "oslo") > 0.8,
            "spent": 2 * age + 100 * (city == "rome") + income / 50,
            "note": "words",
        }
    )
    table.loc[::7, "age"] = np.nan
    return table


def scaled(table: Any, *, centered: bool = True) -> Any:
    """The features as anybody would scale them by hand; a row with a missing cell has NaN."""
    low, high = np.array([0, -1000]), np.array([100, 3000])
    numbers = np.clip(table[["age", "income"]].to_numpy(), low, high)
    if centered:
        numbers = (numbers - (low + high) / 2) / ((high - low) / 2)
    else:
        numbers = numbers / np.maximum(abs(low), abs(high))
    cities = [table["city"] == "oslo", table["city"] == "rome", table["city"] == "bonn"]
    return np.column_stack([numbers, *cities]).astype(np.float64)


def people(**options: Any) -> Any:
    return zd.open(frame(), columns=COLUMNS, **options)


# -- the same integers ----------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [True, False])
def test_integer_rows_are_those_of_an_array_that_was_scaled_by_hand(centered: bool) -> None:
    table, data = frame(), people()
    encoding = Encoding.of(data[FEATURES].kinds).to_unit(centered=centered)
    features = Features.of(5, encoding.box.corner, centered)
    read = ClassLabels((False, True))
    declared = LabeledRows(data[FEATURES], data["member"], read=read, encode=encoding)
    plain = LabeledRows(scaled(table, centered=centered), table["member"].to_numpy(), read=read)
    for signed in (True, False):
        rows, by_hand = (features.integers(opened(s), signed=signed) for s in (declared, plain))
        np.testing.assert_array_equal(rows[0].values, by_hand[0].values)
        np.testing.assert_array_equal(rows[1], by_hand[1])
    found, expected = (exact_statistics(features, opened(s)) for s in (declared, plain))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("method", ["huber", "statistics"])
def test_a_line_is_that_of_the_array_up_to_units(method: str, intercept: bool) -> None:
    table, data = frame(), people()
    encoding = Encoding.of(data[FEATURES].kinds).to_unit(centered=intercept)
    given: dict[str, Any] = {"epsilon": 3, "method": method, "fit_intercept": intercept}
    with same_noise_in_every_fit():
        fitted = LinearRegression(**given).fit(data[FEATURES], data["spent"])
        by_hand = LinearRegression(**given, data_norm=encoding.box.corner, bounds_y=(0, 500))
        by_hand.fit(scaled(table, centered=intercept), table["spent"].to_numpy())
    line = encoding.in_units(by_hand.coef_[None, :], np.array([by_hand.intercept_]))
    np.testing.assert_array_equal(fitted.coef_, line[0][0])
    assert fitted.intercept_ == line[1][0]
    assert fitted.encoded_names_.tolist() == ["age", "income", *CITIES]
    # a data set's forecast is for rows in a quarter of their bounds, an array's for longer ones
    here, there = fitted.release_.error, by_hand.release_.error
    assert isinstance(here, float)
    assert isinstance(there, float)
    assert here > there


CITIES = ["city=oslo", "city=rome", "city=other"]


@pytest.mark.parametrize("method", ["objective", "descent"])
@pytest.mark.parametrize("label", ["member", "city"])
def test_a_classifier_is_that_of_the_array_up_to_units(method: str, label: str) -> None:
    table, data = frame(), people()
    numbers = ["age", "income"]
    encoding = Encoding.of(data[numbers].kinds).to_unit(centered=True)
    labels = table[label].replace("bonn", "other").to_numpy()
    classes = [False, True] if label == "member" else ["other", "oslo", "rome"]
    with same_noise_in_every_fit():
        fitted = LogisticRegression(epsilon=3, method=method, data_norm=1)
        fitted.fit(data[numbers], data[label])
        by_hand = LogisticRegression(epsilon=3, method=method, data_norm=1, classes=classes)
        by_hand.fit(scaled(table)[:, :2], labels)
    slopes, intercept = encoding.in_units(by_hand.coef_, by_hand.intercept_)
    np.testing.assert_array_equal(fitted.coef_, slopes)
    np.testing.assert_array_equal(fitted.intercept_, intercept)
    np.testing.assert_array_equal(fitted.classes_, sorted(classes))
    np.testing.assert_array_equal(fitted.temperature_, by_hand.temperature_)


def test_the_other_estimators_take_the_declared_bounds() -> None:
    table, data = frame(), people()
    numbers = ["age", "income"]
    X, bounds = table[numbers].to_numpy(), ([0, -1000], [100, 3000])  # noqa: N806
    with same_noise_in_every_fit():
        for estimator, given, label in (
            (SparseRegression(epsilon=2), {"bounds_y": (0, 500)}, "spent"),
            (MLPClassifier(epsilon=2, rounds=3), {"classes": [False, True]}, "member"),
            (KMeans(epsilon=2, n_clusters=2), {}, None),
            (NearestCentroid(epsilon=2), {"classes": [False, True]}, "member"),
            (NearestCentroid(epsilon=2, block="l2"), {"classes": [False, True]}, "member"),
            (RandomForestClassifier(epsilon=2), {"classes": [False, True]}, "member"),
        ):
            y = None if label is None else table[label].to_numpy()
            declared = None if label is None else data[label]
            found = clone(estimator).fit(data[numbers], declared).release_.value
            by_hand = clone(estimator).set_params(bounds=bounds, **given).fit(X, y).release_.value
            for ours, theirs in zip(*(map(published, (found, by_hand))), strict=True):
                np.testing.assert_array_equal(ours, theirs)


def published(value: Any) -> Any:
    """The arrays of a model; those of the splits of a forest are public, and the same."""
    if isinstance(value, np.ndarray):
        return [value]
    parts = [getattr(value, name) for name in value.__slots__]
    found = [part for part in parts if isinstance(part, np.ndarray)]
    assert found
    return found


def test_classes_may_be_given_and_other_labels_are_none() -> None:
    data = people()
    some = LogisticRegression(epsilon=3, classes=["oslo", "rome"]).fit(data[["age"]], data["city"])
    assert some.classes_.tolist() == ["oslo", "rome"]
    read = ClassLabels(("rome", "oslo"))
    source = LabeledRows(data[["age"]], data["city"], read=read)
    places = np.concatenate([block[:, -1] for block in opened(source).blocks()])
    expected = frame()["city"].map({"rome": 0.0, "oslo": 1.0}).to_numpy()
    np.testing.assert_array_equal(places, expected)
    numbers = zd.open(np.array([[1, 3], [2, 5]]), columns={c: zd.number(0, 9) for c in "01"})
    source = LabeledRows(numbers[["0"]], numbers["1"], read=ClassLabels((5, 7)))
    np.testing.assert_array_equal(next(opened(source).blocks()), [[1, np.nan], [2, 0]])


def test_frames_are_predicted_by_the_schema_and_arrays_work_as_before() -> None:
    data, table = people(), frame()
    model = LogisticRegression(epsilon=100).fit(data[FEATURES], data["member"])
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == FEATURES
    labels = model.predict(table[["note", "city", "income", "age"]])
    np.testing.assert_array_equal(labels, model.predict(table[FEATURES].to_numpy()))
    assert model.predict_proba(table[FEATURES]).shape == (400, 2)
    with pytest.raises(zd.errors.ParameterError, match="may be public"):
        model.predict(data[FEATURES])
    model.set_params(data_norm=1, classes=[0, 1]).fit(np.zeros((5, 2)), [0, 1, 0, 1, 0])
    assert not hasattr(model, "encoded_names_")
    assert model.predict([[0.0, 1.0]]).shape == (1,)
    with pytest.raises(zd.errors.ParameterError, match="may be public"):
        model.predict(data[FEATURES])


# -- rows that count nowhere ----------------------------------------------------------------------


def test_more_rows_than_were_expected_are_all_read() -> None:
    data = people()
    few = data.where("age >= 0 or not age >= 0", expected_rows=3)
    assert (few.rows, few.row_count_is_public, data.rows, data.row_count_is_public) == (
        3,
        False,
        400,
        True,
    )
    assert zd.open(frame(), columns=COLUMNS, expected_rows=3).rows == 400
    features = Features.of(2, 1, True)
    read = Targets.of((0, 500), True)
    found, expected = (
        features.integers(opened(LabeledRows(d[["age", "income"]], d["spent"], read=read)))
        for d in (few, data)
    )
    np.testing.assert_array_equal(found[0].values, expected[0].values)
    np.testing.assert_array_equal(found[1], expected[1])
    descended = LogisticRegression(epsilon=1, method="descent").fit(few[["age"]], few["member"])
    # the raw last step (S2) would rest on the number of rows
    assert "gaussian-smoothing" not in [s.theorem for s in descended.certificate_.steps]
    assert "number of rows" not in str(
        LogisticRegression(epsilon=1).fit(few[["age"]], few["member"]).certificate_.public
    )


# -- units ----------------------------------------------------------------------------------------


def test_replacing_all_rows_of_a_unit_moves_the_statistics_by_two_rows_at_most() -> None:
    """Every set of up to three rows of one unit against every other; two of them count."""
    values = [(0.0, 0.0), (100.0, 500.0), (100.0, 0.0), (np.nan, 500.0)]
    columns = {"age": COLUMNS["age"], "spent": COLUMNS["spent"]}
    read, features = Targets.of((0, 500), True), Features.of(1, 1, True, length=LENGTH)
    encoding = Encoding.of({"age": COLUMNS["age"]}).to_unit(centered=True)

    def statistics(rows: tuple[int, ...]) -> Any:
        table = pandas.DataFrame(
            [("other", 50.0, 100.0)] * 2 + [("ann", *values[i]) for i in rows],
            columns=["who", "age", "spent"],
        )
        data = zd.open(table, columns=columns, unit="who", max_rows=2)
        source = LabeledRows(data[["age"]], data["spent"], read=read, encode=encoding)
        return exact_statistics(features, opened(source)).astype(np.float64) / LENGTH**2

    sets = [s for n in range(1, 4) for s in itertools.combinations_with_replacement(range(4), n)]
    found = [statistics(rows) for rows in sets]
    # (xx, x·1, 11, xy, 1·y): twice the sensitivity 9/2 of the squared norm, theory C10.5 with κ = 1
    weights = np.array([1, 2, 1, 1, 1])
    most = max(float(((a - b) ** 2 * weights).sum()) for a, b in itertools.combinations(found, 2))
    assert 4 < most <= 4 * 4.5


UNIT_ROWS: list[tuple[Any, Any]] = [(0, 0), (100, 500), (100, 0), (0, 500), (None, 0), (1e9, None)]


@pytest.mark.parametrize(
    ("estimator", "label", "reached"),
    [
        (LogisticRegression(epsilon=1, method="descent"), "member", 0.25),
        (MLPClassifier(epsilon=1, rounds=3), "member", 0.4),
    ],
    ids=str,
)
def test_no_unit_moves_a_descent_by_more_than_proven(
    estimator: Any, label: str, reached: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Σ ‖Δ‖²/σ² over all rounds, for two rows of a unit replaced by none, one or two others."""
    seen: list[tuple[list[int], Fraction]] = []

    def apply(self: Any, sums: Any, _bits: Any) -> Any:
        seen.append(([int(k) for k in sums], Fraction(self.variance)))
        return np.full(np.shape(sums), -(10**12))  # the same path, to the edge, for all

    monkeypatch.setattr(RoundedGaussian, "apply", apply)
    some = [itertools.combinations_with_replacement(UNIT_ROWS, n) for n in range(3)]
    contents = [rows for each in some for rows in each]
    runs, allowed = [], Fraction(0)
    for rows in contents:
        table = pandas.DataFrame([(1, 50, 250), *((0, *row) for row in rows)])
        table.columns = ["who", "age", "spent"]
        table["member"] = table["spent"] > 250
        data = zd.open(table, columns=COLUMNS_OF_UNITS, unit="who", max_rows=2, units=2)
        seen.clear()
        fitted = clone(estimator).fit(data[["age"]], data[label])
        runs.append(list(seen))
        *steps, units, _channel = fitted.certificate_.steps
        of_row = sum(
            Fraction(s.numbers["sensitivity_squared"]) / s.numbers["variance"] * s.numbers["count"]
            for s in steps
        )
        allowed = units.numbers["max_rows"] ** 2 * of_row
        assert zd.verify(fitted.certificate_, unit="who", epsilon=1) == zd.purification.PureDP(1)
    worst = max(
        sum(
            (
                Fraction(sum((x - y) ** 2 for x, y in zip(p, q, strict=True))) / variance
                for (p, variance), (q, _) in zip(one, two, strict=True)
            ),
            Fraction(0),
        )
        for one, two in itertools.combinations(runs, 2)
    )
    assert reached <= worst / allowed <= 1


# -- memory ---------------------------------------------------------------------------------------


def test_what_needs_all_rows_together_is_refused_by_public_numbers() -> None:
    data = people(memory=400 * 5 * 8)
    with pytest.raises(zd.errors.ParameterError, match=r"400 · 6 numbers in memory"):
        LinearRegression(epsilon=1, method="huber").fit(data[FEATURES], data["spent"])
    with pytest.raises(zd.errors.ParameterError, match=r"400 · 6 numbers in memory"):
        LogisticRegression(epsilon=1, method="objective").fit(data[FEATURES], data["member"])
    for names, theorem in (
        (FEATURES, {"matrix-laplace"}),
        (["age", "income"], {"huber-objective-perturbation"}),
    ):
        model = LinearRegression(epsilon=1).fit(data[names], data["spent"])
        assert model.certificate_.steps[0].theorem in theorem
    table = frame()  # an array is in memory already
    LinearRegression(epsilon=1, method="huber", data_norm=2, bounds_y=(0, 500)).fit(
        scaled(table), table["spent"]
    )


# -- refusals -------------------------------------------------------------------------------------


def test_features_and_labels_come_from_one_data_set() -> None:
    data, table = people(), frame()
    model = LinearRegression(epsilon=1, data_norm=1, bounds_y=(0, 1))
    for rows, targets in (
        (data[["age"]], table["spent"]),
        (table[["age"]], data["spent"]),
        (data[["age"]], people()["spent"]),
        (data[["age"]], data["spent"].where("member")),
        (data[["age"]], data[["spent", "income"]]),
        (data[["age", "spent"]], data["spent"]),
        (data[["age"]], data["city"]),
        (data[["age"]], data["note"]),
        (data[["note"]], data["spent"]),
    ):
        with pytest.raises(zd.errors.ParameterError) as caught:
            clone(model).fit(rows, targets)
        assert "words" not in str(caught.value)


def test_principal_components_are_those_of_the_task() -> None:
    data, table = people(), frame()
    names = ["age", "income"]
    with same_noise_in_every_fit():
        model = PCA(epsilon=3, n_components=1).fit(data[names])
        array = PCA(epsilon=3, n_components=1, bounds=([0, -1000], [100, 3000])).fit(
            table[names].fillna(50)
        )
    assert model.components_.shape == array.components_.shape == (1, 2)
    assert model.get_feature_names_out().tolist() == ["pca0"]
    for fitted in (model, array):
        assert fitted.n_components_ == 1
        found = fitted.transform(table[names])
        assert found.shape == (400, 1)
        inside = np.array([[1.0]])  # so near the mean that the bounds clip nothing
        back = fitted.inverse_transform(inside)
        np.testing.assert_allclose((back - fitted.mean_) @ fitted.components_.T, inside)
        np.testing.assert_array_equal(fitted.components_, fitted.release_.value.components)
    with pytest.raises(zd.errors.ParameterError, match="numbers"):
        PCA(epsilon=1).fit(data[FEATURES])


def test_a_forest_has_new_splits_unless_a_seed_is_given_which_is_a_number() -> None:
    data = people()
    fitted = [
        RandomForestClassifier(epsilon=1, random_state=seed).fit(data[["age"]], data["member"])
        for seed in (None, None, 5, 5)
    ]
    thresholds = [model.forest_.splits.thresholds for model in fitted]
    assert (thresholds[0] != thresholds[1]).any()
    np.testing.assert_array_equal(thresholds[2], thresholds[3])
    assert (fitted[2].forest_.scores != fitted[3].forest_.scores).any()  # noise has no seed
    seeds: list[Any] = [-1, 1.5, "a", np.random.default_rng(0), True]
    for wrong in seeds:
        with pytest.raises(zd.errors.ParameterError, match="random_state"):
            RandomForestClassifier(epsilon=1, random_state=wrong).fit(data[["age"]], data["member"])
    sizes: list[Any] = [{"n_estimators": 0}, {"max_depth": 17}]
    for size in [*sizes, {"max_depth": 16, "n_estimators": 999}]:
        with pytest.raises(zd.errors.ParameterError):
            RandomForestClassifier(epsilon=1, **size).fit(data[["age"]], data["member"])
    with pytest.raises(zd.errors.ParameterError, match="block"):
        NearestCentroid(epsilon=1, block="l1").fit(data[["age"]], data["member"])


def test_bounds_that_are_declared_are_not_given_again() -> None:
    data = people()
    for estimator, label in (
        (SparseRegression(epsilon=1, bounds=(0, 1)), "spent"),
        (MLPClassifier(epsilon=1, bounds=(0, 1)), "member"),
        (KMeans(epsilon=1, bounds=(0, 1)), None),
        (NearestCentroid(epsilon=1, bounds=(0, 1)), "member"),
        (RandomForestClassifier(epsilon=1, bounds=(0, 1)), "member"),
        (PCA(epsilon=1, bounds=(0, 1)), None),
    ):
        with pytest.raises(zd.errors.ParameterError, match="declared"):
            estimator.fit(data[["age"]], None if label is None else data[label])
