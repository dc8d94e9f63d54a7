"""What is measured of the tables, with which noise: coefficients in l∞ boxes, or tables of counts.

The coefficients of one order (sets of so many columns) form a group; a group gets K-norm noise for
the box of what one row can move, and groups share ε (theory C10.4). With one function more or less
no other box is smaller; and a coefficient is measured once, where tables repeat it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np

from zerodelta.exact.bits import BitSource
from zerodelta.mechanisms.counts import CountNoise
from zerodelta.mechanisms.k_norm import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.privacy.step import Step
from zerodelta.tasks.marginal_bases import (
    Estimate,
    Floats,
    coefficients,
    parts_of,
    spans,
    summed,
)
from zerodelta.tasks.marginal_domain import Columns, Domain, Workload
from zerodelta.tasks.marginal_rows import CodedRows, Integers

__all__ = [
    "BoxGroup",
    "BoxStrategy",
    "Strategy",
    "TableStrategy",
    "box_strategy",
    "importances",
    "table_estimate",
    "table_strategy",
    "total_variance",
]

_SHARES = 1 << 12
"""ε is split in multiples of 2^-12."""
_STEPS = 1 << 20
"""Where ranges differ, coefficients are stretched to this range in integers: at most 2^-10 lost."""
_MOST_COEFFICIENTS = 1 << 17
_MOST_TOTAL = 1 << 62
MOST_JOINT = 1 << 12
"""Larger tables gain nothing from noise fitted to counts."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BoxGroup:
    """Some sets of columns, the integer stretch of each of their coefficients, and the noise."""

    parts: tuple[Columns, ...]
    stretches: Mapping[Columns, Integers]
    noise: KNorm


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BoxStrategy:
    """Every coefficient of the closure is measured once, in a box of its order."""

    domain: Domain
    groups: tuple[BoxGroup, ...]

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps."""
        return tuple(group.noise.step() for group in self.groups)

    def variances(self, rows: int) -> dict[Columns, Floats]:
        """Return the variance of each orthonormal coefficient, as a fraction of n."""
        found = {}
        for group in self.groups:
            m, scale = group.noise.dimension, float(group.noise.scale)
            deviation = scale * math.sqrt((m + 1) * (m + 2) / 3) / rows
            for part in group.parts:
                unit = group.stretches[part] * spans(self.domain.shape(part)).norms
                found[part] = np.asarray((deviation / unit) ** 2, dtype=np.float64)
        return found

    def measure(self, data: CodedRows, bits: BitSource) -> Estimate:
        """Return noisy coefficients: exact integer sums, noise, then post-processing in floats."""
        values = {}
        for group in self.groups:
            exact = [self.totals(data, group, part).reshape(-1) for part in group.parts]
            noisy = group.noise.apply(np.concatenate(exact), bits).astype(np.float64)
            start = 0
            for part in group.parts:
                stretch, span = group.stretches[part], spans(self.domain.shape(part))
                size = stretch.size
                found = noisy[start : start + size].reshape(stretch.shape)
                start += size
                average = found / stretch.astype(np.float64) / data.rows
                # the average of what rows add lies where each row's share does
                inside = np.clip(average, span.low.astype(float), span.high.astype(float))
                values[part] = inside / span.norms
        return Estimate(values=values, variances=self.variances(data.rows))

    def totals(self, data: CodedRows, group: BoxGroup, part: Columns) -> Integers:
        """Return the exact stretched coefficients of the rows."""
        exact = coefficients(data.table(part), self.domain.shape(part))
        return np.asarray(exact * group.stretches[part], dtype=np.int64)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TableStrategy:
    """Tables of counts, each cell with noise; together they give every coefficient."""

    domain: Domain
    tables: tuple[Columns, ...]
    noises: tuple[CountNoise, ...] | RoundedLaplace

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps; equal ones are counted."""
        if isinstance(self.noises, RoundedLaplace):
            return (self.noises.step(),)
        step = self.noises[0].step()  # the same ε for each table, whatever its size
        return (replace(step, numbers={**step.numbers, "count": len(self.noises)}),)

    def cell_variances(self) -> list[float]:
        """Return for each table the variance of a coefficient with unit norm, in rows²."""
        if isinstance(self.noises, RoundedLaplace):
            return [2 * float(self.noises.scale) ** 2] * len(self.tables)
        return [_joint_variance(noise) for noise in self.noises]

    def variances(self, rows: int) -> dict[Columns, Floats]:
        """Return the variances of the coefficients, as fractions of n."""
        blank = {table: np.zeros(self.domain.shape(table)) for table in self.tables}
        return dict(self.estimate(blank, rows).variances)

    def measure(self, data: CodedRows, bits: BitSource) -> Estimate:
        """Return the coefficients of noisy tables."""
        exact = [data.table(table).reshape(-1) for table in self.tables]
        if isinstance(self.noises, RoundedLaplace):
            joined = self.noises.apply(np.concatenate(exact), bits).astype(np.float64)
            cuts = np.cumsum([len(table) for table in exact])[:-1]
            noisy = np.split(joined, cuts)
        else:
            noisy = [
                noise.apply(table, bits).astype(np.float64)
                for noise, table in zip(self.noises, exact, strict=True)
            ]
        shaped = {
            table: found.reshape(self.domain.shape(table))
            for table, found in zip(self.tables, noisy, strict=True)
        }
        return self.estimate(shaped, data.rows)

    def estimate(self, noisy: Mapping[Columns, Floats], rows: int) -> Estimate:
        """Return the least-squares coefficients of independent noisy tables."""
        weights = dict(zip(self.tables, self.cell_variances(), strict=True))
        return table_estimate(self.domain, noisy, weights, rows)


