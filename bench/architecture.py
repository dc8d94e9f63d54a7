"""Trace five calls through the library: the files that each passes, in order, and how often.

`make architecture` writes what it sees into docs/architecture.md, between its two marks. Calls are
those of Python functions of this package. "First time" is a call in a process that has only made it
with another ε before (so that modules are imported), "again" is the same call once more: proofs,
calibrations and forecasts of the same public numbers are remembered.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.sklearn import LogisticRegression

PACKAGE = Path(zd.__file__).resolve().parent
PAGE = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"
BEGIN, END = "<!-- traced by `make architecture` -->", "<!-- end of the trace -->"

ROWS = np.random.default_rng(0).uniform(size=(1000, 3))
LABELS = (ROWS[:, 0] > 0.5).astype(int)


def mean(epsilon: int) -> None:
    """`zd.mean(rows, bounds=(0, 1), epsilon=1)`."""
    zd.mean(ROWS, bounds=(0, 1), epsilon=epsilon)


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


def tables(epsilon: int) -> None:
    """`zd.answer_queries(rows, domain={0: 2, 1: 2, 2: 3}, epsilon=1)`."""
    codes = (ROWS * [2, 2, 3]).astype(int)
    zd.answer_queries(codes, domain={0: 2, 1: 2, 2: 3}, epsilon=epsilon)


JOBS: dict[str, Callable[[int], None]] = {
    "zd.mean": mean,
    "Study.run": study,
    "LogisticRegression.fit": fit,
    "zd.purify": purify,
    "zd.answer_queries": tables,
}
FOLLOWED = ("zd.mean", "Study.run", "LogisticRegression.fit")


def trace(job: Callable[[int], None]) -> tuple[list[str], int]:
    """Return the files in the order in which they are first called, and the number of calls."""
    files: dict[str, None] = {}
    calls = 0
    prefix = str(PACKAGE) + "/"

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(prefix):
            calls += 1
            files.setdefault(name.removeprefix(prefix))

    sys.setprofile(watch)
    try:
        job(1)
    finally:
        sys.setprofile(None)
    return list(files), calls


def _purpose(file: str) -> str:
    """Return the first sentence of a file's docstring."""
    text = (PACKAGE / file).read_text(encoding="utf-8").split('"""')[1]
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def written() -> str:
    """Return the traced part of the page."""
    for job in JOBS.values():
        job(2)
    first = {name: trace(job) for name, job in JOBS.items()}
    again = {name: trace(job) for name, job in JOBS.items()}
    lines = [BEGIN, "", "| call | files: first time / again | calls: first time / again |"]
    lines += ["|---|---|---|"]
    for name, (files, calls) in first.items():
        fewer, less = again[name]
        lines.append(f"| `{name}` | {len(files)} / {len(fewer)} | {calls} / {less} |")
    for name in FOLLOWED:
        lines += ["", f"### {name}", "", f"{JOBS[name].__doc__}", ""]
        lines += [
            f"{i}. [{file}](../src/zerodelta/{file}): {_purpose(file)}."
            for i, file in enumerate(first[name][0], 1)
        ]
    return "\n".join([*lines, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put it into docs/architecture.md")
    text = written()
    if not parser.parse_args().write:
        sys.stdout.write(text + "\n")
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + text + after, encoding="utf-8")


if __name__ == "__main__":
    main()
