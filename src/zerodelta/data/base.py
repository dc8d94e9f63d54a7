"""What `zd.open` was told of a source: kinds of columns, whose rows count, who is protected.

All selections of columns and rows of one data set share it, and everything here is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from zerodelta.data.account import Account
from zerodelta.data.kept_copy import Keeping
from zerodelta.data.kind import Kind
from zerodelta.data.kinds import Number
from zerodelta.data.reader import Batch, Part, Reader
from zerodelta.data.spark_reader import SparkReader
from zerodelta.data.units import Bounding
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value

_BATCH = 1 << 16

DEFAULT_MEMORY = 1 << 30
"""How many bytes of a copy of the rows are kept in memory, by default."""

_KEEPING = Keeping(memory=DEFAULT_MEMORY)


@value
class Unit:
    """Whose rows are protected together: the column that names it, and how many rows count."""

    column: str
    max_rows: int
    number: int | None = None
    """How many units there are, if declared; else they are counted."""


@value
class Base:
    """What all selections of one data set share; everything here is public."""

    reader: Reader
    kinds: Mapping[str, Kind]
    unit: Unit | None = None
    neighbors: Neighbors = Neighbors.REPLACE
    name: str | None = None
    expected_rows: int | None = None
    keeping: Keeping = _KEEPING
    account: Account | None = None
    """Who pays for releases from these rows."""
    counted: list[int] = field(default_factory=list, repr=False, compare=False)

    def count(self) -> int:
        """Return the number of rows, or of units times the rows that count, once it was asked.

        Called only where it is public.
        """
        if not self.counted:
            self.counted.append(self._count())
        return self.counted[0]

    def _count(self) -> int:
        if self.unit is None:
            return self.reader.count()
        number = self.unit.number
        if number is None and isinstance(self.reader, SparkReader):
            number = self.reader.count_units(self.unit.column)
        if number is None:
            ids = self._bounding(max_rows=1)
            for place, part in enumerate(self.parts((self.unit.column,))):
                for (cells,) in part():
                    ids.add(place, cells, [])
            number = ids.finish().units
        return number * self.unit.max_rows

    def parts(
        self, names: tuple[str, ...], *, whole: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the cells of some columns, part by part; those `whole` are not read to floats."""
        numbers = frozenset(n for n in names if isinstance(self.kinds.get(n), Number))
        return self.reader.parts(names, batch=_BATCH, numbers=numbers - whole)

    @property
    def everything(self) -> tuple[str, ...]:
        """All declared columns, and that of the unit."""
        unit = () if self.unit is None else (self.unit.column,)
        return tuple(dict.fromkeys([*self.kinds, *unit]))

    def held(self, *, whole: frozenset[str]) -> list[list[Batch]]:
        """Return the cells of everything, part by part."""
        return [list(part()) for part in self.parts(self.everything, whole=whole)]

    def bounding(
        self, unit: Unit, parts: Sequence[Part]
    ) -> tuple[Bounding, Iterator[tuple[int, Mapping[str, Any]]]]:
        """Return which rows count, once all batches that are yielded beside it were taken.

        Of each unit at most so many, chosen by its own rows alone. A batch has the cells of
        `everything`, in `parts`, and the number of its part.
        """
        rows = self._bounding(max_rows=unit.max_rows)

        def batches() -> Iterator[tuple[int, Mapping[str, Any]]]:
            for place, part in enumerate(parts):
                for batch in part():
                    named = dict(zip(self.everything, batch, strict=True))
                    columns = [kind.read(named[name]) for name, kind in self.kinds.items()]
                    rows.add(place, named[unit.column], columns)
                    yield place, named

        return rows, batches()

    def _bounding(self, *, max_rows: int) -> Bounding:
        limit = {} if self.keeping.memory is None else {"memory": self.keeping.memory // 8}
        return Bounding(max_rows=max_rows, folder=self.keeping.folder, **limit)
