"""Products with small blocks run on one thread: several wait for each other longer than they work.

On a busy machine that waiting took several times as long as the fit.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

import numpy  # noqa: F401, what it loads is limited
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which NumPy's BLAS uses one thread; what was set before comes back.

    >>> def threads():
    ...     return {library["num_threads"] for library in _libraries().info()}
    >>> before = threads()
    >>> with one_thread():
    ...     threads()
    {1}
    >>> threads() == before
    True
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limited


@functools.cache
def _libraries() -> ThreadpoolController:
    """Return NumPy's BLAS and what else was loaded by now; to look for it takes milliseconds."""
    return ThreadpoolController()
