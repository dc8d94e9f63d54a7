"""T projected gradient steps on noisy integer sums, and their average (Algorithm 3's loop).

Shared by DP-SGD (`algorithm_03`) and by Laplace noisy descent (`baselines`); what it costs is the
business of the noise that it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.integers import uniform_subset
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.spaces import Ball
from zerodelta.training.gradient_sums import Gradients

Rates: TypeAlias = Callable[[int], float]
"""The step size η_t of step t = 1, 2, …"""

_NOISE_ENTRIES = 1 << 16


def descent_seconds(*, rows: int, dimension: int, steps: int, batch: int) -> float:
    """Return roughly how long T steps keep one ordinary core busy, with a built-in loss.

    A function of the caller's takes what it takes.

    >>> round(descent_seconds(rows=10_000, dimension=10, steps=700_000, batch=24))
    73
    """
    # fitted by `planned_seconds` of bench/paper.py: n from 1e3 to 1e5, d from 10 to 1000
    each = 1e-8 + 6e-10 * dimension if batch == rows else 8e-8 + 2e-9 * dimension
    return steps * (1e-4 + 2e-7 * dimension + batch * each)


class Noise(Protocol):
    """Adds exact noise to an integer vector."""

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy vector."""


def descend(
    gradients: Gradients,
    *,
    ball: Ball,
    steps: int,
    batch: int,
    noise: Noise,
    rates: Rates,
    regularization: float,
    bits: BitSource,
) -> Floats:
    """Return the average of T projected noisy gradient steps: a function of the noisy sums alone.

    The gradient estimate ĝ = (n/b)(Σ_batch g + noise) + nλθ is for F = Σ f + (nλ/2)‖θ‖².
    """
    rows, unit = gradients.rows, float(gradients.quantum)
    # theory A6.6: θ_1 is a public constant, and the T iterates θ_2 … θ_{T+1} are averaged; if λ > 0
    # θ_t has weight t, which keeps the lemma's bound 2E‖ĝ‖²/(nλ(T+1)) (printed: weight t of θ_1 …).
    theta, average, mass = ball.middle(), np.zeros(ball.dimension), 0.0
    noises = _noise_vectors(noise, steps=steps, dimension=ball.dimension, bits=bits)
    for t, drawn in enumerate(noises, start=1):
        chosen = None if batch == rows else uniform_subset(rows, size=batch, bits=bits)
        noisy = add_exactly(gradients.total(theta, chosen), drawn)
        estimate = noisy.astype(np.float64) * (unit * rows / batch)
        theta = ball.project(theta - rates(t) * (estimate + rows * regularization * theta))
        weight = t + 1.0 if regularization > 0 else 1.0
        mass += weight
        average += (theta - average) * (weight / mass)
    return ball.project(average)


def _noise_vectors(
    noise: Noise, *, steps: int, dimension: int, bits: BitSource
) -> Iterator[IntegerArray]:
    """Yield the noise of each step, what `noise` adds to zeros: drawn for many steps at a time.

    It is independent of the sums, so it does not matter that it is drawn before them.
    """
    block = max(1, _NOISE_ENTRIES // dimension)
    for start in range(0, steps, block):
        count = min(block, steps - start)
        zeros = np.zeros(count * dimension, dtype=np.int64)
        yield from noise.apply(zeros, bits).reshape(count, dimension)
