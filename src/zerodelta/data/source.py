"""Who is protected, who pays, the ticket that this makes, and the source of rows that it opens."""

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

from zerodelta.data.pieces import Keeping, Piece, kept, rows_in, shown
from zerodelta.data.rows import Held, Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.sums import IntegerArray
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- What a release costs and who pays: an account is seen from here as a protocol only -----------
# `zerodelta.ledger` has the accounts; whoever debits them is the runner (`spine/run.py`).


@value
class Charge:
    """What one release costs, and what it is about; all of it public."""

    epsilon: Fraction
    neighbors: Neighbors
    unit: str | None
    """Who is protected, if it is not a row."""
    task: str
    """What was asked, in a few words."""
    question: str | None
    """SHA-256 of all that was asked of a data set; None where it cannot be written down."""
    certificate: str
    """The digest of the certificate."""
    record: str = ""
    """The digest of what was asked, as the record of the release has it."""
    again: bool = False
    """Whether a question that was asked before may be paid for once more."""


@value
class Receipt:
    """Where a debit is written: which ledger, which of its entries, with which hash, and when."""

    ledger: str
    """The random name that the ledger got when it was made."""
    entry: int
    hash: str
    time: str

    def to_json(self) -> dict[str, str | int]:
        """Return the fields, for a record."""
        return {
            "ledger": self.ledger,
            "entry": self.entry,
            "hash": self.hash,
            "time": self.time,
        }


class Account(Protocol):
    """Who pays for releases; compared with ``==``."""

    def check(self, charge: Charge) -> None:
        """Raise what `debit` would raise by now; nothing is written."""
        ...  # pragma: no cover

    def debit(self, charge: Charge) -> Receipt:
        """Pay for a release, durably, or raise `BudgetError`."""
        ...  # pragma: no cover

    def _take_back(self, receipt: Receipt, reason: str) -> None:
        """Undo a debit for which no row was read; the runner knows, and nobody else."""
        ...  # pragma: no cover

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        """Write down where a release was saved, and its digest."""
        ...  # pragma: no cover

    def covers(self, other: Any) -> bool:
        """Tell whether a debit here is one of the other account, too."""
        ...  # pragma: no cover

    @property
    def line(self) -> str:
        """What is left, in one line, for people."""
        ...  # pragma: no cover


# -- Who is protected by a release from these rows, under which relation, and what that assumes ---


@value
class Protection:
    """What a source says of its rows: one row of an array or frame, unless stated otherwise."""

    row: str | None = None
    """What a row is, such as "one line of the file"; None if the question says it better."""
    unit: str | None = None
    max_rows: int = 1
    """How many rows of one unit count."""
    neighbors: Neighbors = Neighbors.REPLACE
    bare: bool = True
    """Whether rows came as an array, a list or a frame that the caller may have prepared."""
    premise: str | None = None
    """What code that we did not write is asserted to do, if it yields the rows."""
    accounts: tuple[Account, ...] = ()
    """Who pays for a release from these rows."""

    @property
    def words(self) -> str | None:
        """Who is protected, for the certificate."""
        if self.unit is None:
            return self.row
        rows = "its one row" if self.max_rows == 1 else f"at most {self.max_rows} of its rows"
        return f"one {self.unit}, {rows}"


# -- The right to read rows: made in `spine/run.py`, after the certificate was issued -------------

T = TypeVar("T")


