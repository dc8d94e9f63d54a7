"""Issue a certificate: verified before it is handed out, and branded if the bits were replayed."""

from __future__ import annotations

from dataclasses import replace

from zerodelta.exact.bits import BitSource, is_private
from zerodelta.privacy.certificate import REPLAYED, Certificate
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.step import Step
from zerodelta.privacy.verify import verify

__all__ = ["issue"]


def issue(
    *,
    claim: Claim,
    steps: tuple[Step, ...],
    bits: BitSource,
    row: str = "one row of the data",
    public: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
) -> Certificate:
    """Return the certificate of a release drawn from `bits`, from public numbers only.

    A chain that does not prove its claim raises `CertificateError` here, before anything is drawn.
    """
    certificate = Certificate(claim=claim, steps=steps, row=row, public=public, assumed=assumed)
    verify(certificate)
    if is_private(bits):
        return certificate
    return replace(certificate, randomness=REPLAYED, digest="")
