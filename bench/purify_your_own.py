"""Measure docs/purification.md: a purified DP-SGD run, and the better alternatives.

Two classes in the unit ball of d dimensions, n rows, ε = 1 under replace-one, 20 runs each. The
run is plain NumPy with float noise, so its claim is the caller's; objective perturbation is ours.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import zerodelta as zd
from zerodelta.sklearn import LogisticRegression

Floats = npt.NDArray[np.float64]

CLIP, RADIUS, STEPS, RUNS = 1.0, 4.0, 100, 20


def made_rows(n: int, d: int, seed: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) / np.sqrt(d)
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    return x, (x[:, 0] - x[:, 1] > 0.1 * rng.normal(size=n)).astype(np.int64)


def dp_sgd(x: Floats, y: npt.NDArray[np.int64], noise: float, rng: np.random.Generator) -> Floats:
    """Return the average of T full-batch steps with Gaussian noise of deviation noise · clip."""
    theta = average = np.zeros(x.shape[1])
    for t in range(STEPS):
        error = 1 / (1 + np.exp(-x @ theta)) - y
        slopes = error[:, None] * x  # at most 1 long: |error| < 1 and rows are in the unit ball
        noisy = slopes.sum(axis=0) + rng.normal(0, noise * CLIP, size=len(theta))
        theta = theta - 8.0 * noisy / len(x)
        theta *= min(1.0, RADIUS / max(float(np.linalg.norm(theta)), 1e-12))
        average = average + (theta - average) / (t + 1)
    return average


def accuracy(theta: Floats, x: Floats, y: npt.NDArray[np.int64]) -> float:
    return float(np.mean((x @ theta > 0) == y))


def main() -> None:
    rng = np.random.default_rng(0)
    print("     n   d  σ for δ=1e-6 σ for δ=0   accuracy: δ=1e-6, purified, objective perturbation")
    for n, d in ((2000, 5), (20_000, 5), (20_000, 20)):
        space = zd.Ball(d, RADIUS)
        x, y = made_rows(n, d, seed=n + d)
        usual = zd.purification.calibrate(epsilon=1, log_delta=math.log(1e-6))
        before = math.sqrt(4 * STEPS / usual.mu_squared)
        plan = zd.plan(space, epsilon=1, resolution=0.05)
        after = math.sqrt(4 * STEPS / plan.calibration.mu_squared) * 1.000001
        claim = zd.GaussianDP(mu_squared=4 * STEPS / after**2)
        accuracies = []
        for _ in range(RUNS):
            pure = plan.purify(dp_sgd(x, y, after, rng), claim=claim)
            model = LogisticRegression(epsilon=1, data_norm=1, classes=[0, 1]).fit(x, y)
            ours = float(model.score(x, y))
            plain = dp_sgd(x, y, before, rng)
            accuracies.append((accuracy(plain, x, y), accuracy(np.asarray(pure.value), x, y), ours))
        line = "   ".join(f"{a:.3f}" for a in np.mean(accuracies, axis=0))
        print(f"{n:>6} {d:>3}  {before:>12.0f} {after:>9.0f}   {line}")


if __name__ == "__main__":
    main()
