"""Sum clipped gradients exactly in integers, row by row or unit by unit (theory C1, A6.2, V2).

The summand of a row is an integer vector of l2 norm at most `bound`, a function of that row alone,
so the sum over a batch has sensitivity 2·bound when a row is replaced.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, Column
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.privacy.steps import Status
from zerodelta.value import value

GRADIENT = "gradient(theta, rows) treats rows one by one, keeps no state and shows nothing"


Indices: TypeAlias = npt.NDArray[np.int64]

_Self = TypeVar("_Self", bound="Gradients")


@value
class Examples:
    """The rows that gradients are computed from, one of whose columns may be the label.

    Before a ticket opens the rows (`Gradients.on`) only the size of `source` is used.
    """

    source: Source | Rows
    label: int | None
    """The position of the label's column; None: no label."""

    @classmethod
    def of(cls, source: Source | Rows, *, label: Column | None = None) -> Examples:
        """Return the examples of a source whose label is the column of this name or position.

        A negative position counts from the end, so that -1 is the last column. None: no label.
        """
        names = source.columns
        require(
            source.rows and names,
            "rows",
            "no rows or no columns",
            expected="at least one row and one column",
            remedy="pass an array of shape (n, d)",
        )
        if label is None:
            return cls(source=source, label=None)
        named = isinstance(label, str) and label in names
        require(
            named or (type(label) is int and -len(names) <= label < len(names)),
            "label",
            label,
            expected=f"one of {list(names)[:10]}, or its position",
            remedy="name the column of the source that holds the label",
        )
        place = label % len(names) if type(label) is int else names.index(str(label))
        return cls(source=source, label=place)

    @classmethod
    def of_arrays(cls, features: Any, labels: Any = None) -> Examples:
        """Return the examples of arrays of features and, optionally, labels."""
        require(
            features is not None, "features", expected="an array or a data frame", remedy="pass one"
        )
        if labels is None:
            return cls.of(ArraySource(features))
        return cls.of(ArraySource.with_labels(features, labels), label=-1)

    @property
    def rows(self) -> int:
        """The public number of rows, or the expected number where the exact one is private."""
        return self.source.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns in the order that a function sees: the label last."""
        return tuple(self.source.columns[i] for i in self.order)

    @property
    def width(self) -> int:
        """The number of features: all columns but the label."""
        return len(self.source.columns) - (self.label is not None)

    @property
    def row_count_is_public(self) -> bool:
        """Whether `rows` is the exact number of rows."""
        return self.source.row_count_is_public

    @property
    def opened(self) -> Rows:
        """The rows that a ticket has opened."""
        if not isinstance(self.source, Rows):
            raise TypeError("rows are read with a ticket only: gradients.on(rows) has the rows")
        return self.source

    def blocks(self) -> Iterator[Block]:
        """Yield all rows block by block: features, then the label if there is one."""
        return self._ordered(self.opened.blocks())

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows for the last time, so that they need not be kept."""
        return self._ordered(self.opened.blocks_once())

    def _ordered(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Move the label to the last column of each block."""
        order = self.order
        label_last = order == sorted(order)
        for block in blocks:
            yield block if label_last else block[:, order]

    @property
    def order(self) -> list[int]:
        """The positions of the features, then that of the label if there is one."""
        others = [i for i in range(len(self.source.columns)) if i != self.label]
        return others if self.label is None else [*others, self.label]


class Gradients(ABC):
    """A source of exact gradient sums.

    All attributes are computed from public numbers. No row is read before the first `total`, which
    needs opened rows: see `on`.
    """

    examples: Examples
    rows: int
    dimension: int
    bound: int
    """The largest l2 norm of one row's integer gradient."""
    quantum: Fraction
    """The gradient that the integer 1 stands for."""
    callers_function: bool
    """Whether the gradient is a function of the caller's, which sees rows."""
    weight: int | None = None
    """The number of rows to which the sum of a unit is clipped; None: each row is clipped alone."""
    _loaded: Any = None
    """The quantized rows, kept from the first `total` on."""

    @property
    def status(self) -> Status:
        """Asserted if the caller's code sees rows, even one at a time; else proven."""
        return Status.ASSERTED if self.callers_function else Status.PROVEN

    def assumed(self) -> tuple[str, ...]:
        """Return the premises that a certificate must list as caller-asserted."""
        return (GRADIENT,) if self.callers_function else ()

    @property
    def lipschitz(self) -> Fraction:
        """The norm to which gradients are clipped."""
        return self.bound * self.quantum

    @property
    def source(self) -> Source | Rows:
        """The rows, which a ticket opens."""
        return self.examples.source

    def on(self: _Self, rows: Rows) -> _Self:
        """Return a copy for the rows that a ticket has opened."""
        opened = copy.copy(self)
        opened.examples, opened._loaded = replace(self.examples, source=rows), None
        return opened

    def without_rows(self: _Self) -> _Self:
        """Return a copy without rows, small enough to send to a cluster that holds the rows."""
        sent = copy.copy(self)
        sent.__dict__.pop("examples")
        sent._loaded = None
        return sent

    def weighing(self: _Self, weight: int | None) -> _Self:
        """Return a copy that clips the sum of each unit to `weight` times the bound of a row."""
        weighed = copy.copy(self)
        weighed.weight = weight
        return weighed

    @abstractmethod
    def total(self, theta: Floats, chosen: Indices | None = None) -> IntegerArray:
        """Return the integer gradient sum at θ over the chosen rows (None: all rows)."""


def public_bound(value: Rational | None, name: str) -> Fraction:
    """Return a bound that the caller must pass, as an exact number above 0."""
    if value is None:
        raise ParameterError(
            name,
            None,
            expected="a public bound",
            remedy="pass data_norm= (bound on ‖x‖) with a built-in loss, clip= with a function",
        )
    return as_positive(value, name)


# -- The gradients of all rows of a unit, summed and clipped together (theory V2) -----------------
# A unit's sum is clipped to an l2 norm that is checked in integers and rounded up. So the sum over
# all units has sensitivity twice that bound when the rows of one unit are replaced.

_CHECKED_BITS = 26
"""The number of leading bits in which norms are compared, so that sums of squares fit 64 bits. With
more than 2^10 columns there are fewer (`_bits`)."""


def unit_blocks(examples: Examples, *, batch: int) -> Iterator[tuple[Block, Integers]]:
    """Yield blocks of about `batch` rows that hold all rows of their units, and the units' starts.

    Features come first, the label last. If the rows have no units each row is one.
    """
    numbered = examples.opened.by_unit()
    if numbered is None:
        for block in examples.blocks():
            yield block, np.arange(len(block))
        return
    table = np.concatenate([np.empty((0, len(numbered.columns))), *numbered.blocks()])
    table = table[np.argsort(table[:, -1], kind="stable")]  # the last column numbers the units
    starts = np.flatnonzero(np.diff(table[:, -1], prepend=-1.0))
    unit = 0
    while unit < len(starts):
        first = starts[unit]
        next_unit = max(unit + 1, int(np.searchsorted(starts, first + batch)))
        last = starts[next_unit] if next_unit < len(starts) else len(table)
        yield table[first:last, examples.order], starts[unit:next_unit] - first
        unit = next_unit


def clipped_units(gradients: npt.NDArray[Any], starts: Integers, bound: int) -> list[int]:
    """Return the sum over units of their rows' integer gradients, each unit's clipped to `bound`.

    >>> gradients = np.array([[3, 0], [0, 4], [6, 8]])
    >>> clipped_units(gradients, np.array([0, 2]), 100), clipped_units(gradients, np.array([0]), 10)
    ([9, 12], [5, 7])

    A clipped sum is slightly shorter than the bound.
    """
    if not len(starts):
        return [0] * gradients.shape[1]
    sums: Integers = np.add.reduceat(gradients.astype(np.int64), starts, axis=0)
    over = ~_inside(sums, bound)
    if over.any():
        cut = sums[over].astype(np.float64)
        lengths = np.sqrt((cut * cut).sum(axis=1, keepdims=True))
        # slightly below the bound, so that the sum passes the check, which rounds up
        margin = 1 - (math.sqrt(sums.shape[1]) + 2) * 2.0 ** (3 - _bits(sums.shape[1]))
        shrunk = np.trunc(cut * (bound * margin / lengths)).astype(np.int64)
        # floats cannot fail here, but privacy must not rest on that: the check is in integers
        shrunk[~_inside(shrunk, bound)] = 0
        sums[over] = shrunk
    # Python integers: whether int64 overflows would depend on the number of units, which is private
    return [sum(column) for column in sums.T.tolist()]


def _bits(columns: int) -> int:
    """Return the number of bits of a norm such that `columns` squares add up in 62 bits."""
    return min(_CHECKED_BITS, (62 - columns.bit_length()) // 2)


def _inside(sums: Integers, bound: int) -> npt.NDArray[np.bool_]:
    """Return the mask of sums with ‖sum‖ <= bound, decided in integers.

    Entries are rounded up and the bound down, so that a sum near the bound may be rejected, but no
    sum beyond it is accepted.
    """
    shift = max(0, bound.bit_length() - _bits(sums.shape[1]))
    rounded = -(-np.abs(sums) >> shift)
    limit = bound >> shift
    small: npt.NDArray[np.bool_] = np.logical_and.reduce(rounded <= limit, axis=1)
    squares = np.where(small[:, None], rounded, 0) ** 2
    inside: npt.NDArray[np.bool_] = small & (squares.sum(axis=1) <= limit**2)
    return inside
