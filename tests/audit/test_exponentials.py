"""Sums of exponentials are ordered exactly, also where they are equal or nearly so."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from zerodelta.audit.exact import ExpRational

e = ExpRational.exp
SMALL = st.fractions(min_value=-3, max_value=3, max_denominator=6)
SUMS = st.lists(st.tuples(SMALL, SMALL), max_size=4)


def build(terms: list[tuple[Fraction, Fraction]]) -> ExpRational:
    return sum((c * e(r) for c, r in terms), ExpRational.of(0))


def as_float(terms: list[tuple[Fraction, Fraction]]) -> float:
    return math.fsum(float(c) * math.exp(r) for c, r in terms)


@given(SUMS, SUMS)
def test_arithmetic_agrees_with_floats(
    left: list[tuple[Fraction, Fraction]], right: list[tuple[Fraction, Fraction]]
) -> None:
    a, b = build(left), build(right)
    x, y = as_float(left), as_float(right)
    assert float(a + b) == pytest.approx(x + y, abs=1e-9)
    assert float(a - b) == pytest.approx(x - y, abs=1e-9)
    assert float(a * b) == pytest.approx(x * y, abs=1e-7)
    if abs(x - y) > 1e-9:
        assert (a < b) == (x < y)
        assert (a >= b) == (x >= y)


@given(SUMS, SUMS, SUMS)
def test_field_laws_hold_exactly(
    first: list[tuple[Fraction, Fraction]],
    second: list[tuple[Fraction, Fraction]],
    third: list[tuple[Fraction, Fraction]],
) -> None:
    a, b, c = build(first), build(second), build(third)
    assert (a + b) * c == a * c + b * c
    assert a - a == 0
    if c != 0:
        assert (a + b) / c == a / c + b / c
        assert a / c * c == a


def test_equality_is_decided_and_a_difference_of_e_to_minus_1000_is_seen() -> None:
    assert (e(1) - e(-1)) * (e(1) + e(-1)) == e(2) - e(-2)
    assert e(1) + e(-1000) > e(1)
    assert 1 / (e(1) + e(-1000)) < e(-1)
    assert -1 / e(1) == -e(-1)


def test_rationals_compare_with_exponentials() -> None:
    series = sum((Fraction(1, math.factorial(k)) for k in range(16)), Fraction(0))  # by 5e-14
    assert series < e(1) < series + Fraction(1, 10**13)
    assert e(0) == 1
    assert Fraction(1, 2) * e(0) == Fraction(1, 2)


def test_arithmetic_with_a_ball_is_a_ball() -> None:
    for value in (e(1) * arb(2), arb(2) * e(1), e(1) + arb(1), arb(1) - e(1), arb(1) / e(1)):
        assert isinstance(value, arb)
    assert float(arb(1) / e(1)) == pytest.approx(math.exp(-1))


def test_division_by_an_exact_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        e(1) / (e(2) - e(1) * e(1))
