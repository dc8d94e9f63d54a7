"""Compare quantiles of whole numbers on their own grid and on the default one of 2^40 points.

Ages 0..120 of a made-up population. Prints the mean rank error (how many rows the released point
lies beyond the wanted one, counting ties as right) and the mean error in years of both grids.

    python bench/quantile_grid.py
"""

from __future__ import annotations

import math

import numpy as np

import zerodelta as zd

RUNS = 200


def errors(ages: np.ndarray, q: float, epsilon: float, grid: int | None) -> tuple[float, float]:
    """Return the mean rank error in rows, and the mean error in years."""
    ordered, n = np.sort(ages), len(ages)
    rank = math.ceil(q * n)
    wanted = ordered[rank - 1]
    ranks, years = [], []
    for _ in range(RUNS):
        answer = zd.quantile(ages, q=q, bounds=(0, 120), grid=grid, epsilon=epsilon).value
        below = int(np.searchsorted(ordered, answer, side="left"))
        not_above = int(np.searchsorted(ordered, answer, side="right"))
        ranks.append(max(0, below - (rank - 1), rank - not_above))
        years.append(abs(answer - wanted))
    return float(np.mean(ranks)), float(np.mean(years))


def main() -> None:
    """Print one line for each number of rows, ε and level."""
    rng = np.random.default_rng(7)
    print("      n     ε     q   rank error: whole numbers  2^40 points   years: whole  2^40")
    for n in (1_000, 10_000):
        ages = np.floor(np.clip(rng.normal(41, 23, n), 0, 105))
        for epsilon in (0.1, 1.0):
            for q in (0.5, 0.9):
                (rank, years), (fine, fine_years) = (
                    errors(ages, q, epsilon, grid) for grid in (121, None)
                )
                print(
                    f"{n:7d} {epsilon:5.1f} {q:5.2f} {rank:27.2f} {fine:12.2f} "
                    f"{years:14.3f} {fine_years:5.3f}"
                )


if __name__ == "__main__":
    main()
