"""Make all figures and tables: SVG files, one HTML page, one JSON file with every number."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from reproduce.curves import figure_1, figure_f_dp
from reproduce.data_rows import LOCAL_SENSITIVITY, MODE, QUERIES, REGRESSION
from reproduce.drawing import (
    as_svg,
    draw_f_dp,
    draw_figure_1,
    draw_rates,
    draw_tightness,
)
from reproduce.erm_rows import FRANK_WOLFE, SGD, STRONGLY_CONVEX
from reproduce.page import figure_section, page, rate_section
from reproduce.rates import Experiment, Series, Task, summarize
from reproduce.table_2 import RUN_TIME, UTILITY
from reproduce.tightness import tightness

__all__ = ["EXPERIMENTS", "TABLE_1", "TABLE_2", "reproduce"]

TABLE_1 = (SGD, STRONGLY_CONVEX, FRANK_WOLFE, LOCAL_SENSITIVITY, MODE, REGRESSION, QUERIES)
TABLE_2 = (UTILITY, RUN_TIME)
EXPERIMENTS = {experiment.key: experiment for experiment in (*TABLE_1, *TABLE_2)}

Report: TypeAlias = Callable[[str, int, int], None]
"""report(stage, done, total): called after each finished piece of work."""


def reproduce(
    out: Path, *, quick: bool = False, workers: int | None = None, report: Report | None = None
) -> Path:
    """Write the figures and tables into `out` and return the path of the page.

    `quick` takes two points a curve: under a minute. `workers` processes (default: two, or one on
    a single core) share the runs; with 1 everything happens in this process.
    """
    started = time.perf_counter()
    tell = report if report is not None else _silent
    out.mkdir(parents=True, exist_ok=True)
    figures, sections = _figures(out, quick=quick, report=tell)
    runs = _measure(quick=quick, workers=workers, report=tell)
    tables: dict[str, list[dict[str, Any]]] = {"table_1": [], "table_2": []}
    disagreements: list[dict[str, Any]] = []
    for name, experiments in (("table_1", TABLE_1), ("table_2", TABLE_2)):
        for number, experiment in enumerate(experiments, start=1):
            series = list(_series(experiment, runs))
            svg = as_svg(draw_rates(experiment, series, quick=quick), experiment.key)
            _write(out / f"{name}_{experiment.key.removeprefix('table_2_')}.svg", svg)
            title = f"Table {name[-1]}, row {number}" if name == "table_1" else "Table 2"
            sections.append(rate_section(experiment, series, svg, title))
            tables[name].append(_as_json(experiment, series, quick))
            disagreements += _disagreements(experiment, series)
            tell("Pictures", len(tables["table_1"]) + len(tables["table_2"]), len(EXPERIMENTS))
    numbers = {
        "version": version("zerodelta"),
        "quick": quick,
        "seconds": round(time.perf_counter() - started, 1),
        "figures": figures,
        **tables,
        "disagreements": disagreements,
    }
    _write(out / "reproduce.json", json.dumps(_finite(numbers), indent=1, ensure_ascii=False))
    target = out / "reproduce.html"
    _write(target, page(quick=quick, sections=sections, disagreements=disagreements))
    return target


def _silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def _figures(out: Path, *, quick: bool, report: Report) -> tuple[dict[str, Any], list[str]]:
    """Draw what needs no sampling: Figure 1, the trade-off curves, the tightness example."""
    grids = {1: 201, 2: 21, 3: 9} if quick else {1: 401, 2: 41, 3: 15}
    numbers = {
        "figure_1": figure_1(points=16 if quick else 61),
        "f_dp": figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1, points=201),
        "tightness": tightness(radius=0.25, dimensions=(1, 2, 3, 5, 10, 20, 50, 100), grids=grids),
    }
    drawn = {
        "figure_1": draw_figure_1(numbers["figure_1"]),
        "f_dp": draw_f_dp(numbers["f_dp"]),
        "tightness": draw_tightness(numbers["tightness"]),
    }
    sections = []
    for done, (name, figure) in enumerate(drawn.items(), start=1):
        svg = as_svg(figure, name)
        _write(out / f"{name}.svg", svg)
        sections.append(figure_section(svg=svg, **_CAPTIONS[name]))
        report("Figures", done, len(drawn))
    return numbers, sections


_CAPTIONS: dict[str, dict[str, Any]] = {
    "figure_1": {
        "title": "Figure 1: the price of δ",
        "caption": (
            "Variance per count of a private histogram at ε = 1 (fig:myth). The paper does not "
            "say which neighbors it means; both are shown."
        ),
        "findings": (
            "As in the paper: Laplace noise, with δ = 0, has the smaller variance unless δ is too "
            "large to mean anything (0.04, or 0.007 if rows are replaced).",
            "The Gaussian's variance grows with ln(1/δ) without end: a purified mechanism needs "
            "δ = e^-50 and less, so it pays only where many steps share one release.",
        ),
    },
    "f_dp": {
        "title": "Figure f-DP: trade-off curves",
        "caption": "What an attacker can achieve (fig:f-DP); higher curves are safer.",
        "findings": (
            "The paper says that f_{ε,δ} lies below f_{ε+ε',0}. For small δ it does not: the two "
            "cross at α = δ/(e^(ε+ε') - e^ε) and at the mirror image. Only outside, where one of "
            "the two errors is rare, is (ε, δ)-DP the weaker promise.",
            "Mixing alone (theory B1) takes the worst (ε, δ) pair above f_{ε,0}: no ε' is needed.",
        ),
    },
    "tightness": {
        "title": "The tightness example",
        "caption": "Two laws with TV = Δ^d and W∞ = Δ (ex:tightness, fig:example).",
        "findings": (
            "As in the paper: the step from TV to W∞ loses a constant only, 8 with its lemma for "
            "convex sets (4 for balls).",
            "Theorem W loses 2, for every ball and every norm; for l2 the sharp constant falls to "
            "1 as d grows, so the example is then the worst case.",
        ),
    },
}


def _measure(
    *, quick: bool, workers: int | None, report: Report
) -> dict[tuple[str, str, str], dict[float, list[list[float]]]]:
    """Run every task; times are measured last and alone, so that nothing disturbs them."""
    tasks = [task for row in (*TABLE_1, UTILITY) for task in row.tasks(quick=quick)]
    timed = RUN_TIME.tasks(quick=quick)
    count = min(2, os.cpu_count() or 1) if workers is None else workers
    runs: dict[tuple[str, str, str], dict[float, list[list[float]]]] = {}
    everything = chain(_shared(tasks, count), map(run_task, timed))
    for done, (task, found) in enumerate(everything, start=1):
        runs.setdefault((task.experiment, task.variant, task.variable), {})[task.value] = found
        report(EXPERIMENTS[task.experiment].problem, done, len(tasks) + len(timed))
    return runs


def run_task(task: Task) -> tuple[Task, list[list[float]]]:
    """Run one task, here or in another process."""
    return task, EXPERIMENTS[task.experiment].run(task)


def _shared(tasks: list[Task], workers: int) -> Iterator[tuple[Task, list[list[float]]]]:
    if workers <= 1:
        yield from map(run_task, tasks)
        return
    context = multiprocessing.get_context("spawn")  # forking a process with threads is unsafe
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for future in as_completed([pool.submit(run_task, task) for task in tasks]):
            yield future.result()


def _series(
    experiment: Experiment, runs: dict[tuple[str, str, str], dict[float, list[list[float]]]]
) -> Iterable[Series]:
    variables = dict.fromkeys(key[2] for key in runs if key[0] == experiment.key)
    for variable in experiment.sweeps:
        for variant in experiment.variants:
            if variable in variables:
                found = runs[experiment.key, variant, variable]
                yield summarize(experiment, variant, variable, found)


def _as_json(experiment: Experiment, series: list[Series], quick: bool) -> dict[str, Any]:
    return {
        "key": experiment.key,
        "problem": experiment.problem,
        "label": experiment.label,
        "quantity": experiment.quantity,
        "setting": experiment.setting,
        "variants": dict(experiment.variants),
        "formulas": dict(experiment.formulas),
        "base": {name: experiment.fixed(name, quick=quick) for name in experiment.variants},
        "series": [curve.as_json() for curve in series],
    }


def _disagreements(experiment: Experiment, series: list[Series]) -> list[dict[str, Any]]:
    return [
        {
            "problem": experiment.problem,
            "variant": experiment.variants[curve.variant],
            "variable": curve.variable,
            "slope": curve.slope,
            "exponent": curve.exponent,
            "reason": curve.reason,
        }
        for curve in series
        if curve.agrees is False
    ]


def _finite(value: Any) -> Any:
    """Return the same with NaN as null: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(path: Path, text: str) -> None:
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
