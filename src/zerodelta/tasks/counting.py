"""How often each item of a public universe occurs, from items of any kind, at machine speed.

An item is found in the universe by itself, whatever the other items are; one that is not there is
counted nowhere, or for a public item. No item raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.columns import as_cells, as_objects
from zerodelta.data.options import Options
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite
from zerodelta.spine.public_inputs import as_source, column, needed
from zerodelta.spine.transition import opened

__all__ = ["Tally", "as_universe", "item_count", "stray_index", "tally"]

Integers = npt.NDArray[np.int64]

_MOST_ITEMS = 1 << 53
_MOST_DENSE = 1 << 24
"""Up to here one counter for each item of the universe is cheaper than sorting the items."""
_BLOCK = 1 << 17


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
    Options(space, "universe")  # refuses items that are read alike
    return space


def stray_index(unknown: Any, space: Finite) -> int | None:
    """Return where items outside the universe are counted; None for nowhere."""
    index = None if unknown is None else Options(space).find(unknown)
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
    cells, options = _cells(items), Options(space)
    found = _count(cells, options, space.size)
    missing = len(cells) - int(found.counts.sum())
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


def _cells(items: Any) -> npt.NDArray[Any]:
    """Return the items as one column of cells; an item of a list may be a tuple."""
    if isinstance(items, Source):
        return column(opened(items))
    cells = as_objects(items) if isinstance(items, (list, tuple)) else as_cells(items)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ParameterError(
            "dimensions of items", cells.ndim, expected="1", remedy="pass one column of items"
        )
    return cells


def _count(cells: npt.NDArray[Any], options: Options, size: int) -> Tally:
    blocks = (
        options.places(cells[start : start + _BLOCK]) for start in range(0, len(cells), _BLOCK)
    )
    if size > _MOST_DENSE:
        known = [block[block >= 0] for block in blocks]
        indices, counts = np.unique(
            np.concatenate([*known, np.zeros(0, dtype=np.int64)]), return_counts=True
        )
        return Tally(indices=indices, counts=counts.astype(np.int64, copy=False))
    every = np.zeros(size + 1, dtype=np.int64)  # the first: of no item
    for block in blocks:
        every += np.bincount(block + 1, minlength=size + 1)
    indices = np.flatnonzero(every[1:])
    return Tally(indices=indices, counts=every[1:][indices])
