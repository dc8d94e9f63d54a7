"""Apply every mutant to a copy of the library, run its tests there, and report who survives.

`make mutants`, or ``python tests/mutants/run.py purify/`` for those whose name has that text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from mutants.catalog import MUTANTS, SOURCE, Mutant  # noqa: E402

WORKERS = 2
PATIENCE = 600
"""Seconds after which a mutant that runs for ever counts as noticed."""

FAILED, BROKEN = 1, 2
"""pytest's exit codes for a failed test, and for test files that cannot even be imported."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a mutant: trouble is empty if its tests noticed it."""

    mutant: Mutant
    trouble: str
    noticed_by: str = ""


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def stale(mutant: Mutant) -> str:
    """Return why a mutant does not fit the library any more; empty if it does."""
    count = len(mutant.places)
    if count != 1:
        where = ", ".join(sorted({*mutant.places}))
        return f"stale: `old` occurs {count} times, not once ({where}); copy the line as it is now"
    if mutant.old == mutant.new:
        return "stale: it changes nothing"
    for test in mutant.tests:
        file, _, name = test.partition("[")[0].partition("::")
        if f"def {name}(" not in _text(ROOT / "tests" / file):
            return f"stale: there is no test {test}; name the test that notices it now"
    return "" if mutant.tests else "no test is named"


def run_tests(source: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run the tests against a copy of the library; return the exit code and what was printed."""
    paths = os.pathsep.join([str(source), str(ROOT / "tests")])
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    try:
        done = subprocess.run(
            [*command, *(f"tests/{test}" for test in tests)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return FAILED, f"FAILED after {PATIENCE} seconds"
    return done.returncode, done.stdout + done.stderr


def judge(mutant: Mutant, copy: Path) -> Verdict:
    """Apply the mutant to the copy, run its tests, and take it back."""
    path = copy / "zerodelta" / mutant.places[0]
    text = path.read_text(encoding="utf-8")
    try:
        _write(path, text.replace(mutant.old, mutant.new))
        code, printed = run_tests(copy, mutant.tests)
    finally:
        _write(path, text)
    told = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if code in (FAILED, BROKEN):
        return Verdict(mutant=mutant, trouble="", noticed_by=told[0] if told else "")
    trouble = "survives" if code == 0 else f"pytest ended with {code}:\n{printed}"
    return Verdict(mutant=mutant, trouble=trouble)


def _write(path: Path, text: str) -> None:
    """Write a module; bytecode of the text before it may have the same size and second."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def run(mutants: Sequence[Mutant], workers: int = WORKERS) -> list[Verdict]:
    """Return a verdict on every mutant, after the tests passed without any."""
    fresh = [mutant for mutant in mutants if not stale(mutant)]
    verdicts = [Verdict(mutant=mutant, trouble=why) for mutant in mutants if (why := stale(mutant))]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copy = Path(folder) / str(number)
            shutil.copytree(
                SOURCE, copy / "zerodelta", ignore=shutil.ignore_patterns("__pycache__")
            )
            copies.put(copy)

        def on_a_copy(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return judge(mutant, copy)
            finally:
                copies.put(copy)

        unmutated = Path(folder) / "0"
        tests = sorted({test for mutant in fresh for test in mutant.tests})
        code, printed = run_tests(unmutated, tests) if tests else (0, "")
        if code != 0:
            raise SystemExit(f"the tests fail without any mutant:\n{printed}")
        return verdicts + list(pool.map(on_a_copy, fresh))


def main(chosen: str = "") -> int:
    """Print the verdicts; return 1 if a mutant survives or is stale."""
    verdicts = run([mutant for mutant in MUTANTS if chosen in mutant.name])
    for verdict in verdicts:
        print(f"{verdict.trouble or 'noticed'}: {verdict.mutant.name}")
        if verdict.noticed_by:
            print(f"    {verdict.noticed_by[:160]}")
    troubled = [verdict for verdict in verdicts if verdict.trouble]
    print(f"{len(verdicts) - len(troubled)} of {len(verdicts)} mutants were noticed")
    return 1 if troubled or not verdicts else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
