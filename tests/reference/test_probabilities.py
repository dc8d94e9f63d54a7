"""The reference probabilities, and the chi-square test."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath
import pytest
from scipy.stats import chi2_contingency, chisquare

from reference import probabilities
from reference.chi_square import goodness_of_fit, tally, two_sample
from reference.intervals import Interval
from reference.probabilities import HALF, Law

NARROW = Fraction(1, 1 << 140)

LAWS: dict[str, tuple[Law, int, int]] = {
    "laplace": (probabilities.rounded_laplace(Fraction(7, 3)), -30, 30),
    "laplace_small": (probabilities.rounded_laplace(Fraction(1, 9)), -3, 3),
    "exponential": (probabilities.rounded_exponential(Fraction(7, 3)), -2, 30),
    "gaussian": (probabilities.rounded_gaussian(Fraction(10, 3)), -21, 21),
    "gaussian_small": (probabilities.rounded_gaussian(Fraction(1, 50)), -1, 1),
    "gamma": (probabilities.rounded_gamma(4, Fraction(5, 2)), -2, 60),
    "student_1": (probabilities.rounded_student_t(1, Fraction(5, 2)), -40, 40),
    "student_2": (probabilities.rounded_student_t(2, Fraction(5, 2)), -40, 40),
    "student_3": (probabilities.rounded_student_t(3, Fraction(5, 2)), -40, 40),
    "discrete_laplace": (probabilities.DiscreteLaplace(Fraction(7, 3)), -30, 30),
}


def inside(value: Any, interval: Interval) -> bool:
    sign, man, exponent, _ = mpmath.mpf(value)._mpf_
    exact = int(man) * Fraction(2) ** int(exponent) * (-1 if sign else 1)
    slack = Fraction(1, 10**50)
    return bool(interval.lo - slack <= exact <= interval.hi + slack)


@pytest.mark.parametrize("name", LAWS)
def test_cells_sum_to_one(name: str) -> None:
    law, lo, hi = LAWS[name]
    cells = [law.below(lo), *(law.pmf(k) for k in range(lo, hi + 1)), law.above(hi)]
    total = sum(cells, Interval.point(0, 160))
    assert 1 in total
    assert total.width < Fraction(1, 1 << 100)
    assert all(p.width < NARROW and p.lo >= -NARROW and p.hi <= 1 + NARROW for p in cells)
    assert sum(law.cells(lo, hi)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1), Fraction(19, 3)])
def test_laplace_closed_forms(scale: Fraction) -> None:
    law = probabilities.rounded_laplace(scale)
    with mpmath.workdps(60):
        b = mpmath.mpf(scale.numerator) / scale.denominator
        for k in range(-12, 13):
            far = mpmath.sinh(1 / (2 * b)) * mpmath.exp(-abs(k) / b)
            assert inside(far if k else 1 - mpmath.exp(-1 / (2 * b)), law.pmf(k))
            tail = mpmath.exp((0.5 - abs(k)) / b) / 2
            if k:
                assert inside(tail, law.above(k - 1) if k > 0 else law.below(k + 1))


def test_normal_probabilities_agree_with_erf_up_to_twelve() -> None:
    with mpmath.workdps(60):
        for n in range(49):
            x = Fraction(n, 4)
            p = probabilities.normal_between_zero_and(x * x)
            assert inside(mpmath.erf(mpmath.mpf(n) / 4 / mpmath.sqrt(2)) / 2, p)
            assert p.width < NARROW


CDFS: dict[str, Callable[[Any], Any]] = {
    "exponential": lambda x: 1 - mpmath.exp(-x) if x > 0 else mpmath.mpf(0),
    "gamma": lambda x: mpmath.gammainc(4, 0, x, regularized=True) if x > 0 else mpmath.mpf(0),
}


@pytest.mark.parametrize("name", CDFS)
def test_one_sided_laws_agree_with_mpmath(name: str) -> None:
    law, lo, hi = LAWS[name]
    scale = Fraction(5, 2) if name == "gamma" else Fraction(7, 3)
    with mpmath.workdps(60):
        for k in range(lo, hi):
            x = (k - HALF) / scale
            truth = CDFS[name](mpmath.mpf(x.numerator) / x.denominator)
            assert inside(truth, law.below(k))


@pytest.mark.parametrize("nu", [1, 2, 3])
def test_student_t_is_the_integral_of_its_density(nu: int) -> None:
    law = LAWS[f"student_{nu}"][0]
    with mpmath.workdps(60):
        constant = mpmath.gamma(mpmath.mpf(nu + 1) / 2) / (
            mpmath.sqrt(nu * mpmath.pi) * mpmath.gamma(mpmath.mpf(nu) / 2)
        )

        def density(t: Any) -> Any:
            return constant * (1 + t * t / nu) ** (-mpmath.mpf(nu + 1) / 2)

        for k in (0, 1, 4):
            ends = [(mpmath.mpf(k) - 0.5) / 2.5, (mpmath.mpf(k) + 0.5) / 2.5]
            assert inside(mpmath.quad(density, ends), law.pmf(k))


def test_exponential_mechanism_probabilities() -> None:
    p = probabilities.exponential_mechanism([3, 1, 3, 0], 2)
    assert 1 in sum(p, Interval.point(0, 160))
    assert p[0] == p[2]
    with mpmath.workdps(60):
        weights = [mpmath.exp(mpmath.mpf(q) / 2) for q in (3, 1, 3, 0)]
        for interval, weight in zip(p, weights, strict=True):
            assert inside(weight / sum(weights), interval)
            assert interval.width < NARROW


def by_definition(x: list[Fraction]) -> list[Fraction]:
    """Average over all orders the chance that i is the first accepted item."""
    result = [Fraction(0)] * len(x)
    orders = list(permutations(range(len(x))))
    for order in orders:
        reached = Fraction(1)
        for i in order:
            result[i] += reached * x[i] / len(orders)
            reached *= 1 - x[i]
    return result


@pytest.mark.parametrize(
    "weights",
    [
        [Fraction(1)],
        [Fraction(1), Fraction(1, 3)],
        [Fraction(1, 2), Fraction(1), Fraction(1, 7), Fraction(1)],
        [Fraction(1), Fraction(0), Fraction(2, 3), Fraction(9, 10), Fraction(1, 100)],
    ],
)
def test_permute_and_flip_integral_is_the_definition(weights: list[Fraction]) -> None:
    intervals = probabilities.permute_and_flip_weights(weights)
    for p, exact in zip(intervals, by_definition(weights), strict=True):
        assert exact in p
        assert p.width < NARROW


def test_permute_and_flip_from_scores() -> None:
    p = probabilities.permute_and_flip([0, -3, -1, 0, 2], Fraction(3, 2))
    assert 1 in sum(p, Interval.point(0, 160))
    assert all(q.width < NARROW for q in p)
    many = probabilities.permute_and_flip(list(range(20)), 6)
    assert 1 in sum(many, Interval.point(0, 160))
    assert all(q.width < NARROW for q in many)


# -- chi-square -----------------------------------------------------------------------------------


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
