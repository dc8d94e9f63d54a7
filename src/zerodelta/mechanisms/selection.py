"""Select the best of several options, or the k best, by noisy scores (theory C10.1, K2).

The exponential mechanism and permute-and-flip add noise to exact scores and release only *which*
noisy score is largest.
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

        With `members`, the i-th score is shared by ``members[i]`` options, and the result is the
        index of the winner's score. With `rest`, the last score is only a bound on the scores of
        its members; the result is its index plus the winner's place among these members.
        """

    def select_member(
        self, scores: Scores, members: Members, bits: BitSource, *, rest: Rest | None = None
    ) -> tuple[int, int]:
        """Return the index of the winner's score, and the winner's place among its members.

        With `rest`, the last score is only a bound on the scores of its members, and `rest(place)`
        returns the score of one of them.
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
        winners = gumbel_argmax(
            scores, scale=self.scale, size=1, bits=bits, members=members, **rest
        )
        return int(winners[0])


@value
class PermuteAndFlip(Selection):
    """Releases the index of the largest score + scale · Exponential noise.

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
        winners = exponential_argmax(
            scores, scale=self.scale, size=1, bits=bits, members=members, **rest
        )
        return int(winners[0])


def worst_gap(options: int, scale: Rational) -> float:
    """Return the largest expected gap of permute-and-flip: the maximum over a of a·P(not the best).

    One option leads N-1 tied ones by a. With x = e^(-a/b), P(the best) = (1 - (1-x)^N)/(N x); the
    result is at most b ln N (theory C10.1).

    >>> worst_gap(2, 2) < worst_gap(100, 2) < 2 * math.log(100)
    True
    """
    count = as_count(options, "options", minimum=1)
    return as_float(as_positive(scale, "scale"), "scale") * _unit_gap(count)


@lru_cache(maxsize=256)
def _unit_gap(count: int) -> float:
    """Return the largest expected gap of `count` options at scale 1, over leads of the best."""
    if count == 1:
        return 0.0
    leads = np.linspace(0.0, 4.0 + 2.0 * math.log(count), 4000)[1:]
    return float((leads * _loser_probability(count, leads)).max())


def gap_at(options: int, scale: Rational, lead: float) -> float:
    """Return the expected gap if one option leads all others, which are tied, by `lead`.

    >>> gap_at(100, 2, 40) < worst_gap(100, 2)
    True
    """
    leads = np.array([lead / float(as_positive(scale, "scale"))])
    return lead * float(_loser_probability(as_count(options, "options", minimum=1), leads)[0])


def _loser_probability(count: int, leads: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the probability that the leading option is not chosen, for leads at scale 1."""
    leads = np.clip(leads, 1e-15, 700)  # keeps e^-lead away from 0 and 1
    x = np.exp(-leads)
    probability: npt.NDArray[np.float64] = 1 + np.expm1(count * np.log1p(-x)) / (count * x)
    return probability


# -- The k best of N options, in one draw of the exponential mechanism (theory K2) ----------------
# The utility of a list s of k different options is that of its worst place:
# u(s) = -max_i(c_(i) - c_{s_i}), c_(i) being the i-th largest score. There are N!/(N-k)! lists but
# at most kN values of u, and the number of lists with each value is a product. So the value is
# drawn first, and then a uniform list that has it, both exactly. Below, a list *lacks* -u(s).

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
        """Return the largest expected gap of the worst place, over leads a of k tied options.

        Only one of the C(N, k) sets of options has no gap, so the expected gap is a/(1 + e^(a-L)),
        L = ln(C(N, k) - 1), at scale 1.
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
    """Lists of k options, given by their places in the order of falling scores.

    A list lacks d (in integers of `unit`) if its worst place has a score d below the best for it.
    """

    def __init__(self, ranked: list[Fraction], k: int) -> None:
        self._ranked, self.k = ranked, k
        unit = math.lcm(*(score.denominator for score in ranked))
        best = ranked[0]
        self._behind = [int((best - score) * unit) for score in ranked]
        self.unit = Fraction(1, unit)
        """The score difference that the integer 1 stands for."""

    def within(self, lacks: int | None) -> list[int]:
        """Return for each of the k places the number of options that lack at most `lacks` there."""
        if lacks is None:
            return [0] * self.k
        # the best score for a later place is lower, so each set of options contains the one before
        return [bisect_right(self._behind, lacks + best) for best in self._behind[: self.k]]

    def number(self, lacks: int | None) -> int:
        """Return the number of lists that lack at most `lacks`.

        The sets of `within` are nested, so place i has i options fewer: those of earlier places.
        """
        return math.prod(max(0, count - i) for i, count in enumerate(self.within(lacks)))

    def levels(self) -> list[int]:
        """Return all amounts that a list may lack, in rising order."""
        behind, best = set(self._behind), set(self._behind[: self.k])
        return sorted(
            {
                behind_score - near
                for near in best
                for behind_score in behind
                if behind_score >= near
            }
        )

    @property
    def total(self) -> int:
        """The number of all lists."""
        return math.perm(len(self._behind), self.k)

    def draw(self, lacks: int, before: int | None, bits: BitSource) -> list[int]:
        """Return a uniform one of the lists that lack exactly `lacks`; `before` is the level below.

        The first place that lacks more than `before` is drawn, and gets one of the options that
        are new at this level. Places before it get options of the level below, and places after it
        any of both.
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
            for used_place in used:
                place += place >= used_place
            taken.append(place)
        return taken


def _level(lists: _Lists, scale: Fraction, bits: BitSource) -> tuple[int, int | None]:
    """Draw how much the list lacks, and return it with the level below.

    Weights of levels are added in rising order, and all further ones are bounded by the number of
    remaining lists, until the uniform, which gets more bits as needed, certainly lies in one level.
    """
    levels = lists.levels()
    step = lists.unit / scale
    numbers = _numbers(lists, levels)
    counted: list[int] = []
    uniform, width = bits.integer(_WORD), _WORD
    while True:
        with precision(width + 64):
            drawn = (ball(uniform) + arb(0.5, 0.5)) / ball(1 << width)
            place = _search(levels, counted, numbers, drawn, step, lists.total, width)
        if place is not None:
            return levels[place], levels[place - 1] if place else None
        uniform, width = (uniform << width) | bits.integer(width), 2 * width


def _numbers(lists: _Lists, levels: list[int]) -> Iterator[int]:
    """Yield for each level the number of lists that lack exactly that."""
    below = 0
    for lacks in levels:
        up_to = lists.number(lacks)
        yield up_to - below
        below = up_to


def _search(
    levels: list[int],
    counted: list[int],
    numbers: Iterator[int],
    drawn: arb,
    step: Fraction,
    total: int,
    width: int,
) -> int | None:
    """Return the place of the level whose share of all weights holds `drawn`; None if undecided.

    `known` keeps the numbers of lists that were taken from `numbers` already.
    """
    ends: list[arb] = []
    mass, remaining = arb(0), total
    for place, level in enumerate(levels):
        if place == len(counted):
            counted.append(next(numbers))
        mass = mass + ball(counted[place]) * (ball(-step * level)).exp()
        remaining -= counted[place]
        ends.append(mass)
        if remaining == 0:
            break
        rest = ball(remaining) * (ball(-step * levels[place + 1])).exp()
        if rest < mass * ball(Fraction(1, 1 << (width // 2))):
            mass = mass.union(mass + rest)  # a ball that holds the sum of all weights
            break
    target = drawn * mass
    for place, end in enumerate(ends):
        if target < end:
            return place
        if not target > end:
            return None
    return None
