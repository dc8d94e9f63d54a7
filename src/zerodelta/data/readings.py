"""How each row was read: as it is, clipped to its bounds, or with a cell that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.derived_source import DerivedSource
from zerodelta.data.kind import Bounds
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source, ours
from zerodelta.data.ticket import Ticket
from zerodelta.exact.rational import inner_ends

USED, CLIPPED, UNREADABLE = 0, 1, 2

Limits: TypeAlias = tuple[Bounds | None, ...]
"""The bounds of each column; None for one whose cells are not clipped."""

Beyond: TypeAlias = Callable[[Block], npt.NDArray[np.bool_]]
"""Tells which rows are clipped as a whole, each by itself: those that are too long."""


def readings_of(
    columns: Sequence[npt.NDArray[Any]], limits: Limits, beyond: Beyond | None = None
) -> npt.NDArray[np.float64]:
    """Return 0 (used), 1 (clipped) or 2 (unreadable) for each row, from its own cells alone.

    >>> from fractions import Fraction
    >>> ages = np.array([17.0, 130.0, np.nan])
    >>> readings_of([ages], ((Fraction(0), Fraction(120)),)).tolist()
    [0.0, 1.0, 2.0]
    """
    clipped = np.zeros(len(columns[0]), dtype=np.bool_)
    unreadable = np.zeros(len(columns[0]), dtype=np.bool_)
    for values, bounds in zip(columns, limits, strict=True):
        if values.dtype == np.object_:  # texts
            unreadable |= np.fromiter((text is None for text in values), np.bool_, len(values))
            continue
        unreadable |= np.isnan(values)
        if bounds is not None:
            lower, upper = inner_ends(*bounds)
            clipped |= (values < lower) | (values > upper)
    if beyond is not None:
        clipped |= beyond(np.stack(columns, axis=1))
    return np.where(unreadable, float(UNREADABLE), np.where(clipped, float(CLIPPED), float(USED)))


@ours
@final
class Readings(DerivedSource):
    """One column that says how each row of another source was read."""

    __slots__ = ("_beyond", "_limits")

    def __init__(self, source: Source, limits: Limits, beyond: Beyond | None = None) -> None:
        self._of = source.unfilled if isinstance(source, ArraySource) else source
        self._limits, self._beyond = limits, beyond

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return ("reading",)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield the readings of all rows."""
        for block in self._of.blocks(ticket):
            yield readings_of(list(block.T), self._limits, self._beyond)[:, None]
