"""Threads take each block once, stop when one fails, and run no code of the caller's."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from data.opening import opened
from zerodelta.data import rows
from zerodelta.data.arrays import ArraySource
from zerodelta.data.pieces import Keeping, tally_blocks
from zerodelta.data.rows import Blocks, Rows
from zerodelta.exact.fixed_point import FixedPoint

UNIT = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=1000)


class Listed:
    def __init__(self) -> None:
        self.found: list[Any] = []

    def add(self, block: Any) -> None:
        self.found.append(int(block[0, 0]))


def counting(start: int, count: int, closed: list[int] | None = None) -> Iterator[Any]:
    try:
        for i in range(start, start + count):
            yield np.full((1, 1), float(i))
    finally:
        if closed is not None:
            closed.append(start)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("sizes", [[], [0], [50], [1] * 20, [0, 3, 40, 0, 7]])
def test_every_block_is_taken_once_and_every_piece_is_closed(
    threads: int, sizes: list[int]
) -> None:
    starts, closed = np.cumsum([0, *sizes]).tolist(), list[int]()
    pieces = [partial(counting, s, n, closed) for s, n in zip(starts, sizes, strict=False)]
    tallies = list(tally_blocks(pieces, Listed, threads=threads))
    assert sorted(i for tally in tallies for i in tally.found) == list(range(sum(sizes)))
    assert len(tallies) == threads
    assert sorted(closed) == sorted(starts[:-1])


def test_what_a_thread_raises_is_raised_and_the_others_stop() -> None:
    closed: list[int] = []

    def failing() -> Iterator[Any]:
        yield np.zeros((1, 1))
        raise LookupError("no more")

    pieces: list[Any] = [failing, *[partial(counting, i * 10**6, 10**6, closed) for i in range(3)]]
    before = [library["num_threads"] for library in threadpool_info()]
    with pytest.raises(LookupError, match="no more"):
        list(tally_blocks(pieces, Listed, threads=2))
    assert threading.active_count() == 1 or not any(
        thread.name.startswith("ThreadPool") for thread in threading.enumerate()
    )
    assert len(closed) <= 1  # of the others at most one was begun, and it was closed
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_an_interrupt_stops_the_threads() -> None:
    begun, closed = threading.Event(), list[int]()

    def endless() -> Iterator[Any]:
        try:
            for _ in range(10**7):  # a minute, should nothing stop it
                begun.set()
                yield np.zeros((1, 1))
        finally:
            closed.append(1)

    class Quick(Listed):
        def add(self, block: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                begun.wait()

    tallies = tally_blocks([endless, partial(counting, 0, 1)], Quick, threads=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
    waiting = threading.Timer(0.1, _interrupt)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        list(tallies)
    signal.signal(signal.SIGINT, before)
    assert closed == [1]


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_code_of_the_caller_runs_where_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    monkeypatch.setattr(rows, "processors", lambda: 4)
    seen: set[int] = set()

    def noted(block: Any) -> Any:
        seen.add(threading.get_ident())
        return block

    table = np.linspace(-1, 1, 999)
    source = ArraySource(table, batch=10)
    total = UNIT.sum(table[:, None]).tolist()
    assert opened(source).sum(noted, UNIT).tolist() == total
    assert seen == {threading.get_ident()}
    assert opened(source).sum(0, UNIT).tolist() == total


def test_sums_beyond_64_bits_are_exact_in_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number of rows is private here: nothing was checked before the first row."""

    blocks = Blocks(np.array_split(np.ones((3000, 1)), 50), Keeping())
    private = Rows(held=blocks, rows=3, columns=("0",), row_count_is_public=False)
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    for threads in (1, 3):
        monkeypatch.setattr(rows, "processors", lambda found=threads: found)
        for steps in (1 << 30, 1 << 53):  # of which 1023 fit
            box = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)
            assert private.sum([0], box).tolist() == [3000 * steps]
        for steps in (1 << 26, 1 << 50):  # of whose squares 2047 fit, and none
            ball = FixedPoint.ball(dimension=1, bound=1, steps=steps)
            assert private.gram([0], ball).tolist() == [[3000 * steps**2]]
