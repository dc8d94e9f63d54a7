"""How often each item of a public universe occurs, from items of any kind, at machine speed.

An item is found in the universe by itself, whatever the other items are; one that is not there is
counted nowhere, or for a public item. No item raises.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.entries import as_entries, as_objects
from zerodelta.data.lookup import Lookup, is_plain
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite
from zerodelta.tasks.public_inputs import as_source, column, needed

__all__ = ["Tally", "as_universe", "item_count", "stray_index", "tally"]

Integers = npt.NDArray[np.int64]

_MOST_ITEMS = 1 << 53
_MOST_DENSE = 1 << 24
"""Up to here one counter for each item of the universe is cheaper than sorting the items."""
_BLOCK = 1 << 16


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """The indices that occur, in rising order, and how often; all others occur 0 times."""

    indices: Integers
    counts: Integers

    def dense(self, size: int) -> Integers:
        """Return one count for each of 0..size-1."""
        every = np.zeros(size, dtype=np.int64)
        every[self.indices] = self.counts
        return every


def as_universe(universe: Any) -> Finite:
    """Return the public universe: a list of items, or N for the integers 0..N-1."""
    given = needed(
        universe, "universe", "pass universe=[...], all items there can be, or N for 0..N-1"
    )
    space = given if isinstance(given, Finite) else Finite(given)
    if space.options is None and space.size > _MOST_ITEMS:
        raise ParameterError(
            "universe", space.size, expected="at most 2^53 items", remedy="list the items instead"
        )
    return space


def stray_index(unknown: Any, space: Finite) -> int | None:
    """Return where items outside the universe are counted; None for nowhere."""
    index = None if unknown is None else space.find(unknown)
    if unknown is not None and index is None:
        raise ParameterError(
            "unknown",
            unknown,
            expected="an item of the universe, or None to count unknown items nowhere",
            remedy="add it to the universe",
        )
    return index


def item_count(items: Any) -> int:
    """Return the number of items, public under replace-one."""
    return len(items) if hasattr(items, "__len__") else as_source(items).rows


def tally(items: Any, space: Finite, *, stray: int | None = None) -> Tally:
    """Count the items; replacing one moves at most two counts, each by one."""
    entries = _entries(items)
    if space.options is None:
        found = _count_numbers(entries, space.size)
    else:
        found = _count_options(entries, space)
    missing = len(entries) - int(found.counts.sum())
    if stray is None or missing == 0:
        return found
    place = int(np.searchsorted(found.indices, stray))
    if place < len(found.indices) and found.indices[place] == stray:
        counts = found.counts.copy()
        counts[place] += missing
        return Tally(indices=found.indices, counts=counts)
    return Tally(
        indices=np.insert(found.indices, place, stray),
        counts=np.insert(found.counts, place, missing),
    )


def _entries(items: Any) -> npt.NDArray[Any] | list[Any]:
    """Return the items as an array of numbers or texts, or as a list of anything."""
    if isinstance(items, (list, tuple)):
        return list(items)
    if isinstance(items, Source):
        return column(items)
    entries = as_entries(items)
    if entries.ndim == 2 and entries.shape[1] == 1:
        entries = entries[:, 0]
    if entries.ndim != 1:
        raise ParameterError(
            "dimensions of items", entries.ndim, expected="1", remedy="pass one column of items"
        )
    return entries if entries.dtype.kind in "biufU" else list(entries.tolist())


def _count_numbers(entries: npt.NDArray[Any] | list[Any], size: int) -> Tally:
    """Count integers 0..size-1, given as numbers of any kind or as texts that spell them."""
    if isinstance(entries, np.ndarray) and entries.dtype.kind != "U":
        return _count_keys(entries, size, None)
    times = _times(entries)
    if times is None:
        return _count_keys(_floats(entries), size, None)
    weights = np.array(list(times.values()), dtype=np.int64)
    return _count_keys(_floats(times), size, weights)


def _floats(entries: Any) -> npt.NDArray[np.float64]:
    return column(ArraySource(as_objects(entries)))


def _times(entries: npt.NDArray[Any] | list[Any]) -> Counter[Any] | None:
    """Return how often equal entries occur; None if one may equal others only as it pleases."""
    times: Counter[Any] = Counter()
    for start in range(0, len(entries), _BLOCK):  # texts of a block stay in the cache
        block = entries[start : start + _BLOCK]
        if isinstance(block, np.ndarray):  # of texts
            times.update(block.tolist())
        elif all(map(is_plain, block)):
            times.update(block)
        else:
            return None
    return times


def _count_keys(keys: npt.NDArray[Any], size: int, weights: Integers | None) -> Tally:
    """Add up the weights (1 each if None) of the keys that are integers 0..size-1."""
    if keys.dtype.kind == "f":
        keys = keys.astype(np.float64, copy=False)  # shorter ones would round the size
        with np.errstate(all="ignore"):
            valid = (keys >= 0) & (keys < size) & (keys == np.floor(keys))  # NaN: not valid
    elif keys.dtype == np.uint64:
        valid = keys < np.uint64(size)
    else:
        keys = keys.astype(np.int64, copy=False)
        valid = keys.view(np.uint64) < np.uint64(size)  # negative keys are beyond 2^63
    whole = keys[valid].astype(np.int64, copy=False)
    if weights is not None:
        indices, places = np.unique(whole, return_inverse=True)
        counts = np.zeros(len(indices), dtype=np.int64)
        np.add.at(counts, places.reshape(-1), weights[valid])
    elif size <= _MOST_DENSE:
        every = np.bincount(whole, minlength=size)
        indices = np.flatnonzero(every)
        counts = every[indices]
    else:
        indices, counts = np.unique(whole, return_counts=True)
    return Tally(indices=indices, counts=counts.astype(np.int64, copy=False))


def _count_options(entries: npt.NDArray[Any] | list[Any], space: Finite) -> Tally:
    lookup = Lookup(space, entries.dtype if isinstance(entries, np.ndarray) else None)
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "biu":
        integers = lookup.integers
        if all(abs(integer) < _MOST_DENSE for integer in integers):
            return _count_integers(entries, integers)
    found: Counter[int | None] = Counter()
    times = _times(entries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning because of an item is an output
        for item, count in times.items() if times is not None else ((item, 1) for item in entries):
            found[lookup.find(item)] += count
    return _from_counts({index: times for index, times in found.items() if index is not None})


def _count_integers(keys: npt.NDArray[Any], indices: dict[int, int]) -> Tally:
    """Count integers whose universe is a list of integers, through a table of that range."""
    least = min(indices, default=0)
    size = max(indices, default=0) - least + 1
    if keys.dtype == np.uint64:
        keys = np.minimum(keys, np.uint64(1 << 62))
    shifted = keys.astype(np.int64) - least
    found = _count_keys(shifted, size, None)
    pairs = zip(found.indices.tolist(), found.counts.tolist(), strict=True)
    return _from_counts({indices[k + least]: c for k, c in pairs if k + least in indices})


def _from_counts(counts: dict[int, int]) -> Tally:
    indices = sorted(counts)
    return Tally(
        indices=np.array(indices, dtype=np.int64),
        counts=np.array([counts[i] for i in indices], dtype=np.int64),
    )
