"""Select the 3 of 40 measurements that explain an outcome best; only their numbers are published.

The rows are made up here, so this example may print the right answer. Three measurements
matter, two of them with opposite signs, and each is correlated with four others.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console

import zerodelta as zd

ROWS, FEATURES, TRUTH = 20_000, 40, (3, 4, 21)


def main() -> None:
    console, rng = Console(), np.random.default_rng(0)
    x = np.sqrt(0.7) * np.repeat(rng.normal(size=(ROWS, FEATURES // 5)), 5, axis=1)
    x += np.sqrt(0.3) * rng.normal(size=(ROWS, FEATURES))
    y = x[:, 3] - 0.8 * x[:, 4] + 0.6 * x[:, 21] + 0.5 * rng.normal(size=ROWS)
    console.print(f"{ROWS} rows, {FEATURES} correlated features; the target is made of {TRUTH}")
    largest = np.argsort(-np.abs(x.T @ y))[:3]
    console.print(f"largest covariances, not private: {tuple(sorted(map(int, largest)))}\n")
    for method in ("gram", "stepwise"):
        release = zd.select_features(
            np.column_stack([x, y]),
            target=-1,
            size=3,
            epsilon=1,
            bounds=(-3, 3),  # public: measurements are standardized, and clipped at 3
            target_bounds=(-3, 3),
            data_norm=0.24 * FEATURES**0.5,  # of rows on [-1, 1]; longer rows are clipped
            method=method,
        )
        console.print(f"{method}: {release}\n")
    console.print(release.certificate.explain())


if __name__ == "__main__":
    main()
