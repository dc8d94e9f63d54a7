"""The methods of k-means: noise on a grid and on Lloyd's rounds, on one mean, or inside a study.

A histogram on a public grid costs one row's two counts whatever its size, and tells where clusters
are; one or two rounds of Lloyd's algorithm with K-norm noise then say where exactly. Where noise
would drown these, one private mean serves as the only center. A longer Lloyd inside a study is
offered by name: kd published numbers cost more nats than its rounds save.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.clustering.cell_grid import Frame, Grid, grid_for
from zerodelta.clustering.cluster_forecast import (
    LLOYD_SHARE,
    PURIFIED_SHARES,
    lloyd_rounds,
    mean_kept,
)
from zerodelta.clustering.lloyd import ROW_NORM, Centers, refined, seeds_from
from zerodelta.data.internal import reveal
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Rowwise
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.step import Step
from zerodelta.spaces import Box
from zerodelta.spine.methods import Method
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.study.program import StudyProgram
from zerodelta.study.study import Study
from zerodelta.value import value

_STEPS = 1 << 20


@value
class Problem:
    """So many centers of so many rows within public bounds, at this ε; what was weighed for it."""

    box: Box
    frame: Frame
    clusters: int
    rows: int
    epsilon: Fraction
    methods: tuple[Method, ...]
    error: float
    """The forecast of the method that was chosen."""
    counted: bool = True
    """Whether `rows` is the number of rows, which is public, or a public guess."""

    def grid(self, epsilon: float) -> Grid:
        """Return the grid for counts with Laplace noise of this ε."""
        return grid_for(self.frame.sides, rows=self.rows, clusters=self.clusters, epsilon=epsilon)

    def cells(self, grid: Grid) -> Rowwise:
        """Return the function that gives each row the number of its cell."""
        frame = self.frame
        return Rowwise(lambda block: grid.keys(frame.rows(block)))

    def value(self, points: Floats) -> Floats:
        """Return centers in the units of the data, within the bounds."""
        each = points.reshape(self.clusters, self.box.dimension)
        return np.stack([self.box.project(point) for point in self.frame.back(each)])

    def plan(
        self,
        steps: tuple[Step, ...],
        centers: Callable[[Rows, BitSource], Floats],
        *public: str,
    ) -> ReleasePlan[Rows]:
        """Return the plan of a mechanism that yields centers in the frame."""
        rows = "of rows, " if self.counted else "a number of rows to plan with, "
        known = (
            f"the bounds {self.box!r}, the number of clusters, {self.clusters}, and {rows}"
            f"{self.rows}"
        )
        return ReleasePlan(
            claim=PureDP(self.epsilon),
            steps=steps,
            answer=lambda rows, bits: self.value(centers(rows, bits)),
            error=self.error,
            methods=self.methods,
            public=(known, *public, "every number in the steps"),
        )


def noisy_lloyd(problem: Problem, *, refine: bool) -> ReleasePlan[Rows]:
    """Plan a noisy histogram, and to refine it rounds with K-norm noise in each cluster's block."""
    clusters, epsilon, d = problem.clusters, problem.epsilon, problem.box.dimension
    rounds = lloyd_rounds(d) if refine else 0
    share = Fraction(1, LLOYD_SHARE) if rounds else Fraction(1)
    grid = problem.grid(float(epsilon * share))
    laplace = RoundedLaplace.for_epsilon(epsilon=epsilon * share, sensitivity=2)
    threshold = 0.7 * float(laplace.scale) * math.log(grid.size)
    lattice = FixedPoint.ball(dimension=clusters * (d + 1), bound=ROW_NORM, steps=_STEPS)
    noise = KNorm.for_epsilon(
        epsilon=epsilon * (1 - share) / rounds if rounds else epsilon,  # without rounds: unused
        norm=2,
        dimension=d + 1,
        sensitivity=2 * _STEPS,
    )

    def centers(rows: Rows, bits: BitSource) -> Floats:
        counts = laplace.apply(rows.counts(problem.cells(grid), grid.size), bits)
        seeds = seeds_from(counts, grid, clusters=clusters, threshold=threshold)

        def sums(centers: Centers) -> Any:
            blocks = np.split(rows.sum(Rowwise(centers.vectors), lattice), clusters)
            return np.concatenate([noise.apply(block, bits) for block in blocks])

        deviation = float(noise.scale) * math.sqrt(d + 2)
        return refined(problem.frame, grid, seeds, sums, [deviation] * rounds)

    a_round = (
        "the lattice of a round; a row has an l2 norm of at most half the sensitivity in the block "
        "of one cluster and 0 in the others, and the noise's norm is the sum of the l2 norms of "
        "the blocks"
    )
    return problem.plan(
        (laplace.step(), *(noise.step(quantum=lattice.quantum, blocks=True),) * rounds),
        centers,
        "the grid; replacing a row moves two of its counts by 1, together by 2",
        *([a_round] if rounds else []),
    )


