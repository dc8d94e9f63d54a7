"""Define sources of rows, and the ticket, certified and paid for, that alone opens them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from fractions import Fraction
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, final

import numpy as np

from zerodelta.data.pieces import Keeping, Piece, copied_blocks, with_progress
from zerodelta.data.rows import Held, Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.sums import IntegerArray
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- Accounts that pay for releases, as a protocol ------------------------------------------------
# `zerodelta.ledger` implements the accounts; the runner (`spine/run.py`) debits them.


@value
class Charge:
    """The cost of one release and the question that it answers; all of it public."""

    epsilon: Fraction
    neighbors: Neighbors
    unit: str | None
    """The protected unit; None if it is a row."""
    task: str
    """The question in a few words."""
    question: str | None
    """SHA-256 of the whole question about a data set; None where it cannot be written down."""
    certificate: str
    """The digest of the certificate."""
    record: str = ""
    """The digest of the question, as in the record of the release."""
    again: bool = False
    """Whether a repeated question may be paid for again."""


@value
class Receipt:
    """The ledger entry of a debit: the ledger's name, the entry's number, hash and time."""

    ledger: str
    """The random name that the ledger got when it was created."""
    entry: int
    hash: str
    time: str

    def to_json(self) -> dict[str, str | int]:
        """Return the fields as a record holds them."""
        return {
            "ledger": self.ledger,
            "entry": self.entry,
            "hash": self.hash,
            "time": self.time,
        }


class Account(Protocol):
    """An account that pays for releases; accounts are compared with ``==``."""

    def check(self, charge: Charge) -> None:
        """Raise the error that `debit` would raise now, if any, without writing an entry."""
        ...  # pragma: no cover

    def debit(self, charge: Charge) -> Receipt:
        """Pay for a release, durably, or raise `BudgetError`."""
        ...  # pragma: no cover

    def _take_back(self, receipt: Receipt, reason: str) -> None:
        """Undo a debit for which no row was read; only the runner, which knows that, calls it."""
        ...  # pragma: no cover

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        """Add an entry with the path at which a release was saved, and its digest."""
        ...  # pragma: no cover

    def covers(self, other: Any) -> bool:
        """Tell whether a debit of this account is a debit of the other account too."""
        ...  # pragma: no cover

    @property
    def line(self) -> str:
        """The remaining budget, in one line for people."""
        ...  # pragma: no cover


# -- Protection: the unit, the neighboring relation and the assumptions of a source's releases ----


@value
class Protection:
    """The protected unit and relation of a source; by default one row of an array or frame."""

    row: str | None = None
    """The meaning of one row, such as "one line of the file"; None leaves it to the question."""
    unit: str | None = None
    """The column that names the protected unit; None if each row is protected by itself."""
    max_rows: int = 1
    """The number of rows of one unit that count at most."""
    neighbors: Neighbors = Neighbors.REPLACE
    bare: bool = True
    """Whether rows came as an array, a list or a frame that the caller may have prepared."""
    premise: str | None = None
    """The assertion about foreign code that yields the rows; None if this library reads them."""
    accounts: tuple[Account, ...] = ()
    """The accounts that pay for a release from these rows."""

    @property
    def words(self) -> str | None:
        """What is protected, as the certificate says it: a row, or a unit and its largest size."""
        if self.unit is None:
            return self.row
        rows = "its one row" if self.max_rows == 1 else f"at most {self.max_rows} of its rows"
        return f"one {self.unit}, {rows}"


# -- The right to read rows: issued in `spine/run.py`, after the certificate ----------------------

T = TypeVar("T")


@final
class Ticket:
    """The right to open sources for one release; only the runner creates one, for a certificate.

    A ticket that is due opens nothing until it is paid for.

    >>> Ticket.check(None)
    Traceback (most recent call last):
        ...
    TypeError: rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)
    """

    __slots__ = (
        *(
            "_diagnosed",
            "_certificate",
            "_due",
            "_lock",
            "_computed",
            "_receipts",
            "_time",
            "_used",
        ),
        "_void",
    )

    def __init__(
        self,
        certificate: Certificate,
        *,
        diagnosed: Any = None,
        due: bool = False,
    ) -> None:
        self._certificate, self._used, self._diagnosed = certificate, False, diagnosed
        self._receipts: tuple[Receipt, ...] = ()
        self._due, self._void, self._lock = due, False, threading.Lock()
        self._time = _now()
        self._computed: dict[int, tuple[Any, Any]] = {}

    @property
    def certificate(self) -> Certificate:
        """The certificate of the release for which rows are read."""
        return self._certificate

    @property
    def diagnosed(self) -> Any:
        """The source of the release's diagnosis, which this ticket opens too; None without one."""
        return self._diagnosed

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts of the debits; empty without a ledger."""
        return self._receipts

    @property
    def time(self) -> str:
        """The time of the debit (UTC), before a row was read."""
        return self._time

    def settle(self, receipts: tuple[Receipt, ...]) -> None:
        """Add the receipts of a ticket that is due: rows may be read from now on."""
        with self._lock:
            if self._due:  # another thread may have settled it already
                self._receipts, self._due = receipts, False
                self._time = receipts[0].time if receipts else _now()

    def void(self) -> None:
        """Invalidate a ticket whose debit is taken back; refused once rows may have been read."""
        with self._lock:
            if self._used:
                raise RuntimeError("rows may have been read with this ticket: its debit stays")
            self._void = True

    def compute_once(self, owner: Any, compute: Callable[[], T]) -> T:
        """Return a result computed from the owner's rows, computing it once for this ticket."""
        if id(owner) not in self._computed:
            # holding the owner too, so that no other object gets its id
            self._computed[id(owner)] = owner, compute()
        result: T = self._computed[id(owner)][1]
        return result

    def computed(self, owner: Any) -> Any:
        """Return the result of `compute_once` for an owner; None if there is none yet."""
        return self._computed.get(id(owner), (owner, None))[1]

    def forget(self) -> None:
        """Drop all results computed from rows: the release reads nothing more."""
        self._computed.clear()

    @property
    def due(self) -> bool:
        """Whether the ticket has to be paid for before a row is read."""
        return self._due

    @property
    def used(self) -> bool:
        """Whether rows may have been read; a debit is final from then on."""
        return self._used

    @staticmethod
    def check(ticket: Any) -> None:
        """Refuse anything but a ticket."""
        if type(ticket) is not Ticket:
            raise TypeError(
                "rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)"
            )

    @staticmethod
    def use(ticket: Any) -> None:
        """Check a ticket and mark it as used: rows are read from now on."""
        Ticket.check(ticket)
        with ticket._lock:  # another thread may be about to take the debit back
            if ticket._due:
                raise RuntimeError("this ticket has not been paid for: rows are read afterwards")
            if ticket._void:
                raise RuntimeError(
                    "the debit for this ticket was taken back: begin another release"
                )
            ticket._used = True


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


