"""Add matrix Laplace noise to sums of products of rows, exactly rounded (theory W2).

Z = (G₁G₁ᵀ - G₂G₂ᵀ)/2 with independent d × (d+1) matrices of standard normals. An entry of it is a
polynomial of the normals of two lines. It is evaluated in floats with a proven radius; where its
rounding is undecided, the uniforms of these two lines are extended, for all their entries alike.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import ArbBalls, BitSource, BitStrings, Draw, Integers, Reals, Words
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.logs import ball, precision
from zerodelta.exact.noise import box_muller
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray

_GUARD_BITS = 64
_CONSTANT_BITS = 128

_FINEST = 1 << 12
"""The parts of the scale to which noise is rounded, so that floats decide almost all entries."""


def quantum_of(scale: Fraction) -> int:
    """Return the power of two, or 1, to whose multiples noisy sums are rounded.

    >>> quantum_of(Fraction(10)), quantum_of(Fraction(1 << 40))
    (1, 268435456)
    """
    parts = int(scale / _FINEST)
    return 1 << max(0, parts.bit_length() - 1)


def with_matrix_noise(
    triangle: IntegerArray,
    *,
    dimension: int,
    on_diagonal: Rational,
    off_diagonal: Rational,
    quantum: int = 1,
    bits: BitSource,
) -> Integers:
    """Return round((sum + factor · Z_ij) / quantum) for each entry of an upper triangle.

    The triangle lists its d(d+1)/2 sums line by line; the factors are those of entries on and off
    the diagonal. `quantum` is a power of two.

    >>> from zerodelta.exact.bits import SystemBits
    >>> zeros = np.zeros(3, dtype=np.int64)
    >>> tiny = Fraction(1, 10**6)
    >>> with_matrix_noise(
    ...     zeros, dimension=2, on_diagonal=tiny, off_diagonal=tiny, bits=SystemBits()
    ... ).tolist()
    [0, 0, 0]
    """
    d = as_count(dimension, "dimension", minimum=1)
    on, off = as_positive(on_diagonal, "on_diagonal"), as_positive(off_diagonal, "off_diagonal")
    require(
        len(triangle) == d * (d + 1) // 2,
        "length of the triangle",
        len(triangle),
        expected=f"{d * (d + 1) // 2}, the entries of a symmetric matrix of {d} lines",
        remedy="pass the upper triangle of the sums, line by line",
    )
    first, second = np.triu_indices(d)
    exact_factors = (on / quantum, off / quantum)
    kinds = (first != second).astype(np.int64)
    whole, rest = triangle // quantum, triangle % quantum
    words = bits.words(2 * d * (d + 1)).reshape(d, 2, d + 1)
    with np.errstate(all="ignore"):  # an infinite or NaN radius means undecided
        products = _products(words)
        entries = FloatBalls(products.middle[first, second], products.radius[first, second])
        with precision(_CONSTANT_BITS):
            factors = FloatBalls.enclose([ball(factor / 2) for factor in exact_factors])
        scales = FloatBalls(factors.middle[kinds, 0], factors.radius[kinds, 0])
        integers, decided = (entries * scales + _fractions(rest, quantum)).nearest()
        rounded = np.where(decided, integers, 0.0).astype(np.int64)
    noisy: Integers = rounded
    if not decided.all():
        lines = _Lines(words, bits)
        exactly = noisy.astype(object)
        for place in np.flatnonzero(~decided):
            exactly[place] = lines.nearest(
                int(first[place]),
                int(second[place]),
                factor=exact_factors[kinds[place]] / 2,
                shift=Fraction(int(rest[place]), quantum),
            )
        noisy = exactly
    return _sum(whole, noisy)


def _sum(whole: IntegerArray, noisy: Integers) -> Integers:
    """Return the sum, in Python integers unless all of it certainly fits 64 bits."""
    total = whole.astype(object) + noisy.astype(object)
    fits = all(-(1 << 63) <= entry < 1 << 63 for entry in total)
    result: Integers = total.astype(np.int64) if fits else total
    return result


def _fractions(rest: IntegerArray, quantum: int) -> FloatBalls:
    """Return rest / quantum, where 0 <= rest < quantum."""
    shift = max(0, quantum.bit_length() - 53)
    middle = (rest >> shift).astype(np.float64) / float(quantum >> shift)
    return FloatBalls(middle, np.full(len(rest), 2.0**-51 if shift else 0.0))


def _normals(uniforms: Reals) -> Reals:
    """Return the normals of a line: those of G₁, then those of G₂."""
    half = len(uniforms.middle if isinstance(uniforms, FloatBalls) else uniforms.values) // 2
    return box_muller(uniforms[:half], uniforms[half:])


def _products(words: Words) -> FloatBalls:
    """Return G₁G₁ᵀ - G₂G₂ᵀ from the words of all lines.

    The product of two vectors of n floats, in any order and with or without fused multiplication,
    errs by at most γ |x| |y|, γ = n u/(1 - n u) (Higham, section 3.1). Midpoints that err by
    vectors of length r and s change it by at most r |y| + |x| s + r s (Cauchy-Schwarz).
    """
    lines = FloatBalls.uniform(words.reshape(len(words), -1).T.copy())
    normals = _normals(lines)
    left, size = normals.middle.T.copy(), len(normals.middle)
    right = left.copy()
    right[:, size // 2 :] *= -1
    length = _lengths(normals.middle)
    error = _lengths(normals.radius)
    gamma = 1.01 * 2.0**-53 * size  # at least n u/(1 - n u)
    radius = gamma * np.outer(length, length) + np.outer(error, error)
    radius += np.outer(length, error) + np.outer(error, length)
    return FloatBalls(left @ right.T, radius * (1 + 2.0**-30))


def _lengths(vectors: Floats) -> Floats:
    """Return upper bounds of the l2 norms of columns: a float sum of n squares errs by n u."""
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=0)) * (1 + 2.0**-30) + 2.0**-500)


class _Lines:
    """The bit strings of each line, extended where an entry of the line is undecided."""

    def __init__(self, words: Words, bits: BitSource) -> None:
        self._words, self._bits = words.reshape(len(words), -1), bits
        size = self._words.shape[1]
        self._draw = Draw(uniforms=size, outputs=size, formula=_normals)
        self._strings: dict[int, BitStrings] = {}
        self._values: dict[int, ArbBalls] = {}

    def nearest(self, i: int, j: int, *, factor: Fraction, shift: Fraction) -> int:
        """Return the integer that factor · (G₁G₁ᵀ - G₂G₂ᵀ)_ij + shift rounds to."""
        while True:
            x, y = self._line(i).values, self._line(j).values
            half = len(x) // 2
            width = max(self._strings[i].width, self._strings[j].width)
            with precision(width + _GUARD_BITS):
                plus = sum(x[:half] * y[:half], arb(0))
                minus = sum(x[half:] * y[half:], arb(0))
                entry = ArbBalls.of([(plus - minus) * ball(factor) + ball(shift)])
                integers = entry.nearest()
            if integers is not None:
                return integers[0]
            for line in {i, j}:
                self._strings[line].extend(self._bits)
                del self._values[line]

    def _line(self, i: int) -> ArbBalls:
        if i not in self._strings:
            self._strings[i] = BitStrings(self._words[i])
        if i not in self._values:
            self._values[i] = self._strings[i].evaluate(self._draw)
        return self._values[i]
