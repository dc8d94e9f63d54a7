"""Gradients of a loss or of a function, clipped and quantized row by row (theory C1, A6.2, C0)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import MethodType
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.kept_copy import together
from zerodelta.data.row_queries import public_rows, row_query
from zerodelta.data.rowwise import evaluate, without_blanks
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.exact_sums import IntegerArray, arithmetic
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.spaces import Ball
from zerodelta.training.gradient_sums import Examples, Gradients, Indices, public_bound
from zerodelta.training.linear_gradients import LinearGradients
from zerodelta.training.loss_functions import Loss
from zerodelta.training.tanh_network import TanhNetwork
from zerodelta.training.unit_sums import clipped_units, unit_blocks

GradientFunction: TypeAlias = Callable[[Floats, Floats], Any]
"""gradient(theta, rows): the (n, d) gradients of n rows."""

Layers: TypeAlias = Sequence[tuple[int, Rational]]
"""Sizes and clipping norms of consecutive parts of the parameters."""

_GRADIENT_STEPS = 1 << 20
_ROWS_OF_UNITS = 1 << 13


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

    A function sees rows whose last column is the label, if labels are given. No row is read: run
    the plan on `gradients.source`, and sum `gradients.on(rows)`.
    """
    examples = Examples.of_arrays(features, labels)
    if isinstance(loss, Loss):
        return LinearGradients(examples, loss=loss, radius=radius, data_norm=data_norm, clip=clip)
    return CallableGradients(examples, gradient=loss, radius=radius, clip=clip, dimension=dimension)


@final
class CallableGradients(Gradients):
    """Gradients of a function, clipped to `clip`, or each of `layers` to its own norm.

    The function is asserted to treat rows one by one, also if it only ever sees one row at a time
    (`rowwise`), unless it is that of a `TanhNetwork`. It is tried on public rows first (`probe`). A
    row for which it raises, or returns something else than d finite numbers, counts as nothing.
    """

    def __init__(
        self,
        examples: Examples,
        *,
        gradient: GradientFunction,
        radius: Rational,
        clip: Rational | None = None,
        dimension: int | None = None,
        layers: Layers | None = None,
        start: Floats | None = None,
        rowwise: bool = False,
        probe: Floats | None = None,
    ) -> None:
        require(
            callable(gradient),
            "loss",
            gradient,
            expected="a loss, or a function gradient(theta, rows)",
            remedy="pass Logistic(), Squared(label_bound=1), … or a function",
        )
        self.examples = examples
        size = examples.width if dimension is None else dimension
        self.rows, self.dimension = examples.rows, as_count(size, "dimension", minimum=1)
        self.radius = as_positive(radius, "radius")
        self.ball = Ball(self.dimension, self.radius)
        self.callers_function = not _is_network(gradient)
        self._rowwise = rowwise and self.callers_function
        parts = [(self.dimension, public_bound(clip, "clip"))] if layers is None else layers
        self._lattices, self.quantum = _lattices(parts, self.dimension)
        # joined, the layers of a row are at most this long: √(Σ steps²), rounded up
        squares = sum(lattice.steps**2 for lattice in self._lattices)
        self.bound = math.isqrt(squares - 1) + 1
        self._gradient = gradient
        origin = self.ball.middle() if start is None else start
        if self.callers_function:
            try_gradient(gradient, origin, examples.columns, self.dimension, probe=probe)

    def total(self, theta: Floats, chosen: Indices | None = None) -> IntegerArray:
        """Return the exact sum of the quantized gradients."""
        blanks = self.examples.source.may_miss  # a row that was dropped counts nowhere
        if chosen is not None:
            if self._loaded is None:
                width, rows = len(self.examples.columns), self.examples.opened
                self._loaded = together(
                    self.examples.blocks(),
                    width,
                    planned=rows.rows,
                    keeping=rows.keeping,
                    whole=rows.whole,
                )
            return self._sum(theta, self._loaded[chosen], blanks=blanks)
        if self.weight is not None:
            return self._total_of_units(theta, self.weight)
        if not self.examples.opened.adds_here:
            there = self.without_rows()
            return self.examples.opened.total(
                lambda block: there._sum(theta, block, blanks=blanks),
                self.examples.order,
                shape=(self.dimension,),
                bound=self.bound,
            )
        # a number of rows that is not public must not decide anything
        fits = self.examples.whole and arithmetic(self.rows, self.bound) != "python"
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.int64 if fits else np.object_)
        for block in self.examples.blocks():
            total += self._sum(theta, block, blanks=blanks)
        return total

    def _total_of_units(self, theta: Floats, weight: int) -> IntegerArray:
        """Return the sum over units of their rows' gradients, that of each clipped (theory V2)."""
        if self._loaded is None:
            self._loaded = list(unit_blocks(self.examples, most=_ROWS_OF_UNITS))
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.object_)
        for rows, starts in self._loaded:
            values = self._values(theta, rows, blanks=self.examples.source.may_miss)
            each = [k.quantize(part) for k, part in self._layers(values)]
            clipped = clipped_units(np.hstack(each), starts, weight * self.bound)
            total += np.array(clipped, dtype=np.object_)
        return total

    def _sum(self, theta: Floats, rows: Floats, *, blanks: bool) -> npt.NDArray[Any]:
        values = self._values(theta, rows, blanks=blanks)
        return np.concatenate([lattice.sum(part) for lattice, part in self._layers(values)])

    def _layers(self, values: Floats) -> Iterator[tuple[FixedPoint, Floats]]:
        start = 0
        for lattice in self._lattices:
            yield lattice, values[:, start : start + lattice.dimension]
            start += lattice.dimension

    def _values(self, theta: Floats, rows: Floats, *, blanks: bool) -> Floats:
        values = evaluate(
            lambda block: self._gradient(theta.copy(), block),
            rows,
            width=self.dimension,
            rowwise=self._rowwise,
        )
        if blanks:
            values = without_blanks(values, rows)
        return values


