"""Marginal tables by exact enumeration: the real `answer_queries` on all small neighbors.

"purified" is run on every path of its draws. What it publishes is a sample, which says little, so
the worst sampler is tried as well: one that tells what the internal rounds lose most by. Of "mwem"
the whole transcript is public; its law is that of each answer given the earlier ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from flint import arb, ctx

from tasks import scripted
from tasks.scripted import Law, Verdict, judge, law, once, replaced
from zerodelta.audit.exact import (
    datasets,
    max_log_ratio,
    neighbors,
    permute_and_flip_law,
    rounded_gaussian_pmf,
    rounded_gaussian_tail,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
)
from zerodelta.channels.mixes import FiniteMix
from zerodelta.exact.integers import AliasTable
from zerodelta.exact.logs import ball
from zerodelta.marginals import methods as table_methods
from zerodelta.marginals import mwem as table_rounds
from zerodelta.marginals.domain import as_domain, as_workload
from zerodelta.marginals.mwem import table_sample
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.spine.plan import issue
from zerodelta.tasks.marginals import answer_queries

F = Fraction
Row = tuple[int, int]
Rows = tuple[Row, ...]
Patches = Mapping[str, Any]

CELLS: list[Row] = [(0, 0), (0, 1), (1, 0), (1, 1)]
OUTSIDE: Row = (9, 1)


# --- purified ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """So many rows, rounds and published rows; the shipped plan tries 50 rows and 40 rounds up."""

    rows: int
    sample: int
    rounds: int
    epsilon: Fraction


CASES = {
    "two rows": Case(2, 1, 1, F(1)),
    "two rows, ε = 4": Case(2, 1, 1, F(4)),
    "three rows, ε = 6": Case(3, 1, 1, F(6)),
    "a sample of two": Case(1, 2, 1, F(1)),
    "a sample of two, two rows": Case(2, 2, 1, F(4)),
    "two rounds": Case(1, 1, 2, F(4)),
}


def gaussian(reach: int, factor: int = 1) -> Any:
    """Answers are cut to 0..n, so noise of n or more is all the same."""

    def noise(*, variance: Fraction, size: int, bits: Any) -> Any:
        exact = variance / factor**2
        chances = {k: rounded_gaussian_pmf(k, variance=exact) for k in range(1 - reach, reach)}
        tail = rounded_gaussian_tail(reach, variance=exact)
        return np.array([scripted.draw({**chances, -reach: tail, reach: tail})])

    return noise


def alias_draw(table: AliasTable, size: int, bits: Any) -> Any:
    """An item has its own part of its column, and what other columns hold of it."""
    count = len(table.limits)
    parts = {i: int(limit) for i, limit in enumerate(table.limits)}
    for limit, other in zip(table.limits.tolist(), table.others.tolist(), strict=True):
        parts[other] += table.total - limit
    chances = {i: F(part, count * table.total) for i, part in parts.items()}
    return np.array([scripted.draw(chances) for _ in range(size)], dtype=np.int64)


def mixed(self: FiniteMix, value: Any, bits: Any) -> Any:
    scripted.keep(self.space.index(value))
    return _apply(self, value, bits)


_apply = FiniteMix.apply


def purified_places(case: Case) -> dict[str, Any]:
    return {
        "marginals.mwem._SIZES": (case.sample,),
        "marginals.mwem._ROUNDS": (case.rounds,),
        "marginals.methods.table_sample": once(table_sample, case),
        "mechanisms.selection.gumbel_argmax": scripted.tilted,
        "mechanisms.sum_noise.rounded_gaussian": gaussian(case.rows),
        "exact.integers.AliasTable.draw": alias_draw,
        "spine.plan.issue": once(issue),
        "channels.mixes.FiniteMix.apply": mixed,
        "channels.mixes.uniform_below": scripted.uniform,
        "channels.channel.bernoulli": scripted.coin,
    }


def purified(rows: Rows, case: Case) -> Any:
    release = answer_queries(
        np.array(rows),
        domain={0: 2, 1: 2},
        workload=2,
        epsilon=case.epsilon,
        method="purified",
        bits=scripted.ScriptedBits(),
    )
    (table,) = release.value.values()
    return tuple(np.ravel(table).tolist())


UNIVERSE = [*CELLS, OUTSIDE]


def tables(count: int) -> list[Rows]:
    """Each dataset once whatever the order of its rows: only counts are used."""
    return list(itertools.combinations_with_replacement(sorted(UNIVERSE), count))


def adjacent(count: int) -> list[tuple[Rows, Rows]]:
    every = neighbors(datasets(UNIVERSE, count))
    return sorted({(tuple(sorted(a)), tuple(sorted(b))) for a, b in every})


@contextmanager
def drawing(case: Case, mutant: Patches) -> Iterator[None]:
    """Script all draws."""
    with replaced(purified_places(case)), replaced(mutant):
        yield


@pytest.mark.parametrize("name", ["two rows", "a sample of two"])
def test_a_purified_sample_is_pure_on_every_pair_of_neighbors(name: str) -> None:
    case = CASES[name]
    with drawing(case, {}):
        laws = {rows: law(partial(purified, rows, case), {}) for rows in tables(case.rows)}
    verdict = judge(laws, adjacent(case.rows), case.epsilon)
    assert verdict.pure
    assert not verdict.broken
    assert verdict.tightness > 0.01


# --- purified, with the sampler that tells most --------------------------------------------------


def telling(average: Any, *, size: int, bits: Any) -> Any:
    """All that a sampler gets of the internal rounds."""
    scripted.keep(average.tobytes())


def internal_law(rows: Rows, case: Case) -> dict[bytes, arb]:
    found: dict[bytes, arb] = {}
    with ctx.workprec(scripted.BITS):
        for _, p, key in scripted.paths(partial(purified, rows, case), stops=True):
            found[key] = found.get(key, arb(0)) + p
    return found


def channel_law(case: Case, item: int) -> Law:
    """What the shipped channel makes of a sample of one item."""
    domain = as_domain({0: 2, 1: 2})
    plan = table_sample(domain, as_workload(2, domain), case.epsilon, case.rows)
    assert plan is not None
    sample = [item] * case.sample
    channel = plan.channel
    assert isinstance(channel, FiniteMix)
    return law(lambda: tuple(_apply(channel, sample, scripted.ScriptedBits())))


def at_worst(case: Case, mutant: Patches) -> Verdict:
    """For each pair, a sampler that says by two samples on which side of e^ε the transcript is."""
    with drawing(case, {"marginals.mwem.proportional_sampling": telling, **mutant}):
        bases = {rows: internal_law(rows, case) for rows in tables(case.rows)}
        told, other = (channel_law(case, item).mass for item in (0, 3))
    verdicts = []
    with ctx.workprec(scripted.BITS):
        factor = ball(case.epsilon).exp()
        both = [pair for a, b in adjacent(case.rows) for pair in ((a, b), (b, a))]
        for pair in both:
            p, q = (bases[rows] for rows in pair)
            worst = [key for key in p if p[key] > factor * q.get(key, arb(0))]
            laws = {}
            for rows in pair:
                mass = sum((bases[rows].get(key, arb(0)) for key in worst), arb(0))
                published = {
                    z: mass * told.get(z, arb(0)) + (1 - mass) * other.get(z, arb(0))
                    for z in dict.fromkeys((*told, *other))
                }
                laws[rows] = Law(published, arb(0))
            verdicts.append(judge(laws, [pair], case.epsilon))
    return Verdict(
        all(v.pure for v in verdicts),
        any(v.broken for v in verdicts),
        max(v.tightness for v in verdicts),
    )


@pytest.mark.parametrize(
    ("name", "reached"), [("two rows, ε = 4", 0.8), ("three rows, ε = 6", 0.99), ("two rounds", -1)]
)
def test_the_worst_sampler_is_pure_on_every_pair_of_neighbors(name: str, reached: float) -> None:
    """With two rounds of so few rows nothing loses ε, and nothing is told."""
    verdict = at_worst(CASES[name], {})
    assert verdict.pure
    assert not verdict.broken
    assert reached < verdict.tightness <= 1


MUTANTS: dict[str, tuple[str, Patches]] = {
    "no mixing, two rows": ("two rows, ε = 4", {"channels.mixes.mix": lambda kept, *_: kept}),
    "no mixing, three rows": (
        "three rows, ε = 6",
        {"channels.mixes.mix": lambda kept, *_: kept},
    ),
    "half the noise": (
        "a sample of two, two rows",
        {"mechanisms.sum_noise.rounded_gaussian": gaussian(2, 2)},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_purified_release_is_caught(mutant: str) -> None:
    name, changes = MUTANTS[mutant]
    assert at_worst(CASES[name], changes).broken


# --- mwem ----------------------------------------------------------------------------------------

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
    return max_log_ratio(cell_law(one, scale), cell_law(two, scale))


def cell_law(center: int, scale: Fraction) -> Any:
    pmf = partial(rounded_laplace_pmf, scale=scale)
    tail = partial(rounded_laplace_tail, scale=scale)
    return shifted(pmf, tail, center=center, low=-1, high=4)


CHOICES = list(itertools.product(range(3), range(2)))
ANSWERS = [(0, 2, 1, -1), (5, -4, 2, 2)]
Said = list[dict[Rows, Transcript]]


def transcripts(choices: list[tuple[int, int]]) -> Said:
    """What all datasets of two rows are asked, for these choices and some noisy first tables."""
    return [
        {rows: Transcript(chosen, cells).of(rows) for rows in tables(2)}
        for chosen, cells in itertools.product(choices, ANSWERS)
    ]


SAID = cache(lambda: transcripts(CHOICES))


def largest_loss(said: Said, counting: Fraction) -> arb:
    largest = arb(0)
    for each, (a, b) in itertools.product(said, adjacent(2)):
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
    with patch.object(table_rounds, "_SENSITIVITY", 1), ctx.workprec(scripted.BITS):
        assert largest_loss(transcripts([(2, 0)]), F(1)) > ball(EPSILON)
