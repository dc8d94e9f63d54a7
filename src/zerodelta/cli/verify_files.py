"""`zerodelta verify`: judge certificates and releases from their files, not by what made them.

What several releases of one data set cost is added up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from zerodelta.errors import CertificateError, RecordError
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.json_text import LARGEST_TEXT, read_json
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.readable import equals
from zerodelta.privacy.release_file import LARGEST_FILE, Saved, is_release, judged
from zerodelta.privacy.signatures import check_signed
from zerodelta.privacy.verify import verify

__all__ = ["MEANING", "SIGNED", "Demand", "Verdict", "certificate_in", "report", "totals"]

MEANING = (
    "Verified means: the steps prove the claim. It does not mean that these steps were run, and "
    "nobody has signed them."
)
SIGNED = (
    "Verified means: the steps prove the claim. It does not mean that these steps were run: for "
    "that there is the word of whoever signed."
)

_BEGINS = b'{\n  "schema": "zerodelta/release/'


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What is asked of every certificate."""

    epsilon: Rational | None = None
    neighbors: str = "replace"
    unit: str | None = None
    signed_by: str | None = None
    """The public key of whoever must have signed, in hexadecimal."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What was found about one file."""

    good: bool
    text: str
    saved: Saved | None = None


def report(path: Path, demand: Demand | None = None, *, explain: bool) -> Verdict:
    """Say whether a file's certificate proves what is asked, and what it belongs to."""
    demand = Demand() if demand is None else demand
    try:
        text, data = _read(path)
        saved = judged(data) if is_release(data) else None
        certificate = _certificate(text, data) if saved is None else saved.certificate
        if demand.signed_by is not None:
            _check_signed(saved, demand.signed_by)
        verify(
            certificate,
            epsilon=demand.epsilon,
            neighbors=demand.neighbors,
            unit=demand.unit,
        )
    except CertificateError as error:
        return Verdict(good=False, text=str(error))
    lines = [certificate.explain() if explain else certificate.summary]
    if saved is not None:
        lines += [f"  {line}" for line in _told(saved, demand)]
    return Verdict(good=True, text="\n".join(lines), saved=saved)


def certificate_in(path: Path) -> Certificate:
    """Return the certificate of a file, one or that of a release; its claim is not checked."""
    text, data = _read(path)
    return judged(data).certificate if is_release(data) else _certificate(text, data)


def _check_signed(saved: Saved | None, public: str) -> None:
    if saved is None:
        raise RecordError("a certificate alone is not signed: ask for the saved release.")
    check_signed(saved.digest, saved.signatures, public)


def _told(saved: Saved, demand: Demand) -> list[str]:
    record = saved.record
    names = [_shown(name) for name in record.names if name is not None]
    of = f" of {' and '.join(names)}" if names else ""
    lines = [f"value, record and certificate belong together: {_plain(record.task)}{of}, "]
    lines[0] += f"{_plain(record.time)}, zerodelta {_plain(record.version)}"
    lines += [
        f"paid for with entry {each['entry']} of ledger {_plain(each['ledger'])}"
        for each in record.entries
    ]
    if demand.signed_by is not None:
        lines.append(f"signed by {demand.signed_by}")
    elif saved.signatures:
        lines.append("has a signature, which is checked with --signed-by")
    return lines


def totals(verdicts: Sequence[Verdict], demand: Demand) -> Verdict | None:
    """Add up what the releases of each data set cost; None if there is nothing to add up."""
    by_digest = {v.saved.digest: v.saved for v in verdicts if v.good and v.saved is not None}
    named: dict[str | None, list[Saved]] = {}
    for saved in by_digest.values():
        for name in saved.record.names or [None]:
            named.setdefault(name, []).append(saved)
    lines, good = [], True
    for name, releases in named.items():
        if len(releases) < 2:
            continue
        if name is None:
            lines.append(f"{len(releases)} releases name no data set: they are not added up.")
            continue
        try:
            lines.append(f"{_shown(name)}: {_sum(releases, demand)}")
        except CertificateError as error:
            lines.append(f"{_shown(name)}: NOT VERIFIED: {error}")
            good = False
    return Verdict(good=good, text="\n".join(lines)) if lines else None


def _sum(releases: Sequence[Saved], demand: Demand) -> str:
    _check_entries(releases)
    claims = [each.certificate.claim for each in releases]
    if not all(type(claim) is PureDP for claim in claims):
        raise CertificateError("only pure claims add up; verify the others by themselves.")
    added = all(claim.neighbors is Neighbors.ADD_REMOVE for claim in claims)
    relation = Neighbors.ADD_REMOVE if added else Neighbors.REPLACE
    total = sum((_cost(claim, relation) for claim in claims), Fraction(0))
    said = f"{len(releases)} releases, together pure ε {equals(total)} ({relation.value})"
    asked = total if added is (demand.neighbors == Neighbors.ADD_REMOVE.value) else 2 * total
    if demand.epsilon is not None and asked > Fraction(str(demand.epsilon)):
        raise CertificateError(f"{said}: more than {demand.epsilon}, which was asked.")
    return said


def _cost(claim: Any, relation: Neighbors) -> Fraction:
    """Return ε for a relation: a row replaced is one removed and one added (theory H)."""
    exact: Fraction = claim.exact_epsilon
    return exact if claim.neighbors is relation else 2 * exact


def _check_entries(releases: Sequence[Saved]) -> None:
    """Refuse two releases that were paid for once."""
    seen: set[tuple[Any, Any]] = set()
    for saved in releases:
        for entry in {(each["ledger"], each["entry"]) for each in saved.record.entries}:
            if entry in seen:
                raise RecordError(
                    f"two different files say that they were paid for with entry {entry[1]} of one "
                    "ledger: one of them is not what was released."
                )
            seen.add(entry)


def _plain(text: str) -> str:
    short = text if len(text) <= 100 else text[:97] + "..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def _shown(name: Any) -> str:
    return repr(_plain(str(name)))


def _read(path: Path) -> tuple[str, Any]:
    """Return the text of a file, and what it says."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        largest = LARGEST_FILE if content.startswith(_BEGINS) else LARGEST_TEXT
        if len(content) > largest:
            raise CertificateError(f"the file has more than {largest} bytes.")
        text = content.decode("utf-8")
        return text, read_json(text, floats=True, largest=largest)
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"the file cannot be read as JSON: {type(error).__name__}: {error}."
        ) from error


def _certificate(text: str, data: Any) -> Certificate:
    """Return the certificate in a file: all of it, or what it keeps under "certificate"."""
    if not isinstance(data, dict) or "certificate" not in data:
        return Certificate.from_json(text)
    inner = data["certificate"]
    return Certificate.from_json(inner if isinstance(inner, str) else json.dumps(inner))
