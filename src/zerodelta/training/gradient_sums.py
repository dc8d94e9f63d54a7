"""Exact integer sums of clipped gradients, row by row or unit by unit (theory C1, A6.2, V2).

Every row gives an integer vector of l2 norm at most `bound`, a function of that row alone, so the
sum over a batch has sensitivity 2·bound when a row of it is replaced.
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

    `source` is read once a ticket has opened it (`Gradients.on`); until then its size is all that
    is used. `label` is a position.
    """

    source: Source | Rows
    label: int | None

    @classmethod
    def of(cls, source: Source | Rows, *, label: Column | None = None) -> Examples:
        """Return the rows of a source; the label is a column by name or position (None: no label).

        A negative position counts from the end, so that -1 is the last column.
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
        """Return features, with a column of labels behind them if there are any."""
        require(
            features is not None, "features", expected="an array or a data frame", remedy="pass one"
        )
        if labels is None:
            return cls.of(ArraySource(features))
        return cls.of(ArraySource.with_labels(features, labels), label=-1)

    @property
    def rows(self) -> int:
        """The number of rows, or where that is private one to plan with; public."""
        return self.source.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which a function sees them: the label last."""
        return tuple(self.source.columns[i] for i in self.order)

    @property
    def width(self) -> int:
        """The number of features: columns that are not the label."""
        return len(self.source.columns) - (self.label is not None)

    @property
    def row_count_is_public(self) -> bool:
        """Whether there are just `rows` rows."""
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
        """Yield all rows, for the last time."""
        return self._ordered(self.opened.blocks_once())

    def _ordered(self, blocks: Iterator[Block]) -> Iterator[Block]:
        order = self.order
        moved = order != sorted(order)
        for block in blocks:
            yield block[:, order] if moved else block

    @property
    def order(self) -> list[int]:
        """The positions of the features, then that of the label if there is one."""
        others = [i for i in range(len(self.source.columns)) if i != self.label]
        return others if self.label is None else [*others, self.label]


class Gradients(ABC):
    """Where gradient sums come from; everything but `total` is public, and made of public numbers.

    No row is read before the first `total`, which needs opened rows: see `on`.
    """

    examples: Examples
    rows: int
    dimension: int
    bound: int
    """The largest l2 norm of one row's integer gradient."""
    quantum: Fraction
    """What one integer step stands for."""
    callers_function: bool
    """Whether the gradient is code of the caller's, which sees rows."""
    weight: int | None = None
    """Like how many rows a unit counts at most; None: each row counts by itself."""
    _loaded: Any = None
    """What was made of the rows, at the first `total`."""

    @property
    def status(self) -> Status:
        """Asserted if code that we did not write sees rows, also one at a time."""
        return Status.ASSERTED if self.callers_function else Status.PROVEN

    def assumed(self) -> tuple[str, ...]:
        """Return what a certificate must list as caller-asserted."""
        return (GRADIENT,) if self.callers_function else ()

    @property
    def lipschitz(self) -> Fraction:
        """The norm to which gradients are clipped."""
        return self.bound * self.quantum

    @property
    def source(self) -> Source | Rows:
        """What a ticket opens."""
        return self.examples.source

    def on(self: _Self, rows: Rows) -> _Self:
        """Return the same gradients, of the rows that a ticket has opened."""
        bound = copy.copy(self)
        bound.examples, bound._loaded = replace(self.examples, source=rows), None
        return bound

    def without_rows(self: _Self) -> _Self:
        """Return the same gradients without any rows, to be sent to where these are."""
        sent = copy.copy(self)
        sent.__dict__.pop("examples")
        sent._loaded = None
        return sent

    def weighing(self: _Self, weight: int | None) -> _Self:
        """Return the same gradients, the sum of a unit's clipped to so many times the bound."""
        found = copy.copy(self)
        found.weight = weight
        return found

    @abstractmethod
    def total(self, theta: Floats, chosen: Indices | None = None) -> IntegerArray:
        """Return the integer gradient sum at θ over the chosen rows (None: all of them)."""


