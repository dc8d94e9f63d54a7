"""The theorems' inequalities against 80-digit arithmetic: right side of the truth, and close."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from privacy.profiles import real
from zerodelta.errors import ParameterError
from zerodelta.privacy.theorems.mixing import (
    GaussianNet,
    GridMixing,
    KNormKernel,
    LaplaceCubeKernel,
    LaplaceNet,
    LocalUniformKernel,
    MixingTheorem,
    PriorMixing,
    UniformMixing,
    as_weight,
    largest_log_delta,
    smallest_weight,
)
from zerodelta.privacy.theorems.smoothing import (
    GaussianStep,
    best_mixing_variance,
    best_order,
    log_transport_radius,
    numerical_error_epsilon,
    product_laplace_radius,
    smoothing_slack,
)

ROUNDS = 300
CENT = Fraction(1, 100)


@pytest.fixture(autouse=True)
def _eighty_digits() -> Iterator[None]:
    with mp.workdps(80):
        yield


def rational(draw: random.Random, low: float, high: float) -> Fraction:
    """Draw a rational between powers of ten."""
    return Fraction(10 ** draw.uniform(low, high)).limit_denominator(10 ** draw.randint(3, 30))


def weight_of(draw: random.Random) -> Fraction:
    return min(rational(draw, -20, -0.01) + Fraction(1, 10**25), Fraction(999, 1000))


def close_above(value: float, exact: mpf) -> bool:
    """Tell whether the float is at least the exact number, and the next float or so."""
    return bool(mpf(value) >= exact and mpf(value) - exact <= abs(exact) * mpf(2) ** -51)


def close_below(value: float, exact: mpf, size: mpf) -> bool:
    return bool(mpf(value) <= exact and exact - mpf(value) <= abs(size) * mpf(2) ** -51)


def log_odds(weight: Fraction) -> mpf:
    return mp.log(real(weight / (1 - weight)))


# Mixing.


def mass(kind: type[MixingTheorem], **numbers: Any) -> float:
    """Return the mass ratio of a theorem, which is the same for every weight."""
    return kind(**numbers, weight=CENT).log_mass


Pair = tuple[float, mpf]
"""A float of the library, and the number it stands for."""


def _uniform(draw: random.Random) -> Pair:
    size = draw.getrandbits(draw.randint(1, 900)) + 1
    return mass(UniformMixing, size=size), mp.log(size)


def _prior(draw: random.Random) -> Pair:
    q = weight_of(draw)
    return mass(PriorMixing, smallest_probability=q, size=1), -mp.log(real(q))


def _grid(draw: random.Random) -> Pair:
    k, d = draw.getrandbits(50) + 1, draw.randint(1, 10**6)
    return mass(GridMixing, cells=k, dimension=d), d * mp.log(k)


def _gaussian(draw: random.Random) -> Pair:
    d, b, v = draw.randint(1, 10**5), draw.getrandbits(60), rational(draw, -2, 12) + 1
    exact = mpf(d) / 2 * mp.log(2 * mp.pi * real(v)) + (b + mpf(d) / 12) / (2 * real(v))
    return mass(GaussianNet, dimension=d, bound=b, variance=v), exact


def _laplace(draw: random.Random) -> Pair:
    d, m, b = draw.randint(1, 10**5), draw.getrandbits(40), rational(draw, -1, 9) + CENT
    exact = m / real(b) - d * mp.log(1 - mp.exp(-1 / (2 * real(b))))
    return mass(LaplaceNet, dimension=d, bound=m, scale=b), exact


def _kernel(draw: random.Random) -> Pair:
    d, width, b = _body(draw)
    exact = d * (1 + mp.log(real(width) / (d * real(b))))
    return mass(KNormKernel, dimension=d, diameter=width, scale=b), exact


def _cube(draw: random.Random) -> Pair:
    d, side, b = _body(draw)
    ratio = real(side) / real(b)
    return mass(LaplaceCubeKernel, dimension=d, side=side, scale=b), d * mp.log(
        ratio / (1 - mp.exp(-ratio))
    )


def _window(draw: random.Random) -> Pair:
    d, k, m = draw.randint(1, 10**6), draw.getrandbits(50), draw.getrandbits(20) + 1
    return mass(LocalUniformKernel, cells=k + m, kernel_cells=m, dimension=d), d * mp.log(
        mpf(k + m) / m
    )


def _body(draw: random.Random) -> tuple[int, Fraction, Fraction]:
    dimension, diameter = draw.randint(1, 10**5), rational(draw, -3, 6) + Fraction(1, 10**4)
    return dimension, diameter, diameter / dimension * weight_of(draw)


MASSES = (_uniform, _prior, _grid, _gaussian, _laplace, _kernel, _cube, _window)


@pytest.mark.parametrize("pair", MASSES)
def test_every_mass_ratio_is_rounded_up_to_the_next_float(
    pair: Callable[[random.Random], Pair],
) -> None:
    draw = random.Random(pair.__name__)
    for _ in range(ROUNDS):
        value, exact = pair(draw)
        assert close_above(value, exact), (value, exact)


def test_a_single_point_and_a_full_window_need_no_nats() -> None:
    assert mass(UniformMixing, size=1) == 0
    assert mass(GridMixing, cells=1, dimension=7) == 0
    assert mass(LocalUniformKernel, cells=9, kernel_cells=9, dimension=5) == 0


def test_gaussian_net_mass_covers_every_point_of_small_nets() -> None:
    for dimension, bound, variance in itertools.product(
        (1, 2, 3), (0, 1, 5, 9), (Fraction(1), Fraction(3), Fraction(1, 2))
    ):
        claimed = mpf(mass(GaussianNet, dimension=dimension, bound=bound, variance=variance))
        sigma = mp.sqrt(real(variance))
        reach = math.isqrt(bound)
        pmf = {
            k: mp.ncdf((k + mpf(1) / 2) / sigma) - mp.ncdf((k - mpf(1) / 2) / sigma)
            for k in range(-reach, reach + 1)
        }
        for point in itertools.product(pmf, repeat=dimension):
            if sum(k * k for k in point) <= bound:
                assert -sum(mp.log(pmf[k]) for k in point) <= claimed


def test_laplace_net_mass_covers_every_point_of_small_nets() -> None:
    for dimension, bound, scale in itertools.product(
        (1, 2, 3), (0, 1, 4), (Fraction(1), Fraction(3), Fraction(1, 2))
    ):
        claimed = mpf(mass(LaplaceNet, dimension=dimension, bound=bound, scale=scale))
        b = real(scale)
        pmf = {
            k: mp.sinh(1 / (2 * b)) * mp.exp(-abs(k) / b) if k else 1 - mp.exp(-1 / (2 * b))
            for k in range(-bound, bound + 1)
        }
        for point in itertools.product(pmf, repeat=dimension):
            if sum(map(abs, point)) <= bound:
                assert -sum(mp.log(pmf[k]) for k in point) <= claimed


def test_what_delta_may_be_is_never_overstated_and_loses_nothing() -> None:
    draw = random.Random("largest log delta")
    for _ in range(ROUNDS):
        epsilon, weight = rational(draw, -8, 2.5) + Fraction(1, 10**9), weight_of(draw)
        log_mass = draw.choice([0.0, draw.uniform(0, 50), draw.uniform(0, 1e6)])
        parts = (log_odds(weight), mp.log(mp.expm1(real(epsilon))), mpf(log_mass))
        exact = parts[0] + parts[1] - parts[2]
        value = largest_log_delta(epsilon=epsilon, weight=weight, log_mass=log_mass)
        assert close_below(value, exact, exact)


def test_the_smallest_weight_meets_the_condition_and_a_smaller_one_does_not() -> None:
    draw = random.Random("smallest weight")
    for _ in range(ROUNDS):
        epsilon = rational(draw, -4, 1.5) + Fraction(1, 10**6)
        log_mass = draw.uniform(0, 10 ** draw.uniform(0, 5))
        log_delta = -log_mass - draw.uniform(0, 600)
        weight = smallest_weight(epsilon=epsilon, log_delta=log_delta, log_mass=log_mass)
        assert weight < 1 or log_delta + log_mass - float(mp.log(mp.expm1(real(epsilon)))) > 20
        if weight == 1:
            continue
        needed = mpf(log_delta) + mpf(log_mass) - mp.log(mp.expm1(real(epsilon)))
        assert log_odds(weight) >= needed
        # what the certificate is judged by holds too, in floats rounded against us
        assert largest_log_delta(epsilon=epsilon, weight=weight, log_mass=log_mass) >= log_delta
        slack = mpf(10) ** -8 + mpf(2) ** -48 * (abs(log_delta) + log_mass)
        assert log_odds(weight) - needed <= slack * (1 + 1 / (1 - real(weight)))


def test_no_weight_is_too_small_to_be_written() -> None:
    for log_delta in (-1e4, -1e6):
        weight = smallest_weight(epsilon=1, log_delta=log_delta, log_mass=1.0)
        assert 0 < weight < Fraction(1, 10**300)
        assert largest_log_delta(epsilon=1, weight=weight, log_mass=1.0) >= log_delta


# Smoothing.


def slack_of(
    step: GaussianStep, rho: Fraction, order: Fraction, tau: Fraction, w: Fraction, t: Fraction
) -> tuple[mpf, mpf]:
    """Return S2's right side less its left side, and the size of the largest part of it."""
    a, d = real(order), step.dimension
    v, sigma = real(tau - step.variance), real(step.variance)
    parts = [
        log_odds(w),
        mp.log(mp.expm1(real(t))),
        -((a - 1) * mp.log(a - 1) - a * mp.log(a)),
        -(a - 1) * (a * real(rho) - real(t)),
        -mpf(d) / 2 * mp.log(real(tau) / sigma),
        -((real(step.radius) + (a - 1) * real(step.sensitivity)) ** 2) / (2 * v),
    ]
    return mp.fsum(parts), max(map(abs, parts))


