"""Orbits: sets of columns that no forecast can tell apart, so that plans need not list them all.

Two columns of one size are alike if swapping them maps the workload to itself. Such swaps generate
all permutations of columns that are alike: (i k) = (i j)(j k)(i j) shows that being alike is
transitive. So a table stands for all sets with as many columns of each class; they are all tables.
One table of 20 binary columns and all its pairs have a million sets of columns, and 20 orbits.
Sets of the same sizes within the same tables are one orbit, too: those within 22 prefixes of the
columns are told apart by their last column and their number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, final

from zerodelta.errors import require
from zerodelta.tables.domain import Columns, Domain, TableWorkload
from zerodelta.value import value

_MOST_EFFORT = 1 << 19
"""Orbits of tables around all sets that are looked at: a few seconds."""
_FEW = 8
"""Sets within so few orbits of tables only grow by classes that these have."""


@value
class Orbit:
    """`count` sets of columns that are like `example`, and the tables around that one."""

    example: Columns
    count: int
    tables: tuple[tuple[Columns, int], ...]
    """Of each orbit of tables around the example one (of that orbit), and how many are around."""
    around: int
    """The number of all tables around it."""
    table_cells: float
    """The number of cells of these tables, on average."""
    cells: int
    """The number N_U of cells of the example's own table."""
    size: int
    """The number of coefficients of the example."""
    importance: float
    """Σ_{S⊇U} N_U/N_S: how much a unit of variance in U adds to all cells together."""

    @property
    def order(self) -> int:
        """The number of columns."""
        return len(self.example)

    @property
    def coefficients(self) -> int:
        """The number of coefficients of all sets of this orbit."""
        return self.count * self.size


@lru_cache(maxsize=8)
def orbits(domain: Domain, workload: TableWorkload) -> tuple[Orbit, ...]:
    """Return all orbits of sets of columns within a table but the empty one, small ones first.

    Too many are refused, by the domain and the workload alone.

    >>> from zerodelta.tables.domain import as_domain, as_workload
    >>> domain = as_domain({"a": 2, "b": 2, "c": 3})
    >>> [(k.example, k.count) for k in orbits(domain, as_workload([("a", "b", "c")], domain))]
    [((0,), 2), ((2,), 1), ((0, 1), 1), ((0, 2), 2), ((0, 1, 2), 1)]
    """
    classes = _classes(domain, workload)
    home = {column: place for place, some in enumerate(classes) for column in some}
    tables: dict[_Counts, Columns] = {}
    for table in workload.tables:
        counts = Counter(home[column] for column in table)
        tables.setdefault(tuple(sorted(counts.items())), table)
    each = [(table, domain.cells_of(table)) for table in tables.values()]
    found = [_orbit(domain, sets, each) for sets in _sets(domain, classes, list(tables))]
    return tuple(sorted(found, key=lambda orbit: (orbit.order, orbit.example)))


_Counts: TypeAlias = tuple[tuple[int, int], ...]
"""How many columns of which class, for classes of which there are some."""
_Key: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""The sizes of columns, and how many tables of each orbit are around."""


@final
@dataclass(kw_only=True, slots=True)
class _Sets:
    """`count` sets of columns, one of them, and how many tables of each orbit are around it."""

    example: Columns
    count: int
    tables: dict[int, int]

    def grown(self, some: Columns, size: int, of_class: Mapping[int, int]) -> _Sets:
        """Return the sets with more columns, `some` of a new class of this size."""
        more = len(some)
        return _Sets(
            example=self.example + some,
            count=self.count * math.comb(size, more),
            tables={
                table: self.tables[table]
                * math.comb(size - more, of_class[table] - more)
                // math.comb(size, of_class[table])
                for table in sorted(self.tables.keys() & of_class.keys())
                if of_class[table] >= more
            },
        )


def _sets(domain: Domain, classes: Sequence[Columns], tables: Sequence[_Counts]) -> Iterator[_Sets]:
    """Return all sets of columns within tables but the empty one.

    They grow class by class; those of the same sizes with the same tables around are put together.
    """
    of_class: list[dict[int, int]] = [{} for _ in classes]
    for i, counts in enumerate(tables):
        for place, most in counts:
            of_class[place][i] = most
    # before each class: the sets of columns of earlier ones; at last all of them
    waiting: list[dict[_Key, _Sets]] = [{} for _ in range(len(classes) + 1)]

    def put(key: _Key, sets: _Sets, place: int) -> None:
        if len(sets.tables) <= _FEW:
            later = [p for table in sets.tables for p, _ in tables[table] if p >= place]
            place = min(later, default=len(classes))
        same = waiting[place].setdefault(key, sets)
        if same is not sets:
            same.count += sets.count

    numbers = [math.prod(math.comb(len(classes[p]), most) for p, most in some) for some in tables]
    put(((), ()), _Sets(example=(), count=1, tables=dict(enumerate(numbers))), 0)
    effort = 0
    for place, columns in enumerate(classes):
        for key, sets in waiting[place].items():
            for more in range(1, len(columns) + 1):
                grown = sets.grown(columns[:more], len(columns), of_class[place])
                if not grown.tables:
                    break
                sizes = tuple(sorted(domain.shape(grown.example)))
                put((sizes, tuple(grown.tables.items())), grown, place + 1)
                effort += 1 + len(grown.tables)
                require(
                    effort <= _MOST_EFFORT,
                    "workload",
                    f"{sum(numbers)} tables",
                    expected="tables that have fewer orbits of sets of columns in common: the "
                    "error of each orbit is forecast, and here that would take too long",
                    remedy="ask for fewer or smaller tables, or only for one that has them all",
                )
            put(key, sets, place + 1)
        waiting[place] = {}
    return (sets for sets in waiting[-1].values() if sets.example)


def _orbit(domain: Domain, sets: _Sets, tables: Sequence[tuple[Columns, int]]) -> Orbit:
    example = tuple(sorted(sets.example))
    cells = domain.cells_of(example)
    near = [(*tables[i], number) for i, number in sets.tables.items()]
    around = sum(sets.tables.values())
    return Orbit(
        example=example,
        count=sets.count,
        tables=tuple((table, number) for table, _, number in near),
        around=around,
        table_cells=sum(size * number for _, size, number in near) / around,
        cells=cells,
        size=math.prod(categories - 1 for categories in domain.shape(example)),
        importance=math.fsum(number * cells / size for _, size, number in near),
    )


def _classes(domain: Domain, workload: TableWorkload) -> list[Columns]:
    """Return the columns of tables, those that are alike together.

    Either no two columns of a class share a table, and then they complete the same rests to tables;
    or all do, and then a column is compared with the first ones of classes around it.
    """
    tables, sizes = set(map(frozenset, workload.tables)), domain.sizes
    around: dict[int, list[frozenset[int]]] = defaultdict(list)
    for table in tables:
        for column in table:
            around[column].append(table)
    classes: dict[int, list[int]] = {}  # by the first column
    apart: dict[tuple[int, frozenset[frozenset[int]]], int] = {}
    for column in sorted(around):
        size, rests = sizes[column], frozenset(table - {column} for table in around[column])
        first = apart.setdefault((size, rests), column)
        if first == column:
            near = sorted(classes.keys() & frozenset().union(*rests))
            first = next(
                (
                    other
                    for other in near
                    if sizes[other] == size
                    and len(around[other]) == len(rests)
                    and all(other in rest or rest | {other} in tables for rest in rests)
                ),
                column,
            )
        classes.setdefault(first, []).append(column)
    return [tuple(some) for some in classes.values()]
