"""Models that `zd.select_model` can train inside a study; what they make of rows is proven."""

from __future__ import annotations

from zerodelta.training.candidate_models import LinearModel, NetworkModel

__all__ = ["LinearModel", "NetworkModel"]
