"""Instances of every space: small and large ones, and the elements of some that are listed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

from zerodelta.spaces import Ball, Box, Finite, FiniteSpace, Multiset, Space, Subsets, WithExtra

SPACES: list[Space] = [
    Finite(1),
    Finite(16),
    Finite(10**30),
    Finite(["a", "b", 3, 2.5, None, (1, ("x", True)), math.inf]),
    Finite([False, True]),
    Subsets(of=7, size=3),
    Subsets(of=5, size=5),
    Subsets(of=10**3, size=3),
    Multiset(4, 3),
    Multiset(["x", "y"], 2),
    Multiset(2**40, 5),
    WithExtra(Finite(16), "none"),
    WithExtra(Finite(["a", 2.5]), None),
    WithExtra(Subsets(of=5, size=2), (1, "x")),
    Box(0, 1),
    Box("1/3", 1, dimension=2),
    Box([-1, 1e-200], ["1e100", 2e-150]),
    *(Ball(2, 1, norm=norm) for norm in (1, 2, math.inf)),
    *(Ball(1, "1/7", norm=norm, center=3) for norm in (1, 2, math.inf)),
    *(Ball(2, 2, norm=norm, center=[1e100, "1/3"]) for norm in (1, 2, math.inf)),
    *(Ball(2, "1e-150", norm=norm) for norm in (1, 2, math.inf)),
]

LARGE: list[FiniteSpace] = [
    Subsets(of=10**6, size=300),
    Subsets(of=2000, size=1000),
    Multiset(2**40, 300),
]
"""Only some of their elements are tried."""


def enumerated() -> Iterable[tuple[FiniteSpace, set[Any]]]:
    """Yield small finite spaces, each with its elements."""
    yield Finite(7), set(range(7))
    yield Finite(["b", "a", 3]), {"b", "a", 3}
    for of in range(1, 8):
        for size in range(1, of + 1):
            yield Subsets(of=of, size=size), set(itertools.combinations(range(of), size))
    for universe in range(1, 6):
        for size in range(1, 6):
            items = itertools.combinations_with_replacement(range(universe), size)
            yield Multiset(universe, size), set(items)
    words = ["z", "y", "x"]
    yield Multiset(words, 2), set(itertools.combinations_with_replacement(words, 2))
    yield WithExtra(Finite(3), "none"), {0, 1, 2, "none"}
    yield WithExtra(Subsets(of=3, size=2), None), {(0, 1), (0, 2), (1, 2), None}
