"""Measure reading and summing against plain floats and DuckDB: ratios, memory, growth.

    python bench/data.py                  # a million rows: a minute or two
    python bench/data.py --full           # 1e7 × 20, 1e8 rows of keys, and growth
    python bench/data.py --spark          # sums, XᵀX and counts on a local Spark, and DuckDB's
    python bench/data.py --only "XᵀX" --rows 10000000 --folder /somewhere/large

Each job runs in a process of its own, in turns, `--repeats` times; its time is the least of three
runs, on the clock and of all processors together (which says more on a busy machine), its memory
the peak of the process. The bars are those of the data issue: 1.5 of floats that
do the same work (blocked, transposed, clipped) below 1 GB, 1.5 of DuckDB's GROUP BY, 2 of its AVG.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.data_jobs import JOBS, Job, written
from bench.data_spark import SPARK_JOBS

Jobs: TypeAlias = dict[str, tuple[str, dict[str, Job]]]

MILLION = 10**6
BARS = {"XᵀX": 1.5, "clipped gradient": 1.5, "mean from CSV": 2.0, "mean from quoted CSV": 2.0}
OTHER_BAR = 1.5
FULL_ROWS = {
    "wide": 10 * MILLION,
    "numbers": 20 * MILLION,
    "keys": 100 * MILLION,
    "csv": 5 * MILLION,
    "quoted": 5 * MILLION,
}


class Run(NamedTuple):
    """One process: the least seconds of three runs, on the clock and of all processors, peak MB."""

    clock: float
    processors: float
    peak: float


def measured(name: str, who: str, path: Path, *, spark: bool = False) -> Run:
    """Run a job in a process of its own; NaN if it fails."""
    command = [sys.executable, __file__, "--job", name, who, str(path)]
    command += ["--spark"] if spark else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return Run(*[float("nan")] * 3)
    return Run(*json.loads(done.stdout.splitlines()[-1]))


def run_job(name: str, who: str, path: Path, jobs: Jobs) -> None:
    """Run a job three times and print what `Run` holds."""
    job, clock, processors = jobs[name][1][who], [], []
    for _ in range(3):
        start, busy = time.perf_counter(), time.process_time()
        job(path)
        clock.append(time.perf_counter() - start)
        processors.append(time.process_time() - busy)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([min(clock), min(processors), peak]))


def compare(name: str, rows: int, folder: Path, repeats: int) -> list[str]:
    """Return a line of the table: seconds of all, ratios of ours to the others, memory."""
    kind, jobs = JOBS[name]
    path = written(folder, kind, rows)
    runs_of: dict[str, list[Run]] = {who: [] for who in jobs}
    for _ in range(repeats):
        for who in jobs:
            runs_of[who].append(measured(name, who, path))
    fastest = {who: Run(*map(min, zip(*runs, strict=True))) for who, runs in runs_of.items()}
    ours, *others = fastest
    measure = fastest[others[0]]
    return [
        name,
        f"{rows:.0e}",
        f"{fastest[ours].clock:.2f}",
        *[", ".join(f"{who} {fastest[who].clock:.2f}" for who in others)],
        f"{fastest[ours].clock / measure.clock:.2f}",
        f"{fastest[ours].processors / measure.processors:.2f}",
        f"{BARS.get(name, OTHER_BAR)}",
        f"{max(run.peak for run in runs_of[ours]):.0f}",
    ]


def on_spark(folder: Path, rows: int) -> Table:
    """Return the seconds of ours on Spark, and those of Spark and DuckDB themselves."""
    table = Table("on Spark", "rows", "ours", "others", "ratio to Spark", "to DuckDB")
    for name, (kind, jobs) in SPARK_JOBS.items():
        path = written(folder, kind, rows)
        clock = {who: measured(name, who, path, spark=True).clock for who in jobs}
        others = ", ".join(f"{who} {clock[who]:.2f}" for who in jobs if who != "ours")
        ratios = [f"{clock['ours'] / clock[who]:.1f}" for who in ("Spark", "DuckDB")]
        table.add_row(name, f"{rows:.0e}", f"{clock['ours']:.2f}", others, *ratios)
    return table


def growth(folder: Path, sizes: list[int]) -> Table:
    """Return how long ours take for more and more rows."""
    table = Table("seconds of ours", *[f"{rows:.0e} rows" for rows in sizes])
    for name in ("median", "counts by text", "counts by integer"):
        kind = JOBS[name][0]
        times = [measured(name, "ours", written(folder, kind, rows)).clock for rows in sizes]
        table.add_row(name, *[f"{seconds:.3f}" for seconds in times])
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help="the sizes of the issue")
    parser.add_argument("--rows", type=int, help="rows of every file")
    parser.add_argument("--only", nargs="*", help="some of the jobs, by name")
    parser.add_argument("--spark", action="store_true", help="on Spark (and Java 17) instead")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where files are made, and kept")
    arguments = parser.parse_args()
    if arguments.job:
        name, who, path = arguments.job
        run_job(name, who, Path(path), SPARK_JOBS if arguments.spark else JOBS)
        return
    console = Console()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.spark:
            console.print(on_spark(folder, arguments.rows or MILLION))
            return
        columns = ("", "rows", "ours", "others", "ratio", "of CPU", "bar", "peak MB")
        table = Table(*columns, title="seconds")
        for name in arguments.only or JOBS:
            rows = arguments.rows or (FULL_ROWS[JOBS[name][0]] if arguments.full else MILLION)
            table.add_row(*compare(name, rows, folder, arguments.repeats))
        console.print(table)
        if not arguments.only:
            sizes = [MILLION, 10 * MILLION, 100 * MILLION] if arguments.full else [10**5, MILLION]
            console.print(growth(folder, sizes))


if __name__ == "__main__":
    main()
