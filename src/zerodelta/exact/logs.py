"""Logarithms with a direction, of numbers and of volumes; Arb balls in and out, always outwards.

Each formula (theory B6) is written once, as a function of Arb balls; the two directions evaluate it
at rising precision and round outwards. A log-valued argument is a float and means the exact dyadic
it is, with ``-inf`` for the logarithm of zero.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeAlias

from flint import acb, arb, ctx, fmpq, fmpz_poly

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational

# -- Arb balls in and out: exact rationals to balls, balls to floats, always outwards -------------
# `float(ball.upper())` rounds to nearest and so falls *below* the bound half of the time. Here a
# ball is turned into a float through its mantissa and exponent, rounding away from its interior.

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


_Evaluate: TypeAlias = Callable[[], arb]
"""A formula on balls, evaluated at whatever the working precision is at that moment."""

_FAR = 1 << 20


def log_upper(value: Rational) -> float:
    """Return a float at least ln `value`, for any positive rational or big integer.

    >>> log_upper(10**400), log_upper(1)
    (921.0340371976183, 0.0)
    """
    return upper(_log(value, "value"))


def log_lower(value: Rational) -> float:
    """Return a float at most ln `value`, for any positive rational or big integer.

    >>> log_lower(10**400), log_lower("1e-400")
    (921.0340371976182, -921.0340371976183)
    """
    return lower(_log(value, "value"))


def _log(value: Rational, name: str) -> _Evaluate:
    exact = as_positive(value, name)
    if Fraction(1, 2) < exact < 2:  # near 1 the logarithm is as small as value - 1
        return lambda: ball(exact - 1).log1p()
    return lambda: ball(exact).log()


def log_odds_lower(weight: Rational) -> float:
    """Return a float at most ln(w/(1-w)) for a mixing weight w strictly between 0 and 1."""
    return lower(_log_odds(weight))


def _log_odds(weight: Rational) -> _Evaluate:
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
    exact = [_dyadic(value, f"logs[{index}]") for index, value in enumerate(logs)]
    terms = sorted(term for term in exact if term is not None)
    if not terms:
        return arb.neg_inf
    top = terms.pop()
    offsets = [term - top for term in terms]
    return lambda: ball(top) + sum((ball(gap).exp() for gap in offsets), arb(0)).log1p()


def log_difference_upper(larger: float, smaller: float) -> float:
    """Return a float at least ln(e^larger - e^smaller); equal arguments give ``-inf``.

    >>> log_difference_upper(-1e6, -1e6 - 1), log_difference_upper(0.0, -math.inf)
    (-1000000.4586751453, 0.0)
    """
    return upper(_log_difference(larger, smaller))


def _log_difference(larger: float, smaller: float) -> _Evaluate:
    top, bottom = _dyadic(larger, "larger"), _dyadic(smaller, "smaller")
    if bottom is None or top == bottom:
        return arb.neg_inf if top is None or top == bottom else lambda: ball(top)
    if top is None or top < bottom:
        raise ParameterError(
            "larger",
            larger,
            expected=f"a logarithm of at least smaller = {smaller!r}",
            remedy="swap the two arguments",
        )
    gap = top - bottom
    return lambda: ball(top) + _log1m_exp(gap)


def _log1m_exp(gap: Fraction) -> arb:
    """Return ln(1 - e^-gap), gap > 0, accurate however small or large the gap is."""
    if gap < 1:
        return (-(-ball(gap)).expm1()).log()
    return (-(-ball(gap)).exp()).log1p()


def _erfcx(square: Fraction) -> arb:
    """Return e^x² erfc(x) for x = √square, at any size of it.

    Arb bounds the error of erfc through a 30-bit exponential, useless once x² reaches 2^30; there
    the confluent U(1/2, 1/2, x²) = √π e^x² erfc(x) is fast and accurate.
    """
    point = ball(square)
    if square < _FAR:
        return point.exp() * point.sqrt().erfc()
    return point.hypgeom_u(arb(0.5), arb(0.5)) / arb.const_sqrt_pi()


def log_normal_cdf_upper(point: Rational) -> float:
    """Return a float at least ln Φ(x) for x = `point`, Φ the standard normal distribution function.

    >>> log_normal_cdf_upper(0), log_normal_cdf_upper(-1500)
    (-0.6931471805599453, -1125008.2321593647)
    """
    return upper(_log_normal_cdf(point))


def log_normal_cdf_lower(point: Rational) -> float:
    """Return a float at most ln Φ(x) for x = `point`, Φ the standard normal distribution function.

    >>> log_normal_cdf_lower(-1500), log_normal_cdf_lower(30)
    (-1125008.232159365, -4.906713927148187e-198)
    """
    return lower(_log_normal_cdf(point))


def _log_normal_cdf(point: Rational) -> _Evaluate:
    exact = as_rational(point, "point")
    half_square = exact**2 / 2
    if exact < 0:
        return lambda: (_erfcx(half_square) / 2).log() - ball(half_square)
    return lambda: (-(-ball(half_square)).exp() * _erfcx(half_square) / 2).log1p()


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
    square, t = _gaussian_parameters(mu_squared, epsilon)
    if square == 0:
        return arb.neg_inf
    near = (2 * t - square) ** 2 / (8 * square)  # a²/2
    far = near + t  # b²/2, so that e^t Φ(-b) = e^{-a²/2} erfcx(b/√2)/2
    if 2 * t < square:  # a < 0: δ can be close to 1, so its logarithm is taken through 1 - δ
        return lambda: (-(-ball(near)).exp() * (_erfcx(near) + _erfcx(far)) / 2).log1p()
    return lambda: ((_erfcx(near) - _erfcx(far)) / 2).log() - ball(near)


def _gaussian_parameters(mu_squared: Rational, epsilon: Rational) -> tuple[Fraction, Fraction]:
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


# -- Log-volumes of l1, l2 and linf balls, and logs of how many integer points they hold ----------
# These are the ln N of a published lattice (theory B2; volumes by theory A2, not by the product
# that the paper prints). Every result is directed: `..._upper` is certainly ≥ the real value and
# `..._lower` ≤.

WORK_LIMIT = 1 << 24
"""Largest exact count attempted, as (bits of the count) × (terms or coefficients): ~0.2 s."""


def log_ball_volume_upper(norm: float, dimension: int, radius: Rational) -> float:
    """Return a float at least ln of the volume of an l_q ball, q = `norm` in {1, 2, math.inf}.

    The volume is V_q r^d with V_q = (2Γ(1+1/q))^d / Γ(1+d/q) (theory A2).

    >>> log_ball_volume_upper(2, 2, 1), log_ball_volume_upper(math.inf, 10**6, "1/2")
    (1.1447298858494004, 0.0)
    """
    exact = _checked_ball(norm, dimension, radius)
    return upper(lambda: _log_volume(norm, dimension, ball(exact)))


def log_ball_volume_lower(norm: float, dimension: int, radius: Rational) -> float:
    """Return a float at most ln of the volume of an l_q ball (see `log_ball_volume_upper`).

    >>> log_ball_volume_lower(1, 3, 1)  # ln 4/3
    0.2876820724517809
    """
    exact = _checked_ball(norm, dimension, radius)
    return lower(lambda: _log_volume(norm, dimension, ball(exact)))


def _checked_ball(norm: float, dimension: int, radius: Rational) -> Fraction:
    _check_norm(norm)
    as_count(dimension, "dimension", minimum=1)
    return as_positive(radius, "radius")


def _log_volume(norm: float, dimension: int, radius: arb) -> arb:
    if norm == math.inf or dimension == 1:
        return dimension * (2 * radius).log()
    if norm == 1:
        return dimension * (2 * radius).log() - ball(dimension + 1).lgamma()
    return (
        dimension * (arb.const_sqrt_pi() * radius).log() - ball(1 + Fraction(dimension, 2)).lgamma()
    )


def _squares_count(dimension: int, bound: int) -> int:
    """Sum the coefficients up to x^B of θ(x)^d, θ(x) = Σ_k x^(k²) over all integers k."""
    theta = [1] + [0] * bound
    for k in range(1, math.isqrt(bound) + 1):
        theta[k * k] = 2
    return int(sum(fmpz_poly(theta).pow_trunc(dimension, bound + 1).coeffs()))


def log_lattice_count_upper(norm: float, dimension: int, bound: int) -> float:
    """Return a float at least ln of the number of integer points in the ball.

    `bound` is the radius m for l1 and linf, but the **squared** radius B for l2. l1 and linf are
    exact up to rounding in any dimension, and so is l2 while the exact count is cheap
    (`WORK_LIMIT`). Beyond, l2 is the smaller of the volume of the ball of radius √B + √d/2 and of
    the theta bound min_s d ln Σ_k e^{-s k²} + sB, which is above ln N by ½ ln(π d) + o(1) nats.

    >>> log_lattice_count_upper(2, 2, 25)  # ln 81
    4.394449154672439
    >>> log_lattice_count_upper(2, 10**5, 10**7)
    372152.36261987186
    """
    norm, dimension, bound = _simplified(norm, dimension, bound)
    if norm != 2:
        return upper(lambda: _log_count(norm, dimension, bound))
    if _is_cheap(dimension, bound):
        return log_upper(_squares_count(dimension, bound))
    return min(_log_theta_bound(dimension, bound), _log_covering_volume(dimension, bound))


def log_lattice_count_lower(norm: float, dimension: int, bound: int) -> float:
    """Return a float at most ln of the number of integer points in the ball.

    As `log_lattice_count_upper`, except that for l2 beyond the exact count it is the larger of the
    volume of the ball of radius √B - √d/2 and of the number of vectors with the most numerous
    multiset of |k_i|, which is within O(√(B/d) ln d) nats of ln N.

    >>> log_lattice_count_lower(2, 2, 25)
    4.394449154672438
    >>> log_lattice_count_lower(2, 10**5, 10**7)
    371897.7687106463
    """
    norm, dimension, bound = _simplified(norm, dimension, bound)
    if norm != 2:
        return lower(lambda: _log_count(norm, dimension, bound))
    if _is_cheap(dimension, bound):
        return log_lower(_squares_count(dimension, bound))
    return max(_log_type_class(dimension, bound), _log_inner_volume(dimension, bound))


def _log_count(norm: float, dimension: int, bound: int) -> arb:
    if norm == math.inf:
        return dimension * ball(2 * bound + 1).log()
    total = arb(1)  # Σ_k 2^k C(d, k) C(m, k) by Horner's rule: positive terms, nothing cancels
    for k in reversed(range(min(dimension, bound))):
        total = 1 + total * (2 * (dimension - k) * (bound - k)) / (k + 1) ** 2
    return total.log()


def _log_theta_bound(dimension: int, bound: int) -> float:
    """Bound ln N from above: N e^{-sB} ≤ (Σ_k e^{-s k²})^d for every s > 0, so any s will do."""
    if bound > dimension << 100:  # the covering volume is sharp there, and floats end
        return math.inf
    tilt = _tilt(dimension, bound)

    def evaluate() -> arb:
        theta = acb.modular_theta(acb(0), acb(0, ball(tilt) / arb.pi()))[2].real
        return dimension * theta.log() + bound * ball(tilt)

    return upper(evaluate)


def _log_covering_volume(dimension: int, bound: int) -> float:
    """Bound ln N from above: unit cubes around the points fit into radius √B + √d/2."""
    return upper(lambda: _log_volume(2, dimension, ball(bound).sqrt() + ball(dimension).sqrt() / 2))


def _log_inner_volume(dimension: int, bound: int) -> float:
    """Bound ln N from below: the cubes around the points cover radius √B - √d/2."""
    if 4 * bound <= dimension:
        return 0.0
    return lower(lambda: _log_volume(2, dimension, ball(bound).sqrt() - ball(dimension).sqrt() / 2))


def _log_type_class(dimension: int, bound: int) -> float:
    """Bound ln N from below by all sign and position choices of one multiset of |k_i|.

    With c_j entries of absolute value j, Σ c_j j² ≤ B, there are d!/Π c_j! · 2^(d - c_0) of them.
    The c_j follow e^{-s j²} (floats choose, integers check), which nearly maximizes the number.
    """
    if bound > dimension**2:  # more values than this bound is good for; the volume is better
        return 0.0
    tilt = _tilt(dimension, bound)
    scale = 2 * dimension / _moment(tilt, 0)
    counts: list[int] = []
    zeros, budget, value = dimension, bound, 1
    while wanted := int(scale * math.exp(-tilt * value**2)):
        count = min(wanted, zeros, budget // value**2)
        counts.append(count)
        zeros -= count
        budget -= count * value**2
        value += 1

    def evaluate() -> arb:
        arrangements = ball(dimension + 1).lgamma() - ball(zeros + 1).lgamma()
        arrangements -= sum((ball(count + 1).lgamma() for count in counts), arb(0))
        return arrangements + (dimension - zeros) * arb.const_log2()

    return lower(evaluate)


def _tilt(dimension: int, bound: int) -> float:
    """Return roughly the s at which k with weights e^{-s k²} has mean square B/d."""
    if bound >= dimension:  # here the sum is its integral to 7 digits
        return dimension / (2 * bound)
    low, high = 0.5, 1.0 + math.log(2 * dimension / bound)
    for _ in range(50):
        middle = (low + high) / 2
        if _moment(middle, 2) * dimension > bound * _moment(middle, 0):
            low = middle
        else:
            high = middle
    return high


def _moment(tilt: float, power: int) -> float:
    """Return roughly Σ_k k^power e^{-s k²} over all integers k."""
    reach = 2 + int(6.5 / math.sqrt(tilt))  # e^{-6.5²} is below a float's last digit
    return 0.0**power + 2 * sum(
        float(k) ** power * math.exp(-tilt * k * k) for k in range(1, reach)
    )


def _is_cheap(dimension: int, bound: int) -> bool:
    """Tell whether the exact l2 count fits `WORK_LIMIT`."""
    if bound >= WORK_LIMIT:
        return False
    return _log_theta_bound(dimension, bound) / math.log(2) * (bound + 1) <= WORK_LIMIT


def _simplified(norm: float, dimension: int, bound: int) -> tuple[float, int, int]:
    """Check the arguments; return l2 in one dimension, or of radius 0, as the cube it is."""
    _check_norm(norm)
    dimension = as_count(dimension, "dimension", minimum=1)
    bound = as_count(bound, "bound")
    if dimension > 2**53:
        raise ParameterError(
            "dimension", dimension, expected="at most 2^53", remedy="use fewer dimensions"
        )
    if norm == 2 and (dimension == 1 or bound == 0):
        return math.inf, dimension, math.isqrt(bound)
    if norm == 1 and min(dimension, bound) > WORK_LIMIT:
        raise ParameterError(
            "bound",
            bound,
            expected=f"dimension or bound within WORK_LIMIT = {WORK_LIMIT}",
            remedy="use a coarser lattice",
        )
    return norm, dimension, bound


def _check_norm(norm: float) -> None:
    if norm not in (1, 2, math.inf):
        raise ParameterError(
            "norm", norm, expected="1, 2 or math.inf", remedy="pass one of these three norms"
        )
