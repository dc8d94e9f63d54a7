"""A release with its intervals for people: as a frame, as a page."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np

from zerodelta.errors import did_you_mean, printable, require, require_extra
from zerodelta.exact.rational import Rational
from zerodelta.privacy.interval_shapes import (
    Cells,
    KeyList,
    as_frame,
    cells_of,
    covered,
    found_intervals,
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
        **{name: _one_type(list(labels)) for name, labels in cells.keys.items()},
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
    warning = getattr(getattr(release.plan, "found", None), "warning", "")
    return warning if isinstance(warning, str) else ""


def ends_of(release: Release, cells: Cells, level: Rational, **asked: Any) -> dict[str, Any]:
    """Return the ends by the name of each column of numbers."""
    found: dict[str, Any] = dict(found_intervals(release, level, **asked))
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


def _one_type(labels: list[Any]) -> list[Any]:
    return labels if len(set(map(type, labels))) == 1 else [str(label) for label in labels]
