"""What a study publishes when its program fails: an element, or one more than there are (C8)."""

from __future__ import annotations

from typing import Any

from zerodelta.errors import ParameterError
from zerodelta.spaces import FiniteSpace, Space, WithExtra

__all__ = ["FAILED", "with_otherwise"]

FAILED = object()
"""Denotes no element of any space."""


def with_otherwise(space: Space, otherwise: Any) -> tuple[Space, Any]:
    """Return the space, with `otherwise` as one more element if need be, and what stands in."""
    if not isinstance(space, Space):
        return space, otherwise  # the plan refuses such a space
    if otherwise is None:
        return space, space.project(FAILED)
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
