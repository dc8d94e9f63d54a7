"""What a release leaves in its folder: the record, the value as CSV or Parquet, the report.

The record comes first, as what was paid for must not be lost: whatever goes wrong after that is
told beside the release. Each file is there as a whole or not at all, and none is written over.
"""

from __future__ import annotations

import io
import json
import re
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from zerodelta.cli.jobs import Job, Made, account_of
from zerodelta.cli.refusals import held_interrupts, told_of
from zerodelta.errors import ZeroDeltaError, require, require_extra
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
from zerodelta.privacy.new_file import write_new
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import read_file
from zerodelta.privacy.signatures import check_private
from zerodelta.privacy.written_csv import csv_lines, noted
from zerodelta.report import write_report
from zerodelta.report.published import Grid, grids_of
from zerodelta.value import value

RECORD, REPORT = "release.json", "report.html"


@value
class Written:
    """The files of a release, and what went wrong with those that are missing."""

    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


def folder_of(job: Job) -> Path | None:
    """Return the folder of a job's files; None if none is asked for."""
    if job.out is None:
        return None
    return Path(job.out) if job.name is None else Path(job.out) / job.name


def prepare(job: Job) -> None:
    """Refuse before anything is spent what could not be written afterwards."""
    if job.parquet:
        remedy = "pass --out FOLDER"
        require(job.out is not None, "parquet", expected="a folder to write to", remedy=remedy)
        require_extra("pyarrow", "data")
    if job.sign is not None:
        remedy = "pass --out FOLDER"
        require(job.out is not None, "sign", expected="a folder to write to", remedy=remedy)
        check_private(job.sign)
    folder = folder_of(job)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    free = not (folder / RECORD).exists()
    expected = "a folder without a release: what was paid for is not written over"
    remedy = f"choose another --out, or use {folder / RECORD}, which is free"
    require(free, "out", str(folder), expected, remedy)
    there = [path.name for path in sorted(folder.iterdir()) if _OURS.fullmatch(path.name)]
    expected = f"a folder without {', '.join(there)}, which would be written over"
    require(not there, "out", str(folder), expected, "choose another --out")
    probe = folder / f".probe.{secrets.token_hex(8)}"
    probe.write_bytes(b"")  # OSError is told by its path, before a debit
    probe.unlink()


def write(job: Job, made: Made) -> Written:
    """Write all files of a release; nothing that goes wrong here hides what was paid for."""
    folder = folder_of(job)
    if folder is None:
        return Written()
    written: list[Path] = []
    problems: list[str] = []
    with held_interrupts():
        record = _saved(made, folder, job.sign, problems)
    if record is not None:
        written.append(record)
    writers: dict[Path, Callable[[Path], None]] = {}
    grids = grids_of(made.release) if made.estimator is None else ()
    for i, grid in enumerate(grids, 1):
        name = "value" if len(grids) == 1 else f"value-{i}"
        writers[folder / f"{name}.csv"] = partial(_csv, grid)
        if job.parquet:
            writers[folder / f"{name}.parquet"] = partial(_parquet, grid)
    writers[folder / REPORT] = partial(_report, job, made, record)
    for path, write_to in writers.items():
        try:
            write_to(path)
            written.append(path)
        except Exception as error:
            problems.append(f"{path} could not be written: {told_of(error)}")
    return Written(files=tuple(written), problems=tuple(problems))


def _saved(made: Made, folder: Path, sign: str | None, problems: list[str]) -> Path | None:
    """Save the record, elsewhere if need be: the disk is full, or another run took the place."""
    place = folder / RECORD
    for _ in range(2):
        try:
            made.save(place, sign=sign)
            return place
        except (OSError, ZeroDeltaError) as error:
            problems.append(f"{place} could not be written: {told_of(error)}")
            place = Path(tempfile.mkdtemp(prefix="zerodelta-")) / RECORD
    return None


def _report(job: Job, made: Made, record: Path | None, path: Path) -> None:
    saved = None if record is None else read_file(record)
    release = made.release if saved is None else replace(made.release, signatures=saved.signatures)
    write_report(
        [release],
        path,
        ledger=ledger_of(job, release),
        files=[RECORD if record is None else str(record)],
        digests=[None if saved is None else saved.digest],
    )


def ledger_of(job: Job, release: Release) -> Ledger | None:
    """Return the account that paid, if a ledger was named."""
    if job.ledger is None:
        return None
    names = [] if release.record is None else [n for n in release.record.names if n is not None]
    return account_of(job.ledger, names[0] if names else DEFAULT_DATA, job.analyst)


_OURS = re.compile(rf"value(-\d+)?\.(csv|parquet)|{re.escape(REPORT)}")


def lines_of(grid: Grid) -> dict[str, list[Any]]:
    """Return a grid as columns: keys, numbers, and the ends of their intervals."""
    columns = {name or "line": [_plain(each) for each in keys] for name, keys in grid.keys.items()}
    for column in grid.columns:
        columns[column.name] = [_plain(each) for each in column.values]
        if column.lower is not None and column.upper is not None:
            columns[f"{column.name}_lower"] = [_plain(each) for each in column.lower]
            columns[f"{column.name}_upper"] = [_plain(each) for each in column.upper]
    return columns


def values_as_json(release: Release) -> list[dict[str, list[Any]]]:
    """Return what was published, each grid as columns; a cell without a number is null."""
    return [
        {name: [_finite(each) for each in cells] for name, cells in lines_of(grid).items()}
        for grid in grids_of(release)
    ]


def _csv(grid: Grid, path: Path) -> None:
    columns = noted(lines_of(grid), grid.note)
    write_new(path, csv_lines(columns, zip(*columns.values(), strict=True)))


def _parquet(grid: Grid, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        name: _one_type(list(cells)) for name, cells in noted(lines_of(grid), grid.note).items()
    }
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    write_new(path, content.getvalue())


def _one_type(cells: list[Any]) -> list[Any]:
    kinds = {type(each) for each in cells if each is not None}
    if kinds <= {int, float} or len(kinds) == 1:
        return cells
    return [None if each is None else str(each) for each in cells]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def _finite(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return None
    return value
