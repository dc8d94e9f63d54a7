"""Some columns of a data set and a condition on its rows: what a batch of cells is read to.

Nothing here reads a source. Every cell is read by itself, so this may run on a thread or on a
worker of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrow_cells import Distinct, stored_integers
from zerodelta.data.base import Base
from zerodelta.data.kind import Bounds, Kind
from zerodelta.data.kinds import Number, Text
from zerodelta.data.predicate import Predicate
from zerodelta.data.readings import Beyond, readings_of
from zerodelta.data.rowwise import Block, OwnColumn
from zerodelta.data.shared_copy import UNIT
from zerodelta.data.tallies import Keys
from zerodelta.value import value

ITSELF: Any = OwnColumn.ITSELF
"""What stands for the name of a column that is 1 in every row that counts."""


@value
class ChosenColumns:
    """Which columns, in which order, of which rows; `ITSELF` and `UNIT` are no declared ones."""

    base: Base
    names: tuple[str, ...]
    where: tuple[Predicate, ...] = ()
    judged: Mapping[str, Bounds | None] | None = None
    """The column `ITSELF` says how each row was read, these columns with these bounds."""
    beyond: Beyond | None = None
    """Which rows of them are clipped as a whole."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns whose cells `read` needs: those chosen, judged, and those of conditions."""
        used = [*self.names, *(name for each in self.where for name in each.columns)]
        used += self.judged or ()
        named = tuple(dict.fromkeys(name for name in used if name not in (ITSELF, UNIT)))
        # where rows alone are asked for, any column has as many
        return named or tuple(self.base.kinds)[:1]

    def read(
        self, cells: Mapping[str, Any], distinct: Mapping[str, Distinct] | None = None
    ) -> Block:
        """Return the chosen columns of one batch, from the cells of those that are needed.

        What texts are read to is known from the batches before (`distinct`).
        """
        kinds = self.base.kinds
        rows = len(next(iter(cells.values())))
        block = np.empty((len(self.names), rows))  # each column in one piece
        for i, name in enumerate(self.names):
            if name in (ITSELF, UNIT):  # the latter is known where rows are bounded
                block[i] = self._itself(cells)
            elif distinct is None or not distinct[name].read(
                cells[name], partial(_read, kinds[name]), out=block[i]
            ):
                block[i] = _read(kinds[name], cells[name])
        if self.where:
            done = dict(zip(self.names, block, strict=True))
            others = {n: _read(kinds[n], cells[n]) for n in cells if n not in done}
            block[:, ~self._holds({**done, **others})] = np.nan
        found: Block = block.T
        return found

    def read_plainly(self, column: Any, distinct: Distinct) -> Keys | None:
        """Return the only column as it is stored, where that says the same."""
        kind = self.base.kinds[self.names[0]]
        if isinstance(kind, Number):
            integers = stored_integers(column)
            return None if integers is None else Keys(integers)
        found = distinct.places(column, partial(_read, kind))
        return None if found is None else Keys(*found)

    def holds(self, cells: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Tell for which rows of a batch every condition holds."""
        used = {name for each in self.where for name in each.columns}
        return self._holds({name: _read(self.base.kinds[name], cells[name]) for name in used})

    def _holds(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.logical_and.reduce([each(columns) for each in self.where])
        return found

    def _itself(self, cells: Mapping[str, Any]) -> Any:
        if self.judged is None:
            return 1.0
        columns = [self.base.kinds[name].read(cells[name]) for name in self.judged]
        return readings_of(columns, tuple(self.judged.values()), self.beyond)


def _read(kind: Kind, cells: Any) -> npt.NDArray[np.float64]:
    """Return the numbers or codes of a column; what is missing as declared. A text is 1."""
    values: npt.NDArray[np.float64] = kind.read(cells)
    if isinstance(kind, Text):
        texts: Any = values
        return np.array([np.nan if text is None else 1.0 for text in texts])
    return kind.filled(values) if isinstance(kind, Number) else values
