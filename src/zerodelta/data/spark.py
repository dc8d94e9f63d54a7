"""Read Spark DataFrames, classic and Connect: the workers read cells and add up integers.

Each function maps the Arrow batches of one partition to Arrow batches. It is sent to the workers by
its name, so they need this library. The sums of a partition depend on that partition only, so that
a failed task can be run again. An error that depends on a cell ends a task with a fixed message,
since the workers' logs are an output too.
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
"""The columns of a piece of a partition's sums.

`total` has little-endian 64-bit integers or, if `wide`, decimal texts of larger ones.
"""

HASHES = ("high", "low", "first", "second")
"""The columns by which the rows of a unit are chosen."""

COPY = "copy"
"""The column with the number of each copy of equal rows, from 1."""

_ENTRIES_SENT = 1 << 17
"""The entries of a sum in one row of Spark: 1 MiB, below the limits of messages."""
_BLOCK_ROWS = 1 << 16
_ROWS_SENT = 1 << 14
_SIGN_BIT = np.uint64(1 << 63)
"""Flipping it maps unsigned words to signed integers, as Spark has them, in the same order."""

_Mapped: TypeAlias = Callable[..., Iterator[Any]]


def _with_fixed_errors(function: _Mapped) -> _Mapped:
    """Replace every error in a worker by a fixed one, since tracebacks end up in logs."""

    @wraps(function)
    def guarded(*arguments: Any) -> Iterator[Any]:
        """Yield what the function yields; any error of it becomes one fixed message."""
        try:
            with quiet():
                yield from function(*arguments)
            return
        except Exception:
            pass
        # outside of `except`, so that the original error is not the context of this one
        raise RuntimeError("a partition could not be read to its end")

    return guarded


# -- reading ----------------------------------------------------------------------------------


@_with_fixed_errors
def read_rows(chosen: ChosenColumns, batches: Batches) -> Iterator[Any]:
    """Yield the numbers and codes of the selected columns, in the order of the cells."""
    for batch in batches:
        yield _floats(_block(chosen, chosen.needed, batch))


@_with_fixed_errors
def hash_rows(chosen: ChosenColumns, unit: str, batches: Batches) -> Iterator[Any]:
    """Yield the hashes by which the rows of a unit are chosen, then the selected columns."""
    kinds = chosen.base.kinds
    everything = tuple(dict.fromkeys([*kinds, unit]))
    for batch in batches:
        cells = dict(zip(everything, batch.columns, strict=True))
        columns = [kind.read(cells[name]) for name, kind in kinds.items()]
        hashes = hashed_rows(cells[unit], columns)
        yield _floats(_block(chosen, everything, batch), hashes)


@_with_fixed_errors
def hash_units(batches: Batches) -> Iterator[Any]:
    """Yield the 128 bits by which the ids of units are compared."""
    for batch in batches:
        yield _floats(np.empty((batch.num_rows, 0)), hashed_rows(batch.column(0), [])[:2])


@_with_fixed_errors
def mix_copies(batches: Batches) -> Iterator[Any]:
    """Yield rows whose last column is COPY without it, giving each copy of a row another hash."""
    import pyarrow as pa

    for batch in batches:
        *columns, copies = batch.columns
        place = HASHES.index("first")
        first = columns[place].to_numpy().view(np.uint64) ^ _SIGN_BIT
        numbers = (copies.to_numpy() - 1).astype(np.uint64)
        columns[place] = pa.array((with_copies(first, numbers) ^ _SIGN_BIT).view(np.int64))
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names[:-1])


def _block(chosen: ChosenColumns, names: tuple[str, ...], batch: Any) -> Block:
    """Return the selected columns of a batch, whose columns are in the order of the names."""
    cells = dict(zip(names, batch.columns, strict=True))
    return chosen.read({name: cells[name] for name in chosen.needed})


def _floats(block: Block, hashes: Words | None = None) -> Any:
    """Return an Arrow batch of hashes, as integers in the same order, and of columns."""
    import pyarrow as pa

    words = () if hashes is None else [(array ^ _SIGN_BIT).view(np.int64) for array in hashes]
    columns = [pa.array(array) for array in (*words, *(np.array(array) for array in block.T))]
    names = [*HASHES[: len(words)], *(f"c{i}" for i in range(block.shape[1]))]
    return pa.RecordBatch.from_arrays(columns, names=names)


def numbers_of(batch: Any) -> Block:
    """Return a batch of float columns as rows."""
    block: Block = np.array([column.to_numpy() for column in batch.columns]).T
    return block


# -- adding up --------------------------------------------------------------------------------


@_with_fixed_errors
def sum_rows(
    work: Callable[[Block], IntegerArray], shape: tuple[int, ...], batches: Batches
) -> Iterator[Any]:
    """Yield the sum of `work` over the blocks of a partition, in pieces."""
    yield from _pieces(exact_total(map(work, _blocks(batches)), shape))


@_with_fixed_errors
def count_keys(
    work: Callable[[Block], IntegerArray], shape: tuple[int, ...], batches: Batches
) -> Iterator[Any]:
    """Yield the counts of the keys that `work` returns for the blocks of a partition, in pieces."""
    total = np.zeros(shape, dtype=np.int64)
    keys: Any
    for keys in map(work, _blocks(batches)):
        np.add.at(total, keys, 1)
    yield from _pieces(total)


@_with_fixed_errors
def gather(part: Callable[[Block], npt.NDArray[np.int64]], batches: Batches) -> Iterator[Any]:
    """Yield the integers that `part` picks from the blocks of a partition, as bytes."""
    import pyarrow as pa

    for block in _blocks(batches):
        data = pa.array([part(block).astype("<i8").tobytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([data], names=["batch"])


def _pieces(total: IntegerArray) -> Iterator[Any]:
    for place, start in enumerate(range(0, total.size, _ENTRIES_SENT)):
        yield _encoded(place, total.reshape(-1)[start : start + _ENTRIES_SENT])


def _blocks(batches: Batches) -> Iterator[Block]:
    """Yield the rows in larger blocks, since each block costs a pass over the sums."""
    held: list[Block] = []
    count = 0
    for batch in batches:
        held.append(numbers_of(batch))
        count += batch.num_rows
        if count >= _BLOCK_ROWS:
            yield np.concatenate(held)
            held, count = [], 0
    if held:
        yield np.concatenate(held)


def _encoded(place: int, entries: npt.NDArray[Any]) -> Any:
    """Return sums as an Arrow row: 64-bit integers as bytes, larger ones as decimal text."""
    import pyarrow as pa

    wide = entries.dtype == np.object_
    data = ",".join(map(str, entries)).encode() if wide else entries.astype("<i8").tobytes()
    columns = [pa.array([place], pa.int32()), pa.array([wide]), pa.array([data], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["place", "wide", "total"])


def decoded(pieces: Iterable[Any], shape: tuple[int, ...]) -> Iterator[IntegerArray]:
    """Yield one array of the sum's shape for each piece (`SUMS`), zero outside that piece."""
    size = int(np.prod(shape))
    for piece in pieces:
        data, start = bytes(piece["total"]), piece["place"] * _ENTRIES_SENT
        entries: npt.NDArray[Any]
        if piece["wide"]:
            entries = np.array([int(text) for text in data.split(b",")], dtype=np.object_)
        else:
            entries = np.frombuffer(data, dtype="<i8").astype(np.int64)
        if len(entries) < size:
            full = np.zeros(size, dtype=entries.dtype)
            full[start : start + len(entries)] = entries
            entries = full
        yield entries.reshape(shape)


