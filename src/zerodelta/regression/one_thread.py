"""Products with small blocks run on one thread: several wait for each other longer than they work.

On a busy machine that waiting took several times as long as the fit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy  # noqa: F401, what it loads is limited
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy's BLAS use one thread; after the last of several fits at once, as many as before.

    >>> def threads():
    ...     return {library["num_threads"] for library in _BLAS.libraries.info()}
    >>> before = threads()
    >>> with one_thread():
    ...     threads()
    {1}
    >>> threads() == before
    True
    """
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()


class _Limited:
    """How many fits there are now, and what undoes the limit that the first of them set."""

    def __init__(self) -> None:
        self.libraries = ThreadpoolController().select(user_api="blas")
        self._lock = threading.Lock()
        self._fits = 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._fits == 0:
                self._limit = self.libraries.limit(limits=1)
            self._fits += 1

    def leave(self) -> None:
        with self._lock:
            self._fits -= 1
            if self._fits == 0:
                self._limit.restore_original_limits()

    def forget(self) -> None:
        """Begin anew, in a process that was forked while other threads were fitting."""
        self._lock, self._fits = threading.Lock(), 0


_BLAS = _Limited()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.forget)
