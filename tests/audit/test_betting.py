"""The sequential test: wealth is not expected to grow if the claim is true; else it stops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom

from audit.black_boxes import float_laplace, lattice_laplace
from zerodelta import audit
from zerodelta.audit.sampled import log_wealth
from zerodelta.testing import replayed

EPSILONS = [0.05, 1.0, 4.0]


def wealth(guesses: int, right: int, epsilon: float) -> float:
    return math.exp(log_wealth(guesses, right, np.array([epsilon]))[0])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("worse", [0, 0.1, 0.5])
def test_each_bet_is_fair_at_best_if_the_claim_is_true(epsilon: float, worse: float) -> None:
    accuracy = (1 - worse) / (1 + math.exp(-epsilon))
    for guesses in range(30):
        for right in range(guesses + 1):
            now = wealth(guesses, right, epsilon)
            later = accuracy * wealth(guesses + 1, right + 1, epsilon)
            later += (1 - accuracy) * wealth(guesses + 1, right, epsilon)
            assert later <= now * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("alpha", [0.5, 0.05])
def test_a_true_claim_is_ever_refuted_with_probability_at_most_alpha(
    epsilon: float, alpha: float
) -> None:
    """All paths of 300 bets, by dynamic programming: whoever looks after every bet."""
    accuracy, crossed = 1 / (1 + math.exp(-epsilon)), 0.0
    alive = np.ones(1)  # probability of each number of right guesses, not refuted yet
    for guesses in range(1, 301):
        alive = np.append(alive * (1 - accuracy), 0) + np.append(0, alive * accuracy)
        refuted = [wealth(guesses, right, epsilon) >= 1 / alpha for right in range(guesses + 1)]
        crossed += alive[refuted].sum()
        alive[refuted] = 0
    assert crossed <= alpha
    assert crossed > 0


def run(mechanism: Any, seed: int, **options: Any) -> audit.SequentialTest:
    given = {"epsilon": 1, "vectorized": True, **options}
    return replayed(f"coins {seed}")(audit.sequential)(mechanism, 0, 1, **given)


@pytest.mark.parametrize(
    ("scale", "runs"), [(0.8, 12), pytest.param(0.95, 100, marks=pytest.mark.slow)]
)
def test_it_needs_fewer_samples_than_the_fixed_test(scale: float, runs: int) -> None:
    """On average, beside a fixed test of as many samples: that fails in one run of ten or more."""
    tests = [run(lattice_laplace(scale, seed), seed) for seed in range(runs)]
    assert all(test.violated for test in tests)
    mean = int(np.mean([test.samples for test in tests]))
    fixed = [
        replayed(f"coins {seed}")(audit.lower_bound)(
            lattice_laplace(scale, seed),
            0,
            1,
            epsilon=1,
            samples=mean,
            vectorized=True,
        )
        for seed in range(runs)
    ]
    assert sum(found.violated for found in fixed) < 0.9 * runs


@pytest.mark.parametrize(
    ("mechanism", "most"), [(lattice_laplace(0.25, 1), 4), (float_laplace(2), 99)]
)
def test_gross_mistakes_and_the_precision_of_floats_are_found_at_once(
    mechanism: Any, most: float
) -> None:
    test = run(mechanism, 1)
    assert test.violated
    assert test.samples < 2000
    assert 1 <= test.epsilon_lower <= most


def test_a_correct_mechanism_is_rarely_flagged() -> None:
    runs = 8
    found = [run(lattice_laplace(1, seed), seed, samples=3000) for seed in range(runs)]
    assert sum(test.violated for test in found) <= binom.isf(1e-4, runs, 0.05)
    assert all(test.samples == 3000 for test in found if not test.violated)


@pytest.mark.slow
def test_a_correct_mechanism_is_flagged_no_more_often_than_stated_in_200_runs() -> None:
    found = [run(lattice_laplace(1, seed), seed, samples=20_000) for seed in range(200)]
    assert sum(test.violated for test in found) <= binom.isf(1e-4, 200, 0.05)
    over = sum(test.epsilon_lower > 1 for test in found)
    assert over <= binom.isf(1e-4, 200, 0.05)


def test_outcomes_that_never_repeat_and_say_nothing_are_not_memorized() -> None:
    rng = np.random.default_rng(5)
    test = run(lambda _, count: rng.integers(0, 1 << 62, count), 5, epsilon="0.01", samples=4000)
    assert not test.violated


def test_outcomes_may_change_their_kind_on_the_way() -> None:
    rng = np.random.default_rng(6)
    calls = iter(range(10**6))

    def late(data: int) -> Any:
        return "late" if next(calls) % 500 == 499 else float(rng.integers(0, 2) + data)

    test = run(late, 6, vectorized=False, epsilon=5, samples=2000, confidence="0.999999")
    assert test.samples == 2000 or test.violated


def test_the_result_is_readable_and_draws_itself() -> None:
    test = run(lattice_laplace(0.5, 1), 1)
    assert f"VIOLATED after {test.samples:,} samples" in str(test)
    assert isinstance(test.plot(), Figure)
    assert test.history[-1][0] == test.samples
