"""Define losses and small models for `Study.minimize` and `zd.select_model`."""

from __future__ import annotations

from zerodelta.training.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from zerodelta.training.models import LinearPredictor, NetworkModel, TanhNetwork, TorchModel

__all__ = [
    "Hinge",
    "Huber",
    "LinearPredictor",
    "Logistic",
    "Loss",
    "Multinomial",
    "NetworkModel",
    "Squared",
    "TanhNetwork",
    "TorchModel",
]
