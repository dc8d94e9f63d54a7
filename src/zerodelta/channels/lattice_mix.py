"""Boxes and balls on a lattice, mixed with a public draw on the same lattice (Theorem B2, R(v)).

The answer is rounded to the lattice, with membership decided in integers, and with probability w
replaced: by a uniform cell of a grid, by rounded Gaussian noise on an l2 ball, by rounded Laplace
noise on an l1 ball. No extra ε; the error is the rounding plus w times the size of the space.
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
from zerodelta.exact.integers import uniform_below, uniform_below_each
from zerodelta.exact.noise import rounded_gaussian, rounded_laplace
from zerodelta.exact.rational import as_count, as_positive
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import (
    as_weight,
    gaussian_net_mass,
    grid_mass,
    laplace_net_mass,
    sides_mass,
    window_mass,
)
from zerodelta.spaces import BallLattice, GridLattice
from zerodelta.spaces.lattices import UnequalGrid

__all__ = ["GaussianMix", "GridMix", "LaplaceMix", "UnequalGridMix", "WindowMix"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class GridMix(Mixing):
    """A grid of K^d cells; a uniform cell with probability w (B2; minimax optimal on cubes, O2).

    Guarantee: pure t-DP if ln δ(t) + d ln K <= ln(w/(1-w)) + ln(e^t - 1).
    """

    lattice: GridLattice
    mixing_weight: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))

    @property
    def log_mass(self) -> float:
        """Return d ln K, rounded up."""
        return grid_mass(cells=self.lattice.cells, dimension=self.lattice.dimension)

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of the value's cell, or of a uniform cell."""
        kept = self.lattice.quantize(value)
        drawn = uniform_below(self.lattice.cells, size=self.lattice.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms rounding error plus w times the rms distance of two uniform points."""
        return _grid_error(self.lattice, float(self.mixing_weight), window=1)

    def step(self) -> Step:
        """Return B2 with its numbers."""
        numbers = {
            "cells": self.lattice.cells,
            "dimension": self.lattice.dimension,
            "weight": self.mixing_weight,
        }
        return Step(theorem="grid-mixing", numbers=numbers)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class UnequalGridMix(Mixing):
    """A grid with its own number K_i of cells in every coordinate; a uniform cell of all (B2).

    Guarantee: pure t-DP if ln δ(t) + Σ_i ln K_i <= ln(w/(1-w)) + ln(e^t - 1).
    """

    lattice: UnequalGrid
    mixing_weight: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))

    @property
    def log_mass(self) -> float:
        """Return Σ ln K_i, rounded up."""
        return sides_mass(self.lattice.sides())

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of the value's cell, or of a uniform cell."""
        kept = self.lattice.quantize(value)
        drawn = uniform_below_each(self.lattice.cells, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms rounding error plus w times the rms distance of two uniform points."""
        widths = self.lattice.box.widths()
        rounding = math.sqrt(float(np.sum((widths / self.lattice.counts) ** 2)) / 12)
        return rounding + float(self.mixing_weight) * self.lattice.box.diameter() / math.sqrt(6)

    def step(self) -> Step:
        """Return B2 with its numbers: pairs [cells, how many coordinates have so many]."""
        numbers = {"sides": self.lattice.sides(), "weight": self.mixing_weight}
        return Step(theorem="unequal-grid-mixing", numbers=numbers)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class WindowMix(Mixing):
    """A uniform cell of a window of m^d cells around the value's, instead of its own (B4 (iii)).

    Guarantee: pure t-DP if ln δ(t) + d ln(K/m) <= ln(w/(1-w)) + ln(e^t - 1). The window is moved
    inside the grid at its edge, so that it always has m^d cells.
    """

    lattice: GridLattice
    mixing_weight: Fraction
    window: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        window = as_count(self.window, "window", minimum=1)
        if window > self.lattice.cells:
            raise ParameterError(
                "window",
                window,
                expected=f"at most the grid's {self.lattice.cells} cells",
                remedy="use a smaller window or a finer grid",
            )

    @property
    def log_mass(self) -> float:
        """Return d ln(K/m), rounded up."""
        return window_mass(
            cells=self.lattice.cells, window=self.window, dimension=self.lattice.dimension
        )

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of a uniform cell of the window, or of the whole grid."""
        dimension, cells = self.lattice.dimension, self.lattice.cells
        start = np.clip(self.lattice.quantize(value) - self.window // 2, 0, cells - self.window)
        kept = start + uniform_below(self.window, size=dimension, bits=bits)
        drawn = uniform_below(cells, size=dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms distance within the window plus w times that of two uniform points."""
        return _grid_error(self.lattice, float(self.mixing_weight), window=self.window)

    def step(self) -> Step:
        """Return B4's window with its numbers."""
        numbers = {
            "cells": self.lattice.cells,
            "window": self.window,
            "dimension": self.lattice.dimension,
            "weight": self.mixing_weight,
        }
        return Step(theorem="local-uniform-kernel", numbers=numbers)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class GaussianMix(Mixing):
    """The integer points of an l2 ball; rounded N(0, τ²I) with probability w (B2 with R(v)).

    Guarantee: pure t-DP if ln δ(t) + (d/2) ln(2πτ²) + (B + d/12)/(2τ²) <= ln(w/(1-w)) + ln(e^t-1).
    The mixing draw may lie outside the ball: it is projected, which is post-processing.
    """

    lattice: BallLattice
    mixing_weight: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        _check_norm(self.lattice, 2)

    @property
    def variance(self) -> Fraction:
        """Return the best τ² = (B + d/12)/d."""
        return Fraction(self.lattice.bound, self.lattice.dimension) + Fraction(1, 12)

    @property
    def log_mass(self) -> float:
        """Return ln(1/q_min), rounded up."""
        return gaussian_net_mass(
            dimension=self.lattice.dimension, bound=self.lattice.bound, variance=self.variance
        )

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the value's lattice point, or a rounded Gaussian one, projected onto the ball."""
        kept = self.lattice.quantize(value)
        drawn = rounded_gaussian(variance=self.variance, size=self.lattice.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms rounding error plus w·√2·radius."""
        return _ball_error(self.lattice, float(self.mixing_weight))

    def step(self) -> Step:
        """Return R(v) with its numbers."""
        numbers = {
            "dimension": self.lattice.dimension,
            "bound": self.lattice.bound,
            "variance": self.variance,
            "weight": self.mixing_weight,
        }
        return Step(theorem="gaussian-net", numbers=numbers)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LaplaceMix(Mixing):
    """The integer points of an l1 ball; rounded product Laplace noise with probability w (R(vi)).

    Guarantee: pure t-DP if ln δ(t) - d ln(1 - e^(-1/2b)) + m/b <= ln(w/(1-w)) + ln(e^t - 1).
    """

    lattice: BallLattice
    mixing_weight: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        _check_norm(self.lattice, 1)

    @property
    def scale(self) -> Fraction:
        """Return the best scale: y = 1/(2b) solves 2m = d e^(-y)/(1 - e^(-y)), so b = 1/(2y)."""
        m, d = self.lattice.bound, self.lattice.dimension
        y = math.log1p(d / (2 * m)) if m else 40.0
        return Fraction(1 / (2 * y)).limit_denominator(10**9)

    @property
    def log_mass(self) -> float:
        """Return ln(1/q_min), rounded up."""
        return laplace_net_mass(
            dimension=self.lattice.dimension, bound=self.lattice.bound, scale=self.scale
        )

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the value's lattice point, or a rounded Laplace one, projected onto the ball."""
        kept = self.lattice.quantize(value)
        drawn = rounded_laplace(scale=self.scale, size=self.lattice.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms rounding error plus w·√2·radius (in l2)."""
        return _ball_error(self.lattice, float(self.mixing_weight))

    def step(self) -> Step:
        """Return R(vi) with its numbers."""
        numbers = {
            "dimension": self.lattice.dimension,
            "bound": self.lattice.bound,
            "scale": as_positive(self.scale, "scale"),
            "weight": self.mixing_weight,
        }
        return Step(theorem="laplace-net", numbers=numbers)


def _check_norm(lattice: BallLattice, norm: int) -> None:
    if lattice.norm != norm:
        raise ParameterError(
            "lattice",
            f"norm {lattice.norm}",
            expected=f"the lattice of an l{norm} ball",
            remedy="use GaussianMix for norm=2, LaplaceMix for norm=1, GridMix for norm=inf",
        )


def _grid_error(lattice: GridLattice, weight: float, *, window: int) -> float:
    """Return √(Σ side²/12)·window/K + w √(Σ side²/6): all sides, two independent uniform points."""
    sides = lattice.box.diameter()
    rounding = sides * window / lattice.cells / math.sqrt(12)
    return rounding + weight * sides / math.sqrt(6)


def _ball_error(lattice: BallLattice, weight: float) -> float:
    rounding = float(lattice.spacing) * math.sqrt(lattice.dimension / 12)
    return rounding + weight * math.sqrt(2) * float(lattice.ball.radius)
