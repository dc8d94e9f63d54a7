"""Make all figures and tables: SVG files, one HTML page, one JSON file with every number."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from reproduce.data_rows import LOCAL_SENSITIVITY, MODE
from reproduce.drawing import as_svg, draw_rates
from reproduce.erm_rows import SGD, STRONGLY_CONVEX
from reproduce.figures import PICTURES
from reproduce.frank_wolfe_row import FRANK_WOLFE
from reproduce.page import cells, page
from reproduce.query_row import QUERIES, QUERY_BASELINES
from reproduce.rates import Experiment, Series, Task, summarize
from reproduce.regression_row import REGRESSION
from reproduce.report import write_report
from reproduce.table_2 import RUN_TIME, UTILITY

__all__ = ["EXPERIMENTS", "TABLES", "reproduce"]

TABLES: Mapping[str, Mapping[str, Experiment]] = {
    "table_1": {
        "Table 1, row 1": SGD,
        "Table 1, row 2": STRONGLY_CONVEX,
        "Table 1, row 3": FRANK_WOLFE,
        "Table 1, row 4": LOCAL_SENSITIVITY,
        "Table 1, row 5": MODE,
        "Table 1, row 6": REGRESSION,
        "Table 1, row 7": QUERIES,
        "Table 1, row 7, baselines": QUERY_BASELINES,
    },
    "table_2": {"Table 2, utility": UTILITY, "Table 2, run time": RUN_TIME},
}
"""What is measured: table, title of the section, experiment."""

EXPERIMENTS = {row.key: row for table in TABLES.values() for row in table.values()}

Report: TypeAlias = Callable[[str, int, int], None]
"""report(stage, done, total): called after each finished piece of work."""

Runs: TypeAlias = dict[tuple[str, str, str], dict[float, list[list[float]]]]
"""By experiment, variant and variable: for each value the errors of each repeat."""


def reproduce(
    out: Path,
    *,
    quick: bool = False,
    keep: Path | None = None,
    only: Sequence[str] = (),
    most: int | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> Path:
    """Write the figures and tables into `out` and return the path of the page.

    `quick` takes two points a curve and gives no slopes: under two minutes. `keep` names a folder
    for what the site shows of the run (`reproduce.report`). `only` names the experiments to run, if
    not all; `most` limits the repeats of a point, for a rough run. `workers` processes (default:
    two, or one on a single core) share the runs; with 1 everything happens in this process.
    """
    started, commit = time.perf_counter(), _commit()  # now: the checkout may change meanwhile
    tell = report if report is not None else _silent
    out.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, str] = {}
    figures = [] if only else _figures(pictures, quick=quick, report=tell)
    chosen = [EXPERIMENTS[key] for key in only] or list(EXPERIMENTS.values())
    tasks = [task for row in chosen for task in row.tasks(quick=quick, most=most)]
    runs = _measure(tasks, workers=workers, report=tell)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for name, rows in TABLES.items():
        for title, experiment in rows.items():
            if experiment not in chosen:
                continue
            series = list(_series(experiment, runs, quick=quick))
            drawn = draw_rates(experiment, series, quick=quick)
            pictures[experiment.key] = as_svg(drawn, experiment.key)
            tables[name].append(row_as_json(experiment, series, title, quick=quick, most=most))
            tell("Pictures", sum(map(len, tables.values())), len(chosen))
    numbers = finite(
        {
            "version": version("zerodelta"),
            "command": _command(quick=quick, only=only, most=most),
            "commit": commit,
            "machine": _machine(),
            "quick": quick,
            "seconds": round(time.perf_counter() - started, 1),
            "figures": figures,
            "tables": tables,
            "summary": summary_of(tables),
        }
    )
    for key, svg in pictures.items():
        _write(out / f"{key}.svg", svg)
    _write(out / "reproduce.json", json.dumps(numbers, indent=1, ensure_ascii=False))
    target = out / "reproduce.html"
    _write(target, page(numbers, pictures))
    if keep is not None:
        write_report(keep, numbers, pictures)
    return target


def _silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def _figures(pictures: dict[str, str], *, quick: bool, report: Report) -> list[dict[str, Any]]:
    """Compute and draw what has no slopes; the SVGs go into `pictures`."""
    figures = []
    for done, picture in enumerate(PICTURES, start=1):
        data = picture.compute(quick)
        pictures[picture.key] = as_svg(picture.draw(data), picture.key)
        figures.append(
            {
                "key": picture.key,
                "title": picture.title,
                "caption": picture.caption,
                "findings": list(picture.findings(data)),
                "numbers": data,
            }
        )
        report("Figures", done, len(PICTURES))
    return figures


def _measure(tasks: Sequence[Task], *, workers: int | None, report: Report) -> Runs:
    """Run every task."""
    count = min(2, os.cpu_count() or 1) if workers is None else workers
    runs: Runs = {}
    for done, (task, errors) in enumerate(_shared(list(tasks), count), start=1):
        runs.setdefault((task.experiment, task.variant, task.variable), {})[task.value] = errors
        report(EXPERIMENTS[task.experiment].problem, done, len(tasks))
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


def _series(experiment: Experiment, runs: Runs, *, quick: bool) -> Iterable[Series]:
    for variable in experiment.quick if quick else experiment.sweeps:
        for variant in experiment.variants:
            curve_runs = runs.get((experiment.key, variant, variable))
            if curve_runs:
                yield summarize(experiment, variant, variable, curve_runs, quick=quick)


def row_as_json(
    experiment: Experiment,
    series: list[Series],
    title: str,
    *,
    quick: bool,
    most: int | None = None,
) -> dict[str, Any]:
    names = {name: experiment.axis(name) for name in (*experiment.sweeps, *experiment.quick)}
    return {
        "key": experiment.key,
        "title": f"{title}: {experiment.problem}",
        "problem": experiment.problem,
        "note": experiment.note(quick=quick, most=most),
        "variants": dict(experiment.variants),
        "formulas": dict(experiment.formulas),
        "axes": names,
        "base": {name: experiment.fixed(name, quick=quick) for name in experiment.variants},
        "series": [curve.as_json() for curve in series],
    }


def summary_of(tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return how many slopes agree with the paper's, and a line for each that does not."""
    judged = [
        (row, curve)
        for table in tables.values()
        for row in table
        for curve in row["series"]
        if curve["verdict"] is not None
    ]
    verdicts = [curve["verdict"] for _, curve in judged]
    return {
        "slopes": len(judged),
        "agree": verdicts.count("agrees"),
        "explained": verdicts.count("explained"),
        "unexplained": verdicts.count("unexplained"),
        "misses": [
            [row["problem"], *cells(row, curve)]
            for row, curve in judged
            if curve["verdict"] != "agrees"
        ],
    }


def _command(*, quick: bool, only: Sequence[str], most: int | None) -> str:
    """Return what makes a report like this one."""
    if not only and most is None:
        return "make reproduce KEEP=1 QUICK=1" if quick else "make reproduce KEEP=1"
    parts = ["python -m reproduce --keep ."]
    parts += ["--quick"] if quick else []
    parts += [] if most is None else [f"--repeats {most}"]
    parts += ["--only", *only] if only else []
    return " ".join(parts)


def _commit() -> str:
    """Return the commit of the checkout this file lies in, or "unknown" outside of one."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine() -> dict[str, Any]:
    """Return the number of cores, the processor's name and Python's version."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        name = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), name)
    return {"cores": os.cpu_count(), "processor": name, "python": platform.python_version()}


def finite(value: Any) -> Any:
    """Return the same with NaN as null: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(path: Path, text: str) -> None:
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
