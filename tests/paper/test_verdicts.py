"""Slopes and the verdict on them; the reference code of the reproduction, against closed forms."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduce.data_rows import laplace_length, measure_local_sensitivity, predict_local_sensitivity
from reproduce.page import cells, headline, page
from reproduce.query_row import mean_field
from reproduce.rates import Experiment, fit, summarize, verdict
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
from reproduce.report import RESULTS, kept, report
from reproduce.run import finite, row_as_json, summary_of
from scipy.stats import norm

from zerodelta.marginals.workloads import LinearQueries
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.paper.multiplicative_weights import Rounds, multiplicative_weights

ROOT = Path(__file__).parents[2]
VALUES = (1.0, 2.0, 4.0, 8.0)


def power_law(power: float, *, noise: float = 0.0, repeats: int = 2) -> dict[float, Any]:
    generator = np.random.default_rng(1)
    return {
        n: (n**power * np.exp(noise * generator.normal(size=(repeats, 1)))).tolist() for n in VALUES
    }


def test_a_power_law_is_fitted_exactly_and_the_worst_instance_counts() -> None:
    runs = {float(n): [[1 / n**2, 3 / n**2], [1 / n**2, 3 / n**2]] for n in (1, 2, 4)}
    series = summarize(_experiment(exponents={"a": {"n": -1}}), "a", "n", runs)
    assert series.errors == pytest.approx([3, 3 / 4, 3 / 16])
    assert series.slope == pytest.approx(-2)
    assert series.slope_error == pytest.approx(0, abs=1e-12)
    assert series.verdict == "unexplained"


@pytest.mark.parametrize(
    ("slope", "error", "exponent", "predicted", "expected"),
    [
        # within the tolerance a slope agrees, whatever is predicted; two standard errors do, too
        (-1.14, 0, -1, None, "agrees"),
        (-0.86, 0, -1, -3.0, "agrees"),
        (-0.84, 0, -1, None, "unexplained"),
        (-1.5, 0.25, -1, None, "agrees"),
        (-1.5, 0.24, -1, None, "unexplained"),
        # a prediction explains if it is of the same sign and size
        (-1.5, 0, -1, -1.4, "explained"),
        (-1.5, 0, -1, -0.5, "unexplained"),
        (-1.5, 0, -1, -1.0, "unexplained"),
        (-1.5, 0, -1, -1.3, "unexplained"),
        (-1.5, 0, -1, -1.7, "unexplained"),
        # on the other side it explains nothing, however near
        (-1.16, 0.05, -1, -0.99, "unexplained"),
        (-1.16, 0.05, -1.005, -1.004, "unexplained"),
        # with a large standard error, too, it has to be half as far off
        (-1.7, 0.14, -2.0, -1.86, "unexplained"),
        (-1.7, 0.14, -2.0, -1.84, "explained"),
    ],
)
def test_the_verdict_on_a_slope(
    slope: float, error: float, exponent: float, predicted: float | None, expected: str
) -> None:
    told = {"slope": slope, "error": error, "exponent": exponent}
    assert verdict(**told, predicted=predicted) == expected


def test_a_prediction_that_explains_says_its_slope() -> None:
    row = _experiment(exponents={"a": {"n": -1}}, predicted=lambda _, point: 3 * point["n"] ** -1.4)
    series = summarize(row, "a", "n", power_law(-1.5))
    assert series.verdict == "explained"
    assert series.predicted_slope == pytest.approx(-1.4)
    assert series.words == "explained: at these parameters the exact formula gives −1.40"


def test_a_formula_without_a_value_predicts_nothing() -> None:
    row = _experiment(predicted=lambda variant, point: math.nan)
    series = summarize(row, "a", "n", power_law(-1))
    assert (series.predicted, series.predicted_slope) == (None, None)


def test_the_slope_error_is_that_of_independent_repetitions() -> None:
    """Of least squares on means of r log-normal errors, known in closed form to first order."""
    noise, repeats = 0.1, 4000
    runs = power_law(-1, noise=noise, repeats=repeats)
    x = np.log(VALUES)
    known = noise / math.sqrt(repeats * ((x - x.mean()) ** 2).sum())
    found = summarize(_experiment(), "a", "n", runs).slope_error
    assert found == pytest.approx(known, rel=0.15)


def test_two_repeats_are_not_taken_for_more_than_they_say() -> None:
    """Two numbers at distance 2s resampled: the mean's variance is s²/2, an unbiased one is s²."""
    runs = {n: [[1.0 - 0.01], [1.0 + 0.01]] for n in VALUES}
    series = summarize(_experiment(), "a", "n", runs)
    assert series.deviations == pytest.approx([0.01] * len(VALUES), rel=0.15)


