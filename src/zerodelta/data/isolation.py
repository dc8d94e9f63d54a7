"""Show nothing while any code looks at rows or internal answers (theory A14.4, C8).

**Warnings** (`quiet`). All threads share one list of the blocks that are entered. While it is not
empty, a filter in front of all others ignores every warning. A warning may still pass, since the
code inside may set filters, and the end of another thread's `warnings.catch_warnings` removes ours:
so the function that shows warnings is replaced too. Both replacements do nothing while no block is
entered, so that it does not matter if they are restored late or never.

**Threads and finalizers** (`silenced`). Python prints errors of threads and of `__del__` through
two hooks of the process. While a program runs, errors of finalizers and of threads started since
then are not shown; threads that outlive the program stay silenced.
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

# -- Internal answers: numbers for the program, `<internal>` for people ---------------------------
# They compute like NumPy arrays (a single number is an array without axes), and show and write
# themselves as `<internal>`. This prevents accidents only, since a Python program can get around
# it: whatever leaves a study besides the published value is outside its guarantee (theory C8, A14).

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
    """An array or a number that is shown as `<internal>`, like everything computed from it.

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
        """None, so that the plain array below is not reachable by accident."""
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
        """Compute as NumPy does; a result written into a plain array is returned as internal."""
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
    """Return the method of internal answers that stands for one of ndarray's reductions."""

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
    """Tell whether a share is an internal answer outside (0, 1], which no error may reveal."""
    number = reveal(share)
    usable = type(number) in (int, float) and 0 < number <= 1
    return type(share) is Internal and not usable


def _plain(value: Any) -> Any:
    """Return an internal answer as a plain array or number; other values unchanged."""
    if type(value) is Internal:  # isinstance would consult the value's own __class__
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
    """Show no warning of any thread inside the block, NumPy's included.

    >>> with quiet():
    ...     warnings.warn("a value says so")
    """
    token = object()
    with _lock:
        if not _inside:
            _restore()  # in case an interrupt prevented it at the end of an earlier block
            _states.append(_State())
        _inside.append(token)
        _put_in_front()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _inside.remove(token)  # first: from here on our filter and function do nothing
        with _lock:
            if not _inside:
                _restore()


class _Anything:
    """Matches every warning while a block is entered; stands where a filter has a pattern."""

    def match(self, text: str) -> bool:
        return bool(_inside)


_FILTER: Any = ("ignore", _Anything(), Warning, None, 0)


class _State:
    """The filters and the function that shows warnings, saved when the first block is entered."""

    def __init__(self) -> None:
        self.filters: Any = warnings.filters
        self.listed = [entry for entry in self.filters if entry is not _FILTER]
        self.shows = warnings.showwarning


_states: list[_State] = []
_module: Any = warnings
_show_message: Any = _module._showwarnmsg
"""The function that Python calls to show a warning; `catch_warnings` does not replace it."""


def _put_in_front() -> None:
    """Put our filter in front of the others, and replace the function that shows warnings."""
    filters: Any = warnings.filters
    if not filters or filters[0] is not _FILTER:
        filters.insert(0, _FILTER)
    _module._showwarnmsg = _show_nothing


def _restore() -> None:
    """Restore the filters and functions that were saved when the first block was entered."""
    while _states:
        state, present = _states[-1], warnings.filters
        changed = list(state.filters) != [_FILTER, *state.listed]
        state.filters[:] = state.listed
        if present is state.filters:
            warnings.showwarning = state.shows
        else:  # another thread's catch_warnings has replaced the list, and restores it itself
            _remove(present)
        _module._showwarnmsg = _show_message
        if changed:
            _forget_decisions()
        _states.pop()


def _remove(filters: Any) -> None:
    filters[:] = [entry for entry in filters if entry is not _FILTER]


def _forget_decisions() -> None:
    """Make Python apply the filters again to warnings that it has decided about."""
    mutated = getattr(_module, "_filters_mutated", None)
    if mutated is not None:
        mutated()


def _show_nothing(message: Any) -> None:
    """Show a warning only if no block is entered."""
    if not _inside:
        _show_message(message)


