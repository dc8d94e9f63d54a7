"""Measure tables with noise, forecast their errors, and estimate all coefficients.

A strategy measures coefficients or cells. Coefficients of one order (of sets of that many columns)
form a group. A group gets K-norm noise for the box that contains the change by one row, and groups
share ε (theory C10.4). A coefficient that several tables contain is measured once.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeAlias, final

import numpy as np
from scipy.special import gammaln

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.marginals.bases import (
    LARGEST_MATRIX,
    MAXIMUM_CATEGORIES,
    AxisFunctions,
    Orbit,
    Transform,
    coefficients,
    margin,
    orbits,
    spans,
)
from zerodelta.marginals.domain import Columns, Domain, TableWorkload, Tabulated, parts_of
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import CountNoise, KNorm
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.value import value

# -- Estimate -------------------------------------------------------------------------------------
# Noisy coefficients of tables, by axes. Columns that occur in the same measured tables form one
# axis: a table of 24 binary columns contains 16 million sets of columns, but has one axis. Noise of
# equal variance on cells has equal variance in any orthonormal functions, so an axis of several
# columns may use any.

Coefficients: TypeAlias = Mapping[Columns, Floats]
"""For each set of axes U the coefficients of orthonormal functions: an array of shape (N_i - 1 for
i in U)."""


@final
class Axes:
    """The columns and the functions of each axis; each column of the domain is in one axis."""

    def __init__(self, domain: Domain, columns: Sequence[Columns], *, any_functions: bool) -> None:
        self.domain, self.columns = domain, tuple(columns)
        sizes = map(domain.cells_of, self.columns)
        self.functions = tuple(
            AxisFunctions(size, any_functions and size > LARGEST_MATRIX) for size in sizes
        )
        self._axis_of = {column: i for i, axis in enumerate(self.columns) for column in axis}

    def of_table(self, table: Columns) -> Columns:
        """Return the axes that contain columns of the table."""
        return tuple(sorted({self._axis_of[column] for column in table}))

    def shape(self, axes: Iterable[int]) -> tuple[int, ...]:
        """Return the sizes of some axes."""
        return tuple(self.functions[i].size for i in axes)

    def order(self, axes: Iterable[int]) -> Columns:
        """Return the columns of some axes, axis by axis."""
        return tuple(itertools.chain.from_iterable(self.columns[i] for i in axes))

    def in_order(self, cells: Floats) -> Floats:
        """Reorder an array over the cells of all axes to the order of the domain's columns."""
        order = self.order(range(len(self.columns)))
        shaped = cells.reshape(self.domain.shape(order))
        return margin(shaped, [order.index(i) for i in range(len(order))]).reshape(-1)

    def transform(self, axes: Iterable[int]) -> Transform:
        """Return the transform of a table of these axes."""
        return Transform([self.functions[i] for i in axes])

    def transform_of(self, parts: Iterable[Columns]) -> Transform:
        """Return the transform of all axes, restricted to the coefficients of some sets."""
        sizes = self.shape(range(len(self.columns)))
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        places = [np.arange(1, size) * stride for size, stride in zip(sizes, strides, strict=True)]
        # flat indices: on the axes of a part all functions but the constant one, which has index 0
        used = [
            functools.reduce(np.add.outer, (places[axis] for axis in part)).reshape(-1)
            for part in parts
        ]
        return Transform(self.functions, np.concatenate(used))


def column_axes(domain: Domain) -> Axes:
    """Return an axis for each column, with the functions of `column_basis`."""
    return Axes(domain, [(i,) for i in range(len(domain.columns))], any_functions=False)


def shared_axes(domain: Domain, tables: Iterable[Columns]) -> Axes:
    """Return an axis for each group of columns in the same tables; those in no table come last.

    >>> from zerodelta.marginals.domain import as_domain
    >>> shared_axes(as_domain(dict.fromkeys("abcde", 2)), [(0, 1, 3), (0, 2, 3)]).columns
    ((0, 3), (1,), (2,), (4,))
    """
    tables_of: dict[int, list[int]] = {column: [] for column in range(len(domain.columns))}
    for i, table in enumerate(tables):
        for column in table:
            tables_of[column].append(i)
    columns_of: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for column, indices in tables_of.items():
        columns_of[tuple(indices)].append(column)
    groups = sorted(
        map(tuple, columns_of.values()), key=lambda group: (not tables_of[group[0]], group)
    )
    return Axes(domain, groups, any_functions=True)


