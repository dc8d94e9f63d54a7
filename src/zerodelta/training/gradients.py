"""Clip and quantize gradients of a loss or a function, row by row (theory C1, A6.2, C0)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import MethodType
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.pieces import as_one_table, copied_blocks
from zerodelta.data.row_queries import public_rows, row_query
from zerodelta.data.rowwise import Block, evaluate, whole_rows, without_blanks
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray, arithmetic
from zerodelta.spaces import Ball
from zerodelta.training.gradient_sums import (
    Examples,
    Gradients,
    Indices,
    clipped_units,
    public_bound,
    unit_blocks,
)
from zerodelta.training.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from zerodelta.training.models import TanhNetwork

# -- Gradients of linear predictors, exact and as fast as floats: integers in float64 BLAS --------
# Rows are integer vectors of norm at most 2^16, parameters of at most 2^36, slopes integers of at
# most 2^14. A margin is at most 2^16 · 2^36 = 2^52, a sum over 2^13 rows at most 2^16 · 2^14 · 2^13
# = 2^43: all partial sums are integers below 2^53, which float64 adds exactly in any order (C0).

_Single: TypeAlias = npt.NDArray[np.float32]

_ROW_STEPS = 1 << 16
_SLOPE_STEPS = 1 << 14
_PARAMETER_STEPS = 1 << 36

_BLOCK_ENTRIES = 1 << 17
"""The number of entries of a block of rows: 1 MiB, so that it stays in the cache."""

_MAXIMUM_ROWS = 1 << 13
"""The largest number of rows of a block."""

_LANES = 32
"""The number of rows of a block is a multiple of this. SIMD loops treat the last rows of an odd
block by other instructions, which may round a row's slope differently by its position."""


@final
class _RowBlocks:
    """Blocks of integer rows, labels and caps (the largest slope of each row)."""

    def __init__(self, blocks: list[tuple[_Single, Floats, _Single]]) -> None:
        self.blocks = blocks
        self._joined: tuple[_Single, Floats, _Single] | None = None

    def joined(self) -> tuple[_Single, Floats, _Single]:
        """Return all blocks as one, for batches of chosen rows."""
        if self._joined is None:
            rows, labels, caps = zip(*self.blocks, strict=True)
            self._joined = np.concatenate(rows), np.concatenate(labels), np.concatenate(caps)
        return self._joined


