"""The list of attacks in the docs names tests that exist, and every test of attacks is in it."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = (HERE.parents[1] / "docs" / "threat-model.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in HERE.parent.rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 20
    assert {name for name in named if f"def {name}(" not in sources} == set()
    files = set(re.findall(r"`(test_\w+\.py)`", PAGE))
    assert {name for name in files if not (HERE / name).is_file()} == set()
    elsewhere = set(re.findall(r"(tests/\w+(?:/\w+\.py)?)", PAGE))
    assert {name for name in elsewhere if not (HERE.parents[1] / name).exists()} == set()


def test_every_file_of_attacks_is_on_the_page() -> None:
    files = {path.name for path in HERE.glob("test_*.py")} - {Path(__file__).name}
    assert {name for name in files if f"`{name}`" not in PAGE} == set()
    known = (HERE / "test_known_failures_of_peers.py").read_text(encoding="utf-8")
    tests = re.findall(r"^def (test_\w+)\(", known, re.MULTILINE)
    assert {name for name in tests if f"`{name}`" not in PAGE} == set()
