"""Bridges: what other libraries ran or planned, as claims of this one, and pure where that works.

`interop.dp_accounting`, `interop.opendp`, `interop.opacus` and `interop.exported_models`, each for
one optional extra that is imported when a function of it is called. Whatever comes over a bridge
is caller-asserted: the noise of other libraries is theirs.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["dp_accounting", "exported_models", "opacus", "opendp"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"zerodelta.interop.{name}")
    raise AttributeError(f"module 'zerodelta.interop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