_hooks_lock = threading.RLock()
_running: list[frozenset[threading.Thread]] = []
"""For each program that runs now, the threads that existed before it."""
_left_behind: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""Threads that programs started and that outlived them."""
_hooks: list[tuple[Any, Any]] = []
"""The previous hooks, while ours are installed."""


@contextmanager
def silenced() -> Iterator[None]:
    """Show no error of a finalizer, or of a thread that is started in the block."""
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
        try:  # collect the program's garbage while its finalizers are still silenced
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
    """Drop the frames with their locals, the context and the arguments that an exception holds."""
    if error is None:
        return
    held = vars(BaseException)  # its own class might override these attributes
    traceback.clear_frames(held["__traceback__"].__get__(error))
    for name in ("__traceback__", "__context__", "__cause__"):
        held[name].__set__(error, None)
    held["args"].__set__(error, ())


def _times_aged() -> int:
    """Return how many collections moved objects to an older generation.

    If none did while a program ran, its objects are young, and a quick collection finds them.
    """
    return sum(generation["collections"] for generation in gc.get_stats()[1:])


def _restore_hooks() -> None:
    """Restore the previous hooks, unless silence is needed or others have replaced our hooks."""
    in_place = sys.unraisablehook is _unraisable and threading.excepthook is _thread_failed
    needed = _running or any(thread.is_alive() for thread in _left_behind)
    if in_place and not needed:
        sys.unraisablehook, threading.excepthook = _hooks.pop()


def _unraisable(raised: Any) -> None:
    """Pass an error of a finalizer to the previous hook, unless it is to be silenced."""
    with _hooks_lock:
        ignore = bool(_running) or threading.current_thread() in _left_behind
        previous_hook = _hooks[-1][0] if _hooks else sys.__unraisablehook__
    if not ignore:
        previous_hook(raised)


def _thread_failed(raised: Any) -> None:
    """Pass an error of a thread to the previous hook, unless it is to be silenced."""
    with _hooks_lock:
        started = any(raised.thread not in before for before in _running)
        ignore = started or raised.thread in _left_behind
        previous_hook = _hooks[-1][1] if _hooks else threading.__excepthook__
    if not ignore:
        previous_hook(raised)


# -- Interrupts by a person at the keyboard, as opposed to those that code raises (theory C8) -----
# A `KeyboardInterrupt` that a program or a function of rows raises may depend on the rows, so it is
# a failure like any other. Only one that arrived as a signal may leave, as a fresh exception
# without the message, traceback and locals of the stopped code. Signals reach the main thread only.

_Function = TypeVar("_Function", bound=Callable[..., Any])
_tidying: set[CodeType] = set()


def tidying(function: _Function) -> _Function:
    """Mark a function that enters or leaves a block: an interrupt inside it is only noted.

    Leaving a block may take long, since the locals of a large program are freed; Python handles a
    signal that arrived meanwhile at the next instruction, which may be one of this function.
    """
    known: Any = function
    _tidying.add(known.__code__)
    return function


@final
class Watch:
    """A block in which an interrupt that arrives as a signal is noted; blocks may be nested.

    Leaving the block raises a fresh `KeyboardInterrupt` if one arrived, even if the code inside
    caught it. Any other exception passes. Whatever the previous signal handler raises counts as an
    interrupt.

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
        """Whether an interrupt arrived as a signal in this block."""
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
        """Note interrupts without stopping the code, until `resume` or the end of the block."""
        if self._watches and not self._holds:
            self._holds = True
            Watch._held += 1

    @tidying
    def resume(self) -> None:
        """Let interrupts stop the code again; a noted one is raised at the end of the block."""
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
            if Watch._previous is not None:  # restored even if the code inside set another
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
        del kind, error, trace  # the traceback of the fresh error would show them
        if arrived:
            raise_fresh()


def quietly(function: Callable[..., Any], *arguments: Any, otherwise: Any = None) -> Any:
    """Return the result of foreign code on rows, or `otherwise` if it raises (theory A14.4).

    It may raise anything, an exit or a panic too; only a signal still interrupts.

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
    """Raise an error, by default a `KeyboardInterrupt`, without a context."""
    fresh = KeyboardInterrupt() if error is None else error
    try:
        raise fresh
    finally:
        fresh.__context__ = None


def _tidies(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code in _tidying


def _replace_handler() -> Any:
    """Install a handler that notes interrupts and calls the previous one, which is returned."""
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous):  # the signal is ignored, or ends the process
        return None

    def note(number: int, frame: FrameType | None) -> None:
        """Call the previous handler; if it raises, note the interrupt, and raise unless held."""
        try:
            previous(number, frame)
        except BaseException:  # a handler that does not raise has dealt with the signal
            Watch._arrived = True
            if not (Watch._held or _tidies(frame)):
                raise

    signal.signal(signal.SIGINT, note)
    return previous


# -- Recognizing functions of this library, whose reading of rows is proven -----------------------

_ROOMS = tuple(f"zerodelta.{room}." for room in ("tasks", "clustering", "training"))
_PLAIN = (int, float, bool, str, bytes, type(None), Fraction, np.float64, np.int64)


def is_trusted_code(value: Any) -> bool:
    """Tell whether this library wrote a function or object, and everything that it holds.

    A function must have the globals and the file of a module of our tasks; a class must be what its
    module has under its name; an object's class and attributes are checked. Numbers, texts and
    arrays of numbers run no code. Code that a caller puts into one of our modules on purpose is not
    recognized as foreign, which Python makes impossible.

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
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return all(map(is_trusted_code, [*held, *defaults]))
    if kind is np.ndarray:
        return bool(value.dtype.kind in "biufc")  # objects may be functions
    if kind in (tuple, list):
        return all(map(is_trusted_code, value))
    return kind in _PLAIN or (_is_library_class(kind) and all(map(is_trusted_code, _held(value))))


def _is_library_class(kind: type) -> bool:
    """Tell whether a module of this library has exactly this class under its name."""
    name = str(kind.__module__)
    names = _names_of(name) if name.startswith("zerodelta.") else None
    return names is not None and names.get(kind.__name__) is kind


def _held(value: Any) -> list[Any]:
    """Return the attributes of an object: a gradient or model may hold a function of the caller."""
    slots = [name for kind in type(value).__mro__ for name in _slots_of(kind)]
    held = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [*held, *getattr(value, "__dict__", {}).values()]


def _slots_of(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    return [slots] if isinstance(slots, str) else [s for s in slots if s != "__weakref__"]


def _names_of(module: str) -> dict[str, Any] | None:
    loaded = sys.modules.get(module)
    return None if loaded is None else vars(loaded)
