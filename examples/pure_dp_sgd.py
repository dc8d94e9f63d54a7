"""Algorithms 3 and 4: DP-SGD with a δ, purified as in the paper, and purified on a lattice.

The model separates two classes in the plane. The paper's number of steps T grows like n², so a
smaller number is chosen here. The data is made up, so this example may print accuracies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.models import Logistic

ROWS = 10_000


def main() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=ROWS)
    x = 0.4 * rng.normal(size=(ROWS, 2)) + np.outer(2 * labels - 1, [0.4, -0.2])
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    printed = zd.paper.printed_parameters(
        rows=ROWS, dimension=2, epsilon=1, delta="1e-6", lipschitz=1
    )
    print(f"the paper's T for δ = 1e-6: {printed.steps}, about {printed.seconds:.0f} seconds")
    run: dict[str, Any] = {"loss": Logistic(), "data_norm": 1, "radius": 4, "epsilon": 1}
    run |= {"steps": 200, "batch": ROWS}
    models = {
        "Algorithm 3, (1, 1e-6)-DP": zd.paper.dp_sgd(x, labels, delta="1e-6", **run),
        "Algorithm 4, pure": zd.paper.pure_dp_sgd(x, labels, **run),
        "on a lattice, pure": zd.paper.pure_dp_sgd_on_lattice(x, labels, **run),
    }
    for name, release in models.items():
        accuracy = float(np.mean((x @ release.value > 0) == labels))
        print(f"{name}: θ = {release.value.round(2)}, accuracy {accuracy:.3f}")
        print(f"  {release.certificate.summary}")


if __name__ == "__main__":
    main()
