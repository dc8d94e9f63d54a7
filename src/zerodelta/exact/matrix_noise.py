"""Draw matrix Laplace noise for sums of products of rows, exactly rounded (theory W2).

Z = (G₁G₁ᵀ - G₂G₂ᵀ)/2 with independent d × (d+1) matrices of standard normals. An entry of it is a
polynomial of the normals of two lines. It is evaluated in floats with a proven radius; where its
rounding is undecided, the uniforms of these two lines are extended, for all their entries alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import ArbBalls, BitSource, BitStrings, Draw, Integers, Reals, Words
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.logs import ball, precision
from zerodelta.exact.noise import box_muller
from zerodelta.exact.rational import Rational, as_count, as_positive

_GUARD_BITS = 64
_CONSTANT_BITS = 128

_PARTS = 1 << 12
"""The parts of the scale to which noisy sums are rounded, so that floats decide most entries."""

ROOT = Fraction(99, 70)
"""The weight of entries off the diagonal: √2, by which all have the same variance, and 1/19000."""


def quantum_of(scale: Fraction) -> int:
    """Return the power of two, or 1, to whose multiples noisy sums are rounded.

    >>> quantum_of(Fraction(10)), quantum_of(Fraction(1 << 40))
    (1, 268435456)
    """
    parts = int(scale / _PARTS)
    return 1 << max(0, parts.bit_length() - 1)


def rounded_matrix_laplace(
    *,
    dimension: int,
    scale: Rational,
    bits: BitSource,
    center: Sequence[Fraction] | None = None,
) -> Integers:
    """Draw the upper triangle of round(c + scale · Z), line by line, entries weighted by `ROOT`.

    The d(d+1)/2 numbers of the `center` are in [0, 1); without it they are 0.

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_matrix_laplace(dimension=2, scale="1/1000000", bits=SystemBits()).tolist()
    [0, 0, 0]
    """
    d, exact = as_count(dimension, "dimension", minimum=1), as_positive(scale, "scale")
    first, second = np.triu_indices(d)
    factors = [exact / 2, exact / 2 * ROOT]
    weighted = (first != second).astype(np.int64)
    words = bits.words(2 * d * (d + 1)).reshape(d, 2 * (d + 1))
    with np.errstate(all="ignore"):  # an infinite or NaN radius means undecided
        products = _products(words)
        with precision(_CONSTANT_BITS):
            enclosed = FloatBalls.enclose([ball(factor) for factor in factors])
        scales = FloatBalls(enclosed.middle[weighted, 0], enclosed.radius[weighted, 0])
        entries = FloatBalls(products.middle[first, second], products.radius[first, second])
        integers, decided = (entries * scales + _shift(center, len(first))).nearest()
        drawn: Integers = np.where(decided, integers, 0.0).astype(np.int64)
    if not decided.all():
        lines = _Lines(words, bits)
        drawn = drawn.astype(object)
        for place in np.flatnonzero(~decided):
            drawn[place] = lines.nearest(
                int(first[place]),
                int(second[place]),
                factor=factors[weighted[place]],
                shift=Fraction(0) if center is None else center[int(place)],
            )
    return drawn


def _shift(center: Sequence[Fraction] | None, size: int) -> FloatBalls:
    """Enclose the numbers of the center, each the nearest float to a number in [0, 1)."""
    if center is None:
        return FloatBalls(np.zeros(size), np.zeros(size))
    return FloatBalls(np.array([float(c) for c in center]), np.full(size, 2.0**-53))


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
    lines = FloatBalls.uniform(words.T.copy())
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
        self._words, self._bits = words, bits
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
