"""A loss of linear predictors, evaluated three ways: fast, with proven radii, and in Arb.

Predictors ("margins") and slopes are arrays of shape (outputs, rows): one output for a scalar
loss, one per class for softmax. The gradient is Σ row ⊗ slope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from flint import arb

from zerodelta.exact.float_balls import FloatBalls
from zerodelta.regression.integer_rows import Floats

__all__ = ["Loss", "exp_of_negative"]

_LOWEST = -690.0
_UNDERFLOW = 2.0**-990


class Loss(ABC):
    """A convex function of each row's margins, infinitely often differentiable."""

    outputs: int
    only_differences: bool
    """Adding one number to all margins of a row changes nothing."""
    curvature_bound: float
    """No eigenvalue of a row's second derivative in the margins is larger."""

    @abstractmethod
    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return the derivatives at the margins of the rows `where`, in plain floats."""

    @abstractmethod
    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return the derivatives with proven radii; all lie in [-1, 1]."""

    @abstractmethod
    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return one row's derivatives at the working precision of Arb."""

    @abstractmethod
    def curvature(self, margins: Floats, where: slice) -> Any:
        """Return what `bend` and a Hessian need of the second derivatives, in plain floats."""

    @abstractmethod
    def bend(self, curvature: Any, change: Floats) -> Floats:
        """Return second derivative times `change`, row by row, in plain floats."""

    @abstractmethod
    def pair_weights(self, curvature: Any, first: int, second: int) -> Floats:
        """Return the second derivatives in two outputs, one for each row."""

    @abstractmethod
    def thinned(self, every: int) -> Loss:
        """Return the loss of every so-manyth row."""


def exp_of_negative(exponent: FloatBalls) -> FloatBalls:
    """Return e^x for numbers that are at most about 0, also where it underflows.

    Below -690 it is within 2^-990 of 0; `FloatBalls.exp` knows the rest, from -700 on.
    """
    far = exponent.middle + exponent.radius < _LOWEST
    inside = FloatBalls(np.where(far, _LOWEST, exponent.middle), exponent.radius)
    near = inside.exp()
    return FloatBalls(np.where(far, 0.0, near.middle), np.where(far, _UNDERFLOW, near.radius))
