"""List the figures that are formulas, not slopes: computation, drawing and findings.

To add one, add a `Picture` to `PICTURES`; pages and tests find it there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from matplotlib.figure import Figure

from reproduce.curves import figure_1, figure_f_dp
from reproduce.drawing import draw_f_dp, draw_figure_1, draw_price, draw_tightness
from reproduce.price import findings, price
from reproduce.tightness import tightness

__all__ = ["PICTURES", "Picture"]

Numbers: TypeAlias = dict[str, Any]


@final
@dataclass(frozen=True, kw_only=True)
class Picture:
    """One figure of the paper, or one that it could have had."""

    key: str
    title: str
    caption: str
    compute: Callable[[bool], Numbers]
    """compute(quick): every number of the figure."""
    draw: Callable[[Numbers], Figure]
    findings: Callable[[Numbers], tuple[str, ...]]
    """What the figure shows, in sentences whose numbers are those of `compute`."""


def _figure_1(quick: bool) -> Numbers:
    return dict(figure_1(points=16 if quick else 61))


def _figure_1_findings(data: Numbers) -> tuple[str, ...]:
    crossings = [10 ** relation["crossing_log10_delta"] for relation in data["relations"].values()]
    small = data["log10_delta"][-1]
    ratio = data["relations"]["add/remove one row"]
    factor = ratio["gaussian"][-1] / ratio["laplace"]
    return (
        "As in the paper: Laplace noise, with δ = 0, has the smaller variance unless δ is too "
        f"large to mean anything ({crossings[0]:.1g}, or {crossings[1]:.1g} if rows are replaced).",
        f"The Gaussian's variance grows with ln(1/δ) without end; at δ = 10^{small:.0f} it is "
        f"{factor:.1f} times the Laplace variance. A purified mechanism needs still smaller δ, so "
        "it pays only where many steps share one release.",
    )


def _f_dp(quick: bool) -> Numbers:
    return dict(figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1))


def _f_dp_findings(data: Numbers) -> tuple[str, ...]:
    return (
        "The paper says that f_{ε,δ} lies below f_{ε+ε',0}. For small δ it does not: the two "
        f"cross at α = δ/(e^(ε+ε') - e^ε) = {data['crossing_alpha']:.3f} and at the mirror image. "
        "Only outside, where one of the two errors is rare, is (ε, δ)-DP the weaker promise.",
        "Mixing alone (theory B1) takes the worst (ε, δ) pair above f_{ε,0}: no ε' is needed, and "
        f"a mixing probability of {data['mixing_weight']:.3g}.",
    )


def _tightness(quick: bool) -> Numbers:
    grids = {1: 201, 2: 21, 3: 9} if quick else {1: 401, 2: 41, 3: 15}
    return dict(tightness(radius=0.25, dimensions=(1, 2, 3, 5, 10, 20, 50, 100), grids=grids))


def _tightness_findings(data: Numbers) -> tuple[str, ...]:
    radius, last = data["radius"], data["dimensions"][-1]
    convex, ball, loss = (
        data[name][-1] / radius for name in ("paper_convex", "paper_ball", "theorem_w")
    )
    return (
        "As in the paper: the step from TV to W∞ loses a constant only, "
        f"{convex:g} with its lemma for convex sets ({ball:g} for balls).",
        f"Theorem W loses {loss:g}, for every ball and every norm; for l2 the sharp constant falls "
        f"to {math.ceil(100 * data['lens'][-1] / radius) / 100:g} at d = {last}, so the example is "
        "then the worst case.",
    )


def _price(quick: bool) -> Numbers:
    sizes = (1024, 16_384) if quick else (256, 1024, 4096, 16_384, 65_536, 262_144)
    return price(sizes=sizes, repeats=2 if quick else 20)


PICTURES = (
    Picture(
        key="figure_1",
        title="Figure 1: the price of δ",
        caption=(
            "Variance per count of a private histogram at ε = 1 (fig:myth). The paper does not "
            "say which neighbors it means; both are shown."
        ),
        compute=_figure_1,
        draw=draw_figure_1,
        findings=_figure_1_findings,
    ),
    Picture(
        key="f_dp",
        title="Figure f-DP: trade-off curves",
        caption="What an attacker can achieve (fig:f-DP); higher curves are safer. Squares: kinks.",
        compute=_f_dp,
        draw=draw_f_dp,
        findings=_f_dp_findings,
    ),
    Picture(
        key="tightness",
        title="The tightness example",
        caption="Two laws with TV = Δ^d and W∞ = Δ (ex:tightness, fig:example).",
        compute=_tightness,
        draw=draw_tightness,
        findings=_tightness_findings,
    ),
    Picture(
        key="price",
        title="The price of δ = 0",
        caption=(
            "Not in the paper: the mean of real data (scikit-learn's digits, 64 pixels in the unit "
            "l2 ball, n rows drawn with replacement) at a total ε = 1. Points are measured, dashed "
            "lines follow from the noise alone. What purified noise costs is the same after any "
            "number of internal Gaussian steps; a pure mechanism has to split ε among them."
        ),
        compute=_price,
        draw=draw_price,
        findings=findings,
    ),
)
