"""A progress bar for what takes longer than two seconds, of public numbers only.

It goes to a terminal's stderr, and nowhere else. Rows are shown where their number is public;
nothing is shown while a study's program runs, whose queries follow from internal answers. Switch it
off by ``zerodelta.progress = False`` or in the environment by ``ZERODELTA_PROGRESS=0``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sized
from typing import Any, TypeVar

from zerodelta.data.quiet import is_silenced

PATIENCE = 2.0
"""After how many seconds a bar appears."""

_REFRESH = 0.1

T = TypeVar("T")


def shown(
    items: Iterable[T], what: str, total: int | None, size: Callable[[T], int] | None = None
) -> Generator[T, None, None]:
    """Yield the items; if they take long, show how many of the total (None: not how many) are done.

    >>> list(shown(range(3), "rounds", 3))
    [0, 1, 2]
    """
    if not _wanted():
        yield from items
        return
    bar: Any = None
    done, begun, last = 0, time.monotonic(), 0.0
    try:
        for item in items:
            yield item
            done += 1 if size is None else size(item)
            now = time.monotonic()
            if now - begun < PATIENCE or now - last < _REFRESH:
                continue
            last = now
            if bar is None:
                bar = _bar()
                task = bar.add_task(what, total=total)
            bar.update(task, completed=0 if total is None else done, refresh=True)
    finally:
        if bar is not None:
            bar.stop()


def rows_in(block: Sized) -> int:
    """Return how many rows a block has."""
    return len(block)


def _wanted() -> bool:
    """Tell whether somebody looks: public grounds only."""
    package = sys.modules.get("zerodelta")
    chosen = getattr(package, "progress", True)
    named = os.environ.get("ZERODELTA_PROGRESS", "").strip().lower()
    if chosen is not True or named in ("0", "false", "no", "off"):
        return False
    main = threading.current_thread() is threading.main_thread()
    return main and not is_silenced() and _is_terminal()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _bar() -> Any:
    """Return a bar that has begun, drawn only when it is told to: it starts no thread."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(
        console=Console(stderr=True, force_terminal=True), auto_refresh=False, transient=True
    )
    bar.start()
    return bar
