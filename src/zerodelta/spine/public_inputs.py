"""Turn rows into a source, and check public inputs: bounds, universes, shares."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING, ArraySource
from zerodelta.data.cells import OptionIndex
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Boolean, Category, Coded, Number, Text
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Facts

_LARGEST_END = 1 << 500
_MAX_ITEMS = 1 << 53


def as_source(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    missing: Any = DEFAULT_MISSING,
    texts: bool = False,
) -> Source:
    """Return rows, or some columns of them, as a source; a series is one column.

    Columns of texts are refused, unless `texts`: for questions that only need to know whether a
    cell is present.
    """
    named = [columns] if isinstance(columns, str) else columns
    if not isinstance(rows, Source):
        return ArraySource(rows, columns=named, missing=missing)
    require(
        missing is DEFAULT_MISSING,
        "missing",
        missing,
        expected="no missing=, which is for arrays and frames: a data set has it declared",
        remedy="declare it: zd.open(…, columns={…: zd.number(0, 100, missing=…)})",
    )
    if isinstance(rows, Dataset):
        chosen = rows if columns is None else rows[columns]
        text_columns = [name for name, kind in chosen.kinds.items() if isinstance(kind, Text)]
        require(
            texts or not text_columns,
            "columns",
            text_columns,
            expected="numbers, categories, booleans or dates, not texts",
            remedy="name other columns; zd.heavy_hitters finds frequent texts",
        )
        return chosen
    if columns is None:
        return rows
    raise ParameterError(
        "columns",
        columns,
        expected="no columns=: this source has its own columns",
        remedy="open data with zd.open to choose columns by name",
    )


def as_numbers(rows: Any, columns: str | Sequence[str] | None = None) -> tuple[Source, Any]:
    """Return rows of numbers as a source, with the declared bounds of a data set (else None).

    Booleans and dates are read as their codes; categories and texts are refused.
    """
    source = as_source(rows, columns)
    if not isinstance(source, Dataset):
        return source, None
    refused = [
        name
        for name, kind in source.kinds.items()
        if isinstance(kind, (Category, Text)) or (isinstance(kind, Boolean) and kind.missing)
    ]
    require(
        not refused,
        "columns",
        refused,
        expected="numbers, booleans or dates",
        remedy='name such columns only, as in columns=["age", "income"]',
    )
    lower, upper = zip(*(kind.bounds or (0, 1) for kind in source.kinds.values()), strict=True)
    return source, (lower, upper)


def bounds_of(source: Source, bounds: Any) -> Any:
    """Return the caller's bounds, or those that were declared for the columns; None if neither."""
    if bounds is not None or not isinstance(source, Dataset):
        return bounds
    kinds = source.kinds.values()
    if not all(isinstance(kind, (Number, Boolean)) for kind in kinds):
        return None
    ends = [kind.bounds for kind in kinds]
    return ends[0] if len(ends) == 1 else tuple(zip(*ends, strict=True))


def codes_of(data: Any, columns: str | None, *, unknown: Any, universe: Any) -> Dataset | None:
    """Return the one column of codes of a data set; None for any other rows.

    `universe` and `unknown` are refused: the column's options were declared.
    """
    if not isinstance(data, Dataset):
        return None
    chosen = data if columns is None else data[columns]
    kinds = list(chosen.kinds.values())
    require(
        len(kinds) == 1 and isinstance(kinds[0], Coded),
        "columns",
        list(chosen.columns),
        expected="one column that was declared as a category, a boolean or a date",
        remedy="declare it as zd.category([…]), or ask for quantiles of numbers",
    )
    require(
        unknown is None and universe is None,
        "universe, unknown",
        (universe, unknown),
        expected="neither of them: the options of the column were declared",
        remedy="declare them: zd.category([…], other=True)",
    )
    return chosen


def labels_of(codes: Dataset) -> Finite:
    """Return the options that the codes of a column stand for."""
    (kind,) = codes.kinds.values()
    return Finite(list(kind.labels or ()))


def one_column(facts: Facts) -> None:
    """Refuse rows of several columns, for questions about one."""
    require(
        facts.width == 1,
        "columns of rows",
        facts.width,
        expected="one column",
        remedy="pass the one column that the question is about",
    )


def needed(value: Any, name: str, remedy: str) -> Any:
    """Return a public input, refusing None with the remedy."""
    expected = "a public input (never one computed from the rows)"
    require(value is not None, name, None, expected=expected, remedy=remedy)
    return value


def as_pair(bounds: Any) -> tuple[Any, Any]:
    """Return a pair of bounds, refusing anything else; its two ends are not checked."""
    pair = isinstance(bounds, (tuple, list)) and len(bounds) == 2
    expected = "a pair (lower, upper)"
    require(pair, "bounds", bounds, expected=expected, remedy="pass bounds=(0, 100)")
    lower, upper = bounds
    return lower, upper


def as_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """Return (lower, upper) of one column, exactly."""
    stated = needed(bounds, "bounds", "pass bounds=(lower, upper), known without the rows")
    lower, upper = (as_rational(end, "bounds") for end in as_pair(stated))
    swap = "pass the smaller end first"
    require(lower < upper, "bounds", bounds, expected="lower < upper", remedy=swap)
    require(
        max(-lower, upper) <= _LARGEST_END,
        "bounds",
        bounds,
        expected="ends of at most 2^500 in magnitude",
        remedy="rescale the column, so that floats can hold its sums",
    )
    return lower, upper


def bounds_by_column(bounds: Any, columns: int) -> list[tuple[Fraction, Fraction]]:
    """Return the exact (lower, upper) of every column; an end is one number or one for each."""
    remedy = "pass bounds=(lower, upper), known without the rows"
    lower, upper = as_pair(needed(bounds, "bounds", remedy))
    ends = []
    for end in (lower, upper):
        listed = isinstance(end, (list, tuple, np.ndarray))
        numbers = list(end) if listed else [end] * columns
        expected = f"one number, or {columns}, for each end"
        require(len(numbers) == columns, "bounds", bounds, expected=expected, remedy=remedy)
        ends.append(numbers)
    return [as_bounds((low, high)) for low, high in zip(*ends, strict=True)]


def as_share(share: Rational, name: str) -> Fraction:
    """Return a part of ε strictly between 0 and 1."""
    exact = as_rational(share, name)
    require(0 < exact < 1, name, share, expected="a number in (0, 1)", remedy='pass "1/2"')
    return exact


def as_universe(universe: Any) -> Finite:
    """Return the public universe: a list of items, or N for the integers 0..N-1."""
    remedy = "pass universe=[...] with all possible items, or N for 0..N-1"
    stated = needed(universe, "universe", remedy)
    space = stated if isinstance(stated, Finite) else Finite(stated)
    listed = space.options is not None
    require(
        listed or space.size <= _MAX_ITEMS,
        "universe",
        space.size,
        expected="at most 2^53 items",
        remedy="list the items instead",
    )
    OptionIndex(space, "universe")  # refuses two items that cells could not tell apart
    return space


def unknown_index(unknown: Any, space: Finite) -> int | None:
    """Return the index at which items outside the universe are counted; None to ignore them."""
    if unknown is None:
        return None
    index = OptionIndex(space).find(unknown)
    if index is None:
        raise ParameterError(
            "unknown",
            unknown,
            expected="an item of the universe, or None to ignore unknown items",
            remedy="add it to the universe",
        )
    return index
