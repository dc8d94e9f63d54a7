"""The softmax loss of several classes, with an optional margin; slopes p - e_y have norm <= √2."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.arb import ball
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.regression.integer_rows import Floats
from zerodelta.regression.loss import Loss, exp_of_negative

__all__ = ["Softmax"]


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Softmax(Loss):
    """The loss of given labels 0..C-1; `shift` is added to all logits but that of the label.

    A label of a row that was set to zero is arbitrary: its slope is multiplied by nothing.
    """

    outputs: int
    labels: npt.NDArray[np.int64]
    shift: Fraction

    only_differences = True
    curvature_bound = 0.5

    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return p - e_y."""
        probabilities = self._probabilities(margins, where)
        probabilities[self._own(where)] -= 1
        return probabilities

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return p - e_y; a common number taken off the logits changes nothing."""
        own = np.zeros(margins.middle.shape)
        own[self._own(where)] = 1.0
        exact = np.zeros(1)
        logits = margins + FloatBalls((1 - own) * float(self.shift), exact)
        largest = logits.middle.max(axis=0, keepdims=True)
        powers = exp_of_negative(logits + FloatBalls(-largest, exact))
        return powers / powers.total() + FloatBalls(-own, exact)

    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return p - e_y."""
        own = int(self.labels[row])
        shift = ball(self.shift)
        logits = [m if j == own else m + shift for j, m in enumerate(margins)]
        largest = max(logits, key=lambda logit: float(logit.mid()))
        powers = [(logit - largest).exp() for logit in logits]
        total = sum(powers, arb(0))
        return [power / total - (1 if j == own else 0) for j, power in enumerate(powers)]

    def curvature(self, margins: Floats, where: slice) -> Floats:
        """Return the probabilities p; the second derivative is diag(p) - ppᵀ."""
        return self._probabilities(margins, where)

    def bend(self, curvature: Floats, change: Floats) -> Floats:
        """Return p ∘ z - p (p · z) for each row."""
        weighted = curvature * change
        weighted -= curvature * weighted.sum(axis=0)
        return weighted

    def pair_weights(self, curvature: Floats, first: int, second: int) -> Floats:
        """Return p_a (1 - p_a), or -p_a p_b."""
        weights: Floats = curvature[first] * ((first == second) - curvature[second])
        return weights

    def thinned(self, every: int) -> Softmax:
        """Return the loss of every so-manyth label."""
        return Softmax(outputs=self.outputs, labels=self.labels[::every], shift=self.shift)

    def _probabilities(self, margins: Floats, where: slice) -> Floats:
        logits = margins + float(self.shift)
        logits[self._own(where)] -= float(self.shift)
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=0)
        return logits

    def _own(self, where: slice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
        labels = self.labels[where]
        return labels, np.arange(len(labels))
