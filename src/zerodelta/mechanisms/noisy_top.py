"""The k keys with the largest noisy counts, of a universe that need not be listed (theory U).

This is post-processing of noisy counts of *all* keys, so k costs nothing and the numbers come free.
Those of keys that do not occur are drawn only where they may be among the largest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_float, as_positive
from zerodelta.mechanisms.key_noise import FOR_KEYS, KeyNoise
from zerodelta.value import value

Top: TypeAlias = list[tuple[int, int]]

_DENSE = 1 << 16
"""Up to so many keys every noise is drawn: that is faster than a search for the largest."""

_CROWD = 64
"""So many keys for each one that is wanted, or the universe is listed."""


@value
class NoisyTop:
    """Publishes the `k` keys 0..size-1 with the largest noisy counts; ties go to the first.

    **Neighbors**, **Guarantee**: those of `noise`, whatever k is.

    >>> from zerodelta.exact.bits import SystemBits
    >>> top = NoisyTop(noise=KeyNoise.for_epsilon(epsilon=1, log_keys=30.0), size=1 << 53, k=1)
    >>> [key for key, _ in top.apply(np.array([3, 8]), np.array([90, 9000]), SystemBits())]
    [8]
    """

    noise: KeyNoise
    size: int
    k: int

    def apply(
        self, keys: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], bits: BitSource
    ) -> Top:
        """Return keys and noisy counts, the largest first; `keys` are those that occur, rising."""
        if self.size <= max(_DENSE, _CROWD * self.k, 4 * len(keys)):
            every = np.zeros(self.size, dtype=np.int64)
            every[keys] = counts
            noisy = self.noise.apply(every, bits)
            order = np.argsort(-noisy, kind="stable")[: self.k]
            return [(int(key), int(noisy[key])) for key in order]
        noisy = self.noise.apply(counts, bits)
        return self._search(dict(zip(keys.tolist(), noisy.tolist(), strict=True)), bits)

    def _search(self, known: dict[int, int], bits: BitSource) -> Top:
        """Lower a bar, and draw which unseen keys reach it, until k keys do.

        Whether a key passes the next bar is drawn given that it missed the last one, so each has
        the noise it would have had by itself.
        """
        wanted = math.log(self.size / (2 * self.k + 16))
        bar, last = self.noise.threshold(wanted), None
        stride = math.ceil(math.log(4) / float(self.noise.up))
        while True:
            lacking = self.k - sum(count >= bar for count in known.values())
            # how many are wanted of those tied at a single level; keys that occur are no better
            single = last is not None and last - bar == 1
            tied = self.k - sum(count > bar for count in known.values())
            fresh: list[int] = []
            for key in self.noise.unseen(self.size, bar, bits, below=last):
                if single and len(fresh) >= tied:
                    break  # all others are tied with these, and come later
                if key not in known:
                    fresh.append(key)
            for key, count in zip(fresh, self._noises(bar, last, len(fresh), bits), strict=True):
                known[key] = count
            if len(fresh) >= lacking:
                break
            # below 1 one level at a time, where ties are many
            last, bar = bar, max(bar - stride, 1) if bar > 1 else bar - 1
        reached = [(key, count) for key, count in known.items() if count >= bar]
        return sorted(reached, key=lambda each: (-each[1], each[0]))[: self.k]

    def _noises(self, least: int, below: int | None, size: int, bits: BitSource) -> list[int]:
        """Draw noises that are known to be at least `least`, and less than `below`."""
        if below is not None and below - least == 1:
            return [least] * size
        drawn: list[int] = []
        while len(drawn) < size:
            more = self.noise.noise_from(least, size - len(drawn), bits).tolist()
            drawn += [noise for noise in more if below is None or noise < below]
        return drawn


def lost_at(noise: KeyNoise, rivals: int, gap: int) -> float:
    """Return P(one of `rivals` keys, all `gap` behind, is ahead of a key or tied with it)."""
    low = -math.ceil(40 / float(noise.down))
    high = math.ceil((40 + math.log(rivals + 1)) / float(noise.up))
    stride = max(1, (high - low) // 20_000)
    values = np.arange(low, high + 1, stride)
    gap = min(gap, high - low)  # beyond that nothing changes, and integers end
    up, down = float(noise.up), float(noise.down)
    first = noise.passes(0)
    # P(Z < t) at the ends of all strides, and the chance of each
    tail = np.where(
        values >= 0,
        first * np.exp(-up * np.maximum(values, 0)),
        1 - (1 - first) * np.exp(down * np.minimum(values, 0)),
    )
    chance = -np.diff(np.append(tail, 0.0))
    target = values + gap
    ahead = np.where(
        target >= 0,
        first * np.exp(-up * np.maximum(target, 0)),
        1 - (1 - first) * np.exp(down * np.minimum(target, 0)),
    )
    with np.errstate(divide="ignore"):
        lost = -np.expm1(rivals * np.log1p(-np.minimum(ahead, 1.0)))
    return float(np.sum(chance * lost))


@lru_cache(maxsize=256)
def largest_gap(noise: KeyNoise, rivals: int) -> float:
    """Return the largest expected gap to a released key, over all gaps of tied rivals.

    >>> few, many = (largest_gap(KeyNoise.symmetric(epsilon=1), n) for n in (10, 1000))
    >>> 0 < few < many
    True
    """
    if rivals < 1:
        return 0.0
    scale = 1 / float(noise.up) + 1 / float(noise.down)
    reach = math.log(rivals + 1) / float(noise.up) + 4 * scale
    gaps = sorted({max(1, round(gap)) for gap in np.linspace(0, reach, 65)[1:]})
    return float(max(gap * lost_at(noise, rivals, gap) for gap in gaps))


def gap_of(noise: KeyNoise, rivals: int, expected: Fraction | None) -> float:
    """Return the expected gap where rivals are that far behind; the largest if it is not known."""
    if expected is None:
        return largest_gap(noise, rivals)
    gap = min(max(1, round(expected)), 1 << 53)  # no count is larger
    return gap * lost_at(noise, rivals, gap) if rivals else 0.0


def wish_for(log_keys: float, epsilon: Fraction, expected_gap: Rational) -> float:
    """Return the wish B that suits a gap g: √B = √(εg) - √A, at least that of keys alone.

    >>> wish_for(9.0, Fraction(1), 25)
    4.0
    """
    far = as_float(epsilon * as_positive(expected_gap, "expected_gap"), "expected_gap")
    return max(FOR_KEYS, max(0.0, math.sqrt(far) - math.sqrt(log_keys)) ** 2)
