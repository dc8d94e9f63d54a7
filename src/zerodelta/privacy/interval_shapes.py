"""Return intervals in the shape of a released value: a number, an array, or a table.

Releases without intervals are refused with the reason and a question to ask instead.
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
"""For theorems without a public noise law: the method's name, and an alternative with intervals."""

_ALTERNATIVES = "a count, a sum, a mean, a covariance or a table of the same rows"

_COUNT, _RANKS = "count", "_rank_error"
_QUANTILE = re.compile(r".*_(median|q\d+(\.\d+)?)", re.DOTALL)
"""The name of a column of quantiles; a loaded file may have other names too."""

_ROWS = "the rows that count, with values clipped to the bounds"


@runtime_checkable
class LightTable(Protocol):
    """A released table that is not a data frame."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that identify a group."""
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
    """A released value as columns of equal length: keys that name the lines, and numbers."""

    keys: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Any]
    exact: tuple[str, ...] = ()
    """The names of numbers without noise: they were public before."""
    errors: Mapping[str, Any] = field(default_factory=dict)
    """The expected errors of the numbers, where a table has them."""
    quantiles: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """For columns of quantiles: the column that they are of, and the level."""


def interval_of(
    release: Release, level: Rational, *, of: str, simultaneous: bool
) -> tuple[Any, Any]:
    """Return the lower and the upper ends in the shape of the value."""
    pairs = intervals_by_name(release, level, of=of, simultaneous=simultaneous)
    if not pairs:
        raise _refusal(release, of=of)
    value = release.value
    lower, upper = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
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
    """Return the lower and upper ends of all statistics that have an interval."""
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
    coverage = Level(
        level=exact,
        population=of == "population",
        simultaneous=bool(simultaneous),
        unit_rows=max(map(int, units)) if units else None,
    )
    pairs = intervals(release.sums, coverage)
    return _of_matrix(pairs, len(release.value)) if _is_matrix(release) else pairs


def _refusal(release: Release, *, of: str = "sample") -> ParameterError:
    """Return the error that says why a release has no interval; it depends on its certificate."""
    if release.sums and of == "population":
        expected = "a mean, a variance or a std: without its size a population has no other numbers"
        return ParameterError("of", of, expected=expected, remedy='pass of="sample"')
    theorems = (step.theorem for step in _steps(release))
    method_and_remedy = next((_NO_INTERVAL[t] for t in theorems if t in _NO_INTERVAL), None)
    if method_and_remedy is None:
        expected = "numbers with a noise law of their own; these were computed from such numbers"
        return ParameterError("interval", expected=expected, remedy=f"ask for {_ALTERNATIVES}")
    method, remedy = method_and_remedy
    expected = f"a noise law that is public, which that of {method} is not"
    return ParameterError("interval", expected=expected, remedy=f"ask for {remedy}")


def covered(release: Release) -> str:
    """Return a sentence on what the intervals of a release cover, or why it has none."""
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
    """Return a released value as columns; a value of any other kind has no numbers.

    In a table a statistic is a column whose errors stand in a column of their own; all columns
    before the first statistic are keys.
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
    errors = {name: columns[f"{name}_error"] for name in numbers if f"{name}_error" in columns}
    exact = tuple(
        name
        for name, error in errors.items()
        if not any(name in sums.statistics for sums in release.sums)
        and not np.any(np.asarray(error, dtype=np.float64))
    )
    names = list(columns)
    key_names = names[: names.index(next(iter(numbers)))] if numbers else names
    return Cells(
        keys={name: columns[name] for name in key_names},
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
    """Split the name of a column of quantiles into the name of their column, and the level.

    >>> _level("income_q2.5"), _level("net_income_median")
    (('income', 0.025), ('net_income', 0.5))
    """
    column, _, level = name.rpartition("_")
    return column, 0.5 if level == "median" else float(level[1:]) / 100


def _is_matrix(release: Release) -> bool:
    """Tell whether a value is a matrix of covariances or correlations."""
    value = release.value
    return release.sums != () and isinstance(value, np.ndarray) and value.ndim == 2


def _of_matrix(pairs: dict[str, Pair], columns: int) -> dict[str, Pair]:
    """Return the ends of all entries of a symmetric matrix, row by row.

    They are those of the variances on the diagonal (ones, of correlations) and of the entries
    above it.
    """
    *_, name = pairs
    sides = []
    for side in (0, 1):
        matrix = np.diag(pairs["variance"][side] if "variance" in pairs else np.ones(columns))
        if name != "variance":
            matrix[np.triu_indices(columns, 1)] = pairs[name][side]
            matrix = np.triu(matrix) + np.triu(matrix, 1).T
        sides.append(matrix.reshape(-1))
    return {name: (sides[0], sides[1])}


def _steps(release: Release) -> Iterator[Any]:
    """Yield the steps of all parts of the certificate."""
    for part in release.certificate.parts:
        yield from part.steps


def _name(release: Release) -> str:
    """Return the name of the only statistic of a release, "value" if there are several."""
    names = [name for sums in release.sums for name in sums.statistics]
    return names[-1] if len(names) == 1 or _is_matrix(release) else "value"


def _places(release: Release, size: int) -> dict[str, Sequence[Any]]:
    """Return the keys of an array's entries: levels, points or labels, from the request."""
    record, labels = release.record, _labels(release, size)
    task = "" if record is None else record.task
    parameters = {} if record is None else record.parameters
    for name, column in (("quantiles", "q"), ("cdf", "at")):
        listed = parameters.get(column)
        if isinstance(listed, list) and len(listed) == 2 and isinstance(listed[0], list):
            listed = listed[1]  # an array is written as its shape and its cells
        if task == name and isinstance(listed, list) and len(listed) == size:
            return {"quantile" if name == "quantiles" else column: listed}
    if task == "histogram":
        columns = parameters.get("columns")
        return {columns if isinstance(columns, str) else "item": labels}
    return {"label": labels}


def _labels(release: Release, size: int) -> Sequence[Any]:
    """Return the labels of an array of this size: those of its sums, else its positions."""
    for sums in release.sums:
        labels = list(sums.statistics) if sums.labels is None else sums.labels
        if len(labels) == size:
            return labels
    return range(size)


def _array(ends: Mapping[str, Any], value: Any) -> Any:
    """Return ends by name in the shape of an array: one vector, or one number for each name."""
    columns = list(ends.values())
    flat = columns[0] if len(columns) == 1 else np.array([column[0] for column in columns])
    return np.asarray(flat).reshape(value.shape)


def _table(value: Any, cells: Cells, ends: Mapping[str, Any]) -> Any:
    """Return the table with ends in place of its numbers; cells without an interval are empty."""
    if isinstance(value, LightTable):
        nan = np.full(len(next(iter(ends.values()))), np.nan)
        return value.with_numbers({name: ends.get(name, nan) for name in cells.numbers})
    frame = as_frame(value)
    if frame is None:  # pragma: no cover
        raise AssertionError("a value with groups is a frame")
    columns = {name: as_column(ends.get(name), len(frame)) for name in cells.numbers}
    numbers = nw.from_dict(columns, backend=frame.implementation)
    if not cells.keys:
        return numbers.to_native()
    return nw.concat([frame.select(*cells.keys), numbers], how="horizontal").to_native()


def as_column(numbers: Any, length: int) -> list[Any]:
    """Return numbers as a list for a frame, empty cells for None."""
    return [None] * length if numbers is None else list(np.asarray(numbers).tolist())


def as_frame(value: Any) -> Any:
    """Return a data frame of any library as a Narwhals one; None for any other value."""
    frame = nw.from_native(value, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None
