"""Show a release with its intervals to people: as a data frame, as HTML, as a picture, as CSV."""

from __future__ import annotations

import csv
import html
import io
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np

from zerodelta.errors import did_you_mean, printable, require, require_extra
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.interval_shapes import (
    Cells,
    KeyList,
    as_frame,
    cells_of,
    covered,
    intervals_by_name,
    is_table,
)

if TYPE_CHECKING:
    from zerodelta.privacy.release import Release


_MAX_LINES = 20
"""Lines of a value that a notebook shows."""

KINDS = ("pandas", "polars", "pyarrow")
"""Libraries of data frames, in the order in which they are looked for."""


def frame_of(
    release: Release, kind: str | None, level: Rational, *, of: str, simultaneous: bool
) -> Any:
    """Return keys, values and interval ends as a frame of a library, by default the value's own."""
    require(
        kind is None or kind in KINDS,
        "kind",
        kind,
        expected=f"one of {', '.join(KINDS)}",
        remedy=did_you_mean(kind, KINDS, 'pass kind="pandas", and a level as level=0.95'),
    )
    if kind is not None:
        require_extra(kind, "all")
    cells = numbers_of(release)
    ends = ends_of(release, cells, level, of=of, simultaneous=simultaneous)
    numbers: dict[str, Any] = {}
    for name, values in cells.numbers.items():
        low, high = ends.get(name, (None, None))
        if isinstance(release.value, KeyList):
            numbers[name] = values
            continue
        table = is_table(release.value)
        columns = (name, f"{name}_lower", f"{name}_upper") if table else ("value", "lower", "upper")
        numbers |= dict(zip(columns, (values, low, high), strict=True))
    value_frame = as_frame(release.value)
    value_kind = None if value_frame is None else value_frame.implementation.value
    default = value_kind or next((name for name in KINDS if find_spec(name) is not None), None)
    frame = _frame(cells, numbers, kind or default)
    if hasattr(frame, "attrs"):  # pandas keeps notes: why cells are empty, and warnings
        frame.attrs["intervals"] = covered(release)
        if note_of(release):
            frame.attrs["note"] = note_of(release)
    return frame


def _frame(cells: Cells, numbers: Mapping[str, Any], kind: str | None) -> Any:
    """Return columns as a frame; as a dict of lists where no library of frames is installed."""
    lines = len(next(iter(cells.numbers.values())))
    columns = {
        **{name: one_type(list(labels)) for name, labels in cells.keys.items()},
        **{
            name: [None] * lines if column is None else np.asarray(column).tolist()
            for name, column in numbers.items()
        },
    }
    if kind is None:
        return columns
    return nw.from_dict(columns, backend=cast(Any, kind)).to_native()


def page_of(release: Release) -> str:
    """Return the HTML that a notebook shows; keys may be text of strangers, and are escaped."""
    cells = cells_of(release)
    notes = [note_of(release), release.certificate.summary, release.counted, covered(release)]
    below = "".join(f"<p>{html.escape(printable(note.strip()))}</p>" for note in notes if note)
    if not cells.numbers:
        return f"<pre>{html.escape(printable(repr(release)))}</pre>"
    ends = ends_of(release, cells, "0.95", of="sample", simultaneous=False)
    heads, columns = list(cells.keys), [list(map(str, labels)) for labels in cells.keys.values()]
    for name in sorted(cells.numbers, key=lambda name: name != "count"):  # counts come first
        values, (low, high) = list(cells.numbers[name]), ends.get(name, (None, None))
        errors = _standard_errors(low, high) if low is not None else cells.errors.get(name)
        heads.append(name)
        columns.append(_texts(values, errors))
        if low is not None and high is not None:
            heads.append("95 %")
            sides = [_texts(list(side), errors) for side in (low, high)]
            columns.append([f"{a} to {b}" for a, b in zip(*sides, strict=True)])
    lines = list(zip(*columns, strict=True))
    rows = [_row("td", line) for line in lines[:_MAX_LINES]]
    if len(lines) > _MAX_LINES:
        hidden = len(lines) - _MAX_LINES
        rows.append(f'<tr><td colspan="{len(heads)}">… {hidden} more</td></tr>')
    return f"<table><thead>{_row('th', heads)}</thead><tbody>{''.join(rows)}</tbody></table>{below}"


