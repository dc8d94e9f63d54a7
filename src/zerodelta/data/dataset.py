"""Define `Dataset`, which `zd.open` returns: declared columns of any source, read with a ticket.

A `Dataset` is a source of floats: numbers, and codes for categories, booleans and dates; NaN is
missing. A row that `where` drops, or that exceeds the rows of its unit, is ignored: it becomes a
row of missing cells. So the number of rows that count stays unknown.
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

from zerodelta.data.arrays import Limits, TooLong
from zerodelta.data.arrow_cells import Distinct
from zerodelta.data.chosen import PRESENT, ChosenColumns, OpenedDataset, Predicate, Unit
from zerodelta.data.kinds import Boolean, Kind, Number, Text, skips
from zerodelta.data.pieces import Keeping, Piece, copied_blocks
from zerodelta.data.readers import Batch, Part
from zerodelta.data.rows import UNIT, Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Protection, Source, Ticket, trusted_source
from zerodelta.data.spark import OnCluster
from zerodelta.data.units import Bounded, Bounding
from zerodelta.errors import ParameterError, is_list, is_name, printable, require
from zerodelta.exact.rational import as_count
from zerodelta.privacy.parameters import Neighbors

# -- Rows of chosen columns: as floats, in pieces that threads may read, or as cells --------------
# If rows have units, all declared columns are read once before, to choose the rows that count.

Cells: TypeAlias = Mapping[str, Any]
"""The cells of a batch by the names of their columns."""


def pieces_of(chosen: ChosenColumns, ticket: Ticket, *, stored: bool) -> Sequence[Piece]:
    """Return the parts of the rows; ignored rows are left out or have missing cells only.

    With `stored` a single column is yielded as a `StoredColumn` where that is equivalent.
    """
    base, needed = chosen.base, chosen.needed
    bounded: Bounded | None = None
    if base.unit is not None:
        bounding, batches = base.bounding(base.unit, _parts(chosen, ticket, base.everything))
        if base.reader.premise is not None:
            return _query_pieces(chosen, bounding, batches)
        bounded = _bounded(bounding, batches)
    distinct = {name: Distinct() for name in needed}
    plain = stored and bounded is None and not chosen.where and chosen.names != (PRESENT,)

    def blocks(place: int, part: Part) -> Iterator[Any]:
        """Yield the blocks of a part as columns of floats, only the rows kept for each unit."""
        start = 0
        for batch in part():
            if plain and (column := chosen.read_plainly(batch[0], distinct[needed[0]])):
                yield column
                continue
            block = chosen.read(dict(zip(needed, batch, strict=True)), distinct)
            rows = slice(start, start + len(block))
            yield (
                block if bounded is None else _rows_that_count(chosen, block, bounded, place, rows)
            )
            start = rows.stop

    parts = _parts(chosen, ticket, needed)
    return [partial(blocks, place, part) for place, part in enumerate(parts)]


def cells_of(
    chosen: ChosenColumns, ticket: Ticket, *, as_cells: frozenset[str]
) -> Iterator[tuple[Cells, npt.NDArray[np.bool_] | None]]:
    """Yield the cells of the columns as they are stored, and which rows count (None: all).

    For keys, which need not be numbers; columns in `as_cells` are not converted to floats.
    """
    Ticket.use(ticket)
    base, needed = chosen.base, chosen.needed
    flags: Sequence[npt.NDArray[np.bool_]] | None = None
    if base.reader.premise is not None:  # a query run again might yield other rows
        ticket.compute_once(base, partial(base.read_all, as_cells=as_cells))
    parts = _parts(chosen, ticket, needed, as_cells=as_cells)
    if base.unit is not None:
        everything = _parts(chosen, ticket, base.everything, as_cells=as_cells)
        flags = _bounded(*base.bounding(base.unit, everything)).kept
    for place, part in enumerate(parts):
        start = 0
        for batch in part():
            named = dict(zip(needed, batch, strict=True))
            stop = start + len(batch[0])
            counts = None if flags is None else flags[place][start:stop]
            if chosen.where:
                kept = chosen.holds(named)
                counts = kept if counts is None else counts & kept
            yield named, counts
            start = stop


def _parts(
    chosen: ChosenColumns,
    ticket: Ticket,
    names: tuple[str, ...],
    *,
    as_cells: frozenset[str] = frozenset(),
) -> Sequence[Part]:
    """Return the cells of some columns, from the ticket's copy of the rows if there is one."""
    base = chosen.base
    batches_of_parts: list[list[Batch]] | None = ticket.computed(base)
    if batches_of_parts is None:
        return base.parts(names, as_cells=as_cells)
    places = [base.everything.index(name) for name in names]
    return [partial(_chosen_columns, batches, places) for batches in batches_of_parts]


