"""What is drawn has the law that is claimed: noise, gaps, keys of a universe, lists of options."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.stats import binom, chi2_contingency

from mechanisms.exact_laws import joint_law, lack, noise_pmf, noise_tail
from reference.chi_square import goodness_of_fit, tally
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.logs import precision
from zerodelta.exact.noise import asymmetric_noise, log_below, sparse_ranks
from zerodelta.mechanisms import key_noise as noisy_top
from zerodelta.mechanisms.key_noise import KeyNoise, NoisyTop, UnknownKeys, largest_gap, lost_at
from zerodelta.mechanisms.selection import JointTopK, _Lists
from zerodelta.spaces.keys import CodeKeys, ProductKeys, RangeKeys, TextKeys

UP, DOWN = Fraction(7, 10), Fraction(3, 10)
LEAST = 1e-4
"""Below this p-value a test fails; bits are replayed, so it never changes by itself."""


def value(number: Any) -> float:
    return float(number.ball().mid())


def whole_below(number: arb) -> int:
    """The largest integer below a number that is none."""
    found = number.floor().unique_fmpz()
    assert found is not None
    return int(found)


def test_the_noise_has_its_law() -> None:
    drawn = asymmetric_noise(up=UP, down=DOWN, size=100_000, bits=ReplayBits("asymmetric"))
    inside = [value(noise_pmf(z, UP, DOWN)) for z in range(-12, 9)]
    law = [1 - value(noise_tail(-12, UP, DOWN)), *inside, value(noise_tail(9, UP, DOWN))]
    assert goodness_of_fit(tally(drawn.tolist(), -12, 8), law) > LEAST


@pytest.mark.parametrize("least", [-9, -1, 0, 1, 2, 40])
def test_chances_of_thresholds_are_those_of_the_law(least: int) -> None:
    noise = KeyNoise(up=UP, down=DOWN)
    with precision(256):
        tail = noise_tail(least, UP, DOWN).ball()
        assert log_below(least, up=UP, down=DOWN).overlaps((1 - tail).log())
        assert math.isclose(noise.passes(least), float(tail.mid()), rel_tol=1e-12)


@pytest.mark.parametrize(("up", "down"), [("1/2", "1/2"), ("3/4", "1/8"), ("1/50", 2), (3, "1/9")])
def test_median_and_error_are_those_of_the_law(up: Any, down: Any) -> None:
    noise = KeyNoise(up=Fraction(up), down=Fraction(down))
    far = np.arange(-3000, 3001)
    law = np.array([noise.passes(int(z)) - noise.passes(int(z) + 1) for z in far])
    below = np.cumsum(law)
    assert far[np.argmax(below >= 0.5 - 1e-12)] == noise.median
    assert math.isclose(noise.error, float(np.abs(far - noise.median) @ law), rel_tol=1e-6)


@pytest.mark.parametrize("rates", [("1/1000", "1/300"), ("1/300", "1/1000"), ("1/500", "1/500")])
def test_the_error_of_very_small_rates_is_that_of_continuous_noise(rates: tuple[str, str]) -> None:
    """With rates a >= b the noise is below m = -ln(2a/(a+b))/b half of the time; E|Z-m| = 1/a-m."""
    up, down = (Fraction(rate) / 10**6 for rate in rates)
    slow, fast = sorted((float(up), float(down)))
    limit = 1 / fast + math.log(2 * fast / (fast + slow)) / slow
    assert math.isclose(KeyNoise(up=up, down=down).error, limit, rel_tol=1e-6)


# Gaps.


def test_gaps_give_every_subset_its_probability() -> None:
    chance, bits = 0.3, ReplayBits("subsets")
    rate = -math.log1p(-chance)
    found = Counter(tuple(sparse_ranks(4, lambda: arb(rate), bits)) for _ in range(20_000))
    subsets = [s for size in range(5) for s in itertools.combinations(range(4), size)]
    law = [chance ** len(s) * (1 - chance) ** (4 - len(s)) for s in subsets]
    assert goodness_of_fit([found[s] for s in subsets], law) > LEAST


def test_gaps_in_a_universe_of_1024_keys_are_those_of_brute_force() -> None:
    """How many are in, and which: each rank by itself, binomially many together."""
    chance, runs, bits = 1 / 300, 6000, ReplayBits("1024")
    rate = -math.log1p(-chance)
    drawn = [list(sparse_ranks(1024, lambda: arb(rate), bits)) for _ in range(runs)]
    numbers = tally(map(len, drawn), 0, 12)
    law = binom.pmf(range(13), 1024, chance)
    assert goodness_of_fit(numbers, [0.0, *law, 1 - sum(law)]) > LEAST
    ranks = np.bincount([rank for each in drawn for rank in each], minlength=1024)
    assert goodness_of_fit(ranks.tolist(), [1 / 1024] * 1024) > LEAST
    assert all(each == sorted(set(each)) for each in drawn)


def test_gaps_of_any_number_of_bits_are_uniform() -> None:
    """About one of 2^256 ranks: sixteen equal parts of them are hit alike."""
    size, bits = 1 << 256, ReplayBits("256 bits")
    drawn = [r for _ in range(2000) for r in sparse_ranks(size, lambda: arb(2) ** -256, bits)]
    assert goodness_of_fit(np.bincount([r >> 252 for r in drawn]).tolist(), [1 / 16] * 16) > LEAST
    low = np.bincount([r & 15 for r in drawn], minlength=16)
    assert goodness_of_fit(low.tolist(), [1 / 16] * 16) > LEAST


def test_a_gap_that_is_not_decided_yet_is_not_thrown_away() -> None:
    """A uniform next to e^-2: whether the gap is 1 or 2 is said by the next bits; both are in."""
    with precision(256):
        word = whole_below(arb(-2).exp() * arb(2) ** 64).to_bytes(8, "little")
    found = {
        next(sparse_ranks(3, lambda: arb(1), ReplayBits("gap", tape=word + more)))
        for more in (bytes(8), b"\xff" * 8)
    }
    assert found == {1, 2}


# Keys.

UNIVERSES = [
    TextKeys(alphabet="ab", length=4),
    RangeKeys(lower=-5, upper=11),
    CodeKeys(labels=["x", "y", "z"]),
    ProductKeys(
        parts=(
            TextKeys(alphabet="abc", length=2),
            CodeKeys(labels=("p", "q")),
            RangeKeys(lower=3, upper=5),
        )
    ),
]


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda each: type(each).__name__)
def test_places_and_keys_are_one_to_one(universe: Any) -> None:
    places = [
        (group, rank) for group, each in enumerate(universe.classes) for rank in range(each.size)
    ]
    keys = [universe.key(place) for place in places]
    assert [universe.place(key) for key in keys] == places
    assert len(set(keys)) == universe.size == len(places)
    assert sum(each.share for each in universe.classes) == 1
    assert len({universe.published(key) for key in keys}) == universe.size


COUNTS = {3: 4, 700: 1, 1023: 9}


def brute_force(found: UnknownKeys, bits: ReplayBits) -> list[tuple[int, int]]:
    """Noise for each of the 1024 keys, one by one."""
    counts = np.zeros(1024, dtype=np.int64)
    for key, count in COUNTS.items():
        counts[key] = count
    noisy = found.noise.apply(counts, bits)
    return [(key, int(noisy[key])) for key in np.flatnonzero(noisy >= found.thresholds[0]).tolist()]


def test_keys_of_a_universe_of_1024_are_published_as_if_it_were_listed() -> None:
    """Against brute force: which keys, how many, with which numbers."""
    universe = RangeKeys(lower=0, upper=1023)
    found = UnknownKeys.for_epsilon(epsilon=2, universe=universe, false_keys=4)
    gaps, listed = ReplayBits("by gaps"), ReplayBits("listed")
    ours = [found.apply(COUNTS, gaps) for _ in range(2500)]
    theirs = [brute_force(found, listed) for _ in range(2500)]

    def alike(one: list[int], two: list[int], most: int) -> float:
        table = np.stack([np.bincount(np.minimum(x, most), minlength=most + 1) for x in (one, two)])
        table = table[:, table.sum(axis=0) >= 20]
        return float(chi2_contingency(table).pvalue)

    def numbers(runs: list[Any]) -> list[int]:
        return [len([key for key, _ in run if key not in COUNTS]) for run in runs]

    def heights(runs: list[Any]) -> list[int]:
        base = found.thresholds[0]
        return [count - base for run in runs for key, count in run if key not in COUNTS]

    assert alike(numbers(ours), numbers(theirs), 12) > LEAST
    assert alike(heights(ours), heights(theirs), 8) > LEAST
    for key in COUNTS:
        own = [dict(run).get(key, found.thresholds[0] - 1) for run in ours]
        other = [dict(run).get(key, found.thresholds[0] - 1) for run in theirs]
        assert alike(own, other, 16) > LEAST
    unseen = [key for run in ours for key, _ in run if key not in COUNTS]
    each = np.delete(np.bincount(unseen, minlength=1024), list(COUNTS))
    assert goodness_of_fit(each.tolist(), [1 / 1021] * 1021) > LEAST


def test_a_key_that_occurs_is_never_published_twice() -> None:
    universe = RangeKeys(lower=0, upper=7)
    noise = KeyNoise.symmetric(epsilon="1/10")
    found = UnknownKeys(universe=universe, noise=noise, thresholds=(1,))
    bits = ReplayBits("twice")
    for _ in range(50):
        keys = [key for key, _ in found.apply(dict.fromkeys(range(8), 1000), bits)]
        assert keys == list(range(8))


def test_keys_are_published_in_the_order_of_the_universe() -> None:
    """Whatever the order of the rows was, and whether a key occurs or not."""
    universe = TextKeys(alphabet="abcdefgh", length=3)
    noise = KeyNoise.symmetric(epsilon="1/2")
    found = UnknownKeys(universe=universe, noise=noise, thresholds=(6, 6, 6))
    counts = {"hhh": 60, "b": 70, "aa": 80, "a": 90, "ha": 95}
    for order in itertools.permutations(counts):
        keys = [key for key, _ in found.apply({k: counts[k] for k in order}, ReplayBits("order"))]
        assert set(counts) <= set(keys)
        assert keys == sorted(keys, key=lambda key: (len(key), key))


def test_false_keys_are_as_many_as_forecast() -> None:
    names = TextKeys(alphabet="abcdefghijklmnopqrstuvwxyz", length=12)
    for wanted in (Fraction(1, 2), 5):
        found = UnknownKeys.for_epsilon(epsilon=1, universe=names, false_keys=wanted)
        assert found.false_keys <= wanted
        bits, runs = ReplayBits("false keys"), 400
        number = sum(len(found.apply({}, bits)) for _ in range(runs))
        expected = runs * found.false_keys
        assert abs(number - expected) < 5 * math.sqrt(expected)


# The largest of known keys.

SEEN, FREQUENT = np.array([1, 4]), np.array([2, 5])


def search_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw noise only where it may win, however few the keys are."""
    monkeypatch.setattr(noisy_top, "_DENSE", 0)
    monkeypatch.setattr(noisy_top, "_CROWD", 0)


