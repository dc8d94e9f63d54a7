"""What commands print, and what they leave in the folder of a release."""

from __future__ import annotations

import io
import json
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from zerodelta.cli.jobs import Funds, Job, Made, account_of, planned, released
from zerodelta.cli.refusals import IncompleteError, held_interrupts, say, told_of
from zerodelta.errors import ZeroDeltaError, require, require_extra
from zerodelta.exact.rational import number_text
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
from zerodelta.privacy.certificate import to_ask
from zerodelta.privacy.readable import equals, write_new
from zerodelta.privacy.release import Release, check_private
from zerodelta.privacy.release_file import read_file
from zerodelta.privacy.shown_release import csv_lines, noted
from zerodelta.report import write_report
from zerodelta.report.contents import (
    ReportTable,
    error_in_words,
    grids_of,
    number_shown,
    plain_text,
)
from zerodelta.report.page import asked_words
from zerodelta.spine.run import Preview
from zerodelta.value import value

# -- What a release leaves in its folder: the record, the value as CSV or Parquet, the report -----
# The record comes first, as what was paid for must not be lost: whatever goes wrong after that is
# told beside the release. Each file is there as a whole or not at all, and none is written over.

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


def lines_of(grid: ReportTable) -> dict[str, list[Any]]:
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


def _csv(grid: ReportTable, path: Path) -> None:
    columns = noted(lines_of(grid), grid.note)
    write_new(path, csv_lines(columns, zip(*columns.values(), strict=True)))


def _parquet(grid: ReportTable, path: Path) -> None:
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


_MOST = 40
_WIDEST = 48


def as_text(
    heads: Sequence[str],
    lines: Sequence[Sequence[Any]],
    right: Sequence[bool],
    *,
    widest: int = _WIDEST,
) -> str:
    """Return a table as text; cells are shown as they are, long ones cut off."""
    ascii_only = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    table = Table(box=box.ASCII if ascii_only else box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for head, number in zip(heads, right, strict=True):
        table.add_column(Text(_short(head)), justify="right" if number else "left")
    for line in lines:
        table.add_row(*(Text(_short(each, widest)) for each in line))
    file = StringIO()
    Console(file=file, width=_width(), color_system=None).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines() if line.strip())


def _width() -> int:
    try:
        return max(60, Console().width if sys.stdout.isatty() else 120)
    except ValueError:
        return 120


def _short(value: Any, widest: int = _WIDEST) -> str:
    text = number_shown(value)
    return text if len(text) <= widest else text[: widest - 1] + "…"


def _grid(grid: ReportTable) -> str:
    heads, columns, right = [], [], []
    for name, keys in grid.keys.items():
        heads.append(name)
        columns.append(list(keys))
        right.append(False)
    for column in grid.columns:
        heads.append(column.name)
        columns.append(list(column.values))
        right.append(not any(isinstance(each, str) for each in column.values[:_MOST]))
        if column.lower is not None and column.upper is not None:
            heads.append("95 % interval")
            pairs = zip(column.lower, column.upper, strict=True)
            columns.append([f"{number_shown(a)} to {number_shown(b)}" for a, b in pairs])
            right.append(False)
    lines = list(zip(*columns, strict=True))
    text = as_text(heads, lines[:_MOST], right)
    more = f"\n… and {len(lines) - _MOST:,} more lines" if len(lines) > _MOST else ""
    told = "; ".join(each for each in (grid.note, grid.hint) if each)
    return text + more + (f"\n({plain_text(told)})" if told else "")


def say_release(job: Job, made: Made, written: Written) -> None:
    """Print a release for people."""
    release = made.release
    say(asked_words(release))
    for grid in grids_of(release):
        say(_grid(grid))
    say(release.certificate.summary)
    if release.certificate.beware:
        say(f"beware: {release.certificate.beware}")
    ledger = ledger_of(job, release)
    say(release.counted if ledger is None else ledger.line)
    for path in written.files:
        say(f"wrote {path}")


def release_as_json(job: Job, made: Made, written: Written) -> dict[str, Any]:
    """Return the same for machines."""
    release, record = made.release, made.release.record
    ledger = ledger_of(job, release)
    return {
        "task": job.task,
        "data": [] if record is None else record.names,
        "claim": release.certificate.body()["claim"],
        "summary": release.certificate.summary,
        "value": values_as_json(release),
        "notes": [grid.note for grid in grids_of(release) if grid.note],
        "error": release.error,
        "files": [str(path) for path in written.files],
        "problems": list(written.problems),
        "beware": release.certificate.beware,
        "to_ask": [] if record is None else record.to_ask,
        "entries": [] if record is None else record.entries,
        "remaining": None if ledger is None else number_text(ledger.remaining),
    }


