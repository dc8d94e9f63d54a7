"""Entries found among public options, so that no entry changes how another one is read.

NumPy and pandas convert whole columns because of one entry: integers become floats beside a NaN,
numbers and booleans become texts beside a text. So a number and a text that spells it are one, and
so are NaN and None.
"""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, final

import numpy as np

from zerodelta.data.arrays import as_float
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite

__all__ = ["Lookup", "is_plain"]

_EXACT = 1 << 53
"""Whole numbers up to here are floats."""
_MISSING = ("NAType", "NaTType")
"""What pandas has in the place of a missing entry: not equal to itself, nor to anything else."""
_PLAIN = {
    id(kind)
    for kind in (
        *(str, bytes, int, float, complex, bool, type(None), np.bool_, np.str_),
        *(np.dtype(code).type for code in np.typecodes["AllInteger"] + "efd"),
    )
}
"""By identity: a type may have a comparison or a hash of its own."""
_SHORT = (np.dtype(np.float16), np.dtype(np.float32))


@final
class Lookup:
    """Where an entry is among the options: by equality, else by the number that it is or spells.

    NaN is None. In a column of float32 or float16, an option is also what it is rounded to there.

    >>> found = Lookup(Finite(["f", 1, 2.5, "3", None]))
    >>> [found.find(value) for value in ("f", b"f", "1", "True", "2.50", 3.0, math.nan, "x")]
    [0, 0, 1, 1, 2, 3, 4, None]
    >>> Lookup(Finite([0.1]), np.dtype(np.float32)).find(np.float32(0.1))
    0
    """

    def __init__(self, space: Finite, dtype: np.dtype[Any] | None = None) -> None:
        self._space = space
        numbers: dict[int | float, int] = {}
        texts: dict[int | float, int] = {}
        for index, option in enumerate(space.options or ()):
            number = _number(option)
            if number is None:
                continue
            if not isinstance(option, str):
                numbers[number] = index
            elif number not in texts or option == str(int(number) if number % 1 == 0 else number):
                texts[number] = index  # of "01" and "1", the one that is written for 1
        if not texts.keys().isdisjoint(numbers):
            raise ParameterError(
                "options",
                sorted(texts.keys() & numbers.keys())[:10],
                expected="no number beside a text that spells it",
                remedy="use only numbers, or only texts",
            )
        self._numbers = numbers | texts
        if dtype in _SHORT:
            self._numbers = _rounded(self._numbers, dtype) | self._numbers

    @property
    def integers(self) -> dict[int, int]:
        """The places of whole numbers, which are all that a column of integers can find."""
        return {int(key): place for key, place in self._numbers.items() if key % 1 == 0}

    def find(self, value: Any) -> int | None:
        """Return the place of the option that `value` is, or None; nothing raises."""
        place = self._space.find(value)
        if place is not None:
            return place
        try:
            if isinstance(value, bytes):
                return self.find(value.decode())
            if _is_nan(value):
                return self._first("nan", None)  # NumPy writes NaN like that beside a text
            number = _number(value)
        except KeyboardInterrupt:  # the person at the keyboard, not the data
            raise
        except BaseException:  # whatever a value does, it must not become an output
            return None
        if number is None:
            return None
        if self._space.options is None:
            return self._space.find(number)
        return self._numbers.get(number)

    def _first(self, *options: str | None) -> int | None:
        places = map(self._space.find, options)
        return next((place for place in places if place is not None), None)


def is_plain(value: Any) -> bool:
    """Tell whether equality is Python's own: such an entry stands for all that are equal to it."""
    return id(type(value)) in _PLAIN


def _rounded(places: dict[int | float, int], dtype: Any) -> dict[int | float, int]:
    with np.errstate(all="ignore"):  # an option may be too large for the type
        short = {float(dtype.type(as_float(key))): place for key, place in places.items()}
    return {key: place for key, place in short.items() if math.isfinite(key)}


def _is_nan(value: Any) -> bool:
    if type(value).__name__ in _MISSING:
        return True
    return value == "nan" if isinstance(value, str) else bool(_is_number(value) and value != value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (Number, np.generic))


def _number(value: Any) -> int | float | None:
    """Return the number that a value is or that a text spells, exactly if it is whole."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if not isinstance(value, str) and not _is_number(value):
        return None
    number = as_float(value)
    if math.isnan(number):
        return None
    return _whole(value, number) if isinstance(value, str) and abs(number) >= _EXACT else number


def _whole(text: str, number: float) -> int | float:
    try:
        return int(text)
    except ValueError:
        return number
