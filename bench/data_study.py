"""Measure a study of a Parquet file that is larger than its memory: 20 rounds of training.

    python bench/data_study.py            # 2e5 rows of 10 columns, 1 MiB allowed
    python bench/data_study.py 10000000   # 1e7 rows, 64 MiB allowed

The first round reads the file, all others the copy. Peak memory is that of the process, beside what
it had before the study. Nothing is asserted: a busy machine is not a mistake.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import zerodelta as zd
from zerodelta.models import Logistic

COLUMNS, ROUNDS = 10, 20


def written(path: Path, rows: int) -> None:
    """Write the file, a row group at a time."""
    rng, group = np.random.default_rng(0), 1 << 17
    names = [f"x{i}" for i in range(COLUMNS)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.bool_())])
    slope = np.linspace(-1, 1, COLUMNS)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, group):
            x = rng.uniform(-1, 1, size=(min(group, rows - start), COLUMNS))
            y = x @ slope + rng.logistic(size=len(x)) / 2 > 0
            arrays = [pa.array(column) for column in (*x.T, y)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def peak() -> float:
    """Return the largest memory of the process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def beside_numpy(rows: int = 100_000) -> None:
    """Print what a mean of a named column takes after the first, beside NumPy's."""
    table = np.random.default_rng(0).uniform(size=(rows, COLUMNS))
    columns = {f"x{i}": zd.number(0, 1, missing=None) for i in range(COLUMNS)}
    frame = pa.table({name: table[:, i] for i, name in enumerate(columns)})
    for what, people in (
        ("all rows", zd.open(frame, columns=columns)),
        ("after a filter", zd.open(frame, columns=columns).where("x0 < 0.9")),
    ):
        study = zd.Study(people, epsilon=1, publish=zd.Finite(16), rounds=10**6)
        study.mean("x3")
        mean = partial(study.mean, "x3")
        pairs = [(_seconds(mean), _seconds(table[:, 3].mean)) for _ in range(99)]
        ours, theirs = (min(times) * 1e6 for times in zip(*pairs, strict=True))
        print(f"mean of a named column, {what:16}{ours:7.0f} µs {ours / theirs:6.1f} × NumPy")


def _seconds(function: Any) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def main(rows: int) -> None:
    """Print time and memory of one training."""
    beside_numpy()
    memory = (1 << 20) if rows < 10**6 else (1 << 26)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        writer = get_context("spawn").Process(target=written, args=(path, rows))
        writer.start()  # elsewhere: its memory is not the study's
        writer.join()
        kinds: dict[str, Any] = {f"x{i}": zd.number(-1, 1) for i in range(COLUMNS)}
        people = zd.open(path, columns={**kinds, "y": zd.boolean()}, memory=memory, folder=folder)
        ball = zd.Ball(COLUMNS, 5)
        study = zd.Study(people, epsilon=1, publish=ball, rounds=ROUNDS, mixing_probability=1e-6)
        print(study.plan_minimize(Logistic(), data_norm=2))
        before, begun = peak(), time.perf_counter()
        release = study.minimize(Logistic(), data_norm=2)
        taken = time.perf_counter() - begun
        size = path.stat().st_size / (1 << 20)
        print(f"{rows} rows, {size:.0f} MiB of Parquet, {memory >> 20} MiB allowed for the copy")
        print(f"{ROUNDS} rounds in {taken:.1f} s; peak memory + {peak() - before:.0f} MiB")
        print("coefficients", np.round(release.value, 1).tolist())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
