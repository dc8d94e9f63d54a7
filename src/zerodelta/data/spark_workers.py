"""What the workers of a Spark cluster do with a partition: read its cells, and add up integers.

Each function maps the Arrow batches of one partition to Arrow batches, and is sent to the workers
by its name: they need this library. A partition's sums are one answer, made of this partition
alone, so a task that fails and is run again changes nothing. What a value might make an engine
raise ends a task with one fixed message: the workers' logs are an output, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.quiet import quiet
from zerodelta.data.rowwise import Block
from zerodelta.data.unit_ids import Words
from zerodelta.data.units import hashed_rows, with_copies
from zerodelta.exact.exact_sums import IntegerArray, exact_total

if TYPE_CHECKING:
    from zerodelta.data.chosen_columns import ChosenColumns

Batches: TypeAlias = Iterable[Any]
"""Arrow batches of one partition."""

SUMS = "place int, wide boolean, total binary"
"""A piece of a partition's sums: little-endian int64, or decimal texts where one is larger."""

HASHES = ("high", "low", "first", "second")
"""The columns by which the rows of a unit are chosen."""

COPY = "copy"
"""The column that numbers equal rows, from 1."""

_PIECE = 1 << 17
"""Entries of a sum in one row of Spark: 1 MiB, whatever limits a message has."""
_ROWS = 1 << 16
_SENT = 1 << 14
_SIGN = np.uint64(1 << 63)

_Mapped: TypeAlias = Callable[..., Iterator[Any]]


def _showing_nothing(function: _Mapped) -> _Mapped:
    """Let nothing out of a worker but a fixed message: a traceback ends up in logs."""

    @wraps(function)
    def guarded(*arguments: Any) -> Iterator[Any]:
        try:
            with quiet():
                yield from function(*arguments)
            return
        except Exception:
            pass
        # Outside of `except`, so that what happened is not kept as the context of this.
        raise RuntimeError("a partition could not be read to its end")

    return guarded


# -- reading ----------------------------------------------------------------------------------


@_showing_nothing
def read_rows(chosen: ChosenColumns, batches: Batches) -> Iterator[Any]:
    """Yield the numbers and codes of the selected columns, in the order of the cells."""
    for batch in batches:
        yield _floats(_block(chosen, chosen.needed, batch))


@_showing_nothing
def hash_rows(chosen: ChosenColumns, unit: str, batches: Batches) -> Iterator[Any]:
    """Yield the hashes by which the rows of a unit are chosen, then the selected columns."""
    kinds = chosen.base.kinds
    everything = tuple(dict.fromkeys([*kinds, unit]))
    for batch in batches:
        cells = dict(zip(everything, batch.columns, strict=True))
        columns = [kind.read(cells[name]) for name, kind in kinds.items()]
        hashes = hashed_rows(cells[unit], columns)
        yield _floats(_block(chosen, everything, batch), hashes)


@_showing_nothing
def hash_units(batches: Batches) -> Iterator[Any]:
    """Yield what the ids of units are compared by."""
    for batch in batches:
        yield _floats(np.empty((batch.num_rows, 0)), hashed_rows(batch.column(0), [])[:2])


@_showing_nothing
def mix_copies(batches: Batches) -> Iterator[Any]:
    """Yield the rows, each copy of equal ones with a hash of its own; the last column is COPY."""
    import pyarrow as pa

    for batch in batches:
        *columns, copies = batch.columns
        place = HASHES.index("first")
        first = columns[place].to_numpy().view(np.uint64) ^ _SIGN
        numbers = (copies.to_numpy() - 1).astype(np.uint64)
        columns[place] = pa.array((with_copies(first, numbers) ^ _SIGN).view(np.int64))
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names[:-1])


def _block(chosen: ChosenColumns, names: tuple[str, ...], batch: Any) -> Block:
    """Return the selected columns of a batch, whose columns are in the order of the names."""
    cells = dict(zip(names, batch.columns, strict=True))
    return chosen.read({name: cells[name] for name in chosen.needed})


