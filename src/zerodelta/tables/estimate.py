"""Noisy coefficients of tables, by axes: columns that all measured tables have together or not.

One table of 24 binary columns has 16 million sets of columns within it, and one axis. The noise of
cells is alike in every orthonormal function, so an axis of several columns may have any.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

import numpy as np

from zerodelta.exact.arrays import Floats
from zerodelta.tables.bases import LARGEST_MATRIX, AxisFunctions, Transform, margin
from zerodelta.tables.domain import Columns, Domain, parts_of
from zerodelta.value import value

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

    >>> from zerodelta.tables.domain import as_domain
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
