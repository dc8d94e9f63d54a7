"""Orbits of sets of columns: they stand for all sets, are few, and too many are refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.errors import ParameterError
from zerodelta.marginals import bases as home
from zerodelta.marginals.bases import _classes, orbits
from zerodelta.marginals.domain import Domain, TableWorkload, as_domain, as_workload
from zerodelta.tasks.marginals import answer_queries, queries_methods, synthesis_methods, synthesize


def full_and_pairs(columns: int) -> list[tuple[int, ...]]:
    return [tuple(range(columns)), *itertools.combinations(range(columns), 2)]


def prefixes(columns: int) -> list[tuple[int, ...]]:
    return [tuple(range(last + 1)) for last in range(columns)]


def some_tables(columns: int, size: int, count: int) -> list[tuple[int, ...]]:
    draw = np.random.default_rng(columns)
    chosen = (draw.choice(columns, size, replace=False) for _ in range(count))
    return sorted({tuple(sorted(map(int, table))) for table in chosen})


def mixed_tables(seed: int) -> list[tuple[int, ...]]:
    """Tables of all sizes; with swaps that keep them, where they are few or many."""
    draw = np.random.default_rng(seed)
    parts = [p for k in range(1, 6) for p in itertools.combinations(range(5), k)]
    return [parts[i] for i in sorted(draw.choice(len(parts), 1 + 3 * seed, replace=False))]


def asked(sizes: tuple[int, ...], workload: Any) -> tuple[Domain, TableWorkload]:
    domain = as_domain(dict(enumerate(sizes)))
    return domain, as_workload(workload, domain)


WORKLOADS: list[tuple[tuple[int, ...], Any]] = [
    ((2, 2, 2, 3), 4),
    ((2, 3, 2), [(0, 1, 2), (0, 2), (1,)]),
    ((2, 2, 3, 3, 2), [(0, 1, 2, 3), (2, 3, 4)]),
    ((2, 4, 2), 2),
    ((2, 3, 2, 3), 1),
    ((2, 3, 4, 2), [(0, 2), (1, 2), (2, 3)]),
    ((2,) * 6, full_and_pairs(6)),
    ((2, 2, 3, 3, 2, 2), full_and_pairs(6)),
    ((2,) * 6, prefixes(6)),
    ((2,) * 6, [(i, i + 1) for i in range(5)]),  # a chain: its mirror image is no swap
    ((3,) * 6, [(i, (i + 1) % 6) for i in range(6)]),
    ((2,) * 6, [(0, 2), (0, 3), (1, 2), (1, 3), (4, 5)]),
    ((2,) * 7, 3),
    ((2,) * 8, some_tables(8, 4, 25)),
    ((3, 2, 3, 2, 2, 3, 4), some_tables(7, 5, 9)),
    *(((2, 2, 2, 2, 2), mixed_tables(seed)) for seed in range(11)),
]


@pytest.mark.parametrize(("sizes", "workload"), WORKLOADS)
def test_orbits_stand_for_every_set_of_columns(sizes: tuple[int, ...], workload: Any) -> None:
    """By all that forecasts look at: the shape, and the tables around, by size and maximality."""
    domain, wanted = asked(sizes, workload)
    listed: Counter[Any] = Counter()
    for orbit in orbits(domain, wanted):
        tables: Counter[Any] = Counter()
        for table, number in orbit.tables:
            tables[domain.shape(table), table in wanted.maximal] += number
        assert set(orbit.example) <= set(orbit.tables[0][0])
        assert orbit.cells == domain.cells_of(orbit.example)
        assert orbit.size == math.prod(size - 1 for size in domain.shape(orbit.example))
        assert orbit.table_count == sum(tables.values())
        listed[
            tuple(sorted(domain.shape(orbit.example))),
            as_multiset(tables),
            round(orbit.importance, 9),
            round(orbit.table_cells, 9),
        ] += orbit.count
    found: Counter[Any] = Counter()
    for part in wanted.closure:
        around = [table for table in wanted.tables if set(part) <= set(table)]
        cells = [domain.cells_of(table) for table in around]
        found[
            tuple(sorted(domain.shape(part))),
            as_multiset(Counter((domain.shape(t), t in wanted.maximal) for t in around)),
            round(sum(domain.cells_of(part) / each for each in cells), 9),
            round(sum(cells) / len(cells), 9),
        ] += 1
    assert listed == found


def as_multiset(tables: Counter[Any]) -> Any:
    """Without the order of columns: a table stands for those that swaps make of it."""
    merged: Counter[Any] = Counter()
    for (shape, maximal), number in tables.items():
        merged[tuple(sorted(shape)), maximal] += number
    return frozenset(merged.items())


@pytest.mark.parametrize(("sizes", "workload"), WORKLOADS)
def test_columns_are_alike_just_if_swapping_them_keeps_the_workload(
    sizes: tuple[int, ...], workload: Any
) -> None:
    domain, wanted = asked(sizes, workload)
    classes = _classes(domain, wanted)
    together = {pair for some in classes for pair in itertools.combinations(some, 2)}
    tables = set(wanted.tables)
    columns = sorted(set(itertools.chain(*tables)))
    assert sorted(itertools.chain(*classes)) == columns
    for i, j in itertools.combinations(columns, 2):
        swap = {i: j, j: i}
        swapped = {tuple(sorted(swap.get(c, c) for c in table)) for table in tables}
        assert ((i, j) in together) == (swapped == tables and sizes[i] == sizes[j])


@pytest.mark.parametrize(
    ("columns", "workload", "most"),
    [
        (24, 24, 24),
        (20, full_and_pairs(20), 20),
        (22, prefixes(22), 22 * 23 // 2),
        (200, 2, 2),
        (17, 9, 9),
        (1000, [(i, i + 1) for i in range(0, 1000, 2)], 1000),
    ],
)
def test_orbits_are_few(columns: int, workload: Any, most: int) -> None:
    """Of up to 16 million sets of columns."""
    found = orbits(*asked((2,) * columns, workload))
    assert len(found) <= most
    assert sum(orbit.count for orbit in found) >= columns


@pytest.mark.parametrize(
    ("columns", "workload"),
    [
        *((13, 13), (20, 20), (24, 24), (20, full_and_pairs(20)), (22, prefixes(22))),
        *((200, 2), (40, 3)),  # many small ones
    ],
)
def test_large_tables_are_planned(columns: int, workload: Any) -> None:
    domain = dict.fromkeys(range(columns), 2)
    methods = queries_methods(epsilon=1, n=100_000, domain=domain, workload=workload)
    assert math.isfinite(methods[0].error)


@pytest.mark.parametrize("workload", [full_and_pairs(18), prefixes(18)])
def test_a_large_table_and_smaller_ones_are_answered(workload: Any) -> None:
    rows = np.random.default_rng(2).integers(0, 2, (20_000, 18))
    found = answer_queries(rows, domain=dict.fromkeys(range(18), 2), workload=workload, epsilon=1)
    assert all(table.sum() == pytest.approx(1) for table in found.value.values())
    assert zd.verify(found.certificate)


def test_too_many_orbits_are_refused() -> None:
    domain, workload = dict.fromkeys(range(24), 2), some_tables(24, 18, 20)
    with pytest.raises(ParameterError, match="ask for fewer or smaller tables"):
        queries_methods(epsilon=1, n=100, domain=domain, workload=workload)


def test_the_refusal_depends_on_the_workload_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, workload = dict.fromkeys(range(9), 2), some_tables(9, 5, 11)
    seen = set()
    with monkeypatch.context() as patch:
        patch.setattr(home, "_MAXIMUM_EFFORT", 100)
        for release in (answer_queries, synthesize):
            for rows in (np.zeros((50, 9)), np.ones((80, 9)), np.full((50, 9), 7)):
                for method in ("auto", "laplace", "mwem"):
                    with pytest.raises(ParameterError, match="orbits of sets of columns") as found:
                        release(rows, domain=domain, workload=workload, epsilon=1, method=method)
                    seen.add(str(found.value))
        with pytest.raises(ParameterError, match="11 tables"):
            synthesis_methods(epsilon=1, n=50, domain=domain, workload=workload)
    assert len(seen) == 1
    assert synthesis_methods(epsilon=1, n=50, domain=domain, workload=workload)
