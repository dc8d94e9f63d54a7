"""Released values as JSON, and back; and whether a value is one that its noisy sums give.

Whatever JSON has no word for is an object with one name that says what it is. Nothing is ever
unpickled: a class is looked up among those that a caller names.
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
from zerodelta.exact.arrays import Floats
from zerodelta.exact.noise_tails import NoisySums
from zerodelta.exact.rational import as_rational
from zerodelta.exact.sums import whole_counts
from zerodelta.privacy.interval_shapes import LightTable
from zerodelta.privacy.intervals import values_of
from zerodelta.privacy.release import Record

_LONG = 13_000
"""Bits of an integer; those with more are hexadecimal."""

_LONGEST_FRACTION = 1 << 16
"""Characters; what is longer would take seconds to reduce, and none of ours is."""

_DEEPEST = 60
"""How far values may be nested."""

_MOST_BYTES = 1 << 28
"""Of all texts in arrays; one takes four for each character of the longest in its array."""

_LONGEST_SIDE = 1 << 12
"""Of an array without cells: there is nothing that could make one longer."""

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
        if not all(0 <= side <= max(len(cells), _LONGEST_SIDE) for side in shape):
            raise RecordError("the shape of an array is not that of its cells.")
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
        keys = {_name(name): self.value(labels, depth + 1) for name, labels in parts["keys"]}
        numbers = {_name(name): self.value(column, depth + 1) for name, column in parts["numbers"]}
        return self._classes["Table"](keys, numbers, note=parts["note"])


def _name(given: Any) -> str:
    """Return the name of a column, as only texts are."""
    if type(given) is not str:
        raise TypeError
    return given


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


# -- Whether a saved value is one that its own noisy sums give, and lies where its verb puts it ---
# A release keeps the noisy integers of which its value was made. Whoever changes the value alone
# is found here; whoever changes both, and computes the digest anew, is not: that takes a
# signature, or the ledger that noted the digest.

_NEAR = 1e-9
"""More than float64 rounds on the way from integers to a value, relative to its bounds."""

_ROOT = 100.0
"""The root of 1e-14, below which nothing is left of a difference of numbers up to 1, over _NEAR."""

_SPREADS = ("std", "variance")
_INSIDE = ("mean", "median", "quantile", "quantiles", "trimmed_mean")
_TOTAL = re.compile(r"the number of (?:all )?rows, ([0-9]+)")


def check_value(value: Any, sums: Sequence[NoisySums], record: Record) -> None:
    """Refuse a value that its noisy sums do not give, or that lies where no such value can be."""
    try:
        fine = _is_given(value, sums, record) and _is_inside(value, record)
    except Exception:  # whatever someone wrote into a file
        fine = False
    if not fine:
        raise RecordError(
            "the value is not one that its own noisy sums and bounds give: it was changed, and the "
            "digest computed anew; ask whoever made it for the file as it was saved."
        )


# -- what sums give -------------------------------------------------------------------------------


def _is_given(value: Any, sums: Sequence[NoisySums], record: Record) -> bool:
    if not sums:
        return True
    named: dict[str, list[NoisySums]] = {}
    for each in sums:
        for name in each.statistics:
            named.setdefault(name, []).append(each)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return _is_matrix(value, sums)
    if record.task == "cdf":  # fitted to all of its counts
        return _is_distribution(value)
    if _is_in_ball(value, sums):
        return True
    found = _numbers(value, list(named))
    total = _total(record)
    return found is not None and all(
        _agrees(found[name], name, parts, total) for name, parts in named.items()
    )


def _numbers(value: Any, names: list[str]) -> dict[str, Any] | None:
    """Return the numbers of a value by the names of statistics; None if they are not there."""
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
    """Tell whether a value is a number, or a vector of numbers, of which there are some."""
    if not isinstance(value, np.ndarray):
        return _is_number(value)
    return value.ndim == 1 and value.size > 0 and value.dtype.kind in "iuf"


def _agrees(found: Any, name: str, parts: list[NoisySums], total: int | None) -> bool:
    numbers = np.asarray(found)
    if len(parts) > 1:  # rows that several parts count are averaged
        return name == "count" and (total is not None or _is_between(numbers, parts))
    one = parts[0]
    column, statistic = one.statistics[name]
    if statistic == "count":
        counts = [int(each) for each in numbers.tolist()]
        return any(_same_counts(counts, each) for each in _counts(one, column, total))
    given = list(_statistics(one, column, statistic))
    return any(
        numbers.shape == each.shape and bool(np.all(np.abs(numbers - each) <= _NEAR * size))
        for each, size in given
    )


def _is_between(counts: npt.NDArray[Any], parts: list[NoisySums]) -> bool:
    noisy = [values_of(part.forms[None][0], part.integers) for part in parts]
    found = np.clip(np.array([_floats(each) for each in noisy]), 0.0, None)
    low, high = found.min(axis=0) - 1, found.max(axis=0) + 1
    return counts.shape == low.shape and bool(np.all((low <= counts) & (counts <= high)))


def _same_counts(counts: list[int], given: list[int]) -> bool:
    return len(counts) == len(given) and all(
        abs(a - b) <= 1 for a, b in zip(counts, given, strict=True)
    )


def _counts(sums: NoisySums, column: str | None, total: int | None) -> Iterator[list[int]]:
    """Return the counts as they are and, of tables, whole and not negative, with their total."""
    noisy = values_of(sums.forms[column][0], sums.integers)
    if sums.rest is not None and sums.rows is not None:
        whole = [int(each) for each in noisy]
        whole.insert(sums.rest, sums.rows - sum(whole))
        yield whole
        return
    yield [round(each) for each in noisy]
    floats = np.array([float(each) for each in noisy])
    yield [int(each) for each in whole_counts(floats)]
    if total is not None:
        yield [int(each) for each in whole_counts(floats, total=total)]


def _statistics(sums: NoisySums, column: str | None, statistic: str) -> Iterator[tuple[Any, Any]]:
    """Return what a statistic is, as the sums give it, and how large what it was made of is."""
    if statistic == "integers":
        units = sums.law.unit
        flat = [int(each) for each in sums.integers.reshape(-1).tolist()]
        each = units if isinstance(units, tuple) else (units,) * len(flat)
        found = np.array([float(k * unit) for k, unit in zip(flat, each, strict=True)])
        yield found, np.abs(found)
        return
    forms, (lower, upper) = sums.forms[column], sums.bounds[str(column)]
    if statistic == "form":
        found = np.array(_floats(values_of(forms[0], sums.integers)))
        yield np.clip(found, float(lower), float(upper)), max(abs(float(lower)), abs(float(upper)))
        return
    powers = [values_of(form, sums.integers) for form in forms]
    low, high = (np.array(_floats(end)) for end in (lower, upper))
    center, half = low / 2 + high / 2, _width(lower, upper) / 2
    count, first = (np.array(_floats(each)) for each in powers[:2])
    most = np.abs(center) + half
    if statistic == "sum":
        yield center * count + half * first, np.abs(center * count) + np.abs(half * first)
        return
    known = count > 0
    divisor = np.where(known, count, 1.0)
    raw = np.where(known, first / divisor, 0.0)
    middle = np.clip(raw, -1.0, 1.0)
    if statistic == "mean":
        yield np.clip(center + half * middle, low, high), most
        return
    second = np.array(_floats(powers[2]))
    spread = np.where(known, np.clip(second / divisor - middle**2, 0.0, 1.0), 0.5)
    variance = spread * half * half
    # a small variance is what is left of numbers as large as 1, and its root errs by more
    yield (np.sqrt(variance), half * _ROOT) if statistic == "std" else (variance, half * half)


def _is_in_ball(value: Any, sums: Sequence[NoisySums]) -> bool:
    """Tell whether a value is the mean of rows of a ball around 0, shortened to its radius."""
    one = sums[0]
    kinds = {statistic for _, statistic in one.statistics.values()}
    if len(sums) > 1 or kinds != {"mean"} or not isinstance(value, np.ndarray):
        return False
    raw: list[float] = []
    for column, _ in one.statistics.values():
        count, first = (values_of(form, one.integers) for form in one.forms[column][:2])
        raw += [float(y / n) if n > 0 else 0.0 for n, y in zip(count, first, strict=True)]
    low, high = (np.ravel(_floats(end)) for end in next(iter(one.bounds.values())))
    if not raw or np.any(low != -high[0]) or np.any(high != high[0]):
        return False
    radius, length = float(high[0]), float(np.linalg.norm(raw))
    given = np.array(raw) * radius * (min(1.0, 1.0 / length) if length > 0 else 1.0)
    return value.shape == given.shape and bool(np.all(np.abs(value - given) <= _NEAR * radius))


def _is_distribution(value: Any) -> bool:
    shares = np.asarray(value)
    inside = _are_numbers(value) and bool(np.all((shares >= 0) & (shares <= 1)))
    return inside and bool(np.all(np.diff(shares) >= -_NEAR))


def _is_matrix(value: Any, sums: Sequence[NoisySums]) -> bool:
    """Tell whether covariances, or correlations, are in range: noise is projected out of them."""
    most: Any = np.ones(value.shape)
    for each in sums:
        for name, (column, _) in each.statistics.items():
            lower, upper = each.bounds[str(column)]
            if name == "variance":
                width = _width(lower, upper)
                most = np.outer(width, width) / 4
            elif name == "covariance":  # on a lattice that is as wide or, by rounding, wider
                pairs = np.triu_indices(len(most), 1)
                ends = zip(_floats(upper), most[pairs], strict=True)
                most = most * max([1.0, *(a / b for a, b in ends if b > 0)])
    square = value.shape[0] == value.shape[1] == len(most)
    near = np.abs(value - value.T) <= _NEAR * most
    return square and bool(np.all(near & (np.abs(value) <= most * (1 + _NEAR))))


# -- where a value can be -------------------------------------------------------------------------


def _is_inside(value: Any, record: Record) -> bool:
    """Tell whether quantiles, means and variances lie within the bounds that the record states."""
    ranged = record.task in (*_INSIDE, *_SPREADS)
    if isinstance(value, LightTable):
        keys = record.parameters.get("by") or ()
        if ranged and not keys:
            return False
        named = [keys] if isinstance(keys, str) else [_name(key) for key in keys]
        names = set(value.columns) - set(named)  # a key may be named like a statistic
        return all(
            _fits(value[name], ends, statistic)
            for column, ends in _declared(record).items()
            for name in names
            if (statistic := _statistic_of(name, column)) is not None
        )
    ends = _ends(record) if ranged else None
    return ends is None or (_are_numbers(value) and _fits(value, ends, record.task))


def _statistic_of(name: str, column: str) -> str | None:
    """Return which statistic of a column a column of a table holds, if it is one in a range."""
    found = name.removeprefix(f"{column}_")
    if found == name or not re.fullmatch(r"mean|std|variance|median|q[0-9.]+", found):
        return None
    return found


def _fits(value: Any, ends: tuple[Any, Any], statistic: str) -> bool:
    low, high = (np.array(_floats(end)) for end in ends)
    found = np.asarray(value, dtype=np.float64)
    slack = _NEAR * max(float(np.abs(low).max()), float(np.abs(high).max()))
    if statistic in _SPREADS:
        most = _width(*ends) / 2
        low, high = np.zeros_like(most), most if statistic == "std" else most * most
        slack *= 1 if statistic == "std" else float(np.max(most))
    return bool(np.all((low - slack <= found) & (found <= high + slack)))


def _ends(record: Record) -> tuple[Any, Any] | None:
    """Return the bounds of the one column, or of each, that was asked about."""
    given = record.parameters.get("bounds")
    if given is not None:
        return _pair(given)
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
    """Return the bounds of the columns of the data sets, as far as these are numbers."""
    found = {}
    for data in record.data:
        for name, kind in data.get("columns", {}).items():
            ends = _pair(kind.get("number")) if isinstance(kind, Mapping) else None
            if ends is not None:
                found[name] = ends
    return found


def _pair(given: Any) -> tuple[Any, Any] | None:
    """Return two numbers, or two lists of them, exactly; None for anything else."""
    if not isinstance(given, list) or len(given) != 2:
        return None
    try:
        low, high = (
            [_number(each) for each in end] if isinstance(end, list) else _number(end)
            for end in given
        )
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return low, high


def _number(given: Any) -> Fraction:
    number = as_rational(given, "bounds")
    float(number)  # or it is too large to be one
    return number


def _total(record: Record) -> int | None:
    """Return the number of rows that the record lists as public."""
    for each in record.public:
        listed = _TOTAL.fullmatch(each)
        if listed is not None:
            return int(listed[1])
    return None


def _width(lower: Any, upper: Any) -> Floats:
    """Return how far ends are apart: floats far from 0 may be as far from each other as these."""
    if isinstance(lower, (list, tuple)):
        return np.array([float(b - a) for a, b in zip(lower, upper, strict=True)])
    return np.array(float(upper - lower))


def _floats(values: Any) -> Any:
    return [float(each) for each in values] if isinstance(values, (list, tuple)) else float(values)
