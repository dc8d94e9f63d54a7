from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

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
    around = Interval(Fraction(-1, 8), Fraction(1, 8), BITS)
    assert cos_pi(around).hi == 1
    assert cos_pi(around).lo > Fraction(9, 10)
    assert cos_pi(around + 1).lo == -1
    assert cos_pi(around + 1).hi < Fraction(-9, 10)
    assert cos_pi(around * 9) == Interval(-1, 1, BITS)
    assert sin_pi(around + Fraction(1, 2)).hi == 1


def test_arithmetic_contains_exact_results() -> None:
    rng = random.Random(4)

    def draw() -> Fraction:
        return Fraction(rng.randrange(-1000, 1000), rng.randrange(1, 1000))

    for _ in range(300):
        x, y = draw(), draw()
        a = Interval(x - Fraction(1, 7), x + Fraction(1, 11), 40)
        b = Interval(y - Fraction(1, 9), y + Fraction(1, 13), rng.choice([40, 50]))
        assert x + y in a + b
        assert x - y in a - b
        assert x * y in a * b
        assert x * x in a.square()
        assert a.square().lo >= 0
        assert x + y in a + y
        assert y - x in y - a
        assert x * y in y * a
        assert -x in -a
        if 0 not in b:
            assert x / y in a / b
            assert x / y in x / b
        if y:
            assert x / y in a / y


def test_exact_corners_of_products_and_quotients() -> None:
    a, b = Interval(-2, 3, 20), Interval(-5, 4, 20)
    assert a * b == Interval(-15, 12, 20)
    assert a.square() == Interval(0, 9, 20)
    assert a / Interval(2, 4, 20) == Interval(-1, Fraction(3, 2), 20)
    assert a / Interval(-4, -2, 20) == Interval(Fraction(-3, 2), 1, 20)
    assert a * -2 == Interval(-6, 4, 20)


def test_rounding_is_outward() -> None:
    third = Interval.point(Fraction(1, 3), 10)
    assert third.lo < Fraction(1, 3) < third.hi
    assert third.width == Fraction(1, 1024)
    assert third.with_bits(5).lo <= third.lo
    assert third.with_bits(5).hi >= third.hi
    assert third.with_bits(99) == third


def test_rounded() -> None:
    half = Fraction(1, 2)
    assert Interval(-half, Fraction(1, 4), 20).rounded() == 0
    assert Interval(-half - Fraction(1, 8), 0, 20).rounded() is None
    assert Interval(Fraction(1, 4), half, 20).rounded() is None  # round(1/2) = 1
    assert Interval.point(half, 20).rounded() == 1
    assert Interval.point(-half, 20).rounded() == 0
    assert Interval.point(Fraction(-3, 2), 20).rounded() == -1


def test_undefined() -> None:
    around = Interval(-1, 1, 20)
    for function in (ln, sqrt):
        with pytest.raises(UndefinedOnIntervalError):
            function(around)
    with pytest.raises(UndefinedOnIntervalError):
        ln(Interval(0, 1, 20))
    with pytest.raises(UndefinedOnIntervalError):
        1 / around
    with pytest.raises(ValueError, match="empty"):
        Interval(1, 0, 20)