def winner_law(noise: KeyNoise, size: int) -> list[float]:
    """P(each key has the largest noisy count, the first of those tied), in floats."""
    counts = np.zeros(size, dtype=int)
    counts[SEEN] = FREQUENT
    numbers = range(-80, 120)
    at_least = [[noise.passes(v - c) for v in (*numbers, 120)] for c in counts]
    law = []
    for i in range(size):
        total = 0.0
        for n in range(len(numbers)):
            here = at_least[i][n] - at_least[i][n + 1]
            for j in range(size):
                if j != i:
                    here *= 1 - (at_least[j][n] if j < i else at_least[j][n + 1])
            total += here
        law.append(total)
    return law


@pytest.mark.parametrize("epsilon", ["1/2", 3])
@pytest.mark.parametrize("searched", [False, True])
def test_the_largest_has_the_law_of_all_noisy_counts(
    monkeypatch: pytest.MonkeyPatch, searched: bool, epsilon: Any
) -> None:
    """Whether noise is drawn for all keys, or only where it may win; ties go to the first."""
    if searched:
        search_for_all(monkeypatch)
    noise = KeyNoise.for_epsilon(epsilon=epsilon, log_keys=2.0)
    top, bits = NoisyTop(noise=noise, size=11, k=1), ReplayBits("the largest")
    found = Counter(top.apply(SEEN, FREQUENT, bits)[0][0] for _ in range(3000))
    law = winner_law(noise, 11)
    assert abs(sum(law) - 1) < 1e-9
    shares = [each / sum(law) for each in law]
    assert goodness_of_fit([found[i] for i in range(11)], shares) > LEAST