# -- sending ----------------------------------------------------------------------------------


@_with_fixed_errors
def serialize(batches: Batches) -> Iterator[Any]:
    """Yield batches as bytes, one row each, for tasks that need the cells on the driver."""
    import pyarrow as pa

    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_SENT):
            part = batch.slice(start, _ROWS_SENT)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as stream:
                stream.write_batch(part)
            yield pa.RecordBatch.from_arrays(
                [pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["batch"]
            )


# -- The reader of Spark DataFrames ---------------------------------------------------------------

_TEXTS, _INTEGERS = ("string", "char", "varchar", "binary"), ("byte", "short", "integer", "long")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_READABLE = frozenset((*_TEXTS, *_INTEGERS, *_TIMES, "boolean", "float", "double", "decimal"))
"""Types whose cells are read; lists, structures, intervals and other types are missing cells."""


def spark_reader(frame: Any) -> Reader:
    """Return the reader of a DataFrame's result.

    Sums are computed on the workers (`OnCluster`); the parts bring the cells to the driver, one
    partition after the other.
    """
    require_extra("pyarrow", "data")  # rows come as Arrow batches
    schema = attempt(lambda: frame.schema)
    require(
        not attempt(lambda: frame.isStreaming),
        "source",
        "a streaming DataFrame",
        expected="a DataFrame that is not a stream",
        remedy="open a table of its sink, or use spark.read instead of spark.readStream",
    )
    names = tuple(str(field.name) for field in schema.fields)
    types = tuple(str(field.dataType.typeName()) for field in schema.fields)
    cluster = Cluster(frame, names, types)
    reader = query_reader("Spark DataFrame", names, cluster.count, cluster.rows)
    return replace(reader, count=cluster.count, scan=cluster.scan, cluster=cluster)


@final
class Cluster:
    """The workers that have the rows of a DataFrame; a copy sent to a worker has only names."""

    __slots__ = ("_checked", "_frame", "_names", "_types")

    def __init__(self, frame: Any, names: tuple[str, ...], types: tuple[str, ...]) -> None:
        self._frame, self._names, self._types = frame, names, types
        self._checked: list[bool] = []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _cluster_of_names, (self._names, self._types)

    def count(self) -> int:
        """Return the number of rows of the result."""
        return int(attempt(lambda: self._frame.count()))

    def count_units(self, column: str) -> int:
        """Return the number of distinct ids in a column, counted by the workers."""
        self.check()
        units = self.mapped((column,), hash_units, ", ".join(f"{h} bigint" for h in HASHES[:2]))
        return int(attempt(lambda: units.distinct().count()))

    def scan(self, columns: tuple[str, ...], batch: int, numbers: frozenset[str]) -> list[Part]:
        """Return the rows as one part, after checking the workers, whose errors may be shown."""
        self.check()
        return one_part(self.rows, columns, batch, numbers)

    def rows(self, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
        """Yield the cells of all partitions on this machine, one partition after the other."""
        distinct = tuple(dict.fromkeys(columns))
        for part in streamed(self.mapped(distinct, serialize, "batch binary")):
            for start in range(0, part.num_rows, batch):
                record_batch = part.slice(start, batch)
                yield tuple(record_batch.column(distinct.index(name)) for name in columns)

    def mapped(self, columns: tuple[str, ...], function: Any, schema: str) -> Any:
        """Return the DataFrame that a function of this module computes from some columns."""

        def planned() -> Any:
            """Return the Spark frame of the chosen columns, mapped batch by batch."""
            # renamed by position, since Spark ignores case in names
            frame = self._frame.toDF(*(f"c{i}" for i in range(len(self._names))))
            chosen = places(self._names, columns)
            selected = frame.selectExpr(*map(self._expression, chosen))
            return selected.mapInArrow(function, schema)

        return attempt(planned)

    def _expression(self, place: int) -> str:
        known = self._types[place] in _READABLE
        return f"c{place}" if known else f"cast(null as string) as c{place}"

    def check(self) -> None:
        """Refuse a cluster whose workers do not have this library, before a row is read."""
        if self._checked:
            return
        version = _version()
        try:
            with quiet():
                versions = self._frame.sparkSession.range(1).mapInArrow(_versions, "version string")
                on_workers = {row["version"] for row in versions.collect()}
        except Exception:  # most likely the module is missing; Spark's message is not shown
            on_workers = set()
        if on_workers != {version}:
            raise ParameterError(
                "source",
                "a cluster without zerodelta" if not on_workers else sorted(on_workers),
                expected=f"zerodelta {version} on the workers, as on this machine",
                remedy="install it there, or send it along (spark.archives, spark.addArtifacts)",
            )
        self._checked.append(True)


def streamed(frame: Any) -> Iterator[Any]:
    """Yield the tables in a DataFrame of `serialize`."""
    import pyarrow as pa

    for row in frame.toLocalIterator():
        yield pa.ipc.open_stream(bytes(row["batch"])).read_all()


def is_spark(source: Any) -> bool:
    """Tell a Spark DataFrame by its type; Spark is not imported."""
    kind = type(source)
    module = str(kind.__module__)
    return module.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def _cluster_of_names(names: tuple[str, ...], types: tuple[str, ...]) -> Cluster:
    """Return a `Cluster` for a worker, with the columns' names and types and without rows."""
    return Cluster(None, names, types)


def _version() -> str:
    """Return the version of the package in this process, the driver's or a worker's."""
    return str(sys.modules["zerodelta"].__version__)


def _versions(batches: Any) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_version()] * batch.num_rows)], ["version"])


