"""The pseudo-Huber loss √(1 + r²) - 1 of the residual r = prediction - target: slope below 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from flint import arb

from zerodelta.exact.float_balls import FloatBalls
from zerodelta.regression.integer_rows import Floats
from zerodelta.regression.loss import Loss

__all__ = ["PseudoHuber"]


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PseudoHuber(Loss):
    """The loss of given targets, which are in units of the threshold between square and linear."""

    targets: Floats

    outputs = 1
    only_differences = False
    curvature_bound = 1.0

    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return r/√(1 + r²)."""
        residual = margins - self.targets[where]
        return residual / np.sqrt(1 + residual * residual)

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return r/√(1 + r²) = sign(r) √(1 - 1/(1 + r²)) by the first, which loses nothing."""
        targets = self.targets[where].reshape(1, -1)
        residual = margins + FloatBalls(-targets, np.zeros(1))
        return residual / (residual * residual + 1).sqrt()

    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return r/√(1 + r²)."""
        residual = margins[0] - arb(float(self.targets[row]))
        return [residual / (1 + residual * residual).sqrt()]

    def curvature(self, margins: Floats, where: slice) -> Floats:
        """Return (1 + r²)^(-3/2)."""
        residual = margins - self.targets[where]
        weight = 1 / np.sqrt(1 + residual * residual)
        return weight * weight * weight

    def bend(self, curvature: Floats, change: Floats) -> Floats:
        """Multiply row by row."""
        return curvature * change

    def pair_weights(self, curvature: Floats, first: int, second: int) -> Floats:
        """Return the curvature: there is one output."""
        weights: Floats = curvature[0]
        return weights

    def thinned(self, every: int) -> PseudoHuber:
        """Return the loss of every so-manyth target."""
        return PseudoHuber(targets=self.targets[::every])
