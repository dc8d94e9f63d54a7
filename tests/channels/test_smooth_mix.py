"""Theorem S2 with rounded Gaussian noise, on exact lattices: one step in d = 1 and 2, two steps.

All laws are certified balls at every lattice point of a window. Outside it the mixing draw alone is
enough: (1-w)P(z) <= (e^t - 1) w Q(z), because the density ratio of N(g, σ²) to N(0, τ²) falls as
|z| grows beyond |g| τ²/(τ² - σ²).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from flint import arb, ctx

from channels.channel_laws import mixed
from channels.noise_laws import BITS, gaussian_line, product_law
from zerodelta.audit.exact import certainly_impure, certainly_pure
from zerodelta.channels.kernels import SmoothMix
from zerodelta.errors import GuaranteeError
from zerodelta.exact.logs import ball
from zerodelta.privacy.claims import ZCDP, ApproxDP, GaussianDP
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.spaces import Ball

F = Fraction


def channel(step: GaussianStep, rho: Fraction, epsilon: Fraction) -> SmoothMix:
    """The channel with the smallest weight (to 1e-9) that S2 accepts."""

    def at(log_odds: float) -> SmoothMix:
        weight = F(1 / (1 + math.exp(-log_odds)))
        space = Ball(step.dimension, 100)
        return SmoothMix.best(space, step, rho=rho, epsilon=epsilon, weight=weight, spacing=1)

    trial = at(-5.0)
    built = at(-5.0 - trial.slack(epsilon, rho) + 1e-9)
    assert 0 <= built.slack(epsilon, rho) < 1e-8
    return built


@cache
def line(center: int, variance: Fraction, reach: int) -> dict[int, arb]:
    law: dict[int, arb] = gaussian_line(F(center), variance, reach)
    return law


def without_ends(law: dict[int, arb], reach: int) -> dict[int, arb]:
    """The window proper: its ends held the tails."""
    return {z: p for z, p in law.items() if abs(z) < reach}


def window(built: SmoothMix, epsilon: Fraction) -> int:
    """A reach beyond which the mixing draw alone is enough, by the density argument."""
    step, tau, w = built.step_taken, built.mixing_variance, built.mixing_weight
    d, r = step.dimension, step.radius
    for reach in itertools.count(2):
        x = reach - F(1, 2)  # cells of the window proper end here
        with ctx.workprec(BITS):
            growth = (ball(tau / step.variance).log() * d / 2).exp()
            exponent = x * x / (2 * tau) - (x - r) ** 2 / (2 * step.variance)
            enough = ball((1 - w) / w) * growth * ball(exponent).exp() <= ball(epsilon).expm1()
        if x * (tau - step.variance) > r * tau and enough:
            return reach
    raise AssertionError


def output(
    built: SmoothMix, centers: Sequence[tuple[int, ...]], weights: Sequence[Any], reach: int
) -> dict[Any, Any]:
    """(1-w) Σ_h P(h) round(N(g(h), σ²)) + w round(N(0, τ²)) on the window proper."""
    d = built.step_taken.dimension

    def cells(center: tuple[int, ...], variance: Fraction) -> dict[tuple[int, ...], Any]:
        return product_law(without_ends(line(c, variance, reach), reach) for c in center)

    with ctx.workprec(BITS):
        kept: dict[tuple[int, ...], Any] = {}
        for center, weight in zip(centers, weights, strict=True):
            for z, p in cells(center, built.step_taken.variance).items():
                kept[z] = kept.get(z, arb(0)) + weight * p
    return mixed(kept, cells((0,) * d, built.mixing_variance), built.mixing_weight)


SETTINGS = [
    # variance, radius, sensitivity, epsilon
    (F(4), 2, 1, F(1)),
    (F(25), 3, 2, F(1, 2)),
    (F(9), 5, 5, F(3)),
    (F(100), 10, 5, F(1, 4)),
]


@pytest.mark.parametrize(("variance", "radius", "sensitivity", "epsilon"), SETTINGS)
def test_one_step_on_a_line_is_certainly_pure(
    variance: Fraction, radius: int, sensitivity: int, epsilon: Fraction
) -> None:
    step = GaussianStep(
        dimension=1, variance=variance, radius=F(radius), sensitivity=F(sensitivity)
    )
    rho = F(sensitivity**2) / (2 * variance)
    built = channel(step, rho, epsilon)
    assert built.proves(epsilon, GaussianDP(mu_squared=2 * rho))
    reach = window(built, epsilon)
    laws = {g: output(built, [(g,)], [1], reach) for g in range(-radius, radius + 1)}
    pairs = [(a, b) for a, b in itertools.combinations(laws, 2) if b - a <= sensitivity]
    assert all(certainly_pure(laws[a], laws[b], epsilon) for a, b in pairs)


@pytest.mark.parametrize(
    ("variance", "radius", "sensitivity", "epsilon"),
    [(F(400), 30, 20, F(1)), (F(900), 60, 15, F(1, 2)), (F(2500), 50, 50, F(1))],
)
def test_the_weight_is_within_two_percent_of_the_smallest(
    variance: Fraction, radius: int, sensitivity: int, epsilon: Fraction
) -> None:
    """A fine lattice is nearly continuous, where S2 is exact to 3-4 digits; less is caught."""
    step = GaussianStep(
        dimension=1, variance=variance, radius=F(radius), sensitivity=F(sensitivity)
    )
    rho = F(sensitivity**2) / (2 * variance)
    built = channel(step, rho, epsilon)
    reach = window(built, epsilon)
    p, q = (line(g, variance, reach) for g in (radius, radius - sensitivity))
    drawn = line(0, built.mixing_variance, reach)
    with ctx.workprec(BITS):
        grow, gain = ball(epsilon).exp(), ball(epsilon).expm1()
        odds = max(float((p[z] - grow * q[z]) / (gain * drawn[z])) for z in range(1 - reach, reach))
    given = float(built.mixing_weight / (1 - built.mixing_weight))
    assert 0.98 * given < odds <= given
    less = replace(built, mixing_weight=built.mixing_weight * F(97, 100))
    laws = [output(less, [(g,)], [1], reach) for g in (radius, radius - sensitivity)]
    assert certainly_impure(laws[0], laws[1], epsilon)


@pytest.mark.parametrize(
    ("variance", "radius", "squared", "epsilon"), [(F(4), 1, 1, F(1)), (F(9), 2, 4, F(1))]
)
def test_one_step_in_the_plane_is_certainly_pure(
    variance: Fraction, radius: int, squared: int, epsilon: Fraction
) -> None:
    step = GaussianStep(
        dimension=2, variance=variance, radius=F(radius), sensitivity=F(math.isqrt(squared))
    )
    built = channel(step, F(squared) / (2 * variance), epsilon)
    reach = window(built, epsilon)
    span = range(-radius, radius + 1)
    centers = [g for g in itertools.product(span, repeat=2) if sum(x * x for x in g) <= radius**2]
    # by symmetry it is enough to start from one eighth of the plane, in both directions
    laws = {g: output(built, [g], [1], reach) for g in centers}
    seeds = [g for g in centers if 0 <= g[1] <= g[0]]
    count = 0
    for a, b in itertools.product(seeds, centers):
        if a != b and sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) <= squared:
            assert certainly_pure(laws[a], laws[b], epsilon)
            count += 1
    assert count >= 4


def test_two_adaptive_steps_are_certainly_pure() -> None:
    """A hidden rounded Gaussian h moves by 1; the last center depends on whether h is < 0, 0, > 0.

    No truncation of h is needed: its classes have exact probabilities. All 343 pairs of functions.
    """
    epsilon, hidden, last = F(1), F(4), F(4)
    step = GaussianStep(dimension=1, variance=last, radius=F(1), sensitivity=F(1))
    rho = F(1) / (2 * hidden) + F(1) / (2 * last)
    built = channel(step, rho, epsilon)
    assert built.proves(epsilon, ZCDP(rho))
    assert not built.proves(epsilon, ZCDP(rho * F(101, 100)))
    reach = window(built, epsilon)
    first = [list(gaussian_line(F(center), hidden, 1).values()) for center in (0, 1)]
    functions = list(itertools.product((-1, 0, 1), repeat=3))
    laws = [
        {g: output(built, [(c,) for c in g], classes, reach) for g in functions}
        for classes in first
    ]
    pairs = [
        (a, b)
        for a, b in itertools.product(functions, repeat=2)
        if all(abs(x - y) <= 1 for x, y in zip(a, b, strict=True))
    ]
    assert len(pairs) == 343
    assert all(certainly_pure(laws[0][a], laws[1][b], epsilon) for a, b in pairs)
    # a history that is left out of ρ is caught: the weight for the last step alone is too small
    short = channel(step, F(1) / (2 * last), epsilon)
    reach = window(short, epsilon)
    p, q = (
        output(short, [(c,) for c in g], classes, reach)
        for g, classes in (((-1, -1, 0), first[0]), ((0, 0, 1), first[1]))
    )
    assert certainly_impure(p, q, epsilon)


def test_a_claim_without_a_zcdp_cost_is_refused() -> None:
    step = GaussianStep(dimension=1, variance=F(4), radius=F(2), sensitivity=F(1))
    built = channel(step, F(1, 8), F(1))
    assert not built.proves(F(1), ZCDP(F(1, 4)))
    with pytest.raises(GuaranteeError):
        built.proves(F(1), ApproxDP(1, -40.0))
