"""The rows of a case, and their neighbors: every kind of source, relation and odd row.

A `World` is one choice of all of these. It hands a case its rows, or neighbors of them, and counts
how often it could.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import zerodelta as zd
from data import fake_spark
from data.odd_cells import objects
from data.odd_rows import BYTES, FLOATS, LINES, OBJECTS, TEXTS
from data.sources import HOLDERS
from golden import rows
from golden.rows import COLUMNS, rows_of
from zerodelta.ledger.store import close_all

Row = tuple[Any, ...]

NAMES = ("who", *COLUMNS)
WHO = 1000
"""An id that does not occur."""


def drawn(*about: object) -> int:
    """Return a number that is as good as random, and always the same."""
    return int.from_bytes(sha256(repr(about).encode()).digest()[:8], "little")


# -- one odd row ----------------------------------------------------------------------------------

ODD = 12
"""Kinds of odd rows, of each of which there are many."""
EXTREME = 0
"""The place of a row at the end of its bounds: another can be as far from it as any row is."""
_NUMBERS = tuple(each if each is None else float(each) for each in (*FLOATS, 50.0, -7.0))
MISSING, INFINITE = 1, 2
"""Of kinds of odd rows those of which every case sees one: all missing, and beyond all bounds."""
_INTEGERS = (None, 3, 0, -1, 5, 2**62, -(2**63))


def _typed(kind: int, place: int) -> Row:
    """A row in the types of the columns: one kind of number, any of all others."""
    number = _NUMBERS[kind % len(_NUMBERS)]
    other = _NUMBERS[(kind + place) % len(_NUMBERS)]
    truth = (None, True, False)[place % 3]
    words = [TEXTS[(kind + ODD * place + 17 * i) % len(TEXTS)] for i in range(3)]
    return (number, other, truth, words[0], _INTEGERS[place % 7], words[1], words[2])


def _cells(kind: int, place: int, cells: Sequence[Any]) -> Row:
    """The same odd cell everywhere, or another in each column."""
    step = 13 * (place % 2)
    return tuple(cells[(kind + ODD * place + step * i) % len(cells)] for i in range(7))


# -- sources --------------------------------------------------------------------------------------

Build = Callable[[Sequence[Row], Path], Any]


def _table(table: Sequence[Row]) -> Any:
    import pyarrow as pa

    text = pa.string()
    kinds = [pa.int64(), pa.float64(), pa.float64(), pa.bool_(), text, pa.int64(), text, text]
    columns = zip(zip(*table, strict=True), kinds, strict=True)
    return pa.table([pa.array(cells, k) for cells, k in columns], names=list(NAMES))


def _held(holder: str) -> Build:
    return lambda table, folder: HOLDERS[holder](_table(table), folder)


def _spark(table: Sequence[Row], _folder: Path) -> Any:
    """Two partitions that are read by what Spark's workers run."""
    return fake_spark.frame(_table(table), partitions=2, batch=50)


def _objects(table: Sequence[Row], _folder: Path) -> Any:
    columns = {}
    for name, cells in zip(NAMES, zip(*table, strict=True), strict=True):
        columns[name] = pd.Series(objects(list(cells)), dtype=object)
    return pd.DataFrame(columns)


def _text(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, (str, bytes)) else str(cell)


def _polars_texts(table: Sequence[Row], _folder: Path) -> Any:
    import polars as pl

    columns = zip(NAMES, zip(*table, strict=True), strict=True)
    return pl.DataFrame([pl.Series(n, [*map(_text, c)], dtype=pl.String) for n, c in columns])


def _csv(table: Sequence[Row], folder: Path) -> Any:
    def of(cell: Any) -> bytes:
        found = _text(cell)
        text = b"" if found is None else found
        return text if isinstance(text, bytes) else text.replace("\n", " ").encode()

    lines = [",".join(NAMES).encode()]
    lines += [row[0] if len(row) == 1 else b",".join(map(of, row)) for row in table]
    (folder / "people.csv").write_bytes(b"\n".join(lines) + b"\n")
    return folder / "people.csv"


SOURCES: dict[str, tuple[Build, Sequence[Any] | None]] = {
    "arrow": (_held("arrow"), None),
    "parquet": (_held("parquet, 7 groups"), None),
    "duckdb": (_held("duckdb"), None),
    "polars": (_held("polars"), None),
    "polars lazy": (_held("polars lazy"), None),
    "pandas objects": (_objects, OBJECTS),
    "polars texts": (_polars_texts, TEXTS),
    "csv": (_csv, (*TEXTS, *BYTES)),
    "arrow dataset": (_held("arrow dataset in memory"), None),
    "spark": (_spark, None),
}
"""How a data set is written, and which cells other than typed ones it can hold."""

