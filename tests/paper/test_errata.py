"""docs/errata.md: each error has a demonstration that runs, and every number that is cited."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
NUMBERS = tuple(f"A{number}" for number in range(1, 15))
PARTS = re.split(r"^## (A\d+)\. .*$", TEXT, flags=re.MULTILINE)
SECTIONS = dict(zip(PARTS[1::2], PARTS[2::2], strict=True))
BLOCK = re.compile(r"```python\n(.*?)```\n```\n(.*?)```", re.DOTALL)
CITED = re.compile(r"\bA(1[0-4]|[1-9])([a-z]?)(?:\.(\d+))?\b")


def test_every_error_has_its_section_and_its_line_in_the_table() -> None:
    assert tuple(SECTIONS) == NUMBERS
    assert tuple(re.findall(r"^\| \[(A\d+)\]", PARTS[0], flags=re.MULTILINE)) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_the_demonstration_prints_what_is_shown(number: str) -> None:
    blocks = BLOCK.findall(SECTIONS[number])
    assert len(blocks) == SECTIONS[number].count("```python") == 1
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"docs/errata.md {number}", "exec"), {"__name__": number})
        assert printed.getvalue() == shown


BROKEN = ("A1", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "A12", "A13", "A14")


@pytest.mark.parametrize("number", BROKEN)
def test_the_printed_version_fails_and_ours_holds_in_what_is_shown(number: str) -> None:
    ((_, shown),) = BLOCK.findall(SECTIONS[number])
    fails = r": False|broken: True|Error|refuses|promised 3, loss at 1.1 is 80"
    holds = r": True|n >= 5\n"
    assert re.search(fails, shown)
    assert re.search(holds, shown)


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