def random_step(draw: random.Random) -> GaussianStep:
    return GaussianStep(
        dimension=draw.randint(1, 10 ** draw.randint(0, 5)),
        variance=rational(draw, 0, 6) + 1,
        radius=rational(draw, 0, 6) + 1,
        sensitivity=rational(draw, -2, 2) + Fraction(1, 1000),
    )


def test_smoothing_slack_is_rounded_down_to_the_next_float() -> None:
    draw = random.Random("slack")
    for _ in range(ROUNDS):
        step = random_step(draw)
        order, rho = (
            1 + rational(draw, -3, 4) + Fraction(1, 10**5),
            step.rho + rational(draw, -6, 1),
        )
        tau = step.variance * (1 + rational(draw, -2, 4) + CENT)
        weight, epsilon = weight_of(draw), rational(draw, -3, 1) + CENT
        value = smoothing_slack(
            step, rho=rho, order=order, mixing_variance=tau, weight=weight, epsilon=epsilon
        )
        exact, _ = slack_of(step, rho, order, tau, weight, epsilon)
        assert close_below(value, exact, exact)


def test_the_best_mixing_variance_is_where_the_slack_is_largest() -> None:
    draw = random.Random("variance")
    for _ in range(100):
        step, order = random_step(draw), 1 + rational(draw, -1, 3) + CENT
        best = best_mixing_variance(step, order)
        extra = best - step.variance
        assert extra > 0
        others = [step.variance + extra * Fraction(factor) for factor in ("0.9", "1.1", "1/4", 4)]
        top, size = slack_of(step, CENT, order, best, CENT, Fraction(1))
        for other in others:
            assert slack_of(step, CENT, order, other, CENT, Fraction(1))[0] <= top + size / 10**9


