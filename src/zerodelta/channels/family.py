"""A family of channels: one way to publish on a space, as fine as a budget of nats allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from zerodelta.channels.channel import Mixing

__all__ = ["MOST_NATS", "Family"]

MOST_NATS = 34.0
"""Nats per coordinate beyond which no channel gets finer: 2^-49 of the space, a float's limit."""


class Family(ABC):
    """One way to publish on a space, at any resolution.

    `channel` is its short name in `plan(channel=…)`; `reservation` is as in `Candidate`.
    """

    channel: str
    name: str
    reservation: str = ""

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
