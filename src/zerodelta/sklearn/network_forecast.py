"""How much a network is expected to learn, from its public plan: for forecasts and probabilities.

A descent holds the noise of the parameters to a part of the radius, whatever n and ε are; what
changes is how far the gradients of the rows may carry it. So the path says what will be learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from zerodelta.data.row_queries import public_rows
from zerodelta.training.descent import Descent
from zerodelta.training.tanh_network import TanhNetwork

__all__ = ["NetworkForecast"]

_SLOPE = 25.0
"""About how long the gradient of a logit is at the start: 22 to 28, whatever the shape."""

_AGREEMENT = 0.15
"""The part of a row's clipped gradient that other rows agree with. This and the two below were
fitted to runs on small real data and XOR, see `bench/defaults_classifiers.py`."""

_HALF_WAY = 3.0
_SURE = 2.0
"""The temperature of a network that has learned all: noise has the same share of every network."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkForecast:
    """The part of what there is to learn that is expected to be learned, above 0 and below 1."""

    learned: float

    @staticmethod
    def of(network: TanhNetwork, descent: Descent) -> NetworkForecast:
        """Compare what the rows can move a logit by with the start's logits and the noise."""
        path = descent.clip * float(descent.sizes.sizes().sum())
        noise = _SLOPE * descent.error / math.sqrt(network.parameters)
        made_up = public_rows(network.inputs, (network.lower, network.upper), None, count=256)
        start = network.logits(network.start(), made_up)
        unlearned = math.sqrt(float(np.mean(start**2)) + noise**2)
        moved = (_AGREEMENT * _SLOPE * path / unlearned) ** 2
        return NetworkForecast(learned=moved / (moved + _HALF_WAY))

    @property
    def temperature(self) -> float:
        """What logits are divided by before they become probabilities."""
        return _SURE / self.learned

    def excess(self, classes: int) -> float:
        """Return the expected excess of the mean log loss: ln(classes) if nothing is learned."""
        return (1 - self.learned) * math.log(classes)
