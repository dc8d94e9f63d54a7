"""`zerodelta prove`: a certificate as a file for Coq, and what Coq says of it."""

from __future__ import annotations

from pathlib import Path

from zerodelta.cli.verify_files import certificate_in
from zerodelta.coq.proof_file import ProofFile, proof_file
from zerodelta.coq.run_coq import missing, run_coq
from zerodelta.errors import CertificateError
from zerodelta.privacy.new_file import write_new
from zerodelta.privacy.readable import equals
from zerodelta.privacy.verify import verify


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