FOREIGN_SOURCE = "the source's own code yields each row by itself, keeps no state and shows nothing"
"""The premise of a certificate whose rows come from a source that this library did not write."""

_Kind = TypeVar("_Kind", bound=type)

_TRUSTED: list[type] = []
"""Final classes of this library, compared by identity so that no other class can pass for one.

They have slots, so that no method of an object can be replaced either.
"""


class Source(ABC):
    """Rows of numbers that are read with a ticket only.

    A new kind of source defines `rows`, `columns` and `blocks`; sums and counts follow (`Rows`).
    """

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows; where that is private, a public number to plan with."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The public names of the columns, in the order in which a function sees them."""

    @abstractmethod
    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; a missing cell is NaN.

        Infinities are clipped like any large number. A block may be read-only.
        """

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time.

        With `stored`, a source of one column may yield it as `StoredColumn`.
        """
        return [partial(self.blocks, ticket)]

    def choose(self, columns: str | Sequence[str] | None, *, texts: bool = False) -> Source:
        """Return some of the columns; None is all of them, without texts unless `texts`."""
        require(
            columns is None,
            "columns",
            columns,
            expected="no columns=: this source has its own columns",
            remedy="open data with zd.open to choose columns by name",
        )
        return self

    @property
    def declared_bounds(self) -> Any:
        """The bounds that were declared for the columns; None if these are not all numbers."""
        return None

    @property
    def row_count_is_public(self) -> bool:
        """Whether `rows` is exact and public, and all of these rows are yielded."""
        return True

    @property
    def may_miss(self) -> bool:
        """Whether missing cells are ignored, which makes the number of present cells private."""
        return False

    @property
    def drops_rows(self) -> bool:
        """Whether some rows may be ignored, which makes the number of rows that count private."""
        return not self.row_count_is_public

    @property
    def keeping(self) -> Keeping:
        """The storage for a copy of the rows: memory by default."""
        return Keeping()

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster, which adds them up."""
        return False

    @property
    def by_unit(self) -> Source | None:
        """The same rows with one more column, the number of their unit; None without units."""
        return None

    @property
    def row_count_phrase(self) -> str:
        """The words for the number `rows` with which a plan is made."""
        return "the number of rows"

    @property
    def protection(self) -> Protection:
        """The protected unit, the neighboring relation and the assumptions."""
        return Protection()

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows that a paid ticket opens, for one release.

        With `keep` they are read once, at the first query, into a copy from which all answers come,
        so that changes to the data in between have no effect. Sums of named columns are kept too.
        """
        Ticket.check(ticket)
        by_unit = self.by_unit
        numbered = None if by_unit is None else partial(by_unit.open, ticket, keep=True)
        return self._opened(_SourceRows(self, ticket, keep=keep), numbered)

    def _opened(self, held: Held, numbered: Callable[[], Rows] | None = None) -> Rows:
        return Rows(
            held=held,
            rows=self.rows,
            columns=self.columns,
            row_count_is_public=self.row_count_is_public,
            may_miss=self.may_miss,
            numbered=numbered,
        )


