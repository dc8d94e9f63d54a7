"""Which functions are this library's own, so that what they make of rows is proven."""

from __future__ import annotations

import sys
from fractions import Fraction
from types import FunctionType, MethodType
from typing import Any

import numpy as np

_ROOMS = tuple(f"zerodelta.{room}." for room in ("tasks", "clustering", "training"))
_PLAIN = (int, float, bool, str, bytes, type(None), Fraction, np.float64, np.int64)


def is_written_here(value: Any) -> bool:
    """Tell whether a function is one of our tasks', and so is everything that it holds.

    Functions are told by the module whose names they see, classes by being what their module calls
    by that name, objects by both and by what they hold; numbers, texts and arrays do nothing by
    themselves. Code that is put into a module
    of ours on purpose cannot be told from ours: nothing in Python can.

    >>> from zerodelta.training.tanh_network import TanhNetwork
    >>> is_written_here(TanhNetwork(lower=(0,), upper=(1,))), is_written_here(lambda rows: rows)
    (True, False)
    """
    kind = type(value)
    if kind is MethodType:
        return is_written_here(value.__func__) and is_written_here(value.__self__)
    if kind is FunctionType:
        name = str(value.__globals__.get("__name__"))
        names = _names_of(name) if name.startswith(_ROOMS) else None
        if names is None or value.__globals__ is not names:
            return False
        if value.__code__.co_filename != names.get("__file__"):
            return False
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        given = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return all(map(is_written_here, [*held, *given]))
    if kind is np.ndarray:
        return bool(value.dtype.kind in "biufc")  # objects may be functions
    if kind in (tuple, list):
        return all(map(is_written_here, value))
    return kind in _PLAIN or (_is_class_of_ours(kind) and all(map(is_written_here, _held(value))))


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
