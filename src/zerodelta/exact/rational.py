"""Read public numbers as exact rationals: privacy parameters, noise scales, bounds, shares.

A float is a rational number: ``0.1`` means the double nearest to one tenth, exactly. Write
``"0.1"`` or ``Fraction(1, 10)`` for one tenth itself.
"""

from __future__ import annotations

import decimal
import math
import numbers
import re
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from zerodelta.errors import ParameterError, needed, require

LONGEST_INTEGER = 13_000
"""The bits of the longest integer; Python does not write or read more than 4300 decimal digits."""

_FIRST_LONG = 10**4300

Rational: TypeAlias = int | float | Fraction | Decimal | str
"""The types that a caller may pass for a real parameter."""

_PLAIN = re.compile(r"\s*[-+0-9./]+([eE][-+]?0*([0-9]{1,4}))?\s*", re.ASCII)
"""Matches ASCII digits with an optional exponent (group 2)."""

_LARGEST_EXPONENT = 5000
"""Larger exponents are refused, since such numbers would exhaust memory."""

_LARGEST_FLOAT = Fraction(sys.float_info.max)

_LARGEST_END = 1 << 500

_REMEDY = 'pass an int, a finite float, a Fraction, or a string such as "0.1" or "1/50"'


def as_rational(value: Rational, name: str) -> Fraction:
    """Return `value` as the rational number it denotes, exactly.

    >>> as_rational("1/50", "epsilon"), as_rational(0.5, "epsilon"), as_rational("1e-3", "rho")
    (Fraction(1, 50), Fraction(1, 2), Fraction(1, 1000))
    """
    if not isinstance(value, bool):
        if isinstance(value, numbers.Rational):  # through int(): NumPy integers would wrap later
            return Fraction(int(value.numerator), int(value.denominator))
        try:
            if isinstance(value, str):
                plain = _PLAIN.fullmatch(value)
                if plain is not None and int(plain[2] or 0) <= _LARGEST_EXPONENT:
                    return Fraction(value)
            if isinstance(value, (numbers.Real, Decimal)):
                return Fraction(*value.as_integer_ratio())
        except (ValueError, OverflowError, ZeroDivisionError):
            pass
    raise ParameterError(name, value, expected="a finite number", remedy=_REMEDY)


def as_positive(value: Rational, name: str) -> Fraction:
    """Return `value` as an exact rational, refusing anything that is not above 0."""
    exact = as_rational(value, name)
    if exact <= 0:
        raise ParameterError(name, value, expected="a number above 0", remedy=_REMEDY)
    return exact


def as_float(value: Rational, name: str) -> float:
    """Return the float nearest to `value`, refusing numbers too large for floats.

    >>> as_float("1/4", "error")
    0.25
    """
    exact = as_rational(value, name)
    if abs(exact) > _LARGEST_FLOAT:
        raise ParameterError(
            name, value, expected="a number of at most 1e308", remedy="pass a smaller one"
        )
    return float(exact)


