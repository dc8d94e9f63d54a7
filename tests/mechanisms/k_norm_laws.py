"""Exact laws of rounded K-norm noise in two dimensions, for enumeration."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import acb, arb, ctx

from zerodelta.audit.exact import ExpRational

HALF = Fraction(1, 2)


def cube_pmf(i: int, j: int, scale: Fraction) -> ExpRational:
    """P(round(z) = (i, j)) for the density exp(-max(|x|, |y|)/b) / (8 b²).

    Off the diagonals the larger coordinate is the same one in the whole cell; a diagonal cell has
    2(m - a) of area per dm at max = m = a..a+1, and the middle cell 8m at m = 0..1/2.
    """
    larger, smaller = max(abs(i), abs(j)), min(abs(i), abs(j))
    near, far = larger - HALF, larger + HALF
    if larger == 0:
        mass = 8 * _moment(Fraction(0), HALF, scale)
    elif larger == smaller:
        mass = 2 * (_moment(near, far, scale) - near * _integral(near, far, scale))
    else:
        mass = _integral(near, far, scale)
    law: ExpRational = mass / (8 * scale * scale)
    return law


def _integral(low: Fraction, high: Fraction, scale: Fraction) -> ExpRational:
    """∫ e^(-m/b) dm from low to high."""
    value: ExpRational = scale * (ExpRational.exp(-low / scale) - ExpRational.exp(-high / scale))
    return value


def _moment(low: Fraction, high: Fraction, scale: Fraction) -> ExpRational:
    """∫ m e^(-m/b) dm from low to high."""
    at_low = scale * (low + scale) * ExpRational.exp(-low / scale)
    at_high = scale * (high + scale) * ExpRational.exp(-high / scale)
    value: ExpRational = at_low - at_high
    return value


def disc_pmf(i: int, j: int, scale: int) -> arb:
    """P(round(z) = (i, j)) for exp(-√(x² + y²)/b) / (2π b²), (i, j) not the origin; certified."""

    def across(x: acb, analytic: bool) -> acb:
        def along(y: acb, inner_analytic: bool) -> acb:
            length = (x * x + y * y).sqrt(analytic=analytic or inner_analytic)
            return (-length / scale).exp()

        return _integrate(along, j, 60)

    with ctx.workprec(100):
        return _integrate(across, i, 40).real / (2 * arb.pi() * scale * scale)


def _integrate(function: Callable[[acb, bool], acb], center: int, bits: int) -> acb:
    tolerance = arb(2) ** -bits
    ends = acb(arb(center) - arb(0.5)), acb(arb(center) + arb(0.5))
    return acb.integral(function, *ends, rel_tol=tolerance, abs_tol=tolerance)
