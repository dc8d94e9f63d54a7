"""Copy, count and add up blocks of rows: in files, by threads, into exact sums, with progress."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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

# -- A copy of rows: in memory up to a limit, the rest in a file that has no name -----------------
# The rows of a release are read once; every later pass reads the copy, so a release sees one state
# of the data.

_Array = npt.NDArray[Any]


@value
class Keeping:
    """The storage for a copy of rows: memory up to a limit, then a file."""

    memory: int | None = None
    """The number of bytes kept in memory; None keeps the whole copy there."""
    folder: str | None = None
    """The folder of the file with the rest; None for the system's temporary folder."""


def copied_blocks(blocks: Iterable[_Array], keeping: Keeping) -> tuple[_Array, ...]:
    """Return read-only copies of the blocks, in which each column is contiguous.

    The file, readable by its owner only, loses its name as soon as it is created (on Windows when
    it is closed), so that nothing is left behind after a crash either. Every failure raises the
    same message.

    >>> copies = copied_blocks([np.zeros((2, 1)), np.ones((1, 1))], Keeping(memory=16))
    >>> [block.tolist() for block in copies]
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
                # a view of bytes stays read-only: a caller's function of rows cannot change it
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
            quietly(file.close)  # the memory map stays valid; a full disk fails here once more
    return tuple(held)


def as_one_table(
    blocks: Iterable[_Array],
    width: int,
    *,
    planned: int,
    keeping: Keeping,
    count_is_public: bool = False,
) -> npt.NDArray[np.float64]:
    """Return all rows as one array, for methods that need them at the same time.

    The array is in memory as long as there are at most `planned` rows, a public number. If there
    are more, all of them go to a file like that of `copied_blocks` and nothing is raised: the
    number of rows may be private. Unless it is public (`count_is_public`), the file is created
    before the first row, so that a full disk fails whatever the rows are.

    >>> as_one_table([np.ones((2, 1)), np.zeros((1, 1))], 1, planned=2, keeping=Keeping()).tolist()
    [[1.0], [1.0], [0.0]]
    """
    table, start, in_memory = np.empty((planned, width)), 0, True
    file = None if count_is_public else _new_file(keeping)
    try:
        for block in blocks:
            stop = start + len(block)
            if in_memory and stop > planned:
                file = _new_file(keeping) if file is None else file
                _write(file, table[:start].T)
                table, in_memory = np.empty((0, width)), False
            if in_memory:
                table[start:stop] = block
            else:
                _write(file, np.ascontiguousarray(block, np.float64).T)
            start = stop
        if in_memory:
            return table[:start]
        return np.frombuffer(_mapped(file), np.float64).reshape(start, width)
    finally:
        if file is not None:
            quietly(file.close)  # the memory map stays valid; a full disk fails here once more


def _new_file(keeping: Keeping) -> Any:
    """Return a new file without a name, in the folder of the storage."""
    return attempt(partial(tempfile.TemporaryFile, dir=keeping.folder))


def _write(file: Any, block: _Array) -> None:
    """Append a block to the file, column by column."""
    attempt(lambda: file.write(memoryview(block.T).cast("B") if block.size else b""))


def _mapped(file: Any) -> Any:
    """Return the contents of the file as a read-only memory map."""

    def mapped() -> Any:
        """Flush the file and map it into memory; empty bytes if it has no row."""
        file.flush()
        if not file.tell():  # blocks without a row
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    return attempt(mapped)


def _view(data: Any, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Array:
    """Return an array whose data is at a position of a buffer, without copying it."""
    count = int(np.prod(shape))
    return np.frombuffer(data, dtype, count, start).reshape(shape, order="F")


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Array:
    return np.empty(shape, dtype)


# -- A progress bar for work that takes longer than two seconds, of public numbers only -----------
# The bar is drawn on a terminal's stderr only. It counts rows only where their number is public,
# and is off while a study's program runs, since that program's queries depend on internal answers.
# Switch it off by ``zerodelta.progress = False`` or in the environment by ``ZERODELTA_PROGRESS=0``.

BAR_DELAY = 2.0
"""The seconds after which a bar appears."""

_REFRESH_INTERVAL = 0.1

T = TypeVar("T")


def with_progress(
    items: Iterable[T], label: str, total: int | None, size: Callable[[T], int] | None = None
) -> Generator[T, None, None]:
    """Yield the items, with a progress bar if that takes long.

    The bar has the label and the sum of the `size` of the items so far (default: 1 each) out of
    `total`; with None it shows no numbers.

    >>> list(with_progress(range(3), "rounds", 3))
    [0, 1, 2]
    """
    if not _is_bar_wanted():
        yield from items
        return
    bar: Any = None
    done, started, last = 0, time.monotonic(), 0.0
    try:
        for item in items:
            yield item
            done += 1 if size is None else size(item)
            now = time.monotonic()
            if now - started < BAR_DELAY or now - last < _REFRESH_INTERVAL:
                continue
            last = now
            if bar is None:
                bar = _bar()
                task = bar.add_task(label, total=total)
            bar.update(task, completed=0 if total is None else done, refresh=True)
    finally:
        if bar is not None:
            bar.stop()


def _is_bar_wanted() -> bool:
    """Tell whether to draw a bar: decided by settings and the terminal, never by rows."""
    package = sys.modules.get("zerodelta")
    setting = getattr(package, "progress", True)
    variable = os.environ.get("ZERODELTA_PROGRESS", "").strip().lower()
    if setting is not True or variable in ("0", "false", "no", "off"):
        return False
    in_main_thread = threading.current_thread() is threading.main_thread()
    return in_main_thread and _is_terminal() and not is_silenced()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # stderr is None, or closed
        return False


def _bar() -> Any:
    """Return a started bar that is drawn only on `update(refresh=True)`, so it needs no thread."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(
        console=Console(stderr=True, force_terminal=True), auto_refresh=False, transient=True
    )
    bar.start()
    return bar


