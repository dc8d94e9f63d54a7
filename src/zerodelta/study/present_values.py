"""Sums and means where values may be missing, so that their number is private (theory V, R).

A value that is there is (s, k), its integer k and the lattice's steps s; one that is missing is
(0, 0). So the number of values has noise of its own, and costs nothing beside their sum. Two values
are 2s apart, one is √2 s from none: under add-remove (`added`) the squared sensitivity is half.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from zerodelta.data.row_queries import RowQuery
from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.exact_sums import IntegerArray

Noise: TypeAlias = Callable[[IntegerArray, int], IntegerArray]
"""Adds noise to integers of this squared l2 sensitivity."""


def present_sum(query: RowQuery, source: Rows, noise: Noise, *, added: bool = False) -> Floats:
    """Return the noisy sum of the values that are there.

    Measured from the end that is 0, or from the middle if that is, integers are 0 for what is
    missing and move by at most twice the steps (once, if a row is `added` to a sum from the
    middle); else the number of values is needed too.
    """
    present, sums = query.present_sums(source)
    starts = [_start(center, quantum, query.lattice.steps) for center, quantum in query.scales()]
    if None not in starts:
        moved = sums + present.astype(np.object_) * np.array(starts, dtype=np.object_)
        squared = query.sensitivity_squared
        noisy = noise(moved, squared // 4 if added and not any(starts) else squared)
        quanta = np.array([float(quantum) for _, quantum in query.scales()])
        return np.asarray(noisy.astype(np.float64) * quanta)
    counts, noisy = _noised(query, present, sums, noise, added=added)
    parts = zip(query.scales(), counts, noisy, strict=True)
    return np.array([float(c) * count + float(q) * float(k) for (c, q), count, k in parts])


def present_mean(query: RowQuery, source: Rows, noise: Noise, *, added: bool = False) -> Floats:
    """Return the noisy mean of the values that are there, within the bounds.

    If their noisy number is not positive it is the middle.
    """
    present, sums = query.present_sums(source)
    counts, noisy = _noised(query, present, sums, noise, added=added)
    steps = query.lattice.steps
    positive = np.where(counts > 0, counts, 1.0)
    found = np.clip(noisy.astype(np.float64) / positive, -steps, steps)
    means = np.where(counts > 0, found, 0.0)
    parts = zip(query.scales(), means, strict=True)
    return np.array([float(center) + float(quantum) * mean for (center, quantum), mean in parts])


def present_rows(query: RowQuery, number: int, noise: Noise) -> float:
    """Return the noisy number of complete rows, s² for each beside its k kᵀ; at least 1.

    A row that comes or goes moves both by s², as far as one that is replaced.
    """
    squared = query.lattice.steps**2
    noisy = noise(np.array([number * squared], dtype=np.object_), 2 * squared**2)
    return max(1.0, float(noisy[0]) / squared)


def _noised(
    query: RowQuery, present: IntegerArray, sums: IntegerArray, noise: Noise, *, added: bool
) -> tuple[Floats, IntegerArray]:
    """Return noisy numbers of values, and noisy sums."""
    steps = query.lattice.steps
    numbers = present[:1] if query.joint else present  # a row is there as a whole
    weighed = numbers.astype(np.object_) * steps
    squared = query.sensitivity_squared
    both = noise(np.concatenate([weighed, sums]), squared // 2 if added else squared)
    counts = both[: len(numbers)].astype(np.float64) / steps
    return np.broadcast_to(counts, sums.shape), both[len(numbers) :]


def _start(center: Fraction, quantum: Fraction, steps: int) -> int | None:
    """Return what to add to the integer of a value so that it is in proportion to the value.

    None if neither the middle nor an end of the bounds is 0.

    >>> _start(Fraction(5), Fraction(1, 2), 10), _start(Fraction(0), Fraction(1), 4)
    (10, 0)
    """
    return next((k for k in (0, steps, -steps) if center == quantum * k), None)
