"""Pictures of released values: bars from 0 for counts, ranges for quantiles, else points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.errors import did_you_mean, printable, require, require_extra
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.interval_shapes import Cells, KeyList
from zerodelta.privacy.shown_release import ends_of, note_of, numbers_of

if TYPE_CHECKING:
    from zerodelta.privacy.release import Release

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
    asked = _asked(release, cells)
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


def _asked(release: Release, cells: Cells) -> list[tuple[float, Any]] | None:
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