KEYS_IN_CACHE = 1 << 14
"""Keys counted at a time: few enough to stay in the processor's cache."""


@final
class StoredColumn:
    """One column of a batch as it is stored: integers, or positions in a short list of values.

    Counting such a column directly is faster than turning it into floats first.
    """

    __slots__ = ("_places", "_values")

    def __init__(
        self, places: npt.NDArray[Any], values: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._places, self._values = places, values

    def __len__(self) -> int:
        return len(self._places)

    def counts(self, size: int, invalid: int | None) -> npt.NDArray[np.int64]:
        """Return the number of rows with each key 0..size-1, from stored values.

        Other keys count as the key `invalid`, or not at all if that is None.

        >>> StoredColumn(np.array([0, 1, 1, 0]), np.array([2.0, np.nan])).counts(3, None)
        array([0, 0, 2])
        """
        counts = np.zeros(size, dtype=np.int64)
        if self._values is None:
            for start in range(0, len(self), KEYS_IN_CACHE):
                part = codes_of(self._places[start : start + KEYS_IN_CACHE], size, invalid)
                counts += np.bincount(part, minlength=size)
            return counts
        value_count = len(self._values)
        rows = np.zeros(value_count, dtype=np.int64)
        for start in range(0, len(self), KEYS_IN_CACHE):
            part = self._places[start : start + KEYS_IN_CACHE]
            rows += np.bincount(part, minlength=value_count)[:value_count]
        codes = codes_of(self._values, size, size if invalid is None else invalid)
        is_key = codes < size
        np.add.at(counts, codes[is_key], rows[is_key])
        return counts


_LOWER_BITS = 31
"""The width of the lower halves into which large integers are split before floats add them."""

_FEWEST_ROWS = 1 << 16
"""If floats can add fewer rows than this at a time, integers are split into halves."""


@final
class RunningSum:
    """An exact sum in 64-bit integers, and in Python integers once those might overflow."""

    __slots__ = ("_bound", "_keyed", "_large", "_part", "_room", "_sums")

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
        """The number of further rows that cannot overflow 64 bits, whatever is in them."""
        self._large: npt.NDArray[np.object_] | None = None

    def add(self, block: Block) -> None:
        """Add the integers (or count the keys) that `part` computes from a block."""
        added: npt.NDArray[Any] = self._part(block)
        if len(block) > self._room:
            self._large, self._room = self._exact(), INT64_MOST // self._bound
            self._sums[...] = 0
        if added.dtype == np.object_:
            self._large = added if self._large is None else self._large + added
        elif self._keyed:
            np.add.at(self._sums, added, 1)
        else:
            self._sums += added
        self._room -= len(block)

    def total(self) -> IntegerArray:
        """Return the sum."""
        return self._sums if self._large is None else self._exact()

    def _exact(self) -> npt.NDArray[np.object_]:
        sums = self._sums.astype(np.object_)
        return sums if self._large is None else sums + self._large


def codes_of(keys: npt.NDArray[Any], size: int, invalid: int | None) -> npt.NDArray[np.int64]:
    """Return the keys that are integers 0..size-1; others as `invalid`, or left out if None."""
    with np.errstate(all="ignore"):
        codes = keys.astype(np.int64, copy=False)
    valid = codes.view(np.uint64) < np.uint64(size)
    if keys.dtype.kind == "f":
        valid &= codes == keys  # NaN and fractions: not valid
    if valid.all():
        return codes
    return codes[valid] if invalid is None else np.where(valid, codes, invalid)


def group_codes(
    columns: Iterable[npt.NDArray[np.float64]], sizes: Sequence[int], rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the group of each row, from columns of codes 0..size-1, and which rows are in one.

    >>> group_codes([np.array([1.0, 0.0]), np.array([2.0, np.nan])], (2, 3), rows=2)
    (array([5, 0]), array([ True, False]))
    """
    codes, inside = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    for column, size in zip(columns, sizes, strict=True):
        valid = (column >= 0) & (column < size)  # NaN: in no group
        if not valid.all():
            column = np.where(valid, column, 0)
            inside &= valid
        codes *= size
        codes += column.astype(np.int64)
    return codes, inside


def add_powers(
    sums: IntegerArray,
    codes: npt.NDArray[np.int64],
    values: Block,
    lattice: FixedPoint | None,
    degree: int,
) -> None:
    """Add to each group's row of `sums` the count of its values and the exact sums of powers.

    Column 1 gets the number of values that are present, column 1 + p the sum of k^p for the
    quantized values k and p = 1, …, degree.
    """
    present = ~np.isnan(values[:, 0])
    if not present.all():
        codes, values = codes[present], values[present]
    sums[:, 1] = np.bincount(codes, minlength=len(sums))
    if lattice is None:
        return
    integers = lattice.quantize(values)[:, 0]
    for power in range(1, degree + 1):
        bound = lattice.steps**power
        if bound >= 1 << 62:
            np.add.at(sums[:, 1 + power], codes, integers.astype(np.object_) ** power)
        else:
            sums[:, 1 + power] += _by_group(integers**power, bound, codes, len(sums))


def _by_group(
    added: npt.NDArray[np.int64], bound: int, codes: npt.NDArray[np.int64], groups: int
) -> IntegerArray:
    """Return the exact sum of each group, in 64-bit integers if they cannot overflow.

    `np.bincount` adds floats. Their sum is exact while it stays within 2^53, so rows are added in
    slices of 2^53 // bound; if these are too short, the two halves of the bits are added by
    themselves.
    """
    fits = len(added) * bound <= INT64_MOST
    if groups == 1 and fits:
        return np.array([added.sum()])
    exact_rows = (1 << 53) // bound
    if exact_rows < _FEWEST_ROWS:
        high = _by_group(added >> _LOWER_BITS, (bound >> _LOWER_BITS) + 1, codes, groups)
        low = _by_group(added & ((1 << _LOWER_BITS) - 1), 1 << _LOWER_BITS, codes, groups)
        wide: Any = high if fits else high.astype(np.object_)
        joined: IntegerArray = wide * (1 << _LOWER_BITS) + low
        return joined
    total: IntegerArray = np.zeros(groups, dtype=np.int64)
    for start in range(0, len(codes), exact_rows):
        part = slice(start, start + exact_rows)
        weights = added[part].astype(np.float64)
        total += np.bincount(codes[part], weights=weights, minlength=groups).astype(np.int64)
    return total


# -- Threads that share blocks of rows, each with a tally of its own ------------------------------
# Integers are added, so it does not matter which thread takes which rows. A thread reads a piece
# (a row group, a range of a file) to its end; when no unread piece is left it takes blocks of a
# piece that another thread has begun, so that a source in one piece still uses all threads. Each
# thread holds one block at a time.

Piece: TypeAlias = Callable[[], Iterator[Block]]
"""A function that yields the blocks of one part of the rows; any thread may call it."""


_LONGEST_WAIT = 0.2
"""The seconds after which an interrupt is noticed at the latest."""


class Accumulator(Protocol):
    """A tally to which one thread adds blocks."""

    def add(self, block: Block) -> None:
        """Add one block."""


Tally = TypeVar("Tally", bound=Accumulator)


def tally_blocks(
    pieces: Sequence[Piece],
    begin: Callable[[], Tally],
    *,
    threads: int | None = None,
    rows: int | None = None,
) -> Iterator[Tally]:
    """Yield one tally from each thread; together they have added every block once.

    There are as many threads as processors by default, each with one thread of BLAS. An exception
    in a thread is raised here, once all threads have stopped. `rows` is the number of rows for the
    progress bar, None where it is private.
    """
    count = processors() if threads is None else threads
    if count <= 1:
        tally = begin()
        for piece in pieces:
            for block in piece():
                tally.add(block)
        yield tally
        return
    shared = _SharedBlocks(pieces)

    def work() -> Tally:
        """Add blocks from the shared iterator to a tally of this thread until none remain."""
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
            for done in with_progress(_finished(waiting), "rows", rows, lambda _: shared.taken()):
                yield from (future.result() for future in done)
        finally:
            shared.stop()  # after an interrupt or an error the other threads finish their block


def _finished(waiting: set[Future[Tally]]) -> Iterator[set[Future[Tally]]]:
    """Yield sets of futures as they finish; an empty set after each wait without one."""
    while waiting:
        # with a time limit: Python handles a signal that came just before only after the wait
        done, waiting = wait(waiting, _LONGEST_WAIT, return_when=FIRST_COMPLETED)
        yield done


@final
class _SharedBlocks:
    """The blocks of all pieces; each is given to one of the threads that iterate over this."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._waiting = list(reversed(pieces))
        self._open: list[_OpenPiece] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._taken = 0

    def taken(self) -> int:
        """Return the number of rows handed out since the last call."""
        with self._lock:
            rows, self._taken = self._taken, 0
        return rows

    def stop(self) -> None:
        """Hand out no more blocks."""
        self._stopped = True

    def __iter__(self) -> Iterator[Block]:
        piece = self._next(None)
        try:
            while piece is not None and not self._stopped:
                block = piece.take()
                if block is None:
                    piece = self._next(piece)
                else:
                    with self._lock:
                        self._taken += len(block)
                    yield block
        finally:
            if piece is not None:
                piece.close()

    def _next(self, ended: _OpenPiece | None) -> _OpenPiece | None:
        """Return an unread piece, else the open one with the fewest readers, else None."""
        with self._lock:
            if ended in self._open:
                self._open.remove(ended)
            if self._waiting:
                piece = _OpenPiece(self._waiting.pop())
                self._open.append(piece)
                return piece
            return min(self._open, key=lambda piece: piece.readers, default=None)


@final
class _OpenPiece:
    """A piece that threads take blocks from, one thread at a time."""

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
                block: Block | None = next(self._blocks, None)
                return block
        finally:
            self.readers -= 1

    def close(self) -> None:
        """Close the iterator: an open query result may block its connection."""
        with self._lock:
            close = getattr(self._blocks, "close", None)
            if close is not None:
                close()


def processors() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return a controller of the threads of all BLAS libraries loaded by now, such as NumPy's."""
    return ThreadpoolController()
