"""Write the files of `zerodelta init`, `prove` and `report`.

Of a data file only the names of columns are read, and only where the user says that the first line
holds names. Kinds, bounds and categories are never taken from rows: every release publishes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zerodelta.cli.verify_files import certificate_in
from zerodelta.coq.proof_file import ProofFile, missing, proof_file, run_coq
from zerodelta.data.arrays import reader_of, stores_names
from zerodelta.errors import CertificateError
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
from zerodelta.privacy.readable import equals, write_new
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import read_file
from zerodelta.privacy.verify import verify
from zerodelta.records import load
from zerodelta.report import write_report

# -- `zerodelta prove`: a certificate as a file for Coq, and Coq's verdict ------------------------


def prove(file: Path, out: Path, proofs: Path) -> tuple[bool, str]:
    """Write the file for Coq; return False if something is wrong, and the text to print."""
    try:
        certificate = certificate_in(file)
        verify(certificate, unit=certificate.unit, neighbors=certificate.claim.neighbors)
        written = proof_file(certificate, out.name)
    except CertificateError as error:
        return False, f"{file}: NOT VERIFIED: {error}"
    write_new(out, written.text, name="out")
    good, verdict = _verdict(written, proofs)
    lines = [f"{file}: {verdict}", *(f"proved on paper only: {step}" for step in written.paper)]
    return good, "\n".join((*lines, f"wrote {out}"))


def _verdict(written: ProofFile, proofs: Path) -> tuple[bool, str]:
    """Run Coq on a file; return False if Coq refuses it, and the verdict as a line."""
    if written.is_empty:
        return True, "Coq has no theorem about these steps: all of them are proved on paper only"
    if (reason := missing(proofs)) is not None:
        return True, f"not checked by Coq: {reason}"
    verdict = run_coq(written.text, proofs, axioms=True)
    if not verdict.accepted:
        return False, f"Coq {verdict.version} REFUSES: {verdict.message}"
    line = f"Coq {verdict.version} accepts: ε {equals(written.epsilon)}, δ = 0"
    if written.only_adds_up:
        line += "; it only added up: every step is proved on paper only"
    elif written.paper:
        line += ", if the steps proved on paper hold"
    return True, line


# -- `zerodelta report`: saved releases, read and verified again, on one page ---------------------


def report_files(files: Sequence[Path], out: Path, ledger: str | None) -> None:
    """Write the page about saved releases; with a ledger, also the accounts of their data sets."""
    releases, digests = [], []
    for path in files:
        release, digest = _read(path)
        releases.append(release)
        digests.append(digest)
    accounts = () if ledger is None else _accounts(ledger, releases)
    names = [str(path) for path in files]
    write_report(releases, out, ledger=accounts, files=names, digests=digests)


def _read(path: Path) -> tuple[Release, str]:
    """Return the verified release of a saved file, or of a saved estimator, and its digest."""
    try:
        digest = read_file(path).digest
        loaded = load(path)
    except CertificateError as error:
        raise CertificateError(f"{path}: NOT VERIFIED: {error}") from None
    return getattr(loaded, "release_", loaded), digest


def _accounts(ledger: str, releases: Sequence[Release]) -> list[Ledger]:
    records = [release.record for release in releases if release.record is not None]
    names = dict.fromkeys(n for record in records for n in record.names if n is not None)
    return [Ledger(ledger, data=name) for name in names or [DEFAULT_DATA]]


_HEAD = """\
# The public description of {file}: its columns and the protected unit. Fill it in from what you
# know about the columns, never from the rows: every release publishes bounds and categories.
name = {name}

[columns]
# Write one line for each column to be used; leave the others out. Kinds:
#   age = {{number = [0, 120], integer = true}}   numbers outside are clipped
#   income = {{number = [0, 200000]}}             missing = "none" if no cell is missing: less noise
#   city = {{category = ["oslo", "rome"], other = true}}
#   member = {{boolean = true}}
#   joined = {{date = [2020-01-01, 2026-12-31], by = "month"}}
#   surname = {{text = 20, alphabet = "abcdefghijklmnopqrstuvwxyz"}}   texts of at most 20 letters
"""

_TAIL = """
# If one person may have several rows, name the column that identifies the person:
# [unit]
# column = "customer_id"
# max_rows = 3
"""


def names_in(data: Path, *, header: bool, file: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the columns, from the first line or from where the file stores them."""
    return reader_of(data, dict(file)).names if header or stores_names(data) else ()


def template(data: Path, names: Sequence[str], *, header: bool, file: Mapping[str, Any]) -> str:
    """Return the text of a schema whose kinds are still to be filled in."""
    text = _HEAD.format(file=_text(data.name), name=_text(data.name.partition(".")[0] or "data"))
    for name in names:
        is_toml_key = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
        text += f"# {name if is_toml_key else _text(name)} = {{number = [LOWER, UPPER]}}\n"
    if not header:
        text += "# The file has no header: list all its columns, in their order.\n"
    text += _TAIL
    settings = {**file, **({} if header else {"header": False})}
    if settings.get("quote", "") is None:
        settings["quote"] = "none"
    if settings:
        texts = {key: json.dumps(value, ensure_ascii=False) for key, value in settings.items()}
        text += "\n[file]\n" + "".join(f"{key} = {line}\n" for key, line in texts.items())
    return text


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
