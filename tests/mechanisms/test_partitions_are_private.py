"""Tables: the exact output law on all tiny neighbors costs what P1, P2, P3 and G2 say, no more.

Laws are compared exactly, equality included. Where the theorem is tight a hair less is refused, and
the mistakes that suggest themselves (half the noise, a joint draw for each group) are caught.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from mechanisms.exact_laws import block_law, counts_law, counts_pmf, laplace_law
from purity import HAIR, assert_impure, assert_pure
from reference.row_polynomials import coordinates, weights
from zerodelta.audit.exact import (
    ExpRational,
    Law,
    certainly_impure,
    certainly_pure,
    permute_and_flip_law,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
)
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.sums import BernsteinCells, ChebyshevBlock
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.verify import verify

HALF = Fraction(1, 2)
EPSILON = Fraction(3, 4)
REPLACE, ADD_REMOVE = Neighbors.REPLACE, Neighbors.ADD_REMOVE
Sums = tuple[int, ...]


def rows_of(cells: BernsteinCells) -> list[Sums]:
    """All that one row can add: every quantized value, and nothing where it is missing."""
    values = np.arange(-cells.steps, cells.steps + 1)
    added = {tuple(map(int, row)) for row in weights(cells, values)}
    absent = weights(cells, np.zeros(1, dtype=np.int64), np.array([False]))[0]
    return [*sorted(added), tuple(map(int, absent))]


def total(rows: Iterable[Sums], cells: int) -> Sums:
    return tuple(map(sum, zip(*rows, (0,) * cells, strict=True)))


def units(rows: Sequence[Sums], most: int, cells: int) -> list[Sums]:
    """All that a unit of up to `most` rows can add."""
    sizes = range(most + 1)
    picked = [p for size in sizes for p in itertools.combinations_with_replacement(rows, size)]
    return sorted({total(each, cells) for each in picked})


def pairs(added: Sequence[Sums], others: int, relation: Neighbors) -> set[tuple[Sums, Sums]]:
    """All sums of neighboring data: `others` units, and one replaced, or added."""
    cells = len(added[0])
    rest = [total(r, cells) for r in itertools.combinations_with_replacement(added, others)]
    none = (0,) * cells
    moves = (
        itertools.combinations(added, 2)
        if relation is REPLACE
        else ((each, none) for each in added if each != none)
    )
    return {(total((a, r), cells), total((b, r), cells)) for a, b in moves for r in rest}


def noise_for(cells: BernsteinCells, **options: Any) -> PartitionNoise:
    return PartitionNoise.for_epsilon(
        epsilon=EPSILON, cells=cells.cells, row_total=cells.row_total, **options
    )


# P1.

COUNT, PAIR, TRIPLE = (BernsteinCells(degree=degree) for degree in range(3))
WITH_MISSING = BernsteinCells(degree=1, missing_cell=True)


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize(
    ("cells", "others"), [(COUNT, 2), (PAIR, 1), (TRIPLE, 0), (WITH_MISSING, 0)]
)
def test_p1_is_exactly_epsilon(cells: BernsteinCells, others: int, relation: Neighbors) -> None:
    noise = noise_for(cells, neighbors=relation, method="laplace")
    moves = 2 if relation is REPLACE and cells.cells > 1 else 1
    assert noise.scale == moves * cells.row_total / EPSILON
    high = (others + 1) * cells.row_total
    moved = pairs(rows_of(cells), others, relation)
    assert_pure(
        partial(laplace_law, scale=noise.scale, high=high), moved, epsilon=EPSILON, tight=True
    )


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize("cells", [COUNT, PAIR])
def test_p1_for_units_is_exactly_epsilon(cells: BernsteinCells, relation: Neighbors) -> None:
    noise = noise_for(cells, neighbors=relation, unit_rows=2, method="laplace")
    added = units(rows_of(cells), 2, cells.cells)
    law = partial(laplace_law, scale=noise.scale, high=2 * cells.row_total)
    assert_pure(law, pairs(added, 0, relation), epsilon=EPSILON, tight=True)
    alone = noise_for(cells, neighbors=relation, method="laplace")
    short = partial(laplace_law, scale=alone.scale, high=2 * cells.row_total)
    assert_impure(short, pairs(added, 0, relation), epsilon=EPSILON)


def test_p1_with_groups_costs_the_epsilon_of_one() -> None:
    """Two groups of a count and a sum each: 4 cells, a row in one group or in none."""
    one = rows_of(PAIR)
    added = sorted({(*row, 0, 0) for row in one} | {(0, 0, *row) for row in one})
    noise = PartitionNoise.for_epsilon(
        epsilon=EPSILON, cells=4, row_total=PAIR.row_total, method="laplace"
    )
    assert noise.scale == noise_for(PAIR, method="laplace").scale
    assert_pure(
        partial(laplace_law, scale=noise.scale, high=2),
        pairs(added, 0, REPLACE),
        epsilon=EPSILON,
        tight=True,
    )


def test_m_in_place_of_2m_is_caught() -> None:
    scale = noise_for(PAIR, method="laplace").scale / 2
    law = partial(laplace_law, scale=scale, high=2)
    assert_impure(law, pairs(rows_of(PAIR), 0, REPLACE), epsilon=EPSILON)


def test_cells_rounded_one_by_one_are_caught() -> None:
    """Of a total of 2 the middle of the bounds has (1/2, 1, 1/2): rounded apart it is 3."""
    apart = tuple(math.floor(2 * share + Fraction(1, 2)) for share in (HALF / 2, HALF, HALF / 2))
    noise = PartitionNoise.for_epsilon(
        epsilon=EPSILON, cells=3, row_total=2, neighbors=ADD_REMOVE, method="laplace"
    )
    law = partial(laplace_law, scale=noise.scale, high=1)
    assert certainly_impure(law(apart), law((0, 0, 0)), EPSILON)


# P2.


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_the_law_of_counts_is_a_law(scale: Fraction) -> None:
    """p = 1 is Laplace noise; for p = 2, |z₁|, |z₂| <= a has a mass in closed form."""
    for k in range(-3, 4):
        assert counts_pmf((k,), scale) == rounded_laplace_pmf(k, scale=scale)
    for most in range(3):
        reach = range(-most, most + 1)
        cells = (counts_pmf(cell, scale) for cell in itertools.product(reach, repeat=2))
        a = most + Fraction(1, 2)
        end = ExpRational.exp(-a / scale)
        alike = (scale * (1 - end)) * (scale * (1 - end))
        opposite = 2 * scale * (scale - (a + scale) * end)
        assert sum(cells, ExpRational.of(0)) == (alike + opposite) / (3 * scale**2)


def test_the_law_of_counts_is_a_law_in_three_dimensions() -> None:
    """What lies beyond a cube has a norm beyond its side, and the norm is Gamma(3, s)."""
    scale, side = Fraction(1, 4), Fraction(7, 2)
    cells = itertools.product(range(-3, 4), repeat=3)
    inside = sum((counts_pmf(cell, scale) for cell in cells), ExpRational.of(0))
    x = side / scale
    beyond = (1 + x + x * x / 2) * ExpRational.exp(-x)
    assert 1 - beyond < inside < 1


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize(
    ("cells", "others", "window"),
    [(PAIR, 1, range(-3, 7)), (TRIPLE, 0, range(-4, 9, 2)), (WITH_MISSING, 0, range(-2, 5))],
)
def test_p2_is_exactly_epsilon(
    cells: BernsteinCells, others: int, window: range, relation: Neighbors
) -> None:
    noise = noise_for(cells, neighbors=relation, method="k-norm")
    assert noise.scale == cells.row_total / EPSILON
    law = partial(counts_law, scale=noise.scale, window=window)
    assert_pure(law, pairs(rows_of(cells), others, relation), epsilon=EPSILON, tight=True)


def test_p2_for_units_is_exactly_epsilon() -> None:
    noise = noise_for(PAIR, unit_rows=2, method="k-norm")
    law = partial(counts_law, scale=noise.scale, window=range(-4, 9))
    added = units(rows_of(PAIR), 2, PAIR.cells)
    assert_pure(law, pairs(added, 0, REPLACE), epsilon=EPSILON, tight=True)


def test_p2_drawn_for_each_group_costs_twice_as_much() -> None:
    """Two groups with two cells each: a row leaves one joint draw and joins another."""
    scale = noise_for(PAIR, method="k-norm").scale
    window = (-2, 0, 2, 4)

    def law(sums: Sums) -> Law:
        first, second = (
            counts_law(each, scale=scale, window=window) for each in (sums[:2], sums[2:])
        )
        return {(a, b): first[a] * second[b] for a in first for b in second}

    moved, stays = (2, 0, 0, 0), (0, 0, 2, 0)
    assert certainly_impure(law(moved), law(stays), 2 * EPSILON - HAIR)
    assert certainly_pure(law(moved), law(stays), 2 * EPSILON)
    together = PartitionNoise.for_epsilon(epsilon=EPSILON, cells=4, row_total=2, method="k-norm")
    joint = partial(counts_law, scale=together.scale, window=window)
    assert certainly_pure(joint(moved), joint(stays), EPSILON)


# G2.

BLOCK = ChebyshevBlock(columns=1, steps=1)


def block_rows(groups: int) -> list[Sums]:
    """What a row adds to the blocks of all groups; the last is in none."""
    own = [tuple(map(int, row)) for row in coordinates(BLOCK, np.array([[-1], [0], [1]]))]
    none = (0,) * (2 * groups)
    return [
        *(
            (*none[: 2 * g], *row, *none[: 2 * (groups - 1 - g)])
            for g in range(groups)
            for row in own
        ),
        none,
    ]


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize(("groups", "window"), [(1, range(-3, 4)), (2, (-2, 0, 3))])
def test_g2_is_exactly_epsilon_for_any_number_of_groups(
    groups: int, window: Sequence[int], relation: Neighbors
) -> None:
    noise = BlockNoise.for_epsilon(
        epsilon=EPSILON,
        blocks=groups,
        dimension=BLOCK.dimension,
        row_bound=BLOCK.row_bound,
        neighbors=relation,
    )
    assert noise.scale == (2 if relation is REPLACE else 1) / EPSILON
    law = partial(block_law, scale=noise.scale, window=window)
    moved = pairs(block_rows(groups), 0, relation)
    half = partial(block_law, scale=noise.scale / 2, window=window)
    assert_pure(law, moved, epsilon=EPSILON, tight=True, mistake=half)


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize("groups", [1, 2])
def test_g2_in_one_dimension_is_exactly_epsilon(groups: int, relation: Neighbors) -> None:
    """One sum for each group, as where the number of rows is known: Laplace noise, rounded."""
    noise = BlockNoise.for_epsilon(
        epsilon=EPSILON, blocks=groups, dimension=1, row_bound=1, neighbors=relation
    )
    assert noise.scale == (2 if relation is REPLACE else 1) / EPSILON
    alone = [(0,) * g + (y,) + (0,) * (groups - 1 - g) for g in range(groups) for y in (-1, 1)]

    def law(sums: Sums) -> Law:
        pmf = partial(rounded_laplace_pmf, scale=noise.scale)
        tail = partial(rounded_laplace_tail, scale=noise.scale)
        each = [shifted(pmf, tail, center=center, low=-1, high=1) for center in sums]
        return {
            outcome: math.prod((law[x] for law, x in zip(each, outcome, strict=True)), start=1)
            for outcome in itertools.product(each[0], repeat=groups)
        }

    assert_pure(law, pairs([(0,) * groups, *alone], 0, relation), epsilon=EPSILON, tight=True)


def test_g2_for_units_is_exactly_epsilon() -> None:
    noise = BlockNoise.for_epsilon(epsilon=EPSILON, blocks=1, dimension=2, row_bound=1, unit_rows=2)
    law = partial(block_law, scale=noise.scale, window=range(-4, 5))
    assert_pure(law, pairs(units(block_rows(1), 2, 2), 0, REPLACE), epsilon=EPSILON, tight=True)


# P3 and H.


def test_groups_answered_apart_cost_twice_the_epsilon_of_an_added_row() -> None:
    """The most frequent of two options in each of two groups; t = 1/b for one row more or less."""
    mechanism = PermuteAndFlip(
        sensitivity=Fraction(1), scale=Fraction(2), monotone=True, neighbors=ADD_REMOVE
    )

    def law(counts: Sums) -> Law:
        first, second = (
            permute_and_flip_law(each, scale=mechanism.scale) for each in (counts[:2], counts[2:])
        )
        return {(a, b): first[a] * second[b] for a in first for b in second}

    one = [tuple(int(place == cell) for place in range(4)) for cell in range(4)]
    moved = pairs([*one, (0, 0, 0, 0)], 3, REPLACE)
    added = mechanism.claim.exact_epsilon
    assert_pure(law, moved, epsilon=2 * added, tight=added * Fraction(5, 4))
    groups = Step(theorem="parallel-blocks", numbers={"blocks": 2, "unit_rows": 1})
    steps = (mechanism.step(), groups)
    assert verify(Certificate(claim=PureDP(2 * added), steps=steps))


@pytest.mark.parametrize("rows", [1, 2])
def test_the_direct_claim_for_replaced_rows_is_never_above_that_by_groups(rows: int) -> None:
    """H: an add-remove claim counts twice where replace is asked; P1, P2, G2 need no more."""
    for make in (
        partial(PartitionNoise.for_epsilon, cells=1, method="laplace"),
        partial(PartitionNoise.for_epsilon, cells=9, method="laplace"),
        partial(PartitionNoise.for_epsilon, cells=9, method="k-norm"),
        partial(BlockNoise.for_epsilon, blocks=9, dimension=3, row_bound=5),
    ):
        added = make(epsilon=EPSILON, unit_rows=rows, neighbors=ADD_REMOVE)
        proof = Certificate(claim=added.claim, steps=(added.step(),))
        assert verify(proof, epsilon=EPSILON, neighbors="add-remove")
        assert verify(proof, epsilon=2 * EPSILON)
        replaced = make(epsilon=2 * EPSILON, unit_rows=rows)
        assert replaced.scale <= added.scale
        assert verify(
            Certificate(claim=replaced.claim, steps=(replaced.step(),)), epsilon=2 * EPSILON
        )


def test_one_cell_proves_half_of_what_two_do() -> None:
    numbers = {"row_total": 4, "unit_rows": 3, "scale": 24}
    for cells, epsilon in ((1, Fraction(1, 2)), (2, Fraction(1)), (10**9, Fraction(1))):
        step = Step(theorem="partition-laplace", numbers={"cells": cells, **numbers})
        assert verify(Certificate(claim=PureDP(epsilon), steps=(step,)))
        with pytest.raises(CertificateError, match="do not prove"):
            verify(Certificate(claim=PureDP(epsilon - HAIR), steps=(step,)))


def test_sums_of_another_length_than_the_noise_are_refused() -> None:
    """One sum would be shown with several draws of the noise."""
    blocks = BlockNoise.for_epsilon(epsilon=1, blocks=2, dimension=3, row_bound=1)
    cells = PartitionNoise.for_epsilon(epsilon=1, cells=6)
    for noise in (blocks, cells):
        for length in (1, 3, 5, 7):
            with pytest.raises(ParameterError, match="length of sums"):
                noise.apply(np.zeros(length, dtype=np.int64), ReplayBits("length"))
