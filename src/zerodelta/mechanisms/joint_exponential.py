"""Several quantiles drawn together: their number costs no ε (theory Q).

`JointExponential` is the mechanism. It is handed runs of a grid that is finer than the public one:
every row is moved to a random place within its own cell, by itself, so that rows on one point are
apart (`fine_rows`); the cell of a drawn point is published.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.joint_ranks import joint_points
from zerodelta.exact.rank_bounds import Ranks
from zerodelta.exact.rank_messages import Runs, ranks_asked_first
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.joint_quantiles import joint_quantiles_epsilon
from zerodelta.value import value

CELL_BITS = 20
"""A cell of the public grid has 2^20 places."""


@value
class JointExponential:
    """Releases m points in rising order, of each group, drawn by how many rows lie between them.

    **Neighbors**: one row replaced, or added or removed; a row may be absent, or in no group.
    **Guarantee**: pure DP with ε = 4·rate for one group, twice 4·rate·(1 - the smallest gap) for
    several, half of that for add-remove; gaps are the differences of 0, levels and 1 (theory Q).
    **Public**: everything stored here. The number N of rows is not: level q aims at rank q·N.
    **Error**: `rank_error`.

    >>> joint = JointExponential.for_epsilon(epsilon=1, levels=["1/4", "1/2", "3/4"])
    >>> joint.rate, joint.gaps[0], round(joint.rank_error, 1)
    (Fraction(1, 4), Fraction(1, 4), 3.3)
    """

    levels: tuple[Fraction, ...]
    rate: Fraction
    groups: int
    neighbors: Neighbors

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        levels: Sequence[Rational],
        groups: int = 1,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> JointExponential:
        """Return the mechanism with exactly this ε."""
        exact = tuple(Fraction(level) for level in levels)
        rising = all(a < b for a, b in itertools.pairwise(exact))
        require(
            bool(exact) and rising and exact[0] >= 0 and exact[-1] <= 1,
            "levels",
            [str(level) for level in exact],
            expected="numbers from 0 to 1 in rising order",
            remedy="pass each level once, sorted",
        )
        count = as_count(groups, "groups", minimum=1)
        unit = cls(levels=exact, rate=Fraction(1), groups=count, neighbors=neighbors)
        rate = as_positive(epsilon, "epsilon") / unit.claim.exact_epsilon
        return replace(unit, rate=rate)

    @property
    def gaps(self) -> tuple[Fraction, ...]:
        """Which part of the rows should lie before, between and behind the points."""
        ends = (Fraction(0), *self.levels, Fraction(1))
        return tuple(b - a for a, b in itertools.pairwise(ends))

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        epsilon = joint_quantiles_epsilon(
            rate=self.rate,
            levels=len(self.levels),
            least_gap=min(self.gaps),
            groups=self.groups,
            neighbors=self.neighbors,
        )
        return PureDP(epsilon, neighbors=self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one release."""
        numbers = {
            "rate": self.rate,
            "levels": len(self.levels),
            "least_gap": min(self.gaps),
            "groups": self.groups,
        }
        return Step(theorem="joint-quantiles", numbers=numbers, neighbors=self.neighbors)

    def draw(self, runs: Runs, bits: BitSource) -> list[int]:
        """Return the cells of the drawn points, in rising order."""
        # a fixed part of N, not a whole rank: that would move by 1 where N does (theory Q)
        gaps = [runs.count * gap for gap in self.gaps]
        found = joint_points(runs, gaps, rate=self.rate, bits=bits)
        return [point >> CELL_BITS for point in found]

    def near(self, count: int, *, points: int) -> tuple[Ranks, ...]:
        """Return which ranks of so many rows a draw will ask for first: only time rests on it."""
        gaps = [count * gap for gap in self.gaps]
        return ranks_asked_first(count, gaps, self.rate, points=points << CELL_BITS)

    @property
    def rank_error(self) -> float:
        """The expected rank error of a point, in rows, where rows lie densely.

        1.9·√m/ε at ε = 4·rate, measured in bench/tables_quantiles.py.
        """
        return 1.9 * math.sqrt(len(self.levels)) / float(4 * self.rate)


def fine_rows(points: Integers, bits: BitSource) -> Integers:
    """Return a place of the fine grid for each row, uniform among those of its cell.

    >>> from zerodelta.exact.bits import SystemBits
    >>> (fine_rows(np.array([3, 3]), SystemBits()) >> CELL_BITS).tolist()
    [3, 3]
    """
    places = bits.words(len(points)) >> np.uint64(64 - CELL_BITS)
    moved: Integers = (points << CELL_BITS) | places.astype(np.int64)
    return moved
