"""What the site shows and git does not keep: pages and parts of pages, printed from code and data.

A part stands in a page where its mark is, such as `<!-- printed here: map -->`. Numbers that take
a long run to measure are kept as data in `bench/results` and `reproduce/results`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

MARK = re.compile(r"<!-- printed here: ([a-z ]+) -->")


def beside(name: str) -> Any:
    """Return a module that lies beside this folder; MkDocs runs hooks from anywhere."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return import_module(name)


def choose_a_method() -> str:
    """Return what `zd.advise` says of every task."""
    page: str = beside("bench.methods_page").page()
    return page


def reproduction() -> str:
    """Return the page of the full run of `make reproduce` that is kept."""
    module = beside("reproduce.report")
    page: str = module.report(json.loads((ROOT / module.RESULTS).read_text(encoding="utf-8")))
    return page


def gallery() -> str:
    """Return the scripts of examples/gallery, with what they say of themselves, and pictures."""
    lines = [
        "# Gallery",
        "",
        "Short scripts on public data that come with scikit-learn. Each ends in a picture, written",
        "into `gallery-output/`, or where `GALLERY` says; they run with every change. The data are",
        "public, so a picture may show the truth beside the release. Of your own data only the",
        "release may leave. More scripts, on made-up rows, are in [examples](../examples).",
        "",
    ]
    for script in sorted((ROOT / "examples" / "gallery").glob("*.py")):
        picture = f"images/gallery/{script.stem}.svg"
        if not (ROOT / "docs" / picture).exists():
            continue
        text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
        first = " ".join(text.split("\n\n")[0].split())
        title, _, said = first.partition(": ")
        lines += [f"## {title}", "", f"{said[:1].upper()}{said[1:]}", ""]
        lines += [*text.split("\n\n", 1)[1:], ""]
        lines += [
            f"`python` [examples/gallery/{script.name}](../examples/gallery/{script.name})",
            "",
        ]
        lines += [f"![{first}]({picture})", ""]
    return "\n".join(lines)


def paper_map() -> str:
    """Return where each statement of the paper is."""
    tables: str = beside("reproduce.paper_map").render()
    return tables


def tables_bench() -> str:
    """Return what the kept run of `bench/tables.py` printed."""
    text = (ROOT / "bench" / "results" / "tables.md").read_text(encoding="utf-8")
    return text.replace("### ", "#### ")


PAGES: dict[str, Callable[[], str]] = {
    "choose-a-method.md": choose_a_method,
    "gallery.md": gallery,
    "reproduction.md": reproduction,
}
PARTS: dict[str, Callable[[], str]] = {"map": paper_map, "tables bench": tables_bench}


def filled(text: str) -> str:
    """Return a page with its printed parts in the places of their marks."""
    return MARK.sub(lambda mark: PARTS[mark[1]]().strip(), text)
