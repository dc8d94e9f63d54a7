"""Define a selection of a data set: declared columns, and public conditions on single rows.

A condition is parsed once, from its text, before any row is read; nothing of it runs as Python. As
in SQL a comparison with a missing cell is neither true nor false, and a row is kept only where the
condition is true. A column whose name is not an identifier, such as "0" of an array, stands between
backticks, as in pandas: ```0` >= 18 and `home town` == "oslo"``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import TooLong, readings_of
from zerodelta.data.arrow_cells import Distinct, stored_integers
from zerodelta.data.columns import as_objects
from zerodelta.data.declare import Date
from zerodelta.data.kinds import Boolean, Bounds, Category, Kind, Number, Text
from zerodelta.data.pieces import Keeping, StoredColumn
from zerodelta.data.readers import Batch, Part, Reader
from zerodelta.data.rows import UNIT
from zerodelta.data.rowwise import Block, ExtraColumn
from zerodelta.data.source import Account
from zerodelta.data.units import Bounding
from zerodelta.errors import ParameterError
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- The declarations of `zd.open`: reader, kinds of columns, protected unit, account -------------
# All selections of columns and rows of one data set share them, and all of them are public.

_BATCH = 1 << 16

DEFAULT_MEMORY = 1 << 30
"""The default number of bytes of a copy of the rows that are kept in memory."""

_KEEPING = Keeping(memory=DEFAULT_MEMORY)


@value
class Unit:
    """The unit whose rows are protected together: its id column, and how many of its rows count."""

    column: str
    max_rows: int
    number: int | None = None
    """The declared number of units; None counts them."""


@value
class OpenedDataset:
    """The declarations that all selections of one data set share; all of them are public."""

    reader: Reader
    kinds: Mapping[str, Kind]
    unit: Unit | None = None
    neighbors: Neighbors = Neighbors.REPLACE
    name: str | None = None
    expected_rows: int | None = None
    keeping: Keeping = _KEEPING
    account: Account | None = None
    """The account that pays for releases from these rows."""
    counted: list[int] = field(default_factory=list, repr=False, compare=False)
    """The result of `count` once it was computed."""

    def count(self) -> int:
        """Return the number of rows or, with units, `max_rows` times the number of units.

        It is counted at the first call, and called only where it is public.
        """
        if not self.counted:
            self.counted.append(self._count())
        return self.counted[0]

    def _count(self) -> int:
        """Count the rows or, with units, multiply their number by `max_rows`."""
        if self.unit is None:
            return self.reader.count()
        number = self.unit.number
        if number is None and self.reader.cluster is not None:
            number = self.reader.cluster.count_units(self.unit.column)
        if number is None:
            ids = self._bounding(max_rows=1)
            for place, part in enumerate(self.parts((self.unit.column,))):
                for (cells,) in part():
                    ids.add(place, cells, [])
            number = ids.finish().units
        return number * self.unit.max_rows

    def parts(
        self, names: tuple[str, ...], *, as_cells: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the cells of some columns, part by part.

        Columns in `as_cells` come as they are stored, not as floats.
        """
        numbers = frozenset(n for n in names if isinstance(self.kinds.get(n), Number))
        return self.reader.parts(names, batch=_BATCH, numbers=numbers - as_cells)

    @property
    def everything(self) -> tuple[str, ...]:
        """The names of all declared columns and of the unit's column."""
        unit = () if self.unit is None else (self.unit.column,)
        return tuple(dict.fromkeys([*self.kinds, *unit]))

    def read_all(self, *, as_cells: frozenset[str]) -> list[list[Batch]]:
        """Return the cells of `everything`, part by part, in memory."""
        return [list(part()) for part in self.parts(self.everything, as_cells=as_cells)]

    def bounding(
        self, unit: Unit, parts: Sequence[Part]
    ) -> tuple[Bounding, Iterator[tuple[int, Mapping[str, Any]]]]:
        """Return an object that chooses the rows of units that count, and the batches it reads.

        Call its `finish` after all batches were taken. A batch is the number of its part and the
        cells of `everything`.
        """
        rows = self._bounding(max_rows=unit.max_rows)

        def batches() -> Iterator[tuple[int, Mapping[str, Any]]]:
            """Yield the batches of all parts, after noting their rows by unit in `rows`."""
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


