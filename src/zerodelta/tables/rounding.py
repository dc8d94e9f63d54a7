"""A distribution as whole rows, without sampling noise: rounding, then swaps that repair tables.

Both are deterministic functions of what is already private (post-processing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.tables.bases import MOST_CATEGORIES, orthonormal
from zerodelta.tables.domain import Columns, Domain, TableWorkload
from zerodelta.tables.estimate import column_axes
from zerodelta.tables.orbits import orbits

_MOST_SWAPS = 400
_MOST_FEATURES = 1 << 25
"""Entries of the table of features that swaps look at: 128 MB."""
_MOST_WIDTH = 1 << 16
"""Features of a row; for more it would take longer to list them than to fit the tables."""


def whole_rows(weights: Floats, domain: Domain, workload: TableWorkload, size: int) -> Integers:
    """Return `size` rows as codes whose tables are those of the distribution, almost exactly."""
    counts = rounded_cells(weights, size)
    width = sum(orbit.coefficients for orbit in orbits(domain, workload))
    used = np.flatnonzero((weights > 0) | (counts > 0))
    if width * len(used) > _MOST_FEATURES:
        used = np.flatnonzero(counts)
    times = counts[used]
    few = width <= _MOST_WIDTH and max(domain.sizes) <= MOST_CATEGORIES
    if few and width * len(used) <= _MOST_FEATURES:
        times = _repaired(weights, domain, workload.closure, used, times)
    cells = np.repeat(used, times)
    codes = np.unravel_index(cells, domain.sizes)
    return np.stack(codes, axis=1).astype(np.int64)


def rounded_cells(weights: Floats, size: int) -> Integers:
    """Return whole counts that add up to `size`.

    With few cells the largest remainders are rounded up; with many, where most hold less than a
    row, a row is set whenever the running total passes a half: neighbors in the order of cells
    stand in for each other.

    >>> rounded_cells(np.array([0.5, 0.26, 0.24]), 5)
    array([3, 1, 1])
    >>> rounded_cells(np.full(8, 1 / 8), 2)
    array([0, 1, 0, 0, 0, 1, 0, 0])
    """
    if len(weights) > 2 * size:
        steps = np.floor(np.cumsum(weights) * (size / float(weights.sum())) + 0.5)
        steps[-1] = size
        return np.diff(np.minimum(steps, size), prepend=0).astype(np.int64)
    shares = weights * (size / float(weights.sum()))
    counts = np.floor(shares).astype(np.int64)
    missing = size - int(counts.sum())
    order = np.argsort(counts - shares, kind="stable")
    counts[order[:missing]] += 1
    return counts


def _repaired(
    weights: Floats,
    domain: Domain,
    parts: Sequence[Columns],
    cells: Integers,
    times: Integers,
) -> Integers:
    """Move rows between these cells, one at a time, while their tables come closer."""
    features = _features(domain, parts, cells)
    normed = weights * (math.sqrt(domain.cells) / float(weights.sum()))
    wanted = column_axes(domain).transform_of(parts).read(normed)
    gap = wanted * int(times.sum()) - features.T @ times.astype(np.float32)
    lengths = (features**2).sum(axis=1)
    times = times.copy()
    for _ in range(_MOST_SWAPS):
        pull = features @ gap.astype(np.float32)
        to = int(np.argmax(pull - lengths / 2))
        away = int(np.argmin(np.where(times > 0, pull + lengths / 2, np.inf)))
        change = (features[to] - features[away]).astype(np.float64)
        if float(gap @ change) <= float(change @ change) / 2:
            break
        times[to] += 1
        times[away] -= 1
        gap = gap - change
    return times


def _features(
    domain: Domain, parts: Sequence[Columns], cells: Integers
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the normalized coefficients of single rows."""
    codes = np.unravel_index(cells, domain.sizes)
    blocks = []
    for part in parts:
        block = np.ones((len(cells), 1))
        for column in part:
            size = domain.sizes[column]
            values = math.sqrt(size) * orthonormal(size)[1:].T[codes[column]]  # mean square 1
            block = (block[:, :, None] * values[:, None, :]).reshape(len(cells), -1)
        blocks.append(block.astype(np.float32))
    return np.concatenate(blocks, axis=1)
