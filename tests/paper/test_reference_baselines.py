"""The reference code of the reproduction, and its predictions, against closed forms."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from reproduce.data_rows import laplace_length, measure_local_sensitivity, predict_local_sensitivity
from reproduce.query_row import mean_field
from reproduce.reference import (
    OnlineWeights,
    gaussian_scale,
    generator_of,
    largest_gaussian,
    largest_laplace,
    noisy_histogram_finds,
    noisy_histogram_success,
    small_database_law,
    small_databases,
)
from scipy.stats import norm

from zerodelta.marginals.workloads import LinearQueries
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.paper.multiplicative_weights import Rounds, multiplicative_weights

QUERIES = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]])


def test_equal_labels_draw_equal_numbers() -> None:
    assert generator_of("a").random() == generator_of("a").random()
    assert generator_of("a").random() != generator_of("b").random()


@pytest.mark.parametrize(("universe", "size"), [(2, 5), (3, 4), (4, 3)])
def test_small_databases_are_all_multisets_once(universe: int, size: int) -> None:
    found = small_databases(universe, size)
    assert len({tuple(row) for row in found.tolist()}) == len(found)
    assert len(found) == math.comb(universe + size - 1, size)
    assert found.sum(axis=1) == pytest.approx(1)


def test_small_databases_have_the_law_of_the_exponential_mechanism() -> None:
    frequencies, rows, epsilon = np.array([0.5, 0.3, 0.2]), 10, 1.5
    law, errors = small_database_law(
        QUERIES @ frequencies, QUERIES, size=2, rows=rows, epsilon=epsilon
    )
    databases = small_databases(3, 2)
    expected = np.abs((databases - frequencies) @ QUERIES.T).max(axis=1)
    assert errors == pytest.approx(expected)
    weights = np.exp(-epsilon * rows * expected / 2)
    assert law == pytest.approx(weights / weights.sum())


def test_small_databases_are_pure_on_all_neighbors() -> None:
    """Replacing any of 4 rows moves ln P of no database by more than ε."""
    rows, epsilon = 4, 1.0
    for counts in ((4, 0, 0), (2, 1, 1), (0, 2, 2)):
        law, _ = small_database_law(
            QUERIES @ np.array(counts) / rows, QUERIES, size=3, rows=rows, epsilon=epsilon
        )
        for a in range(3):
            for b in range(3):
                other = np.array(counts)
                other[a] -= 1
                other[b] += 1
                if other.min() >= 0:
                    found, _ = small_database_law(
                        QUERIES @ other / rows, QUERIES, size=3, rows=rows, epsilon=epsilon
                    )
                    assert np.abs(np.log(law / found)).max() <= epsilon + 1e-12


def test_the_noisy_histogram_has_its_success_probability() -> None:
    size, epsilon, lead = 1000, 1.0, 20
    generator = generator_of("histogram")
    found = np.mean(
        [
            noisy_histogram_finds(lead, size=size, epsilon=epsilon, generator=generator)
            for _ in range(4000)
        ]
    )
    known = noisy_histogram_success(lead, size=size, epsilon=epsilon)
    assert abs(found - known) < 5 * math.sqrt(known * (1 - known) / 4000)


def test_two_counts_differ_by_the_difference_of_two_laplace_numbers() -> None:
    """P(lead + Z - Z' > 0) = 1 - e^-x(1/2 + x/4), x = lead·ε/2."""
    for lead in (0, 1, 5, 20):
        x = lead / 2
        known = 1 - math.exp(-x) * (0.5 + x / 4)
        assert noisy_histogram_success(lead, size=2, epsilon=1.0) == pytest.approx(known, abs=1e-7)


def test_largest_noises_are_known_for_one_and_two() -> None:
    assert largest_gaussian(1) == pytest.approx(math.sqrt(2 / math.pi))
    assert largest_gaussian(2) == pytest.approx(2 / math.sqrt(math.pi))  # of two |N|
    assert largest_laplace(3) == pytest.approx(1 + 1 / 2 + 1 / 3)


def test_the_gaussian_scale_is_that_of_the_exact_profile() -> None:
    sigma = gaussian_scale(epsilon=Fraction(1), log_delta=math.log(1e-6), sensitivity=1.0)
    delta = norm.cdf(1 / (2 * sigma) - sigma) - math.e * norm.cdf(-1 / (2 * sigma) - sigma)
    assert delta == pytest.approx(1e-6, rel=1e-6)


def test_the_length_of_laplace_noise_is_known_in_one_dimension_and_near_its_rms_in_many() -> None:
    assert laplace_length(1) == pytest.approx(1)
    # ‖Z‖² has mean 2d and variance 20d: E‖Z‖ = √(2d)(1 - 20d/(8·4d²) + …)
    assert laplace_length(400) == pytest.approx(math.sqrt(800) * (1 - 20 / (32 * 400)), rel=1e-4)


@pytest.mark.parametrize("variant", ["before", "after", "modern"])
def test_the_predicted_error_of_row_4_is_the_measured_one(variant: str) -> None:
    point = {"d": 8.0, "epsilon": 2.0, "local": 3.0}
    found = [measure_local_sensitivity(variant, point, f"row 4/{i}")[0] for i in range(400)]
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - predict_local_sensitivity(variant, point)) < 4 * error


def test_online_weights_answer_within_their_accuracy_without_noise() -> None:
    generator = np.random.default_rng(3)
    queries = generator.random((200, 8))
    truth = queries @ generator.dirichlet(np.ones(8))
    online = OnlineWeights(universe=8, queries=200, rows=10**7, epsilon=1.0)
    assert online.accuracy < 0.1
    assert np.abs(online.answers(truth, queries, None) - truth).max() <= online.accuracy


def test_the_mean_field_is_mwem_itself_where_noise_vanishes() -> None:
    """With one query there is nothing to choose, and with a huge ε nothing is noisy."""
    workload = LinearQueries([[0, 1, 1]])
    rounds = Rounds(
        workload=workload,
        rounds=20,
        select=ExponentialMechanism.for_epsilon(epsilon=10**9, sensitivity=1),
        measure=RoundedLaplace.for_epsilon(epsilon=10**9, sensitivity=1),
    )
    counts = np.array([10, 60, 30])
    average = multiplicative_weights(
        counts, workload, rounds=20, choose=lambda scores: 0, measure=lambda total: total
    )
    known = abs(workload.totals(average)[0] - 0.9)
    found = mean_field(np.array([[0.0, 1.0, 1.0]]), np.array([0.9]), rounds, 100)
    assert found == pytest.approx(known, rel=1e-9)
