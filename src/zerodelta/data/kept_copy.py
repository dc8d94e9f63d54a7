"""A copy of rows, read once: in memory up to a limit, the rest in a file that has no name.

Every later pass over the rows of a release reads the copy, so changing the data changes nothing.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.reader import attempt

__all__ = ["Keeping", "kept", "together"]

_Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
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
    limit, used, file = keeping.memory, 0, None
    try:
        for block in blocks:
            used += block.nbytes
            if file is None and (limit is None or used <= limit):
                data = np.asarray(block).tobytes(order="F")
                # bytes cannot be made writable again, whatever a function of rows tries
                held.append(_view(data, 0, block.shape, block.dtype))
                continue
            if file is None:
                file = attempt(partial(tempfile.TemporaryFile, dir=keeping.folder))
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
            file.close()  # the map keeps what it needs of it
    return tuple(held)


def together(
    blocks: Iterable[_Array], width: int, *, planned: int, keeping: Keeping
) -> npt.NDArray[np.float64]:
    """Return all rows as one array, for what needs them at the same time.

    In memory as long as there are no more than `planned`, which is public; should more come, all
    of them go to a file as that of `kept`, and nothing is raised: how many come may be private.

    >>> together([np.ones((2, 1)), np.zeros((1, 1))], 1, planned=2, keeping=Keeping()).tolist()
    [[1.0], [1.0], [0.0]]
    """
    table, start, file = np.empty((planned, width)), 0, None
    try:
        for block in blocks:
            stop = start + len(block)
            if file is None and stop > planned:
                file = attempt(partial(tempfile.TemporaryFile, dir=keeping.folder))
                _write(file, table[:start].T)
                table = np.empty((0, width))
            if file is None:
                table[start:stop] = block
            else:
                _write(file, np.ascontiguousarray(block, np.float64).T)
            start = stop
        if file is None:
            return table[:start]
        return np.frombuffer(_mapped(file), np.float64).reshape(start, width)
    finally:
        if file is not None:
            file.close()  # the map keeps what it needs of it


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
