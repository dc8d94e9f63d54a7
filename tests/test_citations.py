"""Every section that the code cites is a heading of docs/theory.md, and every theorem has its own.

What counts as a citation, in comments, docstrings and messages of `src`:

- a name with a shape of its own, anywhere: A6, A6.9, A1b, B2, C10.4 (a letter A to C and a
  number), T0, R2, S2, O1, O2, SS, WOR, R(v);
- a single letter, also with a digit, where a word says what it is: "theory R", "Theorem N",
  "Lemma E", "theorems C9 and N", "Corollary S2", also in a list after that word;
- one of the letters E, K, M, N, R, S, W in parentheses that hold nothing but such names: "(R)",
  "(C10.3, C3, R)".

Sections A1 to A14 are the errata; an item of one, such as A6.9, is cited by the section's heading.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from zerodelta.privacy.theorems import THEOREMS, anchor_of, heading_of

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))

SHAPED = r"(?:[ABC]\d{1,2}[a-z]?(?:\.\d+)?|T0|R2|S2|O[12]|SS|WOR|R\([ivx]+\))(?![\w²])"
LETTER, BRACKETED = r"[A-Z]\d?(?![\w(-])", r"[EKMNRSW](?![\w(-])"
NAME = rf"(?:{SHAPED}|{LETTER})"


def _list(letter: str) -> str:
    name = rf"(?:{SHAPED}|{letter})"
    return rf"{name}(?:(?:,| and| or|, and|, or)\s+{name})*"


WORD = r"(?:[Tt]heory|[Tt]heorems?|[Ll]emmas?|[Cc]orollary|[Cc]orollaries)"

CITATIONS = (
    re.compile(rf"(?<![\w.])({SHAPED})"),
    re.compile(rf"\b{WORD}\s+({_list(LETTER)})"),
    re.compile(rf"\(({_list(BRACKETED)})\)"),
)


FSTRING = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)  # from Python 3.12 on


def texts(source: str) -> Iterator[str]:
    """Yield all comments and strings of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING, FSTRING):
            yield token.string


def cited(text: str) -> set[str]:
    """Return the sections that a text cites."""
    lists = [found for pattern in CITATIONS for found in pattern.findall(text)]
    return {name for found in lists for name in re.findall(NAME, found)}


def sections(page: str) -> set[str]:
    """Return what the headings of a page begin with: "C10.4" of "### C10.4. Which norm"."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return set(
        re.findall(r"^#{2,4} ([A-Z][A-Z0-9]*(?:\.\d+)?(?:\([ivx]+\))?)\. ", text, re.MULTILINE)
    )


THEORY, ERRATA = sections("theory.md"), sections("errata.md")


def test_the_patterns_find_what_the_code_writes() -> None:
    for text, names in {
        "a channel (theory B1, B2, R(v), Theorem K, B4).": {"B1", "B2", "R(v)", "K", "B4"},
        "theorems C9 and N)": {"C9", "N"},
        "exact sums (C0, A14.4), and noise (R)": {"C0", "A14.4", "R"},
        "by Lemma WOR or R2": {"WOR", "R2"},
        "(theory A1b)": {"A1b"},
        "Theorem S's condition; Theorem W's radius": {"S", "W"},
        "theory C10.4.": {"C10.4"},
        "K clusters, N points, R² and x in R^d, ABC1, (R-squared)": set(),
    }.items():
        assert cited(text) == names, text


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT / "src")))
def test_every_section_that_the_code_cites_is_a_heading(file: Path) -> None:
    names = {name for text in texts(file.read_text(encoding="utf-8")) for name in cited(text)}
    missing = {
        name
        for name in names
        if (re.match(r"A\d+", name)[0] not in ERRATA if name[0] == "A" else name not in THEORY)  # type: ignore[index]
    }
    assert not missing, f"{sorted(missing)}: write their sections, or cite others"


def test_many_sections_are_cited() -> None:
    everything = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES)
    found = {name for text in texts(everything) for name in cited(text)}
    assert {"C0", "C1", "C2", "C7", "C8", "C10.3", "C10.6", "C10.7", "B3", "T0", "K", "W"} <= found


@pytest.mark.parametrize("label", sorted(THEOREMS))
def test_every_theorem_has_a_heading_with_its_section_and_label(label: str) -> None:
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    heading = heading_of(THEOREMS[label])
    assert heading.startswith(f"{THEOREMS[label].section}. ")
    assert label in heading
    assert len(re.findall(rf"^#+ {re.escape(heading)}$", theory, re.MULTILINE)) == 1
    slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    assert anchor_of(THEOREMS[label]) == f"docs/theory.md#{slug}"
