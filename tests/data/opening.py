"""Rows for tests: opened by a ticket of a certificate that nobody releases."""

from __future__ import annotations

from typing import Any

from zerodelta.data.rows import Rows
from zerodelta.data.source import Source, Ticket

TICKET = Ticket(None)  # type: ignore[arg-type]


def opened(source: Source, **options: Any) -> Rows:
    """Return the rows of a source without a release."""
    return source.open(TICKET, **options)
