"""A copy of rows, read once: in memory up to a limit, the rest in a file that has no name.

Every later pass over the rows of a release reads the copy, so changing the data changes nothing.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.interrupts import quietly
from zerodelta.data.reader import attempt
from zerodelta.value import value

_Array = npt.NDArray[Any]


@value
class Keeping:
    """Where a copy of rows may be kept."""

    memory: int | None = None
    """How many bytes of it in memory; None for all."""
    folder: str | None = None
    """Where the file with the rest is made; None for the system's temporary folder."""


def kept(blocks: Iterable[_Array], keeping: Keeping) -> tuple[_Array, ...]:
    """Return read-only copies of the blocks, in which each column is contiguous.

    The file, readable by its owner only, loses its name as soon as it is made (on Windows when it
    is closed): whatever happens, nothing of it stays behind. Whatever fails on the way is one fixed
    message.

    >>> [block.tolist() for block in kept([np.zeros((2, 1)), np.ones((1, 1))], Keeping(memory=16))]
    [[[0.0], [0.0]], [[1.0]]]
    """
    held: list[_Array] = []
    places: list[tuple[int, tuple[int, ...], np.dtype[Any]]] = []
    limit, used = keeping.memory, 0
    file = None if limit is None else _new_file(keeping)
    try:
        for block in blocks:
            used += block.nbytes
            if file is None or (limit is not None and used <= limit):
                data = np.asarray(block).tobytes(order="F")
                # bytes cannot be made writable again, whatever a function of rows tries
                held.append(_view(data, 0, block.shape, block.dtype))
                continue
            places.append((file.tell(), block.shape, block.dtype))
            _write(file, np.asfortranarray(block))
        if file is not None:
            mapped = _mapped(file)
            held += [
                _view(mapped, *place) if np.prod(place[1]) else _empty(*place[1:])
                for place in places
            ]
    finally:
        if file is not None:
            quietly(file.close)  # the map keeps what it needs; a full disk fails here once more
    return tuple(held)


def together(
    blocks: Iterable[_Array], width: int, *, planned: int, keeping: Keeping, whole: bool = False
) -> npt.NDArray[np.float64]:
    """Return all rows as one array, for what needs them at the same time.

    In memory as long as there are no more than `planned`, which is public; should more come, all
    of them go to a file as that of `kept`, and nothing is raised: how many come may be private.
    It is made before the first row, unless their number is public (`whole`).

    >>> together([np.ones((2, 1)), np.zeros((1, 1))], 1, planned=2, keeping=Keeping()).tolist()
    [[1.0], [1.0], [0.0]]
    """
    table, start, held = np.empty((planned, width)), 0, True
    file = None if whole else _new_file(keeping)
    try:
        for block in blocks:
            stop = start + len(block)
            if held and stop > planned:
                file = _new_file(keeping) if file is None else file
                _write(file, table[:start].T)
                table, held = np.empty((0, width)), False
            if held:
                table[start:stop] = block
            else:
                _write(file, np.ascontiguousarray(block, np.float64).T)
            start = stop
        if held:
            return table[:start]
        return np.frombuffer(_mapped(file), np.float64).reshape(start, width)
    finally:
        if file is not None:
            quietly(file.close)  # the map keeps what it needs; a full disk fails here once more


def _new_file(keeping: Keeping) -> Any:
    return attempt(partial(tempfile.TemporaryFile, dir=keeping.folder))


def _write(file: Any, block: _Array) -> None:
    attempt(lambda: file.write(memoryview(block.T).cast("B") if block.size else b""))


def _mapped(file: Any) -> Any:
    def mapped() -> Any:
        file.flush()
        if not file.tell():  # blocks without a row
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    return attempt(mapped)


def _view(data: Any, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Array:
    count = int(np.prod(shape))
    return np.frombuffer(data, dtype, count, start).reshape(shape, order="F")


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Array:
    return np.empty(shape, dtype)
