"""Compare every task at equal pure ε in {0.5, 1, 2} with diffprivlib and OpenDP.

Printed are the errors of each rival, averaged over runs or data sets as each title says (means,
or medians where tails are heavy), and ours over the best rival's and over the best default's, ± a
standard error by bootstrap; "!" is more than 10 % behind. At the end these are counted.

Peers run in environments of their own (`bench/tasks_peers.py`) while we do; replace-one neighbors
and one thread throughout, and seconds are those of the processor: both hold on a busy machine.
"best C" is diffprivlib's penalty, "best grid" the grid of OpenDP's medians, each chosen for each
number by an oracle. Trimmed means are had from no peer: what they release there is the plain mean,
the nearest question that they answer, and it does not count. Marginals of theirs are one noisy
table after the other; all our methods to release them are in `bench/tasks_marginals.py`. Name some
parts to run only those.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

# For peers, too: processor time of threads that spin while they wait says nothing.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.fits import fit_linear
from bench.study_kmeans import Case, inertia
from bench.tasks_estimators import ball_rows, linear, logistic, multinomial
from bench.tasks_marginals import made_rows, tables_of
from bench.tasks_peers import SKIPPED, Answers, Asked, ask
from bench.tasks_rows import EPSILONS, OURS, STAND_IN, Estimate, Row, count, measured, show

import zerodelta as zd
from zerodelta.privacy.theorems.regression import (
    HuberObjectivePerturbation,
    LogisticObjectivePerturbation,
)
from zerodelta.regression.objective import (
    LOG_ODDS,
    TARGETS,
    RegressionPlan,
    Shape,
    plan_huber,
    plan_logistic,
)
from zerodelta.sklearn import LogisticRegression
from zerodelta.tasks.marginals import synthesize

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# -- the mode --------------------------------------------------------------------------------------

WRONG: dict[float, Callable[[float], int]] = {0.1: math.floor, 0.05: round, 0.025: math.ceil}
"""Leads are chosen so that permute-and-flip would err about this often, rounded apart."""


def _gap(leads: list[int], wrong: Floats, draws: int) -> float:
    """Return the lead at which a line through log P(wrong) passes log 0.05."""
    seen = np.maximum(wrong, 0.5 / draws)
    slope, height = np.polyfit(leads, np.log(seen), 1, w=np.sqrt(seen * draws))
    return float((math.log(0.05) - height) / slope)


def _estimate(leads: list[int], answers: list[Answers], seed: int) -> Estimate:
    """Return the lead for 95 %, and what it would be if other draws were as often wrong."""
    draws, rng = len(answers[0].values), np.random.default_rng(seed)
    wrong = np.array([np.mean(np.array(one.values) != 0) for one in answers])
    again = rng.binomial(draws, wrong, size=(200, len(leads))) / draws
    gaps = np.array([[_gap(leads, seen, draws)] for seen in (wrong, *again)])
    return Estimate(gaps[0], gaps[1:])


def modes(draws: int) -> list[Row]:
    """The lead over N - 1 tied items with which the mode is found 95 times in 100."""
    rows = []
    for universe, epsilon in product((2, 20, 1000), EPSILONS):
        leads = [
            rounded(2 / epsilon * math.log((universe - 1) / 2 / p)) for p, rounded in WRONG.items()
        ]
        times = {2: draws, 20: draws // 4}.get(universe, draws // 8)  # a long lead is surer
        theirs = _modes_of_peers(leads, universe, epsilon, times)
        start = time.process_time()
        mine = [
            [zd.mode(items, universe=universe, epsilon=epsilon).value for _ in range(times)]
            for items in (_race(universe, lead) for lead in leads)
        ]
        took = (time.process_time() - start) / times / len(leads)
        found = {OURS: [Answers(values, took) for values in mine]}
        for name, asked in theirs.items():
            if answers := asked.result()[0]:
                found[name] = [answers[str(lead)] for lead in leads]
        rows.append(
            Row(
                task="mode",
                case=f"{universe} items",
                epsilon=epsilon,
                metric="lead for 95 %",
                found={
                    name: _estimate(leads, answers, seed)
                    for seed, (name, answers) in enumerate(found.items())
                },
                seconds={name: answers[0].seconds for name, answers in found.items()},
            )
        )
    return rows


def _race(universe: int, lead: int) -> Integers:
    """Return ten of each item, and more of the first."""
    counts = np.full(universe, 10)
    counts[0] += lead
    return np.repeat(np.arange(universe), counts)


def _modes_of_peers(
    leads: list[int], universe: int, epsilon: float, draws: int
) -> dict[str, Asked]:
    """Ask each rival; its variants are the leads."""
    races: dict[str, Any] = {str(lead): [_race(universe, lead)] for lead in leads}
    given: dict[str, Any] = {"epsilons": (epsilon,), "runs": draws, "universe": universe}
    rivals = {
        "diffprivlib": ("diffprivlib", "PermuteAndFlip"),
        "diffprivlib, exponential": ("diffprivlib", "Exponential"),
        "OpenDP": ("opendp", ""),
    }
    return {
        name: ask(peer, "mode", races, variants=tuple(races), kind=kind, **given)
        for name, (peer, kind) in rivals.items()
    }


# -- means and medians -----------------------------------------------------------------------------


def means(runs: int) -> list[Row]:
    rows, n = [], 10_000
    for shape, dimensions in (("l2 ball", (1, 2, 5, 20, 50, 200)), ("cube", (2, 5, 20, 50))):
        for d in dimensions:
            rng = np.random.default_rng(d)
            ball = shape == "l2 ball"
            x = ball_rows(rng, n, d) if ball else rng.beta(2, 4, size=(n, d)) * 2 - 1
            truth = x.mean(axis=0)
            times = runs * max(1, 50 // d)  # few numbers: the mean of few runs would be luck
            bound: dict[str, Any] = {"data_norm": 1} if ball else {"bounds": (-1, 1)}

            def ours(epsilon: float, _: int, x: Floats = x, bound: Any = bound) -> Any:
                return zd.mean(x, epsilon=epsilon, **bound).value

            def error(value: Any, _: int, truth: Floats = truth) -> tuple[float]:
                return (float(np.linalg.norm(np.reshape(value, -1) - truth)),)

            l1 = 2 * math.sqrt(d) if ball else 2.0 * d
            given: dict[str, Any] = {"epsilons": EPSILONS, "runs": times, "bounds": (-1.0, 1.0)}
            rows += measured(
                task="mean",
                case=f"{shape}, d={d}, n=1e4",
                ours=ours,
                theirs={
                    "diffprivlib": ask("diffprivlib", "mean", {"x": [x]}, **given),
                    "OpenDP": ask("opendp", "mean", {"x": [x]}, l1=l1, **given),
                },
                metrics={"l2 error": error},
                runs=times,
            )
    return rows


GRIDS = (1001, 101, 10_001)
"""Points between which OpenDP chooses: it has no default, so the first is ours to set."""


def medians(runs: int) -> list[Row]:
    """With an even number of rows ours has diffprivlib's law, on a grid: what differs is luck.

    OpenDP permutes and flips 1001 points: some 10 % better where their step is about its error
    (n = 1e3, ε = 0.5), and far worse where the step is longer. Each run is about fresh rows: a grid
    with a point in the middle of the only ones would win. Nor is a bound 0, or mirrors the other.
    """
    rows, (lower, upper) = [], (-9.3, 10.1)
    for n, kind in product((1000, 10_000, 30_000), ("normal", "skewed")):
        times = {1000: runs, 10_000: runs * 3 // 5}.get(n, runs * 2 // 5)
        drawn = np.random.default_rng(n).normal(size=(times, n))
        x = np.clip(drawn if kind == "normal" else np.exp(0.7 * drawn), lower, upper)
        middles = np.median(x, axis=1)

        def ours(epsilon: float, i: int, x: Floats = x) -> Any:
            return zd.median(x[i], bounds=(lower, upper), epsilon=epsilon).value

        def rank(value: Any, i: int, x: Floats = x) -> tuple[float]:
            below = np.count_nonzero(x[i] < value)
            return (max(abs(below - x.shape[1] / 2), 0.5),)

        def distance(value: Any, i: int, middles: Floats = middles) -> tuple[float]:
            return (float(abs(value - middles[i])),)

        given: dict[str, Any] = {"epsilons": EPSILONS, "runs": times, "bounds": (lower, upper)}
        rows += measured(
            task="median",
            case=f"{kind}, n={n:.0e}",
            ours=ours,
            theirs={
                "diffprivlib": ask("diffprivlib", "median", {"x": x}, **given),
                "OpenDP": ask("opendp", "median", {"x": x}, variants=GRIDS, **given),
            },
            metrics={"distance": distance, "rank": rank},
            runs=times,
            sets=times,
        )
    return rows


def trimmed_means(runs: int) -> list[Row]:
    rows = []
    for n in (1000, 10_000, 100_000):
        for kind in ("normal", "5 % at the end"):
            rng = np.random.default_rng(n)
            x = np.clip(rng.normal(size=n) * 8 + 50, 0, 100)
            if kind != "normal":
                x[: n // 20] = 100
            cut = n // 10
            truth = float(np.sort(x)[cut : n - cut].mean())

            def ours(epsilon: float, _: int, x: Floats = x) -> Any:
                return zd.trimmed_mean(x, trim="0.1", bounds=(0, 100), epsilon=epsilon).value

            def error(value: Any, _: int, truth: float = truth) -> tuple[float]:
                return (float(abs(np.reshape(value, -1)[0] - truth)),)

            given: dict[str, Any] = {"epsilons": EPSILONS, "runs": runs, "bounds": (0.0, 100.0)}
            rows += measured(
                task="trimmed mean" + STAND_IN,
                case=f"{kind}, n={n:.0e}",
                ours=ours,
                theirs={
                    "diffprivlib": ask("diffprivlib", "mean", {"x": [x]}, **given),
                    "OpenDP": ask("opendp", "mean", {"x": [x]}, l1=100.0, **given),
                },
                metrics={"error": error},
                runs=runs,
            )
    return rows


# -- marginals -------------------------------------------------------------------------------------


def marginals(runs: int) -> list[Row]:
    """All tables of 2 and of 3 binary columns, in fractions of n."""
    rows, n = [], 20_000
    for kind, d, way in product(("independent", "clusters", "chain"), (8, 12), (2, 3)):
        x, domain = made_rows(kind, d, n), dict.fromkeys(range(d), 2)
        truth = tables_of(x, way)
        sets = list(truth)

        def ours(
            epsilon: float,
            _: int,
            x: Integers = x,
            domain: Any = domain,
            way: int = way,
            sets: Any = sets,
        ) -> list[Floats]:
            release = zd.answer_queries(x, domain=domain, workload=way, epsilon=epsilon)
            return [release.value[columns] for columns in sets]

        def error(value: Any, _: int, truth: Any = truth) -> tuple[float]:
            gaps = [
                np.abs(np.reshape(v, t.shape) - t)
                for v, t in zip(value, truth.values(), strict=True)
            ]
            return (float(np.mean(gaps)),)

        given: dict[str, Any] = {"epsilons": EPSILONS, "runs": runs, "sets": sets}
        rows += measured(
            task="marginals",
            case=f"{kind}, d={d}, {way}-way, n=2e4",
            ours=ours,
            theirs={
                "diffprivlib": ask("diffprivlib", "marginals", {"x": [x]}, **given),
                "OpenDP": ask("opendp", "marginals", {"x": [x]}, **given),
            },
            metrics={"mean error of a cell": error},
            runs=runs,
        )
    return rows


# -- k-means ---------------------------------------------------------------------------------------

CLUSTERS = (
    Case("blobs", 100_000, 2, 5),
    Case("unequal", 100_000, 2, 8),
    Case("uniform", 100_000, 2, 5),
    Case("blobs", 10_000, 2, 5),
    Case("unequal", 10_000, 5, 5),
    Case("blobs", 100_000, 5, 10),
    Case("unequal", 100_000, 10, 5),
)


def clusterings(runs: int) -> list[Row]:
    rows = []
    for number, case in enumerate(CLUSTERS):
        n, k = case.rows, case.clusters
        both = Case(case.kind, 2 * n, case.columns, k).data(seed=number)
        plain = KMeans(k, n_init=10, random_state=0).fit(both[:n]).cluster_centers_
        least = inertia(both[:n], plain), inertia(both[n:], plain)

        def ours(epsilon: float, _: int, both: Floats = both, n: int = n, k: int = k) -> Any:
            return zd.kmeans(both[:n], clusters=k, epsilon=epsilon, bounds=(0, 1)).value

        def error(
            value: Any, _: int, both: Floats = both, n: int = n, least: Any = least
        ) -> tuple[float, float]:
            centers = np.array(value)
            inside, outside = inertia(both[:n], centers), inertia(both[n:], centers)
            return inside / least[0], outside / least[1]

        theirs = ask(
            "diffprivlib", "kmeans", {"x": [both[:n]]}, epsilons=EPSILONS, runs=runs, clusters=k
        )
        rows += measured(
            task="k-means",
            case=f"{case.kind}, d={case.columns}, k={k}, n={n:.0e}",
            ours=ours,
            theirs={"diffprivlib": theirs},
            metrics={"inertia / non-private": error},
            runs=runs,
            heavy={"inertia / non-private"},
        )
    return rows


# -- speed -----------------------------------------------------------------------------------------


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the best of a few runs."""
    durations = []
    for _ in range(times):
        start = time.process_time()
        work()
        durations.append(time.process_time() - start)
    return min(durations)


