"""Compare many quantiles at once with one call for each at an equal share of ε.

`python bench/tables_quantiles.py [runs]` prints, for each data set and number m of levels i/(m+1),
the mean and the largest rank error in rows (averaged over runs) of `zd.quantiles` and of m calls of
`zd.quantile` at ε/m each, without a margin or with one of 61·m rows (whichever is better in that
run); that is the same guarantee. Then the forecast, and the seconds of one run.
All at ε = 1, replace-one, 2^40 + 1 points, ages on their own 121. diffprivlib and OpenDP have no
joint release: both answer one quantile at a time, which `bench/tasks.py` compares.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import zerodelta as zd

Floats = npt.NDArray[np.float64]
Made = Callable[[np.random.Generator], Floats]

DATA: dict[str, tuple[Made, tuple[int, int], int | None]] = {
    "lognormal σ=2, n = 1e5": (lambda g: np.exp(2 * g.normal(size=100_000)), (0, 10**6), None),
    "uniform, n = 1e5": (lambda g: g.uniform(size=100_000), (0, 1), None),
    "normal, n = 1e4": (lambda g: g.normal(size=10_000), (-50, 50), None),
    "lognormal σ=2, n = 1e4": (lambda g: np.exp(2 * g.normal(size=10_000)), (0, 10**6), None),
    "lognormal σ=2, n = 1e3": (lambda g: np.exp(2 * g.normal(size=1000)), (0, 10**6), None),
    "half zeros, n = 1e4": (
        lambda g: np.exp(2 * g.normal(size=10_000)) * (g.uniform(size=10_000) < 0.5),
        (0, 10**6),
        None,
    ),
    "ages, n = 1e4": (
        lambda g: np.clip(np.rint(g.normal(40, 20, size=10_000)), 0, 120),
        (0, 120),
        121,
    ),
}
LEVELS = (3, 9, 19, 99)


def rank_errors(rows: Floats, values: Floats, levels: Floats) -> Floats:
    """How many rows each value is away from its level: 0 anywhere among equal rows."""
    ordered, wanted = np.sort(rows), levels * len(rows)
    below = np.searchsorted(ordered, values - 1e-12 * np.abs(values), side="left")
    not_above = np.searchsorted(ordered, values + 1e-12 * np.abs(values), side="right")
    return np.maximum(0, np.maximum(below - wanted, wanted - not_above))


Asked = dict[str, Any]


def joint(rows: Floats, levels: Floats, asked: Asked) -> zd.records.Release:
    """All levels at once."""
    return zd.quantiles(rows, q=levels, epsilon=1, **asked)


def separate(rows: Floats, levels: Floats, asked: Asked) -> Floats:
    """One call for each level, at its share of ε."""
    share = f"1/{len(levels)}"
    return np.sort([zd.quantile(rows, q=q, epsilon=share, **asked).value for q in levels])


def row_of(name: str, m: int, runs: int, generator: np.random.Generator) -> list[str]:
    """One row of the table."""
    make, bounds, grid = DATA[name]
    levels, asked = np.arange(1, m + 1) / (m + 1), {"bounds": bounds, "grid": grid}
    ours, others, forecast = [], [], 0.0
    for _ in range(runs):
        rows = np.clip(make(generator), *bounds)
        start = time.perf_counter()
        release = joint(rows, levels, asked)
        seconds = time.perf_counter() - start
        errors, forecast = rank_errors(rows, release.value, levels), float(release.error)
        ours.append((errors.mean(), errors.max(), seconds))
        each = []
        for margin in (0, 61 * len(levels)):
            start = time.perf_counter()
            values = separate(rows, levels, {**asked, "margin": margin})
            seconds = time.perf_counter() - start
            errors = rank_errors(rows, values, levels)
            each.append((errors.mean(), errors.max(), seconds))
        others.append(min(each))
    a, b = np.mean(ours, axis=0), np.mean(others, axis=0)
    return [
        name,
        str(m),
        f"{a[0]:.1f} / {a[1]:.0f}",
        f"{forecast:.1f}",
        f"{b[0]:.1f} / {b[1]:.0f}",
        f"{b[0] / max(a[0], 0.1):.1f} / {b[1] / max(a[1], 0.1):.1f}",
        f"{a[2]:.2f}, {b[2]:.2f}",
    ]


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    generator, console = np.random.default_rng(16), Console(width=150)
    table = Table(title=f"{runs} runs, ε = 1, rank errors mean / largest")
    for name in (
        "data",
        "m",
        "zd.quantiles",
        "forecast",
        "m calls",
        "m calls over ours",
        "seconds",
    ):
        table.add_column(name)
    for name, m in itertools.product(DATA, LEVELS):
        table.add_row(*row_of(name, m, runs, generator))
        print(name, m, "done", file=sys.stderr)
    console.print(table)
    for peer in ("diffprivlib", "opendp"):
        there = importlib.util.find_spec(peer) is not None
        console.print(f"{peer}: {'one quantile at a time' if there else 'not installed, left out'}")


if __name__ == "__main__":
    main()
