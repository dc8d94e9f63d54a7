"""Rows taken in pieces: by threads, from a kept copy, with progress, into exact running sums."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from zerodelta.data.isolation import is_silenced, quiet, quietly
from zerodelta.data.readers import attempt
from zerodelta.data.rowwise import Block
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.sums import INT64_MOST, IntegerArray
from zerodelta.value import value

# -- A copy of rows, read once: in memory up to a limit, the rest in a file that has no name ------
# Every later pass over the rows of a release reads the copy, so changing the data changes nothing.

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
    blocks: Iterable[_Array],
    width: int,
    *,
    planned: int,
    keeping: Keeping,
    count_is_public: bool = False,
) -> npt.NDArray[np.float64]:
    """Return all rows as one array, for what needs them at the same time.

    In memory as long as there are no more than `planned`, which is public; should more come, all
    of them go to a file as that of `kept`, and nothing is raised: how many come may be private.
    It is made before the first row, unless their number is public (`count_is_public`).

    >>> together([np.ones((2, 1)), np.zeros((1, 1))], 1, planned=2, keeping=Keeping()).tolist()
    [[1.0], [1.0], [0.0]]
    """
    table, start, held = np.empty((planned, width)), 0, True
    file = None if count_is_public else _new_file(keeping)
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


# -- A progress bar for what takes longer than two seconds, of public numbers only ----------------
# It goes to a terminal's stderr, and nowhere else. Rows are shown where their number is public;
# nothing is shown while a study's program runs, whose queries follow from internal answers. Switch
# it off by ``zerodelta.progress = False`` or in the environment by ``ZERODELTA_PROGRESS=0``.

PATIENCE = 2.0
"""After how many seconds a bar appears."""

_REFRESH = 0.1

T = TypeVar("T")


def shown(
    items: Iterable[T], what: str, total: int | None, size: Callable[[T], int] | None = None
) -> Generator[T, None, None]:
    """Yield the items; if they take long, show how many of the total (None: not how many) are done.

    >>> list(shown(range(3), "rounds", 3))
    [0, 1, 2]
    """
    if not _wanted():
        yield from items
        return
    bar: Any = None
    done, begun, last = 0, time.monotonic(), 0.0
    try:
        for item in items:
            yield item
            done += 1 if size is None else size(item)
            now = time.monotonic()
            if now - begun < PATIENCE or now - last < _REFRESH:
                continue
            last = now
            if bar is None:
                bar = _bar()
                task = bar.add_task(what, total=total)
            bar.update(task, completed=0 if total is None else done, refresh=True)
    finally:
        if bar is not None:
            bar.stop()


def rows_in(block: Sized) -> int:
    """Return how many rows a block has."""
    return len(block)


def _wanted() -> bool:
    """Tell whether somebody looks: public grounds only."""
    package = sys.modules.get("zerodelta")
    chosen = getattr(package, "progress", True)
    named = os.environ.get("ZERODELTA_PROGRESS", "").strip().lower()
    if chosen is not True or named in ("0", "false", "no", "off"):
        return False
    main = threading.current_thread() is threading.main_thread()
    return main and not is_silenced() and _is_terminal()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _bar() -> Any:
    """Return a bar that has begun, drawn only when it is told to: it starts no thread."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(
        console=Console(stderr=True, force_terminal=True), auto_refresh=False, transient=True
    )
    bar.start()
    return bar


CACHED = 1 << 14
"""Keys that are looked at while they are in the cache."""