def say_plan(job: Job, found: Preview, funds: str | None) -> None:
    """Print a plan for people; `funds` says what its ledger has left."""
    price = "not pure" if found.price is None else f"ε {equals(found.price)}"
    say(f"{job.task}: nothing was spent, and no cell was read; this is what a run would do")
    facts = [
        ("price", price),
        ("promises", found.certificate.summary),
        ("protects", found.certificate.row),
        ("publishes", job.command.publishes),
        ("expected error", error_in_words(job.described, found.error)),
    ]
    if found.complete_error is not None:
        told = error_in_words(job.described, found.complete_error)
        facts.append(("if no cell is missing", told + ' (missing = "none")'))
    if found.seconds is not None:
        facts.append(("takes about", f"{found.seconds:.0f} s"))
    facts += [("public", each) for each in found.certificate.public]
    facts += [("assumed", each) for each in found.certificate.assumed]
    facts += [("to be asked", each) for each in _asked(found, funds is not None)]
    facts += [("beware", each) for each in (found.certificate.beware,) if each]
    if funds is not None:
        facts.append(("ledger", funds))
    wide = max(len(name) for name, _ in facts)
    for name, text in facts:
        say(f"  {name:<{wide}}  {plain_text(text)}")
    for line in found.details.splitlines():
        say(f"  {plain_text(line)}")
    if len(found.methods) > 1:
        names = ("method", "expected error", "why")
        rows = [(each.name, f"{each.error:.4g}", each.why) for each in found.methods]
        say(as_text(names, rows, (False, True, False), widest=400))


def plan_as_json(job: Job, found: Preview, left: Fraction | None) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "task": job.task,
        "price": None if found.price is None else number_text(found.price),
        "claim": found.certificate.body()["claim"],
        "summary": found.certificate.summary,
        "publishes": job.command.publishes,
        "error": found.error,
        "seconds": found.seconds,
        "public": list(found.certificate.public),
        "assumed": list(found.certificate.assumed),
        "to_ask": list(_asked(found, left is not None)),
        "beware": found.certificate.beware,
        "methods": [{"name": each.name, "error": each.error} for each in found.methods],
        "remaining": None if left is None else number_text(left),
    }


def _asked(found: Preview, counted: bool) -> tuple[str, ...]:
    return to_ask(unit=found.certificate.unit, counted=counted)


def say_json(data: Any) -> None:
    """Print JSON; numbers that JSON does not have as texts."""
    try:
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        text = json.dumps(_shown_finite(data), indent=2, ensure_ascii=False, default=str)
    say(text)


def _shown_finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _shown_finite(each) for key, each in data.items()}
    if isinstance(data, (list, tuple)):
        return [_shown_finite(each) for each in data]
    if (isinstance(data, float) and data in (float("inf"), float("-inf"))) or data != data:
        return str(data)
    return data


# -- Jobs, planned or run ------------------------------------------------------------------------


def run_jobs(jobs: Sequence[Job], *, dry_run: bool, as_json: bool, alone: bool) -> None:
    """Plan or run jobs, one after the other, and print what came out."""
    funds = Funds()
    if not dry_run:
        for job in jobs:
            prepare(job)
        if not alone:  # a mistake in a later job is found before an earlier one is paid for
            funds.check([(job, planned(job)) for job in jobs])
    told: list[Any] = []
    problems: list[str] = []
    try:
        for i, job in enumerate(jobs):
            if not alone and not as_json:
                say(f"{'' if i == 0 else chr(10)}[{job.name or job.task}]")
            if dry_run:
                found, left = planned(job), funds.left(job)
                line = funds.line(job, found)
                if as_json:
                    told.append(plan_as_json(job, found, left))
                else:
                    say_plan(job, found, line)
                continue
            made = released(job)
            files = write(job, made)
            problems += files.problems
            if as_json:
                told.append(release_as_json(job, made, files))
            else:
                say_release(job, made, files)
    finally:  # what was paid for is told, whatever became of the jobs after it
        if as_json and told:
            say_json(told[0] if alone else told)
    if problems:
        raise IncompleteError(f"the release was paid for and made, but {'; '.join(problems)}")
