"""Write released values as JSON and read them back; check a value against its noisy sums.

A value without a JSON type of its own is an object whose only key names the type. Nothing is ever
unpickled: a class is looked up among those that a caller passes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, RecordError
from zerodelta.exact.noise_tails import NoisySums
from zerodelta.exact.rational import as_rational
from zerodelta.exact.sums import whole_counts
from zerodelta.privacy.interval_shapes import LightTable, as_frame
from zerodelta.privacy.release import Record
from zerodelta.privacy.statistics import (
    COLUMN_STATISTICS,
    STATISTICS,
    as_floats,
    floats_of,
    values_of,
    widths_of,
)

_LONG = 13_000
"""Integers with more bits are written in hexadecimal."""

_LONGEST_FRACTION = 1 << 16
"""The largest number of characters of a fraction; a longer one would take seconds to reduce."""

_MAX_DEPTH = 60
"""The largest depth of nested values."""

_MAX_TEXT_BYTES = 1 << 28
"""The memory of all texts in arrays: each takes 4 bytes a character of the longest in its array."""

_LONGEST_EMPTY_SIDE = 1 << 12
"""The longest side of an array without cells; a longer one says nothing, and could be huge."""

_MAX_SAME_HASH = 64
"""The largest number of different numbers with one hash: a dictionary of n takes n² steps."""

_DATES = re.compile(r"datetime64\[[0-9]{0,9}(generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")

_ARRAYS = {np.dtype(kind).name: np.dtype(kind) for kind in "?bhilqBHILQefd"}
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def written(value: Any) -> Any:
    """Return a value as JSON, from which `read_value` restores an equal value of the same type.

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
        parts = {field.name: written(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    table = _as_table(value)
    if table is None:
        raise ParameterError(
            "value",
            type(value).__name__,
            expected="numbers, texts, arrays, tables, or values that zerodelta itself releases",
            remedy="publish one of these, or save its parts separately",
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
    """Return an array as JSON: its type, shape and cells."""
    dtype, flat = value.dtype, value.ravel()
    name = dtype.name
    if name in _ARRAYS:
        numbers = flat.tolist()
        cells = [_float(number) for number in numbers] if dtype.kind == "f" else numbers
    elif dtype.kind == "M":
        cells = flat.astype(np.int64).tolist()
    elif dtype.kind in "UO":
        cells = [written(cell) for cell in flat.tolist()]
        name = "text" if dtype.kind == "U" else "object"
    else:
        raise ParameterError(
            "value",
            str(dtype),
            expected="arrays of numbers, texts or objects",
            remedy="save its parts separately",
        )
    return {"array": name, "shape": list(value.shape), "cells": cells}


_WRITERS: Mapping[type, Callable[[Any], Any]] = {
    int: _integer,
    float: _float,
    Fraction: lambda value: {"fraction": fraction_text(value)},
    Decimal: lambda value: {"decimal": str(value)},
    date: lambda value: {"date": value.isoformat()},
    list: lambda value: [written(item) for item in value],
    tuple: lambda value: {"tuple": [written(item) for item in value]},
    dict: lambda value: {"dict": [[written(k), written(v)] for k, v in value.items()]},
    np.ndarray: _array,
}


def _as_table(value: Any) -> Any:
    """Return a light table or a data frame as JSON; None for any other value.

    A frame with columns of errors is a released table: the columns before its numbers are keys.
    Any other frame is a dict of columns.
    """
    if isinstance(value, LightTable):
        keys = {name: list(value[name]) for name in value.keys}
        numbers = {name: value[name] for name in value.columns if name not in keys}
        return _table(keys, numbers, getattr(value, "note", ""))
    frame = as_frame(value)
    if frame is None:
        return None
    columns = {name: frame[name].to_list() for name in frame.columns}
    statistics = [place for place, name in enumerate(columns) if f"{name}_error" in columns]
    if not statistics:
        return written({name: np.array(column) for name, column in columns.items()})
    first, pairs = statistics[0], list(columns.items())
    return _table(dict(pairs[:first]), {name: np.array(c) for name, c in pairs[first:]}, "")


def _table(keys: Mapping[str, Any], numbers: Mapping[str, Any], note: str) -> Any:
    """Return the JSON of a table of keys and numbers."""
    return {
        "table": {
            "keys": [[name, [written(label) for label in labels]] for name, labels in keys.items()],
            "numbers": [[name, written(column)] for name, column in numbers.items()],
            "note": note,
        }
    }


def read_value(data: Any, classes: Mapping[str, Callable[..., Any]]) -> Any:
    """Return the value that `written` wrote; only `classes`, by name, may be instantiated.

    >>> read_value({"tuple": [{"fraction": "1/3"}, 2.0]}, {})
    (Fraction(1, 3), 2.0)
    """
    return reader(classes)(data)


def reader(classes: Mapping[str, Callable[..., Any]]) -> Callable[[Any], Any]:
    """Return a function like `read_value` for all parts of one file: they share a memory limit."""
    file_reader = _Reader(classes)

    def read(data: Any) -> Any:
        """Read a value from JSON; any error becomes one message about the file."""
        try:
            return file_reader.value(data, 0)
        except RecordError:
            raise
        except Exception as error:  # a file may hold anything
            raise RecordError(
                f"the value cannot be read ({type(error).__name__}): the file was changed by hand, "
                "or written by a newer zerodelta; upgrade, or load it as it was saved."
            ) from None

    return read


class _Reader:
    """Reads JSON values, instantiates only the classes that it was given, and counts memory."""

    def __init__(self, classes: Mapping[str, Callable[..., Any]]) -> None:
        self._classes = classes
        self._text_bytes = 0

    def value(self, data: Any, depth: int) -> Any:
        """Return the Python value of a JSON value, which may nest lists, arrays and classes."""
        if depth > _MAX_DEPTH:
            raise RecordError(
                f"the value is nested more than {_MAX_DEPTH} deep: take the file as it was saved."
            )
        if type(data) is list:
            return _check_hashes([self.value(item, depth + 1) for item in data])
        if type(data) is not dict:
            return data
        names = tuple(sorted(data))
        if names == ("dict",):
            pairs = [(self.value(k, depth + 1), self.value(v, depth + 1)) for k, v in data["dict"]]
            _check_hashes([key for key, _ in pairs])
            read = dict(pairs)
            if len(read) < len(pairs):
                raise RecordError("a key occurs twice in the value.")
            return read
        if names == ("tuple",):
            return tuple(_check_hashes([self.value(item, depth + 1) for item in data["tuple"]]))
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
        """Return an instance of an allowed class with these fields."""
        class_ = self._classes.get(name) if type(name) is str else None
        if class_ is None:
            raise RecordError(
                f"a value of type {name!r:.60} is not known here: upgrade zerodelta, or load the "
                "file as it was saved."
            )
        return class_(**{field: self.value(part, depth + 1) for field, part in parts.items()})

    def _array(self, kind: str, shape: tuple[int, ...], cells: list[Any], depth: int) -> Any:
        """Return an array of numbers, dates, texts or objects, refusing huge ones."""
        if not all(0 <= side <= max(len(cells), _LONGEST_EMPTY_SIDE) for side in shape):
            raise RecordError("the shape of an array is not that of its cells.")
        if kind in _ARRAYS:
            numbers = [self.value(c, depth + 1) if type(c) is dict else c for c in cells]
            return np.array(numbers, dtype=_ARRAYS[kind]).reshape(shape)
        if _DATES.fullmatch(kind):
            return np.array(cells, dtype=np.int64).astype(kind).reshape(shape)
        if kind == "text":
            self._text_bytes += 4 * len(cells) * max(map(len, cells), default=0)
            if self._text_bytes > _MAX_TEXT_BYTES:
                raise RecordError("arrays of texts are too large: they would not fit into memory.")
            return np.array(cells, dtype=np.str_).reshape(shape)
        if kind != "object":
            raise RecordError(f"an array of {kind!r:.20} is not known here: upgrade zerodelta.")
        objects = np.empty(len(cells), dtype=object)
        objects[:] = _check_hashes([self.value(cell, depth + 1) for cell in cells])
        return objects.reshape(shape)

    def _table(self, parts: Mapping[str, Any], depth: int) -> Any:
        keys = {_name(name): self.value(labels, depth + 1) for name, labels in parts["keys"]}
        numbers = {_name(name): self.value(column, depth + 1) for name, column in parts["numbers"]}
        return self._classes["Table"](keys, numbers, note=parts["note"])


def _name(name: Any) -> str:
    """Return the name of a column, refusing anything but a text."""
    if type(name) is not str:
        raise TypeError
    return name


def _check_hashes(values: list[Any]) -> list[Any]:
    """Return the values, refusing many different numbers, or tuples, with the same hash.

    A stranger could choose them so that every dictionary of them is slow. Hashes of texts are
    salted by Python, so these cannot be chosen.
    """
    if len(values) <= _MAX_SAME_HASH:
        return values
    by_hash: dict[int, list[Any]] = {}
    for value in values:
        if type(value) in (int, Fraction, Decimal, tuple):
            with suppress(TypeError):  # a tuple that contains a list has no hash
                by_hash.setdefault(hash(value), []).append(value)
    for same in by_hash.values():
        # compared as texts, because a set of the values would be as slow
        if len(same) > _MAX_SAME_HASH:
            different = {json.dumps(written(value)) for value in same}
            if len(different) > _MAX_SAME_HASH:
                raise RecordError("numbers in the value have chosen hashes; do not rely on it.")
    return values


def read_fraction(text: str) -> Fraction:
    """Return the fraction that `fraction_text` wrote."""
    if len(text) > _LONGEST_FRACTION:
        raise RecordError("a fraction is too long: load the file as it was saved.")
    numerator, denominator = (int(part, 16 if "x" in part else 10) for part in text.split("/"))
    return Fraction(numerator, denominator)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": lambda text: _ODD[text],
    "fraction": read_fraction,
    "decimal": Decimal,
    "date": date.fromisoformat,
}


# -- Check that a saved value follows from its own noisy sums and lies within its bounds ----------
# A release keeps the noisy integers from which its value was computed. A change of the value alone
# is detected here. A change of both, with a new digest, is not: that takes a signature, or the
# ledger that noted the digest.

_NEAR = 1e-9
"""A bound on the float64 rounding from integers to a value, relative to its bounds."""

_SPREADS = ("std", "variance")
_INSIDE = ("mean", "median", "quantile", "quantiles", "trimmed_mean")
_TOTAL = re.compile(r"the number of (?:all )?rows, ([0-9]+)")


def check_value(value: Any, sums: Sequence[NoisySums], record: Record) -> None:
    """Refuse a value that does not follow from its noisy sums, or lies outside of its bounds."""
    try:
        plausible = _follows(value, sums, record) and _is_inside(value, record)
    except Exception:  # a file may hold anything
        plausible = False
    if not plausible:
        raise RecordError(
            "the value does not follow from its own noisy sums and bounds: it was changed, and the "
            "digest computed again; ask whoever made it for the file as it was saved."
        )


# -- The value computed from the sums -------------------------------------------------------------


def _follows(value: Any, sums: Sequence[NoisySums], record: Record) -> bool:
    """Tell whether a value follows from its noisy sums; without any, nothing can be checked."""
    if not sums:
        return True
    parts_of: dict[str, list[NoisySums]] = {}
    for part in sums:
        for name in part.statistics:
            parts_of.setdefault(name, []).append(part)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return _is_matrix(value, sums)
    if record.task == "cdf":  # fitted to all counts together
        return _is_distribution(value)
    if _is_in_ball(value, sums):
        return True
    numbers = _numbers(value, list(parts_of))
    total = _total(record)
    return numbers is not None and all(
        _agrees(numbers[name], name, parts, total) for name, parts in parts_of.items()
    )


def _numbers(value: Any, names: list[str]) -> dict[str, Any] | None:
    """Return the numbers of a value by the names of statistics; None if a name has none."""
    if _is_number(value) and len(names) == 1:
        return {names[0]: [value]}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        if len(names) == 1:
            return {names[0]: value}
        pairs = zip(names, value.tolist(), strict=True)
        return {name: [number] for name, number in pairs}
    if isinstance(value, LightTable) and set(names) <= set(value.columns):
        return {name: value[name] for name in names}
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _are_numbers(value: Any) -> bool:
    """Tell whether a value is a number, or a vector of at least one number."""
    if not isinstance(value, np.ndarray):
        return _is_number(value)
    return value.ndim == 1 and value.size > 0 and value.dtype.kind in "iuf"


def _agrees(column_value: Any, name: str, parts: list[NoisySums], total: int | None) -> bool:
    """Tell whether the released numbers of one statistic agree with the sums that measured it."""
    numbers = np.asarray(column_value)
    if len(parts) > 1:  # counts that several parts measured are averaged
        return name == "count" and (total is not None or _is_between(numbers, parts))
    (part,) = parts
    column, statistic = part.statistics[name]
    if statistic == "count":
        counts = [int(number) for number in numbers.tolist()]
        return any(_same_counts(counts, expected) for expected in _counts(part, column, total))
    expected, size = STATISTICS[statistic].values(part, column)
    if numbers.shape != expected.shape:
        return False
    agrees = np.abs(numbers - expected) <= _NEAR * size
    if statistic in _SPREADS:
        earlier = COLUMN_STATISTICS[statistic].earlier_values(part, column)
        agrees |= np.abs(numbers - earlier) <= _NEAR * size
    return bool(np.all(agrees))


def _is_between(counts: npt.NDArray[Any], parts: list[NoisySums]) -> bool:
    """Tell whether counts lie between the smallest and the largest noisy count of the parts."""
    noisy = [floats_of(part.forms[None][0], part.integers) for part in parts]
    clipped = np.clip(np.array(noisy), 0.0, None)
    low, high = clipped.min(axis=0) - 1, clipped.max(axis=0) + 1
    return counts.shape == low.shape and bool(np.all((low <= counts) & (counts <= high)))


def _same_counts(counts: list[int], expected: list[int]) -> bool:
    """Tell whether counts are equal up to 1: rounding may go either way."""
    return len(counts) == len(expected) and all(
        abs(a - b) <= 1 for a, b in zip(counts, expected, strict=True)
    )


def _counts(sums: NoisySums, column: str | None, total: int | None) -> Iterator[list[int]]:
    """Yield the counts that verbs publish: rounded; whole and not negative; with a public total."""
    noisy = values_of(sums.forms[column][0], sums.integers)
    if sums.rest is not None and sums.rows is not None:
        counts = [int(count) for count in noisy]
        counts.insert(sums.rest, sums.rows - sum(counts))
        yield counts
        return
    yield [round(count) for count in noisy]
    floats = np.array([float(count) for count in noisy])
    yield [int(count) for count in whole_counts(floats)]
    if total is not None:
        yield [int(count) for count in whole_counts(floats, total=total)]


def _is_in_ball(value: Any, sums: Sequence[NoisySums]) -> bool:
    """Tell whether a value is a noisy mean vector projected onto a ball around 0."""
    part = sums[0]
    kinds = {statistic for _, statistic in part.statistics.values()}
    if len(sums) > 1 or kinds != {"mean"} or not isinstance(value, np.ndarray):
        return False
    means: list[float] = []
    for column, _ in part.statistics.values():
        counts, totals = (values_of(form, part.integers) for form in part.forms[column][:2])
        means += [float(y / n) if n > 0 else 0.0 for n, y in zip(counts, totals, strict=True)]
    low, high = (np.ravel(as_floats(end)) for end in next(iter(part.bounds.values())))
    if not means or np.any(low != -high[0]) or np.any(high != high[0]):
        return False
    radius, length = float(high[0]), float(np.linalg.norm(means))
    expected = np.array(means) * radius * (min(1.0, 1.0 / length) if length > 0 else 1.0)
    return value.shape == expected.shape and bool(
        np.all(np.abs(value - expected) <= _NEAR * radius)
    )


def _is_distribution(value: Any) -> bool:
    """Tell whether a vector of shares rises from 0 to 1 at most."""
    shares = np.asarray(value)
    inside = _are_numbers(value) and bool(np.all((shares >= 0) & (shares <= 1)))
    return inside and bool(np.all(np.diff(shares) >= -_NEAR))


def _is_matrix(value: Any, sums: Sequence[NoisySums]) -> bool:
    """Tell whether a matrix is symmetric, with covariances (or correlations) within their range.

    The entries themselves are not compared: the matrix was projected to be positive semidefinite.
    """
    limits: Any = np.ones(value.shape)
    for part in sums:
        for name, (column, _) in part.statistics.items():
            lower, upper = part.bounds[str(column)]
            if name == "variance":
                width = widths_of(lower, upper)
                limits = np.outer(width, width) / 4
            elif name == "covariance":  # its lattice may, by rounding, be a little wider
                pairs = np.triu_indices(len(limits), 1)
                ends = zip(as_floats(upper), limits[pairs], strict=True)
                limits = limits * max([1.0, *(a / b for a, b in ends if b > 0)])
    square = value.shape[0] == value.shape[1] == len(limits)
    symmetric = np.abs(value - value.T) <= _NEAR * limits
    return square and bool(np.all(symmetric & (np.abs(value) <= limits * (1 + _NEAR))))


# -- The range of a value -------------------------------------------------------------------------


def _is_inside(value: Any, record: Record) -> bool:
    """Tell whether quantiles, means and variances lie within the bounds that the record states."""
    ranged = record.task in (*_INSIDE, *_SPREADS)
    if isinstance(value, LightTable):
        keys = record.parameters.get("by") or ()
        if ranged and not keys:
            return False
        key_names = [keys] if isinstance(keys, str) else [_name(key) for key in keys]
        names = set(value.columns) - set(key_names)  # a key may be named like a statistic
        return all(
            _fits(value[name], ends, statistic)
            for column, ends in _declared(record).items()
            for name in names
            if (statistic := _statistic_of(name, column)) is not None
        )
    ends = _ends(record) if ranged else None
    return ends is None or (_are_numbers(value) and _fits(value, ends, record.task))


def _statistic_of(name: str, column: str) -> str | None:
    """Return the statistic of a column in a name such as income_mean; None for any other name."""
    statistic = name.removeprefix(f"{column}_")
    if statistic == name or not re.fullmatch(r"mean|std|variance|median|q[0-9.]+", statistic):
        return None
    return statistic


def _fits(value: Any, ends: tuple[Any, Any], statistic: str) -> bool:
    """Tell whether numbers are in the range of a statistic of a column with these bounds."""
    low, high = (np.array(as_floats(end)) for end in ends)
    numbers = np.asarray(value, dtype=np.float64)
    slack = _NEAR * max(float(np.abs(low).max()), float(np.abs(high).max()))
    if statistic in _SPREADS:
        half = widths_of(*ends) / 2  # no std is larger
        low, high = np.zeros_like(half), half if statistic == "std" else half * half
        slack *= 1 if statistic == "std" else float(np.max(half))
    return bool(np.all((low - slack <= numbers) & (numbers <= high + slack)))


def _ends(record: Record) -> tuple[Any, Any] | None:
    """Return the bounds in the request, else those declared for its columns, if known."""
    bounds = record.parameters.get("bounds")
    if bounds is not None:
        return _pair(bounds)
    if "data_norm" in record.parameters:
        return None
    declared, columns = _declared(record), record.parameters.get("columns")
    names = [columns] if isinstance(columns, str) else columns
    if names is None and len(record.data) == 1:
        names = list(record.data[0].get("columns", {}))
    if not isinstance(names, list) or not all(name in declared for name in names) or not names:
        return None
    pairs = [declared[name] for name in names]
    return pairs[0] if len(pairs) == 1 else ([a for a, _ in pairs], [b for _, b in pairs])


def _declared(record: Record) -> Mapping[str, tuple[Any, Any]]:
    """Return the bounds of those columns of the data sets that were declared as numbers."""
    bounds = {}
    for data in record.data:
        for name, kind in data.get("columns", {}).items():
            ends = _pair(kind.get("number")) if isinstance(kind, Mapping) else None
            if ends is not None:
                bounds[name] = ends
    return bounds


def _pair(entry: Any) -> tuple[Any, Any] | None:
    """Return two numbers, or two lists of them, exactly; None for anything else."""
    if not isinstance(entry, list) or len(entry) != 2:
        return None
    try:
        low, high = (
            [_number(number) for number in end] if isinstance(end, list) else _number(end)
            for end in entry
        )
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return low, high


def _number(entry: Any) -> Fraction:
    """Return a bound exactly, refusing one beyond the range of floats."""
    number = as_rational(entry, "bounds")
    float(number)  # OverflowError beyond that range
    return number


def _total(record: Record) -> int | None:
    """Return the number of rows that the record lists as public."""
    for sentence in record.public:
        match = _TOTAL.fullmatch(sentence)
        if match is not None:
            return int(match[1])
    return None
