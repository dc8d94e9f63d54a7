"""Algorithm 1: turn a mean with Gaussian noise into a mean under pure DP.

The Gaussian mechanism has a δ. Algorithm 1 removes it: it replaces the answer by a uniform point of
the ball with a small probability, and adds a little Laplace noise. The Gaussian noise here is
NumPy's, so its claim is asserted; `zd.mean` draws its noise exactly and is pure from the start.
"""

from __future__ import annotations

import math

import numpy as np

import zerodelta as zd

ROWS, DIMENSION, EPSILON = 20_000, 3, 1


def main() -> None:
    rng = np.random.default_rng(0)
    center = np.array([0.1, 0.0, -0.05])
    rows = center + rng.uniform(-0.5, 0.5, size=(ROWS, DIMENSION))  # l2 norms below 1
    chosen = zd.paper.corollary_1(rows=ROWS, dimension=DIMENSION, diameter=2)
    noise = zd.purification.calibrate(
        epsilon=EPSILON / 2, log_delta=chosen.log_delta, sensitivity=2 / ROWS
    )
    deviation = math.sqrt(noise.variance or 0)
    draft = rows.mean(axis=0) + deviation * rng.normal(size=DIMENSION)  # never shown to anyone
    print(f"the draft is (1/2, δ)-DP, ln δ = {chosen.log_delta:.1f}; noise of {deviation:.4f}")
    balls = {
        "l2 ball": zd.Ball(DIMENSION, 1),
        "l3 ball": zd.paper.LqBall(DIMENSION, 1, norm=3),
        "cube": zd.Ball(DIMENSION, 1, norm=math.inf),
    }
    for name, ball in balls.items():
        release = zd.paper.purify_ball(
            draft,
            ball=ball,
            epsilon=EPSILON,
            log_delta=chosen.log_delta,
            mixing_weight=chosen.mixing_weight,
        )
        print(f"{name}: {release.value.round(4)}, purification adds {release.error:.1e}")
    print(release.certificate.summary)
    print("directly pure:", zd.mean(rows, data_norm=1, epsilon=EPSILON).value.round(4))


if __name__ == "__main__":
    main()
