"""What the columns of a data set were declared as, for a study: bounds, codes, rows to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.kind import Coded, Kind
from zerodelta.data.kinds import Boolean, Number, Text
from zerodelta.data.row_queries import Bounds, box_lattice, norm_lattice
from zerodelta.data.rowwise import Block, NamedColumns, RowFunction, as_function
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational
from zerodelta.study.rehearsal import rows_to_try
from zerodelta.value import value


@value
class Declared:
    """The kinds of named columns; of an array or a frame there are none."""

    names: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> Declared:
        """Return what was declared of a source."""
        kinds = source.kinds if isinstance(source, Dataset) else {}
        return cls(names=source.columns, kinds=kinds)

    def columns(self, function: RowFunction) -> NamedColumns | None:
        """Return the columns that a query names, if they were declared."""
        mapped = as_function(function, self.names) if self.kinds else None
        return mapped if type(mapped) is NamedColumns else None

    def bounds(self, columns: NamedColumns) -> Bounds | None:
        """Return the bounds of columns of numbers or booleans."""
        kinds = [self.kinds[self.names[place]] for place in columns.positions]
        if not all(isinstance(kind, (Number, Boolean)) for kind in kinds):
            return None  # a mean of codes is one of nothing
        ends: list[Any] = [kind.bounds for kind in kinds]
        lower, upper = zip(*ends, strict=True)
        return (lower[0], upper[0]) if len(kinds) == 1 else (lower, upper)

    def size(self, keys: RowFunction) -> int:
        """Return how many codes a column has."""
        named = self.columns(keys)
        size = None
        if named is not None and named.width == 1:
            size = self.kinds[self.names[named.positions[0]]].size
        if size is None:
            raise ParameterError(
                "size",
                None,
                expected="the public number of keys",
                remedy="pass size=, or name a column declared as a category, boolean or date",
            )
        return size

    def rows_to_try(
        self, bounds: Bounds | None, data_norm: Rational | None, example: Any, *, count: int
    ) -> Block:
        """Return made-up rows within the given bounds or the declared ones, or the caller's rows.

        Codes, and declared integers, are whole numbers in them.
        """
        within = self._all_bounds() if bounds is None else bounds
        rows = rows_to_try(self.names, within, data_norm, example, count=count)
        kinds = [self.kinds.get(name) for name in self.names]
        whole = [isinstance(k, Coded) or (isinstance(k, Number) and k.integer) for k in kinds]
        return np.where(whole, np.floor(rows), rows) if example is None and any(whole) else rows

    def _all_bounds(self) -> Bounds | None:
        """Return the bounds of all columns; codes up to one more than the last, to be cut."""
        if not self.kinds:
            return None
        kinds = [self.kinds[name] for name in self.names]
        ends: list[Any] = [kind.bounds for kind in kinds]
        upper = [float(end) + isinstance(k, Coded) for (_, end), k in zip(ends, kinds, strict=True)]
        return [float(end) for end, _ in ends], upper


def check_defaults(bounds: Bounds | None, data_norm: Rational | None) -> None:
    """Refuse bounds, or a norm, that no query could use."""
    if bounds is not None:
        box_lattice(bounds)(1 if np.ndim(bounds[0]) == 0 else len(bounds[0]))
    if data_norm is not None:
        norm_lattice(data_norm, "data_norm")(1)


def rows_of_a_unit(source: Source) -> int:
    """Return like how many rows a unit counts, by public numbers.

    All that may, unless fewer are expected, and the rows of units can be brought together here.
    """
    most = protection_of(source).max_rows
    if not isinstance(source, Dataset) or source.by_unit is None:
        return most
    limit = source.keeping.memory
    held = limit is None or source.rows * (len(source.columns) + 1) * 8 <= limit
    return source.rows_of_a_unit if held else most


def studied(source: Source) -> Source:
    """Return the columns that a study can use."""
    require(
        source.rows >= 1 and source.columns,
        "rows",
        "no rows or no columns",
        expected="at least one row and one column",
        remedy="pass the data as an array of shape (n, columns)",
    )
    if not isinstance(source, Dataset):
        return source
    read = [name for name, kind in source.kinds.items() if not isinstance(kind, Text)]
    require(
        read,
        "columns",
        list(source.columns)[:10],
        expected="at least one column that is no text",
        remedy="name numbers, categories, booleans or dates",
    )
    return source[read] if len(read) < len(source.columns) else source