@final
class _SourceRows(Held):
    """The rows of a source; with `keep` they are copied when they are first read."""

    __slots__ = ("_keep", "_kept", "_rows", "_source", "_ticket", "keeping", "sums")

    def __init__(self, source: Source, ticket: Ticket, *, keep: bool) -> None:
        self._rows = source.rows if source.row_count_is_public else None
        self.keeping = source.keeping
        self._source: Source | None = source
        self._ticket, self._keep = ticket, keep
        self._kept: tuple[Block, ...] = ()
        self.sums: dict[Hashable, IntegerArray] | None = {} if keep else None

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a block may be read-only."""
        if self._source is not None and self._keep:
            # set only when the copy is complete, so that an interrupt leaves no partial table
            floats = (np.asarray(block, np.float64) for block in self._read(self._source))
            self._kept, self._source = copied_blocks(floats, self.keeping), None
        yield from self.blocks_once()

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows without copying them."""
        if self._source is None:
            yield from self._kept
        else:
            yield from self._read(self._source)

    def _read(self, source: Source) -> Iterator[Block]:
        Ticket.use(self._ticket)
        yield from with_progress(source.blocks(self._ticket), "rows", self._rows, len)

    def pieces(self, *, stored: bool = False) -> Sequence[Piece]:
        """Return the blocks in pieces that threads may read; each block of a copy is a piece."""
        if self._source is None or self._keep:
            return [partial(iter, (block,)) for block in self.blocks()]
        Ticket.use(self._ticket)
        return self._source.pieces(self._ticket, stored=stored)


def trusted_source(kind: _Kind) -> _Kind:
    """Register a final class of sources whose reading of rows is proven (a decorator)."""
    _TRUSTED.append(kind)
    return kind


def is_trusted_source(source: object) -> bool:
    """Tell whether this library wrote the source; the rows of any other are caller-asserted.

    >>> from zerodelta.data.arrays import ArraySource
    >>> is_trusted_source(ArraySource(np.zeros(3)))
    True
    """
    return any(type(source) is kind for kind in _TRUSTED)


def protection_of(*sources: Any) -> Protection:
    """Return the protection shared by all of these sources; sources that differ are refused.

    The protection of a source that this library did not write is ignored: its rows are
    caller-asserted.
    """
    protections = [
        source.protection if is_trusted_source(source) else Protection(premise=FOREIGN_SOURCE)
        for source in sources
        if isinstance(source, Source)
    ]
    for other in protections[1:]:
        require(
            other == protections[0],
            "data",
            expected="columns of one data set, with one protected unit and neighboring relation",
            remedy="take all columns from one people = zd.open(…)",
        )
    return protections[0] if protections else Protection()


# -- Rows computed from those of another source: both have the same public facts ------------------


class DerivedSource(Source):
    """A source that computes each of its rows from one row of another source (`_of`).

    Only `may_miss` is not taken from that source: a subclass says whether its cells may be missing.
    """

    __slots__ = ("_of",)

    _of: Source

    @property
    def rows(self) -> int:
        """The number of rows; where that is private, a public number to plan with."""
        return self._of.rows

    @property
    def row_count_is_public(self) -> bool:
        """Whether `rows` is exact and public, and all of these rows are yielded."""
        return self._of.row_count_is_public

    @property
    def drops_rows(self) -> bool:
        """Whether some rows may be ignored."""
        return self._of.drops_rows

    @property
    def keeping(self) -> Keeping:
        """The storage for a copy of the rows."""
        return self._of.keeping

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return self._of.remote

    @property
    def row_count_phrase(self) -> str:
        """The words for the number `rows` with which a plan is made."""
        return self._of.row_count_phrase

    @property
    def protection(self) -> Protection:
        """The protection of the other source; caller-asserted if this library did not write it."""
        return protection_of(self._of)


# -- A caller's value, closed until there is a ticket: for tasks that read rows in their own way --


@final
class Sealed(Generic[T]):
    """A value, or a tuple of several, that only a ticket opens.

    `reads` lists the sources in the value (default: the value itself). Their rows are
    caller-asserted unless this library wrote the source, and so are the rows of a container that is
    not `known` (`columns.is_known`). `neighbors` is the relation of a value whose privacy claim was
    computed elsewhere. `read` is called on opening and returns the cells.
    """

    __slots__ = ("_protection", "_read", "_value")

    def __init__(
        self,
        value: Any,
        *,
        reads: tuple[Any, ...] | None = None,
        neighbors: Neighbors | None = None,
        known: bool = True,
        read: Callable[[], T] | None = None,
    ) -> None:
        sources = (value,) if reads is None else reads
        self._value, self._read = value, read
        protection = protection_of(*sources)
        if not known:
            protection = replace(protection, premise=FOREIGN_SOURCE)
        if neighbors is not None:
            protection = replace(protection, neighbors=neighbors)
        self._protection = protection

    @property
    def protection(self) -> Protection:
        """The protection of the sources in the value."""
        return self._protection

    def open(self, ticket: Ticket) -> T:
        """Return the value, read into cells if there is a `read`."""
        Ticket.use(ticket)
        opened: T = self._value if self._read is None else self._read()
        return opened
