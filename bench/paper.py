"""Speed and memory of the paper's algorithms: `python bench/paper.py`.

The four targets of the issue, and a few more runs for scale. One process; the peak of memory is of
the whole process, so each part runs in its own.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.paper.algorithm_04 import pure_dp_sgd, pure_dp_sgd_on_lattice
from zerodelta.paper.algorithm_07 import gaussian_sketch
from zerodelta.paper.algorithm_08 import sparse_recovery
from zerodelta.paper.algorithm_12 import embedded_mode, mode
from zerodelta.paper.algorithm_13 import pure_adassp
from zerodelta.queries import Marginals
from zerodelta.tables.mwem import best_rounds, pure_mwem
from zerodelta.training.loss_functions import Logistic

Floats: TypeAlias = npt.NDArray[np.float64]
Line: TypeAlias = tuple[str, float, str]
"""What, how much, and the target."""

ROWS, FEATURES = 100_000, 20


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best_of(times: int, run: Callable[[], object]) -> float:
    return min(timed(run) for _ in range(times))


def plain_sgd(features: Floats, signs: Floats, *, steps: int, batch: int) -> Floats:
    """The same descent in NumPy, without privacy: the average of T projected steps."""
    generator = np.random.default_rng(1)
    rows, dimension = features.shape
    theta, average = np.zeros(dimension), np.zeros(dimension)
    rate = 2 / math.sqrt(steps) / rows
    for _ in range(steps):
        x, y = features, signs
        if batch < rows:
            chosen = generator.choice(rows, batch, replace=False)
            x, y = features[chosen], signs[chosen]
        scores = y * (x @ theta)
        gradient = x.T @ (-y / (1 + np.exp(scores))) * (rows / batch)
        theta = theta - rate * gradient
        theta /= max(1.0, float(np.linalg.norm(theta)))
        average += theta / steps
    return average


def descent() -> list[Line]:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(ROWS, FEATURES))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (features[:, 0] > 0).astype(np.float64)
    lines: list[Line] = []
    for steps, batch in ((100, ROWS), (2000, 1000)):
        size = {"steps": steps, "batch": batch}
        plain = best_of(3, partial(plain_sgd, features, 2 * labels - 1, **size))
        for name, function in (("Algorithm 4", pure_dp_sgd), ("C1", pure_dp_sgd_on_lattice)):
            run = partial(function, features, labels, loss=Logistic(), data_norm=1, radius=1)
            pure = best_of(3, partial(run, epsilon=1, **size))
            what = f"pure DP-SGD ({name}), n=1e5 d=20, T={steps} batch={batch}: seconds"
            lines.append((what, pure, ""))
            lines.append(("  times the non-private SGD", pure / plain, "at most 3"))
    return lines


def modes() -> list[Line]:
    generator = np.random.default_rng(0)
    items = generator.zipf(1.3, 1_000_000) % (1 << 20)
    return [
        (
            "mode over 2^20 items, n=1e6: seconds",
            best_of(3, lambda: mode(items, universe=1 << 20, epsilon=1)),
            "below 1",
        ),
        (
            "the same as in the paper (Algorithm 12): seconds",
            best_of(3, lambda: embedded_mode(items, universe=1 << 20, epsilon=2)),
            "",
        ),
        (
            "mode over 2^40 items, n=1e6: seconds",
            best_of(3, lambda: mode(items, universe=1 << 40, epsilon=1)),
            "",
        ),
    ]


def queries() -> list[Line]:
    generator = np.random.default_rng(0)
    people = (generator.random((100_000, 16)) < np.linspace(0.1, 0.6, 16)).astype(np.uint8)
    workload = Marginals(dimension=16, order=2)
    rounds = best_rounds(rows=len(people), workload=workload, epsilon=1)
    seconds = timed(lambda: pure_mwem(people, workload=workload, epsilon=1))
    return [
        (f"MWEM d=16, 480 two-way marginals, n=1e5, T={rounds}: seconds", seconds, "below 60"),
        ("  peak memory of the process, GB", peak(), "below 2"),
    ]


def recovery() -> list[Line]:
    lines: list[Line] = []
    for k, d in ((200, 2000), (400, 2000)):
        sketch = gaussian_sketch(k, d)
        truth = np.zeros(d)
        truth[:8] = np.linspace(-0.2, 0.2, 8)
        noise = np.random.default_rng(0).laplace(scale=1e-4, size=k)
        start = time.perf_counter()
        tolerance = float(np.abs(noise).sum())
        found = sparse_recovery(sketch @ truth + noise, sketch, tolerance=tolerance)
        seconds = time.perf_counter() - start
        lines.append(
            (f"sparse recovery k={k} d={d}: seconds", seconds, "below 5" if k == 200 else "")
        )
        lines.append(("  l1 error", float(np.abs(found - truth).sum()), ""))
    return lines


def regression() -> list[Line]:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(ROWS, FEATURES)) / math.sqrt(FEATURES) / 2
    target = features[:, 0]
    run = best_of(
        3,
        lambda: pure_adassp(features, target, data_norm=1, target_bound=1, epsilon=2),
    )
    return [("pure AdaSSP (Algorithm 13), n=1e5 d=20: seconds", run, "")]


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _send(name: str, pipe: Connection) -> None:
    pipe.send(PARTS[name]())
    pipe.close()


PARTS: dict[str, Callable[[], list[Line]]] = {
    "descent": descent,
    "modes": modes,
    "queries": queries,
    "recovery": recovery,
    "regression": regression,
}


def main() -> None:
    context = multiprocessing.get_context("spawn")
    for name in PARTS:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(name, there))
        process.start()
        for what, value, target in here.recv():
            print(f"{what:<72} {value:10.4g}   {target}", flush=True)
        process.join()


if __name__ == "__main__":
    main()
