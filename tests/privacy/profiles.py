"""Privacy profiles in mpmath, straight from their definitions; shares no code with the library."""

from __future__ import annotations

from fractions import Fraction

from mpmath import mp, mpf

Number = int | float | Fraction | str


def real(value: Number) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / mpf(exact.denominator)


def gaussian_delta(mu_squared: Number, t: mpf) -> mpf:
    """Return the hockey stick of N(μ,1) against N(0,1) at e^t, t of either sign."""
    mu = mp.sqrt(real(mu_squared))
    return mp.ncdf(mu / 2 - t / mu) - mp.exp(t) * mp.ncdf(-mu / 2 - t / mu)


def with_randomized_responses(mu_squared: Number, epsilon: Number, count: int, t: mpf) -> mpf:
    """Return δ(t) of a Gaussian step and `count` randomized responses, by the law of their loss."""
    eps = real(epsilon)
    p = mp.exp(eps) / (1 + mp.exp(eps))
    return mp.fsum(
        mp.binomial(count, yes)
        * p**yes
        * (1 - p) ** (count - yes)
        * gaussian_delta(mu_squared, t - (2 * yes - count) * eps)
        for yes in range(count + 1)
    )


def zcdp_log_delta(rho: Number, t: Number) -> mpf:
    """Return the minimum over orders of theory B6, through the zero of the derivative."""
    r, e = real(rho), real(t)

    def slope(u: mpf) -> mpf:
        return (2 * mp.exp(u) + 1) * r - mp.log1p(mp.exp(-u)) - e

    low, high = mpf(-100), mpf(200)
    for _ in range(400):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    tail = mp.exp(low)
    order = 1 + tail
    return tail * (order * r - e) + tail * mp.log(tail) - order * mp.log(order)


def randomized_response_renyi(epsilon: Number, order: Number) -> mpf:
    eps, a = real(epsilon), real(order)
    p = mp.exp(eps) / (1 + mp.exp(eps))
    return mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
