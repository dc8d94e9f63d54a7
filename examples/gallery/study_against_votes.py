"""Compare a study and a vote that choose the measurement which separates malignant tumors best.

The study computes a noisy distance of the class means for each of 8 features internally, and
publishes one name. In the vote each block of rows chooses a feature, and the winner is published.
The picture shows how often each chooses the best one (569 tumors, shipped with scikit-learn,
public).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gallery_pictures import INK, OTHER, save
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

import zerodelta as zd

UPPER = {  # public: the largest value of such measurements in any patient
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
    """Return the distance of the class means in each feature, as a share of its bound."""
    label = rows[:, -1:]
    first, second = (rows[:, :-1] * label).mean(axis=0), (rows[:, :-1] * (1 - label)).mean(axis=0)
    return distance(first, second, label.mean())


def distance(first: Any, second: Any, share: Any) -> Any:
    """Return the distance of class means, from sums over each class as means over all rows."""
    share = np.clip(share, 0.05, 0.95)
    return np.abs(first / share - second / (1 - share))


def main() -> None:
    data = load_breast_cancer()
    columns = [list(data.feature_names).index(f"mean {name}") for name in UPPER]
    features = data.data[:, columns] / list(UPPER.values())
    rows = np.column_stack([np.clip(features, 0, 1), 1 - data.target])
    best = int(np.argmax(gaps(rows)))
    names = list(UPPER)
    frequencies: dict[str, list[float]] = {"study": [], "vote": []}
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
            frequencies[name].append(count / RUNS)
        print(f"ε = {epsilon}: study {right['study']}, vote {right['vote']} of {RUNS}")

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(EPSILONS, frequencies["study"], "o-", color=INK, label="study")
    axes.plot(EPSILONS, frequencies["vote"], "s--", color=OTHER, label="vote of blocks")
    axes.set(ylim=(0, 1.05), xlabel="ε", ylabel=f"chose “{names[best]}”")
    axes.set_title(f"One of 8 features is published, {RUNS} runs each")
    axes.legend()
    print(save(figure, "study_against_votes"))


def in_a_study(study: Any) -> int:
    """Ask for the means of both classes and their share, and choose the largest distance."""
    first = study.mean(lambda rows: rows[:, :-1] * rows[:, -1:], bounds=(0, 1))
    second = study.mean(lambda rows: rows[:, :-1] * (1 - rows[:, -1:]), bounds=(0, 1))
    share = study.mean(lambda rows: rows[:, -1], bounds=(0, 1))
    return int(np.argmax(distance(first, second, share)))


if __name__ == "__main__":
    main()
