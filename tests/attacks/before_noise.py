"""A sum as it is before its noise: what the sensitivity speaks of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.mechanisms.sum_noise import KNorm


def total_before_noise(rows: Any, *columns: str, **options: Any) -> tuple[Fraction, Fraction]:
    """Return the total of one column, and the scale of the noise for it, in the column's units."""
    seen: list[Any] = []

    def spy(self: Any, sums: Any, _: Any) -> Any:
        seen.append((self.scale, int(np.asarray(sums, dtype=object).ravel()[0])))
        return sums

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KNorm, "apply", spy)
        release = zd.sum(rows, *columns, epsilon=1, **options)
    assert release.noise is not None
    unit = release.noise.unit
    assert isinstance(unit, Fraction)
    ((scale, total),) = seen
    return total * unit, scale * unit
