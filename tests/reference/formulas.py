"""Continuous noise as a function of uniform bits, and the integer it rounds to.

A uniform is known by a prefix of its bits: the word m stands for 64 bits, U in [m, m+1]/2^64; the
pair (m, nbits) for a prefix of another length. The functions return round(x) = floor(x + 1/2) of
each real number x, or None where the prefixes do not decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from reference.intervals import (
    Interval,
    Rational,
    UndefinedOnIntervalError,
    cos_pi,
    exp,
    ln,
    sin_pi,
    sqrt,
)

Word = int | tuple[int, int]

EXTRA_BITS = 96  # working bits beyond those of a prefix


def uniform(word: Word) -> Interval:
    """Return the interval [m, m+1]/2^nbits of all uniforms that start with the word."""
    m, nbits = word if isinstance(word, tuple) else (word, 64)
    if not 0 <= m < 1 << nbits:
        raise ValueError(f"{m} is not a prefix of {nbits} bits")
    return Interval.of(Fraction(m, 1 << nbits), Fraction(m + 1, 1 << nbits), nbits + EXTRA_BITS)


def _minus_ln(word: Word) -> Interval:
    """Return -ln U, a standard exponential."""
    return (-ln(uniform(word))).nonnegative()


def _radius(words: Sequence[Word], scale: Rational) -> Interval:
    """Return -b Σ ln U_i."""
    first, *others = map(_minus_ln, words)
    return sum(others, first) * scale


def _normal_pair(u: Word, v: Word) -> list[Interval]:
    """Return √(-2 ln U)·(cos 2πV, sin 2πV), two standard normals."""
    radius, turn = sqrt(_minus_ln(u) * 2), uniform(v) * 2
    return [radius * cos_pi(turn), radius * sin_pi(turn)]


def _rounded(size: int, enclose: Callable[[], Sequence[Interval]]) -> list[int | None]:
    try:
        return [x.rounded() for x in enclose()]
    except UndefinedOnIntervalError:
        return [None] * size


def exponential(u: Word, scale: Rational) -> int | None:
    """Round -b ln U."""
    return _rounded(1, lambda: [_radius([u], scale)])[0]


def gaussian(u: Word, v: Word, variance: Rational) -> list[int | None]:
    """Round the Box-Muller pair σ√(-2 ln U)·(cos 2πV, sin 2πV)."""
    deviation = sqrt(Interval.point(variance, uniform(u).bits))
    return _rounded(2, lambda: [deviation * normal for normal in _normal_pair(u, v)])


def student_t(u: Word, v: Word, nu: Rational, scale: Rational) -> int | None:
    """Round b·√(ν(U^(-2/ν) - 1))·cos 2πV (Bailey)."""

    def enclose() -> list[Interval]:
        power = exp(_minus_ln(u) * (Fraction(2) / nu))
        return [sqrt(((power - 1) * nu).nonnegative()) * cos_pi(uniform(v) * 2) * scale]

    return _rounded(1, enclose)[0]


def knorm_linf(
    radius_words: Sequence[Word], cube_words: Sequence[Word], scale: Rational
) -> list[int | None]:
    """Round G·(2V_j - 1), G = -b Σ ln U_i over d + 1 words, for the d words V_j."""
    if len(radius_words) != len(cube_words) + 1:
        raise ValueError("d coordinates need d + 1 words for the radius")
    return _rounded(
        len(cube_words),
        lambda: [_radius(radius_words, scale) * (uniform(v) * 2 - 1) for v in cube_words],
    )


def knorm_l2(
    radius_words: Sequence[Word],
    pairs: Sequence[tuple[Word, Word]],
    exponential_word: Word,
    scale: Rational,
) -> list[int | None]:
    """Round G·g_j/√(Σ g² + 2E), d = len(radius_words) - 1, E = -ln U_e.

    G = -b Σ ln U_i over the d + 1 radius words. The normals g_1, ..., g_d are the cosine and the
    sine of the first pair (U, V), then of the second, and so on; for odd d the last sine is unused.
    """
    d = len(radius_words) - 1
    if d < 1 or len(pairs) != (d + 1) // 2:
        raise ValueError("d coordinates need d + 1 radius words and ceil(d/2) pairs")

    def enclose() -> list[Interval]:
        radius = _radius(radius_words, scale)
        normals = [g for u, v in pairs for g in _normal_pair(u, v)][:d]
        norm = sqrt(sum((g.square() for g in normals), _minus_ln(exponential_word) * 2))
        return [radius * g / norm for g in normals]

    return _rounded(d, enclose)
