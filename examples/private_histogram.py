"""Publish a private histogram, and compare it with the true one.

The data (mean radius of 569 tumors, shipped with scikit-learn) are public, so this example may
print the true counts. Of your own data you may publish the right-hand column only.

Replacing one row decreases one count by 1 and increases another by 1. `zd.histogram` chooses the
mechanism with the smallest expected error for that, draws its noise exactly from the operating
system's random bits, and certifies pure ε-DP (δ = 0).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

import zerodelta as zd

EPSILON = Fraction(1, 2)
EDGES = np.arange(6, 32, 2)  # public: chosen without looking at the data


def main() -> None:
    radius = np.clip(load_breast_cancer().data[:, 0], EDGES[0], EDGES[-1] - 1)
    bins = np.digitize(radius, EDGES) - 1
    true = np.bincount(bins, minlength=len(EDGES) - 1)
    release = zd.histogram(bins, universe=len(EDGES) - 1, epsilon=EPSILON)
    private = release.value

    table = Table(title=f"Mean tumor radius of 569 patients, pure ε = {EPSILON}, δ = 0")
    table.add_column("mm", justify="right")
    table.add_column("true (stays here)", style="dim")
    table.add_column("private (may be published)")
    for low, before, after in zip(EDGES[:-1], true, private, strict=True):
        table.add_row(f"{low}-{low + 2}", bar(int(before), "░"), bar(int(after), "█"))
    console = Console()
    console.print(table)
    console.print(
        f"Expected absolute error of a count: {release.error:.1f}; "
        f"in this run: {np.abs(private - true).mean():.1f}."
    )
    console.print(release.certificate.summary)


def bar(count: int, block: str) -> str:
    return f"{count:>4} {block * max(0, round(count / 7))}"


if __name__ == "__main__":
    main()