def _chosen_columns(batches: list[Batch], places: list[int]) -> Iterator[Batch]:
    """Yield the columns at these places of each batch."""
    return (tuple(batch[place] for place in places) for batch in batches)


def _bounded(bounding: Bounding, batches: Iterator[tuple[int, Cells]]) -> Bounded:
    """Read all batches, and return which of their rows count."""
    for _ in batches:
        pass
    return bounding.finish()


def _query_pieces(
    chosen: ChosenColumns, bounding: Bounding, batches: Iterator[tuple[int, Cells]]
) -> Sequence[Piece]:
    """Return the rows of a query that count, after running it once into a copy.

    A query may yield its rows in another order when it is run again. So it is run once, and the
    columns read from its result are copied until it is known which rows count.
    """
    needed, places = chosen.needed, []

    def blocks() -> Iterator[Block]:
        for place, cells in batches:
            places.append(place)
            yield chosen.read({name: cells[name] for name in needed})

    keeping = chosen.base.keeping
    # half of the memory: the rows that count are copied once more (`Source.open` with keep)
    half = None if keeping.memory is None else keeping.memory // 2
    copies = copied_blocks(blocks(), replace(keeping, memory=half))
    bounded, starts, pieces = bounding.finish(), Counter[int](), []
    for place, block in zip(places, copies, strict=True):
        here = slice(starts[place], starts[place] + len(block))
        starts[place] = here.stop
        pieces.append(partial(_piece, chosen, block, bounded, place, here))
    return pieces


def _piece(
    chosen: ChosenColumns, block: Block, bounded: Bounded, place: int, here: slice
) -> Iterator[Block]:
    yield _rows_that_count(chosen, block, bounded, place, here)


def _rows_that_count(
    chosen: ChosenColumns, block: Block, bounded: Bounded, place: int, here: slice
) -> Block:
    """Return the rows of a block that count, with their units' numbers if that column is chosen.

    The block has the rows `here` of the part number `place`.
    """
    flags = bounded.kept[place][here]
    counting: Block = block[flags]
    if UNIT in chosen.names:
        counting[:, chosen.names.index(UNIT)] = bounded.numbers[place][here][flags]
    return counting


