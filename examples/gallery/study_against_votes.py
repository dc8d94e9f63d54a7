"""A study against votes: which of 8 measurements tells malignant tumors best?

A study computes the noisy distance of the class means of every feature inside, and publishes one
name. A vote lets blocks of rows choose for themselves, and publishes the winner. The picture shows
how often each names the best one (569 tumors, shipped with scikit-learn, public).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gallery_pictures import INK, OTHER, save
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

import zerodelta as zd

UPPER = {  # public: what such measurements may be
    "radius": 30,
    "texture": 40,
    "smoothness": 0.2,
    "compactness": 0.4,
    "concavity": 0.5,
    "concave points": 0.25,
    "symmetry": 0.35,
    "fractal dimension": 0.1,
}
EPSILONS, RUNS = ("1/4", "1/2", "1", "2"), 20


def gaps(rows: Any) -> Any:
    """Return how far the means of the classes are apart in each feature, in parts of its bound."""
    label = rows[:, -1:]
    first, second = (rows[:, :-1] * label).mean(axis=0), (rows[:, :-1] * (1 - label)).mean(axis=0)
    return apart(first, second, label.mean())


def apart(first: Any, second: Any, share: Any) -> Any:
    """Return the distance of class means, from means over all rows."""
    share = np.clip(share, 0.05, 0.95)
    return np.abs(first / share - second / (1 - share))


def main() -> None:
    data = load_breast_cancer()
    columns = [list(data.feature_names).index(f"mean {name}") for name in UPPER]
    features = data.data[:, columns] / list(UPPER.values())
    rows = np.column_stack([np.clip(features, 0, 1), 1 - data.target])
    best = int(np.argmax(gaps(rows)))
    names = list(UPPER)
    found: dict[str, list[float]] = {"study": [], "vote": []}
    for epsilon in EPSILONS:
        right = {"study": 0, "vote": 0}
        for _ in range(RUNS):
            study = zd.Study(rows, epsilon=epsilon, publish=zd.Finite(8), rounds=3, bounds=(0, 1))
            right["study"] += study.run(in_a_study).value == best
            vote = zd.queries.vote(
                rows,
                lambda block: int(np.argmax(gaps(block))),
                options=list(range(8)),
                epsilon=epsilon,
                example=np.random.default_rng().uniform(size=(50, 9)),
            )
            right["vote"] += vote.value == best
        for name, count in right.items():
            found[name].append(count / RUNS)
        print(f"ε = {epsilon}: study {right['study']}, vote {right['vote']} of {RUNS}")

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(EPSILONS, found["study"], "o-", color=INK, label="study")
    axes.plot(EPSILONS, found["vote"], "s--", color=OTHER, label="vote of blocks")
    axes.set(ylim=(0, 1.05), xlabel="ε", ylabel=f"chose “{names[best]}”")
    axes.set_title(f"One of 8 features is published, {RUNS} runs each")
    axes.legend()
    print(save(figure, "study_against_votes"))


def in_a_study(study: Any) -> int:
    """Ask two vectors and a number, and choose."""
    first = study.mean(lambda rows: rows[:, :-1] * rows[:, -1:], bounds=(0, 1))
    second = study.mean(lambda rows: rows[:, :-1] * (1 - rows[:, -1:]), bounds=(0, 1))
    return int(np.argmax(apart(first, second, study.mean(lambda rows: rows[:, -1], bounds=(0, 1)))))


if __name__ == "__main__":
    main()