@value(eq=False)
class Estimate:
    """Noisy coefficients and their variances, both in units of n rows."""

    axes: Axes
    values: Coefficients
    variances: Coefficients

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return sum(part.size for part in self.values.values())

    def covers(self, columns: Columns) -> bool:
        """Return whether all coefficients of a table were measured."""
        return self.axes.of_table(columns) in self.values

    def table(self, columns: Columns) -> Floats:
        """Return the table with these coefficients, which adds up to 1.

        With orthonormal b: p_S(a) = 1/N_S + Σ_{U⊆S} N_U/N_S Σ_u q_{U,u} Π b_u(a).
        """
        axes = self.axes.of_table(columns)
        shape, order = self.axes.shape(axes), self.axes.order(axes)
        transformed, cells = np.empty(shape), math.prod(shape)
        transformed[(0,) * len(shape)] = 1 / math.sqrt(cells)
        for part in parts_of(axes):
            root = math.sqrt(math.prod(self.axes.shape(part)) / cells)
            np.multiply(self.values[part], root, out=transformed[_part_index(part, axes)])
        table = self.axes.transform(axes).spread(transformed.reshape(-1))
        shaped = table.reshape(self.axes.domain.shape(order))
        return margin(shaped, [order.index(column) for column in columns])


def table_estimate(
    domain: Domain, noisy: Mapping[Columns, Floats], variances: Mapping[Columns, float], rows: float
) -> Estimate:
    """Return the best linear estimate of all coefficients of noisy tables.

    An orthonormal coefficient of U computed from the table of S has variance v_S · N_S/N_U.
    Different tables have independent noise, so their coefficients are averaged with weights
    1/variance.
    """
    axes = shared_axes(domain, noisy)
    totals: dict[Columns, Floats] = {}
    weights: dict[Columns, float] = {}
    for table, cells in noisy.items():
        table_axes = axes.of_table(table)
        ordered = cells.transpose([table.index(column) for column in axes.order(table_axes)])
        transform = axes.transform(table_axes)
        transformed = transform.read(ordered.reshape(-1)).reshape(axes.shape(table_axes))
        for part in parts_of(table_axes):
            share = math.prod(axes.shape(part)) / cells.size
            weight = share / variances[table]
            weighted = transformed[_part_index(part, table_axes)] * (
                weight / math.sqrt(share) / rows
            )
            totals[part] = totals[part] + weighted if part in totals else weighted
            weights[part] = weights.get(part, 0.0) + weight
    return Estimate(
        axes=axes,
        values={part: total / weights[part] for part, total in totals.items()},
        variances={
            part: np.broadcast_to(1 / weights[part] / rows**2, total.shape)
            for part, total in totals.items()
        },
    )


def _part_index(part: Columns, axes: Columns) -> tuple[slice | int, ...]:
    """Return the index of the coefficients of a part in the transformed table of all `axes`."""
    return tuple(slice(1, None) if axis in part else 0 for axis in axes)


# -- Forecast -------------------------------------------------------------------------------------
# Forecast the errors of tables from public numbers. The variance of noise is exact. That a fit
# removes some noise is an empirical rule. Coefficients that are not measured are assumed to be as
# large as interactions of columns usually are: a guess that is used to choose among methods.

MAXIMUM_FITTED_CELLS = 1 << 20
"""With more cells answers are not fitted to a distribution, except for synthetic rows."""
_USUAL = (0.4, 0.15, 0.05)
"""The usual size, on a scale from -1 to 1, of the interaction of one, two, three columns that fewer
columns do not show: root mean squares over a dozen synthetic and real data sets. Each further
column halves it."""
_REMAINING = 0.5
"""The part of squared unmeasured interactions that remains if the worst fitted tables are
measured."""
_FIT_GAIN = 0.25
"""σ* in `_fitted`, as a part of the theoretical limit; measured on several kinds of data. Like the
two numbers above it was estimated once; `bench/tasks_forecasts.py` checks the forecasts on other
data."""


