"""Noisy argmax has exactly the law of the exponential mechanism and of permute-and-flip."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from reference import probabilities
from reference.chi_square import goodness_of_fit
from zerodelta.errors import ParameterError
from zerodelta.exact import argmax, float_balls
from zerodelta.exact.argmax import exponential_argmax, gumbel_argmax
from zerodelta.exact.bits import ArbBalls, BitSource, BitStrings, Draw, ReplayBits, SystemBits
from zerodelta.exact.logs import precision

Sampler = Callable[..., Any]
Probabilities = Callable[..., Sequence[Any]]

LAWS: list[tuple[Sampler, Probabilities]] = [
    (gumbel_argmax, probabilities.exponential_mechanism),
    (exponential_argmax, probabilities.permute_and_flip),
]
EACH = pytest.mark.parametrize(("sampler", "law"), LAWS, ids=["exponential", "permute-and-flip"])
SCORES = [3, 1, 4, 1, -5, 4]


def p_value(
    sampler: Sampler, law: Probabilities, scale: Fraction, size: int, bits: BitSource
) -> float:
    """Fit at scale 2 of draws made at `scale`."""
    drawn = sampler(SCORES, scale=scale, size=size, bits=bits)
    counts = np.bincount(drawn, minlength=len(SCORES)).tolist()
    return goodness_of_fit(counts, [float(p) for p in law(SCORES, 2)])


@EACH
def test_a_million_choices_follow_the_exact_law(sampler: Sampler, law: Probabilities) -> None:
    assert p_value(sampler, law, Fraction(2), 1_000_000, ReplayBits("choice")) > 1e-3


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("factor", [Fraction(98, 100), Fraction(102, 100)])
def test_a_scale_two_percent_off_is_rejected(
    sampler: Sampler, law: Probabilities, factor: Fraction
) -> None:
    assert p_value(sampler, law, 2 * factor, 1_000_000, ReplayBits("choice")) < 1e-9


@pytest.mark.slow
@EACH
def test_a_hundred_million_choices_follow_the_exact_law(
    sampler: Sampler, law: Probabilities
) -> None:
    assert p_value(sampler, law, Fraction(2), 10**8, SystemBits()) > 1e-6


@EACH
def test_the_slow_path_alone_chooses_the_same(
    sampler: Sampler, law: Probabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = sampler(SCORES, scale=2, size=300, bits=ReplayBits("slow"))
    monkeypatch.setattr(float_balls, "KERNEL_ERROR", 1e300)
    slow = sampler(SCORES, scale=2, size=300, bits=ReplayBits("slow"))
    assert fast.tolist() == slow.tolist()


@EACH
def test_ties_of_the_first_words_are_broken_by_later_ones(
    sampler: Sampler, law: Probabilities
) -> None:
    """Equal scores with equal first words: the extension decides, each item its own string."""
    same = (12345678901234567890).to_bytes(8, "little")
    wins = []
    for i in range(200):
        wins.append(
            int(sampler([7, 7], scale=1, size=1, bits=ReplayBits(str(i), tape=2 * same))[0])
        )
    assert 60 < sum(wins) < 140


@EACH
def test_scores_longer_than_a_block_follow_the_law_too(
    sampler: Sampler, law: Probabilities
) -> None:
    """20 000 equal scores: the winner is uniform, also across blocks."""
    scores = np.zeros(20_000, dtype=np.int64)
    drawn = sampler(scores, scale=3, size=500, bits=ReplayBits("long"))
    counts = np.bincount(drawn // 1000, minlength=20).tolist()
    assert goodness_of_fit(counts, [1 / 20] * 20) > 1e-3


@EACH
def test_extreme_scores_do_not_wrap_around(sampler: Sampler, law: Probabilities) -> None:
    """Nor does one alone, or the last of many, lose."""
    many = np.zeros(10_000, dtype=np.int64)
    many[-1] = 10**12
    for scores in (
        [5],
        many,
        np.array([-(2**63), 2**63 - 1]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
        [-(10**400), 10**400],
        [Fraction(1, 3), Fraction(10**50, 7)],
    ):
        last = len(scores) - 1
        drawn = sampler(scores, scale=10**9, size=3, bits=SystemBits())
        assert drawn.tolist() == [last] * 3


def test_rational_scores_are_exact() -> None:
    halves = [Fraction(score, 2) for score in SCORES]
    ours = gumbel_argmax(halves, scale=1, size=500, bits=ReplayBits("half"))
    doubled = gumbel_argmax(SCORES, scale=2, size=500, bits=ReplayBits("half"))
    assert ours.tolist() == doubled.tolist()


@pytest.mark.parametrize(
    ("name", "scores", "scale"),
    [
        ("scores", [], 1),
        ("scores", [0.5, 1.0], 1),
        ("scores", np.array([0.5, 1.0]), 1),
        ("scores", np.zeros((2, 2), dtype=np.int64), 1),
        ("scores", "abc", 1),
        ("scores", [True, False], 1),
        ("scores", 7, 1),
        ("scale", [1, 2], 0),
        ("scale", [1, 2], -3),
    ],
)
def test_bad_parameters_are_named(name: str, scores: Any, scale: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name}(:| =) "):
        gumbel_argmax(scores, scale=scale, size=1, bits=SystemBits())


@EACH
@pytest.mark.parametrize("members", [[5, 1, 2], [1, 1, 1], [9, 1, 4]])
def test_members_of_equal_score_act_as_one(
    sampler: Sampler, law: Probabilities, members: list[int]
) -> None:
    scores = [0, 3, 1]
    pairs = zip(scores, members, strict=True)
    expanded = [score for score, count in pairs for _ in range(count)]
    exact, expected, start = law(expanded, 2), [], 0
    for count in members:
        expected.append(sum(float(p) for p in exact[start : start + count]))
        start += count
    drawn = sampler(
        scores, scale=2, size=200_000, bits=ReplayBits("members"), members=np.array(members)
    )
    assert goodness_of_fit(np.bincount(drawn, minlength=3).tolist(), expected) > 1e-3


@EACH
def test_the_slow_path_alone_chooses_the_same_among_members(
    sampler: Sampler, law: Probabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trillion options share a score: 1 - U^(1/m) cancels in floats, and must not matter."""
    members = np.array([2**40, 1, 2**20, 7])
    options: dict[str, Any] = {"scale": 2, "size": 200, "members": members}
    fast = sampler([0, 40, 20, 30], **options, bits=ReplayBits("slow members"))
    monkeypatch.setattr(float_balls, "KERNEL_ERROR", 1e300)
    slow = sampler([0, 40, 20, 30], **options, bits=ReplayBits("slow members"))
    assert fast.tolist() == slow.tolist()
    assert len(set(fast.tolist())) > 1


