"""What is measured of the tables, with which noise, what it will be worth, and the estimate.

The coefficients of one order (sets of that many columns) form a group; a group gets K-norm noise
for the box of what one row can move, and groups share ε (theory C10.4). With one function more or
less no other box is smaller; and a coefficient is measured once, where tables repeat it.
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
    MOST_CATEGORIES,
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
# Noisy coefficients of tables, by axes: columns that all measured tables have together or not.
#
# One table of 24 binary columns has 16 million sets of columns within it, and one axis. The noise
# of cells is alike in every orthonormal function, so an axis of several columns may have any.

Coefficients: TypeAlias = Mapping[Columns, Floats]
"""For each set of axes U an array of shape (N_i - 1 for i in U), of orthonormal functions."""


@final
class Axes:
    """The columns of each axis and its functions; all columns of the domain occur once."""

    def __init__(self, domain: Domain, columns: Sequence[Columns], *, any_functions: bool) -> None:
        self.domain, self.columns = domain, tuple(columns)
        sizes = map(domain.cells_of, self.columns)
        self.functions = tuple(
            AxisFunctions(size, any_functions and size > LARGEST_MATRIX) for size in sizes
        )
        self._of = {column: i for i, some in enumerate(self.columns) for column in some}

    def around(self, table: Columns) -> Columns:
        """Return the axes that have columns of the table."""
        return tuple(sorted({self._of[column] for column in table}))

    def shape(self, axes: Iterable[int]) -> tuple[int, ...]:
        """Return the sizes of some axes."""
        return tuple(self.functions[i].size for i in axes)

    def order(self, axes: Iterable[int]) -> Columns:
        """Return the columns of some axes, one axis after the other."""
        return tuple(itertools.chain.from_iterable(self.columns[i] for i in axes))

    def in_order(self, cells: Floats) -> Floats:
        """Return one number for each cell of all axes in the order of the domain's columns."""
        order = self.order(range(len(self.columns)))
        shaped = cells.reshape(self.domain.shape(order))
        return margin(shaped, [order.index(i) for i in range(len(order))]).reshape(-1)

    def transform(self, axes: Iterable[int]) -> Transform:
        """Return the transform of a table of these axes."""
        return Transform([self.functions[i] for i in axes])

    def transform_of(self, parts: Iterable[Columns]) -> Transform:
        """Return the transform of all axes, of which the coefficients of some sets are used."""
        sizes = self.shape(range(len(self.columns)))
        steps = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        places = [np.arange(1, size) * step for size, step in zip(sizes, steps, strict=True)]
        used = [
            functools.reduce(np.add.outer, (places[axis] for axis in part)).reshape(-1)
            for part in parts
        ]
        return Transform(self.functions, np.concatenate(used))


def column_axes(domain: Domain) -> Axes:
    """Return an axis for each column, with the functions of `column_basis`."""
    return Axes(domain, [(i,) for i in range(len(domain.columns))], any_functions=False)


def shared_axes(domain: Domain, tables: Iterable[Columns]) -> Axes:
    """Return an axis for columns that are in the same tables; the last one has those of none.

    >>> from zerodelta.marginals.domain import as_domain
    >>> shared_axes(as_domain(dict.fromkeys("abcde", 2)), [(0, 1, 3), (0, 2, 3)]).columns
    ((0, 3), (1,), (2,), (4,))
    """
    places: dict[int, list[int]] = {column: [] for column in range(len(domain.columns))}
    for place, table in enumerate(tables):
        for column in table:
            places[column].append(place)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for column, found in places.items():
        alike[tuple(found)].append(column)
    groups = sorted(map(tuple, alike.values()), key=lambda group: (not places[group[0]], group))
    return Axes(domain, groups, any_functions=True)


@value(eq=False)
class Estimate:
    """Noisy coefficients, as fractions of n, and the variance of each."""

    axes: Axes
    values: Coefficients
    variances: Coefficients

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return sum(part.size for part in self.values.values())

    def covers(self, columns: Columns) -> bool:
        """Tell whether all coefficients of a table were measured."""
        return self.axes.around(columns) in self.values

    def table(self, columns: Columns) -> Floats:
        """Return the table, adding up to 1, that has these coefficients.

        With orthonormal b: p_S(a) = 1/N_S + Σ_{U⊆S} N_U/N_S Σ_u q_{U,u} Π b_u(a).
        """
        around = self.axes.around(columns)
        shape, order = self.axes.shape(around), self.axes.order(around)
        full, cells = np.empty(shape), math.prod(shape)
        full[(0,) * len(shape)] = 1 / math.sqrt(cells)
        for part in parts_of(around):
            root = math.sqrt(math.prod(self.axes.shape(part)) / cells)
            np.multiply(self.values[part], root, out=full[_within(part, around)])
        found = self.axes.transform(around).spread(full.reshape(-1))
        shaped = found.reshape(self.axes.domain.shape(order))
        return margin(shaped, [order.index(column) for column in columns])


