"""Mechanisms as objects: exact claims and steps, noise of the stated law, sums that never wrap."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from zerodelta.mechanisms.sum_noise import KNorm, RoundedGaussian, RoundedLaplace, add_exactly
from zerodelta.privacy.claims import GaussianDP, PureDP
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.theorems.theorem import BaseTheorem

F = Fraction

LAPLACE = RoundedLaplace(sensitivity=F(2), scale=F(3))
GAUSSIAN = RoundedGaussian(sensitivity_squared=F(2), variance=F(9))
DISC = KNorm(norm=2, dimension=2, sensitivity=F(1, 2), scale=F(3))
GUMBEL = ExponentialMechanism(sensitivity=F(1), scale=F(3))
FLIP = PermuteAndFlip(sensitivity=F(1), scale=F(3), monotone=True)


@pytest.mark.parametrize(
    ("mechanism", "label", "claim"),
    [
        (LAPLACE, "rounded-laplace", PureDP("2/3")),
        (DISC, "k-norm-noise", PureDP("1/6")),
        (GUMBEL, "exponential-mechanism", PureDP("2/3", bounded_range=True)),
        (FLIP, "permute-and-flip", PureDP("1/3")),
        (GAUSSIAN, "rounded-gaussian", GaussianDP(mu_squared="2/9")),
    ],
)
def test_a_step_carries_the_arguments_of_its_theorem(
    mechanism: Any, label: str, claim: Any
) -> None:
    step = mechanism.step(quantum=F(1, 8)) if label == "k-norm-noise" else mechanism.step()
    assert step.theorem == label
    numbers = json.loads(json.dumps(dict(step.numbers)))
    if label == "k-norm-noise":  # in which norm and in which units the other two numbers are
        assert (numbers["norm"], numbers["quantum"]) == (2, "1/8")
    assert mechanism.claim == claim
    theorem = THEOREMS[label].read(numbers)
    assert isinstance(theorem, BaseTheorem)
    assert theorem.claim(mechanism.neighbors) == claim


def test_the_scale_for_an_epsilon_is_exact() -> None:
    third = F(1, 3)
    assert RoundedLaplace.for_epsilon(epsilon=third, sensitivity=2).scale == 6
    assert KNorm.for_epsilon(epsilon=third, norm=2, dimension=5, sensitivity=2).scale == 6
    assert ExponentialMechanism.for_epsilon(epsilon=third, sensitivity=2).scale == 12
    assert PermuteAndFlip.for_epsilon(epsilon=third, sensitivity=2, monotone=True).scale == 6
    exact = RoundedGaussian.for_mu_squared(mu_squared=third, sensitivity_squared=2)
    assert exact.variance == 6


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_the_error_is_the_mean_magnitude_of_the_noise(mechanism: Any) -> None:
    noise = np.abs(mechanism.apply(np.zeros(200_000, dtype=np.int64), ReplayBits("error")))
    assert mechanism.error() == pytest.approx(noise.mean(), rel=0.01)


def test_the_error_formulas_meet_their_limits() -> None:
    deviations = [F(49999, 1000), F(50001, 1000)]
    low, high = (
        RoundedGaussian(sensitivity_squared=F(1), variance=s**2).error() for s in deviations
    )
    assert high - low == pytest.approx(0.002 * math.sqrt(2 / math.pi), rel=1e-3)
    assert RoundedGaussian(sensitivity_squared=F(1), variance=F("1e-9")).error() == 0
    assert RoundedLaplace(sensitivity=F(1), scale=F("1e-9")).error() == 0
    assert RoundedLaplace(sensitivity=F(1), scale=F(10**6)).error() == pytest.approx(10**6)
    assert KNorm(norm=2, dimension=1, sensitivity=F(1), scale=F(7)).error() == pytest.approx(7)
    assert KNorm(norm=2, dimension=10**6, sensitivity=F(1), scale=F(1)).error() == pytest.approx(
        math.sqrt(2e6 / math.pi), rel=1e-5
    )


def test_addition_is_exact_and_its_type_follows_from_the_result() -> None:
    top = 2**63 - 1
    cases = [
        ([top, 0], [1, 0], np.object_),
        ([top, 0], [-1, 1], np.int64),
        ([-top - 1, 0], [0, -1], np.int64),
        ([-top - 1, 0], [-1, 0], np.object_),
        ([10**30, 0], [5, 5], np.object_),
        ([10**30, 0], [-(10**30), 5], np.int64),
        ([-10, -9], [top + 5, 1], np.int64),
        ([10, 9], [-top - 5, 1], np.int64),
        ([], [], np.int64),
    ]
    for sums, noise, dtype in cases:
        wide = np.array(sums, dtype=object), np.array(noise, dtype=object)
        total = add_exactly(*wide)
        assert total.tolist() == [a + b for a, b in zip(sums, noise, strict=True)]
        assert total.dtype == dtype
        if all(-top - 1 <= v <= top for v in sums + noise):
            narrow = add_exactly(*(part.astype(np.int64) for part in wide))
            assert narrow.tolist() == total.tolist()
            assert narrow.dtype == dtype
        if all(-top - 1 <= v <= top for v in sums):  # noise beyond 64 bits, and a sum within
            mixed = add_exactly(wide[0].astype(np.int64), wide[1])
            assert mixed.tolist() == total.tolist()
            assert mixed.dtype == dtype
    unsigned = add_exactly(np.array([2**64 - 1], dtype=np.uint64), np.array([-(2**63)]))
    assert unsigned.tolist() == [2**63 - 1]


@pytest.mark.parametrize("mechanism", [GUMBEL, FLIP])
def test_selection_finds_the_clear_winner(mechanism: Any) -> None:
    scores = [0] * 100
    scores[42] = 10**6
    assert mechanism.select(scores, SystemBits()) == 42
    assert mechanism.select(np.array(scores), SystemBits()) == 42
    assert mechanism.select([F(1, 3)], SystemBits()) == 0


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("scale", lambda: RoundedLaplace(sensitivity=F(1), scale=F(0))),
        ("sensitivity", lambda: RoundedLaplace(sensitivity=F(-1), scale=F(1))),
        ("epsilon", lambda: RoundedLaplace.for_epsilon(epsilon=0, sensitivity=1)),
        (
            "mu_squared",
            lambda: RoundedGaussian.for_mu_squared(mu_squared=math.nan, sensitivity_squared=1),
        ),
        ("norm", lambda: KNorm(norm=3, dimension=1, sensitivity=F(1), scale=F(1))),
        ("norm", lambda: KNorm(norm=True, dimension=1, sensitivity=F(1), scale=F(1))),
        (
            "dimension",
            lambda: KNorm(norm=1, dimension=0, sensitivity=F(1), scale=F(1)),
        ),
        (
            "monotone",
            lambda: PermuteAndFlip.for_epsilon(epsilon=1, sensitivity=1, monotone="no"),
        ),
        ("epsilon", lambda: PermuteAndFlip.for_epsilon(epsilon=-1, sensitivity=1)),
        ("options", lambda: GUMBEL.error(0)),
        ("type of sums", lambda: LAPLACE.apply(np.array([0.5]), SystemBits())),
        ("type of sums", lambda: LAPLACE.apply(np.array([True]), SystemBits())),
        ("type of sums", lambda: LAPLACE.apply(np.array([1.5], dtype=object), SystemBits())),
        ("type of sums", lambda: LAPLACE.apply(np.zeros((2, 2), dtype=int), SystemBits())),
        ("type of sums", lambda: LAPLACE.apply([1, 2], SystemBits())),  # type: ignore[arg-type]
        ("length of sums", lambda: DISC.apply(np.array([1, 2, 3]), SystemBits())),
    ],
)
def test_bad_parameters_are_named(name: str, build: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        build()


def test_no_message_shows_an_entry_of_the_sums() -> None:
    with pytest.raises(ParameterError) as caught:
        LAPLACE.apply(np.array([12345.5]), SystemBits())
    assert "12345" not in str(caught.value)
