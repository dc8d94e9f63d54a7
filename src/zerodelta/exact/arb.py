"""Arb balls in and out: exact rationals to balls, balls to floats, always outwards.

`float(ball.upper())` rounds to nearest and so falls *below* the bound half of the time. Here a
ball is turned into a float through its mantissa and exponent, rounding away from its interior.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

_LOCK = threading.RLock()
_START_BITS = 128
_MOST_BITS = 1 << 16
_WANTED_BITS = 60
"""A ball this accurate relative to its size loses nothing visible when it becomes a float."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at this many bits; one thread at a time, because Arb's precision is process-wide.

    Balls are right at any precision; without the lock another thread could make them needlessly
    wide, and bounds would differ from run to run.
    """
    with _LOCK, ctx.workprec(bits):
        yield


def ball(value: int | float | Fraction) -> arb:
    """Return a ball around `value`, exact for integers and floats, else at working precision."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def upper(evaluate: Callable[[], arb]) -> float:
    """Evaluate at rising precision; return the smallest float known to be at least the value."""
    return to_float_up(_accurate(evaluate))


def lower(evaluate: Callable[[], arb]) -> float:
    """Evaluate at rising precision; return the largest float known to be at most the value."""
    return to_float_down(_accurate(evaluate))


def _accurate(evaluate: Callable[[], arb]) -> arb:
    bits = _START_BITS
    while True:
        with precision(bits):
            value = evaluate()
            if value.is_exact() or value.rel_accuracy_bits() >= _WANTED_BITS:
                return value
        if bits >= _MOST_BITS:
            return value
        bits *= 2


def to_float_up(value: arb) -> float:
    """Return the smallest float that is certainly at least `value` (``inf`` if none is known)."""
    # upper() is at least the true upper end, whatever the working precision
    return math.inf if value.is_nan() else _end_up(value.upper(), 1)


def to_float_down(value: arb) -> float:
    """Return the largest float that is certainly at most `value` (``-inf`` if none is known)."""
    # not -to_float_up(-value): negating a ball rounds it to the working precision first
    return -math.inf if value.is_nan() else 0.0 - _end_up(value.lower(), -1)  # never -0.0


def _end_up(end: arb, sign: int) -> float:
    """Round the exact number ``sign · end`` up to a float."""
    if not end.is_finite():
        return sign * math.inf if end > 0 else -sign * math.inf
    mantissa, exponent = (int(part) for part in end.man_exp())
    return _float_up(sign * mantissa, exponent)


def _float_up(mantissa: int, exponent: int) -> float:
    """Round ``mantissa · 2^exponent`` up to a float, through integers only."""
    excess = max(mantissa.bit_length() - 53, -1074 - exponent)
    if excess > 0:
        mantissa = -((-mantissa) >> excess)
        exponent += excess
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf if mantissa > 0 else -math.nextafter(math.inf, 0)