# -- Rows of a Spark DataFrame that a ticket has opened -------------------------------------------
# The workers read the cells once into a copy that Spark keeps until the release is done, and choose
# the rows of units. Each sum is one job: every partition sends its integers, and the driver adds
# them up. Noise is drawn once, on the driver.

_LARGEST_COLLECTED_SUM = 1 << 20
"""A sum of more entries is fetched one partition at a time."""


@final
class OnCluster(Held):
    """The rows of a data set on the workers of a cluster."""

    __slots__ = ("__weakref__", "_cluster", "_copied", "_people", "_rows", "_ticket", "sums")

    here = False

    def __init__(self, people: Dataset, cluster: Cluster, ticket: Ticket) -> None:
        cluster.check()
        self._people, self._cluster, self._ticket = people, cluster, ticket
        self._rows = people.rows
        self._copied: Any = None
        self.sums: dict[Hashable, IntegerArray] | None = {}

    def blocks(self) -> Iterator[Block]:
        """Yield all rows on the driver; refused if their planned number is too large."""
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
        """Return the integers that `part` picks from the rows, on the workers."""
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
            """Return the sum of the partitions' totals, collected or streamed by size."""
            sums = copied.mapInArrow(partial(adds, work, shape), SUMS)
            few = math.prod(shape) <= _LARGEST_COLLECTED_SUM
            pieces = sums.collect() if few else sums.toLocalIterator()
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
        """Return the rows that count: all, or `max_rows` of each unit as `units` chooses them."""
        people, chosen, unit = self._people, self._people.chosen, self._people.unit
        columns = [f"c{i}" for i in range(len(people.columns))]
        numbers = [f"{name} double" for name in columns]
        if unit is None:
            function = partial(read_rows, chosen)
            return self._cluster.mapped(chosen.needed, function, ", ".join(numbers))
        everything = tuple(dict.fromkeys([*people.declared, unit.column]))
        schema = ", ".join([*(f"{name} bigint" for name in HASHES), *numbers])
        hashed = self._cluster.mapped(everything, partial(hash_rows, chosen, unit.column), schema)
        # copies of equal rows are numbered, so that they get different hashes; different rows with
        # equal hashes are ordered by their chosen columns, whatever the rows of other units are
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
