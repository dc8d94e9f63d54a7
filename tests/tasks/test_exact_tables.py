"""Marginal tables by exact enumeration: the real `answer_queries` on all small neighbors.

Of "mwem" the whole transcript is public; its law is that of each answer given the earlier ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from flint import arb, ctx

from tasks import scripted
from tasks.noise_laws import laplace
from tasks.related import unordered, unordered_pairs
from zerodelta.audit.exact import (
    max_log_ratio,
    permute_and_flip_law,
    rounded_laplace_pmf,
)
from zerodelta.exact.logs import ball
from zerodelta.marginals import methods as table_methods
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.tasks.marginals import answer_queries

F = Fraction
Row = tuple[int, int]
Rows = tuple[Row, ...]
Patches = Mapping[str, Any]

UNIVERSE: list[Row] = [(0, 0), (0, 1), (1, 0), (1, 1), (9, 1)]
"""The last one is outside of the domain."""
WORKLOAD = [(0,), (1,), (0, 1)]
EPSILON = F(3)


@dataclass
class Transcript:
    """Fixed answers of two rounds, and what the mechanisms were handed."""

    choices: tuple[int, int]
    cells: tuple[int, ...]
    scores: list[tuple[Fraction, tuple[int, ...]]] = field(default_factory=list)
    counts: list[tuple[Fraction, list[int]]] = field(default_factory=list)

    def choose(self, mechanism: PermuteAndFlip, scores: Any) -> int:
        self.scores.append((mechanism.scale, tuple(int(score) for score in scores)))
        return self.choices[len(self.scores) - 1]

    def measure(self, mechanism: RoundedLaplace, counts: Any) -> Any:
        self.counts.append((mechanism.scale, [int(count) for count in counts]))
        return np.array(self.cells[: len(counts)])

    def of(self, rows: Rows) -> Transcript:
        """Run `answer_queries` on these rows along these answers."""
        with (
            patch.object(table_methods, "best_rounds", lambda *_: 2),
            patch.object(PermuteAndFlip, "select", lambda m, s, _: self.choose(m, s)),
            patch.object(RoundedLaplace, "apply", lambda m, s, _: self.measure(m, s)),
        ):
            answer_queries(
                np.array(rows),
                domain={0: 2, 1: 2},
                workload=WORKLOAD,
                epsilon=EPSILON,
                method="mwem",
            )
        assert len(self.scores) == len(self.counts) == 2
        return self


def loss(one: Transcript, two: Transcript, counting: Fraction) -> arb:
    """ln of the ratio of the probabilities of this transcript, the last cells being the worst."""
    total = arb(0)
    for choice, mine, other in zip(one.choices, one.scores, two.scores, strict=True):
        total += (choice_masses(*mine)[choice] / choice_masses(*other)[choice]).log()
    scale = one.counts[0][0] * counting
    for noisy, x, y in zip(one.cells, one.counts[0][1], two.counts[0][1], strict=False):
        total += (cell_mass(noisy - x, scale) / cell_mass(noisy - y, scale)).log()
    for x, y in zip(one.counts[1][1], two.counts[1][1], strict=True):
        if x != y:
            total += cell_loss(x, y, scale)
    return total


@cache
def choice_masses(scale: Fraction, scores: tuple[int, ...]) -> list[arb]:
    with ctx.workprec(scripted.BITS):
        return [p.ball() for p in permute_and_flip_law(scores, scale=scale).values()]


@cache
def cell_mass(noise: int, scale: Fraction) -> arb:
    with ctx.workprec(scripted.BITS):
        return rounded_laplace_pmf(noise, scale=scale).ball()


@cache
def cell_loss(one: int, two: int, scale: Fraction) -> arb:
    return max_log_ratio(laplace(one, scale), laplace(two, scale))


CHOICES = list(itertools.product(range(3), range(2)))
ANSWERS = [(0, 2, 1, -1), (5, -4, 2, 2)]
Said = list[dict[Rows, Transcript]]


def transcripts(choices: list[tuple[int, int]]) -> Said:
    """What all datasets of two rows are asked, for these choices and some noisy first tables."""
    return [
        {rows: Transcript(chosen, cells).of(rows) for rows in unordered(UNIVERSE, 2)}
        for chosen, cells in itertools.product(choices, ANSWERS)
    ]


SAID = cache(lambda: transcripts(CHOICES))


def largest_loss(said: Said, counting: Fraction) -> arb:
    largest = arb(0)
    for each, (a, b) in itertools.product(said, unordered_pairs(UNIVERSE, 2)):
        for x, y in ((a, b), (b, a)):
            largest = largest.max(loss(each[x], each[y], counting))
    return largest


def test_transcripts_of_two_rounds_are_pure_on_every_pair_of_neighbors() -> None:
    with ctx.workprec(scripted.BITS):
        found = largest_loss(SAID(), F(1))
        assert found < ball(EPSILON)
        assert found > ball(EPSILON * F(3, 5))


def test_half_the_noise_of_the_cells_is_caught() -> None:
    with ctx.workprec(scripted.BITS):
        assert largest_loss(SAID(), F(1, 2)) > ball(EPSILON)


def test_half_the_sensitivity_is_caught() -> None:
    """As if replacing a row moved a table by one."""
    with patch.object(table_methods, "_SENSITIVITY", 1), ctx.workprec(scripted.BITS):
        assert largest_loss(transcripts([(2, 0)]), F(1)) > ball(EPSILON)
