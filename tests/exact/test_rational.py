"""Parameters become the exact rational they denote, or are refused by name."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import as_count, as_positive, as_rational, inner_ends


@given(st.fractions())
def test_a_fraction_and_its_decimal_text_keep_their_value(value: Fraction) -> None:
    assert as_rational(value, "x") == value
    assert as_rational(str(value), "x") == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_dyadic_it_is_not_the_decimal_it_prints(value: float) -> None:
    exact = as_rational(value, "x")
    assert exact == value
    assert exact.denominator & (exact.denominator - 1) == 0


def test_one_tenth_as_text_differs_from_one_tenth_as_a_float() -> None:
    assert as_rational("0.1", "x") == as_rational(Decimal("0.1"), "x") == Fraction(1, 10)
    assert as_rational(0.1, "x") != Fraction(1, 10)


def test_single_precision_keeps_its_own_value() -> None:
    single: Any = np.float32(0.1)
    assert as_rational(single, "x") == Fraction(13421773, 2**27)


def test_random_decimal_text_is_exact_at_any_exponent() -> None:
    rng = random.Random(1)
    for _ in range(300):
        digits, exponent = rng.randrange(-(10**20), 10**20), rng.randrange(-400, 400)
        assert as_rational(f"{digits}e{exponent}", "x") == digits * Fraction(10) ** exponent


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float64("inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        "1/0",
        "",
        "one",
        "nan",
        True,
        None,
        1j,
        b"1",
        [1],
        np.array(1.0),
    ],
)
def test_what_is_not_a_finite_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(ParameterError, match="epsilon = ") as caught:
        as_rational(value, "epsilon")  # type: ignore[arg-type]
    assert caught.value.name == "epsilon"


def test_numpy_integers_do_not_wrap_around_afterwards() -> None:
    big = as_rational(2**62, "x")
    from_numpy: Any = np.int64(2**62)
    wrapped = as_rational(from_numpy, "x")
    assert wrapped * wrapped == big * big


def test_a_long_double_is_kept_exactly_or_refused() -> None:
    value: Any = np.longdouble(1) + np.longdouble(2) ** -60
    numerator, denominator = value.as_integer_ratio()
    try:
        exact = as_rational(value, "x")
    except ParameterError:
        return
    assert exact == Fraction(int(numerator), int(denominator))


@pytest.mark.parametrize("value", [0, -1, "0", "-1/50", -1e-300, 0.0])
def test_only_numbers_above_zero_are_positive(value: int | float | str) -> None:
    with pytest.raises(ParameterError, match="above 0"):
        as_positive(value, "scale")


def test_the_smallest_float_is_positive() -> None:
    assert as_positive(5e-324, "scale") == Fraction(1, 2**1074)


@pytest.mark.parametrize("value", [1.0, "3", True, None, -1, Fraction(1, 2)])
def test_a_count_is_a_nonnegative_integer_and_nothing_else(value: object) -> None:
    with pytest.raises(ParameterError, match="an integer of at least 0"):
        as_count(value, "rows")  # type: ignore[arg-type]


def test_a_count_becomes_a_plain_int_and_respects_its_minimum() -> None:
    from_numpy: Any = np.int64(7)
    assert type(as_count(from_numpy, "rows")) is int
    assert as_count(10**400, "rows") == 10**400
    assert as_count(3, "rows", minimum=3) == 3
    with pytest.raises(ParameterError, match="at least 3"):
        as_count(2, "rows", minimum=3)


def test_a_float_that_is_an_end_stays_there() -> None:
    """Only a float beyond an end is moved to the next one inside."""
    for lower, upper in ((0, 1), (-3, Fraction(1, 2)), (Fraction(-1, 4), 0)):
        ends = Fraction(lower), Fraction(upper)
        assert inner_ends(*ends) == (float(lower), float(upper))
