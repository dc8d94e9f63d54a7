"""Families of channels for a space, each as fine as a budget of nats allows.

A family knows how its rounding error shrinks with ln M, the logarithm of its mass ratio (closed
forms of B1, B2), and builds the channel that certainly stays within a budget.
"""

from __future__ import annotations

import decimal
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar, final

import numpy as np

from zerodelta.privacy.theorems.mixing import grid_mass
from zerodelta.purify.channel import Mixing
from zerodelta.purify.kernel import Body, KernelMix
from zerodelta.purify.lattice_mix import GaussianMix, GridMix, LaplaceMix
from zerodelta.purify.mix import FiniteMix
from zerodelta.spaces import Ball, Box, FiniteSpace, Space

__all__ = ["Family", "families_for"]

Channel = TypeVar("Channel", bound=Mixing)

_MOST_NATS = 34.0
"""Nats per coordinate beyond which no channel gets finer: 2^-49 of the space, a float's limit."""

_KERNEL_CELLS = 8
"""Lattice points per noise scale in the kernel family: its rounding is then negligible."""


class Family(ABC):
    """One way to publish on a space, at any resolution."""

    name: str

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of coordinates that are rounded (0 on finite spaces)."""

    @abstractmethod
    def rounding(self, budget: float) -> float:
        """Return the l2 error (0-1 error on finite spaces) at a mass ratio of `budget` nats."""

    @abstractmethod
    def displacement(self) -> float:
        """Return the expected error of an answer that was replaced."""

    @abstractmethod
    def least_budget(self) -> float:
        """Return the nats of the coarsest useful channel."""

    @abstractmethod
    def budget_for(self, resolution: float) -> float:
        """Return the nats that a lattice of this spacing needs."""

    @abstractmethod
    def build(self, budget: float, weight: Fraction) -> Mixing:
        """Return the finest channel whose mass ratio is certainly within the budget."""


@final
@dataclass(frozen=True, slots=True)
class FiniteFamily(Family):
    """Uniform mixing on a finite space: nothing to choose but the weight."""

    space: FiniteSpace
    name = "mixing on a finite space (B1)"

    @property
    def dimension(self) -> int:
        return 0

    def rounding(self, budget: float) -> float:
        return 0.0

    def displacement(self) -> float:
        return float(1 - Fraction(1, self.space.size))

    def least_budget(self) -> float:
        return self.space.log_size_upper()

    def budget_for(self, resolution: float) -> float:
        return self.least_budget()

    def build(self, budget: float, weight: Fraction) -> FiniteMix:
        return FiniteMix(space=self.space, mixing_weight=weight)


@final
@dataclass(frozen=True, slots=True)
class GridFamily(Family):
    """The grid of a box (the cube net)."""

    box: Box
    name = "grid (B2)"
    _diameter: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_diameter", self.box.diameter())

    @property
    def dimension(self) -> int:
        return self.box.dimension

    def rounding(self, budget: float) -> float:
        return self._diameter / math.sqrt(12) / self._cells(budget)

    def displacement(self) -> float:
        return self._diameter / math.sqrt(6)

    def least_budget(self) -> float:
        return self._mass(2)

    def budget_for(self, resolution: float) -> float:
        width = float(np.max(self.box.widths()))
        cells = math.ceil(min(width / resolution, math.exp(_MOST_NATS)))
        return self._mass(max(2, cells))

    def build(self, budget: float, weight: Fraction) -> GridMix:
        fits, beyond = 1, 2 + int(self._cells(budget) * (1 + 1e-9))
        while beyond - fits > 1:
            middle = (fits + beyond) // 2
            fits, beyond = (middle, beyond) if self._mass(middle) <= budget else (fits, middle)
        return GridMix(lattice=self.box.grid(fits), mixing_weight=weight)

    def _mass(self, cells: int) -> float:
        return grid_mass(cells=cells, dimension=self.dimension)

    def _cells(self, budget: float) -> float:
        return math.exp(min(budget / self.dimension, _MOST_NATS))


@final
@dataclass(frozen=True, slots=True)
class GaussianFamily(Family):
    """The lattice of an l2 ball with rounded Gaussian mixing (the ball net)."""

    ball: Ball
    name = "l2 ball lattice, Gaussian mixing (R(v))"

    @property
    def dimension(self) -> int:
        return self.ball.dimension

    def rounding(self, budget: float) -> float:
        return self._spacing(budget) * math.sqrt(self.dimension / 12)

    def displacement(self) -> float:
        return math.sqrt(2) * float(self.ball.radius)

    def least_budget(self) -> float:
        return self.budget_for(2 * float(self.ball.radius) / math.sqrt(self.dimension))

    def budget_for(self, resolution: float) -> float:
        d, steps = self.dimension, min(float(self.ball.radius) / resolution, 2.0**49)
        variance = (steps + math.sqrt(d) / 2) ** 2 / d + 1 / 12
        return d / 2 * (math.log(2 * math.pi * variance) + 1)

    def build(self, budget: float, weight: Fraction) -> GaussianMix:
        return _within(
            budget,
            lambda s: GaussianMix(lattice=self.ball.lattice(s), mixing_weight=weight),
            _decimal_up(self._spacing(budget)),
            lambda s: s * Fraction(1_000_001, 1_000_000),
        )

    def _spacing(self, budget: float) -> float:
        d = self.dimension
        variance = math.exp(2 * min(budget / d, _MOST_NATS) - 1) / (2 * math.pi)
        steps = math.sqrt(max(d * (variance - 1 / 12), 0.0)) - math.sqrt(d) / 2
        return max(1 / steps, 2.0**-49) * float(self.ball.radius) if steps > 0 else math.inf


@final
@dataclass(frozen=True, slots=True)
class LaplaceFamily(Family):
    """The lattice of an l1 ball with rounded Laplace mixing."""

    ball: Ball
    name = "l1 ball lattice, Laplace mixing (R(vi))"

    @property
    def dimension(self) -> int:
        return self.ball.dimension

    def rounding(self, budget: float) -> float:
        return self._spacing(budget) * math.sqrt(self.dimension / 12)

    def displacement(self) -> float:
        return math.sqrt(2) * float(self.ball.radius)

    def least_budget(self) -> float:
        return self.budget_for(float(self.ball.radius))

    def budget_for(self, resolution: float) -> float:
        return self._mass(float(self.ball.radius) / resolution)

    def build(self, budget: float, weight: Fraction) -> LaplaceMix:
        return _within(
            budget,
            lambda s: LaplaceMix(lattice=self.ball.lattice(s), mixing_weight=weight),
            _decimal_up(self._spacing(budget)),
            lambda s: s * Fraction(1_000_001, 1_000_000),
        )

    def _mass(self, steps: float) -> float:
        y = math.log1p(self.dimension / (2 * steps))
        return 2 * steps * y - self.dimension * math.log(-math.expm1(-y))

    def _spacing(self, budget: float) -> float:
        if self._mass(1.0) > budget:
            return math.inf
        low, high = 0.0, _MOST_NATS
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._mass(math.exp(middle)) <= budget else (low, middle)
        return float(self.ball.radius) / math.exp(low)


@final
@dataclass(frozen=True, slots=True)
class KernelFamily(Family):
    """K-norm smoothing of an l2 ball (Theorem K)."""

    ball: Ball
    name = "K-norm smoothing (K)"

    @property
    def dimension(self) -> int:
        return self.ball.dimension

    def rounding(self, budget: float) -> float:
        return self.dimension * self._scale(budget)

    def displacement(self) -> float:
        return math.sqrt(2) * float(self.ball.radius)

    def least_budget(self) -> float:
        return float(self.dimension) * 1.01

    def budget_for(self, resolution: float) -> float:
        d = self.dimension
        return d * (1 + math.log(2 * float(self.ball.radius) / (d * resolution)))

    def build(self, budget: float, weight: Fraction) -> KernelMix:
        spacing = _decimal_up(self._scale(budget) / _KERNEL_CELLS)
        body = Body(lattice=self.ball.lattice(spacing))
        nats = min(budget / self.dimension, _MOST_NATS - 6)
        start = _decimal_up(2 * body.radius / self.dimension * math.exp(1 - nats))
        return _within(
            budget,
            lambda b: KernelMix(
                body=body, noise_norm=self.ball.norm, scale=b, mixing_weight=weight
            ),
            start,
            lambda b: b * Fraction(1_000_001, 1_000_000),
        )

    def _scale(self, budget: float) -> float:
        d = self.dimension
        return 2 * float(self.ball.radius) / d * math.exp(1 - min(budget / d, _MOST_NATS - 6))


def families_for(space: Space) -> list[Family]:
    """Return the families that publish on a space, the usual winner first."""
    if isinstance(space, FiniteSpace):
        return [FiniteFamily(space)]
    if isinstance(space, Box):
        return [GridFamily(space)]
    if isinstance(space, Ball) and space.norm == 2:
        return [GaussianFamily(space), GridFamily(space.bounding_box()), KernelFamily(space)]
    if isinstance(space, Ball) and space.norm == 1:
        return [LaplaceFamily(space), GridFamily(space.bounding_box())]
    if isinstance(space, Ball):
        return [GridFamily(space.bounding_box())]
    raise TypeError(f"not a space: {type(space).__name__}")


def _within(
    budget: float,
    build: Callable[[Fraction], Channel],
    start: Fraction,
    coarser: Callable[[Fraction], Fraction],
) -> Channel:
    """Return the first channel, from `start` on towards coarser, that is within the budget."""
    parameter = start
    while True:
        channel = build(parameter)
        if channel.log_mass <= budget:
            return channel
        parameter = coarser(parameter)


def _decimal_up(value: float) -> Fraction:
    """Round up to seven decimal digits, so that certificates are readable."""
    context = decimal.Context(prec=7, rounding=decimal.ROUND_CEILING)
    return Fraction(context.create_decimal_from_float(value))
