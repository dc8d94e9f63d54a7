"""Print plans and releases, and write the files of a release to its folder."""

from __future__ import annotations

import io
import json
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
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

from zerodelta.cli.jobs import FinishedJob, Funds, Job, account_of, plan_job, run_job
from zerodelta.cli.refusals import IncompleteError, error_line, held_interrupts, say
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

# -- Files of a release: the record, the value as CSV or Parquet, the report ----------------------
# The record is written first, because a release that was paid for must not be lost: later errors
# are printed after the release. No file is half written, and none is overwritten.

RECORD, REPORT = "release.json", "report.html"


@value
class Written:
    """The files that were written of a release, and the errors of those that were not."""

    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


def folder_of(job: Job) -> Path | None:
    """Return the folder for a job's files; None without --out."""
    if job.out is None:
        return None
    return Path(job.out) if job.name is None else Path(job.out) / job.name


def prepare(job: Job) -> None:
    """Refuse, before anything is spent, files that could not be written afterwards."""
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
    expected = "a folder without a release, which is never overwritten"
    remedy = f"choose another --out, or use {folder / RECORD}, which costs nothing"
    require(free, "out", str(folder), expected, remedy)
    outputs = [path.name for path in sorted(folder.iterdir()) if _OUTPUT.fullmatch(path.name)]
    expected = f"a folder without {', '.join(outputs)}, which would be overwritten"
    require(not outputs, "out", str(folder), expected, "choose another --out")
    probe = folder / f".probe.{secrets.token_hex(8)}"
    probe.write_bytes(b"")  # raises OSError before a debit if the folder is not writable
    probe.unlink()


def write(job: Job, done: FinishedJob) -> Written:
    """Write all files of a release; collect errors, so that the release is printed in any case."""
    folder = folder_of(job)
    if folder is None:
        return Written()
    written: list[Path] = []
    problems: list[str] = []
    with held_interrupts():
        record = _save_record(done, folder, job.sign, problems)
    if record is not None:
        written.append(record)
    writers: dict[Path, Callable[[Path], None]] = {}
    grids = grids_of(done.release) if done.estimator is None else ()
    for i, grid in enumerate(grids, 1):
        name = "value" if len(grids) == 1 else f"value-{i}"
        writers[folder / f"{name}.csv"] = partial(_csv, grid)
        if job.parquet:
            writers[folder / f"{name}.parquet"] = partial(_parquet, grid)
    writers[folder / REPORT] = partial(_report, job, done, record)
    for path, write_to in writers.items():
        try:
            write_to(path)
            written.append(path)
        except Exception as error:
            problems.append(f"{path} could not be written: {error_line(error)}")
    return Written(files=tuple(written), problems=tuple(problems))


def _save_record(
    done: FinishedJob, folder: Path, sign: str | None, problems: list[str]
) -> Path | None:
    """Save the record; fall back to a temporary folder if the disk is full or the name is taken."""
    path = folder / RECORD
    for _ in range(2):
        try:
            done.save(path, sign=sign)
            return path
        except (OSError, ZeroDeltaError) as error:
            problems.append(f"{path} could not be written: {error_line(error)}")
            path = Path(tempfile.mkdtemp(prefix="zerodelta-")) / RECORD
    return None


def _report(job: Job, done: FinishedJob, record: Path | None, path: Path) -> None:
    saved = None if record is None else read_file(record)
    release = done.release if saved is None else replace(done.release, signatures=saved.signatures)
    write_report(
        [release],
        path,
        ledger=ledger_of(job, release),
        files=[RECORD if record is None else str(record)],
        digests=[None if saved is None else saved.digest],
    )


def ledger_of(job: Job, release: Release) -> Ledger | None:
    """Return the account that paid for a release; None without a ledger."""
    if job.ledger is None:
        return None
    names = [] if release.record is None else [n for n in release.record.names if n is not None]
    return account_of(job.ledger, names[0] if names else DEFAULT_DATA, job.analyst)


_OUTPUT = re.compile(rf"value(-\d+)?\.(csv|parquet)|{re.escape(REPORT)}")


def columns_of(grid: ReportTable) -> dict[str, list[Any]]:
    """Return a table as columns of plain values: keys, numbers, and the ends of intervals."""
    columns = {name or "line": _plain(keys) for name, keys in grid.keys.items()}
    for column in grid.columns:
        columns[column.name] = _plain(column.values)
        if column.lower is not None and column.upper is not None:
            columns[f"{column.name}_lower"] = _plain(column.lower)
            columns[f"{column.name}_upper"] = _plain(column.upper)
    return columns


