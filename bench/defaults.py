"""Compare changed defaults, before and after, and peers at equal guarantee in one run.

"before" is the old default by explicit parameters.
Errors are means over runs in the unit of each title, with new rows in each run where rows are made
up; the last columns are ours before over ours after, and the best peer over ours after. All
neighbors are replace-one. Peers whose noise is for added or removed rows (diffprivlib's k-means)
are asked for ε/2, which is the same guarantee; the others are replace-one at ε. Trimmed means are
had from no peer: theirs is the plain mean beside its own truth.

The constants of "one-center" were chosen after looking at k-means of digits and wine, so these two
rows are in-sample; breast cancer was added afterwards and nothing was changed for it. The noise
of trimmed means follows from a formula. "before" of quantiles has a margin of 61 rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.study_kmeans import inertia
from bench.tasks_peers import SKIPPED, Asked, ask

import zerodelta as zd

Floats = npt.NDArray[np.float64]
Error = Callable[[Any, int], float]
RUNS = 40


def old_grid(n: int) -> int:
    """Return the default number of points before: about 1024 a row."""
    return int(min(max(1 << 16, 1 << (1024 * n - 1).bit_length()) + 1, 1 << 40))


def errors_of(asked: Asked, place: int, variant: str, error: Error) -> float:
    """Return the mean error of a peer's answers for one ε; NaN if the peer is not to be had."""
    answers = asked.result()[place].get(variant)
    values = answers.values if answers else []
    return float(np.mean([error(v, i) for i, v in enumerate(values)] or [np.nan]))


def line(
    table: Table, case: str, before: Sequence[float], after: Sequence[float], peers: Sequence[float]
) -> None:
    """Add the mean errors of ours and of each peer, and their ratios."""
    old, new = float(np.mean(before)), float(np.mean(after))
    shown = [f"{number:.4g}" for number in (old, new, *peers)]
    best = min((peer for peer in peers if peer == peer), default=np.nan)
    table.add_row(case, *shown, f"{old / new:.3g}", f"{best / new:.3g}")


def titled(title: str, *peers: str) -> Table:
    return Table(
        "rows, bounds, ε", "before", "after", *peers, "before/after", "peer/after", title=title
    )


# -- trimmed means ---------------------------------------------------------------------------------


def trimmed_means() -> Table:
    table = titled("trimmed mean, trim = 0.1: absolute error", "diffprivlib, mean", "OpenDP, mean")
    made: dict[str, tuple[Callable[..., Floats], tuple[float, float]]] = {
        "lognormal(10, 1), (0, 1e9)": (lambda rng, n: rng.lognormal(10, 1, n), (0, 1e9)),
        "t with 3 degrees, (-1e4, 1e4)": (lambda rng, n: rng.standard_t(3, n), (-1e4, 1e4)),
        "normal(50, 8), (0, 100)": (lambda rng, n: rng.normal(50, 8, n), (0, 100)),
    }
    chosen = {1000: (1.0,), 10_000: (0.1, 1.0)}
    for (name, (make, bounds)), n in product(made.items(), chosen):
        rng = np.random.default_rng(n)
        x = np.clip([make(rng, n) for _ in range(RUNS)], *bounds)
        cut = n // 10
        truth = np.sort(x, axis=1)[:, cut : n - cut].mean(axis=1)
        width = bounds[1] - bounds[0]
        guess: dict[str, Any] = {"spread": width / 10, "method": "smooth-sensitivity"}

        def mean_error(value: Any, i: int, x: Floats = x) -> float:
            return float(abs(np.reshape(value, -1)[0] - x[i].mean()))

        given: dict[str, Any] = {"epsilons": chosen[n], "runs": RUNS, "bounds": bounds}
        theirs = (
            ask("diffprivlib", "mean", {"x": x}, **given),
            ask("opendp", "mean", {"x": x}, l1=width, **given),
        )
        for place, epsilon in enumerate(chosen[n]):
            public: dict[str, Any] = {"trim": "0.1", "bounds": bounds, "epsilon": epsilon}
            before, after = (
                [abs(zd.trimmed_mean(x[i], **public, **more).value - truth[i]) for i in range(RUNS)]
                for more in (guess, {})
            )
            peers = [errors_of(asked, place, "", mean_error) for asked in theirs]
            line(table, f"{name}, n={n:.0e}, ε={epsilon}", before, after, peers)
    return table


