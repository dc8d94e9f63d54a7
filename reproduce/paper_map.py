"""Map each statement of the paper to its file, function and test (docs/paper.md).

The entries are in `paper_map.toml`; the site prints them into docs/paper.md, and `python -m
reproduce.paper_map` into a terminal. Tests check that every algorithm, theorem, corollary and lemma
of the paper is there, and that every target exists.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = ["ENTRIES", "Entry", "find", "render"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A statement of the paper and its home here.

    A target is ``module:name``, or ``docs/page.md#anchor`` for what is only used in proofs; a test
    is ``tests/path.py::name``. "unlabeled: …" stands for what has no label in the paper.
    """

    section: str
    label: str
    kind: str
    statement: str
    targets: list[str]
    tests: list[str]
    errata: tuple[str, ...] = ()


ENTRIES: tuple[Entry, ...] = tuple(
    Entry(**entry)
    for entry in tomllib.loads(
        Path(__file__).with_name("paper_map.toml").read_text(encoding="utf-8")
    )["entry"]
)

_ERRATA = {
    "A1": "a1-algorithm-1-which-ball",
    "A2": "a2-the-volume-of-a-ball",
    "A3": "a3-theorem-1-accuracy",
    "A4": "a4-algorithm-2-the-cube-is-not-an-l1-ball",
    "A5": "a5-mode-the-symbol-for-no-answer",
    "A6": "a6-dp-sgd",
    "A7": "a7-propose-test-release-the-tail",
    "A8": "a8-local-sensitivity-in-the-wrong-norm",
    "A9": "a9-adassp-add-or-remove-is-not-replace",
    "A10": "a10-mwem-the-usual-2",
    "A11": "a11-frank-wolfe-the-other-2",
    "A12": "a12-appendices-b-c-and-d",
    "A13": "a13-lower-bounds",
    "A14": "a14-for-implementers",
}
"""Sections of docs/errata.md."""


def find(label: str) -> Entry | None:
    """Return what the map says of a label of the paper, None if it is not there.

    >>> find("alg:main").targets[0]
    'zerodelta.paper.algorithm_01_02:purify_ball'
    """
    return next((entry for entry in ENTRIES if entry.label == label), None)


def render() -> str:
    """Return the tables of the map, as a part of docs/paper.md."""
    parts = []
    for title, group in groupby(ENTRIES, key=lambda entry: entry.section):
        parts.append(f"### {title}\n\n| label | statement | here | tested by | errata |\n")
        parts[-1] += "|---|---|---|---|---|\n" + "\n".join(map(_row, group)) + "\n"
    return "\n".join(parts)


def _row(entry: Entry) -> str:
    cells = (
        f"`{entry.label}`" if not entry.label.startswith("unlabeled") else entry.label,
        entry.statement.replace("|", "\\|").replace("*", "\\*"),
        "<br>".join(_homes(entry.targets)),
        "<br>".join(map(_test, entry.tests)),
        ", ".join(f"[{number}](errata.md#{_ERRATA[number]})" for number in entry.errata),
    )
    return "| " + " | ".join(cells) + " |"


def _homes(targets: list[str]) -> list[str]:
    """Return one line for each file, with the names in it."""
    names: dict[str, list[str]] = {}
    for target in targets:
        module, _, name = target.partition(":")
        names.setdefault(module, []).append(name)
    return [_home(module, targets_in_module) for module, targets_in_module in names.items()]


def _home(module: str, names: list[str]) -> str:
    if module.startswith("docs/"):
        page = module.removeprefix("docs/")
        return f"[{page.partition('#')[0]}]({page})"
    path = module.replace(".", "/")
    root = "../" if module.startswith("reproduce.") else "../src/"
    listed = ", ".join(f"`{name}`" for name in names)
    return f"[{path.removeprefix('zerodelta/')}.py]({root}{path}.py): {listed}"


def _test(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name}](../{path})"


if __name__ == "__main__":
    sys.stdout.write(render())
