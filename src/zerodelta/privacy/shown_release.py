"""A release with its intervals for people: as a frame, as CSV, as a page, as a picture."""

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


_SHOWN = 20

KINDS = ("pandas", "polars", "pyarrow")
"""Libraries of data frames, in the order in which they are looked for."""


def frame_of(
    release: Release, kind: str | None, level: Rational, *, of: str, simultaneous: bool
) -> Any:
    """Return labels, values, lower and upper ends as a frame of a kind, or of the value's own."""
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
        own = (name, f"{name}_lower", f"{name}_upper")
        if isinstance(release.value, KeyList):
            numbers[name] = values
            continue
        own = own if is_table(release.value) else ("value", "lower", "upper")
        numbers |= dict(zip(own, (values, low, high), strict=True))
    frame = as_frame(release.value)
    own_kind = None if frame is None else frame.implementation.value
    there = own_kind or next((each for each in KINDS if find_spec(each) is not None), None)
    made = _frame(cells, numbers, kind or there)
    if hasattr(made, "attrs"):  # of pandas: why cells are empty, and what to beware of
        made.attrs["intervals"] = covered(release)
        if note_of(release):
            made.attrs["note"] = note_of(release)
    return made


def _frame(cells: Cells, numbers: Mapping[str, Any], kind: str | None) -> Any:
    """Return columns as a frame; as a dict of lists where no library of frames is installed."""
    lines = len(next(iter(cells.numbers.values())))
    columns = {
        **{name: one_type(list(labels)) for name, labels in cells.keys.items()},
        **{
            name: [None] * lines if each is None else np.asarray(each).tolist()
            for name, each in numbers.items()
        },
    }
    if kind is None:
        return columns
    return nw.from_dict(columns, backend=cast(Any, kind)).to_native()


def page_of(release: Release) -> str:
    """Return HTML; keys are anyone's words, and escaped."""
    cells = cells_of(release)
    told = [note_of(release), release.certificate.summary, release.counted, covered(release)]
    below = "".join(f"<p>{html.escape(printable(each.strip()))}</p>" for each in told if each)
    if not cells.numbers:
        return f"<pre>{html.escape(printable(repr(release)))}</pre>"
    ends = ends_of(release, cells, "0.95", of="sample", simultaneous=False)
    heads, columns = list(cells.keys), [list(map(str, each)) for each in cells.keys.values()]
    for name in sorted(cells.numbers, key=lambda each: each != "count"):  # counts come first
        values, (low, high) = list(cells.numbers[name]), ends.get(name, (None, None))
        error = _spread(low, high) if low is not None else cells.errors.get(name)
        wrong = [None] * len(values) if error is None else list(error)
        heads.append(name)
        columns.append([_number(each, e) for each, e in zip(values, wrong, strict=True)])
        if low is not None and high is not None:
            heads.append("95 %")
            sides = [
                [_number(each, e) for each, e in zip(s, wrong, strict=True)] for s in (low, high)
            ]
            columns.append([f"{a} to {b}" for a, b in zip(*sides, strict=True)])
    lines = list(zip(*columns, strict=True))
    left = max(0, len(lines) - _SHOWN)
    rows = [_row("td", line) for line in lines[:_SHOWN]]
    if left:
        rows.append(f'<tr><td colspan="{len(heads)}">… {left} more</td></tr>')
    return f"<table><thead>{_row('th', heads)}</thead><tbody>{''.join(rows)}</tbody></table>{below}"


def numbers_of(release: Release) -> Cells:
    """Return the numbers of a value, or refuse one that has none."""
    cells = cells_of(release)
    expected = "a number, a vector or a table"
    require(cells.numbers, "value", expected=expected, remedy="use release.value itself")
    return cells


def note_of(release: Release) -> str:
    """Return what to beware of: how many keys may be invented. Frames cannot hold it."""
    note = getattr(release.value, "note", None)
    if isinstance(note, str):
        return note
    plan: Any = release.plan
    found = getattr(plan, "found", None)  # how keys of a table were
    if found is None:
        return ""
    rest = 1 if plan.parts else 0  # statistics have a line of all other rows
    told: str = found.warning if len(release.value) > rest else found.none_found
    return told


