"""Whole releases of a file that is larger than the memory allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pq = pytest.importorskip("pyarrow.parquet")

from data.full_releases import RELEASES, made_up  # noqa: E402
from data.limited_memory import EVERYTHING  # noqa: E402

ROOT = Path(__file__).parents[2]
ALLOWED = 112_000_000
SYSTEM = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
GROUPS, ROWS = 30, 50_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(made_up(3000), folder / "small.parquet")
    size = 0
    with pq.ParquetWriter(folder / "large.parquet", made_up(1).schema) as writer:
        for group in range(GROUPS):
            part = made_up(ROWS, seed=group)
            size += part.nbytes
            writer.write_table(part)
    assert size > 2 * ALLOWED
    return folder


def job(name: str, files: Path, folder: Path) -> str:
    paths = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]
    small, large = (str(files / f"{each}.parquet") for each in ("small", "large"))
    command = ["-m", "data.limited_memory", name, small, large, str(ALLOWED), str(folder)]
    done = subprocess.run(
        [sys.executable, *command],
        # Arrow's own allocator reserves memory long before it is needed
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **SYSTEM},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_of_more_rows_than_fit_into_memory(
    name: str, files: Path, tmp_path: Path
) -> None:
    assert job(name, files, tmp_path) == "released"
    assert not list(tmp_path.iterdir())  # what was kept of the rows had no name


@linux
@pytest.mark.slow
def test_all_rows_at_once_do_not_fit(files: Path, tmp_path: Path) -> None:
    assert job(EVERYTHING, files, tmp_path) == "refused"
