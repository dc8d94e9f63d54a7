"""Measure 2- and 3-way marginals at equal pure ε: the marginals part of `bench/tasks.py`.

Ours as shipped ("auto" and each named method) beside what a user has elsewhere: Laplace noise on
every table as it is, and the paper's pure MWEM on single queries. Replace-one neighbors; errors
are fractions of n. OpenDP's AIM is quoted from the project's notes on peers, as run there.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from zerodelta.paper.multiplicative_weights import pure_mwem
from zerodelta.queries import Marginals
from zerodelta.tasks.marginals import answer_queries, queries_methods, synthesize

Bits = npt.NDArray[np.int64]
Tables = dict[tuple[int, ...], npt.NDArray[np.float64]]

NAMED = ("auto", "k-norm", "counts", "laplace", "mwem")
AIM = "OpenDP 0.16 AIM, 8 columns, n = 20000, pure ε = 1: mean two-way error 0.021, 96 s (quoted)"


def made_rows(kind: str, columns: int, n: int, seed: int = 1) -> Bits:
    """Return rows of bits: independent and skewed, a mixture of clusters, or a chain."""
    draw = np.random.default_rng(seed)
    if kind == "independent":
        return (draw.random((n, columns)) < draw.beta(0.7, 2, columns)).astype(np.int64)
    if kind == "clusters":
        centers, which = draw.beta(0.5, 0.5, (6, columns)), draw.integers(0, 6, n)
        return (draw.random((n, columns)) < centers[which]).astype(np.int64)
    rows = np.zeros((n, columns), dtype=np.int64)
    rows[:, 0] = draw.random(n) < 0.3
    for i in range(1, columns):
        rows[:, i] = draw.random(n) < np.where(rows[:, i - 1] == 1, *draw.random(2))
    return rows


def tables_of(rows: Bits, order: int) -> Tables:
    """Return all tables of so many columns, as frequencies."""
    tables = {}
    for columns in itertools.combinations(range(rows.shape[1]), order):
        table = np.zeros((2,) * order)
        np.add.at(table, tuple(rows[:, i] for i in columns), 1 / len(rows))
        tables[columns] = table
    return tables


def errors(found: Tables, truth: Tables) -> tuple[float, float]:
    """Return the mean and the largest absolute error of a cell."""
    gaps = np.concatenate([np.abs(found[key] - truth[key]).reshape(-1) for key in truth])
    return float(gaps.mean()), float(gaps.max())


def plain_laplace(rows: Bits, order: int, epsilon: float) -> Tables:
    """Return every table with independent noise, as it is; in floats, which changes no number."""
    truth, draw = tables_of(rows, order), np.random.default_rng()
    scale = 2 * len(truth) / epsilon / len(rows)
    return {key: table + draw.laplace(0, scale, table.shape) for key, table in truth.items()}


def query_mwem(rows: Bits, order: int, epsilon: float) -> Tables:
    """Return the tables of the paper's pure MWEM, one query in a round (theory C7)."""
    workload = Marginals(dimension=rows.shape[1], order=order)
    release = pure_mwem(rows, workload=workload, epsilon=epsilon)
    answers = workload.totals(release.value).reshape(-1, *(2,) * order)
    axes = tuple(reversed(range(order)))  # its values count the first column fastest
    sets = itertools.combinations(range(rows.shape[1]), order)
    return {key: table.transpose(axes) for key, table in zip(sets, answers, strict=True)}


def ours(method: str) -> Callable[[Bits, int, float], Tables]:
    """Return `answer_queries` with this method."""

    def answer(rows: Bits, order: int, epsilon: float) -> Tables:
        domain = dict.fromkeys(range(rows.shape[1]), 2)
        release = answer_queries(
            rows, domain=domain, workload=order, epsilon=epsilon, method=method
        )
        value: Tables = release.value
        return value

    return answer


def one_cell(
    kind: str, columns: int, order: int, n: int, epsilon: float, *, repeats: int = 3
) -> list[tuple[str, float, float, float, float]]:
    """Return (method, forecast, mean error, largest error, seconds) for each method."""
    rows = made_rows(kind, columns, n)
    truth = tables_of(rows, order)
    domain: dict[Any, Any] = dict.fromkeys(range(columns), 2)
    methods = queries_methods(epsilon=epsilon, n=n, domain=domain, workload=order)
    forecast = {"auto": methods[0].error} | {method.name: method.error for method in methods}
    rivals = {name: ours(name) for name in NAMED if math.isfinite(forecast[name])}
    rivals |= {"plain Laplace": plain_laplace, "MWEM by queries": query_mwem}
    lines = []
    for name, answer in rivals.items():
        times = 1 if name in ("mwem", "MWEM by queries") else repeats
        start = time.perf_counter()
        measured = [errors(answer(rows, order, epsilon), truth) for _ in range(times)]
        seconds = (time.perf_counter() - start) / times
        mean, most = np.mean(measured, axis=0)
        lines.append((name, forecast.get(name, math.nan), float(mean), float(most), seconds))
    return lines


def marginals(
    *,
    kinds: Sequence[str] = ("independent", "clusters", "chain"),
    columns: Sequence[int] = (8, 12),
    orders: Sequence[int] = (2, 3),
    sizes: Sequence[int] = (20_000, 100_000),
    epsilons: Sequence[float] = (0.5, 1, 2),
) -> Table:
    """Return the table: for each setting, all methods averaged over the kinds of data."""
    table = Table(
        "d", "way", "n", "ε", "method", "forecast", "mean error", "largest", "× auto", "seconds",
        title=f"marginals of binary columns, mean over {', '.join(kinds)}",
        caption=AIM,
    )  # fmt: skip
    for d, order, n, epsilon in itertools.product(columns, orders, sizes, epsilons):
        cells = [one_cell(kind, d, order, n, epsilon) for kind in kinds]
        auto = float(np.mean([cell[0][2] for cell in cells]))
        for lines in zip(*cells, strict=True):
            name, forecast = lines[0][0], lines[0][1]
            mean, most, seconds = (float(np.mean([line[i] for line in lines])) for i in (2, 3, 4))
            shown = "" if math.isnan(forecast) else f"{forecast:.2g}"
            table.add_row(
                str(d), str(order), str(n), f"{epsilon:g}", name, shown, f"{mean:.2g}",
                f"{most:.2g}", f"{mean / auto:.2f}", f"{seconds:.2f}",
            )  # fmt: skip
        table.add_section()
    return table


def synthetic(*, columns: int = 12, order: int = 2, n: int = 100_000) -> Table:
    """Return the error and time of synthetic rows, beside the answers themselves."""
    table = Table("synthetic rows", "forecast", "mean error of tables", "seconds")
    for kind in ("independent", "clusters", "chain"):
        rows = made_rows(kind, columns, n)
        start = time.perf_counter()
        release = synthesize(
            rows, domain=dict.fromkeys(range(columns), 2), workload=order, epsilon=1
        )
        seconds = time.perf_counter() - start
        mean, _ = errors(tables_of(release.value, order), tables_of(rows, order))
        label = f"{kind}, d={columns}, {order}-way, n={n}"
        table.add_row(label, f"{float(release.error):.2g}", f"{mean:.2g}", f"{seconds:.2f}")
    return table


if __name__ == "__main__":
    console = Console(width=120)
    console.print(synthetic())
    console.print(marginals())
