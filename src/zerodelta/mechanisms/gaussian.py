"""Rounded Gaussian noise on exact integer sums: Gaussian DP for l2 sensitivity (theory R, R2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.noise import rounded_gaussian
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.integer_sums import add_exactly, check_sums
from zerodelta.privacy.claims import GaussianDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mechanisms import gaussian_mu_squared

_SMOOTH_DEVIATION = 50
"""From here on the first correction of the midpoint rule leaves less than 1e-8 of the error."""


@final
@dataclass(frozen=True, slots=True, init=False)
class RoundedGaussian:
    """Answers an internal query: an integer vector plus independent noises round(N(0, variance)).

    This is not pure: its answers are purified before anything is published.

    **Neighbors**: those for which `sensitivity_squared` holds; replace-one unless said otherwise.
    **Guarantee**: μ-Gaussian DP with μ² = sensitivity_squared / variance, if neighboring vectors
    are at most √sensitivity_squared apart in the l2 norm (theory R); also when the
    vector was chosen after earlier answers (R2).
    **Public**: everything stored here, and the length of the vector.
    **Error**: about √(2/π) standard deviations per coordinate.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = RoundedGaussian.for_mu_squared(mu_squared="1/50", sensitivity_squared=2)
    >>> mechanism.variance, round(mechanism.error(), 3)
    (Fraction(100, 1), 7.976)
    >>> mechanism.apply(np.array([100, 200]), SystemBits()).shape
    (2,)
    """

    sensitivity_squared: Fraction
    variance: Fraction
    neighbors: Neighbors

    def __init__(
        self,
        *,
        sensitivity_squared: Rational,
        variance: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        squared = as_positive(sensitivity_squared, "sensitivity_squared")
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "variance", as_positive(variance, "variance"))
        object.__setattr__(self, "neighbors", neighbors)

    @classmethod
    def for_mu_squared(
        cls,
        *,
        mu_squared: Rational,
        sensitivity_squared: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> RoundedGaussian:
        """Return the mechanism with exactly this μ²; `calibrate` turns ε and ln δ into one."""
        squared = as_positive(sensitivity_squared, "sensitivity_squared")
        variance = squared / as_positive(mu_squared, "mu_squared")
        return cls(sensitivity_squared=squared, variance=variance, neighbors=neighbors)

    @property
    def claim(self) -> GaussianDP:
        """What one answer costs."""
        mu_squared = gaussian_mu_squared(self.sensitivity_squared, self.variance)
        return GaussianDP(mu_squared=mu_squared, neighbors=self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one answer."""
        numbers = {"sensitivity_squared": self.sensitivity_squared, "variance": self.variance}
        return Step(theorem="rounded-gaussian", numbers=numbers, neighbors=self.neighbors)

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy vector; never wraps around."""
        check_sums(sums)
        return add_exactly(
            sums, rounded_gaussian(variance=self.variance, size=len(sums), bits=bits)
        )

    def error(self) -> float:
        """Return the expected absolute error of a coordinate: 2 sum_{k>=1} P(noise >= k)."""
        deviation = math.sqrt(self.variance)
        if deviation > _SMOOTH_DEVIATION:  # the sum is a midpoint rule for E|N(0, σ²)|
            return deviation * math.sqrt(2 / math.pi) - 1 / (
                12 * math.sqrt(2 * math.pi) * deviation
            )
        cells = range(1, 2 + math.ceil(40 * deviation))
        return math.fsum(math.erfc((k - 0.5) / (deviation * math.sqrt(2))) for k in cells)


def noisy_gram(
    gram: IntegerArray, on_diagonal: RoundedGaussian, beside: RoundedGaussian, bits: BitSource
) -> npt.NDArray[np.float64]:
    """Return a symmetric matrix with symmetric noise.

    In the Frobenius norm each entry beside the diagonal counts twice, so its noise has half the
    variance.
    """
    noisy = np.zeros(gram.shape)
    above = np.triu_indices(len(gram), 1)
    noisy[above] = beside.apply(gram[above], bits)
    noisy += noisy.T
    noisy[np.diag_indices(len(gram))] = on_diagonal.apply(gram.diagonal().copy(), bits)
    return noisy
