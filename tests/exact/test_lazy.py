"""A draw is the exact function of its bit string, however deep in the tail it lies."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from completeness.noises import NOISES
from reference import formulas
from zerodelta.errors import ParameterError
from zerodelta.exact import bits as lazy
from zerodelta.exact import float_balls
from zerodelta.exact.bits import BitSource, ReplayBits, SystemBits
from zerodelta.exact.logs import log_upper
from zerodelta.exact.noise import (
    discrete_laplace,
    rounded_exponential,
    rounded_gaussian,
    rounded_k_norm,
    rounded_laplace,
    rounded_student_t,
)

NOT_AN_INT: Any = 1.5
SCALES = [Fraction(1, 1000), Fraction(7, 3), Fraction(10**6), Fraction(10**9) / 7, Fraction(10**15)]


def columns(label: str, uniforms: int, units: int) -> list[list[int]]:
    """The words that a draw of so many units reads first: one list a uniform."""
    words = ReplayBits(label).words(uniforms * units).reshape(uniforms, units)
    return [[int(word) for word in row] for row in words]


def check_against(reference: Sequence[int | None], drawn: Sequence[int]) -> None:
    """Where 64 bits decide (nearly always), the integers agree."""
    compared = [(a, b) for a, b in zip(reference, drawn, strict=True) if a is not None]
    assert len(compared) >= 0.99 * len(drawn)
    assert [a for a, _ in compared] == [b for _, b in compared]


@pytest.mark.parametrize("scale", SCALES)
def test_exponential_agrees_with_the_fraction_reference(scale: Fraction) -> None:
    (words,) = columns("e", 1, 500)
    drawn = rounded_exponential(scale=scale, size=500, bits=ReplayBits("e"))
    check_against([formulas.exponential(w, scale) for w in words], drawn.tolist())


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_is_a_signed_exponential(scale: Fraction) -> None:
    (words,) = columns("l", 1, 300)
    drawn = rounded_laplace(scale=scale, size=300, bits=ReplayBits("l"))
    check_against([formulas.exponential(w, scale) for w in words], np.abs(drawn).tolist())


@pytest.mark.parametrize("scale", SCALES)
def test_gaussian_agrees_with_the_fraction_reference(scale: Fraction) -> None:
    first, second = columns("g", 2, 200)
    drawn = rounded_gaussian(variance=scale**2, size=400, bits=ReplayBits("g")).reshape(2, 200)
    pairs = [formulas.gaussian(u, v, scale**2) for u, v in zip(first, second, strict=True)]
    check_against([c for c, _ in pairs], drawn[0].tolist())
    check_against([s for _, s in pairs], drawn[1].tolist())


@pytest.mark.parametrize("degrees", [1, Fraction(5, 2), 3, 30])
@pytest.mark.parametrize("scale", SCALES[1:4])
def test_student_t_agrees_with_the_fraction_reference(
    degrees: int | Fraction, scale: Fraction
) -> None:
    first, second = columns("t", 2, 100)
    drawn = rounded_student_t(degrees=degrees, scale=scale, size=100, bits=ReplayBits("t"))
    truth = [
        formulas.student_t(u, v, Fraction(degrees), scale)
        for u, v in zip(first, second, strict=True)
    ]
    check_against(truth, drawn.tolist())


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("scale", SCALES[1:4])
def test_k_norm_agrees_with_the_fraction_reference(dimension: int, scale: Fraction) -> None:
    words = columns("c", 2 * dimension + 1, 20)
    drawn = rounded_k_norm(
        norm=math.inf, dimension=dimension, scale=scale, size=20, bits=ReplayBits("c")
    )
    for unit, vector in zip(zip(*words, strict=True), drawn.tolist(), strict=True):
        check_against(formulas.knorm_linf(unit[dimension:], unit[:dimension], scale), vector)

    pairs = -(-dimension // 2)
    words = columns("2", 2 * pairs + dimension + 2, 20)
    drawn = rounded_k_norm(norm=2, dimension=dimension, scale=scale, size=20, bits=ReplayBits("2"))
    for unit, vector in zip(zip(*words, strict=True), drawn.tolist(), strict=True):
        normals = list(zip(unit[:pairs], unit[pairs : 2 * pairs], strict=True))
        exponential, radius = unit[2 * pairs], unit[2 * pairs + 1 :]
        truth = formulas.knorm_l2(radius, normals, exponential, scale)
        # the reference interleaves cosines and sines, the sampler puts all cosines first
        order = [*range(0, 2 * pairs, 2), *range(1, 2 * pairs, 2)][:dimension]
        check_against([truth[i] for i in order], vector)


def tape(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def string(rng: random.Random, words: int, zeros: int) -> list[int]:
    """Words of a bit string, first word first, that begins with so many zero words."""
    return [0] * zeros + [rng.getrandbits(64) | 1 << 40 for _ in range(words - zeros)]


def prefix(words: list[int]) -> tuple[int, int]:
    """The same string as the reference reads it: an integer and its length in bits."""
    return sum(word << (64 * i) for i, word in enumerate(reversed(words))), 64 * len(words)


def doubling_tape(*strings: list[int]) -> bytes:
    """What a unit reads: one word of each string, then each string doubled, and so on."""
    read, rounds = 1, [b"".join(words[0].to_bytes(8, "little") for words in strings)]
    while read < len(strings[0]):
        for words in strings:
            fresh, _ = prefix(words[read : 2 * read])
            rounds.append(fresh.to_bytes(8 * read, "little"))
        read *= 2
    return b"".join(rounds)


def test_a_gaussian_pair_beyond_20_sigma_is_the_exact_function_of_its_bits() -> None:
    """U starts with 320 zero bits, so R = √(-2 ln U) > 20; both partners see one extension."""
    rng = random.Random(1)
    length, angle = string(rng, 8, 5), string(rng, 8, 0)
    bits = ReplayBits("deep", tape=doubling_tape(length, angle))
    variance = Fraction(10**12)
    drawn = rounded_gaussian(variance=variance, size=2, bits=bits).tolist()
    assert drawn == list(formulas.gaussian(prefix(length), prefix(angle), variance))
    assert math.hypot(*drawn) > 20 * 10**6


@pytest.mark.parametrize("zeros", [1, 2, 5, 40])
def test_an_exponential_deep_in_the_tail_is_the_exact_function_of_its_bits(zeros: int) -> None:
    words = string(random.Random(zeros), 64, zeros)
    bits = ReplayBits("x", tape=doubling_tape(words))
    drawn = rounded_exponential(scale=10**7, size=1, bits=bits)
    assert drawn.tolist() == [formulas.exponential(prefix(words), 10**7)]
    assert drawn[0] > 44 * zeros * 10**7


def special_words() -> list[int]:
    near_one = [2**64 - 1, 2**64 - 1023, 2**64 - 1024, 2**64 - 1025, 2**64 - 2048]
    return [0, 1, 2**53 - 1, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 3 * 2**62, *near_one]


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10**9), Fraction(10**15)])
def test_boundary_words_give_the_draws_of_the_slow_path(
    scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uniforms next to 0, 1 and the quarter turns, where middles are 0.0, -0.0 or 1.0 exactly."""
    samplers_of_two: list[Callable[[BitSource], Any]] = [
        lambda bits: rounded_gaussian(variance=scale**2, size=2, bits=bits),
        lambda bits: rounded_student_t(degrees=3, scale=scale, size=1, bits=bits),
        lambda bits: rounded_exponential(scale=scale, size=2, bits=bits),
        lambda bits: rounded_k_norm(norm=math.inf, dimension=1, scale=scale, size=1, bits=bits),
        *(partial(noise.scaled(scale).noise, 2) for noise in NOISES),
    ]

    def draws() -> list[Any]:
        pairs = itertools.product(special_words(), repeat=2)
        tapes = [tape(first, second) for first, second in pairs]
        return [
            draw(ReplayBits("s", tape=words)).tolist()
            for words in tapes
            for draw in samplers_of_two
        ]

    monkeypatch.setattr(lazy, "_FEWEST_FOR_FLOATS", 0)
    fast = draws()
    monkeypatch.setattr(float_balls, "KERNEL_ERROR", 1e300)
    assert fast == draws()


