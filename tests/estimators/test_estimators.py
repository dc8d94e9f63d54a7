"""What a user of the estimators relies on, and what a certificate of theirs rests on."""

from __future__ import annotations

import inspect
import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reproduce import estimator_list
from scipy.sparse import csr_array
from sklearn.base import ClusterMixin, clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import zerodelta.sklearn as estimators
from data.test_columns import Hostile
from estimators.instances import (
    ALL,
    CLASSIFIERS,
    LEARNED,
    NOT_COMPARED,
    PRIVATE,
    REGRESSORS,
    examples,
    name,
    parameters,
    same_noise_in_every_fit,
)
from zerodelta.errors import ParameterError
from zerodelta.privacy.verify import verify
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
from zerodelta.tasks.registry import TASKS

every = pytest.mark.parametrize("estimator", ALL, ids=name)
private = pytest.mark.parametrize("estimator", PRIVATE, ids=name)
classifiers = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)
regressors = pytest.mark.parametrize("estimator", REGRESSORS, ids=name)

NAN, INF = float("nan"), float("inf")
ENTRIES: list[Any] = [NAN, INF, -INF, 1e308, "text", None, {"a": 1}, [1, 2], 2j, b"\xff", object()]
ENTRIES += [(), Hostile(), np.ones(2)]


def published(estimator: Any) -> Any:
    """Return the published numbers: an array, or all arrays of a model."""
    value = estimator.release_.value
    if isinstance(value, np.ndarray):
        return value.ravel()
    parts = [getattr(value, name) for name in value.__slots__]
    return np.concatenate([part.ravel() for part in parts if isinstance(part, np.ndarray)])


def fit_alike(estimator: Any, *data: tuple[Any, Any]) -> list[Any]:
    with same_noise_in_every_fit():
        return [published(clone(estimator).fit(*part)) for part in data]


# -- public inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "missing"),
    [
        (LinearRegression(epsilon=1, data_norm=1), "bounds_y"),
        (LinearRegression(epsilon=1, bounds_y=(0, 1)), "data_norm"),
        (SparseRegression(epsilon=1, bounds=(0, 1)), "bounds_y"),
        (SparseRegression(epsilon=1, bounds_y=(0, 1)), "bounds"),
        (LogisticRegression(epsilon=1, data_norm=1), "classes"),
        (LogisticRegression(epsilon=1, classes=[0, 1]), "data_norm"),
        (MLPClassifier(epsilon=1, bounds=(0, 1)), "classes"),
        (MLPClassifier(epsilon=1, classes=[0, 1]), "bounds"),
        (KMeans(epsilon=1), "bounds"),
        (NearestCentroid(epsilon=1, bounds=(0, 1)), "classes"),
        (NearestCentroid(epsilon=1, classes=[0, 1]), "bounds"),
        (RandomForestClassifier(epsilon=1, classes=[0, 1]), "bounds"),
        (PCA(epsilon=1), "bounds"),
        (BoundedScaler(), "bounds"),
    ],
)
def test_a_missing_public_input_is_refused_with_the_remedy(estimator: Any, missing: str) -> None:
    with pytest.raises(ParameterError, match=f"^{missing} = None: .*pass {missing}="):
        estimator.fit(*examples())


