"""Tables counted while rows stream by: memory follows the tables, not the number of rows.

Each row is looked up by itself and counts are integers, so batches change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.spine.facts import MOST_BYTES, Facts
from zerodelta.tables.codes import CodedRows, cell_codes, positions
from zerodelta.tables.domain import Columns, Domain, TableWorkload
from zerodelta.value import value

_FEW = 1 << 12
"""So many counts are made of each block; more are added where they are."""

_MOST_WIDE = 1 << 24
"""So many counts are held while rows stream by: 128 MiB."""


@value(eq=False)
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
    codes_of = _Codes(domain=domain, unknown=tuple(unknown), declared=declared)
    places = positions(domain, rows.columns)
    tables = _held(domain, workload, whole=whole)
    if tables is None:
        blocks = (codes_of(block[:, places]) for block in rows.blocks())
        kinds = [np.min_scalar_type(size) for size in domain.sizes]
        parts = [[part.astype(k) for part, k in zip(b, kinds, strict=True)] for b in blocks]
        empty = [[np.zeros(0, dtype=kind) for kind in kinds]]
        codes = tuple(np.concatenate(column) for column in zip(*(empty + parts), strict=True))
        return CodedRows(domain=domain, rows=planned, codes=codes, private=private)
    shapes = {table: [domain.sizes[i] + 1 for i in table] for table in tables}
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    size = int(ends[-1])
    keyed = size > _FEW

    def counted(values: Block) -> IntegerArray:  # may run elsewhere
        columns = codes_of(values)
        found: list[Integers] = []
        for (table, shape), end in zip(shapes.items(), ends, strict=True):
            first = end - math.prod(shape)
            found.append(np.ravel_multi_index([columns[i] for i in table], shape) + first)
        keys = np.concatenate(found)
        return keys if keyed else np.bincount(keys, minlength=size)

    counts = rows.total(counted, places, shape=(size,), bound=1, keyed=keyed).astype(np.int64)
    parts_of = zip(shapes.items(), np.split(counts, ends[:-1]), strict=True)
    shaped = {table: part.reshape(shape) for (table, shape), part in parts_of}
    return TableCounts(domain=domain, rows=planned, wide=shaped, private=private)


def check_memory(facts: Facts, domain: Domain, workload: TableWorkload) -> None:
    """Refuse by public numbers what would hold all rows of a data set in too much memory."""
    each = sum(np.min_scalar_type(size).itemsize for size in domain.sizes)
    require(
        _held(domain, workload, whole=False) is not None or facts.may_hold(each, most=MOST_BYTES),
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


@value
class _Codes:
    """What the cells of a block are in the domain, column by column."""

    domain: Domain
    unknown: tuple[int, ...]
    declared: bool

    def __call__(self, block: Block) -> tuple[npt.NDArray[Any], ...]:
        columns = [np.ascontiguousarray(column) for column in block.T]
        if not self.declared:
            return cell_codes(columns, self.domain, self.unknown)
        return tuple(
            np.where(np.isnan(column), code, column).astype(np.int64)
            for column, code in zip(columns, self.unknown, strict=True)
        )
