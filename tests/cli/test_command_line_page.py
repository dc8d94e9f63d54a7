"""docs/command-line.md: its commands run in their order, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli.people import run
from zerodelta.cli.refusals import ExitCode
from zerodelta.tasks.registry import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:`([\w.]+)`:\n\n)?^```(toml|console)\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_page_runs_from_top_to_bottom(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(people)
    Path("people.toml").unlink()
    commands = 0
    for name, kind, text in BLOCKS:
        if kind == "toml":
            Path(name).write_text(text, encoding="utf-8")
            continue
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            line, _, shown = part.partition("\n")
            code, output = run(*shlex.split(line)[1:])
            assert code == 0, (line, output)
            assert not shown or output == shown, line
            commands += 1
    assert commands == 10
    assert Path("report.html").exists()


def test_every_command_and_exit_code_is_on_the_page() -> None:
    for name in COMMANDS:
        assert f"`{name}`" in PAGE
    for code in ExitCode:
        assert f"| {int(code)} |" in PAGE
