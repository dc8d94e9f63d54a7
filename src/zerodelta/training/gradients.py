"""The gradients of a built-in loss or of a function, as exact integer sums (theory C1, A6.2)."""

from __future__ import annotations

from typing import Any

from zerodelta.exact.rational import Rational
from zerodelta.training.callable_gradients import CallableGradients, GradientFunction, Layers
from zerodelta.training.gradient_sums import Gradients, Indices
from zerodelta.training.linear_gradients import LinearGradients
from zerodelta.training.losses import Loss

__all__ = [
    "CallableGradients",
    "GradientFunction",
    "Gradients",
    "Indices",
    "Layers",
    "LinearGradients",
    "gradients_of",
]


def gradients_of(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    radius: Rational,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    dimension: int | None = None,
) -> Gradients:
    """Return the gradients of a built-in loss (needs `data_norm`) or of a function (needs `clip`).

    A function sees rows whose last column is the label, if labels are given.
    """
    if isinstance(loss, Loss):
        return LinearGradients(
            features, labels, loss=loss, radius=radius, data_norm=data_norm, clip=clip
        )
    return CallableGradients(
        features, labels, gradient=loss, radius=radius, clip=clip, dimension=dimension
    )
