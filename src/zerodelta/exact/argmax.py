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
from flint import arb, ctx

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball
from zerodelta.exact.bits import BitSource, Words
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.lazy import Draw, Integers, Reals, Strings
from zerodelta.exact.rational import Rational, as_positive

__all__ = ["Scores", "exponential_argmax", "gumbel_argmax"]

Scores: TypeAlias = npt.NDArray[np.integer] | Sequence[int] | Sequence[Fraction]

_BLOCK = 1 << 13


def gumbel_argmax(scores: Scores, *, scale: Rational, bits: BitSource) -> int:
    """Return argmax of score + scale · Gumbel: P(i) ∝ e^(score_i / scale), exactly.

    >>> from zerodelta.exact.bits import SystemBits
    >>> gumbel_argmax([0, 10_000, 0], scale=1, bits=SystemBits())
    1
    """
    return _argmax(scores, scale, Draw(uniforms=1, outputs=1, formula=_gumbel), bits)


def exponential_argmax(scores: Scores, *, scale: Rational, bits: BitSource) -> int:
    """Return argmax of score + scale · Exponential (permute-and-flip), exactly."""
    return _argmax(scores, scale, Draw(uniforms=1, outputs=1, formula=_exponential), bits)


def _gumbel(uniforms: Reals) -> Reals:
    return -(-uniforms.log()).log()


def _exponential(uniforms: Reals) -> Reals:
    return -uniforms.log()


def _argmax(scores: Scores, scale: Rational, draw: Draw, bits: BitSource) -> int:
    integers, unit = _common_integers(scores)
    step = 1 / (as_positive(scale, "scale") * unit)
    gaps = _gaps(integers)
    survivors = _survivors(gaps, step, draw, bits)
    while len(survivors) > 1:
        survivors = _refine(survivors, step, draw, bits)
    return survivors[0].index


class _Survivor:
    """A score that may still be the largest: how far it is behind, and its noise's string."""

    def __init__(self, index: int, gap: int, word: Words) -> None:
        self.index = index
        self.gap = gap
        self.string = Strings(word)


def _survivors(gaps: Integers, step: Fraction, draw: Draw, bits: BitSource) -> list[_Survivor]:
    """Return the items whose upper end reaches the largest lower end."""
    with ctx.workprec(128):
        slope = FloatBalls.enclose(ball(-step))
    floor = -math.inf
    found: list[tuple[float, _Survivor]] = []
    for start in range(0, len(gaps), _BLOCK):
        block = gaps[start : start + _BLOCK]
        words = bits.words(len(block))
        behind = block.astype(np.float64)
        with np.errstate(all="ignore"):
            distance = FloatBalls(behind, behind * 2.0**-53)
            noise: FloatBalls = draw.formula(FloatBalls.uniform(words))
            values = distance * slope + noise
            floor = float(np.fmax.reduce(values.lower(), initial=floor))
            upper = values.upper()
            # "not below" keeps what is unknown (NaN)
            kept = np.flatnonzero(~(upper < floor))
        for i in kept:
            item = _Survivor(start + int(i), int(block[i]), words[i : i + 1])
            found.append((float(upper[i]), item))
    return [item for upper_end, item in found if not upper_end < floor]


def _refine(
    survivors: list[_Survivor], step: Fraction, draw: Draw, bits: BitSource
) -> list[_Survivor]:
    """Drop all that are certainly below the leader; lengthen the strings of the rest."""
    values: list[arb] = []
    for item in survivors:
        with ctx.workprec(item.string.width + item.gap.bit_length() + 64):
            values.append(item.string.evaluate(draw).values[0] - ball(step) * item.gap)
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
            "scores", scores, expected="at least one score", remedy="pass a non-empty sequence"
        )
    if numerators.dtype == np.uint64 and int(numerators.max()) >= 2**63:
        return numerators.astype(object), unit
    return numerators if numerators.dtype == object else numerators.astype(np.int64), unit


def _from_rationals(scores: Scores) -> tuple[Integers, int]:
    refusal = ParameterError(
        "scores",
        scores,
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
