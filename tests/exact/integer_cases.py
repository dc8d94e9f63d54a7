"""Every integer sampler with its exact law: one registry, one pair of checks (test_integers)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import (
    bernoulli,
    bernoulli_exp,
    categorical,
    permutation,
    uniform_below,
    uniform_below_each,
    uniform_multisets,
    uniform_subset,
    uniform_subsets,
)

MILLION = 1_000_000

Counts: TypeAlias = npt.NDArray[np.int64]
Tally: TypeAlias = Callable[[int, BitSource], Counts]
"""Draw so many times, and count what falls into each cell."""


def uniform_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(uniform_below(7, size=size, bits=bits), minlength=7)


def each_counts(size: int, bits: BitSource) -> Counts:
    drawn = uniform_below_each(np.tile([2, 3, 2**62], size), bits=bits)
    return np.bincount(drawn[0::3] * 3 + drawn[1::3], minlength=6)


def order_counts(size: int, bits: BitSource) -> Counts:
    """Disjoint groups of four places hold independent uniform relative orders."""
    groups = permutation(4 * size, bits=bits).reshape(-1, 4)
    return row_counts(groups.argsort(axis=1), itertools.permutations(range(4)))


def biased_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(categorical([1, 0, 2, 5, 8], size=size, bits=bits), minlength=5)


def coin_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(bernoulli(Fraction(1, 3), size=size, bits=bits), minlength=2)


def exponential_coin_counts(size: int, bits: BitSource) -> Counts:
    return np.bincount(bernoulli_exp(Fraction(1, 2), size=size, bits=bits), minlength=2)


def row_counts(rows: npt.NDArray[np.int64], cells: Iterable[tuple[int, ...]]) -> Counts:
    """How often each of the cells is a row; every row must be one of them."""
    known = np.array(list(cells))
    base = int(known.max()) + 1
    powers = base ** np.arange(known.shape[1])
    counts = np.bincount(rows @ powers, minlength=base ** known.shape[1])[known @ powers]
    assert counts.sum() == len(rows)
    return np.asarray(counts)


def subset_tally(
    places: int, size: int, draw: Callable[..., npt.NDArray[np.int64]] = uniform_subsets
) -> Tally:
    def counts(count: int, bits: BitSource) -> Counts:
        rows = draw(places, size=size, count=count, bits=bits)
        return row_counts(rows, itertools.combinations(range(places), size))

    return counts


def multiset_tally(
    universe: int, size: int, draw: Callable[..., npt.NDArray[np.int64]] = uniform_multisets
) -> Tally:
    def counts(count: int, bits: BitSource) -> Counts:
        rows = draw(universe, size=size, count=count, bits=bits)
        return row_counts(rows, itertools.combinations_with_replacement(range(universe), size))

    return counts


def large_subset_tally(
    draw: Callable[..., npt.NDArray[np.int64]] = uniform_subset,
) -> Tally:
    """Given how many of each five places a large subset holds, which of them is uniform.

    And independent from one five to another: each that holds two is a draw of a pair.
    """

    def counts(count: int, bits: BitSource) -> Counts:
        pairs = np.zeros(10, dtype=np.int64)
        while pairs.sum() < count:
            held = np.zeros(MILLION, dtype=np.bool_)
            held[draw(MILLION, size=2 * MILLION // 5, bits=bits)] = True
            fives = held.reshape(-1, 5)
            rows = np.nonzero(fives[fives.sum(axis=1) == 2])[1].reshape(-1, 2)
            pairs += row_counts(rows, itertools.combinations(range(5), 2))
        return pairs

    return counts


LAWS: dict[str, tuple[Tally, list[float]]] = {
    "uniform below 7": (uniform_counts, [1 / 7] * 7),
    "uniform below each": (each_counts, [1 / 6] * 6),
    "permutation": (order_counts, [1 / 24] * 24),
    "categorical": (biased_counts, [1 / 16, 0, 2 / 16, 5 / 16, 8 / 16]),
    "Bernoulli 1/3": (coin_counts, [2 / 3, 1 / 3]),
    "Bernoulli e^-1/2": (exponential_coin_counts, [1 - math.exp(-0.5), math.exp(-0.5)]),
    "subsets, 2 of 5": (subset_tally(5, 2), [1 / 10] * 10),
    "subsets, 4 of 6": (subset_tally(6, 4), [1 / 15] * 15),
    "subsets, 6 of 9": (subset_tally(9, 6), [1 / 84] * 84),
    "one large subset": (large_subset_tally(), [1 / 10] * 10),
    "multisets, 3 of 4 items": (multiset_tally(4, 3), [1 / 20] * 20),
    "multisets, 4 of 2 items": (multiset_tally(2, 4), [1 / 5] * 5),
}
