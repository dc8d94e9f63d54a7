"""Code rows by the categories of a public domain, and count them into tables.

Each cell is looked up by itself, so the codes of a row do not depend on other rows, and no cell
raises an error.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.data.cells import OptionIndex
from zerodelta.data.columns import Unread, as_frame, as_one_column
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Coded
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Sealed, Source, protection_of
from zerodelta.errors import ParameterError, is_list, needed, require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.rational import as_count
from zerodelta.exact.sums import IntegerArray
from zerodelta.privacy.parameters import Neighbors
from zerodelta.spaces import Finite
from zerodelta.spine.plan import MAX_BYTES, Facts
from zerodelta.value import value

# -- Domain ---------------------------------------------------------------------------------------
# A public domain of categorical columns, and a public workload: the sets of columns to tabulate. A
# table counts rows by the categories of a few columns.

Column: TypeAlias = str | int
Columns: TypeAlias = tuple[int, ...]
"""Indices of columns of the domain, in increasing order."""

MAXIMUM_CELLS = 1 << 24
"""The largest number of cells of a distribution, which is held in memory: 128 MB."""

_MAXIMUM_TABLES = 1 << 16


@value
class Domain:
    """The columns, in the caller's order, and the categories of each.

    >>> domain = as_domain({"sex": ["f", "m"], "age": 3})
    >>> domain.sizes, domain.cells, domain.cells_of((0,))
    ((2, 3), 6, 2)
    """

    columns: tuple[Column, ...]
    categories: tuple[Finite, ...]
    sizes: tuple[int, ...] = field(init=False)
    """The number of categories of each column."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(space.size for space in self.categories))

    @property
    def cells(self) -> int:
        """The number of different rows."""
        return math.prod(self.sizes)

    def shape(self, columns: Columns) -> tuple[int, ...]:
        """Return the shape of the table of these columns."""
        return tuple([self.sizes[i] for i in columns])

    def cells_of(self, columns: Columns) -> int:
        """Return the number of cells of the table of these columns."""
        return math.prod(self.shape(columns))


@value
class TableWorkload:
    """The tables to release, and for each the caller's order of its columns."""

    tables: tuple[Columns, ...]
    names: tuple[tuple[Column, ...], ...]
    """The columns of each table as the caller named them."""
    orders: tuple[tuple[int, ...], ...]
    """The position of each named column in the sorted table."""

    @property
    def closure(self) -> tuple[Columns, ...]:
        """All nonempty subsets of the tables' columns, small ones first."""
        parts = set(itertools.chain.from_iterable(map(parts_of, self.tables)))
        return tuple(sorted(parts, key=lambda part: (len(part), part)))

    @property
    def maximal(self) -> tuple[Columns, ...]:
        """The tables that are not subsets of another one; they determine the others."""
        longest = max(map(len, self.tables))
        tables_of: dict[int, list[frozenset[int]]] = defaultdict(list)
        for table in self.tables:
            for column in table:
                tables_of[column].append(frozenset(table))
        return tuple(
            table
            for table in self.tables
            if len(table) == longest or not any(set(table) < other for other in tables_of[table[0]])
        )


def parts_of(table: Columns) -> list[Columns]:
    """Return all nonempty subsets of a table's columns."""
    sizes = range(1, len(table) + 1)
    return [part for size in sizes for part in itertools.combinations(table, size)]


def as_domain(domain: Any) -> Domain:
    """Return the domain of a mapping from columns to categories; a number N means 0..N-1."""
    categories = needed(
        domain, "domain", 'pass domain={"column": ["category", ...], ...}, known without the rows'
    )
    if isinstance(categories, Domain):
        return categories
    require(
        isinstance(categories, Mapping) and categories,
        "domain",
        type(domain),
        expected="a mapping from columns to lists of categories",
        remedy='pass domain={"sex": ["f", "m"], "age": [...]}',
    )
    spaces = tuple(
        value if isinstance(value, Finite) else Finite(value) for value in categories.values()
    )
    for column, space in zip(categories, spaces, strict=True):
        OptionIndex(space, f"domain of {column!r}")  # refuses two spellings of one number
    return _domain(tuple(categories), spaces)


