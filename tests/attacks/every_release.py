"""Every public task on rows of which one can be replaced: what an attacker compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

import zerodelta as zd
from tasks.test_diagnostics_of_every_task import CASES, COLUMNS, table

every = pytest.mark.parametrize("case", CASES)


def people(row: dict[str, Any] | None = None, **options: Any) -> Any:
    """Return a data set, one row of which is replaced."""
    frame = pd.DataFrame({name: column.to_pylist() for name, column in _columns()}, dtype=object)
    for name, cell in (row or {}).items():
        frame.at[5, name] = cell
    return zd.open(frame, columns=COLUMNS, **options)


def _columns() -> Iterator[tuple[str, Any]]:
    rows = table()
    return ((name, rows.column(name)) for name in rows.column_names)


def run(case: str, data: Any, **options: Any) -> Any:
    """Release a case at ε = 2."""
    verb: Callable[..., Any] = CASES[case][1]
    return verb(data, epsilon=2, **options)
