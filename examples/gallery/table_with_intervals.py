"""Draw a table by group with its intervals: petal lengths of three species at ε = 1.

The data (150 irises, shipped with scikit-learn) are public, so the picture may show true means.
"""

from __future__ import annotations

from gallery_pictures import INK, TRUTH, save
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import zerodelta as zd

SPECIES = ["setosa", "versicolor", "virginica"]


def main() -> None:
    data = load_iris(as_frame=True)
    frame = data.frame.rename(columns={"petal length (cm)": "petal"})
    frame["species"] = [SPECIES[code] for code in data.target]
    irises = zd.open(
        frame, columns={"species": zd.category(SPECIES), "petal": zd.number(0, 10, missing=None)}
    )
    release = zd.table(irises, by="species", of={"petal": ["mean"]}, epsilon=1)
    table = release.to_frame(level="0.95")
    print(table.round(1).to_string(index=False))
    print(release.certificate.summary)

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    middle = table["petal_mean"]
    below, above = middle - table["petal_mean_lower"], table["petal_mean_upper"] - middle
    axes.errorbar(middle, SPECIES, xerr=[below, above], fmt="o", color=INK, capsize=4)
    truth = frame.groupby("species")["petal"].mean()
    axes.plot(truth[SPECIES], SPECIES, "|", color=TRUTH, markersize=22, label="without noise")
    axes.set(xlabel="mean petal length, cm", title="Three means for one ε = 1, with 95 % intervals")
    axes.margins(y=0.25)
    axes.legend(loc="lower right")
    print(save(figure, "table_with_intervals"))


if __name__ == "__main__":
    main()
