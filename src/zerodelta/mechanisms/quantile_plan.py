"""Choose the method and the levels for quantiles of a column, of all rows or by group (theory Q).

The method is the joint exponential mechanism, unless the grid is so small that counts of all its
points err less. All choices are made from public numbers; the exact number of rows is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from zerodelta.data.keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.joint_ranks import Runs
from zerodelta.mechanisms.joint_quantiles import JointExponential, grid_runs
from zerodelta.mechanisms.ranks import EvenPoints, GridRows, ListedPoints
from zerodelta.mechanisms.runs import (
    MOST_CELLS,
    ClusterLine,
    ClusterRuns,
    CumulativeCounts,
    GroupedColumn,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.spine.plan import Method, choose, ranked
from zerodelta.value import value

_FEWEST_LEVELS, _MOST_LEVELS = 3, 99
"""How many levels are drawn if more are asked; others are interpolated between these."""
_FINEST = 1 << 20
"""The largest denominator of a level that is drawn but was not in the call."""
_CURVATURE = 0.75
"""Interpolation between m levels is off by about this times n/m² rows, because a distribution
function is not a line between two quantiles (measured in bench/tables_quantiles.py)."""


@value
class QuantilePlan:
    """The public plan for quantiles of one column, of all rows or of each group.

    It depends on public numbers only. `steps` prove `claim` for one row; `answer` reads the rows.
    """

    levels: tuple[Fraction, ...]
    """In the order of the call."""
    points: EvenPoints | ListedPoints
    skip: bool
    claim: PureDP
    steps: tuple[Step, ...]
    error: float
    """The expected rank error in rows, averaged over the levels."""
    methods: tuple[Method, ...]
    mechanism: JointExponential | CumulativeCounts
    groups: int = 1

    def answer(self, rows: Rows, bits: BitSource, *, column: int = 0) -> Floats:
        """Return the quantiles of a column at each level, jointly or from a tree of counts."""
        source = GridRows(rows=rows, points=self.points, skip=self.skip, column=column)
        if isinstance(self.mechanism, JointExponential):
            if rows.adds_here:
                return self._drawn(self.mechanism, grid_runs(source, bits), bits)
            line = ClusterLine(rows, source.snap, groups=1, size=self.points.size)
            return self._drawn(self.mechanism, ClusterRuns(line, 0, bits), bits)
        (quantiles,) = self._from_counts(self.mechanism.release(source.counts()[None, :], bits))
        return np.asarray(quantiles)

    def by_group(
        self,
        rows: Rows,
        bits: BitSource,
        *,
        keys: GroupKeys,
        column: Column,
    ) -> Floats:
        """Return the quantiles of each group, as an array of shape (groups, levels).

        `keys` may have fewer groups than were planned for if the method is "joint", which draws
        each group by itself.
        """
        grouped = GroupedColumn(
            rows=rows, keys=keys, column=column, points=self.points, skip=self.skip
        )
        if isinstance(self.mechanism, CumulativeCounts):
            return self._from_counts(self.mechanism.release(grouped.counts(), bits))
        # the ranks come from the private size of each group; an empty group is drawn like the rest
        read_first = partial(self.mechanism.ranks_read_first, points=self.points.size)
        groups = grouped.runs(bits, read_first=read_first)
        return np.array([self._drawn(self.mechanism, runs, bits) for runs in groups])

    def _drawn(self, joint: JointExponential, runs: Runs, bits: BitSource) -> Floats:
        """Draw points at the levels of `joint`, and interpolate at the levels of the call."""
        values = np.array([self.points.value(point) for point in joint.draw(runs, bits)])
        drawn_levels = np.array([float(level) for level in joint.levels])
        levels = np.array([float(level) for level in self.levels])
        quantiles, order = np.interp(levels, drawn_levels, values), np.argsort(levels)
        # interpolation may end one ulp too high
        quantiles[order] = np.maximum.accumulate(quantiles[order])
        return np.asarray(np.clip(quantiles, values[0], values[-1]))

    def _from_counts(self, cumulative: Floats) -> Floats:
        """Return for each group and level the first point with enough rows up to it."""
        quantiles = np.empty((len(cumulative), len(self.levels)))
        for g, group in enumerate(cumulative):
            wanted = [float(level) * group[-1] for level in self.levels]
            places = np.searchsorted(group, np.maximum(wanted, 1e-9), side="left")
            middle = (len(group) - 1) // 2  # where the noisy counts show no rows at all
            places = np.where(group[-1] > 0, np.minimum(places, len(group) - 1), middle)
            quantiles[g] = [self.points.value(int(place)) for place in places]
        return quantiles


def plan_quantiles(
    *,
    epsilon: Fraction,
    levels: Sequence[Fraction],
    points: EvenPoints | ListedPoints,
    expected_rows: int,
    skip: bool,
    groups: int = 1,
    total: int | None = None,
    neighbors: Neighbors = Neighbors.REPLACE,
    margin: int = 0,
    method: str = "auto",
) -> QuantilePlan:
    """Choose joint selection or a tree of counts by forecast, and return its plan.

    `expected_rows` is the number of rows of all groups together; `total` is the number of rows,
    where it is public and every row counts.
    """
    levels, rows = tuple(levels), max(1.0, expected_rows / groups)
    # a replaced row may change two groups, one of them losing it and one gaining it
    group_epsilon = epsilon if groups == 1 or neighbors is Neighbors.ADD_REMOVE else epsilon / 2
    drawn = aimed_levels(
        levels, rows=rows, points=points.size, epsilon=float(group_epsilon), margin=margin
    )
    joint = JointExponential.for_epsilon(
        epsilon=epsilon, levels=drawn, groups=groups, neighbors=neighbors
    )
    within = [min(max(level, drawn[0]), drawn[-1]) for level in levels]
    distances = [abs(nearest - level) for nearest, level in zip(within, levels, strict=True)]
    error = joint.rank_error + float(sum(distances)) / len(distances) * rows
    interpolated = ""
    if len(drawn) < len(set(within)):
        interpolated = f"at {len(drawn)} levels, others between them; "
        error += _CURVATURE * rows / (len(drawn) + 1) ** 2
    error = min(error, rows / 2)
    methods = [
        Method(
            name="joint",
            error=error,
            spends="ε on all levels together",
            why=interpolated + "no ε is split over levels",
        )
    ]
    if points.size * groups <= MOST_CELLS:
        counts = CumulativeCounts.for_epsilon(
            epsilon=epsilon, cells=points.size, groups=groups, total=total, neighbors=neighbors
        )
        blocks = "" if counts.width == 1 else f" and of blocks of {counts.width}"
        methods.append(
            Method(
                name="counts",
                error=min(counts.rank_error, rows / 2),
                spends="ε on counts of all points" + blocks,
                why="the number of levels is free, that of points is not",
            )
        )
    chosen = choose(methods, method)
    by_joint = chosen.name == "joint"
    noise = joint if by_joint else counts.noise
    return QuantilePlan(
        levels=levels,
        points=points,
        skip=skip,
        claim=noise.claim,
        steps=(noise.step(),),
        error=chosen.error,
        methods=ranked(*methods),
        mechanism=joint if by_joint else counts,
        groups=groups,
    )


def aimed_levels(
    levels: Sequence[Fraction], *, rows: float, points: int, epsilon: float, margin: int = 0
) -> tuple[Fraction, ...]:
    """Return the levels to draw: those of the call, or fewer between the same ends.

    The law prefers parts of the grid with many points, which are sparse in rows, so that not more
    than about (nε/(2Λ))^(2/3) levels can be separated, Λ = min(10, ln points) (theory Q). Three
    are always drawn: two alone leave most rows between them to interpolation (measured in
    bench/quantile_margins.py). Levels are kept `margin` rows away from both ends, for the expected
    number of rows, because the true one may be private.

    >>> fifths = [Fraction(i, 5) for i in range(1, 5)]
    >>> aimed_levels(fifths, rows=1000, points=2**40, epsilon=1.0) == tuple(fifths)
    True
    >>> aimed_levels(fifths, rows=50, points=2**40, epsilon=1.0)
    (Fraction(1, 5), Fraction(1, 2), Fraction(4, 5))
    """
    spread = max(min(10.0, math.log(points)), 1.0)
    separable = math.floor((rows * min(epsilon, 1e6) / (2 * spread)) ** (2 / 3))
    end = Fraction(min(min(margin, math.ceil(rows)) / rows, 0.5)).limit_denominator(_FINEST)
    inside = sorted({min(max(level, end), 1 - end) for level in levels})
    number = min(max(separable, _FEWEST_LEVELS), _MOST_LEVELS)
    if len(inside) <= number:
        return tuple(inside)
    first, last = inside[0], inside[-1]
    step = (last - first) / (number - 1)
    between = [(first + i * step).limit_denominator(_FINEST) for i in range(1, number - 1)]
    return tuple(sorted({first, *between, last}))