def _logistic_seconds(x: Floats, y: Integers, times: int) -> float:
    """Return the median, as the peers' loop does."""
    model = LogisticRegression(epsilon=1, data_norm=1, classes=[0, 1])
    return float(np.median([seconds(lambda: model.fit(x, y), 1) for _ in range(times)]))


def _linear_seconds(n: int, d: int) -> tuple[float, float, float]:
    """Return seconds of statistics, of Huber and of NumPy's X.T @ X."""
    rng = np.random.default_rng(6)
    x = ball_rows(rng, n, d)
    y = np.clip(x @ rng.normal(size=d) + 0.1 * rng.normal(size=n), -1, 1)
    options: dict[str, Any] = {"epsilon": 1, "data_norm": 1, "bounds_y": (-1, 1)}
    statistics = seconds(lambda: fit_linear(x, y, method="statistics", **options))
    huber = seconds(lambda: fit_linear(x, y, method="huber", **options))
    return statistics, huber, seconds(lambda: x.T @ x)


def speed() -> Table:
    table = Table("what", "seconds", "beside", "seconds there", "ratio", "wanted", title="speed")

    def line(what: str, mine: float, beside: str, theirs: float, wanted: str) -> None:
        known = math.isfinite(theirs)
        cells = (f"{theirs:.3f}", f"{mine / theirs:.2f}") if known else ("-", "-")
        table.add_row(what, f"{mine:.3f}", beside, *cells, wanted)

    rng = np.random.default_rng(5)
    for d, wanted in ((20, "ratio <= 1"), (100, "ratio <= 1.3")):
        x = ball_rows(rng, 100_000, d)
        chance = 1 / (1 + np.exp(-3 * x @ rng.normal(size=d)))
        y = (rng.random(len(x)) < chance).astype(np.int64)
        mine = _logistic_seconds(x, y, 7)
        given: dict[str, Any] = {"epsilons": (1.0,), "runs": 7, "variants": (1.0,)}
        theirs = ask("diffprivlib", "logistic", {"x": [x], "y": [y]}, **given).result()[0]
        peer = next((answers.seconds for answers in theirs.values()), math.nan)
        what = f"LogisticRegression n = 1e5, d = {d} (median of 7)"
        line(what, mine, "diffprivlib, default", peer, wanted)
    statistics, huber, product = _linear_seconds(1_000_000, 50)
    what = "LinearRegression n = 1e6, d = 50, "
    line(what + "statistics", statistics, "NumPy, X.T @ X", product, "ratio <= 2")
    line(what + "huber", huber, "NumPy, X.T @ X", product, "< 2 s")
    items = rng.integers(1000, size=10_000_000)
    mode = seconds(lambda: zd.mode(items, universe=1000, epsilon=1))
    counting = seconds(lambda: np.bincount(items, minlength=1000))
    line("zd.mode, 1e7 items of 1000", mode, "NumPy, bincount", counting, "< 2 s")
    rows, domain = made_rows("clusters", 12, 100_000), dict.fromkeys(range(12), 2)
    synthesis_seconds = seconds(lambda: synthesize(rows, domain=domain, workload=2, epsilon=1), 1)
    line("synthesize d = 12, all 2-way, n = 1e5", synthesis_seconds, "-", math.nan, "< 20 s")
    return table


