"""Every public task on rows of which one can be replaced: what an attacker compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import zerodelta as zd
from golden.on_people import table
from golden.rows import COLUMNS
from tasks.test_diagnostics_of_every_task import CASES

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
    return CASES[case](data, epsilon=2, **options)
