"""Rényi curves and the conversion of one order, against mpmath."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from privacy.profiles import randomized_response_renyi, real
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
