"""Exact integer sums of clipped per-example gradients (theory C1, A6.2): what DP-SGD adds noise to.

Every row gives an integer vector of l2 norm at most `bound`, a function of that row alone, so the
sum over a batch moves by at most 2·bound when a row of it is replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import evaluate, row_function
from zerodelta.errors import ParameterError
from zerodelta.exact.exact_sums import IntegerArray, arithmetic, exact_product, exact_sum
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.step import Status
from zerodelta.spaces import Ball
from zerodelta.study.losses import Floats, Hinge, Huber, Logistic, Loss, Squared

__all__ = ["CallableGradients", "GradientFunction", "Gradients", "LinearGradients", "gradients_of"]

GradientFunction: TypeAlias = Callable[[Floats, Floats], Any]
"""gradient(theta, rows): the (n, d) gradients of n rows."""

Indices: TypeAlias = npt.NDArray[np.int64]

_ROW_STEPS = 1 << 16
_SLOPE_STEPS = 1 << 14
_PARAMETER_STEPS = 1 << 36
"""Row times parameter stays at 2^52: margins are exact integers, whatever BLAS does."""

_GRADIENT_STEPS = 1 << 20


class Gradients(ABC):
    """Where gradient sums come from; everything but `total` is public."""

    rows: int
    dimension: int
    bound: int
    """The largest l2 norm of one row's integer gradient."""
    quantum: Fraction
    """What one integer step stands for."""
    status: Status

    def assumed(self) -> tuple[str, ...]:
        """Return what a certificate must list as the caller's word."""
        if self.status is Status.PROVEN:
            return ()
        return ("gradient(theta, rows) makes of each row something that depends on that row only",)

    @property
    def lipschitz(self) -> Fraction:
        """The norm to which gradients are clipped."""
        return self.bound * self.quantum

    @abstractmethod
    def total(self, theta: Floats, chosen: Indices | None) -> IntegerArray:
        """Return the integer gradient sum at θ over the chosen rows (None: all of them)."""


def gradients_of(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    radius: Rational,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    dimension: int | None = None,
) -> Gradients:
    """Return the gradients of a built-in loss (needs `data_norm`) or of a function (needs `clip`).

    A function sees rows whose last column is the label, if labels are given.
    """
    if isinstance(loss, Loss):
        return LinearGradients(
            features, labels, loss=loss, radius=radius, data_norm=data_norm, clip=clip
        )
    return CallableGradients(
        features, labels, gradient=loss, radius=radius, clip=clip, dimension=dimension
    )


