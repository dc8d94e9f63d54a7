"""Noisy argmax, decided exactly: the exponential mechanism and permute-and-flip (theory C10.1).

Only the *index* of the largest noisy score leaves. Each noise is a lazy real: a block of scores is
evaluated in float balls, all that are certainly beaten are dropped, and the few that remain are
refined together, each with its own string, until one is left.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, precision
from zerodelta.exact.bits import BitSource, Words
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.lazy import Draw, Integers, Reals, Strings
from zerodelta.exact.rational import Rational, as_count, as_positive

__all__ = ["Indices", "Scores", "exponential_argmax", "gumbel_argmax"]

Scores: TypeAlias = npt.NDArray[np.integer] | Sequence[int] | Sequence[Fraction]

Indices: TypeAlias = npt.NDArray[np.int64]

_BLOCK = 1 << 13


def gumbel_argmax(scores: Scores, *, scale: Rational, size: int, bits: BitSource) -> Indices:
    """Draw `size` times argmax of score + scale · Gumbel: P(i) ∝ e^(score_i / scale), exactly.

    >>> from zerodelta.exact.bits import SystemBits
    >>> gumbel_argmax([0, 10_000, 0], scale=1, size=2, bits=SystemBits()).tolist()
    [1, 1]
    """
    return _argmax(scores, scale, Draw(uniforms=1, outputs=1, formula=_gumbel), size, bits)


def exponential_argmax(scores: Scores, *, scale: Rational, size: int, bits: BitSource) -> Indices:
    """Draw `size` times argmax of score + scale · Exponential: permute-and-flip, exactly."""
    return _argmax(scores, scale, Draw(uniforms=1, outputs=1, formula=_exponential), size, bits)


def _gumbel(uniforms: Reals) -> Reals:
    return -(-uniforms.log()).log()


def _exponential(uniforms: Reals) -> Reals:
    return -uniforms.log()


def _argmax(scores: Scores, scale: Rational, draw: Draw, size: int, bits: BitSource) -> Indices:
    integers, unit = _common_integers(scores)
    contest = _Contest(_gaps(integers), 1 / (as_positive(scale, "scale") * unit), draw)
    winners = np.empty(as_count(size, "size"), dtype=np.int64)
    rounds = max(1, _BLOCK // len(integers))
    for start in range(0, len(winners), rounds):
        winners[start : start + rounds] = contest.play(min(rounds, size - start), bits)
    return winners


class _Survivor:
    """A score that may still be the largest: how far it is behind, and its noise's string."""

    def __init__(self, index: int, gap: int, word: Words) -> None:
        self.index = index
        self.gap = gap
        self.string = Strings(word)


class _Contest:
    """Scores, by their exact distance `gap · step` behind the best, and the noise added to them."""

    def __init__(self, gaps: Integers, step: Fraction, draw: Draw) -> None:
        self._gaps = gaps
        self._step = step
        self._draw = draw
        with precision(128):
            self._slope = FloatBalls.enclose([ball(-step)])

    def play(self, rounds: int, bits: BitSource) -> list[int]:
        """Return the winners of independent rounds; many rounds only if the scores are few."""
        floor = np.full((rounds, 1), -math.inf)
        found: list[tuple[int, float, _Survivor]] = []
        for start in range(0, len(self._gaps), _BLOCK):
            block = self._gaps[start : start + _BLOCK]
            words = bits.words(rounds * len(block)).reshape(rounds, len(block))
            with np.errstate(all="ignore"):
                values = self._values(block, words)
                best = np.fmax.reduce(values.lower(), axis=1, keepdims=True)
                floor = np.fmax(floor, best)
                upper = values.upper()
                kept = ~(upper < floor)  # "not below" keeps what is unknown (NaN)
            if len(block) == len(self._gaps) and bool((kept.sum(axis=1) == 1).all()):
                return [int(winner) for winner in kept.argmax(axis=1)]
            for row, i in zip(*np.nonzero(kept), strict=True):
                item = _Survivor(start + int(i), int(block[i]), words[row, i : i + 1])
                found.append((int(row), float(upper[row, i]), item))
        alive: list[list[_Survivor]] = [[] for _ in range(rounds)]
        for row, upper_end, item in found:
            if not upper_end < floor[row, 0]:
                alive[row].append(item)
        return [self._settle(survivors, bits) for survivors in alive]

    def _values(self, block: Integers, words: Words) -> FloatBalls:
        if block.dtype == object:  # beyond the range of floats: unknown, so left to Arb
            block = np.array([float(gap) if gap < 2**1000 else math.nan for gap in block])
        behind = block.astype(np.float64)  # errs by at most 2^-53 of itself
        noise: FloatBalls = self._draw.formula(FloatBalls.uniform(words))
        return FloatBalls(behind, behind * 2.0**-53) * self._slope + noise

    def _settle(self, survivors: list[_Survivor], bits: BitSource) -> int:
        while len(survivors) > 1:
            survivors = self._refine(survivors, bits)
        return survivors[0].index

    def _refine(self, survivors: list[_Survivor], bits: BitSource) -> list[_Survivor]:
        """Drop all that are certainly below the leader; lengthen the strings of the rest."""
        values: list[arb] = []
        for item in survivors:
            with precision(item.string.width + item.gap.bit_length() + 64):
                noise = item.string.evaluate(self._draw).values[0]
                values.append(noise - ball(self._step) * item.gap)
        leader = max(values, key=lambda value: value.mid())
        pairs = zip(survivors, values, strict=True)
        left = [item for item, value in pairs if not value < leader]
        if len(left) > 1:
            for item in left:
                item.string.extend(bits)
        return left


def _common_integers(scores: Scores) -> tuple[Integers, int]:
    """Return integers and the common denominator that turns them back into the scores."""
    if isinstance(scores, np.ndarray) and scores.dtype.kind in "iu" and scores.ndim == 1:
        numerators, unit = scores, 1
    else:
        numerators, unit = _from_rationals(scores)
    if len(numerators) == 0:
        raise ParameterError(
            "scores", "empty", expected="at least one score", remedy="pass a non-empty sequence"
        )
    if numerators.dtype == np.uint64 and int(numerators.max()) >= 2**63:
        return numerators.astype(object), unit
    return numerators if numerators.dtype == object else numerators.astype(np.int64), unit


def _from_rationals(scores: Scores) -> tuple[Integers, int]:
    refusal = ParameterError(
        "scores",
        type(scores),  # never the scores themselves: they may be computed from data
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
    """Return how far each score is below the best, exactly (a 64-bit difference fits uint64)."""
    best = int(integers.max())
    gaps = np.empty(len(integers), dtype=object if integers.dtype == object else np.uint64)
    if integers.dtype == object:
        gaps[:] = [best - integer for integer in integers]
    else:
        np.subtract(np.uint64(best % 2**64), integers.astype(np.uint64), out=gaps)
    return gaps
