"""Algorithm 11: count triangles among friends, with noise for a bounded local sensitivity.

A row is a friendship. One friendship can close as many triangles as there are people, but in this
network two people have few common friends, and one row changes that number by 1. The rows are
made up here, so this example may print the true count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.queries import CustomQuery

PEOPLE, LARGEST_COUNT = 1_000, 100_000  # public; larger counts are clipped


def network(friends: Any) -> np.ndarray:
    """Return the matrix that has a 1 for each pair of friends."""
    matrix = np.zeros((PEOPLE, PEOPLE), dtype=np.float32)
    matrix[friends[:, 0], friends[:, 1]] = matrix[friends[:, 1], friends[:, 0]] = 1
    np.fill_diagonal(matrix, 0)
    return matrix


def triangles(friends: Any) -> float:
    """Return the number of triples of people who are all friends."""
    matrix = network(friends)
    return float((matrix @ matrix * matrix).sum(dtype=np.float64)) / 6


def common(friends: Any) -> float:
    """Return the largest number of common friends: the local sensitivity of the count."""
    matrix = network(friends)
    common_friends = matrix @ matrix
    np.fill_diagonal(common_friends, 0)
    return float(common_friends.max())


def main() -> None:
    friends = np.random.default_rng(0).integers(0, PEOPLE, size=(20_000, 2))
    grid = zd.Box(0, LARGEST_COUNT).grid(LARGEST_COUNT + 1)
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
    print("(expected errors are for a local sensitivity of 0, as the true one is not public)")
    print(mixed.certificate.summary)


if __name__ == "__main__":
    main()
