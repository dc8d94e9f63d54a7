"""Families of channels for a space, each as fine as a budget of nats allows.

A family knows how its rounding error shrinks with ln M, the logarithm of its mass ratio (closed
forms of B1, B2), and builds the channel that certainly stays within a budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar, final

import numpy as np

from zerodelta.channels.candidate import decimal_up
from zerodelta.channels.channel import Mixing
from zerodelta.channels.family import MOST_NATS, Family
from zerodelta.channels.finite_families import finite_families
from zerodelta.channels.kernel import Body, KernelMix
from zerodelta.channels.lattice_mix import GaussianMix, GridMix, LaplaceMix, WindowMix
from zerodelta.channels.spaced_family import spaced_family
from zerodelta.privacy.theorems.mixing import grid_mass, window_mass
from zerodelta.spaces import Ball, Box, FiniteSpace, Space

__all__ = ["families_for"]

Channel = TypeVar("Channel", bound=Mixing)

_MOST_SIDES = 4096
"""A certificate lists the cells of so many different sides at most."""

_WINDOW = 15
"""Cells per side of a window: odd, so that it has a middle, and 2^49 times it is below 2^53."""

_KERNEL_CELLS = 8
"""Lattice points per noise scale in the kernel family: its rounding is then negligible."""


@final
@dataclass(frozen=True, slots=True)
class GridFamily(Family):
    """The grid of a box (the cube net)."""

    box: Box
    channel = "grid"
    name = "a uniform cell of a grid (B2)"
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
        cells = math.ceil(min(width / resolution, math.exp(MOST_NATS)))
        return self._mass(max(2, cells))

    def build(self, budget: float, weight: Fraction) -> GridMix:
        cells = _most_cells(self._cells(budget), budget, self._mass)
        return GridMix(lattice=self.box.grid(cells), mixing_weight=weight)

    def _mass(self, cells: int) -> float:
        return grid_mass(cells=cells, dimension=self.dimension)

    def _cells(self, budget: float) -> float:
        return math.exp(min(budget / self.dimension, MOST_NATS))


@final
@dataclass(frozen=True, slots=True)
class WindowFamily(Family):
    """A random cell near the answer's, of cells 15 times finer than the grid's at the same nats.

    The rms error is the grid's, but away from the edge the answer is unbiased, to a thirtieth of a
    grid cell.
    """

    grid: GridFamily
    channel = "window"
    name = "a random cell near by, or any (B4)"
    reservation = "unbiased away from the edge, with no smaller error"

    @property
    def dimension(self) -> int:
        return self.grid.dimension

    def rounding(self, budget: float) -> float:
        return self.grid.rounding(budget)

    def displacement(self) -> float:
        return self.grid.displacement()

    def least_budget(self) -> float:
        return self.grid.least_budget()

    def budget_for(self, resolution: float) -> float:
        return self.grid.budget_for(resolution)

    def build(self, budget: float, weight: Fraction) -> WindowMix:
        finer = _WINDOW * math.exp(min(budget / self.dimension, MOST_NATS))

        def mass(cells: int) -> float:
            return window_mass(cells=max(cells, _WINDOW), window=_WINDOW, dimension=self.dimension)

        lattice = self.grid.box.grid(_most_cells(finer, budget, mass))
        return WindowMix(lattice=lattice, mixing_weight=weight, window=_WINDOW)


@final
@dataclass(frozen=True, slots=True)
class GaussianFamily(Family):
    """The lattice of an l2 ball with rounded Gaussian mixing (the ball net)."""

    ball: Ball
    channel = "gaussian"
    name = "l2 lattice, rounded Gaussian (R(v))"

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
            decimal_up(self._spacing(budget)),
            lambda s: s * Fraction(1_000_001, 1_000_000),
        )

    def _spacing(self, budget: float) -> float:
        d = self.dimension
        variance = math.exp(2 * min(budget / d, MOST_NATS) - 1) / (2 * math.pi)
        steps = math.sqrt(max(d * (variance - 1 / 12), 0.0)) - math.sqrt(d) / 2
        return max(1 / steps, 2.0**-49) * float(self.ball.radius) if steps > 0 else math.inf


@final
@dataclass(frozen=True, slots=True)
class LaplaceFamily(Family):
    """The lattice of an l1 ball with rounded Laplace mixing."""

    ball: Ball
    channel = "laplace"
    name = "l1 lattice, rounded Laplace (R(vi))"

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
            decimal_up(self._spacing(budget)),
            lambda s: s * Fraction(1_000_001, 1_000_000),
        )

    def _mass(self, steps: float) -> float:
        y = math.log1p(self.dimension / (2 * steps))
        return 2 * steps * y - self.dimension * math.log(-math.expm1(-y))

    def _spacing(self, budget: float) -> float:
        if self._mass(1.0) > budget:
            return math.inf
        low, high = 0.0, MOST_NATS
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._mass(math.exp(middle)) <= budget else (low, middle)
        return float(self.ball.radius) / math.exp(low)


@final
@dataclass(frozen=True, slots=True)
class KernelFamily(Family):
    """K-norm smoothing of an l2 ball (Theorem K)."""

    ball: Ball
    channel = "kernel"
    name = "K-norm noise, uniform point (K)"

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
        spacing = decimal_up(self._scale(budget) / _KERNEL_CELLS)
        body = Body(lattice=self.ball.lattice(spacing))
        nats = min(budget / self.dimension, MOST_NATS - 6)
        start = decimal_up(2 * body.radius / self.dimension * math.exp(1 - nats))
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
        return 2 * float(self.ball.radius) / d * math.exp(1 - min(budget / d, MOST_NATS - 6))


def families_for(space: Space, prior: tuple[int, ...] | None = None) -> list[Family]:
    """Return the families that publish on a space, the usual winner first.

    A prior, as integer weights, is for finite spaces.
    """
    if isinstance(space, FiniteSpace):
        return finite_families(space, prior)
    if isinstance(space, Box):
        grid = GridFamily(space)
        return [spaced_family(space) if _has_unequal_sides(space) else grid, WindowFamily(grid)]
    if isinstance(space, Ball) and space.norm == 2:
        return [GaussianFamily(space), GridFamily(space.bounding_box()), KernelFamily(space)]
    if isinstance(space, Ball) and space.norm == 1:
        return [LaplaceFamily(space), GridFamily(space.bounding_box())]
    if isinstance(space, Ball):
        return families_for(space.bounding_box())
    raise TypeError(f"not a space: {type(space).__name__}")


def _has_unequal_sides(box: Box) -> bool:
    """Tell whether equal spacing is worth it, and can be stated in a short certificate."""
    widths = np.unique(box.widths())
    return bool(widths[-1] > widths[0] * (1 + 1e-6) and len(widths) <= _MOST_SIDES)


def _within(
    budget: float,
    build: Callable[[Fraction], Channel],
    start: Fraction,
    coarser: Callable[[Fraction], Fraction],
) -> Channel:
    """Return the first channel, from `start` on toward coarser, that is within the budget."""
    parameter = start
    while True:
        channel = build(parameter)
        if channel.log_mass <= budget:
            return channel
        parameter = coarser(parameter)


def _most_cells(about: float, budget: float, mass: Callable[[int], float]) -> int:
    """Return the largest number of cells, about as given, whose mass is within the budget."""
    fits, beyond = 1, 2 + int(about * (1 + 1e-9))
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if mass(middle) <= budget else (fits, middle)
    return fits
