"""`zerodelta verify`: judge certificates from their files, without the code that made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from zerodelta.errors import CertificateError
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.json_text import LARGEST_TEXT, read_json
from zerodelta.privacy.verify import verify

__all__ = ["MEANING", "certificate_text", "report"]

MEANING = (
    "Verified means: the steps prove the claim. It does not mean that these steps were run, and "
    "nobody has signed them."
)


def report(path: Path, *, explain: bool) -> tuple[bool, str]:
    """Return whether the file's certificate verifies, and what to tell about it."""
    try:
        certificate = Certificate.from_json(certificate_text(path))
        verify(certificate)
    except CertificateError as error:
        return False, str(error)
    return True, certificate.explain() if explain else certificate.summary


def certificate_text(path: Path) -> str:
    """Return the certificate in a file: all of it, or what it keeps under "certificate"."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise CertificateError(f"the file has more than {LARGEST_TEXT} bytes.")
        text = content.decode("utf-8")
        data: Any = read_json(text, floats=True)
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"the file cannot be read as JSON: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(data, dict) or "certificate" not in data:
        return text
    inner = data["certificate"]
    return inner if isinstance(inner, str) else json.dumps(inner)