class Untouchable:
    """Data that nobody may look at: everything that is asked of it fails the test."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} of the data was read")


@private
def test_there_is_no_default_epsilon_and_nothing_is_read_without_one(estimator: Any) -> None:
    assert type(estimator)().epsilon is None
    with pytest.raises(ParameterError, match=r"^epsilon = None: .*no default.*pass epsilon="):
        clone(estimator).set_params(epsilon=None).fit(Untouchable(), Untouchable())


@pytest.mark.parametrize(
    "classes", [[0], [1, 1], "ab", [0, "a"], [1, 1.0], [1, "1"], [[0], [1]], [[], {}]]
)
def test_malformed_classes_are_refused(classes: Any) -> None:
    with pytest.raises(ParameterError, match="classes"):
        LogisticRegression(epsilon=1, data_norm=1, classes=classes).fit(*examples())


@private
def test_an_unknown_method_or_a_bad_epsilon_is_refused(estimator: Any) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        clone(estimator).set_params(epsilon=-1).fit(*examples())
    if "method" in estimator.get_params():
        with pytest.raises(ParameterError, match="method"):
            clone(estimator).set_params(method="the best").fit(*examples())


@every
def test_no_rows_are_refused_and_one_row_is_enough(estimator: Any) -> None:
    rows, y = examples(1)
    clone(estimator).fit(rows, y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(estimator).fit(rows[:0], y[:0])


@every
def test_sparse_rows_are_refused(estimator: Any) -> None:
    rows, y = examples()
    with pytest.raises(ParameterError, match="sparse"):
        clone(estimator).fit(csr_array(rows), y)


# -- values ----------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_no_value_raises_warns_or_shows_in_the_certificate(estimator: Any, entry: Any) -> None:
    rows, y = examples()
    spoiled, labels = rows.astype(object), y.astype(object)
    spoiled[3, 1:2].fill(entry)
    labels[5:6].fill(entry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(estimator).fit(spoiled.tolist(), labels.tolist())
        found = clone(estimator).fit(spoiled, labels)
        for method in ("predict", "predict_proba", "decision_function", "transform"):
            if hasattr(found, method):
                result = getattr(found, method)(spoiled)
                assert method == "transform" or np.isfinite(result).all()
    if hasattr(found, "certificate_"):
        assert found.certificate_.digest == clone(estimator).fit(rows, y).certificate_.digest


@every
@pytest.mark.parametrize("kind", ["list", "complex", "text", "masked", "float16", "bool"])
def test_no_kind_of_array_raises(estimator: Any, kind: str) -> None:
    rows, y = examples()
    given: Any = {
        "list": rows.tolist(),
        "complex": rows + 1j,
        "text": rows.astype(str),
        "masked": np.ma.masked_array(rows, mask=rows > 1),
        "float16": rows.astype(np.float16),
        "bool": rows > 0,
    }[kind]
    found = clone(estimator).fit(given, y)
    assert found.n_features_in_ == 3


@every
@pytest.mark.parametrize("odd", [7, [1.0], [], Hostile(), None], ids=repr)
def test_no_row_of_a_list_raises(estimator: Any, odd: Any) -> None:
    rows, y = examples()
    listed = rows.tolist()
    found = clone(estimator).fit([listed[0], odd, *listed[2:]], y)  # the first has the width
    assert found.n_features_in_ == 3
    with pytest.raises(ValueError, match="2D array"):
        clone(estimator).fit([1.0, 2.0, 3.0], y[:3])


@private
def test_messages_about_shape_show_no_row(estimator: Any) -> None:
    with pytest.raises(ValueError, match="2D array") as caught:
        clone(estimator).fit(np.full(4, 77.25), np.zeros(4))
    assert "77.25" not in str(caught.value)


@private
def test_a_row_with_a_nan_counts_as_nothing(estimator: Any) -> None:
    rows, y = examples()
    first, second = rows.copy(), rows.copy()
    first[4], second[4] = [NAN, 1, 2], [5, NAN, -3]
    one, two, whole = fit_alike(estimator, (first, y), (second, y), (rows, y))
    np.testing.assert_array_equal(one, two)
    if isinstance(estimator, (LinearRegression, LogisticRegression)):  # the others may round it off
        assert (one != whole).any()


@classifiers
@pytest.mark.parametrize("stray", [7, "other", NAN, None, 0.5])
def test_a_label_outside_the_classes_counts_as_nothing(estimator: Any, stray: Any) -> None:
    rows, y = examples()
    labels = y.astype(object)
    labels[4] = stray
    spoiled = rows.copy()
    spoiled[4] = NAN
    one, two = fit_alike(estimator, (rows, labels), (spoiled, y))
    np.testing.assert_array_equal(one, two)


@regressors
def test_targets_are_cut_to_their_bounds(estimator: Any) -> None:
    rows, y = examples()
    beyond, at = y.copy(), y.copy()
    beyond[2], at[2] = 1e9, 100
    one, two = fit_alike(estimator, (rows, beyond), (rows, at))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "estimator", [e for e in PRIVATE if e.get_params().get("bounds")], ids=name
)
def test_rows_are_clipped_to_their_bounds(estimator: Any) -> None:
    rows, y = examples()
    beyond, at = rows.copy(), rows.copy()
    beyond[2, 0], at[2, 0] = INF, 10
    beyond[3, 1], at[3, 1] = -500, -10
    one, two = fit_alike(estimator, (beyond, y), (at, y))
    np.testing.assert_array_equal(one, two)


# -- what is published -----------------------------------------------------------------------------


OF_ALL = {"certificate_", "release_", "n_features_in_", "diagnostics_"}


@private
def test_nothing_else_is_published(estimator: Any) -> None:
    found = clone(estimator).fit(*examples())
    assert found.certificate_ is found.release_.certificate
    learned = {key for key in vars(found) if key.endswith("_")}
    known = LEARNED.get(type(estimator), set()) | OF_ALL
    known |= {"classes_", "temperature_"} if is_classifier(estimator) else set()
    assert learned <= known, (
        f"{type(estimator).__name__} publishes {sorted(learned - known)}: say so in LEARNED of "
        "tests/estimators/instances.py, if these are parts of its release"
    )
    assert getattr(found, "diagnostics_", None) is None  # nothing was paid for
    for shown in ("loss_", "n_iter_", "labels_", "inertia_", "fit_predict", "fit_transform"):
        transforms = shown == "fit_transform" and isinstance(found, PCA)  # what pipelines call
        assert transforms or not hasattr(found, shown)
    assert not isinstance(found, ClusterMixin)


@private
def test_all_that_is_published_stands_in_the_docstring(estimator: Any) -> None:
    learned = {key for key in vars(clone(estimator).fit(*examples())) if key.endswith("_")}
    text = str(inspect.getdoc(type(estimator)))
    section = re.search(r"^Attributes\n-{10}\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^(\w.*?) : ", section[1] if section else "", re.MULTILINE)
    said = {each for line in lines for each in line.split(", ")}
    assert said - {"encoded_names_"} == learned - {"n_features_in_"}  # as scikit-learn has it


@private
def test_the_docstring_says_what_is_not_private(estimator: Any) -> None:
    text = " ".join(str(type(estimator).__doc__).split())
    for word in ("**Releases**", "**Neighbors**", "**Guarantee**", "**Public**", "**Error**"):
        assert word in text
    assert "a transformer fitted on the rows are not covered" in text
    assert "`GridSearchCV`" in text
    assert "`zerodelta.select_model` and `BoundedScaler`" in text


# -- predictions -----------------------------------------------------------------------------------


@classifiers
def test_scores_probabilities_and_labels_agree(estimator: Any) -> None:
    rows, y = examples(40)
    found = clone(estimator).fit(rows, y)
    scores, chances, labels = (
        found.decision_function(rows),
        found.predict_proba(rows),
        found.predict(rows),
    )
    count = len(estimator.classes)
    assert scores.shape == ((40,) if count == 2 else (40, count))
    assert chances.shape == (40, count)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(labels, found.classes_[chances.argmax(axis=1)])
    np.testing.assert_allclose(found.predict_log_proba(rows), np.log(chances), atol=1e-9)
    ranked = scores if count > 2 else np.column_stack([np.zeros(40), scores])
    np.testing.assert_array_equal(ranked.argmax(axis=1), chances.argmax(axis=1))
    assert found.score(rows, y) == pytest.approx((labels == y).mean())


@pytest.mark.parametrize("kind", [LogisticRegression, MLPClassifier])
@pytest.mark.parametrize("classes", [["yes", "no"], ["b", "c", "a"]])
def test_texts_are_classes_in_the_order_of_scikit_learn(kind: Any, classes: list[str]) -> None:
    rows, _ = examples(200)
    y = np.array(classes)[np.arange(200) % len(classes)]
    bound = {"data_norm": 10} if kind is LogisticRegression else {"bounds": (-10, 10)}
    found = kind(epsilon=1, classes=classes, **bound).fit(rows, y)
    assert found.classes_.tolist() == sorted(classes)
    assert set(found.predict(rows)) <= set(classes)


def test_the_second_class_is_the_positive_one_whatever_the_order_given() -> None:
    rows = np.linspace(-1, 1, 4000).reshape(-1, 1)
    y = np.where(rows[:, 0] > 0, "up", "down")
    for classes in (["up", "down"], ["down", "up"]):
        found = LogisticRegression(epsilon=5, data_norm=1, classes=classes).fit(rows, y)
        assert found.classes_.tolist() == ["down", "up"]
        assert found.coef_[0, 0] > 0
        assert found.score(rows, y) > 0.95


@regressors
def test_regressors_predict_what_their_coefficients_say(estimator: Any) -> None:
    rows, y = examples(40)
    found = clone(estimator).fit(rows, y)
    assert found.coef_.shape == (3,)
    np.testing.assert_allclose(found.predict(rows), rows @ found.coef_ + found.intercept_)
    model = found.release_.value
    np.testing.assert_allclose(model.decision(rows)[:, 0], found.predict(rows))


@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(epsilon=50, data_norm=15, bounds_y=(0, 30)),
        SparseRegression(epsilon=50, bounds=([0, 0], [10, 20]), bounds_y=(0, 30)),
    ],
)
def test_without_an_intercept_the_line_goes_through_0(estimator: Any) -> None:
    """Neither the middle of the target's bounds nor that of the features' comes back as one."""
    rows = np.random.default_rng(0).uniform(0, 10, size=(4000, 2))
    found = estimator.set_params(fit_intercept=False).fit(rows, rows[:, 0] + rows[:, 1])
    assert found.intercept_ == found.release_.value.intercept[0] == 0
    assert found.coef_ == pytest.approx([1, 1], abs=0.2)
    assert found.predict([[0, 0]]) == 0


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
@pytest.mark.parametrize("method", ["objective", "descent"])
def test_without_an_intercept_logistic_scores_are_0_at_0(classes: list[int], method: str) -> None:
    model = LogisticRegression(
        epsilon=1, data_norm=9, classes=classes, fit_intercept=False, method=method
    )
    found = model.fit(*examples(40))
    assert not found.intercept_.any()
    assert not found.decision_function(np.zeros((1, 3))).any()


def test_sparse_regression_does_not_depend_on_units() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(0, 1, size=(400, 5))
    y = rng.uniform(0, 1, size=400)
    with same_noise_in_every_fit():
        one = SparseRegression(epsilon=1, bounds=(0, 1), bounds_y=(0, 1)).fit(rows, y).predict(rows)
        model = SparseRegression(epsilon=1, bounds=(-4, 4), bounds_y=(2, 10))
        model.fit(8 * rows - 4, 8 * y + 2)
    np.testing.assert_allclose((model.predict(8 * rows - 4) - 2) / 8, one, atol=1e-12)


def test_few_of_many_features_are_found() -> None:
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, size=(5000, 60))
    y = 0.6 * rows[:, 7] - 0.3 * rows[:, 41]
    found = SparseRegression(epsilon=2, bounds=(-1, 1), bounds_y=(-1, 1)).fit(rows, y)
    assert set(np.argsort(-abs(found.coef_))[:2]) == {7, 41}
    assert found.score(rows, y) > 0.7


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_logistic_regression_takes_every_method_by_name(classes: list[int]) -> None:
    x = np.linspace(-1, 1, 6000).reshape(-1, 1)
    y = np.digitize(x[:, 0], [0] if len(classes) == 2 else [-0.4, 0.4])
    digests = set()
    for method in ("objective", "descent"):
        model = LogisticRegression(epsilon=5, data_norm=1, classes=classes, method=method)
        assert model.fit(x, y).score(x, y) > 0.6
        assert verify(model.certificate_)
        digests.add(model.certificate_.digest)
    assert len(digests) == 2


def test_nearest_centers_and_minus_the_inertia() -> None:
    rows = np.repeat([[1.0, 1.0], [8.0, 9.0]], 3000, axis=0)
    found = KMeans(n_clusters=2, epsilon=2, bounds=(0, 10)).fit(rows)
    squares = ((rows[:, None, :] - found.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found.predict(rows), squares.argmin(axis=1))
    assert found.score(rows) == pytest.approx(-squares.min(axis=1).sum())
    assert sorted(set(found.predict(rows))) == [0, 1]


ENOUGH = 1000
"""An ε at which noise is small."""


def learned(estimator: Any, epsilon: Any = ENOUGH) -> float:
    """Return the score on easy public rows: a column says the class, or the target is a line."""
    rng = np.random.default_rng(7)
    public = ("bounds", "bounds_y", "classes", "data_norm")
    given = {key: v for key, v in parameters(estimator).items() if key in public}
    rows = rng.uniform(-1, 1, size=(3000, 3))
    y: Any
    if is_classifier(estimator):
        y = rng.integers(0, len(estimator.classes), size=3000)
        rows += np.where(y[:, None] == np.arange(3), 4.0, -4.0)
    else:
        rows *= 5
        y = rows @ [5.0, -4.0, 0.0] + 2
    found = type(estimator)(epsilon=epsilon, **given).fit(rows, y)
    return float(found.score(rows, y))


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS], ids=name)
def test_what_is_easy_is_learned(estimator: Any) -> None:
    assert learned(estimator) > 0.95


@pytest.mark.parametrize("estimator", [*CLASSIFIERS[-2:], *REGRESSORS], ids=name)
def test_noise_alone_has_learned_nothing(estimator: Any) -> None:
    with same_noise_in_every_fit():
        assert learned(estimator, Fraction(1, 10**6)) < 0.9


# -- around them -----------------------------------------------------------------------------------


def test_bounded_scaler_maps_bounds_to_the_cube_row_by_row() -> None:
    scaler = BoundedScaler(bounds=([0, -5, 1], [10, 5, 2]))
    rows = np.array([[0, -5, 1], [10, 5, 2], [5, 0, 1.5], [99, -INF, NAN]])
    expected = np.array([[-1, -1, -1], [1, 1, 1], [0, 0, 0], [1, -1, NAN]])
    np.testing.assert_array_equal(scaler.fit_transform(rows), expected)
    np.testing.assert_array_equal(BoundedScaler(bounds=scaler.bounds).transform(rows), expected)
    np.testing.assert_array_equal([scaler.transform([row])[0] for row in rows], expected)
    assert not any(isinstance(kept, np.ndarray) for kept in vars(scaler).values())


def test_bounded_scaler_gives_its_columns_the_names_they_had() -> None:
    scaler = BoundedScaler(bounds=(0, 1)).fit(np.zeros((2, 3)))
    assert scaler.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]


def test_pipelines_and_searches_run() -> None:
    rows = np.random.default_rng(4).uniform(0, 10, size=(600, 2))
    y = np.where(rows[:, 0] > 5, "high", "low")
    pipeline = make_pipeline(
        BoundedScaler(bounds=(0, 10), data_norm=1),
        LogisticRegression(epsilon=5, data_norm=1, classes=["low", "high"]),
    )
    assert pipeline.fit(rows, y).score(rows, y) > 0.8
    assert verify(pipeline[-1].certificate_)
    grid = {"logisticregression__epsilon": [1, "1/2", Fraction(3)]}
    for scoring in ("accuracy", "roc_auc", "neg_log_loss"):
        search = GridSearchCV(pipeline, grid, cv=2, scoring=scoring, error_score="raise")
        search.fit(rows, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    clusters = KMeans(n_clusters=2, epsilon=1, bounds=(0, 10))
    assert len(cross_val_score(clusters, rows, cv=3)) == 3


def test_the_estimators_are_what_the_package_lists() -> None:
    have = {type(estimator).__name__ for estimator in ALL}
    assert set(estimators.__all__) == have, "add an instance to tests/estimators/instances.py"
    for estimator in ALL:
        arguments = inspect.signature(type(estimator)).parameters.values()
        assert {each.kind for each in arguments} == {inspect.Parameter.KEYWORD_ONLY}


def test_every_estimator_is_on_its_page() -> None:
    for path in estimator_list.PAGES:
        page = path.read_text(encoding="utf-8")
        assert estimator_list.render(page) == page, "run python -m reproduce.estimator_list"
    page = estimator_list.PAGES[0].read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in estimators.__all__)


def test_every_classifier_is_compared_with_the_others() -> None:
    """By `zd.advise("classifier")` and by the planner."""
    task = TASKS["classifier"]
    assert task.planner is not None
    compared = {task.estimator, *(name for name, _ in task.planner.winners.values())}
    classifiers = {type(estimator).__name__ for estimator in CLASSIFIERS}
    assert classifiers - compared == NOT_COMPARED.keys(), (
        "add a forecast to compare_classifiers in src/zerodelta/regression/classes.py and the "
        "estimator to _WINNERS in src/zerodelta/tasks/estimators.py, or a reason to NOT_COMPARED "
        "in tests/estimators/instances.py"
    )
    assert all(NOT_COMPARED.values())
