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


def not_refused(calls: dict[str, Callable[..., Any]], *given: Unreadable) -> list[str]:
    """Return which calls a ledger does not refuse before they read what is shut.

    One child tries all of them; each has one of its own only if that child ends otherwise.
    """

    def all_are_refused() -> None:
        for call in calls.values():
            try:
                call()
            except zd.errors.BudgetError:
                continue
            return
        raise zd.errors.BudgetError("all of them")

    if ended(all_are_refused, *given) == REFUSED:
        return []
    return [name for name, call in calls.items() if ended(call, *given) != REFUSED]


def _memory(made: Any) -> list[tuple[int, int]]:
    """Return where the cells of a container are: nowhere, if they are objects of a list."""
    if isinstance(made, np.ma.MaskedArray):
        return _memory(made.data) + _memory(made.mask)
    if isinstance(made, np.ndarray):
        return [(made.__array_interface__["data"][0], made.nbytes)]
    if isinstance(made, pl.Series):
        return _memory(made.to_physical().to_numpy(allow_copy=False))
    if isinstance(made, pd.Series) and isinstance(made.array, pd.arrays.ArrowExtensionArray):
        return _memory(made.array.__arrow_array__())
    if isinstance(made, (pa.ChunkedArray, pa.Array)):
        chunks = getattr(made, "chunks", [made])
        parts = [getattr(chunk, "indices", chunk) for chunk in chunks]  # those of a dictionary
        buffers = [buffer for part in parts for buffer in part.buffers()[1:] if buffer is not None]
        return [(buffer.address, buffer.size) for buffer in buffers]
    if isinstance(made, pa.Table):
        return [each for column in made.columns for each in _memory(column)]
    if isinstance(made, (pd.DataFrame, pl.DataFrame)):
        return [each for name in made.columns for each in _memory(made[name])]
    if isinstance(made, pd.Series):
        return _memory(made.to_numpy(copy=False))
    return _memory(made[0].base) if type(made[0]) is np.ndarray else []


def _on_pages(array: Any) -> Any:
    """Return a copy on pages of its own: if it fills them, its first row is shut, and its last."""
    pages = mmap.mmap(-1, -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE)
    copy = np.frombuffer(pages, dtype=array.dtype, count=array.size).reshape(array.shape)
    copy[...] = array
    return copy


def _traps(rows: Any) -> Any:
    return Trap() if rows.ndim == 1 else [Trap()] * rows.shape[1]


def _ragged(rows: Any) -> Any:
    trap = Trap()
    first: list[Any] = [trap] if rows.ndim == 1 else [[trap] * rows.shape[1]]
    return [*first, *([trap, [trap] * 9, ()] * len(rows))[: len(rows) - 1]]


def _pandas(rows: Any, **options: Any) -> Any:
    frame = pd.DataFrame(rows.reshape(len(rows), -1), columns=_names(rows), copy=False, **options)
    return frame if rows.ndim == 2 else frame["0"]


def _held(build: Callable[[dict[str, Any]], Any], rows: Any) -> Any:
    """Return a frame of the columns, or its only column."""
    made = build(dict(zip(_names(rows), rows.reshape(len(rows), -1).T, strict=True)))
    return made if rows.ndim == 2 else made["0"]


def _names(rows: Any) -> list[str]:
    return [str(i) for i in range(1 if rows.ndim == 1 else rows.shape[1])]


def _encoded(columns: dict[str, Any]) -> Any:
    return pa.table({name: pa.array(each).dictionary_encode() for name, each in columns.items()})


_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": _on_pages,
    "object array": lambda rows: rows.astype(object),
    "masked": lambda rows: np.ma.MaskedArray(rows.copy(), mask=np.zeros(rows.shape, np.bool_)),
    "list": lambda rows: [_traps(rows)] * len(rows),
    "tuple": lambda rows: (_traps(rows),) * len(rows),
    "ragged": _ragged,
    "rows of arrays": lambda rows: list(_on_pages(rows)),
    "pandas": lambda rows: _pandas(_on_pages(rows.T).T),
    "pandas objects": lambda rows: _pandas(rows.astype(object, order="F"), dtype=object),
    "pandas arrow": lambda rows: _held(
        lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype), rows
    ),
    "polars frame": lambda rows: _held(pl.DataFrame, rows),
    "arrow table": lambda rows: _held(pa.table, rows),
    "arrow dictionary": lambda rows: _held(_encoded, rows),
}


def _made(build: Callable[[Any], Any]) -> Callable[[Any], Unreadable]:
    def made(rows: Any) -> Unreadable:
        container = build(rows)
        return Unreadable(container, _memory(container))

    return made


SERIES = {name: _made(build) for name, build in _CONTAINERS.items()}
"""What makes an unreadable container of an array of rows, by its name."""
