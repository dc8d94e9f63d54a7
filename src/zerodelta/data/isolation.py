"""Nothing is shown while code looks at rows or internal answers, whoever wrote it (A14.4, C8).

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
import signal
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any, ClassVar, NoReturn, TypeVar, final

import numpy as np
import numpy.typing as npt

# -- Internal -------------------------------------------------------------------------------------
# Internal answers: numbers for the program, `<internal>` for people. A seat belt, not a vault.
#
# They compute like NumPy arrays (a single number is an array without axes), and whatever would
# write them somewhere writes `<internal>`. Python cannot stop a program that insists: what leaves
# a study besides the published value is outside its guarantee (theory C8, A14).

INTERNAL = "<internal>"

_WRITERS = frozenset(
    {
        np.array2string,
        np.array_repr,
        np.array_str,
        np.save,
        np.savetxt,
        np.savez,
        np.savez_compressed,
    }
)

_METHODS = (
    *("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"),
    *("dot", "item", "nonzero", "round", "searchsorted", "take", "tolist", "trace"),
)
"""Methods that would return plain numbers."""


@final
class Internal(np.ndarray[Any, np.dtype[Any]]):
    """An array or a number that shows as `<internal>`, and so does whatever is computed from it.

    >>> answer = as_internal(np.array([3.0, 4.0]))
    >>> answer, f"{answer[0] + 1:.2f}", str(np.sqrt(answer @ answer))
    (<internal>, '<internal>', '<internal>')
    >>> bool(answer[0] < answer[1])
    True
    """

    def __repr__(self) -> str:
        return INTERNAL

    def __str__(self) -> str:
        return INTERNAL

    def __format__(self, specification: str) -> str:
        return INTERNAL

    def _repr_html_(self) -> str:
        return INTERNAL

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (INTERNAL,)

    def dump(self, file: Any) -> None:
        """Write nothing: an internal answer does not leave its program."""

    def dumps(self) -> bytes:
        """Return `<internal>`."""
        return INTERNAL.encode()

    def tobytes(self, *args: Any, **options: Any) -> bytes:
        """Return `<internal>`."""
        return INTERNAL.encode()

    @property
    def base(self) -> None:
        """None: the plain array below stays out of sight."""
        return None

    @property
    def flat(self) -> Any:
        """The entries one after the other, internal too."""
        return self.reshape(-1)

    def tofile(self, *args: Any, **options: Any) -> None:
        """Write nothing: an internal answer does not leave its program."""

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self, digits)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return as_internal(super().__getitem__(key))

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False, /
    ) -> Any:
        return as_internal(array)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Compute as NumPy does; also what is written into a plain array comes back internal."""
        if out is not None:
            options["out"] = tuple(map(_below, out))
        options = {name: _below(option) for name, option in options.items()}
        return as_internal(getattr(ufunc, method)(*map(_below, inputs), **options))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if function in _WRITERS:
            return INTERNAL
        return as_internal(super().__array_function__(function, types, args, kwargs))

    def _reduced(self, name: str, *args: Any, **options: Any) -> Any:
        return as_internal(getattr(np.ndarray, name)(self.view(np.ndarray), *args, **options))


def _reduction(name: str) -> Callable[..., Any]:
    def method(self: Internal, *args: Any, **options: Any) -> Any:
        return self._reduced(name, *args, **options)

    method.__name__, method.__doc__ = (
        name,
        f"Return what `ndarray.{name}` does, as an internal answer.",
    )
    return method


for _name in _METHODS:
    setattr(Internal, _name, _reduction(_name))


def as_internal(value: Any) -> Any:
    """Return numbers and arrays as internal answers, also in tuples and lists; others unchanged."""
    if isinstance(value, (tuple, list)):
        return _rebuilt(value, [as_internal(part) for part in value])
    numbers = isinstance(value, (np.ndarray, np.generic, int, float))
    return internal_array(value) if numbers else value


