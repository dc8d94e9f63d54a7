"""Where cells come from: files, frames, databases; what a cell means is decided elsewhere.

A reader hands out the cells of a column as they are stored. What they are read to (a number, a
category, a date) is declared, and a `kind` reads each by itself. Whatever an engine raises while it
reads rows may depend on one of them, so it becomes one fixed message that chains nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from zerodelta.data.interrupts import quietly
from zerodelta.errors import ParameterError

Batch: TypeAlias = tuple[Any, ...]
"""Columns in the order asked, all of one length: NumPy arrays of cells, or Arrow arrays."""

Part: TypeAlias = Callable[[], Iterator[Batch]]
"""A piece of the rows; threads may read several at the same time, each as often as it likes."""

FOREIGN_CODE = "the query treats base rows one by one, is deterministic and does not fail"
"""The premise of sources that run code we did not write: SQL, lazy frames, clusters."""

T = TypeVar("T")

_ENDED: Any = object()
_FAILED: Any = object()


class Reader(ABC):
    """Cells of named columns, batch by batch; every row is in exactly one batch.

    Which rows are together in a batch or a part changes no cell.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The physical names of all columns, which are public; one may be there twice."""

    @property
    @abstractmethod
    def premise(self) -> str | None:
        """None for a plain scan by this library; else what the caller asserts of other code."""

    @property
    @abstractmethod
    def bare(self) -> bool:
        """Whether the caller prepared the columns, so that their types are assumed to be public."""

    @property
    @abstractmethod
    def row(self) -> str:
        """What one row is, in the words of a certificate: "one line of the file"."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The source in one line, without any of its contents."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows; asked only where it is public."""

    @abstractmethod
    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the rows of some columns in independent pieces, at most `batch` rows at a time.

        A column in `numbers` is wanted as numbers only: a reader of texts may hand it out as
        floats, read by the rules of `cells.number`, NaN for what is missing.
        """


class QueryReader(Reader):
    """The result of a query, which is code that is not ours; what is protected is a row of it."""

    __slots__ = ("_names",)

    _names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the result."""
        return self._names

    @property
    def premise(self) -> str:
        """What the caller asserts of the query."""
        return FOREIGN_CODE

    @property
    def bare(self) -> bool:
        """False: types and preparation are the query's, which the premise covers."""
        return False

    @property
    def row(self) -> str:
        """What is protected."""
        return "one row of the result"


def places(names: Sequence[str], columns: Iterable[str]) -> list[int]:
    """Return where each wanted column stands among the names; it must be there once.

    >>> places(("age", "income"), ("income",))
    [1]
    """
    standing: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        standing.setdefault(name, []).append(place)
    found = []
    for column in columns:
        here = standing.get(column, [])
        if len(here) != 1:
            # no name of the source: where a header is missing, its "names" are a person's cells
            raise ParameterError(
                f"column {column!r}",
                expected="one column of that name in the source",
                remedy="rename or drop the others" if here else "check the name in the source",
            )
        found += here
    return found


def attempt(function: Callable[[], T]) -> T:
    """Return what an engine does with rows: without warnings, and with one fixed message."""
    found: Any = quietly(function, otherwise=_FAILED)
    if found is not _FAILED:
        result: T = found
        return result
    raise ParameterError(
        "source",
        expected="rows that can be read to the end",
        remedy="check the file or the query with its own tools",
    )


def guarded(batches: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield what an engine yields, each batch by `attempt`."""
    iterator = attempt(batches)
    try:
        while (found := attempt(lambda: next(iterator, _ENDED))) is not _ENDED:
            yield found
    finally:
        close = getattr(iterator, "close", None)  # an open result may block its connection
        if close is not None:
            attempt(close)
