"""Declared columns as features: numbers by their bounds, categories as one column for each option.

Everything follows from the schema, which is public, and each row is encoded by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.array_reader import ArrayReader
from zerodelta.data.dataset import Dataset
from zerodelta.data.kind import Kind
from zerodelta.data.kinds import Boolean, Category, Number, Text
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats
from zerodelta.regression.row_box import RowBox
from zerodelta.value import value

_BATCH = 1 << 16


@value(eq=False)
class Encoding:
    """The encoded columns of declared ones, in their order.

    A number, a date (its code) and a boolean (0 or 1) are one column; a category, or a boolean that
    has "missing" as an option, one column for each of its labels, which is 1 for it and 0 else.
    With `scaled` numbers are clipped and scaled to [-1, 1] by their bounds; `centered`: from the
    middle of the bounds, else from 0, for lines through the origin.

    >>> from zerodelta.data.declare import category, number
    >>> encoding = Encoding.of({"age": number(0, 100), "city": category(["oslo", "rome"])})
    >>> encoding.names, encoding(np.array([[25.0, 1.0], [50.0, np.nan]])).tolist()
    (('age', 'city=oslo', 'city=rome'), [[25.0, 0.0, 1.0], [50.0, nan, nan]])
    """

    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    scaled: bool = False
    centered: bool = True

    @staticmethod
    def of(kinds: Mapping[str, Kind]) -> Encoding:
        """Return the encoding of declared columns; texts are refused."""
        texts = [name for name, kind in kinds.items() if isinstance(kind, Text)]
        require(
            not texts,
            "columns",
            texts,
            expected="numbers, categories, booleans or dates as features",
            remedy="leave out texts, or declare them as zd.category([...], other=True)",
        )
        return Encoding(columns=tuple(kinds), kinds=tuple(kinds.values()))

    def to_unit(self, *, centered: bool) -> Encoding:
        """Return the encoding with numbers in [-1, 1]."""
        return replace(self, scaled=True, centered=centered)

    # -- what is public of the encoded columns ------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the encoded columns, such as "age" and "city=oslo"."""
        return tuple(
            name if label is None else f"{name}={label}"
            for name, kind in zip(self.columns, self.kinds, strict=True)
            for label in (kind.labels or () if _one_hot(kind) else (None,))
        )

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return sum(_width(kind) for kind in self.kinds)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The lower and the upper ends of the encoded columns, in the units of the data."""
        ends = [
            (0.0, 1.0) if _one_hot(kind) else tuple(map(float, _ends(kind)))
            for kind in self.kinds
            for _ in range(_width(kind))
        ]
        lower, upper = np.array(ends).T
        return lower, upper

    @property
    def box(self) -> RowBox:
        """What is public of the length of scaled rows."""
        categories = sum(map(_one_hot, self.kinds))
        return RowBox(numbers=len(self.kinds) - categories, categories=categories)

    @property
    def scale(self) -> tuple[Floats, Floats]:
        """What is subtracted from an encoded column, and what it is divided by then."""
        middle, half = np.zeros(self.width), np.ones(self.width)
        if not self.scaled:
            return middle, half
        place = 0
        for kind in self.kinds:
            if not _one_hot(kind):
                low, high = _ends(kind)
                if self.centered:
                    middle[place] = float((low + high) / 2)
                reach = (high - low) / 2 if self.centered else max(abs(low), abs(high))
                half[place] = float(reach) or 1.0  # a date with one value
            place += _width(kind)
        return middle, half

    # -- rows ---------------------------------------------------------------------------------

    def __call__(self, block: Floats) -> Floats:
        """Return the encoded columns of rows as a data set yields them; NaN where one is missing.

        Only operations that round each entry by itself are used.
        """
        found, place = np.empty((len(block), self.width)), 0
        middle, half = self.scale
        for column, kind in zip(block.T, self.kinds, strict=True):
            if _one_hot(kind):
                width = _width(kind)
                part = found[:, place : place + width]
                np.equal(column[:, None], np.arange(width), out=part, casting="unsafe")
                part[np.isnan(column)] = np.nan
                place += width
                continue
            low, high = map(float, _ends(kind))
            into = found[:, place]
            np.clip(column, low, high, out=into)
            if self.scaled:
                into -= middle[place]
                into /= half[place]
                np.clip(into, -1.0, 1.0, out=into)  # a quotient may round to more
            place += 1
        return found

    def in_units(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts for encoded columns in the units of the data."""
        middle, half = self.scale
        slopes = coefficients / half
        return slopes, intercept - np.array([math.fsum(line * middle) for line in slopes])

    def read(self, rows: Any) -> Floats:
        """Return the encoded columns, in the units of the data, of rows to predict.

        These are not private: a frame with the declared columns, or an array or list with just
        these, in their order. A missing number is the middle of its bounds, a missing category is
        none of the options.
        """
        if isinstance(rows, Dataset):
            raise ParameterError(
                "X",
                "a data set",
                expected="rows that may be seen: predictions show them, and no certificate covers "
                "that",
                remedy="pass a data frame or an array with the columns of the fit",
            )
        reader = ArrayReader(rows)
        names = reader.names
        if isinstance(rows, (np.ndarray, list, tuple)) and names == _numbered(len(names)):
            count = len(self.columns)
            require(
                len(names) == count,
                "X",
                f"{len(names)} columns",
                expected=f"the {count} columns of the fit, {list(self.columns)[:10]}",
                remedy="pass them in this order, or a data frame that names them",
            )
            chosen = names
        else:
            chosen = self.columns
        plain = replace(self, scaled=False)
        parts = [np.empty((0, self.width))]
        for part in reader.parts(chosen, batch=_BATCH):
            for batch in part():
                read = [_read(kind, cells) for kind, cells in zip(self.kinds, batch, strict=True)]
                parts.append(plain(np.stack(read, axis=1)))
        table = np.concatenate(parts)
        lower, upper = self.bounds
        one_hot = np.repeat([_one_hot(kind) for kind in self.kinds], list(map(_width, self.kinds)))
        instead = np.where(one_hot, 0.0, lower / 2 + upper / 2)
        return np.where(np.isnan(table), instead, table)


def _one_hot(kind: Kind) -> bool:
    return isinstance(kind, Category) or (isinstance(kind, Boolean) and kind.missing)


def _width(kind: Kind) -> int:
    return len(kind.labels or ()) if _one_hot(kind) else 1


def _ends(kind: Kind) -> tuple[Fraction, Fraction]:
    return kind.bounds or (Fraction(0), Fraction(1))


def _read(kind: Kind, cells: Any) -> Floats:
    values: Floats = kind.read(cells)
    return kind.filled(values) if isinstance(kind, Number) else values


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))