@pytest.mark.parametrize(
    ("noise", "size", "k", "keys", "counts"),
    [
        (KeyNoise.for_epsilon(epsilon=1, log_keys=2.0), 9, 2, SEEN, FREQUENT),
        # the last of six occurs once: with its noise it is often tied with others at 0
        (KeyNoise(up=Fraction(2), down=Fraction(1, 2)), 6, 1, np.array([5]), np.array([1])),
        (KeyNoise(up=Fraction(2), down=Fraction(1, 2)), 6, 2, np.array([5]), np.array([1])),
    ],
)
def test_a_search_has_the_law_of_noise_on_all(
    monkeypatch: pytest.MonkeyPatch, noise: KeyNoise, size: int, k: int, keys: Any, counts: Any
) -> None:
    """Among those that are tied, a key that occurs wins no more often than one that does not."""
    top, bits, runs = NoisyTop(noise=noise, size=size, k=k), ReplayBits("tied"), 4000
    listed = Counter(tuple(top.apply(keys, counts, bits)) for _ in range(runs))
    search_for_all(monkeypatch)
    search = Counter(tuple(top.apply(keys, counts, bits)) for _ in range(runs))
    found = [each for each in listed | search if listed[each] + search[each] >= 20]
    table = np.array([[each[one] for one in found] for each in (listed, search)])
    assert chi2_contingency(table).pvalue > LEAST
    assert len(found) > 8


