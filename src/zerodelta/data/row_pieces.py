"""Rows of chosen columns, read for a ticket: in pieces that threads may read, or as cells.

Where rows have units, all declared columns are read once before, to know which rows count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrow_cells import Distinct
from zerodelta.data.chosen_columns import ITSELF, ChosenColumns
from zerodelta.data.kept_copy import kept
from zerodelta.data.reader import Batch, Part
from zerodelta.data.rowwise import Block
from zerodelta.data.shared_copy import UNIT
from zerodelta.data.threads import Piece
from zerodelta.data.ticket import Ticket
from zerodelta.data.units import Bounded, Bounding

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
    plain = stored and bounded is None and not chosen.where and chosen.names != (ITSELF,)

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
