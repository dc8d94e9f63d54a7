"""What several releases of one data set cost together: pure ε adds up (theory R2).

Those for add-remove count twice beside one for replace: a row replaced is one removed and one
added (theory H).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from zerodelta.errors import CertificateError, RecordError
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.readable import equals
from zerodelta.privacy.record import Record
from zerodelta.value import value


@value
class Total:
    """What was released from one data set, added up."""

    releases: int
    epsilon: Fraction
    neighbors: Neighbors

    def __str__(self) -> str:
        told = "1 release," if self.releases == 1 else f"{self.releases} releases, together"
        return f"{told} pure ε {equals(self.epsilon)} ({self.neighbors.value})"

    def asked(self, neighbors: str) -> Fraction:
        """Return the sum for the relation that somebody asks for."""
        added = self.neighbors is Neighbors.ADD_REMOVE
        same = added is (neighbors == Neighbors.ADD_REMOVE.value)
        return self.epsilon if same else 2 * self.epsilon


def by_data(
    releases: Iterable[tuple[Record, Certificate]],
) -> dict[str | None, list[tuple[Record, Certificate]]]:
    """Return the releases by the names of their data sets; None for those that name none."""
    named: dict[str | None, list[tuple[Record, Certificate]]] = {}
    for record, certificate in releases:
        for name in record.names or [None]:
            named.setdefault(name, []).append((record, certificate))
    return named


def total_of(releases: Sequence[tuple[Record, Certificate]]) -> Total:
    """Add up releases of one data set; those that do not add up raise `CertificateError`."""
    _check_different([record for record, _ in releases])
    claims = [certificate.claim for _, certificate in releases]
    if not all(type(claim) is PureDP for claim in claims):
        raise CertificateError("only pure claims add up; verify the others by themselves.")
    if len({certificate.unit for _, certificate in releases}) > 1:
        raise CertificateError(
            "some protect a row and some a unit, or other units: these do not add up; verify each "
            "kind by itself."
        )
    added = all(claim.neighbors is Neighbors.ADD_REMOVE for claim in claims)
    relation = Neighbors.ADD_REMOVE if added else Neighbors.REPLACE
    total = sum((_cost(claim, relation) for claim in claims), Fraction(0))
    return Total(releases=len(releases), epsilon=total, neighbors=relation)


def _cost(claim: Any, relation: Neighbors) -> Fraction:
    exact: Fraction = claim.exact_epsilon
    return exact if claim.neighbors is relation else 2 * exact


def _check_different(records: Sequence[Record]) -> None:
    """Refuse two files of one release, and two releases that were paid for once."""
    seen: set[tuple[Any, Any]] = set()
    for record in records:
        for entry in {(each["ledger"], each["entry"]) for each in record.entries}:
            if entry in seen:
                raise RecordError(
                    f"two different files say that they were paid for with entry {entry[1]} of one "
                    "ledger: one of them is not what was released."
                )
            seen.add(entry)
    for name, files in Counter(record.id for record in records).items():
        if files == 1:
            continue
        raise RecordError(
            f"two different files say that they are the release {name}: pass the one that was "
            "published; one of them may have been changed."
        )