RELATIONS: dict[str, dict[str, Any]] = {
    "replace": {},
    "add-remove": {"neighbors": "add-remove", "expected_rows": 120},
    "unit": {"unit": "who", "max_rows": 1, "units": 60},
    "unit of three": {"unit": "who", "max_rows": 3, "units": 60},
    "unit comes or goes": {
        "unit": "who",
        "max_rows": 2,
        "neighbors": "add-remove",
        "expected_rows": 60,
    },
}
"""Who is protected; cases that say so themselves keep what they say."""

# -- arrays and lists -----------------------------------------------------------------------------

FORMS = ("as they are", "floats", "lists", "objects")
"""How arrays are handed over."""


def _formed(given: Any, form: str) -> Any:
    if form == "floats" and isinstance(given, np.ndarray) and given.dtype.kind in "iuf":
        return given.astype(np.float64)
    if isinstance(given, range) or form == "lists":
        return given.tolist() if isinstance(given, np.ndarray) else list(given)
    if form == "objects" and isinstance(given, np.ndarray):
        return given.astype(object)
    return given


def _other(given: Any, place: int, kind: int) -> Any:
    """Return the same with one odd row, in the same type."""
    place %= len(given)
    if isinstance(given, np.ndarray):
        return _other_array(given, place, kind)
    if isinstance(given, pd.DataFrame):
        changed = given.copy()
        changed.iloc[place] = _NUMBERS[kind % len(_NUMBERS)] or 0.0
        return changed
    listed = list(given)
    odd = OBJECTS[(kind + ODD * place) % len(OBJECTS)]
    if isinstance(listed[place], list):
        ragged: list[Any] = [[], None, "x", [1.0] * 9]
        whole = [odd] * len(listed[place])
        listed[place] = ragged[place % 4] if place and kind % 4 == 3 else whole
    else:
        listed[place] = odd
    return listed


def _other_array(given: Any, place: int, kind: int) -> Any:
    changed = given.copy()
    row = np.atleast_1d(changed[place])
    if given.dtype == object:
        cells = np.empty(row.size, dtype=object)
        for i in range(row.size):
            cells[i] = OBJECTS[(kind + ODD * place + 13 * i * (place % 2)) % len(OBJECTS)]
    elif given.dtype.kind == "f":
        numbers = [_NUMBERS[(kind + i * (place % 2)) % len(_NUMBERS)] for i in range(row.size)]
        cells = np.array([np.nan if each is None else each for each in numbers])
    else:
        cells = np.full(row.size, (0, 1, 7, -1, 2**62)[kind % 5], dtype=given.dtype)
    changed[place] = cells.reshape(row.shape) if given.ndim > 1 else cells[0]
    return changed


def _values(given: Any, kind: int) -> Any:
    """Any other value that a channel may be handed."""
    return (0, 1, [0.5, -0.5], None, "x", float("nan"), [], 1e308, object(), [[1]], b"", -0.25)[
        kind
    ]


