"""A caller's query for propose-test-release and for bounded local sensitivity (theory C3, C4)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from zerodelta.exact.rational import Rational, as_count
from zerodelta.paper.stable_queries import CustomQuery, StableQuery
from zerodelta.spaces import Box
from zerodelta.spine.public_inputs import needed

__all__ = ["as_query", "cell_side", "plain"]


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
    needed(query if callable(query) else None, "query", "pass query=, a function of the rows")
    lower, upper = needed(
        bounds, "bounds", "pass bounds=(lower, upper), where the answer of the query can be"
    )
    grid = Box(lower, upper).grid(as_count(cells, "cells", minimum=2))
    return CustomQuery(function=query, grid=grid, stability=stability, local=local, change=change)


def cell_side(query: StableQuery, count: int) -> float:
    """Return the average side of a cell of the grid of answers, in the unit of the answer."""
    lattice = query.lattice(count)
    return float(lattice.box.widths().mean()) / float(Fraction(lattice.cells))


def plain(value: Any) -> Any:
    """Return a number for one coordinate, else the vector."""
    return float(value[0]) if len(value) == 1 else value