_Mask: TypeAlias = npt.NDArray[np.bool_]
_Columns: TypeAlias = Mapping[str, npt.NDArray[np.float64]]
_TruthMasks: TypeAlias = tuple[_Mask, _Mask]
"""Rows in which a condition is true, and rows in which it is false; with a missing cell neither."""
_Test: TypeAlias = Callable[[_Columns], _TruthMasks]

_LONGEST_CONDITION = 10_000
_TEXT_OR_BACKTICKS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|`([^`]*)`""")
"""Matches a quoted text (group 1), or a name between backticks (group 2)."""
_ORDERS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_SWAPPED_ORDERS = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


@final
@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on declared columns, parsed from its text; `columns` are those that it names."""

    text: str
    columns: tuple[str, ...]
    _test: _Test = field(repr=False, compare=False)

    @staticmethod
    def of(text: str, kinds: Mapping[str, Kind]) -> Predicate:
        """Parse a condition; only columns, values, comparisons, and, or, not, in are accepted.

        >>> from zerodelta.data.declare import number
        >>> condition = Predicate.of("18 <= age < 65", {"age": number(0, 120)})
        >>> condition({"age": np.array([17.0, 18.0, np.nan, 65.0])}).tolist()
        [False, True, False, False]
        """
        if type(text) is not str or len(text) > _LONGEST_CONDITION:
            raise _refused(text if type(text) is str else type(text))
        plain, aliases = _with_identifiers(text)
        parser = _Parser(kinds, text, aliases)
        if text in kinds:  # a boolean column of any name
            return Predicate(text, (text,), parser.condition(ast.Name(id=text)))
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _refused(text) from None
        test = parser.condition(tree)
        return Predicate(text, tuple(dict.fromkeys(parser.named)), test)

    def __call__(self, columns: _Columns) -> _Mask:
        """Return the rows for which the condition is true, from the columns that it names."""
        with np.errstate(all="ignore"):
            return self._test(columns)[0]


@final
class _Parser:
    """Turns a syntax tree into tests of columns."""

    def __init__(self, kinds: Mapping[str, Kind], text: str, aliases: Mapping[str, str]) -> None:
        self._kinds, self._text, self._aliases = kinds, text, aliases
        self.named: list[str] = []

    def condition(self, node: ast.expr) -> _Test:
        """Return the test of a boolean expression: and, or, not, comparison, boolean column."""
        if isinstance(node, ast.BoolOp):
            every = isinstance(node.op, ast.And)
            tests = [self.condition(part) for part in node.values]
            return lambda columns: _combined([test(columns) for test in tests], every=every)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return lambda columns: inner(columns)[::-1]
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Name):  # a boolean column
            name = self._column(node)
            if not isinstance(self._kinds[name], Boolean):
                raise self._error(f"a comparison with {name!r}, which is not a boolean column")
            return lambda columns: (columns[name] == 1, columns[name] == 0)
        raise self._error()

    def _comparison(self, node: ast.Compare) -> _Test:
        """Return the test of a chain of comparisons, which must all hold."""
        terms = [node.left, *node.comparators]
        pairs = list(zip(terms, node.ops, terms[1:], strict=False))
        tests = [self._pair(left, operator, right) for left, operator, right in pairs]
        return lambda columns: _combined([test(columns) for test in tests], every=True)

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> _Test:
        """Return the test of one comparison, of a column with a value or another column."""
        kind = type(operator)
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self._membership(left, right, inside=isinstance(operator, ast.In))
        if not isinstance(left, ast.Name):
            left, right, kind = right, left, _SWAPPED_ORDERS.get(kind, kind)
        if not isinstance(left, ast.Name):
            odd = next((name for name in self._kinds if not name.isidentifier()), None)
            hint = "" if odd is None else f" (a name like {odd!r} between backticks: `{odd}`)"
            raise self._error(f"a column in every comparison{hint}")
        name, compare = self._column(left), _ORDERS.get(kind)
        if compare is None:
            raise self._error()
        if isinstance(right, ast.Name):
            return self._column_comparison(name, self._column(right), compare)
        if kind not in (ast.Eq, ast.NotEq) and not isinstance(self._kinds[name], (Number, Date)):
            raise self._error(f"== or in, since the values of {name!r} have no order")
        value = self._value(name, right)
        return lambda columns: _compared(columns[name], value, compare)

    def _membership(self, left: ast.expr, right: ast.expr, *, inside: bool) -> _Test:
        """Return the test of a column with "in" or "not in" and a list of values."""
        if not isinstance(left, ast.Name) or not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            raise self._error('a column, "in" and a list, such as city in ("oslo", "rome")')
        name = self._column(left)
        values = [self._value(name, item) for item in right.elts]
        return lambda columns: _in_values(columns[name], values, inside=inside)

    def _column_comparison(
        self, name: str, other: str, compare: Callable[[Any, Any], Any]
    ) -> _Test:
        if not all(isinstance(self._kinds[column], Number) for column in (name, other)):
            raise self._error("a value, since only number columns are compared with each other")
        return lambda columns: _compared(columns[name], columns[other], compare)

    def _column(self, node: ast.Name) -> str:
        """Return the name of a declared column, and note that the condition uses it."""
        name = self._aliases.get(node.id, node.id)
        if name not in self._kinds:
            known = ", ".join(list(self._kinds)[:10])
            raise self._error(f"declared columns ({known}), not {name!r}")
        self.named.append(name)
        return name

    def _value(self, name: str, node: ast.expr) -> float:
        """Return a constant as its column reads it; refuse one that no cell can have."""
        negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        constant = node.operand if isinstance(node, ast.UnaryOp) and negative else node
        if not isinstance(constant, ast.Constant):
            raise self._error("a number or a text to compare with")
        value: Any = constant.value
        if negative and type(value) not in (int, float):
            raise self._error("a number after the minus sign")
        kind = self._kinds[name]
        read = kind.read(as_objects([-value if negative else value]))[0]
        unlisted = isinstance(kind, Category) and read >= len(kind.options)
        if not isinstance(read, float) or read != read or (unlisted and value != "other"):
            raise self._error(f"a value that {name!r} can have")
        return float(read)

    def _error(self, expected: str | None = None) -> ParameterError:
        return _refused(self._text, expected)


def _with_identifiers(text: str) -> tuple[str, dict[str, str]]:
    """Return the text with an identifier for each name in backticks, and these names."""
    prefix = "column"
    while prefix in text:
        prefix += "_"
    aliases: dict[str, str] = {}

    def replaced(match: re.Match[str]) -> str:
        """Return a fresh alias for a matched column name; quoted texts stay."""
        if match[1] is not None:  # a quoted text stays as it is
            return match[1]
        alias = f"{prefix}{len(aliases)}"
        aliases[alias] = match[2]
        return f" {alias} "

    return _TEXT_OR_BACKTICKS.sub(replaced, text), aliases


def _compared(cells: Any, value: Any, compare: Callable[[Any, Any], Any]) -> _TruthMasks:
    """Return the masks of a comparison of cells with a value, or with other cells."""
    present = ~(np.isnan(cells) | np.isnan(value))
    true = compare(cells, value) & present
    return true, present & ~true


def _in_values(cells: Any, values: list[float], *, inside: bool) -> _TruthMasks:
    """Return the masks of "in" (`inside`) or "not in" a list of values."""
    present = ~np.isnan(cells)
    true = np.isin(cells, values) & present
    return (true, present & ~true) if inside else (present & ~true, true)


def _combined(truths: list[_TruthMasks], *, every: bool) -> _TruthMasks:
    """Return the masks of conditions joined by and (`every`), or by or (three-valued logic)."""
    true, false = zip(*truths, strict=True)
    if every:
        return np.logical_and.reduce(true), np.logical_or.reduce(false)
    return np.logical_or.reduce(true), np.logical_and.reduce(false)


def _refused(text: Any, expected: str | None = None) -> ParameterError:
    return ParameterError(
        "where",
        text,
        expected=expected or "comparisons of declared columns with values, and, or, not, in",
        remedy='write, say, \'age >= 18 and city in ("oslo", "rome")\'',
    )


# -- A choice of columns and conditions, and how a batch of cells is read to floats ---------------
# Nothing here reads a source. Every cell is read by itself, so this may run in a thread or on a
# worker of a cluster.

PRESENT: Any = ExtraColumn.PRESENT
"""The name of the extra column that is 1 in every row that counts, or says how it was read."""


@value
class ChosenColumns:
    """Columns in an order (`PRESENT` and `UNIT` are extra columns), and conditions on rows."""

    base: OpenedDataset
    names: tuple[str, ...]
    where: tuple[Predicate, ...] = ()
    diagnosed_columns: Mapping[str, Bounds | None] | None = None
    """With these columns and bounds, the column `PRESENT` says how each row of them was read."""
    too_long: TooLong | None = None
    """Tells which rows of these columns are clipped as a whole, for a diagnosis."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns whose cells `read` needs: chosen, diagnosed, or named by a condition."""
        used = [*self.names, *(name for condition in self.where for name in condition.columns)]
        used += self.diagnosed_columns or ()
        named = tuple(dict.fromkeys(name for name in used if name not in (PRESENT, UNIT)))
        # without any, rows are only counted: every column has as many
        return named or tuple(self.base.kinds)[:1]

    def read(
        self, cells: Mapping[str, Any], distinct: Mapping[str, Distinct] | None = None
    ) -> Block:
        """Return the chosen columns of one batch, from the cells of the `needed` columns.

        `distinct` keeps how the texts of earlier batches were read.
        """
        kinds = self.base.kinds
        rows = len(next(iter(cells.values())))
        block = np.empty((len(self.names), rows))  # each column is contiguous
        for i, name in enumerate(self.names):
            if name in (PRESENT, UNIT):  # the numbers of units are filled in by the caller
                block[i] = self._presence(cells)
            elif distinct is None or not distinct[name].read(
                cells[name], partial(_read, kinds[name]), out=block[i]
            ):
                block[i] = _read(kinds[name], cells[name])
        if self.where:
            chosen = dict(zip(self.names, block, strict=True))
            others = {n: _read(kinds[n], cells[n]) for n in cells if n not in chosen}
            block[:, ~self._holds({**chosen, **others})] = np.nan
        rows_of_block: Block = block.T
        return rows_of_block

    def read_plainly(self, column: Any, distinct: Distinct) -> StoredColumn | None:
        """Return a single column as it is stored; None where that is not equivalent."""
        kind = self.base.kinds[self.names[0]]
        if isinstance(kind, Number):
            integers = stored_integers(column)
            return None if integers is None else StoredColumn(integers)
        encoded = distinct.places(column, partial(_read, kind))
        return None if encoded is None else StoredColumn(*encoded)

    def holds(self, cells: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Tell for which rows of a batch all conditions hold."""
        used = {name for condition in self.where for name in condition.columns}
        return self._holds({name: _read(self.base.kinds[name], cells[name]) for name in used})

    def _holds(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.bool_]:
        masks = [condition(columns) for condition in self.where]
        kept: npt.NDArray[np.bool_] = np.logical_and.reduce(masks)
        return kept

    def _presence(self, cells: Mapping[str, Any]) -> Any:
        """Return 1 or, for a diagnosis, how each row was read."""
        if self.diagnosed_columns is None:
            return 1.0
        columns = [self.base.kinds[name].read(cells[name]) for name in self.diagnosed_columns]
        return readings_of(columns, tuple(self.diagnosed_columns.values()), self.too_long)


def _read(kind: Kind, cells: Any) -> npt.NDArray[np.float64]:
    """Return the numbers or codes of a column, missing ones as declared; 1 for each text."""
    values: npt.NDArray[np.float64] = kind.read(cells)
    if isinstance(kind, Text):
        texts: Any = values
        return np.array([np.nan if text is None else 1.0 for text in texts])
    return kind.filled(values) if isinstance(kind, Number) else values
