"""Measure row 7 of Table 1: query release by MWEM (Algorithm 16), and its rivals.

Multiplicative weights have no closed form. The prediction is their mean-field recursion: every
round applies the *expected* update (the law of the choice, the mean of the clipped noisy answer)
with the ε_0 and T of the run, so it is computed, not drawn, and nothing is fitted.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from reproduce.erm_rows import LOG_DELTA
from reproduce.rates import Experiment, Floats, Point
from reproduce.reference import (
    OnlineWeights,
    gaussian_scale,
    generator_of,
    largest_gaussian,
    largest_laplace,
    small_database_law,
)
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.marginals.workloads import LinearQueries, Marginals, Workload
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.paper.algorithm_14_16 import (
    approximate_mwem,
    embedded_mwem,
    paper_rho,
    paper_round_mechanisms,
    paper_rounds,
    plan_embedded,
)
from zerodelta.paper.multiplicative_weights import Rounds, best_rounds, pure_mwem, pure_rounds
from zerodelta.testing import replayed

__all__ = ["QUERIES", "QUERY_BASELINES"]

_STEPS = 1000
"""Values of the made-up queries are multiples of a thousandth."""

_ITEMS = 4
"""The size of the small universe."""

_DATABASES = 8
"""SmallDB is as good as its m rows fit the data, so the worst of so many data sets is taken."""


def _run(variant: str, people: Any, workload: Workload, total: Fraction, bits: BitSource) -> Floats:
    """Return the answers of MWEM in one of its three forms, as fractions."""
    if variant == "before":
        rounds = _planned(variant, len(people), workload, total)[0].rounds
        options: dict[str, Any] = {"epsilon": total, "log_delta": LOG_DELTA, "rounds": rounds}
        weights = replayed(bits)(approximate_mwem)(people, workload=workload, **options).value
        return np.asarray(workload.totals(weights / weights.sum()) / workload.bound)
    if variant == "after":
        sample = replayed(bits)(embedded_mwem)(people, workload=workload, epsilon=total).value
        return np.asarray(workload.answers(sample) / workload.bound)
    weights = replayed(bits)(pure_mwem)(people, workload=workload, epsilon=total).value
    return np.asarray(workload.totals(weights) / workload.bound)


def _planned(
    variant: str, rows: int, workload: Workload, total: Fraction
) -> tuple[Rounds, int | None]:
    """Return the rounds that `_run` makes, and the size of the sample it publishes, if it does."""
    if variant == "before":
        size: Any = {"rows": rows, "workload": workload}
        count = paper_rounds(epsilon=total, log_delta=LOG_DELTA, failure=0.01, **size)
        rho = paper_rho(epsilon=total, log_delta=LOG_DELTA)
        return paper_round_mechanisms(rho=rho, rounds=count, workload=workload), None
    if variant == "after":
        plan = plan_embedded(rows=rows, workload=workload, epsilon=total)
        return plan.rounds, plan.sample_size
    count = best_rounds(rows=rows, workload=workload, epsilon=total)
    return pure_rounds(epsilon=total, rounds=count, workload=workload), None


def mean_field(table: Floats, truth: Floats, rounds: Rounds, rows: int) -> float:
    """Return the largest error of the averaged weights if every update is its expectation.

    `table` holds the queries (values in [0, 1]) on each item. The choice has the law of the
    exponential mechanism (nearly that of permute-and-flip, too), and an answer a with Laplace(b)
    noise, clipped to [0, 1], has the mean a + (b/2)(e^(-a/b) - e^((a-1)/b)).
    """
    unit = rows * rounds.workload.bound
    rate, scale = unit / float(rounds.select.scale), _laplace(rounds) / unit
    answer = truth + scale / 2 * (np.exp(-truth / scale) - np.exp((truth - 1) / scale))
    weights = np.full(table.shape[1], 1 / table.shape[1])
    average = weights.copy()
    for _ in range(rounds.rounds):
        answers = table @ weights
        scores = np.abs(answers - truth)
        law = np.exp(rate * (scores - scores.max()))
        law /= law.sum()
        weights = weights * np.exp((law * (answer - answers) / 2) @ table)
        weights /= weights.sum()
        average += weights
    return float(np.abs(table @ (average / (rounds.rounds + 1)) - truth).max())


def _laplace(rounds: Rounds) -> float:
    noise = rounds.measure
    return float(noise.scale) if isinstance(noise, RoundedLaplace) else math.nan


def _predicted(
    variant: str, rows: int, workload: Workload, total: Fraction, table: Floats, truth: Floats
) -> float:
    """Return the mean-field error; for a sample plus the deviation 1/(2√m) of an answer."""
    rounds, sample = _planned(variant, rows, workload, total)
    drawn = 0.0 if sample is None else 1 / (2 * math.sqrt(sample))
    return mean_field(table, truth, rounds, rows) + drawn


def measure_queries(variant: str, point: Point, label: str) -> list[float]:
    """Return the largest error of a two-way marginal on correlated bits."""
    people, workload = _correlated_bits(int(point["n"]), int(point["d"])), _marginals(point)
    answers = _run(variant, people, workload, Fraction(str(point["epsilon"])), ReplayBits(label))
    return [float(np.abs(answers - workload.answers(people)).max())]


def predict_queries(variant: str, point: Point) -> float:
    """Return the prediction for `measure_queries`."""
    rows, dimension = int(point["n"]), int(point["d"])
    people = _correlated_bits(rows, dimension)
    table = _marginal_table(dimension)
    items = (people @ (1 << np.arange(dimension))).astype(np.int64)
    truth = table @ np.bincount(items, minlength=1 << dimension) / rows
    total = Fraction(str(point["epsilon"]))
    return _predicted(variant, rows, _marginals(point), total, table, truth)


def _marginals(point: Point) -> Marginals:
    return Marginals(dimension=int(point["d"]), order=2)


def _marginal_table(dimension: int) -> Floats:
    """Return each two-way marginal on each item."""
    bits = np.arange(1 << dimension)[:, None] >> np.arange(dimension) & 1
    pairs = itertools.combinations(range(dimension), 2)
    return np.array(
        [
            (bits[:, i] == x) & (bits[:, j] == y)
            for i, j in pairs
            for x, y in itertools.product((0, 1), repeat=2)
        ],
        dtype=np.float64,
    )


@lru_cache(maxsize=1)
def _correlated_bits(rows: int, dimension: int) -> Floats:
    """Return made-up rows: neighboring columns agree nine times in ten, and ones are rare."""
    generator = np.random.default_rng(7)
    table = np.empty((rows, dimension))
    table[:, 0] = generator.random(rows) < 0.2
    for j in range(1, dimension):
        fresh = generator.random(rows) < 0.2
        table[:, j] = np.where(generator.random(rows) < 0.9, table[:, j - 1], fresh)
    table.setflags(write=False)
    return table


def _small_problem(point: Point, instance: int = 0) -> tuple[Floats, Floats, Floats]:
    """Return k made-up queries on four items, the items' frequencies, and the true answers."""
    values = np.random.default_rng(11).integers(0, _STEPS + 1, (int(point["k"]), _ITEMS))
    shares = np.random.default_rng(instance).dirichlet(np.full(_ITEMS, 0.5))
    cuts = np.round(np.cumsum(shares) * point["n"])
    frequencies = np.diff(cuts, prepend=0) / point["n"]
    queries = values / _STEPS
    return queries, frequencies, queries @ frequencies


