"""K-norm noise fitted to counts: pure DP where one row moves two counts by one (theory C10.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource
from zerodelta.exact.count_noise import rounded_count_noise
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.integer_sums import add_exactly, check_sums
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mechanisms import k_norm_epsilon

_COARSE = 8
"""Beyond this scale rounding changes the error by less than 0.1 %."""
_FAR, _TERMS = 120, 512
"""What is farther, or has a smaller weight (about 2^-i), adds less than floats can tell."""


@final
@dataclass(frozen=True, slots=True, init=False)
class CountNoise:
    """Releases counts plus round(z), z with density proportional to exp(-max(Σz⁺, Σz⁻)/scale).

    **Neighbors**: replace-one: a row leaves one count (or none) and joins another (or none).
    **Guarantee**: pure DP with ε = 1 / scale: neighboring counts are at most 1 apart in that norm
    (theory R, C10.4).
    **Public**: everything stored here.
    **Error**: 2·scale·d/(d+1) per count before rounding; independent Laplace noise needs 2·scale.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = CountNoise.for_epsilon(epsilon="1/2", dimension=3)
    >>> mechanism.scale, round(mechanism.error(), 1)
    (Fraction(2, 1), 3.0)
    >>> mechanism.apply(np.array([100, 200, 300]), SystemBits()).shape
    (3,)
    """

    dimension: int
    scale: Fraction

    def __init__(self, *, dimension: int, scale: Rational) -> None:
        object.__setattr__(self, "dimension", as_count(dimension, "dimension", minimum=1))
        object.__setattr__(self, "scale", as_positive(scale, "scale"))

    @classmethod
    def for_epsilon(cls, *, epsilon: Rational, dimension: int) -> CountNoise:
        """Return the mechanism with exactly this ε."""
        return cls(dimension=dimension, scale=1 / as_positive(epsilon, "epsilon"))

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        return PureDP(k_norm_epsilon(1, self.scale), neighbors=Neighbors.REPLACE)

    def step(self) -> Step:
        """Return the proof step of one release."""
        numbers = {"norm": "counts", "quantum": 1, "sensitivity": 1, "scale": self.scale}
        return Step(theorem="k-norm-noise", numbers=numbers)

    def apply(self, counts: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy counts; never wraps around."""
        check_sums(counts, dimension=self.dimension)
        noise = rounded_count_noise(dimension=self.dimension, scale=self.scale, bits=bits)
        return add_exactly(counts, noise)

    def law(self, *, unit: Fraction) -> NoiseLaw:
        """Return the law of the noise, one integer being `unit` of the value."""
        return NoiseLaw(family="counts", dimension=self.dimension, scale=self.scale, unit=unit)

    def error(self) -> float:
        """Return E|round(z_j)|, the expected absolute error of a count.

        Σ_k P(|z_j| > k + 1/2), whose terms are those of `noise_tails`. At large scales E|z_j|:
        E G = (d+1)·scale; a coordinate of a k-simplex has mean 1/(k+1), and with weights C(d,k)²
        the mean of k/(k+1) is (d/(d+1))², so that E|U_j| = 2d/(d+1)².
        """
        d, scale = self.dimension, float(self.scale)
        if scale > _COARSE:
            return 2 * scale * d / (d + 1)
        tau = (np.arange(math.ceil(_FAR * scale) + 1) + 0.5) / scale
        term, weight = np.exp(-tau), 1.0
        total = term.copy()
        for i in range(1, min(d, _TERMS)):
            term, weight = term * (tau / i), weight * (d - i) / (2 * d - i)
            total += weight * term
        return float(total.sum())
