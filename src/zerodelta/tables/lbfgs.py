"""The minimum of a smooth convex function by limited-memory BFGS, in plain vector operations.

SciPy's spends most of a small problem waiting for BLAS threads, several times the work itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from zerodelta.tables.bases import Floats

__all__ = ["minimum"]

_MEMORY, _MOST_REMEMBERED = 20, 1 << 26
"""Pairs of vectors that the curvature is learned from, and entries of all of them: 512 MB."""
_DECREASE, _HALVINGS = 1e-4, 60


def minimum(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    most: int,
    tolerance: float,
) -> Floats:
    """Return a point after at most `most` steps, or when a step gains less than the tolerance.

    >>> found = minimum(lambda x: (float(x @ x) - 2 * x[0], 2 * x - [2, 0]), np.ones(2) * 9,
    ...                 most=50, tolerance=1e-12)
    >>> found.round(5) + 0.0
    array([1., 0.])
    """
    point = start
    value, slope = objective(point)
    memory = max(1, min(_MEMORY, _MOST_REMEMBERED // (2 * len(start))))
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
    for _ in range(most):
        direction = _direction(slope, pairs)
        descent = float((direction * slope).sum())
        length = 1.0 if pairs else min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1e-300))
        found = None
        for _ in range(_HALVINGS if descent < 0 else 0):
            trial = point + length * direction
            reached, there = objective(trial)
            if reached <= value + _DECREASE * length * descent:  # False for NaN
                found = trial, reached, there
                break
            length /= 2
        if found is None:
            break
        moved, turned = found[0] - point, found[2] - slope
        curvature = float((moved * turned).sum())
        if curvature > 0:
            pairs.append((moved, turned, curvature))
        gain, scale = value - found[1], max(1.0, abs(value))
        point, value, slope = found
        if gain <= tolerance * scale:
            break
    return point


def _direction(slope: Floats, pairs: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return minus the inverse curvature of the last steps, applied to the slope."""
    direction = -slope
    shares = []
    for moved, turned, curvature in reversed(pairs):
        share = float((moved * direction).sum()) / curvature
        direction = direction - share * turned
        shares.append(share)
    if pairs:
        _, turned, curvature = pairs[-1]
        direction = direction * (curvature / float((turned * turned).sum()))
    for (moved, turned, curvature), share in zip(pairs, reversed(shares), strict=True):
        back = float((turned * direction).sum()) / curvature
        direction = direction + (share - back) * moved
    return direction
