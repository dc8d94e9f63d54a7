"""Small data sets and all pairs of neighbors among them, under every relation there is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import zerodelta as zd
from zerodelta.audit.exact import neighbors
from zerodelta.data.dataset import Dataset

NOWHERE = float("nan")


@dataclass(frozen=True)
class Relation:
    """Data sets of one column "0" by their keys, what counts in each, and which are neighbors."""

    name: str
    keys: list[Any]
    open: Callable[[Any, Any], Dataset]
    """The data set of a key, the column being of this kind."""
    counted: Callable[[Any], list[float]]
    pairs: list[tuple[Any, Any]]
    max_rows: int = 1
    neighbors: zd.records.Neighbors = zd.records.Neighbors.REPLACE


def replaced(values: Sequence[float], rows: int) -> Relation:
    """One row is replaced; a cell may be missing."""
    cells = [NOWHERE, *values]
    keys = list(itertools.product(range(len(cells)), repeat=rows))

    def table(key: Any, kind: Any) -> Dataset:
        return zd.open(np.array([cells[i] for i in key]), columns={"0": kind})

    return Relation(
        name="replace",
        keys=keys,
        open=table,
        counted=lambda key: [cells[i] for i in key if i],
        pairs=[(a, b) for a, b in itertools.combinations(keys, 2) if _differ(a, b)],
    )


def filtered(values: Sequence[float], rows: int) -> Relation:
    """One row is replaced, and a condition drops some of them."""
    cells = list(itertools.product(values, (0.0, 1.0)))
    keys = list(itertools.product(range(len(cells)), repeat=rows))

    def table(key: Any, kind: Any) -> Dataset:
        shown = np.array([cells[i] for i in key])
        return zd.open(shown, columns={"0": kind, "1": zd.boolean()}).where("1")

    return Relation(
        name="where",
        keys=keys,
        open=table,
        counted=lambda key: [cells[i][0] for i in key if cells[i][1]],
        pairs=[(a, b) for a, b in itertools.combinations(keys, 2) if _differ(a, b)],
    )


def added(values: Sequence[float], rows: int, expected: int = 3) -> Relation:
    """One row comes or goes: data sets of 0 rows up to so many."""
    cells = [NOWHERE, *values]
    places = range(len(cells))
    keys = [
        key
        for count in range(rows + 1)
        for key in itertools.combinations_with_replacement(places, count)
    ]

    def table(key: Any, kind: Any) -> Dataset:
        return zd.open(
            np.array([cells[i] for i in key], dtype=float),
            columns={"0": kind},
            neighbors="add-remove",
            expected_rows=expected,
        )

    return Relation(
        name="add-remove",
        keys=keys,
        open=table,
        counted=lambda key: [cells[i] for i in key if i],
        pairs=[(key, key[:i] + key[i + 1 :]) for key in keys for i in range(len(key))],
        neighbors=zd.records.Neighbors.ADD_REMOVE,
    )


def of_units(values: Sequence[float], *, others: int = 3) -> Relation:
    """All rows of one unit, at most two, are replaced; the other unit has one of a few lists."""
    lists = list(_lists(values))
    keys = [(one, two) for one in lists for two in lists[:: max(1, len(lists) // others)]]

    def table(key: Any, kind: Any) -> Dataset:
        rows = [[float(unit), value] for unit, each in enumerate(key) for value in each]
        shown = np.array(rows).reshape(-1, 2)[:, ::-1]
        columns = {"0": kind}
        return zd.open(shown, columns=columns, unit="1", max_rows=2, units=2)

    return Relation(
        name="unit",
        keys=keys,
        open=table,
        counted=lambda key: [value for each in key for value in each],
        pairs=[(a, b) for a, b in itertools.combinations(keys, 2) if a[1] == b[1]],
        max_rows=2,
    )


def _lists(values: Sequence[float]) -> Iterator[tuple[float, ...]]:
    for count in range(3):
        yield from itertools.combinations_with_replacement(values, count)


def _differ(one: Any, two: Any) -> bool:
    return sum(bool(a != b) for a, b in zip(one, two, strict=True)) == 1


# -- one row beside another ------------------------------------------------------------------------

BESIDE = ["replace", "where", "add-remove", "unit"]
Rows = tuple[Any, ...]


def opened_beside(rows: Rows, columns: dict[str, Any], relation: str) -> Dataset:
    """Open a few rows; all but the last are those of one unit, of which two count."""
    table = pd.DataFrame(list(rows), columns=list(columns))
    options: dict[str, Any] = {}
    if relation == "add-remove":
        options = {"neighbors": "add-remove", "expected_rows": 2}
    if relation == "unit":
        table["who"] = ["ann"] * (len(table) - 1) + ["bob"]
        options = {"unit": "who", "max_rows": 2, "units": 2}
    return zd.open(table, columns=columns, **options)


def tables_beside(
    rows: Sequence[Any], other: Any, relation: str, *, of_unit: Sequence[Any]
) -> tuple[list[Rows], Callable[[list[Any]], list[tuple[Any, Any]]]]:
    """Tables of the other row and any one, or two of a unit; and which results are of neighbors."""
    if relation == "add-remove":
        return [(other,), *((other, row) for row in rows)], lambda found: [
            (found[0], one) for one in found[1:]
        ]
    tables: list[Rows] = [(row, other) for row in rows]
    if relation == "unit":
        pairs = itertools.combinations_with_replacement(of_unit, 2)
        tables = [(*pair, other) for pair in pairs]
    return tables, lambda found: list(itertools.combinations(found, 2))


def certified_beside(certificate: Any, relation: str, epsilon: Any) -> None:
    """Assert that ε is proven for the relation."""
    related = "add-remove" if relation == "add-remove" else "replace"
    unit = "who" if relation == "unit" else None
    claim = zd.verify(certificate, epsilon=epsilon, neighbors=related, unit=unit)
    assert claim == zd.purification.PureDP(epsilon, neighbors=zd.records.Neighbors(related))


# -- tables that are sums over rows ----------------------------------------------------------------


def unordered(universe: Sequence[Any], count: int) -> list[Rows]:
    """Return each table of so many rows once, whatever their order."""
    return list(itertools.combinations_with_replacement(universe, count))


def unordered_pairs(universe: Sequence[Any], count: int) -> list[tuple[Rows, Rows]]:
    """Return those of them that differ in one row: by position, for a NaN is not its own equal."""
    places = itertools.product(range(len(universe)), repeat=count)
    pairs = {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbors(places)}
    return [
        (tuple(universe[i] for i in a), tuple(universe[i] for i in b)) for a, b in sorted(pairs)
    ]
