"""Define channels that add noise to a vector and mix (Theorems K, B4, S2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import MAX_NATS, Mixing, Purifier, coarsened, mix
from zerodelta.errors import ParameterError, require
from zerodelta.exact.bits import BitSource, Integers
from zerodelta.exact.noise import rounded_gaussian, rounded_k_norm, rounded_uniform_plus_k_norm
from zerodelta.exact.rational import (
    Rational,
    as_positive,
    decimal_down,
    decimal_up,
)
from zerodelta.mechanisms.sum_noise import add_exactly
from zerodelta.privacy.claims import safe_end
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.mixing import KNormKernel, LaplaceCubeKernel, as_weight
from zerodelta.privacy.theorems.smoothing import (
    GaussianStep,
    best_mixing_variance,
    best_order,
    smoothing_slack,
)
from zerodelta.spaces import Ball, BallLattice, GridLattice
from zerodelta.spaces.space import read_exactly
from zerodelta.value import value

# -- K-norm noise on the answer, mixed with the same noise on a uniform point (Theorem K, B4) -----
# Everything is in lattice units: the answer is a lattice point y of a body Θ' centered at 0, and
# round(y + Z) or round(V + Z) is published, with V uniform in Θ' and Z K-norm noise. Because y is
# an integer vector, rounding the sum and rounding the noise are the same (theory R).

_CELLS = 8
"""Lattice points per noise scale in a plan, so that rounding is negligible. Chosen by hand."""


@value
class Body:
    """A lattice, and the norm ball Θ' = {‖x‖ <= radius} around its center that contains it.

    A grid needs an odd number of cells, so that its middle cell is the origin.
    """

    lattice: GridLattice | BallLattice

    def __post_init__(self) -> None:
        if isinstance(self.lattice, GridLattice):
            require(
                self.lattice.cells % 2,
                "cells",
                self.lattice.cells,
                expected="an odd number of cells",
                remedy="use one cell more: the middle cell is the center",
            )

    @property
    def norm(self) -> float:
        """The norm of the body: inf for a grid, that of the ball otherwise."""
        return math.inf if isinstance(self.lattice, GridLattice) else self.lattice.norm

    @property
    def radius(self) -> int:
        """An integer at least the norm of every lattice point, and at least 1."""
        if isinstance(self.lattice, GridLattice):
            return max(1, self.lattice.cells // 2)
        bound = self.lattice.bound
        return max(1, bound if self.norm == 1 else math.isqrt(max(bound - 1, 0)) + 1)

    def centered(self, value: Any) -> Integers:
        """Return the lattice point of a value, relative to the center."""
        integers = self.lattice.quantize(value)
        if isinstance(self.lattice, GridLattice):
            return integers - self.lattice.cells // 2
        return integers

    def points(self, centered: Integers) -> npt.NDArray[np.float64]:
        """Return the point of the space that centered integers stand for, projected onto it."""
        if isinstance(self.lattice, GridLattice):
            inside = np.clip(centered, -self.lattice.cells, self.lattice.cells)
            return self.lattice.points(inside + self.lattice.cells // 2)
        return self.lattice.points(centered)

    def displacement(self) -> float:
        """Return the approximate l2 distance of two random points of the space."""
        if isinstance(self.lattice, GridLattice):
            return self.lattice.box.diameter() / math.sqrt(6)
        return math.sqrt(2) * float(self.lattice.ball.radius)

    def rounded(self, length: float) -> float:
        """Return the rms error of noise of this length in lattice units, with its rounding."""
        return self.unit * math.hypot(length, math.sqrt(self.lattice.dimension / 12))

    @property
    def unit(self) -> float:
        """The l2 length of the diagonal of one lattice cell, divided by √d."""
        if isinstance(self.lattice, GridLattice):
            grid = self.lattice
            return grid.box.diameter() / grid.cells / math.sqrt(grid.dimension)
        return float(self.lattice.spacing)


@final
@dataclass(frozen=True, kw_only=True)
class KernelMix(Mixing):
    """K-norm noise on the answer, mixed with the same noise on a uniform point of the body.

    `noise_norm` is the body's own norm (Theorem K), or 1 on a grid: product Laplace noise in a
    cube, which is the paper's Algorithm 1 with the exact constant and no extra ε (B4). `scale` is
    in lattice units.

    Guarantee: ln M = d ln(eR/(d b)) for diameter R (Theorem K), or d ln(D/(b(1-e^(-D/b)))) for a
    cube of side D.

    Its forecast is that of a ball: plans weigh it against the nets of l2 balls.
    """

    body: Body
    noise_norm: float
    scale: Fraction
    word = "kernel"
    title = "K-norm noise, uniform point (K)"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        require(
            self.noise_norm == self.body.norm or (self.noise_norm, self.body.norm) == (1, math.inf),
            "noise_norm",
            self.noise_norm,
            expected=f"the body's norm {self.body.norm} (or 1 on a grid)",
            remedy="use the norm of the body",
        )

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the noisy answer, or a noisy uniform point, projected onto the space."""
        kept, drawn = noisy_pair(self.body, value, self.noise_norm, self.scale, bits)
        return self.body.points(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.body.lattice.dimension

    def kept_error(self) -> float:
        """Return E‖Z‖₂ (at most E‖Z‖ of its norm, times √d for linf) with the rounding."""
        d, scale = self.dimension, float(self.scale)
        length = {
            1.0: math.sqrt(2 * d) * scale,
            2.0: d * scale,
            math.inf: scale * math.sqrt(d * (d + 1) * (d + 2) / 3),
        }[float(self.noise_norm)]
        return self.body.rounded(length)

    def displacement(self) -> float:
        """Return the approximate distance of two random points of the space."""
        return self.body.displacement()

    def rounding(self, limit: float) -> float:
        """Return E‖Z‖ = d·b."""
        return self.dimension * self._scale(limit)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return ln M = d ln(eR/(d b)) with b the resolution."""
        d, widest = self.dimension, 2 * float(self._ball.radius) / self.dimension
        # at d nats the scale is R/d, where Theorem K ends
        return d * max(1.01, 1 + math.log(max(widest / resolution, 1.0)))

    def finest(self, limit: float, weight: Fraction) -> KernelMix:
        """Return the smallest noise scale within the limit, on a lattice 8 times finer.

        The scale keeps 6 nats less than `MAX_NATS`, room for the finer lattice.
        """
        ball, d = self._ball, self.dimension
        body = Body(lattice=ball.lattice(decimal_up(self._scale(limit) / _CELLS)))
        nats = min(limit / d, MAX_NATS - 6)
        return coarsened(
            decimal_up(2 * body.radius / d * math.exp(1 - nats)),
            limit,
            lambda b: replace(self, body=body, scale=b, mixing_weight=weight),
        )

    @property
    def _ball(self) -> Ball:
        """Return the ball the lattice covers; a grid of a box is refused."""
        lattice = self.body.lattice
        if isinstance(lattice, GridLattice):
            expected = "the lattice of a ball: no plan weighs this channel on a box"
            raise ParameterError("lattice", lattice, expected=expected, remedy="use GridMix there")
        return lattice.ball

    def _scale(self, limit: float) -> float:
        """Return the noise scale in the units of the ball, from ln M = d ln(eR/(d b))."""
        d = self.dimension
        return 2 * float(self._ball.radius) / d * math.exp(1 - min(limit / d, MAX_NATS - 6))

    @property
    def theorem(self) -> KNormKernel | LaplaceCubeKernel:
        """Theorem K; on a cube with Laplace noise, its exact form for the cube."""
        width, d = 2 * self.body.radius, self.dimension
        if self.noise_norm == self.body.norm:
            return KNormKernel(
                dimension=d, diameter=Fraction(width), scale=self.scale, weight=self.mixing_weight
            )
        return LaplaceCubeKernel(
            dimension=d, side=Fraction(width), scale=self.scale, weight=self.mixing_weight
        )


def noisy_pair(
    body: Body, value: Any, noise_norm: float, scale: Fraction, bits: BitSource
) -> tuple[Integers, Integers]:
    """Return round(y + Z) and, independently, round(V + Z), V uniform in the body."""
    dimension = body.lattice.dimension
    noise = rounded_k_norm(norm=noise_norm, dimension=dimension, scale=scale, size=1, bits=bits)
    drawn = rounded_uniform_plus_k_norm(
        ball_norm=body.norm,
        radius=body.radius,
        noise_norm=noise_norm,
        scale=scale,
        dimension=dimension,
        size=1,
        bits=bits,
    )
    return add_exactly(body.centered(value), noise[0]), drawn[0]


_SMOOTH_CELLS = 16
"""Lattice points per σ in a plan, at least: rounding then adds 0.02 % to the noise."""

# In a plan the internal mechanism is one vector of an l2 ball plus N(0, σ²I). The weight enters
# S2's condition only through ln(w/(1-w)), so every σ has one smallest weight: only σ is searched.

_MAX_SLACK = math.log(1e8)
"""The weight is reduced by at most eight decades, as for every other channel."""

_FARTHEST = 2.0**40
"""The largest ratio of noise and ball radius, in either direction, that a plan considers."""

_FARTHEST_DRAW = 1 << 500
"""Draws are clipped to this: a float would overflow, and they project to the edge anyway."""


@value
class SmoothMix(Purifier):
    """The raw last Gaussian vector, or with probability w a wider Gaussian on the same lattice.

    `step_taken` describes the last step in lattice units around the center of `space`; one unit is
    `spacing`. The published point is projected onto `space` (post-processing). `apply` takes the
    step's integers; `on_lattice` computes them from a raw vector.

    Guarantee: pure t-DP by Corollary S2 with rounded continuous noise (R(iv)); the base's zCDP cost
    ρ must include the last step. The value must be that step's *unprojected* output.
    Error: w times the width of the mixing Gaussian.
    """

    space: Ball
    step_taken: GaussianStep
    spacing: Fraction
    mixing_weight: Fraction
    order: Fraction
    mixing_variance: Fraction
    status: Status = Status.ASSERTED
    """Proven only where the value certainly is the output of the described step."""
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
        """Return S2 with the smallest predicted error; None if no σ that is tried proves ε."""

        def channel(sigma: float, weight: Fraction) -> SmoothMix:
            return _smoothed(ball, sensitivity, sigma, weight, epsilon)

        def shortage(sigma: float, weight: Fraction) -> float:
            built = channel(sigma, weight)
            return -built.slack(epsilon, built.step_taken.rho)

        def smallest_weight(sigma: float) -> Fraction:
            """Return the weight at which the condition is tight, rounded up to three digits."""
            slack = min(max(-shortage(sigma, mixing_probability), 0.0), _MAX_SLACK)
            odds = float(mixing_probability / (1 - mixing_probability)) * math.exp(-slack)
            return min(decimal_up(odds / (1 + odds), 3), mixing_probability)

        def error(log_sigma: float) -> float:
            sigma = math.exp(log_sigma)
            return channel(sigma, smallest_weight(sigma)).predicted_error()

        smallest = _smallest_sigma(
            lambda sigma: shortage(sigma, mixing_probability), ball, sensitivity
        )
        if smallest is None:
            return None
        # with growing σ noise grows and the weight falls: the best σ is at most a few times larger
        start = math.log(smallest)
        sigma = math.exp(minimum_point(error, start, start + 1.5, rounds=20))
        # the weight was rounded up, so a little less noise proves ε with it
        weight = smallest_weight(sigma)
        safe = sigma
        while shortage(safe, weight) > 0:
            safe *= 1.01
        sigma = safe_end(
            lambda value: shortage(value, weight), safe=safe, unsafe=sigma / 2, relative=1e-7
        )
        return channel(sigma, weight)

    def slack(self, epsilon: Rational, rho: Rational) -> float:
        """Return the slack of S2's condition in nats, rounded down; it holds if this is >= 0."""
        return smoothing_slack(
            self.step_taken,
            rho=rho,
            order=self.order,
            mixing_variance=self.mixing_variance,
            weight=self.mixing_weight,
            epsilon=epsilon,
        )

    def on_lattice(self, raw: Any) -> Integers:
        """Return a raw vector, in the units of the space, rounded to whole lattice units.

        The mixing draw is a rounded Gaussian, so the vector must be rounded exactly too (Lemma R):
        ⌊x + 1/2⌋ in rational arithmetic. Anything that is not such a vector becomes zeros.
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
        """Return the point of the space for the vector, or for a mixing draw."""
        dimension = self.step_taken.dimension
        kept = _integer_vector(value, dimension)
        drawn = rounded_gaussian(variance=self.mixing_variance, size=dimension, bits=bits)
        # one dtype for both, so that the code after the coin is the same for either
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
        """Return the approximate ln of the largest density ratio of the vector to a mixing draw."""
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
    """Return the integer vector; zeros for anything else, because a value may not raise."""
    try:
        array = np.asarray(value) if isinstance(value, (np.ndarray, list, tuple)) else np.zeros(0)
        all_integers = array.dtype.kind in "iu" or (
            array.dtype == object and all(type(entry) is int for entry in array)
        )
        if array.shape == (dimension,) and all_integers:
            return array
    except BaseException:  # an exception is an output (A14.4)
        pass
    return np.zeros(dimension, dtype=np.int64)


def _smoothed(
    ball: Ball, sensitivity: Fraction, sigma: float, weight: Fraction, epsilon: Fraction
) -> SmoothMix:
    """Return S2 for a vector with noise of standard deviation σ, whose square is rounded up."""
    spacing = decimal_down(sigma / _SMOOTH_CELLS, 1)
    step = GaussianStep(
        dimension=ball.dimension,
        variance=decimal_up(sigma * sigma) / spacing**2,
        radius=ball.radius / spacing,
        sensitivity=sensitivity / spacing,
    )
    return SmoothMix.best(ball, step, rho=step.rho, epsilon=epsilon, weight=weight, spacing=spacing)


def _smallest_sigma(
    shortage: Callable[[float], float], ball: Ball, sensitivity: Fraction
) -> float | None:
    """Return the smallest σ, up to 0.1 %, at which the largest weight is enough."""
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


def minimum_point(
    function: Callable[[float], float], low: float, high: float, *, rounds: int
) -> float:
    """Return the minimum point of a function with one valley, by golden-section search.

    >>> round(minimum_point(lambda x: (x - 2) ** 2, 0, 9, rounds=40), 6)
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