def numerical_cost(plan: RegressionPlan, n: int, d: int) -> float:
    """Return what the numerical part of the proof adds to the excess risk, by formula.

    Noise of the objective for a little less than ε, and the noise of the output beside what that
    of the objective moves the minimum by, along all directions. A part in a thousand is not
    measurable.
    """
    expected, curvature, strength = LOG_ODDS, LOG_ODDS.curvature, plan.strength
    if plan.base.theorem == "huber-objective-perturbation":
        expected, curvature = TARGETS, 0.9
        fit: Any = HuberObjectivePerturbation(noise_epsilon=plan.epsilon, strength=strength)
    else:
        fit = LogisticObjectivePerturbation(
            noise_epsilon=plan.epsilon, strength=strength, roundness=plan.roundness
        )
    noise_epsilon = fit.within(plan.epsilon).noise_epsilon
    bends = [curvature * variance for variance in expected.variances(d + 1, intercept=True)]
    moved = sum(bend / (n * bend + float(plan.strength)) ** 2 for bend in bends)
    output = float(plan.channel.scale) ** 2 / plan.noise_scale_squared * sum(bends) / moved
    return float(noise_epsilon / Fraction(plan.base.numbers["noise_epsilon"])) ** 2 - 1 + output


def proof() -> Table:
    table = Table("n", "d", "logistic", "Huber", "wanted", title="numerical part, of excess risk")
    for n, d in product((1000, 10_000, 100_000, 1_000_000, 10_000_000), (5, 20, 50)):
        shape = Shape.of(rows=n, dimension=d, epsilon=1)
        plans = [make(shape) for make in (plan_logistic, plan_huber)]
        shown = [f"{numerical_cost(plan, n, d):.3%}" for plan in plans]
        table.add_row(f"{n:.0e}", str(d), *shown, "< 0.5 %")
    return table


