"""Define the schema of a data set, read and write it as a TOML file, and make up rows for it.

A schema is public: it is written in code or in a file, and never computed from the rows.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import string
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from zerodelta.data import declare
from zerodelta.data.declare import Date
from zerodelta.data.kinds import Boolean, Category, Kind, Number, Text
from zerodelta.errors import ParameterError, did_you_mean, require
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count, inner_ends
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = ("header", "delimiter", "decimal", "encoding", "quote")
_UNIT = ("column", "max_rows", "number")
_TOP = ("name", "neighbors", "columns", "unit", "file")
_BARE = re.compile("[A-Za-z0-9_-]+")


@value
class Schema:
    """The declared kind of each column, the format of a file, and the protected unit.

    Parameters
    ----------
    columns : dict of kinds
        The columns that may be used, by name, as made by `zd.number` and the others.
    file : dict, optional
        The format of a CSV file: `header`, `delimiter`, `decimal`, `encoding`, `quote`.
    unit : str, optional
        The column with the ids of protected units; by default each row is protected by itself.
    max_rows : int, optional
        The number of rows of one unit that count at most.
    units : int, optional
        The number of units, if it is known without looking at the rows.
    neighbors : {"replace", "add-remove"}, optional
        The neighboring relation; see `zd.records.Neighbors`.
    name : str, optional
        The name of the data set in records.

    Examples
    --------
    >>> schema = Schema(columns={"age": declare.number(0, 120)}, unit="customer", max_rows=3)
    >>> print(schema)
    [columns]
    age = {number = [0, 120]}
    <BLANKLINE>
    [unit]
    column = "customer"
    max_rows = 3
    >>> Schema.from_toml(str(schema)) == schema
    True
    """

    columns: Mapping[str, Kind]
    file: Mapping[str, Any] = field(default_factory=dict)
    unit: str | None = None
    max_rows: int | None = None
    units: int | None = None
    neighbors: Neighbors | str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        check_names(self.columns)
        for column, kind in self.columns.items():
            remedy = f"pass {column!r}: zd.number(0, 100), for example"
            require(isinstance(kind, Kind), f"column {column!r}", kind, "a declared kind", remedy)
        _known(self.file, _FILE, "file")
        if self.max_rows is not None:
            as_count(self.max_rows, "max_rows", minimum=1)
        if self.units is not None:
            as_count(self.units, "units", minimum=1)
        for name, text in (("unit", self.unit), ("name", self.name)):
            plain = text is None or isinstance(text, str)
            require(plain, name, text, "a text", f'pass {name}="customers"')
        if self.unit is not None:
            check_names([self.unit], "unit")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "file", MappingProxyType(dict(self.file)))
        object.__setattr__(self, "neighbors", _relation(self.neighbors))

    def to_toml(self) -> str:
        """Return the schema as the text of a file that `zd.data.read_schema` reads."""
        relation = self.neighbors
        top = {"name": self.name}
        top["neighbors"] = relation.value if isinstance(relation, Neighbors) else None
        unit = {"column": self.unit, "max_rows": self.max_rows, "number": self.units}
        kinds = {column: kind.declaration for column, kind in self.columns.items()}
        parts = [_lines(top), _lines(kinds, "columns"), _lines(unit, "unit")]
        file = dict(self.file)
        if file.get("quote", "") is None:
            file["quote"] = "none"
        return "\n".join(filter(None, [*parts, _lines(file, "file")]))

    def __str__(self) -> str:
        return self.to_toml().rstrip("\n")

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Return the schema that a TOML text declares; see `zd.data.read_schema`."""
        try:
            parsed = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, TypeError) as error:
            remedy = "see docs/data.md for an example"
            raise ParameterError("schema", expected=f"TOML ({error})", remedy=remedy) from None
        _known(parsed, _TOP, "schema")
        for table in ("columns", "unit", "file"):
            got = parsed.setdefault(table, {})
            require(isinstance(got, dict), table, got, "a table", f"write a section [{table}]")
        remedy = "write [columns] and below it, for example, age = {number = [0, 120]}"
        require(parsed["columns"], "columns", expected="one column or more", remedy=remedy)
        _known(parsed["unit"], _UNIT, "unit")
        unit, file = parsed["unit"], parsed["file"]
        return cls(
            columns={name: _kind(name, table) for name, table in parsed["columns"].items()},
            file=file if file.get("quote") != "none" else {**file, "quote": None},
            unit=unit.get("column"),
            max_rows=unit.get("max_rows"),
            units=unit.get("number"),
            neighbors=parsed.get("neighbors"),
            name=parsed.get("name"),
        )


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read the declared columns of a data set from a TOML file.

    ::

        name = "people 2026-Q3"

        [columns]
        age = {number = [0, 120], integer = true}
        income = {number = [0, 200000], missing = "skip"}
        city = {category = ["oslo", "rome"], other = true}
        member = {boolean = true}
        surname = {text = 20}
        joined = {date = [2020-01-01, 2026-12-31], by = "month"}

        [unit]
        column = "customer_id"
        max_rows = 3

        [file]
        delimiter = ";"

    Parameters
    ----------
    path : str or path
        The file. In it, `missing = "none"` is `missing=None` in code, and `quote = "none"` is
        `quote=None`.

    Returns
    -------
    Schema
        `zd.open(source, schema=…)` takes it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.toml")
    >>> _ = path.write_text("columns = {age = {number = [0, 120]}}", encoding="utf-8")
    >>> print(read_schema(path).columns["age"])
    number(0, 120)
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        remedy = "save the file as UTF-8"
        raise ParameterError("schema", expected="a text in UTF-8", remedy=remedy) from None
    return Schema.from_toml(text)


