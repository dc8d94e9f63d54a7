"""Write `reproduce.html`: the pictures, the slopes and the differences from the paper.

Everything is rendered from the numbers that `reproduce.json` holds; so is the page of the site
(`reproduce.report`).
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["HEADINGS", "cells", "headline", "page", "signed"]

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
"""

HEADINGS = ("mechanism", "paper's rate", "against", "measured", "paper", "exact formula", "verdict")
"""The columns of a table of slopes; those of a quick run end with the measured errors."""

WHAT = (
    "Figures and tables of Purifying Approximate Differential Privacy with Randomized "
    "Post-processing (Lin, Wang, Ma, Wang; NeurIPS 2025), measured with the exact implementations "
    "of zerodelta.paper on made-up data, unless said otherwise, with replayed random bits: every "
    "run gives the same numbers."
)

HOW = (
    "Measured: the least-squares slope of ln(error) against the logarithm of the variable, ± its "
    "standard error (bootstrap over repeats). Paper: the power in its rate. Exact formula: the "
    "slope, over the same values, of the error computed from the noise, steps and δ that the run "
    "used; nothing in it is fitted, and the pictures show it dashed. A slope agrees if it is "
    "within 0.15 or two standard errors of the paper's. It is explained only if the exact formula "
    "differs from the paper's power in the same direction, by at least half as much, and lies "
    "within 0.15 or two standard errors of the measurement; otherwise it is unexplained."
)


def headline(summary: Mapping[str, Any]) -> str:
    """Return "x of y slopes agree; these do not", and how many of those are explained.

    >>> headline({"slopes": 5, "agree": 3, "explained": 1, "unexplained": 1})
    '3 of 5 slopes agree; these do not (1 explained by the exact formula, 1 unexplained):'
    """
    slopes, agree, explained, open_ones = (
        summary[name] for name in ("slopes", "agree", "explained", "unexplained")
    )
    if agree == slopes:
        return f"All {slopes} slopes agree."
    return (
        f"{agree} of {slopes} slopes agree; these do not ({explained} explained by the exact "
        f"formula, {open_ones} unexplained):"
    )


def cells(row: Mapping[str, Any], curve: Mapping[str, Any]) -> list[str]:
    """Return one line of a table of slopes, or of errors where the run was a quick one."""
    start = [
        row["variants"][curve["variant"]],
        row["formulas"][curve["variant"]],
        row["axes"][curve["variable"]],
    ]
    if curve["slope"] is None:
        points = zip(curve["values"], curve["errors"], strict=True)
        return [*start, "; ".join(f"{error:.3g} at {value:g}" for value, error in points)]
    return [
        *start,
        f"{signed(curve['slope'])} ± {curve['slope_error']:.2f}",
        signed(curve["exponent"]),
        signed(curve["predicted_slope"]),
        curve["words"],
    ]


def signed(number: float | None) -> str:
    """Return a number with its sign, or a dash.

    >>> signed(-0.5), signed(None)
    ('−0.50', '–')
    """
    return "–" if number is None else f"{number:+.2f}".replace("-", "−")


def page(numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """Return the whole page; no script, no link to anything outside. `pictures` are SVGs by key."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<title>zerodelta: the paper, reproduced</title>",
            f"<style>{_STYLE}</style></head><body>",
            "<h1>The paper, reproduced</h1>",
            *_summary(numbers),
            f"<p>{_text(WHAT)}</p>",
            *_figures(numbers, pictures),
            *(_section(row, pictures) for table in numbers["tables"].values() for row in table),
            "</body></html>",
        ]
    )


def _summary(numbers: Mapping[str, Any]) -> Iterator[str]:
    if numbers["quick"]:
        yield (
            "<p class='note'>This is a <code>--quick</code> run: two points to a curve and hardly "
            "any repeats, so it gives no slopes. Leave the option out for the real thing.</p>"
        )
        return
    summary = numbers["summary"]
    yield f"<p><strong>{_text(headline(summary))}</strong></p>"
    if summary["misses"]:
        yield _table(("problem", *HEADINGS), [list(miss) for miss in summary["misses"]])
    yield f"<p class='note'>{_text(HOW)}</p>"


def _figures(numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> Iterator[str]:
    for figure in numbers["figures"]:
        points = "".join(f"<li>{_text(finding)}</li>" for finding in figure["findings"])
        yield (
            f"<h2>{_text(figure['title'])}</h2><figure>{pictures[figure['key']]}"
            f"<figcaption>{_text(figure['caption'])}</figcaption></figure><ul>{points}</ul>"
        )


def _section(row: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    lines = [cells(row, curve) for curve in row["series"]]
    return (
        f"<h2>{_text(row['title'])}</h2>"
        f"<p class='note'>{_text(row['note'])}</p>"
        f"<figure>{pictures[row['key']]}</figure>"
        + _table(HEADINGS[: len(lines[0])] if lines else HEADINGS, lines)
    )


def _table(headings: tuple[str, ...], lines: list[list[str]]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in line) + "</tr>" for line in lines
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _text(words: object) -> str:
    return html.escape(str(words))
