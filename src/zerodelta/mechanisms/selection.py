"""The best of several options, or the k best: exponential mechanism, permute-and-flip (C10.1, K2).

Both add noise to exact scores and release only *which* noisy score is largest.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.argmax import Members, Rest, Scores, exponential_argmax, gumbel_argmax
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import categorical, uniform_below
from zerodelta.exact.logs import ball, precision
from zerodelta.exact.rational import Rational, as_count, as_float, as_positive
from zerodelta.mechanisms.sum_noise import ScaledMechanism
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems import noise as theorems
from zerodelta.value import value


class Selection(ScaledMechanism):
    """Public configuration of a noisy argmax; each subclass adds its own noise."""

    __slots__ = ()

    sensitivity: Fraction
    monotone: bool

    @abstractmethod
    def select(
        self, scores: Scores, bits: BitSource, *, members: Members | None = None, **rest: Rest
    ) -> int:
        """Return the index of the chosen option; scores are integers or Fractions.

        With `members`, each score is that of so many options: the index of the winner's score.
        With `rest`, the last one is a bound for its members, and an index from there on says which.
        """

    def select_member(
        self, scores: Scores, members: Members, bits: BitSource, *, rest: Rest | None = None
    ) -> tuple[int, int]:
        """Return the index of the winner's score, and which of its members the winner is.

        With `rest`, the last score is a bound for its members, and `rest(place)` that of one.
        """
        if rest is not None:
            winner, last = self.select(scores, bits, members=members, rest=rest), len(scores) - 1
            if winner >= last:
                return last, winner - last
        else:
            winner = self.select(scores, bits, members=members)
        return winner, int(uniform_below(int(members[winner]), size=1, bits=bits)[0])

    def error(self, options: int) -> float:
        """Return scale · ln(options), at least the expected gap between best and chosen score."""
        return float(self.scale) * math.log(as_count(options, "options", minimum=1))


@value
class ExponentialMechanism(Selection):
    """Releases the index of the largest score + scale · Gumbel: P(i) ∝ e^(score_i / scale).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = 2 sensitivity / scale, if each score has this sensitivity;
    ε = sensitivity / scale if `monotone` (all scores always move in the same direction). The loss
    has range ε, so inside a composition it costs ε²/8 of zCDP (C10.1, R2).
    **Public**: everything stored here, and the number of options.
    **Error**: the chosen score is below the best by at most scale · ln(options) on average.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = ExponentialMechanism.for_epsilon(epsilon=1, sensitivity=1)
    >>> mechanism.scale, mechanism.select([0, 10_000, 3], SystemBits())
    (Fraction(2, 1), 1)
    """

    sensitivity: Fraction
    scale: Fraction
    monotone: bool = False
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> theorems.ExponentialMechanismTheorem:
        """Theorem C10.1; the loss of a choice has bounded range."""
        return theorems.ExponentialMechanismTheorem(
            sensitivity=self.sensitivity, scale=self.scale, monotone=self.monotone
        )

    def select(
        self, scores: Scores, bits: BitSource, *, members: Members | None = None, **rest: Rest
    ) -> int:
        """Return the index of the chosen option; scores are integers or Fractions."""
        found = gumbel_argmax(scores, scale=self.scale, size=1, bits=bits, members=members, **rest)
        return int(found[0])


@value
class PermuteAndFlip(Selection):
    """Releases the index of the largest score + scale · Exponential: never worse than the above.

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = 2 sensitivity / scale (sensitivity / scale if `monotone`), as
    for the exponential mechanism (C10.1). Its loss is *not* of range ε: inside a composition it
    costs what any pure step does.
    **Public**: everything stored here, and the number of options.
    **Error**: at equal ε the gap to the best score is stochastically smaller than the exponential
    mechanism's, at most scale · ln(options) on average.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = PermuteAndFlip.for_epsilon(epsilon="1/2", sensitivity=1, monotone=True)
    >>> mechanism.scale, mechanism.select([0, 10_000, 3], SystemBits())
    (Fraction(2, 1), 1)
    """

    sensitivity: Fraction
    scale: Fraction
    monotone: bool = False
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> theorems.PermuteAndFlipTheorem:
        """Theorem C10.1, of a plain pure step."""
        return theorems.PermuteAndFlipTheorem(
            sensitivity=self.sensitivity, scale=self.scale, monotone=self.monotone
        )

    def select(
        self, scores: Scores, bits: BitSource, *, members: Members | None = None, **rest: Rest
    ) -> int:
        """Return the index of the chosen option; scores are integers or Fractions."""
        found = exponential_argmax(
            scores, scale=self.scale, size=1, bits=bits, members=members, **rest
        )
        return int(found[0])


def worst_gap(options: int, scale: Rational) -> float:
    """Return max over a of a·P(not the best): one option leads N-1 tied ones by a.

    Permute-and-flip has P(the best) = (1 - (1-x)^N)/(N x) with x = e^(-a/b); at most b ln N (theory
    C10.1).

    >>> worst_gap(2, 2) < worst_gap(100, 2) < 2 * math.log(100)
    True
    """
    count = as_count(options, "options", minimum=1)
    return as_float(as_positive(scale, "scale"), "scale") * _unit_gap(count)


@lru_cache(maxsize=256)
def _unit_gap(count: int) -> float:
    """Return the worst gap at scale 1."""
    if count == 1:
        return 0.0
    leads = np.linspace(0.0, 4.0 + 2.0 * math.log(count), 4000)[1:]
    return float((leads * _wrong(count, leads)).max())


def gap_at(options: int, scale: Rational, lead: float) -> float:
    """Return the expected gap where one option leads all others, which are tied, by `lead`.

    >>> gap_at(100, 2, 40) < worst_gap(100, 2)
    True
    """
    leads = np.array([lead / float(as_positive(scale, "scale"))])
    return lead * float(_wrong(as_count(options, "options", minimum=1), leads)[0])


def _wrong(count: int, leads: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the probability that one of the others is chosen, for leads at scale 1."""
    leads = np.clip(leads, 1e-15, 700)  # e^-lead is neither 0 nor 1
    x = np.exp(-leads)
    wrong: npt.NDArray[np.float64] = 1 + np.expm1(count * np.log1p(-x)) / (count * x)
    return wrong


