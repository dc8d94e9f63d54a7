"""Algorithm 11: triangles among friends, with noise for a privately bounded local sensitivity.

A row is a friendship. One of them can close as many triangles as there are people, but in this
network two people have few friends in common, and that number moves by 1 with one row. The rows are
made up here, so this example may show the truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.queries import CustomQuery

PEOPLE, MOST = 1_000, 100_000  # public; triangles beyond this number do not count


def network(friends: Any) -> np.ndarray:
    matrix = np.zeros((PEOPLE, PEOPLE), dtype=np.float32)
    matrix[friends[:, 0], friends[:, 1]] = matrix[friends[:, 1], friends[:, 0]] = 1
    np.fill_diagonal(matrix, 0)
    return matrix


def triangles(friends: Any) -> float:
    matrix = network(friends)
    return float((matrix @ matrix * matrix).sum(dtype=np.float64)) / 6


def common(friends: Any) -> float:
    """The most friends that two people have in common: what one row can change, at most."""
    matrix = network(friends)
    both = matrix @ matrix
    np.fill_diagonal(both, 0)
    return float(both.max())


def main() -> None:
    friends = np.random.default_rng(0).integers(0, PEOPLE, size=(20_000, 2))
    grid = zd.Box(0, MOST).grid(MOST + 1)
    query = CustomQuery(function=triangles, grid=grid, local=common, change=1)
    print(f"true: {triangles(friends):.0f} triangles, at most {common(friends):.0f} common friends")
    printed = zd.paper.pure_bounded_local_sensitivity(
        friends, query=query, epsilon=2, delta=1e-12, mixing_weight="1e-6"
    )
    print(f"Algorithm 11, pure 2-DP: {printed.value[0]:.0f}, expected error {printed.error:.0f}")
    mixed = zd.queries.bounded_local_sensitivity(
        friends, query=query, epsilon=2, mixing_probability="1e-6"
    )
    print(f"mixing alone, pure 2-DP: {mixed.value:.0f}, expected error {mixed.error:.0f}")
    print("(errors for a local sensitivity of 0: it is unseen)")
    print(mixed.certificate.summary)


if __name__ == "__main__":
    main()
