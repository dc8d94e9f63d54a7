"""Purify your own training run: noisy descent with a Gaussian guarantee, made pure at the end.

Your training has a claim: its full-batch steps with clipped gradients and Gaussian noise are
μ-Gaussian DP together. `zd.plan` states how small δ must be for a pure ε,
`zd.purification.calibrate` how small μ must be for that, and the plan publishes the parameters. The
certificate states that it is conditional on your claim.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gallery_pictures import INK, OTHER, save
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import zerodelta as zd

STEPS, RADIUS, EPSILON = 40, 3, 2


def main() -> None:
    data = load_digits()
    chosen = data.target < 2  # zeros and ones; two public features of an image
    images = data.images[chosen] / 16
    features = np.column_stack(
        [images[:, 2:6, 3:5].mean(axis=(1, 2)), images[:, :, [2, 5]].mean(axis=(1, 2))]
    )
    rows, labels = 2 * features - 1, 2.0 * data.target[chosen] - 1
    ball = zd.Ball(2, RADIUS)
    plan = zd.plan(ball, epsilon=EPSILON, resolution=0.05)
    allowed = zd.purification.calibrate(epsilon=EPSILON, log_delta=plan.log_delta)
    print(f"ln δ must be {plan.log_delta:.1f}: μ² = {float(allowed.mu_squared):.4f}")
    weights = descend(rows, labels, float(allowed.mu_squared) ** 0.5)
    release = plan.purify(weights, claim=zd.GaussianDP(mu_squared=allowed.mu_squared))
    published = np.asarray(release.value)
    print(published.round(2), release.certificate.summary)
    accuracy = float((np.sign(rows @ published) == labels).mean())

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.subplots()
    for label, marker, color in ((-1, "o", INK), (1, "^", OTHER)):
        images_of_digit = rows[labels == label]
        axes.scatter(
            images_of_digit[:, 0],
            images_of_digit[:, 1],
            marker=marker,
            color=color,
            s=14,
            label=f"digit {int(label > 0)}",
        )
    across = np.array([-1, 1])
    axes.plot(across, -across * published[0] / published[1], color="black", label="published line")
    axes.set(
        xlim=(-1, 1),
        ylim=(-1, 1),
        xlabel="ink in the middle, scaled",
        ylabel="ink at the sides, scaled",
        title=f"A run made pure: ε = {EPSILON}, δ = 0, {accuracy:.0%} right",
    )
    axes.legend()
    print(save(figure, "purify_your_own"))


def descend(rows: Any, labels: Any, mu: float) -> Any:
    """Return the parameters after noisy steps that are μ-Gaussian DP together (replaced rows)."""
    generator = np.random.default_rng()  # use a secure generator for private data
    weights = np.zeros(2)
    norm = np.sqrt(2)  # the largest norm of a row
    noise = 2 * norm / len(rows) * np.sqrt(STEPS) / mu
    for _ in range(STEPS):
        slope = -labels / (1 + np.exp(labels * (rows @ weights)))
        gradient = (slope[:, None] * rows).mean(axis=0) + noise * generator.normal(size=2)
        weights -= 2 * gradient
        weights *= min(1.0, RADIUS / float(np.linalg.norm(weights)))
    return weights


if __name__ == "__main__":
    main()
