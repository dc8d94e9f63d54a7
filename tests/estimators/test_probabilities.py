"""Probabilities are no worse than equal ones, and the rule that makes them so is public."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from estimators.instances import CLASSIFIERS, examples, name
from zerodelta.regression.classes import CentroidQuestion, ClassSums, class_means, fit_classes
from zerodelta.regression.classifiers import descent_temperature
from zerodelta.regression.encoded_columns import ColumnBounds
from zerodelta.regression.objective import Shape, plan_logistic, plan_multinomial, temperature
from zerodelta.sklearn import (
    BoundedScaler,
    LogisticRegression,
    MLPClassifier,
    NearestCentroid,
    RandomForestClassifier,
)
from zerodelta.testing import replayed

classifiers = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)


@classifiers
def test_the_temperature_changes_no_prediction_and_no_order(estimator: Any) -> None:
    rows, y = examples(40)
    found = clone(estimator).fit(rows, y)
    assert found.temperature_ >= 1
    labels, scores = found.predict(rows), found.decision_function(rows)
    for divisor in (1.0, found.temperature_, 50.0):
        found.temperature_ = divisor
        chances = found.predict_proba(rows)
        np.testing.assert_array_equal(found.classes_[chances.argmax(axis=1)], labels)
        if scores.ndim == 1:
            odds = np.log(chances[:, 1] / chances[:, 0])
        else:
            odds, scores = np.log(chances[:, 1] / chances[:, 0]), scores - scores[:, :1]
        np.testing.assert_allclose(
            odds, (scores if scores.ndim == 1 else scores[:, 1]) / divisor, atol=1e-6
        )


@classifiers
def test_the_temperature_is_a_function_of_the_shape_alone(estimator: Any) -> None:
    rows, y = examples(40)
    spoiled = np.full_like(rows, math.nan)
    found = [clone(estimator).fit(*data) for data in ((rows, y), (spoiled, y), (-rows, 2 - y))]
    assert len({one.temperature_ for one in found}) == 1


def test_more_noise_or_less_information_is_a_higher_temperature() -> None:
    by_noise = [temperature(noise=v, informed=5) for v in (0, 0.1, 1, 10, 100)]
    by_rows = [temperature(noise=10, informed=q) for q in (1000, 20, 5, 1, 0.01)]
    for found in (by_noise, by_rows):
        assert found == sorted(found)
        assert min(found) >= 1
    assert by_noise[0] == 1
    # without a rival the mean of a logistic function under normal noise is known to be this
    assert 2 * by_rows[0] == pytest.approx(math.sqrt(1 + math.pi / 8 * 10))


@pytest.mark.parametrize("classes", [2, 10])
def test_plans_with_more_rows_or_a_larger_epsilon_are_shrunk_less(classes: int) -> None:
    def of(rows: int, epsilon: float) -> tuple[float, float]:
        shape: dict[str, Any] = {"rows": rows, "dimension": 64, "epsilon": epsilon}
        plan = (
            plan_logistic(Shape.of(**shape))
            if classes == 2
            else plan_multinomial(Shape.of(**shape), classes=classes)
        )
        descent = descent_temperature(epsilon=epsilon, n=rows, columns=65, classes=classes)
        return plan.temperature, descent

    few, more, many = of(100, 0.5), of(1000, 0.5), of(100_000, 2)
    for one in (0, 1):
        assert few[one] > more[one] >= many[one]
    assert many[0] == 1


DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}


STATISTICS: dict[str, Any] = {
    "centroid": NearestCentroid(),
    "centroid, l2": NearestCentroid(block="l2"),
    "forest": RandomForestClassifier(),
}


def held_out_losses(kind: str, data: str, epsilon: str, fits: int) -> list[float]:
    x, y = DATA[data](return_X_y=True)
    low, high = x.min(axis=0), x.max(axis=0)  # stands for bounds that are public
    bounds = (low, np.where(high > low, high, low + 1))
    classes, losses = sorted(set(y.tolist())), []
    for seed in range(fits):
        x_in, x_out, y_in, y_out = train_test_split(
            x, y, test_size=0.3, random_state=seed, stratify=y
        )
        model: Any = (
            clone(STATISTICS[kind]).set_params(epsilon=epsilon, bounds=bounds, classes=classes)
            if kind in STATISTICS
            else MLPClassifier(epsilon=epsilon, bounds=bounds, classes=classes, rounds=20)
            if kind == "network"
            else make_pipeline(
                BoundedScaler(bounds=bounds, data_norm=1),
                LogisticRegression(epsilon=epsilon, data_norm=1, classes=classes, method=kind),
            )
        )
        losses.append(log_loss(y_out, model.fit(x_in, y_in).predict_proba(x_out), labels=classes))
    return losses


KINDS: list[Any] = ["objective", *STATISTICS]
KINDS += [pytest.param(kind, marks=pytest.mark.slow) for kind in ("descent", "network")]
FITS = {"objective": 6, "descent": 4, "network": 4}


@pytest.mark.parametrize("epsilon", ["1/2", "1", "2"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_on_small_data_probabilities_are_at_least_as_good_as_equal_ones(
    kind: str, data: str, epsilon: str
) -> None:
    """Rule: the mean over fits is at most ln C; five standard errors are left to chance."""
    losses = held_out_losses(kind, data, epsilon, FITS.get(kind, 8))
    classes = len(set(DATA[data](return_X_y=True)[1].tolist()))
    doubt = np.std(losses) / math.sqrt(len(losses))
    slack = 0.01 if kind in ("descent", "network") else 0
    assert np.mean(losses) <= math.log(classes) + 5 * doubt + slack
    if kind == "objective":
        assert max(losses) < math.log(classes) + 0.5  # a single one was 2 above, unshrunk


@pytest.mark.parametrize("data", ["iris", "wine", "breast_cancer"])
@pytest.mark.parametrize("block", ["max", "l2"])
def test_no_draw_of_the_noise_makes_nearest_means_sure_of_wrong_classes(
    block: str, data: str
) -> None:
    """The noise of a class is large in all columns at once: unbounded, one fit was 1.0 above."""
    x, y = DATA[data](return_X_y=True)
    bounds = ColumnBounds(lower=x.min(axis=0), upper=x.max(axis=0))
    classes = tuple(sorted(set(y.tolist())))
    question = CentroidQuestion(bounds=bounds, classes=classes, block=block)
    losses = []
    for seed in range(100):
        model = replayed(f"centroids {seed}")(fit_classes)(
            question,
            x,
            y,
            classes=classes,
            epsilon=Fraction(3, 10),
        ).value
        chances = log_softmax(model.decision(x) / model.temperature, axis=1)
        losses.append(-chances[np.arange(len(y)), y].mean())
    assert np.mean(losses) < math.log(len(classes))
    assert max(losses) < math.log(len(classes)) + 0.5


def class_sums(features: list[list[float]], deviation: float, **more: Any) -> ClassSums:
    """Two classes of 100 rows."""
    return ClassSums(
        counts=np.array([100.0, 100.0]),
        total=200.0,
        features=np.array(features),
        squares=np.zeros((2, 1)),
        deviation=deviation,
        **more,
    )


def test_means_are_where_rows_are_however_large_the_noise_was() -> None:
    far = [[900.0, -300.0], [-900.0, 50.0]]
    means, _ = class_means(class_sums(far, 1.0))
    assert means.tolist() == pytest.approx(np.array([[1, -1], [-1, 0.5]]), abs=1e-3)
    means, _ = class_means(class_sums(far, 1.0, radius=0.5))
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), 0.5)


def test_the_noise_that_is_left_in_means_is_what_was_not_shrunk_away() -> None:
    apart = [[60.0, -60.0], [-60.0, 60.0]]
    for deviation in (1.0, 10.0, 50.0):
        noise, signal = (deviation / 100) ** 2, 0.36 - (deviation / 100) ** 2
        _, left = class_means(class_sums(apart, deviation))
        assert left == pytest.approx(signal * noise / (signal + noise))
    _, left = class_means(class_sums(apart, 1000.0))
    assert left == pytest.approx(0.02 * 100)  # all but the least weight is shrunk away
