"""Define the kinds of columns: numbers, categories, booleans and texts.

Each cell is read by itself, whatever the physical type of its column: an array of objects, a typed
array and an Arrow array of the same cells give the same result. `declare` has dates, and the
functions that callers use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, final

import numpy as np

from zerodelta.data import cells as one_cell
from zerodelta.data.arrow_cells import read_column, text_numbers
from zerodelta.data.cells import OptionIndex
from zerodelta.data.columns import as_objects
from zerodelta.errors import require
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count, number_text
from zerodelta.value import published, value

# -- The interface of a kind: public facts, and how each cell is read by itself -------------------

Bounds: TypeAlias = tuple[Fraction, Fraction]


class Kind(ABC):
    """A declared kind of column, which reads its cells to numbers, codes or texts."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The number of codes 0, 1, … of the cells; None for numbers and texts."""

    @property
    @abstractmethod
    def bounds(self) -> Bounds | None:
        """The smallest and the largest number or code, exactly; None for texts."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Any, ...] | None:
        """The option or text that each code stands for; None without codes."""

    @property
    @abstractmethod
    def declaration(self) -> dict[str, Any]:
        """The kind as in a schema file: its name with the required values, then options."""

    @abstractmethod
    def read(self, column: Any) -> Array:
        """Return the numbers, codes or texts of a column, each cell read by itself.

        `column` is a NumPy array of one dimension, a `pyarrow.Array` or a `ChunkedArray`, of any
        type; nothing raises because of a cell. The result is float64 with NaN where a cell is
        missing, and may be a read-only view of the column; for texts it holds objects, None where
        missing.
        """

    def __str__(self) -> str:
        (name, required), *options = self.declaration.items()
        listed = required if name in ("number", "date") else [required]
        shown = [] if name == "boolean" else [_short(value) for value in listed]
        return f"{name}({', '.join(shown + [f'{key}={_short(v)}' for key, v in options])})"


class Coded(Kind):
    """A kind whose cells are read to codes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of codes."""

    @property
    def bounds(self) -> Bounds:
        """The first and the last code."""
        return Fraction(0), Fraction(self.size - 1)


def _short(value: Any) -> str:
    shown = str(value) if not isinstance(value, (str, list)) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


_FARTHEST = Fraction(1 << 500)
_OTHER, _MISSING = "other", "missing"
_UNREADABLE = "mMV"
"""NumPy type codes of times and records, whose cells are missing for every kind but a date."""


@published
@value
class Number(Kind):
    """Numbers between public bounds; made by `zd.number`."""

    lower: Fraction
    upper: Fraction
    missing: Literal["skip"] | Fraction | None = "skip"
    integer: bool = False

    def __post_init__(self) -> None:
        ends, shown = self.bounds, [number_text(end) for end in self.bounds]
        require(ends[0] < ends[1], "bounds", shown, "lower < upper", "pass the lower bound first")
        require(
            max(-ends[0], ends[1]) <= _FARTHEST,
            "bounds",
            shown,
            expected="bounds of at most 2^500 in magnitude",
            remedy="rescale the column, so that sums fit into floats",
        )
        integral = not self.integer or all(end.denominator == 1 for end in ends)
        require(integral, "bounds", shown, "whole numbers", "pass whole bounds, or integer=False")
        if isinstance(self.missing, Fraction):
            inside = ends[0] <= self.missing <= ends[1]
            remedy = 'pass a number between lower and upper, or "skip"'
            require(inside, "missing", self.missing, "a number within the bounds", remedy)

    @property
    def size(self) -> None:
        """None: numbers have no codes."""

    @property
    def labels(self) -> None:
        """None: numbers have no codes."""

    @property
    def bounds(self) -> Bounds:
        """The bounds, exactly."""
        return self.lower, self.upper

    @property
    def declaration(self) -> dict[str, Any]:
        """{number = [0, 120]} and what is not the default."""
        fields: dict[str, Any] = {"number": [_number(self.lower), _number(self.upper)]}
        if self.missing != "skip":
            fields["missing"] = "none" if self.missing is None else _number(self.missing)
        return fields | ({"integer": True} if self.integer else {})

    def read(self, column: Any) -> Array:
        """Return the number of each cell, not clipped; rounded to an integer if declared so."""

        def numbers(cells: Array) -> Array:
            """Return the cells as floats; NaN for missing, unreadable and non-integer ones."""
            if cells.dtype.kind in _UNREADABLE:
                return np.full(len(cells), np.nan)
            if cells.dtype == np.float64 and not self.integer and np.isfinite(cells).all():
                return cells
            values: Array = one_cell.numbers(cells)
            return values if cells.dtype.kind in "biu" else self._rounded(values)

        return read_column(column, numbers, lambda texts: self._rounded(text_numbers(texts)))

    def filled(self, values: Array) -> Array:
        """Return the numbers with missing ones replaced as declared, by a number or the center."""
        if self.missing == "skip" or not (absent := np.isnan(values)).any():
            return values
        center = (self.lower + self.upper) / 2
        instead = float(center if self.missing is None else self.missing)
        return self._rounded(np.where(absent, instead, values))

    def _rounded(self, values: Array) -> Array:
        """Return the values, rounded to the nearest integers if the column is one of integers."""
        return np.rint(values) if self.integer else values


@published
@final
@dataclass(frozen=True, kw_only=True)
class Category(Coded):
    """Public options; made by `zd.category`.

    Codes: the options in their order, then `missing` if it is an option, then `other`.
    """

    options: tuple[str | int | float | bool, ...]
    other: bool = False
    missing: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        remedy = 'list all options, as in zd.category(["f", "m"], other=True)'
        require(self.options, "options", self.options, "one option or more", remedy)
        texts = not self.exact or all(type(option) is str for option in self.options)
        require(texts, "options", self.options, "texts", 'pass exact=False, or write "7" for 7')
        keys = [one_cell.category(option, exact=self.exact) for option in self.options]
        expected = "options other than an empty text, nan and None, which are missing cells"
        require(None not in keys, "options", self.options, expected, "pass missing=True instead")
        for extra, there in ((_OTHER, self.other), (_MISSING, self.missing)):
            require(
                not (there and extra in self.options),
                "options",
                self.options,
                expected=f"no option {extra!r}, which {extra}=True adds",
                remedy=f"remove {extra!r} from the list",
            )
        if self.exact:
            distinct = len(set(keys)) == len(keys)
            require(distinct, "options", self.options, "different texts", "remove the repeated one")
        else:
            _ = self._places  # refuses options that are read alike

    @property
    def size(self) -> int:
        """The number of options, with `missing` and `other` where declared."""
        return len(self.options) + self.missing + self.other

    @property
    def labels(self) -> tuple[Any, ...]:
        """The options, then "missing" and "other" where declared."""
        return self.options + (_MISSING,) * self.missing + (_OTHER,) * self.other

    @property
    def declaration(self) -> dict[str, Any]:
        """{category = ["a", "b"], other = true} and what is not the default."""
        flags = {"other": self.other, "missing": self.missing, "exact": self.exact}
        return {"category": list(self.options)} | {key: True for key, on in flags.items() if on}

    @cached_property
    def _places(self) -> OptionIndex:
        return OptionIndex((*self.options, None))

    @cached_property
    def _texts(self) -> dict[Any, int]:
        return {option: place for place, option in enumerate((*self.options, None))}

    @cached_property
    def _codes(self) -> Array:
        """The code for each place of `_places`: the options, a missing cell, and -1 for others."""
        other = float(self.size - 1) if self.other else np.nan
        missing = float(len(self.options)) if self.missing else other
        return np.array([*range(len(self.options)), missing, other])

    def read(self, column: Any) -> Array:
        """Return the code of each cell; a cell in no group is NaN."""

        def codes(cells: Array) -> Array:
            """Return the code of each cell's category; that of missing or other, if it has none."""
            if cells.dtype.kind in _UNREADABLE:
                return np.full(len(cells), self._codes[-2])
            if not self.exact:
                return self._codes[self._places.places(cells)]
            return self._codes[one_cell.read_all(_objects(cells), self._text_place)]

        return read_column(column, codes)

    def _text_place(self, cell: Any) -> int:
        return self._texts.get(one_cell.category(cell, exact=True), -1)