@trusted_source
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

    # -- public facts -------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the chosen columns."""
        return self.chosen.names

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The declared kinds of the chosen columns."""
        named = (name for name in self.columns if name not in (PRESENT, UNIT))
        return MappingProxyType({name: self._base.kinds[name] for name in named})

    @property
    def declared(self) -> Mapping[str, Kind]:
        """The kinds of all declared columns, by whose cells the rows of a unit are chosen."""
        return MappingProxyType(dict(self._base.kinds))

    @property
    def unit(self) -> Unit | None:
        """The unit whose rows are protected together; None if each row is protected by itself."""
        return self._base.unit

    @property
    def name(self) -> str | None:
        """The name of the data set in records."""
        return self._base.name

    @property
    def rows(self) -> int:
        """The public number of rows to plan with: exact, a maximum, or the expected one.

        Without `expected_rows` it includes rows that `where` drops, since their number is private.
        """
        expected = self._planned
        if expected is not None and not self.row_count_is_public:
            return expected
        if self._base.neighbors is Neighbors.ADD_REMOVE:
            raise ParameterError(
                "expected_rows",
                None,
                expected="a public estimate: the number of rows is private under add-remove",
                remedy="pass expected_rows= to zd.open, chosen without looking at the rows",
            )
        return self._base.count()

    @property
    def row_count_is_public(self) -> bool:
        """Whether `rows` is exact and public, and all of these rows are yielded."""
        estimated = self.filtered and self._planned is not None
        public = self._base.unit is None and self._base.neighbors is Neighbors.REPLACE
        return public and not estimated

    @property
    def filtered(self) -> bool:
        """Whether a condition drops rows."""
        return bool(self.chosen.where)

    @property
    def _planned(self) -> int | None:
        """The expected number of rows, declared in `where` or in `zd.open`."""
        return self._expected if self._expected is not None else self._base.expected_rows

    @property
    def may_miss(self) -> bool:
        """Whether missing cells are ignored, which makes the number of present cells private."""
        return self.drops_rows or any(skips(kind) for kind in self.kinds.values())

    @property
    def drops_rows(self) -> bool:
        """Whether some rows may be ignored, which makes the number of rows that count private."""
        return self.filtered or not self.row_count_is_public

    @property
    def keeping(self) -> Keeping:
        """The storage for a copy of the rows."""
        return self._base.keeping

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return self._base.reader.cluster is not None

    @property
    def protection(self) -> Protection:
        """The protected unit, the neighboring relation and the assumptions."""
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
    def row_count_phrase(self) -> str:
        """The words for the number `rows` with which a plan is made."""
        base = self._base
        if self.row_count_is_public:
            return "the number of all rows"
        if self._planned is not None or base.unit is None or base.unit.number is not None:
            return "how many rows are expected"
        return "the number of units"

    @property
    def text(self) -> str:
        """The source in one line, without any of its contents."""
        return self._base.reader.text

    @property
    def described(self) -> dict[str, Any]:
        """The selection for a record in JSON: columns and their kinds, conditions, units."""
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
    def with_presence(self) -> Dataset:
        """The same columns, and one more that is 1 in every row that counts."""
        names = (*self.columns, PRESENT)
        return self._with(names=names)

    @property
    def presence_only(self) -> Dataset:
        """A single column that is 1 in every row that counts, and missing in all others."""
        return self._with(names=(PRESENT,))

    @property
    def by_unit(self) -> Dataset | None:
        """The same columns and the number of each row's unit; None without units or on Spark."""
        if self._base.unit is None or self.remote:
            return None
        chosen = self.chosen
        return self._with(
            names=(*self.columns, UNIT),
            diagnosed_columns=chosen.diagnosed_columns,
            too_long=chosen.too_long,
        )

    @property
    def rows_of_a_unit(self) -> int:
        """The expected number of rows of a unit that count, at most `max_rows`.

        It is `max_rows` unless both the number of units and that of rows are declared.
        """
        unit, expected = self._base.unit, self._planned
        if unit is None:
            return 1
        if unit.number is None or expected is None:
            return unit.max_rows
        return min(unit.max_rows, max(1, -(-expected // unit.number)))

    def readings(self, limits: Limits, too_long: TooLong | None = None) -> Dataset:
        """Return a single column that says how each row that counts was read (`readings_of`)."""
        bounds = dict(zip(self.columns, limits, strict=True))
        return self._with(names=(PRESENT,), diagnosed_columns=bounds, too_long=too_long)

    # -- choosing -----------------------------------------------------------------------------

    def choose(self, columns: str | Sequence[str] | None, *, texts: bool = False) -> Dataset:
        """Return some of the columns, or all; texts are refused, unless `texts`."""
        chosen = self if columns is None else self[columns]
        text_columns = [name for name, kind in chosen.kinds.items() if isinstance(kind, Text)]
        require(
            texts or not text_columns,
            "columns",
            text_columns,
            expected="numbers, categories, booleans or dates, not texts",
            remedy="name other columns; zd.heavy_hitters finds frequent texts",
        )
        return chosen

    @property
    def declared_bounds(self) -> Any:
        """The bounds of numbers and booleans; None if there are other columns."""
        kinds = self.kinds.values()
        if not all(isinstance(kind, (Number, Boolean)) for kind in kinds):
            return None
        ends = [kind.bounds for kind in kinds]
        return ends[0] if len(ends) == 1 else tuple(zip(*ends, strict=True))

    def __getitem__(self, columns: str | Sequence[str]) -> Dataset:
        """Return some of the columns."""
        listed = [columns] if isinstance(columns, str) else columns
        names = tuple(listed) if is_list(listed) else ()
        declared = [name for name in names if is_name(name, self._base.kinds)]
        require(
            names and len(declared) == len(names) == len(set(names)),
            "columns",
            columns,
            expected=f"declared columns, each once, of {list(self._base.kinds)[:10]}",
            remedy="declare them in zd.open(…, columns={…})",
        )
        return self._with(names=names)

    def where(self, condition: str, *, expected_rows: int | None = None) -> Dataset:
        """Return the rows for which a public condition holds; their number is private.

        Parameters
        ----------
        condition : str
            Comparisons of declared columns with values, joined by and, or, not; or the name of a
            boolean column. A comparison with a missing cell does not hold. A name that is not an
            identifier, such as "0" of an array, stands between backticks: ```0` >= 18``.
        expected_rows : int, optional
            An estimate of their number, chosen without looking at the rows; plans and forecasts
            use it. By default the public number of all rows.

        """
        predicate = Predicate.of(condition, self._base.kinds)
        expected = self._expected
        if expected_rows is not None:
            expected = as_count(expected_rows, "expected_rows", minimum=1)
        chosen = replace(
            self.chosen,
            where=(*self.chosen.where, predicate),
            diagnosed_columns=None,
            too_long=None,
        )
        return Dataset(self._base, chosen=chosen, expected_rows=expected)

    def _with(self, **changed: Any) -> Dataset:
        """Return the same rows with another choice of columns, and without a diagnosis."""
        chosen = replace(self.chosen, **{"diagnosed_columns": None, "too_long": None, **changed})
        return Dataset(self._base, chosen=chosen, expected_rows=self._expected)

    def with_columns_of(self, other: Dataset) -> Dataset:
        """Return the columns of both selections, which must have the same rows."""
        one, two = self.protection, other.protection
        same = "the same data set, with the same condition"
        if (one.unit, one.max_rows, one.neighbors) != (two.unit, two.max_rows, two.neighbors):
            units = [f"{side.words or 'one row'} ({side.neighbors.value})" for side in (one, two)]
            same += f": one protects {units[0]}, the other {units[1]}"
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
        """Return the rows, for one release; rows of units are chosen once, and copied."""
        Ticket.check(ticket)
        copied = self._copied_rows(ticket)
        if copied is not None:
            return copied
        cluster = self._base.reader.cluster
        if cluster is not None:  # the workers that have the rows add them up
            return self._opened(OnCluster(self, cluster, ticket))
        # a query is run once for a ticket: it may yield other rows the next time
        once = self._base.unit is not None or self._base.reader.premise is not None
        return super().open(ticket, keep=keep or once)

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows; ignored rows are left out or have missing cells only."""
        for piece in self.pieces(ticket):
            yield from piece()

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return the parts of the rows, as a `StoredColumn` if `stored` and equivalent."""
        Ticket.use(ticket)
        copied = self._copied_rows(ticket)
        return pieces_of(self.chosen, ticket, stored=stored) if copied is None else copied.pieces()

    def cells(
        self, ticket: Ticket, *, as_cells: frozenset[str]
    ) -> Iterator[tuple[Mapping[str, Any], npt.NDArray[np.bool_] | None]]:
        """Yield the cells of the columns as they are stored, and which rows count (None: all).

        For keys, which need not be numbers; columns in `as_cells` are not converted to floats.
        """
        return cells_of(self.chosen, ticket, as_cells=as_cells)

    def _copied_rows(self, ticket: Ticket) -> Rows | None:
        """Return these columns from a copy of a query's result that a diagnosis shares.

        A release with a diagnosis reads the same rows twice: for its value and for the diagnosis.
        A query may yield other rows the second time, so the columns of both are copied in one run
        of the query, and both parts read that one copy. None if there is no diagnosis, if the
        source is not a query, or if the copy lacks these rows or columns.
        """
        other = ticket.diagnosed
        if self._base.reader.premise is None or not isinstance(other, Dataset):
            return None
        copied = ticket.compute_once(other, other._with_diagnosed_columns)
        same_rows = other._base is self._base and other.chosen.where == self.chosen.where
        plain = PRESENT in self.columns and self.chosen.diagnosed_columns is None
        other_diagnosis = (
            self.chosen.diagnosed_columns is not None
            and self.chosen.diagnosed_columns != other.chosen.diagnosed_columns
        )
        has_columns = {*self.columns} <= {*copied.columns}
        if self is copied or not same_rows or other_diagnosis or not has_columns:
            return None
        rows = ticket.compute_once(copied, lambda: copied.open(ticket, keep=True))
        # in the copy that column has the readings, of which a plain one keeps only the presence
        presence = PRESENT if plain else None
        return rows.chosen(self.columns, may_miss=self.may_miss, presence=presence)

    def _with_diagnosed_columns(self) -> Dataset:
        """Return the column of readings, followed by the columns that it diagnoses."""
        kinds = self._base.kinds
        names = [n for n in self.chosen.diagnosed_columns or () if not isinstance(kinds[n], Text)]
        if self.by_unit is not None:
            names.append(UNIT)
        chosen = self.chosen
        return self._with(
            names=(PRESENT, *names),
            diagnosed_columns=chosen.diagnosed_columns,
            too_long=chosen.too_long,
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
