"""What `zd.open` returns: declared columns of any source, read cell by cell to their kinds.

A `Dataset` is a source of floats: numbers, and codes for categories, booleans and dates; NaN is
missing. A row that `where` drops, or that is one too many for its unit, counts nowhere: it is a row
of missing cells. So nothing knows how many rows are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.account import Account
from zerodelta.data.arrow_cells import Distinct, stored_integers
from zerodelta.data.kept_copy import Keeping
from zerodelta.data.kept_copy import kept as copied
from zerodelta.data.kind import Bounds, Kind
from zerodelta.data.kinds import Boolean, Category, Number, Text
from zerodelta.data.predicate import Predicate
from zerodelta.data.protection import Protection
from zerodelta.data.reader import Batch, Part, Reader
from zerodelta.data.readings import Limits, readings_of
from zerodelta.data.rowwise import Block
from zerodelta.data.shared_copy import UNIT, ColumnsOf
from zerodelta.data.source import Rows, Source, ours
from zerodelta.data.spark_reader import SparkReader
from zerodelta.data.spark_rows import SparkRows
from zerodelta.data.tallies import Keys
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.data.units import Bounding
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
    account: Account | None = None
    """Who pays for releases from these rows."""
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

    def parts(
        self, names: tuple[str, ...], *, whole: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the cells of some columns, part by part; those `whole` are not read to floats."""
        numbers = frozenset(n for n in names if isinstance(self.kinds.get(n), Number))
        return self.reader.parts(names, batch=_BATCH, numbers=numbers - whole)

    @property
    def everything(self) -> tuple[str, ...]:
        """All declared columns, and that of the unit."""
        unit = () if self.unit is None else (self.unit.column,)
        return tuple(dict.fromkeys([*self.kinds, *unit]))

    def held(self, *, whole: frozenset[str]) -> list[list[Batch]]:
        """Return the cells of everything, part by part."""
        return [list(part()) for part in self.parts(self.everything, whole=whole)]

    def bounding(
        self, unit: Unit, parts: Sequence[Part]
    ) -> tuple[Bounding, Iterator[tuple[int, Mapping[str, Any]]]]:
        """Return which rows count, once all batches that are yielded beside it were taken.

        Of each unit at most so many, chosen by its own rows alone. A batch has the cells of
        `everything`, in `parts`, and the number of its part.
        """
        limit = {} if self.keeping.memory is None else {"memory": self.keeping.memory // 8}
        rows = Bounding(max_rows=unit.max_rows, folder=self.keeping.folder, **limit)

        def batches() -> Iterator[tuple[int, Mapping[str, Any]]]:
            for place, part in enumerate(parts):
                for batch in part():
                    named = dict(zip(self.everything, batch, strict=True))
                    columns = [kind.read(named[name]) for name, kind in self.kinds.items()]
                    rows.add(place, named[unit.column], columns)
                    yield place, named

        return rows, batches()


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
        named = (name for name in self._names if name not in (ITSELF, UNIT))
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
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return isinstance(self._base.reader, SparkReader)

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
            accounts=() if base.account is None else (base.account,),
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
    def described(self) -> dict[str, Any]:
        """What is asked of, as JSON can write it: columns and their kinds, conditions, units."""
        unit = self._base.unit
        return {
            "name": self.name,
            "columns": {name: kind.declaration for name, kind in self.kinds.items()},
            "where": [condition.text for condition in self._where],
            "unit": None if unit is None else [unit.column, unit.max_rows],
            "neighbors": self._base.neighbors.value,
            "expected_rows": self._planned,
        }

    @property
    def with_itself(self) -> Dataset:
        """The same columns, and one more that is `row_itself`."""
        names = (*self._names, ITSELF)
        return self._with(names=names)

    @property
    def row_itself(self) -> Dataset:
        """One column that is 1 in every row that counts, and missing in all others."""
        return self._with(names=(ITSELF,))

    @property
    def by_unit(self) -> Dataset | None:
        """The same columns and the number of each row's unit; None if that is not known here."""
        if self._base.unit is None or isinstance(self._base.reader, SparkReader):
            return None
        return self._with(names=(*self._names, UNIT), judged=self._judged)

    @property
    def rows_of_a_unit(self) -> int:
        """About how many rows that count a unit has: as many as may, unless both are declared."""
        unit, expected = self._base.unit, self._planned
        if unit is None:
            return 1
        if unit.number is None or expected is None:
            return unit.max_rows
        return min(unit.max_rows, max(1, -(-expected // unit.number)))

    def readings(self, limits: Limits) -> Dataset:
        """One column that says how each row that counts was read (`readings_of`)."""
        judged = dict(zip(self._names, limits, strict=True))
        return self._with(names=(ITSELF,), judged=judged)

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
        return self._with(names=asked)

    def where(self, condition: str, *, expected_rows: int | None = None) -> Dataset:
        """Return the rows for which a public condition holds; how many these are is private.

        Parameters
        ----------
        condition : str
            Comparisons of declared columns with values, joined by and, or, not; or the name of a
            boolean column. A comparison with a missing cell does not hold. A name that is no
            identifier, such as "0" of an array, stands between backticks: ```0` >= 18``.
        expected_rows : int, optional
            About how many rows that will be, known without the rows; plans and forecasts use it.
            By default the public number of all rows.

        """
        found = Predicate.of(condition, self._base.kinds)
        expected = self._expected
        if expected_rows is not None:
            expected = as_count(expected_rows, "expected_rows", minimum=1)
        return self._with(where=(*self._where, found), expected_rows=expected)

    def _with(self, **changed: Any) -> Dataset:
        """Return the same rows with something else chosen; what is judged is not handed on."""
        same: dict[str, Any] = {
            "names": self._names,
            "where": self._where,
            "expected_rows": self._expected,
        }
        return Dataset(self._base, **{**same, **changed})

    def beside(self, other: Dataset) -> Dataset:
        """Return both selections of columns as one, of the same rows."""
        one, two = self.protection, other.protection
        same = "the same data set, with the same condition"
        if (one.unit, one.max_rows, one.neighbors) != (two.unit, two.max_rows, two.neighbors):
            stated = [f"{each.words or 'one row'} ({each.neighbors.value})" for each in (one, two)]
            same += f": these protect {stated[0]}, and {stated[1]}"
        require(
            other._base is self._base and other._where == self._where,
            "columns",
            list(other._names),
            expected=f"columns of {same}",
            remedy="take both from one people = zd.open(…)",
        )
        return self[list(self._names + other._names)]

    # -- reading ------------------------------------------------------------------------------

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release; those of units are chosen once, and kept."""
        Ticket.check(ticket)
        shared = self._shared(ticket)
        if shared is not None:
            return shared
        if isinstance(self._base.reader, SparkReader):  # where the rows are, they are added up
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
        return self._pieces(ticket, stored=False)

    def stored_pieces(self, ticket: Ticket) -> Sequence[Piece]:
        """Return the same parts; the only column as it is stored, where that says the same."""
        return self._pieces(ticket, stored=True)

    def _pieces(self, ticket: Ticket, *, stored: bool) -> Sequence[Piece]:
        Ticket.use(ticket)
        shared = self._shared(ticket)
        if shared is not None:
            return shared.pieces()
        read, unit = self.needed, self._base.unit
        kept: Sequence[npt.NDArray[np.bool_]] | None = None
        numbers: Sequence[npt.NDArray[np.int64]] = ()
        if unit is not None:
            everything = self._parts(ticket, self._base.everything)
            bounding, batches = self._base.bounding(unit, everything)
            if self._base.reader.premise is not None:
                return self._held(bounding, batches)
            for _ in batches:
                pass
            bounded = bounding.finish()
            kept, numbers = bounded.kept, bounded.numbers
        parts = self._parts(ticket, read)

        def piece(place: int, part: Part) -> Piece:
            def blocks() -> Iterator[Any]:
                start = 0
                for batch in part():
                    if plain and (keys := self._stored(batch[0], distinct[read[0]])):
                        yield keys
                        continue
                    block = self.read(dict(zip(read, batch, strict=True)), distinct)
                    stop = start + len(block)
                    if UNIT in self._names:
                        block[:, self._names.index(UNIT)] = numbers[place][start:stop]
                    yield block if kept is None else block[kept[place][start:stop]]
                    start = stop

            return blocks

        distinct = {name: Distinct() for name in read}
        plain = stored and kept is None and not self._where and self._names != (ITSELF,)
        return [piece(place, part) for place, part in enumerate(parts)]

    def _parts(
        self, ticket: Ticket, names: tuple[str, ...], *, whole: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the cells of some columns; of those that the ticket holds already, if it does."""
        base = self._base
        held: list[list[Batch]] | None = ticket.made(base)
        if held is None:
            return base.parts(names, whole=whole)
        places = [base.everything.index(name) for name in names]
        return [partial(_columns_of, batches, places) for batches in held]

    def _held(
        self, bounding: Bounding, batches: Iterator[tuple[int, Mapping[str, Any]]]
    ) -> Sequence[Piece]:
        """Return the rows of a query that count.

        It may yield its rows in another order when it is run again: so it is run once, and what is
        read of its result is held until it is known which rows count, beyond a limit in a file.
        """
        needed, places = self.needed, []

        def blocks() -> Iterator[Block]:
            for place, cells in batches:
                places.append(place)
                yield self.read({name: cells[name] for name in needed})

        keeping = self._base.keeping
        half = None if keeping.memory is None else keeping.memory // 2  # of what is kept, a copy
        held = copied(blocks(), replace(keeping, memory=half))
        bounded, starts, pieces = bounding.finish(), Counter[int](), []
        number = self._names.index(UNIT) if UNIT in self._names else None
        for place, block in zip(places, held, strict=True):
            here = slice(starts[place], starts[place] + len(block))
            starts[place] = here.stop
            flags, units = bounded.kept[place][here], bounded.numbers[place][here]
            pieces.append(partial(_counting, block, flags, units, number))
        return pieces

    def _stored(self, column: Any, distinct: Distinct) -> Keys | None:
        """Return the only column as it is stored, where that says the same."""
        kind = self.kinds[self._names[0]]
        if isinstance(kind, Number):
            integers = stored_integers(column)
            return None if integers is None else Keys(integers)
        found = distinct.places(column, partial(_read, kind))
        return None if found is None else Keys(*found)

    def _shared(self, ticket: Ticket) -> Rows | None:
        """Return these columns of the one copy of a query's result, if others are asked beside."""
        other = ticket.beside
        if self._base.reader.premise is None or not isinstance(other, Dataset):
            return None
        copied = ticket.once(other, other._with_judged)
        alike = other._base is self._base and other._where == self._where
        plain = ITSELF in self._names and self._judged is None
        other_judged = self._judged is not None and self._judged != other._judged
        if self is copied or not alike or other_judged or not {*self._names} <= {*copied._names}:
            return None
        rows = ticket.once(copied, lambda: copied.open(ticket, keep=True))
        itself = ITSELF if plain else None
        return ColumnsOf(rows, self._names, may_miss=self.may_miss, itself=itself)

    def _with_judged(self) -> Dataset:
        """Return the columns that are judged, and before them the one that says how."""
        kinds = self._base.kinds
        names = [n for n in self._judged or () if not isinstance(kinds[n], Text)]
        if self.by_unit is not None:
            names.append(UNIT)
        return self._with(names=(ITSELF, *names), judged=self._judged)

    def cells(
        self, ticket: Ticket, *, whole: frozenset[str]
    ) -> Iterator[tuple[Mapping[str, Any], npt.NDArray[np.bool_] | None]]:
        """Yield the cells of the columns as they are, and which rows of them count (None: all).

        For keys, which need not be numbers; columns in `whole` are not read to floats.
        """
        Ticket.use(ticket)
        read, base = self.needed, self._base
        kept: Sequence[npt.NDArray[np.bool_]] | None = None
        if base.reader.premise is not None:  # another run might yield other rows
            ticket.once(base, partial(base.held, whole=whole))
        parts = self._parts(ticket, read, whole=whole)
        if base.unit is not None:
            everything = self._parts(ticket, base.everything, whole=whole)
            bounding, batches = base.bounding(base.unit, everything)
            for _ in batches:
                pass
            kept = bounding.finish().kept
        conditions = {name for each in self._where for name in each.columns}
        for place, part in enumerate(parts):
            start = 0
            for batch in part():
                named = dict(zip(read, batch, strict=True))
                stop = start + len(batch[0])
                counts = None if kept is None else kept[place][start:stop]
                if self._where:
                    found = self._kept({n: _read(base.kinds[n], named[n]) for n in conditions})
                    counts = found if counts is None else counts & found
                yield named, counts
                start = stop

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns whose cells `read` needs: those chosen, and those of conditions."""
        used = [*self._names, *(name for each in self._where for name in each.columns)]
        used += self._judged or ()
        named = tuple(dict.fromkeys(name for name in used if name not in (ITSELF, UNIT)))
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
            if name in (ITSELF, UNIT):  # the latter is known where rows are bounded
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
        lines += [f"  {account.line}" for account in protects.accounts]
        return "\n".join(lines)


def _columns_of(batches: list[Batch], places: list[int]) -> Iterator[Batch]:
    return (tuple(batch[place] for place in places) for batch in batches)


def _counting(
    block: Block,
    flags: npt.NDArray[np.bool_],
    units: npt.NDArray[np.int64],
    number: int | None,
) -> Iterator[Block]:
    """Yield the rows that count, the numbers of their units in the column for these, if any."""
    counting = block[flags]
    if number is not None:
        counting[:, number] = units[flags]
    yield counting


def _read(kind: Kind, cells: Any) -> npt.NDArray[np.float64]:
    """Return the numbers or codes of a column; what is missing as declared. A text is 1."""
    values: npt.NDArray[np.float64] = kind.read(cells)
    if isinstance(kind, Text):
        texts: Any = values
        return np.array([np.nan if text is None else 1.0 for text in texts])
    return kind.filled(values) if isinstance(kind, Number) else values


def skips(kind: Kind) -> bool:
    """Tell whether a cell of the column may count nowhere."""
    if isinstance(kind, Number):
        return kind.missing == "skip"
    if isinstance(kind, Category):
        return not kind.other
    return not (isinstance(kind, Boolean) and kind.missing)
