"""Read one cell by itself to its declared kind: a number, a boolean, or one of public options.

The reading of a cell never depends on another cell, nor on the type that a library gave to its
column: reading a typed array equals reading its cells one by one. Only plain types
are read, recognized by identity, so that no code of a cell ever runs: `str` and `bytes` (UTF-8),
`bool`, `int`, `float`, `complex` with no imaginary part, `Decimal`, `Fraction`, `UUID` (its text),
and NumPy's own texts, integers, floats and booleans. Dates, times, subclasses and all other objects
are missing.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Array
from zerodelta.spaces import Finite

Key: TypeAlias = int | float | str | tuple[Any, ...] | None
"""The value by which categories are compared: an integer, a float, a text, or a tuple of these.

None is a missing cell.
"""

LARGEST = sys.float_info.max
"""The value of an infinity or a number too large for float64; bounds clip it like any other."""

_NUMBER = re.compile(r" *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
_INTEGER = re.compile(r" *([+-]?)([0-9]+) *")
# In these patterns no part can begin with a character that continues the part before, so that
# matching never backtracks for long.
_TRUTHS = {"true": 1, "false": 0}
_ANSWERS = {"yes": 1.0, "no": 0.0}
_NO_CATEGORY = frozenset({"", "nan", "NaN", "null", "NULL", "None"})
_MOST_INTEGER_DIGITS = 600
"""Longer integers are compared as texts: Python may refuse to convert them (at least 640)."""
_SMALL_BITS = 1 << 10
_MOST_DIGITS = 30_000
"""An integer with more digits is missing, since comparing it takes long."""
_DEEPEST_TUPLE = 8
_FRACTION = (vars(Fraction)["_numerator"], vars(Fraction)["_denominator"])
_UUID = vars(UUID)["int"]
"""The slots in which Python keeps the numbers of a fraction and of a UUID.

Reading them runs no code of a cell, but a caller may have stored other objects there.
"""
_EXACT_FLOATS = float(1 << 53)
_BLOCK = 1 << 16
_CELLS_IN_CACHE = 1 << 14


# -- numbers ----------------------------------------------------------------------------------


def number(cell: Any) -> float:
    """Return the float64 nearest to the number that a cell is or spells; NaN if it is missing.

    A text spells a number with ASCII digits, at most one dot, an optional sign and exponent, and
    spaces around it; `true` and `false`, in any case, are 1 and 0. Nothing else is a number: not
    "1_000", "0x10", "1,5", "inf" or "nan". An infinity, or a number too large, is `LARGEST`.

    >>> [number(cell) for cell in (" 1.50 ", "1e-3", True, b"TRUE", "1_000", "inf", None)]
    [1.5, 0.001, 1.0, 1.0, nan, nan, nan]
    >>> number("1e400") == number(-(10**400)) * -1 == number(math.inf) == LARGEST
    True
    """
    read = _NUMBERS.get(id(type(cell)))
    return math.nan if read is None else read(cell)


def numbers(cells: npt.NDArray[Any], out: npt.NDArray[np.float64] | None = None) -> Any:
    """Return `number` of each cell of an array, as float64 in the array's shape.

    >>> numbers(np.array([[1.5, np.inf]]))[0, 0], numbers(np.array(["1.5", "x"], dtype=object))
    (np.float64(1.5), array([1.5, nan]))
    """
    values = np.empty(cells.shape) if out is None else out
    kind = cells.dtype.kind
    with np.errstate(all="ignore"):  # a value never warns
        if kind == "c":
            cells, kind = np.where(cells.imag == 0, cells.real, np.nan), "f"
        if kind == "f":
            for start in range(0, len(cells), _CELLS_IN_CACHE):
                part = values[start : start + _CELLS_IN_CACHE]
                part[...] = cells[start : start + _CELLS_IN_CACHE]
                part *= 1.0  # a signaling NaN becomes a quiet one
                np.clip(part, -LARGEST, LARGEST, out=part)  # NaN stays NaN
        elif kind in "biu":
            values[...] = cells
        else:
            values[...] = _read_numbers(cells.reshape(-1)).reshape(cells.shape)
    return values


def _read_numbers(cells: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return `number` of each cell of an array of texts or objects, by blocks of one type."""
    result = np.empty(len(cells))
    spelled = _ReadTexts(_text_number)
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK].tolist()
        types = _types(cells, block)
        read: Any
        if types <= _FLOAT_OR_NONE:
            read = numbers(np.array(block, dtype=np.float64))  # None is NaN
        elif types == _ONLY_TEXT:
            read = np.fromiter(spelled.read_texts(block), dtype=np.float64, count=len(block))
        else:
            read = [number(cell) for cell in block]
        result[start : start + len(block)] = read
    return result


