"""Save a model with its certificate, load it and verify it: nearest centroids of 178 wines.

The data (shipped with scikit-learn) are public, so this example may print the accuracy.
"""

from __future__ import annotations

import tempfile

import numpy as np
from gallery_pictures import INK, save
from matplotlib.figure import Figure
from sklearn.datasets import load_wine

import zerodelta as zd
from zerodelta.sklearn import NearestCentroid

BOUNDS = {
    "alcohol": (10, 16),
    "flavanoids": (0, 6),
    "color_intensity": (0, 14),
    "proline": (200, 1800),
}
"""Public: the range of such measurements in any bottle."""


def main() -> None:
    data = load_wine(as_frame=True)
    features = data.data[list(BOUNDS)]
    held_out = np.arange(len(features)) % 3 == 0  # public: every third bottle
    bounds = tuple(list(ends) for ends in zip(*BOUNDS.values(), strict=True))
    model = NearestCentroid(epsilon=1, bounds=bounds, classes=[0, 1, 2])
    model.fit(features[~held_out].to_numpy(), data.target[~held_out].to_numpy())
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/wine.json")
        loaded = zd.load(f"{folder}/wine.json")
    print(zd.verify(loaded.certificate_, epsilon=1))
    print(loaded.certificate_.summary)
    predicted = loaded.predict(features[held_out].to_numpy())
    true = data.target[held_out].to_numpy()
    accuracy = float((predicted == true).mean())

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    shown = features[held_out]
    for label, marker in enumerate("os^"):
        members = shown[predicted == label]
        axes.scatter(
            members["flavanoids"], members["proline"], marker=marker, label=f"class {label}"
        )
    wrong = predicted != true
    axes.scatter(
        shown["flavanoids"][wrong],
        shown["proline"][wrong],
        s=140,
        facecolors="none",
        edgecolors=INK,
        label="wrong",
    )
    title = f"Held-out wines by a model of ε = 1, δ = 0: {accuracy:.0%} right"
    axes.set(xlabel="flavanoids", ylabel="proline", title=title)
    axes.legend()
    print(save(figure, "model_with_certificate"))


if __name__ == "__main__":
    main()
