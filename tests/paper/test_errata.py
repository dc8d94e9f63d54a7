"""docs/errata.md: each entry has five parts, a demonstration that runs, and a fix that exists."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from reproduce.paper_map import ENTRIES

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
NUMBERS = tuple(f"A{number}" for number in range(1, 15))
HEADINGS = ("The paper", "What goes wrong", "Class", "Demonstration", "Fix")
CLASSES = {"break", "gap", "proof", "typo", "convention", "advice"}
SPLIT = re.split(r"^## (A\d+)\. .*$", TEXT, flags=re.MULTILINE)
SECTIONS = dict(zip(SPLIT[1::2], SPLIT[2::2], strict=True))
TABLE = dict(re.findall(r"^\| \[(A\d+)\]\([^)]*\) \| (\w+) \|", SPLIT[0], flags=re.MULTILINE))
BLOCK = re.compile(r"```python\n(.*?)```\n```\n(.*?)```", re.DOTALL)
CITED = re.compile(r"\bA(1[0-4]|[1-9])([a-z]?)(?:\.(\d+))?\b")


def parts(number: str) -> dict[str, str]:
    """Return the parts of an entry by their headings, in order."""
    found = re.split(r"^\*\*([A-Z][a-z ]+)\.\*\*", SECTIONS[number], flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def shown(number: str) -> str:
    """Return what the demonstration of an entry prints, as the page says."""
    ((_, output),) = BLOCK.findall(SECTIONS[number])
    return str(output)


def test_every_entry_has_its_section_and_its_line_in_the_table() -> None:
    assert tuple(SECTIONS) == NUMBERS
    assert tuple(TABLE) == NUMBERS


def test_the_page_begins_with_what_is_right() -> None:
    assert SPLIT[0].index("**What is right.**") < SPLIT[0].index("**What to mind.**")
    algorithms = [entry for entry in ENTRIES if entry.kind == "algorithm"]
    assert len(algorithms) == 16
    assert "All 16 algorithms" in SPLIT[0]
    assert all(entry.targets and entry.tests for entry in algorithms)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_entry_has_the_same_five_parts(number: str) -> None:
    found = parts(number)
    assert tuple(found) == HEADINGS
    assert number == "A14" or re.search(r'"[^"]{8,}"', found["The paper"]), "quote the sentence"
    assert "```" not in "".join(text for name, text in found.items() if name != "Demonstration")
    files = re.findall(r"\]\(\.\./(src/[\w/.]+)\)", found["Fix"])
    assert files
    assert all((ROOT / file).is_file() for file in files)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_class_is_the_one_in_the_table_and_defined(number: str) -> None:
    match = re.fullmatch(r" (\w+)(?: \(A1b\))?", parts(number)["Class"].strip("\n"))
    assert match is not None
    assert match[1] == TABLE[number]
    assert match[1] in CLASSES
    assert set(re.findall(r"^- \*\*(\w+)\*\*:", SPLIT[0], re.MULTILINE)) == CLASSES


@pytest.mark.parametrize("number", NUMBERS)
def test_the_demonstration_prints_what_is_shown(number: str) -> None:
    blocks = BLOCK.findall(SECTIONS[number])
    assert len(blocks) == SECTIONS[number].count("```python") == 1
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"docs/errata.md {number}", "exec"), {"__name__": number})
        assert printed.getvalue() == output


@pytest.mark.parametrize("number", NUMBERS)
def test_decimals_in_the_text_are_printed_by_the_demonstration(number: str) -> None:
    text = "".join(part for name, part in parts(number).items() if name != "Demonstration")
    for decimal in re.findall(r"(?<![\w.])\d+\.\d+", text):
        assert decimal in shown(number), decimal


def test_only_a_promise_that_fails_is_a_break() -> None:
    breaks = {number for number, kind in TABLE.items() if kind == "break"}
    assert breaks == {"A1", "A7", "A8"}
    for number in breaks:
        lines = re.findall(r"promised (\d+), loss (?:at least )?(\d+(?:\.\d+)?)", shown(number))
        assert any(float(loss) > int(promised) for promised, loss in lines)
    assert {number for number in NUMBERS if "(break)" in SECTIONS[number]} <= breaks


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        ("A1", ("triangle: promised 2, loss at least 28", "Line 2:  loss 0.19, pure: True")),
        ("A2", ("1/min Γ = 1.1292", "q = 2, d = 1: 1.1284")),
        ("A5", ("clear: loss 5.06, pure 2-DP: False", "pure 2-DP: True", "pure 1-DP: True")),
        ("A7", ("promised 3, loss 80", "promised 2, loss 1.96, pure: True")),
        ("A8", ("d = 9: promised 3, loss at least 2.99", "d = 16: promised 3, loss at least 3.99")),
        ("A9", ("5.3333", "ln δ = -50: truth -50.9, holds: True", "from ln 1/δ = 57 on")),
        ("A10", ("exp(nε₀·score/2): loss 0.98, pure: True",)),
        ("A12", ("ε = 0.1: the chain is valid from d = 6", "ε = 1: the chain is valid from d = 3")),
        ("A14", ("Box-Muller ends at 8.57σ, NumPy's ziggurat at 12.23σ",)),
    ],
)
def test_what_the_classes_rest_on_is_shown(number: str, lines: tuple[str, ...]) -> None:
    for line in lines:
        assert line in shown(number)


def cited() -> list[tuple[str, str]]:
    """Every erratum that a file of the package names, with the file."""
    found = {
        (match[0], str(path.relative_to(ROOT)))
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "theory A" in line
        for match in CITED.finditer(line)
    }
    return sorted(found)


def test_what_the_code_cites_is_in_the_errata() -> None:
    assert len(cited()) > 30
    for name, path in cited():
        match = CITED.fullmatch(name)
        assert match is not None
        section = SECTIONS[f"A{match[1]}"]
        if match[2]:
            assert f"**A{match[1]}{match[2]}**" in section, f"{path} cites {name}"
        if match[3]:
            assert re.search(rf"^{match[3]}\. ", section, re.MULTILINE), f"{path} cites {name}"
