"""Theorem S2: publish the last Gaussian vector itself, mixed with a wider Gaussian; no grid.

In a plan the internal mechanism is one vector of an l2 ball plus N(0, σ²I). The weight enters S2's
condition through ln(w/(1-w)) alone, so every σ has one smallest weight, and only σ is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier, mix
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Integers
from zerodelta.exact.noise import rounded_gaussian
from zerodelta.exact.rational import Rational, as_positive, decimal_down, decimal_up
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.smoothing import (
    GaussianStep,
    best_mixing_variance,
    best_order,
    smoothing_slack,
)
from zerodelta.privacy.threshold import safe_end
from zerodelta.spaces import Ball
from zerodelta.spaces.reading import read_exactly

_CELLS = 16
"""Lattice points per σ in a plan, at least: rounding then adds 0.02 % to the noise."""

_MOST_SLACK = math.log(1e8)
"""The weight is reduced by eight decades at most, like every other channel's."""

_FARTHEST = 2.0**40
"""Noise this much larger or smaller than the ball is no plan, and floats could not carry it."""

_FARTHEST_DRAW = 1 << 500
"""Beyond this a float overflows, and the draw lands on the edge of the ball anyway."""


@final
@dataclass(frozen=True, kw_only=True)
class SmoothMix(Purifier):
    """The raw last Gaussian vector, or with probability w a wider Gaussian on the same lattice.

    `step_taken` describes the last step in lattice units around the center of `space`; `spacing`
    turns them into the units of `space`, onto which the published point is projected
    (post-processing). `apply` takes the step's integers, `on_lattice` makes them of a raw vector.

    Guarantee: pure t-DP by Corollary S2 with rounded continuous noise (R(iv)); the base's zCDP cost
    ρ must include the last step. The value handed in must be that step's *unprojected* output.
    Error: w times the width of the mixing Gaussian.
    """

    space: Ball
    step_taken: GaussianStep
    spacing: Fraction
    mixing_weight: Fraction
    order: Fraction
    mixing_variance: Fraction
    status: Status = Status.ASSERTED
    """Proven only where the value handed in surely is the described step's own output."""
    word = "smooth"
    title = "raw vector, wider Gaussian (S2)"
    reservation = "the value must be the raw, unprojected Gaussian vector"

    def __post_init__(self) -> None:
        require(
            self.space.dimension == self.step_taken.dimension,
            "space",
            self.space,
            expected=f"dimension {self.step_taken.dimension}, that of the last step",
            remedy="publish on a space of the vector's own dimension",
        )
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        object.__setattr__(self, "spacing", as_positive(self.spacing, "spacing"))

    @staticmethod
    def best(
        space: Ball,
        step: GaussianStep,
        *,
        rho: Rational,
        epsilon: Rational,
        weight: Rational,
        spacing: Rational,
    ) -> SmoothMix:
        """Return the channel with the nearly optimal order and mixing variance."""
        order = best_order(step, rho=rho, epsilon=epsilon)
        return SmoothMix(
            space=space,
            step_taken=step,
            spacing=as_positive(spacing, "spacing"),
            mixing_weight=as_weight(weight),
            order=order,
            mixing_variance=best_mixing_variance(step, order),
        )

    @staticmethod
    def planned(
        ball: Ball, *, sensitivity: Fraction, epsilon: Fraction, mixing_probability: Fraction
    ) -> SmoothMix | None:
        """Return S2 with the least predicted error; None if no noise within reason proves ε."""

        def channel(sigma: float, weight: Fraction) -> SmoothMix:
            return _smoothed(ball, sensitivity, sigma, weight, epsilon)

        def shortage(sigma: float, weight: Fraction) -> float:
            built = channel(sigma, weight)
            return -built.slack(epsilon, built.step_taken.rho)

        def smallest_weight(sigma: float) -> Fraction:
            """Return the weight that uses up what is left at the largest one, to three digits."""
            left = min(max(-shortage(sigma, mixing_probability), 0.0), _MOST_SLACK)
            odds = float(mixing_probability / (1 - mixing_probability)) * math.exp(-left)
            return min(decimal_up(odds / (1 + odds), 3), mixing_probability)

        def error(log_sigma: float) -> float:
            sigma = math.exp(log_sigma)
            return channel(sigma, smallest_weight(sigma)).predicted_error()

        least = _smallest_sigma(
            lambda sigma: shortage(sigma, mixing_probability), ball, sensitivity
        )
        if least is None:
            return None
        # mixing falls and noise grows with σ, from the least on
        sigma = math.exp(least_point(error, math.log(least), math.log(least) + 1.5, rounds=20))
        weight = smallest_weight(sigma)
        safe = sigma
        while shortage(safe, weight) > 0:
            safe *= 1.01
        sigma = safe_end(
            lambda value: shortage(value, weight), safe=safe, unsafe=sigma / 2, relative=1e-7
        )
        return channel(sigma, weight)

    def slack(self, epsilon: Rational, rho: Rational) -> float:
        """Return by how many nats the condition holds, rounded down."""
        return smoothing_slack(
            self.step_taken,
            rho=rho,
            order=self.order,
            mixing_variance=self.mixing_variance,
            weight=self.mixing_weight,
            epsilon=epsilon,
        )

    def on_lattice(self, raw: Any) -> Integers:
        """Return a raw vector, in the units of the space, in whole lattice units.

        The mixing draw is a rounded Gaussian, so the vector must be rounded as exactly (Lemma R):
        round(x) = ⌊x + 1/2⌋ on the rationals that its numbers are. Anything else becomes zeros.
        """
        dimension = self.step_taken.dimension
        vector = read_exactly(raw, dimension)
        if vector is None:
            return np.zeros(dimension, dtype=np.int64)
        center, half = self.space.center.exact(), Fraction(1, 2)
        centers = center * (dimension // len(center))
        units = ((x - c) / self.spacing for x, c in zip(vector, centers, strict=True))
        return np.array([math.floor(unit + half) for unit in units], dtype=object)

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the point of the space that belongs to the vector, or to a mixing draw."""
        dimension = self.step_taken.dimension
        kept = _integer_vector(value, dimension)
        drawn = rounded_gaussian(variance=self.mixing_variance, size=dimension, bits=bits)
        # of one type, so that whichever it is meets the same code
        either = (kept.astype(object), drawn.astype(object))
        chosen = np.clip(mix(*either, self.mixing_weight, bits), -_FARTHEST_DRAW, _FARTHEST_DRAW)
        offset = chosen.astype(np.float64) * float(self.spacing)
        return np.asarray(self.space.project(self.space.middle() + offset))

    def expected_error(self) -> float:
        """Return w · √(d (τ² + σ²)), in the units of the space."""
        spread = self.step_taken.dimension * (self.mixing_variance + self.step_taken.variance)
        return float(self.mixing_weight * self.spacing) * math.sqrt(spread)

    def predicted_error(self) -> float:
        """Return the rms of the vector's own noise and its rounding, plus what mixing adds."""
        last, squared = self.step_taken, self.spacing**2
        variance = float(last.variance * squared + squared / 12)
        return math.sqrt(last.dimension * variance) + self.expected_error()

    def log_ratio(self) -> float:
        """Return about ln of the largest ratio of the vector's density to the mixing draw's."""
        last = self.step_taken
        growth = float(self.mixing_variance / last.variance)
        reach = last.reach(self.order) ** 2 / (2 * (self.mixing_variance - last.variance))
        return last.dimension / 2 * math.log(growth) + float(reach)

    def step(self) -> Step:
        """Return S2 with its numbers."""
        return Step(
            theorem="gaussian-smoothing",
            status=self.status,
            numbers={
                "dimension": self.step_taken.dimension,
                "variance": self.step_taken.variance,
                "radius": self.step_taken.radius,
                "sensitivity": self.step_taken.sensitivity,
                "order": self.order,
                "mixing_variance": self.mixing_variance,
                "weight": self.mixing_weight,
            },
        )


def _integer_vector(value: Any, dimension: int) -> Integers:
    """Return the integer vector, or zeros for anything that is not one (values never raise)."""
    try:
        array = np.asarray(value) if isinstance(value, (np.ndarray, list, tuple)) else np.zeros(0)
        whole = array.dtype.kind in "iu" or (
            array.dtype == object and all(type(entry) is int for entry in array)
        )
        if array.shape == (dimension,) and whole:
            return array
    except BaseException:  # an exception is an output (A14.4)
        pass
    return np.zeros(dimension, dtype=np.int64)


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


def _smallest_sigma(
    shortage: Callable[[float], float], ball: Ball, sensitivity: Fraction
) -> float | None:
    """Return the smallest σ, to a thousandth, at which the largest weight is enough."""
    radius = float(ball.radius)
    low, high = radius / _FARTHEST, radius * _FARTHEST
    safe = min(max(float(sensitivity), low), high)
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


def least_point(
    function: Callable[[float], float], low: float, high: float, *, rounds: int
) -> float:
    """Return where a function with one valley is least: golden-section search.

    >>> round(least_point(lambda x: (x - 2) ** 2, 0, 9, rounds=40), 6)
    2.0
    """
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - (high - low) * ratio, low + (high - low) * ratio
    at_left, at_right = function(left), function(right)
    for _ in range(rounds):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - (high - low) * ratio
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + (high - low) * ratio
            at_right = function(right)
    return left if at_left < at_right else right
