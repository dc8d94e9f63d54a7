"""The law of the noise on a released value, kept with it: intervals are computed from it later."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

__all__ = ["NoiseLaw"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseLaw:
    """The value is (integers + round(z)) times `unit`, before it is clipped to where it can be.

    `family`: "k-norm" (density of z ∝ exp(-‖z‖/scale) in l1, l2 or l∞ `norm`, over `dimension`
    coordinates together), "counts" (density ∝ exp(-max(Σz⁺, Σz⁻)/scale), over `dimension` counts),
    or "gaussian" and "laplace", where coordinates are independent.
    `scale` is in integers: b, or for "gaussian" the standard deviation squared. `unit` is one
    integer in the value's own units, for all coordinates or for each.
    """

    family: Literal["k-norm", "counts", "gaussian", "laplace"]
    scale: Fraction
    unit: Fraction | tuple[Fraction, ...]
    dimension: int = 1
    norm: float = 1.0
