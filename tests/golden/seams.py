"""All that the golden releases take from inside the package: re-point it here, and only here.

Everything else in this folder calls public addresses.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any
from unittest.mock import patch

import zerodelta as zd
from zerodelta.channels.channel import Purifier
from zerodelta.exact import bits
from zerodelta.mechanisms.sum_noise import KNorm as NoiseOfMean
from zerodelta.spine.run import preview

__all__ = [
    "DRAWS",
    "NoiseOfMean",
    "Tape",
    "forecast",
    "mechanisms",
    "purifiers",
    "replayed",
    "spied",
]

DRAWS = frozenset({"apply", "draft", "draw", "noised", "publish", "select"})
"""What a method is called to which a mechanism is handed what it hides."""

_ROOM = "zerodelta.mechanisms."
_BITS = frozenset({"bits", "_bits", "drawn"})
_ELSEWHERE = ("audit", "cli", "coq", "interop", "lower_bounds", "report", "ui", "__main__")


class Tape:
    """The same bytes every time, however many are asked for at once."""

    _BLOCK = 1 << 12

    def __init__(self, label: str) -> None:
        self._label, self._blocks, self._rest = label.encode(), 0, b""

    def read(self, count: int) -> bytes:
        parts, missing = [self._rest], count - len(self._rest)
        while missing > 0:
            self._blocks += 1
            block = hashlib.shake_256(self._blocks.to_bytes(8, "little") + self._label)
            parts.append(block.digest(self._BLOCK))
            missing -= self._BLOCK
        whole = b"".join(parts)
        self._rest = whole[count:]
        return whole[:count]


def forecast(call: Callable[[], Any]) -> dict[str, Any]:
    """Return what is known before a row is read; nothing of what makes no release."""
    try:
        found = preview(call)
    except zd.ParameterError as error:
        if not str(error).startswith("call:"):
            raise
        return {}
    methods = dict(sorted((method.name, method.error) for method in found.methods))
    told = {"price": found.price, "error": found.error, "methods": methods}
    return told | {"error if no cell is missing": found.complete_error}


@contextmanager
def replayed(label: str) -> Iterator[None]:
    """Let the operating system's bits be the same again, in every thread."""
    tape = Tape(label)
    with patch.object(bits, "_system_bytes", tape.read):
        yield


def purifiers() -> list[str]:
    """Return the names of all channels, found by walking the package."""
    list(_modules())
    found, left = set(), [Purifier]
    while left:
        each = left.pop()
        left += each.__subclasses__()
        # tests make channels of their own
        if not inspect.isabstract(each) and each.__module__.startswith("zerodelta."):
            found.add(each.__name__)
    return sorted(found)


def _modules() -> Iterator[Any]:
    for room in pkgutil.iter_modules(zd.__path__):
        if room.name not in _ELSEWHERE:
            module = importlib.import_module(f"zerodelta.{room.name}")
            yield module
            for each in pkgutil.walk_packages(
                getattr(module, "__path__", ()), f"{module.__name__}."
            ):
                yield importlib.import_module(each.name)


@cache
def mechanisms() -> list[tuple[type, str]]:
    """Return every method by which a mechanism, or what has a certificate's step, draws bits."""
    return [
        (kind, name)
        for module in _modules()
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
        if hasattr(kind, "step") or (_ROOM in kind.__module__ and not kind.__name__.startswith("_"))
        for name, method in vars(kind).items()
        if not (name == "draw" and issubclass(kind, Purifier))  # what is mixed in, without rows
        if name in DRAWS and inspect.isfunction(method) and not inspect.isabstract(method)
        if _BITS & inspect.signature(method).parameters.keys()
    ]


@contextmanager
def spied(note: Callable[[list[Any]], None]) -> Iterator[set[str]]:
    """Tell what every mechanism is handed: of those that call one another, the innermost.

    The names of all that were asked are in the set.
    """
    asked: set[str] = set()
    calls: list[bool] = []  # one for each mechanism at work: whether it has called another

    def spy(method: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(method).parameters)

        @wraps(method)
        def spying(*args: Any, **kwargs: Any) -> Any:
            if calls:
                calls[-1] = True
            calls.append(False)
            asked.add(type(args[0]).__name__)
            # taken down before the method runs, which may change it
            handed = dict(zip(names, args, strict=False)) | kwargs
            listed = [_copied(each) for name, each in handed.items() if name not in _BITS][1:]
            try:
                return method(*args, **kwargs)
            finally:
                if not calls.pop():
                    note(listed)

        return spying

    with _patches([(kind, name, spy(vars(kind)[name])) for kind, name in mechanisms()]):
        yield asked


def _copied(handed: Any) -> Any:
    copy = getattr(handed, "copy", None)
    return handed if copy is None or inspect.isclass(handed) else copy()


@contextmanager
def _patches(made: list[tuple[type, str, Any]]) -> Iterator[None]:
    before = [(kind, name, vars(kind)[name]) for kind, name, _ in made]
    try:
        for kind, name, spy in made:
            setattr(kind, name, spy)
        yield
    finally:
        for kind, name, method in before:
            setattr(kind, name, method)
