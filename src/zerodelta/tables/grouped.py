"""Read the arguments of a table into keys and columns, and show a released table."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, TypeAlias, final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import DEFAULT_MISSING, reader_of
from zerodelta.data.chosen import PRESENT, OpenedDataset
from zerodelta.data.columns import as_frame, check_number_column
from zerodelta.data.dataset import Dataset
from zerodelta.data.declare import number
from zerodelta.data.keys import Bins, GroupKey, GroupKeys, KeySource
from zerodelta.data.kinds import Boolean, Coded, Kind, Number, Text, skips
from zerodelta.data.readers import places
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError, did_you_mean, needed, printable, require, require_extra
from zerodelta.exact.rational import as_bounds
from zerodelta.mechanisms.ranks import grid_of
from zerodelta.privacy.shown_release import one_type
from zerodelta.tables.parts import StatisticOrLevel, TableColumn
from zerodelta.value import published, value

# -- The released table: labels of the groups, statistics and their errors, a line for each group --
# `zd.table` releases it where the data is no frame; `to_frame` converts it to a frame of any kind.

FRAMES = ("pandas", "polars", "pyarrow")

_SHOWN = 20
"""The largest number of printed lines; of a longer table the first and the last half of them."""


@published
@final
class Table:
    """Columns by name, all of one length: first the keys, then numbers; and a note on them.

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
        """The names of the columns that label the groups."""
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
        installed = (name for name in FRAMES if find_spec(name) is not None)
        chosen: Any = next(installed, FRAMES[0]) if kind is None else kind
        require_extra(chosen, "all")
        columns = {name: one_type(labels) for name, labels in self._keys.items()}
        numbers = {name: values.tolist() for name, values in self._numbers.items()}
        frame = nw.from_dict({**columns, **numbers}, backend=chosen).to_native()
        if self.note and hasattr(frame, "attrs"):  # only pandas has them
            frame.attrs["note"] = self.note
        return frame

    def with_numbers(self, numbers: Mapping[str, npt.NDArray[Any]]) -> Table:
        """Return the same groups with other numbers."""
        return Table(self._keys, numbers, note=self.note)

    # -- showing ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        names, lines, hidden = self._texts()
        columns = list(zip(names, *lines, strict=True))
        widths = [max(map(len, column)) for column in columns]
        key_columns = len(self._keys)

        def line(cells: Sequence[str]) -> str:
            padded = [
                cell.ljust(width) if place < key_columns else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ]
            return "  ".join(padded).rstrip()

        shown = [line(names), *map(line, lines)]
        if hidden:
            middle = 1 + len(lines) // 2
            shown.insert(middle, f"… {hidden} more")
        shown += [f"({printable(self.note)})"] if self.note else []
        return "\n".join(shown)

    def _repr_html_(self) -> str:
        """Return the table as HTML, escaped, its middle lines left out if it is long."""
        names, lines, hidden = self._texts()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = [
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in lines
        ]
        if hidden:
            line = f'<tr><td colspan="{len(names)}">… {hidden} more</td></tr>'
            rows.insert(len(lines) // 2, line)
        note = f"<p>{html.escape(printable(self.note))}</p>" if self.note else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{note}"

    def _texts(self) -> tuple[list[str], list[list[str]], int]:
        """Return the names, the texts of the shown lines, and the number of hidden lines."""
        all_places = range(len(self))
        half = _SHOWN // 2
        places = list(all_places)
        if len(places) > _SHOWN:
            places = [*all_places[:half], *all_places[-half:]]
        lines = [
            [
                *(printable(str(labels[place])) for labels in self._keys.values()),
                *(_number(values[place]) for values in self._numbers.values()),
            ]
            for place in places
        ]
        return [printable(name) for name in self.columns], lines, len(self) - len(places)


def _number(value: Any) -> str:
    """Return a number as text, integers with all digits and floats with five."""
    return f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:.5g}"


By: TypeAlias = str | Sequence[str] | Mapping[str, Kind | Bins] | None

MOST_CELLS = 1 << 24
"""The largest number of noisy numbers in a table."""

_MOST_LISTED = 1000
"""The largest range of integers that are groups each; in a larger one they are found as keys."""