class _ReadTexts(dict[str, Any]):
    """A cache of the values of texts, so that each distinct text is read once."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> Any:
        value = self[text] = self._read(text)
        return value

    def read_texts(self, texts: list[str]) -> Iterator[Any]:
        if len(self) > _BLOCK:
            self.clear()
        return map(self.__getitem__, texts)


def _types(cells: npt.NDArray[Any], block: list[Any]) -> set[int]:
    """Return the identities of the types of cells; an array of texts has only one."""
    return _ONLY_TEXT if cells.dtype.kind == "U" else set(map(id, map(type, block)))


def _clipped(value: float) -> float:
    """Return a float clipped to the finite floats; NaN stays NaN."""
    if value != value:
        return math.nan  # a quiet one
    return LARGEST if value > LARGEST else -LARGEST if value < -LARGEST else value


def _text_number(text: str) -> float:
    """Return the number that a text spells; NaN if it spells none."""
    if _NUMBER.fullmatch(text):
        return _clipped(float(text))
    truth = _TRUTHS.get(text.strip(" ").lower())
    return math.nan if truth is None else float(truth)


def _bytes_number(cell: bytes) -> float:
    text = text_of(cell)
    return math.nan if text is None else _text_number(text)


def _integer_number(cell: Any) -> float:
    """Return an integer cell as a float; one beyond all floats is the largest of its sign."""
    integer = int(cell)
    try:
        return float(integer)
    except OverflowError:
        return LARGEST if integer > 0 else -LARGEST


def _float_number(cell: Any) -> float:
    return _clipped(float(cell))


def _extended_number(cell: Any) -> float:
    with np.errstate(all="ignore"):
        return _clipped(float(cell))


def _complex_number(cell: Any) -> float:
    return _clipped(float(cell.real)) if cell.imag == 0 else math.nan


def _decimal_number(cell: Decimal) -> float:
    return math.nan if cell.is_nan() else _clipped(float(cell))


def _fraction_number(cell: Fraction) -> float:
    return _clipped(_quotient(*_parts(cell)))


def _parts(cell: Fraction) -> tuple[int, int]:
    """Return the numerator and the denominator; 0 and 0 if the fraction stores other objects.

    Only the types of the stored objects are looked at, so none of their code runs.
    """
    try:
        top, bottom = (slot.__get__(cell) for slot in _FRACTION)
    except AttributeError:
        return 0, 0
    valid = type(top) is int and type(bottom) is int and bottom > 0
    return (top, bottom) if valid else (0, 0)


def _quotient(top: int, bottom: int) -> float:
    """Return the quotient as a float; NaN for 0/0, an infinity where it is too large."""
    if bottom == 0:
        return math.nan
    try:
        return top / bottom
    except OverflowError:
        return math.inf if top > 0 else -math.inf


# -- categories -------------------------------------------------------------------------------


def category(cell: Any, *, exact: bool = False) -> Key:
    """Return the key by which a cell is compared as a category; None if it is missing.

    The key of a text is the text. The key of a number, or of a text that spells one, is that
    number: integers exactly, other numbers as float64, a float32 or float16 by its own shortest
    decimal. True, and the text true in any case, is 1, false is 0. The texts "", "nan", "null" and
    "None" are missing, and so is an integer of more than 30 000 digits. With ``exact=True`` only
    texts are compared, "01" is not "1", and a number is the text that Python writes for it.

    >>> [category(cell) for cell in ("a", "01", 1.0, "TRUE", "0.10", np.float32(0.1), 1e22)]
    ['a', 1, 1, 1, 0.1, 0.1, 10000000000000000000000]
    >>> category("nan"), category(None), category("01", exact=True), category(7, exact=True)
    (None, None, '01', '7')
    """
    if exact:
        return _exact_key(cell)
    read = _KEYS.get(id(type(cell)))
    return None if read is None else read(cell)


def read_all(cells: npt.NDArray[Any], place: Callable[[Any], int]) -> npt.NDArray[np.int64]:
    """Return `place` of each cell of an array of texts or objects, called once for equal texts."""
    result = np.empty(len(cells), dtype=np.int64)
    known = _ReadTexts(place)
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK].tolist()
        texts = _types(cells, block) == _ONLY_TEXT
        places = known.read_texts(block) if texts else map(place, block)
        result[start : start + len(block)] = np.fromiter(places, dtype=np.int64, count=len(block))
    return result


def is_readable(cell: Any) -> bool:
    """Tell whether cells of this type are read; a public option must have such a type."""
    if type(cell) is tuple:
        return all(map(is_readable, cell))
    return cell is None or id(type(cell)) in _KEYS


def _float_key(cell: Any) -> Key:
    """Return the key of a float: an integer where it is one, else the float; None for NaN."""
    value = float(cell)
    if value != value:
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if abs(value) < _EXACT_FLOATS:
        integer = int(value)
        return integer if integer == value else value
    return int(Decimal(repr(value)))  # an integer: the shortest decimal with all its digits


def _short_key(cell: Any) -> Key:
    """Return the key of a float16 or float32, by its own shortest decimal."""
    return _float_key(float(np.format_float_scientific(cell)))


def _extended_key(cell: Any) -> Key:
    with np.errstate(all="ignore"):
        return _float_key(float(cell))


def _integer_key(cell: Any) -> Key:
    """Return an integer as its key; as a text if it is long, None if it is too long."""
    integer = int(cell)
    if integer.bit_length() < _SMALL_BITS or abs(integer) < _TOO_LONG:
        return integer
    if abs(integer) >= _FAR_TOO_LONG:
        return None
    return f"{'-' if integer < 0 else ''}{_digits(abs(integer))}"


_TOO_LONG, _FAR_TOO_LONG = 10**_MOST_INTEGER_DIGITS, 10**_MOST_DIGITS


def _digits(integer: int) -> str:
    """Return all digits of an integer, more than Python may convert at once."""
    if integer < _TOO_LONG:
        return str(integer)
    half = integer.bit_length() * 30103 // 200000
    high, low = divmod(integer, 10**half)
    return _digits(high) + _digits(low).zfill(half)


def _text_key(text: str) -> Key:
    """Return the key of a text: the number or boolean that it spells, None, or the text."""
    if (match := _INTEGER.fullmatch(text)) is not None:
        sign, digits = match[1], match[2].lstrip("0") or "0"
        if len(digits) <= _MOST_INTEGER_DIGITS:
            return int(sign + digits)
        return None if len(digits) > _MOST_DIGITS else f"{'-' if sign == '-' else ''}{digits}"
    if _NUMBER.fullmatch(text):
        return _float_key(float(text))
    truth = _TRUTHS.get(text.strip(" ").lower())
    if truth is not None:
        return truth
    return None if text in _NO_CATEGORY else text


def _bytes_key(cell: bytes) -> Key:
    text = text_of(cell)
    return None if text is None else _text_key(text)


def _complex_key(cell: Any) -> Key:
    return category(cell.real) if cell.imag == 0 else None


def _decimal_key(cell: Decimal) -> Key:
    if not cell.is_finite():
        return None if cell.is_nan() else _float_key(float(cell))
    return _text_key(str(cell))


def _fraction_key(cell: Fraction) -> Key:
    top, bottom = _parts(cell)
    return _integer_key(top) if bottom == 1 else _float_key(_quotient(top, bottom))


def _uuid_key(cell: UUID) -> Key:
    """Return the text of a UUID; None if it stores something else than its number."""
    try:
        number = _UUID.__get__(cell)
    except AttributeError:
        return None
    return str(UUID(int=number)) if type(number) is int and 0 <= number < 1 << 128 else None


def _tuple_key(cell: tuple[Any, ...], depth: int = _DEEPEST_TUPLE) -> Key:
    """Return the tuple of the keys of a tuple's cells; None if it is nested too deeply."""
    if depth == 0:
        return None
    return tuple(
        _tuple_key(part, depth - 1) if type(part) is tuple else category(part) for part in cell
    )


