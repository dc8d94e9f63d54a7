# ruff: noqa: N802, N815 (Spark chose the names)
"""A stand-in for Spark DataFrames that runs partition functions here, without Java.

It does what the reader asks for, and nothing else: functions are pickled on their way to the
"workers", windows are computed by their definition. What Spark itself does is tested by real jobs
(`spark_jobs.py`).
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

try:
    from pyspark.cloudpickle import dumps as _dumps

    SENDS_CLOSURES = True
except ImportError:
    _dumps = pickle.dumps
    SENDS_CLOSURES = False

_WINDOW = re.compile(r"row_number\(\) over \(partition by (.+) order by (.+)\) as (\w+)")
_SQL_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "int": pa.int32()}
_SQL_TYPES |= {"boolean": pa.bool_(), "binary": pa.binary(), "string": pa.string()}
_NAMES = {"int64": "long", "int32": "integer", "bool": "boolean", "timestamp[us]": "timestamp_ntz"}


def frame(table: pa.Table, *, partitions: int = 1, batch: int = 3) -> Any:
    """Return a table as a DataFrame of so many partitions, row i in the (i mod partitions)-th."""
    places = [pa.array(range(i, len(table), partitions), pa.int64()) for i in range(partitions)]
    taken = [table.take(each) for each in places]
    return DataFrame(table.schema, taken, batch)


@dataclass(frozen=True)
class _Type:
    of: pa.DataType

    def typeName(self) -> str:
        name = str(self.of).partition("(")[0].partition("<")[0]
        return {**_NAMES, "decimal128": "decimal", "date32[day]": "date"}.get(str(name), name)


@dataclass(frozen=True)
class _Field:
    name: str
    dataType: _Type


@dataclass(frozen=True)
class _Schema:
    fields: list[_Field]


class _Session:
    def range(self, count: int) -> DataFrame:
        made: DataFrame = frame(pa.table({"id": list(range(count))}))
        return made


class DataFrame:
    sparkSession = _Session()
    isStreaming = False

    def __init__(self, arrow: pa.Schema, parts: list[pa.Table], batch: int) -> None:
        self._arrow, self._parts, self._batch = arrow, parts, batch

    @property
    def schema(self) -> _Schema:
        return _Schema([_Field(each.name, _Type(each.type)) for each in self._arrow])

    def _of(self, parts: list[pa.Table]) -> DataFrame:
        return DataFrame(parts[0].schema, parts, self._batch)

    def toDF(self, *names: str) -> DataFrame:
        return self._of([part.rename_columns(list(names)) for part in self._parts])

    def select(self, *names: str) -> DataFrame:
        return self._of([part.select(list(names)) for part in self._parts])

    def selectExpr(self, *expressions: str) -> DataFrame:
        if expressions[0] == "*":
            return self._numbered(expressions[1])
        chosen = []
        for part in self._parts:
            nothing = pa.nulls(len(part), pa.string())
            named = [each.rpartition(" as ") for each in expressions]
            columns = [nothing if start else part.column(name) for start, _, name in named]
            chosen.append(pa.table(columns, names=[name for _, _, name in named]))
        return self._of(chosen)

    def _numbered(self, window: str) -> DataFrame:
        matched = _WINDOW.fullmatch(window)
        assert matched, window
        by, order = (matched[i].split(", ") for i in (1, 2))
        rows = pa.concat_tables(self._parts)
        cells = rows.to_pylist()
        places = sorted(range(len(cells)), key=lambda i: [cells[i][name] for name in order])
        seen: dict[Any, int] = {}
        numbers = [0] * len(cells)
        for place in places:
            group = tuple(cells[place][name] for name in by)
            numbers[place] = seen[group] = seen.get(group, 0) + 1
        numbered = rows.append_column(matched[3], pa.array(numbers, pa.int32()))
        half = len(cells) // 2
        return self._of([numbered.slice(0, half), numbered.slice(half)])

    def where(self, condition: str) -> DataFrame:
        name, most = condition.split(" <= ")
        kept = [[each <= int(most) for each in part[name].to_pylist()] for part in self._parts]
        pairs = zip(self._parts, kept, strict=True)
        return self._of([part.filter(pa.array(flags, pa.bool_())) for part, flags in pairs])

    def mapInArrow(self, function: Callable[..., Any], schema: str) -> DataFrame:
        fields = [each.split(" ") for each in schema.split(", ")]
        expected = pa.schema([(name, _SQL_TYPES[kind]) for name, kind in fields])
        try:
            sent = pickle.loads(_dumps(function))
        except Exception:  # without Spark's own pickle closures cannot be sent
            assert not SENDS_CLOSURES
            sent = function
        made = []
        for part in self._parts:
            batches = part.to_batches(max_chunksize=self._batch)
            found = list(sent(iter(batches)))
            assert all(each.schema.equals(expected) for each in found), schema
            made.append(pa.Table.from_batches(found, expected))
        return DataFrame(expected, made, self._batch)

    def distinct(self) -> DataFrame:
        rows = {tuple(row.items()): row for row in self.collect()}
        return self._of([pa.Table.from_pylist(list(rows.values()), self._arrow)])

    def persist(self) -> DataFrame:
        return self

    def unpersist(self) -> None:
        pass

    def count(self) -> int:
        return sum(map(len, self._parts))

    def collect(self) -> list[dict[str, Any]]:
        return [row for part in self._parts for row in part.to_pylist()]

    def toLocalIterator(self) -> Iterator[dict[str, Any]]:
        return iter(self.collect())


DataFrame.__module__ = "pyspark.sql.fake.dataframe"  # by which it is told
