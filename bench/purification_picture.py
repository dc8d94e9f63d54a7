"""Draw docs/images/purification.svg: the error of one purified release against the dimension.

The curves are those of `bench/purify.py`'s error table, at n = 1e5 and more dimensions. With
`--png file.png` a raster copy is written too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.purify import METHODS, reference  # noqa: E402

matplotlib.use("svg")

from matplotlib import pyplot as plt  # noqa: E402

ROWS = 10**5
DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
STYLES = {  # Okabe and Ito's colors; markers and dashes too, so that no color is needed
    "Alg. 1 printed": ("Algorithm 1 as printed", "#D55E00", "s", "-"),
    "Alg. 1 tuned": ("Algorithm 1, tuned (W)", "#E69F00", "D", "--"),
    "cube net": ("mixing on a cube grid (B2)", "#56B4E9", "^", "-."),
    "ball net": ("mixing on a ball lattice (gaussian-net)", "#0072B2", "o", "-"),
    "Theorem S (S2)": ("Theorem S (S2)", "#009E73", "v", "-"),
}
TICKS = (1, 2, 3, 5, 10)


def draw() -> Figure:
    plt.rcParams.update({"font.size": 11, "svg.hashsalt": "zerodelta"})
    figure, axes = plt.subplots(figsize=(8.4, 4.8), layout="constrained")
    for name, (label, color, marker, dashes) in STYLES.items():
        ratios = [METHODS[name](d, ROWS) / reference(d, ROWS) for d in DIMENSIONS]
        axes.plot(DIMENSIONS, ratios, dashes, color=color, marker=marker, markersize=5, label=label)
    axes.axhline(1, color="black", linewidth=1.5, label="pure l2 K-norm mechanism")
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(0.9, 15),
        xlabel="dimension d (number of published coordinates)",
        ylabel="l2 error of one release\n(multiples of the pure K-norm mechanism's)",
    )
    axes.set_title("Total ε = 1, n = 100 000 rows in the unit l2 ball, mixing weight 1 %", size=11)
    axes.set_xticks((1, 10, 100, 1000), ("1", "10", "100", "1000"))
    axes.set_yticks(TICKS, [f"{tick}×" for tick in TICKS])
    axes.minorticks_off()
    axes.grid(color="0.9")
    right = axes.secondary_yaxis("right", functions=(np.square, np.sqrt))
    right.set_yticks([tick**2 for tick in TICKS], [str(tick**2) for tick in TICKS])
    right.minorticks_off()
    right.set_ylabel("adaptive steps from which purifying wins\n(about the square of the left)")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def main() -> None:
    figure = draw()
    target = ROOT / "docs" / "images" / "purification.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None})
    print(f"wrote {target.relative_to(ROOT)}")
    if "--png" in sys.argv:
        figure.savefig(sys.argv[sys.argv.index("--png") + 1], dpi=110)


if __name__ == "__main__":
    main()
