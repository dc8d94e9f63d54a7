"""What a fit makes of a row that is too long or beyond its bounds, and a prediction does, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.regression.integer_rows import STEPS
from zerodelta.value import value


@value(eq=False)
class RowLimits:
    """Rows are clipped to `bounds`, then to a ball: (row - middle)/half has length <= `norm`.

    None for a bound that does not exist.

    Coefficients were learned of such rows, so scores of rows that were left as they are would be
    those of another model. Rows inside stay as they are, to the last bit.

    >>> one = np.ones(2)
    >>> limits = RowLimits(middle=one, half=2 * one, norm=Fraction(1))
    >>> limits(np.array([[1.0, 2.5], [1.0, 9.0], [np.nan, 9.0]])).tolist()
    [[1.0, 2.5], [1.0, 3.0], [nan, nan]]
    """

    middle: Floats
    half: Floats
    norm: Fraction | None
    bounds: ColumnBounds | None = None

    def __call__(self, rows: Floats) -> Floats:
        """Return the rows within; one with a NaN has no others then."""
        rows = rows if self.bounds is None else self.bounds.clipped(rows)
        if self.norm is None:
            return rows
        with np.errstate(all="ignore"):
            scaled = (rows - self.middle) / self.half
            inside = np.einsum("ij,ij->i", scaled, scaled) <= float(self.norm) ** 2
        if inside.all():
            return rows
        ball = FixedPoint.ball(dimension=rows.shape[1], bound=self.norm, steps=STEPS)
        found = np.array(rows, dtype=np.float64)
        cut = ball.quantize(scaled[~inside]) * float(self.norm / STEPS)
        missing = np.isnan(scaled[~inside]).any(axis=1, keepdims=True)
        found[~inside] = np.where(missing, np.nan, self.middle + self.half * cut)
        return found
