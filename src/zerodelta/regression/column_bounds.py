"""Columns moved to [-1, 1] by public bounds, elementwise: no row has a say in another's scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zerodelta.errors import is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.row_box import RowBox
from zerodelta.spaces import Box
from zerodelta.value import value


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
