"""Measure speed and memory of the paper's algorithms: `python bench/paper.py`.

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
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import zerodelta as zd
from zerodelta.paper.algorithm_01_02 import corollary_1
from zerodelta.paper.algorithm_04 import pure_dp_sgd, pure_dp_sgd_on_lattice
from zerodelta.paper.algorithm_07_08 import gaussian_sketch, sparse_recovery
from zerodelta.paper.algorithm_12_13 import embedded_mode, mode, pure_adassp
from zerodelta.paper.multiplicative_weights import best_rounds, pure_mwem
from zerodelta.queries import LinearQueries, Marginals, Median
from zerodelta.training.losses import Logistic

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
        recovered = sparse_recovery(sketch @ truth + noise, sketch, tolerance=tolerance)
        seconds = time.perf_counter() - start
        lines.append(
            (f"sparse recovery k={k} d={d}: seconds", seconds, "below 5" if k == 200 else "")
        )
        lines.append(("  l1 error", float(np.abs(recovered - truth).sum()), ""))
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


def first_eight() -> list[Line]:
    """Algorithms 1 to 8 with default parameters on an ordinary problem; Algorithm 3 takes long."""
    generator = np.random.default_rng(0)
    rows, d = 10_000, 10
    features = generator.normal(size=(rows, d))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (features[:, 0] > 0).astype(np.float64)
    ball, cross = zd.Ball(d, 1), zd.Ball(d, 1, norm=1)
    descent: dict[str, Any] = {"loss": Logistic(), "data_norm": 1, "radius": 1, "epsilon": 1}
    vertices: dict[str, Any] = {"loss": Logistic(), "domain": cross, "lipschitz": 1, "epsilon": 1}
    chosen = corollary_1(rows=rows, dimension=d)
    point, sketch = np.full(d, 0.1), gaussian_sketch(80, 2000)

    def slope(theta: Floats) -> Floats:
        found: Floats = features.T @ (features @ theta - labels) / rows
        return found

    runs: dict[str, Callable[[], Any]] = {
        "1 purify_ball": lambda: zd.paper.purify_ball(
            point,
            ball=ball,
            epsilon=1,
            log_delta=chosen.log_delta,
            mixing_weight=chosen.mixing_weight,
        ),
        "2 purify_choice": lambda: zd.paper.purify_choice(
            5, space=zd.Finite(1 << 20), epsilon=1, log_delta=-250.0
        ),
        "3 dp_sgd": lambda: zd.paper.dp_sgd(features, labels, delta="1e-6", **descent),
        "4 pure_dp_sgd": lambda: pure_dp_sgd(features, labels, **descent),
        "5 frank_wolfe": lambda: zd.paper.frank_wolfe(slope, domain=cross, iterations=100),
        "6 approximate_frank_wolfe": lambda: zd.paper.approximate_frank_wolfe(
            features, labels, delta="1e-6", **vertices
        ),
        "7 pure_frank_wolfe": lambda: zd.paper.pure_frank_wolfe(features, labels, **vertices),
        "8 sparse_recovery": lambda: sparse_recovery(sketch[:, 0], sketch, tolerance=0.01),
    }
    return [once(name, run) for name, run in runs.items()]


def once(name: str, run: Callable[[], Any]) -> Line:
    """Run an algorithm once, with no warm-up; what its plan expects stands beside it."""
    start, busy = time.perf_counter(), time.process_time()
    planned = getattr(run(), "seconds", None)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    note = f"below 30; {busy:.2g} of the processor"
    note += "" if planned is None else f", planned {planned:.2g}"
    return f"Algorithm {name}, defaults, n=1e4 d=10: seconds", seconds, note


def other_eight() -> list[Line]:
    """Algorithms 9 to 16 with default parameters: 10^4 rows, 10 columns, 1024 items."""
    rng = np.random.default_rng(0)
    ages, items = rng.normal(50, 10, 10_000), rng.zipf(1.3, 10_000) % 1024
    features = rng.normal(size=(10_000, 10)) / math.sqrt(10) / 2
    people, workload = (rng.random((10_000, 10)) < 0.3).astype(int), Marginals(dimension=10)
    median: dict[str, Any] = {"query": Median(bounds=(0, 100), steps=500), "epsilon": 1}
    weak: dict[str, Any] = {"delta": 1e-12, "mixing_weight": "0.01"}
    line: dict[str, Any] = {"data_norm": 1, "target_bound": 1, "epsilon": 1}
    rounds: dict[str, Any] = {"rounds": 100, "workload": workload}
    runs: dict[str, Callable[[], Any]] = {
        "9": lambda: zd.paper.propose_test_release(ages, proposed_bound=1, delta=1e-12, **median),
        "10": lambda: zd.paper.pure_propose_test_release(ages, proposed_bound=1, **weak, **median),
        "10, free": lambda: zd.queries.propose_test_release(ages, proposed_bound=1, **median),
        "11": lambda: zd.paper.pure_bounded_local_sensitivity(ages, **weak, **median),
        "11, mixed": lambda: zd.queries.bounded_local_sensitivity(
            ages, mixing_probability="0.01", **median
        ),
        "12": lambda: embedded_mode(items, universe=1024, epsilon=1),
        "12, test only": lambda: mode(items, universe=1024, epsilon=1),
        "13, AdaSSP": lambda: zd.paper.adassp(features, features[:, 0], delta=1e-12, **line),
        "13": lambda: pure_adassp(features, features[:, 0], **line),
        "13, lattice": lambda: zd.paper.lattice_adassp(
            features, features[:, 0], mixing_weight="1e-9", **line
        ),
        "14, zCDP": lambda: zd.paper.mwem(people, rho="1/100", **rounds),
        "14": lambda: zd.paper.approximate_mwem(people, epsilon=1, delta=1e-12, **rounds),
        "15": lambda: zd.paper.proportional_sampling(rng.random(1024), size=100),
        "16": lambda: zd.paper.embedded_mwem(people, workload=workload, epsilon=1),
        "16, multisets": lambda: zd.paper.multiset_mwem(
            people, sample_size=100, epsilon=1, **rounds
        ),
    }
    return [once(name, run) for name, run in runs.items()]


def rounds_of_mwem() -> list[Line]:
    """Processor time of one round, beside what `Rounds.seconds` forecasts."""
    lines: list[Line] = []
    for workload in (
        *(Marginals(dimension=d) for d in (8, 16, 20)),
        LinearQueries(np.eye(1000, dtype=np.int64)),
    ):
        rows = np.zeros((1000, workload.columns))
        run = partial(zd.paper.mwem, rows, workload=workload, rho="1/10")
        forecast, times = run(rounds=1).seconds, []
        for rounds in (5, 105):
            start = time.process_time()
            run(rounds=rounds)
            times.append(time.process_time() - start)
        what = f"a round of MWEM, {workload.queries} queries on {workload.universe} items: seconds"
        lines.append((what, (times[1] - times[0]) / 100, f"forecast {forecast:.2g}"))
    return lines


SIZES = (
    (10_000, 10, 24, 4000), (10_000, 10, 2000, 600), (10_000, 10, 10_000, 150),
    (10_000, 100, 24, 2000), (10_000, 100, 10_000, 40), (100_000, 10, 24, 3000),
    (100_000, 10, 100_000, 20), (10_000, 1000, 24, 300), (1000, 10, 1000, 800),
)  # fmt: skip
"""n, d, batch and T of the descents that `descent_seconds` was fitted to."""


def planned_seconds() -> list[Line]:
    """Processor time of a step of Algorithms 3 and 6, over what their plans expect of it."""
    generator = np.random.default_rng(0)
    lines: list[Line] = []

    def busy(run: Callable[[int], Any], steps: int) -> float:
        """The ratio for one step: what a plan takes before the first one does not count."""
        run(1)
        times, plans = [], []
        for count in (1, steps):
            start = time.process_time()
            plans.append(run(count).seconds)
            times.append(time.process_time() - start)
        return float((times[1] - times[0]) / (plans[1] - plans[0]))

    for n, d, batch, steps in SIZES:
        features = generator.normal(size=(n, d))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        labels = (features[:, 0] > 0).astype(np.float64)
        options: dict[str, Any] = {"loss": Logistic(), "epsilon": 1, "delta": "1e-6"}
        descend = partial(zd.paper.dp_sgd, features, labels, data_norm=1, radius=1, **options)
        ratio = busy(lambda t, run=descend, b=batch: run(steps=t, batch=b), steps)  # type: ignore[misc]
        lines.append((f"Algorithm 3, n={n} d={d} batch={batch}: a step over its plan", ratio, ""))
        if batch == n:
            choose = partial(
                zd.paper.approximate_frank_wolfe,
                features,
                labels,
                domain=zd.Ball(d, 1, norm=1),
                lipschitz=1,
                **options,
            )
            ratio = busy(lambda t, run=choose: run(iterations=t), 11)  # type: ignore[misc]
            lines.append((f"Algorithm 6, n={n} d={d}: a step over its plan", ratio, ""))
    return lines


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
    "algorithms 1 to 8": first_eight,
    "algorithms 9 to 16": other_eight,
    "planned seconds": planned_seconds,
    "rounds of MWEM": rounds_of_mwem,
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