Strategy: TypeAlias = BoxStrategy | TableStrategy


def table_estimate(
    domain: Domain, noisy: Mapping[Columns, Floats], variances: Mapping[Columns, float], rows: int
) -> Estimate:
    """Return the best linear estimate of every coefficient within noisy tables.

    An orthonormal coefficient of U read off the table of S has variance v_S · N_S/N_U; readings of
    different tables are independent, so they are weighed by 1/variance.
    """
    totals: dict[Columns, Floats] = {}
    weights: dict[Columns, float] = {}
    for table, cells in noisy.items():
        for part in parts_of(table):
            shape = domain.shape(part)
            weight = domain.cells_of(part) / (variances[table] * domain.cells_of(table))
            norms = spans(domain.shape(part)).norms
            found = coefficients(summed(cells, table, part), shape) / norms / rows
            totals[part] = totals.get(part, 0.0) + weight * found
            weights[part] = weights.get(part, 0.0) + weight
    return Estimate(
        values={part: total / weights[part] for part, total in totals.items()},
        variances={
            part: np.full(total.shape, 1 / weights[part] / rows**2)
            for part, total in totals.items()
        },
    )


def box_strategy(
    domain: Domain, workload: Workload, epsilon: Fraction, rows: int, *, order: int | None = None
) -> BoxStrategy | None:
    """Return the split of ε among orders with the least variance of a cell; None if too large.

    With `order`, only coefficients of so many columns are measured.
    """
    closure = [part for part in workload.closure if order is None or len(part) <= order]
    size = sum(math.prod(c - 1 for c in domain.shape(part)) for part in closure)
    if size > _MOST_COEFFICIENTS or not _fits(domain, closure, rows):
        return None
    importance = importances(domain, workload)
    orders = sorted({len(part) for part in closure})
    splits = []
    for cuts in itertools.product((False, True), repeat=len(orders) - 1):
        groups = _joined(closure, orders, cuts)
        # minimise Σ cost/ε² with Σ ε fixed: ε ∝ cost^(1/3)
        roots = [_cost(domain, group, importance) ** (1 / 3) for group in groups]
        splits.append((math.fsum(roots), groups, roots))
    _, groups, roots = min(splits, key=lambda split: split[0])
    return BoxStrategy(
        domain=domain,
        groups=tuple(
            _box_group(domain, group, epsilon * share)
            for group, share in zip(groups, _shares(roots), strict=True)
        ),
    )


def table_strategy(
    domain: Domain, workload: Workload, epsilon: Fraction, *, joint: bool
) -> TableStrategy | None:
    """Return Laplace noise on all tables, or on the maximal ones if that is better; or `joint`."""
    candidates = [workload.tables]
    if workload.maximal != workload.tables:
        candidates.append(workload.maximal)
    if joint and max(map(domain.cells_of, workload.tables)) > MOST_JOINT:
        return None

    def of(tables: tuple[Columns, ...]) -> TableStrategy:
        count = len(tables)
        noises: tuple[CountNoise, ...] | RoundedLaplace
        if joint:
            noises = tuple(
                CountNoise.for_epsilon(epsilon=epsilon / count, dimension=domain.cells_of(table))
                for table in tables
            )
        else:  # one row moves two cells of each table by one
            noises = RoundedLaplace.for_epsilon(epsilon=epsilon, sensitivity=2 * count)
        return TableStrategy(domain=domain, tables=tables, noises=noises)

    strategies = [of(tables) for tables in candidates]
    return min(
        strategies, key=lambda s: total_variance(domain, workload, s.variances(1)), default=None
    )


