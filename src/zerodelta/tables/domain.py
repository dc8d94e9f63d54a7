"""A public domain of categorical columns, and a workload: the sets of columns to be tabulated.

A table counts rows by the categories of a few columns; everything here is public.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.kind import Coded
from zerodelta.data.options import Options
from zerodelta.errors import is_list, require
from zerodelta.exact.rational import as_count
from zerodelta.spaces import Finite
from zerodelta.spine.public_inputs import needed
from zerodelta.value import value

Column: TypeAlias = str | int
Columns: TypeAlias = tuple[int, ...]
"""Positions of columns in the domain, rising."""

MOST_CELLS = 1 << 24
"""A distribution over all cells is held in memory: at most 128 MB."""

_MOST_TABLES = 1 << 16


@value
class Domain:
    """The columns, in the caller's order, and the categories of each.

    >>> domain = as_domain({"sex": ["f", "m"], "age": 3})
    >>> domain.sizes, domain.cells, domain.cells_of((0,))
    ((2, 3), 6, 2)
    """

    columns: tuple[Column, ...]
    categories: tuple[Finite, ...]
    sizes: tuple[int, ...] = field(init=False)
    """The number of categories of each column."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(space.size for space in self.categories))

    @property
    def cells(self) -> int:
        """The number of different rows."""
        return math.prod(self.sizes)

    def shape(self, columns: Columns) -> tuple[int, ...]:
        """Return the shape of the table of these columns."""
        return tuple([self.sizes[i] for i in columns])

    def cells_of(self, columns: Columns) -> int:
        """Return the number of cells of the table of these columns."""
        return math.prod(self.shape(columns))


@value
class TableWorkload:
    """The tables that are asked for, and for each the order in which its columns were named."""

    tables: tuple[Columns, ...]
    names: tuple[tuple[Column, ...], ...]
    orders: tuple[tuple[int, ...], ...]

    @property
    def closure(self) -> tuple[Columns, ...]:
        """All sets of columns within a table but the empty one, small ones first."""
        found = set(itertools.chain.from_iterable(map(parts_of, self.tables)))
        return tuple(sorted(found, key=lambda part: (len(part), part)))

    @property
    def maximal(self) -> tuple[Columns, ...]:
        """The tables that are no part of another one; they determine the others."""
        longest = max(map(len, self.tables))
        around: dict[int, list[frozenset[int]]] = defaultdict(list)
        for table in self.tables:
            for column in table:
                around[column].append(frozenset(table))
        return tuple(
            table
            for table in self.tables
            if len(table) == longest or not any(set(table) < other for other in around[table[0]])
        )


def parts_of(table: Columns) -> list[Columns]:
    """Return all sets of columns within a table but the empty one."""
    sizes = range(1, len(table) + 1)
    return [part for size in sizes for part in itertools.combinations(table, size)]


def as_domain(domain: Any) -> Domain:
    """Return the domain of a mapping from columns to categories; a number N stands for 0..N-1."""
    given = needed(
        domain, "domain", 'pass domain={"column": ["category", ...], ...}, known without the rows'
    )
    if isinstance(given, Domain):
        return given
    require(
        isinstance(given, Mapping) and given,
        "domain",
        type(domain),
        expected="a mapping from columns to lists of categories",
        remedy='pass domain={"sex": ["f", "m"], "age": [...]}',
    )
    spaces = tuple(
        value if isinstance(value, Finite) else Finite(value) for value in given.values()
    )
    for column, space in zip(given, spaces, strict=True):
        Options(space, f"domain of {column!r}")  # refuses categories that are read alike
    return _domain(tuple(given), spaces)


def _domain(columns: tuple[Column, ...], spaces: tuple[Finite, ...]) -> Domain:
    small = [column for column, space in zip(columns, spaces, strict=True) if space.size < 2]
    require(
        not small,
        "domain",
        small,
        expected="at least 2 categories in each column",
        remedy="leave out a column that has one category only",
    )
    return Domain(columns=columns, categories=spaces)


