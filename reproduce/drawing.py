"""Draw the pictures with matplotlib as SVG text, in colors for color-blind readers.

Okabe and Ito's colors; markers and dashes differ too. Equal numbers give equal files.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from reproduce.rates import Experiment, Series

__all__ = [
    "as_svg",
    "draw_f_dp",
    "draw_figure_1",
    "draw_price",
    "draw_rates",
    "draw_tightness",
]

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
_STYLES = (
    (ORANGE, "s"),
    (BLUE, "o"),
    (GREEN, "^"),
    (RED, "D"),
    (SKY, "v"),
    (PINK, "P"),
    (BLACK, "X"),
)
"""One for each variant: solid where it was measured, dashed where it is predicted."""
_TEXT: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "axes.unicode_minus": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def as_svg(figure: Figure, name: str) -> str:
    """Return the SVG, its ids made unique by `name` so that several fit into one page."""
    buffer = io.StringIO()
    with matplotlib.rc_context({**_TEXT, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    return text


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def draw_figure_1(data: Mapping[str, Any]) -> Figure:
    """Draw the variance per count against δ; the paper's `fig:myth`."""
    with matplotlib.rc_context(_TEXT):
        figure = _figure(9.0, 3.8)
        panels = figure.subplots(1, 2, sharey=True)
        deltas = 10.0 ** np.array(data["log10_delta"])
        for axes, (name, curve) in zip(panels, data["relations"].items(), strict=True):
            axes.plot(deltas, curve["gaussian"], color=BLUE, label="analytic Gaussian, (1, δ)-DP")
            axes.axhline(curve["laplace"], color=ORANGE, linestyle="--", label="Laplace, pure 1-DP")
            crossing = 10.0 ** curve["crossing_log10_delta"]
            axes.plot(crossing, curve["laplace"], "o", color=BLACK, markersize=5)
            axes.annotate(
                f"Laplace is better below δ = {crossing:.2g}",
                (crossing, curve["laplace"]),
                xytext=(12, -16),
                textcoords="offset points",
                size=9,
            )
            axes.set(xscale="log", yscale="log", xlabel="δ", title=f"neighbors: {name}")
            axes.invert_xaxis()
            axes.grid(color="0.92")
        panels[0].set_ylabel("variance per count, ε = 1")
        panels[0].legend(frameon=False, loc="upper left")
        return figure


def draw_f_dp(data: Mapping[str, Any]) -> Figure:
    """Draw the trade-off curves, their kinks marked; the paper's `fig:f-DP`."""
    with matplotlib.rc_context(_TEXT):
        figure = _figure(6.2, 5.0)
        axes = figure.subplots()
        eps, total = data["epsilon"], data["epsilon"] + data["extra_epsilon"]
        curves = (
            ("approximate", f"(ε, δ)-DP: ({eps:g}, {data['delta']:g})", BLUE, "-"),
            ("pure", f"pure ε-DP: {eps:g}", BLACK, ":"),
            ("pure_total", f"pure (ε+ε')-DP: {total:g}", RED, "--"),
            ("purified", f"purified by mixing (B1): pure {eps:g}", GREEN, "-."),
        )
        for key, label, color, dashes in curves:
            vertices = np.array(data[key])  # the curves are linear between them
            axes.plot(*vertices.T, dashes, color=color, marker="s", markersize=3, label=label)
        cross, height = data["crossing_alpha"], data["crossing_beta"]
        axes.plot([cross, height], [height, cross], "o", color=BLACK, markersize=5, clip_on=False)
        axes.annotate(
            f"crossing at α = {cross:.3f}: from here\nto the other one (ε, δ) is safer",
            (cross, height),
            xytext=(22, 8),
            textcoords="offset points",
            size=9,
        )
        axes.set(xlabel="type I error α", ylabel="least type II error", xlim=(0, 1), ylim=(0, 1))
        axes.grid(color="0.92")
        axes.legend(frameon=False, loc="upper right")
        return figure


