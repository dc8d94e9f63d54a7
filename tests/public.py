"""Public names: those of `zerodelta`, and those of its modules where a reader finds the rest."""

from __future__ import annotations

from typing import Any

import zerodelta as zd

MODULES = (zd, zd.queries, zd.purification, zd.records, zd.data)


def public(name: str) -> Any:
    """Return what a name stands for, of whichever module it is."""
    return next(getattr(module, name) for module in MODULES if hasattr(module, name))


CALLABLE = {
    name: public(name)
    for module in MODULES
    for name in module.__all__
    if callable(getattr(module, name)) and (name.islower() or module not in (zd.queries, zd.data))
}
"""Public functions; claims, spaces and what else is made by a call of a public name."""

VERBS = {name: called for name, called in CALLABLE.items() if name.islower()}
