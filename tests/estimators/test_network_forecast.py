"""`MLPClassifier`: a forecast that follows n and ε, and features that wide bounds do not hide."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from estimators.instances import same_noise_in_every_fit
from zerodelta.sklearn import MLPClassifier


def crosses(n: int) -> tuple[Any, Any]:
    x = np.random.default_rng(n).uniform(-1, 1, size=(n, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


def fitted(n: int, epsilon: Any, **options: Any) -> MLPClassifier:
    model = MLPClassifier(
        **{"epsilon": epsilon, "bounds": (-1, 1), "classes": [0, 1], "rounds": 5, **options}
    )
    return model.fit(*crosses(n))


def forecast(model: MLPClassifier) -> float:
    assert isinstance(model.release_.error, float)
    return model.release_.error


def test_the_forecast_falls_with_rows_and_epsilon_from_ln_classes() -> None:
    by_rows = [fitted(n, 1) for n in (10, 100, 1000, 10_000)]
    by_epsilon = [fitted(200, epsilon) for epsilon in ("1/10", 1, 10)]
    for found in (by_rows, by_epsilon):
        for less, more in pairwise(found):
            assert forecast(more) < forecast(less)
            assert more.temperature_ < less.temperature_
    assert forecast(by_rows[0]) == pytest.approx(math.log(2), rel=0.01)
    assert forecast(by_rows[-1]) < 0.2
    assert forecast(fitted(10, 1, classes=[0, 1, 2, 3])) == pytest.approx(math.log(4), rel=0.01)


def test_the_network_sees_features_scaled_by_their_public_bounds() -> None:
    """Other units with other bounds are the same fit; so are values beyond and at a bound."""
    x, y = crosses(50)
    x = np.round(x * 64) / 64
    options: dict[str, Any] = {"epsilon": 2, "classes": [0, 1], "rounds": 5}
    with same_noise_in_every_fit():
        one = MLPClassifier(bounds=(-1, 1), **options).fit(x, y)
        other = MLPClassifier(bounds=([0, -100], [8, 156]), **options)
        other.fit(np.column_stack([4 * x[:, 0] + 4, 128 * x[:, 1] + 28]), y)
    np.testing.assert_array_equal(one.release_.value, other.release_.value)


@pytest.mark.parametrize(
    ("wide", "once", "apart"), [(1, 1.0, 1.0), (4, 0.5, 16 / 19), (10, 0.25, 16 / 25)]
)
def test_wide_bounds_hide_less_than_their_width(wide: int, once: float, apart: float) -> None:
    """A value of 1 inside bounds of ±wide is seen at 3/(wide + 2), not at 1/wide.

    With many rows it is seen at 1/wide, and again at 16/(wide + 15).
    """
    for n, seen in ((20, [once, -once]), (500, [1 / wide, -1 / wide, apart, -apart])):
        model = fitted(n, 1, bounds=(-wide, wide))
        at_one = model.network_.logits(model.release_.value, np.array([seen]))[0, 0]
        assert model.decision_function([[1, -1]])[0] == pytest.approx(at_one)


@pytest.mark.parametrize(("n", "epsilon", "inputs"), [(489, 1, 2), (490, 1, 4), (245, 2, 4)])
def test_features_are_shown_twice_from_ten_rows_and_epsilon_for_each_parameter(
    n: int, epsilon: int, inputs: int
) -> None:
    """A network of 8 units on 4 inputs has 49 parameters; the rule is about public numbers only."""
    assert fitted(n, epsilon).network_.inputs == inputs
