"""The interrupt of a person at the keyboard, told apart from one that code raises (theory C8).

A `KeyboardInterrupt` that a program or a function of rows raises is decided by what it has seen,
so it is a failure like any other. Only one that arrived as a signal may leave, and then as a fresh
exception, without the message, traceback and locals of the code that it stopped. Signals reach the
main thread only.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, ClassVar, NoReturn, TypeVar, final

from zerodelta.data.quiet import quiet

_Function = TypeVar("_Function", bound=Callable[..., Any])
_tidying: set[CodeType] = set()


def tidying(function: _Function) -> _Function:
    """Mark a function that begins or ends a block: an interrupt right in it is only noted.

    Locals of a large program are freed while its block is left, and a signal that arrived
    meanwhile is handled at the first instruction of what comes next.
    """
    known: Any = function
    _tidying.add(known.__code__)
    return function


@final
class Watch:
    """A block in which an interrupt that arrives as a signal is noted; blocks may be nested.

    Leaving the block raises a fresh `KeyboardInterrupt` if one arrived, whatever the code inside
    made of it. Any other exception passes; one that code inside raises itself is up to that code.
    Whatever the handler that was found raises counts as an interrupt.

    >>> with Watch() as watch:
    ...     watch.arrived
    False
    """

    # of the main thread, for all blocks together
    _depth: ClassVar[int] = 0
    _arrived: ClassVar[bool] = False
    _previous: ClassVar[Any] = None
    _held: ClassVar[int] = 0

    def __init__(self) -> None:
        self._watches = self._holds = False

    @property
    def arrived(self) -> bool:
        """Whether a signal has asked the code in this block to stop."""
        return self._watches and Watch._arrived

    @tidying
    def __enter__(self) -> Watch:
        self._watches = threading.current_thread() is threading.main_thread()
        if self._watches:
            if Watch._depth == 0:
                Watch._arrived, Watch._previous = False, _replace_handler()
            Watch._depth += 1
        return self

    @tidying
    def hold(self) -> None:
        """Note interrupts, but let them stop nothing until `resume`, or until the block is left."""
        if self._watches and not self._holds:
            self._holds = True
            Watch._held += 1

    @tidying
    def resume(self) -> None:
        """Let interrupts stop the code again; one that came meanwhile waits for the end."""
        Watch._held -= self._holds
        self._holds = False

    @tidying
    def leave(self) -> bool:
        """Stop watching and tell whether a signal arrived."""
        if not self._watches:
            return False
        self.resume()
        self._watches, arrived = False, Watch._arrived
        Watch._depth -= 1
        if Watch._depth == 0:
            if Watch._previous is not None:  # also if the code inside put its own in the place
                signal.signal(signal.SIGINT, Watch._previous)
            Watch._arrived, Watch._previous = False, None
        return arrived

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        arrived = self.leave()
        del kind, error, trace  # a traceback shows the locals of this frame too
        if arrived:
            raise_fresh()


def quietly(function: Callable[..., Any], *arguments: Any, otherwise: Any = None) -> Any:
    """Return what code that is not ours makes of rows; `otherwise` if it raises (theory A14.4).

    Whatever it raises, an exit or a panic too; but a signal still interrupts.

    >>> quietly(int, "x"), quietly(int, "x", otherwise=0), quietly(int, "1")
    (None, 0, 1)
    """
    with quiet(), Watch() as watch:
        try:
            return function(*arguments)
        except BaseException:
            if watch.arrived:  # the person at the keyboard, not the data
                raise
    return otherwise


def raise_fresh(error: BaseException | None = None) -> NoReturn:
    """Raise an error, by default a `KeyboardInterrupt`, that knows nothing of any other one."""
    fresh = KeyboardInterrupt() if error is None else error
    try:
        raise fresh
    finally:
        fresh.__context__ = None


def _tidies(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code in _tidying


def _replace_handler() -> Any:
    """Note interrupts before the present handler deals with them; return that handler, if any."""
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous):  # ignored, or the process ends at once
        return None

    def note(number: int, frame: FrameType | None) -> None:
        try:
            previous(number, frame)
        except BaseException:  # else the handler has dealt with it
            Watch._arrived = True
            if not (Watch._held or _tidies(frame)):
                raise

    signal.signal(signal.SIGINT, note)
    return previous