def _scores(given: Any, kind: int) -> Any:
    """All scores moved by at most the sensitivity, which is 1 in all cases."""
    return [score + (1, 0, -1)[(i * (1 + kind // 3) + kind) % 3] for i, score in enumerate(given)]


# -- one choice of all of these -------------------------------------------------------------------


@dataclass(kw_only=True)
class World:
    """What a case is handed: its own rows, or with `odd` their neighbors of that kind."""

    source: str = "arrow"
    relation: str = "replace"
    form: str = "as they are"
    paid: bool = False
    """Whether a ledger pays."""
    read: bool = False
    """Whether a share of ε tells how the rows were read."""
    odd: int | None = None
    place: int = 0
    last: bool = False
    """Whether rows come and go at the end, so that all others stay where they were."""
    handed: str = "rows"
    """What a case hands over: "rows", "scores", a "value" for a channel, or "nothing"."""
    changed: int = 0
    """How often something that was handed over was changed."""
    opened: bool = False
    """Whether a data set was opened."""
    accounts: list[Any] = field(default_factory=list)

    # -- data sets --------------------------------------------------------------------------------

    def open(self, given: dict[str, Any], folder: Path) -> Any:
        """Open the rows of the case, or neighbors of them."""
        self.opened = True
        own = {"unit", "neighbors"} & given.keys()
        options = {**({} if own else RELATIONS[self.relation]), **given}
        build, cells = SOURCES[self.source]
        table = list(zip(*rows_of().values(), strict=True))
        if self.odd is not None:
            self.changed += 1
            table = self._neighbor(table, options, cells)
        if self.paid:
            who = {name: options[name] for name in ("unit", "neighbors") if name in options}
            ledger = zd.Ledger(folder / "spent.db", budget=100, data="people", **who)
            self.accounts.append(ledger)
            options |= {"ledger": ledger, "name": "people"}
        return zd.open(build(table, folder), **options)

    def _odd(self, extra: int, cells: Sequence[Any] | None) -> Row:
        kind, place = (self.odd or 0), self.place + extra
        return _typed(kind, place) if cells is None else _cells(kind, place, cells)

    def _neighbor(
        self, table: list[Row], options: dict[str, Any], cells: Sequence[Any] | None
    ) -> list[Row]:
        place = len(table) - 1 if self.last else self.place % len(table)
        added = options.get("neighbors") == "add-remove"
        if "unit" in options:
            return self._other_unit(table, cells, added=added)
        line = (LINES[self.place % len(LINES)],)
        whole = self.source == "csv" and self.odd == 0
        row = line if whole else (table[place][0], *self._odd(0, cells))
        if not added:
            return [*table[:place], row, *table[place + 1 :]]
        if self.last:
            return [*table, row] if self.place % 3 else table[:-1]
        return [*table[:place], row, *table[place:]] if self.place % 3 else _without(table, place)

    def _other_unit(
        self, table: list[Row], cells: Sequence[Any] | None, *, added: bool
    ) -> list[Row]:
        who = self.place % 60
        others = [row for row in table if row[0] != who]
        many = 1 + self.place // 60 % 4
        if added and self.place % 3:
            others, who = table, WHO
        elif added:
            return [row for row in table if row[0] != 59] if self.last else others
        new = [(who, *self._odd(extra, cells)) for extra in range(many)]
        start = len(others) if self.last else min(2 * who, len(others))
        if not added and self.place % 5 == 0:
            new = [(WHO, *row[1:]) for row in new]
        return [*others[:start], *new, *others[start:]]

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of a case that opens its own source."""
        self.opened = True
        table = list(zip(*rows_of().values(), strict=True))
        if self.odd is not None:
            self.changed += 1
            place = self.place % len(table)
            odd = _typed(self.odd, self.place)
            lines = [_one_line(cell) for cell in odd]  # it may be written as one
            table[place] = (table[place][0], *lines)
        return dict(zip(NAMES, map(list, zip(*table, strict=True)), strict=True))

    # -- arguments --------------------------------------------------------------------------------

    def handing(self, called: Callable[..., Any]) -> Callable[..., Any]:
        """Return what a case calls, such that it is handed the rows of this world."""

        reads = self.read and "diagnostics" in signature(called).parameters

        @wraps(called, updated=())
        def asked(*args: Any, **kwargs: Any) -> Any:
            if "scores" in kwargs:
                (kwargs["scores"],) = self.given((kwargs["scores"],), handed="scores")
            options = {"diagnostics": "1/10", **kwargs} if reads else kwargs
            found = called(*self.given(args), **options)
            for name in ("fit", "fit_transform"):
                if hasattr(found, "get_params") and hasattr(found, name):
                    setattr(found, name, self._fitting(getattr(found, name)))
            return found

        return asked

    def _fitting(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: fit(*self.given(args))

    def given(self, args: tuple[Any, ...], handed: str | None = None) -> tuple[Any, ...]:
        kind = handed or self.handed
        if kind == "nothing":
            return args
        if kind == "value":
            return tuple(self._value(each) if i == 0 else each for i, each in enumerate(args))
        if kind == "scores":
            return tuple(self._scored(each) if i == 0 else each for i, each in enumerate(args))
        return tuple(self._rows(each) for each in args)

    def _value(self, given: Any) -> Any:
        if self.odd is None:
            return given
        self.changed += 1
        return _values(given, self.odd)

    def _scored(self, given: Any) -> Any:
        if self.odd is None or not isinstance(given, list):
            return given
        self.changed += 1
        return _scores(given, self.odd)

    def _rows(self, given: Any) -> Any:
        if not isinstance(given, (np.ndarray, list, range, pd.DataFrame)) or len(given) < 100:
            return given
        formed = _formed(given, self.form)
        if self.odd is None:
            return formed
        self.changed += 1
        return _other(formed, self.place, self.odd)


def _one_line(cell: Any) -> Any:
    return cell.replace("\n", " ").replace("\r", " ") if isinstance(cell, str) else cell


def _without(table: list[Row], place: int) -> list[Row]:
    return [*table[:place], *table[place + 1 :]]


@contextmanager
def inhabited(world: World) -> Iterator[Path]:
    """Let cases open the rows of a world, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        place = Path(folder)
        patches.enter_context(patch.object(rows, "opened", lambda given: world.open(given, place)))
        patches.enter_context(patch.object(rows, "rows_of", world.columns))
        purify = zd.purification.Plan.purify
        patches.enter_context(
            patch.object(
                zd.purification.Plan,
                "purify",
                lambda plan, value, **o: purify(plan, *world.given((value,), "value"), **o),
            )
        )
        try:
            yield place
        finally:
            if world.accounts:
                close_all()  # one whose files are gone would stay open for ever
