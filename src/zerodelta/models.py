"""Small models: trained by `Study.minimize`, or inside a study by `zd.select_model`."""

from __future__ import annotations

from zerodelta.training.models import LinearModel, NetworkModel, TanhNetwork, TorchModel

__all__ = ["LinearModel", "NetworkModel", "TanhNetwork", "TorchModel"]
