"""What a release published, as grids of keys and numbers with their intervals, for any medium.

Only the released value and what its record states are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from zerodelta.errors import printable
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.interval_shapes import cells_of
from zerodelta.privacy.release import Release
from zerodelta.privacy.shown_release import ends_of, note_of
from zerodelta.regression.features import LinearModel
from zerodelta.tables.found_keys import FoundKeys
from zerodelta.value import value

LEVEL = "0.95"

_LONGEST = 600


@value(eq=False)
class Column:
    """Numbers, or texts, one for each line; the ends of intervals where there are some."""

    name: str
    values: Sequence[Any]
    lower: Sequence[Any] | None = None
    upper: Sequence[Any] | None = None


@value(eq=False)
class Grid:
    """Lines, named by keys, and columns of what was released."""

    keys: Mapping[str, Sequence[Any]]
    columns: tuple[Column, ...]
    title: str = ""
    note: str = ""
    """What to beware of."""
    hint: str = ""
    rows: bool = False
    """Whether lines are made-up rows rather than statistics."""

    def __len__(self) -> int:
        return max((len(each.values) for each in self.columns), default=0)


def grids_of(release: Release, level: Rational = LEVEL) -> tuple[Grid, ...]:
    """Return what was published; a value that is no table is told in words."""
    value = release.value
    if isinstance(value, FoundKeys):
        return (_found(value),)
    cells = cells_of(release)
    if cells.numbers:
        return (_cells(release, level),)
    if isinstance(value, Mapping) and value:
        return _mapping(release, value)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return (_matrix(release, value),)
    if isinstance(value, LinearModel):
        return (_linear(value),)
    if isinstance(value, (tuple, list)):
        chosen = Column(name="chosen", values=[plain_text(each) for each in value])
        return (Grid(keys={"place": range(1, len(value) + 1)}, columns=(chosen,)),)
    return (_parts(value),)


def _found(value: FoundKeys) -> Grid:
    lines = [key if isinstance(key, tuple) else (key,) for key in value.names]
    keys = {name: [line[i] for line in lines] for i, name in enumerate(value.columns)}
    return Grid(keys=keys, columns=(Column(name="count", values=value.counts),), note=value.note)


def _cells(release: Release, level: Rational) -> Grid:
    cells = cells_of(release)
    ends = ends_of(release, cells, level, of="sample", simultaneous=False)
    columns = []
    for name, values in cells.numbers.items():
        lower, upper = ends.get(name, (None, None))
        columns.append(Column(name=name, values=list(values), lower=lower, upper=upper))
    keys = {name: list(values) for name, values in cells.keys.items()}
    return Grid(keys=keys, columns=tuple(columns), note=note_of(release))


def _mapping(release: Release, value: Mapping[Any, Any]) -> tuple[Grid, ...]:
    arrays = {key: np.asarray(each) for key, each in value.items()}
    lengths = {each.shape for each in arrays.values()}
    if all(isinstance(key, str) for key in arrays) and len(lengths) == 1 and len(*lengths) == 1:
        columns = tuple(Column(name=str(k), values=v.tolist()) for k, v in arrays.items())
        return (Grid(keys={}, columns=columns, rows=True),)
    return tuple(_marginal(release, key, each) for key, each in arrays.items())


def _marginal(release: Release, key: Any, numbers: Any) -> Grid:
    names = [str(each) for each in (key if isinstance(key, tuple) else (key,))]
    if len(names) != numbers.ndim:
        names = [f"{'.'.join(names)}[{axis}]" for axis in range(numbers.ndim)]
    places = np.indices(numbers.shape).reshape(numbers.ndim, -1)
    keys = {}
    for name, size, axis in zip(names, numbers.shape, places, strict=True):
        options = _options(release, name)
        labels = options if len(options) == size else list(range(size))
        keys[name] = [labels[place] for place in axis]
    column = Column(name="fraction", values=numbers.ravel().tolist())
    return Grid(keys=keys, columns=(column,), title=" × ".join(names))


def _options(release: Release, name: str) -> list[Any]:
    """Return the declared options of a column, in the order of their codes."""
    for data in [] if release.record is None else release.record.data:
        kind = data.get("columns", {}).get(name, {})
        if "category" in kind:
            more = ["other"] * bool(kind.get("other")) + ["missing"] * bool(kind.get("missing"))
            return [*kind["category"], *more]
        if "boolean" in kind:
            return ["false", "true", *(["missing"] if kind.get("missing") else [])]
    return []


def _matrix(release: Release, value: Any) -> Grid:
    record = release.record
    asked = None if record is None else record.parameters.get("columns")
    if asked is None and record is not None and record.data:
        asked = list(record.data[0].get("columns", {}))
    named = asked if isinstance(asked, list) and len(asked) == value.shape[1] else None
    heads = [str(each) for each in named] if named else [str(i) for i in range(value.shape[1])]
    pairs = record is not None and record.task in ("covariance", "correlation")
    square = named is not None and pairs and value.shape[0] == value.shape[1]
    lines: Sequence[Any] = heads if square else range(1, len(value) + 1)
    columns = tuple(Column(name=head, values=value[:, i].tolist()) for i, head in enumerate(heads))
    return Grid(keys={"": lines}, columns=columns)


def _linear(value: LinearModel) -> Grid:
    width = value.coefficients.shape[1]
    names: Sequence[Any] = () if value.encoding is None else value.encoding.names
    lines = [*(names if len(names) == width else range(width)), "(intercept)"]
    several = len(value.coefficients) > 1
    columns = tuple(
        Column(
            name=f"coefficient, {value.classes[i]}" if several else "coefficient",
            values=[*line.tolist(), float(value.intercept[i])],
        )
        for i, line in enumerate(value.coefficients)
    )
    two = "" if len(value.classes) != 2 else f"positive scores: {value.classes[1]}"
    hint = "; ".join(text for text in (two, _clipped(value)) if text)
    return Grid(keys={"feature": lines}, columns=columns, hint=plain_text(hint))


def _clipped(value: LinearModel) -> str:
    """Say that coefficients are not for rows as they are, if the fit clipped them to a ball."""
    limits = value.limits
    if limits is None or limits.norm is None:
        return ""
    scaled = value.encoding is not None or limits.bounds is not None
    rows = "rows, scaled to [-1, 1] by their bounds," if scaled else "rows"
    return f"{rows} are clipped to length {number_shown(float(limits.norm))} before they are scored"


def _parts(value: Any) -> Grid:
    """Return a value of several parts as lines of words; arrays by what they begin with."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
    else:
        parts = {"value": value}
    told = Column(name="content", values=[_told(each) for each in parts.values()])
    return Grid(keys={"part": list(parts)}, columns=(told,))


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 64:
        return f"{value.dtype} array of shape {value.shape}: see the saved release"
    return plain_text(repr(value) if not isinstance(value, str) else value)


