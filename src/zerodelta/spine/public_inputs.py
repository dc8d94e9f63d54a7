"""Rows as a source, one column as floats, and public inputs that a caller must not forget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Rows, Source
from zerodelta.errors import ParameterError
from zerodelta.exact.rational import as_rational

__all__ = ["as_bounds", "as_source", "column", "needed"]

_FARTHEST = 1 << 500


def as_source(rows: Any) -> Source:
    """Return the rows as a source; a series is one column, a list one or a table."""
    return rows if isinstance(rows, Source) else ArraySource(rows)


def column(source: Rows) -> Block:
    """Return the only column as floats, NaN for what is no number."""
    if len(source.columns) != 1:
        raise ParameterError(
            "columns of rows",
            len(source.columns),
            expected="one column",
            remedy="pass the column of which the answer is asked",
        )
    return np.concatenate([np.zeros(0), *(block[:, 0] for block in source.blocks())])


def needed(value: Any, name: str, remedy: str) -> Any:
    """Return a public input, or say which one is missing and how to give it."""
    if value is None:
        raise ParameterError(
            name, None, expected="a public input (never one read off the rows)", remedy=remedy
        )
    return value


def as_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """Return (lower, upper) of one column, exactly."""
    given = needed(bounds, "bounds", "pass bounds=(lower, upper), known without the rows")
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ParameterError(
            "bounds", bounds, expected="a pair (lower, upper)", remedy="pass bounds=(0, 100)"
        )
    lower, upper = (as_rational(end, "bounds") for end in given)
    if not lower < upper:
        raise ParameterError(
            "bounds", bounds, expected="lower < upper", remedy="pass the smaller end first"
        )
    if max(-lower, upper) > _FARTHEST:
        raise ParameterError(
            "bounds",
            bounds,
            expected="ends of at most 2^500 in magnitude",
            remedy="rescale the column, so that floats can hold its sums",
        )
    return lower, upper
