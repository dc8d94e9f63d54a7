"""The rows of the golden releases: made by whole numbers alone, the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import zerodelta as zd

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 100, missing=None),
    "income": zd.number(-1000, 3000),
    "member": zd.boolean(),
    "city": zd.category(["oslo", "rome"], other=True),
    "town": zd.category(range(5), other=True),
    "day": zd.date("2020-01-01", "2020-12-31", by="month"),
    "note": zd.text(length=6, alphabet="acefikmot"),
}


def rows_of(count: int = 120) -> dict[str, list[Any]]:
    """A quarter of the ages is clipped, a tenth of the incomes cannot be read."""
    places = range(count)
    return {
        "who": [i // 2 for i in places],
        "age": [120.0 if i % 4 == 0 else float(i * 37 % 101) for i in places],
        "income": [None if i % 10 == 7 else 10.0 * (i * 53 % 211) for i in places],
        "member": [i % 3 == 0 for i in places],
        "city": [("oslo", "rome", "bonn")[i * 7 % 11 % 3] for i in places],
        "town": [i * i % 7 for i in places],
        "day": [f"2020-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in places],
        "note": [("tea", "milk", "", "coffee", "tea")[i % 5] for i in places],
    }


def people(**options: Any) -> Any:
    """Return a data set of 120 rows, opened anew."""
    return opened({"columns": COLUMNS, **options})


def opened(given: dict[str, Any]) -> Any:
    """Open the rows; other tests put neighboring rows of any source in this place."""
    return zd.open(pa.table(rows_of()), **given)


_PLACES = np.arange(120)
NUMBERS = np.column_stack([_PLACES * 37 % 101, _PLACES * 53 % 97, _PLACES * 29 % 89]) / 101
"""Numbers from 0 to 1."""
TARGET = (NUMBERS[:, 0] + NUMBERS[:, 1]) / 2
LABELS = (NUMBERS[:, 0] > 0.5).astype(np.int64)
SPARSE = np.where(_PLACES[:, None] % 3 == np.arange(3), 1.0, 0.0)
ITEMS = [("a", "b", "a", "c", "a")[i % 5] for i in range(120)]
