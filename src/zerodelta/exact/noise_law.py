"""The law of the noise on released numbers, kept with them: intervals follow from it later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from zerodelta.exact.exact_sums import IntegerArray

__all__ = ["NoiseLaw", "NoisySums"]


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


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NoisySums:
    """Released integers of which a table was made, before it was clipped to where it can be.

    `integers` has one line for each group; `law` is that of the noise on them ("counts": on all
    lines together, "k-norm": on each line, "laplace": on each integer). `forms` has for the number
    of rows (None) one linear form of a line, and for each column those of Σ y^0, Σ y and Σ y² over
    its values, as far as these are known; the last coefficient is a constant. y is a value scaled
    so that its bounds, in `bounds`, are -1 and 1.
    """

    law: NoiseLaw
    integers: IntegerArray
    forms: Mapping[str | None, tuple[tuple[Fraction, ...], ...]]
    bounds: Mapping[str, tuple[Fraction, Fraction]]
