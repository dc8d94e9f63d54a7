"""K-norm noise on exact integer sums: pure DP in the norm that fits the rows (theory R, C10.4)."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.k_norm import rounded_k_norm
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.integer_sums import add_exactly, check_sums
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.domains import MOST_ENTRIES
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mechanisms import OWN_UNITS, k_norm_epsilon


def as_norm(norm: float) -> float:
    """Return the norm as a float, refusing all but 1, 2 and infinity."""
    plain = isinstance(norm, numbers.Real) and not isinstance(norm, bool)
    known = plain and norm in (1, 2, math.inf)
    remedy = "pass one of these three norms"
    require(known, "norm", norm, expected="1, 2 or math.inf", remedy=remedy)
    return float(norm)


@final
@dataclass(frozen=True, slots=True, init=False)
class KNorm:
    """Releases an integer vector plus round(z), z with density proportional to exp(-‖z‖/scale).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = sensitivity / scale, if neighboring vectors are at most
    `sensitivity` apart in `norm` (1, 2 or ``math.inf``), whatever the dimension (theory R, C10.4).
    **Public**: everything stored here.
    **Error**: per coordinate scale (l1), scale·(d+1)/2 (linf), about scale·√(2d/π) (l2).

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = KNorm.for_epsilon(epsilon=1, norm=math.inf, dimension=3, sensitivity=10)
    >>> mechanism.scale, mechanism.error()
    (Fraction(10, 1), 20.0)
    >>> mechanism.apply(np.array([100, 200, 300]), SystemBits()).shape
    (3,)
    """

    norm: float
    dimension: int
    sensitivity: Fraction
    scale: Fraction
    neighbors: Neighbors

    def __init__(
        self,
        *,
        norm: float,
        dimension: int,
        sensitivity: Rational,
        scale: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        object.__setattr__(self, "norm", as_norm(norm))
        object.__setattr__(self, "dimension", as_count(dimension, "dimension", minimum=1))
        object.__setattr__(self, "sensitivity", as_positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "scale", as_positive(scale, "scale"))
        object.__setattr__(self, "neighbors", neighbors)

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        norm: float,
        dimension: int,
        sensitivity: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> KNorm:
        """Return the mechanism with exactly this ε."""
        moved = as_positive(sensitivity, "sensitivity")
        return cls(
            norm=norm,
            dimension=dimension,
            sensitivity=moved,
            scale=moved / as_positive(epsilon, "epsilon"),
            neighbors=neighbors,
        )

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        epsilon = k_norm_epsilon(self.sensitivity, self.scale)
        return PureDP(epsilon, neighbors=self.neighbors)

    def step(
        self, *, quantum: Fraction | tuple[Fraction, ...] | None, blocks: bool = False
    ) -> Step:
        """Return the proof step of one release, or of one for each block of a longer vector.

        `quantum` says what one unit of the integers is in the data's own units, for every
        coordinate or for each; None where the integers are counts, or have no other unit.
        With ``blocks=True`` the noise of all blocks together has the sum of their l2 norms as its
        norm, in which neighboring vectors are at most `sensitivity` apart.
        """
        remedy = "pass KNorm(norm=2, ...)"
        require(
            not blocks or self.norm == 2,
            "blocks",
            blocks,
            expected="False unless norm=2",
            remedy=remedy,
        )
        words = {1: 1, 2: "blocks" if blocks else 2, math.inf: "inf"}
        numbers = {
            "norm": words[self.norm],
            "quantum": _short(quantum),
            "sensitivity": self.sensitivity,
            "scale": self.scale,
        }
        return Step(theorem="k-norm-noise", numbers=numbers, neighbors=self.neighbors)

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy vector; never wraps around."""
        check_sums(sums, dimension=self.dimension)
        noise = rounded_k_norm(
            norm=self.norm, dimension=self.dimension, scale=self.scale, size=1, bits=bits
        )
        return add_exactly(sums, noise[0])

    def law(self, *, unit: Fraction | tuple[Fraction, ...], rows: int = 1) -> NoiseLaw:
        """Return the law of the noise on a sum, or on a mean of so many `rows`.

        One integer is `unit` of the sum.
        """
        shared = tuple(u / rows for u in unit) if isinstance(unit, tuple) else unit / rows
        return NoiseLaw(
            family="k-norm", norm=self.norm, dimension=self.dimension, scale=self.scale, unit=shared
        )

    def error(self) -> float:
        """Return E|z_j|, the expected absolute error of a coordinate before rounding.

        Rounding moves a coordinate by at most one half. For l2 it is E‖z‖ = d·scale times the mean
        magnitude Γ(d/2) / (√π Γ((d+1)/2)) of a coordinate on the unit sphere.
        """
        scale, d = float(self.scale), self.dimension
        if self.norm == 1:
            return scale
        if self.norm == 2:
            logs = math.lgamma(d / 2) - math.lgamma((d + 1) / 2)
            return scale * d * math.exp(logs) / math.sqrt(math.pi)
        return scale * (d + 1) / 2


def _short(quantum: Fraction | tuple[Fraction, ...] | None) -> Fraction | list[Fraction] | str:
    """Return one quantum if all coordinates share it, a word for more than a step may list."""
    if quantum is None:
        return Fraction(1)
    if isinstance(quantum, Fraction):
        return quantum
    if len(set(quantum)) == 1:
        return quantum[0]
    return list(quantum) if len(quantum) <= MOST_ENTRIES else OWN_UNITS
