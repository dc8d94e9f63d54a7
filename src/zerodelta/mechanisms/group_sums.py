"""The sum of one bounded column by group, where a row without a value adds nothing (theory G2, H).

How to use it, from public numbers to the sums::

    plan = plan_sums(epsilon=1, bounds=(0, 200_000), groups=12, expected_rows=10_000)
    k = plan.integers(values)                 # each row by itself, in data/; no value adds nothing
    sums = plan.apply(Σ over the rows of a group of k, bits)

A sum alone is measured from 0, not from the middle of the bounds: a row may be missing, in another
group or filtered out, and then it adds 0. It has less noise than the sum of `plan_moments`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.moments import steps_for, value_of
from zerodelta.mechanisms.partition_noise import BlockNoise
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.step import Step

__all__ = ["SumPlan", "plan_sums"]

Floats: TypeAlias = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SumPlan:
    """What a row adds, between `lowest` and `highest` or 0, and the noise on the sums.

    **Neighbors**, **Guarantee**: those of `noise`.
    **Public**: everything stored here.
    **Error**: `error`.
    """

    lattice: FixedPoint
    lowest: int
    highest: int
    noise: RoundedLaplace | BlockNoise
    groups: int

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        return self.noise.claim

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof."""
        return (self.noise.step(),)

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise on the released sums."""
        return self.noise.law(unit=self._quantum)

    def integers(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
        """Return what each of n values adds, clipped to the bounds; a NaN adds nothing."""
        column = np.asarray(values).reshape(-1, 1)
        clipped = np.clip(self.lattice.quantize(column)[:, 0], self.lowest, self.highest)
        return np.where(np.isnan(column[:, 0]), 0, clipped)

    def apply(self, sums: npt.NDArray[Any], bits: BitSource) -> Floats:
        """Return the noisy sum of every group, in the column's own unit."""
        noisy = self.noise.apply(np.asarray(sums).reshape(-1), bits)
        return value_of((Fraction(1),), noisy.reshape(-1, 1)) * float(self._quantum)

    def error(self) -> float:
        """Return the standard error of a sum, the same for every group."""
        return math.sqrt(2) * float(self.noise.scale * self._quantum)

    @property
    def _quantum(self) -> Fraction:
        quantum = self.lattice.quantum
        return quantum[0] if isinstance(quantum, tuple) else quantum


def plan_sums(
    *,
    epsilon: Rational,
    bounds: tuple[Rational, Rational],
    groups: int = 1,
    expected_rows: int,
    unit_rows: int = 1,
    neighbors: Neighbors = Neighbors.REPLACE,
) -> SumPlan:
    """Plan the sums of a column by group, for any number of groups at the ε of one.

    Without groups a replaced row moves the sum from one end of the bounds (or 0) to the other. With
    groups it leaves one and joins another: twice the larger end. An added or removed row moves one
    sum by the larger end.

    >>> plan = plan_sums(epsilon=1, bounds=(0, 100), expected_rows=1000)
    >>> plan.steps[0].theorem, round(plan.error())
    ('rounded-laplace', 141)
    >>> round(plan_sums(epsilon=1, bounds=(0, 100), groups=12, expected_rows=1000).error())
    283
    """
    exact, n = as_usable_epsilon(epsilon), as_count(expected_rows, "expected_rows", minimum=1)
    lower, upper = (as_rational(end, "bounds") for end in bounds)
    require(
        lower < upper,
        "bounds",
        bounds,
        expected="(lower, upper), lower < upper",
        remedy="do not swap the ends",
    )
    count, rows = as_count(groups, "groups", minimum=1), as_count(unit_rows, "unit_rows", minimum=1)
    largest = max(abs(lower), abs(upper))
    steps = steps_for(n, exact, degree=1)
    lattice = FixedPoint.ball(dimension=1, bound=largest, norm=math.inf, steps=steps)
    lowest, highest = math.ceil(lower * steps / largest), math.floor(upper * steps / largest)
    noise: RoundedLaplace | BlockNoise
    if count == 1 and neighbors is Neighbors.REPLACE:
        moved = rows * (max(highest, 0) - min(lowest, 0))
        noise = RoundedLaplace.for_epsilon(epsilon=exact, sensitivity=moved)
    else:
        noise = BlockNoise.for_epsilon(
            epsilon=exact,
            blocks=count,
            dimension=1,
            row_bound=steps,
            unit_rows=rows,
            neighbors=neighbors,
        )
    return SumPlan(lattice=lattice, lowest=lowest, highest=highest, noise=noise, groups=count)
