"""The decorator of classes that only hold values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, final, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Do nothing: `typing` has it from Python 3.11 on, and only type checkers need it."""
        return lambda decorator: decorator


_T = TypeVar("_T")


@overload
def value(cls: type[_T], /) -> type[_T]: ...
@overload
def value(*, eq: bool = True, repr: bool = True) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T] | None = None, /, *, eq: bool = True, repr: bool = True) -> Any:
    """Make a final, frozen dataclass with slots, made by keywords only."""

    def made(cls: type[_T]) -> type[_T]:
        return final(dataclass(frozen=True, kw_only=True, slots=True, eq=eq, repr=repr)(cls))

    return made if cls is None else made(cls)