def tables_error(
    domain: Domain, workload: TableWorkload, variances: Mapping[Columns, Floats]
) -> float:
    """Return the mean over cells of the expected absolute error, from variances of coefficients.

    `variances` has one set of columns of each measured orbit.
    """
    noise = usual = dimension = 0.0
    for orbit in orbits(domain, workload):
        weight = orbit.count * orbit.importance
        if orbit.example in variances:
            noise += weight * float(variances[orbit.example].sum())
            dimension += orbit.coefficients
        else:
            usual += weight * _usual_square(orbit)
    return _fitted(domain, workload, noise, usual, dimension)


def rounds_error(
    domain: Domain, workload: TableWorkload, epsilon: Fraction, rows: int, rounds: int
) -> float:
    """Return the mean expected absolute error after `rounds` rounds of measuring a chosen table."""
    variance = 2 * (4 * rounds / float(epsilon) / rows) ** 2
    share = rounds / len(workload.tables)
    noise = usual = dimension = 0.0
    for orbit in orbits(domain, workload):
        measurements = share * orbit.table_count  # the expected number of chosen tables with it
        known, weight = min(1.0, measurements), orbit.count * orbit.importance
        coefficient = variance * orbit.table_cells / orbit.cells / max(1.0, measurements)
        noise += weight * known * orbit.size * coefficient
        usual += weight * (1 - known) * _REMAINING * _usual_square(orbit)
        dimension += known * orbit.coefficients
    return _fitted(domain, workload, noise, usual, dimension)


