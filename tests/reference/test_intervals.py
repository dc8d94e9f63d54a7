from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from operator import add, mul, sub, truediv

import mpmath
import pytest

from reference.intervals import (
    Interval,
    UndefinedOnIntervalError,
    atan,
    cos_pi,
    exp,
    ln,
    sin_pi,
    sqrt,
)

BITS = 160
DIGITS = 60
SLACK = Fraction(1, 10**55)  # mpmath's own error at 60 digits, for values up to 10^4 or so

Function = Callable[[Interval], Interval]


def as_fraction(value: object) -> Fraction:
    sign, man, exponent, _ = mpmath.mpf(value)._mpf_
    magnitude = int(man) * Fraction(2) ** int(exponent)
    return -magnitude if sign else magnitude


def mp(x: Fraction) -> object:
    return mpmath.mpf(x.numerator) / mpmath.mpf(x.denominator)


def contains(interval: Interval, value: object) -> bool:
    v = as_fraction(value)
    return interval.lo - SLACK <= v <= interval.hi + SLACK


@pytest.fixture(autouse=True)
def _precision() -> object:
    with mpmath.workdps(DIGITS):
        yield


CASES: dict[str, tuple[Function, Callable[[object], object], int, int]] = {
    "ln": (ln, mpmath.log, 0, 50),
    "exp": (exp, mpmath.exp, -1000, 9),
    "sqrt": (sqrt, mpmath.sqrt, 0, 100),
    "cos_pi": (cos_pi, mpmath.cospi, -4, 4),
    "sin_pi": (sin_pi, mpmath.sinpi, -4, 4),
    "atan": (atan, mpmath.atan, -20, 20),
}


@pytest.mark.parametrize("name", CASES)
def test_points_contain_mpmath_and_are_narrow(name: str) -> None:
    function, truth, lo, hi = CASES[name]
    rng = random.Random(1)
    for i in range(400):
        size = rng.choice([1, 8, 64, 120])
        x = lo + Fraction(rng.randrange(1, (hi - lo) << size), 1 << size)
        if i % 4 == 0:  # near the origin
            x = Fraction(rng.randrange(1, 1 << 20), 1 << rng.choice([21, 64, 100]))
        for bits in (BITS, 250):
            y = function(Interval.point(x, bits))
            assert contains(y, truth(mp(x))), (x, bits)
            assert y.width <= Fraction(4, 1 << bits)


def test_extremes_of_the_cosine_are_found() -> None:
    around = Interval.of(Fraction(-1, 8), Fraction(1, 8), BITS)
    assert cos_pi(around).hi == 1
    assert cos_pi(around).lo > Fraction(9, 10)
    assert cos_pi(around + 1).lo == -1
    assert cos_pi(around + 1).hi < Fraction(-9, 10)
    assert cos_pi(around * 9).lo == -1
    assert cos_pi(around * 9).hi == 1
    assert sin_pi(around + Fraction(1, 2)).hi == 1


def test_arithmetic_contains_exact_results() -> None:
    rng = random.Random(4)

    def draw() -> Fraction:
        return Fraction(rng.randrange(-1000, 1000), rng.randrange(1, 1000))

    for _ in range(300):
        x, y = draw(), draw()
        a = Interval.of(x - Fraction(1, 7), x + Fraction(1, 11), 40)
        b = Interval.of(y - Fraction(1, 9), y + Fraction(1, 13), rng.choice([40, 50]))
        assert -x in -a
        assert x * x in a.square()
        assert a.square().lo >= 0
        for exactly in (add, sub, mul, truediv):
            if exactly is not truediv or 0 not in b:
                assert all(exactly(x, y) in exactly(*pair) for pair in ((a, b), (a, y), (x, b)))


def test_rounding_is_outward() -> None:
    third = Interval.point(Fraction(1, 3), 10)
    assert third.lo < Fraction(1, 3) < third.hi
    assert third.with_bits(5).lo <= third.lo
    assert third.with_bits(5).hi >= third.hi
    assert third.with_bits(99).width == third.width


@pytest.mark.parametrize(
    ("lo", "hi", "rounded"),
    [
        ("-1/2", "1/4", 0),
        ("-5/8", "0", None),
        ("1/4", "1/2", None),  # round(1/2) = 1
        ("1/2", "1/2", 1),
        ("-1/2", "-1/2", 0),
        ("-3/2", "-3/2", -1),
    ],
)
def test_rounded(lo: str, hi: str, rounded: int | None) -> None:
    assert Interval.of(Fraction(lo), Fraction(hi), 20).rounded() == rounded


def test_undefined() -> None:
    around = Interval.of(-1, 1, 20)
    for function in (ln, sqrt):
        with pytest.raises(UndefinedOnIntervalError):
            function(around)
    with pytest.raises(UndefinedOnIntervalError):
        ln(Interval.of(0, 1, 20))
    with pytest.raises(UndefinedOnIntervalError):
        1 / around
    with pytest.raises(ValueError, match="empty"):
        Interval.of(1, 0, 20)
