"""Verify certificates and saved releases from their files, for `zerodelta verify`.

The ε of all releases of one data set is added up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from zerodelta.errors import CertificateError, RecordError, printable
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.readable import LARGEST_TEXT, large, read_json
from zerodelta.privacy.release import check_signed
from zerodelta.privacy.release_file import CLASSES, LARGEST_FILE, Saved, is_release, read_data
from zerodelta.privacy.verify import Total, by_data, total_of, verify
from zerodelta.value import value

MEANING = (
    "Verified means: the steps prove the claim. It does not mean that these steps were run, and "
    "nobody has signed them."
)
UNSIGNED = (
    "digest matches; unsigned: whoever changes the file can compute a new digest, value and noisy "
    "sums"
)
UNCHECKED = (
    "Verified means: the steps prove the claim. It does not mean that these steps were run: for "
    "that you can trust the signer, whose key --signed-by checks."
)
SIGNED = (
    "Verified means: the steps prove the claim. It does not mean that these steps were run: for "
    "that you trust the signer."
)

_BEGINS = b'{\n  "schema": "zerodelta/release/'


@value
class Demand:
    """The conditions that every certificate must meet."""

    epsilon: Rational | None = None
    neighbors: str = "replace"
    unit: str | None = None
    """The unit that must be protected; None for the one that is claimed."""
    proven: bool = False
    """Whether asserted and idealized steps are refused."""
    impure: bool = False
    """Whether claims with a δ above 0 are accepted."""
    signed_by: str | None = None
    """The public key of the required signer, in hexadecimal."""


@value
class FileVerdict:
    """The verdict on one file, or on all files together."""

    good: bool
    text: str
    saved: Saved | None = None
    certificate: Certificate | None = None
    sums: tuple[tuple[str, Total], ...] = ()
    """In the verdict on all files: the total of each data set."""


def report(path: str | Path, demand: Demand | None = None, *, explain: bool) -> FileVerdict:
    """Check whether a file's certificate meets the conditions, and describe its release."""
    demand = Demand() if demand is None else demand
    try:
        text, data = _read(path)
        saved = read_data(data) if is_release(data) else None
        certificate = _certificate(text, data) if saved is None else saved.certificate
        if demand.signed_by is not None:
            _check_signed(saved, demand.signed_by)
        verify(
            certificate,
            epsilon=demand.epsilon,
            neighbors=demand.neighbors,
            unit=certificate.unit if demand.unit is None else demand.unit,
            proven=demand.proven,
        )
        _check_pure(certificate, demand)
        if saved is not None:
            saved.fields(CLASSES)  # as `zd.load` reads them
    except CertificateError as error:
        return FileVerdict(good=False, text=str(error))
    lines = [certificate.explain() if explain else certificate.summary]
    lines += [] if explain else [f"  {line}" for line in _claim_lines(certificate)]
    if saved is not None:
        lines += [f"  {line}" for line in _record_lines(saved, demand)]
    return FileVerdict(good=True, text="\n".join(lines), saved=saved, certificate=certificate)


def certificate_in(path: Path) -> Certificate:
    """Return the certificate in a file, alone or in a release; its claim is not checked."""
    text, data = _read(path)
    return read_data(data).certificate if is_release(data) else _certificate(text, data)


def _check_signed(saved: Saved | None, public: str) -> None:
    if saved is None:
        raise RecordError("a certificate alone has no signature: pass the saved release.")
    check_signed(saved.digest, saved.signatures, public)


def _check_pure(certificate: Certificate, demand: Demand) -> None:
    if not demand.impure and type(certificate.claim) is not PureDP:
        raise CertificateError(
            f"the steps prove {certificate.summary}; that is not pure, as it allows a δ above 0: "
            "pass --impure to accept it."
        )


def _claim_lines(certificate: Certificate) -> list[str]:
    """Return lines about the protected row or unit, and a warning if ε is large."""
    row = _plain(certificate.row)
    unit = row if certificate.unit is None else f"{row}; a unit is one {_shown(certificate.unit)}"
    lines = [f"protects {unit} ({certificate.claim.neighbors.value})"]
    return [*lines, *([f"beware: {certificate.beware}"] if certificate.beware else [])]