def one_center(problem: Problem) -> ReleasePlan[Rows]:
    """Plan a noisy mean as every center, shrunk to the middle of the bounds by a public factor."""
    frame, n, d = problem.frame, problem.rows, problem.box.dimension
    sides = np.maximum(frame.sides, 1e-300)
    lattice = FixedPoint.box(dimension=d, lower=0, upper=sides.tolist(), steps=_STEPS)
    counted = 0 if problem.counted else 1  # a coordinate for the number of rows, times the steps
    noise = KNorm.for_epsilon(
        epsilon=problem.epsilon, norm=math.inf, dimension=d + counted, sensitivity=2 * _STEPS
    )
    kept = mean_kept(rows=n, epsilon=float(problem.epsilon), dimension=d)
    quantum, unit = lattice.quantum, Fraction(frame.unit)  # of the frame: the longest side
    each = quantum if isinstance(quantum, tuple) else (quantum,) * d

    def shifts(rows: Rows, bits: BitSource) -> Floats:
        """Return how far the mean is from the middle of the bounds."""
        if problem.counted:
            noisy = noise.apply(rows.sum(Rowwise(frame.rows), lattice), bits)
            return lattice.dequantize(noisy, rows=n) / n - sides / 2
        # rows that count nowhere are (0, 0): no coordinate of another moves by more (theory P)
        present, sums = rows.present_sums(Rowwise(frame.rows), lattice, joint=True)
        first, *noisy_sums = noise.apply(np.array([_STEPS * present[0], *sums]), bits).tolist()
        if first <= 0:
            return np.zeros(d)
        shares = (
            float(q * total * _STEPS / first) for q, total in zip(each, noisy_sums, strict=True)
        )
        return np.clip(list(shares), -sides / 2, sides / 2)

    def centers(rows: Rows, bits: BitSource) -> Floats:
        point = np.clip(sides / 2 + kept * shifts(rows, bits), 0, frame.sides)
        return np.tile(point, (problem.clusters, 1))

    return problem.plan(
        (noise.step(quantum=(*[Fraction(1, _STEPS)] * counted, *(unit * one for one in each))),),
        centers,
        "the lattice of the sum; replacing a row moves each column by at most the sensitivity, and "
        "the noise's norm is the largest coordinate",
    )


def purified_lloyd(problem: Problem) -> StudyProgram:
    """Plan a histogram and three rounds inside a study, published on a lattice."""
    frame, total = problem.frame, sum(PURIFIED_SHARES)

    def program(study: Study) -> Floats:
        first, *others = (math.sqrt(share / total) * study.plan.mu for share in PURIFIED_SHARES)
        grid = problem.grid(2 * first)  # Laplace noise of that ε has the deviation √2/μ
        counts = reveal(study.histogram(problem.cells(grid), size=grid.size))
        threshold = math.sqrt(2) / first * math.sqrt(2 * math.log(grid.size))
        seeds = seeds_from(counts, grid, clusters=problem.clusters, threshold=threshold)

        def sums(centers: Centers) -> Any:
            return reveal(study.sum(Rowwise(centers.vectors), norm_bound=ROW_NORM))

        deviations = [2 * ROW_NORM / mu for mu in others]
        return refined(frame, grid, seeds, sums, deviations).ravel()

    corner = np.tile(frame.sides, problem.clusters)
    return StudyProgram(
        study={
            "epsilon": problem.epsilon,
            "publish": Box(np.zeros(len(corner)), corner),
            "rounds": PURIFIED_SHARES,
            "bounds": (problem.box.lower.values, problem.box.upper.values),
            "functions": False,
        },
        program=program,
        value=problem.value,
        error=problem.error,
        methods=problem.methods,
        rehearse=False,
    )