# -- Joint top k ----------------------------------------------------------------------------------
# The k best of N options by general scores, in one draw of the exponential mechanism (theory K2).
#
# A list s of k different options is as good as its worst place: u(s) = -max_i(c_(i) - c_{s_i}),
# c_(i) the i-th largest score. There are N!/(N-k)! lists, but only kN values of u, and the number
# of lists for each is a product; so a value is drawn first, and then a list with it, both exactly.

_WORD = 64


@value
class JointTopK(ScaledMechanism):
    """Releases `k` options in order, P(s) ∝ e^(u(s)/scale).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = 4 sensitivity / scale (2 sensitivity / scale if `monotone`).
    **Public**: everything stored here, and the number of options.
    **Error**: with probability 1 - p no place is worse by more than scale · (k ln N + ln 1/p).

    >>> from zerodelta.exact.bits import SystemBits
    >>> best = JointTopK.for_epsilon(epsilon=1, k=2, sensitivity=1)
    >>> best.scale, best.select([0, 9000, 3, 5000], SystemBits())
    (Fraction(4, 1), [1, 3])
    """

    k: int
    sensitivity: Fraction
    scale: Fraction
    monotone: bool = False
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> theorems.JointTopKTheorem:
        """Theorem K2; the loss of a draw has bounded range."""
        return theorems.JointTopKTheorem(
            chosen=self.k,
            sensitivity=self.sensitivity,
            scale=self.scale,
            monotone=self.monotone,
        )

    def worst_gap(self, options: int) -> float:
        """Return the largest expected gap of the worst place: k options lead all others, tied.

        Of C(N, k) sets one has no gap: max over a of a/(1 + e^(a-L)), L = ln(C(N, k) - 1).
        """
        sets = math.comb(as_count(options, "options", minimum=self.k), self.k)
        if sets == 1:
            return 0.0
        log = math.log(sets - 1)
        leads = np.linspace(0.0, 4.0 + 2.0 * log, 4000)
        return float(self.scale) * float((leads / (1 + np.exp(leads - log))).max())

    def select(self, scores: Sequence[Fraction | int], bits: BitSource) -> list[int]:
        """Return the indices of the chosen options, the best place first."""
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        ranked = [Fraction(scores[i]) for i in order]
        lists = _Lists(ranked, min(self.k, len(ranked)))
        worst, before = _level(lists, self.scale, bits)
        return [order[place] for place in lists.draw(worst, before, bits)]


