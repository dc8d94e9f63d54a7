"""What a task hands to its mechanism, recorded: exact laws are built from the real pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from zerodelta.exact.bits import BitSource


class NoBits(BitSource):
    """Bits that nobody may read: what is refused must be refused before."""

    def read(self, count: int) -> bytes:
        raise AssertionError(f"{count} bytes were drawn")


def recorded(
    monkeypatch: pytest.MonkeyPatch, mechanism: type, method: str, returns: Any
) -> list[tuple[Any, ...]]:
    """Replace a method by one that records (self, *arguments) and returns `returns(*arguments)`."""
    calls: list[tuple[Any, ...]] = []

    def spy(self: Any, *arguments: Any, **named: Any) -> Any:
        calls.append((self, *arguments, named))
        return returns(*arguments)

    monkeypatch.setattr(mechanism, method, spy)
    return calls


def first(*arguments: Any) -> Any:
    """Return the first argument: the value before noise."""
    return arguments[0]


def zero(*_: Any) -> int:
    """Return option 0."""
    return 0