def test_a_quick_curve_has_no_slope() -> None:
    row = _experiment(exponents={"a": {"n": -1}}, predicted=lambda variant, point: 1.0)
    series = summarize(row, "a", "n", power_law(-1), quick=True)
    found = (series.slope, series.slope_error, series.predicted_slope, series.verdict)
    assert found == (None, None, None, None)
    assert series.predicted == [1.0] * len(VALUES)


def test_both_pages_show_the_numbers_of_the_json_file() -> None:
    row = _experiment(exponents={"a": {"n": -1}, "b": {"n": -1}, "c": {"n": -1}})
    powers = {"a": -1.0123, "b": -1.5, "c": -2.75}
    formula = replace(row, predicted=lambda v, p: p["n"] ** (powers[v] + 0.07))
    series = [
        summarize(formula, variant, "n", power_law(power)) for variant, power in powers.items()
    ]
    series[2] = summarize(row, "c", "n", power_law(powers["c"]))
    tables = {"table_1": [row_as_json(formula, series, "Row 1", quick=False)]}
    numbers: Any = {
        "version": "0",
        "command": "make reproduce KEEP=1",
        "commit": "abc",
        "machine": {"cores": 2, "processor": "a processor", "python": "3.11"},
        "quick": False,
        "seconds": 12.0,
        "figures": [],
        "tables": tables,
        "summary": summary_of(tables),
    }
    numbers = json.loads(json.dumps(finite(numbers)))
    words = "1 of 3 slopes agree; these do not (1 explained by the exact formula, 1 unexplained):"
    assert headline(numbers["summary"]) == words
    found = numbers["tables"]["table_1"][0]
    for text in (page(numbers, {"test": "<svg/>"}), report(kept(numbers))):
        assert words in text
        for curve in found["series"]:
            assert f"{curve['slope']:+.2f}".replace("-", "−") in text
            assert f"± {curve['slope_error']:.2f}" in text
            for cell in cells(found, curve):
                assert cell in text
        assert "explained: at these parameters the exact formula gives −1.43" in text
        assert "mended" not in text
    assert fit(np.array(VALUES), np.array(found["series"][0]["errors"])) == pytest.approx(-1.0123)


def test_the_kept_report_counts_its_own_verdicts_and_has_its_pictures() -> None:
    """The page of the site is of a full run: its first sentence is the sum of its tables."""
    text = report(json.loads((ROOT / RESULTS).read_text(encoding="utf-8")))
    found = re.search(
        r"\*\*(\d+) of (\d+) slopes agree; these do not "
        r"\((\d+) explained by the exact formula, (\d+) unexplained\):\*\*",
        text,
    )
    assert found is not None
    _, *tables = text.split("\n## ")
    verdicts = Counter(
        word
        for table in tables
        for word in re.findall(r"\| (agrees|explained|unexplained)[^|]*\|$", table, re.MULTILINE)
    )
    agree, slopes, explained, unexplained = map(int, found.groups())
    assert (verdicts["agrees"], verdicts.total()) == (agree, slopes)
    assert (verdicts["explained"], verdicts["unexplained"]) == (explained, unexplained)
    for name in re.findall(r"\]\((images/[^)]+)\)", text):
        assert (ROOT / "docs" / name).exists()


def _experiment(**changes: Any) -> Experiment:
    defaults: dict[str, Any] = {
        "key": "test",
        "problem": "a problem",
        "label": "thm",
        "quantity": "error",
        "setting": "none",
        "variants": {"a": "a mechanism", "b": "another", "c": "a third"},
        "formulas": {"a": "1/n", "b": "1/n", "c": "1/n"},
        "exponents": {},
        "base": {"n": 1},
        "sweeps": {"n": (1, 2, 4)},
        "quick": {"n": (1, 2)},
        "repeats": 2,
        "quick_repeats": 1,
        "measure": lambda variant, point, label: [1.0],
    }
    return Experiment(**{**defaults, **changes})


# -- reference code -------------------------------------------------------------------------------


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
            for _ in range(2000)
        ]
    )
    known = noisy_histogram_success(lead, size=size, epsilon=epsilon)
    assert abs(found - known) < 5 * math.sqrt(known * (1 - known) / 2000)


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
    found = [measure_local_sensitivity(variant, point, f"row 4/{i}")[0] for i in range(150)]
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