def best_rounds(domain: Domain, workload: TableWorkload, epsilon: Fraction, rows: int) -> int:
    """Return the number of rounds with the smallest forecast, at most half the number of tables."""
    maximum = max(1, len(workload.tables) // 2)
    candidates = sorted({min(maximum, math.ceil(1.25**k)) for k in range(60)})
    return min(candidates, key=lambda t: rounds_error(domain, workload, epsilon, rows, t))


def whole_rows_error(domain: Domain, workload: TableWorkload, size: int) -> float:
    """Return the expected change of a cell by rounding to `size` rows: about half a row.

    Measured changes were 0.2 to 1 rows.
    """
    return min(0.5 / size, _largest_error(domain, workload))


def _usual_square(orbit: Orbit) -> float:
    """Return the usual sum of squares of the orthonormal coefficients of a set of columns."""
    further = max(0, orbit.order - len(_USUAL))
    usual = _USUAL[min(orbit.order, len(_USUAL)) - 1] * 0.5**further
    return usual**2 * orbit.size / orbit.cells


def _fitted(
    domain: Domain, workload: TableWorkload, noise: float, usual: float, dimension: float
) -> float:
    """Return the mean error of a cell from sums of squares over all cells of all tables.

    Without a fit it is nearly σ = √(2/π) standard deviations. A distribution over N cells can
    follow noise in m coefficients only up to a limit, which grows like √(2 ln N / m). Measured on
    several kinds of data, a fit reduces σ to σ/√(1 + σ/σ*), with σ* a quarter of that limit.
    """
    cells = sum(map(domain.cells_of, workload.tables))
    error = math.sqrt(2 / math.pi * noise / cells)
    if domain.cells <= MAXIMUM_FITTED_CELLS:
        # the error of a cell if all coefficients were wrong by 1
        signs = math.fsum(1 - 1 / domain.cells_of(table) for table in workload.tables)
        unit = math.sqrt(2 / math.pi * signs / cells)
        limit = _FIT_GAIN * unit * math.sqrt(2 * math.log(domain.cells) / max(1.0, dimension))
        error /= math.sqrt(1 + error / limit)
    total = math.hypot(error, math.sqrt(2 / math.pi * usual / cells))
    return min(total, _largest_error(domain, workload))


def _largest_error(domain: Domain, workload: TableWorkload) -> float:
    """Return the mean distance of cells of two distributions with no cell in common."""
    return 2 * len(workload.tables) / sum(map(domain.cells_of, workload.tables))


_SHARES = 1 << 12
"""ε is split in multiples of 2^-12."""
_STEPS = 1 << 20
"""Where ranges of coefficients differ, each is multiplied by an integer to about this range.

Rounding to integers loses at most the part range/2^20: 2^-10 for ranges up to 2^10.
"""
_SMALLEST_VARIANCE = 2.0**-200
"""A positive floor for variances that underflow, so that they can be divided by."""
_MAXIMUM_COEFFICIENTS = 1 << 17
_MAXIMUM_TOTAL = 1 << 62
MAXIMUM_JOINT_CELLS = 1 << 12
"""The largest table for `CountNoise`; larger ones gain nothing from it."""


@value
class BoxGroup:
    """The coefficients of sets of columns with some orders, and their common noise."""

    orders: tuple[int, ...]
    """The numbers of columns of the sets."""
    target: int
    """The range to which integer factors stretch all coefficients."""
    noise: KNorm

    def stretch(self, shape: tuple[int, ...]) -> Integers:
        """Return the factor of each coefficient of columns with these sizes."""
        return np.asarray(self.target // spans(shape).width, dtype=np.int64)

    def variance(self, shape: tuple[int, ...], rows: int) -> Floats:
        """Return the variances of orthonormal coefficients of columns with these sizes."""
        m, scale = self.noise.dimension, float(self.noise.scale)
        deviation = scale * math.sqrt((m + 1) * (m + 2) / 3) / rows
        unit = self.stretch(shape) * spans(shape).norms
        return np.asarray((deviation / unit) ** 2, dtype=np.float64)


@value
class BoxStrategy:
    """A measurement of each coefficient of the closure once, with the noise of its order."""

    domain: Domain
    workload: TableWorkload
    groups: tuple[BoxGroup, ...]

    def steps(self) -> tuple[Step, ...]:
        """Return the certificate's steps."""
        # coefficients are integers with different factors, so the unit of the noise is 1
        return tuple(group.noise.step(quantum=None) for group in self.groups)

    def variances(self, rows: int) -> dict[Columns, Floats]:
        """Return the variances of one measured set of columns of each orbit."""
        variances, by_shape = {}, {}
        for orbit in orbits(self.domain, self.workload):
            shape = self.domain.shape(orbit.example)
            for group in self.groups:
                if orbit.order in group.orders:
                    if shape not in by_shape:
                        by_shape[shape] = group.variance(shape, rows)
                    variances[orbit.example] = by_shape[shape]
        return variances

    def measure(self, data: Tabulated, bits: BitSource) -> Estimate:
        """Return noisy coefficients: exact integer sums plus noise, then floats."""
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
            for part, totals in zip(parts, np.split(noisy, cuts), strict=True):
                shape = self.domain.shape(part)
                stretch, span = group.stretch(shape), spans(shape)
                average = totals.reshape(stretch.shape) / stretch / data.rows
                # without noise an average over rows lies in the range of a row
                clipped = np.clip(average, span.low.astype(float), span.high.astype(float))
                values[part] = clipped / span.norms
                variances[part] = group.variance(shape, data.rows)
        return Estimate(axes=column_axes(self.domain), values=values, variances=variances)


@value
class TableStrategy:
    """A measurement of all cells of some tables, which together determine all coefficients."""

    domain: Domain
    workload: TableWorkload
    groups: tuple[tuple[Columns, ...], ...]
    """Groups of tables; each group has one draw of noise."""
    noises: tuple[CountNoise | PartitionNoise, ...]

    def steps(self) -> tuple[Step, ...]:
        """Return the certificate's steps; equal steps are one with a count."""
        # all groups have the same ε
        return (self.noises[0].step().times(len(self.noises)),)

    def cell_variances(self) -> dict[Columns, float]:
        """Return the variance, in rows², of a coefficient with unit norm of each table."""
        return {
            table: _unit_variance(noise)
            for noise, tables in zip(self.noises, self.groups, strict=True)
            for table in tables
        }

    def variances(self, rows: int) -> dict[Columns, Floats]:
        """Return the variances of one set of columns of each orbit."""
        precisions = {
            table: 1 / (variance * self.domain.cells_of(table))
            for table, variance in self.cell_variances().items()
        }
        variances = {}
        for orbit in orbits(self.domain, self.workload):
            weight = orbit.cells * math.fsum(
                number * precisions.get(table, 0.0) for table, number in orbit.tables
            )
            sizes = tuple(categories - 1 for categories in self.domain.shape(orbit.example))
            variances[orbit.example] = np.broadcast_to(1 / weight / rows**2, sizes)
        return variances

    def measure(self, data: Tabulated, bits: BitSource) -> Estimate:
        """Add noise to the cells of the tables, and return their least-squares fit."""
        noisy: dict[Columns, Floats] = {}
        for noise, tables in zip(self.noises, self.groups, strict=True):
            exact = [data.table(table).reshape(-1) for table in tables]
            noisy_cells = noise.apply(np.concatenate(exact), bits).astype(np.float64)
            cuts = np.cumsum([len(cells) for cells in exact])[:-1]
            for table, cells in zip(tables, np.split(noisy_cells, cuts), strict=True):
                noisy[table] = cells.reshape(self.domain.shape(table))
        rows = self._total(noisy) if data.private else data.rows
        return table_estimate(self.domain, noisy, self.cell_variances(), rows)

    def _total(self, noisy: dict[Columns, Floats]) -> float:
        """Estimate the number of rows from the totals of noisy tables, weighted by precision."""
        weights = {
            table: 1 / (variance * self.domain.cells_of(table))
            for table, variance in self.cell_variances().items()
        }
        total = math.fsum(float(noisy[table].sum()) * weight for table, weight in weights.items())
        return max(1.0, total / math.fsum(weights.values()))


Strategy: TypeAlias = BoxStrategy | TableStrategy


def box_strategy(
    domain: Domain,
    workload: TableWorkload,
    epsilon: Fraction,
    rows: int,
    *,
    order: int | None = None,
) -> BoxStrategy | None:
    """Return the box strategy with the smallest variance of a cell; None if it is too large.

    With `order`, coefficients of more than `order` columns are not measured.
    """
    columns = tuple(set(itertools.chain(*workload.tables)))
    if max(domain.shape(columns)) > MAXIMUM_CATEGORIES:
        return None
    closure = [orbit for orbit in orbits(domain, workload) if order is None or orbit.order <= order]
    size = sum(orbit.coefficients for orbit in closure)
    if size > _MAXIMUM_COEFFICIENTS or not _fits(domain, closure, rows):
        return None
    groups = _best_groups(domain, closure)
    # Σ cost/ε² with Σ ε fixed is smallest for ε ∝ cost^(1/3)
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
    """Return the strategy that adds noise to all tables, or to the maximal ones if that is better.

    The noise is Laplace, or with `joint` `CountNoise`, which is None for large tables. A replaced
    row moves two cells of each table by one, an added or removed row one cell (P1).
    """
    candidates = [workload.tables]
    if workload.maximal != workload.tables:
        candidates.append(workload.maximal)
    if joint and max(map(domain.cells_of, workload.tables)) > MAXIMUM_JOINT_CELLS:
        return None

    def strategy(tables: tuple[Columns, ...]) -> TableStrategy:
        """Return the noise on these tables: for each a share of ε, or one noise on all cells."""
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

    strategies = [strategy(tables) for tables in candidates]
    return min(strategies, key=lambda s: total_variance(domain, workload, s.variances(1)))


def total_variance(
    domain: Domain, workload: TableWorkload, variances: Mapping[Columns, Floats]
) -> float:
    """Return the sum of variances of all cells of all tables, from those of each orbit."""
    return math.fsum(
        orbit.count * orbit.importance * float(variances[orbit.example].sum())
        for orbit in orbits(domain, workload)
        if orbit.example in variances
    )


def _best_groups(domain: Domain, closure: Sequence[Orbit]) -> list[list[Orbit]]:
    """Group neighboring orders so that the sum of the cube roots of group costs is smallest.

    That sum, cubed, is the total variance with the best shares of ε. Dynamic programming.
    """
    by_order = [list(group) for _, group in itertools.groupby(closure, key=lambda o: o.order)]
    costs = [_costs(domain, group) for group in by_order]
    best: list[tuple[float, list[list[Orbit]]]] = [(0.0, [])]  # for the first 0, 1, … orders
    for end in range(1, len(costs) + 1):
        splits = [best[start][0] + _root(costs[start:end]) for start in range(end)]
        start = splits.index(min(splits))
        group = list(itertools.chain(*by_order[start:end]))
        best.append((splits[start], [*best[start][1], group]))
    return best[-1][1]


def _root_cost(domain: Domain, group: Sequence[Orbit]) -> float:
    """Return the cube root of the total variance of this group with ε = 1."""
    return _root([_costs(domain, group)])


def _root(costs: Sequence[tuple[int, float]]) -> float:
    """Return the cube root of the total variance of orders with these costs, as one group."""
    dimension, total = (sum(column) for column in zip(*costs, strict=True))
    return float((total * (dimension + 1) * (dimension + 2) / 3) ** (1 / 3))


def _costs(domain: Domain, group: Sequence[Orbit]) -> tuple[int, float]:
    """Return the number of coefficients, and the sum of their squared ranges times importance."""
    total = 0.0
    for orbit in group:
        _, squares = _ranges(domain.shape(orbit.example))
        total += orbit.count * orbit.importance * squares
    return sum(orbit.coefficients for orbit in group), total


@cache
def _ranges(shape: tuple[int, ...]) -> tuple[frozenset[int], float]:
    """Return the distinct ranges of coefficients, and the sum of their squares over norms²."""
    span = spans(shape)
    unit = span.width.astype(np.float64) / span.norms
    return frozenset(map(int, span.width.reshape(-1))), float((unit**2).sum())


def _shares(weights: Sequence[float]) -> list[Fraction]:
    """Return positive multiples of 2^-12, about proportional to the weights, that add up to 1."""
    free = _SHARES - len(weights)
    parts = [1 + math.floor(free * weight / sum(weights)) for weight in weights]
    parts[-1] += _SHARES - sum(parts)
    return [Fraction(part, _SHARES) for part in parts]


def _box_group(domain: Domain, group: Sequence[Orbit], epsilon: Fraction) -> BoxGroup:
    """Calibrate K-norm noise in the l∞ norm for all coefficients of a group of orders."""
    distinct = sorted(_all_ranges(domain, group))
    target = distinct[0] if len(distinct) == 1 else max(_STEPS, distinct[-1])
    noise = KNorm.for_epsilon(
        epsilon=epsilon,
        norm=math.inf,
        dimension=sum(orbit.coefficients for orbit in group),
        sensitivity=max(target // width * width for width in distinct),  # in each coordinate
    )
    orders = tuple(sorted({orbit.order for orbit in group}))
    return BoxGroup(orders=orders, target=target, noise=noise)


def _fits(domain: Domain, closure: Sequence[Orbit], rows: int) -> bool:
    """Return whether all exact totals fit into 64 bits, decided by public numbers."""
    return max(_STEPS, *_all_ranges(domain, closure)) * rows < _MAXIMUM_TOTAL


def _all_ranges(domain: Domain, group: Sequence[Orbit]) -> set[int]:
    """Return the distinct ranges of all coefficients of a group."""
    shapes = {domain.shape(orbit.example) for orbit in group}
    return set().union(*(_ranges(shape)[0] for shape in shapes))


@lru_cache(maxsize=1024)
def _unit_variance(noise: CountNoise | PartitionNoise) -> float:
    """Return the variance of noise on d counts along a unit vector whose entries add up to 0.

    For `CountNoise`: with k of d coordinates positive, which has weight C(d,k)², the noise is
    uniform in a product of two simplices: E x² = 2/((k+1)(k+2)), E xy = 1/((k+1)(k+2)) within a
    simplex, and -1/((k+1)(d-k+1)) between the two.
    """
    if isinstance(noise, PartitionNoise):
        return max(noise.covariance([1.0], [1.0]), _SMALLEST_VARIANCE)
    d, scale = noise.dimension, float(noise.scale)
    k = np.arange(d + 1, dtype=np.float64)
    logs = -2 * (gammaln(k + 1) + gammaln(d - k + 1))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    positive, negative = (k + 1) * (k + 2), (d - k + 1) * (d - k + 2)
    squares = (k * 2 / positive + (d - k) * 2 / negative) / d
    same = k * (k - 1) / positive + (d - k) * (d - k - 1) / negative
    cross = (same - 2 * k * (d - k) / ((k + 1) * (d - k + 1))) / (d * max(1, d - 1))  # 0 if d = 1
    return (d + 1) * (d + 2) * scale**2 * float((weights * (squares - cross)).sum())