@EACH
@pytest.mark.parametrize(
    "members", [[0, 1], [1, 0], [-1, 2], [1], [1, 1, 1], [[1, 1]], [1.0, 2.0], [True, True], ["1"]]
)
def test_members_that_are_no_counts_are_refused(
    sampler: Sampler, law: Probabilities, members: Any
) -> None:
    """A score of no option has no noise: choosing it would go on forever."""
    for given in (members, np.array(members)):
        with pytest.raises(ParameterError, match=r"^members = .*one for each score"):
            sampler([3, 4], scale=1, size=1, bits=SystemBits(), members=given)
    drawn = sampler([0, 99], scale=1, size=2, bits=SystemBits(), members=[3, 4])
    assert drawn.tolist() == [1, 1]


@EACH
@pytest.mark.parametrize("grouped", [False, True])
def test_far_blocks_are_beaten_without_their_noise_and_only_if_no_word_is_extreme(
    sampler: Sampler, law: Probabilities, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits choose the same score; far blocks are evaluated if a word is all 0s or 1s."""
    scores = -np.arange(40_000)
    seen: list[int] = []
    whole = argmax._Contest._values

    def counted(self: Any, start: int, block: Any, words: Any) -> Any:
        seen.append(start)
        return whole(self, start, block, words)

    monkeypatch.setattr(argmax._Contest, "_values", counted)
    options: dict[str, Any] = {"scale": 50, "size": 1}
    if grouped:
        options["members"] = np.full(40_000, 2**40)
    quick = [int(sampler(scores, **options, bits=ReplayBits(str(i)))[0]) for i in range(20)]
    assert set(seen) == {0}
    for extreme in (b"\x00" * 8, b"\xff" * 8):
        seen.clear()
        tape = ReplayBits("near").read(8 * 20_000) + extreme
        sampler(scores, **options, bits=ReplayBits("tail", tape=tape))
        assert seen == [0, 2 * 8192]
    monkeypatch.setattr(argmax, "_LARGEST_NOISE", float("inf"))
    slow = [int(sampler(scores, **options, bits=ReplayBits(str(i)))[0]) for i in range(20)]
    assert quick == slow
    assert len(set(quick)) > 1


@pytest.mark.parametrize("members", [1, 2, 2**40, 2**62])
def test_no_noise_of_an_ordinary_word_is_larger_than_the_bound(members: int) -> None:
    words = np.array([1, 2, 2**63, 2**64 - 3, 2**64 - 2], dtype=np.uint64)
    uniforms = float_balls.FloatBalls.uniform(words)
    count = float_balls.FloatBalls(np.array(float(members)), np.array(0.0))
    for formula in (argmax._gumbel, argmax._exponential):
        with precision(4096):
            strings = [ArbBalls.uniform([int(word)], 64) for word in words]
            for given in ((), (ArbBalls.of([arb(members)]),)):
                for string in strings:
                    assert bool(formula(string, *given).values[0] < argmax._LARGEST_NOISE)
        with np.errstate(all="ignore"):
            assert np.nanmax(formula(uniforms, count).middle) < argmax._LARGEST_NOISE


# Draws that happen once in 2^64: the words are given.

ZEROS, ONES = bytes(8), b"\xff" * 8
MIDDLE = bytes(7) + b"\x80"


@pytest.mark.parametrize(
    ("sampler", "largest"), [(gumbel_argmax, ONES), (exponential_argmax, ZEROS)]
)
def test_noise_that_floats_cannot_bound_still_wins(sampler: Sampler, largest: bytes) -> None:
    """Its ball is unknown (NaN or infinite), which is not the same as beaten."""
    for place in range(3):
        for members, word in ((None, largest), (np.ones(3, dtype=np.int64), ONES)):
            words = [MIDDLE, MIDDLE, MIDDLE]
            words[place] = word
            bits = ReplayBits("unbounded", tape=b"".join(words))
            drawn = sampler([0, 0, 0], scale=1, size=1, bits=bits, members=members)
            assert drawn.tolist() == [place]


def test_two_noises_that_begin_alike_are_compared_by_what_follows() -> None:
    """The smaller uniform has the larger exponential noise."""
    draw = Draw(uniforms=1, outputs=1, formula=argmax._exponential)
    contest = argmax._Contest(np.zeros(2, np.uint64), Fraction(1), argmax._exponential, None)
    for first, second in ((ZEROS, ONES), (ONES, ZEROS)):
        word = np.array([1 << 63], dtype=np.uint64)
        one, two = (argmax._Survivor(i, 0, BitStrings(word), draw) for i in range(2))
        bits = ReplayBits("alike", tape=first + second)
        assert contest.beats(one, two, bits) is (first == ZEROS)


def test_gaps_beyond_floats_are_those_that_were_meant() -> None:
    """At a scale of 2^1000 a gap of 2^1001 is one of 2."""
    bits, size = ReplayBits("beyond floats"), 4000
    drawn = gumbel_argmax([0, -(2**1001)], scale=2**1000, size=size, bits=bits)
    counts = np.bincount(drawn, minlength=2).tolist()
    assert (
        goodness_of_fit(counts, [float(p) for p in probabilities.exponential_mechanism([2, 0], 1)])
        > 1e-3
    )


@EACH
@pytest.mark.parametrize("scores", [[0], [-50, 0, -1]])
def test_each_of_the_few_that_are_only_bounded_may_win(
    sampler: Sampler, law: Probabilities, scores: list[int]
) -> None:
    """The bound is far above most of them: all are looked at, each with its own noise."""
    bits, size = ReplayBits(f"bounded {scores}"), 1000
    drawn = sampler(
        [0, 0],
        scale=1,
        size=size,
        bits=bits,
        members=np.array([1, len(scores)]),
        rest=scores.__getitem__,
    )
    counts = np.bincount(drawn, minlength=1 + len(scores)).tolist()
    assert goodness_of_fit(counts, [float(p) for p in law([0, *scores], 1)]) > 1e-3


def test_gaps_that_floats_round_lie_within_their_balls() -> None:
    """Gaps of more than 53 bits, with what is left of them beside a noise that cancels most."""
    step, draw = Fraction(2**52 + 1, 2**112), random.Random(5)
    # just above a power of 2 both the gap and its product with the step are off by most
    gaps = [2**60 + draw.randrange(2**57) for _ in range(4000)]
    middles = [-(float(gap) * float(step)) for gap in gaps]

    def cancels(uniforms: Any, *members: Any) -> Any:
        return float_balls.FloatBalls(-np.array([middles]), np.zeros((1, len(gaps))))

    contest = argmax._Contest(np.array(gaps, np.uint64), step, cancels, None)
    words = np.zeros((1, len(gaps)), dtype=np.uint64)
    values = contest._values(0, np.array(gaps, np.uint64), words)
    pairs = zip(values.middle[0].tolist(), values.radius[0].tolist(), strict=True)
    for gap, middle, (shown, radius) in zip(gaps, middles, pairs, strict=True):
        exact = -gap * step - Fraction(middle)
        assert abs(exact - Fraction(shown)) <= Fraction(radius)


def test_members_that_floats_round_lie_within_their_balls() -> None:
    members = np.array([2**60 + 127, 2**60 + 129, 2**62 + 511, 2**62 + 513], dtype=np.int64)

    def counted(uniforms: Any, given: Any) -> Any:
        return given + float_balls.FloatBalls(-given.middle, np.array(0.0))

    contest = argmax._Contest(np.zeros(4, np.uint64), Fraction(1), counted, members)
    values = contest._values(0, np.zeros(4, np.uint64), np.zeros((1, 4), dtype=np.uint64))
    for count, radius in zip(members.tolist(), values.radius[0].tolist(), strict=True):
        assert abs(count - Fraction(float(count))) <= Fraction(radius)


def test_options_that_are_only_bounded_lose_by_their_own_score_where_all_are_negative() -> None:
    """Gaps are measured from the best score, whatever its sign; the bound is 50 too high."""
    drawn = gumbel_argmax(
        [-1000, -1002],
        scale=1,
        size=60,
        bits=ReplayBits("negative"),
        members=np.array([1, 3]),
        rest=lambda _: -1052,
    )
    assert drawn.tolist() == [0] * 60


def test_the_largest_of_many_exponentials_lies_within_its_ball() -> None:
    """-ln(1 - e^-t), by a series where 1 - e^-t cancels."""
    t = np.concatenate([np.linspace(0.01, 8, 500), 10.0 ** np.arange(-40, 0)])
    with precision(400), np.errstate(all="ignore"):
        balls = argmax._minus_log_one_minus_exp(float_balls.FloatBalls(t, np.zeros(len(t))))
        assert isinstance(balls, float_balls.FloatBalls)
        assert (balls.radius < 1e-12).all()
        for point, middle, radius in zip(
            t.tolist(), balls.middle.tolist(), balls.radius.tolist(), strict=True
        ):
            truth = -(-(arb(-point).expm1())).log()
            assert abs(truth - arb(middle)) <= arb(radius)