def draw_tightness(data: Mapping[str, Any]) -> Figure:
    """Draw the example in the plane, and the bounds on W∞ against the dimension."""
    with matplotlib.rc_context(_TEXT):
        figure = _figure(9.4, 3.9)
        example_axes, bound_axes = figure.subplots(1, 2, width_ratios=[1, 1.5])
        radius = data["radius"]
        _draw_example(example_axes, radius)
        dimensions = data["dimensions"]
        rows = (
            ("paper_convex", "paper, convex sets: 8Δ", RED, "s", "--"),
            ("paper_ball", "paper, balls: 4Δ", ORANGE, "D", "--"),
            ("theorem_w", "Theorem W: 2Δ", SKY, "^", "-"),
            ("lens", "sharp for l2 (lens)", GREEN, "v", "-"),
            ("exact", "W∞ of the example: Δ", BLACK, "", ":"),
        )
        for key, label, color, marker, dashes in rows:
            values = np.array(data[key]) / radius
            bound_axes.plot(
                dimensions, values, dashes, color=color, marker=marker, markersize=4, label=label
            )
        points = data["measured"]
        bound_axes.errorbar(
            [row["dimension"] for row in points],
            [row["transport"] / radius for row in points],
            yerr=[row["spacing"] / radius for row in points],
            fmt="x",
            color=BLACK,
            capsize=3,
            label="W∞ on a grid (± a cell)",
        )
        bound_axes.set(
            xscale="log",
            yscale="log",
            ylim=(0.6, 11),
            xlabel="dimension d (TV = Δ^d)",
            ylabel="bound on W∞, in units of Δ",
        )
        bound_axes.set_yticks((1, 2, 4, 8), ("1", "2", "4", "8"))
        bound_axes.minorticks_off()
        bound_axes.grid(color="0.92")
        bound_axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure


def draw_price(data: Mapping[str, Any]) -> Figure:
    """Draw errors against n with error bars, what is predicted, and what knowing nothing gives."""
    with matplotlib.rc_context(_TEXT):
        figure = _figure(7.6, 5.2)
        axes = figure.subplots()
        sizes = data["sizes"]
        axes.plot(sizes, data["nothing"], ":", color="0.4", label="the center, which costs nothing")
        for (name, text), (color, marker) in zip(data["methods"].items(), _STYLES, strict=False):
            errors = np.array(data["errors"][name])
            axes.errorbar(
                sizes,
                errors,
                yerr=np.minimum(data["deviations"][name], 0.95 * errors),
                color=color,
                marker=marker,
                linestyle="none",
                markersize=5,
                capsize=2,
                label=text,
            )
            axes.plot(sizes, data["predicted"][name], "--", color=color, linewidth=1)
        measured = [error for found in data["errors"].values() for error in found]
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="number of rows n",
            ylabel=f"rms error of the mean at ε = {data['epsilon']:g}",
            ylim=(min(measured) / 2, 2 * max(measured)),  # predictions know no ball
        )
        axes.set_xticks(sizes, [f"{n:,}".replace(",", " ") for n in sizes])
        axes.minorticks_off()
        axes.grid(color="0.92")
        figure.legend(loc="outside lower center", frameon=False, fontsize=9)
        return figure


def _draw_example(axes: Axes, radius: float) -> None:
    circle = np.linspace(0, 2 * np.pi, 200)
    axes.fill(np.cos(circle), np.sin(circle), color=SKY, alpha=0.45, linewidth=0)
    axes.fill(radius * np.cos(circle), radius * np.sin(circle), color="white")
    axes.plot(radius * np.cos(circle), radius * np.sin(circle), color=BLUE, linewidth=1)
    axes.plot(0, 0, "o", color=RED, markersize=6)
    axes.annotate("mass Δᵈ", (0, 0), xytext=(0.12, 0.5), size=9, arrowprops={"arrowstyle": "-"})
    axes.annotate("uniform", (0, -0.7), ha="center", size=9)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"μ for d = 2, Δ = {radius:g}")


