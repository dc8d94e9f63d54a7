"""All that is declared of a data set, in one place: columns, file, unit, neighbors, name.

A schema is public. It is written in code or in a TOML file, and is never read off the rows.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from zerodelta.data import declare
from zerodelta.data.kind import Kind
from zerodelta.errors import ParameterError, did_you_mean, require
from zerodelta.exact.rational import as_count
from zerodelta.privacy.neighbors import Neighbors

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = ("header", "delimiter", "decimal", "encoding", "quote")
_UNIT = ("column", "max_rows", "number")
_TOP = ("name", "neighbors", "columns", "unit", "file")
_BARE = re.compile("[A-Za-z0-9_-]+")


@final
@dataclass(frozen=True, kw_only=True)
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
        The neighboring relation; see `zd.Neighbors`.
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
        """Return the schema as the text of a file that `zd.read_schema` reads to the same."""
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
        """Return the schema that a text in TOML declares; see `zd.read_schema`."""
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