def _domain(columns: tuple[Column, ...], spaces: tuple[Finite, ...]) -> Domain:
    """Return the domain; refuse columns with fewer than two categories."""
    small = [column for column, space in zip(columns, spaces, strict=True) if space.size < 2]
    require(
        not small,
        "domain",
        small,
        expected="at least 2 categories in each column",
        remedy="drop a column that has only one category",
    )
    return Domain(columns=columns, categories=spaces)


def table_domain(
    rows: Any, columns: Any, domain: Any, *, unknown: Any = None
) -> tuple[Any, Domain]:
    """Return the rows to tabulate and their domain, which a data set has declared."""
    if not isinstance(rows, Dataset):
        require(
            columns is None,
            "columns",
            columns,
            expected="None: the domain names the columns of an array or a frame",
            remedy='pass domain={"sex": ["f", "m"]}, or open the data with zd.open',
        )
        return rows, as_domain(domain)
    require(
        domain is None,
        "domain",
        type(domain),
        expected="None for a data set, which has the categories declared",
        remedy='name its columns: columns=["city", "member"]',
    )
    require(
        unknown is None or not rows.drops_rows,
        "unknown",
        unknown,
        expected="None where rows may be left out (a condition, units, add-remove)",
        remedy="declare it: zd.category([…], other=True)",
    )
    chosen = rows if columns is None else rows[columns]
    uncoded = [name for name, kind in chosen.kinds.items() if not isinstance(kind, Coded)]
    require(
        not uncoded,
        "columns",
        uncoded,
        expected="categories, booleans or dates",
        remedy="name categories, booleans and dates only; a number can be declared as "
        "zd.category([...]) of its values",
    )
    # a data set yields codes, so labels are not compared here: "01" and "1" may differ if exact
    spaces = tuple(Finite(list(kind.labels or ())) for kind in chosen.kinds.values())
    return chosen, _domain(tuple(chosen.kinds), spaces)


def as_workload(workload: Any, domain: Domain) -> TableWorkload:
    """Return all tables of k columns for a number k, else the listed tables.

    None means all pairs of columns, or the column if there is one.
    """
    if isinstance(workload, TableWorkload):
        return workload
    if workload is None:
        workload = min(2, len(domain.columns))
    if isinstance(workload, (int, np.integer)) and not isinstance(workload, bool):
        order = as_count(int(workload), "workload", minimum=1)
        require(
            1 <= math.comb(len(domain.columns), order) <= _MAXIMUM_TABLES,
            "workload",
            workload,
            expected=f"at most the {len(domain.columns)} columns, and at most 2^16 tables",
            remedy="ask for tables of fewer columns, or list the tables",
        )
        entries: list[Any] = list(itertools.combinations(domain.columns, order))
    elif is_list(workload) or isinstance(workload, Set):
        entries = list(workload)
    else:
        entries = []
    names = tuple(_as_columns(entry, domain) for entry in entries)
    places = {column: i for i, column in enumerate(domain.columns)}
    unsorted = [tuple(places[column] for column in name) for name in names]
    tables = tuple(tuple(sorted(place)) for place in unsorted)
    cells = sum(map(domain.cells_of, tables))
    require(
        tables and len(set(tables)) == len(tables) and cells <= MAXIMUM_CELLS,
        "workload",
        workload if not isinstance(workload, Iterable) else f"{len(entries)} tables",
        expected="a number of columns, or a list of different tables with at most 2^24 cells",
        remedy='pass workload=2 for all pairs of columns, or [("sex", "age"), ("age",)]',
    )
    orders = tuple(
        tuple(table.index(column) for column in columns)
        for table, columns in zip(tables, unsorted, strict=True)
    )
    return TableWorkload(tables=tables, names=names, orders=orders)


def _as_columns(entry: Any, domain: Domain) -> tuple[Column, ...]:
    """Check the columns of one table of a workload; a single column may be listed by itself."""
    columns = (entry,) if isinstance(entry, (str, int)) else entry
    require(
        isinstance(columns, (tuple, list))
        and len(columns) > 0
        and all(isinstance(column, Hashable) and column in domain.columns for column in columns)
        and len(set(columns)) == len(columns),
        "workload",
        entry,
        expected=f"different columns of the domain, some of {list(domain.columns)[:10]}",
        remedy="name the columns of a table as in the domain",
    )
    return tuple(columns)


Cells: TypeAlias = npt.NDArray[Any]