def _texts(values: Sequence[Any], errors: Iterable[Any] | None) -> list[str]:
    """Return numbers as texts, each with the digits that its error leaves."""
    listed = [None] * len(values) if errors is None else list(errors)
    return [_number(number, error) for number, error in zip(values, listed, strict=True)]


def numbers_of(release: Release) -> Cells:
    """Return a released value as columns, or refuse one without numbers."""
    cells = cells_of(release)
    expected = "a number, a vector or a table"
    require(cells.numbers, "value", expected=expected, remedy="use release.value itself")
    return cells


def note_of(release: Release) -> str:
    """Return the warning of a value with discovered keys (some may be invented); else empty."""
    note = getattr(release.value, "note", None)
    if isinstance(note, str):
        return note
    plan: Any = release.plan
    discovery = getattr(plan, "found", None)  # how the keys of a table were discovered
    if discovery is None:
        return ""
    other_lines = 1 if plan.parts else 0  # statistics have a line for all rows of no key
    warning: str = discovery.warning
    if len(release.value) <= other_lines:
        warning = discovery.no_keys_sentence
    return warning


def ends_of(release: Release, cells: Cells, level: Rational, **options: Any) -> dict[str, Any]:
    """Return the interval ends by the name of each column of numbers."""
    ends: dict[str, Any] = dict(intervals_by_name(release, level, **options))
    if not is_table(release.value) and ends:
        # an array may have one statistic for each entry; its column has them all
        (name,) = cells.numbers
        return {name: tuple(np.concatenate(side) for side in zip(*ends.values(), strict=True))}
    return {**ends, **{name: (cells.numbers[name],) * 2 for name in cells.exact}}


def _row(tag: str, cells: Any) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(printable(c))}</{tag}>" for c in cells) + "</tr>"


def _standard_errors(low: Any, high: Any) -> list[float]:
    """Return approximate standard errors: a quarter of each 95 % interval."""
    return [float(b - a) / 4 for a, b in zip(low, high, strict=True)]


def _number(value: Any, error: float | None = None) -> str:
    """Return a number rounded to two significant digits of its error.

    >>> _number(43431.87, 240.0), _number(0.123456, 0.002), _number(43431.87), _number(8062, 3.0)
    ('43,430', '0.1235', '43,432', '8,062')
    """
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if error is None or not 0 < error < math.inf or not math.isfinite(value):
        return f"{value:,.5g}"
    digits = 1 - math.floor(math.log10(error))
    return f"{round(float(value), digits):,.{max(0, digits)}f}" if digits < 16 else repr(value)


def one_type(labels: list[Any]) -> list[Any]:
    """Return labels of one type: mixed ones, such as False and "missing", become texts."""
    return labels if len(set(map(type, labels))) == 1 else [str(label) for label in labels]


# -- Pictures of released values: bars from 0 for counts, ranges for quantiles, else points -------

_MAX_LABELS = 60
"""More lines than this are drawn without their labels."""

_LONGEST = 40
"""The largest number of characters of a label."""

_INK, _LIGHT = "#1f3d5c", "#4878a8"


