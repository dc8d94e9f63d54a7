"""All extreme pairs of output laws that (ε, δ)-DP allows on a few outcomes.

The pairs (P, P') on N outcomes with P(S) <= e^ε P'(S) + δ and P'(S) <= e^ε P(S) + δ for all sets S
form a polytope. A bound on a quantity that is quasi-convex in the pair (the likelihood ratio after
any channel is) holds for every pair if it holds at the vertices, which are enumerated here exactly
(double description method, in rationals).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_count, as_rational

Pmf: TypeAlias = tuple[Fraction, ...]
"""Probabilities of the outcomes 0, 1, …, N-1."""


def extreme_pairs(size: int, epsilon_exp: Rational, delta: Rational) -> tuple[tuple[Pmf, Pmf], ...]:
    """Return every vertex (P, P') of the (ε, δ)-DP pairs on `size` outcomes, e^ε rational.

    The set is symmetric, so both directions are in it. Size 4 takes a fifth of a second.

    >>> len(extreme_pairs(2, 2, "1/10"))
    8
    """
    size = as_count(size, "size", minimum=1)
    factor, slack = as_rational(epsilon_exp, "epsilon_exp"), as_rational(delta, "delta")
    if factor < 1:
        raise ParameterError(
            "epsilon_exp", epsilon_exp, expected="at least 1", remedy="pass e^ε, not ε"
        )
    if not 0 <= slack <= 1:
        raise ParameterError("delta", delta, expected="from 0 to 1", remedy="pass δ itself")
    return _enumerate(size, factor, slack)


@dataclass(frozen=True, slots=True)
class _Vertex:
    point: Pmf
    """P, then P'."""
    tight: int
    """Bit i is set if the inequality number i holds with equality."""


@cache
def _enumerate(size: int, factor: Fraction, slack: Fraction) -> tuple[tuple[Pmf, Pmf], ...]:
    vertices = list(_product_of_simplices(size))
    count = 2 * size
    for direction in (0, size):
        for length in range(1, size):
            for outcomes in itertools.combinations(range(size), length):
                normal = [Fraction(0)] * (2 * size)
                for outcome in outcomes:
                    normal[direction + outcome] = Fraction(1)
                    normal[size - direction + outcome] = -factor
                vertices = _cut(vertices, tuple(normal), slack, count)
                count += 1
    return tuple(sorted((vertex.point[:size], vertex.point[size:]) for vertex in vertices))


def _product_of_simplices(size: int) -> Iterator[_Vertex]:
    """Yield all pairs of point masses; the first inequalities are the 2N nonnegativities."""
    for mass, other in itertools.product(range(size), repeat=2):
        point = [Fraction(0)] * (2 * size)
        point[mass] = point[size + other] = Fraction(1)
        yield _Vertex(tuple(point), sum(1 << i for i, value in enumerate(point) if value == 0))


def _cut(vertices: list[_Vertex], normal: Pmf, bound: Fraction, number: int) -> list[_Vertex]:
    """Intersect a polytope with normal·x <= bound: keep vertices, cut the edges that cross."""
    kept: list[_Vertex] = []
    inside: list[tuple[_Vertex, Fraction]] = []
    outside: list[tuple[_Vertex, Fraction]] = []
    for vertex in vertices:
        excess = sum((a * x for a, x in zip(normal, vertex.point, strict=True)), -bound)
        if excess > 0:
            outside.append((vertex, excess))
        elif excess < 0:
            inside.append((vertex, excess))
            kept.append(vertex)
        else:
            kept.append(_Vertex(vertex.point, vertex.tight | 1 << number))
    masks = [vertex.tight for vertex in vertices]
    for (inner, below), (outer, above) in itertools.product(inside, outside):
        shared = inner.tight & outer.tight
        # an edge: no third vertex lies on all the facets that the two have in common
        if sum(1 for mask in masks if mask & shared == shared) == 2:
            share = below / (below - above)
            point = tuple(
                x + share * (y - x) for x, y in zip(inner.point, outer.point, strict=True)
            )
            kept.append(_Vertex(point, shared | 1 << number))
    return kept
