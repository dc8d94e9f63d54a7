"""Arb balls of one draw: they enclose what is known of its strings, and no more."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from zerodelta.exact.bits import ArbBalls

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