def _exact_key(cell: Any) -> Key:
    """Return the text of a cell for ``exact=True``; None if it is missing."""
    if id(type(cell)) in _BYTES:
        cell = text_of(cell)
    if id(type(cell)) in _TEXTS:
        return None if cell in _NO_CATEGORY else str(cell)
    if id(type(cell)) in _SHORT:
        cell = float(np.format_float_scientific(cell))
    if id(type(cell)) not in _WRITTEN:
        return None
    if type(cell) is UUID:
        return _uuid_key(cell)
    item = cell.item() if isinstance(cell, np.generic) else cell
    if type(item) is int:
        return str(item) if abs(item) < _TOO_LONG else _integer_key(item)
    return None if item != item else str(item)


def text_of(cell: bytes) -> str | None:
    """Return the text that these bytes encode in UTF-8; None if they are invalid."""
    try:
        return bytes(cell).decode()
    except UnicodeDecodeError:
        return None


# -- booleans ---------------------------------------------------------------------------------


def boolean(cell: Any) -> float:
    """Return 1.0 or 0.0; NaN if the cell is missing.

    true, yes, false and no in any case, and any number equal to 1 or 0, are booleans.

    >>> [boolean(cell) for cell in (True, "YES", "1.0", 0, "no", 2, "x", None)]
    [1.0, 1.0, 1.0, 0.0, 0.0, nan, nan, nan]
    """
    value = number(cell)
    if value in (0.0, 1.0):
        return abs(value)
    if id(type(cell)) in _BYTES:
        cell = text_of(cell)
    if id(type(cell)) in _TEXTS:
        return _ANSWERS.get(cell.strip(" ").lower(), math.nan)
    return math.nan


