"""Compute logarithms rounded in a stated direction, by Arb balls.

Each formula (theory B6) is written once, as a function of Arb balls; `upper` and `lower` evaluate
it at rising precision and round away from the ball. An argument that is a logarithm is a float and
stands for exactly that number, with ``-inf`` for the logarithm of zero.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx, fmpq

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_positive, as_rational

# -- Converting exact rationals to Arb balls, and balls to floats that bound them -----------------
# `float(ball.upper())` rounds to nearest and so falls *below* the bound half of the time. Here a
# ball's end is converted through its mantissa and exponent, rounding away from the ball.

_LOCK = threading.RLock()
_START_BITS = 128
_LARGEST_PRECISION = 1 << 16
_SUFFICIENT_BITS = 60
"""The relative accuracy of a ball, in bits, that is enough for a float of 53 bits."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at this many bits, one thread at a time, because Arb's precision is process-wide.

    Balls are correct at any precision; without the lock another thread could make them wider, and
    bounds would differ from run to run.
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
    """Return the value at a precision, doubled until it is accurate enough for a float."""
    bits = _START_BITS
    while True:
        with precision(bits):
            value = evaluate()
            if value.is_exact() or value.rel_accuracy_bits() >= _SUFFICIENT_BITS:
                return value
        if bits >= _LARGEST_PRECISION:
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


_Evaluate: TypeAlias = Callable[[], arb]
"""A formula on balls, evaluated at the working precision of the moment."""

_FAR_SQUARE = 1 << 20


def log_upper(value: Rational) -> float:
    """Return a float at least ln `value`, for any positive rational or big integer.

    >>> log_upper(10**400), log_upper(1)
    (921.0340371976183, 0.0)
    """
    return upper(_log(value, "value"))


def _log(value: Rational, name: str) -> _Evaluate:
    """Return the formula of the logarithm of a positive rational."""
    exact = as_positive(value, name)
    if Fraction(1, 2) < exact < 2:  # near 1 the logarithm is as small as value - 1
        return lambda: ball(exact - 1).log1p()
    return lambda: ball(exact).log()


def log_odds_lower(weight: Rational) -> float:
    """Return a float at most ln(w/(1-w)) for a mixing weight w strictly between 0 and 1."""
    return lower(_log_odds(weight))


def _log_odds(weight: Rational) -> _Evaluate:
    """Return the formula of ln(w/(1-w))."""
    exact = as_rational(weight, "weight")
    if not 0 < exact < 1:
        raise ParameterError(
            "weight",
            weight,
            expected="a number strictly between 0 and 1",
            remedy='pass a mixing weight such as "1/100"',
        )
    return _log(exact / (1 - exact), "odds")  # from the integers of w: no rounding before the log


def log_sum_upper(logs: Iterable[float]) -> float:
    """Return a float at least ln Σ exp(x) over `logs`; ``-inf`` counts as a zero term.

    >>> log_sum_upper([-1e6, -1e6, -math.inf]), log_sum_upper([])
    (-999999.3068528194, -inf)
    """
    return upper(_log_sum(logs))


def _log_sum(logs: Iterable[float]) -> _Evaluate:
    """Return the formula of ln Σ exp(x), with the largest x taken out."""
    exact = [_dyadic(value, f"logs[{index}]") for index, value in enumerate(logs)]
    terms = sorted(term for term in exact if term is not None)
    if not terms:
        return arb.neg_inf
    top = terms.pop()
    offsets = [term - top for term in terms]
    return lambda: ball(top) + sum((ball(gap).exp() for gap in offsets), arb(0)).log1p()


def _erfcx(square: Fraction) -> arb:
    """Return e^x² erfc(x) for x = √square, at any size of it.

    Arb bounds the error of erfc through a 30-bit exponential, useless once x² reaches 2^30; there
    the confluent U(1/2, 1/2, x²) = √π e^x² erfc(x) is fast and accurate.
    """
    point = ball(square)
    if square < _FAR_SQUARE:
        return point.exp() * point.sqrt().erfc()
    return point.hypgeom_u(arb(0.5), arb(0.5)) / arb.const_sqrt_pi()


def gaussian_log_delta_upper(mu_squared: Rational, epsilon: Rational) -> float:
    """Return a float at least ln δ(t) of a μ-GDP mechanism at t = `epsilon` (theory B6), tightly.

    δ(t) = Φ(-a) - e^t Φ(-b), a = t/μ - μ/2, b = t/μ + μ/2. `mu_squared` is μ², the sum of the
    squared (sensitivity / σ) of all steps, so that it is an exact rational; 0 gives ``-inf``.

    >>> gaussian_log_delta_upper("1/100", 1), gaussian_log_delta_upper("5e-7", 1)
    (-57.35693372483395, -1000022.1819267034)
    """
    return upper(_gaussian_log_delta(mu_squared, epsilon))


def gaussian_log_delta_lower(mu_squared: Rational, epsilon: Rational) -> float:
    """Return a float at most ln δ(t) of a μ-GDP mechanism (see `gaussian_log_delta_upper`).

    >>> gaussian_log_delta_lower("1/100", 1)
    -57.35693372483396
    """
    return lower(_gaussian_log_delta(mu_squared, epsilon))


def _gaussian_log_delta(mu_squared: Rational, epsilon: Rational) -> _Evaluate:
    """Return the formula of ln δ(t) of a μ-GDP mechanism (`gaussian_log_delta_upper`)."""
    square, t = _gaussian_parameters(mu_squared, epsilon)
    if square == 0:
        return arb.neg_inf
    near = (2 * t - square) ** 2 / (8 * square)  # a²/2
    far = near + t  # b²/2, so that e^t Φ(-b) = e^{-a²/2} erfcx(b/√2)/2
    if 2 * t < square:  # a < 0: δ can be close to 1, so its logarithm is taken through 1 - δ
        return lambda: (-(-ball(near)).exp() * (_erfcx(near) + _erfcx(far)) / 2).log1p()
    return lambda: ((_erfcx(near) - _erfcx(far)) / 2).log() - ball(near)


def _gaussian_parameters(mu_squared: Rational, epsilon: Rational) -> tuple[Fraction, Fraction]:
    """Return μ² and ε as exact numbers of at least 0."""
    square, t = as_rational(mu_squared, "mu_squared"), as_rational(epsilon, "epsilon")
    for name, value, exact in (("mu_squared", mu_squared, square), ("epsilon", epsilon, t)):
        if exact < 0:
            raise ParameterError(
                name, value, expected="a number of at least 0", remedy="pass 0 or more"
            )
    return square, t


def _dyadic(log: float, name: str) -> Fraction | None:
    """Return a log-valued argument as the exact number it is, None for ``-inf``."""
    return None if log == -math.inf else as_rational(log, name)
