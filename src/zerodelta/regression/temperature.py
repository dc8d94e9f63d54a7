"""By how much the scores of a private classifier are divided before they become probabilities.

Scores are log-odds plus noise, and where noise dominates, probabilities made of them are worse than
equal ones. The divisor is a function of public numbers, so that it costs no privacy, and the same
for all classes, so that it changes no prediction.
"""

from __future__ import annotations

import math

__all__ = ["temperature"]

_ENOUGH = 20.0
"""`informed` from which the forecast of the noise is taken as it is."""


def temperature(*, noise: float, informed: float) -> float:
    """Return what scores are divided by: at least 1.

    `noise` is the variance that noise is expected to give to the log-odds of two classes, and
    `informed` the path of θ from 0 along the mean gradient over the variance of the noise of a
    coordinate: n/Λ over that variance for noise in an objective, the sum of all steps over it for a
    descent. Where log-odds are known up to a variance V, their mean probability is that of
    log-odds/√(1 + πV/8); where the rows say little, they count as noise too. Half of the root
    is least harmful: penalty and margin have shrunk the scores already
    (`bench/defaults_classifiers.py` prints log losses with and without).

    >>> temperature(noise=0.5, informed=100), round(temperature(noise=15, informed=2.5), 1)
    (1.0, 9.7)
    """
    weak = max(1.0, _ENOUGH / max(informed, 1e-9))
    return max(1.0, math.sqrt(1 + math.pi / 8 * noise * weak**2) / 2)
