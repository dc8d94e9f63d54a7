"""Balls become floats outwards, and Arb balls of a draw enclose what is known of its strings."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from zerodelta.exact.bits import ArbBalls
from zerodelta.exact.logs import ball, lower, to_float_down, to_float_up, upper

LARGEST = math.nextafter(math.inf, 0)


def dyadic(mantissa: int, exponent: int) -> arb:
    """Return an exact ball, whatever the working precision."""
    return arb((mantissa, exponent))


def exact_value(mantissa: int, exponent: int) -> Fraction:
    return mantissa * Fraction(2) ** exponent


def random_dyadics(seed: int, count: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        mantissa = rng.getrandbits(rng.choice([1, 20, 52, 53, 54, 55, 80, 300])) * rng.choice(
            [1, -1]
        )
        pairs.append((mantissa, rng.choice([0, -60, 900, -1000, -1074, -1090, -1200, 960])))
    return pairs


def test_up_is_the_smallest_float_above_and_down_the_largest_below() -> None:
    for mantissa, exponent in random_dyadics(2, 5000):
        value, truth = dyadic(mantissa, exponent), exact_value(mantissa, exponent)
        up, down = to_float_up(value), to_float_down(value)
        if math.isfinite(up):
            assert Fraction(up) >= truth
            below = math.nextafter(up, -math.inf)
            assert not math.isfinite(below) or Fraction(below) < truth
        else:
            assert truth > Fraction(LARGEST)
        if math.isfinite(down):
            assert Fraction(down) <= truth
            above = math.nextafter(down, math.inf)
            assert not math.isfinite(above) or Fraction(above) > truth
        else:
            assert truth < -Fraction(LARGEST)


@given(st.floats(allow_nan=False))
def test_a_float_survives_both_directions_unchanged(value: float) -> None:
    assert to_float_up(arb(value)) == value == to_float_down(arb(value))


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**20), st.integers(-1100, 900))
def test_the_whole_ball_is_enclosed(mantissa: int, radius: int, exponent: int) -> None:
    value = arb((mantissa, exponent), (radius, exponent))
    assert Fraction(to_float_up(value)) >= exact_value(mantissa + radius, exponent)
    assert Fraction(to_float_down(value)) <= exact_value(mantissa - radius, exponent)


@pytest.mark.parametrize("exponent", [2000, 10**7, 10**40])
def test_overflow_and_underflow_go_outwards(exponent: int) -> None:
    huge, tiny = dyadic(3, exponent), dyadic(3, -exponent)
    assert (to_float_down(huge), to_float_up(huge)) == (LARGEST, math.inf)
    assert (to_float_down(-huge), to_float_up(-huge)) == (-math.inf, -LARGEST)
    assert (to_float_down(tiny), to_float_up(tiny)) == (0.0, 5e-324)
    assert (to_float_down(-tiny), to_float_up(-tiny)) == (-5e-324, 0.0)


def test_what_is_not_known_is_infinite_in_the_safe_direction() -> None:
    for unknown in (arb.nan(), arb(0, math.inf)):
        assert (to_float_down(unknown), to_float_up(unknown)) == (-math.inf, math.inf)
    assert to_float_up(arb.neg_inf()) == to_float_down(arb.neg_inf()) == -math.inf
    assert to_float_up(arb.pos_inf()) == to_float_down(arb.pos_inf()) == math.inf


def test_zero_has_no_sign() -> None:
    assert math.copysign(1, to_float_down(arb(0))) == math.copysign(1, to_float_up(arb(0))) == 1


def test_ball_is_exact_for_integers_and_floats_and_encloses_fractions() -> None:
    assert ball(10**400).is_exact()
    assert ball(5e-324).is_exact()
    third = ball(Fraction(1, 3))
    assert Fraction(to_float_down(third)) < Fraction(1, 3) < Fraction(to_float_up(third))


def test_the_two_directions_are_neighboring_floats() -> None:
    rng = random.Random(3)
    for _ in range(1000):
        point = Fraction(rng.getrandbits(60) + 2, rng.getrandbits(40) + 1)
        low, high = (f(lambda p=point: ball(p).log()) for f in (lower, upper))  # type: ignore[misc]
        assert high == math.nextafter(low, math.inf)


def test_precision_rises_until_cancellation_is_overcome_and_is_then_restored() -> None:
    before = ctx.prec
    tiny = Fraction(1, 10**300)

    def canceling() -> arb:
        return ball(1 + tiny).log()

    assert math.isclose(upper(canceling), 1e-300, rel_tol=1e-15)
    assert math.isclose(lower(canceling), 1e-300, rel_tol=1e-15)
    assert ctx.prec == before


def test_a_value_that_never_becomes_accurate_is_still_enclosed() -> None:
    def zero() -> arb:
        return arb(2).sqrt() ** 2 - 2

    assert lower(zero) <= 0 <= upper(zero) < 1e-300


@pytest.mark.parametrize("bits", [54, 55, 60, 64, 113])
def test_integers_of_a_few_bits_too_many_are_rounded_outwards(bits: int) -> None:
    """Python itself would round them to the nearest float, which may be on the wrong side."""
    with ctx.workprec(200):  # else upper() rounds first
        for middle in (1 << (bits - 1), 3 << (bits - 2), (1 << bits) - (1 << (bits - 52))):
            for whole in range(middle - 5, middle + 6):
                for number in (whole, -whole):
                    down, up = to_float_down(arb(number)), to_float_up(arb(number))
                    assert down <= number <= up
                    assert math.nextafter(up, -math.inf) < number < math.nextafter(down, math.inf)


# -- balls of one draw ----------------------------------------------------------------------------


RNG = random.Random(20261116)


@pytest.mark.parametrize("width", [64, 128, 1024])
def test_a_uniform_is_exactly_the_cell_of_its_prefix(width: int) -> None:
    prefixes = [0, 1, 2**width - 1, *(RNG.getrandbits(width) for _ in range(50))]
    with ctx.workprec(width + 64):
        for prefix, value in zip(prefixes, ArbBalls.uniform(prefixes, width).values, strict=True):
            half = Fraction(1, 2 ** (width + 1))
            middle = Fraction(2 * prefix + 1) * half
            assert value.mid() == arb(fmpq(middle.numerator, middle.denominator))
            assert value.contains(arb((prefix, -width)))
            assert value.contains(arb((prefix + 1, -width)))
            assert value.rad() <= arb((1, -width - 1)) * (1 + arb((1, -20)))


@pytest.mark.parametrize("precision", [10, 64])
def test_a_uniform_encloses_its_cell_at_any_precision(precision: int) -> None:
    prefixes = [RNG.getrandbits(64) for _ in range(50)]
    with ctx.workprec(precision):
        balls = ArbBalls.uniform(prefixes, 64).values
    for prefix, value in zip(prefixes, balls, strict=True):
        assert value.contains(arb((prefix, -64)))
        assert value.contains(arb((prefix + 1, -64)))


@pytest.mark.parametrize("length", [0, 1, 2, 1001])
def test_log_total_is_the_sum_of_the_logarithms(length: int) -> None:
    prefixes = [RNG.getrandbits(64) | 1 for _ in range(length)]
    with ctx.workprec(200):
        balls = ArbBalls.uniform(prefixes, 64)
        (one,), (other,) = balls.log_total().values, balls.log().total().values
        assert one.overlaps(other)
        assert one.rad() <= other.rad() * 2 + arb((1, -180))


def test_log_total_is_unknown_while_a_factor_may_be_zero() -> None:
    with ctx.workprec(200):
        assert ArbBalls.uniform([0, 5], 64).log_total().nearest() is None
