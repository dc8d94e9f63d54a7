"""What `zd.open` returns: declared columns of any source, read for a ticket in pieces or as cells.

A `Dataset` is a source of floats: numbers, and codes for categories, booleans and dates; NaN is
missing. A row that `where` drops, or that is one too many for its unit, counts nowhere: it is a row
of missing cells. So nothing knows how many rows are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import Beyond, Limits
from zerodelta.data.arrow_cells import Distinct
from zerodelta.data.chosen import PRESENT, ChosenColumns, OpenedDataset, Predicate, Unit
from zerodelta.data.kinds import Kind, Text, skips
from zerodelta.data.pieces import Keeping, Piece, kept
from zerodelta.data.readers import Batch, Part
from zerodelta.data.rows import UNIT, Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Protection, Source, Ticket, ours
from zerodelta.data.spark import OnCluster
from zerodelta.data.units import Bounded, Bounding
from zerodelta.errors import ParameterError, is_list, is_name, printable, require
from zerodelta.exact.rational import as_count
from zerodelta.privacy.parameters import Neighbors

# -- Rows of chosen columns, read for a ticket: in pieces that threads may read, or as cells ------
# Where rows have units, all declared columns are read once before, to know which rows count.

Cells: TypeAlias = Mapping[str, Any]
"""The cells of a batch by the names of their columns."""


def pieces_of(chosen: ChosenColumns, ticket: Ticket, *, stored: bool) -> Sequence[Piece]:
    """Return the parts of the rows; those that count nowhere have no cell, or are left out.

    With `stored` the only column is handed out as it is stored, where that says the same.
    """
    base, needed = chosen.base, chosen.needed
    bounded: Bounded | None = None
    if base.unit is not None:
        bounding, batches = base.bounding(base.unit, _parts(chosen, ticket, base.everything))
        if base.reader.premise is not None:
            return _held(chosen, bounding, batches)
        bounded = _finished(bounding, batches)
    distinct = {name: Distinct() for name in needed}
    plain = stored and bounded is None and not chosen.where and chosen.names != (PRESENT,)

    def blocks(place: int, part: Part) -> Iterator[Any]:
        start = 0
        for batch in part():
            if plain and (keys := chosen.read_plainly(batch[0], distinct[needed[0]])):
                yield keys
                continue
            block = chosen.read(dict(zip(needed, batch, strict=True)), distinct)
            here = slice(start, start + len(block))
            yield block if bounded is None else _counting(chosen, block, bounded, place, here)
            start = here.stop

    parts = _parts(chosen, ticket, needed)
    return [partial(blocks, place, part) for place, part in enumerate(parts)]


def cells_of(
    chosen: ChosenColumns, ticket: Ticket, *, whole: frozenset[str]
) -> Iterator[tuple[Cells, npt.NDArray[np.bool_] | None]]:
    """Yield the cells of the columns as they are, and which rows of them count (None: all).

    For keys, which need not be numbers; columns in `whole` are not read to floats.
    """
    Ticket.use(ticket)
    base, needed = chosen.base, chosen.needed
    flags: Sequence[npt.NDArray[np.bool_]] | None = None
    if base.reader.premise is not None:  # another run might yield other rows
        ticket.once(base, partial(base.held, whole=whole))
    parts = _parts(chosen, ticket, needed, whole=whole)
    if base.unit is not None:
        everything = _parts(chosen, ticket, base.everything, whole=whole)
        flags = _finished(*base.bounding(base.unit, everything)).kept
    for place, part in enumerate(parts):
        start = 0
        for batch in part():
            named = dict(zip(needed, batch, strict=True))
            stop = start + len(batch[0])
            counts = None if flags is None else flags[place][start:stop]
            if chosen.where:
                found = chosen.holds(named)
                counts = found if counts is None else counts & found
            yield named, counts
            start = stop


def _parts(
    chosen: ChosenColumns,
    ticket: Ticket,
    names: tuple[str, ...],
    *,
    whole: frozenset[str] = frozenset(),
) -> Sequence[Part]:
    """Return the cells of some columns; of those that the ticket holds already, if it does."""
    base = chosen.base
    held: list[list[Batch]] | None = ticket.made(base)
    if held is None:
        return base.parts(names, whole=whole)
    places = [base.everything.index(name) for name in names]
    return [partial(_columns_of, batches, places) for batches in held]


def _columns_of(batches: list[Batch], places: list[int]) -> Iterator[Batch]:
    return (tuple(batch[place] for place in places) for batch in batches)


def _finished(bounding: Bounding, batches: Iterator[tuple[int, Cells]]) -> Bounded:
    """Take all batches, and return which of their rows count."""
    for _ in batches:
        pass
    return bounding.finish()


def _held(
    chosen: ChosenColumns, bounding: Bounding, batches: Iterator[tuple[int, Cells]]
) -> Sequence[Piece]:
    """Return the rows of a query that count.

    It may yield its rows in another order when it is run again: so it is run once, and what is
    read of its result is held until it is known which rows count, beyond a limit in a file.
    """
    needed, places = chosen.needed, []

    def blocks() -> Iterator[Block]:
        for place, cells in batches:
            places.append(place)
            yield chosen.read({name: cells[name] for name in needed})

    keeping = chosen.base.keeping
    half = None if keeping.memory is None else keeping.memory // 2  # of what is kept, a copy
    held = kept(blocks(), replace(keeping, memory=half))
    bounded, starts, pieces = bounding.finish(), Counter[int](), []
    for place, block in zip(places, held, strict=True):
        here = slice(starts[place], starts[place] + len(block))
        starts[place] = here.stop
        pieces.append(partial(_piece, chosen, block, bounded, place, here))
    return pieces


def _piece(*which: Any) -> Iterator[Block]:
    yield _counting(*which)


def _counting(
    chosen: ChosenColumns, block: Block, bounded: Bounded, place: int, here: slice
) -> Block:
    """Return the rows that count, with the numbers of their units if the column is chosen."""
    flags = bounded.kept[place][here]
    counting: Block = block[flags]
    if UNIT in chosen.names:
        counting[:, chosen.names.index(UNIT)] = bounded.numbers[place][here][flags]
    return counting


@ours
@final
class Dataset(Source):
    """Declared columns of a source, some or all of them, and a public condition on rows.

    `people["income"]` and `people[["age", "income"]]` choose columns; `people.where("age >= 18")`
    chooses rows.
    """

    __slots__ = ("__weakref__", "_base", "_expected", "chosen")

    def __init__(
        self,
        base: OpenedDataset,
        *,
        chosen: ChosenColumns | None = None,
        expected_rows: int | None = None,
    ) -> None:
        self._base, self._expected = base, expected_rows
        self.chosen = chosen or ChosenColumns(base=base, names=tuple(base.kinds))

    # -- what is public of it -----------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the chosen columns."""
        return self.chosen.names

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The chosen columns and what they were declared as."""
        named = (name for name in self.columns if name not in (PRESENT, UNIT))
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
        return bool(self.chosen.where)

    @property
    def _planned(self) -> int | None:
        return self._expected if self._expected is not None else self._base.expected_rows

    @property
    def may_miss(self) -> bool:
        """Whether a cell may be missing, so that the number of those present is private."""
        absent = any(skips(kind) for kind in self.kinds.values())
        return bool(self.chosen.where) or not self.whole or absent

    @property
    def drops(self) -> bool:
        """Whether some rows may count nowhere."""
        return bool(self.chosen.where) or not self.whole

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept."""
        return self._base.keeping

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return self._base.reader.cluster is not None

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
    def row_count_sentence(self) -> str:
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
            "where": [condition.text for condition in self.chosen.where],
            "unit": None if unit is None else [unit.column, unit.max_rows],
            "neighbors": self._base.neighbors.value,
            "expected_rows": self._planned,
        }

    @property
    def with_itself(self) -> Dataset:
        """The same columns, and one more that is `row_itself`."""
        names = (*self.columns, PRESENT)
        return self._with(names=names)

    @property
    def row_itself(self) -> Dataset:
        """One column that is 1 in every row that counts, and missing in all others."""
        return self._with(names=(PRESENT,))

    @property
    def by_unit(self) -> Dataset | None:
        """The same columns and the number of each row's unit; None if that is not known here."""
        if self._base.unit is None or self.remote:
            return None
        chosen = self.chosen
        return self._with(
            names=(*self.columns, UNIT),
            diagnosed_columns=chosen.diagnosed_columns,
            beyond=chosen.beyond,
        )

    @property
    def rows_of_a_unit(self) -> int:
        """About how many rows that count a unit has: as many as may, unless both are declared."""
        unit, expected = self._base.unit, self._planned
        if unit is None:
            return 1
        if unit.number is None or expected is None:
            return unit.max_rows
        return min(unit.max_rows, max(1, -(-expected // unit.number)))

    def readings(self, limits: Limits, beyond: Beyond | None = None) -> Dataset:
        """One column that says how each row that counts was read (`readings_of`)."""
        diagnosed = dict(zip(self.columns, limits, strict=True))
        return self._with(names=(PRESENT,), diagnosed_columns=diagnosed, beyond=beyond)

    # -- choosing -----------------------------------------------------------------------------

    def __getitem__(self, columns: str | Sequence[str]) -> Dataset:
        """Return some of the columns."""
        listed = [columns] if isinstance(columns, str) else columns
        asked = tuple(listed) if is_list(listed) else ()
        known = [name for name in asked if is_name(name, self._base.kinds)]
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
        chosen = replace(
            self.chosen, where=(*self.chosen.where, found), diagnosed_columns=None, beyond=None
        )
        return Dataset(self._base, chosen=chosen, expected_rows=expected)

    def _with(self, **changed: Any) -> Dataset:
        """Return the same rows with something else chosen; diagnosed columns are not handed on."""
        chosen = replace(self.chosen, **{"diagnosed_columns": None, "beyond": None, **changed})
        return Dataset(self._base, chosen=chosen, expected_rows=self._expected)

    def beside(self, other: Dataset) -> Dataset:
        """Return both selections of columns as one, of the same rows."""
        one, two = self.protection, other.protection
        same = "the same data set, with the same condition"
        if (one.unit, one.max_rows, one.neighbors) != (two.unit, two.max_rows, two.neighbors):
            stated = [f"{each.words or 'one row'} ({each.neighbors.value})" for each in (one, two)]
            same += f": these protect {stated[0]}, and {stated[1]}"
        require(
            other._base is self._base and other.chosen.where == self.chosen.where,
            "columns",
            list(other.columns),
            expected=f"columns of {same}",
            remedy="take both from one people = zd.open(…)",
        )
        return self[list(self.columns + other.columns)]

    # -- reading ------------------------------------------------------------------------------

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release; those of units are chosen once, and kept."""
        Ticket.check(ticket)
        shared = self._shared(ticket)
        if shared is not None:
            return shared
        cluster = self._base.reader.cluster
        if cluster is not None:  # where the rows are, they are added up
            return self._opened(OnCluster(self, cluster, ticket))
        # a query is run once for a ticket: it may yield other rows the next time
        once = self._base.unit is not None or self._base.reader.premise is not None
        return super().open(ticket, keep=keep or once)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows; those that count nowhere have missing cells only, or are left out."""
        for piece in self.pieces(ticket):
            yield from piece()

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return the parts of the rows, `stored` where that says the same; for threads."""
        Ticket.use(ticket)
        shared = self._shared(ticket)
        return pieces_of(self.chosen, ticket, stored=stored) if shared is None else shared.pieces()

    def cells(
        self, ticket: Ticket, *, whole: frozenset[str]
    ) -> Iterator[tuple[Mapping[str, Any], npt.NDArray[np.bool_] | None]]:
        """Yield the cells of the columns as they are, and which rows of them count (None: all).

        For keys, which need not be numbers; columns in `whole` are not read to floats.
        """
        return cells_of(self.chosen, ticket, whole=whole)

    def _shared(self, ticket: Ticket) -> Rows | None:
        """Return these columns of the one copy of a query's result, if others are asked beside."""
        other = ticket.second_source
        if self._base.reader.premise is None or not isinstance(other, Dataset):
            return None
        copied = ticket.once(other, other._with_diagnosed_columns)
        alike = other._base is self._base and other.chosen.where == self.chosen.where
        plain = PRESENT in self.columns and self.chosen.diagnosed_columns is None
        other_diagnosis = (
            self.chosen.diagnosed_columns is not None
            and self.chosen.diagnosed_columns != other.chosen.diagnosed_columns
        )
        if (
            self is copied
            or not alike
            or other_diagnosis
            or not {*self.columns} <= {*copied.columns}
        ):
            return None
        rows = ticket.once(copied, lambda: copied.open(ticket, keep=True))
        itself = PRESENT if plain else None
        return rows.chosen(self.columns, may_miss=self.may_miss, itself=itself)

    def _with_diagnosed_columns(self) -> Dataset:
        """Return the diagnosed columns, and before them the one that says how each row was read."""
        kinds = self._base.kinds
        names = [n for n in self.chosen.diagnosed_columns or () if not isinstance(kinds[n], Text)]
        if self.by_unit is not None:
            names.append(UNIT)
        chosen = self.chosen
        return self._with(
            names=(PRESENT, *names),
            diagnosed_columns=chosen.diagnosed_columns,
            beyond=chosen.beyond,
        )

    # -- showing ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        base = self._base
        lines = [f"{base.name or 'data'}: {base.reader.text}"]
        lines += [f"  {name}: {kind}" for name, kind in self.kinds.items()]
        lines += [f"  where {condition.text}" for condition in self.chosen.where]
        protects = self.protection
        lines.append(f"  protects {protects.words or 'one row'} ({protects.neighbors.value})")
        lines += [f"  {account.line}" for account in protects.accounts]
        return "\n".join(printable(line) for line in lines)
