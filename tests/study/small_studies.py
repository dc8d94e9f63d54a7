"""Small data, and rows that say whether they were read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from zerodelta.data.source import Source
from zerodelta.spaces import Finite
from zerodelta.study.study import Study

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
