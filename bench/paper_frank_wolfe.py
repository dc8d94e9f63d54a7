"""Measure Frank-Wolfe: the sparse-recovery LP, and the loss of Algorithms 5, 6, 7 and C2.

Lasso-like regression, x uniform in [-1, 1]^d, three true coefficients, ε = 1 in total for all.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from zerodelta.paper.algorithm_05_06 import approximate_frank_wolfe, frank_wolfe
from zerodelta.paper.algorithm_07_08 import gaussian_sketch, pure_frank_wolfe, sparse_recovery
from zerodelta.spaces import Ball
from zerodelta.training.frank_wolfe import frank_wolfe_pure
from zerodelta.training.losses import Squared

ROWS, DIMENSION, STEPS, MEASUREMENTS, RUNS = 20_000, 400, 10, 160, 3


def recovery_seconds(
    measurements: int = 200, dimension: int = 2000, support: int = 10
) -> tuple[float, float]:
    """Time one recovery of a sparse vector from noisy measurements: on the wall, and of the CPU."""
    rng = np.random.default_rng(0)
    phi, theta = gaussian_sketch(measurements, dimension), np.zeros(dimension)
    theta[:support] = rng.normal(size=support)
    noise = rng.laplace(size=measurements) * 1e-4
    wall, processor = time.perf_counter(), time.process_time()
    sparse_recovery(phi @ theta + noise, phi, tolerance=float(np.abs(noise).sum()))
    return time.perf_counter() - wall, time.process_time() - processor


def losses() -> list[tuple[str, float, float]]:
    """Return (algorithm, mean loss above the best, mean seconds)."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(ROWS, DIMENSION))
    theta = np.zeros(DIMENSION)
    theta[:3] = 0.4, -0.3, 0.2
    y = np.clip(x @ theta + 0.1 * rng.normal(size=ROWS), -1, 1)
    ball = Ball(DIMENSION, 1, norm=1)

    def loss(point: Any) -> float:
        return float(np.mean((x @ point - y) ** 2) / 2)

    def slope(point: Any) -> Any:
        return x.T @ (x @ point - y) / ROWS

    shared: dict[str, Any] = {
        "loss": Squared(label_bound=1),
        "domain": ball,
        "lipschitz": 2,
        "iterations": STEPS,
        "smoothness": 1,
    }
    half: dict[str, Any] = {**shared, "epsilon": 1, "measurements": MEASUREMENTS}
    runs: dict[str, Callable[[], Any]] = {
        "5, not private": lambda: frank_wolfe(slope, domain=ball, iterations=STEPS),
        "6, ln δ = -20": lambda: (
            approximate_frank_wolfe(x, y, epsilon=1, log_delta=-20.0, **shared).value
        ),
        "7, advanced composition": lambda: (
            pure_frank_wolfe(x, y, composition="advanced", **half).value
        ),
        "7, best composition": lambda: pure_frank_wolfe(x, y, **half).value,
        "C2, pure composition": lambda: frank_wolfe_pure(x, y, epsilon=1, **shared).value,
    }
    best = loss(frank_wolfe(slope, domain=ball, iterations=1000))
    results = []
    for name, run in runs.items():
        start = time.perf_counter()
        gap = float(np.mean([loss(run()) - best for _ in range(RUNS)]))
        results.append((name, gap, (time.perf_counter() - start) / RUNS))
    return results


def main() -> None:
    """Print the two tables."""
    console = Console()
    wall, processor = recovery_seconds()
    console.print(
        f"sparse recovery, k = 200, d = 2000: {wall:.2f} s, {processor:.2f} s of one core"
    )
    table = Table("algorithm", "loss above the best", "seconds")
    for name, gap, seconds in losses():
        table.add_row(name, f"{gap:.4f}", f"{seconds:.2f}")
    console.print(f"n = {ROWS}, d = {DIMENSION}, T = {STEPS}, k = {MEASUREMENTS}, ε = 1")
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    console.print(f"peak memory {peak} MB")


if __name__ == "__main__":
    main()
