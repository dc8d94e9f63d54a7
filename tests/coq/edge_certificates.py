"""Random certificates at the edge of what their theorems allow: a bit inside, or a bit outside.

The bit is from two millionths to a hundredth of the number that decides, never a tie.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import zerodelta as zd
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Part, Status, Step
from zerodelta.privacy.theorems.mixing import GridMixing, MixingTheorem, UniformMixing
from zerodelta.privacy.theorems.testing import PureProposeTestRelease, StableMode

Make = Callable[[random.Random, Fraction], zd.records.Certificate]


def rational(chance: random.Random, low: float, high: float) -> Fraction:
    return Fraction(chance.randint(int(low * 1000), int(high * 1000)), 1000)


def one(epsilon: Fraction, *steps: Step) -> zd.records.Certificate:
    relation = steps[-1].neighbors
    return zd.records.Certificate(claim=PureDP(epsilon, neighbors=relation), steps=steps)


def step(theorem: str, neighbors: Neighbors = Neighbors.REPLACE, **numbers: Any) -> Step:
    return Step(theorem=theorem, numbers=numbers, neighbors=neighbors)


def mixed(
    chance: random.Random, bit: Fraction, kind: type[MixingTheorem], **numbers: Any
) -> zd.records.Certificate:
    epsilon, weight = rational(chance, 0.1, 3), rational(chance, 0.001, 0.3)
    theorem = kind(**numbers, weight=weight)
    edge = theorem.log_delta_required(epsilon)
    given = zd.ApproxDP(epsilon * rational(chance, 0.5, 1), min(edge - float(bit) * abs(edge), 0.0))
    base = Step(theorem="given", numbers=given.numbers(), status=Status.ASSERTED)
    return one(epsilon, base, theorem.step())


def uniform(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    size = chance.randint(2, 10 ** chance.randint(1, 40))
    return mixed(chance, bit, UniformMixing, size=size)


def grid(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    shape = {"cells": chance.randint(2, 1000), "dimension": chance.randint(1, 500)}
    return mixed(chance, bit, GridMixing, **shape)


def selection(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    theorem = chance.choice(("permute-and-flip", "exponential-mechanism"))
    moved, scale = rational(chance, 0.5, 9), rational(chance, 1, 90)
    monotone = chance.random() < 0.5
    made = step(theorem, sensitivity=moved, scale=scale, monotone=monotone)
    return one((1 if monotone else 2) * moved / scale * (1 + bit), made)


def laplace(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    moved, scale = rational(chance, 0.5, 9), rational(chance, 1, 90)
    made = step("rounded-laplace", sensitivity=moved, scale=scale)
    return one(moved / scale * (1 + bit), made)


def partition(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    relation = chance.choice(list(Neighbors))
    cells, total, rows = (chance.choice((1, 2, 24)), chance.randint(1, 10**6), chance.randint(1, 9))
    scale = rational(chance, 1, 90) * total
    table = {"cells": cells, "row_total": total, "unit_rows": rows, "scale": scale}
    times = 2 if cells > 1 and relation is Neighbors.REPLACE else 1
    epsilon = times * rows * total / scale * (1 + bit)
    return one(epsilon, step("partition-laplace", neighbors=relation, **table))


def keys(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    relation = chance.choice(list(Neighbors))
    up, down = rational(chance, 0.05, 2), rational(chance, 0.05, 2)
    epsilon = up + down if relation is Neighbors.REPLACE else max(up, down)
    made = step("key-counts", neighbors=relation, keys=26**10, up=up, down=down)
    return one(epsilon * (1 + bit), made)


def mode(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    epsilon, points = rational(chance, 0.1, 2), chance.randint(10, 10**6)
    edge = StableMode.smallest(points=points, epsilon=epsilon).threshold
    numbers: dict[str, Any] = {"points": points, "epsilon": epsilon}
    tau = edge * (1 + bit)
    return one(epsilon, step("stable-mode", **numbers, threshold=tau, noise="real"))


def tested(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    numbers: dict[str, Any] = {
        "points": chance.randint(10**4, 10**9),
        "dimension": chance.randint(1, 2),
        "sensitivity": chance.randint(1, 3),
        "test_epsilon": rational(chance, 0.1, 1),
        "release_epsilon": rational(chance, 0.2, 1),
    }
    tau = PureProposeTestRelease.smallest(**numbers).threshold * (1 + bit)
    epsilon = numbers["test_epsilon"] + numbers["release_epsilon"]
    return one(epsilon, step("pure-propose-test-release", **numbers, threshold=tau, noise="real"))


def groups(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    scale, rows = rational(chance, 5, 90), chance.randint(1, 5)
    group = step(
        "permute-and-flip", Neighbors.ADD_REMOVE, sensitivity=1, scale=scale, monotone=False
    )
    made = step("parallel-blocks", blocks=7, unit_rows=rows)
    return one(4 * rows / scale * (1 + bit), group, made)


def parts(chance: random.Random, bit: Fraction) -> zd.records.Certificate:
    scales = [rational(chance, 2, 90) for _ in range(chance.randint(2, 4))]
    counts = [chance.randint(1, 3) for _ in scales]
    total = sum((n / scale for n, scale in zip(counts, scales, strict=True)), Fraction(0))
    chains = tuple(
        Part(steps=(step("rounded-laplace", sensitivity=1, scale=scale, count=n),))
        for n, scale in zip(counts, scales, strict=True)
    )
    return zd.records.Certificate(claim=PureDP(total * (1 + bit)), parts=chains)


FAMILIES: tuple[Make, ...] = (
    *(uniform, grid, selection, laplace, partition, keys, mode, tested, groups, parts),
)


def certificate(seed: int, *, valid: bool) -> zd.records.Certificate:
    """Return the certificate of a seed, each family in turn."""
    chance = random.Random(seed)
    bit = Fraction(chance.randint(2, 10_000), 10**6)
    return FAMILIES[seed % len(FAMILIES)](chance, bit if valid else -bit)
