"""The picture of an advice: predicted errors against the number of rows and against ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from zerodelta.errors import ZeroDeltaError
from zerodelta.exact.rational import as_positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from zerodelta.tasks.advice import Advice

__all__ = ["draw"]

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
"""Told apart by color-blind readers (Okabe and Ito)."""

_STYLES = ("-", "--", "-.", ":")
_POINTS = 11
_AXES = {"n": "number of rows n", "epsilon": "ε", "questions": "hidden questions"}
_REACH = {"n": 30.0, "epsilon": 10.0, "questions": 30.0}
"""How many times more and less than what was asked is shown."""


def draw(advice: Advice) -> Figure:
    """Return a figure with one panel for each number that the task has."""
    shown = [name for name in ("n", "questions", "epsilon") if name in advice.numbers]
    figure = Figure(figsize=(5.2 * len(shown), 4.4), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, shown, strict=True):
        _panel(panel, advice, name)
    panels[0].set_ylabel("predicted error")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)))
    figure.suptitle(f"{advice.task}: {advice.unit}", fontsize=10, wrap=True)
    return figure


def _panel(panel: Axes, advice: Advice, name: str) -> None:
    asked = float(as_positive(advice.numbers[name], name))
    values = _values(asked, _REACH[name], whole=name != "epsilon")
    found: dict[str, list[float]] = {method.name: [] for method in advice.methods}
    for value in values:
        try:
            errors = {m.name: m.error for m in advice.forecast({**advice.numbers, name: value})}
        except ZeroDeltaError:  # so few rows, or so small an ε, that no method applies
            errors = {}
        for label, line in found.items():
            error = errors.get(label, math.nan)
            line.append(error if 0 < error < math.inf else math.nan)
    for place, method in enumerate(advice.methods):
        best = place == 0
        panel.plot(
            [float(value) for value in values],
            found[method.name],
            label=f"{method.name} (best here)" if best else method.name,
            color=_COLORS[place % len(_COLORS)],
            linestyle=_STYLES[place % len(_STYLES)],
            linewidth=2.2 if best else 1.4,
            zorder=3 if best else 2,
        )
    panel.axvline(asked, color="#999999", linewidth=0.8, zorder=1)
    panel.set(xscale="log", yscale="log", xlabel=_AXES[name])
    panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)


def _values(asked: float, reach: float, *, whole: bool) -> Sequence[Any]:
    steps = [reach ** (2 * k / (_POINTS - 1) - 1) for k in range(_POINTS)]
    if whole:
        return sorted({max(1, round(asked * step)) for step in steps})
    return [float(f"{asked * step:.4g}") for step in steps]
