"""Polars lazy frames: rows of a query that Polars runs, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, final

from zerodelta.data.array_reader import polars_cells
from zerodelta.data.reader import Batch, Part, QueryReader, attempt, guarded, places


@final
class PolarsLazyReader(QueryReader):
    """The rows of a lazy frame's result, in one part."""

    __slots__ = ("_frame",)

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._names = tuple(attempt(lambda: frame.collect_schema().names()))

    @property
    def text(self) -> str:
        """What kind of source this is."""
        return "Polars LazyFrame"

    def count(self) -> int:
        """Return the number of rows of the result."""
        import polars

        return int(attempt(lambda: self._frame.select(polars.len()).collect().item()))

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return one part."""
        places(self._names, columns)
        return [partial(guarded, partial(_rows, self._frame, columns, batch))]


def _rows(frame: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    chosen = frame.select(list(dict.fromkeys(columns)))
    if hasattr(chosen, "collect_batches"):
        found = chosen.collect_batches(chunk_size=batch, maintain_order=True)
    else:  # older versions hold the result in memory
        found = [chosen.collect()]
    for each in found:
        for part in each.iter_slices(batch):
            yield tuple(polars_cells(part.get_column(name)) for name in columns)
