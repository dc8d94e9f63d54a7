"""Theorem S in a plan: the least noise and weight with which a raw Gaussian vector is published.

The hidden mechanism is one vector of an l2 ball plus N(0, σ²I). The weight enters S2's condition
through ln(w/(1-w)) alone, so every σ has one smallest weight, and only σ is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from zerodelta.channels.candidate import Candidate, Target, decimal_down, decimal_up
from zerodelta.channels.smooth import SmoothMix
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.privacy.threshold import safe_end
from zerodelta.spaces import Ball

__all__ = ["smooth_candidate"]

_CELLS = 16
"""Lattice points per σ, at least: rounding then adds 0.02 % to the noise."""

_MOST_SLACK = math.log(1e8)
"""The weight is reduced by eight decades at most, like every other channel's."""

_FARTHEST = 2.0**40
"""Noise this much larger or smaller than the ball is no plan, and floats could not carry it."""


def smooth_candidate(ball: Ball, target: Target) -> Candidate | None:
    """Return S2 with the least predicted error; None if no noise within reason proves ε."""
    if target.sensitivity is None:
        return None
    moved = target.sensitivity

    def channel(sigma: float, weight: Fraction) -> SmoothMix:
        return _smoothed(ball, moved, sigma, weight, target.epsilon)

    def shortage(sigma: float, weight: Fraction) -> float:
        built = channel(sigma, weight)
        return -built.slack(target.epsilon, built.step_taken.rho)

    def error(sigma: float) -> float:
        weight = _smallest_weight(
            target.mixing_probability, -shortage(sigma, target.mixing_probability)
        )
        return _predicted_error(channel(sigma, weight))

    least = _smallest_sigma(lambda sigma: shortage(sigma, target.mixing_probability), ball, moved)
    if least is None:
        return None
    sigma = _best_sigma(error, least)
    weight = _smallest_weight(
        target.mixing_probability, -shortage(sigma, target.mixing_probability)
    )
    sigma = safe_end(
        lambda value: shortage(value, weight),
        safe=_first_safe(lambda value: shortage(value, weight), sigma),
        unsafe=sigma / 2,
        relative=1e-7,
    )
    built = channel(sigma, weight)
    step = built.step_taken
    growth = float(built.mixing_variance / step.variance)
    reach = float(step.reach(built.order) ** 2 / (2 * (built.mixing_variance - step.variance)))
    return Candidate(
        channel="smooth",
        name="raw vector, wider Gaussian (S2)",
        weight=weight,
        budget=step.dimension / 2 * math.log(growth) + reach,
        error=_predicted_error(built),
        build=lambda: built,
        reservation="the value must be the raw, unprojected Gaussian vector",
    )


def _predicted_error(channel: SmoothMix) -> float:
    """Return the rms of the noise and its rounding, plus what mixing adds."""
    step = channel.step_taken
    variance = float(step.variance * channel.spacing**2 + channel.spacing**2 / 12)
    return math.sqrt(step.dimension * variance) + channel.expected_error()


def _smoothed(
    ball: Ball, moved: Fraction, sigma: float, weight: Fraction, epsilon: Fraction
) -> SmoothMix:
    """Return S2 for a variance that is σ² rounded up to seven digits."""
    spacing = decimal_down(sigma / _CELLS, 1)
    step = GaussianStep(
        dimension=ball.dimension,
        variance=decimal_up(sigma * sigma) / spacing**2,
        radius=ball.radius / spacing,
        sensitivity=moved / spacing,
    )
    return SmoothMix.best(ball, step, rho=step.rho, epsilon=epsilon, weight=weight, spacing=spacing)


def _smallest_weight(mixing_probability: Fraction, slack: float) -> Fraction:
    """Return the weight that uses up what is left at the largest one, to three digits, upwards."""
    odds = float(mixing_probability / (1 - mixing_probability)) * math.exp(
        -min(max(slack, 0.0), _MOST_SLACK)
    )
    return min(decimal_up(odds / (1 + odds), 3), mixing_probability)


def _smallest_sigma(
    shortage: Callable[[float], float], ball: Ball, moved: Fraction
) -> float | None:
    """Return the smallest σ, to a thousandth, at which the largest weight is enough."""
    radius = float(ball.radius)
    low, high = radius / _FARTHEST, radius * _FARTHEST
    start = min(max(float(moved), low), high)
    safe = start
    while shortage(safe) > 0:
        safe *= 2
        if safe > high:
            return None
    unsafe = safe / 2
    while shortage(unsafe) <= 0:
        safe, unsafe = unsafe, unsafe / 2
        if unsafe < low:
            return None
    return safe_end(shortage, safe=safe, unsafe=unsafe, relative=1e-3)


def _best_sigma(error: Callable[[float], float], least: float) -> float:
    """Golden-section search: mixing falls and noise grows with σ, from the least on."""
    low, high = math.log(least), math.log(least) + 1.5
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(20):
        reach = (high - low) * ratio
        left, right = high - reach, low + reach
        low, high = (low, right) if error(math.exp(left)) < error(math.exp(right)) else (left, high)
    return math.exp((low + high) / 2)


def _first_safe(shortage: Callable[[float], float], sigma: float) -> float:
    while shortage(sigma) > 0:
        sigma *= 1.01
    return sigma
