"""Algorithm 11: exact laws on every small dataset, and what breaks it (A8, C4)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import zerodelta as zd
from channels.channel_laws import row
from channels.noise_laws import as_ball
from purity import assert_pure
from sampling import Replace
from zerodelta.audit.exact import (
    certainly_impure,
    certainly_pure,
    datasets,
    neighbors,
    rounded_laplace_pmf,
    rounded_laplace_tail,
)
from zerodelta.channels.kernels import Body
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.logs import ball
from zerodelta.mechanisms.noisy_test import BoundedRelease
from zerodelta.mechanisms.stable_queries import CustomQuery, TrimmedMean
from zerodelta.paper.algorithm_01_02 import AlgorithmOne
from zerodelta.paper.algorithm_09_10_11 import (
    paper_margin,
    pure_bounded_local_sensitivity,
)
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.testing import PureLocalSensitivity
from zerodelta.spaces import Box

F = Fraction
ROWS, COUNT, SIZE = range(3), 3, 5
FAR = 400
"""Noise on the bound beyond this has a mass far below any probability that is compared."""


def answer(rows: Any) -> int:
    """A query with a local sensitivity that varies: 0 near all zeros, more elsewhere."""
    total: int = sum(rows)
    return total * total // 9


EVERY = list(datasets(ROWS, COUNT))
LOCAL = dict.fromkeys(EVERY, 0)
for _a, _b in neighbors(EVERY):
    _moved = abs(answer(_a) - answer(_b))
    LOCAL[_a], LOCAL[_b] = max(LOCAL[_a], _moved), max(LOCAL[_b], _moved)
CHANGE = max(abs(LOCAL[a] - LOCAL[b]) for a, b in neighbors(EVERY))


def test_the_case_is_not_trivial() -> None:
    assert {answer(d) for d in EVERY} <= set(range(SIZE))
    assert len(set(LOCAL.values())) > 1
    assert CHANGE >= 1


@cache
def noise_ball(k: int, scale: Fraction) -> arb:
    with ctx.workprec(512):
        return rounded_laplace_pmf(k, scale=scale).ball()


def draft_law(rows: Any, split: Any, margin: int, least: int) -> Any:
    """P(y) for y in and beside the grid, over all values of the noisy bound; Arb balls."""
    first, second = split
    with ctx.workprec(512):
        law = {y: arb(0) for y in range(SIZE)}
        for z in range(-FAR, FAR + 1):
            bound = max(least, LOCAL[rows] + z + margin)
            chance = noise_ball(z, CHANGE / first)
            for y in law:
                law[y] += chance * noise_ball(y - answer(rows), bound / second)
        beyond = 2 * rounded_laplace_tail(FAR + 1, scale=CHANGE / first).ball()
        return {y: p.union(p + beyond) for y, p in law.items()}


def mixed_law(rows: Any, split: Any, margin: int, weight: Fraction, least: int = 1) -> Any:
    inside = draft_law(rows, split, margin, least)
    with ctx.workprec(512):
        lost, w = 1 - sum(inside.values(), arb(0)), ball(weight)
        return {y: (1 - w) * (p + lost / SIZE) + w / SIZE for y, p in inside.items()}


def margin_for(split: Any, weight: Fraction, noise: str = "rounded") -> int:
    return int(
        PureLocalSensitivity.smallest(
            points=SIZE,
            dimension=1,
            bound_epsilon=split[0],
            release_epsilon=split[1],
            local_change=CHANGE,
            smallest_bound=1,
            weight=weight,
            noise=noise,
        ).threshold
    )


def two_laws(margin: int, weight: Fraction, split: Any) -> tuple[Any, Any]:
    """Neighbors with local sensitivity 40 and answers 40 apart, on a grid of 41 points."""
    with ctx.workprec(512):
        laws = []
        for local, center in ((40, 0), (40, 40)):
            law = {y: arb(0) for y in range(41)}
            for z in range(-100, 101):
                bound = max(1, local + z + margin)
                for y in law:
                    law[y] += noise_ball(z, 1 / split[0]) * noise_ball(y - center, bound / split[1])
            lost = 1 - sum(law.values(), arb(0))
            w = ball(weight)
            laws.append({y: (1 - w) * (p + lost / 41) + w / 41 for y, p in law.items()})
        return laws[0], laws[1]


def test_a_bound_far_below_the_local_sensitivity_violates() -> None:
    split, weight = (F(1), F(1)), F(1, 10**15)
    margin = int(
        PureLocalSensitivity.smallest(
            points=41,
            dimension=1,
            bound_epsilon=1,
            release_epsilon=1,
            local_change=1,
            smallest_bound=1,
            weight=weight,
        ).threshold
    )
    assert certainly_pure(*two_laws(margin, weight, split), epsilon=2)
    assert certainly_impure(*two_laws(-35, weight, split), epsilon=2)


@pytest.mark.parametrize("noise", ["rounded", "discrete"])
def test_the_margin_is_the_smallest_that_the_theorem_allows(noise: str) -> None:
    for split, weight in itertools.product([(F(1), F(1)), (F(3), F(1))], [F(1, 10), F(1, 10**6)]):
        margin = margin_for(split, weight, noise)
        numbers: dict[str, Any] = {
            "points": SIZE,
            "dimension": 1,
            "bound_epsilon": split[0],
            "release_epsilon": split[1],
            "local_change": CHANGE,
            "smallest_bound": F(1),
            "weight": weight,
            "noise": noise,
        }
        theorem = PureLocalSensitivity(**numbers, threshold=F(margin))
        assert theorem.cost(Neighbors.REPLACE) == sum(split)
        if margin:
            with pytest.raises(zd.errors.GuaranteeError):
                replace(theorem, threshold=F(margin - 1)).cost(Neighbors.REPLACE)


def query_of(rows: Any = None) -> CustomQuery:
    return CustomQuery(
        function=answer,
        grid=zd.Box(F(-1, 2), F(9, 2)).grid(SIZE),
        local=lambda rows: LOCAL[tuple(rows)] - 1,  # the query adds one cell for rounding
        change=CHANGE - 1 if CHANGE > 1 else CHANGE,
    )


def test_the_paper_s_variant_is_pure_on_every_pair_of_neighbors() -> None:
    """Algorithm 11 with Algorithm 1 behind it, (2ε + ε')-DP."""
    epsilon, log_delta, lattice = F(1), -4.0, zd.Box(F(-1, 2), F(9, 2)).grid(SIZE)
    release = pure_bounded_local_sensitivity(
        (0, 1, 2),
        query=query_of(),
        epsilon=2 * epsilon + 1,
        base_epsilon=epsilon,
        log_delta=log_delta,
        mixing_weight="1/10",
    )
    base, channel = release.certificate.steps
    assert base.numbers["threshold"] == paper_margin(
        base_epsilon=1, log_delta=log_delta, local_change=int(str(base.numbers["local_change"]))
    )
    margin = paper_margin(base_epsilon=1, log_delta=log_delta, local_change=CHANGE)
    purifier = AlgorithmOne(
        body=Body(lattice=lattice),
        scale=F(str(channel.numbers["scale"])),
        mixing_weight=F(1, 10),
        base_epsilon=2 * epsilon,
    )
    matrix = [row(purifier, lattice.points(np.array([y])), None) for y in range(SIZE)]
    laws = {}
    for d in EVERY:
        if d != tuple(sorted(d)):
            continue
        drafted = projected_law(d, epsilon, margin)
        with ctx.workprec(512):
            laws[d] = {
                z: sum((drafted[y] * as_ball(matrix[y][z]) for y in drafted), arb(0))
                for z in matrix[0]
            }
    pairs = {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbors(EVERY)}
    assert_pure(laws, pairs, epsilon=3)


def projected_law(rows: Any, epsilon: Fraction, margin: int) -> Any:
    """The noisy answer, projected onto the grid."""
    with ctx.workprec(512):
        law = {y: arb(0) for y in range(SIZE)}
        for z in range(-FAR, FAR + 1):
            scale = max(1, LOCAL[rows] + z + margin) / epsilon
            chance = noise_ball(z, CHANGE / epsilon)
            for y in range(1, SIZE - 1):
                law[y] += chance * noise_ball(y - answer(rows), scale)
            up = rounded_laplace_tail(SIZE - 1 - answer(rows), scale=scale).ball()
            down = rounded_laplace_tail(answer(rows), scale=scale).ball()
            law[SIZE - 1] += chance * up
            law[0] += chance * down
        beyond = 2 * rounded_laplace_tail(FAR + 1, scale=CHANGE / epsilon).ball()
        return {y: p.union(p + beyond) for y, p in law.items()}


def test_a_draft_has_noise_for_the_change_and_then_for_the_noisy_bound(
    monkeypatch: pytest.MonkeyPatch, replace: Replace
) -> None:
    """change/ε₁ on the local sensitivity; on the answer that, with its margin, over ε₂."""
    query = TrimmedMean(bounds=(0, 10), steps=5, trim=1)
    rows = np.array([-5, -3, 2, 4, 5])
    scales: list[Fraction] = []
    for drawn, smallest in ((0, 1), (7, 1), (-90, 4)):
        base = BoundedRelease(
            query=query,
            bound_epsilon=F(1, 3),
            release_epsilon=F(2, 3),
            smallest_bound=smallest,
            margin=11,
        )

        def laplace(*, scale: Fraction, size: int, bits: Any, drawn: int = drawn) -> Any:
            scales.append(scale)
            return np.full(size, drawn)

        replace("rounded_laplace", laplace)
        monkeypatch.setattr(TrimmedMean, "read", lambda self, given: given)
        base.draft(rows, ReplayBits("unused"))
        first, second = scales[-2:]
        assert first == query.local_change / F(1, 3)
        bound = max(smallest, query.local_sensitivity(rows) + drawn + 11)
        assert second == bound / F(2, 3)
    assert query.local_change > 1


def test_a_local_sensitivity_in_cells_moves_by_at_most_the_stated_change() -> None:
    """The side of 1/49 is no float, and 1 / float(1/49) is above 49: that is one cell more."""
    assert 1.0 / (1.0 / 49) > 49
    for cells in (3, 10, 49, 98, 103, 107):
        query = CustomQuery(
            function=len, grid=Box([0, 0], [1, 1]).grid(cells), local=lambda rows: rows, change=1
        )
        moved = query.local_sensitivity(1.0) - query.local_sensitivity(0.0)
        assert moved <= query.local_change
    assert moved > 0
