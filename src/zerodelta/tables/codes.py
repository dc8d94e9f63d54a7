"""Rows in memory as category codes, counted into tables; and cells written back as such rows.

Each entry is looked up by itself, so no row depends on another one, and no entry raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.data.columns import as_frame, as_one_column
from zerodelta.data.dataset import Dataset
from zerodelta.data.given import Given
from zerodelta.data.options import Options
from zerodelta.data.source import Source, protection_of
from zerodelta.data.unread import Unread
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Integers
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.spine.facts import Facts
from zerodelta.tables.domain import Columns, Domain
from zerodelta.value import value

Cells: TypeAlias = npt.NDArray[Any]


@value(eq=False)
class CodedRows:
    """For each column and row the number of the category, or the number of categories for none.

    Equal rows are counted together where that is shorter: `weights`, None for 1 each.
    """

    domain: Domain
    rows: int
    codes: tuple[npt.NDArray[Any], ...]
    weights: Integers | None = None
    private: bool = False
    """Whether `rows` is not their number, which is private, but a public guess."""

    def table(self, columns: Columns) -> Integers:
        """Return how many rows have each combination of categories.

        A row with an out-of-domain value in one of the columns counts nowhere. Replacing one row
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


def given_rows(rows: Any, domain: Domain) -> tuple[Source | Given[list[Cells]], Facts]:
    """Return the domain's columns, shut until there is a ticket, and what is public of them.

    Refuses by the shape and the columns of the rows only.
    """
    given: Source | Given[list[Cells]]
    private, neighbors = False, Neighbors.REPLACE
    if isinstance(rows, Source):
        positions(domain, rows.columns)
        given, count, neighbors = rows, rows.rows, protection_of(rows).neighbors
        private = not rows.whole or (isinstance(rows, Dataset) and rows.filtered)
    else:
        unread = row_columns(rows, domain)
        given, count = Given(rows, known=unread.known, read=unread.read), unread.rows
    some = "at least one row"
    require(count or private, "rows", expected=some, remedy="pass the rows to be tabulated")
    facts = Facts(
        rows=None if private else count,
        expected_rows=max(1, count) if private else None,
        columns=tuple(map(str, domain.columns)),
        neighbors=neighbors,
    )
    return given, facts


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
    """Return the rows in numbers; an out-of-domain value has its column's `out_of_domain` code."""
    codes = cell_codes(parts, domain, out_of_domain)
    return _grouped(CodedRows(domain=domain, rows=len(parts[0]), codes=codes))


def cell_codes(
    parts: Sequence[Cells], domain: Domain, out_of_domain: Sequence[int] | None = None
) -> tuple[Integers, ...]:
    """Return for each column the numbers of the categories."""
    codes = domain.sizes if out_of_domain is None else out_of_domain
    places = [
        Options(space).places(part) for part, space in zip(parts, domain.categories, strict=True)
    ]
    return tuple(np.where(each < 0, code, each) for each, code in zip(places, codes, strict=True))


def out_of_domain_codes(unknown: Any, domain: Domain) -> list[int]:
    """Return each column's code of the category `unknown`, or of none: it is counted nowhere."""
    spaces = domain.categories
    found = [None if unknown is None else Options(space).find(unknown) for space in spaces]
    require(
        unknown is None or any(place is not None for place in found),
        "unknown",
        unknown,
        expected="a category of some column, or None to count out-of-domain values nowhere",
        remedy='add it to the domain: {"city": ["Bonn", "Rome", "other"]}, unknown="other"',
    )
    sizes = domain.sizes
    return [size if place is None else place for place, size in zip(found, sizes, strict=True)]


def row_writer(rows: Any, domain: Domain) -> Callable[[Integers], Any]:
    """Return a function from codes (n, columns) to rows of the caller's kind.

    Types follow from the categories, never from the data; what cannot hold them is refused here.
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
            nw.new_series(name, _alike(column), backend=namespace)
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


def _alike(options: Sequence[Any]) -> list[Any]:
    """Return numbers as floats if some of them are, as integers if some of those are."""
    kinds = {type(option) for option in options if option is not None}
    if not kinds <= {bool, int, float}:
        return list(options)
    kind = float if float in kinds else int if int in kinds else bool
    return [None if option is None else kind(option) for option in options]


def _as_array(codes: Integers, options: Sequence[Sequence[Any]]) -> npt.NDArray[Any]:
    every = [option for column in options for option in column]
    kinds = {type(option) for option in every}
    small = all(abs(option) < 1 << 62 for option in every if type(option) is int)
    plain = kinds <= {int, bool, float} and small
    dtype: type = object if not plain else float if float in kinds else int
    dtype = bool if kinds == {bool} and len(options) == 1 else dtype
    table: npt.NDArray[Any] = np.empty(codes.shape, dtype=dtype)
    for i, column in enumerate(options):
        table[:, i] = np.fromiter(column, dtype=dtype, count=len(column))[codes[:, i]]
    return table


def positions(domain: Domain, columns: Sequence[Any], *, numbered: bool = True) -> list[int]:
    """Return where the domain's columns are: by name or, if `numbered`, as 0, 1, ... or "0", ..."""
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
    """Return each different row once, if there are fewer cells than rows."""
    wide = [size + 1 for size in coded.domain.sizes]
    if math.prod(wide) > coded.rows:
        return coded
    counts = np.bincount(np.ravel_multi_index(coded.codes, wide), minlength=math.prod(wide))
    present = np.flatnonzero(counts)
    codes = tuple(code.astype(np.int64) for code in np.unravel_index(present, wide))
    return CodedRows(domain=coded.domain, rows=coded.rows, codes=codes, weights=counts[present])