# -- the types that are read ------------------------------------------------------------------


def _ids(*types: type) -> frozenset[int]:
    """Return the identities of types: a type may define its own comparison or hash."""
    return frozenset(map(id, types))


_INTEGERS = tuple({np.dtype(code).type for code in np.typecodes["AllInteger"]})
_COMPLEX = (complex, np.complex64, np.complex128)
_TEXTS, _BYTES = _ids(str, np.str_), _ids(bytes, np.bytes_)
_WRITTEN = _ids(UUID, bool, int, float, np.bool_, np.float64, *_INTEGERS)
_SHORT = _ids(np.float16, np.float32)
_ONLY_TEXT = set(_ids(str))
_FLOAT_OR_NONE = set(_ids(float, type(None)))

_KINDS: list[tuple[tuple[type, ...], Callable[[Any], float], Callable[[Any], Key]]] = [
    ((str, np.str_), _text_number, _text_key),
    ((bytes, np.bytes_), _bytes_number, _bytes_key),
    ((bool, int, np.bool_, *_INTEGERS), _integer_number, _integer_key),
    ((float, np.float64), _float_number, _float_key),
    ((np.float16, np.float32), _float_number, _short_key),
    ((np.longdouble,), _extended_number, _extended_key),
    ((*_COMPLEX, np.clongdouble), _complex_number, _complex_key),
    ((Decimal,), _decimal_number, _decimal_key),
    ((Fraction,), _fraction_number, _fraction_key),
    ((UUID,), lambda _: math.nan, _uuid_key),
]
_NUMBERS = {id(kind): read for kinds, read, _ in _KINDS for kind in kinds}
_KEYS = {id(kind): key for kinds, _, key in _KINDS for kind in kinds} | {id(tuple): _tuple_key}


