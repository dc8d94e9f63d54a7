"""What commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from io import StringIO
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from zerodelta.cli.jobs import Job, Made
from zerodelta.cli.outputs import Written, ledger_of, values_as_json
from zerodelta.cli.refusals import say
from zerodelta.exact.rational import number_text
from zerodelta.privacy.assumptions import to_ask
from zerodelta.privacy.readable import equals
from zerodelta.report.published import Grid, error_words, grids_of, number_shown, plain_text
from zerodelta.report.sections import asked_words
from zerodelta.spine.preview import Preview

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


def _grid(grid: Grid) -> str:
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
    say(f"{job.task}: nothing was read or spent; this is what a run would do")
    facts = [
        ("price", price),
        ("promises", found.certificate.summary),
        ("protects", found.certificate.row),
        ("publishes", job.form.publishes),
        ("expected error", error_words(job.form.calls, found.error)),
    ]
    if found.complete_error is not None:
        told = error_words(job.form.calls, found.complete_error)
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
        "publishes": job.form.publishes,
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
        text = json.dumps(_finite(data), indent=2, ensure_ascii=False, default=str)
    say(text)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(each) for key, each in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(each) for each in data]
    if (isinstance(data, float) and data in (float("inf"), float("-inf"))) or data != data:
        return str(data)
    return data
