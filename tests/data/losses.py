"""What a task hands to its mechanisms, and the privacy loss between two such hands.

The loss is computed from the integers themselves, in the norm in which the mechanism draws, so it
is the true one: a cell that moved a sum by more than was stated shows as a loss above ε.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from zerodelta.mechanisms.joint_quantiles import CELL_BITS, JointExponential
from zerodelta.mechanisms.key_noise import KeyNoise, NoisyTop, UnknownKeys
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection
from zerodelta.mechanisms.sum_noise import CountNoise, KNorm, RoundedLaplace
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.release import Release
from zerodelta.regression.objective import RegressionPlan
from zerodelta.regression.statistics import LENGTH, StatisticsPlan

Handed = list[tuple[Any, list[Any]]]
"""Each mechanism, and the exact integers that it was handed."""

NOISES = (KNorm, RoundedLaplace, CountNoise, PartitionNoise, BlockNoise)


def without_noise(
    monkeypatch: pytest.MonkeyPatch, *, constant: bool = False
) -> Callable[[Callable[[], Release]], Any]:
    """Return a function that runs a task without noise, and returns its release and the hands.

    With `constant` every draw is the same whatever the rows are, so that two runs of a task that
    asks again, depending on what it was told, ask the same.
    """
    handed: Handed = []

    def apply(self: Any, sums: Any, _bits: Any) -> Any:
        handed.append((self, [int(k) for k in np.asarray(sums).ravel()]))
        return np.full(np.shape(sums), 10, dtype=np.int64) if constant else sums

    def select(self: Any, scores: Any, _bits: Any, *, members: Any = None, rest: Any = None) -> int:
        every = [Fraction(score) for score in scores]
        if members is not None:
            sizes = [int(size) for size in members]
            last = every[-1:] * sizes[-1] if rest is None else [*map(rest, range(sizes[-1]))]
            grouped = zip(every[:-1], sizes, strict=False)
            # which point is in which place is not told: sorted scores are no farther apart
            every = sorted([s for score, size in grouped for s in [score] * size] + last)
        handed.append((self, every))
        return 0 if members is None else next(i for i, size in enumerate(members) if size > 0)

    def publish(self: Any, rows: Any, loss: Any, _bits: Any) -> Any:
        labels = getattr(loss, "targets", getattr(loss, "labels", None))
        beside = np.zeros(len(rows.values)) if labels is None else np.asarray(labels)
        examples = np.column_stack([rows.values, beside]).tolist()
        handed.append((self, [tuple(row) for row in examples if any(row)]))
        return np.zeros((rows.dimension, loss.outputs))

    def found(self: UnknownKeys, counts: Any, _bits: Any) -> list[Any]:
        handed.append((self.noise, [*Counter(counts).elements()]))
        return []

    def top(self: NoisyTop, keys: Any, counts: Any, _bits: Any) -> list[tuple[int, int]]:
        handed.append((self.noise, np.repeat(keys, counts).tolist()))
        return [(rank, 10) for rank in range(self.k)]

    def draw(self: JointExponential, runs: Any, _bits: Any) -> list[int]:
        runs.fetch([(0, runs.count)])
        # in which cells rows lie; where in them is drawn for each row
        places = runs.borders(0, runs.count)[1:-1] >> CELL_BITS
        handed.append((self, places.tolist()))
        return [0] * len(self.levels)

    monkeypatch.setattr(UnknownKeys, "apply", found)
    monkeypatch.setattr(NoisyTop, "apply", top)
    monkeypatch.setattr(JointExponential, "draw", draw)
    for noise in NOISES:
        monkeypatch.setattr(noise, "apply", apply)
    for selection in (PermuteAndFlip, ExponentialMechanism):
        monkeypatch.setattr(selection, "select", select)
    monkeypatch.setattr(StatisticsPlan, "noised", apply)
    monkeypatch.setattr(RegressionPlan, "publish", publish)

    def run(task: Callable[[], Release]) -> tuple[Release, Handed]:
        handed.clear()
        release = task()
        return release, list(handed)

    return run


def loss(first: Handed, second: Handed) -> Fraction:
    """Return the largest privacy loss between two runs, over all of their draws together."""
    assert [each for each, _ in first] == [each for each, _ in second]  # mechanisms are public
    return sum((_loss(each, *hands) for (each, *hands) in _pairs(first, second)), start=Fraction(0))


def _pairs(first: Handed, second: Handed) -> list[tuple[Any, list[Any], list[Any]]]:
    return [(each, mine, yours) for (each, mine), (_, yours) in zip(first, second, strict=True)]


def _loss(mechanism: Any, mine: list[Any], yours: list[Any]) -> Fraction:
    if isinstance(mechanism, RegressionPlan):  # an objective is a sum over rows
        first, second = Counter(mine), Counter(yours)
        rows = max((first - second).total(), (second - first).total())
        return Fraction(rows * mechanism.epsilon)
    if isinstance(mechanism, (KeyNoise, JointExponential)):
        return _loss_of_rows(mechanism, Counter(mine), Counter(yours))
    moved = [a - b for a, b in zip(mine, yours, strict=True)]
    if isinstance(mechanism, StatisticsPlan):
        return _statistics_loss(mechanism, moved)
    if isinstance(mechanism, Selection):
        most = Fraction(max(map(abs, moved)))
        one_way = mechanism.monotone and (min(moved) >= 0 or max(moved) <= 0)
        return Fraction((1 if one_way else 2) * most / mechanism.scale)
    return Fraction(_norm(mechanism, moved) / mechanism.scale)


def _loss_of_rows(
    mechanism: KeyNoise | JointExponential, first: Counter[Any], second: Counter[Any]
) -> Fraction:
    """Return the loss by rows that come (or go), in a count or in the group that is drawn from."""
    come, gone = (first - second).total(), (second - first).total()
    if isinstance(mechanism, KeyNoise):
        up, down = mechanism.up, mechanism.down
        return max(come * up + gone * down, come * down + gone * up)
    epsilon = mechanism.claim.exact_epsilon
    if mechanism.groups == 1:
        return max(come, gone) * epsilon
    added = mechanism.neighbors is Neighbors.ADD_REMOVE
    return (come + gone) * (epsilon if added else epsilon / 2)


def _statistics_loss(plan: StatisticsPlan, moved: list[int]) -> Fraction:
    """Return the length of the triangle of XᵀX and of Xᵀy in which the noise is round."""
    numbers = plan.step.numbers
    places = list(combinations_with_replacement(range(plan.columns), 2))
    weights = [Fraction(1 if i == j else 2) for i, j in places]
    weights += [Fraction(numbers["target_weight"])] * plan.columns
    square = (
        sum(w * k * k for w, k in zip(weights, moved, strict=True)) / (plan.scale * LENGTH**2) ** 2
    )
    return Fraction(math.isqrt(math.floor(square * (1 << 80))), 1 << 40)


def _norm(mechanism: Any, moved: list[int]) -> int:
    up, down = sum(k for k in moved if k > 0), -sum(k for k in moved if k < 0)
    if isinstance(mechanism, CountNoise) or getattr(mechanism, "method", None) == "k-norm":
        return max(up, down)
    if isinstance(mechanism, BlockNoise):
        size = mechanism.dimension
        return sum(max(map(abs, moved[i : i + size])) for i in range(0, len(moved), size))
    if isinstance(mechanism, KNorm) and mechanism.norm == math.inf:
        return max(map(abs, moved))
    if isinstance(mechanism, KNorm) and mechanism.norm == 2:
        return math.isqrt(sum(k * k for k in moved))
    return up + down
