"""A released table: the labels of its groups, statistics and their errors, one line per group.

It is what `zd.table` releases where the data is no frame; `to_frame` makes a frame of any kind.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, did_you_mean, printable, require, require_extra

FRAMES = ("pandas", "polars", "pyarrow")

_SHOWN = 20
"""Lines that are printed; of a longer table the first and the last ones."""


@final
class Table:
    """Columns by name, all of one length: first the keys, then numbers; and a note beside them.

    >>> table = Table({"city": ["oslo", "rome"]}, {"count": np.array([3, 5])})
    >>> table
    city  count
    oslo      3
    rome      5
    >>> table["count"].tolist(), len(table), table.columns
    ([3, 5], 2, ('city', 'count'))
    """

    __slots__ = ("_keys", "_numbers", "note")

    def __init__(
        self,
        keys: Mapping[str, Sequence[Any]],
        numbers: Mapping[str, npt.NDArray[Any]],
        *,
        note: str = "",
    ) -> None:
        self.note = note
        self._keys = {name: list(labels) for name, labels in keys.items()}
        self._numbers = {name: np.asarray(values) for name, values in numbers.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self._keys, *self._numbers)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that say which group it is."""
        return tuple(self._keys)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of groups, and of columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self._numbers.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)  # as frames do

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """Return one column: numbers, or the labels of a key as objects."""
        if column in self._numbers:
            return self._numbers[column]
        if column not in self._keys:
            remedy = did_you_mean(column, self.columns, f"name one of {', '.join(self.columns)}")
            raise ParameterError("column", column, expected="one of the table", remedy=remedy)
        labels = np.empty(len(self), dtype=object)
        labels[:] = self._keys[column]
        return labels

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each group as a dictionary."""
        for cells in zip(*map(self.__getitem__, self.columns), strict=True):
            yield dict(zip(self.columns, cells, strict=True))

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the table as a data frame: "pandas", "polars" or "pyarrow".

        By default the first of these that is installed.
        """
        require(
            kind is None or kind in FRAMES,
            "kind",
            kind,
            expected=f"one of {', '.join(FRAMES)}",
            remedy=did_you_mean(kind, FRAMES, 'pass kind="pandas"'),
        )
        there = (each for each in FRAMES if find_spec(each) is not None)
        chosen: Any = next(there, FRAMES[0]) if kind is None else kind
        require_extra(chosen, "all")
        columns = {name: _alike(labels) for name, labels in self._keys.items()}
        numbers = {name: values.tolist() for name, values in self._numbers.items()}
        made = nw.from_dict({**columns, **numbers}, backend=chosen).to_native()
        if self.note and hasattr(made, "attrs"):  # of pandas
            made.attrs["note"] = self.note
        return made

    def with_numbers(self, numbers: Mapping[str, npt.NDArray[Any]]) -> Table:
        """Return the same groups with other numbers."""
        return Table(self._keys, numbers, note=self.note)

    # -- showing ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        names, lines, left = self._texts()
        columns = list(zip(names, *lines, strict=True))
        widths = [max(map(len, column)) for column in columns]
        keyed = len(self._keys)

        def line(cells: Sequence[str]) -> str:
            padded = [
                cell.ljust(width) if place < keyed else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ]
            return "  ".join(padded).rstrip()

        shown = [line(names), *map(line, lines)]
        if left:
            half = 1 + len(lines) // 2
            shown.insert(half, f"… {left} more")
        shown += [f"({self.note})"] if self.note else []
        return "\n".join(shown)

    def _repr_html_(self) -> str:
        names, lines, left = self._texts()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = [
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in lines
        ]
        if left:
            rows.insert(len(lines) // 2, f'<tr><td colspan="{len(names)}">… {left} more</td></tr>')
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{note}"

    def _texts(self) -> tuple[list[str], list[list[str]], int]:
        """Return the names, the lines that are shown as texts, and how many are not."""
        every = range(len(self))
        half = _SHOWN // 2
        places = list(every) if len(every) <= _SHOWN else [*every[:half], *every[-half:]]
        lines = [
            [
                *(printable(str(labels[place])) for labels in self._keys.values()),
                *(_number(values[place]) for values in self._numbers.values()),
            ]
            for place in places
        ]
        return [printable(name) for name in self.columns], lines, len(every) - len(places)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:.5g}"


def _alike(labels: list[Any]) -> list[Any]:
    """Return labels of one type: False, True and "missing" are texts."""
    return labels if len(set(map(type, labels))) == 1 else [str(label) for label in labels]
