"""The rows that a gradient is computed from, one of whose columns may be the label.

Rows are read block by block from a source; nothing here holds a copy of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Block, Column
from zerodelta.data.source import Rows, Source, is_ours
from zerodelta.errors import ParameterError
from zerodelta.spine.transition import opened

__all__ = ["Examples", "Floats"]

Floats: TypeAlias = npt.NDArray[np.float64]

_BATCH_ENTRIES = 1 << 18
"""Entries read at a time: 2 MiB, small beside any data worth the care."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """Rows of one source, or of two side by side; `label` is the position of the label column.

    >>> rows = Examples.of_source(ArraySource(np.arange(6.0).reshape(2, 3)), label=0)
    >>> rows.width, rows.columns, [block.tolist() for block in rows.blocks()]
    (2, ('1', '2', '0'), [[[1.0, 2.0, 0.0], [4.0, 5.0, 3.0]]])
    """

    sources: tuple[Source | Rows, ...]
    label: int | None

    @classmethod
    def of_arrays(cls, features: Any, labels: Any = None) -> Examples:
        """Return features, with a column of labels behind them if there are any."""
        table = _source(features, "features")
        batch = max(1, _BATCH_ENTRIES // len(table.columns))
        table = ArraySource(features, batch=batch)
        if labels is None:
            return cls(sources=(table,), label=None)
        answers = _source(labels, "labels")
        if (answers.rows, len(answers.columns)) != (table.rows, 1):
            raise ParameterError(
                "labels",
                f"shape ({answers.rows}, {len(answers.columns)})",
                expected=f"one label for each of the {table.rows} rows",
                remedy="pass a one-dimensional array as long as features",
            )
        return cls(
            sources=(table, ArraySource(labels, batch=batch)),
            label=len(table.columns),
        )

    @classmethod
    def of_source(cls, source: Source | Rows, *, label: Column | None = None) -> Examples:
        """Return the rows of a source; the label is a column by name or position (None: no label).

        A negative position counts from the end, so that -1 is the last column.
        """
        _check_size(source, "rows")
        return cls(
            sources=(source,), label=None if label is None else _position(label, source.columns)
        )

    @property
    def rows(self) -> int:
        """The number of rows; public."""
        return self.sources[0].rows

    @property
    def ours(self) -> bool:
        """Whether this library's own code reads the rows."""
        return all(map(is_ours, self.sources))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which a function sees them: the label last."""
        names = self._names()
        return tuple(names[i] for i in self._order(len(names)))

    @property
    def width(self) -> int:
        """The number of features: columns that are not the label."""
        return len(self._names()) - (self.label is not None)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows block by block: features, then the label if there is one."""
        order = self._order(len(self._names()))
        moved = order != sorted(order)
        for parts in zip(*(opened(source).blocks() for source in self.sources), strict=True):
            block = parts[0] if len(parts) == 1 else np.hstack(parts)
            yield block[:, order] if moved else block

    def _names(self) -> list[str]:
        names = [name for source in self.sources for name in source.columns]
        return names if len(self.sources) == 1 else [str(i) for i in range(len(names))]

    def _order(self, count: int) -> list[int]:
        others = [i for i in range(count) if i != self.label]
        return others if self.label is None else [*others, self.label]


def _source(data: Any, name: str) -> ArraySource:
    if data is None:
        raise ParameterError(name, None, expected="an array or a data frame", remedy="pass one")
    source = ArraySource(data)
    _check_size(source, name)
    return source


def _check_size(source: Source | Rows, name: str) -> None:
    if source.rows == 0 or not source.columns:
        raise ParameterError(
            name,
            "no rows or no columns",
            expected="at least one row and one column",
            remedy="pass an array of shape (n, d)",
        )


def _position(label: Column, columns: tuple[str, ...]) -> int:
    if isinstance(label, str) and label in columns:
        return columns.index(label)
    if type(label) is int and -len(columns) <= label < len(columns):
        return label % len(columns)
    raise ParameterError(
        "label",
        label,
        expected=f"one of {list(columns)[:10]}, or its position",
        remedy="name the column of the source that holds the label",
    )
