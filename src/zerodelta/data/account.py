"""What a release costs and who pays: an account is seen from here as a protocol only.

`zerodelta.ledger` has the accounts; whoever debits them is the runner (`spine/run.py`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value


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
