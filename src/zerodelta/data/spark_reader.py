"""Spark DataFrames, classic and Connect: rows of a plan that a cluster runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, final

from zerodelta.data.quiet import quiet
from zerodelta.data.reader import Batch, Part, QueryReader, attempt, guarded, places
from zerodelta.data.spark_workers import HASHES, hash_units, serialize
from zerodelta.errors import ParameterError, require, require_extra

_TEXTS, _WHOLE = ("string", "char", "varchar", "binary"), ("byte", "short", "integer", "long")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_READ = frozenset((*_TEXTS, *_WHOLE, *_TIMES, "boolean", "float", "double", "decimal"))
"""Types whose cells can be something; lists, structures and intervals are missing cells anyway."""


@final
class SparkReader(QueryReader):
    """The rows of a DataFrame's result.

    Sums are made on the workers (`SparkRows`); the parts here bring the cells to the driver, one
    partition after the other. Sent to a worker, a reader has names only.
    """

    __slots__ = ("_checked", "_frame", "_types")

    def __init__(self, frame: Any) -> None:
        require_extra("pyarrow", "data")  # rows come as Arrow batches
        schema = attempt(lambda: frame.schema)
        require(
            not attempt(lambda: frame.isStreaming),
            "source",
            "a streaming DataFrame",
            expected="a DataFrame whose rows are all there",
            remedy="open a table of its sink, or spark.read instead of spark.readStream",
        )
        self._frame: Any = frame
        self._names = tuple(str(field.name) for field in schema.fields)
        self._types = tuple(str(field.dataType.typeName()) for field in schema.fields)
        self._checked: list[bool] = []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _named, (self._names, self._types)

    @property
    def text(self) -> str:
        """What kind of source this is."""
        return "Spark DataFrame"

    def count(self) -> int:
        """Return the number of rows of the result."""
        return int(attempt(lambda: self._frame.count()))

    def count_units(self, column: str) -> int:
        """Return how many ids a column has, counted by the workers."""
        self.check()
        units = self.mapped((column,), hash_units, ", ".join(f"{h} bigint" for h in HASHES[:2]))
        return int(attempt(lambda: units.distinct().count()))

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return one part: the partitions one after the other."""
        places(self._names, columns)
        self.check()
        return [partial(guarded, partial(self._rows, columns, batch))]

    def _rows(self, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
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


def _named(names: tuple[str, ...], types: tuple[str, ...]) -> SparkReader:
    """Return a reader for a worker: it knows the columns, and has no rows."""
    reader = SparkReader.__new__(SparkReader)
    reader._frame, reader._names, reader._types, reader._checked = None, names, types, []
    return reader


def _version() -> str:
    """Return the version of the package, which is loaded, here and where this is sent to."""
    return str(sys.modules["zerodelta"].__version__)


def _versions(batches: Any) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_version()] * batch.num_rows)], ["version"])
