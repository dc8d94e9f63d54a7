"""Theorem S2: publish the last Gaussian vector itself, mixed with a wider Gaussian; no grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier, mix
from zerodelta.channels.exact_reading import read_exactly
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Integers
from zerodelta.exact.noise import rounded_gaussian
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.smoothing import (
    GaussianStep,
    best_mixing_variance,
    best_order,
    smoothing_slack,
)
from zerodelta.spaces import Ball

__all__ = ["SmoothMix"]

_FARTHEST = 1 << 500


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SmoothMix(Purifier):
    """The raw last Gaussian vector, or with probability w a wider Gaussian on the same lattice.

    `step_taken` describes the last step in lattice units around the center of `space`; `spacing`
    turns them into the units of `space`, onto which the published point is projected
    (post-processing). `apply` takes the step's integers, `on_lattice` makes them of a raw vector.

    Guarantee: pure t-DP by Corollary S2 with rounded continuous noise (R(iv)); the base's zCDP cost
    ρ must include the last step. The value handed in must be that step's *unprojected* output.
    Error: w times the width of the mixing Gaussian.
    """

    space: Ball
    step_taken: GaussianStep
    spacing: Fraction
    mixing_weight: Fraction
    order: Fraction
    mixing_variance: Fraction
    status: Status = Status.ASSERTED
    """Proven only where the value handed in surely is the described step's own output."""

    def __post_init__(self) -> None:
        if self.space.dimension != self.step_taken.dimension:
            raise ParameterError(
                "space",
                self.space,
                expected=f"dimension {self.step_taken.dimension}, that of the last step",
                remedy="publish on a space of the vector's own dimension",
            )
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        object.__setattr__(self, "spacing", as_positive(self.spacing, "spacing"))

    @staticmethod
    def best(
        space: Ball,
        step: GaussianStep,
        *,
        rho: Rational,
        epsilon: Rational,
        weight: Rational,
        spacing: Rational,
    ) -> SmoothMix:
        """Return the channel with the nearly optimal order and mixing variance."""
        order = best_order(step, rho=rho, epsilon=epsilon)
        return SmoothMix(
            space=space,
            step_taken=step,
            spacing=as_positive(spacing, "spacing"),
            mixing_weight=as_weight(weight),
            order=order,
            mixing_variance=best_mixing_variance(step, order),
        )

    def slack(self, epsilon: Rational, rho: Rational) -> float:
        """Return by how many nats the condition holds, rounded down."""
        return smoothing_slack(
            self.step_taken,
            rho=rho,
            order=self.order,
            mixing_variance=self.mixing_variance,
            weight=self.mixing_weight,
            epsilon=epsilon,
        )

    def on_lattice(self, raw: Any) -> Integers:
        """Return a raw vector, in the units of the space, in whole lattice units.

        The mixing draw is a rounded Gaussian, so the vector must be rounded as exactly (Lemma R):
        round(x) = ⌊x + 1/2⌋ on the rationals that its numbers are. Anything else becomes zeros.
        """
        dimension = self.step_taken.dimension
        vector = read_exactly(raw, dimension)
        if vector is None:
            return np.zeros(dimension, dtype=np.int64)
        center, half = self.space.center.exact(), Fraction(1, 2)
        centers = center * (dimension // len(center))
        units = ((x - c) / self.spacing for x, c in zip(vector, centers, strict=True))
        return np.array([math.floor(unit + half) for unit in units], dtype=object)

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the point of the space that belongs to the vector, or to a mixing draw."""
        dimension = self.step_taken.dimension
        kept = _integer_vector(value, dimension)
        drawn = rounded_gaussian(variance=self.mixing_variance, size=dimension, bits=bits)
        chosen = mix(kept, drawn, self.mixing_weight, bits)
        if chosen.dtype == object:  # beyond this a float overflows, and it is the edge anyway
            chosen = np.clip(chosen, -_FARTHEST, _FARTHEST)
        offset = chosen.astype(np.float64) * float(self.spacing)
        return np.asarray(self.space.project(self.space.middle() + offset))

    def expected_error(self) -> float:
        """Return w · √(d (τ² + σ²)), in the units of the space."""
        spread = self.step_taken.dimension * (self.mixing_variance + self.step_taken.variance)
        return float(self.mixing_weight * self.spacing) * math.sqrt(spread)

    def step(self) -> Step:
        """Return S2 with its numbers."""
        return Step(
            theorem="gaussian-smoothing",
            status=self.status,
            numbers={
                "dimension": self.step_taken.dimension,
                "variance": self.step_taken.variance,
                "radius": self.step_taken.radius,
                "sensitivity": self.step_taken.sensitivity,
                "order": self.order,
                "mixing_variance": self.mixing_variance,
                "weight": self.mixing_weight,
            },
        )


def _integer_vector(value: Any, dimension: int) -> Integers:
    """Return the integer vector, or zeros for anything that is not one (values never raise)."""
    try:
        array = np.asarray(value) if isinstance(value, (np.ndarray, list, tuple)) else np.zeros(0)
        whole = array.dtype.kind in "iu" or (
            array.dtype == object and all(type(entry) is int for entry in array)
        )
        if array.shape == (dimension,) and whole:
            return array
    except BaseException:  # an exception is an output (A14.4)
        pass
    return np.zeros(dimension, dtype=np.int64)
