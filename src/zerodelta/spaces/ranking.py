"""Numbering of subsets by the combinatorial number system, exactly and without enumeration.

The subset c_1 < ... < c_k has number Σ_i C(c_i, i): a bijection onto 0..C(d, k)-1 in which
{0, ..., k-1} is number 0. Multisets are subsets by stars and bars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_NEWTON_STEPS = 6
"""Newton usually ends in two; after this many the interval is halved, which cannot fail."""

_NEWTON_LIMIT = 1 << 200
"""Beyond it floats might overflow."""


def rank(subset: Sequence[int]) -> int:
    """Return the number of an increasing sequence of integers >= 0.

    >>> rank([0, 1, 2]), rank([0, 1, 3]), rank([2, 3, 4])
    (0, 1, 9)
    """
    return sum(math.comb(item, place) for place, item in enumerate(subset, 1))


def unrank(number: int, *, of: int, size: int) -> list[int]:
    """Return the increasing sequence below `of` of length `size` with this number.

    >>> unrank(9, of=5, size=3)
    [2, 3, 4]
    """
    items = []
    limit = of
    for place in range(size, 0, -1):
        limit, value = _largest(number, place, limit)
        items.append(limit)
        number -= value
    return items[::-1]


def _largest(number: int, place: int, limit: int) -> tuple[int, int]:
    """Return the largest c below `limit` with C(c, place) <= number, and that binomial.

    C(limit, place) must exceed `number`. Floats only propose where to look next.
    """
    low, high = place - 1, limit  # C(low) = 0 <= number < C(high)
    guess = _first_guess(number, place)
    steps = 0
    while high - low > 1:
        middle = min(max(guess, low + 1), high - 1)
        value = math.comb(middle, place)
        if value <= number:
            if value * (middle + 1) > number * (middle + 1 - place):  # C(middle + 1) > number
                return middle, value
            low = middle
        else:
            high = middle
        steps += 1
        if steps < _NEWTON_STEPS and number > 0 and limit < _NEWTON_LIMIT:
            slope = -math.log1p(-place / (middle + 0.5))  # of ln C at middle
            guess = middle + round((math.log(number) - math.log(value)) / slope)
        else:
            guess = (low + high) // 2
    return low, math.comb(low, place)


def _first_guess(number: int, place: int) -> int:
    """Solve (c - (k-1)/2)^k / k! = number in floats."""
    log = (math.log(number) + math.lgamma(place + 1)) / place if number else 0.0
    return int(math.exp(min(log, 700.0))) + (place - 1) // 2
