"""Each noise of `noises.py` loses what is claimed, at all numbers, and is drawn at any size.

That its draws have its law is in tests/exact/test_samplers.py, by chi-square tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import zerodelta as zd
from completeness import drawn
from completeness.noises import FREE, LESS, MORE, NOISES, AddedNoise, Move, Numbers, l1
from privacy.chains import data_of, resealed
from privacy.theorem_cases import accepts, alone, is_whole
from reference.chi_square import goodness_of_fit, two_sample
from zerodelta.exact.bits import BitSource, ReplayBits

EACH = pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.label)
FAR = 400
"""From 0; the law of an instance is summed up to there."""
REACH = 8
"""No sum moves so far, in any instance."""
SUMS = 3
"""So many sums move at most."""

Cost = Callable[[AddedNoise, Numbers], Fraction | None]


# -- the loss -------------------------------------------------------------------------------------


def moves(noise: AddedNoise, numbers: Numbers) -> Iterator[Move]:
    """Yield every integer vector by which neighbors may differ, on up to `SUMS` sums."""
    steps = [step for step in range(-REACH, REACH + 1) if step]
    for count in range(1, SUMS + 1):
        for move in itertools.product(steps, repeat=count):
            if noise.neighbors(numbers, move):
                far = REACH in map(abs, move)
                assert not far, f"take an instance whose sums move by less than {REACH}: {move}"
                yield move


def loss(noise: AddedNoise, numbers: Numbers) -> float:
    """Return the largest log-ratio of the product law over all moves: the sum over sums."""
    law = np.array([noise.probability(numbers, k) for k in range(-FAR, FAR + 1)])
    assert law.sum() == pytest.approx(1, abs=1e-9)
    possible = list(moves(noise, numbers))
    worst = {step: _worst(law, step) for step in {step for move in possible for step in move}}
    return max(sum(worst[step] for step in move) for move in possible)


def _worst(law: npt.NDArray[Any], step: int) -> float:
    """Return the largest log-ratio of one draw, and of that draw moved."""
    before, after = law[REACH:-REACH], law[REACH + step : len(law) - REACH + step]
    likely = before > 1e-200
    if np.any(after[likely] == 0):
        return math.inf
    return float(np.max(np.log(before[likely]) - np.log(after[likely])))


def claimed(noise: AddedNoise, numbers: Numbers) -> Fraction | None:
    """Return the ε that the theorem states; None if it refuses these numbers."""
    try:
        claim = alone(noise.label, **_written(numbers)).claim
    except zd.errors.ZeroDeltaError:
        return None
    assert isinstance(claim, zd.purification.PureDP)
    return claim.exact_epsilon


def _written(numbers: Numbers) -> dict[str, Any]:
    """Return numbers as a certificate has them."""
    return {name: int(n) if n.denominator == 1 else str(n) for name, n in numbers.items()}


def others(noise: AddedNoise) -> Iterator[tuple[str, Numbers]]:
    """Yield the numbers of an instance with one of them changed, and its name."""
    for name, number in noise.exact.items():
        whole = is_whole(noise.label, name)
        near = (number - 1, number + 1) if whole else (number / 2, number * 3 / 2)
        for changed in (*near, 2 * number):
            if changed > 0:
                yield name, {**noise.exact, name: changed}


def understated(noise: AddedNoise, cost: Cost = claimed) -> list[str]:
    """Return a line for each way in which more is lost than the theorem says."""
    epsilon = cost(noise, noise.exact)
    assert epsilon is not None
    found = []
    for name, numbers in [("", noise.exact), *others(noise)]:
        said = cost(noise, numbers)
        if said is None:
            continue
        lost = loss(noise, numbers)
        if lost > said * (1 + 1e-12):
            found.append(f"{_written(numbers)}: {lost} is lost, and {float(said)} claimed")
        if name and noise.worse.get(name) is FREE and lost > epsilon * (1 + 1e-12):
            found.append(f"{name} is not FREE: with {_written(numbers)} {lost} is lost")
    return found


@EACH
def test_the_law_loses_at_most_what_the_theorem_says(noise: AddedNoise) -> None:
    """On all moves of up to three sums, with the numbers of the instance and with others."""
    found = understated(noise)
    assert not found, "\n".join(found)


@EACH
def test_the_claim_is_no_larger_than_it_needs_to_be(noise: AddedNoise) -> None:
    assert loss(noise, noise.exact) > noise.mechanism.claim.exact_epsilon * 0.99


@EACH
def test_several_sums_move_or_a_number_says_how_many(noise: AddedNoise) -> None:
    every = [noise.exact, *(numbers for _, numbers in others(noise))]
    assert any(len(move) > 1 for numbers in every for move in moves(noise, numbers)), (
        f"{noise.label}: by its entry only one sum moves between neighbors, and no number of the "
        "step says so: a certificate for several sums cannot be told from one for one sum"
    )


def test_what_a_number_is_for_is_said_of_all_of_them() -> None:
    for noise in NOISES:
        assert noise.worse.keys() == noise.exact.keys(), (
            f"{noise.label}: say in `worse` which direction of each number needs a weaker claim"
        )


@EACH
def test_numbers_that_do_not_belong_together_are_refused(noise: AddedNoise) -> None:
    for change in noise.refused:
        numbers = {**noise.numbers, **_written({name: Fraction(n) for name, n in change.items()})}
        assert claimed(noise, {name: Fraction(n) for name, n in numbers.items()}) is None
        data = data_of(alone(noise.label, **noise.numbers))
        data["parts"][0]["steps"][0]["numbers"] = numbers
        assert not accepts(resealed(data)), f"a certificate of {noise.label} with {numbers}"


# -- theorems that are wrong ----------------------------------------------------------------------


def _stairs(n: Numbers, k: int) -> float:
    """Return a staircase on integers: a sum that moves falls by one stair at most."""
    fall, width = math.exp(-1 / n["scale"]), int(n["width"])
    total = (2 * width - 1) + 2 * width * fall / (1 - fall)
    return fall ** (abs(k) // width) / total


def _of_stairs(**changes: Any) -> AddedNoise:
    step = SimpleNamespace(theorem="", numbers={"width": 3, "changed": 3, "scale": "7/3"})
    return replace(
        AddedNoise(
            mechanism=SimpleNamespace(step=lambda: step),
            sampler=None,
            told=dict,
            probability=_stairs,
            neighbors=lambda n, move: l1(move) <= n["width"] and len(move) <= n["changed"],
            worse={"width": FREE, "changed": MORE, "scale": LESS},
        ),
        **changes,
    )


def _by_moves(_: AddedNoise, n: Numbers) -> Fraction:
    return Fraction(n["changed"] / n["scale"])


def test_a_cost_that_forgets_how_many_sums_move_is_found() -> None:
    """One stair costs 1/b, whatever the move: three sums that move by 1 cost 3/b."""
    noise = _of_stairs()
    assert not understated(noise, _by_moves)
    assert loss(noise, noise.exact) == pytest.approx(3 * 3 / 7)
    forgot = understated(noise, lambda _, n: 1 / n["scale"])
    assert any("1.28" in line and "0.42" in line for line in forgot)
    alone_ = _of_stairs(neighbors=lambda n, move: l1(move) <= n["width"] and len(move) == 1)
    assert not understated(alone_, lambda _, n: 1 / n["scale"])
    with pytest.raises(AssertionError, match="only one sum moves"):
        test_several_sums_move_or_a_number_says_how_many(alone_)


def test_a_number_that_is_said_to_be_free_and_is_not_is_found() -> None:
    found = understated(
        _of_stairs(worse={"width": FREE, "changed": FREE, "scale": FREE}), _by_moves
    )
    assert {line.partition(" ")[0] for line in found} == {"scale"}
    laplace = replace(NOISES[0], worse=dict.fromkeys(NOISES[0].worse, FREE))
    assert {line.partition(" ")[0] for line in understated(laplace)} == {"sensitivity", "scale"}


def test_a_law_that_ends_loses_everything() -> None:
    noise = _of_stairs(probability=lambda n, k: 1 / 7 if abs(k) <= 3 else 0.0)
    assert loss(noise, noise.exact) == math.inf


@EACH
def test_half_the_cost_is_found(noise: AddedNoise) -> None:
    def halved(noise: AddedNoise, numbers: Numbers) -> Fraction | None:
        said = claimed(noise, numbers)
        return None if said is None else said / 2

    assert any("claimed" in line for line in understated(noise, halved))


# -- the draws ------------------------------------------------------------------------------------


@EACH
def test_half_of_the_noise_is_found(noise: AddedNoise, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = type(noise.mechanism).noise

    def halved(self: Any, count: int, bits: BitSource) -> Any:
        return drawing(replace(self, scale=self.scale / 2), count, bits)

    held = drawn.Adds(noise.mechanism)
    assert not drawn.mistakes(held)
    monkeypatch.setattr(type(noise.mechanism), "noise", halved)
    assert any("no theorem" in line for line in drawn.mistakes(held))


SMALL, EDGE, HUGE = 1 << 40, 1 << 62, 1 << 70


def alike(small: list[int], large: list[int], scale: int) -> bool:
    """Tell whether draws of this scale are those of scale 2^40, in a finer unit."""
    first, second = [8 * z // SMALL for z in small], [8 * z // scale for z in large]
    return two_sample(first, second) > 1e-3


def full(huge: list[int]) -> bool:
    """Tell whether the last bits of draws are as random as the others."""
    last = np.bincount([z % 8 for z in huge], minlength=8).tolist()
    return goodness_of_fit(last, [1 / 8] * 8) > 1e-3


def wrapped(draws: list[int]) -> list[int]:
    return [(z + (1 << 63)) % (1 << 64) - (1 << 63) for z in draws]


@EACH
def test_huge_noise_is_neither_wrapped_nor_rounded(noise: AddedNoise) -> None:
    """A law with a scale far above all else is that of the scale: at 2^70 as at 2^40.

    Single draws of scale 2^62 are of either kind: some fit 64 bits, some almost.
    """
    small = [int(z) for z in noise.scaled(SMALL).noise(20_000, ReplayBits("small"))]
    found = noise.scaled(HUGE).noise(3000, ReplayBits("huge"))
    assert found.dtype == object
    huge = found.tolist()
    assert {type(z) for z in huge} == {int}
    assert alike(small, huge, HUGE)
    assert full(huge)
    assert not alike(small, wrapped(huge), HUGE)
    assert not full([int(float(z)) for z in huge])
    edge = [int(noise.scaled(EDGE).noise(1, ReplayBits(f"{i}"))[0]) for i in range(1000)]
    assert alike(small, edge, EDGE)
    assert not alike(small, wrapped(edge), EDGE)
