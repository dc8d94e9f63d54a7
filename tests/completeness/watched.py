"""What is asked of samplers while something runs, whoever asks and by whatever name."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any
from unittest.mock import patch

from completeness.walk import modules, samplers

Answer = Callable[["Draw"], Any]


@dataclass(frozen=True)
class Draw:
    """One call of a sampler, with all of its numbers by name; no bits."""

    sampler: Any
    numbers: dict[str, Any]

    def __str__(self) -> str:
        told = {name: each for name, each in self.numbers.items() if name in _TOLD}
        return f"{self.sampler.__name__}({', '.join(f'{n}={v}' for n, v in told.items())})"


_TOLD = {"scale", "scale_squared", "variance", "rate", "up", "down", "degrees", "norm"} | {
    *("dimension", "size", "noise_norm", "centered"),
}


@contextmanager
def watched(answer: Answer | None = None, also: Iterable[ModuleType] = ()) -> Iterator[list[Draw]]:
    """Note all draws, those that samplers make of each other left out.

    With an `answer` nothing is drawn: it takes the place of what the sampler returns. `also` are
    modules outside of the package that call samplers.
    """
    seen: list[Draw] = []
    inner = threading.local()

    def watching(sampler: Any, call: Any) -> Any:
        signature = inspect.signature(call)

        @functools.wraps(call)
        def asked(*args: Any, **kwargs: Any) -> Any:
            if getattr(inner, "busy", False):
                return call(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            numbers = {name: v for name, v in bound.arguments.items() if name not in _UNTOLD}
            seen.append(Draw(sampler, numbers))
            if answer is not None and not inspect.isclass(sampler):
                return answer(seen[-1])
            inner.busy = True
            try:
                return call(*args, **kwargs)
            finally:
                inner.busy = False

        return asked

    with ExitStack() as stack:
        for holder, name, sampler in _places():
            call = vars(holder)[name]
            stack.enter_context(patch.object(holder, name, watching(sampler, call)))
        for module in also:
            for name, sampler in _held(module, _functions()):
                stack.enter_context(patch.object(module, name, watching(sampler, sampler)))
        yield seen


_UNTOLD = {"bits", "self"}


def _functions() -> dict[int, Any]:
    return {id(sampler): sampler for sampler in _samplers() if not inspect.isclass(sampler)}


@cache
def _samplers() -> tuple[Any, ...]:
    return tuple(samplers())


@cache
def _modules() -> tuple[ModuleType, ...]:
    return tuple(modules())


def _places() -> list[tuple[Any, str, Any]]:
    """Return where a sampler is called from: names of the package's modules, and constructors."""
    functions = _functions()
    found = [
        (module, name, sampler)
        for module in _modules()
        for name, sampler in _held(module, functions)
    ]
    return found + [
        (sampler, "__init__", sampler)
        for sampler in _samplers()
        if inspect.isclass(sampler) and "bits" in inspect.signature(sampler).parameters
    ]


def _held(module: ModuleType, functions: dict[int, Any]) -> list[tuple[str, Any]]:
    return [
        (name, functions[id(value)])
        for name, value in vars(module).items()
        if id(value) in functions
    ]
