"""Integer samplers: exactly uniform, exactly biased, for small and huge parameters."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from exact.integer_cases import LAWS, MILLION, Counts, Tally
from reference.chi_square import goodness_of_fit
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, ReplayBits, SystemBits
from zerodelta.exact.integers import (
    bernoulli,
    bernoulli_exp,
    categorical,
    permutation,
    uniform_below,
    uniform_below_each,
)


@pytest.mark.parametrize("name", LAWS)
def test_millions_of_draws_follow_the_exact_law(name: str) -> None:
    counts, law = LAWS[name]
    assert goodness_of_fit(counts(4 * MILLION, ReplayBits(name)).tolist(), law) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_hundred_million_draws_follow_the_exact_law(name: str) -> None:
    counts, law = LAWS[name]
    total = sum((counts(4 * MILLION, SystemBits()) for _ in range(25)), np.zeros(len(law), int))
    assert total.sum() >= 10**8
    assert goodness_of_fit(total.tolist(), law) > 1e-6


@pytest.mark.parametrize(
    ("toss", "number", "chance"),
    [(bernoulli, Fraction(1, 3), 1 / 3), (bernoulli_exp, Fraction(1, 2), math.exp(-0.5))],
)
def test_a_coin_two_percent_off_is_rejected(
    toss: Callable[..., Any], number: Fraction, chance: float
) -> None:
    def p_value(drawn: Fraction) -> float:
        heads = int(toss(drawn, size=MILLION, bits=ReplayBits("mutant")).sum())
        return float(binomtest(heads, MILLION, chance).pvalue)

    assert p_value(number) > 1e-3
    assert p_value(number * Fraction(98, 100)) < 1e-9
    assert p_value(number * Fraction(102, 100)) < 1e-9


@pytest.mark.parametrize(
    "limit", [1, 2, 3, 2**32, *(2**bits + more for bits in (63, 64) for more in (-1, 0, 1)), 2**200]
)
def test_uniform_below_stays_below_any_limit(limit: int) -> None:
    """From 2^63 + 1 on a draw need not fit int64."""
    drawn = uniform_below(limit, size=400, bits=ReplayBits("wide")).tolist()
    assert all(isinstance(value, int) and 0 <= value < limit for value in drawn)
    if limit > 2**60:
        assert max(drawn) > limit * 3 // 4
        assert min(drawn) < limit // 4


def test_the_largest_word_is_rejected_when_it_does_not_fill_a_cycle() -> None:
    tape = b"\xff" * 8 + (10).to_bytes(8, "little")
    assert uniform_below(3, size=1, bits=ReplayBits("t", tape=tape)).tolist() == [1]
    assert uniform_below(2, size=1, bits=ReplayBits("t", tape=tape)).tolist() == [1]


def test_a_word_that_is_rejected_is_drawn_again_below_its_own_limit() -> None:
    """The second word does not fill a cycle of the second limit; the first and third are kept."""
    limits = [5, 3 * 2**61, 7]
    words = (12, 2**64 - 1, 15, 2**62 + 9)
    tape = b"".join(word.to_bytes(8, "little") for word in words)
    drawn = uniform_below_each(limits, bits=ReplayBits("t", tape=tape))
    assert drawn.tolist() == [2, 2**62 + 9, 1]


def big_tally(limit: int, shift: int) -> Tally:
    """Count the digit to base 7 at a place of a uniform integer: (value >> shift) % 7."""

    def counts(size: int, bits: BitSource) -> Counts:
        drawn = uniform_below(limit, size=size, bits=bits).tolist()
        return np.bincount([(value >> shift) % 7 for value in drawn], minlength=7)

    return counts


def big_law(limit: int, shift: int) -> list[float]:
    """The exact law of `big_tally`: whole cycles of the digit, then the rest, counted."""
    unit = 1 << shift
    cycles, rest = divmod(limit, 7 * unit)
    cells = [cycles * unit + min(max(rest - digit * unit, 0), unit) for digit in range(7)]
    assert sum(cells) == limit
    return [float(Fraction(cell, limit)) for cell in cells]


BIG_DIGITS = [
    (limit, shift)
    for limit in (2**64 + 1, 3 * 2**63, 2**200, 10**60)
    for shift in (0, limit.bit_length() // 2, limit.bit_length() - 3)
]


@pytest.mark.parametrize(("limit", "shift"), BIG_DIGITS)
def test_all_digits_of_big_uniforms_follow_their_exact_law(limit: int, shift: int) -> None:
    counts = big_tally(limit, shift)(200_000, ReplayBits(f"{limit} {shift}"))
    assert goodness_of_fit(counts.tolist(), big_law(limit, shift)) > 1e-3


@pytest.mark.parametrize("limit", [3 * 2**63, 10**60])
def test_folding_big_uniforms_into_the_limit_is_rejected(limit: int) -> None:
    """The mutant that reduces every candidate modulo the limit instead of drawing anew."""
    bits, width = ReplayBits("fold"), (limit - 1).bit_length()
    shift = width - 3
    folded = Counter((bits.integer(width) % limit >> shift) % 7 for _ in range(200_000))
    assert goodness_of_fit([folded[digit] for digit in range(7)], big_law(limit, shift)) < 1e-9


def candidates(width: int, *values: int) -> ReplayBits:
    """Bits of which `width` at a time are these values."""
    size = -(-width // 8)
    tapes = [(value << (8 * size - width)).to_bytes(size, "little") for value in values]
    return ReplayBits("t", tape=b"".join(tapes))


def test_the_first_candidate_below_a_big_limit_is_the_draw() -> None:
    limit = 2**64 + 1
    for value in (0, 2**63, 2**64):
        assert uniform_below(limit, size=1, bits=candidates(65, value)).tolist() == [value]
    for beyond in (2**64 + 1, 2**65 - 1):
        assert uniform_below(limit, size=1, bits=candidates(65, beyond, 7)).tolist() == [7]
    assert uniform_below(2**200, size=1, bits=candidates(200, 2**200 - 1)).tolist() == [2**200 - 1]


BIG_WEIGHTS = [
    *([2**62, 2**62], [10**40, 0, 10**40]),
    *([2**62, 2**63, 3 * 2**62], [2**63 - 1, 1, 2**64]),
]


def big_weights_p_value(drawn: list[int], true: list[int]) -> float:
    law = [float(Fraction(weight, sum(true))) for weight in true]
    indices = categorical(drawn, size=MILLION, bits=ReplayBits(str(true)))
    return goodness_of_fit(np.bincount(indices, minlength=len(true)).tolist(), law)


@pytest.mark.parametrize("weights", BIG_WEIGHTS)
def test_weights_beyond_a_word_follow_the_exact_law(weights: list[int]) -> None:
    assert big_weights_p_value(weights, weights) > 1e-3
    assert big_weights_p_value([weights[0] * 102 // 100, *weights[1:]], weights) < 1e-9


def test_the_ends_of_big_weights_are_exact() -> None:
    """Integers that floats could not tell apart fall on the right sides of the ends."""
    weights = [2**64, 1, 2**64]
    picks = {0: 0, 2**64 - 1: 0, 2**64: 1, 2**64 + 1: 2, 2**65: 2}
    for pick, index in picks.items():
        assert categorical(weights, size=1, bits=candidates(66, pick)).tolist() == [index]


@pytest.mark.parametrize(
    "limits",
    [
        *([limit, 1, limit] for limit in (2**63, 2**63 + 1, 10**30)),
        [1, 2**100, 5],
        [2**63 + 1] * 40 + [1],  # of which NumPy makes floats
    ],
    ids=range(5),
)
def test_each_draw_stays_below_its_own_limit(limits: list[int]) -> None:
    drawn = uniform_below_each(limits, bits=SystemBits()).tolist()
    assert all(0 <= value < limit for value, limit in zip(drawn, limits, strict=True))


def test_permutation_holds_every_item_once() -> None:
    for length in (0, 1, 2, 1000):
        assert sorted(permutation(length, bits=SystemBits())) == list(range(length))


def test_ties_of_keys_are_broken_at_random() -> None:
    """All first words equal: the stable sort alone would always return the identity."""
    orders = Counter(
        tuple(permutation(3, bits=ReplayBits(str(i), tape=bytes(24))).tolist()) for i in range(3000)
    )
    assert set(orders) == set(itertools.permutations(range(3)))
    assert goodness_of_fit(list(orders.values()), [1 / 6] * 6) > 1e-3


def test_two_keys_that_tie_are_ordered_at_random_and_others_stay() -> None:
    tape = b"".join(word.to_bytes(8, "little") for word in (9, 1, 9))
    orders = Counter(
        tuple(permutation(3, bits=ReplayBits(str(i), tape=tape)).tolist()) for i in range(1000)
    )
    assert set(orders) == {(1, 0, 2), (1, 2, 0)}
    assert binomtest(orders[1, 0, 2], 1000).pvalue > 1e-3


def test_certain_coins_are_certain() -> None:
    bits = SystemBits()
    assert not bernoulli(0, size=1000, bits=bits).any()
    assert bernoulli(1, size=1000, bits=bits).all()
    assert bernoulli(Fraction(10**50 - 1, 10**50), size=1000, bits=bits).all()
    assert not bernoulli_exp(10**9, size=1000, bits=bits).any()


def test_a_word_that_ties_with_the_probability_reads_on() -> None:
    """1/3 = 0.0101…: the word 0x5555… ties, and the next word decides."""
    tie = (0x5555555555555555).to_bytes(8, "little")
    low, high = bytes(8), b"\xff" * 8
    third = Fraction(1, 3)
    assert bernoulli(third, size=1, bits=ReplayBits("t", tape=tie + tie + low)).tolist() == [True]
    assert bernoulli(third, size=1, bits=ReplayBits("t", tape=tie + tie + high)).tolist() == [False]


def test_a_dyadic_probability_is_exact_at_its_own_word() -> None:
    half = (1 << 63).to_bytes(8, "little")
    below = ((1 << 63) - 1).to_bytes(8, "little")
    bits = ReplayBits("t", tape=half + bytes(8) + b"\x01" * 8)
    assert bernoulli(Fraction(1, 2), size=1, bits=bits).tolist() == [False]
    assert bernoulli(Fraction(1, 2), size=1, bits=ReplayBits("t", tape=below)).tolist() == [True]


def test_bernoulli_exp_compares_with_the_digits_of_the_exponential() -> None:
    """floor(e^-1 · 2^128) from an independent series."""
    series = sum(Fraction((-1) ** k, math.factorial(k)) for k in range(60))
    digits = math.floor(series * 2**128)
    words = [(digits >> 64), digits % 2**64]

    def toss(offset: int) -> bool:
        tape = words[0].to_bytes(8, "little") + (words[1] + offset).to_bytes(8, "little")
        return bool(bernoulli_exp(1, size=1, bits=ReplayBits("t", tape=tape))[0])

    assert toss(-1)
    assert not toss(1)


@pytest.mark.parametrize("bits", [70, 130, 200, 5000])
def test_a_coin_that_is_nearly_certain_is_no_other(bits: int) -> None:
    """e^-x is 0.111…1 in binary, of more digits than any fixed precision has."""
    assert bernoulli_exp(Fraction(1, 1 << bits), size=100, bits=SystemBits()).all()
    ones = ReplayBits("t", tape=b"\xff" * (8 * (bits // 64)) + bytes(16))
    assert bernoulli_exp(Fraction(1, 1 << bits), size=1, bits=ones).tolist() == [True]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**25), min_size=1, max_size=8).filter(any), st.integers(0, 50))
def test_categorical_never_chooses_weight_zero(weights: list[int], size: int) -> None:
    drawn = categorical(weights, size=size, bits=SystemBits())
    assert len(drawn) == size
    assert all(weights[index] > 0 for index in drawn)


ANY: Any = None
BITS = SystemBits()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("limit", lambda: uniform_below(0, size=1, bits=BITS)),
        ("limit", lambda: uniform_below(ANY, size=1, bits=BITS)),
        ("size", lambda: uniform_below(3, size=-1, bits=BITS)),
        ("limits", lambda: uniform_below_each([2, 0], bits=BITS)),
        ("limits", lambda: uniform_below_each(np.array([0.5]), bits=BITS)),
        ("length", lambda: permutation(-1, bits=BITS)),
        ("probability", lambda: bernoulli(Fraction(3, 2), size=1, bits=BITS)),
        ("probability", lambda: bernoulli(-1, size=1, bits=BITS)),
        ("probability", lambda: bernoulli("1/0", size=1, bits=BITS)),
        ("exponent", lambda: bernoulli_exp(-1, size=1, bits=BITS)),
        ("weights", lambda: categorical([0, 0], size=1, bits=BITS)),
        ("weights", lambda: categorical([], size=1, bits=BITS)),
        ("weights", lambda: categorical([1, -1], size=1, bits=BITS)),
        ("weights", lambda: categorical([True, 2], size=1, bits=BITS)),
        ("limits", lambda: uniform_below_each(ANY, bits=BITS)),
    ],
)
def test_bad_parameters_are_named(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=f"^{name} = "):
        call()
