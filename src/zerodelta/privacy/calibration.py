"""How much internal privacy loss a target (ε, ln δ) allows: the largest ρ, μ², the smallest noise.

The inverse of `ZCDP.log_delta` and `GaussianDP.log_delta` (theory B6), ending on the safe side: the
returned numbers were put through the claim and met the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from zerodelta.errors import require
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import ZCDP, GaussianDP
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.renyi import saturated
from zerodelta.privacy.threshold import safe_end
from zerodelta.value import value

_RELATIVE = 1e-12


@value
class Calibration:
    """What an internal analysis may cost so that ln δ(ε) is at most the target.

    Parameters
    ----------
    epsilon, log_delta : Fraction, float
        The target.
    rho : Fraction
        The largest zCDP parameter.
    mu_squared : Fraction
        The largest μ² as Gaussian DP (more, because it says more).
    variance : Fraction or None
        The noise σ² that one Gaussian step of the given sensitivity needs, None if none was given.

    """

    epsilon: Fraction
    log_delta: float
    rho: Fraction
    mu_squared: Fraction
    variance: Fraction | None


def calibrate(
    *, epsilon: Rational, log_delta: float, sensitivity: Rational | None = None
) -> Calibration:
    """Return the largest ρ and μ², and the smallest σ², that meet ln δ(`epsilon`) ≤ `log_delta`.

    Use it to plan a mechanism of your own; `zd.plan` calibrates and chooses a channel too.

    Parameters
    ----------
    epsilon : int, float, Fraction or str
        The ε at which δ is asked for.
    log_delta : float
        The largest ln δ(ε) allowed, below 0.
    sensitivity : number, optional
        The l2 sensitivity of one Gaussian step; k equal steps need k times the variance.

    Returns
    -------
    Calibration
        Its `rho`, `mu_squared` and `variance` meet the target, and are within a relative 1e-9 of
        the optimum of their conversion.

    Examples
    --------
    >>> plan = calibrate(epsilon=1, log_delta=-100.0, sensitivity=2)
    >>> round(float(plan.variance), 2)
    733.97
    >>> GaussianDP(mu_squared=4 / plan.variance).log_delta(1) <= -100.0
    True

    """
    t, target = as_positive(epsilon, "epsilon"), as_log_delta(log_delta)
    # of a plan this is what it leaves for the noise, which may be less than any release spends
    expected = "a number between 1e-100 and 1e6"
    require(Fraction(1, 10**100) <= t <= 10**6, "epsilon", epsilon, expected, "pass epsilon=1, say")
    require(
        target != 0,
        "log_delta",
        log_delta,
        "a logarithm below 0 (δ = 1 allows everything)",
        "pass ln δ, such as -30.0",
    )
    return _calibrated(
        t, target, None if sensitivity is None else as_positive(sensitivity, "sensitivity")
    )


@lru_cache(maxsize=1024)
def _calibrated(epsilon: Fraction, target: float, sensitivity: Fraction | None) -> Calibration:
    mu_squared = _largest(lambda value: GaussianDP(mu_squared=value), epsilon, target)
    return Calibration(
        epsilon=epsilon,
        log_delta=target,
        rho=_largest(ZCDP, epsilon, target),
        mu_squared=mu_squared,
        variance=None
        if sensitivity is None
        else _variance(sensitivity, mu_squared, epsilon, target),
    )


def _largest(claim: Callable[[Fraction], Claim], epsilon: Fraction, target: float) -> Fraction:
    """Return the largest rational found whose claim meets the target."""

    def excess(value: float) -> float:
        return claim(Fraction(value)).log_delta(epsilon) - target

    # √2ℓ+2t - √2ℓ is μ for small δ, and √(ℓ+t) - √ℓ is √ρ: the same up to a factor of two
    t = saturated(epsilon)
    guess = (t / (math.sqrt(t - target) + math.sqrt(-target))) ** 2
    safe = unsafe = guess
    while excess(safe) > 0:
        unsafe, safe = safe, safe / 2
    while excess(unsafe) <= 0:
        safe, unsafe = unsafe, unsafe * 2
    return Fraction(safe_end(excess, safe=safe, unsafe=unsafe, relative=_RELATIVE))


def _variance(
    sensitivity: Fraction, mu_squared: Fraction, epsilon: Fraction, target: float
) -> Fraction:
    """Return Δ²/μ² rounded up to a float, so that the noise has a short name."""
    squared = sensitivity**2
    variance = upper(lambda: ball(squared / mu_squared))
    remedy = "pass a smaller one, or a larger log_delta"
    require(math.isfinite(variance), "sensitivity", sensitivity, "noise of finite scale", remedy)
    # smaller than the μ² that was checked; its own bound might still round up to the next float
    while GaussianDP(mu_squared=squared / Fraction(variance)).log_delta(epsilon) > target:
        variance = math.nextafter(variance, math.inf)
    return Fraction(variance)