def as_count(value: int, name: str, *, minimum: int = 0) -> int:
    """Return `value` as a Python int, refusing non-integers and anything below `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ParameterError(
            name,
            value,
            expected=f"an integer of at least {minimum}",
            remedy="pass a plain int in that range",
        )
    return int(value)


def as_share(share: Rational, name: str) -> Fraction:
    """Return a part of ε strictly between 0 and 1."""
    exact = as_rational(share, name)
    require(0 < exact < 1, name, share, expected="a number in (0, 1)", remedy='pass "1/2"')
    return exact


def as_pair(bounds: Any) -> tuple[Any, Any]:
    """Return a pair of bounds, refusing anything else; its two ends are not checked."""
    pair = isinstance(bounds, (tuple, list)) and len(bounds) == 2
    expected = "a pair (lower, upper)"
    require(pair, "bounds", bounds, expected=expected, remedy="pass bounds=(0, 100)")
    lower, upper = bounds
    return lower, upper


def as_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """Return (lower, upper) of one column, exactly."""
    stated = needed(bounds, "bounds", "pass bounds=(lower, upper), known without the rows")
    lower, upper = (as_rational(end, "bounds") for end in as_pair(stated))
    swap = "pass the smaller end first"
    require(lower < upper, "bounds", bounds, expected="lower < upper", remedy=swap)
    require(
        max(-lower, upper) <= _LARGEST_END,
        "bounds",
        bounds,
        expected="ends of at most 2^500 in magnitude",
        remedy="rescale the column, so that floats can hold its sums",
    )
    return lower, upper


def bounds_by_column(bounds: Any, columns: int) -> list[tuple[Fraction, Fraction]]:
    """Return the exact (lower, upper) of every column; an end is one number or one for each."""
    remedy = "pass bounds=(lower, upper), known without the rows"
    lower, upper = as_pair(needed(bounds, "bounds", remedy))
    ends = []
    for end in (lower, upper):
        listed = isinstance(end, (list, tuple, np.ndarray))
        numbers = list(end) if listed else [end] * columns
        expected = f"one number, or {columns}, for each end"
        require(len(numbers) == columns, "bounds", bounds, expected=expected, remedy=remedy)
        ends.append(numbers)
    return [as_bounds((low, high)) for low, high in zip(*ends, strict=True)]


def is_long(number: int | Fraction) -> bool:
    """Tell whether the numerator or denominator has more digits than Python writes (4300)."""
    return max(abs(number.numerator), number.denominator) >= _FIRST_LONG


def number_text(number: int | Fraction) -> str:
    """Return an integer or fraction as text for people, however large it is.

    >>> number_text(16), number_text(1 << 14500), number_text(3 << 14500)
    ('16', '2**14500', '<integer of 14502 bits>')
    """
    if not is_long(number):
        return str(number)
    if number.denominator > 1:
        return f"{number_text(number.numerator)}/{number_text(number.denominator)}"
    exponent = abs(number.numerator).bit_length() - 1
    return f"2**{exponent}" if number == 1 << exponent else f"<integer of {exponent + 1} bits>"


def float_within(exact: Fraction, lower: Fraction, upper: Fraction) -> float:
    """Return the float in [lower, upper] nearest to a number of this interval.

    If there is no float in it, return the nearest of all. The nearest of all may lie outside: 0.1
    is above 1/10.

    >>> tenth = Fraction(1, 10)
    >>> float_within(tenth, Fraction(0), tenth), float_within(tenth, tenth, Fraction(1))
    (0.09999999999999999, 0.1)
    """
    near = float(exact)
    if near > upper:
        inside = math.nextafter(near, -math.inf)
    elif near < lower:
        inside = math.nextafter(near, math.inf)
    else:
        return near
    return inside if lower <= inside <= upper else near


def inner_ends(lower: Fraction, upper: Fraction) -> tuple[float, float]:
    """Return the smallest and the largest float in [lower, upper]; without any, the nearest.

    >>> inner_ends(Fraction(0), Fraction(1, 10))
    (0.0, 0.09999999999999999)
    """
    return float_within(lower, lower, upper), float_within(upper, lower, upper)


def decimal_up(value: float, digits: int = 7) -> Fraction:
    """Round up to a few decimal digits, so that certificates are readable.

    >>> decimal_up(0.123456781, 3), decimal_down(0.19, 1)
    (Fraction(31, 250), Fraction(1, 10))
    """
    return _decimal(value, digits, decimal.ROUND_CEILING)


def decimal_down(value: float, digits: int = 7) -> Fraction:
    """Round down to a few decimal digits."""
    return _decimal(value, digits, decimal.ROUND_FLOOR)


def _decimal(value: float, digits: int, rounding: str) -> Fraction:
    context = decimal.Context(prec=digits, rounding=rounding)
    return Fraction(context.create_decimal_from_float(value))