PARTS: dict[str, tuple[Callable[[int], list[Row]], int, str]] = {
    "mode": (modes, 5000, "from {} draws for each of 3 leads (1250, 625 for more items)"),
    "mean": (means, 50, "mean error of {} runs, more for d < 50 (2500 at d = 1)"),
    "median": (medians, 2500, "mean error of {} data sets, fewer for n > 1e3 (1500, 1000)"),
    "trimmed": (trimmed_means, 100, "mean error of {} runs"),
    "logistic": (
        logistic,
        20,
        "mean misclassified, median excess of {} runs (60 at d = 5, else 5 at n = 1e5; 200 real)",
    ),
    "multinomial": (multinomial, 20, "mean error of {} runs, 40 of real data"),
    "linear": (linear, 20, "median error of {} data sets (100 at d = 2, else 5 at n = 1e5)"),
    "marginals": (marginals, 5, "mean error of {} runs"),
    "kmeans": (clusterings, 20, "median error of {} runs"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}, speed; or all")
    chosen = parser.parse_args().parts or [*PARTS, "speed"]
    console, rows = Console(width=230), list[Row]()
    for part in chosen:
        start = time.perf_counter()
        if part == "speed":
            console.print(speed())
            console.print(proof())
        else:
            measure, runs, note = PARTS[part]
            measured = measure(runs)
            rows += measured
            console.print(show(measured, note.format(runs)))
        console.print(f"({part}: {time.perf_counter() - start:.0f} s)\n")
    for reason in SKIPPED.values():
        console.print(reason)
    if rows:
        table, sentence = count(rows)
        console.print(table)
        console.print(sentence)


if __name__ == "__main__":
    main()
