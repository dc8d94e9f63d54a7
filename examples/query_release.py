"""Algorithms 14 to 16: answer all queries on pairs of 8 yes/no columns of 200 000 people.

MWEM measures the worst answered queries and learns a distribution; the paper draws a small sample
from it and purifies the sample. The rows are made up here, so this example may print the errors.
"""

from __future__ import annotations

import numpy as np

import zerodelta as zd
from zerodelta.queries import Marginals

PEOPLE, COLUMNS = 200_000, 8


def main() -> None:
    rng = np.random.default_rng(0)
    people = (rng.random((PEOPLE, COLUMNS)) < np.linspace(0.1, 0.5, COLUMNS)).astype(int)
    people[:, 1] = people[:, 0]
    workload = Marginals(dimension=COLUMNS, order=2)
    truth = workload.answers(people)

    def line(name: str, answers: np.ndarray, release: zd.records.Release) -> None:
        error = np.abs(answers - truth).max()
        print(f"{name:<34} largest error {error:.3f}, at most {release.error:.3f} expected")

    print(f"{workload.queries} queries; uniform rows would be off by", end=" ")
    print(f"{np.abs(workload.totals(np.full(256, 1 / 256)) - truth).max():.3f}")
    weights = zd.paper.approximate_mwem(
        people, workload=workload, rounds=200, epsilon=1, delta=1e-9
    )
    line("Algorithm 14, (1, 1e-9)-DP", workload.totals(weights.value) / PEOPLE, weights)
    drawn = zd.paper.proportional_sampling(weights.value, size=3)
    print(f"{'Algorithm 15, three synthetic rows':<34} {workload.rows_of(drawn).tolist()}")
    sample = zd.paper.embedded_mwem(people, workload=workload, epsilon=1)
    line(
        f"Algorithm 16, {len(sample.value)} rows, pure 1-DP", workload.answers(sample.value), sample
    )
    pure = zd.paper.pure_mwem(people, workload=workload, epsilon=1)
    line("composed purely, pure 1-DP", workload.totals(pure.value), pure)


if __name__ == "__main__":
    main()
