"""Smoothing plus mixing: noise on the answer and on a uniform point (Theorem K, B4).

Everything happens in lattice units: the answer is a lattice point y of a body Θ' centered at 0, and
round(y + Z) or round(V + Z) is published, V uniform in Θ', Z K-norm noise. Because y is an integer
vector, rounding the sum and rounding the noise are the same thing (theory R).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import MOST_NATS, Mixing, coarsened, mix
from zerodelta.errors import ParameterError, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.k_norm import rounded_k_norm, rounded_uniform_plus_k_norm
from zerodelta.exact.lazy import Integers
from zerodelta.exact.rational import as_positive, decimal_up
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.privacy.theorems.mixing import kernel_mass, laplace_cube_mass
from zerodelta.spaces import Ball, BallLattice, GridLattice
from zerodelta.value import value

_CELLS = 8
"""Lattice points per noise scale in a plan: the rounding is then negligible."""


@value
class Body:
    """A lattice with the centered norm ball Θ' = {‖x‖ <= radius} that holds all of its points.

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
        """Return about the l2 distance of two random points of the space."""
        if isinstance(self.lattice, GridLattice):
            return self.lattice.box.diameter() / math.sqrt(6)
        return math.sqrt(2) * float(self.lattice.ball.radius)

    def rounded(self, length: float) -> float:
        """Return the rms of noise of this length, in lattice units, and of its rounding."""
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
        """Return about the distance of two random points of the space."""
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
        """Return the smallest noise scale within the limit, on a lattice 8 times finer."""
        ball, d = self._ball, self.dimension
        body = Body(lattice=ball.lattice(decimal_up(self._scale(limit) / _CELLS)))
        nats = min(limit / d, MOST_NATS - 6)
        return coarsened(
            decimal_up(2 * body.radius / d * math.exp(1 - nats)),
            limit,
            lambda b: replace(self, body=body, scale=b, mixing_weight=weight),
        )

    @property
    def _ball(self) -> Ball:
        lattice = self.body.lattice
        if isinstance(lattice, GridLattice):
            expected = "the lattice of a ball: no plan weighs this channel on a box"
            raise ParameterError("lattice", lattice, expected=expected, remedy="use GridMix there")
        return lattice.ball

    def _scale(self, limit: float) -> float:
        """Return the noise scale in the units of the ball, from ln M = d ln(eR/(d b))."""
        d = self.dimension
        return 2 * float(self._ball.radius) / d * math.exp(1 - min(limit / d, MOST_NATS - 6))

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return Theorem K, or its exact form on a cube."""
        width, numbers = 2 * self.body.radius, {"dimension": self.dimension, "scale": self.scale}
        if self.noise_norm == self.body.norm:
            return "k-norm-kernel", kernel_mass, {**numbers, "diameter": width}
        return "laplace-cube-kernel", laplace_cube_mass, {**numbers, "side": width}


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
