"""Measure the rank errors of quantiles with no margin, as by default, and with two others.

The full margin is 2(ln points + 3)/ε rows for one quantile, at most n/10, and 2 ln(points)/ε for
several, at most n/2: it keeps the answer among the rows whatever the bounds are. The other one is
half of it. A margin loses where rows fill the bounds, and gains where careless bounds leave a long
empty part beyond the ends. Rank errors count ties as a set: a released value is right
if any of the rows equal to it has the wanted rank. All at 2^40 + 1 points, replace-one.

    python bench/quantile_margins.py [runs]

prints mean rank errors in rows for each data set, n, ε and list of levels, then the worst ratios.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import zerodelta as zd

Floats = npt.NDArray[np.float64]

DATA: dict[str, tuple[Callable[[np.random.Generator, int], Floats], tuple[int, int]]] = {
    "uniform, fills": (lambda g, n: g.uniform(0, 1, n), (0, 1)),
    "uniform, middle 1/20": (lambda g, n: g.uniform(10, 11, n), (0, 20)),
    "uniform, low corner 1/20": (lambda g, n: g.uniform(0, 1, n), (0, 20)),
    "uniform, high corner 1e-6": (lambda g, n: g.uniform(999_999, 10**6, n), (0, 10**6)),
    "lognormal, reasonable": (lambda g, n: g.lognormal(0, 1, n), (0, 50)),
    "lognormal, careless": (lambda g, n: g.lognormal(0, 1, n), (0, 10**6)),
    "integers, reasonable": (lambda g, n: g.poisson(3, n).astype(float), (0, 20)),
    "integers, careless": (lambda g, n: g.poisson(3, n).astype(float), (-(10**6), 10**6)),
}
CARELESS = ("uniform, high corner 1e-6", "lognormal, careless", "integers, careless")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
SEVERAL: dict[str, list[float]] = {
    "quartiles": [0.25, 0.5, 0.75],
    "all five": list(LEVELS),
    "percentiles": [i / 100 for i in range(1, 100)],
}
POINTS = 2**40 + 1


def full(n: int, epsilon: float, several: bool) -> int:
    """Return the margin in rows that is enough for any bounds."""
    if several:
        return min(math.floor(2 * math.log(POINTS) / epsilon), n // 2)
    return min(math.floor(2 * (math.log(POINTS) + 3) / epsilon), n // 10)


def rank_errors(rows: Floats, values: Floats, levels: Floats) -> Floats:
    """Return how many rows each value is away from its level; 0 anywhere among equal rows."""
    ordered, wanted = np.sort(rows), levels * len(rows)
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    off = np.maximum(below - np.floor(wanted + 1e-9), np.ceil(wanted - 1e-9) - not_above)
    return np.maximum(0, off)


def measured(name: str, n: int, epsilon: float, q: list[float], runs: int) -> list[Floats]:
    """Return the mean rank error at each level: of no margin, half the full one and all of it."""
    make, bounds = DATA[name]
    asked, errors = np.array(q), np.zeros((3, len(q)))
    most = full(n, epsilon, len(q) > 1)
    for run in range(runs):
        rows = make(np.random.default_rng([run, n]), n)
        for i, margin in enumerate((0, most // 2, most)):
            told: dict[str, Any] = {"bounds": bounds, "epsilon": epsilon, "margin": margin}
            values = (
                zd.quantiles(rows, q=q, **told).value
                if len(q) > 1
                else np.array([zd.quantile(rows, q=q[0], **told).value])
            )
            # integers: the released point may be next to the row by rounding only
            whole = np.rint(values)
            values = np.where(np.abs(values - whole) < 1e-5, whole, values)
            errors[i] += rank_errors(rows, values, asked) / runs
    return list(errors)


def main() -> None:
    """Print a line for each case, and the worst ratios."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    asked = {f"q = {q}": [q] for q in LEVELS} | SEVERAL
    print(f"{runs} runs; mean rank error in rows: no margin / half / full")
    worst: dict[str, list[tuple[float, str]]] = {"reasonable": [], "careless": []}
    for name, n, epsilon in itertools.product(DATA, (100, 300, 1000, 10_000), (0.25, 1.0, 4.0)):
        for label, q in asked.items():
            if len(q) > 9 and n > 1000:
                continue
            errors = measured(name, n, epsilon, q, runs)
            each = ""
            if 1 < len(q) < 9:
                each = "   " + " ".join(f"{e:.0f}" for e in errors[0])
            line = f"{name:26s} n={n:<6d} ε={epsilon:<4} {label:12s}"
            means = [float(e.mean()) for e in errors]
            print(line, " / ".join(f"{e:7.1f}" for e in means) + each, flush=True)
            bounds = "careless" if name in CARELESS else "reasonable"
            worst[bounds].append(((means[0] + 1) / (means[2] + 1), line))
    for bounds, ratios in worst.items():
        print(f"{bounds} bounds: error without a margin over that with all of it, one row added:")
        for ratio, line in sorted(ratios, reverse=True)[:10] + sorted(ratios)[:5]:
            print(f"  {ratio:5.2f} {line}")


if __name__ == "__main__":
    main()
