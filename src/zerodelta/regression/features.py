"""Turn rows of features into integers within a bound, and parameters into a linear model."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.pieces import as_one_table
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.certified_losses import STEPS, IntegerRows
from zerodelta.regression.encoded_columns import ColumnBounds, Encoding
from zerodelta.regression.rows import RowLimits, Targets
from zerodelta.value import published, value

_MAXIMUM_COLUMNS = 1 << 20


@published
@value(eq=False)
class LinearModel:
    """Coefficients and intercepts in the user's units: rows @ coefficients.T + intercept.

    One line for two classes (positive: the second) or a regression, else one line for each class.
    For a data set the coefficients belong to `encoding.names`: a category has one for each option.
    Predictions clip rows as the fit did (`limits`).
    """

    coefficients: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]
    classes: tuple[Any, ...] = ()
    temperature: float = 1.0
    """The divisor of scores before they become probabilities, computed from public numbers."""
    encoding: Encoding | None = None
    """The map from declared columns of a data set to features."""
    limits: RowLimits | None = None
    """The bounds to which the fit clipped rows; None if no row can exceed them."""

    def decision(self, rows: Any) -> npt.NDArray[np.float64]:
        """Return the linear predictors of rows, one line for each row."""
        table = np.asarray(rows) if self.encoding is None else self.encoding.read(rows)
        table = self.limited(table)
        values: npt.NDArray[np.float64] = table @ self.coefficients.T + self.intercept
        return values

    def limited(self, features: Floats) -> Floats:
        """Return features as the fit clipped them."""
        return features if self.limits is None else self.limits(features)


@value(eq=False)
class Features:
    """The map from rows of `dimension` features to integers, and from parameters to coefficients.

    With `bounds` columns are scaled to [-1, 1] first. The row (x, data_norm/2), whose last entry is
    the constant of the intercept, becomes integers of length at most `length` (2^22): features of
    length at most `steps` and the integer `constant`, with steps² + constant² <= length².
    """

    dimension: int
    data_norm: Fraction
    intercept: bool
    length: int = STEPS
    bounds: ColumnBounds | None = None

    @staticmethod
    def of(
        columns: int,
        data_norm: Rational | None,
        intercept: bool,
        *,
        length: int = STEPS,
        bounds: ColumnBounds | None = None,
    ) -> Features:
        """Return the map of rows to integer features; refuse a bad number of columns or bound."""
        require(
            1 <= columns < _MAXIMUM_COLUMNS,
            "rows",
            f"{columns} columns",
            expected="between 1 and 2^20 - 1 columns",
            remedy="pass one column for each feature",
        )
        require(
            data_norm is not None,
            "data_norm",
            None,
            expected="a public bound on the l2 length of a row",
            remedy="pass data_norm=..., from what is known of the columns, not computed from the "
            "rows",
        )
        features = Features(
            dimension=columns,
            data_norm=as_positive(0 if data_norm is None else data_norm, "data_norm"),
            intercept=as_flag(intercept, "intercept"),
            length=length,
            bounds=bounds,
        )
        features.lattice()  # refuses a bound that floats cannot work with
        return features

    @property
    def width(self) -> int:
        """The number of columns, the constant one included."""
        return self.dimension + self.intercept

    @property
    def steps(self) -> int:
        """The integer length of a feature vector of length `data_norm`."""
        return math.isqrt(4 * self.length**2 // 5) if self.intercept else self.length

    @property
    def constant(self) -> int:
        """The integer that the constant column holds."""
        return math.isqrt(self.length**2 // 5) if self.intercept else 0

    def lattice(self) -> FixedPoint:
        """Return the lattice of the features."""
        return FixedPoint.ball(dimension=self.dimension, bound=self.data_norm, steps=self.steps)

    def integers(self, rows: Rows, *, signed: bool = False) -> tuple[IntegerRows, Floats]:
        """Return integer rows and labels; a row that lacks a cell or a label becomes zero.

        With `signed` a row is multiplied by -1 if its label is 0 and by 1 if it is 1.
        """

        def integer_rows(block: Block) -> Block:
            """Return a block's integer features and labels; unusable rows are zero rows."""
            values, label = np.empty((len(block), self.width + 1)), block[:, -1]
            part = np.empty((len(block), self.dimension))
            unusable = self.quantize(block[:, :-1], part) | np.isnan(label)
            factor = np.where(unusable, 0.0, 2 * label - 1 if signed else 1.0)
            np.multiply(part, factor[:, None], out=values[:, : self.dimension])
            if self.intercept:
                np.multiply(factor, float(self.constant), out=values[:, -2])
            values[:, -1] = np.where(unusable, 0.0, label)
            return values

        table = as_one_table(
            map(integer_rows, rows.blocks()),
            self.width + 1,
            planned=rows.rows,
            keeping=rows.keeping,
            count_is_public=rows.row_count_is_public,
        )
        return IntegerRows(values=table[:, :-1]), np.ascontiguousarray(table[:, -1])

    def __call__(self, block: Block) -> Block:
        """Return rows of length at most 1, the constant as their last column."""
        scaled = np.empty((len(block), self.width))
        part = np.empty((len(block), self.dimension))
        unusable = self.quantize(block, part)
        scaled[:, : self.dimension] = part
        scaled[:, self.dimension :] = self.constant
        scaled[unusable] = 0.0
        return scaled / self.length

    def quantize(self, block: Floats, out: Floats) -> npt.NDArray[np.bool_]:
        """Write integer rows of length at most `steps` to `out`; return the mask of missing cells.

        Most rows are inside the bound and are truncated entry by entry. Their squared length is
        exact in floats up to 2^53, in any order of summation, hence a function of the row alone and
        not of its block. `FixedPoint` projects the others.
        """
        block = self._scaled(block)
        inside = self._inside(block, out)
        if inside.all():
            return np.zeros(len(block), dtype=np.bool_)
        out[~inside] = self.lattice().quantize(block[~inside])
        return np.asarray(np.isnan(block).any(axis=1), dtype=np.bool_)

    def beyond(self, block: Floats) -> npt.NDArray[np.bool_]:
        """Return the mask of rows that are clipped as too long, or that lack a cell."""
        return ~self._inside(self._scaled(block), np.empty(block.shape))

    def _scaled(self, block: Floats) -> Floats:
        """Return the features scaled by the bounds, if there are any."""
        bounds = self.bounds
        return block if bounds is None else bounds.scaled(block, centered=self.intercept)

    def _inside(self, block: Floats, out: Floats) -> npt.NDArray[np.bool_]:
        """Write truncated rows to `out`; return the mask of those no longer than `steps`."""
        with np.errstate(all="ignore"):
            np.multiply(block, float(self.steps / self.data_norm), out=out)
            np.trunc(out, out=out)  # toward 0, so that a row at the bound stays inside
            return np.asarray(np.einsum("ij,ij->i", out, out) <= float(self.steps) ** 2)

    def limits(self, encoding: Encoding | None) -> RowLimits | None:
        """Return the clipping of rows in the user's units; None if no row can be clipped.

        With `encoding` rows are encoded columns, which are inside their bounds already.
        """
        middle, half, corner = np.zeros(self.dimension), np.ones(self.dimension), math.inf
        if encoding is not None:
            (middle, half), corner = encoding.scale, encoding.box.corner
        elif self.bounds is not None:
            scale = self.bounds if self.intercept else self.bounds.around_zero()
            middle, half, corner = scale.middle, scale.half, self.bounds.box.corner
        norm = None if float(self.data_norm) >= corner else self.data_norm
        if norm is None and self.bounds is None:
            return None
        return RowLimits(middle=middle, half=half, norm=norm, bounds=self.bounds)

    def model(
        self,
        theta: Floats,
        *,
        targets: Targets | None = None,
        encoding: Encoding | None = None,
        **others: Any,
    ) -> LinearModel:
        """Return the model of θ of shape (columns, outputs), in the units of rows and targets."""
        middle, half = (0.0, 1.0) if targets is None else (targets.middle, targets.half)
        theta = theta * half
        slope = theta[: self.dimension].T * float(self.steps / (self.length * self.data_norm))
        constant = np.zeros(theta.shape[1])
        if self.intercept:
            constant = theta[-1] * (self.constant / self.length)
        constant = constant + middle
        if encoding is not None:
            slope, constant = encoding.in_units(slope, constant)
        elif self.bounds is not None:
            scale = self.bounds if self.intercept else self.bounds.around_zero()
            slope, constant = scale.in_units(slope, constant)
        return LinearModel(
            coefficients=slope,
            intercept=constant,
            encoding=encoding,
            limits=self.limits(encoding),
            **others,
        )


@value(eq=False)
class LongRows:
    """The mask of rows of a data set, their label last, that are clipped as too long."""

    encode: Encoding | None
    features: Features

    def __call__(self, block: Block) -> npt.NDArray[np.bool_]:
        """Return the mask of a block."""
        rows = block[:, :-1].astype(np.float64)
        return self.features.beyond(rows if self.encode is None else self.encode(rows))