def _floats(block: Block, hashes: Words | None = None) -> Any:
    """Return an Arrow batch of hashes, as integers in the same order, and of columns."""
    import pyarrow as pa

    words = () if hashes is None else [(each ^ _SIGN).view(np.int64) for each in hashes]
    columns = [pa.array(each) for each in (*words, *(np.array(each) for each in block.T))]
    names = [*HASHES[: len(words)], *(f"c{i}" for i in range(block.shape[1]))]
    return pa.RecordBatch.from_arrays(columns, names=names)


def numbers_of(batch: Any) -> Block:
    """Return a batch of float columns as rows."""
    block: Block = np.array([each.to_numpy() for each in batch.columns]).T
    return block


# -- adding up --------------------------------------------------------------------------------


@_showing_nothing
def sum_rows(
    work: Callable[[Block], IntegerArray], shape: tuple[int, ...], batches: Batches
) -> Iterator[Any]:
    """Yield what `work` makes of the blocks of a partition, added up, in pieces."""
    yield from _pieces(exact_total(map(work, _blocks(batches)), shape))


@_showing_nothing
def count_keys(
    work: Callable[[Block], IntegerArray], shape: tuple[int, ...], batches: Batches
) -> Iterator[Any]:
    """Yield how often `work` makes each key of the blocks of a partition, in pieces."""
    total = np.zeros(shape, dtype=np.int64)
    keys: Any
    for keys in map(work, _blocks(batches)):
        np.add.at(total, keys, 1)
    yield from _pieces(total)


@_showing_nothing
def gather(part: Callable[[Block], npt.NDArray[np.int64]], batches: Batches) -> Iterator[Any]:
    """Yield the integers that `part` picks from the blocks of a partition, as bytes."""
    import pyarrow as pa

    for block in _blocks(batches):
        found = pa.array([part(block).astype("<i8").tobytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([found], names=["batch"])


def _pieces(total: IntegerArray) -> Iterator[Any]:
    for place, start in enumerate(range(0, total.size, _PIECE)):
        yield _encoded(place, total.reshape(-1)[start : start + _PIECE])


def _blocks(batches: Batches) -> Iterator[Block]:
    """Yield the rows of float columns in larger blocks: each costs a pass over the sums."""
    held: list[Block] = []
    count = 0
    for batch in batches:
        held.append(numbers_of(batch))
        count += batch.num_rows
        if count >= _ROWS:
            yield np.concatenate(held)
            held, count = [], 0
    if held:
        yield np.concatenate(held)


def _encoded(place: int, entries: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    wide = entries.dtype == np.object_
    data = ",".join(map(str, entries)).encode() if wide else entries.astype("<i8").tobytes()
    columns = [pa.array([place], pa.int32()), pa.array([wide]), pa.array([data], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["place", "wide", "total"])


def decoded(pieces: Iterable[Any], shape: tuple[int, ...]) -> Iterator[IntegerArray]:
    """Yield the sums of all partitions, zero but for one piece each, as rows of `SUMS` have it."""
    size = int(np.prod(shape))
    for piece in pieces:
        data, start = bytes(piece["total"]), piece["place"] * _PIECE
        found: npt.NDArray[Any]
        if piece["wide"]:
            found = np.array([int(each) for each in data.split(b",")], dtype=np.object_)
        else:
            found = np.frombuffer(data, dtype="<i8").astype(np.int64)
        if len(found) < size:
            whole = np.zeros(size, dtype=found.dtype)
            whole[start : start + len(found)] = found
            found = whole
        yield found.reshape(shape)


# -- sending ----------------------------------------------------------------------------------


@_showing_nothing
def serialize(batches: Batches) -> Iterator[Any]:
    """Yield batches as bytes, one row each, for whoever needs the cells themselves."""
    import pyarrow as pa

    for batch in batches:
        for start in range(0, batch.num_rows, _SENT):
            part = batch.slice(start, _SENT)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as stream:
                stream.write_batch(part)
            yield pa.RecordBatch.from_arrays(
                [pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["batch"]
            )
