"""What is measured of the tables, with which noise: coefficients in l∞ boxes, or tables of counts.

The coefficients of one order (sets of that many columns) form a group; a group gets K-norm noise
for the box of what one row can move, and groups share ε (theory C10.4). With one function more or
less no other box is smaller; and a coefficient is measured once, where tables repeat it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from scipy.special import gammaln

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.mechanisms.counts import CountNoise
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.tables.bases import MOST_CATEGORIES, coefficients, spans
from zerodelta.tables.domain import Columns, Domain, TableWorkload
from zerodelta.tables.estimate import Estimate, column_axes, table_estimate
from zerodelta.tables.orbits import Orbit, orbits
from zerodelta.tables.streamed_counts import Tabulated
from zerodelta.value import value

_SHARES = 1 << 12
"""ε is split in multiples of 2^-12."""
_STEPS = 1 << 20
"""Where ranges differ, coefficients are stretched to about this range in integers.

What the integers lose is range/2^20 at most: 2^-10 for ranges up to 2^10.
"""
_LEAST_VARIANCE = 2.0**-200
"""Noise that is 0 but for an underflow has some, so that it can be divided by."""
_MOST_COEFFICIENTS = 1 << 17
_MOST_TOTAL = 1 << 62
MOST_JOINT = 1 << 12
"""Larger tables gain nothing from noise fitted to counts."""


@value
class BoxGroup:
    """Sets of some numbers of columns, stretched by integers to `target`, and the noise."""

    orders: tuple[int, ...]
    target: int
    noise: KNorm

    def stretch(self, shape: tuple[int, ...]) -> Integers:
        """Return what each coefficient of such columns is multiplied with."""
        return np.asarray(self.target // spans(shape).width, dtype=np.int64)

    def variance(self, shape: tuple[int, ...], rows: int) -> Floats:
        """Return the variances of orthonormal coefficients of such columns, as fractions of n."""
        m, scale = self.noise.dimension, float(self.noise.scale)
        deviation = scale * math.sqrt((m + 1) * (m + 2) / 3) / rows
        unit = self.stretch(shape) * spans(shape).norms
        return np.asarray((deviation / unit) ** 2, dtype=np.float64)


@value
class BoxStrategy:
    """Every coefficient of the closure is measured once, in a box of its order."""

    domain: Domain
    workload: TableWorkload
    groups: tuple[BoxGroup, ...]

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps."""
        # coefficients are stretched to integers by factors of their own, so 1 is their unit
        return tuple(group.noise.step(quantum=None) for group in self.groups)

    def variances(self, rows: int) -> dict[Columns, Floats]:
        """Return the variances of one measured set of columns of each orbit."""
        found, by_shape = {}, {}
        for orbit in orbits(self.domain, self.workload):
            shape = self.domain.shape(orbit.example)
            for group in self.groups:
                if orbit.order in group.orders:
                    if shape not in by_shape:
                        by_shape[shape] = group.variance(shape, rows)
                    found[orbit.example] = by_shape[shape]
        return found

    def measure(self, data: Tabulated, bits: BitSource) -> Estimate:
        """Return noisy coefficients: exact integer sums, noise, then post-processing in floats."""
        values, variances, closure = {}, {}, self.workload.closure
        for group in self.groups:
            parts = [part for part in closure if len(part) in group.orders]
            exact = []
            for part in parts:
                shape = self.domain.shape(part)
                sums = coefficients(data.table(part), shape) * group.stretch(shape)
                exact.append(sums.reshape(-1))
            noisy = group.noise.apply(np.concatenate(exact), bits).astype(np.float64)
            cuts = np.cumsum([len(sums) for sums in exact])[:-1]
            for part, found in zip(parts, np.split(noisy, cuts), strict=True):
                shape = self.domain.shape(part)
                stretch, span = group.stretch(shape), spans(shape)
                average = found.reshape(stretch.shape) / stretch / data.rows
                # the average of what rows add lies where each row's share does
                inside = np.clip(average, span.low.astype(float), span.high.astype(float))
                values[part] = inside / span.norms
                variances[part] = group.variance(shape, data.rows)
        return Estimate(axes=column_axes(self.domain), values=values, variances=variances)


