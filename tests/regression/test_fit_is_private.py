"""The whole fit as a black box: certificates, exact law with one feature, audit, mutants."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import zerodelta as zd
from privacy.chains import forged
from regression.fits import fit_linear, fit_logistic, fit_multinomial
from sampling import Replace
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import RealKNorm
from zerodelta.privacy.steps import Status
from zerodelta.regression.objective import Shape, plan_huber, plan_logistic, plan_multinomial
from zerodelta.testing import replayed

Fit = Callable[[Any, Any, Any], Any]
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


def slope_at(name: str, rows: Any, theta: float) -> float:
    """The sum of the records' derivatives, from the definitions of the losses."""
    x, y = rows[:, 0], np.array(LABELS[name])
    if name == "logistic":
        plan = plan_logistic(Shape.of(rows=3, dimension=1, epsilon=1, intercept=False))
        sign, a = 2 * y - 1, float(plan.roundness)
        m = sign * x * theta - float(plan.shift)
        u = (m + np.sqrt(m * m + 4 * a * a)) / 2
        return float((-sign * x * np.exp(-u)).sum())
    if name == "huber":
        plan = plan_huber(Shape.of(rows=3, dimension=1, epsilon=1, intercept=False))
        residual = x * theta - y / float(plan.threshold)
        return float((x * residual / np.sqrt(1 + residual**2)).sum())
    plan = plan_multinomial(Shape.of(rows=3, dimension=1, epsilon=1, intercept=False), classes=2)
    logit = math.sqrt(2) * theta * x + float(plan.shift) * np.where(y == 0, -1, 1)
    return float((math.sqrt(2) * x * (1 / (1 + np.exp(-logit)) - (y == 0))).sum())


def cdf(name: str, rows: Any, coefficient: float) -> float:
    """P(coefficient <= c) of the ideal minimizer: v falls as θ rises, and v is Laplace noise."""
    plans: dict[str, Any] = {
        "logistic": lambda: plan_logistic(
            Shape.of(rows=3, dimension=1, epsilon=1, intercept=False)
        ),
        "huber": lambda: plan_huber(Shape.of(rows=3, dimension=1, epsilon=1, intercept=False)),
        "softmax": lambda: plan_multinomial(
            Shape.of(rows=3, dimension=1, epsilon=1, intercept=False), classes=2
        ),
    }
    plan = plans[name]()
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


def releases() -> dict[str, zd.records.Release]:
    chance = np.random.default_rng(0)
    rows = chance.uniform(-0.5, 0.5, size=(200, 3))
    return {
        "logistic": fit_logistic(rows, rows[:, 0] > 0, epsilon=1, data_norm=1, classes=[0, 1]),
        "huber": fit_huber(rows, rows[:, 0], epsilon="1/2", data_norm=1, bounds_y=(-1, 1)),
        "softmax": fit_multinomial(
            rows, np.digitize(rows[:, 0], [-0.1, 0.1]), epsilon=2, data_norm=1, classes=[0, 1, 2]
        ),
    }


RELEASES = releases()


@pytest.mark.parametrize("name", RELEASES)
def test_a_certificate_is_proven_and_verifies(name: str) -> None:
    certificate = RELEASES[name].certificate
    assert zd.verify(certificate)
    assert zd.verify(certificate.to_json())
    assert certificate.status is Status.PROVEN
    assert [step.theorem for step in certificate.steps] == [
        f"{name}-objective-perturbation",
        "numerical-error",
    ]


def refused(text: str) -> None:
    with pytest.raises(
        zd.errors.CertificateError, match=r"do not prove|cannot be used|step is missing"
    ):
        zd.verify(text)


@pytest.mark.parametrize("name", RELEASES)
def test_the_certificate_spends_all_of_epsilon_and_no_more(name: str) -> None:
    certificate = RELEASES[name].certificate
    epsilon = certificate.claim.exact_epsilon  # type: ignore[attr-defined]

    def understated(data: dict[str, Any]) -> None:
        data["claim"]["epsilon"] = str(epsilon * (1 - Fraction(1, 10**9)))

    refused(forged(certificate, understated))


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "more noise rate": lambda d: _scale(d, 0, "noise_epsilon", Fraction(10**8 + 1, 10**8)),
    "half the noise (s for 2s)": lambda d: _scale(d, 0, "noise_epsilon", Fraction(2)),
    "weaker regularization": lambda d: _scale(d, 0, "strength", Fraction(1, 64)),
    "twice the error": lambda d: _scale(d, 1, "error", Fraction(2)),
    "half the output noise": lambda d: _scale(d, 1, "scale", Fraction(1, 2)),
    "another relation": lambda d: _relate(d),
    "no numerical error": lambda d: _scale(d, 1, "error", Fraction(0)),
    "no Theorem N": lambda d: _without_n(d),
}


def _scale(data: dict[str, Any], step: int, name: str, factor: Fraction) -> None:
    numbers = data["parts"][0]["steps"][step]["numbers"]
    numbers[name] = str(Fraction(numbers[name]) * factor)
    if Fraction(numbers[name]).denominator == 1:
        numbers[name] = int(Fraction(numbers[name]))


def _without_n(data: dict[str, Any]) -> None:
    del data["parts"][0]["steps"][1]
    data["parts"][0]["steps"][0]["step"] = "1 of 1"


def _relate(data: dict[str, Any]) -> None:
    data["claim"]["neighbors"] = "add-remove"
    for step in data["parts"][0]["steps"]:
        step["neighbors"] = "add-remove"


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("name", RELEASES)
def test_a_forged_certificate_is_refused(name: str, forgery: str) -> None:
    refused(forged(RELEASES[name].certificate, FORGERIES[forgery]))


@pytest.mark.parametrize("name", RELEASES)
def test_certificate_and_forecast_depend_on_public_numbers_only(name: str) -> None:
    fit = {"logistic": _any_logistic, "huber": _any_huber, "softmax": _any_softmax}[name]
    one, two = fit(np.zeros((50, 2)), 0), fit(np.full((50, 2), np.nan), 1)
    assert json.loads(one.certificate.to_json()) == json.loads(two.certificate.to_json())
    assert one.error == two.error


def _any_logistic(rows: Any, label: int) -> zd.records.Release:
    return fit_logistic(rows, [label] * 50, epsilon=1, data_norm=2, classes=[0, 1])


def _any_huber(rows: Any, label: int) -> zd.records.Release:
    return fit_huber(rows, [label] * 50, epsilon=1, data_norm=2, bounds_y=(0, 1))


def _any_softmax(rows: Any, label: int) -> zd.records.Release:
    return fit_multinomial(rows, [label] * 50, epsilon=1, data_norm=2, classes=[0, 1, 2])


def test_replayed_bits_brand_the_certificate() -> None:
    release = replayed("x")(fit_logistic)(ROWS, [0, 1, 1], epsilon=1, data_norm=1, classes=[0, 1])
    with pytest.raises(zd.errors.CertificateError, match="test bits"):
        zd.verify(release.certificate)
