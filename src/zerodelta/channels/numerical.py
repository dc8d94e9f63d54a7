"""Numerical error is transport: publish an approximately computed pure value (Theorem N)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier
from zerodelta.exact.bits import BitSource
from zerodelta.exact.k_norm import rounded_k_norm
from zerodelta.exact.rational import as_positive, as_rational
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.transport import numerical_error_epsilon
from zerodelta.spaces import Ball
from zerodelta.spaces.reading import read_exactly
from zerodelta.value import value


@value
class NumericalError(Purifier):
    """Publish round_s(value + K) for a value that is within `error` of an ideal pure mechanism.

    Guarantee: (ε₁ + 2·error/scale)-DP if the ideal mechanism is ε₁-DP and the error bound holds
    *surely*, for every dataset, in the norm of the noise (Theorem N). The spacing costs nothing.
    Error: E‖K‖ = dimension · scale, plus the rounding.
    """

    space: Ball
    error: Fraction
    scale: Fraction
    spacing: Fraction
    status: Status = Status.ASSERTED
    """Proven only where the error bound itself is: a certified solver, not a caller's assertion."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", as_rational(self.error, "error"))
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "spacing", as_positive(self.spacing, "spacing"))
        numerical_error_epsilon(error=self.error, scale=self.scale)

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the rounded noisy value, projected onto the space.

        Floats are exact rationals and the *sum* is rounded: nothing is rounded before the noise.
        Cutting each coordinate to the ball's bounding box is exact and brings no two values further
        apart, so it keeps the error bound; projecting in floats would not.
        """
        middle, radius = self.space.middle(), self.space.radius
        origin = [Fraction(float(coordinate)) for coordinate in middle]
        vector = read_exactly(value, self.space.dimension) or origin
        center = [
            min(max(x - m, -radius), radius) / self.spacing
            for x, m in zip(vector, origin, strict=True)
        ]
        drawn = rounded_k_norm(
            norm=self.space.norm,
            dimension=self.space.dimension,
            scale=self.scale / self.spacing,
            size=1,
            bits=bits,
            center=center,
        )[0]
        return np.asarray(
            self.space.project(middle + drawn.astype(np.float64) * float(self.spacing))
        )

    def expected_error(self) -> float:
        """Return E‖K‖ plus the rms rounding error."""
        d = self.space.dimension
        return d * float(self.scale) + float(self.spacing) * math.sqrt(d / 12)

    def step(self) -> Step:
        """Return Theorem N with its numbers."""
        numbers = {"error": self.error, "scale": self.scale}
        return Step(theorem="numerical-error", numbers=numbers, status=self.status)
