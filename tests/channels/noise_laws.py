"""Closed forms of the noise in the channels, written from the theory alone (no sampler).

Everything is an `ExpRational` (compared exactly) or a certified Arb ball.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

from flint import acb, arb, ctx

from mechanisms.exact_laws import cube_pmf
from zerodelta.audit.exact import ExpRational
from zerodelta.exact.logs import ball

BITS = 512
HALF = Fraction(1, 2)
Line: TypeAlias = dict[int, Any]
"""A law on -reach..reach; each end also holds everything beyond it."""


def laplace_integral(x: Fraction, scale: Fraction) -> ExpRational:
    """H(x), the integral of the Laplace cdf up to x."""
    decay: ExpRational = scale / 2 * ExpRational.exp(-abs(x) / scale)
    return decay + max(x, Fraction(0))  # type: ignore[no-any-return]


def laplace_cdf(x: Fraction, scale: Fraction) -> ExpRational:
    """P(Laplace(scale) <= x)."""
    decay: ExpRational = HALF * ExpRational.exp(-abs(x) / scale)
    return decay if x < 0 else 1 - decay


def smeared_cdf(x: Fraction, scale: Fraction, radius: Fraction) -> ExpRational:
    """P(V + Laplace <= x) with V uniform on [-radius, radius]: (H(x+R) - H(x-R))/2R."""
    difference = laplace_integral(x + radius, scale) - laplace_integral(x - radius, scale)
    return difference / (2 * radius)  # type: ignore[no-any-return]


def line_law(cdf: Callable[[Fraction], Any], reach: int) -> Line:
    """The law of round(X) for a continuous cdf, the ends joined."""
    steps = [cdf(k + HALF) for k in range(-reach, reach)]
    return dict(
        zip(
            range(-reach, reach + 1),
            (b - a for a, b in itertools.pairwise([0, *steps, 1])),
            strict=True,
        )
    )


def noisy_point(center: Fraction, scale: Fraction, reach: int) -> Line:
    """round(center + Laplace)."""
    return line_law(lambda x: laplace_cdf(x - center, scale), reach)


def noisy_uniform(radius: Fraction, scale: Fraction, reach: int) -> Line:
    """round(V + Laplace), V uniform on [-radius, radius]."""
    return line_law(lambda x: smeared_cdf(x, scale, radius), reach)


def gaussian_line(center: Fraction, variance: Fraction, reach: int) -> Line:
    """round(N(center, variance)); upper tails by erfc, so that small ones keep their digits."""
    with ctx.workprec(BITS):
        width = (2 * ball(variance)).sqrt()

        def above(x: Fraction) -> arb:
            return (ball(x - center) / width).erfc() / 2

        def below(x: Fraction) -> arb:
            return (ball(center - x) / width).erfc() / 2

        law: Line = {-reach: below(HALF - reach), reach: above(reach - HALF)}
        for k in range(1 - reach, reach):
            far = above if k > center else below
            law[k] = abs(far(k - HALF) - far(k + HALF))
        return dict(sorted(law.items()))


def as_ball(value: Any) -> arb:
    """A probability of any kind as a ball."""
    with ctx.workprec(BITS):
        if isinstance(value, ExpRational):
            return value.ball()
        return value if isinstance(value, arb) else ball(value)


def in_balls(law: Line) -> dict[int, arb]:
    """A law with Arb balls, which multiply faster than exact sums of exponentials."""
    return {k: as_ball(value) for k, value in law.items()}


def product_law(lines: Iterable[Line]) -> dict[tuple[int, ...], Any]:
    """Independent coordinates."""
    with ctx.workprec(BITS):
        law: dict[tuple[int, ...], Any] = {(): 1}
        for line in lines:
            law = {(*z, k): p * q for z, p in law.items() for k, q in line.items()}
        return law


# --- the cube norm in two dimensions -------------------------------------------------------------


def cube_noise(i: int, j: int, scale: Fraction) -> arb:
    """P(round(Z) = (i, j)), Z of density ∝ exp(-max|z|/b)."""
    return _cube_noise(*sorted((abs(i), abs(j))), scale)


@cache
def _cube_noise(i: int, j: int, scale: Fraction) -> arb:
    return as_ball(cube_pmf(i, j, scale))


def cube_uniform_plus_noise(i: int, j: int, radius: int, scale: Fraction) -> arb:
    """P(round(V + Z) = (i, j)), V uniform in the cube of that radius, Z of density ∝ e^(-max|z|/b).

    Z is uniform in a cube of half-width G ~ Gamma(3, b). Given G = g a coordinate falls in its cell
    with probability area(g)/(4 R g), a quadratic polynomial in g between half-integers.
    """
    return _cube_uniform(*sorted((abs(i), abs(j))), radius, scale)


@cache
def _cube_uniform(i: int, j: int, radius: int, scale: Fraction) -> arb:
    total = ExpRational.of(0)
    ends = [HALF * n for n in range(2 * (radius + max(i, j)) + 2)]
    for low, high in itertools.pairwise([*ends, None]):
        assert low is not None
        middle = low + 1 if high is None else (low + high) / 2
        first, second = (_overlap(k, radius, middle) for k in (i, j))
        total += _exponential_integral(_times(first, second), scale, low, high)
    # the density g²e^(-g/b)/(2b³) of G, and 1/(4 R g) for each coordinate
    return as_ball(total * (Fraction(1, 32 * radius * radius) / scale**3))


def _times(first: list[Fraction], second: list[Fraction]) -> list[Fraction]:
    product = [Fraction(0)] * (len(first) + len(second) - 1)
    for (m, a), (n, b) in itertools.product(enumerate(first), enumerate(second)):
        product[m + n] += a * b
    return product


def _overlap(k: int, radius: int, middle: Fraction) -> list[Fraction]:
    """The area of |v| <= R, |u| <= g, |v + u - k| <= 1/2 as a polynomial in g near `middle`."""
    polynomial = [Fraction(0)] * 3
    for side, sign in ((k + HALF, 1), (k - HALF, -1)):
        for offset, slope, weight in (
            (side + radius, 1, sign),
            (side + radius, -1, -sign),
            (side - radius, 1, -sign),
            (side - radius, -1, sign),
        ):
            if offset + slope * middle > 0:  # weight · (offset + slope·g)²/2
                polynomial[0] += weight * offset * offset / 2
                polynomial[1] += weight * offset * slope
                polynomial[2] += Fraction(weight, 2)
    return polynomial


def _exponential_integral(
    polynomial: list[Fraction], scale: Fraction, low: Fraction, high: Fraction | None
) -> ExpRational:
    """∫ p(g) e^(-g/b) dg: the antiderivative is -e^(-g/b) Σ b^(n+1) p^(n)(g)."""

    def at(g: Fraction) -> ExpRational:
        value, derivative, power = Fraction(0), polynomial, scale
        while derivative:
            value += power * sum((c * g**n for n, c in enumerate(derivative)), Fraction(0))
            derivative = [n * c for n, c in enumerate(derivative)][1:]
            power *= scale
        return ExpRational.exp(-g / scale) * value  # type: ignore[no-any-return]

    start = at(low)
    return start if high is None else start - at(high)


# --- the l1 norm in two dimensions ---------------------------------------------------------------


def diamond_uniform_plus_noise(i: int, j: int, radius: int, scale: Fraction) -> arb:
    """P(round(V + Z) = (i, j)), V uniform in the l1 ball, Z of independent Laplace(scale).

    Given V the cell has a product probability; the integral over v2 is closed, that over v1 is done
    by Arb between half-integers, where the integrand is one analytic expression.
    """
    return _diamond(abs(i), abs(j), radius, scale)


@cache
def _diamond(i: int, j: int, radius: int, scale: Fraction) -> arb:
    with ctx.workprec(256):
        b = acb(ball(scale))
        total = arb(0)
        for n in range(-2 * radius, 2 * radius):
            low, middle = HALF * n, HALF * n + Fraction(1, 4)

            def across(v: acb, _: bool, middle: Fraction = middle) -> acb:
                rest = (
                    (radius - v, radius - middle) if middle > 0 else (radius + v, radius + middle)
                )
                inner = (
                    _second(j + HALF, rest, b, 1)
                    - _second(j + HALF, rest, b, -1)
                    - _second(j - HALF, rest, b, 1)
                    + _second(j - HALF, rest, b, -1)
                )
                return _cell(i, (v, middle), b) * inner

            tolerance = arb(2) ** -150
            total += acb.integral(
                across,
                acb(ball(low)),
                acb(ball(low + HALF)),
                rel_tol=tolerance,
                abs_tol=tolerance,
            ).real
        return total / (2 * radius * radius)


def _second(side: Fraction, rest: tuple[acb, Fraction], b: acb, sign: int) -> acb:
    """H(side + sign·rest) on the branch of the piece."""
    x = acb(ball(side)) + sign * rest[0]
    if side + sign * rest[1] > 0:
        return x + b / 2 * (-x / b).exp()
    return b / 2 * (x / b).exp()


def _cell(k: int, v: tuple[acb, Fraction], b: acb) -> acb:
    """P(round(v + Laplace) = k) on the branch of the piece."""

    def cdf(side: Fraction) -> acb:
        x = acb(ball(side)) - v[0]
        return 1 - (-x / b).exp() / 2 if side - v[1] > 0 else (x / b).exp() / 2

    return cdf(k + HALF) - cdf(k - HALF)


# --- the l2 norm in two dimensions: densities ----------------------------------------------------


def disc_noise_density(squared: Fraction, scale: Fraction) -> arb:
    """e^(-|z|/b)/(2πb²) at |z|² = squared."""
    b = ball(scale)
    return (-ball(squared).sqrt() / b).exp() / (2 * arb.pi() * b * b)


def disc_uniform_density(squared: Fraction, radius: int, scale: Fraction, pieces: int) -> arb:
    """The density of V + Z at |z|² = squared, V uniform in the disc: a ball around a Riemann sum.

    In polar coordinates around z it is ∫ s e^(-s/b) θ(s) ds / (2πb²·πR²), θ(s) the angle of the
    circle of radius s that lies in the disc. Every piece is enclosed, so the sum is certain.
    """
    with ctx.workprec(64):
        b, rho = ball(scale), ball(squared).sqrt()
        inner, outer = abs(rho - radius), rho + radius
        total = arb(0)
        if squared < radius * radius:  # whole circles: ∫ 2π s e^(-s/b)
            total += 2 * arb.pi() * b * (b - (inner + b) * (-inner / b).exp())
        step = (outer - inner) / pieces
        for n in range(pieces):
            low, high = inner + n * step, inner + (n + 1) * step
            s = low.union(high)
            weight = b * ((low + b) * (-low / b).exp() - (high + b) * (-high / b).exp())
            cosine = (s * s + ball(squared) - radius * radius) / (2 * s * rho)
            total += weight * 2 * _angle(cosine.upper()).union(_angle(cosine.lower()))
        return total / (2 * arb.pi() * b * b * arb.pi() * radius * radius)


def _angle(cosine: arb) -> arb:
    """The angle, of cosines cut to [-1, 1]."""
    if cosine >= 1:
        return arb(0)
    return arb.pi() if cosine <= -1 else cosine.acos()


def float_of(value: Any) -> float:
    """A probability as a float, for chi-square tests only."""
    return float(value) if not isinstance(value, arb) else float(value.mid())
