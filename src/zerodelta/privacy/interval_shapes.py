"""Intervals in the shape of a released value: a number, an array, or a table with the same groups.

Which releases have some, what they cover, and for the others what to ask instead.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import narwhals as nw
import numpy as np

from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.intervals import Level, Pair, intervals
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.privacy.release import Release

_NONE = {
    "smooth-sensitivity": ("smooth sensitivity", 'the mean, or method="laplace"'),
    "propose-test-release": ("propose-test-release", 'the mean, or method="laplace"'),
    "pure-propose-test-release": ("propose-test-release", 'the mean, or method="laplace"'),
    "noisy-local-sensitivity": ("local sensitivity", "zd.mean or zd.sum of bounded values"),
    "pure-local-sensitivity": ("local sensitivity", "zd.mean or zd.sum of bounded values"),
    "permute-and-flip": (
        "permute-and-flip",
        "two more quantiles, some ranks below and above, or for the counts of options",
    ),
    "exponential-mechanism": ("the exponential mechanism", "counts or means of the options"),
    "joint-quantiles": ("joint quantiles", "more quantiles, some ranks below and above each"),
    "joint-top-k": ("joint selection", "zd.histogram or zd.table of the options"),
    "key-counts": (
        "counts that passed a threshold",
        "zd.table or zd.histogram of the keys that were found, at an ε of its own",
    ),
}
"""By the theorem of a step: what made the value, and what to ask for numbers with intervals."""

_SOMETHING = "a count, a sum, a mean, a covariance or a table of the same rows"

_COUNT, _RANKS = "count", "_rank_error"
_QUANTILE = re.compile(r".*_(median|q\d+(\.\d+)?)", re.DOTALL)
"""What a table calls a quantile; a file may have anything."""

_ROWS = "the rows that count, with values clipped to the bounds"


@runtime_checkable
class LightTable(Protocol):
    """A released table that is no data frame."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that say which group it is."""
        ...  # pragma: no cover

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        ...  # pragma: no cover

    def __getitem__(self, column: str) -> Any:
        """Return one column."""
        ...  # pragma: no cover

    def with_numbers(self, numbers: Mapping[str, Any]) -> LightTable:
        """Return the same groups with other numbers."""
        ...  # pragma: no cover


@runtime_checkable
class KeyList(Protocol):
    """A released list of keys with their counts."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a key."""
        ...  # pragma: no cover

    @property
    def names(self) -> list[Any]:
        """The keys."""
        ...  # pragma: no cover

    @property
    def counts(self) -> list[int]:
        """Their counts."""
        ...  # pragma: no cover


