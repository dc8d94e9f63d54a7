"""Issue a certificate: verified before it is handed out, and branded if the bits were replayed."""

from __future__ import annotations

from dataclasses import replace

from zerodelta.exact.bits import BitSource, is_private
from zerodelta.privacy.assumptions import BARE_ROWS
from zerodelta.privacy.certificate import REPLAYED, Certificate
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.step import Part, Step
from zerodelta.privacy.verify import check_parts
from zerodelta.privacy.work import check_work

__all__ = ["BARE_ROWS", "issue"]


def issue(
    *,
    claim: Claim,
    steps: tuple[Step, ...] | None = None,
    parts: tuple[Part, ...] = (),
    bits: BitSource,
    unit: str | None = None,
    row: str = "one row of the data",
    public: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
    bare_rows: bool = True,
) -> Certificate:
    """Return the certificate of a release drawn from `bits`, from public numbers only.

    A chain that does not prove its claim raises `CertificateError` here, before anything is drawn.
    Pass `steps` for a proof of one part, `parts` for several pure ones that add up. `unit` names
    who is protected if it is not a row. `bare_rows`: the release reads rows that came as an array,
    a list or a frame; False where it is given no rows, only a value.
    """
    certificate = Certificate(
        claim=claim,
        steps=steps,
        parts=parts,
        unit=None if unit is None else _line(unit),
        row=_line(row),
        public=tuple(map(_line, public)),
        assumed=tuple(map(_line, (*assumed, *([BARE_ROWS] if bare_rows else [])))),
    )
    body = certificate.body()
    check_work(body["claim"], body["parts"])
    check_parts(certificate)  # a test reads what is issued back from its JSON
    if is_private(bits):
        return certificate
    return replace(certificate, randomness=REPLAYED, digest="")


def _line(text: str) -> str:
    """Return the text on one line, as a certificate is read: a long repr may have several."""
    joined = " ".join(text.split())
    if joined.isprintable():
        return joined
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)
