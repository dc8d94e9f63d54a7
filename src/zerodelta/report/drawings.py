"""Inline SVG of released numbers with their intervals, without scripts or fonts of its own."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from zerodelta.report.published import Column, Grid, number_shown, plain_text

_WIDE, _LEFT, _RIGHT, _LINE, _TOP = 480, 150, 24, 24, 12
_LETTER = 8  # the width of one, at most about that, in the same unit


def drawing_of(grid: Grid, column: Column, *, most: int, number: str) -> str:
    """Return one column as dots with bars from lower to upper ends; empty if none is a number.

    `number` makes the ids of the page different.
    """
    values = [_number(each) for each in column.values[:most]]
    if not any(value is not None for value in values):
        return ""
    lower = [_number(each) for each in (column.lower if column.lower is not None else ())[:most]]
    upper = [_number(each) for each in (column.upper if column.upper is not None else ())[:most]]
    seen = [each for each in (*values, *lower, *upper) if each is not None]
    low, high, ticks = _scale(min(seen), max(seen))
    bottom = _TOP + _LINE * len(values)

    def x(value: float) -> str:
        return f"{_LEFT + (_WIDE - _LEFT - _RIGHT) * (value - low) / (high - low):.1f}"

    parts = []
    apart = float(x(ticks[1])) - float(x(ticks[0])) if len(ticks) > 1 else _WIDE
    longest = max(len(number_shown(tick)) for tick in ticks)
    step = math.ceil((longest + 1) * _LETTER / apart)
    for tick in ticks[::step]:
        parts.append(f'<path class="g" d="M{x(tick)} {_TOP}V{bottom}"/>')
        told = html.escape(number_shown(tick))
        parts.append(f'<text x="{x(tick)}" y="{bottom + 16}" text-anchor="middle">{told}</text>')
    for i, amount in enumerate(values):
        y = _TOP + _LINE * i + _LINE // 2
        label = html.escape(_label(grid, i))
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{label}</text>')
        bar = (lower[i], upper[i]) if i < len(lower) and i < len(upper) else (None, None)
        if bar[0] is not None and bar[1] is not None:
            parts.append(f'<path class="b" d="M{x(bar[0])} {y}H{x(bar[1])}"/>')
        if amount is not None:
            parts.append(f'<circle class="d" cx="{x(amount)}" cy="{y}" r="4"/>')
    title = html.escape(plain_text(column.name))
    bars = ", bars: 95 % intervals" if lower else ", without intervals"
    return (
        f'<figure><svg viewBox="0 0 {_WIDE} {bottom + 26}" role="img" '
        f'aria-labelledby="t{number}"><title id="t{number}">{title}{bars}; the same numbers are in '
        f"the table</title>{''.join(parts)}</svg>"
        f"<figcaption>{title}{bars}</figcaption></figure>"
    )


def odds_drawing(lower: float, upper: float, number: int) -> str:
    """Return a line from 0 to 100 % with a suspicion of 50 % and how far it can move."""

    def x(value: float) -> str:
        return f"{24 + 430 * value:.1f}"

    ticks = "".join(
        f'<path class="g" d="M{x(t)} 14V44"/>'
        f'<text x="{x(t)}" y="62" text-anchor="middle">{t:.0%}</text>'
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return (
        f'<figure><svg viewBox="0 0 480 70" role="img" aria-labelledby="odds-{number}">'
        f'<title id="odds-{number}">A suspicion of 50 percent, and how far it can move at most'
        f'</title>{ticks}<path class="b" d="M{x(lower)} 29H{x(upper)}"/>'
        f'<circle class="d" cx="{x(0.5)}" cy="29" r="5"/></svg>'
        "<figcaption>A suspicion of 50 %, and how far it can move at most</figcaption></figure>"
    )


def _label(grid: Grid, line: int) -> str:
    words = ", ".join(number_shown(each[line]) for each in grid.keys.values())
    text = words or "all rows that count"
    most = (_LEFT - 10) // _LETTER + 2
    return text if len(text) <= most else text[: most - 1] + "…"


def _number(value: Any) -> float | None:
    if isinstance(value, str) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _scale(low: float, high: float) -> tuple[float, float, Sequence[float]]:
    """Return the ends of an axis and about five round numbers on it.

    >>> _scale(0.0, 10.0)
    (-0.5, 10.5, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """
    if not high > low:
        low, high = low - max(1.0, abs(low) / 10), high + max(1.0, abs(high) / 10)
    room = (high - low) / 20
    low, high = low - room, high + room
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first = math.ceil(low / step)
    return low, high, [i * step for i in range(first, math.floor(high / step) + 1)]
