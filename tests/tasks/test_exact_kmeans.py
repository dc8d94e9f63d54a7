"""k-means by exact enumeration: all that is noised, round after round, on all small neighbors.

Centers are a function of the noisy counts and of the noisy sums of each round (`test_kmeans`), so
the law of these integers is enough. The real `kmeans` is run along fixed noisy answers; what it
then hands to the noise gives the exact probability of the next answer, whatever the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from flint import arb, ctx

from mechanisms.exact_laws import disc_pmf as slow_disc_pmf
from tasks.disc_laws import disc_law, disc_pmf
from tasks.related import unordered, unordered_pairs
from zerodelta.audit.exact import max_log_ratio, rounded_laplace_pmf
from zerodelta.clustering import center_mechanisms as module
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.logs import ball
from zerodelta.mechanisms.sum_noise import KNorm, RoundedLaplace
from zerodelta.tasks.kmeans import kmeans

EPSILON = Fraction(4)
STEPS = 5
"""In place of 2^20: then cells can be counted."""

REACH = 24
VALUES = (0.02, 0.3, 0.55, 0.98, math.nan)
Rows = tuple[float, ...]
Block = tuple[int, int]

COUNTS = [(9, 0, 0, 0, 0, 0, 0, 9), (0, 7, 6, 0, 0, 5, 0, 1), (-3, -2, 0, 1, 2, 0, 0, 0)]
"""Noisy counts: the seeds they lead to differ, and so do the radii."""

SUMS = [((0, 0), (0, 0)), ((40, 60), (-30, 70)), ((-60, 60), (1, 90))]
"""Noisy sums of a first round: no center moves, both do, both do otherwise."""


@dataclass
class Answers:
    """Fixed noisy answers, and what the noise was handed."""

    counts: tuple[int, ...]
    sums: tuple[tuple[Block, Block], ...]
    laplace: list[tuple[Fraction, tuple[int, ...]]] = field(default_factory=list)
    blocks: list[tuple[Fraction, Block]] = field(default_factory=list)

    def noisy_counts(self, mechanism: RoundedLaplace, sums: Any) -> Any:
        self.laplace.append((mechanism.scale, tuple(sums.tolist())))
        return np.array((self.counts * len(sums))[: len(sums)])

    def noisy_sums(self, mechanism: KNorm, sums: Any) -> Any:
        assert (mechanism.norm, mechanism.dimension) == (2, 2)
        turn, place = divmod(len(self.blocks), 2)
        self.blocks.append((mechanism.scale, tuple(sums.tolist())))
        return np.array(self.sums[turn][place] if turn < len(self.sums) else (0, 0))


@contextmanager
def answering(answers: Answers, rounds: int) -> Iterator[None]:
    with (
        patch.object(module, "_STEPS", STEPS),
        patch.object(module, "lloyd_rounds", lambda _: rounds),
        patch.object(RoundedLaplace, "apply", lambda m, s, _: answers.noisy_counts(m, s)),
        patch.object(KNorm, "apply", lambda m, s, _: answers.noisy_sums(m, s)),
    ):
        yield


def told(rows: Rows, answers: Answers, rounds: int) -> Answers:
    """Run k-means on these rows along these answers."""
    with answering(answers, rounds):
        kmeans(np.array(rows)[:, None], clusters=2, epsilon=EPSILON, bounds=(0, 1), method="lloyd")
    assert len(answers.blocks) == 2 * rounds
    return answers


# --- losses --------------------------------------------------------------------------------------


@cache
def block_loss(move: Block, scale: Fraction) -> arb:
    """The largest loss of one noisy block that moves so far, over all cells near and beyond."""
    return max_log_ratio(disc_law((0, 0), scale, REACH), disc_law(move, scale, REACH))


def minus(one: Block, two: Block) -> Block:
    return one[0] - two[0], one[1] - two[1]


def at_counts(one: Answers, two: Answers, factor: Fraction) -> arb:
    """The loss of the noisy counts that were answered."""
    (scale, mine), (_, other) = one.laplace[0], two.laplace[0]
    answered = (one.counts * len(mine))[: len(mine)]
    total = arb(0)
    for noisy, x, y in zip(answered, mine, other, strict=True):
        if x != y:
            p, q = (rounded_laplace_pmf(noisy - z, scale=scale * factor).ball() for z in (x, y))
            total += (p / q).log()
    return total


def at_sums(one: Answers, two: Answers, turn: int, factor: Fraction) -> arb:
    """The loss of the noisy sums that were answered in this round."""
    total = arb(0)
    for place in range(2):
        (scale, mine), (_, other) = one.blocks[2 * turn + place], two.blocks[2 * turn + place]
        noisy = one.sums[turn][place]
        if mine != other:
            p, q = (disc_pmf(*minus(noisy, z), scale * factor) for z in (mine, other))
            total += (p / q).log()
    return total


def at_worst(one: Answers, two: Answers, factor: Fraction) -> arb:
    """The largest loss of the last round: its blocks are independent, so theirs add up."""
    total = arb(0)
    for (scale, mine), (_, other) in zip(one.blocks[-2:], two.blocks[-2:], strict=True):
        if mine != other:
            total += block_loss(minus(mine, other), scale * factor)
    return total


def largest_loss(rounds: int, count: int, factors: tuple[Fraction, Fraction]) -> arb:
    """Over all neighbors and answers: counts, sums of earlier rounds, any sums of the last."""
    largest = arb(0)
    earlier = itertools.product(SUMS, repeat=rounds - 1)
    for counts, sums in itertools.product(COUNTS, list(earlier)):
        said = {
            rows: told(rows, Answers(counts, sums), rounds) for rows in unordered(VALUES, count)
        }
        for a, b in unordered_pairs(VALUES, count):
            for one, two in ((said[a], said[b]), (said[b], said[a])):
                loss = at_counts(one, two, factors[0]) + at_worst(one, two, factors[1])
                for turn in range(rounds - 1):
                    loss += at_sums(one, two, turn, factors[1])
                largest = largest.max(loss)
    return largest


WHOLE, HALF = Fraction(1), Fraction(1, 2)


def test_the_disc_law_is_a_law() -> None:
    """It is the certified double integral, and a small scale leaves nothing beyond."""
    for cell in ((8, 0), (2, 1), (-2, 2)):
        assert disc_pmf(*cell, Fraction(3)).overlaps(slow_disc_pmf(*cell, 3))
    beyond = disc_law((0, 0), Fraction(1, 8), 12)["beyond"]
    assert 0 < beyond < 1e-30


@pytest.mark.parametrize(("rounds", "count"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_counts_and_rounds_are_pure_on_every_pair_of_neighbors(rounds: int, count: int) -> None:
    with ctx.workprec(200):
        loss = largest_loss(rounds, count, (WHOLE, WHOLE))
        assert loss < ball(EPSILON)
        assert loss > ball(EPSILON * Fraction(4, 5))


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("factors", [(WHOLE, HALF), (HALF, WHOLE)], ids=["sums", "counts"])
def test_half_the_noise_is_caught(rounds: int, factors: tuple[Fraction, Fraction]) -> None:
    with ctx.workprec(200):
        assert largest_loss(rounds, 1, factors) > ball(EPSILON)


class Cut:
    """A ball whose rows are cut coordinate by coordinate instead of being scaled down."""

    @staticmethod
    def ball(*, dimension: int, bound: Any, steps: Any = None, **_: Any) -> FixedPoint:
        return FixedPoint.box(dimension=dimension, lower=-bound, upper=bound, steps=steps)


def test_rows_that_are_not_scaled_down_are_caught() -> None:
    with patch.object(module, "FixedPoint", Cut), ctx.workprec(200):
        assert largest_loss(1, 1, (WHOLE, WHOLE)) > ball(EPSILON)


# --- one center -----------------------------------------------------------------------------------


def handed(rows: Any) -> tuple[KNorm, tuple[int, ...]]:
    """Return the noise of the only center and the sum that it was handed."""
    seen: list[tuple[KNorm, tuple[int, ...]]] = []

    def spy(mechanism: KNorm, sums: Any, _: Any) -> Any:
        seen.append((mechanism, tuple(sums.tolist())))
        return np.zeros(len(sums), dtype=np.int64)

    with patch.object(module, "_STEPS", STEPS), patch.object(KNorm, "apply", spy):
        kmeans(rows, clusters=2, epsilon=EPSILON, bounds=([0, -1], [1, 9]), method="one-center")
    ((mechanism, sums),) = seen
    return mechanism, sums


def test_one_center_is_pure_on_every_pair_of_neighbors() -> None:
    """Two columns: noise of the density exp(-max|z|/b) loses max|move|/b, and two rows reach it."""
    universe = [(x, y) for x in (0.0, 0.4, 7.0, math.nan) for y in (-math.inf, 2.0, 9.0)]
    tables = list(itertools.product(universe, repeat=2))
    found = {rows: handed(np.array(rows)) for rows in tables}
    losses = []
    for a, b in itertools.combinations(tables, 2):
        if sum(one is not other for one, other in zip(a, b, strict=True)) == 1:
            (mechanism, one), (_, other) = found[a], found[b]
            assert (mechanism.norm, mechanism.dimension) == (math.inf, 2)
            moved = max(abs(x - y) for x, y in zip(one, other, strict=True))
            losses.append(Fraction(moved) / mechanism.scale)
    assert max(losses) == EPSILON
