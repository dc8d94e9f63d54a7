"""Write `docs/reproduction.md`, a full run with its pictures that the repository keeps.

Every number of it comes from the run (`reproduce.json`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduce.page import HEADINGS, HOW, WHAT, cells, headline

__all__ = ["IMAGES", "report", "write_report"]

IMAGES = "images/reproduction"
"""Where the pictures lie, seen from the report."""


def write_report(docs: Path, numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> Path:
    """Write `reproduction.md` and its pictures into the folder `docs`; return its path."""
    images = docs / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for old in images.glob("*.svg"):
        old.unlink()
    for key, svg in pictures.items():
        (images / f"{key}.svg").write_text(svg.rstrip() + "\n", encoding="utf-8")
    target = docs / "reproduction.md"
    target.write_text(report(numbers), encoding="utf-8")
    return target


def report(numbers: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines(numbers)) + "\n"


def _lines(numbers: Mapping[str, Any]) -> Iterator[str]:
    yield "# The paper, reproduced"
    yield ""
    yield from _summary(numbers)
    yield WHAT
    yield ""
    machine = numbers["machine"]
    yield (
        f"Written by `{numbers['command']}` in {numbers['seconds']:.0f} seconds: commit "
        f"`{numbers['commit']}`, zerodelta {numbers['version']}, Python {machine['python']}, "
        f"{machine['cores']} cores ({machine['processor']})."
    )
    yield ""
    for figure in numbers["figures"]:
        yield f"## {figure['title']}"
        yield ""
        yield f"![{figure['title']}]({IMAGES}/{figure['key']}.svg)"
        yield ""
        yield _cell(figure["caption"])
        yield ""
        yield from (f"- {_cell(finding)}" for finding in figure["findings"])
        yield ""
    for row in (row for table in numbers["tables"].values() for row in table):
        yield f"## {row['title']}"
        yield ""
        yield _cell(row["note"])
        yield ""
        yield f"![{row['title']}]({IMAGES}/{row['key']}.svg)"
        yield ""
        lines = [cells(row, curve) for curve in row["series"]]
        yield from _table(HEADINGS[: len(lines[0])], lines)
        yield ""


def _summary(numbers: Mapping[str, Any]) -> Iterator[str]:
    if numbers["quick"]:
        yield "A quick run: two points to a curve, so no slopes."
        yield ""
        return
    summary = numbers["summary"]
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
