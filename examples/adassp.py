"""Algorithm 13: linear regression by AdaSSP with a δ, purified, and pure on a lattice.

Noise is added to XᵀX and Xᵀy, and the penalty adapts to it. The rows are made up here, so this
example may print the true coefficients.
"""

from __future__ import annotations

import numpy as np

import zerodelta as zd

ROWS, TRUTH = 50_000, np.array([0.5, -0.3, 0.2])


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(ROWS, 3)) / np.sqrt(3)  # rows of length 1 at most
    y = x @ TRUTH + rng.normal(0, 0.1, size=ROWS)
    public = {"data_norm": 1, "target_bound": 1}
    releases = {
        "AdaSSP, (1, 1e-9)-DP": zd.paper.adassp(x, y, epsilon=1, delta=1e-9, **public),
        "Algorithm 13, pure 1-DP": zd.paper.pure_adassp(x, y, epsilon=1, **public),
        "on a lattice, pure 1-DP": zd.paper.lattice_adassp(
            x, y, epsilon=1, mixing_weight="1e-12", **public
        ),
    }
    print(f"{'true coefficients':<24} {TRUTH}")
    for name, release in releases.items():
        excess = ((x @ (release.value - TRUTH)) ** 2).mean()
        print(f"{name:<24} {release.value.round(3)}   excess {excess:.1e}")
        print(f"{'':<24} expected {release.error:.1e}")


if __name__ == "__main__":
    main()
