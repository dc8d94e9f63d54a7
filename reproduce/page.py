"""`reproduce.html`: the pictures, the slopes and what differs from the paper, in one file."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reproduce.rates import Experiment, Series

__all__ = ["page", "rate_section"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #111; background: #fff; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
figure { margin: 1rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
figcaption, .note { color: #444; font-size: 0.95rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd;
  vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.differs { font-weight: 600; color: #8a3b00; }
"""


def page(
    *,
    quick: bool,
    sections: Iterable[str],
    disagreements: Sequence[Mapping[str, Any]],
) -> str:
    """Return the whole page; no script, no link to anything outside."""
    mode = (
        "<p class='note'>This is a <code>--quick</code> run: two points to a curve and hardly any "
        "repeats, so slopes are rough. Leave the option out for the real thing.</p>"
        if quick
        else ""
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<title>zerodelta: the paper, reproduced</title>",
            f"<style>{_STYLE}</style></head><body>",
            "<h1>The paper, reproduced</h1>",
            "<p>Figures and tables of <em>Purifying Approximate Differential Privacy with "
            "Randomized Post-processing</em>, measured with zerodelta's exact implementations "
            "(<code>zerodelta.paper</code>), the paper's errors mended. Everything is on made-up "
            "data with replayed random bits: only the times change from run to run.</p>",
            mode,
            _summary(disagreements),
            *sections,
            "</body></html>",
        ]
    )


def _summary(disagreements: Sequence[Mapping[str, Any]]) -> str:
    if not disagreements:
        return "<h2>Where the measurements differ from the paper</h2><p>Nowhere.</p>"
    rows = "".join(
        f"<tr><td>{_text(row['problem'])}</td><td>{_text(row['variant'])}</td>"
        f"<td>{_text(row['variable'])}</td>"
        f"<td class='number'>{_signed(row['slope'])}</td>"
        f"<td class='number'>{_signed(row['exponent'])}</td><td>{_text(row['reason'])}</td></tr>"
        for row in disagreements
    )
    return (
        "<h2>Where the measurements differ from the paper</h2>"
        "<p>Slopes on log axes that are more than 0.15 (or two standard errors) away from the "
        "power in the paper's rate, and why.</p>"
        "<table><tr><th>problem</th><th>mechanism</th><th>against</th><th>measured</th>"
        f"<th>paper</th><th>why</th></tr>{rows}</table>"
    )


def figure_section(*, title: str, svg: str, caption: str, findings: Sequence[str]) -> str:
    """Return a heading, a picture, and what it shows."""
    points = "".join(f"<li>{_text(finding)}</li>" for finding in findings)
    return (
        f"<h2>{_text(title)}</h2><figure>{svg}<figcaption>{_text(caption)}</figcaption></figure>"
        f"<ul>{points}</ul>"
    )


def rate_section(experiment: Experiment, series: Sequence[Series], svg: str, title: str) -> str:
    """Return a row of a table: its picture, and slopes beside the paper's powers."""
    rows = "".join(_row(experiment, curve) for curve in series)
    return (
        f"<h2>{_text(title)}: {_text(experiment.problem)}</h2>"
        f"<p class='note'>{_text(experiment.label)}. Measured: {_text(experiment.quantity)}. "
        f"{_text(_capital(experiment.setting))}.</p>"
        f"<figure>{svg}</figure>"
        "<table><tr><th>mechanism</th><th>paper's rate</th><th>against</th><th>slope</th>"
        f"<th>paper</th><th></th></tr>{rows}</table>"
    )


def _row(experiment: Experiment, curve: Series) -> str:
    verdict = ""
    if curve.agrees is not None:
        verdict = (
            "agrees"
            if curve.agrees
            else f"<span class='differs'>differs</span>: {_text(curve.reason)}"
        )
    error = "" if curve.slope_error != curve.slope_error else f" ± {curve.slope_error:.2f}"
    paper = "" if curve.exponent is None else _signed(curve.exponent)
    name = experiment.axes.get(curve.variable, {"epsilon": "ε"}.get(curve.variable, curve.variable))
    return (
        f"<tr><td>{_text(experiment.variants[curve.variant])}</td>"
        f"<td>{_text(experiment.formulas[curve.variant])}</td><td>{_text(name)}</td>"
        f"<td class='number'>{_signed(curve.slope)}{error}</td>"
        f"<td class='number'>{paper}</td><td>{verdict}</td></tr>"
    )


def _signed(number: float) -> str:
    return f"{number:+.2f}".replace("-", "−")


def _text(words: object) -> str:
    return html.escape(str(words))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