def table_domain(
    rows: Any, columns: Any, domain: Any, *, unknown: Any = None
) -> tuple[Any, Domain]:
    """Return the rows to be tabulated and their domain: of a data set, what was declared."""
    if not isinstance(rows, Dataset):
        require(
            columns is None,
            "columns",
            columns,
            expected="None: the domain names the columns of an array or a frame",
            remedy='pass domain={"sex": ["f", "m"]}, or open the data with zd.open',
        )
        return rows, as_domain(domain)
    require(
        domain is None,
        "domain",
        type(domain),
        expected="None for a data set, which has the categories declared",
        remedy='name its columns: columns=["city", "member"]',
    )
    require(
        unknown is None or not rows.drops,
        "unknown",
        unknown,
        expected="None where rows may count nowhere (a condition, units, add-remove)",
        remedy="declare it: zd.category([…], other=True)",
    )
    chosen = rows if columns is None else rows[columns]
    odd = [name for name, kind in chosen.kinds.items() if not isinstance(kind, Coded)]
    require(
        not odd,
        "columns",
        odd,
        expected="categories, booleans or dates",
        remedy="name such columns only; a number can be declared as zd.category([...]) of its "
        "values",
    )
    # of codes: labels that would be read alike, such as "01" and "1" if exact, are not read again
    spaces = tuple(Finite(list(kind.labels or ())) for kind in chosen.kinds.values())
    return chosen, _domain(tuple(chosen.kinds), spaces)


def as_workload(workload: Any, domain: Domain) -> TableWorkload:
    """Return all tables of k columns for a number k, else the listed ones.

    None stands for pairs of columns, or for the only one.
    """
    if isinstance(workload, TableWorkload):
        return workload
    if workload is None:
        workload = min(2, len(domain.columns))
    if isinstance(workload, (int, np.integer)) and not isinstance(workload, bool):
        order = as_count(int(workload), "workload", minimum=1)
        require(
            1 <= math.comb(len(domain.columns), order) <= _MOST_TABLES,
            "workload",
            workload,
            expected=f"at most the {len(domain.columns)} columns, and at most 2^16 tables",
            remedy="ask for tables of fewer columns, or list the tables",
        )
        wanted: list[Any] = list(itertools.combinations(domain.columns, order))
    elif is_list(workload) or isinstance(workload, Set):
        wanted = list(workload)
    else:
        wanted = []
    names = tuple(_as_columns(entry, domain) for entry in wanted)
    places = {column: i for i, column in enumerate(domain.columns)}
    unsorted = [tuple(places[column] for column in name) for name in names]
    tables = tuple(tuple(sorted(place)) for place in unsorted)
    cells = sum(map(domain.cells_of, tables))
    require(
        tables and len(set(tables)) == len(tables) and cells <= MOST_CELLS,
        "workload",
        workload if not isinstance(workload, Iterable) else f"{len(wanted)} tables",
        expected="a number of columns, or a list of different tables with at most 2^24 cells",
        remedy='pass workload=2 for all pairs of columns, or [("sex", "age"), ("age",)]',
    )
    orders = tuple(
        tuple(table.index(place) for place in given)
        for table, given in zip(tables, unsorted, strict=True)
    )
    return TableWorkload(tables=tables, names=names, orders=orders)


def _as_columns(entry: Any, domain: Domain) -> tuple[Column, ...]:
    named = (entry,) if isinstance(entry, (str, int)) else entry
    require(
        isinstance(named, (tuple, list))
        and len(named) > 0
        and all(isinstance(column, Hashable) and column in domain.columns for column in named)
        and len(set(named)) == len(named),
        "workload",
        entry,
        expected=f"different columns of the domain, some of {list(domain.columns)[:10]}",
        remedy="name the columns of a table as in the domain",
    )
    return tuple(named)
