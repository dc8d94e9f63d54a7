"""Algorithm 12: exact laws of mode release on every small dataset, and what breaks it (A5, C5)."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import zerodelta as zd
from channels.channel_laws import row
from channels.noise_laws import BITS, as_ball
from purity import assert_impure, assert_pure
from reference.chi_square import goodness_of_fit
from zerodelta.audit.exact import (
    ExpRational,
    certainly_pure,
    datasets,
    max_log_ratio,
    neighbors,
    rounded_laplace_tail,
)
from zerodelta.exact.bits import ReplayBits
from zerodelta.paper.algorithm_01_02 import AlgorithmTwo
from zerodelta.paper.algorithm_12_13 import (
    embedded_mode,
    mode,
    mode_log_delta,
    stable_mode,
    wrong_probability,
)
from zerodelta.privacy.theorems.testing import StableMode
from zerodelta.testing import replayed

F = Fraction
HALF = F(1, 2)


def real_pass(distance: int, epsilon: Fraction, threshold: Fraction) -> Any:
    """P(distance + Laplace(1/ε) > threshold)."""
    gap = threshold - distance
    tail = ExpRational.exp(-epsilon * abs(gap)) * HALF
    return tail if gap >= 0 else 1 - tail


def rounded_pass(distance: int, epsilon: Fraction, threshold: Fraction) -> Any:
    return rounded_laplace_tail(int(threshold) - distance + 1, scale=1 / epsilon)


def discrete_pass(distance: int, epsilon: Fraction, threshold: Fraction) -> Any:
    p, k = ExpRational.exp(-epsilon), int(threshold) - distance + 1
    upper = ExpRational.exp(-epsilon * abs(k if k >= 1 else 1 - k)) / (1 + p)
    return upper if k >= 1 else 1 - upper


PASS = {"real": real_pass, "rounded": rounded_pass, "discrete": discrete_pass}


def law(rows: tuple[int, ...], size: int, epsilon: Fraction, tau: Fraction, noise: str) -> Any:
    """The law of C5, from counts over the whole universe."""
    counts = [rows.count(item) for item in range(size)]
    first, second = sorted(counts, reverse=True)[:2]
    passed = PASS[noise](-(-(first - second) // 2) - 1, epsilon, tau)
    found = counts.index(first)
    return {
        item: (1 - passed) * F(1, size) + (passed if item == found else 0) for item in range(size)
    }


CASES = [(2, 4, F(1)), (3, 4, F(1)), (4, 3, F(1, 2)), (3, 3, F(3)), (2, 5, F(1, 10))]


def all_laws(size: int, rows: int, epsilon: Fraction, tau: Fraction, noise: str) -> Any:
    return {d: law(d, size, epsilon, tau, noise) for d in datasets(range(size), rows)}


def largest_loss(laws: Any) -> float:
    return max(float(max_log_ratio(laws[a], laws[b]).mid()) for a, b in neighbors(laws))


@pytest.mark.parametrize("noise", PASS)
@pytest.mark.parametrize(("size", "rows", "epsilon"), CASES)
def test_mode_is_pure_on_every_pair_of_neighbors(
    size: int, rows: int, epsilon: Fraction, noise: str
) -> None:
    tau = StableMode.smallest(points=size, epsilon=epsilon, noise=noise).threshold
    assert_pure(all_laws(size, rows, epsilon, tau, noise), epsilon=epsilon)


@pytest.mark.parametrize("noise", ["rounded", "discrete"])
@pytest.mark.parametrize(("size", "rows", "epsilon"), [(5, 3, F(1)), (4, 3, F(1, 2))])
def test_a_threshold_one_lower_violates(
    size: int, rows: int, epsilon: Fraction, noise: str
) -> None:
    tau = StableMode.smallest(points=size, epsilon=epsilon, noise=noise).threshold
    assert tau >= 1
    assert_impure(all_laws(size, rows, epsilon, tau - 1, noise), epsilon=epsilon)


def test_the_real_threshold_is_the_smallest() -> None:
    tau = StableMode.smallest(points=4, epsilon=1).threshold
    assert_impure(all_laws(4, 3, F(1), tau * F(999_999_999, 10**9), "real"), epsilon=1)
    assert largest_loss(all_laws(4, 3, F(1), tau, "real")) == pytest.approx(1, abs=1e-14)


def test_the_threshold_of_another_noise_violates() -> None:
    discrete = StableMode.smallest(points=4, epsilon=1, noise="discrete").threshold
    laws = all_laws(4, 3, F(1), discrete, "rounded")
    assert_impure(laws, epsilon=1)
    assert largest_loss(laws) == pytest.approx(1.0083, abs=5e-5)  # the number of theory C5


def test_mode_is_pure_for_one_row_more_or_less() -> None:
    epsilon, tau = F(1), StableMode.smallest(points=3, epsilon=1).threshold
    for rows in datasets(range(3), 4):
        for gone in range(4):
            less = rows[:gone] + rows[gone + 1 :]
            pair = law(rows, 3, epsilon, tau, "real"), law(less, 3, epsilon, tau, "real")
            assert certainly_pure(*pair, 1)


def embedded_law(rows: tuple[int, ...], space: zd.Finite, epsilon: Fraction, bottom: bool) -> Any:
    """The law of Algorithm 12 as released by `embedded_mode`; with ⊥ in the clear if `bottom`."""
    steps = embedded_mode(list(rows), universe=space, epsilon=2 * epsilon).certificate.steps
    tau, scale = F(str(steps[0].numbers["threshold"])), F(str(steps[1].numbers["scale"]))
    purifier = AlgorithmTwo(space=space, scale=scale, base_epsilon=epsilon)
    found, distance = stable_mode(list(rows), space)
    passed = real_pass(distance, epsilon, tau)
    draft = {i: (1 - passed) * F(0 if bottom else 1, space.size) for i in range(space.size)}
    draft[found] = draft[found] + passed
    result: dict[Any, Any] = {}
    with ctx.workprec(BITS):
        for start, mass in draft.items():
            for end, chance in row(purifier, start).items():
                result[end] = result.get(end, arb(0)) + as_ball(mass) * chance
    if bottom:
        result["nothing"] = 1 - passed
    return result


@pytest.mark.parametrize("size", [2, 3])
def test_the_embedded_mode_is_pure_on_every_pair_of_neighbors(size: int) -> None:
    space = zd.Finite(size)
    assert_pure(
        {d: embedded_law(d, space, F(1), False) for d in datasets(range(size), 3)}, epsilon=2
    )


def test_bottom_in_the_clear_is_not_pure() -> None:
    space = zd.Finite(3)
    assert_impure({d: embedded_law(d, space, F(1), True) for d in datasets(range(3), 2)}, epsilon=2)


def test_release_has_the_law() -> None:
    rows, size, epsilon = (0, 2, 2, 2, 2, 2), 3, F(1)
    tau = StableMode.smallest(points=size, epsilon=epsilon).threshold
    expected = [float(p) for p in law(rows, size, epsilon, tau, "real").values()]
    bits = ReplayBits("mode has the law")
    drawn = Counter(
        replayed(bits)(mode)(list(rows), universe=size, epsilon=epsilon).value for _ in range(600)
    )
    assert goodness_of_fit([drawn[i] for i in range(size)], expected) > 1e-4


def test_the_error_formula_is_the_law() -> None:
    tau = StableMode.smallest(points=5, epsilon=1).threshold
    for gap in range(1, 9):
        exact = law((3,) * gap, 5, F(1), tau, "real")
        assert wrong_probability(points=5, epsilon=1, gap=gap) == pytest.approx(
            1 - float(exact[3]), rel=1e-12
        )


def test_the_theorem_on_the_paper_s_mode() -> None:
    """P(wrong) <= 3/N at a lead of 4⌈ln(1/δ)/ε⌉, by simulation."""
    lead = 4 * int(np.ceil(-mode_log_delta(points=64, base_epsilon=1)))
    bits = ReplayBits("the paper's mode")
    items = np.full(lead, 5)
    wrong = sum(
        replayed(bits)(embedded_mode)(items, universe=64, epsilon=2).value != 5 for _ in range(600)
    )
    assert wrong / 600 <= 3 / 64


def test_ties_and_unknown_items() -> None:
    space = zd.Finite(10)
    assert stable_mode([7, 3, 3, 7], space) == (3, -1)
    assert stable_mode([7, 3, 99, -1, 2.5, float("nan"), "x", None, [1, 2]], space) == (3, -1)
    assert stable_mode([7, 99, 99], space, unknown=4) == (4, 0)
    assert stable_mode(np.array([250, 250, 3], dtype=np.uint8), zd.Finite(251)) == (250, 0)
    assert stable_mode(np.array([2**64 - 1, 3], dtype=np.uint64), space) == (3, 0)
    assert stable_mode([], space) == (0, -1)
    words = zd.Finite(["a", "b"])
    assert stable_mode(["b", "c", "b", ["a"], object()], words) == (1, 0)
    assert stable_mode(np.array(["b", "b", "zz"]), words) == (1, 0)


def test_one_element_and_an_epsilon_that_is_too_large() -> None:
    assert mode([0, 0], universe=1, epsilon=1).value == 0
    with pytest.raises(zd.errors.ParameterError, match=r"use zd\.mode"):
        embedded_mode([1], universe=2, epsilon=18)


def test_a_large_universe_is_never_enumerated() -> None:
    release = mode(np.full(2000, 2**40 - 1), universe=2**40, epsilon=1)
    assert release.value == 2**40 - 1
    assert zd.verify(release.certificate)