@value(eq=False)
class CodedRows:
    """The category codes of each column, one for each row.

    An out-of-domain value has the number of categories as its code. Equal rows may be listed once
    with their number in `weights`; None: every row has weight 1.
    """

    domain: Domain
    rows: int
    codes: tuple[npt.NDArray[Any], ...]
    weights: Integers | None = None
    private: bool = False
    """Whether the number of rows is private; then `rows` is the public expected number."""

    def table(self, columns: Columns) -> Integers:
        """Return the table of the rows' counts for each combination of categories of columns.

        A row with an out-of-domain value in one of the columns is not counted. Replacing one row
        moves at most two cells, each by one.
        """
        shape = self.domain.shape(columns)
        keys = np.zeros(len(self.codes[0]), dtype=np.int64)
        known = np.ones(len(keys), dtype=np.bool_)
        for column, size in zip(columns, shape, strict=True):
            keys = keys * size + self.codes[column]
            known &= self.codes[column] < size
        total = np.zeros(math.prod(shape), dtype=np.int64)
        if self.weights is None:
            total += np.bincount(keys if known.all() else keys[known], minlength=len(total))
        else:
            np.add.at(total, keys[known], self.weights[known])
        return total.reshape(shape)


def tabulated_source(rows: Any, domain: Domain) -> tuple[Source | Sealed[list[Cells]], Facts]:
    """Return a source of the domain's columns, unread, and its public facts.

    Only the shape and the columns of the rows may be refused.
    """
    source: Source | Sealed[list[Cells]]
    private, neighbors = False, Neighbors.REPLACE
    if isinstance(rows, Source):
        positions(domain, rows.columns)
        source, count, neighbors = rows, rows.rows, protection_of(rows).neighbors
        private = not rows.row_count_is_public or (isinstance(rows, Dataset) and rows.filtered)
    else:
        unread = row_columns(rows, domain)
        source, count = Sealed(rows, known=unread.known, read=unread.read), unread.rows
    require(
        count or private,
        "rows",
        expected="at least one row",
        remedy="pass the rows to be tabulated",
    )
    facts = Facts(
        rows=None if private else count,
        expected_rows=max(1, count) if private else None,
        columns=tuple(map(str, domain.columns)),
        neighbors=neighbors,
    )
    return source, facts


def row_columns(rows: Any, domain: Domain) -> Unread:
    """Return the domain's columns of an array, a list of rows or a data frame, unread."""
    if not isinstance(rows, (np.ndarray, list, tuple)):
        frame = as_frame(as_one_column(rows), "rows")
        return Unread(rows).choose(positions(domain, frame.columns, numbered=False))
    table = Unread(rows)
    require(
        len(table.shape) in (1, 2),
        "dimensions of rows",
        len(table.shape),
        expected="2",
        remedy="reshape to (rows, columns)",
    )
    return table.choose(positions(domain, table.names))


def code_rows(
    parts: Sequence[Cells], domain: Domain, out_of_domain: Sequence[int] | None = None
) -> CodedRows:
    """Code the rows; an out-of-domain value has its column's `out_of_domain` code."""
    codes = cell_codes(parts, domain, out_of_domain)
    return _grouped(CodedRows(domain=domain, rows=len(parts[0]), codes=codes))


def cell_codes(
    parts: Sequence[Cells], domain: Domain, out_of_domain: Sequence[int] | None = None
) -> tuple[Integers, ...]:
    """Return the category codes of each column."""
    other_codes = domain.sizes if out_of_domain is None else out_of_domain
    columns = [
        OptionIndex(space).places(part)
        for part, space in zip(parts, domain.categories, strict=True)
    ]
    return tuple(
        np.where(codes < 0, other, codes) for codes, other in zip(columns, other_codes, strict=True)
    )


def out_of_domain_codes(unknown: Any, domain: Domain) -> list[int]:
    """Return the code of out-of-domain values in each column: that of the category `unknown`.

    In a column without that category it is the number of categories, which is not counted.
    """
    spaces = domain.categories
    codes = [None if unknown is None else OptionIndex(space).find(unknown) for space in spaces]
    require(
        unknown is None or any(code is not None for code in codes),
        "unknown",
        unknown,
        expected="a category of some column, or None to ignore rows with out-of-domain values",
        remedy='add it to the domain: {"city": ["Bonn", "Rome", "other"]}, unknown="other"',
    )
    sizes = domain.sizes
    return [size if code is None else code for code, size in zip(codes, sizes, strict=True)]


