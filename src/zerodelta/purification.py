"""Convert approximate DP mechanisms to pure DP: claims, spaces, plans (theory T0, B1 to B6).

The most common names (`purify`, `plan`, the claims `ApproxDP` and `GaussianDP`, the
spaces `Ball`, `Box` and `Finite`) are also in `zerodelta` itself.

>>> PureDP(1).log_delta("1/2") < 0
True
"""

from __future__ import annotations

from zerodelta import spaces
from zerodelta.channels.channel import is_purifier
from zerodelta.channels.purification import Plan, plan, purify
from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, GaussianDP, PureDP, calibrate
from zerodelta.privacy.composition import compose
from zerodelta.spaces import *  # noqa: F403

__all__ = [
    *spaces.__all__,
    "RDP",
    "ZCDP",
    "ApproxDP",
    "GaussianDP",
    "Plan",
    "PureDP",
    "calibrate",
    "compose",
    "is_purifier",
    "plan",
    "purify",
]
