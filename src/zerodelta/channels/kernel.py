"""Smoothing plus mixing: noise on the answer and on a uniform point (Theorem K, B4).

Everything happens in lattice units: the answer is a lattice point y of a body Θ' centered at 0, and
round(y + Z) or round(V + Z) is published, V uniform in Θ', Z K-norm noise. Because y is an integer
vector, rounding the sum and rounding the noise are the same thing (theory R).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Mixing, mix
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.k_norm import rounded_k_norm, rounded_uniform_plus_k_norm
from zerodelta.exact.lazy import Integers
from zerodelta.exact.rational import as_positive
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight, kernel_mass, laplace_cube_mass
from zerodelta.spaces import BallLattice, GridLattice

__all__ = ["Body", "KernelMix"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A lattice with the centered norm ball Θ' = {‖x‖ <= radius} that holds all of its points.

    A grid needs an odd number of cells, so that its middle cell is the origin.
    """

    lattice: GridLattice | BallLattice

    def __post_init__(self) -> None:
        if isinstance(self.lattice, GridLattice) and self.lattice.cells % 2 == 0:
            raise ParameterError(
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
        """Return about the l2 distance of two random points of the body, in lattice units."""
        d = self.lattice.dimension
        return self.radius * (2 * math.sqrt(d / 6) if self.norm == math.inf else math.sqrt(2))

    @property
    def unit(self) -> float:
        """The l2 length of the diagonal of one lattice cell, divided by √d."""
        if isinstance(self.lattice, GridLattice):
            sides = self.lattice.box.widths() / self.lattice.cells
            return math.sqrt(float(np.mean(sides**2)))
        return float(self.lattice.spacing)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class KernelMix(Mixing):
    """K-norm noise on the answer, mixed with the same noise on a uniform point of the body.

    `noise_norm` is the body's own norm (Theorem K), or 1 on a grid: product Laplace noise in a
    cube, which is the paper's Algorithm 1 with the exact constant and no extra ε (B4). `scale` is
    in lattice units.

    Guarantee: pure t-DP if ln δ(t) + ln M <= ln(w/(1-w)) + ln(e^t - 1), ln M = d ln(eR/(d b)) for
    diameter R (Theorem K), or d ln(D/(b(1-e^(-D/b)))) for a cube of side D.
    """

    body: Body
    noise_norm: float
    scale: Fraction
    mixing_weight: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        if self.noise_norm != self.body.norm and (self.noise_norm, self.body.norm) != (1, math.inf):
            raise ParameterError(
                "noise_norm",
                self.noise_norm,
                expected=f"the body's norm {self.body.norm} (or 1 on a grid)",
                remedy="use the norm of the body",
            )

    @property
    def log_mass(self) -> float:
        """Return the logarithm of the mass ratio of the two branches, rounded up."""
        dimension, width = self.body.lattice.dimension, 2 * self.body.radius
        if self.noise_norm == self.body.norm:
            return kernel_mass(dimension=dimension, diameter=width, scale=self.scale)
        return laplace_cube_mass(dimension=dimension, side=width, scale=self.scale)

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the noisy answer, or a noisy uniform point, projected onto the space."""
        kept, drawn = noisy_pair(self.body, value, self.noise_norm, self.scale, bits)
        return self.body.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return E‖Z‖₂ (at most E‖Z‖ of its norm, times √d for linf) plus w times the width."""
        d, scale = self.body.lattice.dimension, float(self.scale)
        length = {
            1.0: math.sqrt(2 * d) * scale,
            2.0: d * scale,
            math.inf: scale * math.sqrt(d * (d + 1) * (d + 2) / 3),
        }[float(self.noise_norm)]
        width = float(self.mixing_weight) * self.body.displacement()
        return self.body.unit * (math.hypot(length, math.sqrt(d / 12)) + width)

    def step(self) -> Step:
        """Return Theorem K, or its exact form on a cube, with its numbers."""
        width = 2 * self.body.radius
        if self.noise_norm == self.body.norm:
            theorem, name = "k-norm-kernel", "diameter"
        else:
            theorem, name = "laplace-cube-kernel", "side"
        numbers = {
            "dimension": self.body.lattice.dimension,
            name: width,
            "scale": self.scale,
            "weight": self.mixing_weight,
        }
        return Step(theorem=theorem, numbers=numbers)


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