@final
class _Lists:
    """Lists of k places of falling scores, by how much their worst place lacks."""

    def __init__(self, ranked: list[Fraction], k: int) -> None:
        self._ranked, self.k = ranked, k
        unit = math.lcm(*(score.denominator for score in ranked))
        best = ranked[0]
        self._behind = [int((best - score) * unit) for score in ranked]
        self.unit = Fraction(1, unit)
        """What an integer of lacking stands for."""

    def within(self, lacks: int | None) -> list[int]:
        """Return for each of the k places how many options lack at most so much there."""
        if lacks is None:
            return [0] * self.k
        # a later place asks less, so these sets are nested
        return [bisect_right(self._behind, lacks + near) for near in self._behind[: self.k]]

    def number(self, lacks: int | None) -> int:
        """Return how many lists lack at most so much: earlier places take from later sets."""
        return math.prod(max(0, count - i) for i, count in enumerate(self.within(lacks)))

    def levels(self) -> list[int]:
        """Return all that a list may lack, rising."""
        behind, own = self._behind, self._behind[: self.k]
        return sorted({far - near for near in set(own) for far in set(behind) if far >= near})

    @property
    def total(self) -> int:
        """The number of all lists."""
        return math.perm(len(self._behind), self.k)

    def draw(self, lacks: int, before: int | None, bits: BitSource) -> list[int]:
        """Return a uniform one of the lists that lack `lacks`, more than the level `before`.

        The first place that lacks more than `before` is drawn, and takes one of the options that
        are new at this level; places before it take old ones, places after it any.
        """
        old, new = self.within(before), self.within(lacks)
        weights = []
        for first in range(self.k):
            earlier = math.prod(max(0, old[i] - i) for i in range(first))
            later = math.prod(max(0, new[i] - i) for i in range(first + 1, self.k))
            weights.append(earlier * (new[first] - old[first]) * later)
        first = int(categorical(weights, size=1, bits=bits)[0])
        taken: list[int] = []
        for i in range(self.k):
            low, high = (old[i] if i == first else 0), (old[i] if i < first else new[i])
            used = sorted(place for place in taken if low <= place < high)
            place = low + int(uniform_below(high - low - len(used), size=1, bits=bits)[0])
            for other in used:
                place += place >= other
            taken.append(place)
        return taken


def _level(lists: _Lists, scale: Fraction, bits: BitSource) -> tuple[int, int | None]:
    """Draw how much the list lacks, and return it with the level before.

    Levels are taken as they rise, with all that are left bounded by the number of all lists, until
    the lazy uniform falls certainly into one of them.
    """
    levels = lists.levels()
    step = lists.unit / scale
    numbers = _numbers(lists, levels)
    known: list[int] = []
    uniform, width = bits.integer(_WORD), _WORD
    while True:
        with precision(width + 64):
            drawn = (ball(uniform) + arb(0.5, 0.5)) / ball(1 << width)
            found = _search(levels, known, numbers, drawn, step, lists.total, width)
        if found is not None:
            return levels[found], levels[found - 1] if found else None
        uniform, width = (uniform << width) | bits.integer(width), 2 * width


def _numbers(lists: _Lists, levels: list[int]) -> Iterator[int]:
    """Yield how many lists lack each level."""
    before = 0
    for lacks in levels:
        now = lists.number(lacks)
        yield now - before
        before = now


def _search(
    levels: list[int],
    known: list[int],
    numbers: Iterator[int],
    drawn: arb,
    step: Fraction,
    total: int,
    width: int,
) -> int | None:
    """Return the place of the level whose share of the whole holds `drawn`; None if undecided."""
    ends: list[arb] = []
    mass, left = arb(0), total
    for place, level in enumerate(levels):
        if place == len(known):
            known.append(next(numbers))
        mass = mass + ball(known[place]) * (ball(-step * level)).exp()
        left -= known[place]
        ends.append(mass)
        if left == 0:
            break
        rest = ball(left) * (ball(-step * levels[place + 1])).exp()
        if rest < mass * ball(Fraction(1, 1 << (width // 2))):
            mass = mass.union(mass + rest)  # the whole lies between these
            break
    target = drawn * mass
    for place, end in enumerate(ends):
        if target < end:
            return place
        if not target > end:
            return None
    return None
