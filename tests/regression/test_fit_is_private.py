"""The whole fit as a black box: certificates, exact law with one feature, audit, mutants."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from regression.fits import fit_linear, fit_logistic, fit_multinomial
from sampling import Replace
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import RealKNorm
from zerodelta.regression.objective import Shape, plan_huber, plan_logistic, plan_multinomial
from zerodelta.testing import replayed

fit_huber = partial(fit_linear, method="huber")

ROWS = np.array([[1.0], [-0.5], [0.25]])
OTHER = np.array([[-1.0], [-0.5], [0.25]])
DATA = {"one": ROWS, "two": OTHER}
FITS = 400
MUTANT_FITS = 300


def logistic(rows: Any, labels: Any, bits: Any) -> float:
    release = replayed(bits)(fit_logistic)(
        rows, labels, epsilon=1, data_norm=1, classes=[0, 1], intercept=False
    )
    return float(release.value.coefficients[0, 0])


def huber(rows: Any, labels: Any, bits: Any) -> float:
    release = replayed(bits)(fit_huber)(
        rows, labels, epsilon=1, data_norm=1, bounds_y=(-1, 1), intercept=False
    )
    return float(release.value.coefficients[0, 0])


def softmax(rows: Any, labels: Any, bits: Any) -> float:
    release = replayed(bits)(fit_multinomial)(
        rows, labels, epsilon=1, data_norm=1, classes=[0, 1], intercept=False
    )
    return float(release.value.coefficients[0, 0] - release.value.coefficients[1, 0]) / math.sqrt(2)


CASES = {"logistic": logistic, "huber": huber, "softmax": softmax}
LABELS = {"logistic": [1, 0, 1], "huber": [0.9, 0.1, -0.4], "softmax": [0, 1, 0]}


@cache
def plan_of(name: str) -> Any:
    shape = Shape.of(rows=3, dimension=1, epsilon=1, intercept=False)
    if name == "softmax":
        return plan_multinomial(shape, classes=2)
    return plan_logistic(shape) if name == "logistic" else plan_huber(shape)


def slope_at(name: str, rows: Any, theta: float) -> float:
    """The sum of the records' derivatives, from the definitions of the losses."""
    x, y, plan = rows[:, 0], np.array(LABELS[name]), plan_of(name)
    if name == "logistic":
        sign, a = 2 * y - 1, float(plan.roundness)
        m = sign * x * theta - float(plan.shift)
        u = (m + np.sqrt(m * m + 4 * a * a)) / 2
        return float((-sign * x * np.exp(-u)).sum())
    if name == "huber":
        residual = x * theta - y / float(plan.threshold)
        return float((x * residual / np.sqrt(1 + residual**2)).sum())
    logit = math.sqrt(2) * theta * x + float(plan.shift) * np.where(y == 0, -1, 1)
    return float((math.sqrt(2) * x * (1 / (1 + np.exp(-logit)) - (y == 0))).sum())


def cdf(name: str, rows: Any, coefficient: float) -> float:
    """P(coefficient <= c) of the ideal minimizer: v falls as θ rises, and v is Laplace noise."""
    plan = plan_of(name)
    theta = coefficient / float(plan.threshold)
    v = -(slope_at(name, rows, theta) + float(plan.strength) * theta)
    tail = math.exp(-abs(v) / math.sqrt(float(plan.noise_scale_squared))) / 2
    return tail if v > 0 else 1 - tail


def drawn(name: str, which: str, fits: int) -> np.ndarray[Any, Any]:
    bits = ReplayBits(f"{name} {which}")
    rows = DATA[which]
    return np.array([CASES[name](rows, LABELS[name], bits) for _ in range(fits)])


once = cache(drawn)


@pytest.mark.parametrize("name", CASES)
def test_the_published_coefficient_has_the_exact_law(name: str) -> None:
    for which, rows in DATA.items():
        values = np.sort(once(name, which, FITS))
        law = np.array([cdf(name, rows, float(value)) for value in values])
        steps = np.arange(1, FITS + 1) / FITS
        assert (
            max(np.abs(law - steps).max(), np.abs(law - steps + 1 / FITS).max()) < 2.2 / FITS**0.5
        )


def audited(name: str, draw: Callable[[str, str, int], Any], fits: int) -> float:
    """A lower bound on ε, at 99.9 %, at the threshold that the exact law says is the worst."""
    grid = np.linspace(-30, 30, 1201)
    laws = [np.array([cdf(name, rows, c) for c in grid]) for rows in DATA.values()]
    split = float(grid[int(np.argmax(np.abs(laws[0] - laws[1])))])
    counts = [int((draw(name, which, fits) <= split).sum()) for which in DATA]
    bounds = []
    for hits, others in ((counts[0], counts[1]), (counts[1], counts[0])):
        for a, b in ((hits, others), (fits - hits, fits - others)):
            low = beta.ppf(0.0005, a, fits - a + 1) if a else 0.0
            high = beta.ppf(0.9995, b + 1, fits - b) if b < fits else 1.0
            bounds.append(math.log(low / high) if low > 0 else -math.inf)
    return max(bounds)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_audit_finds_no_violation(name: str) -> None:
    assert audited(name, once, FITS) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_audit_finds_a_quarter_of_the_noise(name: str, replace: Replace) -> None:
    true = RealKNorm

    def quiet(*, scale_squared: Fraction, **others: Any) -> Any:
        return true(scale_squared=scale_squared / 16, **others)

    replace("RealKNorm", quiet)
    assert audited(name, drawn, MUTANT_FITS) > 1