# -- The place of each cell among public options, whatever the type of its column -----------------
# Two options with the same key are refused, since a cell would be both of them.

Places: TypeAlias = npt.NDArray[np.int64]

_LARGEST_DENSE_RANGE = 1 << 20
"""Options that are integers within a range of this size are looked up in a table."""
_INTEGERS_BELOW = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
"""By the size of a float in bytes: whole numbers below this are their own shortest decimals."""


@final
class OptionIndex:
    """Finds the place of a cell among public options, comparing it as a `category`.

    A missing cell is the option None (or "", "nan", "null"), if there is one.

    >>> index = OptionIndex(["f", 1, 2.5, None])
    >>> [index.find(cell) for cell in ("f", b"f", "1.0", "True", "2.50", np.float32(2.5), "nan")]
    [0, 0, 1, 1, 2, 2, 3]
    >>> index.places(np.array([1, 7])), OptionIndex(3).places(np.array([2.0, 3.0, np.nan]))
    (array([ 1, -1]), array([ 2, -1, -1]))
    """

    def __init__(self, options: int | Sequence[Any] | Finite, name: str = "options") -> None:
        listed_or_size = options.options if isinstance(options, Finite) else options
        if isinstance(options, Finite) and listed_or_size is None:
            listed_or_size = options.size
        self._size = listed_or_size if isinstance(listed_or_size, int) else None
        listed = (
            ()
            if listed_or_size is None or isinstance(listed_or_size, int)
            else tuple(listed_or_size)
        )
        self._index = _checked_keys(listed, name)
        self._missing = self._index.get(None, -1)
        self._integers: _PlaceTable | None = None
        self._short: dict[type, tuple[Array, Places]] = {}

    def find(self, cell: Any) -> int | None:
        """Return the place of a cell's option; None if it is not one of the options."""
        place = self._place(cell)
        return None if place < 0 else place

    def places(self, cells: Array) -> Places:
        """Return the place of each cell of a one-dimensional array, -1 where `find` returns None.

        Arrays of numbers are compared all at once.
        """
        kind = cells.dtype.kind
        if kind in "biu":
            return self._integer_places(cells)
        with np.errstate(all="ignore"):
            if kind == "c":
                cells, kind = np.where(cells.imag == 0, cells.real, np.nan), "f"
            if kind == "f":
                short = cells.dtype.itemsize <= 8
                return self._floats(cells if short else cells.astype(np.float64))
        return read_all(cells, self._place)

    def _place(self, cell: Any) -> int:
        """Return the place of a cell's option, -1 if there is none."""
        key = category(cell)
        if self._size is None:
            return self._index.get(key, -1)
        return key if type(key) is int and 0 <= key < self._size else -1

    def _integer_places(self, cells: Array) -> Places:
        """Return the place of the option each integer or boolean equals, -1 if none."""
        unsigned = cells.dtype == np.uint64
        integers = cells if unsigned else cells.astype(np.int64, copy=False)
        if self._size is not None:
            known = integers.view(np.uint64) < np.uint64(
                min(self._size, 1 << 63)
            )  # negative: beyond
            return np.where(known, integers, -1).astype(np.int64, copy=False)
        if unsigned:
            integers = np.where(integers < 1 << 63, integers, 0).view(np.int64)
        if self._integers is None:
            self._integers = _PlaceTable(self._index)
        places = self._integers.places(integers)
        if unsigned and (beyond := cells >= 1 << 63).any():
            places[beyond] = [self._place(cell) for cell in cells[beyond]]
        return places

    def _floats(self, cells: Array) -> Places:
        """Return the place of the option each float equals, -1 if none, and that of NaN."""
        if self._size is not None:
            limit = min(self._size, _INTEGERS_BELOW[cells.dtype.itemsize])
            known = (cells >= 0) & (cells < limit) & (cells == np.floor(cells))
            result = np.where(known, cells, -1).astype(np.int64)
            if self._size > limit:
                larger = (cells >= limit) & (cells <= float(self._size) * 2)
                result[larger] = [self._place(cell) for cell in cells[larger]]
            return result
        result = np.full(len(cells), -1, dtype=np.int64)
        kind = cells.dtype.type
        if kind not in self._short:
            self._short[kind] = _floats_read_as(self._index, kind)
        options, places = self._short[kind]
        if len(options):
            nearest = np.minimum(np.searchsorted(options, cells), len(options) - 1)
            result = np.where(options[nearest] == cells, places[nearest], result)
        if self._missing >= 0:
            result[np.isnan(cells)] = self._missing
        return result


