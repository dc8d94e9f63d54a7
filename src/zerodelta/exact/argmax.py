"""Draw a noisy argmax exactly: the exponential mechanism and permute-and-flip (theory C10.1).

Only the *index* of the largest noisy score is returned. The search is a contest in two steps.

1. Each noise is a function of a uniform number, of which 64 bits are drawn. The noisy scores are
   evaluated in float balls, which contain the true value whatever the further bits are. A score
   whose ball is certainly below another one is dropped; the others are the *survivors*.
2. Nearly always there is one. Otherwise the bit strings of all survivors are extended, their noisy
   scores evaluated again with Arb, and beaten ones dropped, until one survivor is left. The bits
   already drawn are kept, so the result is exactly the argmax of the real-valued noisy scores.

Options with the same score take part as one, with the largest of their noises. Options that are far
behind are scored only if an upper bound of their scores may win.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import (
    ArbBalls,
    BitSource,
    BitStrings,
    Draw,
    Formula,
    Integers,
    Reals,
    Words,
    constant,
)
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.logs import ball, precision
from zerodelta.exact.rational import Rational, as_count, as_positive

Scores: TypeAlias = npt.NDArray[np.integer] | Sequence[int] | Sequence[Fraction]

Indices: TypeAlias = npt.NDArray[np.int64]

Members: TypeAlias = npt.NDArray[np.int64]

Rest: TypeAlias = Callable[[int], int]
"""Returns the score of an option for which only a bound is known, by its place 0, 1, …."""

_BLOCK = 1 << 13
_ONES = np.uint64(2**64 - 1)
_LARGEST_NOISE = 90.0
"""In scales; no noise of ordinary 64-bit words is larger (`_Contest._is_hopeless`)."""


def gumbel_argmax(
    scores: Scores,
    *,
    scale: Rational,
    size: int,
    bits: BitSource,
    members: Members | None = None,
    rest: Rest | None = None,
) -> Indices:
    """Draw `size` times argmax of score + scale · Gumbel: P(i) ∝ e^(score_i / scale), exactly.

    With `members`, score i belongs to that many options (int64, at least 1), each with its own
    noise; the result does not tell which of them won: P(i) ∝ members_i · e^(score_i / scale).

    With `members` and `rest`, the last of integer scores is only an upper bound of the scores of
    its members. `rest(place)` returns the score of one of them, and is called only for those that
    might win. If one wins, the result is the last index plus its place.

    >>> from zerodelta.exact.bits import SystemBits
    >>> gumbel_argmax([0, 10_000, 0], scale=1, size=2, bits=SystemBits()).tolist()
    [1, 1]
    """
    return _argmax(scores, scale, _gumbel, size, bits, members, rest)


def exponential_argmax(
    scores: Scores,
    *,
    scale: Rational,
    size: int,
    bits: BitSource,
    members: Members | None = None,
    rest: Rest | None = None,
) -> Indices:
    """Draw `size` times argmax of score + scale · Exponential: permute-and-flip, exactly.

    `members` and `rest` as for `gumbel_argmax`.
    """
    return _argmax(scores, scale, _exponential, size, bits, members, rest)


def _gumbel(uniforms: Reals, *members: Reals) -> Reals:
    """Return the largest of m Gumbel noises: ln m + Gumbel."""
    noise = -(-uniforms.log()).log()
    return noise + members[0].log() if members else noise


def _exponential(uniforms: Reals, *members: Reals) -> Reals:
    """Return the largest of m exponentials: -ln(1 - U^(1/m)) = -ln(1 - e^-t), t = -ln(U)/m."""
    exponential = -uniforms.log()
    return _minus_log_one_minus_exp(exponential / members[0]) if members else exponential


def _minus_log_one_minus_exp(t: Reals) -> Reals:
    """Return -ln(1 - e^-t) for t > 0.

    In floats 1 - e^-t cancels where t is small; there 1 - e^-t = e^(-t/2) · t · S with
    S = sinh(t/2)/(t/2) = Σ (t/2)^2k / (2k+1)!, cut after k = 7: for t <= 1 the rest is below
    2 · 4^-8/17! < 2^-60.
    """
    large = -(-((-t).exp()) + 1).log()
    if isinstance(t, ArbBalls):  # rising precision pays for the cancellation
        return large
    half = t * FloatBalls(np.array(0.5), np.array(0.0))
    square = half * half
    series = square * _SERIES[-1]
    for coefficient in _SERIES[-2:0:-1]:
        series = (series + coefficient) * square
    cut = FloatBalls(np.array(0.0), np.array(2.0**-60))  # the terms after k = 7
    series = series + 1 + cut
    small = half - t.log() - series.log()
    near = t.upper() <= 1.0
    return FloatBalls(
        np.where(near, small.middle, large.middle), np.where(near, small.radius, large.radius)
    )


def _coefficient(k: int) -> FloatBalls:
    value = 1.0 / math.factorial(2 * k + 1)  # the factorial is exact up to 17!, the quotient ±u
    return FloatBalls(np.array(value), np.array(value * 2.0**-52))


_SERIES = tuple(_coefficient(k) for k in range(8))


def _argmax(
    scores: Scores,
    scale: Rational,
    formula: Formula,
    size: int,
    bits: BitSource,
    members: Members | None,
    rest: Rest | None,
) -> Indices:
    """Draw `size` times the argmax of score + scale · noise, the noise given by its formula."""
    integers, unit = _common_integers(scores)
    step = 1 / (as_positive(scale, "scale") * unit)
    gaps, counts = _gaps(integers), _member_counts(members, len(integers))
    if rest is not None and counts is not None:
        contest = _Contest(gaps[:-1], step, formula, counts[:-1])
        unscored = _BoundedOptions(int(gaps[-1]), int(counts[-1]), int(integers.max()), rest)
        return np.array([unscored.play(contest, bits) for _ in range(size)], dtype=np.int64)
    contest = _Contest(gaps, step, formula, counts)
    winners = np.empty(as_count(size, "size"), dtype=np.int64)
    rounds = max(1, _BLOCK // len(integers))
    for start in range(0, len(winners), rounds):
        winners[start : start + rounds] = contest.play(min(rounds, size - start), bits)
    return winners


@final
class _Survivor:
    """A score that may still be the largest, with its gap to the best score and its noise.

    `string` holds the bits drawn for the noise so far, `draw` the function of these bits.
    """

    def __init__(self, index: int, gap: int, string: BitStrings, draw: Draw) -> None:
        self.index = index
        self.gap = gap
        self.string = string
        self.draw = draw

    def value(self, step: Fraction) -> arb:
        """Return a ball that contains the noisy score minus the best score, in scales."""
        with precision(self.string.width + self.gap.bit_length() + 64):
            noise: arb = self.string.evaluate(self.draw).values[0]
            return noise - ball(step) * self.gap


class _Contest:
    """Finds the largest of noisy scores; score i is gap_i · step below the best, in scales."""

    def __init__(
        self, gaps: Integers, step: Fraction, formula: Formula, members: Members | None
    ) -> None:
        self._gaps = gaps
        self.step = step
        self.formula = formula
        self._members = members
        self.size = len(gaps)
        with precision(128):
            self._slope = FloatBalls.enclose([ball(-step)])

    def play(self, rounds: int, bits: BitSource) -> list[int]:
        """Return the winners of independent rounds; several rounds only for a block of scores."""
        outcomes = self._survivors(rounds, bits)
        return [
            outcome if isinstance(outcome, int) else self._settle(outcome, bits).index
            for outcome in outcomes
        ]

    def champion(self, bits: BitSource) -> _Survivor:
        """Return the winner of one round with its noise."""
        (survivors,) = self._survivors(1, bits)
        assert not isinstance(survivors, int)
        return self._settle(survivors, bits)

    def _survivors(self, rounds: int, bits: BitSource) -> Sequence[int | list[_Survivor]]:
        """Draw noise for all scores, and return for each round those that may be the largest.

        If each of several rounds has only one, return these winners. (For a single round the
        survivor is returned with its noise, which `champion` needs.)
        """
        # for each round the largest lower end so far: a score that is certainly below cannot win
        floor = np.full((rounds, 1), -math.inf)
        candidates: list[tuple[int, float, _Survivor]] = []
        for start in range(0, len(self._gaps), _BLOCK):
            block = self._gaps[start : start + _BLOCK]
            words = bits.words(rounds * len(block)).reshape(rounds, len(block))
            if self._is_hopeless(block, words, floor):
                continue
            with np.errstate(all="ignore"):
                values = self._values(start, block, words)
                best = np.fmax.reduce(values.lower(), axis=1, keepdims=True)
                floor = np.fmax(floor, best)
                upper = values.upper()
                kept = ~(upper < floor)  # also keeps balls that are unknown (NaN)
            certain = rounds > 1 and len(block) == len(self._gaps)
            if certain and bool((kept.sum(axis=1) == 1).all()):
                return [int(winner) for winner in kept.argmax(axis=1)]
            for row, i in zip(*np.nonzero(kept), strict=True):
                place = start + int(i)
                string = BitStrings(words[row, i : i + 1])
                item = _Survivor(place, int(block[i]), string, self._draw(place))
                candidates.append((int(row), float(upper[row, i]), item))
        survivors: list[list[_Survivor]] = [[] for _ in range(rounds)]
        for row, upper_end, item in candidates:
            if not upper_end < floor[row, 0]:  # a later block may have raised the floor
                survivors[row].append(item)
        return survivors

    def _is_hopeless(self, block: Integers, words: Words, floor: npt.NDArray[np.float64]) -> bool:
        """Tell whether no score of a block can win, without evaluating its noise.

        Unless its first word is all zeros or all ones, U and 1 - U are at least 2^-64, and then no
        noise exceeds 64 ln 2 + ln m < 89 for m < 2^63 options: -ln U and -ln(-ln U) do not, and
        -ln(1 - U^(1/m)) <= ln m - ln(1 - U) because U^(1/m) <= 1 - (1 - U)/m.
        """
        smallest_gap = float(min(int(block.min()), 2**1000))
        with np.errstate(all="ignore"):  # NaN: not known to be hopeless
            slope = float(self._slope.upper().max())
            ahead = float(floor.min()) - smallest_gap * slope * (1 - 1e-9)
        if not ahead > _LARGEST_NOISE:
            return False
        return not bool(((words == 0) | (words == _ONES)).any())

    def _draw(self, place: int) -> Draw:
        """Return the noise of one score, as a function of its uniform."""
        count = None if self._members is None else Fraction(int(self._members[place]))
        constants = () if count is None else (constant(count),)
        return Draw(uniforms=1, outputs=1, formula=self.formula, constants=constants)

    def _values(self, start: int, block: Integers, words: Words) -> FloatBalls:
        """Return float balls of the noisy scores of a block, whose words are the uniforms."""
        if block.dtype == object:  # gaps beyond the range of floats are unknown, decided by Arb
            block = np.array([float(gap) if gap < 2**1000 else math.nan for gap in block])
        behind = block.astype(np.float64)  # with a relative error of at most 2^-53
        counts: tuple[FloatBalls, ...] = ()
        if self._members is not None:
            count = self._members[start : start + len(block)].astype(np.float64)
            counts = (FloatBalls(count, count * 2.0**-53),)
        noise: FloatBalls = self.formula(FloatBalls.uniform(words), *counts)
        return FloatBalls(behind, behind * 2.0**-53) * self._slope + noise

    def _settle(self, survivors: list[_Survivor], bits: BitSource) -> _Survivor:
        """Refine the survivors until one is left, which ends with probability 1."""
        while len(survivors) > 1:
            survivors = self._refine(survivors, bits)
        return survivors[0]

    def _refine(self, survivors: list[_Survivor], bits: BitSource) -> list[_Survivor]:
        """Drop survivors that are certainly below the leader; extend the strings of the others."""
        values = [item.value(self.step) for item in survivors]
        leader = max(values, key=lambda value: value.mid())
        pairs = zip(survivors, values, strict=True)
        remaining = [item for item, value in pairs if not value < leader]
        if len(remaining) > 1:
            for item in remaining:
                item.string.extend(bits)
        return remaining

    def beats(self, one: _Survivor, two: _Survivor, bits: BitSource) -> bool:
        """Tell whether the first of two noisy scores is larger; they may share a bit string."""
        while True:
            first, second = one.value(self.step), two.value(self.step)
            if first > second or first < second:
                return bool(first > second)
            one.string.extend(bits)
            if two.string is not one.string:
                two.string.extend(bits)


@final
class _BoundedOptions:
    """Options whose scores are only bounded, taken in the order of their noises, largest first.

    Of m noises the i-th largest is a function of t = T_1/m + T_2/(m-1) + … + T_i/(m-i+1) with
    T = -ln U, and belongs to a uniformly random one of the remaining options (theory C10.1). Once
    the bound plus the next noise is below the winner, no further option can win, since their noises
    are smaller.
    """

    def __init__(self, gap: int, count: int, best: int, rest: Rest) -> None:
        self._gap, self._count, self._best, self._rest = gap, count, best, rest

    def play(self, contest: _Contest, bits: BitSource) -> int:
        """Return the index of the largest noisy score, drawing noises in descending order."""
        winner, noises = contest.champion(bits), BitStrings(np.zeros(0, dtype=np.uint64))
        last, taken = contest.size, set[int]()
        for i in range(1, self._count + 1):
            noises.add(bits)
            remaining = [Fraction(self._count - j) for j in range(i)]
            noise, constants = _DESCENDING[contest.formula], (constant(*remaining),)
            draw = Draw(uniforms=i, outputs=1, formula=noise, constants=constants)
            if not contest.beats(_Survivor(last, self._gap, noises, draw), winner, bits):
                break
            place = _draw_unused(taken, self._count, bits)
            gap = max(self._gap, self._best - int(self._rest(place)))
            challenger = _Survivor(last + place, gap, noises, draw)
            if contest.beats(challenger, winner, bits):
                winner = challenger
        return winner.index


def _draw_unused(taken: set[int], count: int, bits: BitSource) -> int:
    """Draw a uniform place among those below `count` not yet taken, and add it to `taken`."""
    place = int(uniform_below(count - len(taken), size=1, bits=bits)[0])
    for other in sorted(taken):
        place += place >= other
    taken.add(place)
    return place


def _descending_gumbel(uniforms: ArbBalls, remaining: ArbBalls) -> ArbBalls:
    return -((-uniforms.log() / remaining).total().log())


def _descending_exponential(uniforms: ArbBalls, remaining: ArbBalls) -> ArbBalls:
    return _minus_log_one_minus_exp((-uniforms.log() / remaining).total())


_DESCENDING: dict[Formula, Formula] = {
    _gumbel: _descending_gumbel,
    _exponential: _descending_exponential,
}


def _member_counts(members: Members | None, count: int) -> Members | None:
    """Return the numbers of options as int64, refusing numbers below 1.

    An error message does not show them, since they may be computed from data.
    """
    if members is None:
        return None
    array = np.asarray(members)
    valid = array.dtype.kind in "iu" and array.shape == (count,)
    if not valid or int(array.min()) < 1 or int(array.max()) >= 2**63:
        raise ParameterError(
            "members",
            type(members),
            expected=f"{count} whole numbers from 1 to 2^63 - 1, one for each score",
            remedy="leave out scores without options",
        )
    return array.astype(np.int64)


def _common_integers(scores: Scores) -> tuple[Integers, int]:
    """Return integers and the common denominator that turns them back into the scores."""
    if isinstance(scores, np.ndarray) and scores.dtype.kind in "iu" and scores.ndim == 1:
        numerators, unit = scores, 1
    else:
        numerators, unit = _from_rationals(scores)
    if len(numerators) == 0:
        raise ParameterError(
            "scores", expected="at least one score", remedy="pass a sequence that is not empty"
        )
    if numerators.dtype == np.uint64 and int(numerators.max()) >= 2**63:
        return numerators.astype(object), unit
    return numerators if numerators.dtype == object else numerators.astype(np.int64), unit


def _from_rationals(scores: Scores) -> tuple[Integers, int]:
    """Return integers and a common denominator of rational scores, refusing other scores."""
    refusal = ParameterError(
        "scores",
        type(scores),  # not the scores themselves, which may be computed from data
        expected="a one-dimensional sequence of integers or Fractions",
        remedy="turn float scores into integers on a public quantum first",
    )
    if isinstance(scores, str) or not isinstance(scores, (Sequence, np.ndarray)):
        raise refusal
    for score in scores:
        if isinstance(score, (bool, np.bool_)) or not isinstance(score, numbers.Rational):
            raise refusal
    unit = math.lcm(*(int(score.denominator) for score in scores))
    integers = [int(score.numerator) * (unit // int(score.denominator)) for score in scores]
    if all(-(2**63) <= integer < 2**63 for integer in integers):
        return np.array(integers, dtype=np.int64), unit
    return np.array(integers, dtype=object), unit


def _gaps(integers: Integers) -> Integers:
    """Return the exact distance of each score below the best (of 64-bit integers as uint64)."""
    best = int(integers.max())
    gaps = np.empty(len(integers), dtype=object if integers.dtype == object else np.uint64)
    if integers.dtype == object:
        gaps[:] = [best - integer for integer in integers]
    else:
        np.subtract(np.uint64(best % 2**64), integers.astype(np.uint64), out=gaps)
    return gaps
