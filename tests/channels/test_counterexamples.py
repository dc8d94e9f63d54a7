"""Literal readings of the paper that fail (docs/errata.md), and ours, which hold."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx

from channels.cases import algorithm_one
from channels.channel_laws import body_of, mixed, row, rows_of
from channels.noise_laws import BITS, as_ball, laplace_cdf
from channels.verdicts import exp_below, is_broken, is_pure, pushed
from zerodelta.audit.exact import (
    ExpRational,
    certainly_impure,
    certainly_pure,
    datasets,
    neighbors,
    worst_ratio,
)
from zerodelta.channels.mixes import FiniteMix, GridMix
from zerodelta.errors import ZeroDeltaError
from zerodelta.exact.logs import ball
from zerodelta.paper.convex_sets import ConvexSet
from zerodelta.privacy.claims import ApproxDP
from zerodelta.spaces import Box, Finite

F = Fraction

# --- A5: mode release, the bottom symbol ---------------------------------------------------------

UNIVERSE, EPSILON, WEIGHT = (0, 1, 2), F(1), F(1, 20)
BOTTOM = len(UNIVERSE)


def mode_release(rows: tuple[int, ...], log_delta: Fraction) -> dict[int, ExpRational]:
    """The mode if ⌈gap/2⌉ - 1 + Laplace(1/ε) > ln(1/δ)/ε, else bottom: (ε, δ/2)-DP (theory A5)."""
    counts = [rows.count(x) for x in UNIVERSE]
    first, second = sorted(counts, reverse=True)[:2]
    distance = -(-(first - second) // 2)
    threshold = -log_delta / EPSILON - (distance - 1)
    passing: ExpRational = 1 - laplace_cdf(threshold, 1 / EPSILON)
    return {counts.index(first): passing, BOTTOM: 1 - passing}


def mode_laws(log_delta: Fraction, channel: Any) -> dict[tuple[int, ...], dict[int, Any]]:
    return {
        rows: channel(mode_release(rows, log_delta))
        for n in (2, 3)
        for rows in datasets(UNIVERSE, n)
    }


def answer_in_the_clear(law: dict[int, ExpRational]) -> dict[int, Any]:
    """Bottom is returned as it is; only real answers are mixed with a uniform one."""
    passing = 1 - law[BOTTOM]
    real = {x: p for x, p in law.items() if x != BOTTOM}
    uniform = {x: passing / len(UNIVERSE) for x in UNIVERSE}
    return {**mixed(real, uniform, WEIGHT), BOTTOM: law[BOTTOM]}


def test_bottom_in_the_clear_loses_five_instead_of_one() -> None:
    """The loss is ε + ln(1 + (1-w)|X|/w) = 5.06 whatever δ is; ours has bottom in the alphabet."""
    purifier = FiniteMix(space=Finite(BOTTOM + 1), mixing_weight=WEIGHT)
    log_delta = F(math.floor(purifier.log_delta_required(EPSILON)))  # of δ, so δ/2 is less still
    laws = mode_laws(log_delta, answer_in_the_clear)
    pairs = list(neighbors(laws))
    worst = worst_ratio(laws, pairs)
    assert float(worst.log_ratio) == pytest.approx(1 + math.log(1 + 0.95 * 3 / 0.05), rel=1e-12)
    assert float(worst.log_ratio) == pytest.approx(5.06, abs=0.005)
    assert certainly_impure(laws[worst.pair[0]], laws[worst.pair[1]], 5)

    uniform = dict.fromkeys(range(BOTTOM + 1), F(1, BOTTOM + 1))
    ours = mode_laws(log_delta, lambda law: mixed(law, uniform, purifier.mixing_weight))
    assert purifier.proves(EPSILON, ApproxDP(EPSILON, float(log_delta)))
    assert all(certainly_pure(ours[a], ours[b], EPSILON) for a, b in pairs)


# --- A1b, A7: no projection before Algorithm 1 ---------------------------------------------------


def two_laplace_density(x: Fraction, first: Fraction, second: Fraction) -> arb:
    """The density of Laplace(first) + Laplace(second): (a e^(-|x|/a) - b e^(-|x|/b))/2(a²-b²)."""
    near, far = (ball(-abs(x) / scale).exp() * ball(scale) for scale in (first, second))
    return (near - far) / (2 * ball(first**2 - second**2))


def test_ptr_without_projection_loses_eighty() -> None:
    """Θ = [0,1], ε = ε' = 1, β = 0.01, q = 0.9 or 0.1, δ = 1e-6, w = 0.01: log-ratio 80 at 1.1."""
    delta, w, beta, point = F(1, 10**6), F(1, 100), F(1, 100), F(11, 10)
    scale = 2 * 2 * (delta / (2 * w))  # Lap(2Δ/ε') with the paper's Δ = 2R(δ/2w) at R = 1

    def density(query: Fraction) -> arb:
        passing = ball(delta / 2)
        answered = two_laplace_density(point - query, beta, scale)
        smear = (  # Uniform[0,1] + Laplace at the point, by the cdf of the noise
            laplace_cdf(point, scale) - laplace_cdf(point - 1, scale)
        )
        rest = ball(w) + ball(1 - w) * (1 - passing)
        return ball(1 - w) * passing * answered + rest * as_ball(smear)

    with ctx.workprec(2048):
        loss = (density(F(9, 10)) / density(F(1, 10))).log()
    assert float(loss) == pytest.approx(80, abs=1e-6)
    assert loss > 3  # what was promised: 2ε + ε'


