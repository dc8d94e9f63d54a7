"""Rényi curves, their conversion, and Lemma WOR, against mpmath and exact mixtures."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from privacy.profiles import randomized_response_renyi, real
from zerodelta.errors import ParameterError
from zerodelta.exact.logs import to_float_up
from zerodelta.privacy.claims import RDP, ZCDP
from zerodelta.privacy.renyi import (
    FunctionCurve,
    LinearCurve,
    PureCurve,
    SumCurve,
    TableCurve,
    best_order,
    log_delta_at_order,
    pure_rho,
)
from zerodelta.privacy.theorems.subsampling import (
    SubsampledGaussianCurve,
    _certified,
    _convex_part,
    _estimated,
    _Terms,
    subsampled_gaussian,
)


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(120):
        yield


def random_order(rng: random.Random) -> Fraction:
    return 1 + Fraction(10 ** rng.uniform(-5, 6))


def test_one_order_is_converted_upwards() -> None:
    rng = random.Random(1)
    for _ in range(500):
        order = random_order(rng)
        divergence, t = Fraction(10 ** rng.uniform(-6, 2)), Fraction(10 ** rng.uniform(-3, 2))
        a = real(order)
        truth = (a - 1) * (real(divergence) - real(t)) + (a - 1) * mp.log(1 - 1 / a) - mp.log(a)
        found = log_delta_at_order(order, divergence, t)
        assert mpf(found) >= min(truth, 0)
        assert mpf(found) <= min(truth + abs(truth) * mpf("1e-15"), 0)


def test_pure_curve_is_randomized_response_rounded_up() -> None:
    rng = random.Random(2)
    for _ in range(300):
        epsilon, order = (
            Fraction(10 ** rng.uniform(-6, 1.5)),
            1 + Fraction(10 ** rng.uniform(-5, 3)),
        )
        truth = randomized_response_renyi(epsilon, order)
        found = real(PureCurve(epsilon, False, 1).value(order))
        assert truth <= found <= truth * (1 + mpf("1e-15"))
        assert PureCurve(epsilon, False, 1).estimate(float(order)) == pytest.approx(
            float(truth), rel=1e-3, abs=1e-9
        )
        assert PureCurve(epsilon, False, 7).value(order) == 7 * Fraction(
            PureCurve(epsilon, False, 1).value(order)
        )


def test_pure_steps_are_concentrated_at_the_tanh_rate() -> None:
    rng = random.Random(4)
    for _ in range(500):
        epsilon, order = Fraction(10 ** rng.uniform(-4, 1.5)), random_order(rng)
        rho = pure_rho(epsilon, False)
        assert PureCurve(epsilon, False, 1).value(order) <= rho * order * (1 + Fraction(1, 10**12))
        assert PureCurve(epsilon, True, 1).value(order) <= epsilon**2 / 8 * order
        assert PureCurve(epsilon, True, 1).value(order) <= epsilon


def test_a_table_answers_with_the_next_larger_order() -> None:
    table = TableCurve.of({2: 1, 4: 3})
    assert [table.value(Fraction(order)) for order in ("3/2", 2, 3, 4)] == [1, 1, 3, 3]
    assert table.value(Fraction(5)) is None
    integers = FunctionCurve(lambda order: order * 10, integer=True)
    assert integers.value(Fraction(5, 2)) == 30
    both = SumCurve((table, integers, LinearCurve(Fraction(1, 2))), 2)
    assert both.value(Fraction(3)) == 2 * (3 + 30 + Fraction(3, 2))
    assert both.value(Fraction(9, 2)) is None
    assert both.candidates() == (Fraction(2), Fraction(4))
    assert both.integer


def test_a_function_of_floats_is_asked_for_an_order_that_is_not_smaller() -> None:
    asked: list[float] = []

    def curve(order: float) -> float:
        asked.append(order)
        return 1.0

    for top in range(4, 40):
        FunctionCurve(curve).value(Fraction(top, 3))
        assert math.nextafter(asked[-1], 0) < Fraction(top, 3) <= asked[-1]


def test_the_order_found_is_as_good_as_any() -> None:
    rng = random.Random(6)
    for _ in range(40):
        rho, t = 10 ** rng.uniform(-9, 0.5), 10 ** rng.uniform(-2, 1)
        epsilon, count = Fraction(10 ** rng.uniform(-3, 0)), rng.randrange(1, 40)
        curve = SumCurve((LinearCurve(Fraction(rho)), PureCurve(epsilon, False, count)))
        found = at(curve, best_order(curve, Fraction(t)), t)
        for exponent in range(-80, 250):
            order = 1 + Fraction(math.exp(exponent / 8))
            assert found <= at(curve, order, t) + 1e-9 * (1 + abs(found))


def at(curve: SumCurve, order: Fraction, t: float) -> float:
    value = curve.value(order)
    assert value is not None
    return log_delta_at_order(order, value, Fraction(t))


# -- Lemma WOR ------------------------------------------------------------------------------------


def term(curve: SubsampledGaussianCurve, order: int, k: int) -> mpf:
    rate, mu_squared = mpf(curve.batch) / curve.rows, real(curve.mu_squared)
    chance = mp.binomial(order, k) * (1 - rate) ** (order - k) * rate**k
    return chance * mp.expm1(k * (k - 1) * mu_squared / 2)


def lemma(curve: SubsampledGaussianCurve, order: int) -> mpf:
    return mp.log1p(2 * mp.fsum(term(curve, order, k) for k in range(2, order + 1))) / (order - 1)


def random_curve(rng: random.Random) -> SubsampledGaussianCurve:
    rows = rng.choice([2, 5, 100, 10**4, 10**9])
    batch = rng.randrange(1, rows) if rng.random() < 0.5 else rng.randrange(1, min(rows, 20))
    mu_squared = Fraction(10 ** rng.uniform(-7, 1))
    return SubsampledGaussianCurve(rows=rows, batch=batch, mu_squared=mu_squared)


def test_the_certified_divergence_is_the_lemma_rounded_up() -> None:
    rng = random.Random(1)
    for _ in range(70):
        curve, order = random_curve(rng), rng.choice([2, 3, 4, 5, 10, 50, 200, 500])
        truth, found = lemma(curve, order), _certified(curve, order)
        assert truth <= mpf(found) <= truth * (1 + mpf("1e-14"))
        assert _estimated(curve, order) == pytest.approx(float(truth), rel=1e-7)


def test_skipped_terms_are_bounded_whatever_is_skipped() -> None:
    rng = random.Random(2)
    shapes = set()
    for _ in range(130):
        order = rng.choice([3, 6, 9, 40, 100])
        # from about 4/a on f is concave, convex, concave; far beyond it is steep
        mu_squared = Fraction(10 ** rng.uniform(-0.3, 2) / order)
        curve = SubsampledGaussianCurve(
            rows=1000, batch=rng.choice([1, 10, 100, 500, 999]), mu_squared=mu_squared
        )
        terms = _Terms.of(curve, order)
        shapes.add(terms.convex[1] > terms.convex[0])
        first = rng.randrange(2, order + 1)
        last = rng.randrange(first, order + 1)
        truth = mp.fsum(term(curve, order, k) for k in range(first, last + 1))
        assert mp.log(truth) <= to_float_up(terms._remainder(first, last).log())
        # and the total is safe whatever windows the floats came up with
        tampered = replace(terms, windows=((first, (first + last) // 2),))
        everything = mp.fsum(term(curve, order, k) for k in range(2, order + 1))
        assert mp.log(everything) <= to_float_up(tampered.total().log())
    assert shapes == {True, False}


def test_the_slope_grows_exactly_on_the_convex_part() -> None:
    for order, inverse in itertools.product((2, 3, 10, 11, 200), (300, 30, 3, 0.3)):
        square = 1 / Fraction(inverse)
        first, last = _convex_part(order, square)
        for k in range(order):
            grows = square >= Fraction(order + 1, (order - k) * (k + 1))
            assert grows == (first <= k <= last) or (first == last == (order - 1) // 2)


def exact_divergences(
    one: tuple[float, ...], other: tuple[float, ...], batch: int, sigma: float, order: int
) -> tuple[float, float]:
    """Return the Rényi divergences, both ways, of noisy sums over a random batch of the rows."""
    x = np.linspace(-40.0, 40.0, 80_001)

    def density(rows: tuple[float, ...]) -> Any:
        sums = [sum(chosen) for chosen in itertools.combinations(rows, batch)]
        shifted = [np.exp(-(((x - s) / sigma) ** 2) / 2) for s in sums]
        return np.sum(shifted, axis=0) / (len(sums) * sigma * math.sqrt(2 * math.pi))

    p, q = np.maximum(density(one), 1e-300), np.maximum(density(other), 1e-300)
    step = x[1] - x[0]

    def divergence(a: Any, b: Any) -> float:
        inside = b > 1e-150
        moment = np.sum(np.exp(order * np.log(a) + (1 - order) * np.log(b))[inside]) * step
        return float(np.log(moment)) / (order - 1)

    return divergence(p, q), divergence(q, p)


@pytest.mark.parametrize("sigma", [2.0, 4.0])
@pytest.mark.parametrize("order", [2, 3, 6])
def test_the_lemma_covers_exact_mixtures_over_batches(order: int, sigma: float) -> None:
    worst = 0.0
    for rows, batch in ((2, 1), (3, 1), (3, 2), (5, 2), (6, 1)):
        curve = SubsampledGaussianCurve(rows=rows, batch=batch, mu_squared=4 / Fraction(sigma) ** 2)
        bound = float(curve.value(Fraction(order)))
        for rest in itertools.combinations_with_replacement((-1.0, 0.0, 1.0), rows - 1):
            found = max(exact_divergences((1.0, *rest), (-1.0, *rest), batch, sigma, order))
            assert found <= bound + 1e-9
            worst = max(worst, found / bound)
    assert worst > 0.5


def test_half_the_sensitivity_would_be_caught() -> None:
    """A mutant with L for 2L: the exact mixture is above its bound."""
    mutant = SubsampledGaussianCurve(rows=2, batch=1, mu_squared=Fraction(1, 4))
    found = max(exact_divergences((1.0, 1.0), (-1.0, 1.0), 1, 2.0, 3))
    assert found > float(mutant.value(Fraction(3)))


def test_sampling_never_costs_and_everything_is_no_sampling() -> None:
    rng = random.Random(5)
    for _ in range(50):
        curve, order = random_curve(rng), Fraction(rng.choice([2, 7, 300]))
        assert curve.value(order) <= curve.mu_squared * order / 2
    everything = subsampled_gaussian(rows=9, batch=9, sensitivity_squared=1, variance=50, steps=3)
    assert everything.log_delta(1) == pytest.approx(ZCDP("3/100").log_delta(1), rel=1e-2)
    assert everything.log_delta(1) >= ZCDP("3/100").log_delta(1)
    nothing = subsampled_gaussian(rows=9, batch=3, sensitivity_squared=0, variance=50)
    assert nothing.log_delta(1) < -1e5


def test_high_orders_are_reached_by_adding_few_terms() -> None:
    claim = subsampled_gaussian(
        rows=10**6, batch=1000, sensitivity_squared=4, variance=4 * 10**5, steps=10
    )
    found = claim.log_delta("1/2")
    assert found < -1e4
    (order,) = claim.numbers()["orders"]
    assert 10**4 < order <= 10**6
    step = SubsampledGaussianCurve(rows=10**6, batch=1000, mu_squared=Fraction(4, 4 * 10**5))
    windows = _Terms.of(step, int(order)).windows
    assert sum(last - first + 1 for first, last in windows) < 2000
    # the best order is about -2 ln δ/t; half and twice of it prove less
    for other in (order // 2, min(2 * order, 10**6)):
        table = RDP({other: claim.curve.value(Fraction(other)) or 0})
        assert table.log_delta("1/2") >= found


def test_between_integers_the_next_larger_order_answers() -> None:
    """The divergence grows with the order; the one below would promise too much."""
    curve = SubsampledGaussianCurve(rows=1000, batch=10, mu_squared=Fraction(1, 4))
    for order in range(2, 12):
        below, above = curve.value(Fraction(order)), curve.value(Fraction(order + 1))
        assert below < above
        for part in (Fraction(1, 10**9), Fraction(1, 2)):
            assert curve.value(order + part) == above


@pytest.mark.parametrize(
    "change",
    [{"batch": 0}, {"batch": 101}, {"rows": 0}, {"variance": 0}, {"steps": 0}, {"rows": 1.5}],
)
def test_malformed_parameters_are_refused(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"rows": 100, "batch": 10, "sensitivity_squared": 4, "variance": 9}
    with pytest.raises(ParameterError):
        subsampled_gaussian(**{**good, **change})
