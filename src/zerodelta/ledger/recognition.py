"""Keyed hashes of files, by which their owner recognizes the data.

They depend on every row, so they are in no entry, record or export: whoever knows the key could try
out guesses of rows.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from zerodelta.errors import require

__all__ = ["mac_of"]


def mac_of(path: str | os.PathLike[str], key: bytes) -> str:
    """Return the HMAC-SHA256 of a file."""
    require(
        type(key) is bytes and len(key) >= 16,
        "key",
        expected="a secret of at least 16 bytes",
        remedy="keep secrets.token_bytes(32) somewhere safe, and pass it",
    )
    made = hmac.new(key, digestmod=hashlib.sha256)
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            made.update(block)
    return made.hexdigest()
