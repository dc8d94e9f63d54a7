"""Run the completeness tests, then the tests that reach what has changed, nearest first.

`python tests/quick.py [REF] [--seconds 60]` compares the working tree with a commit, by default
HEAD. Completeness is run to its end, however long it takes; then the clock starts. A test reaches a
file that it imports, or that what it imports imports; the nearest import it directly. No test file
has more than an eighth of the time. What was run is told, and what was not.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = ROOT / "tests" / "completeness"
SECONDS = 60
_PARTS = 8
"""A test file has at most this part of the time."""
_MOST_FILES, _MOST_TOLD = 40, 10
"""Reading a test file takes time, too."""


def changed(ref: str) -> set[Path]:
    """Return the files that differ from a commit, and those that git does not know yet."""
    diff = ["git", "diff", "--name-only", "--relative", ref]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    lines = [
        line
        for command in (diff, new)
        for line in subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    ]
    return {ROOT / line for line in lines}


class Graph:
    """Which files of the package and of the tests import which."""

    def __init__(self, root: Path = ROOT) -> None:
        self._modules: dict[str, Path] = {}
        for folder in (root / "src", root / "tests"):
            for path in sorted(folder.rglob("*.py")):
                parts = path.relative_to(folder).with_suffix("").parts
                name = ".".join(part for part in parts if part != "__init__")
                self._modules[name] = path
        self._trees = {
            name: ast.parse(path.read_text(encoding="utf-8"))
            for name, path in self._modules.items()
        }
        self._sources = {name: dict(_imported(tree)) for name, tree in self._trees.items()}
        self.imports = {
            path: {self._modules[other] for other in self._used(name) if other != name}
            for name, path in self._modules.items()
        }

    def distances(self, files: Iterable[Path]) -> dict[Path, int]:
        """Return how many imports lead from each file to the nearest of these."""
        importers: dict[Path, set[Path]] = {path: set() for path in self.imports}
        for path, others in self.imports.items():
            for other in others:
                importers[other].add(path)
        found = {path: 0 for path in files if path in importers}
        edge = list(found)
        while edge:
            following = []
            for path in edge:
                for importer in importers[path] - found.keys():
                    found[importer] = found[path] + 1
                    following.append(importer)
            edge = following
        return found

    def _used(self, name: str) -> set[str]:
        aliases = self._sources[name]
        package = {alias for alias, source in aliases.items() if source == "zerodelta"}
        sources = [source for alias, source in aliases.items() if alias not in package]
        for dotted in _dotted_names(self._trees[name]):
            first, _, rest = dotted.partition(".")
            if first in package:  # `zd.mean` is the file of the mean, `zd` alone the whole package
                sources.append(f"zerodelta.{rest}".rstrip("."))
        return {self._home(source) for source in sources} & self._modules.keys()

    def _home(self, dotted: str, steps: int = 9) -> str:
        """Return the module in which a name is defined that others may hand on."""
        if dotted in self._modules or steps == 0:
            return dotted
        module, _, name = dotted.rpartition(".")
        if not module:
            return ""
        if module not in self._modules:
            return self._home(module, steps - 1)
        source = self._sources[module].get(name)
        return module if source is None else self._home(source, steps - 1)


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what each imported name is called here, and where it comes from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted_names(tree: ast.AST) -> set[str]:
    """Return all `a` and `a.b.c`, without the beginnings of longer ones."""
    found: dict[int, str] = {}
    for node in ast.walk(tree):  # outer nodes first
        if isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in found:
            parts, inner = [], node
            while isinstance(inner, ast.Attribute):
                found[id(inner)] = ""
                parts.append(inner.attr)
                inner = inner.value  # type: ignore[assignment]
            found[id(inner)] = ""
            if isinstance(inner, ast.Name):
                found[id(node)] = ".".join([inner.id, *reversed(parts)])
    return set(found.values()) - {""}


def chosen(files: set[Path], graph: Graph) -> list[Path]:
    """Return the tests that reach one of the files: nearest first, then those of its room.

    Of several those that import little come first: they are about it. Files of the package that
    have changed are run themselves: their examples are tests.
    """
    distances = graph.distances(files)
    rooms = {path.parent.name for path in files}
    tests = [
        path
        for path in distances
        if path.name.startswith("test_") or (path in files and path.is_relative_to(ROOT / "src"))
    ]
    return sorted(
        tests,
        key=lambda path: (distances[path], path.parent.name not in rooms, len(graph.imports[path])),
    )


class Clock:
    """Ends a run when its time is up, and a file when it has had its part.

    It starts with the first test that is not about completeness.
    """

    def __init__(self, seconds: float, always: Path = ALWAYS) -> None:
        self._seconds, self._always = seconds, always
        self._end: float | None = None
        self._spent: Counter[Path] = Counter()
        self._unfinished: set[str] | None = None
        self.failed = self.is_up = False
        self.started: list[Path] = []
        self.cut: set[Path] = set()

    @property
    def finished(self) -> bool:
        """Whether every completeness test was run to its end."""
        return self._unfinished == set() and bool(self.started)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which tests there are."""
        self._unfinished = {item.nodeid for item in session.items if self._is_always(item.path)}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember a file that cannot be imported: nothing is run then."""
        self.failed |= report.failed

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Pass over what is left of a file that has had its part."""
        if item.path not in self.started:
            self.started.append(item.path)
        if self._is_always(item.path):
            return
        if self._end is None:
            self._end = time.monotonic() + self._seconds
        if self._spent[item.path] > self._seconds / _PARTS:
            self.cut.add(item.path)
            pytest.skip("this file has had its part of the time")

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Count the time of each file."""
        self._spent[item.path] += call.duration  # type: ignore[assignment]
        if self._end is not None and time.monotonic() > self._end:
            self.is_up = True
            item.session.shouldstop = "time is up"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember failures: a run whose time is up has another exit code."""
        self.failed |= report.failed
        if report.when == "teardown" and self._unfinished is not None:
            self._unfinished.discard(report.nodeid)

    def exit_code(self, code: int) -> int:
        """Return 0 if nothing failed, completeness was finished and only the clock cut the rest."""
        as_meant = code == pytest.ExitCode.OK or (
            code == pytest.ExitCode.INTERRUPTED and self.is_up
        )
        return int(self.failed or not as_meant or not self.finished)

    def _is_always(self, path: Path) -> bool:
        return self._always in path.parents


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ref", nargs="?", default="HEAD")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    clock = Clock(options.seconds)
    tests = [path for path in chosen(changed(options.ref), Graph()) if ALWAYS not in path.parents]
    code = pytest.main([str(ALWAYS), *map(str, tests[:_MOST_FILES])], plugins=[clock])
    ran = [path for path in clock.started if ALWAYS not in path.parents]
    left = [path for path in tests if path not in ran]
    print("completeness was run to its end" if clock.finished else "completeness was NOT finished")
    print(f"run: {len(ran)} of {len(tests)} files that reach what has changed")
    for told, paths in (
        ("in full or to the end of the time", [path for path in ran if path not in clock.cut]),
        ("in part", sorted(clock.cut)),
        ("not run", left[:_MOST_TOLD]),
    ):
        if paths:
            print(f"{told}:", *(path.relative_to(ROOT) for path in paths))
    if len(left) > _MOST_TOLD:
        print(f"nor {len(left) - _MOST_TOLD} more")
    return clock.exit_code(code)


if __name__ == "__main__":
    sys.exit(main())
