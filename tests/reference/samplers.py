"""Exact samplers driven by fair integers only.

`randbelow(n)` returns a uniform integer in 0..n-1, e.g. ``random.Random(seed).randrange``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt

from reference.intervals import Rational

RandBelow = Callable[[int], int]


# --- Canonne, Kamath, Steinke: "The discrete Gaussian for differential privacy" --------------


def bernoulli(p: Rational, randbelow: RandBelow) -> bool:
    """Return True with probability p, a rational in [0, 1]."""
    if not 0 <= p <= 1:
        raise ValueError("a probability lies in [0, 1]")
    return randbelow(p.denominator) < p.numerator


def bernoulli_exp(x: Rational, randbelow: RandBelow) -> bool:
    """Return True with probability exp(-x), x >= 0 rational (their Algorithm 1)."""
    if x < 0:
        raise ValueError("exp(-x) is no probability for x < 0")
    while x > 1:
        if not bernoulli_exp(1, randbelow):
            return False
        x -= 1
    k = 1
    while bernoulli(Fraction(x) / k, randbelow):
        k += 1
    return k % 2 == 1


def geometric_exp(x: Rational, randbelow: RandBelow) -> int:
    """Return the number of successes of Bernoulli(exp(-x)) before the first failure."""
    count = 0
    while bernoulli_exp(x, randbelow):
        count += 1
    return count


def discrete_laplace(scale: Rational, randbelow: RandBelow) -> int:
    """Return k with probability proportional to exp(-|k|/scale) (their Algorithm 2)."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = randbelow(t)
        if not bernoulli_exp(Fraction(u, t), randbelow):
            continue
        magnitude = (u + t * geometric_exp(1, randbelow)) // s
        negative = bernoulli(Fraction(1, 2), randbelow)
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def discrete_gaussian(variance: Rational, randbelow: RandBelow) -> int:
    """Return k with probability proportional to exp(-k²/(2σ²)) (their Algorithm 3)."""
    variance = Fraction(variance)
    t = isqrt(variance.numerator // variance.denominator) + 1  # floor(σ) + 1
    while True:
        y = discrete_laplace(t, randbelow)
        if bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance), randbelow):
            return y


# --- subsets ---------------------------------------------------------------------------------


def subset(places: int, size: int, randbelow: RandBelow) -> list[int]:
    """Return `size` of 0..places-1, all subsets alike, sorted (R. Floyd's algorithm)."""
    chosen: set[int] = set()
    for top in range(places - size, places):
        pick = randbelow(top + 1)
        chosen.add(top if pick in chosen else pick)
    return sorted(chosen)


def multiset(universe: int, size: int, randbelow: RandBelow) -> list[int]:
    """Return `size` items of 0..universe-1, all multisets alike, sorted (stars and bars)."""
    stars = subset(universe + size - 1, size, randbelow)
    return [star - rank for rank, star in enumerate(stars)]


# --- rounded noise --------------------------------------------------------------------------


def rounded_laplace(scale: Rational, randbelow: RandBelow) -> int:
    """Return round(Laplace(b)).

    |X| < 1/2 has probability 1 - exp(-1/(2b)); beyond it |X| - 1/2 is exponential again, whose
    integer part is geometric with ratio exp(-1/b); the sign is fair.
    """
    rate = Fraction(1) / scale
    if not bernoulli_exp(rate / 2, randbelow):
        return 0
    magnitude = 1 + geometric_exp(rate, randbelow)
    return magnitude if bernoulli(Fraction(1, 2), randbelow) else -magnitude