def _database_size(point: Point) -> int:
    """Return SmallDB's m = (nε/d)^⅔ of Algorithm 16, d = 2, for comparison with it."""
    return max(1, round(math.pow(point["n"] * point["epsilon"] / 2, 2 / 3)))


def _online(point: Point) -> OnlineWeights:
    return OnlineWeights(
        universe=_ITEMS,
        queries=int(point["k"]),
        rows=int(point["n"]),
        epsilon=point["epsilon"],
    )


def measure_baselines(variant: str, point: Point, label: str) -> list[float]:
    """Return the largest error of k queries on a universe of four items."""
    queries, frequencies, truth = _small_problem(point)
    generator, rows = generator_of(label), int(point["n"])
    if variant == "gaussian":
        noise = generator.normal(size=len(truth)) * _gaussian(point)
        return [float(np.abs(noise).max())]
    if variant == "laplace":
        return [
            float(np.abs(generator.laplace(scale=_laplace_scale(point), size=len(truth))).max())
        ]
    if variant == "small_database":
        laws = [_database_law(instance, **point) for instance in range(_DATABASES)]
        return [float(generator.choice(errors, p=law)) for law, errors in laws]
    if variant == "online":
        return [float(np.abs(_online(point).answers(truth, queries, generator) - truth).max())]
    people = np.repeat(np.arange(_ITEMS), np.round(frequencies * rows).astype(int))
    workload = _small_workload(queries)
    total = Fraction(str(point["epsilon"]))
    return [float(np.abs(_run(variant, people, workload, total, ReplayBits(label)) - truth).max())]


def _small_workload(queries: Floats) -> LinearQueries:
    return LinearQueries(np.rint(queries * _STEPS).astype(np.int64))


def _gaussian(point: Point) -> float:
    """Return σ: replacing a row moves k answers by 1/n at most."""
    return gaussian_scale(
        epsilon=Fraction(str(point["epsilon"])),
        log_delta=LOG_DELTA,
        sensitivity=math.sqrt(point["k"]) / point["n"],
    )


def _laplace_scale(point: Point) -> float:
    return point["k"] / (point["n"] * point["epsilon"])


@lru_cache(maxsize=_DATABASES)
def _database_law(instance: int, **point: float) -> tuple[Floats, Floats]:
    queries, _, truth = _small_problem(point, instance)
    size, rows = _database_size(point), int(point["n"])
    return small_database_law(truth, queries, size=size, rows=rows, epsilon=point["epsilon"])


