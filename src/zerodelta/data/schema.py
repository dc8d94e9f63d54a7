"""All that is declared of a data set, in one place, as a file too; and made-up rows for it.

A schema is public. It is written in code or in a TOML file, and is never read off the rows.
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
    """The declared kind of each column, how a file is written, and who is protected.

    Parameters
    ----------
    columns : dict of kinds
        The columns that may be used, by name, as made by `zd.number` and the others.
    file : dict, optional
        How a CSV file is written: `header`, `delimiter`, `decimal`, `encoding`, `quote`.
    unit : str, optional
        The column that names who is protected; by default each row is.
    max_rows : int, optional
        How many rows of one unit count.
    units : int, optional
        How many units there are, if that is known.
    neighbors : {"replace", "add-remove"}, optional
        The neighboring relation; see `zd.records.Neighbors`.
    name : str, optional
        What the data set is called in records.

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
            remedy = f"write it as {column!r}: zd.number(0, 100), say"
            require(isinstance(kind, Kind), f"column {column!r}", kind, "a declared kind", remedy)
        _known(self.file, _FILE, "file")
        if self.max_rows is not None:
            as_count(self.max_rows, "max_rows", minimum=1)
        if self.units is not None:
            as_count(self.units, "units", minimum=1)
        for name, given in (("unit", self.unit), ("name", self.name)):
            plain = given is None or isinstance(given, str)
            require(plain, name, given, "a text", f'pass {name}="customers"')
        if self.unit is not None:
            check_names([self.unit], "unit")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "file", MappingProxyType(dict(self.file)))
        object.__setattr__(self, "neighbors", _relation(self.neighbors))

    def to_toml(self) -> str:
        """Return the schema as the text of a file that `zd.data.read_schema` reads to the same."""
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
        """Return the schema that a text in TOML declares; see `zd.data.read_schema`."""
        try:
            given = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, TypeError) as error:
            remedy = "see docs/data.md for an example"
            raise ParameterError("schema", expected=f"TOML ({error})", remedy=remedy) from None
        _known(given, _TOP, "schema")
        for table in ("columns", "unit", "file"):
            got = given.setdefault(table, {})
            require(isinstance(got, dict), table, got, "a table", f"write a section [{table}]")
        remedy = "write [columns] and below it age = {number = [0, 120]}, say"
        require(given["columns"], "columns", expected="one column or more", remedy=remedy)
        _known(given["unit"], _UNIT, "unit")
        unit, file = given["unit"], given["file"]
        return cls(
            columns={name: _kind(name, table) for name, table in given["columns"].items()},
            file=file if file.get("quote") != "none" else {**file, "quote": None},
            unit=unit.get("column"),
            max_rows=unit.get("max_rows"),
            units=unit.get("number"),
            neighbors=given.get("neighbors"),
            name=given.get("name"),
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
    """Refuse what is no name of a column: an empty text, and one with a control character."""
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


def _known(given: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in given:
        remedy = did_you_mean(name, names, f"pass some of {', '.join(names)}")
        require(name in names, where, name, f"one of {', '.join(names)}", remedy)


def _relation(given: Any) -> Neighbors | None:
    if given is None or isinstance(given, Neighbors):
        return given
    known = {each.value: each for each in Neighbors}
    remedy = did_you_mean(given, known, 'pass "replace"')
    require(isinstance(given, str) and given in known, "neighbors", given, f"{list(known)}", remedy)
    return known[given]


def _pair(maker: Callable[..., Kind]) -> Callable[..., Kind]:
    """Return the maker for a value that is written as [first, second]."""

    def made(given: Any, **options: Any) -> Kind:
        pair = isinstance(given, list) and len(given) == 2
        require(pair, "value", given, "a pair of ends", "write [0, 120], say")
        return maker(*given, **options)

    return made


def _boolean(given: Any, **options: Any) -> Kind:
    require(given is True, "boolean", given, "true", "write {boolean = true}")
    return declare.boolean(**options)


def _number(given: Any, *, missing: Any = "skip", **options: Any) -> Kind:
    return _pair(declare.number)(given, missing=None if missing == "none" else missing, **options)


_MAKERS: dict[str, tuple[Callable[..., Kind], tuple[str, ...]]] = {
    "number": (_number, ("missing", "integer")),
    "category": (declare.category, ("other", "missing", "exact")),
    "boolean": (_boolean, ("missing",)),
    "text": (declare.text, ("alphabet", "exact")),
    "date": (_pair(declare.date), ("by", "format")),
}


def _kind(column: str, table: Any) -> Kind:
    """Return the kind that one line of [columns] declares."""
    where, names = f"column {column!r}", ", ".join(_MAKERS)
    example = f"write {column} = {{number = [0, 120]}}, say"
    require(isinstance(table, dict), where, table, f"a table with one of {names}", example)
    kinds = [name for name in table if name in _MAKERS]
    if len(kinds) != 1:
        known = tuple(_MAKERS)
        odd = next((name for name in table if name not in _MAKERS), None)
        remedy = example if kinds or odd is None else did_you_mean(odd, known, example)
        raise ParameterError(where, table, expected=f"exactly one of {names}", remedy=remedy)
    maker, options = _MAKERS[kinds[0]]
    given = {name: value for name, value in table.items() if name != kinds[0]}
    _known(given, options, f"{where}, option")
    try:
        return maker(table[kinds[0]], **given)
    except ParameterError as error:
        wrong = f"{where}, {error.name}"
        raise ParameterError(wrong, table, expected=error.expected, remedy=error.remedy) from None


# -- to a file --------------------------------------------------------------------------------


def _lines(table: Mapping[str, Any], section: str | None = None) -> str:
    """Return one section; what is None is left out, and so is a section of nothing."""
    lines = [f"{_key(name)} = {_toml(each)}\n" for name, each in table.items() if each is not None]
    return "".join([f"[{section}]\n", *lines] if section and lines else lines)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {_toml(each)}" for name, each in value.items())
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


# -- Made-up rows for a schema, to try jobs, rehearsals and documents on --------------------------
# They are computed from what is declared alone, by a fixed sequence: the same schema gives the
# same rows, and nothing in them comes from a person.

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
            remedy='pass zd.data.read_schema("people.toml"), or {"age": zd.number(0, 120)}',
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
