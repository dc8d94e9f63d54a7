"""Which columns and rows are asked for: declared columns, and a public condition on one row.

It is parsed once, from its text, before any row is read; nothing of it runs as Python. As in SQL a
comparison with a missing cell is neither true nor false, and a row is kept only where it is true.
A column whose name is no identifier, such as "0" of an array, stands between backticks, as in
pandas: ```0` >= 18 and `home town` == "oslo"``.
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

from zerodelta.data.arrays import Beyond, readings_of
from zerodelta.data.arrow_cells import Distinct, stored_integers
from zerodelta.data.columns import as_objects
from zerodelta.data.declare import Date
from zerodelta.data.kinds import Boolean, Bounds, Category, Kind, Number, Text
from zerodelta.data.pieces import Keeping, Keys
from zerodelta.data.readers import Batch, Part, Reader
from zerodelta.data.rows import UNIT
from zerodelta.data.rowwise import Block, OwnColumn
from zerodelta.data.source import Account
from zerodelta.data.units import Bounding
from zerodelta.errors import ParameterError
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- What `zd.open` was told of a source: kinds of columns, whose rows count, who is protected ----
# All selections of columns and rows of one data set share it, and everything here is public.

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
class OpenedDataset:
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


_Bits: TypeAlias = npt.NDArray[np.bool_]
_Columns: TypeAlias = Mapping[str, npt.NDArray[np.float64]]
_Truth: TypeAlias = tuple[_Bits, _Bits]
"""Where it is certainly true, and where it is certainly false; a missing cell is neither."""
_Test: TypeAlias = Callable[[_Columns], _Truth]

_LONGEST = 10_000
_QUOTED = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|`([^`]*)`""")
"""A text, or a name between backticks."""
_ORDERS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_MIRRORED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