def test_ptr_projected_onto_the_space_first_is_pure() -> None:
    """The same release by `AlgorithmOne`: answers out of range and bottom are mapped inside."""
    delta, w, beta, cells = F(1, 10**6), F(1, 100), F(1, 100), 21
    body = body_of(Box(0, 1).grid(cells))
    base = F(2)
    purifier = algorithm_one(body, base=base, extra=F(1), log_delta=-math.log(2e6) + 1e-9, weight=w)
    assert purifier.proves(3, ApproxDP(base, delta=delta / 2))
    values = [[(k + 0.5) / cells] for k in range(cells)]
    rows = [row(purifier, value) for value in values]

    def base_law(query: Fraction) -> list[Fraction]:
        """δ/2 of q + Laplace(β), quantized (the ends take what lies outside); else the middle."""
        with ctx.workprec(BITS):
            steps = [as_ball(laplace_cdf(F(k, cells) - query, beta)) for k in range(1, cells)]
        ends = [F(0), *(_rational(step) for step in steps), F(1)]
        law = [(b - a) * delta / 2 for a, b in itertools.pairwise(ends)]
        law[cells // 2] += 1 - delta / 2  # bottom is None, which is projected to the center
        return law

    assert body.centered(None).tolist() == [0]
    assert body.centered([7.5]).tolist() == [cells // 2]
    p, q = (pushed(rows, base_law(query)) for query in (F(9, 10), F(1, 10)))
    assert certainly_pure(p, q, 3)


def _rational(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


# --- A1c: an underflowed delta is no noise -------------------------------------------------------


def test_an_underflowed_delta_means_no_noise_and_unbounded_loss() -> None:
    log_delta, weight = -800.0, F(1, 10**340)
    underflowed = math.exp(log_delta)
    assert 2.0 * underflowed / float(F(1, 10)) == 0.0  # the paper's scale, formed in floats
    # (1-w) M + w Uniform with no noise: a value that only D can give has an atom
    atom = exp_below(log_delta) * (1 - weight)
    assert certainly_impure({"y": atom, "else": 1 - atom}, {"else": F(1)}, 10**6)
    with pytest.raises(ZeroDeltaError, match="delta"):
        ApproxDP(1, delta=underflowed)

    body = body_of(Box(0, 1).grid(3))
    purifier = algorithm_one(body, base=F(1), extra=F(1), log_delta=log_delta, weight=weight)
    assert purifier.scale > F(1, 10**9)
    assert purifier.proves(2, ApproxDP(1, log_delta))
    with ctx.workprec(4096):
        assert is_pure(
            rows_of(purifier), factor=exp_below(F(1)), delta=exp_below(log_delta), epsilon=F(2)
        )


# --- A12: Appendix D as printed ------------------------------------------------------------------


def appendix_d_cells(dimension: int, delta: Fraction, weight: Fraction) -> int:
    """K = 2⌊R/Δ⌋ with Δ = 2R (δ/2w)^(1/d) log d, as printed."""
    with ctx.workprec(256):
        root = (ball(delta / (2 * weight)).log() / dimension).exp()
        half = 1 / (2 * root * ball(dimension).log())
        return 2 * int(float(half.floor().mid()))


@pytest.mark.parametrize(("dimension", "printed"), [(2, 1.63), (3, 0.91)])
def test_appendix_d_as_printed_does_not_give_twice_epsilon(dimension: int, printed: float) -> None:
    """B1's exact worst case: ln(1 + (1-w) δ N/w) instead of 2ε = 0.2; ours gives ε itself."""
    epsilon, delta, weight = F(1, 10), F(1, 10**16), F(1, 100)
    cells = appendix_d_cells(dimension, delta, weight)
    count = cells**dimension
    kept, floor = (1 - weight) * delta, weight / count
    p = {"seen": kept + floor, "rest": 1 - kept - floor}
    q = {"seen": floor, "rest": 1 - floor}
    assert certainly_impure(p, q, 2 * epsilon)
    loss = math.log(p["seen"] / q["seen"])
    assert loss == pytest.approx(printed, abs=0.01)
    exact = math.log1p(0.99 * 2 / math.log(dimension) ** dimension)
    assert loss == pytest.approx(exact, abs=1e-3)

    box, claim = Box(0, 1, dimension=dimension), ApproxDP(epsilon, delta=delta)
    assert not GridMix(lattice=box.grid(cells), mixing_weight=weight).proves(2 * epsilon, claim)
    odds = float(weight / (1 - weight) / delta)
    ours = math.floor((odds * math.expm1(epsilon)) ** (1 / dimension))
    finest = GridMix(lattice=box.grid(ours), mixing_weight=weight)
    assert finest.proves(epsilon, claim)
    assert not GridMix(lattice=box.grid(ours + 1), mixing_weight=weight).proves(epsilon, claim)
    for size, verdict in ((ours, certainly_pure), (ours + 1, certainly_impure)):
        floor = weight / size**dimension
        assert verdict({0: kept + floor}, {0: floor}, epsilon)


# --- A2: the volume formula ----------------------------------------------------------------------


def printed_volume(norm: int, dimension: int) -> float:
    """2^d/Γ(1+d/q) · Π Γ(1+1/q)/Γ(1+i/q), as printed."""
    value = 2.0**dimension / math.gamma(1 + dimension / norm)
    for i in range(1, dimension + 1):
        value *= math.gamma(1 + 1 / norm) / math.gamma(1 + i / norm)
    return value


@pytest.mark.parametrize(
    ("norm", "dimension", "printed", "true"),
    [(2, 1, 2.257, 2.0), (2, 2, 3.545, math.pi), (1, 3, 0.111, 4 / 3)],
)
def test_the_printed_volume_is_wrong_and_ours_is_right(
    norm: int, dimension: int, printed: float, true: float
) -> None:
    assert printed_volume(norm, dimension) == pytest.approx(printed, abs=5e-4)
    unit = ConvexSet(dimension=dimension, inner_radius=1, diameter=2, norm=norm)
    assert math.exp(float(unit._log_unit())) == pytest.approx(true, rel=1e-12)
    assert abs(printed_volume(norm, dimension) - true) > 0.1


def test_theorem_w_has_no_slack_for_the_printed_volume() -> None:
    """d = 1, q = 2: the printed volume is 13 % too large, so the radius would be 11 % too small.

    The paper's own lemma has room for that. A base with ε = 0 and a small ε', where Theorem W is
    within 6 % of tight, has not.
    """
    extra, log_delta = F(1, 10), -8.0
    purifier = algorithm_one(
        body_of(Box(0, 1).grid(3)), base=F(0), extra=extra, log_delta=log_delta
    )
    claim = {"factor": F(1), "delta": exp_below(log_delta), "epsilon": extra}
    assert is_pure(rows_of(purifier), **claim)
    shrunk = replace(purifier, scale=purifier.scale * F(2 / printed_volume(2, 1)))
    assert is_broken(rows_of(shrunk), **claim)