def test_the_best_order_is_nearly_best() -> None:
    draw = random.Random("order")
    for _ in range(40):
        epsilon = rational(draw, -1, 0.5) + CENT
        rho = epsilon * (rational(draw, -6, -1) + Fraction(1, 10**6))
        step = GaussianStep(
            dimension=draw.randint(1, 10),
            variance=Fraction(10**8),  # the last step is the larger part of ρ
            radius=rational(draw, 3, 5),
            sensitivity=Fraction(int(mp.floor(mp.sqrt(real(rho)) * 10**4)), 1) + CENT,
        )
        best = best_order(step, rho=rho, epsilon=epsilon)
        assert best > 1

        def slack(
            order: Fraction,
            step: GaussianStep = step,
            rho: Fraction = rho,
            epsilon: Fraction = epsilon,
        ) -> mpf:
            return slack_of(step, rho, order, best_mixing_variance(step, order), CENT, epsilon)[0]

        top = slack(best)
        for factor in ("1/100", "1/3", "0.8", "0.95", "1.05", "1.25", 3, 100):
            other = 1 + (best - 1) * Fraction(factor)
            assert slack(other) <= top + abs(top) / 10**6


# Transport.


def test_numerical_error_costs_exactly_twice_the_error_per_scale() -> None:
    assert numerical_error_epsilon(error="1/7", scale="3/5") == Fraction(10, 21)
    assert numerical_error_epsilon(error=0, scale=1) == 0


