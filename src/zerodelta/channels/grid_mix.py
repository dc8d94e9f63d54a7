"""Boxes cut into cells: the answer's cell, or one near it, or any with probability w (B2, B4).

Membership is decided in integers. No extra ε; the error is the rounding plus w times the size of
the box. Equal numbers of cells in all coordinates are best on cubes, equal spacing elsewhere.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np

from zerodelta.channels.channel import MOST_NATS, Mixing, mix
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_below, uniform_below_each
from zerodelta.exact.rational import as_count
from zerodelta.privacy.theorems.mixing import grid_mass, local_uniform_mass, sides_mass
from zerodelta.spaces import Box, GridLattice
from zerodelta.spaces.lattices import UnequalGrid
from zerodelta.value import value

Equal = TypeVar("Equal", bound="_EqualCellMixing")


@dataclass(frozen=True, kw_only=True)
class _CellMixing(Mixing):
    """Cells of a box, mixed with a uniform one of them."""

    lattice: GridLattice | UnequalGrid

    @property
    def dimension(self) -> int:
        return self.lattice.dimension

    @cached_property
    def diameter(self) -> float:
        """√Σ side²: the rms distance of uniform points of one cell is 1/√12 of it, of two 1/√6."""
        return self.lattice.box.diameter()

    def displacement(self) -> float:
        return self.diameter / math.sqrt(6)


@dataclass(frozen=True, kw_only=True)
class _EqualCellMixing(_CellMixing):
    """K cells in every coordinate; the kept cell is uniform among m of them a side (m = 1: none).

    The log-ratio is d ln(K/m), and the rms error that of a cell of side (side · m/K).
    """

    lattice: GridLattice

    @abstractmethod
    def side(self) -> int:
        """Return m."""

    def kept_error(self) -> float:
        return self.diameter * self.side() / self.lattice.cells / math.sqrt(12)

    def rounding(self, limit: float) -> float:
        return self.diameter / math.sqrt(12) / self._ratio(limit)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        width = float(np.max(self.lattice.box.widths()))
        cells = math.ceil(min(width / resolution, math.exp(MOST_NATS)))
        return grid_mass(cells=max(2, cells), dimension=self.dimension)

    def finest(self: Equal, limit: float, weight: Fraction) -> Equal:
        def at(cells: int) -> Equal:
            lattice = self.lattice.box.grid(max(cells, self.side()))
            return replace(self, lattice=lattice, mixing_weight=weight)

        fits, beyond = 1, 2 + int(self.side() * self._ratio(limit) * (1 + 1e-9))
        while beyond - fits > 1:
            middle = (fits + beyond) // 2
            fits, beyond = (middle, beyond) if at(middle).log_mass <= limit else (fits, middle)
        return at(fits)

    def _ratio(self, limit: float) -> float:
        """Return K/m if it need not be rational."""
        return math.exp(min(limit / self.dimension, MOST_NATS))


@final
@dataclass(frozen=True, kw_only=True)
class GridMix(_EqualCellMixing):
    """A grid of K^d cells; a uniform cell with probability w (B2; minimax optimal on cubes, O2).

    Guarantee: ln M = d ln K.
    """

    word = "grid"
    title = "a uniform cell of a grid (B2)"

    def side(self) -> int:
        """Return 1: the value's own cell is kept."""
        return 1

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of the value's cell, or of a uniform cell."""
        kept = self.lattice.quantize(value)
        drawn = uniform_below(self.lattice.cells, size=self.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return B2: d ln K."""
        numbers = {"cells": self.lattice.cells, "dimension": self.dimension}
        return "grid-mixing", grid_mass, numbers


@final
@dataclass(frozen=True, kw_only=True)
class LocalUniformMix(_EqualCellMixing):
    """A local uniform kernel: a uniform one of the m^d cells around the value's (B4 (iii)).

    Guarantee: ln M = d ln(K/m). At the edge of the grid the kernel is shifted inside, so that it
    always has m^d cells. Elsewhere the answer is unbiased, to half a cell: at the same nats cells
    are m times finer than those of `GridMix`.
    """

    kernel_cells: int
    """Cells per side of the kernel, m."""
    word = "local-uniform"
    title = "a random cell near by, or any (B4)"
    reservation = "unbiased away from the edge, with no smaller error"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            as_count(self.kernel_cells, "kernel_cells", minimum=1) <= self.lattice.cells,
            "kernel_cells",
            self.kernel_cells,
            expected=f"at most the grid's {self.lattice.cells} cells",
            remedy="use a smaller kernel or a finer grid",
        )

    def side(self) -> int:
        """Return the cells per side of the kernel."""
        return self.kernel_cells

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of a uniform cell of the kernel, or of the whole grid."""
        cells, side = self.lattice.cells, self.kernel_cells
        start = np.clip(self.lattice.quantize(value) - side // 2, 0, cells - side)
        kept = start + uniform_below(side, size=self.dimension, bits=bits)
        drawn = uniform_below(cells, size=self.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return B4's local uniform kernel: d ln(K/m)."""
        cells, side = self.lattice.cells, self.kernel_cells
        numbers = {"cells": cells, "kernel_cells": side, "dimension": self.dimension}
        return "local-uniform-kernel", local_uniform_mass, numbers


@final
@dataclass(frozen=True, kw_only=True)
class UnequalGridMix(_CellMixing):
    """A grid with its own number K_i of cells in every coordinate; a uniform cell of all (B2).

    Guarantee: ln M = Σ_i ln K_i; a certificate lists [cells, how many coordinates have so many].
    For a given number of cells Σ(side/K)² is least where all cells have the same side s; sides
    shorter than s are one cell. That is how `finest` cuts.
    """

    lattice: UnequalGrid
    word = "grid"
    title = "a uniform cell, equal spacing (B2)"

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of the value's cell, or of a uniform cell."""
        kept = self.lattice.quantize(value)
        drawn = uniform_below_each(self.lattice.cells, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def kept_error(self) -> float:
        """Return the rms distance to the value: side/√12 a coordinate."""
        cells = self.sides.widths / self.lattice.counts
        return math.sqrt(float(np.sum(cells**2)) / 12)

    def rounding(self, limit: float) -> float:
        """Return the rms rounding at the spacing that the limit pays for."""
        cut, spacing = self.sides.spacing(limit)
        uncut = self.sides.rest[cut] if cut < self.dimension else 0.0
        return math.sqrt((cut * spacing**2 + uncut * self.sides.widest**2) / 12)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return Σ ln K_i of cells of this side, and at least two in the widest."""
        spacing = min(max(resolution, self.sides.finest), self.sides.widest / 2)
        return _mass_of(_cells(self.sides.widths, spacing))

    def finest(self, limit: float, weight: Fraction) -> UnequalGridMix:
        """Return the grid of the smallest spacing within the limit."""
        widths = self.sides.widths
        fine, fits = self.sides.spacing(limit)[1], self.sides.widest
        for _ in range(60):
            middle = math.sqrt(fine * fits)
            enough = float(np.log(_cells(widths, middle)).sum()) <= limit
            fine, fits = (fine, middle) if enough else (middle, fits)
        while _mass_of(_cells(widths, fits)) > limit:  # the nats above were floats
            fine, fits = fits, fits + 2 * (fits - fine) + fits * 1e-12
        lattice = self.lattice.box.unequal_grid([int(count) for count in _cells(widths, fits)])
        return replace(self, lattice=lattice, mixing_weight=weight)

    @cached_property
    def sides(self) -> _Sides:
        """The sides of the box, sorted once: a plan asks for hundreds of forecasts."""
        return _Sides.of(self.lattice.box)

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return B2: Σ ln K_i."""
        return "unequal-grid-mixing", sides_mass, {"sides": self.lattice.sides()}


@value
class _Sides:
    """The sides of a box, for the closed form of equal spacing.

    `sums` and `starts` list, from the widest side on, Σ ln side and the nats at which that side is
    first cut; `rest` the squares of the sides from it on, in units of the widest.
    """

    widths: Floats
    sums: list[float]
    starts: list[float]
    rest: list[float]

    @staticmethod
    def of(box: Box) -> _Sides:
        widths = np.broadcast_to(box.widths(), (box.dimension,))
        logs = np.log(np.sort(widths)[::-1])
        sums = np.cumsum(logs)
        # coordinate m is first cut where the m wider ones have been cut down to its side
        starts = sums - np.arange(1, len(logs) + 1) * logs
        rest = np.cumsum(np.exp(2 * (logs[::-1] - logs[0])))[::-1]
        return _Sides(widths=widths, sums=sums.tolist(), starts=starts.tolist(), rest=rest.tolist())

    @property
    def widest(self) -> float:
        return math.exp(self.sums[0])

    @property
    def finest(self) -> float:
        """The smallest spacing of a plan."""
        return math.exp(self.sums[0] - MOST_NATS)

    def spacing(self, limit: float) -> tuple[int, float]:
        """Return how many sides are cut, and the spacing, if cells need not be whole."""
        cut = max(1, bisect_right(self.starts, limit))
        return cut, max(math.exp((self.sums[cut - 1] - limit) / cut), self.finest)


def _cells(widths: Floats, spacing: float) -> Floats:
    """Return how many cells of at most this side each width takes."""
    return np.maximum(np.ceil(widths / spacing * (1 - 1e-12)), 1.0)


def _mass_of(cells: Floats) -> float:
    """Return Σ ln K_i, rounded up."""
    counts, times = np.unique(cells, return_counts=True)
    return sides_mass((int(count), int(often)) for count, often in zip(counts, times, strict=True))
