"""Families on finite spaces: uniform mixing, or a public prior (B1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from zerodelta.channels.family import Family
from zerodelta.channels.mix import FiniteMix, PriorMix
from zerodelta.privacy.theorems.mixing import prior_mass
from zerodelta.spaces import FiniteSpace

__all__ = ["finite_families"]


def finite_families(space: FiniteSpace, prior: tuple[int, ...] | None) -> list[Family]:
    """Return uniform mixing, and mixing with a prior (integer weights) if there is one."""
    uniform = UniformFamily(space)
    return [uniform] if prior is None else [uniform, PriorFamily(space, prior)]


class FiniteFamily(Family):
    """Mixing on a finite space: nothing to choose but the weight."""

    __slots__ = ()

    @property
    def dimension(self) -> int:
        return 0

    def rounding(self, budget: float) -> float:
        return 0.0

    def budget_for(self, resolution: float) -> float:
        return self.least_budget()


@final
@dataclass(frozen=True, slots=True)
class UniformFamily(FiniteFamily):
    """A uniform element."""

    space: FiniteSpace
    channel = "uniform"
    name = "a uniform element (B1)"

    def displacement(self) -> float:
        return float(1 - Fraction(1, self.space.size))

    def least_budget(self) -> float:
        return self.space.log_size_upper()

    def build(self, budget: float, weight: Fraction) -> FiniteMix:
        return FiniteMix(space=self.space, mixing_weight=weight)


@final
@dataclass(frozen=True, slots=True)
class PriorFamily(FiniteFamily):
    """A draw from a public prior, given by integer weights."""

    space: FiniteSpace
    prior: tuple[int, ...]
    channel = "prior"
    name = "a draw from a public prior (B1)"

    def displacement(self) -> float:
        return float(1 - Fraction(min(self.prior), sum(self.prior)))

    def least_budget(self) -> float:
        return prior_mass(Fraction(min(self.prior), sum(self.prior)), size=len(self.prior))

    def build(self, budget: float, weight: Fraction) -> PriorMix:
        return PriorMix(space=self.space, mixing_weight=weight, prior=self.prior)
