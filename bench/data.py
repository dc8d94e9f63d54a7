"""What reading and summing costs beside plain floats and DuckDB: ratios, memory, growth.

    python bench/data.py                  # a million rows: a minute or two
    python bench/data.py --full           # 1e7 × 20, 1e8 rows of keys, and growth
    python bench/data.py --only "XᵀX" --rows 10000000 --folder /somewhere/large

Each job runs in a process of its own, in turns, `--repeats` times; its time is the least of three
runs, its memory the peak of the process. The bars are those of the data issue: 1.5 of floats that
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
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

MILLION = 10**6
BARS = {"XᵀX": 1.5, "clipped gradient": 1.5, "mean from CSV": 2.0}
OTHER_BAR = 1.5
FULL_ROWS = {"wide": 10 * MILLION, "keys": 100 * MILLION, "csv": 5 * MILLION}


def measured(name: str, who: str, path: Path) -> tuple[float, float]:
    """Return seconds and peak MB of a job, run in a process of its own."""
    command = [sys.executable, __file__, "--job", name, who, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return float("nan"), float("nan")
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def run_job(name: str, who: str, path: Path) -> None:
    """Run a job three times and print the least time and the peak of memory."""
    from bench.data_jobs import JOBS

    job, times = JOBS[name][1][who], []
    for _ in range(3):
        start = time.perf_counter()
        job(path)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([min(times), peak]))


def compare(name: str, rows: int, folder: Path, repeats: int) -> list[Any]:
    """Return a line of the table: seconds of all, ratios of ours to the others, memory."""
    from bench.data_jobs import JOBS, written

    kind, jobs = JOBS[name]
    path = written(folder, kind, rows)
    found: dict[str, list[tuple[float, float]]] = {who: [] for who in jobs}
    for _ in range(repeats):
        for who in jobs:
            found[who].append(measured(name, who, path))
    least = {who: min(seconds for seconds, _ in runs) for who, runs in found.items()}
    measure = list(jobs)[1]
    ratios = [
        ours[0] / theirs[0] for ours, theirs in zip(found["ours"], found[measure], strict=True)
    ]
    return [
        name,
        f"{rows:.0e}",
        f"{least['ours']:.2f}",
        ", ".join(f"{who} {least[who]:.2f}" for who in list(jobs)[1:]),
        f"{least['ours'] / least[measure]:.2f}",
        f"{median(ratios):.2f}",
        f"{BARS.get(name, OTHER_BAR)}",
        f"{max(peak for _, peak in found['ours']):.0f}",
    ]


def growth(folder: Path, sizes: list[int]) -> Table:
    """Return how long ours take for more and more rows."""
    from bench.data_jobs import written

    table = Table("seconds of ours", *[f"{rows:.0e} rows" for rows in sizes])
    for name, kind in (("counts by text", "keys"), ("counts by integer", "keys")):
        times = [measured(name, "ours", written(folder, kind, rows))[0] for rows in sizes]
        table.add_row(name, *[f"{seconds:.3f}" for seconds in times])
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help="the sizes of the issue")
    parser.add_argument("--rows", type=int, help="rows of every file")
    parser.add_argument("--only", nargs="*", help="some of the jobs, by name")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where files are made, and kept")
    asked = parser.parse_args()
    if asked.job:
        run_job(asked.job[0], asked.job[1], Path(asked.job[2]))
        return
    from bench.data_jobs import JOBS

    console = Console()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        columns = ("", "rows", "ours", "others", "ratio of least", "median ratio", "bar", "peak MB")
        table = Table(*columns, title="seconds")
        for name in asked.only or JOBS:
            rows = asked.rows or (FULL_ROWS[JOBS[name][0]] if asked.full else MILLION)
            table.add_row(*compare(name, rows, folder, asked.repeats))
        console.print(table)
        if not asked.only:
            sizes = [MILLION, 10 * MILLION, 100 * MILLION] if asked.full else [10**5, MILLION]
            console.print(growth(folder, sizes))


if __name__ == "__main__":
    main()
