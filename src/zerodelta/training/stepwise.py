"""Choosing features one by one: permute-and-flip, and noisy fits in between (C10.1, C10.4).

Every choice and every fit is pure and visible to the next, so ε is divided among them; nothing is
internal and no random set is mixed in.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.training.feature_table import FeatureTable
from zerodelta.training.gram_search import positive
from zerodelta.value import value

_STEPS = 1 << 20
_CHOOSING = Fraction(3, 5)
"""The part of ε that choices take; fits take the rest."""


@value(eq=False)
class Stepwise:
    """Chooses `size` features, pure ε-DP by basic composition.

    A choice takes the feature whose products with the residual have the largest sum in magnitude:
    integers that a replaced row moves by two ranges, one that comes or goes by one. A fit then
    measures the products of the new feature with the constant, the earlier ones, itself and the
    target, with l∞ K-norm noise.
    """

    table: FeatureTable
    size: int
    epsilon: Fraction
    rows: int
    """The number of rows, or where that is private one to plan with."""
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def noise(self) -> float:
        """How far a choice's covariance with the residual may fall behind the best, at most.

        On average, in units of the bounds: the scale 2·2/ε' of one choice (under add-remove 2/ε'),
        times ln d, over n.
        """
        choosing = float(_CHOOSING * self.epsilon)
        return (
            2
            * self._moves
            / _STEPS
            * self.size
            * math.log(self.table.width + 1)
            / choosing
            / self.rows
        )

    @property
    def _moves(self) -> int:
        return _STEPS if self.neighbors is Neighbors.ADD_REMOVE else 2 * _STEPS

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is proved: `size` choices and as many fits."""
        taken = self._choice().step(), self._fit(1).step(quantum=Fraction(1, _STEPS))
        return tuple(replace(step, numbers={**step.numbers, "count": self.size}) for step in taken)

    def select(self, rows: Rows, bits: BitSource) -> tuple[int, ...]:
        """Return the positions of the chosen features, among the features."""
        gram, target, chosen = np.ones((1, 1)), np.zeros(0), list[int]()
        for _ in range(self.size):
            products, ridge = self._measured(rows, chosen, bits)
            gram, target = _grown(gram, products[:-1]), np.append(target, products[-1])
            weights = np.linalg.solve(positive(gram, ridge), target)
            chosen.append(self._next(rows, chosen, weights, bits))
        return tuple(sorted(chosen))

    def _next(self, rows: Rows, chosen: list[int], weights: Any, bits: BitSource) -> int:
        table, left = self.table, [j for j in range(self.table.width) if j not in chosen]
        sums = _sum(rows, lambda block: with_residual(table, block, chosen, weights), table.width)
        return left[self._choice().select([abs(int(sums[j])) for j in left], bits)]

    def _choice(self) -> PermuteAndFlip:
        return PermuteAndFlip.for_epsilon(
            epsilon=_CHOOSING * self.epsilon / self.size,
            sensitivity=self._moves,
            neighbors=self.neighbors,
        )

    def _fit(self, width: int) -> KNorm:
        part = (1 - _CHOOSING) * self.epsilon / self.size
        return KNorm.for_epsilon(
            epsilon=part,
            norm=math.inf,
            dimension=width,
            sensitivity=self._moves,
            neighbors=self.neighbors,
        )

    def _measured(self, rows: Rows, chosen: list[int], bits: BitSource) -> tuple[Floats, float]:
        """Return noisy mean products of the newest column, and the noise to expect in one."""
        table, width = self.table, len(chosen) + 2 if chosen else 1
        noise, unit = self._fit(width), _STEPS * self.rows
        sums = _sum(rows, lambda block: new_products(table, block, chosen), width)
        return noise.apply(sums, bits).astype(np.float64) / unit, noise.error() / unit


def _sum(rows: Rows, function: Any, width: int) -> Any:
    return rows.sum(function, FixedPoint.box(dimension=width, lower=-1, upper=1, steps=_STEPS))


def _grown(gram: Floats, products: Floats) -> Floats:
    """Return the second moments with those of one more column (none yet: as they are)."""
    return np.block([[gram, products[:-1, None]], [products]]) if len(products) else gram


def with_residual(table: FeatureTable, rows: Floats, chosen: list[int], weights: Floats) -> Floats:
    """Return each feature times what the fit leaves of the target, on [-1, 1]."""
    columns = table.boxed(rows)
    residual = table.labels(rows) - weights[0]
    for j, weight in zip(chosen, weights[1:], strict=True):
        residual -= weight * columns[j]
    products: Floats = columns * np.clip(residual, -1.0, 1.0)
    across: Floats = products.T
    return across


def new_products(table: FeatureTable, rows: Floats, chosen: list[int]) -> Floats:
    """Return the newest column times constant, chosen features and target (first: the target)."""
    labels = table.labels(rows)
    if not chosen:
        return labels
    columns = table.boxed(rows)
    newest = columns[chosen[-1]]
    parts = [newest, *(newest * columns[j] for j in chosen), newest * labels]
    return np.stack(parts, axis=1)
