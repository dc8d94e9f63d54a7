"""Use the mechanisms of other libraries: read their claims, and remove δ from their results.

`interop.dp_accounting`, `interop.opendp`, `interop.opacus` and `interop.exported_models` each need
one optional extra, which is imported when one of their functions is called. Claims from other
libraries are caller-asserted: zerodelta did not draw their noise.
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
