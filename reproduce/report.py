"""Keep a full run in the repository: its numbers and pictures, and the page that shows them.

`reproduce/results/full_run.json` holds what the page prints; the site prints the page from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduce.page import HEADINGS, HOW, WHAT, cells, headline

__all__ = ["IMAGES", "RESULTS", "kept", "report", "write_report"]

IMAGES = "images/reproduction"
"""Where the pictures lie, seen from the page."""

RESULTS = Path("reproduce", "results", "full_run.json")
"""Where the numbers lie, seen from the root of the repository."""


def write_report(root: Path, numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> Path:
    """Write the numbers and the pictures of a run below `root`; return the path of the numbers."""
    images = root / "docs" / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for old in images.glob("*.svg"):
        old.unlink()
    for key, svg in pictures.items():
        (images / f"{key}.svg").write_text(svg.rstrip() + "\n", encoding="utf-8")
    target = root / RESULTS
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(kept(numbers), indent=1, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")
    return target


def kept(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a run: the cells of its tables, without single errors."""
    names = ("version", "command", "commit", "machine", "quick", "seconds", "summary")
    figures = ("key", "title", "caption", "findings")
    rows = (row for table in numbers["tables"].values() for row in table)
    return {
        **{name: numbers[name] for name in names},
        "figures": [{name: figure[name] for name in figures} for figure in numbers["figures"]],
        "rows": [
            {
                **{name: row[name] for name in ("key", "title", "note")},
                "lines": [cells(row, curve) for curve in row["series"]],
            }
            for row in rows
        ],
    }


def report(run: Mapping[str, Any]) -> str:
    """Return the page of a kept run as Markdown."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    yield "# The paper, reproduced"
    yield ""
    yield from _summary(run)
    yield WHAT
    yield ""
    machine = run["machine"]
    yield (
        f"Written by `{run['command']}` in {run['seconds']:.0f} seconds: commit "
        f"`{run['commit']}`, zerodelta {run['version']}, Python {machine['python']}, "
        f"{machine['cores']} cores ({machine['processor']})."
    )
    yield ""
    for figure in run["figures"]:
        yield f"## {figure['title']}"
        yield ""
        yield f"![{figure['title']}]({IMAGES}/{figure['key']}.svg)"
        yield ""
        yield _cell(figure["caption"])
        yield ""
        yield from (f"- {_cell(finding)}" for finding in figure["findings"])
        yield ""
    for row in run["rows"]:
        yield f"## {row['title']}"
        yield ""
        yield _cell(row["note"])
        yield ""
        yield f"![{row['title']}]({IMAGES}/{row['key']}.svg)"
        yield ""
        yield from _table(HEADINGS[: len(row["lines"][0])], row["lines"])
        yield ""


def _summary(run: Mapping[str, Any]) -> Iterator[str]:
    if run["quick"]:
        yield "A quick run: two points to a curve, so no slopes."
        yield ""
        return
    summary = run["summary"]
    yield f"**{headline(summary)}**"
    yield ""
    if summary["misses"]:
        yield from _table(("problem", *HEADINGS), summary["misses"])
        yield ""
    yield HOW
    yield ""


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "---|" * len(headings)
    yield from ("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
