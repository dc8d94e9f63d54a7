"""A release with its intervals for people: as a frame, as a page, as a picture."""

from __future__ import annotations

import html
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np

from zerodelta.errors import did_you_mean, require, require_extra
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.interval_shapes import (
    Cells,
    LightTable,
    beside,
    cells_of,
    covered,
    found_intervals,
    is_table,
)

if TYPE_CHECKING:
    from zerodelta.privacy.release import Release

__all__ = ["ends_of", "frame_of", "page_of", "picture_of"]

_SHOWN = 20
_MOST_LABELS = 60
"""More lines than this are drawn without their labels."""

_KINDS = ("pandas", "polars", "pyarrow")


def frame_of(release: Release, level: Rational, *, of: str, simultaneous: bool) -> Any:
    """Return labels, values, lower and upper ends."""
    cells = _cells(release)
    ends = ends_of(release, cells, level, of=of, simultaneous=simultaneous)
    numbers: dict[str, Any] = {}
    for name, values in cells.numbers.items():
        plain = not is_table(release.value)
        low, high = ends.get(name, (None, None))
        own = ("value", "lower", "upper") if plain else (name, f"{name}_lower", f"{name}_upper")
        numbers |= dict(zip(own, (values, low, high), strict=True))
    if isinstance(release.value, LightTable):
        nan = np.full(len(next(iter(numbers.values()))), np.nan)
        return release.value.with_numbers(
            {name: nan if each is None else each for name, each in numbers.items()}
        )
    if is_table(release.value):
        made = beside(release.value, cells, numbers)
    else:
        lines = len(next(iter(cells.numbers.values())))
        columns = {
            **{key: _one_type(list(labels)) for key, labels in cells.keys.items()},
            **{
                name: [None] * lines if each is None else np.asarray(each).tolist()
                for name, each in numbers.items()
            },
        }
        there = next((kind for kind in _KINDS if find_spec(kind) is not None), None)
        made = (
            columns
            if there is None
            else nw.from_dict(columns, backend=cast(Any, there)).to_native()
        )
    if hasattr(made, "attrs"):  # of pandas: why cells are empty
        made.attrs["intervals"] = covered(release)
    return made


def page_of(release: Release) -> str:
    """Return HTML; keys are anyone's words, and escaped."""
    cells = cells_of(release)
    said = (release.certificate.summary, release.counted, covered(release))
    told = "; ".join(line.strip() for line in said)
    if not cells.numbers:
        return f"<pre>{html.escape(_printable(repr(release)))}</pre>"
    ends = ends_of(release, cells, "0.95", of="sample", simultaneous=False)
    heads, columns = list(cells.keys), [list(map(str, each)) for each in cells.keys.values()]
    for name, values in cells.numbers.items():
        low, high = ends.get(name, (None, None))
        heads += [name, "95 %"]
        columns.append([_number(each) for each in values])
        columns.append(
            [""] * len(values)
            if low is None or high is None
            else [f"{_number(a)} to {_number(b)}" for a, b in zip(low, high, strict=True)]
        )
    lines = list(zip(*columns, strict=True))
    left = max(0, len(lines) - _SHOWN)
    rows = [_row("td", line) for line in lines[:_SHOWN]]
    if left:
        rows.append(f'<tr><td colspan="{len(heads)}">… {left} more</td></tr>')
    return (
        f"<table><thead>{_row('th', heads)}</thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p>{html.escape(_printable(told))}</p>"
    )


def picture_of(release: Release, column: str | None, level: Rational, *, ax: Any) -> Any:
    """Draw values with bars from the lower to the upper ends; return the axes."""
    cells = _cells(release)
    names = list(cells.numbers)
    chosen = next((name for name in names if name != "count"), names[0])
    chosen = chosen if column is None else column
    require(
        chosen in names,
        "column",
        column,
        expected=f"one of {', '.join(names)}",
        remedy=did_you_mean(column, names, "pass one of these names"),
    )
    given = cells.numbers[chosen]
    texts = any(isinstance(each, str) for each in given)
    require(not texts, "value", expected="numbers, to be drawn", remedy="use release.value itself")
    require_extra("matplotlib", "plot")
    import matplotlib.pyplot as plt

    values = np.asarray(given, dtype=np.float64)
    ends = ends_of(release, cells, level, of="sample", simultaneous=False).get(chosen)
    labels = [
        _printable(", ".join(map(str, line)))[:40]
        for line in (zip(*cells.keys.values(), strict=True) if cells.keys else [("all rows",)])
    ]
    if ax is None:
        high = 1.2 + 0.28 * min(len(values), _MOST_LABELS)
        _, ax = plt.subplots(figsize=(6.4, max(2.0, high)), layout="constrained")
    places = np.arange(len(values))
    if ends is not None:
        ax.hlines(places, *ends, color="#4878a8", linewidth=3, alpha=0.5)
    ax.plot(values, places, "o", color="#1f3d5c", markersize=4)
    if len(values) <= _MOST_LABELS:
        ax.set_yticks(places, labels, parse_math=False)
    ax.invert_yaxis()
    bars = (
        "" if ends is None else f", bars: {100 * float(as_rational(level, 'level')):g} % interval"
    )
    ax.set_xlabel(f"{_printable(chosen)}{bars}", parse_math=False)
    ax.set_ylabel(_printable(", ".join(cells.keys)) or "group", parse_math=False)
    ax.grid(axis="x", alpha=0.3)
    return ax


def _cells(release: Release) -> Cells:
    cells = cells_of(release)
    expected = "a number, a vector or a table"
    require(cells.numbers, "value", expected=expected, remedy="use release.value itself")
    return cells


def ends_of(release: Release, cells: Cells, level: Rational, **asked: Any) -> dict[str, Any]:
    """Return the ends by the name of each column of numbers."""
    found: dict[str, Any] = dict(found_intervals(release, level, **asked))
    if not is_table(release.value) and found:
        (name,) = cells.numbers
        return {name: tuple(np.concatenate(side) for side in zip(*found.values(), strict=True))}
    return {**found, **{name: (cells.numbers[name],) * 2 for name in cells.exact}}


def _row(tag: str, cells: Any) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(_printable(c))}</{tag}>" for c in cells) + "</tr>"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _number(value: Any) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:.5g}" if isinstance(value, (float, np.floating)) else str(value)


def _one_type(labels: list[Any]) -> list[Any]:
    return labels if len(set(map(type, labels))) == 1 else [str(label) for label in labels]
