"""Channels that remove delta, and the plans that choose among them.

Where to look: `channel` (what a purifier is, T0), `mix` (finite spaces, B1), `lattice_mix` (boxes
and balls, B2), `smooth` (the last Gaussian step, S2), `kernel` (smoothing plus mixing, B4),
`transport` (numerical error, N), `wasserstein` (the paper's Algorithms 1 and 2). Which of them is
best: `families`, `search`, `smooth_search` (one candidate each), `options` (all of them), `plan`.

The package shares its name with the function `zd.purify`, so it can be called like it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from zerodelta.purify.plan import purify


class _CallablePackage(ModuleType):
    """Python binds a loaded subpackage over a function of the same name; calling it must work."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return purify(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
