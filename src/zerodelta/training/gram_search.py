"""Which k of d columns explain a target best, from one noisy Gram matrix of (1, x, y).

The matrix is one internal query, whatever is then searched: it is made positive definite, features
are added one by one and exchanged as long as that helps.
"""

from __future__ import annotations

import math

import numpy as np

from zerodelta.exact.arrays import Floats
from zerodelta.training.feature_table import FeatureTable
from zerodelta.value import value

_MOST_EXCHANGES = 100
_CONSTANT = 0.05
"""Squared weight of the constant in the Gram matrix, relative to the features'."""


@value(eq=False)
class GramQuery:
    """The internal query: k = (constant, features, weighted target), within a public norm.

    In the Frobenius norm k kᵀ has sensitivity √2·norm², so beside the diagonal the noise is
    norm²/(μ n), less by the weights on both sides. The more features, the less is spent on the
    target. `precision` is μ n, of the query and of its rows.
    """

    table: FeatureTable
    precision: float

    @property
    def constant(self) -> float:
        """What stands for the constant 1."""
        return self.table.norm * math.sqrt(_CONSTANT)

    @property
    def target(self) -> float:
        """The weight κ of the target.

        (1+κ)²(t + 1/κ), the noise in a residual's covariance, is least at 2tκ² + κ = 1, where
        t = ‖β‖²·norm²/y² is about d/8 if y's deviation is a third of its bound.
        """
        t = self.table.width / 8
        return self.table.norm * math.sqrt((math.sqrt(1 + 8 * t) - 1) / (4 * t))

    @property
    def norm(self) -> float:
        """The l2 norm of k, at most."""
        return math.sqrt(self.table.norm**2 + self.constant**2 + self.target**2)

    @property
    def deviation(self) -> float:
        """The noise of a second moment of two features."""
        return self.norm**2 / self.precision

    @property
    def noise(self) -> float:
        """The largest noise to expect in the covariance of a feature and a residual."""
        entry = self.deviation * math.sqrt(
            1 / self.target**2 + self.table.width / 8 / self.table.norm**2
        )
        return entry * math.sqrt(2 * math.log(self.table.width + 1))

    def columns(self, rows: Floats) -> Floats:
        """Return the k of each row."""
        features, factors = self.table.within_norm(rows)
        made = np.empty((len(rows), self.table.width + 2))
        made[:, 0] = self.constant * factors
        made[:, 1:-1] = features.T
        made[:, -1] = self.table.labels(rows) * self.target * factors
        return made

    def search(self, gram: Floats, size: int) -> list[int]:
        """Return the features to choose by a noisy Gram matrix."""
        # what is left after a regression on the constant
        constant = gram[0, 1:] / math.sqrt(max(gram[0, 0], 2 * self.deviation))
        rest = gram[1:, 1:] - np.outer(constant, constant)
        covariance, with_target = rest[:-1, :-1], rest[:-1, -1] / self.target
        # the noise of a k x k part has norm 2√k times that of an entry
        return best_subset(covariance, with_target, size, 2 * math.sqrt(size) * self.deviation)


def best_subset(covariance: Floats, with_target: Floats, size: int, ridge: float) -> list[int]:
    """Return the columns S, of this size, with (nearly) the largest c_Sᵀ (Σ_S + ridge)⁻¹ c_S.

    >>> sigma = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    >>> sorted(best_subset(sigma, sigma @ [1, -1, 0.01], size=2, ridge=0.0))
    [0, 1]
    """
    sigma = positive(covariance, ridge)
    chosen: list[int] = []
    while len(chosen) < size:
        chosen.append(int(_gains(sigma, with_target, chosen).argmax()))
    explained = _explained(sigma, with_target, chosen)
    for _ in range(_MOST_EXCHANGES):
        best, found = explained, chosen
        for i in range(size):
            kept = chosen[:i] + chosen[i + 1 :]
            gains = _gains(sigma, with_target, kept)
            total = _explained(sigma, with_target, kept) + float(gains.max())
            if total > best:
                best, found = total, [*kept, int(gains.argmax())]
        if best <= explained * (1 + 1e-9) + 1e-300:
            break
        explained, chosen = best, found
    return chosen


def positive(matrix: Floats, ridge: float) -> Floats:
    """Return the nearest positive semi-definite matrix, plus a ridge."""
    values, vectors = np.linalg.eigh(np.nan_to_num(matrix))
    least = 1e-12 * max(1.0, float(np.abs(values).max()))
    clean: Floats = (vectors * (np.maximum(values, 0.0) + max(ridge, least))) @ vectors.T
    return clean


def _explained(sigma: Floats, target: Floats, chosen: list[int]) -> float:
    part = sigma[np.ix_(chosen, chosen)]
    return float(target[chosen] @ np.linalg.solve(part, target[chosen])) if chosen else 0.0


def _gains(sigma: Floats, target: Floats, chosen: list[int]) -> Floats:
    """Return what each further column would explain; -1 for those chosen already."""
    rest, variance = target.copy(), np.diagonal(sigma).copy()
    if chosen:
        across = np.linalg.solve(sigma[np.ix_(chosen, chosen)], sigma[chosen])
        rest -= target[chosen] @ across
        variance -= (sigma[chosen] * across).sum(axis=0)
    gains: Floats = rest**2 / np.maximum(variance, 1e-300)
    gains[chosen] = -1.0
    return gains
