"""Rows as a source, one column as floats, and public inputs that a caller must not forget."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Block
from zerodelta.data.source import FOREIGN_SOURCE, Source, is_ours
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import as_rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.issue import issue
from zerodelta.privacy.step import Status, Step, weakest

__all__ = ["as_bounds", "as_source", "column", "for_source", "issue_for", "needed", "row_count"]

_FARTHEST = 1 << 500


def as_source(rows: Any) -> Source:
    """Return the rows as a source; a series is one column, a list one or a table."""
    return rows if isinstance(rows, Source) else ArraySource(rows)


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


def column(source: Source) -> Block:
    """Return the only column as floats, NaN for what is no number."""
    if len(source.columns) != 1:
        raise ParameterError(
            "columns of rows",
            len(source.columns),
            expected="one column",
            remedy="pass the column of which the answer is asked",
        )
    return np.concatenate([np.zeros(0), *(block[:, 0] for block in source.blocks())])


def needed(value: Any, name: str, remedy: str) -> Any:
    """Return a public input, or say which one is missing and how to give it."""
    if value is None:
        raise ParameterError(
            name, None, expected="a public input (never one read off the rows)", remedy=remedy
        )
    return value


def as_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    """Return (lower, upper) of one column, exactly."""
    given = needed(bounds, "bounds", "pass bounds=(lower, upper), known without the rows")
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ParameterError(
            "bounds", bounds, expected="a pair (lower, upper)", remedy="pass bounds=(0, 100)"
        )
    lower, upper = (as_rational(end, "bounds") for end in given)
    if not lower < upper:
        raise ParameterError(
            "bounds", bounds, expected="lower < upper", remedy="pass the smaller end first"
        )
    if max(-lower, upper) > _FARTHEST:
        raise ParameterError(
            "bounds",
            bounds,
            expected="ends of at most 2^500 in magnitude",
            remedy="rescale the column, so that floats can hold its sums",
        )
    return lower, upper