@value(eq=False)
class Cells:
    """The numbers of a value by name, each a list with one for each line, and what lines are."""

    keys: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Any]
    exact: tuple[str, ...] = ()
    """Numbers that were public before."""
    errors: Mapping[str, Any] = field(default_factory=dict)
    """The expected errors of numbers, in their own unit, where a table has them."""
    quantiles: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Which columns of a table are quantiles: of what, and at which level."""


def interval_of(
    release: Release, level: Rational, *, of: str, simultaneous: bool
) -> tuple[Any, Any]:
    """Return the lower and the upper ends in the shape of the value."""
    found = found_intervals(release, level, of=of, simultaneous=simultaneous)
    if not found:
        raise _refusal(release, of=of)
    value = release.value
    lower, upper = ({name: pair[side] for name, pair in found.items()} for side in (0, 1))
    if isinstance(value, np.ndarray):
        return _array(lower, value), _array(upper, value)
    if isinstance(value, (int, float)):
        (low,), (high,) = lower.values(), upper.values()
        return type(value)(low[0]), type(value)(high[0])
    cells = cells_of(release)
    exact = {name: cells.numbers[name] for name in cells.exact}
    return (
        _table(value, cells, {**lower, **exact}),
        _table(value, cells, {**upper, **exact}),
    )


def found_intervals(
    release: Release, level: Rational, *, of: str, simultaneous: bool
) -> dict[str, Pair]:
    """Return the ends of all statistics that have an interval."""
    exact = as_rational(level, "level")
    require(0 < exact < 1, "level", level, expected="between 0 and 1", remedy="pass level=0.95")
    require(
        of in ("sample", "population"),
        "of",
        of,
        expected='"sample" (the rows) or "population" (where they were drawn from)',
        remedy='pass of="sample"',
    )
    units = [step.numbers["max_rows"] for step in _steps(release) if step.theorem == "units"]
    asked = Level(
        level=exact,
        population=of == "population",
        simultaneous=bool(simultaneous),
        unit_rows=max(map(int, units)) if units else None,
    )
    found = intervals(release.sums, asked)
    return _of_matrix(found, len(release.value)) if _is_matrix(release) else found


def _refusal(release: Release, *, of: str = "sample") -> ParameterError:
    """Say why a release has no interval, and what to ask instead: public, as its certificate."""
    if release.sums and of == "population":
        expected = "a mean, a variance or a std: without its size a population has no other numbers"
        return ParameterError("of", of, expected=expected, remedy='pass of="sample"')
    made = next((_NONE[step.theorem] for step in _steps(release) if step.theorem in _NONE), None)
    if made is None:
        expected = "numbers with a noise law of their own; these were computed from such numbers"
        return ParameterError("interval", expected=expected, remedy=f"ask for {_SOMETHING}")
    method, remedy = made
    expected = f"a noise law that is public, which that of {method} is not"
    return ParameterError("interval", expected=expected, remedy=f"ask for {remedy}")


def covered(release: Release) -> str:
    """Say what intervals of a release cover, and what not."""
    if not release.sums:
        return f"No {_refusal(release)}"
    without = [
        name
        for name in (cells_of(release).numbers if is_table(release.value) else ())
        if not any(name in sums.statistics for sums in release.sums)
        and name not in cells_of(release).exact
    ]
    none = f" None for {', '.join(without)}: the law of the error is not public." if without else ""
    return (
        f"Intervals cover the statistics of {_ROWS}: what clipping changes, and rows or cells that "
        f"are missing, are not covered.{none}"
    )


def is_table(value: Any) -> bool:
    """Tell whether a value is a frame, or a light table."""
    return isinstance(value, LightTable) or as_frame(value) is not None


def cells_of(release: Release) -> Cells:
    """Return the numbers of a value; of what is none of these, none.

    Of a table, a statistic is a column that has its errors in another one; the columns before the
    first of these are keys.
    """
    value = release.value
    if isinstance(value, KeyList):
        keys = value.names if len(value.columns) > 1 else [(key,) for key in value.names]
        parts = {name: [key[i] for key in keys] for i, name in enumerate(value.columns)}
        return Cells(keys=parts, numbers={_COUNT: value.counts})
    if isinstance(value, (int, float, str)):
        return Cells(keys={}, numbers={_name(release): [value]})
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return Cells(keys=_places(release, len(value)), numbers={_name(release): value})
    if _is_matrix(release):
        labels = list(_labels(release, len(value)))
        pairs = list(itertools.product(labels, repeat=2))
        entries = {"row": [row for row, _ in pairs], "column": [column for _, column in pairs]}
        return Cells(keys=entries, numbers={_name(release): np.ravel(value)})
    if isinstance(value, LightTable):
        columns: dict[str, Any] = {name: value[name] for name in value.columns}
    else:
        frame = as_frame(value)
        columns = {} if frame is None else {name: frame[name].to_list() for name in frame.columns}
    numbers = {
        name: each
        for name, each in columns.items()
        if f"{name}_error" in columns or f"{name}{_RANKS}" in columns
    }
    errors = {n: columns[f"{n}_error"] for n in numbers if f"{n}_error" in columns}
    exact = tuple(
        name
        for name, error in errors.items()
        if not any(name in sums.statistics for sums in release.sums)
        and not np.any(np.asarray(error, dtype=np.float64))
    )
    before = list(columns)[: list(columns).index(next(iter(numbers)))] if numbers else columns
    return Cells(
        keys={name: columns[name] for name in before},
        numbers=numbers,
        exact=exact,
        errors=errors,
        quantiles={
            name: _level(name)
            for name in numbers
            if f"{name}{_RANKS}" in columns and _QUANTILE.fullmatch(name)
        },
    )


def _level(name: str) -> tuple[str, float]:
    """Return of which column a column of a table has a quantile, and its level.

    >>> _level("income_q2.5"), _level("net_income_median")
    (('income', 0.025), ('net_income', 0.5))
    """
    column, _, level = name.rpartition("_")
    return column, 0.5 if level == "median" else float(level[1:]) / 100


def _is_matrix(release: Release) -> bool:
    """Tell whether a value is a matrix of covariances or correlations."""
    value = release.value
    return release.sums != () and isinstance(value, np.ndarray) and value.ndim == 2


def _of_matrix(found: dict[str, Pair], columns: int) -> dict[str, Pair]:
    """Return the ends of all entries, line by line: a diagonal, or ones, and what is above it."""
    *_, name = found
    sides = []
    for side in (0, 1):
        made = np.diag(found["variance"][side] if "variance" in found else np.ones(columns))
        if name != "variance":
            made[np.triu_indices(columns, 1)] = found[name][side]
            made = np.triu(made) + np.triu(made, 1).T
        sides.append(made.reshape(-1))
    return {name: (sides[0], sides[1])}


def _steps(release: Release) -> Iterator[Any]:
    for part in release.certificate.parts:
        yield from part.steps


def _name(release: Release) -> str:
    names = [name for sums in release.sums for name in sums.statistics]
    return names[-1] if len(names) == 1 or _is_matrix(release) else "value"


def _places(release: Release, size: int) -> dict[str, Sequence[Any]]:
    """Return what the places of an array are, from what was asked."""
    record, labels = release.record, _labels(release, size)
    task = "" if record is None else record.task
    asked = {} if record is None else record.parameters
    for name, column in (("quantiles", "q"), ("cdf", "at")):
        listed = asked.get(column)
        if isinstance(listed, list) and len(listed) == 2 and isinstance(listed[0], list):
            listed = listed[1]  # of an array, its shape and its cells
        if task == name and isinstance(listed, list) and len(listed) == size:
            return {"quantile" if name == "quantiles" else column: listed}
    if task == "histogram":
        named = asked.get("columns")
        return {named if isinstance(named, str) else "item": labels}
    return {"label": labels}


def _labels(release: Release, size: int) -> Sequence[Any]:
    for sums in release.sums:
        given = list(sums.statistics) if sums.labels is None else sums.labels
        if len(given) == size:
            return given
    return range(size)


def _array(ends: Mapping[str, Any], value: Any) -> Any:
    found = list(ends.values())
    made = found[0] if len(found) == 1 else np.array([each[0] for each in found])
    return np.asarray(made).reshape(value.shape)


def _table(value: Any, cells: Cells, ends: Mapping[str, Any]) -> Any:
    """Return the groups with ends for numbers, in the order of the table; empty where none is."""
    if isinstance(value, LightTable):
        nan = np.full(len(next(iter(ends.values()))), np.nan)
        return value.with_numbers({name: ends.get(name, nan) for name in cells.numbers})
    return beside(value, cells, {name: ends.get(name) for name in cells.numbers})


def beside(value: Any, cells: Cells, numbers: Mapping[str, Any]) -> Any:
    """Return a frame of the kind of `value` with its groups, and numbers, or nothing for None."""
    frame = as_frame(value)
    if frame is None:  # pragma: no cover
        raise AssertionError("a value with groups is a frame")
    lines = {
        name: [None] * len(frame) if each is None else np.asarray(each).tolist()
        for name, each in numbers.items()
    }
    made = nw.from_dict(lines, backend=frame.implementation)
    if not cells.keys:
        return made.to_native()
    kept = frame.select(*cells.keys)
    return nw.concat([kept, made], how="horizontal").to_native()


def as_frame(value: Any) -> Any:
    """Return a data frame of any kind as Narwhals has it; None if it is none."""
    found = nw.from_native(value, eager_only=True, pass_through=True)
    return found if isinstance(found, nw.DataFrame) else None
