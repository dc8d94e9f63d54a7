"""Algorithm 2 by exact enumeration over all neighboring datasets, and Theorem 3 for d = 1 … 12."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from channels.channel_laws import row
from channels.verdicts import pushed
from zerodelta.audit.exact import (
    ExpRational,
    certainly_impure,
    certainly_pure,
    datasets,
    hockey_stick,
    neighbors,
)
from zerodelta.channels.kernels import AlgorithmTwo, code_length
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.paper.algorithm_01_02 import (
    choice_channel_for,
    purify_choice,
    theorem_3,
    theorem_3_log_delta,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import log_of_delta
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Finite
from zerodelta.testing import replayed

F = Fraction
EPSILON = F(7, 10)
"""Above ln 2, so that a base whose ratios are at most 2 is (EPSILON, δ)-DP."""


def base_law(rows: tuple[int, ...], size: int, delta: Fraction) -> list[Fraction]:
    """The mode with probability δ, else an item with probability (1 + its count)/(size + n)."""
    counts = Counter(rows)
    mode = min(counts, key=lambda item: (-counts[item], item))
    noisy = [(1 - delta) * F(1 + counts[y], size + len(rows)) for y in range(size)]
    noisy[mode] += delta
    return noisy


def outputs(channel: AlgorithmTwo, size: int, delta: Fraction) -> dict[Any, Any]:
    """The exact output law of the release for every dataset of two rows."""
    rows = [row(channel, value) for value in range(size)]
    return {table: pushed(rows, base_law(table, size, delta)) for table in datasets(range(size), 2)}


@pytest.mark.parametrize("delta", [F(1, 10), F(1, 10**6)], ids=str)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_algorithm_2_is_pure_on_all_neighboring_datasets(size: int, delta: Fraction) -> None:
    tables = list(datasets(range(size), 2))
    bases = {t: dict(enumerate(base_law(t, size, delta))) for t in tables}
    for a, b in neighbors(tables):  # the base really is (EPSILON, δ)-DP
        found = hockey_stick(bases[a], bases[b], epsilon_exp=2)
        assert isinstance(found, ExpRational)
        assert found <= delta
    channel = choice_channel_for(
        space=Finite(size), epsilon=2 * EPSILON, log_delta=log_of_delta(delta)
    )
    laws = outputs(channel, size, delta)
    pairs = list(neighbors(laws))
    assert pairs
    assert all(certainly_pure(laws[a], laws[b], 2 * EPSILON) for a, b in pairs)


def test_without_its_noise_algorithm_2_is_not_pure() -> None:
    """The mutant must be caught: mixing with 2^-d alone does not remove a δ of 1/10."""
    size, delta = 4, F(9, 10)
    channel = choice_channel_for(
        space=Finite(size), epsilon=2 * EPSILON, log_delta=log_of_delta(delta)
    )
    laws = outputs(replace(channel, scale=F(1, 20)), size, delta)
    assert any(certainly_impure(laws[a], laws[b], 2 * EPSILON) for a, b in neighbors(laws))


@pytest.mark.parametrize("d", range(1, 13))
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)], ids=str)
def test_theorem_3_holds_exactly_for_every_code_length(d: int, epsilon: Fraction) -> None:
    channel = choice_channel_for(
        space=Finite(1 << d),
        epsilon=2 * epsilon,
        log_delta=theorem_3_log_delta(code_length=d, base_epsilon=epsilon),
    )
    flip = math.exp(-1 / (2 * float(channel.scale))) / 2
    success = (1 - 2.0**-d) * (1 - flip) ** d + 4.0**-d
    printed = 1 - 2.0**-d - d / 2 * math.exp(-d)  # weaker by the product of the two
    assert success >= theorem_3(d) >= printed


@pytest.mark.parametrize("d", range(1, 13))
def test_theorem_3_holds_in_simulation(d: int) -> None:
    channel = choice_channel_for(
        space=Finite(1 << d),
        epsilon=2,
        log_delta=theorem_3_log_delta(code_length=d, base_epsilon=1),
    )
    bits, truth, draws = ReplayBits(f"theorem 3, d = {d}"), (1 << d) // 3, 400
    kept = sum(channel.apply(truth, bits) == truth for _ in range(draws)) / draws
    assert kept >= theorem_3(d) - 4 * math.sqrt(0.25 / draws)


def test_the_delta_of_theorem_3_is_the_printed_one() -> None:
    for d in (1, 5, 12):
        printed = d * (math.log(0.5) - 3 * math.log(2 * d))
        assert math.isclose(theorem_3_log_delta(code_length=d, base_epsilon="1/2"), printed)
        assert theorem_3_log_delta(code_length=d, base_epsilon="1/2") < printed + 1e-12


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_every_size_and_every_value_give_an_element(size: int) -> None:
    space = Finite(size)
    for value in (0, size - 1, size, -1, None, math.nan, "no"):
        release = purify_choice(value, space=space, epsilon=2, log_delta=-30.0)
        assert space.contains(release.value)
        assert verify(release.certificate)
        assert release.certificate.claim.log_delta(2) == -math.inf


def test_codes_beyond_the_space_stand_for_the_first_element() -> None:
    assert code_length(5) == 3
    channel = choice_channel_for(space=Finite(5), epsilon=2, log_delta=-5.0)
    law = row(channel, 4)
    assert set(law) == set(range(5))


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0}, {"base_epsilon": 0}, {"base_epsilon": 2}, {"log_delta": 0.5}, {"delta": 0.0}],
)
def test_bad_parameters_are_refused(change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"space": Finite(4), "epsilon": 2, "log_delta": -30.0}
    with pytest.raises(ParameterError):
        purify_choice(0, **{**options, **change})


@pytest.mark.parametrize("size", [1 << 14_500, (1 << 14_500) - 1], ids=["power", "other"])
def test_sizes_that_decimal_text_cannot_hold(size: int) -> None:
    release = replayed("long")(purify_choice)(
        size - 2,
        space=Finite(size),
        epsilon=2,
        log_delta=theorem_3_log_delta(code_length=14_500, base_epsilon=1),
    )
    assert release.value == size - 2
    certificate = release.certificate
    assert certificate.steps[-1].numbers["weight"] == "2^-14500"
    assert Certificate.from_json(certificate.to_json()) == certificate
    for text in (repr(release), certificate.explain(), repr(certificate), certificate.summary):
        assert len(text) < 10_000
    live = purify_choice(5, space=Finite(size), epsilon=2, log_delta=-1e6)
    assert verify(live.certificate.to_json())


def test_a_space_beyond_all_powers_is_refused_as_a_parameter() -> None:
    with pytest.raises(ParameterError, match="smaller space"):
        purify_choice(5, space=Finite(1 << 1_000_001), epsilon=2, log_delta=-1e9)