@final
class LinearGradients(Gradients):
    """Gradients slope(⟨θ, x⟩, y)·x, with rows, slopes and parameters as integers.

    Rows are clipped to the norm `data_norm` and quantised; a row with a NaN, or with a label that
    does not count, is the zero row. The margin ⟨k, θ⟩ of integers is exact, the slope is an
    elementwise function of it, quantised and cut so that ‖slope·k‖ <= bound holds in integers.
    """

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        loss: Loss,
        radius: Rational,
        data_norm: Rational | None,
        clip: Rational | None = None,
    ) -> None:
        if type(loss) not in (Logistic, Hinge, Squared, Huber):  # whose slopes are elementwise
            raise ParameterError(
                "loss",
                type(loss),
                expected="Logistic, Hinge, Squared or Huber",
                remedy="pass any other loss as a function gradient(theta, rows)",
            )
        table = _read(features, "features")
        answers = _read_labels(labels, len(table))
        norm = as_positive(_given(data_norm, "data_norm"), "data_norm")
        self.loss, self.norm = loss, norm
        self.rows, self.dimension = table.shape
        self.radius = as_positive(radius, "radius")
        self.ball = Ball(self.dimension, self.radius)
        self.status = Status.PROVEN
        slope = loss.slope_bound(norm * self.radius)
        self._slope_quantum = slope / _SLOPE_STEPS
        self.quantum = norm / _ROW_STEPS * self._slope_quantum
        self.bound = _ROW_STEPS * _SLOPE_STEPS
        if clip is not None:
            self.bound = min(self.bound, as_positive(clip, "clip") // self.quantum)
            _check_bound(self.bound, clip)
        lattice = FixedPoint.ball(dimension=self.dimension, bound=norm, steps=_ROW_STEPS)
        integers = lattice.quantize(table)
        read = loss.read(answers[:, 0])
        integers[~np.isfinite(read)] = 0
        self._labels = np.where(np.isfinite(read), read, 0.0)
        self._caps = _caps(integers, self.bound)
        self._integers = integers.astype(np.float64)  # exact: at most 2^16

    def total(self, theta: Floats, chosen: Indices | None) -> IntegerArray:
        """Return Σ m_i k_i, exactly: m_i the integer slope of row i, k_i its integers."""
        rows, labels, caps = self._integers, self._labels, self._caps
        if chosen is not None:
            rows, labels, caps = (part.take(chosen, axis=0) for part in (rows, labels, caps))
        slopes = self.loss.slope(self.margins(theta, rows), labels)
        # theory A6.2: per-example clipping, in integers, instead of assuming f Lipschitz.
        slopes = np.clip(np.rint(slopes / float(self._slope_quantum)), -caps, caps)
        if arithmetic(len(rows), _ROW_STEPS * _SLOPE_STEPS) == "float64":
            total: npt.NDArray[np.int64] = (rows.T @ slopes).astype(np.int64)  # all sums exact
            return total
        product = exact_product(
            rows.astype(np.int64),
            slopes.astype(np.int64).reshape(-1, 1),
            bounds=(_ROW_STEPS, _SLOPE_STEPS),
        )
        return product[:, 0]

    def margins(self, theta: Floats, rows: Floats | None = None) -> Floats:
        """Return ⟨θ, x_i⟩ for θ on the parameter lattice, the same whatever the layout of rows.

        `theta` may also be a (d, m) matrix of parameters; all are projected onto the ball.
        """
        spacing = float(self.radius) / _PARAMETER_STEPS
        columns = np.array(theta.T, dtype=np.float64, ndmin=2)
        squares = (columns * columns).sum(axis=1)
        for i in np.flatnonzero(~(squares <= float(self.radius) ** 2 * (1 + 1e-9))):
            columns[i] = self.ball.project(columns[i])
        lattice = np.rint(columns / spacing).T
        exact = (self._integers if rows is None else rows) @ lattice
        margins: Floats = exact * (float(self.norm / _ROW_STEPS) * spacing)
        return margins if theta.ndim == 2 else margins[:, 0]

    def values(self, thetas: Floats) -> Floats:
        """Return the (n, m) losses of all rows at the m columns of `thetas`."""
        margins = self.margins(thetas)
        return self.loss.value(margins, self._labels[:, None])


@final
class CallableGradients(Gradients):
    """Gradients of the caller's function, clipped to `clip` and quantised row by row.

    The function is asserted to treat rows one by one. A row for which it raises, or returns
    something else than d finite numbers, counts as nothing.
    """

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        gradient: GradientFunction,
        radius: Rational,
        clip: Rational | None,
        dimension: int | None = None,
    ) -> None:
        if not callable(gradient):
            raise ParameterError(
                "loss",
                gradient,
                expected="a loss, or a function gradient(theta, rows)",
                remedy="pass Logistic(), Squared(label_bound=1), … or a function",
            )
        table = _read(features, "features")
        size = table.shape[1] if dimension is None else dimension
        self.rows, self.dimension = len(table), as_count(size, "dimension", minimum=1)
        parts = [table] if labels is None else [table, _read_labels(labels, len(table))]
        self._table = np.hstack(parts)
        self.radius = as_positive(radius, "radius")
        self.ball = Ball(self.dimension, self.radius)
        self.status = Status.ASSERTED
        limit = as_positive(_given(clip, "clip"), "clip")
        self._lattice = FixedPoint.ball(
            dimension=self.dimension, bound=limit, steps=_GRADIENT_STEPS
        )
        self.bound, self.quantum = _GRADIENT_STEPS, limit / _GRADIENT_STEPS
        self._gradient = gradient
        start = self.ball.middle()
        names = [str(i) for i in range(self._table.shape[1])]
        row_function(lambda rows: gradient(start.copy(), rows), names, width=self.dimension)

    def total(self, theta: Floats, chosen: Indices | None) -> IntegerArray:
        """Return the exact sum of the quantised gradients."""
        rows = self._table if chosen is None else self._table[chosen]
        values = evaluate(
            lambda block: self._gradient(theta.copy(), block),
            rows,
            width=self.dimension,
            rowwise=False,
        )
        return exact_sum(self._lattice.quantize(values), bound=self.bound)


def _read(data: Any, name: str) -> Floats:
    """Return rows as an (n, columns) array of floats; whatever is not a number becomes NaN."""
    if data is None:
        raise ParameterError(name, None, expected="an array or a data frame", remedy="pass one")
    blocks = list(ArraySource(data).blocks())
    if not blocks or blocks[0].shape[1] == 0:
        raise ParameterError(
            name,
            "no rows or no columns",
            expected="at least one row and one column",
            remedy="pass an array of shape (n, d)",
        )
    return np.concatenate(blocks)


def _read_labels(labels: Any, rows: int) -> Floats:
    answers = _read(labels, "labels")
    if answers.shape != (rows, 1):
        raise ParameterError(
            "labels",
            f"shape {answers.shape}",
            expected=f"one label for each of the {rows} rows",
            remedy="pass a one-dimensional array as long as features",
        )
    return answers


def _given(value: Rational | None, name: str) -> Rational:
    if value is None:
        raise ParameterError(
            name,
            None,
            expected="a public bound",
            remedy="pass data_norm= (bound on ‖x‖) with a built-in loss, clip= with a function",
        )
    return value


def _check_bound(bound: int, clip: Rational) -> None:
    if bound < 1 << 10:
        raise ParameterError(
            "clip",
            clip,
            expected="at least about a millionth of slope bound times data_norm",
            remedy="lower data_norm or label_bound, or clip less",
        )


def _caps(integers: npt.NDArray[np.int64], bound: int) -> Floats:
    """Return for each row the largest integer m <= 2^14 with m²‖k‖² <= bound²."""
    squares = (integers * integers).sum(axis=1)  # at most 2^32
    with np.errstate(all="ignore"):
        guess = np.floor(bound / np.sqrt(squares.astype(np.float64))) + 1
    caps = np.clip(np.nan_to_num(guess, posinf=_SLOPE_STEPS), 0, _SLOPE_STEPS).astype(np.int64)
    while (over := caps * caps * squares > bound * bound).any():  # below 2^60
        caps[over] -= 1
    exact: Floats = caps.astype(np.float64)
    return exact
