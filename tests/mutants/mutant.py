"""One deliberate mistake in one line of the library, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """In `file` (below src/zerodelta) the only occurrence of `old` becomes `new`.

    `tests` are pytest node ids below tests/; at least one of them must then fail.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file and the first line of what it becomes."""
        return f"{self.file}: {self.old.splitlines()[0].strip()} -> {self.new.strip()}"