def table_estimate(
    domain: Domain, noisy: Mapping[Columns, Floats], variances: Mapping[Columns, float], rows: float
) -> Estimate:
    """Return the best linear estimate of every coefficient within noisy tables.

    An orthonormal coefficient of U read off the table of S has variance v_S · N_S/N_U; readings of
    different tables are independent, so they are weighed by 1/variance.
    """
    axes = shared_axes(domain, noisy)
    totals: dict[Columns, Floats] = {}
    weights: dict[Columns, float] = {}
    for table, cells in noisy.items():
        around = axes.around(table)
        turned = cells.transpose([table.index(column) for column in axes.order(around)])
        full = axes.transform(around).read(turned.reshape(-1)).reshape(axes.shape(around))
        for part in parts_of(around):
            share = math.prod(axes.shape(part)) / cells.size
            weight = share / variances[table]
            found = full[_within(part, around)] * (weight / math.sqrt(share) / rows)
            totals[part] = totals[part] + found if part in totals else found
            weights[part] = weights.get(part, 0.0) + weight
    return Estimate(
        axes=axes,
        values={part: total / weights[part] for part, total in totals.items()},
        variances={
            part: np.broadcast_to(1 / weights[part] / rows**2, total.shape)
            for part, total in totals.items()
        },
    )


def _within(part: Columns, axes: Columns) -> tuple[slice | int, ...]:
    """Return where the coefficients of some axes are among those of all of them."""
    return tuple(slice(1, None) if axis in part else 0 for axis in axes)


# -- Forecast -------------------------------------------------------------------------------------
# Expected errors of tables by public numbers: exact for noise, a rule for fits, a guess for data.
#
# Noise has known variances. A fit cuts off what no distribution can follow. What is not measured
# is as large as the interactions of columns usually are: a guess that only chooses among methods.

MOST_FITTED = 1 << 20
"""With more cells answers are not fitted to a distribution, unless rows are wanted."""
_USUAL = (0.4, 0.15, 0.05)
"""The usual size of what one, two, three columns add to what fewer of them show, from -1 to 1.

Root mean squares of a dozen made and real data sets; each further column halves it."""
_CHOSEN = 0.5
"""Of what is not measured, so much is left in squares if the worst fitted tables are measured."""
_TYPICAL = 0.25


def tables_error(
    domain: Domain, workload: TableWorkload, variances: Mapping[Columns, Floats]
) -> float:
    """Return the expected absolute error of a cell, averaged, for coefficients of these variances.

    Variances are those of one set of columns of each orbit; orbits without one are not measured.
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
    """Return the same for `rounds` rounds of choosing and measuring a table."""
    variance = 2 * (4 * rounds / float(epsilon) / rows) ** 2
    share = rounds / len(workload.tables)
    noise = usual = dimension = 0.0
    for orbit in orbits(domain, workload):
        reads = share * orbit.around  # how many of the chosen tables show it
        known, weight = min(1.0, reads), orbit.count * orbit.importance
        each = variance * orbit.table_cells / orbit.cells / max(1.0, reads)
        noise += weight * known * orbit.size * each
        usual += weight * (1 - known) * _CHOSEN * _usual_square(orbit)
        dimension += known * orbit.coefficients
    return _fitted(domain, workload, noise, usual, dimension)


def best_rounds(domain: Domain, workload: TableWorkload, epsilon: Fraction, rows: int) -> int:
    """Return the number of rounds with the least forecast, at most one for each second table."""
    most = max(1, len(workload.tables) // 2)
    candidates = sorted({min(most, math.ceil(1.25**k)) for k in range(60)})
    return min(candidates, key=lambda t: rounds_error(domain, workload, epsilon, rows, t))


def whole_rows_error(domain: Domain, workload: TableWorkload, size: int) -> float:
    """Return how far rounding to `size` rows moves a cell: some half a row, measured 0.2 to 1."""
    return min(0.5 / size, _farthest(domain, workload))


def _usual_square(orbit: Orbit) -> float:
    """Return the usual sum of squares of the orthonormal coefficients of a set of columns."""
    more = max(0, orbit.order - len(_USUAL))
    return (_USUAL[min(orbit.order, len(_USUAL)) - 1] * 0.5**more) ** 2 * orbit.size / orbit.cells


def _fitted(
    domain: Domain, workload: TableWorkload, noise: float, usual: float, dimension: float
) -> float:
    """Return the mean error of a cell from sums of squares over all cells of all tables.

    Unfitted it is σ = √(2/π) deviations, nearly. Noise in m coefficients moves a distribution over
    N cells only as far as it can follow, which grows like √(2 ln N / m): measured on several kinds
    of data, a fit brings σ to σ/√(1 + σ/σ*), σ* a quarter of that.
    """
    cells = sum(map(domain.cells_of, workload.tables))
    error = math.sqrt(2 / math.pi * noise / cells)
    if domain.cells <= MOST_FITTED:
        # every coefficient of size 1: those of a table, over its cells
        signs = math.fsum(1 - 1 / domain.cells_of(table) for table in workload.tables)
        unit = math.sqrt(2 / math.pi * signs / cells)
        reach = _TYPICAL * unit * math.sqrt(2 * math.log(domain.cells) / max(1.0, dimension))
        error /= math.sqrt(1 + error / reach)
    whole = math.hypot(error, math.sqrt(2 / math.pi * usual / cells))
    return min(whole, _farthest(domain, workload))


def _farthest(domain: Domain, workload: TableWorkload) -> float:
    """Return the mean distance of cells of tables that have nothing in common."""
    return 2 * len(workload.tables) / sum(map(domain.cells_of, workload.tables))


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
        # the same ε for each group, whatever its size
        return (self.noises[0].step().times(len(self.noises)),)

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