def check_names(columns: Iterable[Any], where: str = "columns") -> None:
    """Refuse names of columns that are not texts, are empty, or have a control character."""
    for column in columns:
        named = isinstance(column, str) and column != ""
        require(
            named and not any(unicodedata.category(letter) == "Cc" for letter in column),
            where,
            column,
            expected="names that are texts, not empty, without control characters",
            remedy="rename the column in the source, and pass its name",
        )


# -- from a file ------------------------------------------------------------------------------


def _known(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    """Refuse names in a table that are not among the allowed ones."""
    for name in table:
        remedy = did_you_mean(name, names, f"pass some of {', '.join(names)}")
        require(name in names, where, name, f"one of {', '.join(names)}", remedy)


def _relation(relation: Any) -> Neighbors | None:
    """Return a neighboring relation that is given by name."""
    if relation is None or isinstance(relation, Neighbors):
        return relation
    known = {member.value: member for member in Neighbors}
    remedy = did_you_mean(relation, known, 'pass "replace"')
    require(
        isinstance(relation, str) and relation in known,
        "neighbors",
        relation,
        f"{list(known)}",
        remedy,
    )
    return known[relation]


def _pair(maker: Callable[..., Kind]) -> Callable[..., Kind]:
    """Return the maker of a kind whose value is written as [first, second]."""

    def paired(pair: Any, **options: Any) -> Kind:
        is_pair = isinstance(pair, list) and len(pair) == 2
        require(is_pair, "value", pair, "a list of two ends", "write [0, 120], for example")
        return maker(*pair, **options)

    return paired


def _boolean(flag: Any, **options: Any) -> Kind:
    require(flag is True, "boolean", flag, "true", "write {boolean = true}")
    return declare.boolean(**options)


def _number(ends: Any, *, missing: Any = "skip", **options: Any) -> Kind:
    return _pair(declare.number)(ends, missing=None if missing == "none" else missing, **options)


_MAKERS: dict[str, tuple[Callable[..., Kind], tuple[str, ...]]] = {
    "number": (_number, ("missing", "integer")),
    "category": (declare.category, ("other", "missing", "exact")),
    "boolean": (_boolean, ("missing",)),
    "text": (declare.text, ("alphabet", "exact")),
    "date": (_pair(declare.date), ("by", "format")),
}


def _kind(column: str, table: Any) -> Kind:
    """Return the kind that one line of [columns] declares; refuse unknown words."""
    where, names = f"column {column!r}", ", ".join(_MAKERS)
    example = f"write {column} = {{number = [0, 120]}}, for example"
    require(isinstance(table, dict), where, table, f"a table with one of {names}", example)
    kinds = [name for name in table if name in _MAKERS]
    if len(kinds) != 1:
        known = tuple(_MAKERS)
        odd = next((name for name in table if name not in _MAKERS), None)
        remedy = example if kinds or odd is None else did_you_mean(odd, known, example)
        raise ParameterError(where, table, expected=f"exactly one of {names}", remedy=remedy)
    maker, options = _MAKERS[kinds[0]]
    chosen = {name: value for name, value in table.items() if name != kinds[0]}
    _known(chosen, options, f"{where}, option")
    try:
        return maker(table[kinds[0]], **chosen)
    except ParameterError as error:
        wrong = f"{where}, {error.name}"
        raise ParameterError(wrong, table, expected=error.expected, remedy=error.remedy) from None


# -- to a file --------------------------------------------------------------------------------


def _lines(table: Mapping[str, Any], section: str | None = None) -> str:
    """Return one section without entries that are None; an empty text if no entry is left."""
    lines = [
        f"{_key(name)} = {_toml(entry)}\n" for name, entry in table.items() if entry is not None
    ]
    return "".join([f"[{section}]\n", *lines] if section and lines else lines)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    """Write a value as one line of TOML."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {_toml(entry)}" for name, entry in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):  # JSON's escapes are TOML's, but for characters of 21 bits
        quoted = json.dumps(value, ensure_ascii=False)
        if quoted.isprintable():
            return quoted
        return "".join(
            c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 1 << 16 else f"\\U{ord(c):08x}"
            for c in quoted
        )
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)


# -- Made-up rows for a schema, on which to try jobs, rehearsals and documents --------------------
# They are computed from the declarations by a fixed sequence: the same schema gives the same rows,
# and no cell comes from a person.

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
        The declarations; of opened data only these are used, and no row is read.
    rows : int, default 1000
        The number of rows.

    Returns
    -------
    structured array
        The rows, with the declared columns and that of the unit; `zd.open` and `pandas.DataFrame`
        accept it.

    Examples
    --------
    >>> import zerodelta as zd
    >>> kinds = {"age": zd.number(0, 120, integer=True), "city": zd.category(["oslo", "rome"])}
    >>> fake(kinds, rows=3).tolist()
    [(47.0, 'rome'), (99.0, 'oslo'), (26.0, 'oslo')]
    """
    kinds, unit, max_rows, units = _declared(people)
    count = as_count(rows, "rows", minimum=1)
    require(count <= _MOST_ROWS, "rows", rows, "at most 2^32 rows", "pass a smaller number")
    columns = {
        name: _cells(kind, _spread(count, i)) for i, (name, kind) in enumerate(kinds.items())
    }
    if unit is not None and unit not in columns:
        spread = _spread(count, len(columns))
        number = units if units is not None else max(1, count // max_rows)
        columns[unit] = np.floor(spread * number).astype(np.int64)
    table = np.empty(count, dtype=[(name, cells.dtype) for name, cells in columns.items()])
    for name, cells in columns.items():
        table[name] = cells
    return table


def _declared(people: Any) -> tuple[Mapping[str, Kind], str | None, int, int | None]:
    """Return the kinds of a schema or data set, its unit, `max_rows` and the number of units."""
    if isinstance(people, Schema):
        return people.columns, people.unit, people.max_rows or 1, people.units
    kinds = people if isinstance(people, Mapping) else getattr(people, "kinds", None)
    if not isinstance(kinds, Mapping):
        raise ParameterError(
            "people",
            type(people),
            expected="a schema, opened data, or a dict of kinds",
            remedy='pass zd.data.read_schema("people.toml"), or {"age": zd.number(0, 120)}',
        )
    for name, kind in kinds.items():
        remedy = "pass zd.number(0, 120), for example"
        require(isinstance(kind, Kind), f"column {name!r}", kind, "a declared kind", remedy)
    protection = getattr(people, "protection", None)
    unit = getattr(protection, "unit", None)
    return kinds, unit, getattr(protection, "max_rows", 1), None


def _spread(rows: int, column: int) -> Array:
    """Return numbers that fill [0, 1) evenly, jointly with those of other columns too.

    They are the fractional parts of multiples of the square root of a prime, another one for each
    column.
    """
    primes = 0
    prime = 1
    while primes <= column:
        prime += 1
        primes += all(prime % divisor for divisor in range(2, math.isqrt(prime) + 1))
    return np.arange(1, rows + 1) * math.sqrt(prime) % 1.0


def _cells(kind: Kind, spread: Array) -> Array:
    """Return made-up cells of the kind, spread over its values by numbers in [0, 1)."""
    if isinstance(kind, Number):
        return _numbers(kind, spread)
    listed: list[Any]
    if isinstance(kind, Text):
        # squared, so that some texts are more frequent than others
        places = np.floor(spread**2 * max(1, math.isqrt(len(spread))))
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
    """Return numbers spread over the bounds, some of them missing if that is allowed."""
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
    """Return a different text for each number, until the kind has no further texts."""
    letters = string.ascii_lowercase if kind.alphabet is None else kind.alphabet
    word = letters[number % len(letters)]
    while number >= len(letters) and len(word) < kind.length:
        number = number // len(letters) - 1
        word += letters[number % len(letters)]
    return word


def _dated(day: datetime.date, form: str | None) -> str:
    """Return a date as a text in a declared format."""
    if form is None:
        return day.isoformat()
    parts = {"%Y": f"{day.year:04}", "%y": f"{day.year % 100:02}", "%%": "%"}
    parts |= {"%m": f"{day.month:02}", "%d": f"{day.day:02}"}
    text, place = "", 0
    while place < len(form):
        part = form[place : place + 2] if form[place] == "%" else form[place]
        text, place = text + parts.get(part, part), place + len(part)
    return text