def ends_of(release: Release, cells: Cells, level: Rational, **asked: Any) -> dict[str, Any]:
    """Return the ends by the name of each column of numbers."""
    found: dict[str, Any] = dict(intervals_by_name(release, level, **asked))
    if not is_table(release.value) and found:
        (name,) = cells.numbers
        return {name: tuple(np.concatenate(side) for side in zip(*found.values(), strict=True))}
    return {**found, **{name: (cells.numbers[name],) * 2 for name in cells.exact}}


def _row(tag: str, cells: Any) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(printable(c))}</{tag}>" for c in cells) + "</tr>"


def _spread(low: Any, high: Any) -> list[float]:
    """Return about the standard errors of numbers with such 95 % intervals."""
    return [float(b - a) / 4 for a, b in zip(low, high, strict=True)]


def _number(value: Any, error: float | None = None) -> str:
    """Return a number with the digits that its error leaves: two of the error's own.

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
    """Return labels of one type: False, True and "missing" are texts."""
    return labels if len(set(map(type, labels))) == 1 else [str(label) for label in labels]


# -- Pictures of released values: bars from 0 for counts, ranges for quantiles, else points -------

_MOST_LABELS = 60
"""More lines than this are drawn without their labels."""

_LONGEST = 40
"""Characters of a label."""

_INK, _LIGHT = "#1f3d5c", "#4878a8"


def picture_of(release: Release, column: str | None, level: Rational, *, ax: Any) -> Any:
    """Draw one statistic of each line, with its intervals; return the axes.

    Counts are bars from 0. Quantiles of a column are ranges from the outer to the inner ones, with
    the median, or what is in the middle, as a point; beside its mean they are drawn, too.
    """
    cells = numbers_of(release)
    chosen = _chosen(cells, column)
    given = cells.numbers.get(chosen, [])
    texts = any(isinstance(each, str) for each in given)
    require(not texts, "value", expected="numbers, to be drawn", remedy="use release.value itself")
    require_extra("matplotlib", "plot")
    import matplotlib.pyplot as plt

    ranges = _ranges(cells, chosen)
    asked = _asked(cells)
    if asked is not None:  # the quantiles of all rows are one range
        ranges, cells = asked, Cells(keys={}, numbers={chosen: [0]})
    keys = list(zip(*cells.keys.values(), strict=True)) if cells.keys else [("all rows",)]
    labels = [_short(", ".join(map(str, line))) for line in keys]
    if ax is None:
        high = 1.2 + 0.28 * min(len(labels), _MOST_LABELS)
        _, ax = plt.subplots(figsize=(6.4, max(2.0, high)), layout="constrained")
    places = np.arange(len(labels))
    told = []
    if ranges:
        told.append(_draw_ranges(ax, ranges, places))
    if asked is None and chosen not in cells.quantiles and chosen in cells.numbers:
        values = np.asarray(given, dtype=np.float64)
        ends = ends_of(release, cells, level, of="sample", simultaneous=False).get(chosen)
        bars = _is_count(release, chosen)
        _draw_values(ax, values, ends, places, bars=bars)
        percent = f"{100 * float(as_rational(level, 'level')):g} % interval"
        told += [] if ends is None else [f"{'lines' if ranges or bars else 'bars'}: {percent}"]
    if not labels:
        ax.set_xlim(0, 1)
    if len(labels) <= _MOST_LABELS:
        ax.set_yticks(places, labels, parse_math=False)
    ax.set_ylim(max(len(places), 1) - 0.5, -0.5)  # the first line is on top
    ax.set_xlabel(", ".join([_short(chosen), *told]), parse_math=False)
    unnamed = list(cells.keys) == ["0"]  # of rows that have no names of columns
    ax.set_ylabel("key" if unnamed else _short(", ".join(cells.keys)), parse_math=False)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    if note_of(release):  # how many keys may be invented, or how many rows one needs
        ax.set_title(printable(note_of(release)), fontsize=8, wrap=True, parse_math=False)
    return ax


def _chosen(cells: Cells, column: str | None) -> str:
    """Return the name of a statistic, or of a column with quantiles."""
    drawn = list(dict.fromkeys(base for base, _ in cells.quantiles.values()))
    names = list(cells.numbers)
    if column is None:
        found = next((name for name in names if name != "count"), names[0])
        return cells.quantiles[found][0] if found in cells.quantiles else found
    require(
        column in names or column in drawn,
        "column",
        column,
        expected=f"one of {', '.join([*names, *drawn])}",
        remedy=did_you_mean(column, [*names, *drawn], "pass one of these names"),
    )
    return cells.quantiles[column][0] if column in cells.quantiles else column


def _ranges(cells: Cells, chosen: str) -> list[tuple[float, Any]]:
    """Return the levels and values of the quantiles that belong to a statistic, in order."""
    found = [
        (level, np.asarray(cells.numbers[name], dtype=np.float64))
        for name, (base, level) in cells.quantiles.items()
        if chosen in (base, f"{base}_mean")
    ]
    return sorted(found, key=lambda each: each[0])


def _asked(cells: Cells) -> list[tuple[float, Any]] | None:
    """Return the same of several quantiles of all rows, whose places are levels."""
    if list(cells.keys) != ["quantile"]:
        return None
    (values,) = cells.numbers.values()
    levels = [float(as_rational(each, "q")) for each in cells.keys["quantile"]]
    each = zip(levels, np.asarray(values, dtype=np.float64), strict=True)
    return sorted(((level, np.array([value])) for level, value in each), key=lambda one: one[0])


def _is_count(release: Release, chosen: str) -> bool:
    """Tell whether numbers are counts, whose length as bars from 0 can be compared."""
    task = "" if release.record is None else release.record.task
    return chosen == "count" or task == "histogram" or isinstance(release.value, KeyList)


def _draw_values(ax: Any, values: Any, ends: Any, places: Any, *, bars: bool) -> None:
    if bars:
        ax.barh(places, values, color=_LIGHT, alpha=0.5, height=0.7)
        ax.axvline(0, color=_INK, linewidth=0.8)
    else:
        ax.plot(values, places, "o", color=_INK, markersize=4)
    if ends is not None:
        color = _INK if bars else _LIGHT
        ax.hlines(places, *ends, color=color, linewidth=2 if bars else 3, alpha=0.7)


def _draw_ranges(ax: Any, ranges: list[tuple[float, Any]], places: Any) -> str:
    """Draw ranges between the quantiles that lie opposite of each other; say which they are."""
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


# -- Written csv ----------------------------------------------------------------------------------
# Released values as the lines of a CSV file: keys are anyone's words, and some begin a formula.

_FORMULAS = frozenset("=+-@|%")
"""What a cell begins with that a spreadsheet takes for a formula, or a command."""

_CUTS = frozenset(";,|")
"""Where a program that was told another delimiter begins a new cell, quoted or not."""


def csv_lines(heads: Iterable[Any], lines: Iterable[Iterable[Any]]) -> str:
    r"""Return a CSV file, every cell quoted.

    Texts are on one line without control or direction characters; ' stands before what a
    spreadsheet would run, also after a ; inside of a text. Numbers are as they are.

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
    """Return columns with one more that has a note in each line, so that no line loses it.

    >>> noted({"key": [], "count": []}, "no key was found")
    {'key': [None], 'count': [None], 'note': ['no key was found']}
    """
    if not note:
        return dict(columns)
    name = "note"
    while name in columns:
        name += "_"
    lines = max(map(len, columns.values()), default=0)
    filled = columns if lines else {each: [None] for each in columns}
    return {**filled, name: [note] * max(lines, 1)}


def _harmless(cell: str) -> str:
    """Return a text with ' wherever a cell might begin that a spreadsheet runs.

    >>> [_harmless(cell) for cell in ("＝1", "a-b; c=d", "x;  -1")]
    ["'＝1", 'a-b; c=d', "x;  '-1"]
    """
    text = printable(cell)
    made: list[str] = []
    begins, space = True, ""
    for c in text:
        if begins and c in ' "':
            space += c
            continue
        if begins and unicodedata.normalize("NFKC", c) in _FORMULAS:
            made.append(f"'{space}" if not made else f"{space}'")
            space = ""
        made.append(space + c)
        begins, space = c in _CUTS, ""
    return "".join(made) + space