def values_as_json(release: Release) -> list[dict[str, list[Any]]]:
    """Return the published tables as columns; NaN and infinities become null."""
    return [
        {name: [_finite(cell) for cell in cells] for name, cells in columns_of(grid).items()}
        for grid in grids_of(release)
    ]


def _csv(grid: ReportTable, path: Path) -> None:
    columns = noted(columns_of(grid), grid.note)
    write_new(path, csv_lines(columns, zip(*columns.values(), strict=True)))


def _parquet(grid: ReportTable, path: Path) -> None:
    """Write a table as a new Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        name: _one_type(list(cells)) for name, cells in noted(columns_of(grid), grid.note).items()
    }
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    write_new(path, content.getvalue())


def _one_type(cells: list[Any]) -> list[Any]:
    """Return cells of mixed types as texts, since a column of Parquet has one type."""
    types = {type(cell) for cell in cells if cell is not None}
    if types <= {int, float} or len(types) == 1:
        return cells
    return [None if cell is None else str(cell) for cell in cells]


def _plain(cells: Iterable[Any]) -> list[Any]:
    """Return cells as Python's own numbers and texts."""
    items = (cell.item() if isinstance(cell, np.generic) else cell for cell in cells)
    plain = (bool, int, float, str, type(None))
    return [item if isinstance(item, plain) else str(item) for item in items]


def _finite(cell: Any) -> Any:
    """Return a cell, or None for one that JSON cannot write: NaN or an infinity."""
    try:
        json.dumps(cell, allow_nan=False)
    except ValueError:
        return None
    return cell


_MAXIMUM_LINES = 40
_MAXIMUM_WIDTH = 48


def as_text(
    heads: Sequence[str],
    lines: Sequence[Sequence[Any]],
    right: Sequence[bool],
    *,
    width: int = _MAXIMUM_WIDTH,
) -> str:
    """Return a table as text; long cells are cut off."""
    ascii_only = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    table = Table(box=box.ASCII if ascii_only else box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for head, number in zip(heads, right, strict=True):
        table.add_column(Text(_short(head)), justify="right" if number else "left")
    for line in lines:
        table.add_row(*(Text(_short(cell, width)) for cell in line))
    file = StringIO()
    Console(file=file, width=_terminal_width(), color_system=None).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines() if line.strip())


def _terminal_width() -> int:
    try:
        return max(60, Console().width if sys.stdout.isatty() else 120)
    except ValueError:
        return 120


