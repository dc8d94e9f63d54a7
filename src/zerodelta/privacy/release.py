"""A published value with its certificate; it carries nothing else that was computed from data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from zerodelta.exact.noise_law import NoiseLaw, NoisySums
from zerodelta.exact.rational import number_text
from zerodelta.privacy.certificate import Certificate

__all__ = ["Diagnostics", "Release"]

_SHOWN = 1000
"""Arrays of which NumPy would print more are named: it writes out short axes in full."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnostics:
    """Which fractions of the rows were used as they are, clipped to the bounds, and unreadable.

    Noisy: they were paid for with a share of the release's ε. Each is clipped to [0, 1]; all are
    NaN if the noisy number of rows is not positive.
    """

    used: float
    clipped: float
    unreadable: float


@final
@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Release:
    """What may leave the room: the value, its certificate, and a forecast of its error.

    There is no trace of the mixing coin, the draft or any internal answer.

    Parameters
    ----------
    value : object
        The released value.
    certificate : Certificate
        What is claimed of it and why; check it with `zd.verify`.
    error : float or str
        The predicted error, from public inputs (and the released value) only; a text where it
        depends on unseen data.
    noise : NoiseLaw, optional
        The law of the noise on the value, where it is public and simple.
    seconds : float, optional
        Roughly how long the plan expected the run to take, where that may be long: an estimate
        from public numbers, never a measurement.
    diagnostics : Diagnostics, optional
        How the rows were read, if a share of ε was spent on that: ``diagnostics="1/100"``.
    sums : tuple of NoisySums
        Of a table, the noisy integers of which it was made, with their noise laws.
    plan : object, optional
        What was decided before a row was read, such as the shares of ε in a table; print it.

    """

    value: Any
    certificate: Certificate
    error: float | str
    noise: NoiseLaw | None = None
    seconds: float | None = None
    diagnostics: Diagnostics | None = None
    sums: tuple[NoisySums, ...] = ()
    plan: object | None = None

    def __repr__(self) -> str:
        error = self.error if isinstance(self.error, str) else f"{self.error:.4g}"
        read = "" if self.diagnostics is None else f"        {self.diagnostics},\n"
        return (
            f"Release(value={_shown(self.value)},\n"
            f"        expected error: {error},\n{read}"
            f"        {self.certificate.summary})"
        )


def _shown(value: Any) -> str:
    """Return the value as text, large arrays of many axes by their shapes.

    >>> _shown({"a": np.zeros((2,) * 10 + (5,)), "b": 1})
    "{'a': <float64 array of shape (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5)>, 'b': 1}"
    """
    if isinstance(value, np.ndarray) and math.prod(min(6, side) for side in value.shape) > _SHOWN:
        return f"<{value.dtype} array of shape {value.shape}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_shown(part)}" for key, part in value.items()) + "}"
    if type(value) is int:
        return number_text(value)
    try:
        return repr(value)
    except ValueError:  # integers in it that Python does not write in decimal
        return f"<{type(value).__name__}>"
