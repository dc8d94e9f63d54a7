"""Declared columns as features, scaled by their bounds, in rows of a public largest length.

Everything follows from the schema, which is public, and each row is encoded by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.arrays import ArrayReader
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Boolean, Category, Kind, Number, Text
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.objective import Expected
from zerodelta.spaces import Box
from zerodelta.spine.plan import Facts
from zerodelta.value import value

# -- How long scaled rows may be: the length of a corner, or a shorter one that clips rows --------
# A public choice. Shorter rows need less noise, but rows in a corner of their bounds that are
# clipped lose their size, so forecasts are those of rows in a corner: a quarter of each column's
# bounds, at an end.

_HALF = 0.5
"""The shorter length, as a part of the way from the middle of the bounds to a corner: of
`bench/defaults_classifiers.py`, which tells 0.8 from the rest, but not 0.3 to 0.6 from each other.
Of these, 1/2 clips fewer rows than smaller ones."""

_NUMBER = 1 / 48
"""The variance of a number in [-1, 1] that fills a quarter of its bounds."""

_CATEGORY = 1 / 4
"""The mean squared distance of a category, a 1 among zeros, if one in seven has another than most:
1 - p² - (1 - p)² at p = 6/7."""


@value
class RowBox:
    """Rows of so many numbers in [-1, 1], and of so many categories, one 1 among zeros each."""

    numbers: int
    categories: int = 0

    @property
    def corner(self) -> float:
        """The length of a row whose numbers are all at a bound: no row is longer.

        A category adds 1 to the square whatever its options.
        """
        return math.sqrt(self.numbers + self.categories)

    @property
    def half_way(self) -> float:
        """The length of a row half of the way from the middle to a corner; categories count fully.

        Of one to three numbers on a face, which clips no row that differs from the middle in one.
        """
        return math.sqrt(self.categories + min(self.numbers, max(1.0, _HALF**2 * self.numbers)))

    def reach(self, radius: Fraction) -> float:
        """Return the length of a row whose numbers are so far on the way to a corner."""
        return math.sqrt(self.categories + float(radius) ** 2 * self.numbers)

    def kept(self, norm: float) -> float:
        """Return which part of what the size of rows in a corner tells is left within `norm`."""
        if norm >= self.corner or not self.numbers:
            return 1.0
        return size_kept(math.sqrt(max(0.0, norm**2 - self.categories) / self.numbers))

    def expected(self, norm: float, typical: Expected) -> Expected:
        """Return what is expected of rows that fill a quarter of their bounds, scaled to `norm`."""
        spread = math.sqrt(_NUMBER * self.numbers + _CATEGORY * self.categories)
        length = Fraction(max(min(1.0, spread / norm), 1e-3))
        return typical.given(row_length=length, signal=typical.signal)

    def worst(self, norm: float, *, error: float, blind: float) -> float:
        """Return the forecast for rows in a corner: `error` unclipped, `blind` if nothing is known.

        Rows may differ in nothing but their size.

        >>> box = RowBox(numbers=4)
        >>> [box.worst(norm, error=0.1, blind=0.3) for norm in (2.0, 1.0)]
        [0.1, 0.3]
        """
        kept = self.kept(norm)
        return kept * error + (1 - kept) * blind

    def best(self, error: Callable[[float], float], *, blind: float) -> float:
        """Return the length with the smaller worst forecast, of equal ones the corner.

        So rows are clipped only where next to nothing could be learned of whole ones.
        """
        return min(
            (self.corner, self.half_way),
            key=lambda norm: self.worst(norm, error=error(norm), blind=blind),
        )


def size_kept(reach: float) -> float:
    """Return the squared correlation of t, even on [1/2, 1], with min(t, reach).

    >>> [round(size_kept(reach), 2) for reach in (0.4, 0.5, 0.75, 1)]
    [0.0, 0.0, 0.8, 1.0]
    """
    u = min(1.0, max(0.0, 2 * reach - 1))
    return u * (3 - 2 * u) ** 2 / (4 - 3 * u)


def variance_kept(reach: float) -> float:
    """Return the variance of min(t, reach), t even on [1/2, 1]: all of 1/48 at 1.

    >>> [round(48 * variance_kept(reach), 2) for reach in (0.5, 0.75, 1)]
    [0.0, 0.31, 1.0]
    """
    u = min(1.0, max(0.0, 2 * reach - 1))
    return u**3 * (4 - 3 * u) / 48


def as_radius(radius: Rational) -> Fraction:
    """Return a part of the distance from the middle of the bounds to a corner."""
    part = as_rational(radius, "radius")
    require(
        Fraction(1, 10**6) <= part <= 1,
        "radius",
        radius,
        expected="a part of the distance from the middle to a corner, 1e-6 to 1",
        remedy="pass radius=1 to clip no row, or leave it out",
    )
    return part


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


def unit_encoding(rows: Any, intercept: Any) -> Encoding | None:
    """Return how the columns of a data set become features in [-1, 1]; None for other rows."""
    if not isinstance(rows, Dataset):
        return None
    return Encoding.of(rows.kinds).to_unit(centered=as_flag(intercept, "intercept"))


def too_large(
    facts: Facts, encoding: Encoding | None, width: int, method: str, *, holds: str, other: str
) -> bool:
    """Tell whether the rows of a data set are too many for the method that holds them all.

    If it is that method that was asked for it is refused.
    """
    large = encoding is not None and not facts.may_hold(8 * width)
    require(
        not (large and method == holds),
        "method",
        method,
        expected="one that reads rows one after another: all of them together need "
        f"{facts.planned_rows} · {width} numbers in memory",
        remedy=f'pass method="auto" or "{other}"',
    )
    return large


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


# -- Column bounds --------------------------------------------------------------------------------
# Columns moved to [-1, 1] by public bounds, elementwise: no row has a say in another's scale.


@value(eq=False)
class ColumnBounds:
    """The middle and half the width of each column.

    >>> from types import SimpleNamespace
    >>> given = SimpleNamespace(n_features_in_=2, feature_names_in_=["age", "change"])
    >>> bounds = ColumnBounds.of_columns({"change": (-5, 5), "age": (0, 10)}, given)
    >>> bounds.scaled(np.array([[0.0, 2.5], [99.0, np.nan]])).tolist()
    [[-1.0, 0.5], [1.0, nan]]
    """

    lower: Floats
    upper: Floats

    @staticmethod
    def of_columns(bounds: Any, estimator: Any) -> ColumnBounds:
        """Read (lower, upper), each a number or one for each column, or pairs by column names."""
        names = getattr(estimator, "feature_names_in_", None)
        if isinstance(bounds, Mapping) and names is not None:
            bounds = _by_name(bounds, list(names))
        require(
            not isinstance(bounds, Mapping),
            "bounds",
            bounds,
            expected="a pair (lower, upper), since these columns have no names",
            remedy="pass a data frame, or bounds=([0, -5], [1, 5]) column by column",
        )
        require(
            _is_pair(bounds),
            "bounds",
            bounds,
            expected="a public pair (lower, upper)",
            remedy="pass bounds=(0, 1), or ([0, -5], [1, 5]) column by column: what values can "
            "be, not what they are",
        )
        columns = estimator.n_features_in_
        box = Box(bounds[0], bounds[1], dimension=columns)
        lower, upper = (np.broadcast_to(end.floats(), columns) for end in (box.lower, box.upper))
        return ColumnBounds(lower=lower.copy(), upper=upper.copy())

    @staticmethod
    def declared(bounds: Any, encoding: Encoding) -> ColumnBounds:
        """Return the bounds of the encoded columns of a data set, which has them declared."""
        require(
            bounds is None,
            "bounds",
            bounds,
            expected="None for a data set, which has them declared",
            remedy='declare them: zd.open(…, columns={"age": zd.number(0, 120)})',
        )
        lower, upper = encoding.bounds
        return ColumnBounds(lower=lower, upper=upper)

    @property
    def middle(self) -> Floats:
        """The middle of each column."""
        return self.lower / 2 + self.upper / 2

    @property
    def half(self) -> Floats:
        """Half the width of each column."""
        return self.upper / 2 - self.lower / 2

    @property
    def box(self) -> RowBox:
        """What is public of the length of scaled rows."""
        return RowBox(numbers=len(self.lower))

    def around_zero(self) -> ColumnBounds:
        """Return the narrowest bounds with these inside and 0 in the middle."""
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        return ColumnBounds(lower=-reach, upper=reach)

    def clipped(self, rows: Floats) -> Floats:
        """Return the rows inside the bounds; NaN stays NaN."""
        return np.clip(rows, self.lower, self.upper)

    def scaled(self, rows: Floats, *, centered: bool = True) -> Floats:
        """Return the rows in [-1, 1], what was beyond the bounds at an end; NaN stays NaN.

        From the middle of the bounds or, for lines through the origin, from 0 (`around_zero`).
        """
        scale = self if centered else self.around_zero()
        scaled: Floats = (self.clipped(rows) - scale.middle) / scale.half
        return np.clip(scaled, -1.0, 1.0)  # a quotient may round to more

    def in_units(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return lines for rows scaled from the middle in the units of the data."""
        slopes = coefficients / self.half
        return slopes, intercept - np.array([math.fsum(line * self.middle) for line in slopes])


def _by_name(bounds: Mapping[Any, Any], names: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the lower and the upper ends in the order of the columns."""
    missing = [name for name in names if name not in bounds]
    extra = [name for name in bounds if name not in names]
    wrong = [f"no bounds for {missing}"] * bool(missing) + [f"no columns {extra}"] * bool(extra)
    require(
        not wrong,
        "bounds",
        bounds,
        expected="one pair (lower, upper) for each column, by its name",
        remedy=f"there are {' and '.join(wrong)}: name each column once",
    )
    for name, pair in bounds.items():
        require(
            _is_pair(pair),
            "bounds",
            {name: pair},
            expected="a public pair (lower, upper)",
            remedy=f"pass bounds={{{name!r}: (0, 1), ...}}: what values can be",
        )
    return [bounds[name][0] for name in names], [bounds[name][1] for name in names]


def _is_pair(bounds: Any) -> bool:
    return isinstance(bounds, (tuple, list, np.ndarray)) and is_list(bounds) and len(bounds) == 2
