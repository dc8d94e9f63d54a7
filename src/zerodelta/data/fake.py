"""Made-up rows for a schema, to try jobs, rehearsals and documents on.

They are computed from what is declared alone, by a fixed sequence: the same schema gives the same
rows, and nothing in them comes from a person.
"""

from __future__ import annotations

import datetime
import math
import string
from collections.abc import Mapping
from typing import Any

import numpy as np

from zerodelta.data.dates import Date
from zerodelta.data.kind import Kind
from zerodelta.data.kinds import Boolean, Category, Number, Text
from zerodelta.data.schema import Schema
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count, inner_ends

_MISSING = 1 / 32
"""The share of missing cells in a column that may have them."""

_MOST_ROWS = 1 << 32


def fake(people: Any, *, rows: int = 1000) -> Array:
    """Make up rows that fit a schema. Use them to try a job before it costs any ε.

    Numbers are spread evenly between their bounds, categories over their options; cells may be
    missing where the schema allows it. Columns are unrelated to each other.

    Parameters
    ----------
    people : Schema, opened data, or dict of kinds
        What is declared; of opened data only that is used, no row is read.
    rows : int, default 1000
        How many rows to make.

    Returns
    -------
    structured array
        Of `rows` rows, with the declared columns and that of the unit; `zd.open` takes it, and so
        does `pandas.DataFrame`.

    Examples
    --------
    >>> import zerodelta as zd
    >>> kinds = {"age": zd.number(0, 120, integer=True), "city": zd.category(["oslo", "rome"])}
    >>> fake(kinds, rows=3).tolist()
    [(47.0, 'rome'), (99.0, 'oslo'), (26.0, 'oslo')]
    """
    kinds, unit, most, units = _declared(people)
    count = as_count(rows, "rows", minimum=1)
    require(count <= _MOST_ROWS, "rows", rows, "at most 2^32 rows", "make fewer, several times")
    columns = {
        name: _cells(kind, _spread(count, i)) for i, (name, kind) in enumerate(kinds.items())
    }
    if unit is not None and unit not in columns:
        spread = _spread(count, len(columns))
        number = units if units is not None else max(1, count // most)
        columns[unit] = np.floor(spread * number).astype(np.int64)
    table = np.empty(count, dtype=[(name, cells.dtype) for name, cells in columns.items()])
    for name, cells in columns.items():
        table[name] = cells
    return table


def _declared(people: Any) -> tuple[Mapping[str, Kind], str | None, int, int | None]:
    if isinstance(people, Schema):
        return people.columns, people.unit, people.max_rows or 1, people.units
    kinds = people if isinstance(people, Mapping) else getattr(people, "kinds", None)
    if not isinstance(kinds, Mapping):
        raise ParameterError(
            "people",
            type(people),
            expected="a schema, opened data, or a dict of kinds",
            remedy='pass zd.read_schema("people.toml"), or {"age": zd.number(0, 120)}',
        )
    for name, kind in kinds.items():
        remedy = "pass zd.number(0, 120), say"
        require(isinstance(kind, Kind), f"column {name!r}", kind, "a declared kind", remedy)
    protection = getattr(people, "protection", None)
    unit = getattr(protection, "unit", None)
    return kinds, unit, getattr(protection, "max_rows", 1), None


def _spread(rows: int, column: int) -> Array:
    """Return numbers that fill [0, 1) evenly, and together with those of other columns, too.

    Multiples of square roots of different primes, whose fractions are independent of each other.
    """
    found = 0
    prime = 1
    while found <= column:
        prime += 1
        found += all(prime % divisor for divisor in range(2, math.isqrt(prime) + 1))
    return np.arange(1, rows + 1) * math.sqrt(prime) % 1.0


def _cells(kind: Kind, spread: Array) -> Array:
    """Return cells that the kind reads to all that is declared."""
    if isinstance(kind, Number):
        return _numbers(kind, spread)
    listed: list[Any]
    if isinstance(kind, Text):
        places = np.floor(spread**2 * max(1, math.isqrt(len(spread))))  # some are more frequent
        listed = [_word(int(place), kind) for place in places]
    elif isinstance(kind, Date):
        days = (kind.last - kind.first).days + 1
        shifts = np.floor(spread * days).astype(int).tolist()
        listed = [_dated(kind.first + datetime.timedelta(shift), kind.format) for shift in shifts]
    else:
        options: list[Any] = list(kind.labels or ())
        if isinstance(kind, (Boolean, Category)) and kind.missing:
            options[2 if isinstance(kind, Boolean) else len(kind.options)] = None
        listed = [options[int(place)] for place in np.floor(spread * len(options))]
    return np.fromiter(listed, dtype=object, count=len(listed))


def _numbers(kind: Number, spread: Array) -> Array:
    lower, upper = inner_ends(kind.lower, kind.upper)
    if kind.missing is not None:
        missing, spread = spread < _MISSING, (spread - _MISSING) / (1 - _MISSING)
    else:
        missing = np.zeros(len(spread), dtype=np.bool_)
    values = lower + spread * (upper - lower)
    if kind.integer:
        values = np.floor(lower + spread * (upper - lower + 1))
    return np.where(missing, np.nan, np.clip(values, lower, upper))


def _word(number: int, kind: Text) -> str:
    """Return a text for each number, as long as there are so many; the same for the others."""
    letters = string.ascii_lowercase if kind.alphabet is None else kind.alphabet
    word = letters[number % len(letters)]
    while number >= len(letters) and len(word) < kind.length:
        number = number // len(letters) - 1
        word += letters[number % len(letters)]
    return word


def _dated(day: datetime.date, form: str | None) -> str:
    if form is None:
        return day.isoformat()
    parts = {"%Y": f"{day.year:04}", "%y": f"{day.year % 100:02}", "%%": "%"}
    parts |= {"%m": f"{day.month:02}", "%d": f"{day.day:02}"}
    text, place = "", 0
    while place < len(form):
        part = form[place : place + 2] if form[place] == "%" else form[place]
        text, place = text + parts.get(part, part), place + len(part)
    return text
