"""Blocks of rows taken by several threads, each of which adds up what it takes.

Integers are added, so it does not matter which thread takes which rows. A thread reads a piece
(a row group, a range of a file) to its end; when no piece is left it takes turns with the others at
theirs, so that what can only be read in one piece is still worked on by all. Each holds one block
at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, TypeVar, final

from threadpoolctl import ThreadpoolController

from zerodelta.data.progress import shown
from zerodelta.data.quiet import quiet
from zerodelta.data.rowwise import Block

Piece: TypeAlias = Callable[[], Iterator[Block]]
"""Reads one part of the rows, in a thread of its own if need be."""


_PATIENCE = 0.2
"""Seconds after which an interrupt is seen at the latest."""


class Tally(Protocol):
    """What a thread adds up."""

    def add(self, block: Block) -> None:
        """Add what one block has."""


Reading = TypeVar("Reading", bound=Tally)


def each_tally(
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