def total_variance(
    domain: Domain, workload: Workload, variances: Mapping[Columns, Floats]
) -> float:
    """Return the variances of all cells of all tables, added up."""
    importance = importances(domain, workload)
    return math.fsum(importance[part] * float(var.sum()) for part, var in variances.items())


def importances(domain: Domain, workload: Workload) -> dict[Columns, float]:
    """Return Σ_{S⊇U} N_U/N_S: how much a unit of variance in U adds to all cells together."""
    found = dict.fromkeys(workload.closure, 0.0)
    for table in workload.tables:
        for part in parts_of(table):
            found[part] += domain.cells_of(part) / domain.cells_of(table)
    return found


def _joined(
    closure: Sequence[Columns], orders: Sequence[int], cuts: Sequence[bool]
) -> list[tuple[Columns, ...]]:
    """Return the sets of columns, grouped by order, with a new group at each cut."""
    place, label = {orders[0]: 0}, 0
    for order, cut in zip(orders[1:], cuts, strict=True):
        label += cut
        place[order] = label
    return [
        tuple(part for part in closure if place[len(part)] == number) for number in range(label + 1)
    ]


def _cost(domain: Domain, group: Sequence[Columns], importance: Mapping[Columns, float]) -> float:
    """Return the total variance of the cells that this group would cause with ε = 1."""
    dimension = sum(math.prod(c - 1 for c in domain.shape(part)) for part in group)
    total = 0.0
    for part in group:
        span = spans(domain.shape(part))
        unit = span.width.astype(np.float64) / span.norms
        total += importance[part] * float((unit**2).sum())
    return total * (dimension + 1) * (dimension + 2) / 3


def _shares(weights: Sequence[float]) -> list[Fraction]:
    """Return multiples of 2^-12, at least one each, that add up to 1."""
    free = _SHARES - len(weights)
    parts = [1 + math.floor(free * weight / sum(weights)) for weight in weights]
    parts[-1] += _SHARES - sum(parts)
    return [Fraction(part, _SHARES) for part in parts]


def _box_group(domain: Domain, group: tuple[Columns, ...], epsilon: Fraction) -> BoxGroup:
    widths = {part: spans(domain.shape(part)).width for part in group}
    distinct = sorted({int(width) for part in group for width in widths[part].reshape(-1)})
    target = distinct[0] if len(distinct) == 1 else max(_STEPS, distinct[-1])
    stretches = {
        part: np.asarray(target // width, dtype=np.int64) for part, width in widths.items()
    }
    moved = max(
        int((stretches[part] * width).max()) for part, width in widths.items()
    )  # exactly how far one row moves a coordinate
    dimension = sum(stretch.size for stretch in stretches.values())
    noise = KNorm.for_epsilon(
        epsilon=epsilon, norm=math.inf, dimension=dimension, sensitivity=moved
    )
    return BoxGroup(parts=group, stretches=stretches, noise=noise)


def _fits(domain: Domain, closure: Sequence[Columns], rows: int) -> bool:
    """Tell whether every exact total fits into 64 bits; by public numbers."""
    widths = [int(spans(domain.shape(part)).width.max()) for part in closure]
    return max(_STEPS, *widths) * rows < _MOST_TOTAL


def _joint_variance(noise: CountNoise) -> float:
    """Return the variance of noise fitted to d counts along a unit vector that adds up to 0.

    With k of d coordinates positive, which has weight C(d,k)², the point is uniform in a product of
    two simplices: E x² = 2/((k+1)(k+2)), E xy = 1/((k+1)(k+2)), across -1/((k+1)(d-k+1)).
    """
    d, scale = noise.dimension, float(noise.scale)
    k = np.arange(d + 1, dtype=np.float64)
    logs = 2 * np.array([_log_binomial(d, int(i)) for i in k])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    up, down = (k + 1) * (k + 2), (d - k + 1) * (d - k + 2)
    squares = (k * 2 / up + (d - k) * 2 / down) / d
    cross = np.zeros(d + 1)
    if d > 1:
        same = k * (k - 1) / up + (d - k) * (d - k - 1) / down
        cross = (same - 2 * k * (d - k) / ((k + 1) * (d - k + 1))) / (d * (d - 1))
    radius = (d + 1) * (d + 2) * scale**2
    return radius * float((weights * (squares - cross)).sum())


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