def picture_of(release: Release, column: str | None, level: Rational, *, ax: Any) -> Any:
    """Draw the values of one statistic, a line for each key, with their intervals.

    Counts are bars from 0. Quantiles of a column are ranges between pairs of levels, with the
    middle one as a mark; they are drawn with the column's mean, too.
    """
    cells = numbers_of(release)
    chosen = _chosen(cells, column)
    numbers = cells.numbers.get(chosen, [])
    texts = any(isinstance(number, str) for number in numbers)
    require(not texts, "value", expected="numbers, to be drawn", remedy="use release.value itself")
    require_extra("matplotlib", "plot")
    import matplotlib.pyplot as plt

    ranges = _ranges(cells, chosen)
    quantiles_of_all_rows = _quantiles_of_all_rows(cells)
    if quantiles_of_all_rows is not None:  # drawn on one line
        ranges, cells = quantiles_of_all_rows, Cells(keys={}, numbers={chosen: [0]})
    keys = list(zip(*cells.keys.values(), strict=True)) if cells.keys else [("all rows",)]
    labels = [_short(", ".join(map(str, line))) for line in keys]
    if ax is None:
        height = 1.2 + 0.28 * min(len(labels), _MAX_LABELS)
        _, ax = plt.subplots(figsize=(6.4, max(2.0, height)), layout="constrained")
    places = np.arange(len(labels))
    legend = []
    if ranges:
        legend.append(_draw_ranges(ax, ranges, places))
    has_points = chosen in cells.numbers and chosen not in cells.quantiles
    if has_points and quantiles_of_all_rows is None:
        values = np.asarray(numbers, dtype=np.float64)
        ends = ends_of(release, cells, level, of="sample", simultaneous=False).get(chosen)
        bars = _is_count(release, chosen)
        _draw_values(ax, values, ends, places, bars=bars)
        percent = f"{100 * float(as_rational(level, 'level')):g} % interval"
        legend += [] if ends is None else [f"{'lines' if ranges or bars else 'bars'}: {percent}"]
    if not labels:
        ax.set_xlim(0, 1)
    if len(labels) <= _MAX_LABELS:
        # parse_math=False: a $ in a key is no formula
        ax.set_yticks(places, labels, parse_math=False)
    ax.set_ylim(max(len(places), 1) - 0.5, -0.5)  # the first line is on top
    ax.set_xlabel(", ".join([_short(chosen), *legend]), parse_math=False)
    unnamed = list(cells.keys) == ["0"]  # rows without names of columns
    ax.set_ylabel("key" if unnamed else _short(", ".join(cells.keys)), parse_math=False)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    if note_of(release):
        ax.set_title(printable(note_of(release)), fontsize=8, wrap=True, parse_math=False)
    return ax


def _chosen(cells: Cells, column: str | None) -> str:
    """Return the name of the statistic to draw, or of the column whose quantiles are drawn."""
    with_quantiles = list(dict.fromkeys(base for base, _ in cells.quantiles.values()))
    names = list(cells.numbers)
    if column is None:
        first = next((name for name in names if name != "count"), names[0])
        return cells.quantiles[first][0] if first in cells.quantiles else first
    known = [*names, *with_quantiles]
    require(
        column in known,
        "column",
        column,
        expected=f"one of {', '.join(known)}",
        remedy=did_you_mean(column, known, "pass one of these names"),
    )
    return cells.quantiles[column][0] if column in cells.quantiles else column


def _ranges(cells: Cells, chosen: str) -> list[tuple[float, Any]]:
    """Return the quantiles of a table that are drawn with a statistic, as (level, values)."""
    quantiles = [
        (level, np.asarray(cells.numbers[name], dtype=np.float64))
        for name, (base, level) in cells.quantiles.items()
        if chosen in (base, f"{base}_mean")
    ]
    return sorted(quantiles, key=lambda pair: pair[0])


def _quantiles_of_all_rows(cells: Cells) -> list[tuple[float, Any]] | None:
    """Return the quantiles of a release of quantiles as (level, values); None for any other."""
    if list(cells.keys) != ["quantile"]:
        return None
    (values,) = cells.numbers.values()
    levels = [float(as_rational(level, "q")) for level in cells.keys["quantile"]]
    pairs = zip(levels, np.asarray(values, dtype=np.float64), strict=True)
    return sorted(((level, np.array([value])) for level, value in pairs), key=lambda p: p[0])


def _is_count(release: Release, chosen: str) -> bool:
    """Tell whether numbers are counts, which are drawn as bars from 0."""
    task = "" if release.record is None else release.record.task
    return chosen == "count" or task == "histogram" or isinstance(release.value, KeyList)


