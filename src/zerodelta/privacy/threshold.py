"""Where a certified bound crosses its target, found from the safe side.

Only points at which the bound itself was evaluated and met the target are ever returned, so a
search that converges badly costs accuracy and never privacy.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable


def excess_over(value: float, target: float) -> float:
    """Return value - target without the NaN of equal infinities; at most 0 means "met".

    >>> excess_over(-math.inf, -math.inf), excess_over(-2.0, -3.0)
    (0.0, 1.0)
    """
    return 0.0 if value == target else value - target


def safe_end(
    excess: Callable[[float], float], *, safe: float, unsafe: float, relative: float = 0.0
) -> float:
    """Return a float with ``excess <= 0`` within `relative` of one with ``excess > 0``.

    `safe` and `unsafe` are non-negative floats on the two sides of the crossing, in either order;
    with ``relative=0`` the result and the nearest unsafe point are adjacent floats.

    >>> safe_end(lambda x: 2 - x * x, safe=2.0, unsafe=0.0)
    1.4142135623730951
    """
    at_safe, at_unsafe = excess(safe), excess(unsafe)
    if at_safe > 0:
        raise ValueError(f"excess({safe!r}) = {at_safe!r} is not on the safe side")
    slow = False
    while not _near(safe, unsafe, relative):
        width = abs(unsafe - safe)
        trial = _middle(safe, unsafe) if slow else _secant(safe, at_safe, unsafe, at_unsafe)
        value = excess(trial)
        # Illinois: the end that stays is weighed down, so that the other one moves next
        if value <= 0:
            safe, at_safe, at_unsafe = trial, value, at_unsafe / 2
        else:
            unsafe, at_unsafe, at_safe = trial, value, at_safe / 2
        slow = not slow and abs(unsafe - safe) > width / 4
    return safe


def _near(safe: float, unsafe: float, relative: float) -> bool:
    adjacent = math.nextafter(safe, unsafe)
    return adjacent == unsafe or abs(unsafe - safe) <= relative * max(safe, unsafe)


def _secant(safe: float, at_safe: float, unsafe: float, at_unsafe: float) -> float:
    """Return where the chord crosses zero, or the middle where there is no chord."""
    rise = at_unsafe - at_safe
    if math.isfinite(rise) and math.isfinite(unsafe) and rise > 0:
        trial = safe - at_safe * ((unsafe - safe) / rise)
        if min(safe, unsafe) < trial < max(safe, unsafe):
            return trial
    return _middle(safe, unsafe)


def _middle(one: float, other: float) -> float:
    """Halve the number of floats between the two: 64 halvings end any search."""
    middle: float = struct.unpack("<d", struct.pack("<q", (_ordinal(one) + _ordinal(other)) // 2))[
        0
    ]
    return middle


def _ordinal(value: float) -> int:
    ordinal: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return ordinal