@final
class _PlaceTable:
    """Finds the places of 64-bit integers among the options."""

    def __init__(self, index: dict[Key, int]) -> None:
        keys = sorted(k for k in index if type(k) is int and -(1 << 63) <= k < 1 << 63)
        self._keys = np.array(keys, dtype=np.int64)
        self._places = np.array([index[key] for key in keys], dtype=np.int64)
        self._dense: Places | None = None
        if keys and keys[-1] - keys[0] < max(_LARGEST_DENSE_RANGE, 16 * len(keys)):
            self._dense = np.full(keys[-1] - keys[0] + 2, -1, dtype=np.int64)  # the last: none
            self._dense[self._keys - keys[0]] = self._places

    def places(self, cells: npt.NDArray[np.int64]) -> Places:
        """Return the place of each integer cell's option by table or by search, -1 if none."""
        if not len(self._keys):
            return np.full(len(cells), -1, dtype=np.int64)
        if self._dense is not None:
            shifted = (cells - self._keys[0]).view(np.uint64)  # wraps around beyond any key
            places: Places = self._dense[np.minimum(shifted, np.uint64(len(self._dense) - 1))]
            return places
        nearest = np.minimum(np.searchsorted(self._keys, cells), len(self._keys) - 1)
        return np.where(self._keys[nearest] == cells, self._places[nearest], -1)


def _floats_read_as(index: dict[Key, int], kind: type) -> tuple[Array, Places]:
    """Return the floats of a type that are read as one of the options, in rising order.

    A float's shortest decimal is rounded to that float again, so an option has at most one.
    """
    pairs: dict[float, tuple[Any, int]] = {}
    with np.errstate(all="ignore"):
        for key, place in index.items():
            if type(key) is int or type(key) is float or key in ("inf", "-inf"):
                near = kind(_as_float(key))
                around = (near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf)))
                for option in around:  # rounding twice, first to float64, may miss by one float
                    if category(option) == key:
                        pairs[float(option)] = (option, place)
    ordered = [pairs[value] for value in sorted(pairs)]
    options: Array = np.array([option for option, _ in ordered], dtype=kind)
    return options, np.array([place for _, place in ordered], dtype=np.int64)


def _as_float(key: Any) -> float:
    try:
        return float(key)
    except OverflowError:
        return np.inf if key > 0 else -np.inf


def _checked_keys(options: Sequence[Any], name: str) -> dict[Key, int]:
    """Return the place of each option by its key, refusing unreadable and repeated options."""
    index: dict[Key, int] = {}
    for place, option in enumerate(options):
        if not is_readable(option):
            raise ParameterError(
                name,
                type(option),
                expected="options that are texts, numbers, booleans or None",
                remedy="name the options by texts or numbers",
            )
        first = index.setdefault(category(option), place)
        if first != place:
            raise ParameterError(
                name,
                [options[first], option],
                expected='different options: 1, "1.0", "01" and "true" are the same option, and so '
                'are "", "nan" and None',
                remedy="leave one of them out, or rename it",
            )
    return index
