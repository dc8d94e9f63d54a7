"""A caller's query, by exact enumeration: the real releases, every draw, all neighbors.

The answers lie between the points of the grid, so that rounding them moves them further apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from sampling import replaced
from tasks import scripted
from tasks.scripted import Law, Verdict, judge, law, once
from zerodelta.audit.exact import datasets, neighbors
from zerodelta.mechanisms.noisy_test import BoundedRelease, ProposedRelease
from zerodelta.mechanisms.stable_queries import CustomQuery
from zerodelta.privacy.theorems.testing import PureProposeTestRelease
from zerodelta.spine.plan import issue
from zerodelta.testing import replayed

F = Fraction
Rows = tuple[int, ...]
Patches = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A query with values in cells of side 1, and all datasets of so many small integers."""

    query: Callable[[Rows], Any]
    cells: int
    epsilon: Fraction
    share: Fraction
    values: int = 3
    count: int = 3
    options: dict[str, Any] = field(default_factory=dict)

    def every(self) -> list[Rows]:
        return list(datasets(range(self.values), self.count))

    def tables(self) -> list[Rows]:
        """Each dataset once whatever the order of its rows: the queries do not look at it."""
        return [rows for rows in self.every() if rows == tuple(sorted(rows))]

    def pairs(self) -> list[tuple[Rows, Rows]]:
        every = neighbors(self.every())
        return sorted({(tuple(sorted(a)), tuple(sorted(b))) for a, b in every})

    def local(self) -> dict[Rows, float]:
        """The l1 local sensitivity of the query before rounding, by brute force."""
        found = dict.fromkeys(self.every(), 0.0)
        for a, b in neighbors(self.every()):
            moved = float(np.abs(np.subtract(self.query(a), self.query(b))).sum())
            found[a], found[b] = max(found[a], moved), max(found[b], moved)
        return found


def cell(value: Any) -> Any:
    """Which cell of side 1 a released point is the middle of."""
    return tuple(math.floor(x) for x in np.ravel(value))


def judged(
    case: Case, run: Callable[[Rows], Any], places: Patches, mutant: Patches | None = None
) -> Verdict:
    """The laws of all datasets: what follows on a draft is walked once for each dataset."""
    laws: dict[Rows, Law] = {}
    with replaced(places), replaced(mutant or {}):
        for rows in case.tables():
            laws[rows] = law(partial(run, rows), {})
    return judge(laws, case.pairs(), case.epsilon)


# --- propose-test-release ------------------------------------------------------------------------


def steep(rows: Rows) -> float:
    """Hardly moves near 0, 0, 0 and by most of the grid elsewhere."""
    return 0.4 * min(rows) + [0.2, 0.2, 7.6][sorted(rows)[1]]


def shares(rows: Rows) -> list[float]:
    """How many rows are 0, and how many 1, in half cells: a row moves both, by one cell in all."""
    return [1.5 + rows.count(0) / 2, 1.5 + rows.count(1) / 2]


def step(rows: Rows) -> float:
    """Five cells up, in the middle of a wide grid."""
    return 4.7 + 5 * rows[0]


STEEP = Case(steep, cells=9, epsilon=F(2), share=F(1, 4), options={"proposed_bound": "0.4"})
STEP = Case(
    step,
    cells=15,
    epsilon=F(4),
    share=F(1, 10),
    values=2,
    count=1,
    options={"proposed_bound": 5},
)
SHARES = Case(shares, cells=4, epsilon=F(10), share=F(1, 10), values=2, count=1)
PROPOSED = {"steep": (STEEP, 0.6), "step": (STEP, 0.7), "shares": (SHARES, 0.4)}
"""With a part of ε that is reached at least."""


def proposing(case: Case) -> Callable[[Rows], Any]:
    """The release, and a stability found by brute force in the unit of the answer."""
    local = case.local()

    @cache
    def far(rows: Rows, bound: float) -> float:
        unstable = [other for other, moved in local.items() if moved > bound + 1e-9]
        changes = [sum(x != y for x, y in zip(rows, o, strict=True)) for o in unstable]
        return min(changes, default=math.inf)

    def run(rows: Rows) -> Any:
        options: dict[str, Any] = {"proposed_bound": 1, **case.options}
        dimension = np.size(case.query(rows))
        release = replayed(scripted.ScriptedBits())(zd.queries.propose_test_release)(
            rows,
            query=case.query,
            stability=far,
            bounds=(0, case.cells) if dimension == 1 else ([0] * 2, [case.cells] * 2),
            cells=case.cells,
            epsilon=case.epsilon,
            test_share=case.share,
            **options,
        )
        return cell(release.value)

    return run


_draft, _bounded_draft = ProposedRelease.draft, BoundedRelease.draft


def drafted(self: ProposedRelease, rows: Any, bits: Any) -> Any:
    found = _draft(self, rows, bits)
    scripted.keep(None if found is None else tuple(found.tolist()))
    return found


def answer_noise(reach: int) -> Callable[..., Any]:
    """Noise of a grid with reach + 1 cells a side: what is larger always leaves it."""

    def noise(*, scale: Fraction, size: int, bits: Any) -> Any:
        chances = scripted.laplace_chances(scale, reach, joined=True)
        return np.array([scripted.draw(chances) for _ in range(size)])

    return noise


_THRESHOLD = {
    "_Tested.with_smallest_threshold": once(PureProposeTestRelease.with_smallest_threshold)
}


