"""Small models: trained by `Study.minimize`, or inside a study by `zd.select_model`."""

from __future__ import annotations

from zerodelta.training.candidate_models import LinearModel, NetworkModel
from zerodelta.training.tanh_network import TanhNetwork
from zerodelta.training.torch_model import TorchModel

__all__ = ["LinearModel", "NetworkModel", "TanhNetwork", "TorchModel"]