def _is_network(gradient: GradientFunction) -> bool:
    """Tell whether this is the gradient of our own network; a subclass may do anything."""
    return (
        type(gradient) is MethodType
        and type(gradient.__self__) is TanhNetwork
        and gradient.__func__ is TanhNetwork.gradient
    )


def try_gradient(
    gradient: GradientFunction,
    theta: Floats,
    columns: Sequence[str],
    dimension: int,
    *,
    probe: Floats | None = None,
) -> None:
    """Refuse a gradient that never works on public rows, or does not fit, before data is read.

    Without `probe` these are a row of zeros and some made-up ones.
    """
    if probe is None:
        made_up = public_rows(len(columns), None, None)
        probe = np.concatenate([np.zeros((1, len(columns))), made_up])

    def lattice(width: int) -> FixedPoint:
        require(
            width == dimension,
            "gradient",
            f"{width} numbers a row",
            expected=f"the {dimension} parameters' derivatives, an array of shape "
            f"(n, {dimension}) for n rows",
            remedy="return one gradient for each row: gradient(theta, rows)",
        )
        return FixedPoint.ball(dimension=dimension, bound=1, steps=1)

    row_query(
        lambda rows: gradient(theta.copy(), rows),
        columns=columns,
        probe=probe,
        rowwise=False,
        lattice=lattice,
        quiet=False,  # there are no internal answers yet
    )


def _lattices(parts: Layers, dimension: int) -> tuple[tuple[FixedPoint, ...], Fraction]:
    """Return a lattice for each layer, all with the same quantum, and that."""
    sizes = [as_count(size, "layers", minimum=1) for size, _ in parts]
    clips = [as_positive(clip, "clip") for _, clip in parts]
    require(
        sum(sizes) == dimension,
        "layers",
        sizes,
        expected=f"sizes that add up to the {dimension} parameters",
        remedy="list (size, clip) of each consecutive part of the parameters",
    )
    quantum = max(clips) / _GRADIENT_STEPS
    layers = zip(sizes, clips, strict=True)
    return tuple(FixedPoint.ball(dimension=d, bound=c, quantum=quantum) for d, c in layers), quantum
