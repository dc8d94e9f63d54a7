"""Continuous noise as a function of uniform bits, and the integer it rounds to.

A uniform is known by a prefix of its bits: the word m stands for 64 bits, U in [m, m+1]/2^64; the
pair (m, nbits) for a prefix of another length. Functions named ``*_interval`` enclose the real
value (and raise :class:`UndefinedOnIntervalError` where it is unbounded on the prefix); the others
return round(x) = floor(x + 1/2), or None when the prefix does not decide it.
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

WORD_BITS = 64
EXTRA_BITS = 96  # working bits beyond the longest prefix


def uniform(word: Word, bits: int) -> Interval:
    """Return the interval [m, m+1]/2^nbits of all uniforms that start with the word."""
    m, nbits = word if isinstance(word, tuple) else (word, WORD_BITS)
    if not 0 <= m < 1 << nbits:
        raise ValueError(f"{m} is not a prefix of {nbits} bits")
    return Interval(Fraction(m, 1 << nbits), Fraction(m + 1, 1 << nbits), bits)


def working_bits(words: Sequence[Word]) -> int:
    """Return a working precision that is fine enough for the longest prefix."""
    return EXTRA_BITS + max(w[1] if isinstance(w, tuple) else WORD_BITS for w in words)


def _minus_ln(word: Word, bits: int) -> Interval:
    """Return -ln U, a standard exponential."""
    return (-ln(uniform(word, bits))).nonnegative()


def _sum_of_exponentials(words: Sequence[Word], bits: int) -> Interval:
    total = Interval.point(0, bits)
    for word in words:
        total = total + _minus_ln(word, bits)
    return total


def _normal_pair(u: Word, v: Word, bits: int) -> tuple[Interval, Interval]:
    """Return √(-2 ln U)·(cos 2πV, sin 2πV), two standard normals."""
    radius = sqrt(_minus_ln(u, bits) * 2)
    turn = uniform(v, bits) * 2
    return radius * cos_pi(turn), radius * sin_pi(turn)


# --- enclosures -----------------------------------------------------------------------------


def exponential_interval(u: Word, scale: Rational) -> Interval:
    """Enclose -b ln U."""
    return _minus_ln(u, working_bits([u])) * scale


def gaussian_interval(u: Word, v: Word, variance: Rational) -> tuple[Interval, Interval]:
    """Enclose σ√(-2 ln U)·(cos 2πV, sin 2πV)."""
    bits = working_bits([u, v])
    radius = sqrt(_minus_ln(u, bits) * 2 * variance)
    turn = uniform(v, bits) * 2
    return radius * cos_pi(turn), radius * sin_pi(turn)


def student_t_interval(u: Word, v: Word, nu: Rational, scale: Rational) -> Interval:
    """Enclose b·√(ν(U^(-2/ν) - 1))·cos 2πV (Bailey)."""
    bits = working_bits([u, v])
    power = exp(_minus_ln(u, bits) * (Fraction(2) / nu))
    radius = sqrt(((power - 1) * nu).nonnegative())
    return radius * cos_pi(uniform(v, bits) * 2) * scale


def knorm_linf_interval(
    radius_words: Sequence[Word], cube_words: Sequence[Word], scale: Rational
) -> list[Interval]:
    """Enclose G·(2V_j - 1), G = -b Σ ln U_i over d + 1 words, for the d words V_j."""
    if len(radius_words) != len(cube_words) + 1:
        raise ValueError("d coordinates need d + 1 words for the radius")
    bits = working_bits([*radius_words, *cube_words])
    radius = _sum_of_exponentials(radius_words, bits) * scale
    return [radius * (uniform(v, bits) * 2 - 1) for v in cube_words]


def knorm_l2_interval(
    radius_words: Sequence[Word],
    pairs: Sequence[tuple[Word, Word]],
    exponential_word: Word,
    scale: Rational,
) -> list[Interval]:
    """Enclose G·g_j/√(Σ g² + 2E), d = len(radius_words) - 1, E = -ln U_e.

    G = -b Σ ln U_i over the d + 1 radius words. The normals g_1, ..., g_d are the cosine and the
    sine of the first pair (U, V), then of the second, and so on; for odd d the last sine is unused.
    """
    d = len(radius_words) - 1
    if d < 1 or len(pairs) != (d + 1) // 2:
        raise ValueError("d coordinates need d + 1 radius words and ceil(d/2) pairs")
    bits = working_bits([*radius_words, *(w for pair in pairs for w in pair), exponential_word])
    radius = _sum_of_exponentials(radius_words, bits) * scale
    normals = [g for u, v in pairs for g in _normal_pair(u, v, bits)][:d]
    total = _minus_ln(exponential_word, bits) * 2
    for g in normals:
        total = total + g.square()
    norm = sqrt(total)
    return [radius * g / norm for g in normals]


# --- rounded values -------------------------------------------------------------------------


def _rounded(enclose: Callable[[], Interval]) -> int | None:
    try:
        return enclose().rounded()
    except UndefinedOnIntervalError:
        return None


def _all_rounded(enclose: Callable[[], Sequence[Interval]], size: int) -> list[int | None]:
    try:
        return [x.rounded() for x in enclose()]
    except UndefinedOnIntervalError:
        return [None] * size


def exponential(u: Word, scale: Rational) -> int | None:
    """Return round(-b ln U)."""
    return _rounded(lambda: exponential_interval(u, scale))


def gaussian(u: Word, v: Word, variance: Rational) -> tuple[int | None, int | None]:
    """Return the rounded Box-Muller pair (cosine, sine) of the given variance."""
    cosine, sine = _all_rounded(lambda: gaussian_interval(u, v, variance), 2)
    return cosine, sine


def student_t(u: Word, v: Word, nu: Rational, scale: Rational) -> int | None:
    """Return the rounded Student-t draw with ν degrees of freedom."""
    return _rounded(lambda: student_t_interval(u, v, nu, scale))


def knorm_linf(
    radius_words: Sequence[Word], cube_words: Sequence[Word], scale: Rational
) -> list[int | None]:
    """Return the rounded coordinates of sup-norm K-norm noise."""
    return _all_rounded(
        lambda: knorm_linf_interval(radius_words, cube_words, scale), len(cube_words)
    )


def knorm_l2(
    radius_words: Sequence[Word],
    pairs: Sequence[tuple[Word, Word]],
    exponential_word: Word,
    scale: Rational,
) -> list[int | None]:
    """Return the rounded coordinates of Euclidean K-norm noise."""
    return _all_rounded(
        lambda: knorm_l2_interval(radius_words, pairs, exponential_word, scale),
        len(radius_words) - 1,
    )
