"""The exact law of rounded noise in the norm of counts, in any dimension, for enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from zerodelta.audit.exact import ExpRational

HALF = Fraction(1, 2)
Side = tuple[Fraction, Fraction]


@cache
def counts_pmf(cell: tuple[int, ...], scale: Fraction) -> ExpRational:
    """P(round(z) = cell) for the density exp(-max(Σz⁺, Σz⁻)/s) / (C(2p,p) s^p) in Z^p.

    In each orthant the part of the cell with norm <= m has volume A(m)·B(m), the volumes of two
    boxes cut off at Σ = m; integrating by parts, its mass is (1/s) ∫ A(m) B(m) e^(-m/s) dm.
    """
    p = len(cell)
    mass = ExpRational.of(0)
    for signs in itertools.product((1, -1), repeat=p):
        if any(sign * i < 0 for sign, i in zip(signs, cell, strict=True)):
            continue
        sides = [(max(abs(i) - HALF, Fraction(0)), abs(i) + HALF) for i in cell]
        up = [side for side, sign in zip(sides, signs, strict=True) if sign > 0]
        down = [side for side, sign in zip(sides, signs, strict=True) if sign < 0]
        for (plus, c), (minus, d) in itertools.product(corners(up), corners(down)):
            part = cut_product(c, len(up), d, len(down), scale)
            mass += plus * minus * Fraction(1, math.factorial(len(up))) * part
    law: ExpRational = mass / (scale ** (p + 1) * math.comb(2 * p, p))
    return law


def corners(sides: list[Side]) -> Iterator[tuple[int, Fraction]]:
    """Yield (±1, c) with vol{x in the box, Σx <= m} = Σ ±(m - c)₊^k / k!."""
    for chosen in itertools.product((0, 1), repeat=len(sides)):
        ends = (side[high] for side, high in zip(sides, chosen, strict=True))
        yield (-1) ** sum(chosen), sum(ends, Fraction(0))


def cut_product(c: Fraction, k: int, d: Fraction, j: int, scale: Fraction) -> ExpRational:
    """∫ (m-c)₊^k (m-d)₊^j / j! e^(-m/s) dm over m >= max(c, d): with m = max + u."""
    start = max(c, d)
    a, b = start - c, start - d
    total = Fraction(0)
    for x, y in itertools.product(range(k + 1), range(j + 1)):
        coefficient = math.comb(k, x) * a ** (k - x) * math.comb(j, y) * b ** (j - y)
        total += coefficient * math.factorial(x + y) * scale ** (x + y + 1)
    value: ExpRational = total / math.factorial(j) * ExpRational.exp(-start / scale)
    return value
