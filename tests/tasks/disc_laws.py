"""Exact laws of rounded l2 K-norm noise in the plane: any cell, any rational scale, certified.

By the divergence theorem the mass of a cell is a sum over its edges: with G(r) = ∫₀ʳ e^(-t/b) t dt,
the triangle between the origin and a piece of an edge at distance h holds ∫ G(√(h² + s²)) h/(h² +
s²) ds. Edges lie at half-integers, never through the origin, so each integral is of an analytic
function.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import Any

from flint import acb, arb, ctx

from zerodelta.exact.logs import ball

BITS = 160
_HALF = Fraction(1, 2)


@cache
def disc_pmf(i: int, j: int, scale: Fraction) -> arb:
    """P(round(z) = (i, j)) for the density exp(-√(x² + y²)/b) / (2π b²)."""
    if not 0 <= j <= i:
        small, large = sorted((abs(i), abs(j)))
        return disc_pmf(large, small, scale)
    with ctx.workprec(BITS):
        mass = _edge(i + _HALF, j, scale) - _edge(i - _HALF, j, scale)
        mass += _edge(j + _HALF, i, scale) - _edge(j - _HALF, i, scale)
        return mass / (2 * arb.pi() * ball(scale) ** 2)


@cache
def _edge(height: Fraction, middle: int, scale: Fraction) -> arb:
    """The mass between the origin and an edge from middle - 1/2 to middle + 1/2; odd in height."""
    if height < 0:
        return -_edge(-height, middle, scale)
    with ctx.workprec(BITS):
        b, h = ball(scale), ball(height)

        def density(s: acb, analytic: bool) -> acb:
            square = h * h + s * s
            r = square.sqrt(analytic=analytic)
            return (b * b - b * (r + b) * (-r / b).exp()) * h / square

        low, high = acb(ball(middle - _HALF)), acb(ball(middle + _HALF))
        tolerance = arb(2) ** (8 - BITS)
        return acb.integral(density, low, high, rel_tol=tolerance, abs_tol=tolerance).real


@cache
def disc_law(center: tuple[int, int], scale: Fraction, reach: int) -> dict[Any, arb]:
    """The law of center + round(z) on [-reach, reach]²; "beyond" holds all the rest."""
    cells = itertools.product(range(-reach, reach + 1), repeat=2)
    law: dict[Any, arb] = {(i, j): disc_pmf(i - center[0], j - center[1], scale) for i, j in cells}
    with ctx.workprec(BITS):
        law["beyond"] = 1 - sum(law.values(), arb(0))
    return law