def draw_rates(experiment: Experiment, series: Sequence[Series], *, quick: bool) -> Figure:
    """Draw errors with error bars on log axes, a panel a variable; predictions are dashed."""
    variables = list(dict.fromkeys(curve.variable for curve in series))
    styles = dict(zip(experiment.variants, _STYLES, strict=False))
    with matplotlib.rc_context(_TEXT):
        lines = max(sum(curve.variable == name for curve in series) for name in variables)
        columns = {4: 2}.get(len(variables), min(3, len(variables)))
        rows = -(-len(variables) // columns)
        height = rows * (3.2 + 0.22 * lines) + 0.2 * len(styles) + 0.9
        figure = _figure(3.5 * columns + 0.4, height)
        panels = np.atleast_1d(figure.subplots(rows, columns)).reshape(-1)
        for spare in panels[len(variables) :]:
            spare.set_axis_off()
        for axes, variable in zip(panels, variables, strict=False):
            chosen = [curve for curve in series if curve.variable == variable]
            for curve in chosen:
                _draw_curve(axes, curve, styles[curve.variant])
            name = "ε (total)" if variable == "epsilon" else experiment.axis(variable)
            axes.set(xscale="log", yscale="log", xlabel=name)
            ticks = _apart({value for curve in chosen for value in curve.values})
            axes.set_xticks(ticks, [_short(value) for value in ticks])
            axes.minorticks_off()
            low, high = axes.get_ylim()
            if high < 150 * low:  # else the decades suffice
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
            axes.grid(color="0.92")
            if axes.get_legend_handles_labels()[1]:
                axes.legend(
                    frameon=False,
                    fontsize=8,
                    title=None if quick else "slope (paper; exact formula)",
                    title_fontsize=8,
                    loc="lower left",
                    bbox_to_anchor=(0.0, 1.0),  # above the panel, where no curve is
                )
        for first in panels[::columns]:
            first.set_ylabel(experiment.quantity)
        handles: list[Any] = [
            Line2D([], [], color=color, marker=marker, markersize=5)
            for name, (color, marker) in styles.items()
            if any(curve.variant == name for curve in series)
        ]
        names = [
            text + _elsewhere(experiment, name, quick)
            for name, text in experiment.variants.items()
            if any(curve.variant == name for curve in series)
        ]
        if any(curve.predicted for curve in series):
            handles.append(Line2D([], [], color="0.4", linestyle="--", linewidth=1))
            names.append("the exact formula at the same parameters, nothing fitted")
        figure.legend(handles, names, loc="outside lower center", frameon=False, fontsize=9)
        return figure


def _elsewhere(experiment: Experiment, variant: str, quick: bool) -> str:
    """Return the fixed numbers of a variant that are not those of the row, if any."""
    usual = {**experiment.base, **(experiment.quick_base if quick else {})}
    own = experiment.fixed(variant, quick=quick)
    words = [
        f"{experiment.axis(name)} = {_short(value)}"
        for name, value in own.items()
        if value != usual.get(name)
    ]
    return f"; at {', '.join(words)}" if words else ""


def _apart(values: Collection[float]) -> list[float]:
    """Return the values that are far enough from each other on a log axis to be written.

    >>> _apart([1, 2, 4, 32, 1024, 1000])
    [1, 4, 32, 1000]
    """
    kept: list[float] = []
    for value in sorted(values):
        if not kept or math.log(value / kept[-1]) >= math.log(max(values) / min(values)) / 6:
            kept.append(value)
    return kept


def _draw_curve(axes: Axes, curve: Series, style: tuple[str, str]) -> None:
    color, marker = style
    slopes = (curve.slope, curve.exponent, curve.predicted_slope)
    own, paper, formula = ("–" if x is None else f"{x:+.2f}".replace("-", "−") for x in slopes)
    label = "" if curve.slope is None else f"{own} ({paper}; {formula})"
    axes.errorbar(
        curve.values,
        curve.errors,
        yerr=np.minimum(curve.deviations, 0.95 * np.array(curve.errors)),
        color=color,
        marker=marker,
        markersize=5,
        capsize=2,
        label=label or None,
    )
    if curve.predicted is not None:
        axes.plot(curve.values, curve.predicted, "--", color=color, linewidth=1)


def _short(value: float) -> str:
    """Return 20k for 20000.

    >>> [_short(x) for x in (0.25, 20_000.0, 3e6)]
    ['0.25', '20k', '3M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
