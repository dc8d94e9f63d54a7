"""Items drawn in proportion to their weights, exactly, by the alias method.

Weights are integers, so every probability is the rational it should be: no float is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import as_count

_PRECISION = 40
"""Bits of an integer weight made from a float: sums over 2^20 items stay below 2^62."""


@final
@dataclass(frozen=True, slots=True)
class AliasTable:
    """Walker's table: N equal columns, each shared by an item and at most one other.

    Column i belongs to item i below `limits[i]` and to `others[i]` from there to `total`.

    >>> table = AliasTable.of(np.array([1, 0, 3]))
    >>> table.limits.tolist(), table.others.tolist(), table.total
    ([3, 0, 4], [2, 2, 2], 4)
    """

    limits: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    total: int

    @staticmethod
    def of(weights: npt.NDArray[np.integer]) -> AliasTable:
        """Build the table in O(N), in integers: weight_i · N is poured into columns of Σ weight."""
        exact = np.asarray(weights)
        require(
            exact.ndim == 1 and exact.dtype.kind in "iu" and len(exact),
            "weights",
            f"{exact.dtype} of shape {exact.shape}",  # never an entry
            expected="one-dimensional integers",
            remedy="turn a probability vector into integers with integer_weights",
        )
        count = len(exact)
        left = [int(weight) * count for weight in exact]
        total = sum(left) // count
        require(
            min(left) >= 0 and 0 < total < 1 << 62,
            "weights",
            f"{count} integers",
            expected="numbers >= 0 with a sum above 0 and below 2^62",
            remedy="remove negative weights, or scale them down",
        )
        limits = np.full(count, total, dtype=np.int64)
        others = np.arange(count, dtype=np.int64)
        short = [i for i, amount in enumerate(left) if amount < total]
        long = [i for i, amount in enumerate(left) if amount > total]
        while short:  # the shorts lack exactly what the longs have too much
            i, j = short.pop(), long[-1]
            limits[i], others[i] = left[i], j
            left[j] -= total - left[i]
            if left[j] <= total:
                long.pop()
                if left[j] < total:
                    short.append(j)
        return AliasTable(limits, others, total)

    def draw(self, size: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Draw `size` items, each in constant time."""
        columns = uniform_below(len(self.limits), size=size, bits=bits).astype(np.int64)
        heights = uniform_below(self.total, size=size, bits=bits).astype(np.int64)
        return np.where(heights < self.limits[columns], columns, self.others[columns])


def integer_weights(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return integers proportional to the probabilities up to 2^-40 of the largest.

    Total: NaN and negative entries weigh nothing, and if nothing is left all items weigh the same.

    >>> integer_weights(np.array([0.25, 0.75, np.nan])).tolist() == [2**40 // 3, 2**40, 0]
    True
    """
    finite = np.where(np.isfinite(probabilities) & (probabilities > 0), probabilities, 0.0)
    largest = finite.max(initial=0.0)
    if largest == 0:
        return np.ones(len(finite), dtype=np.int64)
    scaled: npt.NDArray[np.int64] = np.floor(finite / largest * 2.0**_PRECISION).astype(np.int64)
    return scaled


def proportional_sampling(
    weights: npt.NDArray[np.integer] | npt.NDArray[np.float64],
    *,
    size: int,
    bits: BitSource | None = None,
) -> npt.NDArray[np.int64]:
    """Draw `size` independent indices with probabilities proportional to the weights.

    Use it to draw synthetic rows from a released distribution (Algorithm 15). It adds no privacy:
    what is drawn is as private as the weights are.

    Parameters
    ----------
    weights : array
        D_out of Algorithm 14, or any numbers of at least 0. Integers are taken exactly; floats
        become integers by `integer_weights` first.
    size : int
        m, how many to draw.
    bits : BitSource, optional
        Where the random bits come from; the operating system by default.

    Returns
    -------
    array
        Indices 0..len(weights)-1.

    Examples
    --------
    >>> proportional_sampling(np.array([0, 7, 0]), size=3).tolist()
    [1, 1, 1]

    """
    chosen = np.asarray(weights)
    exact = integer_weights(chosen) if chosen.dtype.kind == "f" else chosen
    count = as_count(size, "size", minimum=1)
    return AliasTable.of(exact).draw(count, SystemBits() if bits is None else bits)
