"""No warning leaves while code looks at rows or internal answers: a warning is an output (A14.4).

All threads share one counted block. While somebody is inside, a filter in front of all others
ignores every warning, and what comes past it (code inside may set filters of its own, and the end
of another thread's `warnings.catch_warnings` takes ours away) is not shown. Both do nothing when
nobody is inside, so whoever restores them later, or never, switches nothing off.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["quiet"]

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