@final
class Ticket:
    """Opens sources for one release. Only the runner makes one, after the certificate.

    One that is due opens nothing until it is paid for.

    >>> Ticket.check(None)
    Traceback (most recent call last):
        ...
    TypeError: rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)
    """

    __slots__ = (
        *("_certificate", "_due", "_lock", "_made", "_receipts", "_second_source", "_time"),
        *("_used", "_void"),
    )

    def __init__(
        self,
        certificate: Certificate,
        *,
        second_source: Any = None,
        due: bool = False,
    ) -> None:
        self._certificate, self._used, self._second_source = certificate, False, second_source
        self._receipts: tuple[Receipt, ...] = ()
        self._due, self._void, self._lock = due, False, threading.Lock()
        self._time = _now()
        self._made: dict[int, tuple[Any, Any]] = {}

    @property
    def certificate(self) -> Certificate:
        """What the rows are read for."""
        return self._certificate

    @property
    def second_source(self) -> Any:
        """Another source of the same rows, which this ticket opens too; None if there is none."""
        return self._second_source

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Where it was paid for; empty where there is no ledger."""
        return self._receipts

    @property
    def time(self) -> str:
        """When the ticket was taken (UTC), before a row was read: the time of the debit."""
        return self._time

    def settle(self, receipts: tuple[Receipt, ...]) -> None:
        """Say where a ticket that is due was paid for: rows may be read from now on."""
        with self._lock:
            if self._due:  # another thread may have been faster, and read rows by now
                self._receipts, self._due = receipts, False
                self._time = receipts[0].time if receipts else _now()

    def void(self) -> None:
        """Make a ticket, whose debit is taken back, useless; one that was used cannot be."""
        with self._lock:
            if self._used:
                raise RuntimeError("rows may have been read with this ticket: its debit stays")
            self._void = True

    def once(self, owner: Any, make: Callable[[], T]) -> T:
        """Return what is made of an owner's rows, once for the ticket."""
        if id(owner) not in self._made:
            self._made[id(owner)] = owner, make()  # the owner, too: no other gets its identity
        made: T = self._made[id(owner)][1]
        return made

    def made(self, owner: Any) -> Any:
        """Return what was made of an owner's rows for the ticket; None if nothing was."""
        return self._made.get(id(owner), (owner, None))[1]

    def forget(self) -> None:
        """Let go of what was made of rows: nothing more is read for the release."""
        self._made.clear()

    @property
    def due(self) -> bool:
        """Whether it has still to be paid for, before a row is read."""
        return self._due

    @property
    def used(self) -> bool:
        """Whether rows may have been read; a debit is final from then on."""
        return self._used

    @staticmethod
    def check(ticket: Any) -> None:
        """Refuse anything that is no ticket."""
        if type(ticket) is not Ticket:
            raise TypeError(
                "rows are read with a ticket only: plan a release and run it (zerodelta.spine.run)"
            )

    @staticmethod
    def use(ticket: Any) -> None:
        """Check a ticket and mark it as used: rows are read from now on."""
        Ticket.check(ticket)
        with ticket._lock:  # another thread may be about to take its debit back
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
"""The premise of a certificate whose rows come from a source that is not `is_ours`."""

_Kind = TypeVar("_Kind", bound=type)

_OURS: list[type] = []
"""Final classes that this library wrote, compared by identity: no other class can pass for one.

They have slots: nothing can take the place of an object's method either.
"""


