"""l2 and l1 balls on a lattice, mixed with public noise on the same lattice (B2 with R(v), R(vi)).

The answer is rounded to the lattice, with membership decided in integers, and with probability w
replaced: by rounded Gaussian noise on an l2 ball, by rounded Laplace noise on an l1 ball. The draw
may lie outside the ball: it is projected, which is post-processing. No extra ε; the error is the
rounding plus w times the size of the ball.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import MOST_NATS, Mixing, coarsened, mix
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Integers
from zerodelta.exact.noise import rounded_gaussian, rounded_laplace
from zerodelta.exact.rational import decimal_up
from zerodelta.privacy.theorems.mixing import gaussian_net_mass, laplace_net_mass
from zerodelta.spaces import BallLattice


@dataclass(frozen=True, kw_only=True)
class _BallMixing(Mixing):
    """The integer points of a ball, mixed with noise around its center."""

    lattice: BallLattice
    norm: ClassVar[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.lattice.norm == self.norm,
            "lattice",
            f"norm {self.lattice.norm}",
            expected=f"the lattice of an l{self.norm} ball",
            remedy="use GaussianMix for norm=2, LaplaceMix for norm=1, GridMix for norm=inf",
        )

    @abstractmethod
    def draw(self, bits: BitSource) -> Integers:
        """Return the noise, in lattice units."""

    @abstractmethod
    def spacing(self, limit: float) -> float:
        """Return the spacing at which the closed form of `log_mass` is the limit."""

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the value's lattice point, or a noisy one, projected onto the ball."""
        kept = self.lattice.quantize(value)
        drawn = self.draw(bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def dimension(self) -> int:
        return self.lattice.dimension

    @property
    def radius(self) -> float:
        """The radius of the ball."""
        return float(self.lattice.ball.radius)

    def kept_error(self) -> float:
        return float(self.lattice.spacing) * math.sqrt(self.dimension / 12)

    def rounding(self, limit: float) -> float:
        return self.spacing(limit) * math.sqrt(self.dimension / 12)

    def displacement(self) -> float:
        return math.sqrt(2) * self.radius

    def finest(self, limit: float, weight: Fraction) -> _BallMixing:
        ball = self.lattice.ball
        return coarsened(
            decimal_up(self.spacing(limit)),
            limit,
            lambda s: replace(self, lattice=ball.lattice(s), mixing_weight=weight),
        )


@final
@dataclass(frozen=True, kw_only=True)
class GaussianMix(_BallMixing):
    """The integer points of an l2 ball; rounded N(0, τ²I) with probability w (B2 with R(v)).

    Guarantee: ln M = (d/2) ln(2πτ²) + (B + d/12)/(2τ²), B the largest squared norm of a point.
    """

    norm = 2
    word = "gaussian"
    title = "l2 lattice, rounded Gaussian (R(v))"

    @property
    def variance(self) -> Fraction:
        """Return the best τ² = (B + d/12)/d."""
        return Fraction(self.lattice.bound, self.dimension) + Fraction(1, 12)

    def draw(self, bits: BitSource) -> Integers:
        """Return the noise, in lattice units."""
        return rounded_gaussian(variance=self.variance, size=self.dimension, bits=bits)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return the closed form of ln M at its best noise."""
        d = self.dimension
        steps = min(max(self.radius / resolution, math.sqrt(d) / 2), 2.0**49)
        variance = (steps + math.sqrt(d) / 2) ** 2 / d + 1 / 12
        return d / 2 * (math.log(2 * math.pi * variance) + 1)

    def spacing(self, limit: float) -> float:
        """Return the spacing at which the closed form is the limit."""
        d = self.dimension
        variance = math.exp(2 * min(limit / d, MOST_NATS) - 1) / (2 * math.pi)
        steps = math.sqrt(max(d * (variance - 1 / 12), 0.0)) - math.sqrt(d) / 2
        return max(1 / steps, 2.0**-49) * self.radius if steps > 0 else math.inf

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return R(v): ln(1/q_min)."""
        bound, variance = self.lattice.bound, self.variance
        numbers = {"dimension": self.dimension, "bound": bound, "variance": variance}
        return "gaussian-net", gaussian_net_mass, numbers


@final
@dataclass(frozen=True, kw_only=True)
class LaplaceMix(_BallMixing):
    """The integer points of an l1 ball; rounded product Laplace noise with probability w (R(vi)).

    Guarantee: ln M = m/b - d ln(1 - e^(-1/2b)), m the largest norm of a point.
    """

    norm = 1
    word = "laplace"
    title = "l1 lattice, rounded Laplace (R(vi))"

    @property
    def scale(self) -> Fraction:
        """Return the best scale: y = 1/(2b) solves 2m = d e^(-y)/(1 - e^(-y)), so b = 1/(2y)."""
        m, d = self.lattice.bound, self.dimension
        y = math.log1p(d / (2 * m)) if m else 40.0
        return Fraction(1 / (2 * y)).limit_denominator(10**9)

    def draw(self, bits: BitSource) -> Integers:
        """Return the noise, in lattice units."""
        return rounded_laplace(scale=self.scale, size=self.dimension, bits=bits)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return the closed form of ln M at its best noise."""
        return self._mass(max(self.radius / resolution, 1.0))

    def spacing(self, limit: float) -> float:
        """Return the spacing at which the closed form is the limit, by bisection."""
        if self._mass(1.0) > limit:
            return math.inf
        low, high = 0.0, MOST_NATS
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._mass(math.exp(middle)) <= limit else (low, middle)
        return self.radius / math.exp(low)

    def _mass(self, steps: float) -> float:
        y = math.log1p(self.dimension / (2 * steps))
        return 2 * steps * y - self.dimension * math.log(-math.expm1(-y))

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return R(vi): ln(1/q_min)."""
        bound, scale = self.lattice.bound, self.scale
        numbers = {"dimension": self.dimension, "bound": bound, "scale": scale}
        return "laplace-net", laplace_net_mass, numbers
