"""Algorithm 8: the LP is right, and nothing it does becomes an error."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from zerodelta.errors import ParameterError
from zerodelta.paper import algorithm_07_08 as algorithm_08
from zerodelta.paper.algorithm_07_08 import gaussian_sketch, recovery_error, sparse_recovery
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
