"""The ways to k-means centers: noise on a grid and on Lloyd's rounds, on one mean, or in a study.

A histogram on a public grid costs one row's two counts whatever its size, and tells where clusters
are; one or two rounds of Lloyd's algorithm with K-norm noise then say where exactly. Where noise
would drown these, one private mean serves as the only center. A longer Lloyd inside a study is
offered by name: kd published numbers cost more nats than its rounds save.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.clustering.cluster_forecast import (
    LLOYD_SHARE,
    PURIFIED_SHARES,
    kmeans_methods,
    lloyd_rounds,
    mean_kept,
)
from zerodelta.clustering.grid import Floats, Frame, Grid, grid_for
from zerodelta.clustering.lloyd import ROW_NORM, Centers, refined, seeds_from
from zerodelta.data.internal import reveal
from zerodelta.data.row_queries import Rowwise
from zerodelta.data.source import Rows
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.k_norm import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.privacy.step import Step
from zerodelta.spaces import Box
from zerodelta.spine.methods import Method
from zerodelta.study.program import StudyProgram
from zerodelta.study.study import Study

__all__ = ["NoisyLloyd", "OneCenter", "Problem", "purified_lloyd"]

_STEPS = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """So many centers of so many rows within public bounds, at this ε."""

    box: Box
    frame: Frame
    clusters: int
    rows: int
    epsilon: Fraction

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return self.box.dimension

    @property
    def methods(self) -> tuple[Method, ...]:
        """All methods, least predicted error first."""
        return kmeans_methods(
            rows=self.rows,
            clusters=self.clusters,
            epsilon=float(self.epsilon),
            sides=self.frame.sides,
        )

    def grid(self, epsilon: float) -> Grid:
        """Return the grid for counts with Laplace noise of this ε."""
        return grid_for(self.frame.sides, rows=self.rows, clusters=self.clusters, epsilon=epsilon)

    def cells(self, grid: Grid) -> Rowwise:
        """Return the function that gives each row the number of its cell."""
        frame = self.frame
        return Rowwise(lambda block: grid.keys(frame.rows(block)))

    def value(self, points: Floats) -> Floats:
        """Return centers in the units of the data, within the bounds."""
        each = points.reshape(self.clusters, self.dimension)
        return np.stack([self.box.project(point) for point in self.frame.back(each)])

    @property
    def public(self) -> str:
        """What everybody knows."""
        return (
            f"the bounds {self.box!r}, the number of clusters, {self.clusters}, and of rows, "
            f"{self.rows}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLloyd:
    """A noisy histogram, and rounds of Lloyd's algorithm with K-norm noise in each block."""

    problem: Problem
    grid: Grid
    laplace: RoundedLaplace
    lattice: FixedPoint
    rounds: int
    noise: KNorm | None
    """Of a block of a round, where there is one."""

    @classmethod
    def of(cls, problem: Problem, *, refine: bool) -> NoisyLloyd:
        """Divide ε between the histogram and the rounds, if there are any."""
        rounds = lloyd_rounds(problem.dimension) if refine else 0
        share = Fraction(1, LLOYD_SHARE) if rounds else Fraction(1)
        epsilon, width = problem.epsilon, problem.dimension + 1
        return cls(
            problem=problem,
            grid=problem.grid(float(epsilon * share)),
            laplace=RoundedLaplace.for_epsilon(epsilon=epsilon * share, sensitivity=2),
            lattice=FixedPoint.ball(
                dimension=problem.clusters * width, bound=ROW_NORM, steps=_STEPS
            ),
            rounds=rounds,
            noise=KNorm.for_epsilon(
                epsilon=epsilon * (1 - share) / rounds,
                norm=2,
                dimension=width,
                sensitivity=2 * _STEPS,
            )
            if rounds
            else None,
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is proved, step by step."""
        if self.noise is None:
            return (self.laplace.step(),)
        each = self.noise.step(quantum=self.lattice.quantum, blocks=True)
        return (self.laplace.step(), *(each,) * self.rounds)

    @property
    def public(self) -> tuple[str, ...]:
        """What the certificate lists as public."""
        said = (
            self.problem.public,
            "the grid; replacing a row moves two of its counts by 1, together by 2",
            "every number in the steps",
        )
        norm = (
            "the lattice of a round; a row has an l2 norm of at most half the sensitivity in the "
            "block of one cluster and 0 in the others, and the noise's norm is the sum of the l2 "
            "norms of the blocks"
        )
        return (*said, norm) if self.rounds else said

    def centers(self, rows: Rows, bits: BitSource) -> Floats:
        """Return noisy centers, in the frame."""
        problem, grid, noise = self.problem, self.grid, self.noise
        counts = rows.counts(problem.cells(grid), grid.size)
        threshold = 0.7 * float(self.laplace.scale) * math.log(grid.size)
        noisy = self.laplace.apply(counts, bits)
        seeds = seeds_from(noisy, grid, clusters=problem.clusters, threshold=threshold)
        if noise is None:
            return Centers.seeded(problem.frame, grid, seeds).points

        def sums(centers: Centers) -> Any:
            total = rows.sum(Rowwise(centers.vectors), self.lattice)
            blocks = np.split(total, problem.clusters)
            return np.concatenate([noise.apply(block, bits) for block in blocks])

        deviation = float(noise.scale) * math.sqrt(problem.dimension + 2)
        return refined(problem.frame, grid, seeds, sums, [deviation] * self.rounds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneCenter:
    """A noisy mean as every center, shrunk to the middle of the bounds by a public factor."""

    problem: Problem
    lattice: FixedPoint
    noise: KNorm

    @classmethod
    def of(cls, problem: Problem) -> OneCenter:
        """Spend all of ε on the mean."""
        d, sides = problem.dimension, np.maximum(problem.frame.sides, 1e-300)
        lattice = FixedPoint.box(dimension=d, lower=0, upper=sides.tolist(), steps=_STEPS)
        noise = KNorm.for_epsilon(
            epsilon=problem.epsilon, norm=math.inf, dimension=d, sensitivity=2 * _STEPS
        )
        return cls(problem=problem, lattice=lattice, noise=noise)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is proved; quanta are in the units of the data: the frame's is the longest side."""
        quantum, unit = self.lattice.quantum, Fraction(self.problem.frame.unit)
        each = quantum if isinstance(quantum, tuple) else (quantum,) * self.problem.dimension
        return (self.noise.step(quantum=tuple(unit * one for one in each)),)

    @property
    def public(self) -> tuple[str, ...]:
        """What the certificate lists as public."""
        return (
            self.problem.public,
            "the lattice of the sum; each column has at most the sensitivity, and the noise's "
            "norm is the largest coordinate",
            "every number in the steps",
        )

    def centers(self, rows: Rows, bits: BitSource) -> Floats:
        """Return one noisy center as often as there are clusters, in the frame."""
        problem = self.problem
        n, sides = problem.rows, problem.frame.sides
        noisy = self.noise.apply(rows.sum(Rowwise(problem.frame.rows), self.lattice), bits)
        mean = self.lattice.dequantize(noisy, rows=n) / n
        kept = mean_kept(rows=n, epsilon=float(problem.epsilon), dimension=problem.dimension)
        middle = np.maximum(sides, 1e-300) / 2
        point = np.clip(middle + kept * (mean - middle), 0, sides)
        return np.tile(point, (problem.clusters, 1))


def purified_lloyd(problem: Problem, *, error: float, methods: tuple[Method, ...]) -> StudyProgram:
    """Return the plan of a histogram and three rounds inside a study, published on a lattice."""
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
        error=error,
        methods=methods,
        rehearse=False,
    )
