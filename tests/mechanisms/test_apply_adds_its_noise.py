"""A mechanism adds exactly the noise that its step speaks of, at every value, the ends included.

The sampler is replaced by a script; its own law is tested where it is written (tests/exact).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tasks.scripted import replaced
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.counts import CountNoise
from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection
from zerodelta.privacy.composition import simplest
from zerodelta.privacy.proof import base_claim

F = Fraction
BITS = ReplayBits("not read")
NOISE = [-3, 0, 1]
ENDS = [-(2**63), -(2**63) + 3, -1, 0, 7, 2**63 - 2, 2**63 - 1]
NUMBERS = {"scale", "variance", "norm", "dimension"}

ADDED: dict[str, tuple[Any, str]] = {
    "laplace": (RoundedLaplace(sensitivity=2, scale="7/3"), "laplace.rounded_laplace"),
    "gaussian": (RoundedGaussian(sensitivity_squared=2, variance=5), "gaussian.rounded_gaussian"),
    "counts": (CountNoise(dimension=3, scale="7/3"), "counts.rounded_count_noise"),
    "partition-laplace": (
        PartitionNoise.for_epsilon(epsilon="6/7", cells=3, method="laplace"),
        "partition_noise.discrete_laplace",
    ),
    "partition-counts": (
        PartitionNoise.for_epsilon(epsilon="3/7", cells=3, method="k-norm"),
        "partition_noise.rounded_count_noise",
    ),
    "block": (
        BlockNoise.for_epsilon(epsilon="6/7", blocks=1, dimension=3, row_bound=1),
        "partition_noise.rounded_k_norm",
    ),
    **{
        f"k-norm-{norm}": (
            KNorm(norm=norm, dimension=3, sensitivity=2, scale="7/3"),
            "k_norm_noise.rounded_k_norm",
        )
        for norm in (1, 2, math.inf)
    },
}


def step_of(mechanism: Any) -> Any:
    return mechanism.step(quantum=None) if isinstance(mechanism, KNorm) else mechanism.step()


@pytest.mark.parametrize("name", ADDED)
def test_the_noise_is_added_as_it_was_drawn_with_the_numbers_of_the_step(name: str) -> None:
    mechanism, sampler = ADDED[name]
    asked: list[dict[str, Any]] = []

    def drawn(**numbers: Any) -> Any:
        asked.append({key: numbers[key] for key in NUMBERS & set(numbers)})
        return np.array([NOISE] if "k_norm" in sampler else NOISE)

    with replaced({f"mechanisms.{sampler}": drawn}):
        for end in ENDS:
            sums = np.array([end, 5, end])
            result = mechanism.apply(sums, BITS)
            assert [int(x) for x in result] == [end - 3, 5, end + 1]
    step = step_of(mechanism).numbers
    stated = {key: F(step[key]) for key in ("scale", "variance") if key in step}
    assert len(asked) == len(ENDS)
    for numbers in asked:
        assert {key: numbers[key] for key in stated} == stated
        if isinstance(mechanism, KNorm):
            assert (numbers["norm"], numbers["dimension"]) == (mechanism.norm, 3)
            assert str(step["norm"]) == f"{mechanism.norm:g}"
        if "counts" in name:  # one draw over all of them
            assert numbers["dimension"] == 3
        if name == "block":
            assert (numbers["norm"], numbers["dimension"]) == (math.inf, 3)


@pytest.mark.parametrize("name", ADDED)
def test_the_claim_of_a_mechanism_is_what_its_step_proves(name: str) -> None:
    mechanism, _ = ADDED[name]
    claim = base_claim((step_of(mechanism),))
    assert simplest(claim) == mechanism.claim
    if name == "gaussian":
        assert mechanism.claim.mu_squared == F(2, 5)
    else:  # Δ over the scale: 2 rows' worth for sums, 1 for counts in their own norm
        assert mechanism.claim.exact_epsilon == F(3, 7) * (1 if "counts" in name else 2)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("mechanism", "sampler"),
    [(ExponentialMechanism, "gumbel_argmax"), (PermuteAndFlip, "exponential_argmax")],
)
def test_a_choice_is_that_of_the_sampler_with_the_scale_of_the_step(
    mechanism: type[Selection], sampler: str, monotone: bool
) -> None:
    chosen = mechanism.for_epsilon(epsilon="3/2", sensitivity=2, monotone=monotone)
    asked: list[Any] = []

    def argmax(scores: Any, *, scale: Any, size: int, bits: Any, members: Any) -> Any:
        asked.append((scores, scale, size, members))
        return [scores.index(max(scores))]

    with replaced({f"mechanisms.selection.{sampler}": argmax}):
        for scores in ([0], [1, 0], [0, 1], [-(2**70), 5, 2**70]):
            assert chosen.select(scores, BITS) == scores.index(max(scores))
    scales = {scale for _, scale, _, _ in asked}
    assert scales == {F(chosen.step().numbers["scale"])} == {F(4, 3) if monotone else F(8, 3)}
    assert {size for _, _, size, _ in asked} == {1}
    assert chosen.claim.exact_epsilon == F(3, 2)
    assert chosen.claim.bounded_range == (mechanism is ExponentialMechanism)
