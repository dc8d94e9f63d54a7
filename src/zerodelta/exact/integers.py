"""Draw random integers exactly: uniform, permutations, subsets, multisets, coins, weighted items.

Uniform integers are drawn by rejection. A coin compares random bits with the binary expansion of
its probability, one word at a time until they differ.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, require
from zerodelta.exact.bits import BitSource, Integers, Reals, current_bits
from zerodelta.exact.logs import ball, precision
from zerodelta.exact.rational import Rational, as_count, as_rational

Flags: TypeAlias = npt.NDArray[np.bool_]

_WORD = 1 << 64
_LARGEST_WORD_LIMIT = 1 << 63
_BLOCK = 1 << 16


def uniform_below(limit: int, *, size: int, bits: BitSource) -> Integers:
    """Draw `size` integers uniform on 0..limit-1, for any limit >= 1, however large.

    >>> from zerodelta.exact.bits import SystemBits
    >>> uniform_below(1, size=3, bits=SystemBits()).tolist()
    [0, 0, 0]
    """
    limit, size = as_count(limit, "limit", minimum=1), as_count(size, "size")
    if limit <= _LARGEST_WORD_LIMIT:
        return _words_below(np.uint64(limit), size, bits)
    return _objects(_big_below(limit, size, bits))


def uniform_below_each(limits: Sequence[int] | Integers, *, bits: BitSource) -> Integers:
    """Draw for each limit an independent integer uniform on 0..limit-1.

    >>> from zerodelta.exact.bits import SystemBits
    >>> uniform_below_each([1, 1], bits=SystemBits()).tolist()
    [0, 0]
    """
    exact = _integers(limits, "limits", minimum=1)
    if exact.dtype == object:
        return _objects([_big_below(limit, 1, bits)[0] for limit in exact])
    return _words_below(exact.astype(np.uint64), len(exact), bits)


def _words_below(
    limits: np.uint64 | npt.NDArray[np.uint64], size: int, bits: BitSource
) -> npt.NDArray[np.int64]:
    """Draw words modulo the limits, redrawing words in the incomplete last cycle of remainders."""
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = drawn[start : start + _BLOCK]
        limit = limits[start : start + _BLOCK] if isinstance(limits, np.ndarray) else limits
        words = bits.words(len(block))
        block[:] = words % limit
        surplus = (~limit + np.uint64(1)) % limit  # 2^64 mod limit
        rejected = np.flatnonzero(words > ~surplus)  # the last `surplus` words
        if len(rejected):
            again = limit[rejected] if isinstance(limit, np.ndarray) else limit
            block[rejected] = _words_below(again, len(rejected), bits)
    return drawn


def _big_below(limit: int, size: int, bits: BitSource) -> list[int]:
    """Draw integers of as many bits as limit - 1 has, redrawing those that are not below limit."""
    width = (limit - 1).bit_length()
    length = -(-width // 8)
    drawn: list[int] = []
    while missing := size - len(drawn):
        data = bits.read(length * missing)
        parts = (data[length * i : length * (i + 1)] for i in range(missing))
        candidates = (int.from_bytes(part, "little") >> (8 * length - width) for part in parts)
        drawn += [candidate for candidate in candidates if candidate < limit]
    return drawn


def permutation(length: int, *, bits: BitSource) -> npt.NDArray[np.int64]:
    """Draw a uniformly random order of 0..length-1.

    Items are sorted by independent infinite bit strings; items with equal first words are ordered
    by the rest of their strings, that is, in a fresh random order.
    """
    length = as_count(length, "length")
    keys = bits.words(length)
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    borders = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) + 1
    ends = borders[np.diff(borders, prepend=0) > 1]
    for end in ends:
        start = int(np.searchsorted(ranked, ranked[end - 1]))
        order[start:end] = order[start:end][permutation(int(end) - start, bits=bits)]
    return order


def uniform_subset(places: int, *, size: int, bits: BitSource) -> npt.NDArray[np.int64]:
    """Draw a uniformly random subset of `size` integers of 0..places-1, in no particular order.

    Uniform integers are drawn until enough are different. The draws that are kept, and the number
    of draws, depend only on which draws are equal, never on their values: permuting the integers
    permutes the subsets, so all subsets have the same probability. Memory is proportional to
    `places`; use `uniform_subsets` for many small subsets.

    >>> from zerodelta.exact.bits import SystemBits
    >>> sorted(uniform_subset(3, size=3, bits=SystemBits()).tolist())
    [0, 1, 2]
    """
    places, size = _subset_sizes(places, size)
    if size > places - size:
        selected = np.ones(places, dtype=np.bool_)
        selected[uniform_subset(places, size=places - size, bits=bits)] = False
        return np.flatnonzero(selected)
    chosen, last = np.empty(0, dtype=np.int64), np.empty(places, dtype=np.int64)
    while (missing := size - len(chosen)) > 0:
        mean = places * math.log1p(missing / (places - size))  # about the expected number of draws
        count = max(missing, math.ceil(mean + 4 * math.sqrt(max(mean - missing, 0.0))))
        drawn = np.concatenate([chosen, uniform_below(places, size=count, bits=bits)])
        ranks = np.arange(len(drawn))
        last[drawn] = ranks
        chosen = drawn[last[drawn] == ranks]
    return chosen[:size]


def uniform_subsets(places: int, *, size: int, count: int, bits: BitSource) -> Integers:
    """Draw `count` independent subsets of `size` of 0..places-1; sorted rows, (count, size).

    A row keeps the different integers that it has drawn, and draws as many more as it lacks. That
    number depends only on which draws are equal, never on their values: permuting the integers
    permutes the subsets, so all have the same probability. `places` may have any size.

    >>> from zerodelta.exact.bits import SystemBits
    >>> uniform_subsets(3, size=3, count=2, bits=SystemBits()).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    (places, size), count = _subset_sizes(places, size), as_count(count, "count")
    if size > places - size:
        selected = np.ones((count, places), dtype=np.bool_)
        others = uniform_subsets(places, size=places - size, count=count, bits=bits)
        np.put_along_axis(selected, others, False, axis=1)
        return np.nonzero(selected)[1].reshape(count, size)
    # with places = 0 the limit would be 0, though nothing is drawn
    rows = uniform_below(max(places, 1), size=count * size, bits=bits).reshape(count, size)
    rows.sort(axis=1)
    incomplete, part = np.arange(count), rows
    while True:
        equal = part[:, 1:] == part[:, :-1]
        again = equal.any(axis=1)
        if not again.any():
            return rows
        incomplete, part, equal = incomplete[again], part[again], equal[again]
        part[:, 1:][equal] = uniform_below(places, size=int(np.sum(equal)), bits=bits)
        part.sort(axis=1)
        rows[incomplete] = part


