"""Matrix Laplace noise (theory W2) beside K-norm noise and a choice of subspaces.

`python bench/matrix_noise.py` prints two tables. Rows are made up like answers to a questionnaire:
d questions, each from 1 to 5, driven by three factors of different strength. Data, seeds and
settings were written down before the first run.

1. Principal directions: sin² of the largest angle between the three true directions of the rows and
   the released ones, mean of the runs, at ε = 1/4, 1, 4 (replace-one). The exponential mechanism
   over subspaces draws V with density ∝ exp(ε tr(Vᵀ S V) / (2 s²)), as Chaudhuri, Sarwate and
   Sinha (2012): a Gibbs sampler of 60 sweeps in floats, so that it is only nearly ε-DP.
2. Covariances: the forecast of the mean absolute error of an entry by d, for rows of [-1, 1]^d.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.spine.plan import Facts
from zerodelta.tasks.covariance import CovarianceQuestion

ROWS, EPSILONS, COMPONENTS = 4000, (0.25, 1, 4), 3
METHODS = ("matrix", "frobenius", "max")


def questionnaire(questions: int, rng: np.random.Generator) -> Any:
    """Return answers from 1 to 5 as numbers in [-1, 1]."""
    factors = rng.normal(size=(ROWS, COMPONENTS)) * np.array([1.5, 1.0, 0.7])
    loadings = rng.normal(size=(COMPONENTS, questions))
    answers = np.clip(
        np.rint(3 + 0.7 * (factors @ loadings) + rng.normal(size=(ROWS, questions))), 1, 5
    )
    return (answers - 3) / 2


def directions(rows: Any) -> Any:
    """Return the first principal directions, as columns."""
    return np.linalg.eigh(np.cov(rows.T, ddof=0))[1][:, ::-1][:, :COMPONENTS]


def largest_angle(one: Any, two: Any) -> float:
    """Return sin² of the largest principal angle between two subspaces."""
    return float(1 - np.linalg.svd(one.T @ two)[1].min() ** 2)


def bingham(exponent: Any, rng: np.random.Generator) -> Any:
    """Draw a unit vector with density ∝ exp(xᵀ exponent x), by rejection (Kent and others 2013)."""
    values, vectors = np.linalg.eigh(exponent)
    a, q = values[-1] - values, len(values)
    low, high = 1e-9, float(q)
    for _ in range(80):
        b = (low + high) / 2
        low, high = (b, high) if (1 / (b + 2 * a)).sum() > 1 else (low, b)
    omega = 1 + 2 * a / b
    limit = -(q - b) / 2 + q / 2 * np.log(q / b)
    while True:
        y = rng.normal(size=q) / np.sqrt(omega)
        x = y / np.linalg.norm(y)
        log = -(x * x) @ a + q / 2 * np.log((x * x) @ omega) - limit
        if np.log(rng.random()) < log:
            return vectors @ x


def exponential_subspace(rows: Any, epsilon: float, rng: np.random.Generator) -> Any:
    """Draw a subspace by the exponential mechanism; rows have squared length at most d."""
    centered = rows  # the middle of the scale is public
    exponent = epsilon / (2 * rows.shape[1]) * (centered.T @ centered)
    frame = np.linalg.qr(rng.normal(size=(rows.shape[1], COMPONENTS)))[0]
    for _ in range(60):
        for place in range(COMPONENTS):
            others = np.delete(frame, place, axis=1)
            free = np.linalg.svd(others)[0][:, COMPONENTS - 1 :]
            frame[:, place] = free @ bingham(free.T @ exponent @ free, rng)
    return frame


def main(runs: int) -> None:
    """Print both tables."""
    print(f"sin² of the largest angle, {ROWS} rows, {COMPONENTS} directions, {runs} runs\n")
    print("| questions | method | " + " | ".join(f"ε = {e}" for e in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    for questions in (10, 25, 40):
        rng = np.random.default_rng(questions)
        rows = questionnaire(questions, rng)
        true, raw = directions(rows), np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :COMPONENTS]
        found: dict[str, list[float]] = {}
        for epsilon in EPSILONS:
            for method in METHODS:
                angles = [
                    largest_angle(
                        true,
                        zd.pca(
                            rows,
                            components=COMPONENTS,
                            bounds=(-1, 1),
                            radius=1,
                            epsilon=epsilon,
                            method=method,
                        ).value.components.T,
                    )
                    for _ in range(runs)
                ]
                found.setdefault(f"zd.pca, {method}", []).append(float(np.mean(angles)))
            angles = [
                largest_angle(raw, exponential_subspace(rows, epsilon, rng)) for _ in range(runs)
            ]
            found.setdefault("exponential mechanism", []).append(float(np.mean(angles)))
        for name, means in found.items():
            print(f"| {questions} | {name} | " + " | ".join(f"{m:.3f}" for m in means) + " |")
    print("\nForecast error of a covariance, 10 000 rows in [-1, 1]^d, ε = 1\n")
    print("| d | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
    for d in (2, 3, 5, 7, 10, 25, 50, 100):
        plan = CovarianceQuestion(bounds=(-1, 1)).plan(Facts(rows=10_000, columns=("",) * d), 1)
        errors = {method.name: float(method.error) for method in plan.methods}
        print(f"| {d} | " + " | ".join(f"{errors[m]:.5f}" for m in METHODS) + " |")


if __name__ == "__main__":
    main(3 if "--quick" in sys.argv else 15)
