"""Several quantiles of a column, of all rows or by group: which method and levels (theory Q).

The joint exponential mechanism, unless the grid is so small that counts of all its points are
better. All choices are made from public numbers, and the number of rows is not needed.
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
from zerodelta.exact.rational import as_count
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

_MOST_LEVELS = 99
"""More are interpolated between so many: further ones cost more than they tell."""
_FINEST = 1 << 20
_BENT = 0.75
"""Rows that interpolation between m levels is off are about n/m² times this (measured in
bench/tables_quantiles.py): a distribution is no line between two of its quantiles."""


@value
class QuantilePlan:
    """Quantiles of one column at given levels, of all rows or of each of some groups.

    A function of public numbers. `steps` prove `claim` for one row; `answer` reads the rows.
    """

    levels: tuple[Fraction, ...]
    """In the order in which they were asked."""
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
        """Return the quantiles of all rows, one for each level."""
        source = GridRows(rows=rows, points=self.points, skip=self.skip, column=column)
        if isinstance(self.mechanism, JointExponential):
            if rows.adds_here:
                return self._drawn(self.mechanism, grid_runs(source, bits), bits)
            line = ClusterLine(rows, source.snap, groups=1, size=self.points.size)
            return self._drawn(self.mechanism, ClusterRuns(line, 0, bits), bits)
        (found,) = self._from_counts(self.mechanism.release(source.counts()[None, :], bits))
        return np.asarray(found)

    def by_group(
        self,
        rows: Rows,
        bits: BitSource,
        *,
        keys: GroupKeys,
        column: Column,
    ) -> Floats:
        """Return the quantiles of each group, of shape (groups, levels).

        `keys` may be fewer groups than were planned for, if each is drawn by itself ("joint").
        """
        grouped = GroupedColumn(
            rows=rows, keys=keys, column=column, points=self.points, skip=self.skip
        )
        if isinstance(self.mechanism, CumulativeCounts):
            return self._from_counts(self.mechanism.release(grouped.counts(), bits))
        # the group's own private size decides the ranks; an empty group is one like any other
        near = partial(self.mechanism.near, points=self.points.size)
        drawn = (self._drawn(self.mechanism, runs, bits) for runs in grouped.runs(bits, near=near))
        return np.array(list(drawn))

    def _drawn(self, joint: JointExponential, runs: Runs, bits: BitSource) -> Floats:
        """Return the values of drawn points at the levels asked, between them interpolated."""
        values = np.array([self.points.value(point) for point in joint.draw(runs, bits)])
        known = np.array([float(level) for level in joint.levels])
        asked = np.array([float(level) for level in self.levels])
        found, order = np.interp(asked, known, values), np.argsort(asked)
        found[order] = np.maximum.accumulate(found[order])  # a line may end an ulp too high
        return np.asarray(np.clip(found, values[0], values[-1]))

    def _from_counts(self, cumulative: Floats) -> Floats:
        """Return the first point of each group up to which there are enough rows."""
        found = np.empty((len(cumulative), len(self.levels)))
        for g, group in enumerate(cumulative):
            wanted = [float(level) * group[-1] for level in self.levels]
            places = np.searchsorted(group, np.maximum(wanted, 1e-9), side="left")
            empty = (len(group) - 1) // 2  # no rows at all: the middle
            places = np.where(group[-1] > 0, np.minimum(places, len(group) - 1), empty)
            found[g] = [self.points.value(int(place)) for place in places]
        return found


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
    margin: int | None = None,
    method: str = "auto",
) -> QuantilePlan:
    """Return the plan, for one row; `expected_rows` are those of all groups together.

    `total`: the number of rows, where it is public and every row counts.
    """
    asked, rows = tuple(levels), max(1.0, expected_rows / groups)
    effective = epsilon if groups == 1 or neighbors is Neighbors.ADD_REMOVE else epsilon / 2
    used = aimed_levels(
        asked, rows=rows, points=points.size, epsilon=float(effective), margin=margin
    )
    joint = JointExponential.for_epsilon(
        epsilon=epsilon, levels=used, groups=groups, neighbors=neighbors
    )
    away = [abs(min(max(level, used[0]), used[-1]) - level) for level in asked]
    error = joint.rank_error + float(sum(away)) / len(away) * rows
    few = ""
    if len(used) < len({min(max(level, used[0]), used[-1]) for level in asked}):
        few = f"at {len(used)} levels, others between them; "
        error += _BENT * rows / (len(used) + 1) ** 2
    error = min(error, rows / 2)
    methods = [
        Method(
            name="joint",
            error=error,
            spends="ε on all levels together",
            why=few + "no ε is split over levels",
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
        levels=asked,
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
    levels: Sequence[Fraction], *, rows: float, points: int, epsilon: float, margin: int | None
) -> tuple[Fraction, ...]:
    """Return at which levels to draw: those asked, inside an end margin, or fewer.

    The base measure, the number of points, draws many levels toward sparse parts: about
    (nε/(2Λ))^(2/3) can be told apart, Λ = min(10, ln points), and an end needs 2 ln(points)/ε rows
    (theory Q). Both are parts of the rows, for a number of rows that is private.

    >>> thirds = [Fraction(1, 3), Fraction(2, 3)]
    >>> aimed_levels(thirds, rows=1000, points=2**40, epsilon=1.0, margin=None) == tuple(thirds)
    True
    >>> aimed_levels(thirds, rows=50, points=2**40, epsilon=1.0, margin=None)
    (Fraction(1, 2),)
    """
    spread = max(min(10.0, math.log(points)), 1.0)
    most = max(1, math.floor((rows * min(epsilon, 1e6) / (2 * spread)) ** (2 / 3)))
    wide = 2 * math.log(points) / min(epsilon, 1e6)
    if margin is not None:
        wide = float(min(as_count(margin, "margin"), rows))
    end = Fraction(min(wide / rows, 0.5)).limit_denominator(_FINEST)
    inside = sorted({min(max(level, end), 1 - end) for level in levels})
    most = min(most, _MOST_LEVELS)
    if len(inside) <= most:
        return tuple(inside)
    first, last = inside[0], inside[-1]
    if most == 1:
        return (((first + last) / 2).limit_denominator(_FINEST),)
    step = (last - first) / (most - 1)
    between = [(first + i * step).limit_denominator(_FINEST) for i in range(1, most - 1)]
    return tuple(sorted({first, *between, last}))
