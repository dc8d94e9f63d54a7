"""Write the rooms of the package with their sizes; trace the files that a call passes, in order.

`make architecture` writes the table of rooms into docs/architecture.md, between its two marks, and
prints the traces. "First time" is a call in a process that has only made it with another ε before
(so that modules are imported); "again" is the same call once more: proofs, calibrations and
forecasts of the same public numbers are remembered. A name given as an argument, such as `by city`,
prints the functions of that call, too.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.sklearn import LogisticRegression

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(zd.__file__).resolve().parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- written by `make architecture` -->", "<!-- end of the rooms -->"

ROWS = np.random.default_rng(0).uniform(size=(1000, 3))
LABELS = (ROWS[:, 0] > 0.5).astype(int)


def mean(epsilon: int) -> None:
    """`zd.mean(rows, bounds=(0, 1), epsilon=1)`."""
    zd.mean(ROWS, bounds=(0, 1), epsilon=epsilon)


def by_city(epsilon: int) -> None:
    """`zd.mean(zd.open("people.csv", columns=…), "age", by="city", epsilon=1)`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        with path.open("w", newline="") as file:
            write = csv.writer(file)
            write.writerow(["city", "age"])
            write.writerows([["oslo", "rome"][i % 2], i % 100] for i in range(3000))
        columns = {"city": zd.category(["oslo", "rome"]), "age": zd.number(0, 120)}
        zd.mean(zd.open(path, columns=columns), "age", by="city", epsilon=epsilon)


def study(epsilon: int) -> None:
    """`zd.Study(rows, …, functions=False).run(program)` with one mean."""
    planned = zd.Study(
        ROWS, epsilon=epsilon, publish=zd.Finite(4), rounds=10, bounds=(0, 1), functions=False
    )
    planned.run(lambda s: int(s.mean(0) > 0.5))


def fit(epsilon: int) -> None:
    """`LogisticRegression(epsilon=1, data_norm=2, classes=[0, 1]).fit(X, y)`."""
    LogisticRegression(epsilon=epsilon, data_norm=2, classes=[0, 1]).fit(ROWS, LABELS)


def purify(epsilon: int) -> None:
    """`zd.purify(3, space=zd.Finite(16), claim=zd.GaussianDP("0.2"), epsilon=1)`."""
    zd.purify(3, space=zd.Finite(16), claim=zd.GaussianDP("0.2"), epsilon=epsilon)


def queries(epsilon: int) -> None:
    """`zd.answer_queries(rows, domain={0: 2, 1: 2, 2: 3}, epsilon=1)`."""
    codes = (ROWS * [2, 2, 3]).astype(int)
    zd.answer_queries(codes, domain={0: 2, 1: 2, 2: 3}, epsilon=epsilon)


JOBS: dict[str, Callable[[int], None]] = {
    "mean": mean,
    "by city": by_city,
    "study": study,
    "fit": fit,
    "purify": purify,
    "queries": queries,
}


def trace(job: Callable[[int], None]) -> tuple[list[tuple[str, str]], int]:
    """Return (file, function) in the order in which they are first called, and all calls."""
    entered: dict[tuple[str, str], None] = {}
    calls = 0
    prefix = str(PACKAGE) + "/"

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(prefix):
            calls += 1
            entered.setdefault((name.removeprefix(prefix), frame.f_code.co_name))

    sys.setprofile(watch)
    try:
        job(1)
    finally:
        sys.setprofile(None)
    return list(entered), calls


def files(entered: list[tuple[str, str]]) -> list[str]:
    """Return the files, each once."""
    return list(dict.fromkeys(file for file, _ in entered))


def sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=\.) ", " ".join(text.split("\n\n")[0].split()))[0]


def rooms() -> list[tuple[str, str, int, int]]:
    """Return each room with what it is for, its files and its lines, the highest layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers, *_ = settings["tool"]["importlinter"]["contracts"]
    table = []
    for name in " | ".join(layers["layers"]).split(" | "):
        folder = PACKAGE / name
        inside = sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{name}.py"]
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in inside)
        table.append(
            (
                name,
                sentence(folder / "__init__.py" if folder.is_dir() else inside[0]),
                len(inside),
                lines,
            )
        )
    return table


def written() -> str:
    """Return the part of the page that is written: rooms, what they are for, their sizes."""
    lines = [BEGIN, "", "| room | what it is for | files | lines, about |", "|---|---|---|---|"]
    for name, purpose, count, length in rooms():
        path = f"{name}" if (PACKAGE / name).is_dir() else f"{name}.py"
        about = round(length, -2) or length
        lines.append(f"| [{name}](../src/zerodelta/{path}) | {purpose} | {count} | {about} |")
    return "\n".join([*lines, "", END])


def traces(wanted: list[str]) -> list[str]:
    """Return how many files each call passes, and the functions of those that are wanted."""
    for job in JOBS.values():
        job(2)
    lines = []
    for name, job in JOBS.items():
        (first, calls), (again, fewer) = trace(job), trace(job)
        lines.append(
            f"{name}: {len(files(first))} files, {calls} calls; "
            f"again {len(files(again))} files, {fewer} calls. {job.__doc__}"
        )
        if name in wanted:
            lines += [f"  {file}: {function}" for file, function in first if function[0] != "<"]
    return lines


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + written() + after, encoding="utf-8")
    sys.stdout.write("\n".join(traces(sys.argv[1:])) + "\n")


if __name__ == "__main__":
    main()
