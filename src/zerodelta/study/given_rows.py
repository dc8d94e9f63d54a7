"""The rows that a study is given, and the made-up ones on which functions are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zerodelta.data.arrays import ArraySource, public_table
from zerodelta.data.row_queries import Bounds, public_rows
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational
from zerodelta.training.examples import Floats

__all__ = ["as_source", "rows_to_try"]


def as_source(rows: Any, columns: Sequence[str] | None) -> Source:
    """Return the data as a source, refusing what has nothing to ask, or is no data."""
    given = columns is None and isinstance(rows, Source)
    source: Source = rows if given else ArraySource(rows, columns=columns)
    if source.rows < 1 or not source.columns:
        raise ParameterError(
            "rows",
            "no rows or no columns",
            expected="at least one row and one column",
            remedy="pass the data as an array of shape (n, columns)",
        )
    return source


def rows_to_try(
    columns: Sequence[str], bounds: Bounds | None, data_norm: Rational | None, example: Any
) -> Floats:
    """Return the public rows on which functions are tried."""
    if example is None:
        return public_rows(len(columns), bounds, data_norm)
    named = None if isinstance(example, np.ndarray) else columns
    rows = public_table(example, columns=named)
    if rows.shape[1] != len(columns) or not len(rows):
        raise ParameterError(
            "example",
            f"{len(rows)} rows of {rows.shape[1]} columns",
            expected=f"some made-up rows of {len(columns)} columns",
            remedy="make rows by hand that look like the data; never take them from it",
        )
    return rows