def row_writer(rows: Any, domain: Domain) -> Callable[[Integers], Any]:
    """Return a function from codes of shape (n, columns) to rows in the caller's container type.

    Column types follow from the categories, never from the data. A container that cannot hold the
    categories is refused here, before a row is read.
    """
    options = [
        space.options if space.options is not None else tuple(range(space.size))
        for space in domain.categories
    ]
    if isinstance(rows, Dataset):
        names = domain.columns
        return lambda codes: {
            name: _as_array(codes[:, [i]], [options[i]])[:, 0] for i, name in enumerate(names)
        }
    if isinstance(rows, (np.ndarray, list, tuple, Source)):
        return lambda codes: _as_array(codes, options)
    frame = as_frame(as_one_column(rows), "rows")
    namespace = nw.get_native_namespace(frame)
    chosen = [frame.columns[i] for i in positions(domain, frame.columns, numbered=False)]

    def write(codes: Integers) -> Any:
        parts = [column[codes[:, i]].to_frame() for i, column in enumerate(columns)]
        return nw.concat(map(nw.maybe_reset_index, parts), how="horizontal").to_native()

    try:
        columns = [
            nw.new_series(name, _of_one_type(column), backend=namespace)
            for name, column in zip(chosen, options, strict=True)
        ]
        write(np.zeros((1, len(options)), dtype=np.int64))
    except Exception:
        raise ParameterError(
            "domain",
            "categories of several types",
            expected="categories that one column of this kind of data frame can hold",
            remedy="use only texts, or only numbers, in each column of the domain",
        ) from None
    return write


def _of_one_type(options: Sequence[Any]) -> list[Any]:
    """Convert numbers to floats if one is a float, else to integers if one is an integer."""
    kinds = {type(option) for option in options if option is not None}
    if not kinds <= {bool, int, float}:
        return list(options)
    kind = float if float in kinds else int if int in kinds else bool
    return [None if option is None else kind(option) for option in options]


def _as_array(codes: Integers, options: Sequence[Sequence[Any]]) -> npt.NDArray[Any]:
    """Return the options of all codes as one array, of numbers if all options are numbers."""
    all_options = [option for column in options for option in column]
    kinds = {type(option) for option in all_options}
    small = all(abs(option) < 1 << 62 for option in all_options if type(option) is int)
    numeric = kinds <= {int, bool, float} and small
    dtype: type = object if not numeric else float if float in kinds else int
    dtype = bool if kinds == {bool} and len(options) == 1 else dtype
    table: npt.NDArray[Any] = np.empty(codes.shape, dtype=dtype)
    for i, column in enumerate(options):
        table[:, i] = np.fromiter(column, dtype=dtype, count=len(column))[codes[:, i]]
    return table


def positions(domain: Domain, columns: Sequence[Any], *, numbered: bool = True) -> list[int]:
    """Return the index of each column of the domain: by name or, if `numbered`, by position."""
    names = list(columns)
    if all(column in names for column in domain.columns):  # numbers may be names in pandas
        return [names.index(column) for column in domain.columns]
    places = {str(i): i for i in range(len(names) if numbered else 0)}
    require(
        all(str(column) in places for column in domain.columns),
        "columns of the domain",
        list(domain.columns)[:10],
        expected=f"columns of the rows, which are {names[:10]}",
        remedy="name the columns of a frame, or use the positions 0, 1, ... of an array",
    )
    return [places[str(column)] for column in domain.columns]


def _grouped(coded: CodedRows) -> CodedRows:
    """Return the distinct rows with their weights, if there are fewer cells than rows."""
    shape = [size + 1 for size in coded.domain.sizes]
    if math.prod(shape) > coded.rows:
        return coded
    counts = np.bincount(np.ravel_multi_index(coded.codes, shape), minlength=math.prod(shape))
    present = np.flatnonzero(counts)
    codes = tuple(code.astype(np.int64) for code in np.unravel_index(present, shape))
    return CodedRows(domain=coded.domain, rows=coded.rows, codes=codes, weights=counts[present])


# -- Tables counted while rows stream by: memory is that of the tables, not of the rows -----------
# Each row is looked up by itself and counts are integers, so the batches do not matter.

_DENSE_COUNTS = 1 << 12
"""The most counts that are computed for each block as an array; with more, a block yields the
cells of its rows, which are added to one array."""

