"""Provide `@value`, of classes that only hold values, and `@published`, of those in releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, final, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Return the decorator unchanged: only type checkers need `dataclass_transform`."""
        return lambda decorator: decorator


_T = TypeVar("_T")


@overload
def value(cls: type[_T], /) -> type[_T]: ...
@overload
def value(*, eq: bool = True, repr: bool = True) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T] | None = None, /, *, eq: bool = True, repr: bool = True) -> Any:
    """Make a class a final, frozen dataclass with slots, constructed by keywords only."""

    def decorate(cls: type[_T]) -> type[_T]:
        return final(dataclass(frozen=True, kw_only=True, slots=True, eq=eq, repr=repr)(cls))

    return decorate if cls is None else decorate(cls)


PUBLISHED: dict[str, Callable[..., Any]] = {}
"""The classes that a released value may contain, by name, as far as they are imported."""

_C = TypeVar("_C", bound=type)


def published(cls: _C) -> _C:
    """Register a class of this package that a released value may contain.

    A saved release names it, and only classes registered here are made when a file is read. So it
    stores what it is given, and does nothing else. It stands above all other decorators.
    """
    known = PUBLISHED.get(cls.__name__, cls)
    if not cls.__module__.startswith("zerodelta.") or known.__module__ != cls.__module__:
        raise TypeError(f"{cls.__name__}: classes of zerodelta are published, under one name each.")
    PUBLISHED[cls.__name__] = cls  # a module that is imported again defines it again
    return cls
