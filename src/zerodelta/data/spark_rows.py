"""Rows of a Spark DataFrame that a ticket has opened: the workers add them up.

The cells are read once, on the workers, into a copy that Spark keeps there until the release is
done; rows of units are chosen there, too. Each sum is one job: every partition sends its integers,
and the driver adds these up. Noise is drawn once, on the driver.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.reader import attempt, guarded
from zerodelta.data.rows import MOST_HERE, Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.spark_reader import SparkReader, streamed
from zerodelta.data.spark_workers import (
    COPY,
    HASHES,
    SUMS,
    count_keys,
    decoded,
    gather,
    hash_rows,
    mix_copies,
    numbers_of,
    read_rows,
    serialize,
    sum_rows,
)
from zerodelta.data.ticket import Ticket
from zerodelta.errors import require
from zerodelta.exact.exact_sums import IntegerArray, exact_total

if TYPE_CHECKING:
    from zerodelta.data.dataset import Dataset

_MOST_COLLECTED = 1 << 20
"""Sums of more entries come partition by partition."""

_MOST_SUMS, _LARGEST_SUM = 256, 1 << 14


@final
class SparkRows(Rows):
    """The rows of a data set on a cluster."""

    __slots__ = ("__weakref__", "_copied", "_people", "_reader", "_rows", "_sums", "_ticket")

    def __init__(self, people: Dataset, reader: SparkReader, ticket: Ticket) -> None:
        reader.check()
        self._people, self._reader, self._ticket = people, reader, ticket
        self._rows = people.rows
        self._copied: Any = None
        self._sums: dict[Hashable, IntegerArray] = {}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._people.whole

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._people.columns

    def blocks(self) -> Iterator[Block]:
        """Yield all rows, on the driver; refused by their public number."""
        require(
            self._rows * len(self.columns) <= MOST_HERE,
            "rows",
            self._rows,
            expected=f"at most {MOST_HERE // len(self.columns)} rows where they are all "
            "needed on the driver",
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

    @property
    def adds_here(self) -> bool:
        """False: the workers do."""
        return False

    @property
    def may_miss(self) -> bool:
        """Whether a row without any cell is no row at all."""
        return self._people.may_miss

    def _partials(
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

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        # an exact sum of the copy is the same whenever it is computed; only noise is fresh
        known = self._sums.get(key)
        if known is None:
            known = compute()
            if key is not None and known.size <= _LARGEST_SUM:
                while len(self._sums) >= _MOST_SUMS:
                    del self._sums[next(iter(self._sums))]
                self._sums[key] = known
        answer: IntegerArray = known.copy()
        return answer

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
            return self._reader.mapped(chosen.needed, function, ", ".join(numbers))
        everything = tuple(dict.fromkeys([*people.declared, unit.column]))
        schema = ", ".join([*(f"{each} bigint" for each in HASHES), *numbers])
        hashed = self._reader.mapped(everything, partial(hash_rows, chosen, unit.column), schema)
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
