"""Nothing is shown while code looks at rows or internal answers: that is an output (A14.4, C8).

**Warnings** (`quiet`). All threads share one counted block. While somebody is inside, a filter in
front of all others ignores every warning, and what comes past it (code inside may set filters of
its own, and the end of another thread's `warnings.catch_warnings` takes ours away) is not shown.
Both do nothing when nobody is inside, so whoever restores them later, or never, switches nothing
off.

**Threads and finalizers** (`silenced`). Python prints what a thread or a `__del__` raises, by two
hooks of the whole process. While a program runs, nothing that a finalizer or a thread started since
then raises is shown; the threads that outlive the program stay silenced.
"""

from __future__ import annotations

import gc
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_lock = threading.RLock()  # a warning may be silenced while a finalizer runs in the same thread
_inside: list[object] = []


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning out, of NumPy's floating-point errors neither, until the block is left.

    >>> with quiet():
    ...     warnings.warn("a value says so")
    """
    token = object()
    with _lock:
        if not _inside:
            _restore()  # what an interrupt may have left
            _found.append(_State())
        _inside.append(token)
        _put_in_front()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _inside.remove(token)  # at once: with nobody inside, all that is ours does nothing
        with _lock:
            if not _inside:
                _restore()


class _Anything:
    """Matches every warning while somebody is inside; takes the place of a regular expression."""

    def match(self, text: str) -> bool:
        return bool(_inside)


_FILTER: Any = ("ignore", _Anything(), Warning, None, 0)


class _State:
    """What the first one in found; the last one out puts it back."""

    def __init__(self) -> None:
        self.filters: Any = warnings.filters
        self.listed = [entry for entry in self.filters if entry is not _FILTER]
        self.shows = warnings.showwarning


_found: list[_State] = []
_module: Any = warnings
_show_message: Any = _module._showwarnmsg
"""What Python calls to show a warning; unlike `showwarning`, `catch_warnings` leaves it alone."""


def _put_in_front() -> None:
    filters: Any = warnings.filters
    if not filters or filters[0] is not _FILTER:
        filters.insert(0, _FILTER)
    _module._showwarnmsg = _show_nothing


def _restore() -> None:
    while _found:
        found, present = _found[-1], warnings.filters
        changed = list(found.filters) != [_FILTER, *found.listed]
        found.filters[:] = found.listed
        if present is found.filters:
            warnings.showwarning = found.shows
        else:  # another thread is inside catch_warnings, or has left one: it restores the rest
            _remove(present)
        _module._showwarnmsg = _show_message
        if changed:
            _forget_decisions()
        _found.pop()


def _remove(filters: Any) -> None:
    filters[:] = [entry for entry in filters if entry is not _FILTER]


def _forget_decisions() -> None:
    """Let Python look at the filters again, also for warnings that it has decided about."""
    mutated = getattr(_module, "_filters_mutated", None)
    if mutated is not None:
        mutated()


def _show_nothing(message: Any) -> None:
    """Show a warning only if nobody is inside."""
    if not _inside:
        _show_message(message)


_hooks_lock = threading.RLock()
_running: list[frozenset[threading.Thread]] = []
"""For each program that runs now, the threads that were there before it."""
_left_behind: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_hooks: list[tuple[Any, Any]] = []
"""The hooks that were found, while ours are in their place."""


@contextmanager
def silenced() -> Iterator[None]:
    """Show nothing that finalizers, and threads started in the block, raise."""
    before = frozenset(threading.enumerate())
    with _hooks_lock:
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
            with _hooks_lock:
                _left_behind.update(t for t in threading.enumerate() if t not in before)
                _running.remove(before)
                _restore_hooks()


def is_silenced() -> bool:
    """Tell whether a program runs now."""
    return bool(_running)


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
    with _hooks_lock:
        ignore = bool(_running) or threading.current_thread() in _left_behind
        found = _hooks[-1][0] if _hooks else sys.__unraisablehook__
    if not ignore:
        found(raised)


def _thread_failed(raised: Any) -> None:
    with _hooks_lock:
        started = any(raised.thread not in before for before in _running)
        ignore = started or raised.thread in _left_behind
        found = _hooks[-1][1] if _hooks else threading.__excepthook__
    if not ignore:
        found(raised)