def test_a_search_that_lowers_its_bar_often_finds_the_largest_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve keys that rarely have noise above 0: what they missed before is taken into account."""
    search_for_all(monkeypatch)
    noise = KeyNoise(up=Fraction(5), down=Fraction(1, 20))
    top, none = NoisyTop(noise=noise, size=12, k=1), np.zeros(0, dtype=np.int64)
    bits = ReplayBits("lowered")
    found = [top.apply(none, none, bits)[0][1] for _ in range(3000)]
    below = [(1 - noise.passes(v)) ** 12 for v in range(-9, 2)]  # P(the largest < v)
    law = [below[0], *np.diff(below), 1 - below[-1]]
    assert goodness_of_fit(tally(found, -9, 0), law) > LEAST


@pytest.mark.parametrize("size", [2, 20])
@pytest.mark.parametrize("up", [Fraction(4, 5), Fraction(1, 2)])
def test_wherever_a_search_begins_it_finds_the_largest_number(
    monkeypatch: pytest.MonkeyPatch, up: Fraction, size: int
) -> None:
    """A bar that is too high falls by two, or three, and by one below 1, where the law turns."""
    search_for_all(monkeypatch)
    monkeypatch.setattr(KeyNoise, "threshold", lambda self, log_keys: 7)
    noise, none = KeyNoise(up=up, down=Fraction(1, 4)), np.zeros(0, dtype=np.int64)
    top, bits = NoisyTop(noise=noise, size=size, k=1), ReplayBits("too high")
    found = [top.apply(none, none, bits)[0][1] for _ in range(1200)]
    first = -6 if size == 2 else 0
    below = [(1 - noise.passes(v)) ** size for v in range(first, 9)]  # P(the largest < v)
    law = [below[0], *np.diff(below), 1 - below[-1]]
    assert goodness_of_fit(tally(found, first, 7), law) > LEAST


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(100)])
@pytest.mark.parametrize("k", [1, 3])
def test_a_search_ends_in_any_universe(rate: Fraction, k: int) -> None:
    """Hardly any noise, with ties without end, and very much of it."""
    top = NoisyTop(noise=KeyNoise(up=rate, down=rate), size=1 << 53, k=k)
    for keys in (np.zeros(0, dtype=np.int64), np.arange(5)):
        found = top.apply(keys, np.full(len(keys), 3), ReplayBits("ends"))
        assert len({key for key, _ in found}) == k
        assert [count for _, count in found] == sorted((c for _, c in found), reverse=True)


@pytest.mark.parametrize(("rivals", "gap"), [(9, 3), (999, 10), (999, 16)])
def test_forecast_of_a_lost_place_is_what_is_measured(rivals: int, gap: int) -> None:
    noise = KeyNoise.for_epsilon(epsilon=1, log_keys=math.log(rivals + 1))
    counts = np.full(rivals + 1, 50)
    counts[-1] += gap  # ties are lost
    top, bits = NoisyTop(noise=noise, size=rivals + 1, k=1), ReplayBits("forecast")
    runs = 2000
    keys = np.arange(rivals + 1)
    lost = sum(top.apply(keys, counts, bits)[0][0] != rivals for _ in range(runs)) / runs
    assert abs(lost - lost_at(noise, rivals, gap)) < 5 * math.sqrt(0.25 / runs)
    assert gap * lost_at(noise, rivals, gap) <= 1.01 * largest_gap(noise, rivals)


# Lists of options.

SCORES: list[list[Any]] = [[5, 5, 5, 5], [0, 3, 3, 7], [2, 1, 0, 4], [Fraction(1, 2), 0, 3, 3]]


@pytest.mark.parametrize("scores", SCORES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_lists_are_counted_by_what_they_lack(scores: list[Any], k: int) -> None:
    ranked = sorted(map(Fraction, scores), reverse=True)
    lists = _Lists(ranked, k)
    lacks = Counter(lack(ranked, chosen) for chosen in itertools.permutations(range(4), k))
    found = {level * lists.unit: lists.number(level) for level in lists.levels()}
    for level, number in found.items():
        assert number == sum(n for lacked, n in lacks.items() if lacked <= level)
    assert set(lacks) <= set(found)
    assert lists.total == sum(lacks.values())


@pytest.mark.parametrize("scores", SCORES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_lists_are_drawn_with_their_law(scores: list[Any], k: int) -> None:
    joint = JointTopK(k=k, sensitivity=Fraction(1), scale=Fraction(3, 2))
    law = joint_law(scores, k, joint.scale)
    bits = ReplayBits(f"lists {scores} {k}")
    found = Counter(tuple(joint.select(scores, bits)) for _ in range(3000))
    chances = [value(chance) for chance in law.values()]
    assert goodness_of_fit([found[chosen] for chosen in law], chances) > LEAST


def test_a_list_that_is_hardly_ever_drawn_is_drawn_then() -> None:
    """The worse of two options has the last e^-30 of the uniforms: less than is looked at first."""
    one = JointTopK(k=1, sensitivity=Fraction(1), scale=Fraction(1))
    word = (2**64 - 2**14).to_bytes(8, "little")  # 1 - 2^-50, and e^-30 is 2^-43.3
    assert one.select([30, 0], ReplayBits("rare", tape=word)) == [1]
    assert one.select([40, 0], ReplayBits("rare", tape=word)) == [0]


def test_where_a_uniform_does_not_tell_two_lists_apart_more_of_it_is_read() -> None:
    one = JointTopK(k=1, sensitivity=Fraction(1), scale=Fraction(1))
    with precision(256):
        border = 1 / (1 + arb(-1).exp()) * arb(2) ** 64
        word = whole_below(border).to_bytes(8, "little")
    assert one.select([1, 0], ReplayBits("border", tape=word + bytes(8))) == [0]
    assert one.select([1, 0], ReplayBits("border", tape=word + b"\xff" * 8)) == [1]


def test_no_more_options_are_chosen_than_there_are() -> None:
    joint = JointTopK.for_epsilon(epsilon=1, k=5, sensitivity=1)
    assert sorted(joint.select([1, 2, 0], ReplayBits("all"))) == [0, 1, 2]


def test_large_scores_decide() -> None:
    joint = JointTopK.for_epsilon(epsilon=1, k=3, sensitivity=1)
    scores = [10**300 * i for i in range(50)]
    assert joint.select(scores, ReplayBits("large")) == [49, 48, 47]
    assert len(joint.select([0] * 5000, ReplayBits("tied"))) == 3
