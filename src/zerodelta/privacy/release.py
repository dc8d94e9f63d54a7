"""A published value with its certificate; it carries nothing else that was computed from data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from zerodelta.privacy.certificate import Certificate

__all__ = ["Release"]


@final
@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Release:
    """What may leave the room: the value, its certificate, and a forecast of its error.

    `error` is computed from public inputs (and the released value) only. There is no trace of the
    mixing coin, the draft or any hidden answer.
    """

    value: Any
    certificate: Certificate
    error: float | str

    def __repr__(self) -> str:
        error = self.error if isinstance(self.error, str) else f"{self.error:.4g}"
        return (
            f"Release(value={self.value!r},\n"
            f"        expected error: {error},\n"
            f"        {self.certificate.summary})"
        )
