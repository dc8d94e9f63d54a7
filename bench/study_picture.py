"""Draw docs/images/study.svg: the internal answers of a study, and its only published result.

With `--png file.png` a raster copy is written too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).resolve().parent.parent
INK, WALL, LEAVES, FACE = "#222222", "#0072B2", "#009E73", "#F4F8FB"


def box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str, **style: str
) -> None:
    edge, face = style.get("edge", INK), style.get("face", "white")
    shape = FancyBboxPatch(
        (x, y),
        width,
        height,
        boxstyle="round,pad=0.02,rounding_size=0.12",
        ec=edge,
        fc=face,
        lw=1.5,
    )
    axes.add_patch(shape)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=INK)


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str = INK
) -> None:
    axes.annotate(
        "",
        end,
        start,
        arrowprops={"arrowstyle": "-|>", "lw": 1.6, "color": color, "mutation_scale": 14},
    )


def draw() -> Figure:
    plt.rcParams.update({"font.size": 11, "svg.hashsalt": "zerodelta"})
    figure, axes = plt.subplots(figsize=(9.6, 3.9), layout="constrained")
    axes.set(xlim=(0, 12.2), ylim=(0, 4.9))
    axes.axis("off")
    wall = FancyBboxPatch(
        (0.15, 0.35),
        8.6,
        4.05,
        boxstyle="round,pad=0.02,rounding_size=0.2",
        ec=WALL,
        fc=FACE,
        lw=2,
        ls="--",
    )
    axes.add_patch(wall)
    axes.text(0.35, 4.55, "inside the study", color=WALL, weight="bold")
    box(axes, 0.5, 1.6, 1.5, 1.4, "rows\n(n public)")
    box(axes, 2.9, 1.6, 2.4, 1.4, "exact integer sum\n+ exactly rounded\nGaussian noise")
    box(axes, 6.2, 1.6, 2.2, 1.4, "your program\n(any code,\nadaptive)")
    arrow(axes, (2.05, 2.3), (2.85, 2.3))
    arrow(axes, (5.35, 2.6), (6.15, 2.6))
    arrow(axes, (6.15, 2.0), (5.35, 2.0))
    axes.text(5.75, 2.75, "internal\nanswer", ha="center", va="bottom", size=9)
    axes.text(5.75, 1.85, "next\nquery", ha="center", va="top", size=9)
    axes.text(4.1, 3.75, "k queries cost √k, not k:  μ² = Σ μᵢ²", ha="center", color=INK)
    axes.text(
        4.1,
        0.75,
        "planned before a row is read; a query too many gets a constant",
        ha="center",
        size=9,
    )
    box(axes, 9.5, 1.6, 2.4, 1.4, "one small result\npure ε-DP, δ = 0\n+ certificate", edge=LEAVES)
    arrow(axes, (8.45, 2.3), (9.45, 2.3), LEAVES)
    axes.text(9.13, 2.45, "publish\nonce", ha="center", va="bottom", size=8.5, color=LEAVES)
    axes.text(
        10.7, 1.2, "replaced by a random one\nwith probability w", ha="center", va="top", size=9
    )
    return figure


def main() -> None:
    figure = draw()
    figure.savefig(ROOT / "docs" / "images" / "study.svg", metadata={"Date": None})
    if "--png" in sys.argv:
        figure.savefig(sys.argv[sys.argv.index("--png") + 1], dpi=110)


if __name__ == "__main__":
    main()
