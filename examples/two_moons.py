"""Train a network with 33 parameters on two moons under pure ε-DP, and publish it.

The hundred noisy gradients stay inside the study; only the final parameters, a point of a ball
around a public start, are published. All numbers below were chosen without looking at the rows.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from sklearn.datasets import make_moons

import zerodelta as zd
from zerodelta.models import TanhNetwork

ROWS, HELD_OUT = 10_000, 5_000


def main() -> None:
    features, labels = make_moons(ROWS + HELD_OUT, noise=0.1, random_state=0)
    rows, held_out = np.column_stack([features, labels])[:ROWS], features[ROWS:]

    # Public: the bounds of the features, the classes, and so the start of the descent.
    network = TanhNetwork(lower=("-1.5", -1), upper=("2.5", "1.5"), classes=(0, 1))
    ball = zd.Ball(network.parameters, "2.5", center=network.start())

    study = zd.Study(
        rows,
        epsilon=1,
        publish=ball,
        rounds=100,
        mixing_probability=min(Fraction(1, 100), Fraction(10, ROWS)),
    )
    release = study.minimize(network)

    predicted = network.predict(release.value, held_out)
    print(release.certificate.summary)
    print(f"parameters         {network.parameters}")
    print(f"held-out accuracy  {(predicted == labels[ROWS:]).mean():.3f}")


if __name__ == "__main__":
    main()
