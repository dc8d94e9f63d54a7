from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from reference import formulas, probabilities
from reference.chi_square import goodness_of_fit, tally
from reference.formulas import Word

P_MIN = 1e-4
TWO64 = 1 << 64


def words(rng: random.Random, n: int) -> list[int]:
    return [rng.getrandbits(64) for _ in range(n)]


def real(word: int) -> Any:
    """The middle of the word's interval."""
    return (mpmath.mpf(word) + 0.5) / TWO64


def minus_ln(word: int) -> Any:
    return -mpmath.log(real(word))


def normals(u: int, v: int) -> tuple[Any, Any]:
    r = mpmath.sqrt(2 * minus_ln(u))
    return r * mpmath.cospi(2 * real(v)), r * mpmath.sinpi(2 * real(v))


def nearest(x: Any) -> int:
    return int(mpmath.floor(x + 0.5))


# Each case: number of words, the reference, and the same formula in mpmath at the middle.
Case = tuple[
    int, Callable[[Sequence[Word]], Sequence[int | None]], Callable[[Sequence[int]], Sequence[Any]]
]


def mp_student(w: Sequence[int]) -> Any:
    nu = mpmath.mpf(5) / 2
    return (
        7 * mpmath.sqrt(nu * (mpmath.power(real(w[0]), -2 / nu) - 1)) * mpmath.cospi(2 * real(w[1]))
    )


def mp_linf(w: Sequence[int]) -> list[Any]:
    g = 11 * sum(minus_ln(x) for x in w[:4])
    return [g * (2 * real(v) - 1) for v in w[4:]]


def mp_l2(w: Sequence[int]) -> list[Any]:
    g = 11 * sum(minus_ln(x) for x in w[:4])
    z = [*normals(w[4], w[5]), *normals(w[6], w[7])][:3]
    norm = mpmath.sqrt(sum(x**2 for x in z) + 2 * minus_ln(w[8]))
    return [g * x / norm for x in z]


