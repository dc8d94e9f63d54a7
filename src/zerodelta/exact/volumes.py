"""Log-volumes of l1, l2 and linf balls, and logs of how many integer points they hold.

These are the ln N of a published lattice (theory B2; volumes by theory A2, not by the product
that the paper prints). Every result is directed: `..._upper` is certainly ≥ the real value and
`..._lower` ≤.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import acb, arb, fmpz_poly

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.logs import log_lower, log_upper
from zerodelta.exact.rational import Rational, as_count, as_positive

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
