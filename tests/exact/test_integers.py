"""Integer samplers: exactly uniform, exactly biased, for small and huge parameters."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from reference import samplers
from reference.chi_square import goodness_of_fit, two_sample
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, ReplayBits, SystemBits
from zerodelta.exact.integers import (
    bernoulli,
    bernoulli_exp,
    categorical,
    geometric,
    permutation,
    uniform_below,
    uniform_below_each,
    uniform_in_box,
    uniform_multiset,
    uniform_subset,
)

MILLION = 1_000_000
Counts = npt.NDArray[np.int64]


def uniform_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(uniform_below(7, size=size, bits=bits), minlength=7)


def each_counts(size: int, bits: BitSource) -> Counts:
    drawn = uniform_below_each(np.tile([2, 3, 2**62], size // 3 + 1), bits=bits)
    return np.bincount(drawn[0::3] * 3 + drawn[1::3], minlength=6)


def box_counts(size: int, bits: BitSource) -> Counts:
    drawn = uniform_in_box(np.full(size, -2), np.full(size, 2), bits=bits)
    return np.bincount(drawn + 2, minlength=5)


def order_counts(size: int, bits: BitSource) -> Counts:
    """Disjoint groups of four places hold independent uniform relative orders."""
    groups = permutation(4 * (size // 4), bits=bits).reshape(-1, 4)
    ranks = groups.argsort(axis=1)
    codes = ranks @ np.array([64, 16, 4, 1])
    cells = [int(np.dot(order, [64, 16, 4, 1])) for order in itertools.permutations(range(4))]
    return np.array([np.count_nonzero(codes == cell) for cell in cells])


def biased_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(categorical([1, 0, 2, 5, 8], size=size, bits=bits), minlength=5)


def coin_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(bernoulli(Fraction(1, 3), size=size, bits=bits), minlength=2)


def exponential_coin_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(bernoulli_exp(Fraction(1, 2), size=size, bits=bits), minlength=2)


LAWS: dict[str, tuple[Callable[[int, BitSource], Counts], list[float]]] = {
    "uniform below 7": (uniform_counts, [1 / 7] * 7),
    "uniform below each": (each_counts, [1 / 6] * 6),
    "point of a box": (box_counts, [1 / 5] * 5),
    "permutation": (order_counts, [1 / 24] * 24),
    "categorical": (biased_counts, [1 / 16, 0, 2 / 16, 5 / 16, 8 / 16]),
    "Bernoulli 1/3": (coin_counts, [2 / 3, 1 / 3]),
    "Bernoulli e^-1/2": (exponential_coin_counts, [1 - math.exp(-0.5), math.exp(-0.5)]),
}


@pytest.mark.parametrize("name", LAWS)
def test_millions_of_draws_follow_the_exact_law(name: str) -> None:
    counts, law = LAWS[name]
    assert goodness_of_fit(counts(4 * MILLION, ReplayBits(name)).tolist(), law) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_hundred_million_draws_follow_the_exact_law(name: str) -> None:
    counts, law = LAWS[name]
    total = sum((counts(4 * MILLION, SystemBits()) for _ in range(25)), np.zeros(len(law), int))
    assert goodness_of_fit(total.tolist(), law) > 1e-6


def biased(weights: list[int]) -> Callable[[int, BitSource], Counts]:
    """A mutant: the cells of a uniform law with one of them 2 % too likely."""

    def counts(size: int, bits: BitSource) -> Counts:
        return np.bincount(categorical(weights, size=size, bits=bits), minlength=len(weights))

    return counts


@pytest.mark.parametrize("cells", [5, 6, 7, 24])
@pytest.mark.parametrize("bias", [98, 102])
def test_a_cell_two_percent_off_is_rejected(cells: int, bias: int) -> None:
    counts = biased([bias, *[100] * (cells - 1)])(4 * MILLION, ReplayBits("bias"))
    assert goodness_of_fit(counts.tolist(), [1 / cells] * cells) < 1e-4


def test_a_weight_two_percent_off_is_rejected() -> None:
    _, law = LAWS["categorical"]
    for weights in ([102, 0, 200, 500, 800], [98, 0, 200, 500, 800]):
        counts = biased(weights)(4 * MILLION, ReplayBits("bias"))
        assert goodness_of_fit(counts.tolist(), law) < 1e-6


def test_bernoulli_exp_agrees_with_an_integer_only_sampler() -> None:
    slow = random.Random(8).randrange
    exponent = Fraction(3, 7)
    reference = [int(samplers.bernoulli_exp(exponent, slow)) for _ in range(50_000)]
    ours = bernoulli_exp(exponent, size=500_000, bits=ReplayBits("slow")).astype(int).tolist()
    assert two_sample(reference, ours) > 1e-3


@pytest.mark.parametrize("limit", [2**63, 2**63 + 1, 10**30])
def test_limits_on_both_sides_of_a_word_are_exact(limit: int) -> None:
    drawn = uniform_below_each([limit, 1, limit], bits=SystemBits()).tolist()
    assert drawn[1] == 0
    assert all(0 <= value < limit for value in drawn[::2])


def test_weights_that_sum_to_a_whole_word_are_exact() -> None:
    drawn = categorical([2**62, 2**62], size=20_000, bits=ReplayBits("word"))
    assert goodness_of_fit(np.bincount(drawn, minlength=2).tolist(), [0.5, 0.5]) > 1e-3


def coin_p_value(true: Fraction, drawn: Fraction) -> float:
    heads = int(bernoulli(drawn, size=MILLION, bits=ReplayBits("mutant")).sum())
    return float(binomtest(heads, MILLION, float(true)).pvalue)


def test_a_coin_two_percent_off_is_rejected() -> None:
    third = Fraction(1, 3)
    assert coin_p_value(third, third) > 1e-3
    assert coin_p_value(third, third * Fraction(98, 100)) < 1e-9
    assert coin_p_value(third, third * Fraction(102, 100)) < 1e-9


def exponential_coin_p_value(exponent: Fraction) -> float:
    heads = int(bernoulli_exp(exponent, size=MILLION, bits=ReplayBits("mutant")).sum())
    return float(binomtest(heads, MILLION, math.exp(-0.5)).pvalue)


def test_an_exponent_two_percent_off_is_rejected() -> None:
    assert exponential_coin_p_value(Fraction(1, 2)) > 1e-3
    assert exponential_coin_p_value(Fraction(49, 100)) < 1e-9
    assert exponential_coin_p_value(Fraction(51, 100)) < 1e-9


@pytest.mark.parametrize("limit", [1, 2, 3, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64, 2**200])
def test_uniform_below_stays_below_any_limit(limit: int) -> None:
    drawn = uniform_below(limit, size=300, bits=SystemBits()).tolist()
    assert all(isinstance(value, int) and 0 <= value < limit for value in drawn)
    if limit > 2**60:
        assert max(drawn) > limit * 3 // 4
        assert min(drawn) < limit // 4


def test_uniform_below_rejects_the_incomplete_cycle_instead_of_folding_it() -> None:
    """With limit 3·2^62 folding would make the first third twice as likely as it should be."""
    drawn = uniform_below(3 * 2**61, size=300_000, bits=ReplayBits("fold"))
    counts = [int(np.count_nonzero(drawn // 2**61 == third)) for third in range(3)]
    assert goodness_of_fit(counts, [1 / 3] * 3) > 1e-3


def test_the_largest_word_is_rejected_when_it_does_not_fill_a_cycle() -> None:
    tape = b"\xff" * 8 + (10).to_bytes(8, "little")
    assert uniform_below(3, size=1, bits=ReplayBits("t", tape=tape)).tolist() == [1]
    assert uniform_below(2, size=1, bits=ReplayBits("t", tape=tape)).tolist() == [1]


def test_big_uniforms_have_the_right_mean() -> None:
    drawn = uniform_below(10**60, size=20_000, bits=ReplayBits("big"))
    mean = float(sum(drawn.tolist()) / 10**60) / 20_000
    assert abs(mean - 0.5) < 5 * math.sqrt(1 / 12 / 20_000)


def test_each_limit_may_be_huge() -> None:
    drawn = uniform_below_each([1, 2**100, 5], bits=SystemBits()).tolist()
    assert drawn[0] == 0
    assert 0 <= drawn[1] < 2**100
    assert 0 <= drawn[2] < 5


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


def test_geometric_extremes() -> None:
    assert geometric(1, size=5, bits=SystemBits()).tolist() == [0] * 5
    huge = geometric(Fraction(1, 10**30), size=20, bits=SystemBits())
    assert huge.dtype == object
    assert max(huge.tolist()) > 10**28


def test_box_corners_are_included_and_may_be_huge() -> None:
    bits = ReplayBits("box")
    drawn = np.array([uniform_in_box([-1, 5], [1, 6], bits=bits) for _ in range(300)])
    assert set(map(tuple, drawn.tolist())) == set(itertools.product([-1, 0, 1], [5, 6]))
    wide = uniform_in_box([-(2**63), -(10**40)], [2**63 - 1, 10**40], bits=SystemBits())
    assert -(2**63) <= wide[0] < 2**63
    assert abs(wide[1]) <= 10**40


def multiset_p_value(draws: int, bits: BitSource) -> float:
    cells = list(itertools.combinations_with_replacement(range(3), 2))
    counts = Counter(tuple(uniform_multiset(3, size=2, bits=bits).tolist()) for _ in range(draws))
    return goodness_of_fit([counts[cell] for cell in cells], [1 / len(cells)] * len(cells))


def test_a_million_multisets_are_all_alike() -> None:
    assert multiset_p_value(MILLION, ReplayBits("multiset")) > 1e-3


@pytest.mark.slow
def test_millions_of_multisets_are_all_alike() -> None:
    assert multiset_p_value(3_000_000, SystemBits()) > 1e-6


def test_rows_drawn_independently_are_not_a_uniform_multiset() -> None:
    """The mistake the test must see: {0, 1} would be twice as likely as {0, 0}."""
    pairs = np.sort(uniform_below(3, size=400_000, bits=ReplayBits("iid")).reshape(-1, 2), axis=1)
    counts = Counter(map(tuple, pairs.tolist()))
    cells = list(itertools.combinations_with_replacement(range(3), 2))
    assert goodness_of_fit([counts[cell] for cell in cells], [1 / 6] * 6) < 1e-9


def subset_p_value(places: int, size: int, draws: int, bits: BitSource) -> float:
    drawn = (uniform_subset(places, size=size, bits=bits) for _ in range(draws))
    counts = Counter(tuple(sorted(subset.tolist())) for subset in drawn)
    cells = list(itertools.combinations(range(places), size))
    assert set(counts) <= set(cells)
    return goodness_of_fit([counts[cell] for cell in cells], [1 / len(cells)] * len(cells))


@pytest.mark.parametrize(("places", "size"), [(4, 1), (5, 2), (6, 3), (5, 3), (5, 4), (8, 4)])
def test_all_subsets_are_alike(places: int, size: int) -> None:
    assert subset_p_value(places, size, 40_000, ReplayBits(f"{size} of {places}")) > 1e-3


@pytest.mark.slow
def test_a_million_subsets_are_all_alike() -> None:
    assert subset_p_value(6, 3, MILLION, SystemBits()) > 1e-6


def test_keeping_the_smallest_draws_is_not_a_uniform_subset() -> None:
    """The mistake the test must see: surplus draws may not be dropped by their values."""
    drawn = uniform_below(5, size=120_000, bits=ReplayBits("smallest")).reshape(-1, 3)
    kept = [sorted(set(row))[:2] for row in drawn.tolist()]
    counts = Counter(tuple(pair) for pair in kept if len(pair) == 2)
    cells = list(itertools.combinations(range(5), 2))
    assert goodness_of_fit([counts[cell] for cell in cells], [1 / 10] * 10) < 1e-9


def test_a_subset_draws_on_while_its_draws_are_equal() -> None:
    """Hundreds of zero words, all the same place: the rest of the subset comes later, uniformly."""
    others = Counter(
        min(set(uniform_subset(9, size=2, bits=ReplayBits(str(i), tape=bytes(800))).tolist()) - {0})
        for i in range(8000)
    )
    assert goodness_of_fit([others[place] for place in range(1, 9)], [1 / 8] * 8) > 1e-3


@pytest.mark.parametrize(("places", "size"), [(0, 0), (5, 0), (1, 1), (3, 3)])
def test_trivial_subsets_take_no_bits(places: int, size: int) -> None:
    bits = ReplayBits("none", tape=b"tape")
    assert uniform_subset(places, size=size, bits=bits).tolist() == list(range(size))
    assert bits.read(4) == b"tape"


@pytest.mark.parametrize("size", [2000, 50_000, 99_000])
def test_places_of_a_large_subset_are_different_and_spread_out(size: int) -> None:
    drawn = uniform_subset(100_000, size=size, bits=ReplayBits("large"))
    assert len(np.unique(drawn)) == len(drawn) == size
    assert drawn.min() >= 0
    assert drawn.max() < 100_000
    below = np.count_nonzero(drawn < 50_000)  # hypergeometric
    deviation = math.sqrt(size / 4 * (1 - size / 100_000))
    assert abs(below - size / 2) < 5 * deviation


@pytest.mark.parametrize(("universe", "size"), [(1, 5), (5, 0), (2**40, 1000), (2**100, 3)])
def test_multiset_extremes(universe: int, size: int) -> None:
    drawn = uniform_multiset(universe, size=size, bits=SystemBits()).tolist()
    assert len(drawn) == size
    assert drawn == sorted(drawn)
    assert all(0 <= item < universe for item in drawn)


def test_large_multisets_have_the_right_mean() -> None:
    """Bose-Einstein: the number of copies of one of two items is uniform on 0..m."""
    ones = [int(uniform_multiset(2, size=9, bits=ReplayBits(f"m{i}")).sum()) for i in range(20_000)]
    counts = np.bincount(ones, minlength=10).tolist()
    assert goodness_of_fit(counts, [1 / 10] * 10) > 1e-3


def test_categorical_weights_may_be_huge() -> None:
    drawn = categorical([10**40, 0, 10**40], size=2000, bits=ReplayBits("huge"))
    counts = np.bincount(drawn, minlength=3).tolist()
    assert counts[1] == 0
    assert goodness_of_fit(counts, [0.5, 0.0, 0.5]) > 1e-3


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
        ("success", lambda: geometric(0, size=1, bits=BITS)),
        ("success", lambda: geometric(2, size=1, bits=BITS)),
        ("upper", lambda: uniform_in_box([0, 0], [1], bits=BITS)),
        ("upper", lambda: uniform_in_box([0], [-1], bits=BITS)),
        ("lower", lambda: uniform_in_box(np.zeros((1, 1), dtype=int), [1], bits=BITS)),
        ("universe", lambda: uniform_multiset(0, size=1, bits=BITS)),
        ("places", lambda: uniform_subset(-1, size=0, bits=BITS)),
        ("size", lambda: uniform_subset(3, size=4, bits=BITS)),
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
