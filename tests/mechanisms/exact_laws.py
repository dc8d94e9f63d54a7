"""Exact laws of noise on sums, on counts by key and on tables, for enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

from flint import acb, arb, ctx

from zerodelta.audit.exact import ExpRational, discrete_laplace_pmf, discrete_laplace_tail, shifted
from zerodelta.audit.exact import Law as ExactLaw

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


# -- counts by key --------------------------------------------------------------------------------


Law = dict[Any, Any]


@cache
def weight(z: int, up: Fraction, down: Fraction) -> ExpRational:
    """P(Z = z) ∝ e^(-up·z) or e^(-down·|z|), times what makes all weights sums of exponentials."""
    e = ExpRational.exp
    found: ExpRational = (1 - e(-up)) * (1 - e(-down)) * e(-up * z if z >= 0 else down * z)
    return found


@cache
def whole(up: Fraction, down: Fraction) -> ExpRational:
    """The sum of all weights."""
    found: ExpRational = 1 - ExpRational.exp(-up - down)
    return found


@cache
def weight_from(least: int, up: Fraction, down: Fraction) -> ExpRational:
    """The weight of Z >= least: a geometric series, or what another one leaves."""
    e = ExpRational.exp
    if least < 0:
        below: ExpRational = whole(up, down) - e(down * (least - 1)) * (1 - e(-up))
        return below
    found: ExpRational = e(-up * least) * (1 - e(-down))
    return found


def noise_pmf(z: int, up: Fraction, down: Fraction) -> ExpRational:
    """P(Z = z)."""
    found: ExpRational = weight(z, up, down) / whole(up, down)
    return found


def noise_tail(least: int, up: Fraction, down: Fraction) -> ExpRational:
    """P(Z >= least)."""
    found: ExpRational = weight_from(least, up, down) / whole(up, down)
    return found


@cache
def one_key(count: int, least: int | None, high: int, up: Fraction, down: Fraction) -> Law:
    """What is published of a key: nothing, a number up to `high`, or a larger one; as weights.

    Where counts are at most `high`, the ratio of two counts is the same beyond it. Without a
    threshold (None) numbers below -1 are one outcome, for the same reason.
    """
    first = -1 if least is None else least
    law: Law = {number: weight(number - count, up, down) for number in range(first, high + 1)}
    law["more"] = weight_from(high + 1 - count, up, down)
    law["none"] = whole(up, down) - weight_from(first - count, up, down)
    return law


def published_law(
    counts: Sequence[int], least: int | None, *, up: Fraction, down: Fraction, high: int
) -> Law:
    """The law of all that is published, key by key in the order of the universe.

    All probabilities are multiplied by the same number, which their ratios do not see.
    """
    each = [one_key(count, least, high, up, down) for count in counts]
    return {
        outcome: math.prod((law[x] for law, x in zip(each, outcome, strict=True)), start=1)
        for outcome in itertools.product(*each)
    }


def lack(scores: Sequence[Fraction | int], chosen: Sequence[int]) -> Fraction:
    """How much the worst place of a list of options lacks."""
    best = sorted(scores, reverse=True)
    return max(Fraction(best[i] - scores[j]) for i, j in enumerate(chosen))


def joint_law(scores: Sequence[int], k: int, scale: Fraction) -> Law:
    """P(s) ∝ e^(-lack/scale) over all lists of k different options."""
    lists = list(itertools.permutations(range(len(scores)), k))
    weights = [ExpRational.exp(-lack(scores, chosen) / scale) for chosen in lists]
    total: Any = sum(weights[1:], weights[0])
    return {chosen: weight / total for chosen, weight in zip(lists, weights, strict=True)}


# -- tables ---------------------------------------------------------------------------------------


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


def laplace_law(sums: Sums, *, scale: Fraction, high: int) -> ExactLaw:
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


def block_law(sums: Sums, *, scale: Fraction, window: Sequence[int]) -> ExactLaw:
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
