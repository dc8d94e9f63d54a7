"""k-means centers by the best pure route: a noisy histogram, and where it helps Lloyd's rounds.

A histogram on a public grid costs one row's two counts whatever its size, and tells where clusters
are; one or two rounds of Lloyd's algorithm with K-norm noise then say where exactly. Purifying a
longer hidden Lloyd is offered by name: kd published numbers cost more nats than its rounds save.
Where noise would drown all of these, one private mean serves as the only center.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from zerodelta.clustering.lloyd_rounds import ROW_NORM, Centers, moved, seeds_from
from zerodelta.data.arrays import ArraySource
from zerodelta.data.internal import reveal
from zerodelta.data.row_queries import Bounds, Rowwise
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.k_norm import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.spaces import Box
from zerodelta.spine.methods import choose
from zerodelta.spine.public_inputs import issue_for
from zerodelta.study.study import Study

__all__ = ["kmeans"]

_STEPS = 1 << 20
_BLOCK_ENTRIES = 1 << 20
_FEW = 100


def kmeans(
    rows: Any,
    *,
    clusters: int,
    epsilon: Rational,
    bounds: Bounds | None = None,
    method: str = "auto",
    columns: Sequence[str] | None = None,
    bits: BitSource | None = None,
) -> Release:
    """Publish the centers of k-means clusters, a (clusters, columns) array.

    **Methods**: "histogram": noisy counts on a public grid, and the k-means of its full cells.
    "lloyd": half of ε for that, half for one round of Lloyd's algorithm (two, seeded along four
    public directions, for more than 5 columns). "purified": the same with three rounds, hidden in
    a `Study`; never the best in our measurements. "one-center": a noisy mean of all rows, moved to
    the middle of the bounds as far as its noise is large, in place of every center. "auto": the
    least forecast, which is the last for few rows in many columns.
    **Releases**: the centers. **Neighbors**: replace-one (the number of rows is public).
    **Guarantee**: pure ε-DP, `proven`: one row moves two counts by 1 (theory R), the blocks of a
    round by 2√2 in the sum of their l2 norms, and a mean by the bounds' width / n in every column
    (K-norm); the rest is post-processing.
    **Public**: everything but the rows. `bounds` is a pair of numbers, or of one for each column;
    rows are clipped to them, and rows with a NaN count nowhere (in a mean: as the middle).
    Distances are Euclidean in the columns as given, so bring them to comparable units; bounds
    several times wider than the data cost accuracy (the grid's cells grow with them).
    **Error**: `release.error` forecasts the mean of (inertia / best inertia) - 1 for compact
    clusters of equal size, rare runs that miss one included; real data may be several times off.

    >>> rng = np.random.default_rng(7)
    >>> rows = np.concatenate([rng.normal(c, 0.3, size=(5000, 2)) for c in ([2, 2], [7, 8])])
    >>> release = kmeans(rows, clusters=2, epsilon=1, bounds=(0, 10))
    >>> release.value.round(0)
    array([[2., 2.],
           [7., 8.]])
    >>> release.certificate.claim.exact_epsilon
    Fraction(1, 1)
    """
    task = _Task.of(rows, clusters=clusters, epsilon=epsilon, bounds=bounds, columns=columns)
    ways = kmeans_methods(
        rows=task.source.rows,
        clusters=task.clusters,
        epsilon=float(task.epsilon),
        sides=task.frame.sides,
    )
    chosen = choose(ways, method)
    if chosen.error == math.inf:
        raise ParameterError(
            "method", method, expected="a method for so many columns", remedy='pass "lloyd"'
        )
    source: BitSource = SystemBits() if bits is None else bits
    if chosen.name == "purified":
        return task.purified(chosen.error, source)
    if chosen.name == "one-center":
        return task.one_center(chosen.error, source)
    rounds = lloyd_rounds(task.dimension) if chosen.name == "lloyd" else 0
    return task.direct(rounds, chosen.error, source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What to publish, of which rows; all but the rows is public."""

    source: Source
    box: Box
    frame: Frame
    clusters: int
    epsilon: Fraction

    @classmethod
    def of(
        cls,
        rows: Any,
        *,
        clusters: int,
        epsilon: Rational,
        bounds: Bounds | None,
        columns: Sequence[str] | None,
    ) -> _Task:
        clusters, exact = as_count(clusters, "clusters", minimum=1), as_usable_epsilon(epsilon)
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise ParameterError(
                "bounds",
                bounds,
                expected="a public pair (lower, upper)",
                remedy="pass bounds=(0, 1), or ([0, -5], [1, 5]) column by column, known without "
                "looking at the data",
            )
        if isinstance(rows, Source) and columns is None:
            source = rows
        else:
            batch = max(1, _BLOCK_ENTRIES // (clusters * (_width(rows) + 1)))
            source = ArraySource(rows, columns=columns, batch=batch)
        if source.rows < 1 or not source.columns:
            raise ParameterError(
                "rows", "no rows", expected="at least one row and column", remedy="pass the data"
            )
        if clusters > max(source.rows, _FEW):
            raise ParameterError(
                "clusters",
                clusters,
                expected=f"at most one for each of the {source.rows} rows",
                remedy="ask for fewer clusters",
            )
        box = Box(*bounds, dimension=len(source.columns))
        return cls(source=source, box=box, frame=Frame.of(box), clusters=clusters, epsilon=exact)

    @property
    def dimension(self) -> int:
        return self.box.dimension

    def grid(self, epsilon: float) -> Grid:
        return grid_for(
            self.frame.sides, rows=self.source.rows, clusters=self.clusters, epsilon=epsilon
        )

    def direct(self, rounds: int, error: float, bits: BitSource) -> Release:
        """Publish by a histogram and so many rounds."""
        share = Fraction(1, LLOYD_SHARE) if rounds else Fraction(1)
        laplace = RoundedLaplace.for_epsilon(epsilon=self.epsilon * share, sensitivity=2)
        steps: tuple[Step, ...] = (laplace.step(),)
        noise = None
        lattice = FixedPoint.ball(
            dimension=self.clusters * (self.dimension + 1), bound=ROW_NORM, steps=_STEPS
        )
        if rounds:
            noise = KNorm.for_epsilon(
                epsilon=self.epsilon * (1 - share) / rounds,
                norm=2,
                dimension=self.dimension + 1,
                sensitivity=2 * _STEPS,
            )
            steps += (noise.step(quantum=lattice.quantum, blocks=True),) * rounds
        certificate = issue_for(
            self.source,
            claim=PureDP(self.epsilon),
            steps=steps,
            bits=bits,
            public=self._public(rounds),
        )
        grid = self.grid(float(self.epsilon * share))
        counts = self.source.counts(Rowwise(self._keys(grid)), grid.size)
        seeds = seeds_from(
            laplace.apply(counts, bits),
            grid,
            clusters=self.clusters,
            threshold=0.7 * float(laplace.scale) * math.log(grid.size),
        )
        centers = Centers.seeded(self.frame, grid, seeds)
        if noise is not None:
            deviation = float(noise.scale) * math.sqrt(self.dimension + 2)
            for _ in range(rounds):
                total = self.source.sum(Rowwise(centers.vectors), lattice)
                blocks = np.split(total, self.clusters)
                noisy = np.concatenate([noise.apply(block, bits) for block in blocks])
                points = moved(centers, noisy, deviation=deviation)
                centers = centers.after(points, seeds)
        return Release(value=self._value(centers.points), certificate=certificate, error=error)

    def one_center(self, error: float, bits: BitSource) -> Release:
        """Publish a noisy mean as every center, shrunk to the middle by a public factor."""
        sides = np.maximum(self.frame.sides, 1e-300)
        lattice = FixedPoint.box(
            dimension=self.dimension, lower=0, upper=sides.tolist(), steps=_STEPS
        )
        noise = KNorm.for_epsilon(
            epsilon=self.epsilon, norm=math.inf, dimension=self.dimension, sensitivity=2 * _STEPS
        )
        rows = self.source.rows
        certificate = issue_for(
            self.source,
            claim=PureDP(self.epsilon),
            steps=(noise.step(quantum=self._in_data_units(lattice)),),
            bits=bits,
            public=self._public_mean(),
        )
        noisy = noise.apply(self.source.sum(Rowwise(self.frame.rows), lattice), bits)
        mean = lattice.dequantize(noisy, rows=rows) / rows
        kept = mean_kept(rows=rows, epsilon=float(self.epsilon), dimension=self.dimension)
        point = np.clip(sides / 2 + kept * (mean - sides / 2), 0, self.frame.sides)
        return Release(
            value=self._value(np.tile(point, (self.clusters, 1))),
            certificate=certificate,
            error=error,
        )

    def purified(self, error: float, bits: BitSource) -> Release:
        """Publish by a hidden histogram and three hidden rounds, purified on a lattice."""
        corner = np.tile(self.frame.sides, self.clusters)
        study = Study(
            self.source,
            epsilon=self.epsilon,
            publish=Box(np.zeros(len(corner)), corner),
            rounds=PURIFIED_SHARES,
            bounds=(self.box.lower.values, self.box.upper.values),
            functions=False,
            bits=bits,
        )
        parts = [
            math.sqrt(share / sum(PURIFIED_SHARES)) * study.plan.mu for share in PURIFIED_SHARES
        ]
        grid = self.grid(2 * parts[0])  # Laplace noise of that ε has the deviation √2/μ

        def program(asked: Study) -> Floats:
            counts = reveal(asked.histogram(Rowwise(self._keys(grid)), size=grid.size))
            threshold = math.sqrt(2) / parts[0] * math.sqrt(2 * math.log(grid.size))
            seeds = seeds_from(counts, grid, clusters=self.clusters, threshold=threshold)
            centers = Centers.seeded(self.frame, grid, seeds)
            for part in parts[1:]:
                sums = reveal(asked.sum(Rowwise(centers.vectors), norm_bound=ROW_NORM))
                points = moved(centers, sums, deviation=2 * ROW_NORM / part)
                centers = centers.after(points, seeds)
            return centers.points.ravel()

        release = study.run(program, rehearse=False)
        points = release.value.reshape(self.clusters, self.dimension)
        return Release(value=self._value(points), certificate=release.certificate, error=error)

    def _keys(self, grid: Grid) -> Any:
        return lambda block: grid.keys(self.frame.rows(block))

    def _in_data_units(self, lattice: FixedPoint) -> tuple[Fraction, ...]:
        """Return the quantum of each column: the frame's unit is the longest side."""
        quantum, unit = lattice.quantum, Fraction(self.frame.unit)
        each = quantum if isinstance(quantum, tuple) else (quantum,) * self.dimension
        return tuple(unit * one for one in each)

    def _value(self, points: Floats) -> Floats:
        return np.stack([self.box.project(point) for point in self.frame.back(points)])

    def _known(self) -> str:
        return (
            f"the bounds {self.box!r}, the number of clusters, {self.clusters}, and of rows, "
            f"{self.source.rows}"
        )

    def _public_mean(self) -> tuple[str, ...]:
        return (
            self._known(),
            "the lattice of the sum; replacing a row moves each column by at most the sensitivity, "
            "and the noise's norm is the largest coordinate",
            "every number in the steps",
        )

    def _public(self, rounds: int) -> tuple[str, ...]:
        said = (
            self._known(),
            "the grid; replacing a row moves two of its counts by 1, together by 2",
            "every number in the steps",
        )
        norm = (
            "the lattice of a round; a row has an l2 norm of at most half the sensitivity in the "
            "block of one cluster and 0 in the others, and the noise's norm is the sum of the l2 "
            "norms of the blocks"
        )
        return (*said, norm) if rounds else said


def _width(rows: Any) -> int:
    """Return the number of columns of an array or a data frame, so that blocks stay small."""
    shape: tuple[int, ...] = getattr(rows, "shape", ())
    return shape[1] if len(shape) == 2 else 1
