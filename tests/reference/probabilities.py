"""Exact probabilities as narrow rational intervals.

A :class:`Law` on the integers gives P(Z = k), P(Z < k) and P(Z > k). For rounded noise,
round(x) = floor(x + 1/2), the cell of k is [k - 1/2, k + 1/2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import factorial

from reference.intervals import Interval, Number, Rational, atan, exp, pi, sqrt

BITS = 160
HALF = Fraction(1, 2)

Cdf = Callable[[Fraction], Interval]


def exp_rational(x: Rational, bits: int = BITS) -> Interval:
    """Enclose exp(x) for a rational x."""
    return exp(Interval.point(x, bits + 8)).with_bits(bits)


class Law(ABC):
    """A distribution on the integers."""

    @abstractmethod
    def pmf(self, k: int) -> Interval:
        """Return P(Z = k)."""

    @abstractmethod
    def below(self, k: int) -> Interval:
        """Return P(Z < k)."""

    @abstractmethod
    def above(self, k: int) -> Interval:
        """Return P(Z > k)."""

    def cells(self, lo: int, hi: int) -> list[float]:
        """Return the floats P(Z < lo), P(lo), ..., P(hi), P(Z > hi) for a chi-square test."""
        middle = [self.pmf(k) for k in range(lo, hi + 1)]
        return [float(p) for p in (self.below(lo), *middle, self.above(hi))]


class RoundedLaw(Law):
    """The law of round(X), from the distribution function of X, which has a density."""

    def __init__(self, cdf: Cdf) -> None:
        self._cdf = cache(cdf)

    def pmf(self, k: int) -> Interval:
        """Return P(k - 1/2 <= X < k + 1/2)."""
        return (self._cdf(k + HALF) - self._cdf(k - HALF)).nonnegative()

    def below(self, k: int) -> Interval:
        """Return P(X < k - 1/2)."""
        return self._cdf(k - HALF)

    def above(self, k: int) -> Interval:
        """Return P(X >= k + 1/2)."""
        return (1 - self._cdf(k + HALF)).nonnegative()


# --- rounded continuous noise ---------------------------------------------------------------


def rounded_laplace(scale: Rational, bits: int = BITS) -> RoundedLaw:
    """Return the law of round(Laplace(b)), from the distribution function."""

    def cdf(x: Fraction) -> Interval:
        tail = exp_rational(-abs(x) / scale, bits) / 2
        return tail if x < 0 else 1 - tail

    return RoundedLaw(cdf)


def rounded_exponential(scale: Rational, bits: int = BITS) -> RoundedLaw:
    """Return the law of round(-b ln U)."""

    def cdf(x: Fraction) -> Interval:
        if x <= 0:
            return Interval.point(0, bits)
        return 1 - exp_rational(-x / scale, bits)

    return RoundedLaw(cdf)


def normal_between_zero_and(square: Rational, bits: int = BITS) -> Interval:
    """Enclose P(0 < N < x) for a standard normal N, from the rational x².

    It is φ(x)·Σ_n x^(2n+1)/(1·3·5···(2n+1)): all terms are positive. The sum grows like
    e^(x²/2), so the working precision does too.
    """
    square = Fraction(square)
    fine = bits + 32 + int(square)  # e^(x²/2) < 2^(x²)
    term = total = Interval.point(1, fine)
    n = 0
    # Stop where every later ratio x²/(2n+3) is at most 1/2: the rest is at most the last term.
    while 2 * square > 2 * n + 3 or term.hi > Fraction(1, 1 << fine):
        n += 1
        term = term * (square / (2 * n + 1))
        total = total + term
    total = Interval.of(total.lo, total.hi + term.hi, fine)
    density = exp_rational(-square / 2, fine) / sqrt(2 * pi(fine))
    return (total * density * sqrt(Interval.point(square, fine))).with_bits(bits)


def rounded_gaussian(variance: Rational, bits: int = BITS) -> RoundedLaw:
    """Return the law of round(N(0, σ²)), σ² rational; meant for at most a dozen σ or so."""

    def cdf(x: Fraction) -> Interval:
        side = normal_between_zero_and(x * x / variance, bits)
        return HALF + side if x >= 0 else HALF - side

    return RoundedLaw(cdf)


def rounded_gamma(shape: int, scale: Rational, bits: int = BITS) -> RoundedLaw:
    """Return the law of round(G), G ~ Gamma(integer shape, b): a Poisson sum."""

    def cdf(x: Fraction) -> Interval:
        if x <= 0:
            return Interval.point(0, bits)
        y = x / scale
        polynomial = sum((y**i / factorial(i) for i in range(shape)), Fraction(0))
        fine = bits + max(int(polynomial).bit_length(), 0) + 8
        return (1 - exp_rational(-y, fine) * polynomial).nonnegative().with_bits(bits)

    return RoundedLaw(cdf)


def rounded_student_t(nu: int, scale: Rational, bits: int = BITS) -> RoundedLaw:
    """Return the law of round(b·T), T Student-t with 1, 2 or 3 degrees of freedom."""
    fine = bits + 16

    def one(t: Fraction) -> Interval:
        return HALF + atan(Interval.point(t, fine)) / pi(fine)

    def two(t: Fraction) -> Interval:
        return HALF + t / (2 * sqrt(Interval.point(2 + t * t, fine)))

    def three(t: Fraction) -> Interval:
        s = t / sqrt(Interval.point(3, fine))  # t/√3, so that s/(1 + s²) = s/(1 + t²/3)
        return HALF + (s / (1 + t * t / 3) + atan(s)) / pi(fine)

    cdf = {1: one, 2: two, 3: three}[nu]
    return RoundedLaw(lambda x: cdf(x / scale).with_bits(bits))


# --- discrete noise -------------------------------------------------------------------------


class DiscreteLaplace(Law):
    """P(k) proportional to exp(-|k|/scale)."""

    def __init__(self, scale: Rational, bits: int = BITS) -> None:
        self._rate = Fraction(1) / scale
        self._bits = bits
        q = self._power(1)
        self._one_plus_q = 1 + q
        self._peak = (1 - q) / self._one_plus_q

    def _power(self, n: int) -> Interval:
        return exp_rational(-n * self._rate, self._bits)

    def pmf(self, k: int) -> Interval:
        """Return (1-q)/(1+q)·q^|k|, q = exp(-1/scale)."""
        return self._peak * self._power(abs(k))

    def above(self, k: int) -> Interval:
        """Return q^(k+1)/(1+q) for k >= -1, by symmetry otherwise."""
        if k < -1:
            return 1 - self.above(-k - 1)
        return self._power(k + 1) / self._one_plus_q

    def below(self, k: int) -> Interval:
        """Return P(Z < k)."""
        return self.above(-k)


# --- selection ------------------------------------------------------------------------------


def relative_weights(
    scores: Sequence[Rational], scale: Rational, bits: int = BITS
) -> list[Interval]:
    """Return exp((q_i - q*)/scale) for each score; the scale is 2Δ/ε."""
    best = max(scores)
    return [exp_rational(Fraction(q - best) / scale, bits) for q in scores]


def exponential_mechanism(
    scores: Sequence[Rational], scale: Rational, bits: int = BITS
) -> list[Interval]:
    """Return P(i) = e^(q_i/scale)/Σ_j e^(q_j/scale)."""
    weights = relative_weights(scores, scale, bits)
    total = sum(weights, Interval.point(0, bits))
    return [w / total for w in weights]


def permute_and_flip_weights(weights: Sequence[Number], bits: int = BITS) -> list[Interval]:
    """Return P(i) = x_i ∫_0^1 Π_{j≠i} (1 - x_j s) ds for weights x_j in [0, 1], one of them 1.

    The product is expanded, so a few bits per item are lost.
    """
    fine = bits + 2 * len(weights)
    exact = [x if isinstance(x, Interval) else Interval.point(x, fine) for x in weights]
    result = []
    for i, weight in enumerate(exact):
        coefficients = [Interval.point(1, fine)]
        for j, x in enumerate(exact):
            if j != i:
                shifted = [Interval.point(0, fine), *(-(x * c) for c in coefficients)]
                padded = [*coefficients, Interval.point(0, fine)]
                coefficients = [a + b for a, b in zip(padded, shifted, strict=True)]
        integral = sum((c / (n + 1) for n, c in enumerate(coefficients)), Interval.point(0, fine))
        result.append((weight * integral).with_bits(bits))
    return result


def permute_and_flip(
    scores: Sequence[Rational], scale: Rational, bits: int = BITS
) -> list[Interval]:
    """Return the permute-and-flip probabilities of integer or rational scores."""
    weights = relative_weights(scores, scale, bits + 2 * len(scores))
    return permute_and_flip_weights(weights, bits)