class LazyUniform:
    """A uniform number in (0, 1) whose binary digits are drawn when they are needed."""

    def __init__(self, randbelow: RandBelow, step: int = 16) -> None:
        self._randbelow = randbelow
        self._step = step
        self.prefix = 0
        self.nbits = 0

    @property
    def lo(self) -> Fraction:
        """The lower end of what is known."""
        return Fraction(self.prefix, 1 << self.nbits)

    @property
    def hi(self) -> Fraction:
        """The upper end of what is known."""
        return Fraction(self.prefix + 1, 1 << self.nbits)

    def extend(self) -> None:
        """Draw more digits."""
        self.prefix = (self.prefix << self._step) | self._randbelow(1 << self._step)
        self.nbits += self._step

    def below(self, threshold: Rational) -> bool:
        """Say whether the number is below a rational (equality has probability 0)."""
        while True:
            if self.hi <= threshold:
                return True
            if self.lo >= threshold:
                return False
            self.extend()

    def below_affine(self, other: LazyUniform, slope: Rational, offset: Rational) -> bool:
        """Say whether the number is below slope·other + offset, slope > 0."""
        while True:
            if self.hi <= slope * other.lo + offset:
                return True
            if self.lo >= slope * other.hi + offset:
                return False
            shorter = self if self.nbits <= other.nbits else other
            shorter.extend()


def _half_exponential_trial(randbelow: RandBelow) -> bool:
    """Return True with probability exp(-1/2) (Karney's Algorithm H, von Neumann's runs).

    The run 1/2 > U_1 > U_2 > ... reaches length n with probability (1/2)^n/n!, so that its
    length is even with probability exp(-1/2).
    """
    last = LazyUniform(randbelow)
    if not last.below(Fraction(1, 2)):
        return True
    length = 1
    while True:
        following = LazyUniform(randbelow)
        if not following.below_affine(last, 1, 0):
            return length % 2 == 0
        last = following
        length += 1


def _quadratic_trial(k: int, x: LazyUniform, randbelow: RandBelow) -> bool:
    """Return True with probability exp(-x(2k+x)/(2k+2)) (Karney's Algorithm B)."""
    last, length = x, 0
    while True:
        following = LazyUniform(randbelow)
        if not following.below_affine(last, 1, 0):
            break
        coin = LazyUniform(randbelow)
        if not coin.below_affine(x, Fraction(1, 2 * k + 2), Fraction(2 * k, 2 * k + 2)):
            break
        last = following
        length += 1
    return length % 2 == 0


def karney_normal(randbelow: RandBelow) -> tuple[int, int, LazyUniform]:
    """Return (sign, k, x) such that sign·(k + x) is exactly standard normal (Algorithm N)."""
    while True:
        k = 0  # N1: geometric with ratio exp(-1/2)
        while _half_exponential_trial(randbelow):
            k += 1
        if not all(_half_exponential_trial(randbelow) for _ in range(k * (k - 1))):
            continue  # N2: accept with probability exp(-k(k-1)/2)
        x = LazyUniform(randbelow)  # N3
        if all(_quadratic_trial(k, x, randbelow) for _ in range(k + 1)):
            break  # N4: accepted with probability exp(-x(2k+x)/2)
    return (1 if randbelow(2) else -1), k, x


def rounded_gaussian(sigma: Rational, randbelow: RandBelow) -> int:
    """Return round(σN), decided exactly from as many digits of N as it takes."""
    sign, k, x = karney_normal(randbelow)
    half = Fraction(1, 2)
    while True:
        ends = sorted((sign * sigma * (k + x.lo), sign * sigma * (k + x.hi)))
        low, high = (end + half for end in ends)
        down = low.numerator // low.denominator
        if high <= down + 1:  # the upper end is hit with probability 0
            return down
        x.extend()


# --- selection ------------------------------------------------------------------------------


def permute_and_flip(scores: Sequence[Rational], scale: Rational, randbelow: RandBelow) -> int:
    """Return an index: in random order, accept i with probability exp(-(q* - q_i)/scale).

    The scale is 2Δ/ε.
    """
    best = max(scores)
    order = list(range(len(scores)))
    for i in range(len(order) - 1, 0, -1):
        j = randbelow(i + 1)
        order[i], order[j] = order[j], order[i]
    for i in order:
        if bernoulli_exp(Fraction(best - scores[i]) / scale, randbelow):
            return i
    raise AssertionError("an item with the best score is always accepted")


def exponential_mechanism(scores: Sequence[Rational], scale: Rational, randbelow: RandBelow) -> int:
    """Return i with probability proportional to exp(q_i/scale), scale 2Δ/ε, by rejection."""
    best = max(scores)
    while True:
        i = randbelow(len(scores))
        if bernoulli_exp(Fraction(best - scores[i]) / scale, randbelow):
            return i
