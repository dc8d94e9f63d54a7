"""One release, in a module that another process imports quickly."""

from __future__ import annotations

import numpy as np

import zerodelta as zd

ROWS = np.arange(4000.0).reshape(1000, 4) % 100


def released(_: int = 0) -> bytes:
    """Return four means; two such are equal by chance with a probability below 2^-70."""
    value: bytes = zd.mean(ROWS, bounds=(0, 100), epsilon=1).value.tobytes()
    return value