def predict_baselines(variant: str, point: Point) -> float:
    """Return the expected largest error, exact for the first three.

    Online weights: their error if no noise is drawn, with the thresholds of the run.
    """
    queries, _, truth = _small_problem(point)
    if variant == "gaussian":
        return _gaussian(point) * largest_gaussian(len(truth))
    if variant == "laplace":
        return _laplace_scale(point) * largest_laplace(len(truth))
    if variant == "small_database":
        laws = [_database_law(instance, **point) for instance in range(_DATABASES)]
        return max(float(law @ errors) for law, errors in laws)
    if variant == "online":
        return float(np.abs(_online(point).answers(truth, queries, None) - truth).max())
    total, workload = Fraction(str(point["epsilon"])), _small_workload(queries)
    return _predicted(variant, int(point["n"]), workload, total, queries, truth)


QUERIES = Experiment(
    key="query_release",
    problem="Query release",
    label="thm:query_pmw",
    quantity="largest error of an answer",
    setting=(
        "all two-way marginals of d correlated bits, k = 2d(d - 1); Algorithm 16 from n = 10⁵ on, "
        "because below that its few rounds leave the answers near those of the uniform start, "
        "where no rate is visible"
    ),
    variants={
        "before": "MWEM, (ε, 10⁻⁶)-DP (Algorithm 14)",
        "after": "sampled and purified (Algorithm 16)",
        "modern": "pure MWEM, no purification (theory C7)",
    },
    formulas={
        "before": "√ln k (d ln(1/δ))^¼/√(nε)",
        "after": "(d ln k)^⅓/(nε)^⅓",
        "modern": "(d ln k)^⅓/(nε)^⅓",
    },
    exponents={
        "before": {"n": -0.5, "d": 0.25, "epsilon": -0.5},
        "after": {"n": -1 / 3, "d": 1 / 3, "epsilon": -1 / 3},
        "modern": {"n": -1 / 3, "d": 1 / 3, "epsilon": -1 / 3},
    },
    base={"n": 10_000, "d": 8, "epsilon": 1},
    own_base={"after": {"n": 1_000_000}},
    sweeps={
        "n": (1000, 3000, 10_000, 30_000),
        "d": (4, 6, 8, 10),
        "epsilon": (0.25, 0.5, 1, 2),
    },
    own_sweeps={
        "after/n": (100_000, 300_000, 1_000_000, 3_000_000),
        "after/epsilon": (0.5, 1, 2, 4),
    },
    quick={"n": (1000, 5000), "d": (4, 8), "epsilon": (0.5, 2)},
    quick_base={"n": 3000},
    repeats=12,
    quick_repeats=1,
    measure=measure_queries,
    predicted=predict_queries,
)

QUERY_BASELINES = Experiment(
    key="query_baselines",
    problem="Query release, small universe",
    label="sec:query, appen:opt",
    quantity="largest error of an answer",
    setting=(
        "k made-up queries with values in [0, 1] on a universe of four items (d = 2); for SmallDB "
        "the worst of 8 data sets; n is chosen by mechanism, so that the error is well below "
        "that of the uniform start, near which no rate is visible"
    ),
    variants={
        "gaussian": "Gaussian mechanism, (ε, 10⁻⁶)-DP (reference code)",
        "laplace": "Laplace mechanism, pure (reference code)",
        "small_database": "SmallDB, pure (reference code)",
        "online": "private multiplicative weights, pure (reference code)",
        "after": "Algorithm 16, pure",
        "modern": "pure MWEM (theory C7)",
    },
    formulas={
        "gaussian": "√(k ln(1/δ))/(nε)",
        "laplace": "k/(nε)",
        **dict.fromkeys(("small_database", "online", "after", "modern"), "(d ln k)^⅓/(nε)^⅓"),
    },
    exponents={
        "gaussian": {"n": -1, "epsilon": -1, "k": 0.5},
        "laplace": {"n": -1, "epsilon": -1, "k": 1},
        **{
            name: {"n": -1 / 3, "epsilon": -1 / 3, "k": 0}
            for name in ("small_database", "online", "after", "modern")
        },
    },
    base={"n": 1000, "epsilon": 1, "k": 64},
    own_base={"online": {"n": 300_000}, "after": {"n": 1_000_000}, "modern": {"n": 30_000}},
    sweeps={
        "n": (250, 500, 1000, 2000),
        "epsilon": (0.25, 0.5, 1, 2),
        "k": (16, 32, 64, 128, 256),
    },
    own_sweeps={
        "online/n": (100_000, 300_000, 1_000_000, 3_000_000),
        "after/n": (100_000, 300_000, 1_000_000, 3_000_000),
        "modern/n": (3000, 10_000, 30_000, 100_000),
    },
    quick={"n": (500, 2000), "k": (16, 128)},
    quick_base={"n": 2000},
    repeats=40,
    own_repeats={"after": 16},
    quick_repeats=2,
    measure=measure_baselines,
    predicted=predict_baselines,
)
