"""The grid of a box with unequal sides: equal spacing, not equal numbers of cells (B2).

For a given number of cells Σ(side/K)² is least where all cells have the same side s; sides
shorter than s are one cell.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.family import MOST_NATS, Family
from zerodelta.channels.lattice_mix import UnequalGridMix
from zerodelta.privacy.theorems.mixing import sides_mass
from zerodelta.spaces import Box

__all__ = ["spaced_family"]

Floats: TypeAlias = npt.NDArray[np.float64]


def spaced_family(box: Box) -> Family:
    """Return the family of grids of equal spacing in a box."""
    widths = np.broadcast_to(box.widths(), (box.dimension,))
    logs = np.log(np.sort(widths)[::-1])
    sums = np.cumsum(logs)
    # coordinate m is first cut where the m wider ones have been cut down to its side
    starts = sums - np.arange(1, len(logs) + 1) * logs
    rest = np.cumsum(np.exp(2 * (logs[::-1] - logs[0])))[::-1]
    return SpacedFamily(
        box=box,
        widths=widths,
        sums=sums.tolist(),
        starts=starts.tolist(),
        rest=rest.tolist(),
        diameter=box.diameter(),
        least=_mass_upper(_cells(widths, float(widths.max()) / 2)),
    )


def _cells(widths: Floats, spacing: float) -> Floats:
    """Return how many cells of at most this side each width takes."""
    return np.maximum(np.ceil(widths / spacing * (1 - 1e-12)), 1.0)


def _mass_upper(cells: Floats) -> float:
    counts, times = np.unique(cells, return_counts=True)
    return sides_mass((int(count), int(often)) for count, often in zip(counts, times, strict=True))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SpacedFamily(Family):
    """Cells of about one side in all coordinates.

    `sums` and `starts` list, from the widest side on, Σ ln side and the nats at which that side is
    first cut; `rest` the squares of the sides from it on, in units of the widest. `least` are the
    nats of two cells in the widest.
    """

    box: Box
    widths: Floats
    sums: list[float]
    starts: list[float]
    rest: list[float]
    diameter: float
    least: float
    channel = "grid"
    name = "a uniform cell, equal spacing (B2)"

    @property
    def dimension(self) -> int:
        return self.box.dimension

    def rounding(self, budget: float) -> float:
        cut, spacing = self._spacing(budget)
        uncut = self.rest[cut] if cut < self.dimension else 0.0
        return math.sqrt((cut * spacing**2 + uncut * self._widest**2) / 12)

    def displacement(self) -> float:
        return self.diameter / math.sqrt(6)

    def least_budget(self) -> float:
        return self.least

    def budget_for(self, resolution: float) -> float:
        spacing = min(max(resolution, self._finest), self._widest / 2)
        return _mass_upper(_cells(self.widths, spacing))

    def build(self, budget: float, weight: Fraction) -> UnequalGridMix:
        fine, fits = self._spacing(budget)[1], self._widest
        for _ in range(60):
            middle = math.sqrt(fine * fits)
            enough = float(np.log(_cells(self.widths, middle)).sum()) <= budget
            fine, fits = (fine, middle) if enough else (middle, fits)
        while _mass_upper(_cells(self.widths, fits)) > budget:  # the nats above were floats
            fine, fits = fits, fits + 2 * (fits - fine) + fits * 1e-12
        lattice = self.box.unequal_grid([int(count) for count in _cells(self.widths, fits)])
        return UnequalGridMix(lattice=lattice, mixing_weight=weight)

    @property
    def _widest(self) -> float:
        return math.exp(self.sums[0])

    @property
    def _finest(self) -> float:
        return math.exp(self.sums[0] - MOST_NATS)

    def _spacing(self, budget: float) -> tuple[int, float]:
        """Return how many sides are cut, and the spacing, if cells need not be whole."""
        cut = max(1, bisect.bisect_right(self.starts, budget))
        return cut, max(math.exp((self.sums[cut - 1] - budget) / cut), self._finest)
