"""What Algorithms 9 to 16 publish lies in its space, whatever the bits say; in a box exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from paper.free_releases import bounded_local_sensitivity, free_propose_test_release
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.integers import proportional_sampling
from zerodelta.mechanisms.stable_queries import CustomQuery, Median, StableQuery, TrimmedMean
from zerodelta.paper.algorithm_09_10_11 import (
    propose_test_release,
    pure_bounded_local_sensitivity,
    pure_propose_test_release,
)
from zerodelta.paper.algorithm_12_13 import embedded_mode, lattice_adassp, mode, pure_adassp
from zerodelta.paper.algorithm_14_16 import embedded_mwem, multiset_mwem, mwem
from zerodelta.paper.gaussian_statistics import trust_radius
from zerodelta.queries import Marginals
from zerodelta.testing import replayed

F = Fraction
BOUNDS: list[tuple[Any, Any]] = [(0, 100), (0, 0.3), ("-1/3", "1/3"), ("1/10", "7/10")]
PURE: dict[str, Any] = {"epsilon": 3, "mixing_weight": "1/4", "delta": "1e-3"}
STABLE: dict[str, Callable[..., zd.records.Release]] = {
    "9": lambda rows, bound, **kw: propose_test_release(
        rows, proposed_bound=bound, epsilon=2, delta="1e-3", **kw
    ),
    "10": lambda rows, bound, **kw: pure_propose_test_release(
        rows, proposed_bound=bound, **PURE, **kw
    ),
    "C3": lambda rows, bound, **kw: free_propose_test_release(
        rows, proposed_bound=bound, epsilon=2, **kw
    ),
    "11": lambda rows, bound, **kw: pure_bounded_local_sensitivity(rows, **PURE, **kw),
    "C4": lambda rows, bound, **kw: bounded_local_sensitivity(
        rows, epsilon=3, mixing_weight="1/4", **kw
    ),
}


def queries(low: Any, high: Any) -> dict[str, tuple[StableQuery, Any, Any]]:
    """Queries whose answers are at an end, with bounds that are no floats and noise of a third."""
    lower, upper = F(low), F(high)
    ends = [lower, upper], [upper, upper + 1]
    custom = CustomQuery(
        function=lambda rows: [1e300, -1e300],
        grid=zd.Box(*ends).grid(7),
        stability=lambda rows, bound: 1000,
        local=lambda rows: 0,
        change=upper - lower,
    )
    column: dict[str, Any] = {"bounds": (low, high), "steps": 49}
    return {
        "median": (Median(**column), [lower], [upper]),
        "trimmed mean": (TrimmedMean(**column, trim=3), [lower], [upper]),
        "custom": (custom, *ends),
    }


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("name", STABLE)
def test_a_stable_query_between_its_bounds(name: str, bounds: tuple[Any, Any]) -> None:
    bits = ReplayBits(f"{name} between {bounds}")
    for query, lower, upper in queries(*bounds).values():
        for rows in (np.full(50, -1e9), np.full(50, 1e9)):
            for _ in range(8):
                bound = (F(bounds[1]) - F(bounds[0])) / 3
                value = replayed(bits)(STABLE[name])(rows, bound, query=query).value
                if value is None:
                    assert name == "9"
                    continue
                inside = [a <= F(v) <= b for a, v, b in zip(lower, value, upper, strict=True)]
                assert all(inside), (value, lower, upper)


@pytest.mark.parametrize("release", [mode, embedded_mode])
def test_a_mode_of_the_universe(release: Any) -> None:
    bits, words = ReplayBits("modes"), ["a", "b", "c"]
    for rows in (["a"] * 9, ["zz"] * 9, [], [math.nan, None]):
        found = {
            replayed(bits)(release)(rows, universe=words, epsilon="1/10").value for _ in range(20)
        }
        assert found <= set(words)


def radius(numbers: Any, *, rows: int, dimension: int, ridge: float) -> Fraction:
    """R̃ for data_norm = 3, target_bound = 2, from the noise that the certificate states."""
    return trust_radius(
        rows=rows,
        dimension=dimension,
        multiplier=math.sqrt(F(str(numbers["multiplier_squared"]))),
        ridge_factor=ridge,
        scale=2 / 3,
    )


@pytest.mark.parametrize("dimension", [1, 3])
def test_coefficients_in_their_ball(dimension: int) -> None:
    rows, bits = 40, ReplayBits("coefficients")
    x, y = np.full((rows, dimension), 1e9), np.full(rows, -1e9)
    linear: dict[str, Any] = {"data_norm": 3, "target_bound": 2, "mixing_weight": "1/2"}
    ridge = math.sqrt(dimension * math.log(2 * dimension**2 / 0.05)) / 2
    for _ in range(30):
        for release, factor in (
            (replayed(bits)(pure_adassp)(x, y, epsilon="1/2", delta=1e-3, **linear), ridge),
            (replayed(bits)(lattice_adassp)(x, y, epsilon="1/2", **linear), 2.0),
        ):
            numbers = release.certificate.steps[0].numbers
            most = radius(numbers, rows=rows, dimension=dimension, ridge=factor)
            # of a ball's points the length is right up to the last bit, as `Ball.contains` says
            assert zd.Ball(dimension, most).contains(release.value)
            assert sum(F(v) ** 2 for v in release.value) <= most**2 * (1 + F(1, 1 << 50))


def test_distributions_and_synthetic_rows() -> None:
    workload, bits = Marginals(dimension=3), ReplayBits("synthetic rows")
    people = np.array([[0, 1, 1], [1, 7, 0], [math.nan, 1, 1]])
    for _ in range(20):
        weights = replayed(bits)(mwem)(people, workload=workload, rounds=9, rho=5).value
        assert weights.shape == (8,)
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(3, rel=1e-12)
        assert set(replayed(bits)(proportional_sampling)(weights, size=9)) <= set(range(8))
        for sample in (
            replayed(bits)(embedded_mwem)(
                people, workload=workload, epsilon=2, sample_size=5
            ).value,
            replayed(bits)(multiset_mwem)(
                people, workload=workload, epsilon=1, sample_size=5, rounds=2
            ).value,
        ):
            assert sample.shape == (5, 3)
            assert np.isin(sample, (0, 1)).all()