def proposed_places(case: Case) -> dict[str, Any]:
    return {
        "rounded_laplace": answer_noise(case.cells - 1),
        "bernoulli_exp": scripted.coin_exp,
        "uniform_below": scripted.uniform,
        "GridLattice.points": scripted.points,
        "ProposedRelease.draft": drafted,
        **_THRESHOLD,
        "issue": once(issue),
    }


@pytest.mark.parametrize("name", PROPOSED)
def test_propose_test_release_is_pure_on_every_pair_of_neighbors(name: str) -> None:
    case, reached = PROPOSED[name]
    verdict = judged(case, proposing(case), proposed_places(case))
    assert verdict.pure
    assert not verdict.broken
    assert reached < verdict.tightness <= 1


def half_the_noise(*, scale: Fraction, size: int, bits: Any) -> Any:
    return answer_noise(STEP.cells - 1)(scale=scale / 2, size=size, bits=bits)


def no_room_for_rounding(self: CustomQuery, bound: Any, count: int) -> int:
    return math.ceil(F(bound) / self._side)


def distance_without_room(self: CustomQuery, rows: Any, bound: int) -> int:
    return _distance(self, rows, bound + self.grid.dimension)


_distance = CustomQuery.distance


def always_passes(*_: Any, **__: Any) -> bool:
    return True


def corner(lattice: Any, bits: Any) -> Any:
    """A failed test that always gives the same point instead of a uniform one."""
    return np.zeros(lattice.dimension, dtype=np.int64)


PROPOSED_MUTANTS: dict[str, tuple[str, Patches]] = {
    "half the noise": ("step", {"rounded_laplace": half_the_noise}),
    "no room for rounding": (
        "shares",
        {
            "CustomQuery.bound_in_cells": no_room_for_rounding,
            "CustomQuery.distance": distance_without_room,
        },
    ),
    "no test": ("steep", {"noisy_test": always_passes}),
    "no mixing": ("steep", {"uniform_cell": corner}),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", PROPOSED_MUTANTS)
def test_a_broken_propose_test_release_is_caught(mutant: str) -> None:
    name, changes = PROPOSED_MUTANTS[mutant]
    case = PROPOSED[name][0]
    assert judged(case, proposing(case), proposed_places(case), changes).broken


# --- bounded local sensitivity -------------------------------------------------------------------


def square(rows: Rows) -> float:
    """Flat near all zeros, steeper elsewhere."""
    return 0.3 + sum(rows) ** 2 / 4


def jump(rows: Rows) -> float:
    """Six cells up, in the middle of a wide grid."""
    return 4.7 + 6 * rows[0]


SQUARE = Case(
    square, cells=5, epsilon=F(4), share=F(1, 2), count=2, options={"mixing_probability": "1/10"}
)
JUMP = Case(
    jump,
    cells=15,
    epsilon=F(16),
    share=F(1, 4),
    values=2,
    count=1,
    options={"mixing_probability": F(331, 10**9)},
)
BOUNDED = {"square": (SQUARE, 0.25), "jump": (JUMP, 0.55)}
REACH = 20
"""In scales of the noise on the bound: less than 1e-8 is lost."""


def bounding(case: Case) -> Callable[[Rows], Any]:
    local = case.local()
    change = max(abs(local[a] - local[b]) for a, b in neighbors(case.every()))

    def run(rows: Rows) -> Any:
        release = replayed(scripted.ScriptedBits())(zd.queries.bounded_local_sensitivity)(
            rows,
            query=case.query,
            local=lambda rows: local[rows],
            change=change,
            bounds=(0, case.cells),
            cells=case.cells,
            epsilon=case.epsilon,
            bound_share=case.share,
            **case.options,
        )
        return cell(release.value)

    return run


def both_noises(reach: int, factor: Fraction | int = 1) -> Callable[..., Any]:
    """The first draw of a release is the noise on its bound, the second that of the answer."""

    def noise(*, scale: Fraction, size: int, bits: Any) -> Any:
        assert size == 1
        if scripted.drawn() == 0:
            wide = math.ceil(REACH * scale)
            return np.array([scripted.draw(scripted.laplace_chances(scale, wide, joined=False))])
        chances = scripted.laplace_chances(scale * factor, reach, joined=True)
        return np.array([scripted.draw(chances)])

    return noise


def bounded_drafted(self: BoundedRelease, rows: Any, bits: Any) -> Any:
    found = _bounded_draft(self, rows, bits)
    scripted.keep(tuple(found.tolist()))
    return found


def bounded_places(case: Case) -> dict[str, Any]:
    return {
        "rounded_laplace": both_noises(case.cells - 1),
        "uniform_below": scripted.uniform,
        "GridLattice.points": scripted.points,
        "bernoulli": scripted.coin,
        "BoundedRelease.draft": bounded_drafted,
        **_THRESHOLD,
        "issue": once(issue),
    }


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_local_sensitivity_is_pure_on_every_pair_of_neighbors(name: str) -> None:
    case, reached = BOUNDED[name]
    verdict = judged(case, bounding(case), bounded_places(case))
    assert verdict.pure
    assert not verdict.broken
    assert reached < verdict.tightness <= 1


BOUNDED_MUTANTS: dict[str, Patches] = {
    "half the noise": {"rounded_laplace": both_noises(14, F(1, 2))},
    "local sensitivity 0": {"CustomQuery.local_sensitivity": lambda *_: 0},
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", BOUNDED_MUTANTS)
def test_a_broken_bounded_local_sensitivity_is_caught(mutant: str) -> None:
    changes = BOUNDED_MUTANTS[mutant]
    assert judged(JUMP, bounding(JUMP), bounded_places(JUMP), changes).broken
