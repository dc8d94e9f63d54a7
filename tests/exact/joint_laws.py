"""The joint exponential law of several points by its definition (theory Q)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from zerodelta.audit.exact import ExpRational, exponential_mechanism_law

Points = tuple[int, ...]


def ranks_of(rows: Sequence[int], points: int) -> list[int]:
    """F(o), the number of rows up to each point."""
    return [sum(row <= point for row in rows) for point in range(points)]


def distances(ranks: Sequence[int], rows: int, gaps: Sequence[Fraction]) -> dict[Points, Fraction]:
    """Σ_j |F(o_j) - F(o_(j-1)) - gap_j| of every rising sequence."""
    found = {}
    for chosen in itertools.combinations_with_replacement(range(len(ranks)), len(gaps) - 1):
        path = [0, *(ranks[point] for point in chosen), rows]
        steps = zip(path, path[1:], gaps, strict=False)
        found[chosen] = sum(
            (abs(after - before - gap) for before, after, gap in steps), Fraction(0)
        )
    return found


def joint_law(
    rows: Sequence[int], points: int, gaps: Sequence[Fraction], rate: Fraction
) -> dict[Points, ExpRational]:
    """The law: P(o) ∝ e^(-rate · distance)."""
    away = distances(ranks_of(rows, points), len(rows), gaps)
    law = exponential_mechanism_law([-distance for distance in away.values()], scale=1 / rate)
    return dict(zip(away, (law[i] for i in range(len(away))), strict=True))


def paths(count: int, places: int) -> Iterator[Points]:
    """All rising sequences of ranks 0..count."""
    return itertools.combinations_with_replacement(range(count + 1), places)
