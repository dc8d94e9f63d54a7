"""The exact laws of noisy tables (P1, P2, G2), for enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, partial

from mechanisms.k_norm_laws import cube_pmf
from zerodelta.audit.exact import (
    ExpRational,
    Law,
    discrete_laplace_pmf,
    discrete_laplace_tail,
    shifted,
)

HALF = Fraction(1, 2)
Side = tuple[Fraction, Fraction]
Sums = tuple[int, ...]


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


@cache
def one_cell(center: int, scale: Fraction, high: int) -> dict[float, ExpRational]:
    pmf = partial(discrete_laplace_pmf, scale=scale)
    tail = partial(discrete_laplace_tail, scale=scale)
    return shifted(pmf, tail, center=center, low=0, high=high)


def laplace_law(sums: Sums, *, scale: Fraction, high: int) -> Law:
    """The joint law of all cells; beyond 0..high every ratio is that of the end (`shifted`)."""
    each = [one_cell(center, scale, high) for center in sums]
    return {
        outcome: math.prod((law[x] for law, x in zip(each, outcome, strict=True)), start=1)
        for outcome in itertools.product(each[0], repeat=len(sums))
    }


def counts_law(sums: Sums, *, scale: Fraction, window: Sequence[int]) -> dict[Sums, ExpRational]:
    return {
        outcome: counts_pmf(tuple(x - k for x, k in zip(outcome, sums, strict=True)), scale)
        for outcome in itertools.product(window, repeat=len(sums))
    }


def block_law(sums: Sums, *, scale: Fraction, window: Sequence[int]) -> Law:
    """Independent noise in each block of two coordinates."""
    each = []
    for place in range(0, len(sums), 2):
        i, j = sums[place : place + 2]
        cells = itertools.product(window, repeat=2)
        each.append({(x, y): cached_cube(abs(x - i), abs(y - j), scale) for x, y in cells})
    return {
        outcome: math.prod((law[x] for law, x in zip(each, outcome, strict=True)), start=1)
        for outcome in itertools.product(*each)
    }


@cache
def cached_cube(i: int, j: int, scale: Fraction) -> ExpRational:
    return cube_pmf(i, j, scale)
