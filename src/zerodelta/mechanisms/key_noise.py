"""Release counts by key with asymmetric noise, and the keys with the largest counts (theory U).

The upper tail of the noise must hide all keys that could occur, the lower tail only those that do.
So ε is divided between the two directions, by public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource, Integers
from zerodelta.exact.noise import asymmetric_noise, geometric_steps, log_below, sparse_ranks
from zerodelta.exact.rational import Rational, as_float, as_positive
from zerodelta.mechanisms.sum_noise import PureMechanism, SumNoise
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.noise import KeyCountsTheorem
from zerodelta.spaces.keys import KeyUniverse, Place
from zerodelta.value import value

FOR_KEYS, FOR_COUNTS = math.log(2), 2.0
"""B for a key whose true count is at its threshold: it is missed with probability about e^-B.

B = ln 2 finds the most keys; B = 2 finds slightly fewer, and their counts err by a third less
(measured in bench/tables_keys.py).
"""

_SHARE_STEPS = 1 << 20
"""The shares of ε for the two directions are multiples of 2^-20, so that certificates are short."""

PublishedKeys: TypeAlias = list[tuple[Any, int]]
"""Keys with their noisy counts."""


@value
class KeyNoise(PureMechanism, SumNoise):
    """Adds floor(E/up) - floor(E'/down) to each count, independently.

    **Neighbors**: one row replaced, or added or removed; a row counts for at most one key.
    **Guarantee**: pure DP with ε = up + down (replaced), the larger of both (added or removed), for
    any number of keys and any function of the noisy counts (theory U).
    **Public**: everything stored here.
    **Error**: `error`, `published`.

    >>> noise = KeyNoise.for_epsilon(epsilon=1, log_keys=30.0)
    >>> noise.epsilon, noise.up > 3 * noise.down
    (Fraction(1, 1), True)
    """

    up: Fraction
    down: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        log_keys: float,
        wish: float = FOR_COUNTS,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> KeyNoise:
        """Return the noise with exactly this ε: up = ε√A/(√A + √B), A = `log_keys`, B = `wish`.

        A is the logarithm of the number of possible keys per acceptable false key. A row that is
        added or removed changes one count in one direction, so both directions get all of ε.
        """
        exact = as_positive(epsilon, "epsilon")
        if neighbors is Neighbors.ADD_REMOVE:
            return cls(up=exact, down=exact, neighbors=neighbors)
        root_keys, root_wish = math.sqrt(max(log_keys, 0.0)), math.sqrt(wish)
        steps = round(_SHARE_STEPS * root_keys / (root_keys + root_wish))
        share = Fraction(min(max(steps, _SHARE_STEPS // 4), _SHARE_STEPS - 1), _SHARE_STEPS)
        return cls(up=exact * share, down=exact * (1 - share), neighbors=neighbors)

    @classmethod
    def symmetric(cls, *, epsilon: Rational, neighbors: Neighbors = Neighbors.REPLACE) -> KeyNoise:
        """Return the noise with this ε that is the same in both directions."""
        exact = as_positive(epsilon, "epsilon")
        rate = exact if neighbors is Neighbors.ADD_REMOVE else exact / 2
        return cls(up=rate, down=rate, neighbors=neighbors)

    @property
    def theorem(self) -> KeyCountsTheorem:
        """Theorem U, whose ε is the same for any number of keys."""
        return KeyCountsTheorem(keys=1, up=self.up, down=self.down)

    def step(self, keys: int) -> Step:  # type: ignore[override]  # callers must state the keys
        """Return the proof step of one release of counts by `keys` keys."""
        return replace(self.theorem, keys=keys).step(self.neighbors)

    def noise(self, count: int, bits: BitSource) -> Integers:
        """Return the noise on the counts of `count` listed keys."""
        return asymmetric_noise(up=self.up, down=self.down, size=count, bits=bits)

    def unseen(
        self, size: int, threshold: int, bits: BitSource, *, below: int | None = None
    ) -> Iterator[int]:
        """Yield in rising order those of `size` ranks whose noise reaches `threshold`.

        With `below`, the noise of all of them is known to be less than that.
        """

        def rate() -> Any:
            """Return -ln P(noise < threshold), given that the noise is less than `below`."""
            inside = -log_below(threshold, up=self.up, down=self.down)
            if below is None:
                return inside
            return inside + log_below(below, up=self.up, down=self.down)

        return sparse_ranks(size, rate, bits)

    def noise_from(self, threshold: int, size: int, bits: BitSource) -> Integers:
        """Draw noises that are known to reach `threshold` ≥ 0: the tail is memoryless."""
        drawn: Integers = threshold + geometric_steps(rate=self.up, size=size, bits=bits)
        return drawn

    # -- public forecasts, in floats: no guarantee rests on them ---------------------------------

    @property
    def _nonnegative_probability(self) -> float:
        """P(Z ≥ 0)."""
        up, down = float(self.up), float(self.down)
        return math.expm1(-down) / math.expm1(-up - down)

    def passes(self, threshold: int) -> float:
        """Return P(Z ≥ threshold)."""
        if threshold >= 0:
            return self._nonnegative_probability * math.exp(-float(self.up) * threshold)
        return 1 - (1 - self._nonnegative_probability) * math.exp(float(self.down) * threshold)

    def log_passes(self, threshold: int) -> float:
        """Return ln P(Z ≥ threshold) for threshold ≥ 0."""
        return math.log(self._nonnegative_probability) - float(self.up) * threshold

    def threshold(self, log_keys: float) -> int:
        """Return the smallest t ≥ 1 with P(Z ≥ t) ≤ e^-log_keys."""
        wanted = (log_keys + math.log(self._nonnegative_probability)) / float(self.up)
        return max(1, math.ceil(wanted - 1e-9))

    @property
    def median(self) -> int:
        """The median of the noise, which is subtracted from published counts."""
        below = 1 - self._nonnegative_probability
        if below >= 0.5:  # P(Z ≤ -j) = below · e^(-down·(j-1))
            return -1 - math.floor(math.log(2 * below) / float(self.down))
        return max(0, math.ceil(math.log(2 * self._nonnegative_probability) / float(self.up)) - 1)

    @property
    def error(self) -> float:
        """E|Z - median|: the expected absolute error of a count that no threshold selects."""
        return _mean_distance(float(self.up), float(self.down), self.median)


def _mean_distance(up: float, down: float, center: int) -> float:
    """Return E|Z - c| = E Z - c + 2 E(c - Z)⁺, which is a geometric sum for c ≤ 0."""
    if center > 0:
        return _mean_distance(down, up, -center)  # of -Z
    ends, starts = -math.expm1(-up), -math.expm1(-down)
    mean = math.exp(-up) / ends - math.exp(-down) / starts
    negative = math.exp(-down) * ends / -math.expm1(-up - down)
    # Σ_{t ≤ c} P(Z < t), where P(Z < t) = P(Z < 0) e^(down·t)
    return mean - center + 2 * negative * math.exp(down * center) / starts


@value
class UnknownKeys:
    """Publishes the keys of a universe whose noisy count reaches the threshold of their class.

    Keys that occur get their noise one by one. The keys that do not occur and pass all the same are
    a random subset of ranks, of which only the gaps are drawn: the time depends on the data, not on
    the size of the universe.

    **Neighbors**, **Guarantee**: those of `noise`.
    **Public**: everything stored here. The thresholds are computed from `false_keys`, the wanted
    expected number of published keys that do not occur, never from the data.

    >>> from zerodelta.exact.bits import SystemBits
    >>> from zerodelta.spaces.keys import TextKeys
    >>> names = TextKeys(alphabet="abcdefghijklmnopqrstuvwxyz", length=20)
    >>> found = UnknownKeys.for_epsilon(epsilon=1, universe=names, false_keys="1/1000000")
    >>> [key for key, _ in found.apply({"ann": 5000, "bob": 9000, "zoe": 1}, SystemBits())]
    ['ann', 'bob']
    """

    universe: KeyUniverse
    noise: KeyNoise
    thresholds: tuple[int, ...]

    @classmethod
    def for_epsilon(
        cls,
        *,
        epsilon: Rational,
        universe: KeyUniverse,
        false_keys: Rational = "1/100",
        wish: float = FOR_COUNTS,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> UnknownKeys:
        """Divide ε between the directions, and choose the thresholds, from public numbers."""
        false = as_positive(false_keys, "false_keys")
        classes = universe.classes
        logs = [_log(keys.size) - _log(false * keys.share) for keys in classes]
        weights = [float(keys.share) for keys in classes]
        average = math.fsum(w * max(log, 0.0) for w, log in zip(weights, logs, strict=True))
        noise = KeyNoise.for_epsilon(
            epsilon=epsilon, log_keys=average, wish=wish, neighbors=neighbors
        )
        thresholds = tuple(noise.threshold(log) for log in logs)
        return cls(universe=universe, noise=noise, thresholds=thresholds)

    def step(self) -> Step:
        """Return the proof step of one release."""
        return self.noise.step(self.universe.size)

    @property
    def false_keys(self) -> float:
        """The expected number of published keys that do not occur, if no key does."""
        pairs = zip(self.universe.classes, self.thresholds, strict=True)
        return math.fsum(math.exp(_log(c.size) + self.noise.log_passes(t)) for c, t in pairs)

    def apply(self, counts: Mapping[Any, int], bits: BitSource) -> PublishedKeys:
        """Return the keys that pass and their noisy counts, in the order of the universe.

        `counts` are those of keys of the universe that occur; the result does not show their order.
        """
        passing = [*self._seen(counts, bits), *self._unseen(counts.keys(), bits)]
        passing.sort(key=lambda entry: entry[0])  # the order of the rows must not show
        return [(self.universe.key(place), count) for place, count in passing]

    def _seen(self, counts: Mapping[Any, int], bits: BitSource) -> list[tuple[Place, int]]:
        """Return the places of the keys that occur and pass, with their noisy counts."""
        noisy = self.noise.apply(np.fromiter(counts.values(), np.int64, len(counts)), bits)
        lowest = min(self.thresholds)
        passing = []
        # computing a place is slow: do it only for keys that reach the lowest threshold
        candidates = np.flatnonzero(noisy >= lowest)
        keys = list(counts) if len(candidates) else []
        for i in candidates.tolist():
            place = self.universe.place(keys[i])
            if noisy[i] >= self.thresholds[place[0]]:
                passing.append((place, int(noisy[i])))
        return passing

    def _unseen(self, seen: Set[Any], bits: BitSource) -> list[tuple[Place, int]]:
        """Return the places of the keys that do not occur and pass, with their noise as counts."""
        passing = []
        for group, threshold in enumerate(self.thresholds):
            size = self.universe.classes[group].size
            ranks = list(self.noise.unseen(size, threshold, bits))
            drawn = self.noise.noise_from(threshold, len(ranks), bits)
            for rank, count in zip(ranks, drawn.tolist(), strict=True):
                place = (group, rank)
                # ranks are drawn among all keys; those that occur have got their noise in `_seen`
                if self.universe.key(place) not in seen:
                    passing.append((place, count))
        return passing


def _log(number: int | Fraction) -> float:
    """Return ln of a positive rational of any size."""
    return math.log(number.numerator) - math.log(number.denominator)


# -- The k keys with the largest noisy counts, of a universe that need not be listed (theory U) ---
# The result is post-processing of noisy counts of *all* keys, so neither k nor the released counts
# cost ε. Counts of keys that do not occur are drawn only where they may be among the largest.

Top: TypeAlias = list[tuple[int, int]]

_DENSE = 1 << 16
"""The largest universe for which the noise of every key is drawn, which is then faster."""

_CROWD = 64
"""Universes with fewer keys than this for each wanted one are listed, too."""


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
            all_counts = np.zeros(self.size, dtype=np.int64)
            all_counts[keys] = counts
            noisy = self.noise.apply(all_counts, bits)
            order = np.argsort(-noisy, kind="stable")[: self.k]
            return [(int(key), int(noisy[key])) for key in order]
        noisy = self.noise.apply(counts, bits)
        return self._search(dict(zip(keys.tolist(), noisy.tolist(), strict=True)), bits)

    def _search(self, noisy_counts: dict[int, int], bits: BitSource) -> Top:
        """Lower a threshold, and draw which unseen keys reach it, until k keys do.

        Whether a key reaches the next threshold is drawn given that it missed the last one, so that
        the noise of each key has its exact law.
        """
        log_keys = math.log(self.size / (2 * self.k + 16))
        threshold, last = self.noise.threshold(log_keys), None
        stride = math.ceil(math.log(4) / float(self.noise.up))
        while True:
            lacking = self.k - sum(count >= threshold for count in noisy_counts.values())
            # at a single level all new keys are tied, and only the first ones can be published
            single = last is not None and last - threshold == 1
            tied = self.k - sum(count > threshold for count in noisy_counts.values())
            new_keys: list[int] = []
            for key in self.noise.unseen(self.size, threshold, bits, below=last):
                if single and len(new_keys) >= tied:
                    break  # all further keys are tied with these, and come later
                if key not in noisy_counts:
                    new_keys.append(key)
            noises = self._noises(threshold, last, len(new_keys), bits)
            noisy_counts.update(zip(new_keys, noises, strict=True))
            if len(new_keys) >= lacking:
                break
            # below 1 by one level at a time, because many keys are tied there
            last, threshold = (
                threshold,
                max(threshold - stride, 1) if threshold > 1 else threshold - 1,
            )
        reached = [(key, count) for key, count in noisy_counts.items() if count >= threshold]
        return sorted(reached, key=lambda entry: (-entry[1], entry[0]))[: self.k]

    def _noises(self, threshold: int, below: int | None, size: int, bits: BitSource) -> list[int]:
        """Draw noises that are known to reach `threshold`, and to be less than `below`."""
        if below is not None and below - threshold == 1:
            return [threshold] * size
        drawn: list[int] = []
        while len(drawn) < size:
            more = self.noise.noise_from(threshold, size - len(drawn), bits).tolist()
            drawn += [noise for noise in more if below is None or noise < below]
        return drawn


def lost_at(noise: KeyNoise, rivals: int, gap: int) -> float:
    """Return P(one of `rivals` keys, whose counts are `gap` lower, is ahead of a key or tied)."""
    low = -math.ceil(40 / float(noise.down))
    high = math.ceil((40 + math.log(rivals + 1)) / float(noise.up))
    stride = max(1, (high - low) // 20_000)
    values = np.arange(low, high + 1, stride)
    gap = min(gap, high - low)  # larger gaps change nothing, and may exceed 64 bits
    up, down = float(noise.up), float(noise.down)
    nonnegative = noise.passes(0)

    def tail(t: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return P(Z ≥ t), as `KeyNoise.passes` does for one number."""
        return np.where(
            t >= 0,
            nonnegative * np.exp(-up * np.maximum(t, 0)),
            1 - (1 - nonnegative) * np.exp(down * np.minimum(t, 0)),
        )

    probability = -np.diff(np.append(tail(values), 0.0))  # of the noise of the key in each stride
    ahead = tail(values + gap)  # that of one rival being ahead, given the noise of the key
    with np.errstate(divide="ignore"):
        lost = -np.expm1(rivals * np.log1p(-np.minimum(ahead, 1.0)))
    return float(np.sum(probability * lost))


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
    """Return the expected gap if rivals are `expected` behind; None: the largest over all gaps."""
    if expected is None:
        return largest_gap(noise, rivals)
    gap = min(max(1, round(expected)), 1 << 53)  # no count is larger
    return gap * lost_at(noise, rivals, gap) if rivals else 0.0


def wish_for(log_keys: float, epsilon: Fraction, expected_gap: Rational) -> float:
    """Return the B of `KeyNoise.for_epsilon` for a gap g: √B = √(εg) - √A, at least `FOR_KEYS`.

    >>> wish_for(9.0, Fraction(1), 25)
    4.0
    """
    product = as_float(epsilon * as_positive(expected_gap, "expected_gap"), "expected_gap")
    return max(FOR_KEYS, max(0.0, math.sqrt(product) - math.sqrt(log_keys)) ** 2)