@published
@value
class Boolean(Coded):
    """False and true; made by `zd.boolean`. Codes: 0, 1 and, if it is an option, 2 for missing."""

    missing: bool = False

    @property
    def size(self) -> int:
        """2, or 3 with `missing`."""
        return 2 + self.missing

    @property
    def labels(self) -> tuple[Any, ...]:
        """False, True and, if it is an option, "missing"."""
        return (False, True) + (_MISSING,) * self.missing

    @property
    def declaration(self) -> dict[str, Any]:
        """{boolean = true} and what is not the default."""
        return {"boolean": True} | ({"missing": True} if self.missing else {})

    def read(self, column: Any) -> Array:
        """Return 0 or 1 for each cell, and 2 or NaN where it is missing."""
        codes = np.array([0.0, 1.0, 2.0 if self.missing else np.nan])

        def truths(cells: Array) -> Array:
            """Return the code of false, true or missing for each cell."""
            if cells.dtype.kind in _UNREADABLE:
                return np.full(len(cells), codes[2])
            if cells.dtype.kind in "biufc":
                values = one_cell.numbers(cells)
                return codes[np.where(values == 0, 0, np.where(values == 1, 1, 2))]
            return codes[one_cell.read_all(cells, _truth)]

        return read_column(column, truths)


@published
@value
class Text(Kind):
    """Texts of limited length, such as names and ids; made by `zd.text`."""

    length: int
    alphabet: str | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        as_count(self.length, "length", minimum=1)
        alphabet = self.alphabet
        distinct = alphabet is None or (
            type(alphabet) is str and bool(alphabet) and len(set(alphabet)) == len(alphabet)
        )
        remedy = 'pass alphabet="abcdefghijklmnopqrstuvwxyz"'
        require(distinct, "alphabet", alphabet, "a text of different characters", remedy)

    @property
    def size(self) -> None:
        """None: texts have no codes."""

    @property
    def labels(self) -> None:
        """None: texts have no codes."""

    @property
    def bounds(self) -> None:
        """None: texts are not numbers."""

    @property
    def declaration(self) -> dict[str, Any]:
        """{text = 20} (the length) and what is not the default."""
        fields: dict[str, Any] = {"text": self.length}
        fields |= {} if self.alphabet is None else {"alphabet": self.alphabet}
        return fields | ({"exact": True} if self.exact else {})

    def read(self, column: Any) -> Array:
        """Return the text of each cell; None where it is missing, too long or not allowed."""

        def texts(cells: Array) -> Array:
            """Return each cell's text, None for one that is missing or not allowed."""
            if cells.dtype.kind in _UNREADABLE:
                return as_objects([None] * len(cells))
            if cells.dtype.kind in "biu":
                distinct, places = np.unique(cells, return_inverse=True)
                return as_objects([self._text(cell) for cell in distinct])[places]
            known: list[str | None] = [None]
            place_of_text: dict[str | None, int] = {None: 0}

            def place(cell: Any) -> int:
                """Return the place of a cell's text among the distinct texts so far."""
                text = self._text(cell)
                if text not in place_of_text:
                    place_of_text[text] = len(known)
                    known.append(text)
                return place_of_text[text]

            places = one_cell.read_all(_objects(cells), place)
            return as_objects(known)[places]

        return read_column(column, texts)

    def _text(self, cell: Any) -> str | None:
        """Return the text of a cell; None if it is missing, too long or not allowed."""
        key = one_cell.category(cell, exact=self.exact)
        if key is None or type(key) is tuple:
            return None
        text = str(key)
        inside = self.alphabet is None or all(letter in self.alphabet for letter in text)
        if len(text) > self.length or not inside:
            return None
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a character
            return None
        return text


# -- cells and options ------------------------------------------------------------------------


def skips(kind: Kind) -> bool:
    """Tell whether some cells have no value of the kind: missing, or an unknown option."""
    if isinstance(kind, Number):
        return kind.missing == "skip"
    if isinstance(kind, Category):
        return not kind.other
    return not (isinstance(kind, Boolean) and kind.missing)


def _objects(cells: Array) -> Array:
    """Return the cells of numbers one by one; a float32 stays one."""
    return as_objects(list(cells)) if cells.dtype.kind in "biufc" else cells


def _truth(cell: Any) -> int:
    value = one_cell.boolean(cell)
    return 2 if value != value else int(value)


def _number(exact: Fraction) -> int | float | str:
    """Return a number for a schema file, which reads back as the same fraction."""
    if exact.denominator == 1:
        return exact.numerator
    return float(exact) if Fraction(float(exact)) == exact else str(exact)
