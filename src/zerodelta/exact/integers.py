"""Integer samplers: uniform, permutation, subset, Bernoulli, multisets.

All are exact: rejection on whole words, or comparison of a random binary expansion with the
expansion of a probability, one word at a time until they differ.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, precision
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Integers, Reals
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
    """Reduce whole words modulo the limit or limits, drawing anew in the incomplete last cycle."""
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = drawn[start : start + _BLOCK]
        limit = limits[start : start + _BLOCK] if isinstance(limits, np.ndarray) else limits
        words = bits.words(len(block))
        block[:] = words % limit
        surplus = (~limit + np.uint64(1)) % limit  # 2^64 mod limit
        torn = np.flatnonzero(words > ~surplus)
        if len(torn):
            again = limit[torn] if isinstance(limit, np.ndarray) else limit
            block[torn] = _words_below(again, len(torn), bits)
    return drawn


def _big_below(limit: int, size: int, bits: BitSource) -> list[int]:
    """Read integers of as many bits as limit - 1 has, and anew those that are not below limit."""
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

    Items are sorted by independent infinite bit strings; those whose first word ties are ordered
    among themselves by the rest of their strings, that is, by a fresh random order.
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
    """Draw `size` different integers of 0..places-1, all subsets alike; in no particular order.

    Uniform integers are drawn until enough are different. Which draws are kept, and how many are
    made, follows from which of them are equal, never from their values: renaming the integers
    renames the subset and changes no probability. Memory is proportional to `places`: this is the
    way to one large subset, `uniform_subsets` that to many small ones.

    >>> from zerodelta.exact.bits import SystemBits
    >>> sorted(uniform_subset(3, size=3, bits=SystemBits()).tolist())
    [0, 1, 2]
    """
    places, size = _subset_sizes(places, size)
    if size > places - size:
        left = np.ones(places, dtype=np.bool_)
        left[uniform_subset(places, size=places - size, bits=bits)] = False
        return np.flatnonzero(left)
    chosen, last = np.empty(0, dtype=np.int64), np.empty(places, dtype=np.int64)
    while (missing := size - len(chosen)) > 0:
        mean = places * math.log1p(missing / (places - size))  # nearly: draws that are needed
        count = max(missing, math.ceil(mean + 4 * math.sqrt(max(mean - missing, 0.0))))
        drawn = np.concatenate([chosen, uniform_below(places, size=count, bits=bits)])
        ranks = np.arange(len(drawn))
        last[drawn] = ranks
        chosen = drawn[last[drawn] == ranks]
    return chosen[:size]


def uniform_subsets(places: int, *, size: int, count: int, bits: BitSource) -> Integers:
    """Draw `count` independent subsets of `size` of 0..places-1; sorted rows, (count, size).

    A row keeps all the different integers it has drawn and draws as many more as it lacks. How many
    those are follows from how many of its draws are equal, never from their values: renaming the
    integers renames the subset and changes no probability. `places` may be as large as one likes.

    >>> from zerodelta.exact.bits import SystemBits
    >>> uniform_subsets(3, size=3, count=2, bits=SystemBits()).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    (places, size), count = _subset_sizes(places, size), as_count(count, "count")
    if size > places - size:
        left = np.ones((count, places), dtype=np.bool_)
        others = uniform_subsets(places, size=places - size, count=count, bits=bits)
        np.put_along_axis(left, others, False, axis=1)
        return np.nonzero(left)[1].reshape(count, size)
    # without places there is nothing to draw, and no limit to draw it below
    rows = uniform_below(max(places, 1), size=count * size, bits=bits).reshape(count, size)
    rows.sort(axis=1)
    torn, part = np.arange(count), rows
    while True:
        equal = part[:, 1:] == part[:, :-1]
        again = equal.any(axis=1)
        if not again.any():
            return rows
        torn, part, equal = torn[again], part[again], equal[again]
        part[:, 1:][equal] = uniform_below(places, size=int(np.sum(equal)), bits=bits)
        part.sort(axis=1)
        rows[torn] = part


def _subset_sizes(places: int, size: int) -> tuple[int, int]:
    places, size = as_count(places, "places"), as_count(size, "size")
    if size > places:
        raise ParameterError(
            "size", size, expected=f"at most the {places} places", remedy="draw fewer"
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
    """Return floor(e^-exponent · 2^width); irrational, so some precision decides it."""
    working = width + 64
    while True:
        with precision(working):
            scaled = (-ball(exponent)).exp() * ball(1 << width)
            digits = scaled.floor().unique_fmpz()
        if digits is not None:
            return int(digits)
        working *= 2


def _less_than(expansion: Callable[[int], int], size: int, bits: BitSource) -> Flags:
    """Tell whether fresh uniforms are below p, of which expansion(w) = floor(p · 2^w).

    A word that equals p's word decides nothing, and the next word is compared.
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
    """Return what rounds to floor(mean · E), E standard exponential; the constants: mean, 1/2."""
    mean, half = constants
    return -uniforms.log() * mean - half  # floor(x) = round(x - 1/2)


def uniform_multiset(universe: int, *, size: int, bits: BitSource) -> Integers:
    """Draw a multiset of `size` items from 0..universe-1, all multisets alike; sorted."""
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
            type(weights),  # never the weights themselves: they may be computed from data
            expected="at least one positive weight",
            remedy="give some item a weight above 0",
        )
    picks = uniform_below(int(ends[-1]), size=size, bits=bits)
    if ends[-1] < 2**63:
        ends = ends.astype(np.int64)
    return np.searchsorted(ends, picks.astype(ends.dtype), side="right")


def _integers(values: Sequence[int] | Integers, name: str, minimum: int | None = None) -> Integers:
    """Return values as int64 where they fit, else as Python integers; refuse anything else."""
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
            remedy="remove or correct the smaller ones",
        )
    if array.dtype.kind == "i":
        return array.astype(np.int64, copy=False)
    whole = [int(value) for value in array]
    if all(-(2**63) <= value < 2**63 for value in whole):
        return np.array(whole, dtype=np.int64)
    return _objects(whole)


def _all_integers(array: npt.NDArray[Any]) -> bool:
    if array.dtype == object:
        return all(isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in array)
    return array.dtype.kind in "iu"


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