@pytest.mark.parametrize("norm", [1, 2, 3, math.inf])
def test_the_transport_radius_is_rounded_up_and_capped_by_the_diameter(norm: float) -> None:
    draw = random.Random(f"transport {norm}")
    capped = 0
    for _ in range(ROUNDS):
        d, width = draw.randint(1, 10 ** draw.randint(0, 5)), rational(draw, -3, 3) + CENT
        weight, epsilon = weight_of(draw), rational(draw, -3, 1)
        log_delta = draw.choice([-1.0, -draw.uniform(0, 100), -draw.uniform(0, 1e6)])
        shrink = (
            mp.log(real((1 - weight) / weight)) - mp.log(1 + mp.exp(real(epsilon))) + mpf(log_delta)
        ) / d
        capped += shrink > 0
        exact = mp.log(real(width)) + min(shrink, mpf(0))
        value = log_transport_radius(
            dimension=d, diameter=width, weight=weight, epsilon=epsilon, log_delta=log_delta
        )
        assert close_above(value, exact)
        power = mpf(1) if norm == math.inf else 1 - 1 / mpf(norm)
        in_one = product_laplace_radius(dimension=d, norm=norm, log_radius=value)
        assert close_above(in_one, mpf(value) + power * mp.log(d))
    assert 0 < capped < ROUNDS


# Malformed input.

STEP = GaussianStep(dimension=2, variance=Fraction(4), radius=Fraction(9), sensitivity=Fraction(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: as_weight(0),
        lambda: as_weight(1),
        lambda: mass(KNormKernel, dimension=2, diameter=Fraction(2), scale=Fraction("1.01")),
        lambda: mass(LocalUniformKernel, cells=3, kernel_cells=4, dimension=1),
        lambda: mass(PriorMixing, smallest_probability=Fraction(3, 2), size=1),
        lambda: mass(PriorMixing, smallest_probability=Fraction("0.51"), size=2),
        lambda: product_laplace_radius(dimension=2, norm=0.5, log_radius=0.0),
        lambda: numerical_error_epsilon(error=1, scale=0),
        lambda: smoothing_slack(
            STEP, rho=1, order=1, mixing_variance=9, weight=CENT, epsilon=1
        ),
        lambda: smoothing_slack(
            STEP, rho=1, order=2, mixing_variance=4, weight=CENT, epsilon=1
        ),
        lambda: smoothing_slack(
            STEP, rho="0.1249", order=2, mixing_variance=9, weight=CENT, epsilon=1
        ),
        lambda: smoothing_slack(
            STEP, rho=1, order=2, mixing_variance=9, weight=CENT, epsilon=0
        ),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError):
        call()
