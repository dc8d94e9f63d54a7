"""Small data, rows that say whether they were read, and what a program may say on its way out."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from zerodelta.data.source import Source
from zerodelta.errors import EntropyError
from zerodelta.exact.bits import BitSource
from zerodelta.spaces import Finite
from zerodelta.study.study import Study

SECRET = "secret 12.5"
FAILING: dict[str, Any] = {
    "publish": Finite(4),
    "otherwise": "failed",
    "mixing_probability": "1e-12",
}
"""Options with which a failure is seen: it publishes an element of its own, never mixed."""

ROWS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 40)
OPTIONS: dict[str, Any] = {"epsilon": 1, "publish": Finite(4), "rounds": 4, "bounds": (0, 1)}


class Watched(Source):
    """Rows that say whether they were read."""

    def __init__(self, rows: Any = ROWS) -> None:
        self.table, self.reads = np.asarray(rows, dtype=np.float64), 0

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("x", "y")

    def blocks(self, ticket: Any) -> Iterator[Any]:
        self.reads += 1
        yield self.table.copy()


def made(**changes: Any) -> Study:
    options = {**OPTIONS, **changes}
    return Study(options.pop("rows", ROWS), **options)


class NoBits(BitSource):
    """Bits that have run out."""

    def read(self, count: int) -> bytes:
        raise EntropyError(SECRET)


class Talkative:
    """Raises when it is collected."""

    def __del__(self) -> None:
        raise ValueError(SECRET)


def stop() -> None:
    """Someone presses Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


@contextmanager
def own_handler() -> Iterator[None]:
    """Python's own handler, also in a background job; it must be in its place at the end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
