"""Time, in seconds, the work of which the tests check the structure only.

    python bench/speed.py
    python bench/speed.py study

The first run of each, with nothing cached; then what a study's queries take beside NumPy, and
`zd.mean` of a thousand rows (`study`: only these). Nothing is asserted: a busy machine is not a
mistake.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.exact.bits import SystemBits
from zerodelta.mechanisms.sum_noise import RoundedGaussian, RoundedLaplace
from zerodelta.paper.algorithm_07_08 import gaussian_sketch, sparse_recovery
from zerodelta.privacy.claims import calibrate
from zerodelta.privacy.theorems.subsampling import subsampled_gaussian
from zerodelta.tasks.choices import mode
from zerodelta.tasks.marginals import answer_queries, queries_methods, synthesize
from zerodelta.tasks.quantiles import quantile

MILLION = 10**6
RNG = np.random.default_rng(1)


def seconds(run: Callable[[], Any]) -> float:
    """Return how long one run takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def imported() -> None:
    subprocess.run([sys.executable, "-c", "import zerodelta"], check=True)


def recovered() -> None:
    phi, theta = gaussian_sketch(200, 2000), np.zeros(2000)
    theta[:10] = 1.0
    sparse_recovery(phi @ theta, phi, tolerance=1e-3)


def cases() -> dict[str, Callable[[], Any]]:
    """What is run, by name."""
    zeros = np.zeros(MILLION, dtype=np.int64)
    table = RNG.normal(size=(MILLION, 10))
    codes, words = RNG.integers(0, 1000, 10**7), np.array([f"item{i}" for i in range(1000)])
    texts, binary = words[codes], RNG.integers(0, 2, (100_000, 12))
    wide = zd.plan(zd.Ball(MILLION, 1), epsilon=1, base=zd.ApproxDP(1, -5e6))
    small = np.full(MILLION, 1e-3)
    answer_queries(binary[:9], domain={0: 2, 1: 2}, epsilon=1)  # what is imported does not count
    two = dict.fromkeys(range(12), 2)

    def tables(columns: int, workload: Any) -> Any:
        domain = dict.fromkeys(range(columns), 2)
        return queries_methods(epsilon=1, n=100_000, domain=domain, workload=workload)

    return {
        "import zerodelta, with Python": imported,
        "plan, Ball(1000)": lambda: zd.plan(zd.Ball(1000, 1), epsilon=1),
        "plan, Box of 4000 sides": (
            lambda: zd.plan(
                zd.Box(0, np.arange(1.0, 4001.0)), epsilon=1, base=zd.ApproxDP(1, -20000.0)
            )
        ),
        "publish a million coordinates": lambda: wide.purify(small),
        "project on an l2 ball, a million": lambda: zd.Ball(MILLION, 10).project(small),
        "calibrate": lambda: calibrate(epsilon=1, log_delta=-1e3, sensitivity=1),
        "subsampled profile, order 1e6": (
            lambda: subsampled_gaussian(
                rows=MILLION, batch=1000, sensitivity_squared=4, variance=4 * 10**5, steps=10
            ).log_delta("1/2")
        ),
        "a million Gaussian draws": (
            lambda: RoundedGaussian.for_mu_squared(mu_squared="1/100", sensitivity_squared=1).apply(
                zeros, SystemBits()
            )
        ),
        "a million Laplace draws": (
            lambda: RoundedLaplace.for_epsilon(epsilon="1/10", sensitivity=1).apply(
                zeros, SystemBits()
            )
        ),
        "mean of a million rows of ten": lambda: zd.mean(table, data_norm=1, epsilon=1),
        "mode of 1e7 integers": lambda: mode(codes, universe=1000, epsilon=1),
        "mode of 1e7 texts": lambda: mode(texts, universe=words.tolist(), epsilon=1),
        "quantile of 1e6 rows, 2^40 points": (
            lambda: quantile(table[:, 0], q="0.25", bounds=(-5, 5), grid=2**40, epsilon=1)
        ),
        "plan tables of 24 columns": lambda: tables(24, 24),
        "plan pairs of 200 columns": lambda: tables(200, 2),
        "answer a small table": (
            lambda: answer_queries(binary[:1000], domain={0: 2, 1: 2}, epsilon=2)
        ),
        "answer pairs of 8 columns": (
            lambda: answer_queries(binary[:1000], domain=dict.fromkeys(range(8), 2), epsilon=2)
        ),
        "answer a table of 12 columns": (
            lambda: answer_queries(binary, domain=two, workload=12, epsilon=1)
        ),
        "synthesize 100 000 rows of 12": lambda: synthesize(binary, domain=two, epsilon=1),
        "sparse recovery, 200 of 2000": recovered,
    }


def beside_numpy() -> None:
    """Print how long a study's queries take beside NumPy's mean of the same numbers, same run.

    The least of many runs, in turns: both are measured on the same machine in the same minute.
    """
    table = RNG.uniform(size=(100_000, 10))
    study = zd.Study(table, epsilon=1, publish=zd.Finite(16), rounds=10**6, bounds=(0, 1))
    study.mean(3)  # reads the rows

    def product(rows: Any) -> Any:
        return rows[:, 3] * rows[:, 4]

    column = table[:, 3].copy()
    for name, ours, theirs in (
        ("a named column", lambda: study.mean(3), lambda: table[:, 3].mean()),
        ("the same, NumPy's contiguous", lambda: study.mean(3), lambda: column.mean()),
        (
            "the same, bounds given",
            lambda: study.mean(3, bounds=(0, 1)),
            lambda: table[:, 3].mean(),
        ),
        ("a function", lambda: study.mean(product), lambda: product(table).mean()),
    ):
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(200)]
        mine, numpy = (min(times) * 1e6 for times in zip(*pairs, strict=True))
        print(f"study.mean of {name:32}{mine:7.0f} µs {mine / numpy:6.1f} × NumPy")
    rows = RNG.uniform(size=1000)
    mean = min(seconds(lambda: zd.mean(rows, bounds=(0, 1), epsilon=1)) for _ in range(200))
    print(f"{'zd.mean of 1000 rows':46}{mean * 1e6:7.0f} µs")


if __name__ == "__main__":
    if "study" not in sys.argv[1:]:
        for name, run in cases().items():
            print(f"{name:36}{seconds(run):9.3f} s")
    beside_numpy()
