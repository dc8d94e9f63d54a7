"""No warning leaves while code looks at rows or internal answers: a warning is an output (A14.4).

`warnings.catch_warnings` restores what it found, so two threads that overlap can leave warnings
switched off for good. Here all threads share one counted block: the first one in switches warnings
off, and the last one out restores what the first one found.
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
_found: list[warnings.catch_warnings[None]] = []


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning out, of NumPy's floating-point errors neither, until the block is left.

    >>> with quiet():
    ...     warnings.warn("a value says so")
    """
    token = object()
    with _lock:
        if not _inside:
            _found.append(warnings.catch_warnings())
            _found[0].__enter__()
            warnings.simplefilter("ignore")
            warnings.showwarning = _show_nothing  # whatever filters the block sets itself
        _inside.append(token)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _lock:
            _inside.remove(token)
            if not _inside:
                _found.pop().__exit__(None, None, None)


def _show_nothing(*_: Any, **__: Any) -> None:
    pass