_FRAMES = {"pandas": "pandas", "Polars": "polars", "Arrow": "pyarrow"}
_EVERY_ROW = GroupKey(name=PRESENT, labels=("",), bins=Bins(edges=(Fraction(0), Fraction(2))))
"""The only group where a filter drops rows: its column is 1 for the rows that count."""


@value
class GroupedData:
    """A data set of the columns that a table needs, and what is public about them."""

    source: Source
    diagnosed_columns: Dataset
    """The same without the column that says which rows count."""
    keys: GroupKeys
    universe: KeySource | None
    """All possible keys, where nobody listed them."""
    columns: tuple[TableColumn, ...]
    complete: bool
    """Whether every row is in a group."""
    frame: str | None
    """The kind of frame that the data came as."""


def grouped(
    data: Any,
    *,
    by: By = None,
    of: Mapping[str, tuple[StatisticOrLevel, ...]],
    bounds: Any = None,
    missing: Any = DEFAULT_MISSING,
) -> GroupedData:
    """Return the data of a table, of which no row has been read; refuse undeclared columns."""
    groupings = _groupings(by)
    people = data if isinstance(data, Dataset) else _opened(data, groupings, of, bounds, missing)
    if people is data:
        require(
            missing is DEFAULT_MISSING,
            "missing",
            missing,
            expected="nothing, because it was declared for each column of the data set",
            remedy="declare it: zd.open(…, columns={…: zd.number(0, 100, missing=…)})",
        )
    _check_declared(people, groupings, "by")
    _check_declared(people, of, "of")
    clips = people is data  # declared numbers are clipped to their bounds
    columns = tuple(
        _column(name, people.declared[name], statistics, bounds) for name, statistics in of.items()
    )
    kinds = {name: people.declared[name] for name in groupings}
    listed = not any(_unlisted(kinds[name], how) for name, how in groupings.items())
    keys = tuple(_key(name, kinds[name], how, clips, listed) for name, how in groupings.items())
    # a table with too many groups may find integers as keys instead, unless some key is in bins
    in_bins = any(isinstance(how, Bins) for how in groupings.values())
    findable = not in_bins and any(map(_integer_range, kinds.values()))
    if listed and findable and _cells(keys, columns) > MOST_CELLS:
        listed = False
        keys = tuple(_key(name, kinds[name], how, clips, listed) for name, how in groupings.items())
    _check_names(keys, columns)
    chosen = people[list(dict.fromkeys([*groupings, *of]))]
    if not listed:
        return _by_unknown_keys(people, keys, columns, chosen)
    _check_size(keys, columns)
    if not keys and chosen.drops_rows:
        keys = (_EVERY_ROW,)
    group_keys = GroupKeys(keys=keys)
    return GroupedData(
        source=chosen.with_presence if keys == (_EVERY_ROW,) else chosen,
        diagnosed_columns=chosen,
        keys=group_keys,
        universe=None,
        columns=columns,
        complete=not chosen.drops_rows and group_keys.complete,
        frame=_frame(people.text),
    )


def _by_unknown_keys(
    people: Dataset, keys: tuple[GroupKey, ...], columns: tuple[TableColumn, ...], chosen: Dataset
) -> GroupedData:
    """Return the data of a table whose groups are found; all other rows are one more group."""
    for key in keys:
        require(
            key.bins is None,
            f"by[{key.name!r}]",
            "bins",
            expected="no bins next to keys that nobody listed",
            remedy="declare the column as a category, or group by the other columns alone",
        )
    names = [key.name for key in keys]
    universe = KeySource(people[names])
    values = [column.name for column in columns]
    return GroupedData(
        source=KeySource(people[names], of=values) if values else universe,
        diagnosed_columns=chosen,
        keys=GroupKeys(keys=keys, possible=universe.universe.size + 1),
        universe=universe,
        columns=columns,
        complete=not chosen.drops_rows,
        frame=_frame(people.text),
    )


def _unlisted(kind: Kind, how: Kind | Bins | None) -> bool:
    """Tell whether nobody listed the keys of a column: texts, and integers of a large range."""
    return not isinstance(how, Bins) and not isinstance(kind, Coded) and not _integer_range(kind)


def _integer_range(kind: Kind) -> range | None:
    """Return all values of an integer column, if they are few and exact as floats; else None.

    >>> _integer_range(number(0, 120, integer=True))
    range(0, 121)
    """
    if not (isinstance(kind, Number) and kind.integer):
        return None
    few = kind.upper - kind.lower < _MOST_LISTED and max(-kind.lower, kind.upper) < 1 << 50
    return range(int(kind.lower), int(kind.upper) + 1) if few else None


