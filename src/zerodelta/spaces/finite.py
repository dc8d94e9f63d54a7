"""A finite set of public options, or the indices 0..size-1 (theory B1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.errors import ParameterError, is_list
from zerodelta.exact.rational import as_count, number_text
from zerodelta.spaces.reading import read_integer, read_number
from zerodelta.spaces.space import FiniteSpace, named_numbers

Option: TypeAlias = str | int | float | bool | tuple[Any, ...] | None
"""What can be written into a certificate and read back; tuples hold options again."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Finite(FiniteSpace):
    """The indices 0..size-1, or a list of distinct options: the space of a choice.

    A finite number counts as the nearest index, or as the nearest option where all options are
    numbers; whatever else is no element (NaN, an infinity, None, an unknown option) as element 0.

    Parameters
    ----------
    size_or_options : int or list
        The number of elements, or the elements; public, never read off the data.

    Examples
    --------
    >>> space = Finite(16)
    >>> space.project(7.6), space.project(99), space.project("3"), space.size
    (8, 15, 0, 16)
    >>> Finite(["ridge", "lasso"]).index("lasso"), Finite([0.1, 1.0, 10.0]).project(0.8)
    (1, 1.0)

    """

    _size: int
    options: tuple[Option, ...] | None
    _indices: dict[Option, int] = field(compare=False)

    def __init__(self, size_or_options: int | Iterable[Option]) -> None:
        options = None
        if isinstance(size_or_options, (int, np.integer)):
            size = as_count(size_or_options, "size", minimum=1)
        else:
            options = _checked_options(size_or_options)
            size = len(options)
        object.__setattr__(self, "_size", size)
        object.__setattr__(self, "options", options)
        indices = {option: index for index, option in enumerate(options or ())}
        object.__setattr__(self, "_indices", indices)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._size

    def find(self, value: object) -> int | None:
        """Return the number of the element that `value` is, or None if it is none."""
        if self.options is None:
            number = read_integer(value)
            return number if number is not None and 0 <= number < self._size else None
        try:
            option: Any = value[()] if isinstance(value, np.ndarray) else value
            return self._indices.get(option)
        except BaseException:  # an unhashable object, or one that raises when compared
            return None

    def nearest(self, value: object) -> int | None:
        """Return the number of the element that `value` is or, if a number, lies nearest to.

        None if it is neither. Of two elements at the same distance it is the even index, or the
        option that is listed first.
        """
        found = self.find(value)
        if found is not None:
            return found
        number = read_number(value)
        if number is None:
            return None
        if self.options is None:
            return min(max(round(number), 0), self._size - 1)
        return _nearest_option(number, self.options)

    def index(self, value: object) -> int:
        """Return the number of the nearest element, 0 for a value that denotes nothing."""
        return self.nearest(value) or 0

    def element(self, index: int) -> Option:
        """Return the option, or the index itself, of a number 0..size-1."""
        index = checked_index(index, self._size)
        return index if self.options is None else self.options[index]

    def project(self, value: object) -> Option:
        """Return the nearest element, element 0 for a value that denotes nothing."""
        return self.element(self.index(value))

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is an element, or a number where numbers have a nearest one."""
        return self.nearest(value) is not None

    def contains(self, value: object) -> bool:
        """Tell whether `value` is an element."""
        return self.find(value) is not None

    def describe(self) -> dict[str, Any]:
        """Return the size, or the options.

        >>> Finite(["a", 2, (True, None)]).describe()
        {'kind': 'finite', 'of': ['a', 2, ['tuple', ['bool', 1], ['none']]]}
        """
        return {"kind": "finite", "of": self.described_options()}

    def described_options(self) -> int | list[Any]:
        """Return the size, or the options as integers, strings and tagged lists."""
        return self._size if self.options is None else [plain_option(item) for item in self.options]

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Finite:
        """Return the space of a description."""
        (given,) = named_numbers(numbers, "finite", ("of",))
        return cls.from_described_options(given)

    @classmethod
    def from_described_options(cls, given: int | list[Any]) -> Finite:
        """Invert `described_options`."""
        return cls(map(read_option, given) if isinstance(given, list) else given)

    def __repr__(self) -> str:
        if self.options is None:
            return f"Finite({number_text(self._size)})"
        shown = ", ".join(map(repr, self.options[:5]))
        return f"Finite([{shown}{', ...' if self._size > 5 else ''}])"


def checked_index(index: int, size: int) -> int:
    """Return `index` as an int, refusing what is not in 0..size-1."""
    if as_count(index, "index") >= size:
        raise ParameterError(
            "index", index, expected="a number below the size", remedy="number elements from 0"
        )
    return int(index)


def _checked_options(given: Iterable[Option]) -> tuple[Option, ...]:
    if not is_list(given):
        raise ParameterError(
            "options",
            given,
            expected="a size, or a list of options in a fixed order",
            remedy="pass Finite(16) or Finite(['a', 'b'])",
        )
    options = tuple(checked_option(option) for option in given)
    if not options:
        raise ParameterError("options", given, expected="at least one", remedy="list the options")
    if len(set(options)) < len(options):
        raise ParameterError(
            "options",
            given,
            expected="distinct options (1, 1.0 and True are equal)",
            remedy="remove the duplicates",
        )
    return options


def _nearest_option(number: int | Fraction, options: tuple[Option, ...]) -> int | None:
    """Return the place of the nearest finite option, if all options are numbers."""
    if not all(type(option) in (int, float) for option in options):
        return None
    exact = [(place, read_number(option)) for place, option in enumerate(options)]
    distances = [(abs(option - number), place) for place, option in exact if option is not None]
    return min(distances)[1] if distances else None


def checked_option(option: Any) -> Option:
    """Return an option as a plain Python value, refusing what a certificate cannot carry."""
    if isinstance(option, np.generic):
        option = option.item()
    if type(option) is tuple:
        return tuple(checked_option(part) for part in option)
    if type(option) not in (str, int, float, bool, type(None)) or option != option:
        raise ParameterError(
            "option",
            option,
            expected="a string, a number, a boolean, None, or a tuple of these",
            remedy="publish the position instead: Finite(len(options))",
        )
    return option  # type: ignore[no-any-return]


def plain_option(option: Option) -> int | str | list[Any]:
    """Write an option so that its type survives JSON and a proof step."""
    if isinstance(option, bool):
        return ["bool", int(option)]
    if isinstance(option, float):
        return ["float", option.hex() if math.isfinite(option) else str(option)]
    if option is None:
        return ["none"]
    if isinstance(option, tuple):
        return ["tuple", *map(plain_option, option)]
    return option


def read_option(given: Any) -> Option:
    """Read what `plain_option` wrote."""
    match given:
        case bool():
            pass
        case int() | str():
            return given
        case ["bool", 0 | 1 as flag]:
            return bool(flag)
        case ["float", str(text)]:
            try:
                return float.fromhex(text)
            except (ValueError, OverflowError):
                pass
        case ["none"]:
            return None
        case ["tuple", *parts]:
            return tuple(map(read_option, parts))
    raise ParameterError(
        "option", given, expected="an option as describe() writes it", remedy="use describe()"
    )