def _draw_values(ax: Any, values: Any, ends: Any, places: Any, *, bars: bool) -> None:
    """Draw the values as bars or points, and lines for their intervals."""
    if bars:
        ax.barh(places, values, color=_LIGHT, alpha=0.5, height=0.7)
        ax.axvline(0, color=_INK, linewidth=0.8)
    else:
        ax.plot(values, places, "o", color=_INK, markersize=4)
    if ends is not None:
        color = _INK if bars else _LIGHT
        ax.hlines(places, *ends, color=color, linewidth=2 if bars else 3, alpha=0.7)


def _draw_ranges(ax: Any, ranges: list[tuple[float, Any]], places: Any) -> str:
    """Draw ranges between opposite quantiles, such as 10 % and 90 %; return the legend."""
    levels = [level for level, _ in ranges]
    pairs = len(ranges) // 2
    for i in range(pairs):
        (_, low), (_, high) = ranges[i], ranges[-1 - i]
        width = 4 + 8 * i / max(1, pairs - 1) if pairs > 1 else 8
        ax.hlines(places, low, high, color=_LIGHT, linewidth=width, alpha=0.35)
    if len(ranges) % 2:
        ax.plot(ranges[pairs][1], places, "|", color=_INK, markersize=12, markeredgewidth=2)
    shown = [f"{100 * level:.4g}" for level in levels]
    if len(shown) == 1:
        return f"{shown[0]} % quantile"
    return f"ranges: {', '.join(shown)} % quantiles"


def _short(text: str) -> str:
    return printable(text)[:_LONGEST]


# -- CSV files ------------------------------------------------------------------------------------
# Keys may be text of strangers, and some texts are formulas for a spreadsheet.

_FORMULAS = frozenset("=+-@|%")
"""First characters of cells that a spreadsheet takes for a formula, or a command."""

_DELIMITERS = frozenset(";,|")
"""Characters at which a program that is set to another delimiter begins a new cell, even quoted."""


def csv_lines(heads: Iterable[Any], lines: Iterable[Iterable[Any]]) -> str:
    r"""Return a CSV file, every cell quoted.

    Texts are on one line without control or direction characters, with ' before a formula that a
    spreadsheet would run, also after a ; inside of a text. Numbers are unchanged.

    >>> print(csv_lines(["key", "count"], [["tea", -3], [" =1+1", 2], ["a;=1\x1b", 1]]), end="")
    "key","count"
    "tea","-3"
    "' =1+1","2"
    "a;'=1\x1b","1"
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for line in (heads, *lines):
        writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in line])
    return file.getvalue()


def noted(columns: Mapping[str, Sequence[Any]], note: str) -> dict[str, Sequence[Any]]:
    """Return columns with the note as one more column, in each line.

    >>> noted({"key": [], "count": []}, "no key was found")
    {'key': [None], 'count': [None], 'note': ['no key was found']}
    """
    if not note:
        return dict(columns)
    name = "note"
    while name in columns:
        name += "_"
    lines = max(map(len, columns.values()), default=0)
    filled = columns if lines else {column: [None] for column in columns}
    return {**filled, name: [note] * max(lines, 1)}


def _harmless(cell: str) -> str:
    """Return a text with ' before each character that could begin a formula of a spreadsheet.

    >>> [_harmless(cell) for cell in ("＝1", "a-b; c=d", "x;  -1")]
    ["'＝1", 'a-b; c=d', "x;  '-1"]
    """
    text = printable(cell)
    pieces: list[str] = []
    begins_cell, blanks = True, ""  # blanks and quotes before the first character of a cell
    for c in text:
        if begins_cell and c in ' "':
            blanks += c
            continue
        # NFKC: a spreadsheet may take a full-width = for a =
        if begins_cell and unicodedata.normalize("NFKC", c) in _FORMULAS:
            pieces.append(f"'{blanks}" if not pieces else f"{blanks}'")
            blanks = ""
        pieces.append(blanks + c)
        begins_cell, blanks = c in _DELIMITERS, ""
    return "".join(pieces) + blanks