class Source(ABC):
    """Rows of numbers that yield nothing without a ticket.

    A new kind of source gives `rows`, `columns` and `blocks`; what it is asked follows (`Rows`).
    """

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, or where that is private a public number to plan with."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The public names of the columns, in the order in which a function sees them."""

    @abstractmethod
    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN.

        Infinities are clipped like any large number. A block may be read-only.
        """

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time.

        If `stored`, the only column may be there as `Keys`, as it is stored.
        """
        return [partial(self.blocks, ticket)]

    @property
    def whole(self) -> bool:
        """Whether the number of rows is public, and each of them is yielded."""
        return True

    @property
    def may_miss(self) -> bool:
        """Whether a missing cell counts nowhere, so that the number of those present is private."""
        return False

    @property
    def drops(self) -> bool:
        """Whether some rows may count nowhere, so that the number of those that do is private."""
        return not self.whole

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept: in memory, unless said otherwise."""
        return Keeping()

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster, which adds them up."""
        return False

    @property
    def by_unit(self) -> Source | None:
        """The same rows with one more column, the number of their unit; None if it is not known."""
        return None

    @property
    def row_count_sentence(self) -> str:
        """Which number a plan uses for that of the rows, where what counts of them is private."""
        return "the number of rows"

    @property
    def protection(self) -> Protection:
        """Who is protected, and what that assumes."""
        return Protection()

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release.

        With `keep` they are read once, when first asked, into a copy from which all answers come:
        changing the data in between changes nothing. Sums of named columns are kept too.
        """
        Ticket.check(ticket)
        by_unit = self.by_unit
        numbered = None if by_unit is None else partial(by_unit.open, ticket, keep=True)
        return self._opened(_Opened(self, ticket, keep=keep), numbered)

    def _opened(self, held: Held, numbered: Callable[[], Rows] | None = None) -> Rows:
        return Rows(
            held=held,
            rows=self.rows,
            columns=self.columns,
            whole=self.whole,
            may_miss=self.may_miss,
            numbered=numbered,
        )


@final
class _Opened(Held):
    """The rows of a source; with `keep` a copy of them is made when they are first asked."""

    __slots__ = ("_keep", "_kept", "_rows", "_source", "_ticket", "keeping", "sums")

    def __init__(self, source: Source, ticket: Ticket, *, keep: bool) -> None:
        self._rows = source.rows if source.whole else None
        self.keeping = source.keeping
        self._source: Source | None = source
        self._ticket, self._keep = ticket, keep
        self._kept: tuple[Block, ...] = ()
        self.sums: dict[Hashable, IntegerArray] | None = {} if keep else None

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a block may be read-only."""
        if self._source is not None and self._keep:
            # whole before it is kept: an interrupt leaves no table half filled
            floats = (np.asarray(block, np.float64) for block in self._read(self._source))
            self._kept, self._source = kept(floats, self.keeping), None
        yield from self.blocks_once()

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows, of which no copy is made."""
        if self._source is None:
            yield from self._kept
        else:
            yield from self._read(self._source)

    def _read(self, source: Source) -> Iterator[Block]:
        Ticket.use(self._ticket)
        yield from shown(source.blocks(self._ticket), "rows", self._rows, rows_in)

    def pieces(self, *, stored: bool = False) -> Sequence[Piece]:
        """Return the blocks in pieces that threads may read; of a copy each block is one."""
        if self._source is None or self._keep:
            return [partial(iter, (block,)) for block in self.blocks()]
        Ticket.use(self._ticket)
        return self._source.pieces(self._ticket, stored=stored)


def ours(kind: _Kind) -> _Kind:
    """Register a final class of sources whose reading of rows is proven (a decorator)."""
    _OURS.append(kind)
    return kind


def is_ours(source: object) -> bool:
    """Tell whether this library reads the rows; any other source is caller-asserted.

    >>> from zerodelta.data.arrays import ArraySource
    >>> is_ours(ArraySource(np.zeros(3)))
    True
    """
    return any(type(source) is kind for kind in _OURS)


def protection_of(*sources: Any) -> Protection:
    """Return who is protected where all of these are read together; they must not differ in it.

    What a source that is not ours says of itself is not believed: it is caller-asserted.
    """
    found = [
        each.protection if is_ours(each) else Protection(premise=FOREIGN_SOURCE)
        for each in sources
        if isinstance(each, Source)
    ]
    for other in found[1:]:
        require(
            other == found[0],
            "data",
            "from several data sets",
            expected="rows of one data set, protected in one way",
            remedy="take all columns from one people = zd.open(…)",
        )
    return found[0] if found else Protection()


# -- Rows made of those of another source: what is public of both is the same ---------------------


class DerivedSource(Source):
    """A source that makes one row of each row of another (`_of`), from that row alone.

    Whether a cell of it may be missing it says itself.
    """

    __slots__ = ("_of",)

    _of: Source

    @property
    def rows(self) -> int:
        """The number of rows, or where that is private one to plan with."""
        return self._of.rows

    @property
    def whole(self) -> bool:
        """Whether the number of rows is public, and each of them is yielded."""
        return self._of.whole

    @property
    def drops(self) -> bool:
        """Whether some rows may count nowhere."""
        return self._of.drops

    @property
    def keeping(self) -> Keeping:
        """Where a copy of the rows may be kept."""
        return self._of.keeping

    @property
    def remote(self) -> bool:
        """Whether the rows are on a cluster."""
        return self._of.remote

    @property
    def row_count_sentence(self) -> str:
        """Which number a plan uses for that of the rows."""
        return self._of.row_count_sentence

    @property
    def protection(self) -> Protection:
        """Who is protected: what the other source says, if it is believed."""
        return protection_of(self._of)


# -- What a caller passed, shut until there is a ticket: for tasks that read rows their own way ---


@final
class Sealed(Generic[T]):
    """One value, or a tuple of several, that only a ticket opens.

    `reads` names the sources among them: what they yield is caller-asserted unless they are ours,
    and so are the rows of a container that is not `known`.
    `neighbors` is the relation of a value that a mechanism with a claim made elsewhere.
    `read` makes cells of what was given, when it is opened.
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
        found = protection_of(*sources)
        if not known:
            found = replace(found, premise=FOREIGN_SOURCE)
        self._protection = found if neighbors is None else replace(found, neighbors=neighbors)

    @property
    def protection(self) -> Protection:
        """Who is protected: what the sources among them say."""
        return self._protection

    def open(self, ticket: Ticket) -> T:
        """Return what was given."""
        Ticket.use(ticket)
        opened: T = self._value if self._read is None else self._read()
        return opened
