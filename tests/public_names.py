"""What a module offers: the names it lists, or those it defines."""

from __future__ import annotations

import inspect
from types import ModuleType


def public_names(module: ModuleType) -> list[str]:
    """Return the names in `__all__`, else the functions and classes defined in that module."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    ]
