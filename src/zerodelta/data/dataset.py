"""What `zd.open` returns: declared columns of any source, read cell by cell to their kinds.

A `Dataset` is a source of floats: numbers, and codes for categories, booleans and dates; NaN is
missing. A row that `where` drops, or that is one too many for its unit, counts nowhere: it is a row
of missing cells. So nothing knows how many rows are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrow_cells import Distinct
from zerodelta.data.kept_copy import Keeping
from zerodelta.data.kind import Bounds, Kind
from zerodelta.data.kinds import Boolean, Category, Number
from zerodelta.data.predicate import Predicate
from zerodelta.data.protection import Protection
from zerodelta.data.reader import Batch, Part, Reader
from zerodelta.data.readings import Limits, readings_of
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Rows, Source, ours
from zerodelta.data.spark_reader import SparkReader
from zerodelta.data.spark_rows import SparkRows
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.data.units import Bounded, Bounding
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import as_count
from zerodelta.privacy.neighbors import Neighbors

__all__ = ["DEFAULT_MEMORY", "ITSELF", "Base", "Dataset", "Unit", "skips"]

_BATCH = 1 << 16

DEFAULT_MEMORY = 1 << 30
"""How many bytes of a copy of the rows are kept in memory, by default."""

_KEEPING = Keeping(memory=DEFAULT_MEMORY)

ITSELF = ""
"""The name of a column that is 1 in every row that counts: no source has one without a name."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """Whose rows are protected together: the column that names it, and how many rows count."""

    column: str
    max_rows: int
    number: int | None = None
    """How many units there are, if declared; else they are counted."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """What all selections of one data set share; everything here is public."""

    reader: Reader
    kinds: Mapping[str, Kind]
    unit: Unit | None = None
    neighbors: Neighbors = Neighbors.REPLACE
    name: str | None = None
    expected_rows: int | None = None
    keeping: Keeping = _KEEPING
    counted: list[int] = field(default_factory=list, repr=False, compare=False)

    def count(self) -> int:
        """Return the number of rows, or of units times the rows that count, once it was asked.

        Called only where it is public.
        """
        if not self.counted:
            self.counted.append(self._count())
        return self.counted[0]

    def _count(self) -> int:
        if self.unit is None:
            return self.reader.count()
        number = self.unit.number
        if number is None and isinstance(self.reader, SparkReader):
            number = self.reader.count_units(self.unit.column)
        if number is None:
            ids = Bounding(max_rows=1)
            for place, part in enumerate(self.parts((self.unit.column,))):
                for (cells,) in part():
                    ids.add(place, cells, [])
            number = ids.finish().units
        return number * self.unit.max_rows

    def parts(self, names: tuple[str, ...]) -> Sequence[Part]:
        """Return the cells of some columns, part by part."""
        numbers = frozenset(n for n in names if isinstance(self.kinds.get(n), Number))
        return self.reader.parts(names, batch=_BATCH, numbers=numbers)

    def bounded(self, names: tuple[str, ...]) -> tuple[Sequence[Part], Bounded]:
        """Return the cells of some columns, and which rows count.

        Of each unit at most so many, chosen by its own rows alone. A query may yield its rows in
        another order when it is run again: its result is read once, and held.
        """
        unit = self.unit
        if unit is None:  # pragma: no cover
            raise AssertionError("rows of no unit are not bounded")
        everything = tuple(dict.fromkeys([*self.kinds, unit.column]))
        parts, cells = self.parts(everything), self.parts(names)
        if self.reader.premise is not None:
            held = [list(part()) for part in parts]
            parts = [partial(iter, batches) for batches in held]
            places = [everything.index(name) for name in names]
            cells = [partial(_chosen, batches, places) for batches in held]
        rows = Bounding(max_rows=unit.max_rows)
        for place, part in enumerate(parts):
            for batch in part():
                named = dict(zip(everything, batch, strict=True))
                columns = [kind.read(named[name]) for name, kind in self.kinds.items()]
                rows.add(place, named[unit.column], columns)
        return cells, rows.finish()


def _chosen(batches: list[Batch], places: list[int]) -> Iterator[Batch]:
    return (tuple(batch[place] for place in places) for batch in batches)


@ours
@final
class Dataset(Source):
    """Declared columns of a source, some or all of them, and a public condition on rows.

    `people["income"]` and `people[["age", "income"]]` choose columns; `people.where("age >= 18")`
    chooses rows.
    """

    __slots__ = ("__weakref__", "_base", "_expected", "_judged", "_names", "_where")

    def __init__(
        self,
        base: Base,
        *,
        names: tuple[str, ...] | None = None,
        where: tuple[Predicate, ...] = (),
        expected_rows: int | None = None,
        judged: Mapping[str, Bounds | None] | None = None,
    ) -> None:
        self._base, self._where, self._judged = base, where, judged
        self._names = tuple(base.kinds) if names is None else names
        self._expected = expected_rows

    # -- what is public of it -----------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the chosen columns."""
        return self._names

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The chosen columns and what they were declared as."""
        named = (name for name in self._names if name != ITSELF)
        return MappingProxyType({name: self._base.kinds[name] for name in named})

    @property
    def declared(self) -> Mapping[str, Kind]:
        """All columns that were declared, by which the rows of a unit are chosen."""
        return MappingProxyType(dict(self._base.kinds))

    @property
    def unit(self) -> Unit | None:
        """Whose rows are protected together, if not each by itself."""
        return self._base.unit

    @property
    def name(self) -> str | None:
        """What the data set is called."""
        return self._base.name

    @property
    def rows(self) -> int:
        """The public number of rows to plan with: all, at most, or about as many.

        Not what `where` leaves of them, which nobody knows.
        """
        expected = self._planned
        if expected is not None and not self.whole:
            return expected
        if self._base.neighbors is Neighbors.ADD_REMOVE:
            raise ParameterError(
                "expected_rows",
                None,
                expected="about how many rows there are: their number is private here",
                remedy="pass expected_rows= to zd.open, known without the rows",
            )
        return self._base.count()

    @property
    def whole(self) -> bool:
        """Whether the number of rows is public, known, and each of them is yielded."""
        guessed = self.filtered and self._planned is not None
        alone = self._base.unit is None and self._base.neighbors is Neighbors.REPLACE
        return alone and not guessed

    @property
    def filtered(self) -> bool:
        """Whether a condition drops rows."""
        return bool(self._where)

    @property
    def _planned(self) -> int | None:
        return self._expected if self._expected is not None else self._base.expected_rows

    @property
    def may_miss(self) -> bool:
        """Whether a cell may be missing, so that the number of those present is private."""
        absent = any(skips(kind) for kind in self.kinds.values())
        return bool(self._where) or not self.whole or absent

    @property
    def drops(self) -> bool:
        """Whether some rows may count nowhere."""
        return bool(self._where) or not self.whole

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept."""
        return self._base.keeping

    @property
    def protection(self) -> Protection:
        """Who is protected, and what that assumes."""
        base, reader = self._base, self._base.reader
        return Protection(
            row=reader.row,
            unit=None if base.unit is None else base.unit.column,
            max_rows=1 if base.unit is None else base.unit.max_rows,
            neighbors=base.neighbors,
            bare=reader.bare,
            premise=reader.premise,
        )

    @property
    def told(self) -> str:
        """Which number a plan uses for that of the rows, where what counts of them is private."""
        base = self._base
        if self.whole:
            return "the number of all rows"
        guessed = self._expected is not None or base.expected_rows is not None
        if guessed or base.unit is None or base.unit.number is not None:
            return "how many rows are expected"
        return "the number of units"

    @property
    def text(self) -> str:
        """The source in one line, without any of its contents."""
        return self._base.reader.text

    @property
    def with_itself(self) -> Dataset:
        """The same columns, and one more that is `row_itself`."""
        names = (*self._names, ITSELF)
        return Dataset(self._base, names=names, where=self._where, expected_rows=self._expected)

    @property
    def row_itself(self) -> Dataset:
        """One column that is 1 in every row that counts, and missing in all others."""
        return Dataset(self._base, names=(ITSELF,), where=self._where, expected_rows=self._expected)

    def readings(self, limits: Limits) -> Dataset:
        """One column that says how each row that counts was read (`readings_of`)."""
        return Dataset(
            self._base,
            names=(ITSELF,),
            where=self._where,
            expected_rows=self._expected,
            judged=dict(zip(self._names, limits, strict=True)),
        )

    # -- choosing -----------------------------------------------------------------------------

    def __getitem__(self, columns: str | Sequence[str]) -> Dataset:
        """Return some of the columns."""
        asked = (columns,) if isinstance(columns, str) else tuple(columns)
        known = [name for name in asked if name in self._base.kinds]
        require(
            asked and len(known) == len(asked) == len(set(asked)),
            "columns",
            columns,
            expected=f"declared columns, each once, of {list(self._base.kinds)[:10]}",
            remedy="declare them in zd.open(…, columns={…})",
        )
        return Dataset(self._base, names=asked, where=self._where, expected_rows=self._expected)

    def where(self, condition: str, *, expected_rows: int | None = None) -> Dataset:
        """Return the rows for which a public condition holds; how many these are is private.

        Parameters
        ----------
        condition : str
            Comparisons of declared columns with values, joined by and, or, not; or the name of a
            boolean column. A comparison with a missing cell does not hold.
        expected_rows : int, optional
            About how many rows that will be, known without the rows; plans and forecasts use it.
            By default the public number of all rows.

        """
        found = Predicate.of(condition, self._base.kinds)
        expected = self._expected
        if expected_rows is not None:
            expected = as_count(expected_rows, "expected_rows", minimum=1)
        return Dataset(
            self._base, names=self._names, where=(*self._where, found), expected_rows=expected
        )

    def beside(self, other: Dataset) -> Dataset:
        """Return both selections of columns as one, of the same rows."""
        require(
            other._base is self._base and other._where == self._where,
            "columns",
            list(other._names),
            expected="columns of the same data set, with the same condition",
            remedy="take both from one people = zd.open(…)",
        )
        return self[list(self._names + other._names)]

    # -- reading ------------------------------------------------------------------------------

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release; those of units are chosen once, and kept."""
        if isinstance(self._base.reader, SparkReader):  # where the rows are, they are added up
            Ticket.check(ticket)
            return SparkRows(self, self._base.reader, ticket)
        # a query is run once for a ticket: it may yield other rows the next time
        once = self._base.unit is not None or self._base.reader.premise is not None
        return super().open(ticket, keep=keep or once)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows; those that count nowhere have missing cells only, or are left out."""
        for piece in self.pieces(ticket):
            yield from piece()

    def pieces(self, ticket: Ticket) -> Sequence[Piece]:
        """Return the parts of the rows; threads may read several at a time."""
        Ticket.use(ticket)
        read = self.needed
        kept: Sequence[npt.NDArray[np.bool_]] | None = None
        if self._base.unit is None:
            parts = self._base.parts(read)
        else:
            parts, bounded = self._base.bounded(read)
            kept = bounded.kept

        def piece(place: int, part: Part) -> Piece:
            def blocks() -> Iterator[Block]:
                start, distinct = 0, {name: Distinct() for name in read}
                for batch in part():
                    block = self.read(dict(zip(read, batch, strict=True)), distinct)
                    stop = start + len(block)
                    yield block if kept is None else block[kept[place][start:stop]]
                    start = stop

            return blocks

        return [piece(place, part) for place, part in enumerate(parts)]

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns whose cells `read` needs: those chosen, and those of conditions."""
        used = [*self._names, *(name for each in self._where for name in each.columns)]
        used += self._judged or ()
        named = tuple(dict.fromkeys(name for name in used if name != ITSELF))
        # where rows alone are asked for, any column has as many
        return named or tuple(self._base.kinds)[:1]

    def read(
        self, cells: Mapping[str, Any], distinct: Mapping[str, Distinct] | None = None
    ) -> Block:
        """Return the chosen columns of one batch, from the cells of those that are needed.

        What texts are read to is known from the batches before (`distinct`).
        """
        kinds = self._base.kinds
        rows = len(next(iter(cells.values())))
        block = np.empty((len(self._names), rows))  # each column in one piece
        for i, name in enumerate(self._names):
            if name == ITSELF:
                block[i] = self._itself(cells)
            elif distinct is None or not distinct[name].read(
                cells[name], partial(_read, kinds[name]), out=block[i]
            ):
                block[i] = _read(kinds[name], cells[name])
        if self._where:
            done = dict(zip(self._names, block, strict=True))
            others = {n: _read(kinds[n], cells[n]) for n in cells if n not in done}
            block[:, ~self._kept({**done, **others})] = np.nan
        found: Block = block.T
        return found

    def _itself(self, cells: Mapping[str, Any]) -> Any:
        if self._judged is None:
            return 1.0
        columns = [self._base.kinds[name].read(cells[name]) for name in self._judged]
        return readings_of(columns, tuple(self._judged.values()))

    def _kept(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.bool_]:
        kept: npt.NDArray[np.bool_] = np.logical_and.reduce([each(columns) for each in self._where])
        return kept

    # -- showing ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        base = self._base
        lines = [f"{base.name or 'data'}: {base.reader.text}"]
        lines += [f"  {name}: {kind}" for name, kind in self.kinds.items()]
        lines += [f"  where {condition.text}" for condition in self._where]
        protects = self.protection
        lines.append(f"  protects {protects.words or 'one row'} ({protects.neighbors.value})")
        return "\n".join(lines)


def _read(kind: Kind, cells: Any) -> npt.NDArray[np.float64]:
    """Return the numbers or codes of a column; what is missing as declared."""
    values: npt.NDArray[np.float64] = kind.read(cells)
    return kind.filled(values) if isinstance(kind, Number) else values


def skips(kind: Kind) -> bool:
    """Tell whether a cell of the column may count nowhere."""
    if isinstance(kind, Number):
        return kind.missing == "skip"
    if isinstance(kind, Category):
        return not kind.other
    return not (isinstance(kind, Boolean) and kind.missing)