def test_a_gaussian_whose_first_word_rounds_to_one_is_not_zero() -> None:
    """√(-2 ln U) with U = 1 in floats: the middle is √-0.0, and the draw must stay undecided."""
    length, angle = [2**64 - 1024, 5], [1234567890123456789, 77]
    bits = ReplayBits("x", tape=doubling_tape(length, angle))
    drawn = rounded_gaussian(variance=10**30, size=2, bits=bits)
    assert drawn.tolist() == list(formulas.gaussian(prefix(length), prefix(angle), 10**30))
    assert all(drawn)


def test_blocks_after_an_overflow_hold_python_integers_only() -> None:
    drawn = rounded_student_t(
        degrees=Fraction(1, 8), scale=1, size=60_000, bits=ReplayBits("heavy")
    )
    assert drawn.dtype == object
    assert {type(value) for value in drawn.tolist()} == {int}


def test_threads_do_not_disturb_each_others_precision() -> None:
    def work(i: int) -> tuple[float, list[int]]:
        noise = rounded_gaussian(variance=10**30, size=60, bits=ReplayBits(f"thread {i}"))
        return log_upper(10**40 + i), noise.tolist()

    alone = [work(i) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(40)))
    assert together == alone


def test_an_undecided_draw_reads_on_in_the_same_string() -> None:
    """Find a word whose cell straddles a rounding boundary; the next word must decide it."""
    scale = Fraction(10**18)
    word = next(w for w in range(2**62, 2**62 + 99) if formulas.exponential(w, scale) is None)
    outcomes = set()
    for following in (0, 2**62, 2**63, 2**64 - 1):
        bits = ReplayBits("edge", tape=tape(word, following))
        drawn = rounded_exponential(scale=scale, size=1, bits=bits).tolist()
        truth = formulas.exponential(((word << 64) | following, 128), scale)
        assert truth is None or drawn == [truth]
        outcomes.add(drawn[0])
    assert len(outcomes) > 1