@final
@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition over declared columns; `columns` are those it names."""

    text: str
    columns: tuple[str, ...]
    _test: _Test = field(repr=False, compare=False)

    @staticmethod
    def of(text: str, kinds: Mapping[str, Kind]) -> Predicate:
        """Parse a condition, refusing all but columns, values, comparisons, and, or, not, in.

        >>> from zerodelta.data.declare import number
        >>> condition = Predicate.of("18 <= age < 65", {"age": number(0, 120)})
        >>> condition({"age": np.array([17.0, 18.0, np.nan, 65.0])}).tolist()
        [False, True, False, False]
        """
        if type(text) is not str or len(text) > _LONGEST:
            raise _refused(text if type(text) is str else type(text))
        plain, aliases = _identifiers(text)
        parser = _Parser(kinds, text, aliases)
        if text in kinds:  # a boolean column of any name
            return Predicate(text, (text,), parser.condition(ast.Name(id=text)))
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _refused(text) from None
        test = parser.condition(tree)
        return Predicate(text, tuple(dict.fromkeys(parser.named)), test)

    def __call__(self, columns: _Columns) -> _Bits:
        """Return which rows satisfy it, from the read columns that it names."""
        with np.errstate(all="ignore"):
            return self._test(columns)[0]


@final
class _Parser:
    """Turns a syntax tree into tests on whole columns."""

    def __init__(self, kinds: Mapping[str, Kind], text: str, aliases: Mapping[str, str]) -> None:
        self._kinds, self._text, self._aliases = kinds, text, aliases
        self.named: list[str] = []

    def condition(self, node: ast.expr) -> _Test:
        if isinstance(node, ast.BoolOp):
            every = isinstance(node.op, ast.And)
            tests = [self.condition(part) for part in node.values]
            return lambda columns: _together([test(columns) for test in tests], every=every)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return lambda columns: inner(columns)[::-1]
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Name):  # a boolean column
            name = self._column(node)
            if not isinstance(self._kinds[name], Boolean):
                raise self._error(f"a condition: {name!r} is no boolean column")
            return lambda columns: (columns[name] == 1, columns[name] == 0)
        raise self._error()

    def _comparison(self, node: ast.Compare) -> _Test:
        terms = [node.left, *node.comparators]
        pairs = list(zip(terms, node.ops, terms[1:], strict=False))
        tests = [self._pair(left, operator, right) for left, operator, right in pairs]
        return lambda columns: _together([test(columns) for test in tests], every=True)

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> _Test:
        kind = type(operator)
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self._membership(left, right, inside=isinstance(operator, ast.In))
        if not isinstance(left, ast.Name):
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        if not isinstance(left, ast.Name):
            odd = next((name for name in self._kinds if not name.isidentifier()), None)
            told = "" if odd is None else f" (a name like {odd!r} between backticks: `{odd}`)"
            raise self._error(f"a column in every comparison{told}")
        name, compare = self._column(left), _ORDERS.get(kind)
        if compare is None:
            raise self._error()
        if isinstance(right, ast.Name):
            return self._columns(name, self._column(right), compare)
        if kind not in (ast.Eq, ast.NotEq) and not isinstance(self._kinds[name], (Number, Date)):
            raise self._error(f"== or in: {name!r} has no order")
        value = self._value(name, right)
        return lambda columns: _compared(columns[name], value, compare)

    def _membership(self, left: ast.expr, right: ast.expr, *, inside: bool) -> _Test:
        if not isinstance(left, ast.Name) or not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            raise self._error('a column, "in" and a list, such as city in ("oslo", "rome")')
        name = self._column(left)
        values = [self._value(name, item) for item in right.elts]
        return lambda columns: _among(columns[name], values, inside=inside)

    def _columns(self, name: str, other: str, compare: Callable[[Any, Any], Any]) -> _Test:
        if not all(isinstance(self._kinds[each], Number) for each in (name, other)):
            raise self._error("a value: only two number columns are compared with each other")
        return lambda columns: _compared(columns[name], columns[other], compare)

    def _column(self, node: ast.Name) -> str:
        name = self._aliases.get(node.id, node.id)
        if name not in self._kinds:
            known = ", ".join(list(self._kinds)[:10])
            raise self._error(f"declared columns; {name!r} is none of {known}")
        self.named.append(name)
        return name

    def _value(self, name: str, node: ast.expr) -> float:
        """Return a constant as its column reads it; one that no cell can be is a mistake."""
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


def _identifiers(text: str) -> tuple[str, dict[str, str]]:
    """Return the text with an identifier for each name between backticks, and which is whose."""
    prefix = "column"
    while prefix in text:
        prefix += "_"
    aliases: dict[str, str] = {}

    def replaced(found: re.Match[str]) -> str:
        if found[1] is not None:  # a text stays as it is
            return found[1]
        alias = f"{prefix}{len(aliases)}"
        aliases[alias] = found[2]
        return f" {alias} "

    return _QUOTED.sub(replaced, text), aliases


def _compared(cells: Any, value: Any, compare: Callable[[Any, Any], Any]) -> _Truth:
    present = ~(np.isnan(cells) | np.isnan(value))
    true = compare(cells, value) & present
    return true, present & ~true


def _among(cells: Any, values: list[float], *, inside: bool) -> _Truth:
    present = ~np.isnan(cells)
    found = np.isin(cells, values) & present
    return (found, present & ~found) if inside else (present & ~found, found)


def _together(truths: list[_Truth], *, every: bool) -> _Truth:
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


# -- Some columns of a data set and a condition on its rows: what a batch of cells is read to -----
# Nothing here reads a source. Every cell is read by itself, so this may run on a thread or on a
# worker of a cluster.

PRESENT: Any = OwnColumn.PRESENT
"""What stands for the name of a column that is 1 in every row that counts."""


@value
class ChosenColumns:
    """Which columns, in which order, of which rows; `PRESENT` and `UNIT` are no declared ones."""

    base: OpenedDataset
    names: tuple[str, ...]
    where: tuple[Predicate, ...] = ()
    diagnosed_columns: Mapping[str, Bounds | None] | None = None
    """The column `PRESENT` says how each row was read, these columns with these bounds."""
    beyond: Beyond | None = None
    """Which rows of them are clipped as a whole."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns whose cells `read` needs: chosen, diagnosed, and those of conditions."""
        used = [*self.names, *(name for each in self.where for name in each.columns)]
        used += self.diagnosed_columns or ()
        named = tuple(dict.fromkeys(name for name in used if name not in (PRESENT, UNIT)))
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
            if name in (PRESENT, UNIT):  # the latter is known where rows are bounded
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
        if self.diagnosed_columns is None:
            return 1.0
        columns = [self.base.kinds[name].read(cells[name]) for name in self.diagnosed_columns]
        return readings_of(columns, tuple(self.diagnosed_columns.values()), self.beyond)


def _read(kind: Kind, cells: Any) -> npt.NDArray[np.float64]:
    """Return the numbers or codes of a column; what is missing as declared. A text is 1."""
    values: npt.NDArray[np.float64] = kind.read(cells)
    if isinstance(kind, Text):
        texts: Any = values
        return np.array([np.nan if text is None else 1.0 for text in texts])
    return kind.filled(values) if isinstance(kind, Number) else values
