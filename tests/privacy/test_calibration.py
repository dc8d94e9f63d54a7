"""Calibration ends on the safe side, next to the optimum; δ in either form, and ε in shares."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from zerodelta.errors import ParameterError
from zerodelta.exact.logs import gaussian_log_delta_upper
from zerodelta.privacy import claims
from zerodelta.privacy.claims import ZCDP, GaussianDP, calibrate, safe_end
from zerodelta.privacy.parameters import log_delta_from, split_epsilon

GRID = [(e, ell) for e in ("1/1000", "1/10", 1, 50) for ell in (-1.0, -10.0, -1e3, -1e6)]
BEYOND = 1 + Fraction(1, 10**9)


def check(epsilon: Any, log_delta: float) -> None:
    found = calibrate(epsilon=epsilon, log_delta=log_delta, sensitivity="3/2")
    assert found.epsilon == Fraction(epsilon)
    assert ZCDP(found.rho).log_delta(epsilon) <= log_delta
    assert ZCDP(found.rho * BEYOND).log_delta(epsilon) > log_delta
    assert GaussianDP(mu_squared=found.mu_squared).log_delta(epsilon) <= log_delta
    assert GaussianDP(mu_squared=found.mu_squared * BEYOND).log_delta(epsilon) > log_delta
    assert found.variance is not None
    used = Fraction(9, 4) / found.variance
    assert GaussianDP(mu_squared=used).log_delta(epsilon) <= log_delta
    assert used <= found.mu_squared <= used * BEYOND
    assert found.rho <= found.mu_squared / 2  # μ-GDP says more than μ²/2-zCDP


@pytest.mark.parametrize(("epsilon", "log_delta"), GRID)
def test_results_are_safe_and_next_to_the_optimum(epsilon: Any, log_delta: float) -> None:
    check(epsilon, log_delta)


def test_each_takes_fewer_looks_at_the_profile_than_halving_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def counted(*given: Any) -> float:
        nonlocal looks
        looks += 1
        return gaussian_log_delta_upper(*given)

    monkeypatch.setattr(claims, "gaussian_log_delta_upper", counted)
    for epsilon, log_delta in GRID:
        calibrate(epsilon=epsilon, log_delta=log_delta, sensitivity=1)
    assert 0 < looks / len(GRID) < 80


def test_variance_is_only_for_a_sensitivity() -> None:
    assert calibrate(epsilon=1, log_delta=-9.0).variance is None


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0},
        {"log_delta": 0.0},
        {"log_delta": 0.1},
        {"log_delta": -math.inf},
        {"sensitivity": 0},
    ],
)
def test_malformed_parameters_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        calibrate(**{"epsilon": 1, "log_delta": -9.0, **change})


@pytest.mark.parametrize("at", [0.0, 5e-324, 1e-30, 0.1, 1.0, 12345.678, 1e300])
def test_a_crossing_is_found_to_the_float_from_either_side(at: float) -> None:
    for steep in (lambda x: x - at, lambda x: -1.0 if x <= at else math.inf):
        assert safe_end(steep, safe=0.0, unsafe=1.7e308) == at
    found = safe_end(lambda x: -1.0 if x > at else 1.0, safe=1.7e308, unsafe=0.0)
    assert found == math.nextafter(at, math.inf)


def test_no_search_takes_more_than_a_few_hundred_steps() -> None:
    for power in (1, 3, 9, 33):
        calls = 0

        def excess(x: float, power: int = power) -> float:
            nonlocal calls
            calls += 1
            return math.copysign(abs(x - 0.7) ** power, x - 0.7)

        found = safe_end(excess, safe=0.0, unsafe=1e9)
        assert excess(found) <= 0
        assert calls < 300


def test_a_start_that_is_not_safe_is_refused() -> None:
    with pytest.raises(ValueError, match="safe side"):
        safe_end(lambda x: 1.0, safe=0.0, unsafe=1.0)


# -- δ and shares of ε ----------------------------------------------------------------------------


def test_delta_and_its_logarithm_say_the_same_and_round_up() -> None:
    for delta in ("1e-6", "1e-300", Fraction(1, 3), 0.5):
        found = log_delta_from(delta, None)
        assert math.isclose(found, math.log(Fraction(delta)), rel_tol=1e-12)
        assert log_delta_from(None, found) == found
    assert log_delta_from(1, None) == 0.0


@pytest.mark.parametrize(
    ("delta", "log_delta"),
    [(None, None), ("1e-6", -13.8), (0.0, None), (0, None), (2, None), (-1, None), (None, 0.5)],
)
def test_neither_both_and_the_delta_that_underflowed_are_refused(
    delta: Any, log_delta: Any
) -> None:
    with pytest.raises(ParameterError, match="delta"):
        log_delta_from(delta, log_delta)


def test_the_shares_of_epsilon_add_up_exactly() -> None:
    for total, base in (("1/3", None), (1, "1/7"), (0.1, 0.03)):
        inner, extra = split_epsilon(total, base)
        assert inner > 0
        assert extra > 0
        assert inner + extra == Fraction(total)


@pytest.mark.parametrize("base", [0, -1, 1, 2])
def test_a_share_that_leaves_nothing_for_the_noise_is_refused(base: int) -> None:
    with pytest.raises(ParameterError, match="base_epsilon"):
        split_epsilon(1, base)