# -- quantiles -------------------------------------------------------------------------------------


def quantile_table(
    title: str, levels: tuple[float, ...], cases: dict[str, tuple[Any, tuple[float, float]]]
) -> Table:
    table = titled(title, "diffprivlib", "OpenDP, 10 001 points")
    for (name, (make, bounds)), n in product(cases.items(), (1000, 10_000)):
        rng = np.random.default_rng(n)
        x = np.clip([make(rng, n) for _ in range(RUNS)], *bounds)
        given: dict[str, Any] = {"epsilons": (1.0,), "runs": RUNS, "bounds": bounds}
        given["variants"] = levels
        theirs = (
            ask("diffprivlib", "quantile", {"x": x}, **given),
            ask("opendp", "quantile", {"x": x}, points=10_001, **given),
        )
        for q in levels:
            truth = np.quantile(x, q, axis=1, method="inverted_cdf")

            def error(value: Any, i: int, truth: Floats = truth) -> float:
                return float(abs(value - truth[i]))

            public: dict[str, Any] = {"q": q, "bounds": bounds, "epsilon": 1}
            old: dict[str, Any] = {**public, "grid": old_grid(n), "margin": 61}
            before = [error(zd.quantile(x[i], **old).value, i) for i in range(RUNS)]
            after = [error(zd.quantile(x[i], **public).value, i) for i in range(RUNS)]
            peers = [errors_of(asked, 0, str(q), error) for asked in theirs]
            line(table, f"{name}, q={q}, n={n:.0e}, ε=1", before, after, peers)
    return table


def medians() -> Table:
    return quantile_table(
        "median: absolute error",
        (0.5,),
        {
            "lognormal(10, 1), (0, 1e12)": (lambda rng, n: rng.lognormal(10, 1, n), (0, 1e12)),
            "normal, (-9.3, 10.1)": (lambda rng, n: rng.normal(size=n), (-9.3, 10.1)),
        },
    )


def ends() -> Table:
    return quantile_table(
        "quantiles near the ends: absolute error",
        (0.001, 0.01, 0.99),
        {
            "normal, (-1e6, 1e6)": (lambda rng, n: rng.normal(size=n), (-1e6, 1e6)),
            "normal, (-50, 50)": (lambda rng, n: rng.normal(size=n), (-50.0, 50.0)),
            "uniform, its own bounds": (lambda rng, n: rng.random(n), (0.0, 1.0)),
        },
    )


# -- k-means ---------------------------------------------------------------------------------------


def clusterings() -> Table:
    table = titled("k-means: inertia / non-private", "diffprivlib at ε/2")
    wine, cancer = load_wine().data, load_breast_cancer().data
    made = {
        "digits, d=64, k=10, n=1797": (load_digits().data / 16, 10),
        "wine, d=13, k=3, n=178": ((wine - wine.min(0)) / np.ptp(wine, axis=0), 3),
        "breast cancer, d=30, k=2, n=569": ((cancer - cancer.min(0)) / np.ptp(cancer, axis=0), 2),
    }
    for name, (x, k) in made.items():
        least = KMeans(k, n_init=10, random_state=0).fit(x).inertia_

        def error(value: Any, _: int, x: Floats = x, least: float = least) -> float:
            return float(inertia(x, np.array(value)) / least)

        epsilons = (0.25, 1.0, 4.0)
        halves = tuple(epsilon / 2 for epsilon in epsilons)
        given: dict[str, Any] = {"epsilons": halves, "runs": 6, "clusters": k}
        theirs = ask("diffprivlib", "kmeans", {"x": [x]}, **given)
        for place, epsilon in enumerate(epsilons):
            public: dict[str, Any] = {"clusters": k, "bounds": (0, 1), "epsilon": epsilon}
            before, after = (
                [error(zd.kmeans(x, method=method, **public).value, i) for i in range(6)]
                for method in ("lloyd", "auto")
            )
            peer = errors_of(theirs, place, "", error)
            line(table, f"{name}, (0, 1), ε={epsilon}", before, after, [peer])
    return table


def main() -> None:
    console = Console(width=150)
    for part in (trimmed_means, medians, ends, clusterings):
        start = time.perf_counter()
        console.print(part())
        console.print(f"({time.perf_counter() - start:.0f} s)\n")
    for reason in SKIPPED.values():
        console.print(reason)


if __name__ == "__main__":
    main()
