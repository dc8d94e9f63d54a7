"""Tables counted while rows stream by: memory follows the tables, not the number of rows.

Each row is looked up by itself and counts are integers, so batches change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.source import Rows
from zerodelta.errors import require
from zerodelta.spine.facts import Facts
from zerodelta.tables.codes import CodedRows, Integers, cell_codes, positions
from zerodelta.tables.domain import Columns, Domain, TableWorkload

__all__ = ["TableCounts", "Tabulated", "check_memory", "count_rows"]

_MOST_WIDE = 1 << 24
"""So many counts are held while rows stream by: 128 MiB."""

MOST_BYTES = 2 << 30
"""Rows that are needed together may take so much memory."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TableCounts:
    """Some tables, each with one more category in every column: what is out of the domain.

    So each table of fewer columns follows, as `CodedRows` would count it.
    """

    domain: Domain
    rows: int
    wide: dict[Columns, Integers]
    private: bool = False
    """Whether `rows` is not their number, which is private, but a public guess."""

    def table(self, columns: Columns) -> Integers:
        """Return how many rows have each combination of categories, in these columns."""
        around = next(table for table in self.wide if set(columns) <= set(table))
        others = tuple(axis for axis, column in enumerate(around) if column not in columns)
        counts: Integers = self.wide[around].sum(axis=others, dtype=np.int64)
        left = [column for column in around if column in columns]
        inside = counts[tuple(slice(0, self.domain.sizes[column]) for column in left)]
        return np.ascontiguousarray(inside.transpose([left.index(column) for column in columns]))


Tabulated: TypeAlias = CodedRows | TableCounts


def count_rows(
    rows: Rows,
    domain: Domain,
    workload: TableWorkload,
    *,
    unknown: Sequence[int],
    declared: bool,
    planned: int,
    private: bool,
    whole: bool = False,
) -> Tabulated:
    """Return what is needed of the rows for the tables of a workload, in one pass.

    `declared`: rows hold the codes of the categories already, as those of a data set do. `whole`:
    the table of all columns is needed. `unknown`: the code of what is out of the domain.
    """
    blocks = _codes(rows, domain, unknown, declared=declared)
    tables = _held(domain, workload, whole=whole)
    if tables is None:
        kinds = [np.min_scalar_type(size) for size in domain.sizes]
        parts = [[part.astype(k) for part, k in zip(b, kinds, strict=True)] for b in blocks]
        empty = [[np.zeros(0, dtype=kind) for kind in kinds]]
        codes = tuple(np.concatenate(column) for column in zip(*(empty + parts), strict=True))
        return CodedRows(domain=domain, rows=planned, codes=codes, private=private)
    shapes = {table: [domain.sizes[i] + 1 for i in table] for table in tables}
    wide = {table: np.zeros(math.prod(shapes[table]), dtype=np.int64) for table in tables}
    for block in blocks:
        for table, counts in wide.items():
            keys = np.ravel_multi_index([block[i] for i in table], shapes[table])
            if len(counts) <= len(keys):
                counts += np.bincount(keys, minlength=len(counts))
            else:
                found, times = np.unique(keys, return_counts=True)
                counts[found] += times
    shaped = {table: counts.reshape(shapes[table]) for table, counts in wide.items()}
    return TableCounts(domain=domain, rows=planned, wide=shaped, private=private)


def check_memory(facts: Facts, domain: Domain, workload: TableWorkload) -> None:
    """Refuse by public numbers what would hold all rows of a data set in too much memory."""
    each = sum(np.min_scalar_type(size).itemsize for size in domain.sizes)
    require(
        _held(domain, workload, whole=False) is not None or facts.planned_rows * each <= MOST_BYTES,
        "workload",
        f"{len(workload.tables)} tables of {len(domain.columns)} columns",
        expected=f"tables that are counted while rows stream by, or fewer rows than "
        f"{facts.planned_rows}",
        remedy="ask for tables of fewer columns, or list the tables",
    )


def _held(domain: Domain, workload: TableWorkload, *, whole: bool) -> tuple[Columns, ...] | None:
    """Return the tables that are counted: one of all columns, or those asked for if that is less.

    None if both are too large.
    """
    full = tuple(range(len(domain.columns)))

    def cells(tables: Sequence[Columns]) -> int:
        return sum(math.prod(domain.sizes[i] + 1 for i in table) for table in tables)

    choices: list[tuple[Columns, ...]] = [(full,), *([] if whole else [workload.maximal])]
    best = min(choices, key=cells)
    return best if cells(best) <= _MOST_WIDE else None


def _codes(
    rows: Rows, domain: Domain, unknown: Sequence[int], *, declared: bool
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    chosen = positions(domain, rows.columns)
    for block in rows.blocks():
        columns = [np.ascontiguousarray(block[:, place]) for place in chosen]
        if not declared:
            yield cell_codes(columns, domain, unknown)
            continue
        yield tuple(
            np.where(np.isnan(column), code, column).astype(np.int64)
            for column, code in zip(columns, unknown, strict=True)
        )
