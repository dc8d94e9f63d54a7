"""Directed logarithms against 220-digit mpmath, which shares no code with Arb."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from zerodelta.errors import ParameterError
from zerodelta.exact import logs

SLACK = mpf("1e-12")
SMALLEST = mpf(5e-324)


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(220):
        yield


def real(value: Fraction | float | int) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / mpf(exact.denominator)


def assert_encloses(low: float, high: float, truth: mpf) -> None:
    assert mpf(low) <= truth <= mpf(high)
    assert mpf(high) - mpf(low) <= SLACK * abs(truth) + SMALLEST


def assert_just_above(high: float, truth: mpf) -> None:
    assert truth <= mpf(high) <= truth + SLACK * abs(truth) + SMALLEST


def log_lower(value: Fraction | int) -> float:
    """The other direction of the formula behind `log_upper`, which no release needs."""
    return logs.lower(logs._log(value, "value"))


def random_positive(rng: random.Random) -> Fraction:
    """Draw positive rationals of very different sizes, some next to 1."""
    kind = rng.randrange(4)
    if kind == 0:
        return Fraction(rng.random() + 1e-9)
    if kind == 1:
        return 1 + Fraction(rng.randrange(-99, 100), 10 ** rng.randrange(2, 60))
    if kind == 2:
        return Fraction(rng.randrange(1, 1000), rng.randrange(1, 1000))
    return rng.randrange(1, 10**6) * Fraction(10) ** rng.randrange(-300, 300)


def random_log(rng: random.Random) -> float:
    return rng.choice([1, -1]) * rng.random() * 10 ** rng.uniform(-6, 6)


def test_log_encloses_rationals_of_every_size() -> None:
    rng = random.Random(10)
    for _ in range(2000):
        value = random_positive(rng)
        assert_encloses(log_lower(value), logs.log_upper(value), mp.log(real(value)))


def test_log_of_numbers_with_a_million_nats() -> None:
    for value in (3**910239, Fraction(7, 3**910239), 2**1442695 + 1):
        exact = Fraction(value)
        truth = mp.log(exact.numerator) - mp.log(exact.denominator)
        assert abs(truth) > 999_000
        assert_encloses(log_lower(value), logs.log_upper(value), truth)


def test_log_keeps_relative_accuracy_at_one_plus_1e_minus_300() -> None:
    value = 1 + Fraction(1, 10**300)
    with mp.workdps(900):
        assert_encloses(log_lower(value), logs.log_upper(value), mp.log(real(value)))
    assert log_lower(1) == logs.log_upper(1) == 0


@given(st.fractions(min_value=Fraction(1, 10**9)).filter(lambda x: x > 0))
def test_log_of_the_inverse_is_the_mirror_image(value: Fraction) -> None:
    assert logs.log_upper(value) == -log_lower(1 / value)


def test_log_odds_is_just_below_for_weights_near_zero_half_and_one() -> None:
    rng = random.Random(11)
    for _ in range(1000):
        small = Fraction(rng.randrange(1, 10**6), 10 ** rng.randrange(7, 60))
        for weight in (small, 1 - small, Fraction(1, 2) + small):
            truth = mp.log(real(weight)) - mp.log(real(1 - weight))
            assert_just_above(-logs.log_odds_lower(weight), -truth)
    assert logs.log_odds_lower("1/2") == 0


def test_log_sum_is_just_above_for_random_sequences_with_zero_terms() -> None:
    rng = random.Random(12)
    for _ in range(1000):
        center, width = random_log(rng), 10 ** rng.uniform(-3, 3)
        terms = [center + rng.gauss(0, width) for _ in range(rng.randrange(2, 12))]
        truth = mp.log(mp.fsum(mp.exp(mpf(term)) for term in terms))
        terms.insert(rng.randrange(len(terms)), -math.inf)
        assert_just_above(logs.log_sum_upper(terms), truth)


def test_log_sum_of_nothing_of_one_and_of_equal_terms() -> None:
    for empty in ([], [-math.inf, -math.inf]):
        assert logs.log_sum_upper(empty) == -math.inf
    assert logs.log_sum_upper([0.1]) == logs.log_sum_upper([0.1, -math.inf]) == 0.1
    for log in (-1e6, 1e6, 0.0):
        truth = mpf(log) + mp.log(1000)
        terms = [log] * 1000
        assert_just_above(logs.log_sum_upper(terms), truth)
    assert logs.log_sum_upper([0.0, -1e6]) == 5e-324


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_log_sum_does_not_depend_on_the_order(terms: list[float], rng: random.Random) -> None:
    shuffled = sorted(terms, key=lambda _: rng.random())
    assert logs.log_sum_upper(shuffled) == logs.log_sum_upper(terms)


def random_point(rng: random.Random) -> Fraction:
    return Fraction(rng.choice([1, -1]) * rng.random() * 10 ** rng.uniform(-8, 3.3))


def log_tail(point: Fraction | float) -> tuple[float, float]:
    """ln Φ(-|point|) from both sides, by the function that the Gaussian profile is made of."""
    half = Fraction(point) ** 2 / 2
    low, high = (
        end(lambda: (logs._erfcx(half) / 2).log() - logs.ball(half))
        for end in (logs.lower, logs.upper)
    )
    return low, high


def test_the_normal_tail_is_enclosed() -> None:
    rng = random.Random(19)
    for point in [Fraction(0), Fraction(-1500), *(random_point(rng) for _ in range(1000))]:
        truth = mp.log(mp.erfc(abs(real(point)) / mp.sqrt(2)) / 2)
        assert_encloses(*log_tail(point), truth)


@pytest.mark.parametrize("point", [-1024, -1025, -(10**9), -(10**30), -1e200])
def test_the_normal_tail_far_beyond_a_million_nats_obeys_the_mills_ratio(point: float) -> None:
    low, high = log_tail(point)
    if math.isinf(low):
        assert Fraction(point) ** 2 / 2 > Fraction(high)
        return
    x = -real(point)
    leading = -(x**2) / 2 - mp.log(2 * mp.pi) / 2
    assert mpf(low) <= leading - mp.log(x)
    assert mpf(high) >= leading + mp.log(x / (1 + x**2))
    assert mpf(high) - mpf(low) <= SLACK * abs(leading)


def profile(mu_squared: Fraction, epsilon: Fraction) -> mpf:
    """Return ln(Φ(μ/2 - t/μ) - e^t Φ(-μ/2 - t/μ)) as it is written, or ln(1 - (1-δ)) above ½."""
    mu, t = mp.sqrt(real(mu_squared)), real(epsilon)
    a, b = t / mu - mu / 2, t / mu + mu / 2
    far = mp.exp(t) * mp.erfc(b / mp.sqrt(2)) / 2
    if a < 0:
        return mp.log1p(-(mp.erfc(-a / mp.sqrt(2)) / 2 + far))
    return mp.log(mp.erfc(a / mp.sqrt(2)) / 2 - far)


def test_gaussian_profile_encloses_the_definition() -> None:
    rng = random.Random(20)
    checked = 0
    while checked < 1500:
        mu_squared = Fraction(10 ** rng.uniform(-7, 3))
        epsilon = Fraction(10 ** rng.uniform(-6, 2))
        if epsilon**2 / mu_squared > 10**7:
            continue
        low = logs.gaussian_log_delta_lower(mu_squared, epsilon)
        high = logs.gaussian_log_delta_upper(mu_squared, epsilon)
        assert_encloses(low, high, profile(mu_squared, epsilon))
        checked += 1


@pytest.mark.parametrize(
    ("mu_squared", "epsilon"),
    [
        (Fraction(1, 10**30), Fraction(1)),
        (Fraction(1, 10**30), Fraction(0)),
        (Fraction(1, 10**30), Fraction(1, 10**30)),
        (Fraction(1, 10**30), Fraction(1, 10**12)),
        (Fraction(1, 2 * 10**30), Fraction(1, 4 * 10**30)),
        (Fraction(1, 2 * 10**6), Fraction(1)),
        (Fraction(1, 200), Fraction(100)),
        (Fraction(1000), Fraction(0)),
        (Fraction(10**4), Fraction(5000)),
        (Fraction(10**4), Fraction(10**6)),
        (Fraction(4), Fraction(2)),
    ],
)
def test_gaussian_profile_at_extremes(mu_squared: Fraction, epsilon: Fraction) -> None:
    with mp.workdps(500):
        low = logs.gaussian_log_delta_lower(mu_squared, epsilon)
        high = logs.gaussian_log_delta_upper(mu_squared, epsilon)
        assert_encloses(low, high, profile(mu_squared, epsilon))


@given(st.fractions(Fraction(1, 10**6), 100), st.fractions(0, 50), st.fractions(0, 10))
def test_gaussian_profile_grows_with_mu_and_falls_with_epsilon(
    mu_squared: Fraction, epsilon: Fraction, more: Fraction
) -> None:
    bound = logs.gaussian_log_delta_upper(mu_squared, epsilon)
    assert logs.gaussian_log_delta_lower(mu_squared, epsilon + more) <= bound <= 0
    assert logs.gaussian_log_delta_upper(
        mu_squared + more, epsilon
    ) >= logs.gaussian_log_delta_lower(mu_squared, epsilon)


def test_no_noise_difference_means_no_delta() -> None:
    for bound in (
        logs.gaussian_log_delta_upper(0, 1),
        logs.gaussian_log_delta_lower(0, 0),
    ):
        assert bound == -math.inf


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: logs.log_upper(0), "value"),
        (lambda: logs.log_upper(-1), "value"),
        (lambda: logs.log_odds_lower(0), "weight"),
        (lambda: logs.log_odds_lower(1), "weight"),
        (lambda: logs.log_sum_upper([0.0, math.nan]), "logs[1]"),
        (lambda: logs.log_sum_upper([math.inf]), "logs[0]"),
        (lambda: logs.gaussian_log_delta_upper(-1, 1), "mu_squared"),
        (lambda: logs.gaussian_log_delta_lower(1, "-1/2"), "epsilon"),
    ],
)
def test_bad_input_is_refused_by_name(call: Callable[[], float], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.name == name