def _groupings(by: By) -> dict[str, Kind | Bins | None]:
    """Return for each key column how its cells are grouped; None: as declared."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        groupings: dict[str, Kind | Bins | None] = dict(by)
        valid = all(isinstance(how, (Kind, Bins)) for how in groupings.values())
    else:
        names = [by] if isinstance(by, str) else by
        texts = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
        valid = texts and len(names) == len(set(names))
        groupings = dict.fromkeys(names) if valid else {}
    require(
        valid and all(isinstance(name, str) for name in groupings),
        "by",
        by,
        expected="names of columns, each once, or for each name a kind such as zd.bins([0, 18])",
        remedy='pass by=["city", "member"], or by={"age": zd.bins([0, 18, 65, 120])}',
    )
    return groupings


def _opened(
    data: Any,
    groupings: Mapping[str, Kind | Bins | None],
    of: Mapping[str, tuple[StatisticOrLevel, ...]],
    bounds: Any,
    missing: Any,
) -> Dataset:
    """Return a bare frame or array as a data set of the columns that the table names."""
    require(
        not isinstance(data, Source),
        "data",
        type(data),
        expected="a data set, a frame or an array",
        remedy="open it with zd.open(…)",
    )
    array = isinstance(data, (np.ndarray, list, tuple))
    default = None if array else "skip"
    absent = default if missing is DEFAULT_MISSING else missing
    for name, how in groupings.items():
        if how is None:
            raise ParameterError(
                "by",
                name,
                expected="a column whose groups are stated, because a bare frame declares none",
                remedy=f"pass by={{{name!r}: zd.category([…], other=True)}}, or open the data "
                "with zd.open(…, columns={…})",
            )
    kinds: dict[str, Kind] = {name: number(*_bounds(name, bounds), missing=absent) for name in of}
    for name, how in groupings.items():
        if isinstance(how, Bins):
            kinds.setdefault(name, number(how.edges[0], how.edges[-1]))
            continue
        require(
            how is not None and name not in of,
            "by, of",
            name,
            expected="in both only a column of numbers that zd.bins groups",
            remedy=f"pass by={{{name!r}: zd.bins([…])}}",
        )
        kinds[name] = how  # type: ignore[assignment]
    remedy = 'pass by={"city": zd.category([…])}'
    require(kinds, "by", None, "one column or more", remedy)
    reader = reader_of(data)
    places(reader.names, kinds)
    if nw.dependencies.is_into_dataframe(data):  # checked by types alone: no row is read
        empty = as_frame(data).head(0)
        for column in empty.columns:
            if isinstance(kinds.get(str(column)), Number):
                check_number_column(empty, column)
    return Dataset(OpenedDataset(reader=reader, kinds=kinds))


def _check_declared(people: Dataset, names: Mapping[str, Any], argument: str) -> None:
    """Refuse names of columns that the data set does not declare."""
    declared = list(people.declared)
    for name in names:
        require(
            name in people.declared,
            argument,
            name,
            expected=f"a declared column, one of {declared[:10]}",
            remedy=did_you_mean(name, declared, "declare it in zd.open(…, columns={…})"),
        )


def _key(name: str, kind: Kind, how: Kind | Bins | None, clips: bool, listed: bool) -> GroupKey:
    """Return how a column groups rows; unless all keys are `listed`, integers are found, too."""
    if isinstance(how, Bins):
        if not isinstance(kind, Number):
            raise ParameterError(
                f"by[{name!r}]",
                str(kind),
                expected="a column of numbers, which can be cut into bins",
                remedy=f"pass by={name!r}: it has groups already",
            )
        ends = kind.bounds if clips else None
        inside = ends is not None and how.edges[0] <= ends[0] and ends[1] <= how.edges[-1]
        full = inside and kind.missing != "skip"
        return GroupKey(name=name, labels=how.labels, bins=how, clip_bounds=ends, complete=full)
    require(
        how is None or how == kind,
        f"by[{name!r}]",
        str(how),
        expected=f"what was declared for it, {kind}",
        remedy=f"pass by={name!r}, or declare another kind in zd.open(…)",
    )
    values = _integer_range(kind)
    if listed and values is not None:  # a number out of range is in no group: it is not clipped
        middles = (Fraction(2 * value - 1, 2) for value in (*values, values[-1] + 1))
        return GroupKey(name=name, labels=tuple(values), bins=Bins(edges=tuple(middles)))
    if isinstance(kind, Coded):
        return GroupKey(name=name, labels=tuple(kind.labels or ()), complete=not skips(kind))
    if isinstance(kind, Text):
        require(
            kind.alphabet is not None,
            f"by[{name!r}]",
            str(kind),
            expected="texts over a stated alphabet, so that the number of possible keys is public",
            remedy=f"declare {name!r} as zd.text({kind.length}, alphabet=…) with all letters that "
            "can occur, or as zd.category([…], other=True)",
        )
    else:
        require(
            isinstance(kind, Number) and kind.integer,
            f"by[{name!r}]",
            str(kind),
            expected="a category, a boolean, a date, texts over an alphabet, whole numbers, or "
            "numbers with public edges",
            remedy=f"pass by={{{name!r}: zd.bins([0, 18, 65, 120])}}, with edges that you choose",
        )
    return GroupKey(name=name, labels=())  # its keys are found later


def _column(
    name: str, kind: Kind, statistics: tuple[StatisticOrLevel, ...], bounds: Any
) -> TableColumn:
    """Return a column with its bounds, stated or declared, and its statistics."""
    numeric = isinstance(kind, Number) or (isinstance(kind, Boolean) and not kind.missing)
    require(
        numeric,
        f"of[{name!r}]",
        str(kind),
        expected="a column of numbers or booleans",
        remedy="use it in by=, or ask for another column",
    )
    stated = bounds.get(name) if isinstance(bounds, Mapping) else bounds
    ends = kind.bounds if stated is None else as_bounds(stated)
    if ends is None:  # pragma: no cover
        raise AssertionError("numbers have bounds")
    levels = tuple(level for level in statistics if isinstance(level, Fraction))
    return TableColumn(
        name=name,
        bounds=ends,
        missing=skips(kind),
        statistics=tuple(name for name in statistics if isinstance(name, str)),
        levels=levels,
        grid=grid_of(kind) if levels and stated is None else None,
    )


def _bounds(name: str, bounds: Any) -> tuple[Fraction, Fraction]:
    """Return the stated bounds of a column that has none declared."""
    stated = bounds.get(name) if isinstance(bounds, Mapping) else bounds
    remedy = f"pass bounds={{{name!r}: (lower, upper)}}, known without the rows"
    return as_bounds(needed(stated, f"bounds[{name!r}]", remedy))


def _cells(keys: Sequence[GroupKey], columns: Sequence[TableColumn]) -> int:
    """Return the number of noisy numbers of a table with listed keys."""
    return GroupKeys(keys=tuple(keys)).count * _sums(columns)


def _sums(columns: Sequence[TableColumn]) -> int:
    """Return the number of noisy numbers of a group."""
    return 1 + sum(1 + column.degree + len(column.levels) for column in columns)


def _check_size(keys: Sequence[GroupKey], columns: Sequence[TableColumn]) -> None:
    """Refuse a table with too many noisy numbers."""
    require(
        _cells(keys, columns) <= MOST_CELLS,
        "by",
        f"{GroupKeys(keys=tuple(keys)).count} groups of {_sums(columns)} sums",
        expected="at most 2^24 numbers in all",
        remedy="group by fewer columns, or by coarser ones",
    )


def _check_names(keys: Sequence[GroupKey], columns: Sequence[TableColumn]) -> None:
    """Refuse columns whose names would occur twice in the table."""
    numbers = ["count", "count_error", *(name for column in columns for name in column.numbers)]
    names = [key.name for key in keys] + numbers
    twice = sorted({name for name in names if names.count(name) > 1})
    require(
        not twice,
        "by, of",
        twice,
        expected="names that differ from those of the columns of the result",
        remedy="rename the column in the data",
    )


def _frame(text: str) -> str | None:
    """Return the kind of frame that a source is, from its description such as "pandas frame".

    The description of a file names it, with a dot.
    """
    kind, _, name = text.partition(" ")
    return _FRAMES.get(kind) if re.fullmatch("[A-Za-z]+", name) else None
