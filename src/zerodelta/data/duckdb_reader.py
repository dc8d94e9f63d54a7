"""DuckDB relations, and SQL with its connection: rows of a result that DuckDB computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, final

from zerodelta.data.reader import Batch, Part, QueryReader, attempt, guarded, places
from zerodelta.errors import ParameterError, require_extra


@final
class DuckDBReader(QueryReader):
    """The rows of a relation, or of a query on a connection.

    One part, and one pass at a time: an open result blocks its connection.
    """

    __slots__ = ("_relation", "_text")

    def __init__(self, source: Any) -> None:
        require_extra("pyarrow", "data")  # rows come as Arrow batches
        self._text = "DuckDB relation"
        if isinstance(source, tuple):
            query, connection = source
            self._text = "DuckDB query"
            source = _bound(query, connection)
        self._relation = source
        self._names = tuple(map(str, source.columns))

    @property
    def text(self) -> str:
        """What kind of source this is."""
        return self._text

    def count(self) -> int:
        """Return the number of rows of the result."""
        return int(attempt(lambda: self._relation.aggregate("count(*)").fetchall()[0][0]))

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return one part."""
        places(self.names, columns)
        return [partial(guarded, partial(_rows, self._relation, columns, batch))]


def _rows(relation: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    import duckdb

    distinct = list(dict.fromkeys(columns))
    chosen = relation.select(*map(duckdb.ColumnExpression, distinct))
    to_reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
    reader = to_reader(batch)
    try:
        for found in reader:
            yield tuple(found.column(distinct.index(name)) for name in columns)
    finally:
        reader.close()  # else the connection stays blocked


def _bound(query: str, connection: Any) -> Any:
    """Return the relation of a query, which is not run yet; DuckDB's own message is not shown."""
    try:
        found = connection.sql(query)
    except Exception:
        found = None
    if found is None:
        raise ParameterError(
            "source",
            query,
            expected="a query that selects rows from tables of its connection",
            remedy="run the query with connection.sql first",
        )
    return found
