"""Return intervals in the shape of a released value: a number, an array, or a table.

A release without intervals raises an error that names the reason, and a release that has some.
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

_NO_INTERVAL = {
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
"""By the theorem of a step: the method without intervals, and what to ask for instead."""

_WITH_INTERVALS = "a count, a sum, a mean, a covariance or a table of the same rows"

_COUNT, _RANKS = "count", "_rank_error"
_QUANTILE = re.compile(r".*_(median|q\d+(\.\d+)?)", re.DOTALL)
"""The names of quantiles in a table."""

_ROWS = "the rows that count, with values clipped to the bounds"


@runtime_checkable
class LightTable(Protocol):
    """A released table that is no data frame."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that label the groups."""
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
        """The counts of the keys."""
        ...  # pragma: no cover


@value(eq=False)
class Cells:
    """The numbers of a released value as columns by name, and the labels of their lines."""

    keys: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Any]
    exact: tuple[str, ...] = ()
    """The names of numbers that were public before the release."""
    errors: Mapping[str, Any] = field(default_factory=dict)
    """The expected errors of numbers, in the unit of each, where a table has them."""
    quantiles: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """For the columns of a table that are quantiles, the column of the data and the level."""


def interval_of(
    release: Release, level: Rational, *, of: str, simultaneous: bool
) -> tuple[Any, Any]:
    """Return the lower and the upper ends in the shape of the value."""
    ends = intervals_by_name(release, level, of=of, simultaneous=simultaneous)
    if not ends:
        raise _refusal(release, of=of)
    value = release.value
    lower, upper = ({name: pair[side] for name, pair in ends.items()} for side in (0, 1))
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


def intervals_by_name(
    release: Release, level: Rational, *, of: str, simultaneous: bool
) -> dict[str, Pair]:
    """Return the ends of all statistics that have an interval, by name."""
    exact = as_rational(level, "level")
    require(0 < exact < 1, "level", level, expected="between 0 and 1", remedy="pass level=0.95")
    require(
        of in ("sample", "population"),
        "of",
        of,
        expected='"sample" (the rows) or "population" (from which they were drawn)',
        remedy='pass of="sample"',
    )
    units = [step.numbers["max_rows"] for step in _steps(release) if step.theorem == "units"]
    ends = intervals(
        release.sums,
        Level(
            level=exact,
            population=of == "population",
            simultaneous=bool(simultaneous),
            unit_rows=max(map(int, units)) if units else None,
        ),
    )
    return _of_matrix(ends, len(release.value)) if _is_matrix(release) else ends


def _refusal(release: Release, *, of: str = "sample") -> ParameterError:
    """Return the error for a release without intervals, with its reason and what to ask instead.

    It is computed from the certificate, which is public.
    """
    if release.sums and of == "population":
        expected = "a mean, a variance or a std: without its size a population has no other numbers"
        return ParameterError("of", of, expected=expected, remedy='pass of="sample"')
    theorems = [step.theorem for step in _steps(release)]
    reason = next((_NO_INTERVAL[name] for name in theorems if name in _NO_INTERVAL), None)
    if reason is None:
        expected = "numbers with a noise law of their own; these were computed from such numbers"
        return ParameterError("interval", expected=expected, remedy=f"ask for {_WITH_INTERVALS}")
    method, remedy = reason
    expected = f"a noise law that is public, which that of {method} is not"
    return ParameterError("interval", expected=expected, remedy=f"ask for {remedy}")


def covered(release: Release) -> str:
    """Return a text that says what the intervals of a release cover, and what they do not."""
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
    """Tell whether a value is a data frame or a `LightTable`."""
    return isinstance(value, LightTable) or as_frame(value) is not None


