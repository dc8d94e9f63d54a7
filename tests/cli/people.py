"""A small file of people with its schema, and a command run on it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from zerodelta.cli import app

ROWS = 400
PLANTED = 123457.25
"""The income of one person, which nothing may show."""

SCHEMA = """\
name = "people"

[columns]
age = {number = [0, 120], integer = true, missing = "none"}
income = {number = [0, 200000], missing = "none"}
city = {category = ["oslo", "rome"]}
member = {boolean = true}
surname = {text = 5, alphabet = "abcdefghijklmnopqrstuvwxyz"}
anna = {number = [0, 1], missing = "none"}
bob = {number = [0, 1], missing = "none"}
carla = {number = [0, 1], missing = "none"}
"""


def write_people(folder: Path) -> Path:
    """Write people.csv and people.toml; return the folder."""
    draw = random.Random(7)
    lines = ["age,income,city,member,surname,anna,bob,carla"]
    for row in range(ROWS):
        income = PLANTED if row == 5 else draw.randrange(200_000)
        lines.append(
            f"{draw.randrange(100)},{income},{draw.choice(['oslo', 'rome'])},{draw.randrange(2)},"
            f"{draw.choice(['smith', 'lee'])},{draw.randrange(2)},{draw.randrange(2)},1"
        )
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")
    return folder


def run(*arguments: Any, stdin: str | None = None) -> tuple[int, str]:
    """Run a command; return its exit code, and what it printed to both streams."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def asked(folder: Path, *words: str) -> list[str]:
    """Return the words of a short form on the people of a folder, at ε = 1/4."""
    task, _, *rest = words
    schema = str(folder / "people.toml")
    return [task, str(folder / "people.csv"), *rest, "--epsilon", "1/4", "--schema", schema]
