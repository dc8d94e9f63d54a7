"""Released values as JSON, and back: numbers, fractions, arrays, tables, keys, models.

Whatever JSON has no word for is an object with one name that says what it is. Nothing is ever
unpickled: a class is looked up among those that a caller names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.errors import ParameterError, RecordError

_LONG = 13_000
"""Bits of an integer; those with more are hexadecimal."""

_LONGEST_FRACTION = 1 << 16
"""Characters; what is longer would take seconds to reduce, and none of ours is."""

_DEEPEST = 60
"""How far values may be nested."""

_MOST_BYTES = 1 << 28
"""Of all texts in arrays; one takes four for each character of the longest in its array."""

_MOST_ALIKE = 64
"""Different numbers of one hash: the time that a dictionary of them takes grows as their square."""

_DATES = re.compile(r"datetime64\[[0-9]{0,9}(generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")

_ARRAYS = {np.dtype(kind).name: np.dtype(kind) for kind in "?bhilqBHILQefd"}
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def written(value: Any) -> Any:
    """Return a value as JSON; what `read_value` makes of it is equal, and of the same type.

    A data frame becomes a light table.

    >>> written((Fraction(1, 3), {"a": float("inf")}))
    {'tuple': [{'fraction': '1/3'}, {'dict': [['a', {'float': 'inf'}]]}]}
    """
    if value is None or type(value) in (bool, str):
        return value
    for kind, write in _WRITERS.items():
        if type(value) is kind:
            return write(value)
    if isinstance(value, np.generic) and value.dtype.name in _ARRAYS:
        return {"numpy": value.dtype.name, "value": written(value.item())}
    if is_dataclass(value) and type(value).__module__.startswith("zerodelta."):
        parts = {each.name: written(getattr(value, each.name)) for each in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    table = _as_table(value)
    if table is None:
        raise ParameterError(
            "value",
            type(value).__name__,
            expected="numbers, texts, arrays, tables, or what zerodelta itself releases",
            remedy="publish one of these, or save its parts by yourself",
        )
    return table


def _integer(value: int) -> Any:
    return {"int": hex(value)} if value.bit_length() > _LONG else value


def _float(value: float) -> Any:
    return value if math.isfinite(value) else {"float": repr(value)}


def fraction_text(value: Fraction) -> str:
    """Return a fraction as "p/q", hexadecimal where it is very long."""
    long = max(value.numerator.bit_length(), value.denominator.bit_length()) > _LONG
    show: Callable[[int], str] = hex if long else str
    return f"{show(value.numerator)}/{show(value.denominator)}"


def _array(value: Any) -> Any:
    kind, flat = value.dtype, value.ravel()
    if kind.name in _ARRAYS:
        plain = flat.tolist()
        cells = [_float(each) for each in plain] if kind.kind == "f" else plain
        return {"array": kind.name, "shape": list(value.shape), "cells": cells}
    if kind.kind == "M":
        cells = flat.astype(np.int64).tolist()
        return {"array": kind.name, "shape": list(value.shape), "cells": cells}
    if kind.kind in "UO":
        cells = [written(each) for each in flat.tolist()]
        name = "text" if kind.kind == "U" else "object"
        return {"array": name, "shape": list(value.shape), "cells": cells}
    raise ParameterError(
        "value",
        str(kind),
        expected="arrays of numbers, texts or objects",
        remedy="save its parts by yourself",
    )


_WRITERS: Mapping[type, Callable[[Any], Any]] = {
    int: _integer,
    float: _float,
    Fraction: lambda value: {"fraction": fraction_text(value)},
    Decimal: lambda value: {"decimal": str(value)},
    date: lambda value: {"date": value.isoformat()},
    list: lambda value: [written(each) for each in value],
    tuple: lambda value: {"tuple": [written(each) for each in value]},
    dict: lambda value: {"dict": [[written(k), written(v)] for k, v in value.items()]},
    np.ndarray: _array,
}


def _as_table(value: Any) -> Any:
    """Return a light table, or a data frame: with errors beside its numbers it is one, too."""
    from zerodelta.privacy.interval_shapes import LightTable, as_frame

    if isinstance(value, LightTable):
        keys = {name: list(value[name]) for name in value.keys}
        numbers = {name: value[name] for name in value.columns if name not in keys}
        return _table(keys, numbers, getattr(value, "note", ""))
    frame = as_frame(value)
    if frame is None:
        return None
    cells = {name: frame[name].to_list() for name in frame.columns}
    counted = [place for place, name in enumerate(cells) if f"{name}_error" in cells]
    if not counted:
        return written({name: np.array(column) for name, column in cells.items()})
    named = list(cells.items())
    numbers = {name: np.array(column) for name, column in named[counted[0] :]}
    return _table(dict(named[: counted[0]]), numbers, "")


def _table(keys: Mapping[str, Any], numbers: Mapping[str, Any], note: str) -> Any:
    return {
        "table": {
            "keys": [[name, [written(each) for each in labels]] for name, labels in keys.items()],
            "numbers": [[name, written(column)] for name, column in numbers.items()],
            "note": note,
        }
    }


def read_value(data: Any, classes: Mapping[str, Callable[..., Any]]) -> Any:
    """Return the value that `written` wrote; `classes` are those that may be made, by their names.

    >>> read_value({"tuple": [{"fraction": "1/3"}, 2.0]}, {})
    (Fraction(1, 3), 2.0)
    """
    return reader(classes)(data)


def reader(classes: Mapping[str, Callable[..., Any]]) -> Callable[[Any], Any]:
    """Return `read_value` for all parts of one file: they share what memory texts may take."""
    one = _Reader(classes)
    return lambda data: _read(one, data)


def _read(one: _Reader, data: Any) -> Any:
    try:
        return one.value(data, 0)
    except RecordError:
        raise
    except Exception as error:  # whatever someone wrote into a file
        raise RecordError(
            f"the value cannot be read ({type(error).__name__}): the file was changed by hand, or "
            "written by a newer zerodelta; upgrade, or load it as it was saved."
        ) from None


class _Reader:
    """Reads with the classes that may be made."""

    def __init__(self, classes: Mapping[str, Callable[..., Any]]) -> None:
        self._classes = classes
        self._bytes = 0

    def value(self, data: Any, depth: int) -> Any:
        """Return the value of some JSON that lies so deep."""
        if depth > _DEEPEST:
            raise RecordError(f"the value is nested more than {_DEEPEST} deep: no value is.")
        if type(data) is list:
            return _apart([self.value(each, depth + 1) for each in data])
        if type(data) is not dict:
            return data
        names = tuple(sorted(data))
        if names == ("dict",):
            pairs = [(self.value(k, depth + 1), self.value(v, depth + 1)) for k, v in data["dict"]]
            _apart([key for key, _ in pairs])
            made = dict(pairs)
            if len(made) < len(pairs):
                raise RecordError("a key occurs twice in the value.")
            return made
        if names == ("tuple",):
            return tuple(_apart([self.value(each, depth + 1) for each in data["tuple"]]))
        if names == ("fields", "type"):
            return self._instance(data["type"], data["fields"], depth)
        if names == ("array", "cells", "shape"):
            return self._array(data["array"], tuple(data["shape"]), data["cells"], depth)
        if names == ("table",):
            return self._table(data["table"], depth)
        if names == ("numpy", "value"):
            return _ARRAYS[data["numpy"]].type(self.value(data["value"], depth + 1))
        (name,) = names
        return _READERS[name](data[name])

    def _instance(self, name: Any, parts: Mapping[str, Any], depth: int) -> Any:
        make = self._classes.get(name) if type(name) is str else None
        if make is None:
            raise RecordError(
                f"a value of type {name!r:.60} is not known here: upgrade zerodelta, or load the "
                "file as it was saved."
            )
        return make(**{each: self.value(part, depth + 1) for each, part in parts.items()})

    def _array(self, kind: str, shape: tuple[int, ...], cells: list[Any], depth: int) -> Any:
        if kind in _ARRAYS:
            plain = [self.value(each, depth + 1) if type(each) is dict else each for each in cells]
            return np.array(plain, dtype=_ARRAYS[kind]).reshape(shape)
        if _DATES.fullmatch(kind):
            return np.array(cells, dtype=np.int64).astype(kind).reshape(shape)
        if kind == "text":
            self._bytes += 4 * len(cells) * max(map(len, cells), default=0)
            if self._bytes > _MOST_BYTES:
                raise RecordError("arrays of texts are too large: they would not fit into memory.")
            return np.array(cells, dtype=np.str_).reshape(shape)
        if kind != "object":
            raise RecordError(f"an array of {kind!r:.20} is not known here: upgrade zerodelta.")
        made = np.empty(len(cells), dtype=object)
        made[:] = _apart([self.value(each, depth + 1) for each in cells])
        return made.reshape(shape)

    def _table(self, parts: Mapping[str, Any], depth: int) -> Any:
        keys = {name: self.value(labels, depth + 1) for name, labels in parts["keys"]}
        numbers = {name: self.value(column, depth + 1) for name, column in parts["numbers"]}
        return self._classes["Table"](keys, numbers, note=parts["note"])


def _apart(values: list[Any]) -> list[Any]:
    """Refuse many different numbers, or tuples, of one hash: those of texts are not foreseeable."""
    if len(values) <= _MOST_ALIKE:
        return values
    alike: dict[int, list[Any]] = {}
    for value in values:
        if type(value) in (int, Fraction, Decimal, tuple):
            with suppress(TypeError):  # a tuple with a list in it is no key of anything
                alike.setdefault(hash(value), []).append(value)
    for same in alike.values():
        if len(same) > _MOST_ALIKE and len({_text(each) for each in same}) > _MOST_ALIKE:
            raise RecordError("numbers in the value are chosen to take long; do not rely on it.")
    return values


def _text(value: Any) -> str:
    return json.dumps(written(value))


def read_fraction(text: str) -> Fraction:
    """Return the fraction that `fraction_text` wrote."""
    if len(text) > _LONGEST_FRACTION:
        raise RecordError("a fraction is too long: load the file as it was saved.")
    above, below = (int(part, 16 if "x" in part else 10) for part in text.split("/"))
    return Fraction(above, below)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": lambda text: _ODD[text],
    "fraction": read_fraction,
    "decimal": Decimal,
    "date": date.fromisoformat,
}