def _subset_sizes(places: int, size: int) -> tuple[int, int]:
    """Return both numbers checked: the places, and the size of a subset of them."""
    places, size = as_count(places, "places"), as_count(size, "size")
    if size > places:
        raise ParameterError(
            "size", size, expected=f"at most {places}, the number of places", remedy="draw fewer"
        )
    return places, size


def bernoulli(probability: Rational, *, size: int, bits: BitSource) -> Flags:
    """Draw `size` coins that are True with a rational probability in [0, 1]."""
    exact = as_rational(probability, "probability")
    if not 0 <= exact <= 1:
        raise ParameterError(
            "probability",
            probability,
            expected="a number from 0 to 1",
            remedy="pass p/q as a Fraction with 0 <= p <= q",
        )
    if exact == 1:
        return np.ones(as_count(size, "size"), dtype=np.bool_)
    return _less_than(lambda width: (exact.numerator << width) // exact.denominator, size, bits)


def bernoulli_exp(exponent: Rational, *, size: int, bits: BitSource) -> Flags:
    """Draw `size` coins that are True with probability e^-exponent, for a rational exponent >= 0.

    >>> from zerodelta.exact.bits import SystemBits
    >>> bernoulli_exp(0, size=2, bits=SystemBits()).tolist()
    [True, True]
    """
    exact = as_rational(exponent, "exponent")
    if exact < 0:
        raise ParameterError(
            "exponent", exponent, expected="a number >= 0", remedy="e^-exponent must not exceed 1"
        )
    if exact == 0:
        return np.ones(as_count(size, "size"), dtype=np.bool_)
    return _less_than(lambda width: _floor_exp(exact, width), size, bits)


def _floor_exp(exponent: Fraction, width: int) -> int:
    """Return floor(e^-exponent · 2^width), which some precision decides, as it is irrational."""
    working = width + 64
    while True:
        with precision(working):
            scaled = (-ball(exponent)).exp() * ball(1 << width)
            digits = scaled.floor().unique_fmpz()
        if digits is not None:
            return int(digits)
        working *= 2


def _less_than(expansion: Callable[[int], int], size: int, bits: BitSource) -> Flags:
    """Tell whether fresh uniforms are below p, where expansion(w) = floor(p · 2^w).

    Words are compared with those of p; after equal words the next ones are compared.
    """
    flags = np.empty(as_count(size, "size"), dtype=np.bool_)
    pending, width = np.arange(size), 0
    while len(pending):
        width += 64
        threshold = np.uint64(expansion(width) % _WORD)
        words = bits.words(len(pending))
        flags[pending] = words < threshold
        pending = pending[words == threshold]
    return flags


def floor_exponential(uniforms: Reals, *constants: Reals) -> Reals:
    """Return a number that rounds to floor(mean · E), E standard exponential.

    The constants are the mean and 1/2.
    """
    mean, half = constants
    return -uniforms.log() * mean - half  # floor(x) = round(x - 1/2)


def uniform_multiset(universe: int, *, size: int, bits: BitSource) -> Integers:
    """Draw a uniformly random multiset of `size` items from 0..universe-1, sorted."""
    return uniform_multisets(universe, size=size, count=1, bits=bits).reshape(-1)


def uniform_multisets(universe: int, *, size: int, count: int, bits: BitSource) -> Integers:
    """Draw `count` independent multisets of `size` of 0..universe-1; sorted rows, (count, size).

    Stars and bars: multisets correspond to subsets of `size` of universe + size - 1 places.

    >>> from zerodelta.exact.bits import SystemBits
    >>> uniform_multisets(1, size=3, count=2, bits=SystemBits()).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    universe, size = as_count(universe, "universe", minimum=1), as_count(size, "size")
    stars = uniform_subsets(universe + size - 1, size=size, count=count, bits=bits)
    items: Integers = stars - np.arange(size)
    return items.astype(np.int64) if universe <= 2**63 else items


def categorical(
    weights: Sequence[int] | Integers, *, size: int, bits: BitSource
) -> npt.NDArray[np.int64]:
    """Draw `size` indices with probabilities exactly proportional to integer weights.

    >>> from zerodelta.exact.bits import SystemBits
    >>> categorical([0, 7, 0], size=2, bits=SystemBits()).tolist()
    [1, 1]
    """
    exact = _integers(weights, "weights", minimum=0)
    ends = np.cumsum(exact.astype(object))
    if not len(ends) or ends[-1] == 0:
        raise ParameterError(
            "weights",
            type(weights),  # not the weights themselves, which may be computed from data
            expected="at least one positive weight",
            remedy="give some item a weight above 0",
        )
    picks = uniform_below(int(ends[-1]), size=size, bits=bits)
    if ends[-1] < 2**63:
        ends = ends.astype(np.int64)
    return np.searchsorted(ends, picks.astype(ends.dtype), side="right")


def _integers(values: Sequence[int] | Integers, name: str, minimum: int | None = None) -> Integers:
    """Return integers as int64 where they fit, else as Python integers; refuse other values."""
    if isinstance(values, np.ndarray):
        array = values
    else:  # through object: NumPy would turn integers on both sides of 2^63 into floats
        array = _objects(list(values)) if isinstance(values, Sequence) else np.zeros((0, 0))
    if array.ndim != 1 or not _all_integers(array):
        raise ParameterError(
            name,
            values,
            expected="a one-dimensional sequence of integers",
            remedy="pass a list of ints or an integer array",
        )
    if minimum is not None and len(array) and array.min() < minimum:
        raise ParameterError(
            name,
            values,
            expected=f"integers of at least {minimum}",
            remedy="remove or correct the smaller integers",
        )
    if array.dtype.kind == "i":
        return array.astype(np.int64, copy=False)
    integers = [int(value) for value in array]
    if all(-(2**63) <= value < 2**63 for value in integers):
        return np.array(integers, dtype=np.int64)
    return _objects(integers)


def _all_integers(array: npt.NDArray[Any]) -> bool:
    if array.dtype == object:
        return all(isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in array)
    return array.dtype.kind in "iu"


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# -- Drawing items in proportion to integer weights, exactly, by the alias method -----------------
# With integer weights every probability is exact, since no float is compared.

_WEIGHT_BITS = 40
"""The bits of an integer weight computed from a float: 2^20 of them add up to less than 2^62."""


@final
@dataclass(frozen=True, slots=True)
class AliasTable:
    """Walker's alias table: N columns of height `total`, each shared by at most two items.

    Column i belongs to item i up to height `limits[i]`, and above it to item `others[i]`.

    >>> table = AliasTable.of(np.array([1, 0, 3]))
    >>> table.limits.tolist(), table.others.tolist(), table.total
    ([3, 0, 4], [2, 2, 2], 4)
    """

    limits: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    total: int

    @staticmethod
    def of(weights: npt.NDArray[np.integer]) -> AliasTable:
        """Return the table for integer weights in O(N): item i gets the area N · weight_i."""
        exact = np.asarray(weights)
        require(
            exact.ndim == 1 and exact.dtype.kind in "iu" and len(exact),
            "weights",
            f"{exact.dtype} of shape {exact.shape}",  # never an entry
            expected="one-dimensional integers",
            remedy="turn a probability vector into integers with integer_weights",
        )
        count = len(exact)
        areas = [int(weight) * count for weight in exact]
        total = sum(areas) // count
        require(
            min(areas) >= 0 and 0 < total < 1 << 62,
            "weights",
            f"{count} integers",
            expected="numbers >= 0 with a sum above 0 and below 2^62",
            remedy="remove negative weights, or scale them down",
        )
        limits = np.full(count, total, dtype=np.int64)
        others = np.arange(count, dtype=np.int64)
        short = [i for i, amount in enumerate(areas) if amount < total]
        long = [i for i, amount in enumerate(areas) if amount > total]
        while short:  # fill a column of a small item with area of a large one
            i, j = short.pop(), long[-1]
            limits[i], others[i] = areas[i], j
            areas[j] -= total - areas[i]
            if areas[j] <= total:
                long.pop()
                if areas[j] < total:
                    short.append(j)
        return AliasTable(limits, others, total)

    def draw(self, size: int, bits: BitSource) -> npt.NDArray[np.int64]:
        """Draw `size` items, each in constant time."""
        columns = uniform_below(len(self.limits), size=size, bits=bits).astype(np.int64)
        heights = uniform_below(self.total, size=size, bits=bits).astype(np.int64)
        return np.where(heights < self.limits[columns], columns, self.others[columns])


def integer_weights(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return integers proportional to the probabilities up to 2^-40 of the largest.

    It never fails: NaN and negative entries have weight 0, and if all have, weights are equal.

    >>> integer_weights(np.array([0.25, 0.75, np.nan])).tolist() == [2**40 // 3, 2**40, 0]
    True
    """
    finite = np.where(np.isfinite(probabilities) & (probabilities > 0), probabilities, 0.0)
    largest = finite.max(initial=0.0)
    if largest == 0:
        return np.ones(len(finite), dtype=np.int64)
    scaled: npt.NDArray[np.int64] = np.floor(finite / largest * 2.0**_WEIGHT_BITS).astype(np.int64)
    return scaled


def proportional_sampling(
    weights: npt.NDArray[np.integer] | npt.NDArray[np.float64],
    *,
    size: int,
) -> npt.NDArray[np.int64]:
    """Draw `size` independent indices with probabilities proportional to the weights.

    Use it to draw synthetic rows from a released distribution (Algorithm 15). The draws are as
    private as the weights are.

    Parameters
    ----------
    weights : array
        D_out of Algorithm 14, or any numbers of at least 0. Integers are taken exactly; floats
        become integers by `integer_weights` first.
    size : int
        The number of draws, m.

    Returns
    -------
    array
        Indices 0..len(weights)-1.

    Examples
    --------
    >>> proportional_sampling(np.array([0, 7, 0]), size=3).tolist()
    [1, 1, 1]

    """
    return weighted_indices(weights, size=size, bits=current_bits())


def weighted_indices(
    weights: npt.NDArray[np.integer] | npt.NDArray[np.float64], *, size: int, bits: BitSource
) -> npt.NDArray[np.int64]:
    """Draw as `proportional_sampling` does, from the bits of a release.

    >>> from zerodelta.exact.bits import SystemBits
    >>> weighted_indices(np.array([0, 7, 0]), size=3, bits=SystemBits()).tolist()
    [1, 1, 1]
    """
    chosen = np.asarray(weights)
    exact = integer_weights(chosen) if chosen.dtype.kind == "f" else chosen
    return AliasTable.of(exact).draw(as_count(size, "size", minimum=1), bits)
