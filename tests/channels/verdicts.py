"""Is a channel pure on every base mechanism it accepts? Decided with certainty on small inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from channels.noise_laws import BITS, as_ball
from zerodelta.audit.exact import certainly_impure, certainly_pure, extreme_pairs
from zerodelta.exact.logs import ball

Row = dict[Any, Any]


def rational_below(evaluate: Callable[[], arb]) -> Fraction:
    """A rational below the value, within 2^-200 of it relatively."""
    return _end(evaluate, -1)


def rational_above(evaluate: Callable[[], arb]) -> Fraction:
    """A rational above the value, within 2^-200 of it relatively."""
    return _end(evaluate, 1)


def _end(evaluate: Callable[[], arb], sign: int) -> Fraction:
    with ctx.workprec(256):
        value = evaluate()
        end = value.upper() if sign > 0 else value.lower()
        mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def exp_below(log: float | Fraction) -> Fraction:
    """A rational just below e^log."""
    return rational_below(lambda: ball(log).exp())


def pushed(rows: Sequence[Row], weights: Sequence[Fraction]) -> Row:
    """The output law: Σ_y P(y) T(·|y)."""
    exact = all(isinstance(p, (int, Fraction)) for row in rows for p in row.values())
    outcomes = dict.fromkeys(z for row in rows for z in row)
    used = [(row, w) for row, w in zip(rows, weights, strict=True) if w]
    with ctx.workprec(BITS):
        if exact:
            return {z: sum((w * row.get(z, 0) for row, w in used), Fraction(0)) for z in outcomes}
        parts = [(row, ball(w)) for row, w in used]
        return {z: sum((w * as_ball(row.get(z, 0)) for row, w in parts), arb(0)) for z in outcomes}


def output_pairs(
    rows: Sequence[Row], factor: Fraction, delta: Fraction
) -> Iterator[tuple[Row, Row]]:
    """Yield the output laws of every extreme (ln factor, delta) pair of bases.

    On more than 4 inputs only pairs on two of them are used: T0 says that some pair of that kind is
    a violation if any is. The pairs are symmetric and so are the checks: each is yielded once.
    """
    size = len(rows) if len(rows) <= 4 else 2
    pairs = [(p, q) for p, q in extreme_pairs(size, factor, delta) if p < q]
    for subset in itertools.combinations(rows, size):
        for p, q in pairs:
            yield pushed(subset, p), pushed(subset, q)


def is_pure(rows: Sequence[Row], *, factor: Fraction, delta: Fraction, **bound: Fraction) -> bool:
    """Every extreme base, both directions: certainly pure at `epsilon`, or at ln `epsilon_exp`."""
    return all(certainly_pure(a, b, **bound) for a, b in output_pairs(rows, factor, delta))


def is_broken(rows: Sequence[Row], *, factor: Fraction, delta: Fraction, **bound: Fraction) -> bool:
    """Some extreme base is certainly not pure at `epsilon`, or at ln `epsilon_exp`."""
    return any(certainly_impure(a, b, **bound) for a, b in output_pairs(rows, factor, delta))


def largest_ratio(rows: Sequence[Row]) -> arb:
    """The c of T0: the largest T(z|y)/T(z|y')."""
    with ctx.workprec(BITS):
        largest = arb(1)
        for z in dict.fromkeys(z for row in rows for z in row):
            column = [as_ball(row.get(z, 0)) for row in rows]
            top, bottom = column[0], column[0]
            for p in column[1:]:
                top, bottom = top.max(p), bottom.min(p)
            largest = largest.max(top / bottom)
        return largest


def spare_nats(rows: Sequence[Row], *, epsilon: Fraction, log_delta: float) -> arb:
    """ln of (the largest δ that T0 lets this matrix take)/δ: how far δ is from tight."""
    with ctx.workprec(BITS):
        most = ball(epsilon).expm1() / (largest_ratio(rows) - 1)
        return most.log() - ball(log_delta)