CASES: dict[str, Case] = {
    "exponential": (
        1,
        lambda w: [formulas.exponential(w[0], Fraction(100, 3))],
        lambda w: [minus_ln(w[0]) * 100 / 3],
    ),
    "gaussian": (
        2,
        lambda w: formulas.gaussian(w[0], w[1], 300),
        lambda w: [x * mpmath.sqrt(300) for x in normals(w[0], w[1])],
    ),
    "student_t": (
        2,
        lambda w: [formulas.student_t(w[0], w[1], Fraction(5, 2), 7)],
        lambda w: [mp_student(w)],
    ),
    "gamma": (
        3,
        lambda w: [formulas.gamma(w, 9)],
        lambda w: [9 * sum(minus_ln(x) for x in w)],
    ),
    "knorm_linf": (7, lambda w: formulas.knorm_linf(w[:4], w[4:], 11), mp_linf),
    "knorm_l2": (
        9,
        lambda w: formulas.knorm_l2(w[:4], [(w[4], w[5]), (w[6], w[7])], w[8], 11),
        mp_l2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_formula_agrees_with_mpmath(name: str) -> None:
    n, reference, truth = CASES[name]
    rng = random.Random(5)
    with mpmath.workdps(60):
        for _ in range(200):
            w = words(rng, n)
            assert list(reference(w)) == [nearest(x) for x in truth(w)]


@pytest.mark.parametrize("name", CASES)
def test_short_prefixes_never_contradict_longer_ones(name: str) -> None:
    n, reference, _ = CASES[name]
    rng = random.Random(6)
    undecided = 0
    for _ in range(60):
        full = [rng.getrandbits(200) for _ in range(n)]
        final = reference([(m, 200) for m in full])
        assert None not in final
        for nbits in (1, 3, 8, 16, 24, 64):
            short = reference([(m >> (200 - nbits), nbits) for m in full])
            undecided += list(short).count(None)
            assert all(s in (None, f) for s, f in zip(short, final, strict=True))
    assert undecided > 0


def test_a_plain_word_means_64_bits() -> None:
    assert formulas.uniform(7, 100) == formulas.uniform((7, 64), 100)
    assert formulas.exponential_interval(7, 3) == formulas.exponential_interval((7, 64), 3)
    with pytest.raises(ValueError, match="prefix"):
        formulas.uniform(TWO64, 100)


def test_unbounded_prefixes_are_undecided() -> None:
    assert formulas.exponential(0, 1) is None
    assert formulas.exponential(TWO64 - 1, 1) == 0
    assert formulas.gaussian(0, 5, 1) == (None, None)
    assert formulas.gaussian(TWO64 - 1, 5, 1) == (0, 0)
    assert formulas.student_t(0, 5, 1, 1) is None
    assert formulas.student_t(TWO64 - 1, 5, 1, 1) == 0
    assert formulas.knorm_l2([0, 1], [(1, 1)], 1, 1) == [None]


def test_boundary_is_undecided_until_enough_bits_are_read() -> None:
    # X = -b ln U rounds up from U = exp(-1/2): the 64-bit word holding it cannot decide.
    with mpmath.workdps(120):
        u = mpmath.exp(mpmath.mpf(-1) / 2)
        m64, m128 = int(mpmath.floor(u * TWO64)), int(mpmath.floor(u * TWO64**2))
    assert formulas.exponential(m64, 1) is None
    assert formulas.exponential((m128, 128), 1) is None
    assert formulas.exponential((m128 + 1, 128), 1) == 0
    assert formulas.exponential((m128 - 1, 128), 1) == 1
    assert formulas.exponential(m64 + 1, 1) == 0
    assert formulas.exponential(m64 - 1, 1) == 1


def check(values: Sequence[int | None], law: probabilities.Law, lo: int, hi: int) -> None:
    decided = [v for v in values if v is not None]
    assert len(decided) == len(values)
    assert goodness_of_fit(tally(decided, lo, hi), law.cells(lo, hi)) > P_MIN


def test_draws_follow_the_laws() -> None:
    rng = random.Random(7)
    n = 4000

    def w() -> int:
        return rng.getrandbits(64)

    b = Fraction(5, 2)
    check(
        [formulas.exponential(w(), b) for _ in range(n)],
        probabilities.rounded_exponential(b),
        0,
        20,
    )
    check(
        [formulas.gamma([w(), w()], b) for _ in range(n)], probabilities.rounded_gamma(2, b), 0, 25
    )
    pairs = [formulas.gaussian(w(), w(), 10) for _ in range(n)]
    for side in (0, 1):
        check([p[side] for p in pairs], probabilities.rounded_gaussian(10), -12, 12)
    for nu in (1, 2, 3):
        check(
            [formulas.student_t(w(), w(), nu, b) for _ in range(n)],
            probabilities.rounded_student_t(nu, b),
            -15,
            15,
        )


def test_knorm_noise_in_one_dimension_is_laplace() -> None:
    rng = random.Random(9)
    linf = [formulas.knorm_linf(words(rng, 2), words(rng, 1), 3)[0] for _ in range(4000)]
    check(linf, probabilities.rounded_laplace(3), -20, 20)
    l2 = []
    for _ in range(4000):
        a, b, c, d, e = words(rng, 5)
        l2 += formulas.knorm_l2([a, b], [(c, d)], e, 3)
    check(l2, probabilities.rounded_laplace(3), -20, 20)


def test_norms_of_knorm_noise_are_gamma() -> None:
    # density ~ exp(-norm/b) in dimension d: the norm is Gamma(d, b)
    rng = random.Random(10)
    linf, l2 = [], []
    for _ in range(3000):
        cube = formulas.knorm_linf_interval(words(rng, 4), words(rng, 3), 3)
        linf.append(round(max(abs(float(x)) for x in cube)))
        a, b, c, d, e = words(rng, 5)
        ball = formulas.knorm_l2_interval(words(rng, 4), [(a, b), (c, d)], e, 3)
        l2.append(round(sum(float(x) ** 2 for x in ball) ** 0.5))
    check(linf, probabilities.rounded_gamma(3, 3), 0, 30)
    check(l2, probabilities.rounded_gamma(3, 3), 0, 30)


def test_wrong_numbers_of_words_are_refused() -> None:
    with pytest.raises(ValueError, match="radius"):
        formulas.knorm_linf([1], [1], 1)
    with pytest.raises(ValueError, match="radius"):
        formulas.knorm_l2([1, 1, 1, 1], [(1, 1)], 1, 1)