@final
class StoredColumn:
    """One column of a batch as it is stored: integers, or places in a short list of values."""

    __slots__ = ("_places", "_values")

    def __init__(
        self, places: npt.NDArray[Any], values: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._places, self._values = places, values

    def __len__(self) -> int:
        return len(self._places)

    def counts(self, size: int, invalid: int | None) -> npt.NDArray[np.int64]:
        """Return how many rows have each key 0..size-1; all others count as `invalid`, if given.

        >>> StoredColumn(np.array([0, 1, 1, 0]), np.array([2.0, np.nan])).counts(3, None)
        array([0, 0, 2])
        """
        found = np.zeros(size, dtype=np.int64)
        if self._values is None:
            for start in range(0, len(self), CACHED):
                part = codes_of(self._places[start : start + CACHED], size, invalid)
                found += np.bincount(part, minlength=size)
            return found
        listed = len(self._values)
        rows = np.zeros(listed, dtype=np.int64)
        for start in range(0, len(self), CACHED):
            rows += np.bincount(self._places[start : start + CACHED], minlength=listed)[:listed]
        codes = codes_of(self._values, size, size if invalid is None else invalid)
        inside = codes < size
        np.add.at(found, codes[inside], rows[inside])
        return found


_LIMB = 31
"""Bits of the lower half of numbers whose sums do not fit a float."""

_FEW = 1 << 16
"""Rows that are worth a call."""


@final
class RunningSum:
    """An exact sum in 64 bits, and in Python integers beyond what these hold."""

    __slots__ = ("_bound", "_keyed", "_many", "_part", "_room", "_sums")

    def __init__(
        self,
        part: Callable[[Block], IntegerArray],
        shape: tuple[int, ...],
        bound: int,
        *,
        keyed: bool,
    ) -> None:
        self._part, self._bound, self._keyed = part, bound, keyed
        self._sums: npt.NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self._room = INT64_MOST // bound
        """How many more rows fit, whatever is in them."""
        self._many: npt.NDArray[np.object_] | None = None

    def add(self, block: Block) -> None:
        """Add what the rows of a block have."""
        added: npt.NDArray[Any] = self._part(block)
        if len(block) > self._room:
            self._many, self._room = self._exact(), INT64_MOST // self._bound
            self._sums[...] = 0
        if added.dtype == np.object_:
            self._many = added if self._many is None else self._many + added
        elif self._keyed:
            np.add.at(self._sums, added, 1)
        else:
            self._sums += added
        self._room -= len(block)

    def total(self) -> IntegerArray:
        """Return the sum."""
        return self._sums if self._many is None else self._exact()

    def _exact(self) -> npt.NDArray[np.object_]:
        known = self._sums.astype(np.object_)
        return known if self._many is None else known + self._many


def codes_of(found: npt.NDArray[Any], size: int, invalid: int | None) -> npt.NDArray[np.int64]:
    """Return the keys 0..size-1 among some numbers, and `invalid` for all others, or nothing."""
    with np.errstate(all="ignore"):
        codes = found.astype(np.int64, copy=False)
    valid = codes.view(np.uint64) < np.uint64(size)
    if found.dtype.kind == "f":
        valid &= codes == found  # NaN and fractions: not valid
    if valid.all():
        return codes
    return codes[valid] if invalid is None else np.where(valid, codes, invalid)


def group_codes(
    columns: Iterable[npt.NDArray[np.float64]], sizes: Sequence[int], rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the group of each row, by columns of codes 0..size-1; and which rows are in one.

    >>> group_codes([np.array([1.0, 0.0]), np.array([2.0, np.nan])], (2, 3), rows=2)
    (array([5, 0]), array([ True, False]))
    """
    codes, inside = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    for column, size in zip(columns, sizes, strict=True):
        known = (column >= 0) & (column < size)  # NaN: in no group
        if not known.all():
            column = np.where(known, column, 0)
            inside &= known
        codes *= size
        codes += column.astype(np.int64)
    return codes, inside


def add_powers(
    found: IntegerArray,
    codes: npt.NDArray[np.int64],
    values: Block,
    lattice: FixedPoint | None,
    degree: int,
) -> None:
    """Add to each group the number of its values, and the sums of their powers, exactly."""
    present = ~np.isnan(values[:, 0])
    if not present.all():
        codes, values = codes[present], values[present]
    found[:, 1] = np.bincount(codes, minlength=len(found))
    if lattice is None:
        return
    integers = lattice.quantize(values)[:, 0]
    for power in range(1, degree + 1):
        bound = lattice.steps**power
        if bound >= 1 << 62:
            np.add.at(found[:, 1 + power], codes, integers.astype(np.object_) ** power)
        else:
            found[:, 1 + power] += _by_group(integers**power, bound, codes, len(found))


def _by_group(
    added: npt.NDArray[np.int64], bound: int, codes: npt.NDArray[np.int64], groups: int
) -> IntegerArray:
    """Return the exact sum of each group, in 64 bits if these hold it whatever is in the rows."""
    fits = len(added) * bound <= INT64_MOST
    if groups == 1 and fits:
        return np.array([added.sum()])
    most = (1 << 53) // bound
    if most < _FEW:  # sums of floats are exact for halves of the bits
        high = _by_group(added >> _LIMB, (bound >> _LIMB) + 1, codes, groups)
        low = _by_group(added & ((1 << _LIMB) - 1), 1 << _LIMB, codes, groups)
        wide: Any = high if fits else high.astype(np.object_)
        joined: IntegerArray = wide * (1 << _LIMB) + low
        return joined
    total: IntegerArray = np.zeros(groups, dtype=np.int64)
    for start in range(0, len(codes), most):
        part = slice(start, start + most)
        weights = added[part].astype(np.float64)
        total += np.bincount(codes[part], weights=weights, minlength=groups).astype(np.int64)
    return total


# -- Blocks of rows taken by several threads, each of which adds up what it takes -----------------
# Integers are added, so it does not matter which thread takes which rows. A thread reads a piece
# (a row group, a range of a file) to its end; when no piece is left it takes turns with the others
# at theirs, so that what can only be read in one piece is still worked on by all. Each holds one
# block at a time.

Piece: TypeAlias = Callable[[], Iterator[Block]]
"""Reads one part of the rows, in a thread of its own if need be."""


_PATIENCE = 0.2
"""Seconds after which an interrupt is seen at the latest."""


class Accumulator(Protocol):
    """What a thread adds up."""

    def add(self, block: Block) -> None:
        """Add what one block has."""


Reading = TypeVar("Reading", bound=Accumulator)


def tally_blocks(
    pieces: Sequence[Piece],
    begin: Callable[[], Reading],
    *,
    threads: int | None = None,
    rows: int | None = None,
) -> Iterator[Reading]:
    """Yield tallies that together have added every block once, one from each thread.

    By default as many threads as there are processors, each with one thread of BLAS. What a thread
    raises is raised here, once all have stopped. `rows` is the public number of rows, if there is
    one, for the progress bar.
    """
    count = processors() if threads is None else threads
    if count <= 1:
        tally = begin()
        for piece in pieces:
            for block in piece():
                tally.add(block)
        yield tally
        return
    shared = _Blocks(pieces)

    def work() -> Reading:
        tally = begin()
        with quiet():
            try:
                for block in shared:
                    tally.add(block)
            except BaseException:
                shared.stop()
                raise
        return tally

    with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        try:
            waiting = {pool.submit(work) for _ in range(count)}
            for done in shown(_ended(waiting), "rows", rows, lambda _: shared.taken()):
                yield from (each.result() for each in done)
        finally:
            shared.stop()  # an interrupt, or a thread that failed: the others end with their block


def _ended(waiting: set[Future[Reading]]) -> Iterator[set[Future[Reading]]]:
    """Yield those that have ended since; none of them now and then."""
    while waiting:
        # not for ever: a signal that comes right before is seen when the wait ends
        done, waiting = wait(waiting, _PATIENCE, return_when=FIRST_COMPLETED)
        yield done


@final
class _Blocks:
    """The blocks of all pieces, each handed out once, to whichever thread asks."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._waiting = list(reversed(pieces))
        self._open: list[_Reading] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._taken = 0

    def taken(self) -> int:
        """Return how many rows were handed out since this was asked."""
        with self._lock:
            found, self._taken = self._taken, 0
        return found

    def stop(self) -> None:
        """Hand out no more."""
        self._stopped = True

    def __iter__(self) -> Iterator[Block]:
        mine = self._next(None)
        try:
            while mine is not None and not self._stopped:
                block = mine.take()
                if block is None:
                    mine = self._next(mine)
                else:
                    with self._lock:
                        self._taken += len(block)
                    yield block
        finally:
            if mine is not None:
                mine.close()

    def _next(self, ended: _Reading | None) -> _Reading | None:
        """Return a piece that nobody reads yet, else one that somebody else does, else None."""
        with self._lock:
            if ended in self._open:
                self._open.remove(ended)
            if self._waiting:
                found = _Reading(self._waiting.pop())
                self._open.append(found)
                return found
            return min(self._open, key=lambda each: each.readers, default=None)


@final
class _Reading:
    """One piece, read by one thread at a time."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._blocks: Any = None
        self._lock = threading.Lock()
        self.readers = 0

    def take(self) -> Block | None:
        """Return the next block; None at the end."""
        self.readers += 1
        try:
            with self._lock:
                if self._blocks is None:
                    self._blocks = iter(self._piece())
                found: Block | None = next(self._blocks, None)
                return found
        finally:
            self.readers -= 1

    def close(self) -> None:
        """End the reading: an open result may block its connection."""
        with self._lock:
            close = getattr(self._blocks, "close", None)
            if close is not None:
                close()


def processors() -> int:
    """Return how many threads can run at the same time."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return what limits the threads of the BLAS libraries loaded by now, NumPy's among them."""
    return ThreadpoolController()
