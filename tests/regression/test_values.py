"""Values are mapped, never raised; public parameters are checked; coefficients fit the rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import zerodelta as zd
from data.opening import opened
from regression.fits import fit_linear, fit_logistic, fit_multinomial
from zerodelta.regression.features import Features, LinearModel
from zerodelta.regression.rows import LabeledRows, Targets
from zerodelta.testing import replayed

fit_huber, fit_statistics = (partial(fit_linear, method=name) for name in ("huber", "statistics"))
INF, NAN = float("inf"), float("nan")
GOOD = np.array([[0.3, 0.4], [-0.2, 0.1], [0.5, -0.5], [0.0, 0.2]])
Fit = Callable[..., zd.records.Release]
FITS: dict[str, tuple[Fit, dict[str, Any]]] = {
    "logistic": (fit_logistic, {"classes": [0, 1]}),
    "multinomial": (fit_multinomial, {"classes": [0, 1, "x"]}),
    "huber": (fit_huber, {"bounds_y": (-1, 1)}),
    "statistics": (fit_statistics, {"bounds_y": (-1, 1)}),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("name", FITS)
def test_few_rows_are_enough(name: str, n: int, intercept: bool) -> None:
    fit, options = FITS[name]
    for epsilon in ("1/1000", 1, 50):
        release = fit(
            np.ones((n, 3)), [1] * n, epsilon=epsilon, data_norm=1, intercept=intercept, **options
        )
        assert zd.verify(release.certificate)
        assert float(release.error) > 0


def test_a_row_that_is_not_usable_is_zero_and_so_is_its_constant() -> None:
    raw = np.array([[1.0, NAN], [0.5, 0.5], [1.0, 1.0]])
    features = Features.of(2, 1, True)
    rows = opened(LabeledRows(raw, np.array([1.0, 0.0, NAN])))
    values = features.integers(rows, signed=True)[0].values
    assert (values[0] == 0).all()
    assert values[1, 2] == -features.constant
    assert (values[2] == 0).all()


def test_targets_are_cut_and_what_is_no_number_is_nan() -> None:
    bounds = (Fraction(0), Fraction(10))
    found = Targets(bounds, intercept=True)([5, 0, 10, 99, -INF, NAN, "x", "7.5"])
    assert found[:5].tolist() == [0.0, -1.0, 1.0, 1.0, -1.0]
    assert np.isnan(found[5:7]).all()
    assert found[7] == 0.5


@pytest.mark.parametrize("name", FITS)
def test_there_is_one_label_or_target_for_each_row(name: str) -> None:
    fit, options = FITS[name]
    with pytest.raises(zd.errors.ParameterError, match="as many as there are rows"):
        fit(GOOD, [0, 1], epsilon=1, data_norm=1, **options)
    with pytest.raises(zd.errors.ParameterError, match="one value for each row"):
        fit(GOOD, np.zeros((4, 2)), epsilon=1, data_norm=1, **options)


def spread(n: int, d: int) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(n + d).normal(size=(n, d))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows


def accuracy(model: LinearModel, rows: Any, labels: Any) -> float:
    scores = model.decision(rows)
    chosen = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    return float(np.mean(np.asarray(model.classes)[chosen] == labels))


def test_two_classes_are_told_apart_as_well_as_without_privacy() -> None:
    rows = spread(20_000, 5) * 10  # in the units of the user
    chance = np.random.default_rng(1)
    labels = np.where(
        chance.random(20_000) < 1 / (1 + np.exp(-(rows @ [1, -0.5, 0.3, 0, 0.2]) - 0.5)),
        "yes",
        "no",
    )
    release = replayed("two")(fit_logistic)(
        rows, labels, epsilon=1, data_norm=10, classes=["no", "yes"]
    )
    best = LogisticRegression().fit(rows, labels)
    assert accuracy(release.value, rows, labels) > best.score(rows, labels) - 0.01
    assert np.abs(release.value.coefficients - best.coef_).max() < 0.15
    assert abs(release.value.intercept[0] - best.intercept_[0]) < 0.15


def test_many_classes_are_told_apart_nearly_as_well() -> None:
    rows, chance = spread(20_000, 5), np.random.default_rng(2)
    scores = rows @ chance.normal(size=(5, 4)) * 6 + chance.gumbel(size=(20_000, 4))
    labels = scores.argmax(axis=1)
    release = replayed("many")(fit_multinomial)(
        rows, labels, epsilon=1, data_norm=1, classes=range(4)
    )
    best = LogisticRegression().fit(rows, labels).score(rows, labels)
    assert accuracy(release.value, rows, labels) > best - 0.02


def test_labeled_rows_yield_nothing_without_a_ticket() -> None:
    source = LabeledRows(GOOD, [0, 1, 1, 0])
    for read in (source.open, source.blocks):
        with pytest.raises(TypeError, match="ticket"):
            list(read(None))  # type: ignore[arg-type]


def test_rows_are_prepared_by_this_library_only() -> None:
    with pytest.raises(zd.errors.ParameterError, match="prepare"):
        LabeledRows(GOOD, [0, 1, 1, 0], prepare=lambda rows: rows)
