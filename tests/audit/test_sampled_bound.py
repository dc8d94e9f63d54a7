"""Lower bounds from samples, and the search for the pair that leaks."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom

import zerodelta as zd
from audit.black_boxes import float_laplace, lattice_laplace, randomized_response
from zerodelta import audit
from zerodelta.audit.sampled import accuracy_lower, epsilon_of_guesses_lower, small_neighbors
from zerodelta.privacy.parameters import Neighbors
from zerodelta.testing import replayed

ALPHA = Fraction(1, 20)


def tail(total: int, right: int, accuracy: Fraction) -> Fraction:
    """Return P(Binomial(total, accuracy) >= right), exactly."""
    wrong = 1 - accuracy
    terms = (
        math.comb(total, k) * accuracy**k * wrong ** (total - k) for k in range(right, total + 1)
    )
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("total", [1, 2, 7, 30])
@pytest.mark.parametrize("alpha", [ALPHA, Fraction(1, 1000)])
def test_the_bound_on_the_accuracy_is_valid_and_tight(total: int, alpha: Fraction) -> None:
    for right in range(1, total + 1):
        bound = Fraction(accuracy_lower(total, right, alpha))
        assert tail(total, right, bound) <= alpha
        assert tail(total, right, bound * (1 + Fraction(1, 10**9))) > alpha


@pytest.mark.parametrize("accuracy", [Fraction(1, 2), Fraction(731, 1000), Fraction(99, 100)])
def test_a_true_accuracy_is_exceeded_with_probability_at_most_alpha(accuracy: Fraction) -> None:
    total = 40
    first = min(
        (k for k in range(total + 1) if accuracy_lower(total, k, ALPHA) > accuracy),
        default=total + 1,
    )
    assert tail(total, first, accuracy) <= ALPHA


def test_no_guess_proves_nothing() -> None:
    assert epsilon_of_guesses_lower(0, 0, ALPHA) == 0
    assert epsilon_of_guesses_lower(10, 5, ALPHA) == 0


def bound(mechanism: Callable[..., Any], seed: int, **options: Any) -> audit.LowerBound:
    """Audit on 0 and 1, claim ε = 1."""
    given = {"epsilon": 1, "vectorized": True, **options}
    return replayed(f"coins {seed}")(audit.lower_bound)(mechanism, 0, 1, **given)


@pytest.mark.parametrize("seed", range(5))
def test_noise_five_percent_too_small_is_caught(seed: int) -> None:
    found = bound(lattice_laplace(0.95, seed), seed, samples=200_000)
    assert found.violated
    assert 1 < found.epsilon_lower < 1 / 0.95 + 0.05


def flags(runs: int, samples: int, **options: Any) -> int:
    return sum(
        bound(lattice_laplace(1, run), run, samples=samples, **options).violated
        for run in range(runs)
    )


def test_a_correct_mechanism_is_rarely_flagged() -> None:
    runs = 40
    assert flags(runs, 2000) <= binom.isf(1e-4, runs, float(ALPHA))


@pytest.mark.slow
@pytest.mark.parametrize("confidence", ["0.95", "0.8"])
def test_a_correct_mechanism_is_flagged_no_more_often_than_stated_in_200_runs(
    confidence: str,
) -> None:
    runs, alpha = 200, 1 - float(confidence)
    assert flags(runs, 20_000, confidence=confidence) <= binom.isf(1e-4, runs, alpha)


@pytest.mark.slow
def test_noise_five_percent_too_small_is_caught_in_200_runs() -> None:
    found = [bound(lattice_laplace(0.95, run), run, samples=200_000) for run in range(200)]
    assert sum(each.violated for each in found) >= 198


def test_outcomes_that_never_repeat_and_say_nothing_are_not_memorized() -> None:
    rng = np.random.default_rng(5)
    for outcomes in (
        lambda _, count: rng.integers(0, 1 << 62, size=count),
        lambda _, count: rng.normal(size=(count, 5)),
        lambda _, count: rng.integers(0, 1 << 62, size=count).astype(str),
    ):
        found = bound(outcomes, 5, samples=4000, confidence="0.999999")
        assert found.epsilon_lower == 0


def test_the_precision_of_floats_leaks_what_the_noise_hides() -> None:
    found = bound(float_laplace(1), 1, samples=20_000)
    assert found.violated
    assert found.epsilon_lower > 3
    assert bound(lattice_laplace(1, 1), 1, samples=20_000).epsilon_lower < 1.1


def test_texts_are_outcomes() -> None:
    found = bound(randomized_response(math.e**2, 3), 3, samples=4000, vectorized=False)
    assert 1.6 < found.epsilon_lower <= 2.05


def test_an_exception_is_an_outcome() -> None:
    def fails(data: int) -> float:
        if data:
            raise ValueError("the data are bad")
        return 0.5

    assert bound(fails, 0, samples=1000, vectorized=False).epsilon_lower > 4


@pytest.mark.parametrize(
    ("on_0", "on_1"),
    [
        (1, 1.0),  # types
        (0.0, -0.0),
        (math.nan, math.inf),
        (None, 0),
        ([1, 2], [1, 2, 3]),  # shapes
        ([0.5, 0.25], [0.25, 0.5]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_whatever_differs_is_seen(on_0: Any, on_1: Any) -> None:
    found = bound(lambda data: on_1 if data else on_0, 1, samples=1000, vectorized=False)
    assert found.epsilon_lower > 4
    assert found.right == found.guesses > 400


def test_a_leak_across_columns_is_seen() -> None:
    rng = np.random.default_rng(7)

    def shifted(data: int, count: int) -> Any:
        points = rng.normal(size=(count, 8))
        return points + data

    assert bound(shifted, 2, samples=4000).epsilon_lower > 2


class Squares:
    """A classifier by the square of the first column."""

    def fit(self, points: Any, coins: Any) -> None:
        self.sign = np.sign(np.mean(points[:, 0] ** 2 * coins))

    def decision_function(self, points: Any) -> Any:
        return self.sign * points[:, 0] ** 2


def test_a_classifier_of_the_caller_is_used() -> None:
    rng = np.random.default_rng(7)

    def wider(data: int, count: int) -> Any:
        return np.rint(100 * rng.normal(size=count) * (1 + 3 * data))

    found = bound(wider, 2, samples=4000, classifier=Squares())
    assert "classifier" in found.rule
    assert found.epsilon_lower > 1


class Parity:
    """A classifier by parity, which remembers what it was shown."""

    def __init__(self) -> None:
        self.learned_from: set[float] = set()
        self.judged: set[float] = set()

    def fit(self, points: Any, coins: Any) -> None:
        self.learned_from = set(points[:, 0])

    def decision_function(self, points: Any) -> Any:
        self.judged = set(points[:, 0])
        return 1 - 2 * (points[:, 0] % 2)


def test_no_outcome_is_judged_by_a_rule_that_was_learned_from_it() -> None:
    rng, parity = np.random.default_rng(8), Parity()

    def even_or_odd(data: int, count: int) -> Any:
        return 2 * rng.integers(0, 1 << 50, size=count) + data

    found = bound(even_or_odd, 8, samples=3000, classifier=parity)
    assert found.right == found.guesses == 1500
    assert len(parity.judged) == 1500
    assert len(parity.learned_from) == 500
    assert not parity.learned_from & parity.judged


def test_a_release_is_audited_by_its_value() -> None:
    found = audit.lower_bound(
        lambda rows: zd.mean(rows, bounds=(0, 1), epsilon=100),  # both values are all but certain
        np.array([0.0]),
        np.array([1.0]),
        epsilon=100,
        samples=200,
        confidence="0.999999",
    )
    assert not found.violated
    assert "value" in found.rule
    assert found.epsilon_lower > 1


def test_a_mechanism_that_always_fails_is_the_caller_s_mistake() -> None:
    def broken(data: int) -> float:
        raise KeyError("typo")

    with pytest.raises(zd.errors.ParameterError, match="every call raised KeyError") as caught:
        bound(broken, 0, samples=100, vectorized=False)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"samples": 10}, "samples"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": "0"}, "confidence"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_malformed_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    given = {"epsilon": 1, "vectorized": True, **options}
    for test in (audit.lower_bound, audit.sequential):
        with pytest.raises(zd.errors.ParameterError, match=name):
            test(lattice_laplace(1, 0), 0, 1, **given)


def test_too_few_outcomes_are_refused() -> None:
    with pytest.raises(zd.errors.ParameterError, match="number of outcomes"):
        bound(lambda data, count: np.zeros(3), 0, samples=100)


def test_the_result_is_readable_and_draws_itself(tmp_path: Any) -> None:
    found = bound(lattice_laplace(0.5, 1), 1, samples=4000)
    assert str(found).startswith("ε >= 1.")
    assert "claim ε = 1: VIOLATED" in str(found)
    path = tmp_path / "picture.svg"
    assert isinstance(found.plot(path), Figure)
    assert path.read_text(encoding="utf-8").startswith("<?xml")


# -- search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_pair_of_multisets_is_listed_once(n: int) -> None:
    found = {
        frozenset([tuple(sorted(a)), tuple(sorted(b))])
        for a, b in small_neighbors([0, 1, 2], n, Neighbors.REPLACE)
    }
    tables = list(audit.datasets([0, 1, 2], n))
    expected = {frozenset([tuple(sorted(a)), tuple(sorted(b))]) for a, b in audit.neighbors(tables)}
    assert found == expected


def test_pairs_of_add_remove_differ_in_one_row() -> None:
    for larger, smaller in small_neighbors([0, 1], 3, Neighbors.ADD_REMOVE):
        assert larger[1:] == smaller


def search(mechanism: Any, **options: Any) -> audit.LowerBound:
    given = {"n": 3, "epsilon": 1, "samples": 20_000, "vectorized": True, **options}
    return replayed("coins")(audit.search)(mechanism, [0, 1, 7], **given)


def test_the_pair_that_leaks_is_found() -> None:
    rng = np.random.default_rng(2)

    def leaky(rows: list[int], count: int) -> Any:
        total = sum(rows) if 7 not in rows[1:] else 3.0 * rows.count(7)  # wrong for two sevens
        return np.rint(100 * (min(total, 20) + rng.laplace(scale=7, size=count)))

    def correct(rows: list[int], count: int) -> Any:
        return np.rint(100 * (sum(rows) + rng.laplace(scale=7, size=count)))

    assert not search(correct, confidence="0.999").violated
    found = search(leaky, epsilon="1/2", samples=40_000)
    assert found.violated
    assert any(7 in rows for rows in found.pair)


def test_a_domain_of_one_value_has_no_neighbors_under_replace() -> None:
    for domain in ([], [1]):
        with pytest.raises(zd.errors.ParameterError, match="domain"):
            audit.search(lambda rows: 0, domain, n=2)
