"""All mutants: deliberate mistakes in the library, and the tests that must notice them.

They are the rows of `catalog.txt`, whose first lines say how to read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "zerodelta"
TABLE = Path(__file__).with_name("catalog.txt")
FILES = {
    path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(SOURCE.rglob("*"))
    if path.is_file() and path.suffix != ".pyc"
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """The only occurrence of `old` in the library becomes `new`.

    `tests` are pytest node ids below tests/; at least one of them must then fail.
    """

    old: str
    new: str
    tests: tuple[str, ...]
    why: str = ""

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The files below src/zerodelta that hold `old`, once for each time."""
        counts = {file: text.count(self.old) for file, text in FILES.items()}
        return tuple(file for file, count in counts.items() for _ in range(count))

    @property
    def name(self) -> str:
        """The file and the first line of what it becomes."""
        place = self.places[0] if self.places else "nowhere"
        return f"{place}: {self.old.splitlines()[0].strip()} -> {self.new.strip()}"


def rows(table: str) -> Iterator[Mutant]:
    """Read a table: a line without columns names the test file of those below it."""
    file = ""
    for line in table.splitlines():
        old, *cells = line.replace("⏎", "\n").split(" ¦ ")
        if line.startswith("#"):
            continue
        if not cells:
            file = line
            continue
        new, names, *why = cells
        tests = (name if "::" in name else f"{file}::{name}" for name in names.split())
        yield Mutant(old=old, new=new, tests=tuple(tests), why=" ¦ ".join(why))


MUTANTS = tuple(rows(TABLE.read_text(encoding="utf-8")))
