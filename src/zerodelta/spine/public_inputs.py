"""Check public inputs: columns of numbers, columns of codes, universes of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zerodelta.data.arrays import as_source
from zerodelta.data.cells import OptionIndex
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Boolean, Category, Coded, Text
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError, needed, require
from zerodelta.spaces import Finite

_MAX_ITEMS = 1 << 53


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