@value
class TableStrategy:
    """Tables of counts, each cell with noise; together they give every coefficient."""

    domain: Domain
    workload: TableWorkload
    groups: tuple[tuple[Columns, ...], ...]
    """Tables that get their noise together."""
    noises: tuple[CountNoise | PartitionNoise, ...]

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps; equal ones are counted."""
        step = self.noises[0].step()  # the same ε for each group, whatever its size
        return (replace(step, numbers={**step.numbers, "count": len(self.noises)}),)

    def cell_variances(self) -> dict[Columns, float]:
        """Return for each table the variance of a coefficient with unit norm, in rows²."""
        return {
            table: _unit_variance(noise)
            for noise, tables in zip(self.noises, self.groups, strict=True)
            for table in tables
        }

    def variances(self, rows: int) -> dict[Columns, Floats]:
        """Return the variances of one set of columns of each orbit, as fractions of n."""
        precisions = {
            table: 1 / (variance * self.domain.cells_of(table))
            for table, variance in self.cell_variances().items()
        }
        found = {}
        for orbit in orbits(self.domain, self.workload):
            weight = orbit.cells * math.fsum(
                number * precisions.get(table, 0.0) for table, number in orbit.tables
            )
            sizes = tuple(categories - 1 for categories in self.domain.shape(orbit.example))
            found[orbit.example] = np.broadcast_to(1 / weight / rows**2, sizes)
        return found

    def measure(self, data: Tabulated, bits: BitSource) -> Estimate:
        """Return the least-squares coefficients of noisy tables."""
        noisy: dict[Columns, Floats] = {}
        for noise, tables in zip(self.noises, self.groups, strict=True):
            exact = [data.table(table).reshape(-1) for table in tables]
            found = noise.apply(np.concatenate(exact), bits).astype(np.float64)
            cuts = np.cumsum([len(cells) for cells in exact])[:-1]
            for table, cells in zip(tables, np.split(found, cuts), strict=True):
                noisy[table] = cells.reshape(self.domain.shape(table))
        rows = self._total(noisy) if data.private else data.rows
        return table_estimate(self.domain, noisy, self.cell_variances(), rows)

    def _total(self, noisy: dict[Columns, Floats]) -> float:
        """Return the number of rows that the noisy tables show: each total by its precision."""
        weights = {
            table: 1 / (variance * self.domain.cells_of(table))
            for table, variance in self.cell_variances().items()
        }
        found = math.fsum(float(noisy[table].sum()) * weight for table, weight in weights.items())
        return max(1.0, found / math.fsum(weights.values()))


Strategy: TypeAlias = BoxStrategy | TableStrategy


def box_strategy(
    domain: Domain,
    workload: TableWorkload,
    epsilon: Fraction,
    rows: int,
    *,
    order: int | None = None,
) -> BoxStrategy | None:
    """Return the split of ε among orders with the least variance of a cell; None if too large.

    With `order`, only coefficients of at most that many columns are measured.
    """
    columns = tuple(set(itertools.chain(*workload.tables)))
    if max(domain.shape(columns)) > MOST_CATEGORIES:
        return None
    closure = [orbit for orbit in orbits(domain, workload) if order is None or orbit.order <= order]
    size = sum(orbit.coefficients for orbit in closure)
    if size > _MOST_COEFFICIENTS or not _fits(domain, closure, rows):
        return None
    groups = _best_groups(domain, closure)
    # minimize Σ cost/ε² with Σ ε fixed: ε ∝ cost^(1/3)
    shares = _shares([_root_cost(domain, group) for group in groups])
    return BoxStrategy(
        domain=domain,
        workload=workload,
        groups=tuple(
            _box_group(domain, group, epsilon * share)
            for group, share in zip(groups, shares, strict=True)
        ),
    )


def table_strategy(
    domain: Domain,
    workload: TableWorkload,
    epsilon: Fraction,
    *,
    joint: bool,
    neighbors: Neighbors = Neighbors.REPLACE,
) -> TableStrategy | None:
    """Return Laplace noise on all tables, or on the maximal ones if that is better; or `joint`.

    A replaced row moves two cells of each table by one, a row that comes or goes one of them (P1).
    """
    candidates = [workload.tables]
    if workload.maximal != workload.tables:
        candidates.append(workload.maximal)
    if joint and max(map(domain.cells_of, workload.tables)) > MOST_JOINT:
        return None

    def of(tables: tuple[Columns, ...]) -> TableStrategy:
        count, groups = len(tables), tuple((table,) for table in tables) if joint else (tables,)
        noises: tuple[CountNoise | PartitionNoise, ...]
        sizes = [domain.cells_of(table) for table in tables]
        if joint:
            share = epsilon / count
            by_size = {d: CountNoise.for_epsilon(epsilon=share, dimension=d) for d in set(sizes)}
            noises = tuple(by_size[size] for size in sizes)
        else:
            noise = PartitionNoise.for_epsilon(
                epsilon=epsilon,
                cells=sum(sizes),
                row_total=count,
                neighbors=neighbors,
                method="laplace",
            )
            noises = (noise,)
        return TableStrategy(domain=domain, workload=workload, groups=groups, noises=noises)

    strategies = [of(tables) for tables in candidates]
    return min(strategies, key=lambda s: total_variance(domain, workload, s.variances(1)))


def total_variance(
    domain: Domain, workload: TableWorkload, variances: Mapping[Columns, Floats]
) -> float:
    """Return the variances of all cells of all tables, added up, from those of each orbit."""
    return math.fsum(
        orbit.count * orbit.importance * float(variances[orbit.example].sum())
        for orbit in orbits(domain, workload)
        if orbit.example in variances
    )


def _best_groups(domain: Domain, closure: Sequence[Orbit]) -> list[list[Orbit]]:
    """Return neighboring orders together or apart, so that the roots of their costs are least."""
    by_order = [list(some) for _, some in itertools.groupby(closure, key=lambda orbit: orbit.order)]
    costs = [_costs(domain, some) for some in by_order]
    best: list[tuple[float, list[list[Orbit]]]] = [(0.0, [])]  # of the first orders
    for end in range(1, len(costs) + 1):
        splits = [best[start][0] + _root(costs[start:end]) for start in range(end)]
        start = splits.index(min(splits))
        group = list(itertools.chain(*by_order[start:end]))
        best.append((splits[start], [*best[start][1], group]))
    return best[-1][1]


def _root_cost(domain: Domain, group: Sequence[Orbit]) -> float:
    """Return the cube root of the total variance that this group would cause with ε = 1."""
    return _root([_costs(domain, group)])


def _root(costs: Sequence[tuple[int, float]]) -> float:
    dimension, total = (sum(column) for column in zip(*costs, strict=True))
    return float((total * (dimension + 1) * (dimension + 2) / 3) ** (1 / 3))


def _costs(domain: Domain, group: Sequence[Orbit]) -> tuple[int, float]:
    """Return the number of coefficients, and the sum of their squared ranges by importance."""
    total = 0.0
    for orbit in group:
        _, squares = _ranges(domain.shape(orbit.example))
        total += orbit.count * orbit.importance * squares
    return sum(orbit.coefficients for orbit in group), total


@cache
def _ranges(shape: tuple[int, ...]) -> tuple[frozenset[int], float]:
    """Return the different ranges of coefficients, and the sum of squares of normed ones."""
    span = spans(shape)
    unit = span.width.astype(np.float64) / span.norms
    return frozenset(map(int, span.width.reshape(-1))), float((unit**2).sum())


def _shares(weights: Sequence[float]) -> list[Fraction]:
    """Return multiples of 2^-12, at least one each, that add up to 1."""
    free = _SHARES - len(weights)
    parts = [1 + math.floor(free * weight / sum(weights)) for weight in weights]
    parts[-1] += _SHARES - sum(parts)
    return [Fraction(part, _SHARES) for part in parts]


def _box_group(domain: Domain, group: Sequence[Orbit], epsilon: Fraction) -> BoxGroup:
    distinct = sorted(_all_ranges(domain, group))
    target = distinct[0] if len(distinct) == 1 else max(_STEPS, distinct[-1])
    noise = KNorm.for_epsilon(
        epsilon=epsilon,
        norm=math.inf,
        dimension=sum(orbit.coefficients for orbit in group),
        sensitivity=max(target // width * width for width in distinct),  # of one coordinate
    )
    orders = tuple(sorted({orbit.order for orbit in group}))
    return BoxGroup(orders=orders, target=target, noise=noise)


def _fits(domain: Domain, closure: Sequence[Orbit], rows: int) -> bool:
    """Tell whether every exact total fits into 64 bits; by public numbers."""
    return max(_STEPS, *_all_ranges(domain, closure)) * rows < _MOST_TOTAL


def _all_ranges(domain: Domain, group: Sequence[Orbit]) -> set[int]:
    shapes = {domain.shape(orbit.example) for orbit in group}
    return set().union(*(_ranges(shape)[0] for shape in shapes))


@lru_cache(maxsize=1024)
def _unit_variance(noise: CountNoise | PartitionNoise) -> float:
    """Return the variance of noise on d counts along a unit vector that adds up to 0.

    Of `CountNoise`: with k of d coordinates positive, which has weight C(d,k)², the point is
    uniform in a product of two simplices: E x² = 2/((k+1)(k+2)), E xy = 1/((k+1)(k+2)), across
    -1/((k+1)(d-k+1)).
    """
    if isinstance(noise, PartitionNoise):
        return max(noise.covariance([1.0], [1.0]), _LEAST_VARIANCE)
    d, scale = noise.dimension, float(noise.scale)
    k = np.arange(d + 1, dtype=np.float64)
    logs = -2 * (gammaln(k + 1) + gammaln(d - k + 1))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    up, down = (k + 1) * (k + 2), (d - k + 1) * (d - k + 2)
    squares = (k * 2 / up + (d - k) * 2 / down) / d
    same = k * (k - 1) / up + (d - k) * (d - k - 1) / down
    cross = (same - 2 * k * (d - k) / ((k + 1) * (d - k + 1))) / (d * max(1, d - 1))  # 0 if d = 1
    return (d + 1) * (d + 2) * scale**2 * float((weights * (squares - cross)).sum())