def _short(value: Any, width: int = _MAXIMUM_WIDTH) -> str:
    text = number_shown(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _table_text(grid: ReportTable) -> str:
    """Return a published table as text: keys, numbers and their intervals."""
    heads, columns, right = [], [], []
    for name, keys in grid.keys.items():
        heads.append(name)
        columns.append(list(keys))
        right.append(False)
    for column in grid.columns:
        heads.append(column.name)
        columns.append(list(column.values))
        right.append(not any(isinstance(cell, str) for cell in column.values[:_MAXIMUM_LINES]))
        if column.lower is not None and column.upper is not None:
            heads.append("95 % interval")
            pairs = zip(column.lower, column.upper, strict=True)
            columns.append([f"{number_shown(a)} to {number_shown(b)}" for a, b in pairs])
            right.append(False)
    lines = list(zip(*columns, strict=True))
    text = as_text(heads, lines[:_MAXIMUM_LINES], right)
    hidden = len(lines) - _MAXIMUM_LINES
    more = f"\n… and {hidden:,} more lines" if hidden > 0 else ""
    remark = "; ".join(text for text in (grid.note, grid.hint) if text)
    return text + more + (f"\n({plain_text(remark)})" if remark else "")


def say_release(job: Job, done: FinishedJob, written: Written) -> None:
    """Print a release's tables, certificate summary, ledger line and written files."""
    release = done.release
    say(asked_words(release))
    for grid in grids_of(release):
        say(_table_text(grid))
    say(release.certificate.summary)
    if release.certificate.beware:
        say(f"beware: {release.certificate.beware}")
    ledger = ledger_of(job, release)
    say(release.counted if ledger is None else ledger.line)
    for path in written.files:
        say(f"wrote {path}")


def release_as_json(job: Job, done: FinishedJob, written: Written) -> dict[str, Any]:
    """Return a release for machines: the same facts as `say_release` prints."""
    release, record = done.release, done.release.record
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


def say_plan(job: Job, plan: Preview, funds: str | None) -> None:
    """Print a plan for people; `funds` is a line about the ledger, if there is one."""
    price = "not pure" if plan.price is None else f"ε {equals(plan.price)}"
    say(f"{job.task}: a plan of the run; nothing was spent, and no cell was read")
    facts = [
        ("price", price),
        ("promises", plan.certificate.summary),
        ("protects", plan.certificate.row),
        ("publishes", job.command.publishes),
        ("expected error", error_in_words(job.described, plan.error)),
    ]
    if plan.complete_error is not None:
        error = error_in_words(job.described, plan.complete_error)
        facts.append(("if no cell is missing", error + ' (missing = "none")'))
    if plan.seconds is not None:
        facts.append(("takes about", f"{plan.seconds:.0f} s"))
    facts += [("public", text) for text in plan.certificate.public]
    facts += [("assumed", text) for text in plan.certificate.assumed]
    facts += [("to be asked", text) for text in _to_ask(plan, funds is not None)]
    facts += [("beware", text) for text in (plan.certificate.beware,) if text]
    if funds is not None:
        facts.append(("ledger", funds))
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        say(f"  {name:<{width}}  {plain_text(text)}")
    for line in plan.details.splitlines():
        say(f"  {plain_text(line)}")
    if len(plan.methods) > 1:
        heads = ("method", "expected error", "why")
        rows = [(method.name, f"{method.error:.4g}", method.why) for method in plan.methods]
        say(as_text(heads, rows, (False, True, False), width=400))


def plan_as_json(job: Job, plan: Preview, remaining: Fraction | None) -> dict[str, Any]:
    """Return a plan for machines: the same facts as `say_plan` prints."""
    return {
        "task": job.task,
        "price": None if plan.price is None else number_text(plan.price),
        "claim": plan.certificate.body()["claim"],
        "summary": plan.certificate.summary,
        "publishes": job.command.publishes,
        "error": plan.error,
        "seconds": plan.seconds,
        "public": list(plan.certificate.public),
        "assumed": list(plan.certificate.assumed),
        "to_ask": list(_to_ask(plan, remaining is not None)),
        "beware": plan.certificate.beware,
        "methods": [{"name": method.name, "error": method.error} for method in plan.methods],
        "remaining": None if remaining is None else number_text(remaining),
    }


def _to_ask(plan: Preview, counted: bool) -> tuple[str, ...]:
    return to_ask(unit=plan.certificate.unit, counted=counted)


def say_json(data: Any) -> None:
    """Print JSON; NaN and infinities, which JSON lacks, as texts."""
    try:
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        text = json.dumps(_with_texts(data), indent=2, ensure_ascii=False, default=str)
    say(text)


def _with_texts(data: Any) -> Any:
    """Replace NaN and infinities by texts, however deeply they are nested."""
    if isinstance(data, dict):
        return {key: _with_texts(part) for key, part in data.items()}
    if isinstance(data, (list, tuple)):
        return [_with_texts(part) for part in data]
    if (isinstance(data, float) and data in (float("inf"), float("-inf"))) or data != data:
        return str(data)
    return data


# -- Jobs, planned or run ------------------------------------------------------------------------


def run_jobs(jobs: Sequence[Job], *, dry_run: bool, as_json: bool, alone: bool) -> None:
    """Plan jobs or run them in order, check ledgers first, and print plans or releases."""
    funds = Funds()
    if not dry_run:
        for job in jobs:
            prepare(job)
        if not alone:  # refuse a mistake in a later job before an earlier one is paid for
            funds.check([(job, plan_job(job)) for job in jobs])
    outputs: list[Any] = []
    problems: list[str] = []
    try:
        for i, job in enumerate(jobs):
            if not alone and not as_json:
                say(f"{'' if i == 0 else chr(10)}[{job.name or job.task}]")
            if dry_run:
                plan, remaining = plan_job(job), funds.remaining(job)
                line = funds.line(job, plan)
                if as_json:
                    outputs.append(plan_as_json(job, plan, remaining))
                else:
                    say_plan(job, plan, line)
                continue
            done = run_job(job)
            files = write(job, done)
            problems += files.problems
            if as_json:
                outputs.append(release_as_json(job, done, files))
            else:
                say_release(job, done, files)
    finally:  # print the releases that were paid for, even if a later job failed
        if as_json and outputs:
            say_json(outputs[0] if alone else outputs)
    if problems:
        raise IncompleteError(f"the release was paid for and made, but {'; '.join(problems)}")
