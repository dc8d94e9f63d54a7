"""`zerodelta init`, `prove` and `report`: files written from a schema or from saved releases.

Only the names of columns are read, and only where they are declared to be no person's row. Kinds,
bounds and categories are never taken from rows: they would be published with every release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zerodelta.cli.verify_files import certificate_in
from zerodelta.coq.proof_file import ProofFile, missing, proof_file, run_coq
from zerodelta.data.arrays import reader_of
from zerodelta.errors import CertificateError
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
from zerodelta.privacy.readable import equals, write_new
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import read_file
from zerodelta.privacy.verify import verify
from zerodelta.records import load
from zerodelta.report import write_report

# -- `zerodelta prove`: a certificate as a file for Coq, and what Coq says of it ------------------


def prove(file: Path, out: Path, proofs: Path) -> tuple[bool, str]:
    """Write the file for Coq; return whether nothing is wrong, and what to tell about it."""
    try:
        certificate = certificate_in(file)
        verify(certificate, unit=certificate.unit, neighbors=certificate.claim.neighbors)
        written = proof_file(certificate, out.name)
    except CertificateError as error:
        return False, f"{file}: NOT VERIFIED: {error}"
    write_new(out, written.text, name="out")
    good, said = _said(written, proofs)
    told = [f"{file}: {said}", *(f"taken on paper: {what}" for what in written.paper)]
    return good, "\n".join((*told, f"wrote {out}"))


def _said(written: ProofFile, proofs: Path) -> tuple[bool, str]:
    if written.is_empty:
        return True, "Coq has no theorem about these steps: all of them are taken on paper"
    if (lacks := missing(proofs)) is not None:
        return True, f"not checked by Coq: {lacks}"
    verdict = run_coq(written.text, proofs, axioms=True)
    if not verdict.accepted:
        return False, f"Coq {verdict.version} REFUSES: {verdict.message}"
    told = f"Coq {verdict.version} accepts: ε {equals(written.epsilon)}, δ = 0"
    if written.only_adds_up:
        told += "; it only added up: every step is taken on paper"
    elif written.paper:
        told += ", if what is taken on paper holds"
    return True, told


# -- `zerodelta report`: saved releases, read and judged again, on one page -----------------------


def report_files(files: Sequence[Path], out: Path, ledger: str | None) -> None:
    """Write the page about files; with a ledger, what it says of each of their data sets."""
    releases, digests = [], []
    for path in files:
        release, digest = _read(path)
        releases.append(release)
        digests.append(digest)
    accounts = () if ledger is None else _accounts(ledger, releases)
    names = [str(path) for path in files]
    write_report(releases, out, ledger=accounts, files=names, digests=digests)


def _read(path: Path) -> tuple[Release, str]:
    try:
        digest = read_file(path).digest
        loaded = load(path)
    except CertificateError as error:
        raise CertificateError(f"{path}: NOT VERIFIED: {error}") from None
    return getattr(loaded, "release_", loaded), digest


def _accounts(ledger: str, releases: Sequence[Release]) -> list[Ledger]:
    records = [each.record for each in releases if each.record is not None]
    names = dict.fromkeys(n for each in records for n in each.names if n is not None)
    return [Ledger(ledger, data=name) for name in names or [DEFAULT_DATA]]


_HEAD = """\
# What is public of {file}: its columns, and who is protected. Fill it in from what you know of
# the columns, never from their rows: bounds and categories are published with every release.
name = {name}

[columns]
# One line for each column that may be used; leave the others out. Kinds:
#   age = {{number = [0, 120], integer = true}}   what lies outside is clipped
#   income = {{number = [0, 200000]}}             missing = "none" if no cell is missing: less noise
#   city = {{category = ["oslo", "rome"], other = true}}
#   member = {{boolean = true}}
#   joined = {{date = [2020-01-01, 2026-12-31], by = "month"}}
#   surname = {{text = 20, alphabet = "abcdefghijklmnopqrstuvwxyz"}}   texts that nobody listed
"""

_TAIL = """
# Who is protected, if one person may have several rows:
# [unit]
# column = "customer_id"
# max_rows = 3
"""


def names_in(data: Path, *, header: bool, file: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of columns: from the header, or from a Parquet file's schema."""
    parquet = data.suffix.lower() in (".parquet", ".pq")
    return reader_of(data, dict(file)).names if header or parquet else ()


def template(data: Path, names: Sequence[str], *, header: bool, file: Mapping[str, Any]) -> str:
    """Return the text of a schema without any kind filled in."""
    text = _HEAD.format(file=_text(data.name), name=_text(data.name.partition(".")[0] or "data"))
    for name in names:
        bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
        text += f"# {name if bare else _text(name)} = {{number = [LOWER, UPPER]}}\n"
    if not header:
        text += "# The file has no header: list all its columns, in their order.\n"
    text += _TAIL
    told = {**file, **({} if header else {"header": False})}
    if told.get("quote", "") is None:
        told["quote"] = "none"
    if told:
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
        text += "\n[file]\n" + "\n".join(lines) + "\n"
    return text


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
