"""Encode declared columns as features, scaled by their bounds, in rows of a public largest length.

The encoding follows from the schema, which is public, and each row is encoded by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.arrays import array_reader
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Boolean, Category, Kind, Number, Text
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.regression.objective import Expected
from zerodelta.spaces import Box
from zerodelta.value import published, value

# -- The public bound on the length of scaled rows ------------------------------------------------
# The bound is the length of a corner, or a shorter one that clips rows. Shorter rows need less
# noise, but rows in a corner that are clipped lose the part of the signal that is in their size.
# So forecasts are for rows in a corner: in the last quarter of each column's bounds.

_HALF = 0.5
"""The shorter bound, as a part of the distance from the middle of the bounds to a corner. In
`bench/defaults_classifiers.py` 0.3 to 0.6 do about equally well, and better than 0.8. Of these, 1/2
clips fewer rows than smaller ones."""

_NUMBER_VARIANCE = 1 / 48
"""The variance of a number in [-1, 1] that fills a quarter of its bounds."""

_CATEGORY_VARIANCE = 1 / 4
"""The mean squared distance of a one-hot category from its mean, if one row in seven differs from
the most frequent option: 1 - p² - (1 - p)² at p = 6/7."""


@value
class RowBox:
    """The box of rows with `numbers` in [-1, 1] and `categories` encoded one-hot."""

    numbers: int
    categories: int = 0

    @property
    def corner(self) -> float:
        """The length of a row whose numbers are all at a bound: no row is longer.

        A category adds 1 to the square, for any number of options.
        """
        return math.sqrt(self.numbers + self.categories)

    @property
    def half_way(self) -> float:
        """The length of a row half of the way from the middle to a corner, with all its categories.

        Its numbers have length at least 1, so that no row is clipped whose only number away from
        the middle is at a bound.
        """
        return math.sqrt(self.categories + min(self.numbers, max(1.0, _HALF**2 * self.numbers)))

    def reach(self, radius: Fraction) -> float:
        """Return the length of a row whose numbers reach the part `radius` of a corner."""
        return math.sqrt(self.categories + float(radius) ** 2 * self.numbers)

    def kept(self, norm: float) -> float:
        """Return the part of the information in the size of rows in a corner kept within `norm`."""
        if norm >= self.corner or not self.numbers:
            return 1.0
        return size_kept(math.sqrt(max(0.0, norm**2 - self.categories) / self.numbers))

    def expected(self, norm: float, typical: Expected) -> Expected:
        """Return `typical` for rows that fill a quarter of their bounds, scaled to `norm`."""
        spread = math.sqrt(_NUMBER_VARIANCE * self.numbers + _CATEGORY_VARIANCE * self.categories)
        length = Fraction(max(min(1.0, spread / norm), 1e-3))
        return typical.updated(row_length=length, signal=typical.signal)

    def worst(self, norm: float, *, error: float, blind: float) -> float:
        """Return the forecast for rows in a corner, between `error` and `blind`.

        `error` is that of unclipped rows, `blind` that of a model that has learned nothing: rows
        may differ in their size alone, which clipping removes.

        >>> box = RowBox(numbers=4)
        >>> [box.worst(norm, error=0.1, blind=0.3) for norm in (2.0, 1.0)]
        [0.1, 0.3]
        """
        kept = self.kept(norm)
        return kept * error + (1 - kept) * blind

    def best(self, error: Callable[[float], float], *, blind: float) -> float:
        """Return the length with the smaller worst forecast; if equal, that of the corner.

        So rows are clipped only where almost nothing could be learned from unclipped rows.
        """
        return min(
            (self.corner, self.half_way),
            key=lambda norm: self.worst(norm, error=error(norm), blind=blind),
        )


def size_kept(reach: float) -> float:
    """Return the squared correlation of t, uniform on [1/2, 1], with min(t, reach).

    >>> [round(size_kept(reach), 2) for reach in (0.4, 0.5, 0.75, 1)]
    [0.0, 0.0, 0.8, 1.0]
    """
    u = min(1.0, max(0.0, 2 * reach - 1))
    return u * (3 - 2 * u) ** 2 / (4 - 3 * u)


def variance_kept(reach: float) -> float:
    """Return the variance of min(t, reach), t uniform on [1/2, 1]; at reach = 1 it is 1/48.

    >>> [round(48 * variance_kept(reach), 2) for reach in (0.5, 0.75, 1)]
    [0.0, 0.31, 1.0]
    """
    u = min(1.0, max(0.0, 2 * reach - 1))
    return u**3 * (4 - 3 * u) / 48


def as_radius(radius: Rational) -> Fraction:
    """Check `radius`, a part of the distance from the middle of the bounds to a corner."""
    part = as_rational(radius, "radius")
    require(
        Fraction(1, 10**6) <= part <= 1,
        "radius",
        radius,
        expected="a part of the distance from the middle to a corner, 1e-6 to 1",
        remedy="pass radius=1 to clip no row, or omit radius for the default",
    )
    return part


_BATCH = 1 << 16


@published
@value(eq=False)
class Encoding:
    """Encode declared columns, in their order, as numeric ones.

    A number, a date (its code) and a boolean (0 or 1) are one column. A category, or a boolean that
    has "missing" as an option, is one-hot: a column for each label. With `scaled` numbers are
    clipped and scaled to [-1, 1] by their bounds: from the middle of the bounds if `centered`, else
    from 0, for lines through the origin.

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
            remedy="drop the text columns, or declare them as zd.category([...], other=True)",
        )
        return Encoding(columns=tuple(kinds), kinds=tuple(kinds.values()))

    def to_unit(self, *, centered: bool) -> Encoding:
        """Return the encoding with numbers in [-1, 1]."""
        return replace(self, scaled=True, centered=centered)

    # -- public numbers of the encoded columns ------------------------------------------------

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
        """The public box of scaled rows."""
        categories = sum(map(_one_hot, self.kinds))
        return RowBox(numbers=len(self.kinds) - categories, categories=categories)

    @property
    def scale(self) -> tuple[Floats, Floats]:
        """The number subtracted from each encoded column, and the divisor after that."""
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
        """Return the encoded columns of a block of a data set; NaN for missing cells.

        Only elementwise operations are used, so that a row's numbers do not depend on other rows.
        """
        encoded, place = np.empty((len(block), self.width)), 0
        middle, half = self.scale
        for column, kind in zip(block.T, self.kinds, strict=True):
            if _one_hot(kind):
                width = _width(kind)
                part = encoded[:, place : place + width]
                np.equal(column[:, None], np.arange(width), out=part, casting="unsafe")
                part[np.isnan(column)] = np.nan
                place += width
                continue
            low, high = map(float, _ends(kind))
            target = encoded[:, place]
            np.clip(column, low, high, out=target)
            if self.scaled:
                target -= middle[place]
                target /= half[place]
                np.clip(target, -1.0, 1.0, out=target)  # a quotient may round to more than 1
            place += 1
        return encoded

    def in_units(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Convert coefficients and intercepts of scaled columns to the units of the data."""
        middle, half = self.scale
        slopes = coefficients / half
        return slopes, intercept - np.array([math.fsum(line * middle) for line in slopes])

    def read(self, rows: Any) -> Floats:
        """Return the encoded columns, in the units of the data, of rows to predict.

        Predictions show these rows. They are a frame with the declared columns, or an array or list
        with exactly these columns, in their order. A missing number is replaced by the middle of
        its bounds, a missing category by zeros for all options.
        """
        if isinstance(rows, Dataset):
            raise ParameterError(
                "X",
                "a data set",
                expected="rows that may be public: predictions reveal them, and no certificate "
                "covers that",
                remedy="pass a data frame or an array with the columns of the fit",
            )
        reader = array_reader(rows)
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
                columns = [
                    _read(kind, cells) for kind, cells in zip(self.kinds, batch, strict=True)
                ]
                parts.append(plain(np.stack(columns, axis=1)))
        table = np.concatenate(parts)
        lower, upper = self.bounds
        one_hot = np.repeat([_one_hot(kind) for kind in self.kinds], list(map(_width, self.kinds)))
        defaults = np.where(one_hot, 0.0, lower / 2 + upper / 2)
        return np.where(np.isnan(table), defaults, table)


def _one_hot(kind: Kind) -> bool:
    """Return whether a column of this kind is encoded one-hot."""
    return isinstance(kind, Category) or (isinstance(kind, Boolean) and kind.missing)


def _width(kind: Kind) -> int:
    """Return the number of encoded columns of a kind."""
    return len(kind.labels or ()) if _one_hot(kind) else 1


def _ends(kind: Kind) -> tuple[Fraction, Fraction]:
    """Return the bounds of a numeric kind; a boolean has 0 and 1."""
    return kind.bounds or (Fraction(0), Fraction(1))


def _read(kind: Kind, cells: Any) -> Floats:
    """Read cells to predict, with missing numbers filled in."""
    values: Floats = kind.read(cells)
    return kind.filled(values) if isinstance(kind, Number) else values


def _numbered(count: int) -> tuple[str, ...]:
    """Return the names "0", "1", … of columns without names."""
    return tuple(map(str, range(count)))


# -- Column bounds --------------------------------------------------------------------------------
# Columns are scaled to [-1, 1] by public bounds, elementwise: no row affects another's scale.


@published
@value(eq=False)
class ColumnBounds:
    """The lower and the upper bound of each column.

    >>> from types import SimpleNamespace
    >>> frame = SimpleNamespace(n_features_in_=2, feature_names_in_=["age", "change"])
    >>> bounds = ColumnBounds.of_columns({"change": (-5, 5), "age": (0, 10)}, frame)
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
            remedy="pass bounds=(0, 1), or ([0, -5], [1, 5]) column by column: the range that "
            "values can have, not the range that they have in the data",
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
        """The public box of scaled rows."""
        return RowBox(numbers=len(self.lower))

    def around_zero(self) -> ColumnBounds:
        """Return the narrowest bounds that contain these and are centered at 0."""
        largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
        return ColumnBounds(lower=-largest, upper=largest)

    def clipped(self, rows: Floats) -> Floats:
        """Return the rows inside the bounds; NaN stays NaN."""
        return np.clip(rows, self.lower, self.upper)

    def scaled(self, rows: Floats, *, centered: bool = True) -> Floats:
        """Clip rows to the bounds and scale them to [-1, 1]; NaN stays NaN.

        The middle of the bounds becomes 0. With ``centered=False``, for lines through the origin,
        0 stays 0 (`around_zero`).
        """
        scale = self if centered else self.around_zero()
        scaled: Floats = (self.clipped(rows) - scale.middle) / scale.half
        return np.clip(scaled, -1.0, 1.0)  # a quotient may round to more than 1

    def in_units(self, coefficients: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Convert coefficients and intercepts of scaled columns to the units of the data."""
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
            remedy=f"pass bounds={{{name!r}: (0, 1), ...}}: the range that values can have",
        )
    return [bounds[name][0] for name in names], [bounds[name][1] for name in names]


def _is_pair(bounds: Any) -> bool:
    return isinstance(bounds, (tuple, list, np.ndarray)) and is_list(bounds) and len(bounds) == 2