_RANKS = "rows by which its rank is off, whatever the unit of the column"
_ROWS, _UNIT = "rows", "in the unit of the column"
_ERROR_OF: Mapping[str, str] = {
    **dict.fromkeys(("median", "quantile", "quantiles"), _RANKS),
    **dict.fromkeys(("sum", "mean", "std", "trimmed_mean"), _UNIT),
    **dict.fromkeys(("count", "histogram", "top_k", "heavy_hitters"), _ROWS),
    "variance": "in the squared unit of the column",
    "covariance": "of an entry, in the units of its columns",
    "cdf": "of a share",
    "answer_queries": "of a fraction",
    "mode": "rows at most between the most frequent option and this one",
    "select": "at most between the largest sum and this one",
    "LogisticRegression": "in nats: how much larger the mean log loss is than the best line's, for "
    "rows that fill a quarter of their bounds, or all of data_norm",
    "LinearRegression": "in squared units of the target: how much larger the mean squared error is "
    "than the best line's, for rows that fill their bounds evenly",
}


def error_words(task: str, error: float | str) -> str:
    """Return the forecast of an error with what it is counted in, which depends on the task.

    >>> error_words("count", 2.0), error_words("mean", 2.0)
    ('2 rows', '2, in the unit of the column')
    """
    if isinstance(error, str):
        return error
    of = _ERROR_OF.get(task, "by the measure that the documentation of the task names")
    return f"{error:.4g}{' ' if of.startswith('rows') else ', '}{of}"


def number_shown(value: Any) -> str:
    """Return a cell as people read it.

    >>> number_shown(12345), number_shown(0.123456789), number_shown("oslo")
    ('12,345', '0.12346', 'oslo')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}" if abs(int(value)) < 10**18 else number_text(int(value))
    if isinstance(value, (float, np.floating)):
        whole = 10_000 <= abs(float(value)) < 1e15
        return f"{value:,.0f}" if whole else f"{value:.5g}"
    return "" if value is None else plain_text(value)


def plain_text(value: Any) -> str:
    r"""Return a text on one line: whoever made a key may have put anything into it.

    >>> plain_text("a" + chr(27) + "[31m" + chr(10)) == r"a\x1b[31m\n"
    True
    """
    text = str(value)
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return printable(short)