def test_a_draw_that_does_not_fit_64_bits_is_a_python_integer() -> None:
    bits = ReplayBits("big", tape=tape(0, 2**63, 0, 5))
    drawn = rounded_exponential(scale=10**18, size=2, bits=bits)
    assert drawn.dtype == object
    assert max(drawn.tolist()) > 2**63
    assert all(isinstance(value, int) for value in drawn.tolist())


def test_draws_between_2_to_63_and_2_to_64_are_python_integers() -> None:
    times = lazy.Draw(
        uniforms=1,
        outputs=1,
        formula=lambda uniforms, factor: uniforms * factor,
        constants=(lazy.constant(Fraction(2**64)),),
    )
    for units in (3, 40):
        drawn = lazy.rounded(times, units, ReplayBits("beyond")).reshape(-1).tolist()
        assert 2**63 < max(drawn) < 2**64
        assert min(drawn) < 2**63


@pytest.mark.parametrize("extended", [0, 1, 2])
def test_a_string_that_is_added_is_as_long_as_the_others(extended: int) -> None:
    strings, ones = (
        lazy.BitStrings(np.array([5], dtype=np.uint64)),
        ReplayBits("t", tape=b"\xff" * 99),
    )
    for _ in range(extended):
        strings.extend(ones)
    strings.add(ones)
    both = lazy.Draw(uniforms=2, outputs=2, formula=lambda uniforms: uniforms)
    _, added = strings.evaluate(both).values
    assert float(added.mid()) == 1.0


