"""Spark DataFrames, classic and Connect: the workers of a cluster read cells and add up integers.

Each function maps the Arrow batches of one partition to Arrow batches, and is sent to the workers
by its name: they need this library. A partition's sums are one answer, made of this partition
alone, so a task that fails and is run again changes nothing. What a value might make an engine
raise ends a task with one fixed message: the workers' logs are an output, too.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.isolation import quiet
from zerodelta.data.readers import (
    Batch,
    Part,
    Reader,
    attempt,
    guarded,
    one_part,
    places,
    query_reader,
)
from zerodelta.data.rows import MOST_COLLECTED, Held
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Ticket
from zerodelta.data.units import Words, hashed_rows, with_copies
from zerodelta.errors import ParameterError, require, require_extra
from zerodelta.exact.sums import IntegerArray, exact_total

if TYPE_CHECKING:
    from zerodelta.data.chosen import ChosenColumns
    from zerodelta.data.dataset import Dataset


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


# -- Spark DataFrames, classic and Connect: rows of a plan that a cluster runs --------------------

_TEXTS, _WHOLE = ("string", "char", "varchar", "binary"), ("byte", "short", "integer", "long")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_READ = frozenset((*_TEXTS, *_WHOLE, *_TIMES, "boolean", "float", "double", "decimal"))
"""Types whose cells can be something; lists, structures and intervals are missing cells anyway."""


def spark_reader(frame: Any) -> Reader:
    """Return the reader of a DataFrame's result.

    Sums are made on the workers (`OnCluster`); the parts bring the cells to the driver, one
    partition after the other.
    """
    require_extra("pyarrow", "data")  # rows come as Arrow batches
    schema = attempt(lambda: frame.schema)
    require(
        not attempt(lambda: frame.isStreaming),
        "source",
        "a streaming DataFrame",
        expected="a DataFrame whose rows are all there",
        remedy="open a table of its sink, or spark.read instead of spark.readStream",
    )
    names = tuple(str(field.name) for field in schema.fields)
    types = tuple(str(field.dataType.typeName()) for field in schema.fields)
    cluster = Cluster(frame, names, types)
    asked = query_reader("Spark DataFrame", names, cluster.count, cluster.rows)
    return replace(asked, count=cluster.count, scan=cluster.scan, cluster=cluster)


@final
class Cluster:
    """The workers that have the rows of a DataFrame. Sent to one of them it has names only."""

    __slots__ = ("_checked", "_frame", "_names", "_types")

    def __init__(self, frame: Any, names: tuple[str, ...], types: tuple[str, ...]) -> None:
        self._frame, self._names, self._types = frame, names, types
        self._checked: list[bool] = []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _named, (self._names, self._types)

    def count(self) -> int:
        """Return the number of rows of the result."""
        return int(attempt(lambda: self._frame.count()))

    def count_units(self, column: str) -> int:
        """Return how many ids a column has, counted by the workers."""
        self.check()
        units = self.mapped((column,), hash_units, ", ".join(f"{h} bigint" for h in HASHES[:2]))
        return int(attempt(lambda: units.distinct().count()))

    def scan(self, columns: tuple[str, ...], batch: int, numbers: frozenset[str]) -> list[Part]:
        """Return one part, after a look at the workers: what is wrong with them may be told."""
        self.check()
        return one_part(self.rows, columns, batch, numbers)

    def rows(self, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
        """Yield the cells of the partitions, one after the other."""
        distinct = tuple(dict.fromkeys(columns))
        for part in streamed(self.mapped(distinct, serialize, "batch binary")):
            for start in range(0, part.num_rows, batch):
                found = part.slice(start, batch)
                yield tuple(found.column(distinct.index(name)) for name in columns)

    def mapped(self, columns: tuple[str, ...], function: Any, schema: str) -> Any:
        """Return a DataFrame of what a function of `spark_workers` makes of some columns."""

        def planned() -> Any:
            # by position: Spark takes names that differ in case for one
            frame = self._frame.toDF(*(f"c{i}" for i in range(len(self._names))))
            chosen = places(self._names, columns)
            selected = frame.selectExpr(*map(self._expression, chosen))
            return selected.mapInArrow(function, schema)

        return attempt(planned)

    def _expression(self, place: int) -> str:
        known = self._types[place] in _READ
        return f"c{place}" if known else f"cast(null as string) as c{place}"

    def check(self) -> None:
        """Refuse a cluster whose workers do not have this library, before a row is read."""
        if self._checked:
            return
        ours = _version()
        try:
            with quiet():
                asked = self._frame.sparkSession.range(1).mapInArrow(_versions, "version string")
                found = {row["version"] for row in asked.collect()}
        except Exception:  # most likely there is no such module; the text is Spark's
            found = set()
        if found != {ours}:
            raise ParameterError(
                "source",
                "of a cluster without it" if not found else sorted(found),
                expected=f"zerodelta {ours} on the workers, as here",
                remedy="install it there, or send it along (spark.archives, spark.addArtifacts)",
            )
        self._checked.append(True)


def streamed(frame: Any) -> Iterator[Any]:
    """Yield the tables of a DataFrame that `serialize` made."""
    import pyarrow as pa

    for row in frame.toLocalIterator():
        yield pa.ipc.open_stream(bytes(row["batch"])).read_all()


def is_spark(source: Any) -> bool:
    """Tell a Spark DataFrame by its type; Spark is not imported."""
    kind = type(source)
    module = str(kind.__module__)
    return module.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def _named(names: tuple[str, ...], types: tuple[str, ...]) -> Cluster:
    """Return a cluster for a worker: it knows the columns, and has no rows."""
    return Cluster(None, names, types)


def _version() -> str:
    """Return the version of the package, which is loaded, here and where this is sent to."""
    return str(sys.modules["zerodelta"].__version__)


def _versions(batches: Any) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_version()] * batch.num_rows)], ["version"])


# -- Rows of a Spark DataFrame that a ticket has opened: the workers add them up ------------------
# The cells are read once, on the workers, into a copy that Spark keeps there until the release is
# done; rows of units are chosen there, too. Each sum is one job: every partition sends its
# integers, and the driver adds these up. Noise is drawn once, on the driver.

_MOST_COLLECTED = 1 << 20
"""Sums of more entries come partition by partition."""


@final
class OnCluster(Held):
    """The rows of a data set where they are."""

    __slots__ = ("__weakref__", "_cluster", "_copied", "_people", "_rows", "_ticket", "sums")

    here = False

    def __init__(self, people: Dataset, cluster: Cluster, ticket: Ticket) -> None:
        cluster.check()
        self._people, self._cluster, self._ticket = people, cluster, ticket
        self._rows = people.rows
        self._copied: Any = None
        self.sums: dict[Hashable, IntegerArray] | None = {}

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, on the driver; refused by their public number."""
        width = len(self._people.columns)
        require(
            self._rows * width <= MOST_COLLECTED,
            "rows",
            self._rows,
            expected=f"at most {MOST_COLLECTED // width} rows, which this task needs on the driver",
            remedy="ask for sums, counts or tables, which workers add up, or for fewer columns",
        )
        copied = self._copy()

        def sent() -> Iterator[Block]:
            for part in streamed(copied.mapInArrow(serialize, "batch binary")):
                yield numbers_of(part)

        yield from guarded(sent)

    def gathered(self, part: Callable[[Block], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return what the workers pick from the rows."""
        copied = self._copy()

        def sent() -> npt.NDArray[np.int64]:
            picked = copied.mapInArrow(partial(gather, part), "batch binary")
            data = b"".join(bytes(row["batch"]) for row in picked.toLocalIterator())
            return np.frombuffer(data, dtype="<i8").astype(np.int64)

        return attempt(sent)

    def partials(
        self,
        work: Callable[[Block], IntegerArray],
        shape: tuple[int, ...],
        *,
        keyed: bool,
        **_how: Any,
    ) -> Iterator[IntegerArray]:
        """Yield the sum over all partitions; `work` runs on the workers."""
        copied, adds = self._copy(), count_keys if keyed else sum_rows

        def added() -> IntegerArray:
            asked = copied.mapInArrow(partial(adds, work, shape), SUMS)
            few = math.prod(shape) <= _MOST_COLLECTED
            pieces = asked.collect() if few else asked.toLocalIterator()
            return exact_total(decoded(pieces, shape), shape)

        yield attempt(added)

    def _copy(self) -> Any:
        """Return the read columns as a DataFrame that is computed once, at the first job."""
        Ticket.use(self._ticket)
        if self._copied is None:
            copied = attempt(lambda: self._bounded().persist())
            weakref.finalize(self, _forget, copied).atexit = False  # the session ends by itself
            self._copied = copied
        return self._copied

    def _bounded(self) -> Any:
        """Return the rows that count: all, or of each unit so many (theory V, as `units` does)."""
        people, chosen, unit = self._people, self._people.chosen, self._people.unit
        columns = [f"c{i}" for i in range(len(people.columns))]
        numbers = [f"{each} double" for each in columns]
        if unit is None:
            function = partial(read_rows, chosen)
            return self._cluster.mapped(chosen.needed, function, ", ".join(numbers))
        everything = tuple(dict.fromkeys([*people.declared, unit.column]))
        schema = ", ".join([*(f"{each} bigint" for each in HASHES), *numbers])
        hashed = self._cluster.mapped(everything, partial(hash_rows, chosen, unit.column), schema)
        # equal rows are told apart by a number; rows that differ and agree in their hashes are
        # ordered by what is chosen of them, which no other unit's rows change
        keys, contents = ", ".join(HASHES), ", ".join(columns)
        copies = f"row_number() over (partition by {keys} order by {contents}) as {COPY}"
        mixed = hashed.selectExpr("*", copies).mapInArrow(mix_copies, schema)
        by = f"first, second, {contents}"
        rank = f"row_number() over (partition by high, low order by {by}) as rank"
        kept = mixed.selectExpr("*", rank).where(f"rank <= {unit.max_rows}")
        return kept.select(*columns)


def _forget(copied: Any) -> None:
    with suppress(Exception):  # the session may be gone, and the copy with it
        copied.unpersist()
