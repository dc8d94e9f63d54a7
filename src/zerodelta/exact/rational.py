"""Privacy parameters and noise scales as exact rationals.

A float is a rational number: ``0.1`` means the double nearest to one tenth, exactly. Write
``"0.1"`` or ``Fraction(1, 10)`` for one tenth itself.
"""

from __future__ import annotations

import decimal
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from zerodelta.errors import ParameterError

__all__ = ["Rational", "as_count", "as_positive", "as_rational", "decimal_down", "decimal_up"]

Rational: TypeAlias = int | float | Fraction | Decimal | str
"""What a caller may write for a real parameter."""

_PLAIN = re.compile(r"\s*[-+0-9./]+([eE][-+]?0*([0-9]{1,4}))?\s*", re.ASCII)
"""ASCII digits, with an exponent."""

_LARGEST_EXPONENT = 5000
"""Larger ones only serve to exhaust memory."""

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
