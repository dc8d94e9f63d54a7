"""Which k of d columns explain a target best, from their (noisy) covariances alone.

Post-processing: the matrix is made positive definite, then features are added one by one and
exchanged as long as that helps. Nothing here touches rows.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["best_subset", "positive"]

Floats: TypeAlias = npt.NDArray[np.float64]

_MOST_EXCHANGES = 100


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