def test_tiny_scales_give_zeros() -> None:
    bits = SystemBits()
    assert not rounded_gaussian(variance=Fraction(1, 10**6), size=1000, bits=bits).any()
    assert not rounded_laplace(scale=Fraction(1, 1000), size=1000, bits=bits).any()


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8191, 8192, 8193, 20_001])
def test_any_size_is_drawn_in_full(size: int) -> None:
    assert rounded_gaussian(variance=10**6, size=size, bits=SystemBits()).shape == (size,)
    assert rounded_laplace(scale=10**3, size=size, bits=SystemBits()).shape == (size,)
    if size > 100:
        assert len(set(rounded_gaussian(variance=10**20, size=size, bits=SystemBits()))) > size / 2


def test_discrete_laplace_noise_at_tiny_and_huge_scales() -> None:
    """Nearly no noise needs no more digits of anything; 2^80 does not fit into 64 bits."""
    none = discrete_laplace(scale=Fraction(1, 10**30), size=100_000, bits=ReplayBits("none"))
    assert not none.any()
    wide = discrete_laplace(scale=2**80, size=2000, bits=ReplayBits("wide"))
    sizes = np.array([abs(int(z)) for z in wide]) / 2.0**80
    assert sizes.mean() == pytest.approx(1, abs=0.1)


def test_slow_path_is_rare_up_to_scale_one_e_6(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    resolve = lazy._round_exactly

    def counting(*args: Any) -> list[int]:
        nonlocal calls
        calls += 1
        return resolve(*args)

    monkeypatch.setattr(lazy, "_round_exactly", counting)
    rounded_gaussian(variance=10**12, size=1_000_000, bits=ReplayBits("rare"))
    rounded_laplace(scale=10**6, size=1_000_000, bits=ReplayBits("rare"))
    assert calls <= 20


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("variance", lambda b: rounded_gaussian(variance=-1, size=1, bits=b)),
        ("variance", lambda b: rounded_gaussian(variance=0, size=1, bits=b)),
        ("variance", lambda b: rounded_gaussian(variance=math.nan, size=1, bits=b)),
        ("variance", lambda b: rounded_gaussian(variance="1/0", size=1, bits=b)),
        ("variance", lambda b: rounded_gaussian(variance=True, size=1, bits=b)),
        ("size", lambda b: rounded_gaussian(variance=1, size=-1, bits=b)),
        ("size", lambda b: rounded_gaussian(variance=1, size=NOT_AN_INT, bits=b)),
        ("scale", lambda b: rounded_laplace(scale=math.inf, size=1, bits=b)),
        ("scale", lambda b: rounded_exponential(scale="fast", size=1, bits=b)),
        ("degrees", lambda b: rounded_student_t(degrees=-2, scale=1, size=1, bits=b)),
        ("dimension", lambda b: rounded_k_norm(norm=2, dimension=0, scale=1, size=1, bits=b)),
        ("norm", lambda b: rounded_k_norm(norm=3, dimension=2, scale=1, size=1, bits=b)),
    ],
)
def test_bad_parameters_are_named(name: str, call: Callable[[BitSource], object]) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} = .*: expected .*; .*\.$"):
        call(SystemBits())


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_few_draws_are_the_same_function_of_the_same_bits(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arb alone or floats first: every draw rounds the same continuous one."""
    draws: list[Callable[[BitSource], Any]] = [
        lambda bits: rounded_gaussian(variance=Fraction(10**13, 7), size=size, bits=bits),
        lambda bits: rounded_gaussian(variance=Fraction(1, 3), size=size, bits=bits),
        lambda bits: rounded_exponential(scale=10**7, size=size, bits=bits),
    ]
    for i, draw in enumerate(draws):
        for label in range(20):
            found = []
            for few in (0, 1000):
                monkeypatch.setattr(lazy, "_FEWEST_FOR_FLOATS", few)
                found.append(draw(ReplayBits(f"few {i} {label}")).tolist())
            assert found[0] == found[1]
