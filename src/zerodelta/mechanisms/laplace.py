"""Rounded Laplace noise on exact integer sums: pure DP for l1 sensitivity (theory R)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.noise import rounded_laplace
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.integer_sums import add_exactly, check_sums
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mechanisms import laplace_epsilon


@final
@dataclass(frozen=True, slots=True, init=False)
class RoundedLaplace:
    """Releases an integer vector plus independent noises round(Laplace(scale)).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = sensitivity / scale, if neighboring vectors are at most
    `sensitivity` apart in the l1 norm (theory R).
    **Public**: everything stored here, and the length of the vector.
    **Error**: E|round(Laplace(b))| = 1/(2 sinh(1/(2b))) per coordinate, about b.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = RoundedLaplace.for_epsilon(epsilon="1/2", sensitivity=2)
    >>> mechanism.scale, round(mechanism.error(), 3)
    (Fraction(4, 1), 3.99)
    >>> mechanism.apply(np.array([100, 200]), SystemBits()).shape
    (2,)
    """

    sensitivity: Fraction
    scale: Fraction
    neighbors: Neighbors

    def __init__(
        self,
        *,
        sensitivity: Rational,
        scale: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        object.__setattr__(self, "sensitivity", as_positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "scale", as_positive(scale, "scale"))
        object.__setattr__(self, "neighbors", neighbors)

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        sensitivity: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> RoundedLaplace:
        """Return the mechanism with exactly this ε."""
        moved = as_positive(sensitivity, "sensitivity")
        scale = moved / as_positive(epsilon, "epsilon")
        return cls(sensitivity=moved, scale=scale, neighbors=neighbors)

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        epsilon = laplace_epsilon(self.sensitivity, self.scale)
        return PureDP(epsilon, neighbors=self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one release."""
        numbers = {"sensitivity": self.sensitivity, "scale": self.scale}
        return Step(theorem="rounded-laplace", numbers=numbers, neighbors=self.neighbors)

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy vector; never wraps around."""
        check_sums(sums)
        return add_exactly(sums, rounded_laplace(scale=self.scale, size=len(sums), bits=bits))

    def law(self, *, unit: Fraction) -> NoiseLaw:
        """Return the law of the noise, one integer being `unit` of the value."""
        return NoiseLaw(family="laplace", scale=self.scale, unit=unit)

    def error(self) -> float:
        """Return the expected absolute error of a coordinate."""
        half_rate = float(1 / (2 * self.scale))
        return 0.0 if half_rate > 700 else 1 / (2 * math.sinh(half_rate))
