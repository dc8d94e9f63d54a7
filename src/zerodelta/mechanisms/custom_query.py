"""A caller's query for propose-test-release and for bounded local sensitivity (theory C3, C4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from zerodelta.data.given import Given
from zerodelta.data.interrupts import quietly
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.mechanisms.stable_queries import StableQuery
from zerodelta.privacy.step import Status
from zerodelta.spaces import Box, GridLattice
from zerodelta.spine.facts import Facts
from zerodelta.spine.public_inputs import needed
from zerodelta.spine.run import Openable
from zerodelta.value import value


@value
class CustomQuery(StableQuery):
    """A caller's query with values in a public box; its stability is caller-asserted.

    All numbers are in the unit of the box. What raises or is not a number counts as the center of
    the box, as distance 0 and as the whole box; what is asserted covers this completion too.

    Parameters
    ----------
    function : callable
        `function(rows)` returns a vector.
    grid : GridLattice
        The answers that can be published, such as `zd.Box(0, 100).grid(101)`.
    stability : callable, optional
        `stability(rows, bound)` returns a lower bound on the number of rows to replace until the l1
        local sensitivity exceeds `bound`, of sensitivity 1; for propose-test-release.
    local : callable, optional
        `local(rows)` returns the l1 local sensitivity; for bounded local sensitivity.
    change : number, optional
        The sensitivity of that (theory A8).

    """

    function: Callable[[Any], Any]
    grid: GridLattice
    stability: Callable[[Any, float], Any] | None = None
    local: Callable[[Any], Any] | None = None
    change: Rational | None = None

    @property
    def status(self) -> Status:
        """Asserted: nobody has checked the functions."""
        return Status.ASSERTED

    @property
    def local_change(self) -> int:
        """The change in cells, one more because local sensitivities are rounded up."""
        expected = "a function that returns the local sensitivity"
        require(self.local is not None, "local", None, expected=expected, remedy="pass local=")
        expected = "a public bound on how far one row can move the local sensitivity (theory A8)"
        require(self.change is not None, "change", None, expected=expected, remedy="pass change=")
        exact = as_rational(self.change or 0, "change")
        return max(1, math.ceil(exact / self._side)) + 1

    @property
    def _side(self) -> Fraction:
        """The smallest side of a cell."""
        return Fraction(float(self.grid.box.widths().min())) / self.grid.cells

    def closed(self, rows: Any) -> tuple[Openable[Any], Facts]:
        """Return whatever the caller's functions take; nothing public depends on it.

        Stability and local sensitivity are about rows that all count, under replace-one.
        """
        if isinstance(rows, Source):
            _ = Facts.of(rows).all_rows
        return (rows if isinstance(rows, Source) else Given(rows)), Facts(rows=None, columns=())

    def read(self, rows: Any) -> Any:
        """Return the rows as they are."""
        return rows

    def lattice(self, count: int) -> GridLattice:
        """Return the caller's grid."""
        return self.grid

    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return ⌈bound/side⌉ + d: rounding can add one cell per coordinate (theory C3)."""
        expected = "a function that returns a distance to instability"
        given = self.stability is not None
        require(given, "stability", None, expected=expected, remedy="pass stability=")
        exact = as_positive(bound, "proposed_bound")
        return math.ceil(exact / self._side) + self.grid.dimension

    def answer(self, rows: Any) -> Integers:
        """Return the cell of the answer, of the center if there is none."""
        return self.grid.quantize(_asked(self.function, rows))

    def distance(self, rows: Any, bound: int) -> int:
        """Return the caller's distance, rounded down."""
        real = float((bound - self.grid.dimension) * self._side)
        found: float | None = quietly(_number, _asked(self.stability, rows, real))
        return 0 if found is None else math.floor(max(0.0, min(found, 2.0**53)))

    def local_sensitivity(self, rows: Any) -> int:
        """Return the caller's local sensitivity in cells, at most the whole grid."""
        whole = (self.grid.cells - 1) * self.grid.dimension
        found: float | None = quietly(_number, _asked(self.local, rows))
        if found is None:
            return whole
        cells = math.ceil(max(0.0, min(found / float(self._side), float(whole))))
        return min(whole, cells + self.grid.dimension)


def as_query(
    query: Callable[[Any], Any] | StableQuery,
    *,
    bounds: tuple[Any, Any] | None,
    cells: int,
    stability: Callable[[Any, float], Any] | None = None,
    local: Callable[[Any], Any] | None = None,
    change: Rational | None = None,
) -> StableQuery:
    """Return the query on its public grid; one of ours (`Median`, `TrimmedMean`) as it is."""
    if isinstance(query, StableQuery):
        return query
    expected = "a function of the rows, or a StableQuery"
    require(callable(query), "query", query, expected=expected, remedy="pass query=")
    remedy = "pass bounds=(lower, upper), where the answer of the query can be"
    lower, upper = needed(bounds, "bounds", remedy)
    grid = Box(lower, upper).grid(as_count(cells, "cells", minimum=2))
    return CustomQuery(function=query, grid=grid, stability=stability, local=local, change=change)


def _asked(function: Callable[..., Any] | None, *arguments: Any) -> Any:
    """Return what a caller's function makes of the data; None if it raises (theory A14.4)."""
    return None if function is None else quietly(function, *arguments)


def _number(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number