def cells_of(release: Release) -> Cells:
    """Return the numbers of a released value, with labels; a value of another kind has none.

    In a table, a statistic is a column with another one for its errors; the columns before the
    first statistic are keys.
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
        name: column
        for name, column in columns.items()
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
    """Return the column of the data and the level for the name of a quantile in a table.

    >>> _level("income_q2.5"), _level("net_income_median")
    (('income', 0.025), ('net_income', 0.5))
    """
    column, _, level = name.rpartition("_")
    return column, 0.5 if level == "median" else float(level[1:]) / 100


def _is_matrix(release: Release) -> bool:
    """Tell whether a value is a matrix of covariances or correlations."""
    value = release.value
    return release.sums != () and isinstance(value, np.ndarray) and value.ndim == 2


def _of_matrix(ends: dict[str, Pair], columns: int) -> dict[str, Pair]:
    """Return the ends of all entries of a symmetric matrix, line by line.

    `ends` has those above the diagonal, and for covariances those of the variances.
    """
    *_, name = ends
    sides = []
    for side in (0, 1):
        matrix = np.diag(ends["variance"][side] if "variance" in ends else np.ones(columns))
        if name != "variance":
            matrix[np.triu_indices(columns, 1)] = ends[name][side]
            matrix = np.triu(matrix) + np.triu(matrix, 1).T
        sides.append(matrix.reshape(-1))
    return {name: (sides[0], sides[1])}


def _steps(release: Release) -> Iterator[Any]:
    """Yield the proof steps of all parts of a certificate."""
    for part in release.certificate.parts:
        yield from part.steps


def _name(release: Release) -> str:
    """Return the name of the only statistic of a release, else "value"."""
    names = [name for sums in release.sums for name in sums.statistics]
    return names[-1] if len(names) == 1 or _is_matrix(release) else "value"


def _places(release: Release, size: int) -> dict[str, Sequence[Any]]:
    """Return the labels of the entries of an array, from the recorded arguments of the call."""
    record, labels = release.record, _labels(release, size)
    task = "" if record is None else record.task
    arguments = {} if record is None else record.parameters
    for name, column in (("quantiles", "q"), ("cdf", "at")):
        listed = arguments.get(column)
        if isinstance(listed, list) and len(listed) == 2 and isinstance(listed[0], list):
            listed = listed[1]  # an array is recorded as its shape and its entries
        if task == name and isinstance(listed, list) and len(listed) == size:
            return {"quantile" if name == "quantiles" else column: listed}
    if task == "histogram":
        columns = arguments.get("columns")
        return {columns if isinstance(columns, str) else "item": labels}
    return {"label": labels}


def _labels(release: Release, size: int) -> Sequence[Any]:
    """Return the names of a release's `size` entries, or their positions."""
    for sums in release.sums:
        labels = list(sums.statistics) if sums.labels is None else sums.labels
        if len(labels) == size:
            return labels
    return range(size)


def _array(ends: Mapping[str, Any], value: Any) -> Any:
    """Return ends in the shape of an array: of one statistic, or of one for each entry."""
    columns = list(ends.values())
    entries = columns[0] if len(columns) == 1 else np.array([column[0] for column in columns])
    return np.asarray(entries).reshape(value.shape)


def _table(value: Any, cells: Cells, ends: Mapping[str, Any]) -> Any:
    """Return the table with ends in place of numbers, empty for numbers without an interval."""
    if isinstance(value, LightTable):
        nan = np.full(len(next(iter(ends.values()))), np.nan)
        return value.with_numbers({name: ends.get(name, nan) for name in cells.numbers})
    return with_groups(value, cells, {name: ends.get(name) for name in cells.numbers})


def with_groups(value: Any, cells: Cells, numbers: Mapping[str, Any]) -> Any:
    """Return a frame of the same kind as `value` with its groups and other numbers; None: empty."""
    frame = as_frame(value)
    if frame is None:  # pragma: no cover
        raise AssertionError("a value with groups is a frame")
    columns = {
        name: [None] * len(frame) if column is None else np.asarray(column).tolist()
        for name, column in numbers.items()
    }
    new_frame = nw.from_dict(columns, backend=frame.implementation)
    if not cells.keys:
        return new_frame.to_native()
    keys = frame.select(*cells.keys)
    return nw.concat([keys, new_frame], how="horizontal").to_native()


def as_frame(value: Any) -> Any:
    """Return a data frame of any kind as a Narwhals frame, or None for another value."""
    frame = nw.from_native(value, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None
