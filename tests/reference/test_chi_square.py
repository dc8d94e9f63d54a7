from __future__ import annotations

import random

import pytest
from scipy.stats import chi2_contingency, chisquare

from reference.chi_square import goodness_of_fit, tally, two_sample


def test_tally() -> None:
    assert tally([-9, -1, 0, 0, 2, 3, 8], -1, 2) == [1, 1, 2, 0, 1, 2]


def test_goodness_of_fit_agrees_with_scipy() -> None:
    observed, p = [52, 110, 38], [0.25, 0.5, 0.25]
    expected = [200 * x for x in p]
    assert goodness_of_fit(observed, p) == pytest.approx(chisquare(observed, expected).pvalue)


def test_small_cells_are_merged() -> None:
    # 1000 draws: cells of 5, 10, 10 merge to 25; the last 4 joins its neighbor
    p = [0.005, 0.01, 0.01, 0.4, 0.571, 0.004]
    observed = [4, 12, 11, 390, 577, 6]
    merged = chisquare([27, 390, 583], [25, 400, 575]).pvalue
    assert goodness_of_fit(observed, p) == pytest.approx(merged)


def test_impossible_observations_and_vacuous_tests() -> None:
    assert goodness_of_fit([500, 1, 500], [0.5, 0.0, 0.5]) == 0
    with pytest.raises(ValueError, match="vacuous"):
        goodness_of_fit([3, 4], [0.5, 0.5])
    with pytest.raises(ValueError, match="sum to 1"):
        goodness_of_fit([30, 40], [0.5, 0.4])
    with pytest.raises(ValueError, match="vacuous"):
        two_sample([1, 2, 3], [1, 2, 3])


def test_two_sample_agrees_with_scipy() -> None:
    first, second = [0] * 50 + [1] * 70 + [2] * 30, [0] * 90 + [1] * 150 + [2] * 60
    table = [[50, 70, 30], [90, 150, 60]]
    expected = chi2_contingency(table, correction=False).pvalue
    assert two_sample(first, second) == pytest.approx(expected)


def test_p_values_are_about_uniform() -> None:
    rng = random.Random(21)
    low = [0, 0]
    for _ in range(400):
        x = [rng.randrange(6) for _ in range(600)]
        y = [rng.randrange(6) for _ in range(300)]
        low[0] += goodness_of_fit(tally(x, 0, 5), [0, *[1 / 6] * 6, 0]) < 0.5
        low[1] += two_sample(x, y) < 0.5
    assert all(150 < count < 250 for count in low)


def test_a_wrong_law_is_seen() -> None:
    rng = random.Random(22)
    x = [min(rng.randrange(7), 5) for _ in range(2000)]
    assert goodness_of_fit(tally(x, 0, 5), [0, *[1 / 6] * 6, 0]) < 1e-6
