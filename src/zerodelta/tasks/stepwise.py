"""Choosing features one by one: permute-and-flip, and noisy fits in between (C10.1, C10.4).

Every choice and every fit is pure and visible to the next, so ε is divided among them; no set is
hidden and none is mixed in.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.k_norm import KNorm
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.spine.transition import issue_for, opened
from zerodelta.tasks.feature_table import FeatureTable, Floats
from zerodelta.tasks.subset_search import positive

__all__ = ["new_products", "stepwise", "stepwise_noise", "with_residual"]

_STEPS = 1 << 20
_CHOOSING = Fraction(3, 5)
"""The part of ε that choices take; fits take the rest."""


def stepwise_noise(table: FeatureTable, size: int, epsilon: Fraction) -> float:
    """Return how far a choice's covariance with the residual may fall behind the best, at most.

    On average, in units of the bounds: the scale 2·2/ε' of one choice, times ln d, over n.
    """
    return 4 * size * math.log(table.width + 1) / float(_CHOOSING * epsilon) / table.source.rows


def stepwise(table: FeatureTable, size: int, epsilon: Fraction, bits: BitSource) -> Release:
    """Release the positions of the chosen features, pure ε-DP by basic composition.

    A choice takes the feature whose products with the residual have the largest sum in magnitude:
    integers that move by at most two ranges. A fit then measures the products of the new
    feature with the constant, the earlier ones, itself and the target, with l∞ K-norm noise.
    """
    flip = PermuteAndFlip.for_epsilon(epsilon=_CHOOSING * epsilon / size, sensitivity=2 * _STEPS)
    part = (1 - _CHOOSING) * epsilon / size
    sample = KNorm.for_epsilon(epsilon=part, norm=math.inf, dimension=1, sensitivity=2 * _STEPS)
    taken = (flip.step(), sample.step(quantum=Fraction(1, _STEPS)))
    certificate = issue_for(
        table.source,
        claim=PureDP(epsilon),
        steps=tuple(_counted(step, size) for step in taken),
        bits=bits,
        public=(
            "the bounds of features and target, the number of features and of rows",
            "every number in the steps",
        ),
    )
    chosen: list[int] = []
    fit = _Fit(table, part, bits)
    for _ in range(size):
        fit.measure(chosen)
        left = [j for j in range(table.width) if j not in chosen]
        sums = _sum(
            table, lambda rows: with_residual(table, rows, chosen, fit.weights), table.width
        )
        chosen.append(left[flip.select([abs(int(sums[j])) for j in left], bits)])
    error = (
        f"each choice's covariance with what is left to explain is at most "
        f"{stepwise_noise(table, size, epsilon):.3g} of the bounds below the best, on average"
    )
    return Release(value=tuple(sorted(chosen)), certificate=certificate, error=error)


class _Fit:
    """Noisy second moments of (constant, chosen features), and with the target, so far."""

    def __init__(self, table: FeatureTable, epsilon: Fraction, bits: BitSource) -> None:
        self._table, self._epsilon, self._bits = table, epsilon, bits
        self._gram, self._target = np.ones((1, 1)), np.zeros(0)
        self.weights: Floats = np.zeros(1)

    def measure(self, chosen: list[int]) -> None:
        """Measure the products of the newest column, and fit the target by all columns."""
        table, size = self._table, len(chosen)
        width = 1 if size == 0 else size + 2
        noise = KNorm.for_epsilon(
            epsilon=self._epsilon, norm=math.inf, dimension=width, sensitivity=2 * _STEPS
        )
        sums = _sum(table, lambda rows: new_products(table, rows, chosen), width)
        means = noise.apply(sums, self._bits).astype(np.float64) / (_STEPS * table.source.rows)
        self._target = np.append(self._target, means[-1])
        if size:
            grown = np.zeros((size + 1, size + 1))
            grown[:-1, :-1] = self._gram
            grown[-1, :] = grown[:, -1] = means[:-1]
            self._gram = grown
        ridge = noise.error() / (_STEPS * table.source.rows)
        self.weights = np.asarray(
            np.linalg.solve(positive(self._gram, ridge), self._target), dtype=np.float64
        )


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


def _sum(table: FeatureTable, function: Any, width: int) -> Any:
    lattice = FixedPoint.box(dimension=width, lower=-1, upper=1, steps=_STEPS)
    return opened(table.source).sum(function, lattice)


def _counted(step: Step, count: int) -> Step:
    return Step(theorem=step.theorem, numbers={**step.numbers, "count": count})
