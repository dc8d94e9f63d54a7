"""Sets of columns by kinds that no forecast can tell apart, so that plans need not list them all.

Columns of as many categories that are in the same tables can be swapped. One table of 20 binary
columns has a million sets of columns within it, and 20 kinds of them.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from zerodelta.tasks.marginal_domain import Columns, Domain, Workload

__all__ = ["Kind", "kinds"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """`count` sets of columns that are like `example`, and the tables around that one."""

    example: Columns
    count: int
    tables: tuple[Columns, ...]
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
        """The number of coefficients of all sets of this kind."""
        return self.count * self.size


@lru_cache(maxsize=8)
def kinds(domain: Domain, workload: Workload) -> tuple[Kind, ...]:
    """Return all kinds of sets of columns within a table but the empty one, small ones first.

    >>> from zerodelta.tasks.marginal_domain import as_domain, as_workload
    >>> domain = as_domain({"a": 2, "b": 2, "c": 3})
    >>> [(k.example, k.count) for k in kinds(domain, as_workload([("a", "b", "c")], domain))]
    [((0,), 2), ((2,), 1), ((0, 1), 1), ((0, 2), 2), ((0, 1, 2), 1)]
    """
    swappable = _swappable(domain, workload)
    around: dict[Columns, list[Columns]] = defaultdict(list)
    counts: dict[Columns, int] = {}
    for table in workload.tables:
        within = sorted({swappable[column] for column in table})
        firsts = [[group[:size] for size in range(len(group) + 1)] for group in within]
        for chosen in itertools.product(*firsts):
            example = tuple(sorted(itertools.chain(*chosen)))
            around[example].append(table)
            counts[example] = math.prod(
                math.comb(len(group), len(some)) for group, some in zip(within, chosen, strict=True)
            )
    del around[()]
    found = sorted(around, key=lambda example: (len(example), example))
    return tuple(_kind(domain, example, counts[example], around[example]) for example in found)


def _kind(domain: Domain, example: Columns, count: int, tables: list[Columns]) -> Kind:
    cells = domain.cells_of(example)
    return Kind(
        example=example,
        count=count,
        tables=tuple(tables),
        cells=cells,
        size=math.prod(categories - 1 for categories in domain.shape(example)),
        importance=math.fsum(cells / domain.cells_of(table) for table in tables),
    )


def _swappable(domain: Domain, workload: Workload) -> dict[int, Columns]:
    """Return for each column of a table all those that are in the same tables with its size."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, table in enumerate(workload.tables):
        for column in table:
            places[column].append(place)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for column in sorted(places):
        signature = (domain.sizes[column], *places[column])
        alike[signature].append(column)
    return {column: tuple(group) for group in alike.values() for column in group}
