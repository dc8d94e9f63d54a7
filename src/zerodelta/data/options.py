"""Cells found among public options, each by itself, whatever the type of its column.

Options that are read alike are refused: one row would count for several of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.cells import Key, category, is_readable, read_all
from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Array
from zerodelta.spaces import Finite

Places: TypeAlias = npt.NDArray[np.int64]

_MOST_DENSE = 1 << 20
"""Integers in a range up to this are looked up in a table, others by bisection."""
_EXACT = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
"""Below this the whole numbers that floats of so many bytes hold are their shortest decimals."""


@final
class Options:
    """Where a cell is among public options; a cell is compared as a `category`.

    A missing cell is the option None (or "", "nan", "null"), if there is one.

    >>> found = Options(["f", 1, 2.5, None])
    >>> [found.find(cell) for cell in ("f", b"f", "1.0", "True", "2.50", np.float32(2.5), "nan")]
    [0, 0, 1, 1, 2, 2, 3]
    >>> found.places(np.array([1, 7])), Options(3).places(np.array([2.0, 3.0, np.nan]))
    (array([ 1, -1]), array([ 2, -1, -1]))
    """

    def __init__(self, options: int | Sequence[Any] | Finite, name: str = "options") -> None:
        given = options.options if isinstance(options, Finite) else options
        if isinstance(options, Finite) and given is None:
            given = options.size
        self._size = given if isinstance(given, int) else None
        listed = () if given is None or isinstance(given, int) else tuple(given)
        self._index = _checked_keys(listed, name)
        self._missing = self._index.get(None, -1)
        self._integers: _Table | None = None
        self._short: dict[type, tuple[Array, Places]] = {}

    def find(self, cell: Any) -> int | None:
        """Return the place of the option that a cell is, or None."""
        place = self._place(cell)
        return None if place < 0 else place

    def places(self, cells: Array) -> Places:
        """Return the place of each cell of a one-dimensional array, -1 for none.

        Whole arrays of numbers are compared at once; each cell's place is that of `find`.
        """
        kind = cells.dtype.kind
        if kind in "biu":
            return self._whole(cells)
        with np.errstate(all="ignore"):
            if kind == "c":
                cells, kind = np.where(cells.imag == 0, cells.real, np.nan), "f"
            if kind == "f":
                short = cells.dtype.itemsize <= 8
                return self._floats(cells if short else cells.astype(np.float64))
        return read_all(cells, self._place)

    def _place(self, cell: Any) -> int:
        key = category(cell)
        if self._size is None:
            return self._index.get(key, -1)
        return key if type(key) is int and 0 <= key < self._size else -1

    def _whole(self, cells: Array) -> Places:
        unsigned = cells.dtype == np.uint64
        whole = cells if unsigned else cells.astype(np.int64, copy=False)
        if self._size is not None:
            known = whole.view(np.uint64) < np.uint64(min(self._size, 1 << 63))  # negative: beyond
            return np.where(known, whole, -1).astype(np.int64, copy=False)
        if unsigned:
            whole = np.where(whole < 1 << 63, whole, 0).view(np.int64)
        if self._integers is None:
            self._integers = _Table(self._index)
        found = self._integers.places(whole)
        if unsigned and (beyond := cells >= 1 << 63).any():
            found[beyond] = [self._place(cell) for cell in cells[beyond]]
        return found

    def _floats(self, cells: Array) -> Places:
        if self._size is not None:
            limit = min(self._size, _EXACT[cells.dtype.itemsize])
            known = (cells >= 0) & (cells < limit) & (cells == np.floor(cells))
            found = np.where(known, cells, -1).astype(np.int64)
            if self._size > limit:
                larger = (cells >= limit) & (cells <= float(self._size) * 2)
                found[larger] = [self._place(cell) for cell in cells[larger]]
            return found
        found = np.full(len(cells), -1, dtype=np.int64)
        kind = cells.dtype.type
        if kind not in self._short:
            self._short[kind] = _floats_read_as(self._index, kind)
        options, places = self._short[kind]
        if len(options):
            nearest = np.minimum(np.searchsorted(options, cells), len(options) - 1)
            found = np.where(options[nearest] == cells, places[nearest], found)
        if self._missing >= 0:
            found[np.isnan(cells)] = self._missing
        return found


@final
class _Table:
    """The places of integers of 64 bits."""

    def __init__(self, index: dict[Key, int]) -> None:
        keys = sorted(k for k in index if type(k) is int and -(1 << 63) <= k < 1 << 63)
        self._keys = np.array(keys, dtype=np.int64)
        self._places = np.array([index[key] for key in keys], dtype=np.int64)
        self._dense: Places | None = None
        if keys and keys[-1] - keys[0] < max(_MOST_DENSE, 16 * len(keys)):
            self._dense = np.full(keys[-1] - keys[0] + 2, -1, dtype=np.int64)  # the last: none
            self._dense[self._keys - keys[0]] = self._places

    def places(self, cells: npt.NDArray[np.int64]) -> Places:
        if not len(self._keys):
            return np.full(len(cells), -1, dtype=np.int64)
        if self._dense is not None:
            shifted = (cells - self._keys[0]).view(np.uint64)  # wraps around beyond any key
            found: Places = self._dense[np.minimum(shifted, np.uint64(len(self._dense) - 1))]
            return found
        nearest = np.minimum(np.searchsorted(self._keys, cells), len(self._keys) - 1)
        return np.where(self._keys[nearest] == cells, self._places[nearest], -1)


def _floats_read_as(index: dict[Key, int], kind: type) -> tuple[Array, Places]:
    """Return the floats of a type that are read as one of the options, in rising order.

    A float's shortest decimal is rounded to that float again, so an option has at most one.
    """
    pairs: dict[float, tuple[Any, int]] = {}
    with np.errstate(all="ignore"):
        for key, place in index.items():
            if type(key) is int or type(key) is float or key in ("inf", "-inf"):
                near = kind(_as_float(key))
                around = (near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf)))
                for option in around:  # rounded twice on the way, it may be the next one
                    if category(option) == key:
                        pairs[float(option)] = (option, place)
    ordered = [pairs[value] for value in sorted(pairs)]
    options: Array = np.array([option for option, _ in ordered], dtype=kind)
    return options, np.array([place for _, place in ordered], dtype=np.int64)


def _as_float(key: Any) -> float:
    try:
        return float(key)
    except OverflowError:
        return np.inf if key > 0 else -np.inf


def _checked_keys(options: Sequence[Any], name: str) -> dict[Key, int]:
    index: dict[Key, int] = {}
    for place, option in enumerate(options):
        if not is_readable(option):
            raise ParameterError(
                name,
                type(option),
                expected="texts, numbers, booleans or None, which cells can be compared with",
                remedy="name the options by texts or numbers",
            )
        first = index.setdefault(category(option), place)
        if first != place:
            raise ParameterError(
                name,
                [options[first], option],
                expected="options that are read differently: a number, a text that spells it and "
                'a boolean (1, "1.0", "01", "true") are one, and so are "", "nan" and None',
                remedy="leave one of them out, or give the items other names",
            )
    return index