def _record_lines(saved: Saved, demand: Demand) -> list[str]:
    """Return lines about a release's record: task, data, time, payment, digests, signature."""
    record = saved.record
    names = [_shown(name) for name in record.names if name is not None]
    of = f" of {' and '.join(names)}" if names else ""
    task, time, version = _plain(record.task), _plain(record.time), _plain(record.version)
    lines = [f"says that it is {task}{of}, {time}, zerodelta {version}"]
    lines += [] if record.entries else ["no ledger counted its ε"]
    lines += [
        f"says that it was paid for with entry {receipt['entry']} of ledger "
        f"{_plain(receipt['ledger'])}"
        for receipt in record.entries
    ]
    lines.append(f"digest of the file {saved.digest}")
    lines.append(f"digest of the certificate {saved.certificate.digest}")
    if demand.signed_by is not None:
        lines.append(f"signed by {demand.signed_by}")
    elif saved.signatures:
        lines.append("has a signature, which is checked with --signed-by")
    else:
        lines.append(UNSIGNED)
    return [*lines, *(f"ask whether {_plain(question)}" for question in record.to_ask[:2])]


def totals(verdicts: Sequence[FileVerdict], demand: Demand) -> FileVerdict | None:
    """Add up the ε of releases by data set; those that name none are only counted."""
    by_digest = {v.saved.digest: v.saved for v in verdicts if v.good and v.saved is not None}
    named = by_data((saved.record, saved.certificate) for saved in by_digest.values())
    lines, good, sums = [], True, []
    for name, releases in named.items():
        if name is None:
            continue
        try:
            total = total_of(releases)
            sums.append((name, total))
            _check_total(total, demand)
            if len(releases) > 1:
                lines.append(f"{_shown(name)}: {total}")
                beware = large(Fraction(total.epsilon_for("replace")))
                lines += [f"{_shown(name)}: beware: {beware}"] if beware else []
        except CertificateError as error:
            lines.append(f"{_shown(name)}: NOT VERIFIED: {error}")
            good = False
    certificates = [v for v in verdicts if v.good and v.saved is None]
    unnamed = len(named.get(None, ())) + len(certificates)
    if unnamed and len(by_digest) + len(certificates) > 1:
        verb, pronoun = ("s name", "they are") if unnamed > 1 else (" names", "it is")
        lines.append(f"{unnamed} release{verb} no data set: {pronoun} not added up.")
    text = "\n".join(lines)
    return FileVerdict(good=good, text=text, sums=tuple(sums)) if lines or sums else None


def _check_total(total: Total, demand: Demand) -> None:
    limit = demand.epsilon
    if limit is not None and total.epsilon_for(demand.neighbors) > Fraction(str(limit)):
        raise CertificateError(f"{total}: more than --epsilon {limit} allows.")


def as_json(path: str, verdict: FileVerdict) -> dict[str, Any]:
    """Return the verdict on one file as plain numbers and texts."""
    fields: dict[str, Any] = {"file": path, "verified": verdict.good}
    if not verdict.good or verdict.certificate is None:
        return fields | {"problem": verdict.text}
    certificate, saved = verdict.certificate, verdict.saved
    claim = certificate.body()["claim"]
    fields |= {
        "claim": claim,
        "summary": certificate.summary,
        "public": list(certificate.public),
        "assumed": list(certificate.assumed),
        "status": certificate.status.value,
        "beware": certificate.beware,
        "digest": certificate.digest if saved is None else saved.digest,
    }
    if saved is not None:
        record = saved.record
        fields |= {"task": record.task, "data": record.names, "time": record.time}
        fields |= {"version": record.version, "entries": record.entries}
        fields |= {"to_ask": record.to_ask}
        fields |= {
            "signatures": len(saved.signatures),
            "certificate_digest": certificate.digest,
        }
    return fields


def totals_as_json(verdict: FileVerdict | None) -> dict[str, Any]:
    """Return the totals by the names of data sets."""
    return {
        str(name): {
            "releases": total.releases,
            "epsilon": number_text(total.epsilon),
            "neighbors": total.neighbors.value,
        }
        for name, total in (verdict.sums if verdict is not None else ())
    }


def _plain(text: str) -> str:
    short = text if len(text) <= 100 else text[:97] + "..."
    return printable(short)


def _shown(name: Any) -> str:
    return repr(_plain(str(name)))


def _read(path: str | Path) -> tuple[str, Any]:
    """Return the text of a file, or of the standard input for "-", and its JSON content."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
        largest = LARGEST_FILE if content.startswith(_BEGINS) else LARGEST_TEXT
        if len(content) > largest:
            raise CertificateError(f"the file has more than {largest} bytes.")
        text = content.decode("utf-8")
        return text, read_json(text, floats=True, largest=largest)
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(f"the file cannot be read as JSON: {error}.") from error


def _certificate(text: str, data: Any) -> Certificate:
    """Return the certificate in a file: the file itself, or its entry "certificate"."""
    if not isinstance(data, dict) or "certificate" not in data:
        return Certificate.from_json(text)
    inner = data["certificate"]
    return Certificate.from_json(inner if isinstance(inner, str) else json.dumps(inner))
