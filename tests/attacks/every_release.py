"""Every public task on rows of which one can be replaced: what an attacker compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pytest

import zerodelta as zd
from tasks.test_diagnostics_of_every_task import CASES, COLUMNS, table
from zerodelta.exact import bits
from zerodelta.exact.bits import ReplayBits

HOSTILE: dict[str, dict[str, Any]] = {
    "plain": {"who": 7, "age": 41.0, "income": 900.0, "member": True, "city": "rome"},
    "missing": {"who": None, "age": None, "income": None, "member": None, "city": None},
    "huge": {"who": 10**40, "age": 1e308, "income": -1e308, "member": 10**30, "city": "x" * 99999},
    "not numbers": {
        "who": "\x00",
        "age": "s3cr3t",
        "income": object(),
        "member": float("nan"),
        "city": b"\xff",
    },
    "infinite": {
        "who": -1,
        "age": float("inf"),
        "income": float("-inf"),
        "member": float("inf"),
        "city": float("nan"),
    },
}
"""What may stand in one row."""

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


@contextmanager
def replayed(label: str = "an attack") -> Iterator[None]:
    """Let the operating system's bits be the same again: what differs then is not noise."""
    tape = ReplayBits(label)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "_system_bytes", tape.read)
        yield


def run(case: str, data: Any, **options: Any) -> Any:
    """Release a case at ε = 2."""
    verb: Callable[..., Any] = CASES[case][1]
    return verb(data, epsilon=2, **options)
