"""Old ways that are being replaced by `run`: nothing new may use this file, and it will go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zerodelta.data.source import FOREIGN_SOURCE, Rows, Source, is_ours
from zerodelta.data.ticket import Ticket
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.issue import issue
from zerodelta.privacy.step import Status, Step, weakest

__all__ = ["for_source", "issue_for", "opened", "row_count"]

_TICKET = Ticket(None)  # type: ignore[arg-type]


def opened(source: Source | Rows, *, keep: bool = False) -> Rows:
    """Return the rows of a source without a plan."""
    return source if isinstance(source, Rows) else source.open(_TICKET, keep=keep)


def issue_for(
    rows: Any,
    *,
    claim: Claim,
    steps: tuple[Step, ...],
    bits: BitSource,
    public: tuple[str, ...],
    assumed: tuple[str, ...] = (),
    bare_rows: bool = True,
) -> Certificate:
    """Return the certificate of a release that reads these rows; every task issues its own here.

    Rows of a foreign `Source` make it asserted, so no method of a task can forget the premise.
    """
    certificate = issue(
        claim=claim, steps=steps, bits=bits, public=public, assumed=assumed, bare_rows=bare_rows
    )
    return for_source(certificate, rows)


def for_source(certificate: Certificate, rows: Any) -> Certificate:
    """Return the certificate; asserted, with its premise, if rows come from a foreign `Source`.

    For a certificate that was issued elsewhere: a task's own comes from `issue_for`.
    """
    if not isinstance(rows, Source) or is_ours(rows) or FOREIGN_SOURCE in certificate.assumed:
        return certificate
    steps = tuple(
        replace(step, status=weakest([step.status, Status.ASSERTED])) for step in certificate.steps
    )
    assumed = (*certificate.assumed, FOREIGN_SOURCE)
    return replace(certificate.with_steps(steps), assumed=assumed, digest="")


def row_count(source: Source) -> int:
    """Return the number of rows, at least 1; it is public under replace-one."""
    if source.rows < 1:
        raise ParameterError(
            "rows", "empty", expected="at least one row", remedy="pass the rows to be summarized"
        )
    return source.rows
