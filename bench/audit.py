"""Measure the audit: samples and seconds until too little noise is refuted, and false alarms.

``python bench/audit.py [--runs 100]``. The noise is Laplace for ε = 1, times a factor, rounded to
thousandths. Fixed: the least number of samples, in steps of a tenth, at which `lower_bound` refutes
ε = 1 in nine runs of ten, found by running it. Sequential: the samples of `sequential`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from zerodelta import audit

FACTORS = (0.5, 0.8, 0.9, 0.95)


def laplace(scale: float) -> Callable[[float, int], Any]:
    rng = np.random.default_rng()
    return lambda total, count: np.rint(1000 * (total + rng.laplace(scale=scale, size=count)))


def one_by_one(scale: float) -> Callable[[float], float]:
    """Return the same mechanism, called once for each sample."""
    rng = np.random.default_rng()
    return lambda total: float(np.rint(1000 * (total + rng.laplace(scale=scale))))


def share_refuted(factor: float, samples: int, runs: int) -> float:
    """Return how many of the runs with a fixed number of samples refute ε = 1."""
    bounds = [
        audit.lower_bound(laplace(factor), 0, 1, epsilon=1, samples=samples, vectorized=True)
        for _ in range(runs)
    ]
    return float(np.mean([bound.violated for bound in bounds]))


def fixed_samples(factor: float, runs: int) -> int:
    """Return the least number of samples at which nine of ten runs refute."""
    samples = 200
    while share_refuted(factor, samples, min(runs, 20)) < 0.5:
        samples = int(samples * 1.4)
    samples = int(samples / 1.4)
    while share_refuted(factor, samples, runs) < 0.9:
        samples = int(samples * 1.1)
    return samples


def sequential_samples(factor: float, runs: int) -> list[int]:
    """Return the samples of each run; all refute."""
    tests = [
        audit.sequential(laplace(factor), 0, 1, epsilon=1, vectorized=True) for _ in range(runs)
    ]
    assert all(test.violated for test in tests)
    return [test.samples for test in tests]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("Samples until ε = 1 is refuted, confidence 0.95:\n")
    print("| noise | true ε | fixed, 9 of 10 runs | sequential: mean | median | 9 of 10 runs |")
    print("|---|---|---|---|---|---|")
    for factor in FACTORS:
        fixed, used = fixed_samples(factor, runs), sequential_samples(factor, runs)
        cells = (np.mean(used), np.median(used), np.quantile(used, 0.9))
        print(
            f"| x {factor:g} | {1 / factor:.3f} | {fixed:,} | "
            + " | ".join(f"{cell:,.0f}" for cell in cells)
            + " |",
            flush=True,
        )
    start = time.perf_counter()
    bound = audit.lower_bound(one_by_one(0.95), 0, 1, epsilon=1, samples=200_000)
    seconds = time.perf_counter() - start
    print(f"\nNoise x 0.95, 200,000 calls one by one, one core, {seconds:.1f} s:\n{bound}")
    alarms = share_refuted(1, 20_000, 2 * runs)
    tests = [
        audit.sequential(laplace(1), 0, 1, epsilon=1, samples=20_000, vectorized=True).violated
        for _ in range(2 * runs)
    ]
    print(f"\nCorrect noise, 20,000 samples, {2 * runs} runs at confidence 0.95: flagged by")
    print(f"lower_bound {alarms:.1%}, by sequential {np.mean(tests):.1%} of the runs (stated: 5 %)")


if __name__ == "__main__":
    main()
