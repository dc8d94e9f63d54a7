"""Linear regression: every method finds the line, is proven, and takes whatever the rows hold."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from regression.fits import fit_linear, fit_logistic, fit_multinomial
from zerodelta.regression.linear import linear_methods
from zerodelta.regression.rows import Targets

fit_huber, fit_statistics = (partial(fit_linear, method=name) for name in ("huber", "statistics"))

METHODS = ["huber", "statistics"]
THEOREMS = {
    "huber": ["huber-objective-perturbation", "numerical-error"],
    "statistics": ["k-norm-sufficient-statistics"],
}


def line(n: int, *, seed: int = 1) -> tuple[Any, Any]:
    """Rows in the unit ball and targets 3 + 2a - b with a little noise."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, size=(n, 2)) / math.sqrt(2)
    return rows, 3 + 2 * rows[:, 0] - rows[:, 1] + rng.normal(size=n) / 10


@pytest.mark.parametrize(
    ("n", "epsilon", "off"), [(60_000, 4, 0.1), (20_000, 50, 0.03), (20_000, 1000, 0.03)]
)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_line(method: str, n: int, epsilon: int, off: float) -> None:
    public: dict[str, Any] = {"data_norm": 1, "bounds_y": (0, 6), "method": method}
    release = fit_linear(*line(n), epsilon=epsilon, **public)
    assert release.value.coefficients[0] == pytest.approx([2, -1], abs=off)
    assert release.value.intercept[0] == pytest.approx(3, abs=off)


def test_auto_takes_the_method_with_the_least_forecast() -> None:
    for n, d in [(1000, 5), (10**6, 1)]:
        methods = linear_methods(epsilon=1, n=n, dimension=d)
        assert methods[0].error == min(method.error for method in methods)
    rows, targets = line(2000)
    release = fit_linear(rows, targets, epsilon=1, data_norm=1, bounds_y=(0, 6))
    best = linear_methods(epsilon=1, n=2000, dimension=2)[0]
    assert release.error == pytest.approx(best.error * 9)
    assert [step.theorem for step in release.certificate.steps] == THEOREMS[best.name]


def test_statistics_win_for_few_features_and_many_rows_only() -> None:
    assert linear_methods(epsilon=1, n=10**6, dimension=1)[0].name == "statistics"
    assert linear_methods(epsilon=1, n=10**4, dimension=1)[0].name == "huber"
    assert linear_methods(epsilon=1, n=10**5, dimension=10)[0].name == "huber"
    assert linear_methods(epsilon=1, n=10**6, dimension=20)[0].name == "huber"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bounds", [(-3, 3), (0, 6), (-1, 9), (-9, -1)])
def test_no_intercept_means_none(method: str, bounds: tuple[int, int]) -> None:
    """Whatever the middle of the bounds: the line goes through 0 and is close to the targets."""
    rows = np.random.default_rng(3).uniform(0.1, 0.7, size=(60_000, 2))
    targets = rows @ [3, 1] if max(bounds) > 0 else rows @ [-3, -1]
    release = fit_linear(
        rows, targets, epsilon=4, data_norm=1, bounds_y=bounds, intercept=False, method=method
    )
    assert release.value.intercept.tolist() == [0]
    gap = release.value.decision(rows)[:, 0] - targets
    assert math.sqrt(np.mean(gap**2)) < 0.5  # of 1.6


def test_without_an_intercept_targets_are_still_cut_to_their_bounds() -> None:
    bounds = (Fraction(1), Fraction(4))
    found = Targets(bounds, intercept=False)([0, 1, 2, 4, 5])
    assert found.tolist() == [0.25, 0.25, 0.5, 1, 1]
    assert linear_error(bounds_y=(1, 4), intercept=False) == pytest.approx(
        16 * linear_error(bounds_y=(-1, 1), intercept=False)
    )


def linear_error(**options: Any) -> Any:
    return fit_linear(*line(100), epsilon=1, data_norm=1, **options).error


@pytest.mark.parametrize("method", ["huber", "statistics"])
def test_the_forecast_is_within_a_factor_of_four(method: str) -> None:
    rng = np.random.default_rng(9)
    n, d, found = 20_000, 5, []
    for _ in range(12):
        rows = rng.normal(size=(n, d))
        rows *= 0.75 / np.linalg.norm(rows, axis=1, keepdims=True)
        targets = 0.3 * math.sqrt(d) * rows[:, 0] / 0.75 + rng.normal(size=n) * 0.15
        full = np.column_stack([rows, np.ones(n)])
        clipped = np.clip(targets, -1, 1)
        best = full @ np.linalg.lstsq(full, clipped, rcond=None)[0]
        release = fit_linear(rows, targets, epsilon=1, data_norm=1, bounds_y=(-1, 1), method=method)
        found.append(float(np.mean((release.value.decision(rows)[:, 0] - best) ** 2)))
    assert isinstance(release.error, float)
    assert 0.25 < release.error / np.mean(found) < 4


@pytest.mark.parametrize("bounds", [(0, "1e400"), ("-1e101", 0), (0, "1e-101"), (1, 0), (1, 1)])
def test_bounds_that_floats_cannot_work_with_are_refused(bounds: Any) -> None:
    with pytest.raises(zd.errors.ParameterError, match="bounds_y"):
        fit_linear(*line(10), epsilon=1, data_norm=1, bounds_y=bounds)


@pytest.mark.parametrize(
    "fit", [fit_logistic, fit_multinomial, fit_huber, fit_statistics, fit_linear]
)
def test_extreme_epsilons_are_refused_and_those_before_work(fit: Any) -> None:
    line_of_classes = fit in (fit_logistic, fit_multinomial)
    given: dict[str, Any] = {"classes": [0, 1]} if line_of_classes else {"bounds_y": (0, 6)}
    for epsilon in ("1e-300", 1e-10, 1.1e6, 1e300):
        with pytest.raises(zd.errors.ParameterError, match="between 1e-9 and 1e6"):
            fit(*line(10), epsilon=epsilon, data_norm=1, **given)
    for epsilon in ("1e-9", "1e6"):
        value = fit(*line(10), epsilon=epsilon, data_norm=1, **given).value
        assert np.isfinite(value.coefficients).all()


@pytest.mark.parametrize(
    ("method", "place"),
    [("adassp", "zerodelta.paper.lattice_adassp"), ("descent", "Study")],
)
def test_a_method_that_is_elsewhere_is_refused_with_its_place(method: str, place: str) -> None:
    with pytest.raises(zd.errors.ParameterError, match=rf"\['huber', 'statistics'\].*{place}"):
        fit_linear(*line(10), epsilon=1, data_norm=1, bounds_y=(0, 6), method=method)