def public_bound(value: Rational | None, name: str) -> Fraction:
    """Return a bound that the caller must state, as an exact number above 0."""
    if value is None:
        raise ParameterError(
            name,
            None,
            expected="a public bound",
            remedy="pass data_norm= (bound on ‖x‖) with a built-in loss, clip= with a function",
        )
    return as_positive(value, name)


# -- The gradients of all rows of a unit, added up and clipped together (theory V2) ---------------
# Exact integers: a unit's sum is cut to an l2 norm that is checked in integers, rounded up, so
# that the sum over all units has sensitivity twice that bound when the rows of one unit are
# replaced.

_CHECKED_BITS = 26
"""Norms are compared to so many bits, so that squares add up in 64: for more than 2^10 columns to
fewer."""


def unit_blocks(examples: Examples, *, most: int) -> Iterator[tuple[Block, Integers]]:
    """Yield the rows of whole units, about `most` rows at a time, and where each unit starts.

    Features come first, the label last. Where no units are known each row is one.
    """
    numbered = examples.opened.by_unit()
    if numbered is None:
        for block in examples.blocks():
            yield block, np.arange(len(block))
        return
    table = np.concatenate([np.empty((0, len(numbered.columns))), *numbered.blocks()])
    table = table[np.argsort(table[:, -1], kind="stable")]
    begins = np.flatnonzero(np.diff(table[:, -1], prepend=-1.0))
    place = 0
    while place < len(begins):
        first = begins[place]
        after = max(place + 1, int(np.searchsorted(begins, first + most)))
        last = begins[after] if after < len(begins) else len(table)
        yield table[first:last, examples.order], begins[place:after] - first
        place = after


def clipped_units(gradients: npt.NDArray[Any], starts: Integers, bound: int) -> list[int]:
    """Return the sum over units of their rows' integer gradients, each unit's cut to the bound.

    >>> gradients = np.array([[3, 0], [0, 4], [6, 8]])
    >>> clipped_units(gradients, np.array([0, 2]), 100), clipped_units(gradients, np.array([0]), 10)
    ([9, 12], [5, 7])

    A cut sum is a little shorter than it could be.
    """
    if not len(starts):
        return [0] * gradients.shape[1]
    sums: Integers = np.add.reduceat(gradients.astype(np.int64), starts, axis=0)
    over = ~_inside(sums, bound)
    if over.any():
        cut = sums[over].astype(np.float64)
        lengths = np.sqrt((cut * cut).sum(axis=1, keepdims=True))
        # a little short of the bound, so that it passes the check, which rounds up
        margin = 1 - (math.sqrt(sums.shape[1]) + 2) * 2.0 ** (3 - _bits(sums.shape[1]))
        shrunk = np.trunc(cut * (bound * margin / lengths)).astype(np.int64)
        shrunk[~_inside(shrunk, bound)] = 0  # never, and decided in integers
        sums[over] = shrunk
    return [sum(column) for column in sums.T.tolist()]  # how many units there are is private


def _bits(columns: int) -> int:
    return min(_CHECKED_BITS, (62 - columns.bit_length()) // 2)


def _inside(sums: Integers, bound: int) -> npt.NDArray[np.bool_]:
    """Tell in integers whether ‖sum‖ <= bound certainly holds: entries are rounded up, it down."""
    shift = max(0, bound.bit_length() - _bits(sums.shape[1]))
    rounded = -(-np.abs(sums) >> shift)
    most = bound >> shift
    small: npt.NDArray[np.bool_] = np.logical_and.reduce(rounded <= most, axis=1)
    squares = np.where(small[:, None], rounded, 0) ** 2
    inside: npt.NDArray[np.bool_] = small & (squares.sum(axis=1) <= most**2)
    return inside
