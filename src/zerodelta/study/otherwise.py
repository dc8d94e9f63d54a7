"""What a study publishes when its program fails: an element, or one more than there are (C8)."""

from __future__ import annotations

from typing import Any

from zerodelta.errors import ParameterError
from zerodelta.spaces import FiniteSpace, Space, WithExtra, is_known

__all__ = ["denotes", "with_otherwise"]

_FAILED = object()
"""Denotes no element of any space."""


def denotes(value: Any, space: Space) -> bool:
    """Tell whether a value that is no hidden one denotes an element; an iterator is read once."""
    return not hasattr(type(value), "__next__") and space.denotes(value)


def with_otherwise(space: Space, otherwise: Any) -> tuple[Space, Any]:
    """Return the space, with `otherwise` as one more element if need be, and what stands in."""
    if not is_known(space):
        return space, otherwise  # the plan refuses such a space
    if otherwise is None:
        return space, space.project(_FAILED)
    if space.contains(otherwise):
        return space, space.project(otherwise)
    if isinstance(space, FiniteSpace):
        return WithExtra(space, otherwise), otherwise
    raise ParameterError(
        "otherwise",
        otherwise,
        expected=f"an element of {space!r}",
        remedy="pass a point inside, or leave it out for the center",
    )
