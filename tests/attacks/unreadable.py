"""Rows in containers of every kind, whose cells nobody can read without being noticed."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import zerodelta as zd

PAID, REFUSED, OTHER, TOUCHED = 0, 1, 2, 3
_KILLED = -11

Built = tuple[Any, list[tuple[int, int]]]


class Empty:
    """A ledger in which nothing is left."""

    def check(self, charge: Any) -> NoReturn:
        raise zd.errors.BudgetError("nothing is left")

    def debit(self, charge: Any) -> NoReturn:
        raise zd.errors.BudgetError("nothing is left")

    def covers(self, other: Any) -> bool:
        return self is other


_PARENT = os.getpid()


def _touched(*_: Any) -> NoReturn:
    if os.getpid() == _PARENT:  # a report of a test that failed
        raise RuntimeError("a cell was looked at")
    os._exit(TOUCHED)


class Trap:
    """A cell that ends a child when anything of it is looked at but its type."""

    __getattribute__ = __float__ = __complex__ = __int__ = __index__ = __bool__ = _touched
    __eq__ = __lt__ = __hash__ = __len__ = __iter__ = __getitem__ = __array__ = _touched
    __str__ = __repr__ = _touched


@final
@dataclass(frozen=True, repr=False)
class Unreadable:
    """A container of rows, and the memory of its cells: shut in the child that is asked."""

    rows: Any
    memory: list[tuple[int, int]]


def _closed(memory: list[tuple[int, int]]) -> None:
    """Take the right to read whole pages of memory."""
    page = mmap.PAGESIZE
    for address, size in memory:
        first = -(-address // page) * page
        length = (address + size) // page * page - first
        assert length >= page, "too few rows to shut a page of them"
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(first), length, 0) == 0


def ended(call: Callable[[], Any], *given: Unreadable) -> int:
    """Return how a call ends in a child: `TOUCHED` if it reads what is shut."""
    child = os.fork()
    if child == 0:  # pragma: no cover
        end = OTHER
        faulthandler.disable()
        try:
            for each in given:
                _closed(each.memory)
            call()
            end = PAID
        except zd.errors.BudgetError:
            end = REFUSED
        finally:
            os._exit(end)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return TOUCHED if code == _KILLED else code


def _buffer(array: Any) -> tuple[int, int]:
    return array.__array_interface__["data"][0], array.nbytes


def _polars(series: pl.Series) -> tuple[int, int]:
    return _buffer(series.to_physical().to_numpy(allow_copy=False))


def _arrow(column: Any) -> list[tuple[int, int]]:
    chunks = getattr(column, "chunks", [column])
    buffers = [buffer for chunk in chunks for buffer in chunk.buffers()[1:] if buffer is not None]
    return [(buffer.address, buffer.size) for buffer in buffers]


def _on_pages(array: Any) -> Any:
    """Return a copy on pages of its own: if it fills them, its first row is shut, and its last."""
    pages = mmap.mmap(-1, -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE)
    copy = np.frombuffer(pages, dtype=array.dtype, count=array.size).reshape(array.shape)
    copy[...] = array
    return copy


def _objects(cells: Any) -> Any:
    made = np.empty(cells.shape, dtype=object)
    made[...] = cells
    return made


def _array(rows: Any) -> Built:
    made = _on_pages(rows)
    return made, [_buffer(made)]


def _object_array(rows: Any) -> Built:
    made = _objects(rows)
    return made, [_buffer(made)]


def _masked(rows: Any) -> Built:
    made = np.ma.MaskedArray(np.array(rows), mask=np.zeros(rows.shape, dtype=np.bool_))
    return made, [_buffer(made.data), _buffer(made.mask)]


def _list(rows: Any) -> Built:
    trap = Trap()
    if rows.ndim == 1:
        return [trap] * len(rows), []
    return [[trap] * rows.shape[1]] * len(rows), []


def _tuple(rows: Any) -> Built:
    return tuple(_list(rows)[0]), []


def _ragged(rows: Any) -> Built:
    trap = Trap()
    first: list[Any] = [trap] if rows.ndim == 1 else [[trap] * rows.shape[1]]
    return [*first, *([trap, [trap] * 9, ()] * len(rows))[: len(rows) - 1]], []


def _rows_of_arrays(rows: Any) -> Built:
    made = np.array(rows)
    return list(made), [_buffer(made)] if rows.ndim == 2 else []


def _pandas(rows: Any) -> Built:
    made = _on_pages(rows.T).T
    if rows.ndim == 1:
        return pd.Series(made, copy=False), [_buffer(made)]
    return pd.DataFrame(made, columns=_names(rows), copy=False), [_buffer(made)]


def _pandas_objects(rows: Any) -> Built:
    made = np.asfortranarray(_objects(rows))
    if rows.ndim == 1:
        return pd.Series(made, dtype=object, copy=False), [_buffer(made)]
    frame = pd.DataFrame(made, columns=_names(rows), dtype=object, copy=False)
    return frame, [_buffer(made)]


def _pandas_arrow(rows: Any) -> Built:
    table, memory = _arrow_table(rows if rows.ndim == 2 else rows[:, None])
    columns = {
        name: pd.Series(pd.arrays.ArrowExtensionArray(table[name])) for name in table.column_names
    }
    return columns["0"] if rows.ndim == 1 else pd.DataFrame(columns, copy=False), memory


def _polars_frame(rows: Any) -> Built:
    columns = [pl.Series(name, rows.reshape(len(rows), -1)[:, i]) for i, name in _listed(rows)]
    memory = [_polars(column) for column in columns]
    return columns[0] if rows.ndim == 1 else pl.DataFrame(columns), memory


def _arrow_table(rows: Any) -> Built:
    columns = {name: pa.array(rows.reshape(len(rows), -1)[:, i]) for i, name in _listed(rows)}
    memory = [each for column in columns.values() for each in _arrow(column)]
    return columns["0"] if rows.ndim == 1 else pa.table(columns), memory


def _arrow_dictionary(rows: Any) -> Built:
    columns = {
        name: pa.array(rows.reshape(len(rows), -1)[:, i]).dictionary_encode()
        for i, name in _listed(rows)
    }
    memory = [each for column in columns.values() for each in _arrow(column.indices)]
    return columns["0"] if rows.ndim == 1 else pa.table(columns), memory


def _listed(rows: Any) -> list[tuple[int, str]]:
    return list(enumerate(_names(rows)))


def _names(rows: Any) -> list[str]:
    return [str(i) for i in range(1 if rows.ndim == 1 else rows.shape[1])]


def _made(build: Callable[[Any], Built]) -> Callable[[Any], Unreadable]:
    return lambda rows: Unreadable(*build(rows))


SERIES = {
    name.strip("_").replace("_", " "): _made(build)
    for name, build in {
        each.__name__: each
        for each in (
            *(_array, _object_array, _masked, _list, _tuple, _ragged, _rows_of_arrays),
            *(_pandas, _pandas_objects, _pandas_arrow, _polars_frame, _arrow_table),
            _arrow_dictionary,
        )
    }.items()
}
"""What makes an unreadable container of an array of rows, by its name."""
