"""Algorithms 8 and 15: the LP and the alias table are right; workloads answer exactly."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.opening import opened
from reference.chi_square import goodness_of_fit
from zerodelta.errors import ParameterError
from zerodelta.exact.integers import AliasTable, integer_weights, proportional_sampling
from zerodelta.marginals import workloads
from zerodelta.marginals.workloads import source_of
from zerodelta.paper import algorithm_07_08 as algorithm_08
from zerodelta.paper.algorithm_07_08 import gaussian_sketch, recovery_error, sparse_recovery
from zerodelta.queries import LinearQueries, Marginals, Workload
from zerodelta.testing import replayed


def sparse(dimension: int, support: int, rng: Any) -> Any:
    theta = np.zeros(dimension)
    theta[rng.choice(dimension, support, replace=False)] = rng.normal(size=support)
    return theta / np.abs(theta).sum()


def test_a_sparse_vector_is_recovered_exactly_without_noise() -> None:
    rng = np.random.default_rng(1)
    phi, theta = replayed("phi")(gaussian_sketch)(60, 300), sparse(300, 8, rng)
    found = sparse_recovery(phi @ theta, phi, tolerance=0.0)
    assert np.abs(found - theta).max() < 1e-8


def test_the_solution_is_feasible_and_no_feasible_vertex_is_shorter() -> None:
    """Brute force: with ξ = 0 a shortest solution has a support of k columns."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        phi, b = rng.normal(size=(2, 5)), rng.normal(size=2)
        found = sparse_recovery(b, phi, tolerance=0.0)
        assert np.abs(phi @ found - b).sum() < 1e-7
        lengths = [
            np.abs(np.linalg.solve(phi[:, list(pair)], b)).sum()
            for pair in itertools.combinations(range(5), 2)
        ]
        assert np.abs(found).sum() == pytest.approx(min(lengths), abs=1e-7)


def test_the_tolerance_is_used_and_never_exceeded() -> None:
    rng = np.random.default_rng(3)
    phi, theta = replayed("phi")(gaussian_sketch)(40, 100), sparse(100, 4, rng)
    noise = rng.laplace(size=40) * 0.002
    xi = float(np.abs(noise).sum())
    found = sparse_recovery(phi @ theta + noise, phi, tolerance=xi)
    assert np.abs(phi @ found - phi @ theta - noise).sum() <= xi + 1e-7
    assert np.abs(found).sum() <= np.abs(theta).sum() + 1e-9  # θ itself is feasible
    assert np.abs(found - theta).sum() <= recovery_error(sparsity=4, tolerance=xi)


def test_a_large_tolerance_gives_zero() -> None:
    assert not sparse_recovery(np.array([1.0, -1.0]), np.eye(2), tolerance=2.5).any()


@pytest.mark.parametrize("b", [[1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], [1e300, -1e300]])
def test_infeasible_and_senseless_measurements_become_zero(b: Any) -> None:
    found = sparse_recovery(np.array(b), np.ones((2, 3)), tolerance=0.1)
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_a_solver_that_raises_or_returns_nonsense_becomes_zero(monkeypatch: Any) -> None:
    def broken(*args: Any) -> Any:
        raise MemoryError

    for replacement in (
        broken,
        lambda *_: None,
        lambda *_: np.full(3, np.nan),
        lambda *_: np.ones(9),
    ):
        monkeypatch.setattr(algorithm_08, "_solved", replacement)
        found = sparse_recovery(np.array([1.0]), np.ones((1, 3)), tolerance=0.0)
        assert found.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("b", "phi", "options"),
    [
        (np.ones(2), np.ones((3, 3)), {"tolerance": 1.0}),
        (np.ones(2), np.ones(2), {"tolerance": 1.0}),
        (np.ones(2), np.full((2, 2), np.nan), {"tolerance": 1.0}),
        (np.ones(2), np.ones((2, 0)), {"tolerance": 1.0}),
        (np.ones(2), np.ones((2, 2)), {"tolerance": -1.0}),
        (np.ones(2), np.ones((2, 2)), {"tolerance": float("nan")}),
    ],
)
def test_bad_parameters_are_refused(b: Any, phi: Any, options: Any) -> None:
    with pytest.raises(ParameterError):
        sparse_recovery(b, phi, **options)


def test_two_hundred_measurements_find_two_thousand_coordinates() -> None:
    rng = np.random.default_rng(5)
    phi, theta = replayed("phi")(gaussian_sketch)(200, 2000), sparse(2000, 10, rng)
    noise = rng.laplace(size=200) * 1e-4
    found = sparse_recovery(phi @ theta + noise, phi, tolerance=float(np.abs(noise).sum()))
    assert np.abs(found - theta).sum() < 0.02


def test_the_sketch_has_the_variance_of_one_over_k() -> None:
    phi = replayed("phi")(gaussian_sketch)(50, 400)
    assert phi.var() == pytest.approx(1 / 50, rel=0.05)
    assert abs(phi.mean()) < 0.005
    assert not np.array_equal(phi, gaussian_sketch(50, 400))


# -- Algorithm 15 ---------------------------------------------------------------------------------


def law(table: AliasTable) -> list[Fraction]:
    """P(i), read off the table: a uniform column, then a uniform height in it."""
    count = len(table.limits)
    mass = [0] * count
    for i in range(count):
        mass[i] += int(table.limits[i])
        mass[int(table.others[i])] += table.total - int(table.limits[i])
    return [Fraction(m, count * table.total) for m in mass]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=30).filter(any))
def test_every_item_has_exactly_its_share(weights: list[int]) -> None:
    table = AliasTable.of(np.array(weights, dtype=np.int64))
    assert law(table) == [Fraction(weight, sum(weights)) for weight in weights]
    assert ((table.limits >= 0) & (table.limits <= table.total)).all()


def test_draws_follow_the_table() -> None:
    weights = np.array([5, 0, 1, 10, 3])
    drawn = replayed("alias")(proportional_sampling)(weights, size=20_000)
    counts = np.bincount(drawn, minlength=5).tolist()
    assert goodness_of_fit(counts, [5 / 19, 0.0, 1 / 19, 10 / 19, 3 / 19]) > 1e-4


def test_a_large_table_is_exact_too() -> None:
    weights = integer_weights(np.random.default_rng(3).random(1 << 12))
    table = AliasTable.of(weights)
    assert law(table) == [Fraction(int(w), int(weights.sum())) for w in weights]


def test_weights_from_floats_are_total() -> None:
    assert integer_weights(np.array([np.nan, -1.0, np.inf, 0.0])).tolist() == [1, 1, 1, 1]
    assert integer_weights(np.array([1e-300, 1e-300])).tolist() == [2**40, 2**40]


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [2**62, 2**62]])
def test_weights_that_are_none_are_refused(weights: list[int]) -> None:
    with pytest.raises(ParameterError):
        AliasTable.of(np.array(weights, dtype=np.int64))


# -- workloads ------------------------------------------------------------------------------------


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
