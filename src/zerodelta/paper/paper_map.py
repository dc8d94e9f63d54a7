"""Where each statement of the paper is: label, what it says, file and function, test.

`render` writes docs/paper-map.md; a test checks that the page is this, that every algorithm,
theorem, corollary and lemma of the paper is here, and that every target and test exists.
"""

from __future__ import annotations

from zerodelta.paper.map_algorithms import ALGORITHMS, EXHIBITS
from zerodelta.paper.map_entry import Entry
from zerodelta.paper.map_lemmas import LEMMAS
from zerodelta.paper.map_results import COROLLARIES, THEOREMS

__all__ = ["ENTRIES", "find", "render"]

_SECTIONS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("Algorithms", ALGORITHMS),
    ("Theorems", THEOREMS),
    ("Corollaries", COROLLARIES),
    ("Lemmas", LEMMAS),
    ("Appendices, figures and tables", EXHIBITS),
)

ENTRIES: tuple[Entry, ...] = tuple(entry for _, group in _SECTIONS for entry in group)

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
    "A10": "a10-mwem-the-missing-2",
    "A11": "a11-frank-wolfe-the-other-2",
    "A12": "a12-appendices-c-and-d",
    "A13": "a13-lower-bounds",
    "A14": "a14-what-the-paper-never-says",
}
"""Sections of docs/errata.md."""

_HEAD = """\
# Paper map

Where to find each statement of *Purifying Approximate Differential Privacy with Randomized
Post-processing*, by its label in the paper's source. Statements are as printed, in a line; where
they are wrong, the last column links to what we do instead. Generated from
[paper_map.py](../src/zerodelta/paper/paper_map.py) by
`python -m zerodelta.paper.paper_map > docs/paper-map.md`; a test checks that every target exists.
"""


def find(label: str) -> Entry | None:
    """Return what the map says of a label of the paper, None if it is not there.

    >>> find("alg:main").targets[0]
    'zerodelta.paper.algorithm_01:purify_ball'
    """
    return next((entry for entry in ENTRIES if entry.label == label), None)


def render() -> str:
    """Return docs/paper-map.md."""
    parts = [_HEAD]
    for title, group in _SECTIONS:
        parts.append(f"## {title}\n\n| label | statement | here | tested by | errata |\n")
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


def _homes(targets: tuple[str, ...]) -> list[str]:
    """Return one line for each file, with the names in it."""
    names: dict[str, list[str]] = {}
    for target in targets:
        module, _, name = target.partition(":")
        names.setdefault(module, []).append(name)
    return [_home(module, found) for module, found in names.items()]


def _home(module: str, names: list[str]) -> str:
    if module.startswith("docs/"):
        page = module.removeprefix("docs/")
        return f"[{page.partition('#')[0]}]({page})"
    path = module.replace(".", "/")
    listed = ", ".join(f"`{name}`" for name in names)
    return f"[{path.removeprefix('zerodelta/')}.py](../src/{path}.py): {listed}"


def _test(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name}](../{path})"


if __name__ == "__main__":
    import sys

    sys.stdout.write(render())
