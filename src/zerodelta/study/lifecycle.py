"""The lifecycle of a study: open, then closed; one process; one thing at a time (theory C8).

A query that a query's own function asks, or a value that publishes while it is read, would make
shares and release depend on rows without noise. So nothing re-enters: it is refused.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from zerodelta.errors import ParameterError

_PATIENCE = 0.05
"""How often, in seconds, one who waits looks whether the study was stopped."""


def closed(how: str) -> ParameterError:
    """Return what says that a study can no longer be used here."""
    return ParameterError(
        "study",
        how,
        expected="an open study, in the process that made it",
        remedy="make a new Study; each one costs its ε again",
    )


@final
class Lifecycle:
    """Says whether a study may be used now; raises from public grounds only."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._open, self._busy_thread, self._rehearsing = True, -1, False

    @property
    def is_open(self) -> bool:
        """Whether the study can still publish."""
        return self._open

    @property
    def is_copy(self) -> bool:
        """Whether a fork made this one."""
        return os.getpid() != self._process

    def check(self) -> None:
        """Refuse a study that is closed, copied by a fork, answering, or being rehearsed."""
        if self._rehearsing:
            raise ParameterError(
                "study",
                "the study itself, in a rehearsal",
                expected="the study that the program is handed",
                remedy="use the program's argument: study.run(lambda s: s.mean(0))",
            )
        if self._busy_thread == threading.get_ident():
            raise ParameterError(
                "study",
                "asked from inside one of its own queries",
                expected="one query at a time",
                remedy="ask before, and let functions of rows look at their rows only",
            )
        if not self._open or self.is_copy:
            raise closed("closed" if not self._open else "a copy in another process")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep every other thread waiting, and refuse this one, until the block is left."""
        self.check()
        with self._lock:
            self.check()
            self._busy_thread = threading.get_ident()
            try:
                yield
            finally:
                self._busy_thread = -1

    @contextmanager
    def last(self, stopped: Callable[[], bool]) -> Iterator[bool]:
        """Wait for what is under way, then tell whether there is still something to publish.

        There is not if the study is closed by then, or if the person at the keyboard, who may be
        tired of waiting, has `stopped` it.
        """
        if self.is_copy:
            yield False
            return
        while not self._lock.acquire(timeout=_PATIENCE):
            if stopped() or self._busy_thread == threading.get_ident():
                yield False
                return
        try:
            self._busy_thread = threading.get_ident()
            yield self._open and not stopped()
        finally:
            self._busy_thread = -1
            self._lock.release()

    @contextmanager
    def rehearsing(self) -> Iterator[None]:
        """Refuse every use until the block is left."""
        self._rehearsing = True
        try:
            yield
        finally:
            self._rehearsing = False

    def close(self) -> None:
        """Close it, once; a fork that came to be on the way closes nothing."""
        if not self._open or self.is_copy:
            raise ParameterError(
                "study",
                "already published, or a copy in another process",
                expected="one publication",
                remedy="make a new Study; each one costs its ε again",
            )
        self._open = False
