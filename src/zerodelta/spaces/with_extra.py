"""A finite space and one more element, such as "none": what a failed program publishes (C8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from zerodelta.errors import ParameterError
from zerodelta.spaces.finite import (
    Finite,
    Option,
    checked_index,
    checked_option,
    plain_option,
    read_option,
)
from zerodelta.spaces.space import FiniteSpace, named_numbers


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class WithExtra(FiniteSpace):
    """The elements of a finite space, and behind them one that is not among them.

    Values are read as the space reads them; only the extra element itself denotes the extra one.

    **Public**: the space and the extra element.

    >>> space = WithExtra(Finite(16), "none")
    >>> space.size, space.project(7.6), space.project("none"), space.denotes("else")
    (17, 8, 'none', False)
    """

    base: FiniteSpace
    extra: Option
    _extras: Finite = field(compare=False)

    def __init__(self, base: FiniteSpace, extra: Option) -> None:
        from zerodelta.spaces.from_numbers import is_known  # which knows this space too

        option = checked_option(extra)
        if not isinstance(base, FiniteSpace) or not is_known(base) or base.contains(option):
            raise ParameterError(
                "extra",
                extra,
                expected="an element that the finite space does not have",
                remedy="name it differently",
            )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "extra", option)
        object.__setattr__(self, "_extras", Finite([option]))

    @property
    def size(self) -> int:
        """The number of elements, one more than the space has."""
        return self.base.size + 1

    def _is_extra(self, value: object) -> bool:
        return self._extras.find(value) is not None

    def index(self, value: object) -> int:
        """Return the number of ``project(value)``; the extra element is the last one."""
        return self.base.size if self._is_extra(value) else self.base.index(value)

    def element(self, index: int) -> Any:
        """Return the element of a number 0..size-1."""
        number = checked_index(index, self.size)
        return self.extra if number == self.base.size else self.base.element(number)

    def project(self, value: object) -> Any:
        """Return the extra element if `value` is that, else what the space makes of it."""
        return self.extra if self._is_extra(value) else self.base.project(value)

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is the extra element, or denotes one of the space."""
        return self._is_extra(value) or self.base.denotes(value)

    def contains(self, value: object) -> bool:
        """Tell whether `value` is the extra element, or one of the space."""
        return self._is_extra(value) or self.base.contains(value)

    def describe(self) -> dict[str, Any]:
        """Return the space as a list of names and values, and the extra element.

        >>> WithExtra(Finite(3), None).describe()
        {'kind': 'with-extra', 'of': [['kind', 'finite'], ['of', 3]], 'extra': ['none']}
        """
        described = [list(pair) for pair in self.base.describe().items()]
        return {"kind": "with-extra", "of": described, "extra": plain_option(self.extra)}

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> WithExtra:
        """Return the space of a description."""
        from zerodelta.spaces.from_numbers import space_from_numbers  # which knows this space too

        described, extra = named_numbers(numbers, "with-extra", ("of", "extra"))
        try:
            base = space_from_numbers(dict(described))
        except (TypeError, ValueError) as error:
            raise ParameterError(
                "of", described, expected="a finite space", remedy="use describe() unchanged"
            ) from error
        return cls(base, read_option(extra))  # type: ignore[arg-type]  # refused if not finite

    def __repr__(self) -> str:
        return f"{self.base!r} or {self.extra!r}"
