"""What a program's threads and finalizers raise is not printed: it may know internal answers (C8).

Python prints what a thread or a `__del__` raises, by two hooks of the whole process. While a
program runs, nothing that a finalizer or a thread started since then raises is shown; the threads
that outlive the program stay silenced.
"""

from __future__ import annotations

import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["forget", "silenced"]

_lock = threading.RLock()
_running: list[frozenset[threading.Thread]] = []
"""For each program that runs now, the threads that were there before it."""
_left_behind: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_hooks: list[tuple[Any, Any]] = []
"""The hooks that were found, while ours are in their place."""


@contextmanager
def silenced() -> Iterator[None]:
    """Show nothing that finalizers, and threads started in the block, raise."""
    before = frozenset(threading.enumerate())
    with _lock:
        _running.append(before)
        if not _hooks:
            _hooks.append((sys.unraisablehook, threading.excepthook))
            sys.unraisablehook, threading.excepthook = _unraisable, _thread_failed
    aged = _times_aged()
    try:
        yield
    finally:
        try:  # the program's garbage goes while its finalizers are silenced
            gc.collect(1 if _times_aged() == aged else 2)
        finally:
            with _lock:
                _left_behind.update(t for t in threading.enumerate() if t not in before)
                _running.remove(before)
                _restore_hooks()


def forget(error: BaseException | None) -> None:
    """Drop what an exception holds, the locals of the frames that it left first of all."""
    if error is None:
        return
    held = vars(BaseException)  # the exception's own class may see to it that nothing is dropped
    traceback.clear_frames(held["__traceback__"].__get__(error))
    for name in ("__traceback__", "__context__", "__cause__"):
        held[name].__set__(error, None)
    held["args"].__set__(error, ())


def _times_aged() -> int:
    """Return how often objects became old: only then can the program's be among the old ones."""
    return sum(generation["collections"] for generation in gc.get_stats()[1:])


def _restore_hooks() -> None:
    """Put back what was found, once nothing needs silence and nobody has put a hook on top."""
    ours = sys.unraisablehook is _unraisable and threading.excepthook is _thread_failed
    needed = _running or any(thread.is_alive() for thread in _left_behind)
    if ours and not needed:
        sys.unraisablehook, threading.excepthook = _hooks.pop()


def _unraisable(raised: Any) -> None:
    with _lock:
        ignore = bool(_running) or threading.current_thread() in _left_behind
        found = _hooks[-1][0] if _hooks else sys.__unraisablehook__
    if not ignore:
        found(raised)


def _thread_failed(raised: Any) -> None:
    with _lock:
        started = any(raised.thread not in before for before in _running)
        ignore = started or raised.thread in _left_behind
        found = _hooks[-1][1] if _hooks else threading.__excepthook__
    if not ignore:
        found(raised)