_MAXIMUM_COUNTS = 1 << 24
"""The most counts that are held while rows stream by: 128 MiB."""


@value(eq=False)
class TableCounts:
    """Counts of some tables with an out-of-domain category added to each column.

    Because of that category each table of fewer columns is a sum of these counts, and equal to that
    of `CodedRows`.
    """

    domain: Domain
    rows: int
    counts: dict[Columns, Integers]
    private: bool = False
    """Whether the number of rows is private; then `rows` is the public expected number."""

    def table(self, columns: Columns) -> Integers:
        """Return the number of rows with each combination of categories of these columns."""
        larger = next(table for table in self.counts if set(columns) <= set(table))
        others = tuple(axis for axis, column in enumerate(larger) if column not in columns)
        counts: Integers = self.counts[larger].sum(axis=others, dtype=np.int64)
        kept = [column for column in larger if column in columns]
        inside = counts[tuple(slice(0, self.domain.sizes[column]) for column in kept)]
        return np.ascontiguousarray(inside.transpose([kept.index(column) for column in columns]))


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
) -> Tabulated:
    """Count the tables of a workload in one pass; if they are too large, code all rows instead.

    `declared`: cells are category codes already, as those of a data set. `unknown`: the code of
    out-of-domain values in each column.
    """
    codes_of = _Codes(domain=domain, unknown=tuple(unknown), declared=declared)
    places = positions(domain, rows.columns)
    tables = _counted_tables(domain, workload)
    if tables is None:
        blocks = (codes_of(block[:, places]) for block in rows.blocks())
        types = [np.min_scalar_type(size) for size in domain.sizes]
        parts = [[part.astype(k) for part, k in zip(b, types, strict=True)] for b in blocks]
        empty = [[np.zeros(0, dtype=dtype) for dtype in types]]
        codes = tuple(np.concatenate(column) for column in zip(*(empty + parts), strict=True))
        return CodedRows(domain=domain, rows=planned, codes=codes, private=private)
    shapes = {table: [domain.sizes[i] + 1 for i in table] for table in tables}
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    size = int(ends[-1])
    keyed = size > _DENSE_COUNTS

    def counted(values: Block) -> IntegerArray:  # may run on a cluster
        """Return the counts of the cells of all tables in a block, or the cells themselves."""
        columns = codes_of(values)
        cells: list[Integers] = []
        for (table, shape), end in zip(shapes.items(), ends, strict=True):
            first = end - math.prod(shape)
            cells.append(np.ravel_multi_index([columns[i] for i in table], shape) + first)
        keys = np.concatenate(cells)
        return keys if keyed else np.bincount(keys, minlength=size)

    counts = rows.total(counted, places, shape=(size,), bound=1, keyed=keyed).astype(np.int64)
    table_counts = zip(shapes.items(), np.split(counts, ends[:-1]), strict=True)
    shaped = {table: part.reshape(shape) for (table, shape), part in table_counts}
    return TableCounts(domain=domain, rows=planned, counts=shaped, private=private)


def check_memory(facts: Facts, domain: Domain, workload: TableWorkload) -> None:
    """Refuse a workload that needs all rows of a data set in memory, if they may not fit."""
    row_bytes = sum(np.min_scalar_type(size).itemsize for size in domain.sizes)
    counted = _counted_tables(domain, workload) is not None
    require(
        counted or facts.may_hold(row_bytes, limit=MAX_BYTES),
        "workload",
        f"{len(workload.tables)} tables of {len(domain.columns)} columns",
        expected=f"tables that are counted while rows stream by, or fewer rows than "
        f"{facts.planned_rows}",
        remedy="ask for tables of fewer columns, or list the tables",
    )


def _counted_tables(domain: Domain, workload: TableWorkload) -> tuple[Columns, ...] | None:
    """Return the tables to count: that of all columns or the maximal ones, whichever is smaller.

    None if both are too large.
    """
    full = tuple(range(len(domain.columns)))

    def cells(tables: Sequence[Columns]) -> int:
        return sum(math.prod(domain.sizes[i] + 1 for i in table) for table in tables)

    choices: list[tuple[Columns, ...]] = [(full,), workload.maximal]
    best = min(choices, key=cells)
    return best if cells(best) <= _MAXIMUM_COUNTS else None


@value
class _Codes:
    """Return the category codes of a block of rows, column by column."""

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
