"""Workloads answer exactly, and no row can raise, drop out or change another."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from data.opening import opened
from zerodelta.errors import ParameterError
from zerodelta.marginals import workloads
from zerodelta.marginals.workloads import source_of
from zerodelta.queries import LinearQueries, Marginals, Workload


def histogram(rows: Any, workload: Workload) -> Any:
    return workloads.histogram(opened(source_of(rows, workload)), workload)


def brute_force(workload: Marginals) -> np.ndarray[Any, Any]:
    """The (K, |X|) table of all marginals, from their definition."""
    table = []
    for columns in itertools.combinations(range(workload.dimension), workload.order):
        for value in range(1 << workload.order):
            wanted = [value >> place & 1 for place in range(workload.order)]
            table.append(
                [
                    int([item >> column & 1 for column in columns] == wanted)
                    for item in range(workload.universe)
                ]
            )
    return np.array(table)


@pytest.mark.parametrize(("dimension", "order"), [(1, 1), (3, 1), (4, 2), (5, 3), (3, 3)])
def test_marginals_equal_their_definition(dimension: int, order: int) -> None:
    workload = Marginals(dimension=dimension, order=order)
    table = brute_force(workload)
    counts = np.arange(workload.universe) ** 3 % 101 + 2**45
    assert workload.totals(counts).dtype == np.int64
    assert workload.totals(counts).tolist() == (table @ counts).tolist()
    weights = np.random.default_rng(1).random(workload.universe)
    assert np.allclose(workload.totals(weights), table @ weights, rtol=1e-13)
    for query in range(workload.queries):
        changed = weights.copy()
        workload.reweight(changed, query, 0.25)
        assert np.allclose(changed, weights * np.exp(0.25 * table[query]), rtol=1e-13)


def test_one_replaced_row_moves_each_total_by_at_most_the_bound() -> None:
    rng = np.random.default_rng(2)
    cases: list[tuple[Workload, Any]] = [
        (Marginals(dimension=4), lambda: rng.integers(0, 2, (6, 4)).astype(float)),
        (LinearQueries(rng.integers(0, 6, (5, 7))), lambda: rng.integers(0, 7, (6, 1)) * 1.0),
    ]
    for workload, draw in cases:
        worst = 0
        for _ in range(200):
            rows, other = draw(), draw()
            changed = rows.copy()
            changed[2] = other[2]
            moved = workload.totals(histogram(rows, workload)) - workload.totals(
                histogram(changed, workload)
            )
            worst = max(worst, int(np.abs(moved).max()))
        assert 0 < worst <= workload.bound


def test_rows_that_are_no_item_count_as_item_0() -> None:
    rows = np.array([[1.0, np.nan], [0.5, 0.0], [2.0, 1.0], [-1.0, np.inf], [1.0, 1.0]])
    assert histogram(rows, Marginals(dimension=2)).tolist() == [4, 0, 0, 1]
    odd = np.array([7, -1, 1.5, np.nan, 2])
    assert histogram(odd, LinearQueries([[1, 0, 1]])).tolist() == [4, 0, 1]
    assert LinearQueries([[1, 0, 1], [0, 0, 5]]).answers(odd).tolist() == [1, 1]


def test_items_become_the_rows_they_stand_for() -> None:
    workload = Marginals(dimension=3)
    items = np.arange(8)
    assert histogram(workload.rows_of(items), workload).tolist() == [1] * 8


@pytest.mark.parametrize(
    "build",
    [
        lambda: Marginals(dimension=0),
        lambda: Marginals(dimension=21),
        lambda: Marginals(dimension=2, order=3),
        lambda: Marginals(dimension=2, order=0),
        lambda: LinearQueries([[1]]),
        lambda: LinearQueries([[0, 0]]),
        lambda: LinearQueries([[-1, 1]]),
        lambda: LinearQueries(np.array([[0.5, 1.0]])),
        lambda: histogram(np.zeros((3, 4)), Marginals(dimension=3)),
        lambda: histogram(np.zeros((0, 3)), Marginals(dimension=3)),
    ],
)
def test_bad_public_parameters_are_refused(build: Any) -> None:
    with pytest.raises(ParameterError):
        build()