@final
class LinearGradients(Gradients):
    """Gradients slope(⟨θ, x⟩, y) ⊗ x, with rows, slopes and parameters as integers.

    Rows are clipped to the norm `data_norm` and quantized; a row with a NaN, or with an unusable
    label, is the zero row. The margin ⟨k, θ⟩ of integers is exact. The slope is an elementwise
    function of it, quantized and clipped so that ‖slope ⊗ k‖ <= bound holds in integers. So the sum
    is a function of the *set* of rows: their order and blocks change nothing.

    In memory rows are float32 (exact up to 2^24), half the size of the data.
    """

    def __init__(
        self,
        examples: Examples,
        *,
        loss: Loss,
        radius: Rational,
        data_norm: Rational | None,
        clip: Rational | None = None,
    ) -> None:
        require(
            type(loss) in (Logistic, Hinge, Squared, Huber, Multinomial),  # all elementwise
            "loss",
            type(loss),
            expected="Logistic, Multinomial, Hinge, Squared or Huber",
            remedy="pass any other loss as a function gradient(theta, rows)",
        )
        require(
            examples.label is not None and examples.width,
            "labels",
            examples.label,
            expected="a column of labels and at least one feature",
            remedy="pass labels=, or name the column of the label",
        )
        self.examples = examples
        self.loss, self.norm = loss, public_bound(data_norm, "data_norm")
        self.rows, self.width = examples.rows, examples.width
        self.dimension = self.width * loss.outputs
        self.radius = as_positive(radius, "radius")
        self.ball = Ball(self.dimension, self.radius)
        self.callers_function = False
        self._slope_quantum = loss.slope_bound(self.norm * self.radius) / _SLOPE_STEPS
        self.quantum = self.norm / _ROW_STEPS * self._slope_quantum
        self.bound = _ROW_STEPS * _SLOPE_STEPS
        if clip is not None:
            self.bound = min(self.bound, as_positive(clip, "clip") // self.quantum)
            require(
                self.bound >= 1 << 10,
                "clip",
                clip,
                expected="at least about a millionth of slope bound times data_norm",
                remedy="lower data_norm or label_bound, or clip less",
            )
        size = min(_MAXIMUM_ROWS, max(_LANES, _BLOCK_ENTRIES // self.dimension))
        self._block = _round_to_lanes(min(size, self.rows + 1))

    def _table(self) -> _RowBlocks:
        """Return the quantized rows, which are read at the first call and kept."""
        if self._loaded is None:
            arrays = copied_blocks(self._blocks(), self.examples.opened.keeping)
            rows = (columns.T for columns in arrays[::3])
            self._loaded = _RowBlocks(list(zip(rows, arrays[1::3], arrays[2::3], strict=True)))
        loaded: _RowBlocks = self._loaded
        return loaded

    def _blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Yield three arrays for each `_block` rows, one after another: rows.T, labels and caps.

        Zero rows fill the last block, which has at least one: `_parts` pads batches with it.
        """
        size, start = self._block, 0
        rows, labels, caps = self._zeros()
        for block in self.examples.blocks_once():  # the label is the last column
            new_rows, new_labels, new_caps = self._quantized(block)
            done = 0
            while done < len(block):
                count = min(size - start, len(block) - done)
                to, of = slice(start, start + count), slice(done, done + count)
                rows[to], labels[to], caps[to] = new_rows[of], new_labels[of], new_caps[of]
                start, done = start + count, done + count
                if start == size:
                    yield from (rows.T, labels, caps)
                    start, (rows, labels, caps) = 0, self._zeros()
        yield from (rows.T, labels, caps)

    def _quantized(self, block: Block) -> tuple[npt.NDArray[np.int64], Floats, Any]:
        """Return integer rows, labels and caps; a row with a missing cell is the zero row."""
        lattice = FixedPoint.ball(dimension=self.width, bound=self.norm, steps=_ROW_STEPS)
        integers = lattice.quantize(whole_rows(block[:, :-1]))
        labels = self.loss.read(block[:, -1])
        counted = np.isfinite(labels)
        integers[~counted] = 0
        return integers, np.where(counted, labels, 0.0), _caps(integers, self.bound)

    def _zeros(self) -> tuple[_Single, Floats, _Single]:
        """Return an empty block: zero rows, labels and caps."""
        size = self._block
        rows = np.zeros((size, self.width), dtype=np.float32)
        return rows, np.zeros(size), np.zeros(size, dtype=np.float32)

    def total(self, theta: Floats, chosen: Indices | None = None) -> IntegerArray:
        """Return Σ m_i ⊗ k_i, exactly: m_i the integer slopes of row i, k_i its integers."""
        if self.weight is not None:
            return self._total_of_units(theta, self.weight)
        if chosen is None and not self.examples.opened.adds_here:  # rows stay on their cluster
            return self.total_once(theta)
        count = self.rows if chosen is None else len(chosen)
        # a private number of rows must not decide the type of the sums
        fits = (
            self.examples.row_count_is_public
            and arithmetic(count, _ROW_STEPS * _SLOPE_STEPS) != "python"
        )
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.int64 if fits else np.object_)
        lattice = self._parameters(theta.reshape(self.width, self.loss.outputs))
        for rows, labels, caps in self._parts(chosen):
            # theory A6.2: per-example clipping, in integers, instead of assuming a Lipschitz loss
            slopes = self._slopes(rows @ lattice, labels, caps)
            total += (rows.T @ slopes).reshape(-1).astype(np.int64)  # exact integers below 2^53
        return total

    def _total_of_units(self, theta: Floats, weight: int) -> IntegerArray:
        """Return the sum over units of their clipped sums Σ m_i ⊗ k_i (theory V2)."""
        if self._loaded is None:
            self._loaded = [
                (*self._quantized(block), starts)
                for block, starts in unit_blocks(self.examples, batch=self._block)
            ]
        lattice = self._parameters(theta.reshape(self.width, self.loss.outputs))
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.object_)
        for integers, labels, caps, starts in self._loaded:
            rows = integers.astype(np.float64)
            slopes = self._slopes(rows @ lattice, labels, caps.astype(np.float64))
            gradients = (rows[:, :, None] * slopes[:, None, :]).reshape(len(rows), -1)  # exact
            clipped = clipped_units(gradients, starts, weight * self.bound)
            total += np.array(clipped, dtype=np.object_)
        return total

    def total_once(self, theta: Floats) -> IntegerArray:
        """Return the same `total` in one pass over all rows, without keeping quantized rows."""
        source = self.examples.opened
        parameters = self._parameters(theta.reshape(self.width, self.loss.outputs)).T
        lattice = FixedPoint.ball(dimension=self.width, bound=self.norm, steps=_ROW_STEPS)
        sent = self.without_rows()

        def part(block: Floats) -> IntegerArray:  # may run on a cluster, on at most 2^22 rows
            """Return a block's exact sum of clipped integer gradients."""
            total = np.zeros((sent.width, sent.loss.outputs), dtype=np.int64)
            read = sent.loss.read(block[:, -1])
            counted = np.isfinite(read)
            labels = np.where(counted, read, 0.0)
            for start, rows in lattice.blocks(
                block[:, :-1], joint=True, largest_block=_MAXIMUM_ROWS
            ):
                here = slice(start, start + rows.shape[1])
                if not counted[here].all():
                    rows[:, ~counted[here]] = 0.0
                caps = np.full(rows.shape[1], float(_SLOPE_STEPS))
                if sent.bound < _ROW_STEPS * _SLOPE_STEPS:
                    squares = np.einsum("ij,ij->j", rows, rows).astype(np.int64)  # exact
                    caps = _largest_slopes(squares, sent.bound).astype(np.float64)
                slopes = sent._slopes((parameters @ rows).T, labels[here], caps)
                total += (rows @ slopes).astype(np.int64)
            return total.reshape(-1)

        return source.total(
            part, self.examples.order, shape=(self.dimension,), bound=_ROW_STEPS * _SLOPE_STEPS
        )

    def _parts(self, chosen: Indices | None) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield blocks of float64 rows, labels and caps; the array of rows is reused."""
        table = self._table()
        block = self._block
        if chosen is None:
            buffer = np.empty((block, self.width))
            for rows, labels, caps in table.blocks:
                np.copyto(buffer, rows)
                yield buffer, labels, caps.astype(np.float64)
            return
        # pad with the row after the last one, a zero row
        padded = np.full(_round_to_lanes(len(chosen)), self.rows, dtype=np.int64)
        padded[: len(chosen)] = chosen
        all_rows, all_labels, all_caps = table.joined()
        for start in range(0, len(padded), block):
            indices = padded[start : start + block]
            rows, caps = all_rows.take(indices, axis=0), all_caps.take(indices)
            yield rows.astype(np.float64), all_labels.take(indices), caps.astype(np.float64)

    def _slopes(self, exact: Floats, labels: Floats, caps: Floats) -> Floats:
        """Return the integer slopes m of each row, with m²‖k‖² <= bound²."""
        margins = exact * self._unit
        if self.loss.outputs == 1:
            slopes = self.loss.slope(margins[:, 0], labels)
            slopes *= 1 / float(self._slope_quantum)
            np.rint(slopes, out=slopes)
            np.clip(slopes, -caps, caps, out=slopes)
            return slopes.reshape(-1, 1)
        slopes = np.rint(self.loss.slope(margins, labels) / float(self._slope_quantum))
        over = (slopes * slopes).sum(axis=1) > caps * caps  # integers below 2^53: exact
        if over.any():
            cut = slopes[over]
            length = np.sqrt((cut * cut).sum(axis=1))
            cut = np.trunc(cut * (caps[over] / length * (1 - 2.0**-40))[:, None])
            # floats cannot fail here, but privacy must not rest on that: the check is in integers
            cut[(cut * cut).sum(axis=1) > caps[over] ** 2] = 0.0
            slopes[over] = cut
        return slopes

    @property
    def _unit(self) -> float:
        """The margin that the integer 1 stands for."""
        return float(self.norm / _ROW_STEPS) * (float(self.radius) / _PARAMETER_STEPS)

    def _parameters(self, columns: Floats) -> Floats:
        """Project (d, m) parameters, as one vector, to the ball and round them to their lattice."""
        inside = float((columns * columns).sum()) <= float(self.radius) ** 2 * (1 + 1e-9)
        if not inside:
            columns = self.ball.project(columns.reshape(-1)).reshape(columns.shape)
        return np.rint(columns / (float(self.radius) / _PARAMETER_STEPS))

    def margins(self, theta: Floats) -> Floats:
        """Return ⟨θ, x_i⟩ for θ on the parameter lattice; the blocks of rows do not matter.

        `theta` may also be a (d, m) matrix of m points; each is projected to the ball.
        """
        columns = theta.reshape(self.width, -1)
        lattice = np.hstack([self._parameters(columns[:, [j]]) for j in range(columns.shape[1])])
        exact = np.vstack([rows @ lattice for rows, _, _ in self._parts(None)])[: self.rows]
        margins: Floats = exact * self._unit
        return margins if theta.ndim == 2 else margins[:, 0]

    def values(self, thetas: Floats) -> Floats:
        """Return the (n, m) losses of all rows at the m columns of `thetas`."""
        labels = np.concatenate([labels for _, labels, _ in self._table().blocks])
        return self.loss.value(self.margins(thetas), labels[: self.rows, None])


def _round_to_lanes(rows: int) -> int:
    """Round a number of rows up to a multiple of `_LANES`."""
    return -(-rows // _LANES) * _LANES


def _caps(integers: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
    """Return the largest integer m <= 2^14 with m²‖k‖² <= bound² for each row."""
    return _largest_slopes((integers * integers).sum(axis=1), bound)  # at most 2^32


def _largest_slopes(squares: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
    """Return the largest integers m <= 2^14 with m² times a square <= bound²."""
    if _SLOPE_STEPS**2 * int(squares.max(initial=0)) <= bound**2:
        return np.full(len(squares), _SLOPE_STEPS)
    with np.errstate(all="ignore"):
        guess = np.floor(bound / np.sqrt(squares.astype(np.float64))) + 1
    guess = np.clip(np.nan_to_num(guess, posinf=_SLOPE_STEPS), 0, _SLOPE_STEPS)
    caps: npt.NDArray[np.int64] = guess.astype(np.int64)
    while (over := caps * caps * squares > bound * bound).any():  # below 2^60
        caps[over] -= 1
    return caps


GradientFunction: TypeAlias = Callable[[Floats, Floats], Any]
"""gradient(theta, rows): the (n, d) gradients of n rows; the last column is the label, if any."""

Layers: TypeAlias = Sequence[tuple[int, Rational]]
"""The size and the clipping norm of each consecutive part of the parameters."""

_GRADIENT_STEPS = 1 << 20
_UNIT_BATCH = 1 << 13


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

    A function sees rows whose last column is the label, if there are labels. No row is read: run
    the plan on `gradients.source`, and sum `gradients.on(rows)`.
    """
    examples = Examples.of_arrays(features, labels)
    if isinstance(loss, Loss):
        return LinearGradients(examples, loss=loss, radius=radius, data_norm=data_norm, clip=clip)
    return CallableGradients(examples, gradient=loss, radius=radius, clip=clip, dimension=dimension)


@final
class CallableGradients(Gradients):
    """Gradients of a function, clipped to `clip`, or each of `layers` to its own norm.

    The function is asserted to treat rows one by one, even if it is called with single rows
    (`rowwise`), unless it is that of a `TanhNetwork`. It is tried on public rows first (`probe`). A
    row for which it raises, or does not return d finite numbers, has gradient 0.
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
        # the norm of a row's integer gradient, over all layers: √(Σ steps²), rounded up
        squares = sum(lattice.steps**2 for lattice in self._lattices)
        self.bound = math.isqrt(squares - 1) + 1
        self._gradient = gradient
        origin = self.ball.middle() if start is None else start
        if self.callers_function:
            try_gradient(gradient, origin, examples.columns, self.dimension, probe=probe)

    def total(self, theta: Floats, chosen: Indices | None = None) -> IntegerArray:
        """Return the exact integer sum of clipped gradients at θ, over all or chosen rows."""
        blanks = self.examples.source.may_miss  # then a row of missing cells must add nothing
        if chosen is not None:
            if self._loaded is None:
                width, rows = len(self.examples.columns), self.examples.opened
                self._loaded = as_one_table(
                    self.examples.blocks(),
                    width,
                    planned=rows.rows,
                    keeping=rows.keeping,
                    count_is_public=rows.row_count_is_public,
                )
            return self._sum(theta, self._loaded[chosen], blanks=blanks)
        if self.weight is not None:
            return self._total_of_units(theta, self.weight)
        if not self.examples.opened.adds_here:
            sent = self.without_rows()
            return self.examples.opened.total(
                lambda block: sent._sum(theta, block, blanks=blanks),
                self.examples.order,
                shape=(self.dimension,),
                bound=self.bound,
            )
        # a private number of rows must not decide the type of the sums
        fits = self.examples.row_count_is_public and arithmetic(self.rows, self.bound) != "python"
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.int64 if fits else np.object_)
        for block in self.examples.blocks():
            total += self._sum(theta, block, blanks=blanks)
        return total

    def _total_of_units(self, theta: Floats, weight: int) -> IntegerArray:
        """Return the sum over units of their rows' clipped gradient sums (theory V2)."""
        if self._loaded is None:
            self._loaded = list(unit_blocks(self.examples, batch=_UNIT_BATCH))
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.object_)
        for rows, starts in self._loaded:
            values = self._values(theta, rows, blanks=self.examples.source.may_miss)
            layers = [lattice.quantize(part) for lattice, part in self._layers(values)]
            clipped = clipped_units(np.hstack(layers), starts, weight * self.bound)
            total += np.array(clipped, dtype=np.object_)
        return total

    def _sum(self, theta: Floats, rows: Floats, *, blanks: bool) -> npt.NDArray[Any]:
        """Return the exact integer sum of one block."""
        values = self._values(theta, rows, blanks=blanks)
        return np.concatenate([lattice.sum(part) for lattice, part in self._layers(values)])

    def _layers(self, values: Floats) -> Iterator[tuple[FixedPoint, Floats]]:
        """Yield each layer's lattice and its columns of the gradients."""
        start = 0
        for lattice in self._lattices:
            yield lattice, values[:, start : start + lattice.dimension]
            start += lattice.dimension

    def _values(self, theta: Floats, rows: Floats, *, blanks: bool) -> Floats:
        """Return the function's gradients; NaN where it fails, or if `blanks` for missing rows."""
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
    """Return whether this is the gradient of `TanhNetwork` itself; a subclass may do anything."""
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
    """Try a gradient on public rows; refuse it if it fails on all or has a wrong shape.

    The rows are `probe`, by default a row of zeros and some made-up rows. No data is read.
    """
    if probe is None:
        made_up_rows = public_rows(len(columns), None, None)
        probe = np.concatenate([np.zeros((1, len(columns))), made_up_rows])

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
        quiet=False,  # an error may be shown: no row has been read, so it depends on none
    )


def _lattices(parts: Layers, dimension: int) -> tuple[tuple[FixedPoint, ...], Fraction]:
    """Return a lattice for each layer and their common quantum."""
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