def internal_array(value: npt.ArrayLike) -> Internal:
    """Return an array or a number as an internal answer."""
    return np.asarray(value).view(Internal)


def reveal(value: Any) -> Any:
    """Return an internal number or array as a plain one, and the items of a tuple or list too.

    >>> reveal(as_internal(2)), reveal([as_internal(0.5), "x"])
    (2, [0.5, 'x'])
    """
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return _plain(value)


def is_unusable(share: Any) -> bool:
    """Tell whether a share is an internal answer and none at all: raising would show something."""
    number = reveal(share)
    usable = type(number) in (int, float) and 0 < number <= 1
    return type(share) is Internal and not usable


def _plain(value: Any) -> Any:
    if type(value) is Internal:  # isinstance would ask the value itself
        array = value.view(np.ndarray)
        return array if array.ndim else array.item()
    return value


def _below(value: Any) -> Any:
    """Return the plain array below an internal answer; anything else as it is."""
    return value.view(np.ndarray) if isinstance(value, Internal) else value


def _rebuilt(value: Any, parts: list[Any]) -> Any:
    """Return the same kind of tuple or list; `np.linalg` returns named tuples."""
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


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


# -- Interrupts -----------------------------------------------------------------------------------
# The interrupt of a person at the keyboard, told apart from one that code raises (theory C8).
#
# A `KeyboardInterrupt` that a program or a function of rows raises is decided by what it has seen,
# so it is a failure like any other. Only one that arrived as a signal may leave, and then as a
# fresh exception, without the message, traceback and locals of the code that it stopped. Signals
# reach the main thread only.

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


# -- Which functions are this library's own, so that what they make of rows is proven -------------

_ROOMS = tuple(f"zerodelta.{room}." for room in ("tasks", "clustering", "training"))
_PLAIN = (int, float, bool, str, bytes, type(None), Fraction, np.float64, np.int64)


def is_trusted_code(value: Any) -> bool:
    """Tell whether a function is one of our tasks', and so is everything that it holds.

    Functions are told by the module whose names they see, classes by being what their module calls
    by that name, objects by both and by what they hold; numbers, texts and arrays do nothing by
    themselves. Code that is put into a module
    of ours on purpose cannot be told from ours: nothing in Python can.

    >>> from zerodelta.training.models import TanhNetwork
    >>> is_trusted_code(TanhNetwork(lower=(0,), upper=(1,))), is_trusted_code(lambda rows: rows)
    (True, False)
    """
    kind = type(value)
    if kind is MethodType:
        return is_trusted_code(value.__func__) and is_trusted_code(value.__self__)
    if kind is FunctionType:
        name = str(value.__globals__.get("__name__"))
        names = _names_of(name) if name.startswith(_ROOMS) else None
        if names is None or value.__globals__ is not names:
            return False
        if value.__code__.co_filename != names.get("__file__"):
            return False
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        given = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return all(map(is_trusted_code, [*held, *given]))
    if kind is np.ndarray:
        return bool(value.dtype.kind in "biufc")  # objects may be functions
    if kind in (tuple, list):
        return all(map(is_trusted_code, value))
    return kind in _PLAIN or (_is_class_of_ours(kind) and all(map(is_trusted_code, _held(value))))


def _is_class_of_ours(kind: type) -> bool:
    name = str(kind.__module__)
    names = _names_of(name) if name.startswith("zerodelta.") else None
    return names is not None and names.get(kind.__name__) is kind


def _held(value: Any) -> list[Any]:
    """Return what an object holds: a gradient or a model of ours may hold the caller's function."""
    slots = [name for kind in type(value).__mro__ for name in _slots_of(kind)]
    held = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [*held, *getattr(value, "__dict__", {}).values()]


def _slots_of(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    return [slots] if isinstance(slots, str) else [s for s in slots if s != "__weakref__"]


def _names_of(module: str) -> dict[str, Any] | None:
    found = sys.modules.get(module)
    return None if found is None else vars(found)
