"""Many quantiles at once, beside one call for each of them at an equal share of ε.

`python bench/tables_quantiles.py [runs]` prints, for each data set and number m of levels i/(m+1), the
mean and the largest rank error in rows (averaged over runs) of `zd.quantiles` and of m calls of
`zd.quantile` at ε/m each, which is the same guarantee; the forecast; and the seconds of one run.
All at ε = 1, replace-one, 2^40 + 1 points, ages on their own 121. diffprivlib and OpenDP are asked for
the same where they are installed; both answer one quantile at a time.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable

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


def measured(ask: Callable[[], Floats], rows: Floats, levels: Floats) -> tuple[float, float, float]:
    """The mean and the largest rank error of one run, and its seconds."""
    start = time.perf_counter()
    found = ask()
    seconds = time.perf_counter() - start
    errors = rank_errors(rows, found, levels)
    return float(errors.mean()), float(errors.max()), seconds


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
    for name, (make, bounds, grid) in DATA.items():
        for m in LEVELS:
            levels = np.arange(1, m + 1) / (m + 1)
            ours, others, forecast = [], [], 0.0
            for _ in range(runs):
                rows = np.clip(make(generator), *bounds)

                def joint(rows: Floats = rows) -> Floats:
                    nonlocal forecast
                    release = zd.quantiles(rows, q=levels, bounds=bounds, grid=grid, epsilon=1)
                    forecast = float(release.error)
                    return np.asarray(release.value)

                def separate(rows: Floats = rows) -> Floats:
                    one = [
                        zd.quantile(rows, q=q, bounds=bounds, grid=grid, epsilon=f"1/{m}").value
                        for q in levels
                    ]
                    return np.sort(one)

                ours.append(measured(joint, rows, levels))
                others.append(measured(separate, rows, levels))
            a, b = np.mean(ours, axis=0), np.mean(others, axis=0)
            table.add_row(
                name,
                str(m),
                f"{a[0]:.1f} / {a[1]:.0f}",
                f"{forecast:.1f}",
                f"{b[0]:.1f} / {b[1]:.0f}",
                f"{b[0] / max(a[0], 1e-9):.1f} / {b[1] / max(a[1], 1e-9):.1f}",
                f"{a[2]:.2f}, {b[2]:.2f}",
            )
            print(name, m, "done", file=sys.stderr)
    console.print(table)
    for peer in ("diffprivlib", "opendp"):
        if importlib.util.find_spec(peer) is None:
            console.print(f"{peer} is not installed here: left out.")
        else:
            console.print(f"{peer}: see bench/tasks.py for one quantile; it has none for several.")


if __name__ == "__main__":
    main()
