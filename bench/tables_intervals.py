"""Measure the coverage and the width of intervals.

`python bench/tables_intervals.py [runs]` (10 000 by default) draws noise by the mechanism of each
kind of release, at ε = 1 and replace-one, on fixed rows, and prints for 95 % intervals of the
sample the share that covers, the mean width and the time of one. For populations rows are new
in each run (a twentieth of the runs). The runs of one kind are lines of one table of noisy sums, so
that all intervals are found together; covariances and correlations are asked one by one.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

import zerodelta as zd
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.noise import discrete_laplace, rounded_k_norm
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.mechanisms.moments import plan_moments
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import CountNoise, KNorm
from zerodelta.privacy.intervals import Level, intervals
from zerodelta.privacy.statistics import Measurement

LEVEL = Level(level=Fraction(19, 20))
ONE = (Fraction(1), Fraction(0))


def stacked(law: NoiseLaw, lines: Any, **more: Any) -> Measurement:
    return Measurement(law=law, integers=np.asarray(lines), bounds=more.pop("bounds", {}), **more)


def counts(runs: int, epsilon: str, *, groups: int = 1) -> tuple[Measurement, Any]:
    """Counts of one group, or of several with Laplace noise: lines are groups, run after run."""
    noise = PartitionNoise.for_epsilon(epsilon=epsilon, cells=groups)
    exact = np.arange(1, groups + 1) * 100
    bits = SystemBits()
    lines = np.concatenate([noise.apply(exact, bits) for _ in range(runs)])[:, None]
    named = {"count": (None, "count")}
    law = noise.law(unit=Fraction(1))
    return stacked(law, lines, forms={None: (ONE,)}, statistics=named), np.tile(exact, runs)


def histograms(runs: int) -> tuple[Measurement, Any]:
    noise, bits = CountNoise.for_epsilon(epsilon="1/20", dimension=5), SystemBits()
    exact = np.arange(1, 6) * 1000
    lines = np.concatenate([noise.apply(exact, bits) for _ in range(runs)])[:, None]
    law, named = noise.law(unit=Fraction(1)), {"count": (None, "count")}
    return stacked(law, lines, forms={None: (ONE,)}, statistics=named), np.tile(exact, runs)


def sums(runs: int, dimension: int, norm: float) -> tuple[Measurement, Any]:
    noise = KNorm.for_epsilon(epsilon=1, norm=norm, dimension=dimension, sensitivity=100_000)
    bits, exact = SystemBits(), np.arange(1, dimension + 1) * 10**9
    lines = np.concatenate([noise.apply(exact, bits) for _ in range(runs)])[:, None]
    law, named = noise.law(unit=Fraction(1)), {"sum": (None, "integers")}
    return stacked(law, lines, forms={}, statistics=named), np.tile(exact, runs)


def moments(
    runs: int, statistic: str, *, rows: int, groups: int = 1, columns: int = 1, known: bool = False
) -> tuple[Measurement, Any]:
    """Means and stds of the first column of one group of so many rows, of a table of groups."""
    generator, bits = np.random.default_rng(4), SystemBits()
    degree = 1 if statistic in ("mean", "sum") else 2
    plan = plan_moments(
        epsilon=1,
        bounds=[(0, 100)] * columns,
        degree=degree,
        groups=groups,
        expected_rows=rows * groups,
        missing=not known,
        known_rows=rows if known else None,
    )
    k = plan.lattice.quantize(np.clip(generator.gamma(4, 8, size=(rows, columns)), 0, 100))
    row: Any = plan.row
    adds = row.coordinates(k) if columns > 1 else row.weights(k[:, 0])
    exact = np.zeros((groups, adds.shape[1]), dtype=object)
    exact[0] = adds.astype(object).sum(axis=0)
    if groups == 1:
        drawn = np.array([plan.noisy(exact, bits) for _ in range(runs)])
    elif columns == 1:  # noise of groups is independent: that of one group is enough
        size = runs * adds.shape[1]
        noise = discrete_laplace(scale=plan.noise.scale, size=size, bits=bits)
        drawn = exact[0] + noise.reshape(runs, -1)
    else:
        drawn = exact[0] + rounded_k_norm(
            norm=math.inf, dimension=adds.shape[1], scale=plan.noise.scale, size=runs, bits=bits
        )
    y = k[:, 0] / plan.lattice.steps
    truth = {
        "mean": 50 + 50 * y.mean(),
        "std": 50 * y.std(),
        "variance": 2500 * y.var(),
        "sum": rows * (50 + 50 * y.mean()),
    }[statistic]
    noisy_sums = stacked(
        plan.law,
        drawn,
        forms={"x": plan.forms(0)},
        bounds={"x": (Fraction(0), Fraction(100))},
        statistics={"x": ("x", statistic)},
        resolution=Fraction(1, 2 * plan.lattice.steps),
    )
    return noisy_sums, np.full(runs, truth)


def measured(noisy_sums: Measurement, truth: Any) -> tuple[float, float, float]:
    """Coverage, width, and seconds for all runs."""
    start = time.perf_counter()
    ((low, high),) = intervals([noisy_sums], LEVEL).values()
    seconds = time.perf_counter() - start
    right = (low <= truth) & (truth <= high)
    return float(right.mean()), float(np.mean((high - low).astype(float))), seconds


def population(runs: int, *, rows: int, unit_rows: int) -> tuple[float, float]:
    """Coverage and width of a mean of a population, through the public verbs."""
    generator, right, widths = np.random.default_rng(8), 0, []
    for _ in range(runs):
        if unit_rows == 1:
            x = np.clip(generator.normal(40, 15, rows), 0, 100)
            release = zd.mean(x, bounds=(0, 100), epsilon=1)
        else:  # all rows of a unit are alike
            x = np.repeat(np.clip(generator.normal(40, 15, rows // unit_rows), 0, 100), unit_rows)
            table = np.zeros(rows, dtype=[("x", float), ("who", int)])
            table["x"], table["who"] = x, np.arange(rows) // unit_rows
            people = zd.open(
                table, columns={"x": zd.number(0, 100)}, unit="who", max_rows=unit_rows
            )
            release = zd.mean(people, "x", epsilon=1)
        low, high = release.interval(of="population")
        right += low <= 40.003 and high >= 39.997  # the mean of a clipped normal
        widths.append(high - low)
    return right / runs, float(np.mean(widths))


def of_pairs(runs: int, verb: Any, method: str) -> tuple[float, float]:
    """Coverage and width of the entry beside the diagonal, through the public verbs."""
    rows = np.random.default_rng(4).uniform(-1, 1, size=(3000, 2)) @ np.array([[1, 0.6], [0, 0.8]])
    clipped = np.clip(rows, -1, 1)
    truth = (np.corrcoef if verb is zd.correlation else partial(np.cov, ddof=0))(clipped.T)[0, 1]
    right, widths = 0, []
    for _ in range(runs):
        low, high = verb(rows, bounds=(-1, 1), epsilon=1, method=method).interval()
        right += bool(low[0, 1] <= truth <= high[0, 1])
        widths.append(high[0, 1] - low[0, 1])
    return right / runs, float(np.mean(widths))


def all_cells(runs: int) -> float:
    """How often intervals of 20 counts cover all of them together."""
    noisy_sums, truth = counts(runs, "1/10", groups=20)
    level = replace(LEVEL, simultaneous=True)
    one = replace(noisy_sums, integers=noisy_sums.integers[:20])
    low, high = intervals([one], level)["count"]
    reach = int((high - low).max()) // 2
    inside = np.abs(noisy_sums.integers[:, 0].astype(np.int64) - truth).reshape(-1, 20).max(axis=1)
    return float(np.mean(inside <= reach))


def main(runs: int) -> None:
    few = max(1, runs // 20)
    kinds: dict[str, Any] = {
        "count, ε = 1 (Laplace 1)": lambda: counts(runs, "1"),
        "count, ε = 1/100": lambda: counts(runs, "1/100"),
        "histogram of 5, ε = 1/20 (joint)": lambda: histograms(runs // 5),
        "sum (Laplace)": lambda: sums(runs, 1, math.inf),
        "3 sums (l∞)": lambda: sums(runs // 3, 3, math.inf),
        "3 means, l2": lambda: sums(runs // 3, 3, 2),
        "4 means, l2": lambda: sums(runs // 4, 4, 2),
        "mean, n public, 1000 rows": lambda: moments(runs, "mean", rows=1000, known=True),
        "mean, skip, 1000 rows (joint pair)": lambda: moments(runs // 5, "mean", rows=1000),
        "mean by group, 1000 rows (pair)": lambda: moments(runs, "mean", rows=1000, groups=12),
        "mean by group, 30 rows (pair)": lambda: moments(runs, "mean", rows=30, groups=12),
        "sum by group, 1000 rows (pair)": lambda: moments(runs, "sum", rows=1000, groups=12),
        "mean by group, 3 columns (block)": lambda: moments(
            runs, "mean", rows=1000, groups=12, columns=3
        ),
        "std by group, 1000 rows (triple)": lambda: moments(runs, "std", rows=1000, groups=12),
        "std by group, 10 000 rows": lambda: moments(runs, "std", rows=10_000, groups=12),
        "variance by group, 1000 rows": lambda: moments(runs, "variance", rows=1000, groups=12),
        "std, 3 columns (block)": lambda: moments(runs, "std", rows=1000, groups=12, columns=3),
    }
    console = Console(width=100)
    console.print(f"{runs} runs, ε = 1; 95 % interval of: covers, width, milliseconds for each")
    for name, make in kinds.items():
        noisy_sums, truth = make()
        share, width, seconds = measured(noisy_sums, truth)
        line = f"{share:7.2%} {width:10.4g} {1e3 * seconds / len(truth):9.3f}"
        console.print(f"{name:40}{line}", highlight=False)
    console.print(f"{'20 counts together':40}{all_cells(runs // 5):7.2%}", highlight=False)
    for verb, method in itertools.product((zd.covariance, zd.correlation), ("frobenius", "max")):
        share, width = of_pairs(runs, verb, method)
        name = f"{verb.__name__}, 3000 rows ({method})"
        console.print(f"{name:40}{share:7.2%} {width:10.4g}", highlight=False)
    for unit_rows in (1, 3):
        share, width = population(few, rows=3000, unit_rows=unit_rows)
        whose = "rows" if unit_rows == 1 else "rows, units of 3"
        name = f"population mean, 3000 {whose}"
        console.print(f"{name:40}{share:7.2%} {width:10.4g}", highlight=False)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
