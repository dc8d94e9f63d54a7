"""Every channel, on every extreme base it accepts, both directions: pure, without tolerance.

The bases are all vertices of the (ε, δ)-DP pairs on the channel's inputs, with δ the largest that
the channel accepts. The channel's matrix is computed from its public numbers (`channel_laws`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.cases import BODIES, EPSILONS, MIXING, W, algorithm_one, algorithm_two
from channels.channel_laws import body_of, row, rows_of, values_of
from channels.noise_laws import BITS, disc_noise_density, disc_uniform_density
from channels.verdicts import exp_below, is_broken, is_pure, pushed, rational_above, spare_nats
from zerodelta.audit.exact import certainly_impure, certainly_pure, extreme_pairs, hockey_stick
from zerodelta.channels.channel import Mixing
from zerodelta.channels.kernels import KernelMix
from zerodelta.channels.mixes import (
    FiniteMix,
    GaussianMix,
    GridMix,
    LaplaceMix,
    LocalUniformMix,
    PriorMix,
    ProfileMix,
)
from zerodelta.errors import ZeroDeltaError
from zerodelta.exact.logs import ball, to_float_up
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.theorems.mixing import UniformMixing, smallest_weight
from zerodelta.privacy.verify import proves_epsilon
from zerodelta.spaces import Ball, Box, Finite

F = Fraction
HAIR = F(1, 10**12)


# --- (ε, δ) in, pure ε out -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("name", MIXING)
def test_every_accepted_base_becomes_pure(name: str, epsilon: Fraction) -> None:
    purifier = MIXING[name]
    log_delta = min(purifier.log_delta_required(epsilon), 0.0)  # some take any base whatever
    assert purifier.proves(epsilon, ApproxDP(epsilon, log_delta))
    assert is_pure(
        rows_of(purifier),
        factor=exp_below(epsilon),
        delta=exp_below(log_delta) if log_delta else F(1),
        epsilon=epsilon,
    )


@pytest.mark.parametrize("name", MIXING)
def test_a_larger_delta_is_refused(name: str) -> None:
    purifier = MIXING[name]
    above = math.nextafter(purifier.log_delta_required(1), math.inf)
    assert not purifier.proves(1, ApproxDP(1, above))
    assert purifier.epsilon(ApproxDP(1, above)) > 1


@pytest.mark.parametrize("name", MIXING)
def test_any_object_has_the_row_of_an_element(name: str) -> None:
    """Nothing handed in leads to a law that the enumeration does not know."""
    purifier = MIXING[name]
    known = [{z: str(p) for z, p in law.items()} for law in rows_of(purifier)]
    for junk in (
        math.nan,
        math.inf,
        None,
        "no",
        [1e300],
        [-99.0, 99.0],
        [math.nan, 0.0],
        -7,
        10**9,
    ):
        law = row(purifier, np.array(junk) if isinstance(junk, list) else junk)
        assert {z: str(p) for z, p in law.items()} in known


def spare(purifier: Mixing, epsilon: Fraction) -> arb:
    log_delta = purifier.log_delta_required(epsilon)
    return spare_nats(rows_of(purifier), epsilon=epsilon, log_delta=log_delta)


def exact_spare(purifier: Mixing) -> arb | None:
    """By how many nats theory's mass ratio exceeds what T0 needs; None where there is no formula.

    B1, B2, kernels: nothing. Laplace nets: P(k) against P(0)e^(-|k|/b) on an axis. Laplace noise
    in a cube: the far corner's own mass at the near corner; Theorem K in d = 1: one nat more.
    """
    if isinstance(purifier, (FiniteMix, PriorMix, GridMix, LocalUniformMix)):
        return arb(0)
    if isinstance(purifier, LaplaceMix):
        return ((1 + ball(1 / (2 * purifier.scale)).exp()) / 2).log()
    if isinstance(purifier, KernelMix) and purifier.body.norm == math.inf:
        d, side = purifier.body.lattice.dimension, F(2 * purifier.body.radius)
        if purifier.noise_norm == math.inf and d > 1:
            return None
        x, odds = side / purifier.scale, (1 - purifier.mixing_weight) / purifier.mixing_weight
        mass = (ball(x) / (1 - ball(-x).exp())) ** d
        far = ball(-d * x).exp()
        more = 1 + (1 - ball(-x).exp()).log() if purifier.noise_norm == math.inf else arb(0)
        return (1 + ball(odds) * mass * far).log() - (1 - far).log() + more
    return None


@pytest.mark.parametrize("name", MIXING)
def test_the_accepted_delta_is_as_tight_as_theory_says(name: str) -> None:
    purifier = MIXING[name]
    for epsilon in EPSILONS:
        found = spare(purifier, epsilon)
        assert found >= 0
        with ctx.workprec(BITS):
            expected = exact_spare(purifier)
            if expected is not None:
                assert abs(found - expected) < 1e-12
            elif isinstance(purifier, GaussianMix):  # Jensen's inequality on one cell
                assert found < 0.3


@pytest.mark.parametrize("name", MIXING)
def test_beyond_the_matrix_s_own_threshold_a_violation_is_found(name: str) -> None:
    """The enumeration has teeth: δ above what T0 allows this matrix by 1e-9 is caught."""
    purifier, epsilon = MIXING[name], F(1)
    rows, log_delta = rows_of(purifier), purifier.log_delta_required(epsilon)
    with ctx.workprec(BITS):
        least = spare_nats(rows, epsilon=epsilon, log_delta=log_delta) + ball(log_delta)
    delta = rational_above(lambda: least.exp()) * (1 + F(1, 10**9))
    if delta < 1:
        assert is_broken(rows, factor=exp_below(epsilon), delta=delta, epsilon=epsilon)


# --- B1 is exact ---------------------------------------------------------------------------------


def threshold(factor: Fraction, weight: Fraction, size: int) -> Fraction:
    """The largest δ: (e^t - 1) w/((1-w) N)."""
    return (factor - 1) * weight / ((1 - weight) * size)


FACTORS = (F(11, 10), F(2), F(20))


@pytest.mark.parametrize("factor", FACTORS, ids=str)
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("weight", [F(1, 100), F(1, 50)], ids=str)
def test_mixing_is_exactly_epsilon_at_the_threshold(
    factor: Fraction, size: int, weight: Fraction
) -> None:
    delta = threshold(factor, weight, size)
    rows = rows_of(FiniteMix(space=Finite(size), mixing_weight=weight))
    assert is_pure(rows, factor=factor, delta=delta, epsilon_exp=factor)
    pairs = [(pushed(rows, p), pushed(rows, q)) for p, q in extreme_pairs(size, factor, delta)]
    assert max(a[z] / b[z] for a, b in pairs for z in a) == factor

    def broken(n: int, w: Fraction, d: Fraction) -> bool:
        mutant = rows_of(FiniteMix(space=Finite(n), mixing_weight=w))
        return is_broken(mutant, factor=factor, delta=d, epsilon_exp=factor)

    assert broken(size, weight, delta * (1 + HAIR))
    assert broken(size, weight * (1 - HAIR), delta)
    if size < 4:
        assert broken(size + 1, weight, delta)


@pytest.mark.parametrize("factor", FACTORS, ids=str)
@pytest.mark.parametrize(("cells", "dimension"), [(3, 1), (4, 1), (2, 2), (3, 2)])
def test_a_grid_is_exactly_epsilon_and_one_cell_more_is_not(
    factor: Fraction, cells: int, dimension: int
) -> None:
    delta = threshold(factor, W, cells**dimension)

    def rows(count: int) -> list[dict[Any, Any]]:
        lattice = Box(0, 1, dimension=dimension).grid(count)
        return rows_of(GridMix(lattice=lattice, mixing_weight=W))

    assert is_pure(rows(cells), factor=factor, delta=delta, epsilon_exp=factor)
    assert is_broken(rows(cells + 1), factor=factor, delta=delta, epsilon_exp=factor)
    beyond = delta * (1 + HAIR)
    assert is_broken(rows(cells), factor=factor, delta=beyond, epsilon_exp=factor)


@pytest.mark.parametrize(("cells", "window", "dimension"), [(5, 2, 1), (5, 3, 1), (3, 2, 2)])
def test_a_local_kernel_is_exactly_epsilon_and_a_smaller_one_is_not(
    cells: int, window: int, dimension: int
) -> None:
    """Some cell of one corner's window is not in the other's, so theory's ratio is attained."""
    factor = F(2)
    delta = threshold(factor, W, 1) * F(window, cells) ** dimension

    def rows(m: int) -> list[dict[Any, Any]]:
        lattice = Box(0, 1, dimension=dimension).grid(cells)
        return rows_of(LocalUniformMix(lattice=lattice, mixing_weight=W, kernel_cells=m))

    assert is_pure(rows(window), factor=factor, delta=delta, epsilon_exp=factor)
    for mutant, d in ((window - 1, delta), (window, delta * (1 + HAIR))):
        assert is_broken(rows(mutant), factor=factor, delta=d, epsilon_exp=factor)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("factor", FACTORS, ids=str)
@pytest.mark.parametrize("delta", [F(1, 1000), F(1, 20), F(3, 10)], ids=str)
def test_the_worst_loss_is_the_formula_of_b1(size: int, factor: Fraction, delta: Fraction) -> None:
    """theory B1, "Tightness": also below and above the threshold, exactly."""
    rows = rows_of(FiniteMix(space=Finite(size), mixing_weight=W))
    rest = W * (1 + factor) / size
    formula = max(
        1 + (1 - W) * delta * size / W,
        ((1 - W) * (factor + delta) + rest) / ((1 - W) * (1 - delta) + rest),
    )
    pairs = [(pushed(rows, p), pushed(rows, q)) for p, q in extreme_pairs(size, factor, delta)]
    assert max(a[z] / b[z] for a, b in pairs for z in a) == formula


# --- a pointwise profile -------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "factor", "delta"), [(2, F(2), F(1, 10)), (3, F(5, 4), F(1, 50))])
def test_the_optimal_prior_of_a_profile_is_pure_and_no_weight_is_wasted(
    size: int, factor: Fraction, delta: Fraction
) -> None:
    epsilon = F(to_float_up(ball(factor).log()))
    for p, q in extreme_pairs(size, factor, delta):
        profile = tuple(
            max(a - factor * b, b - factor * a, F(0)) for a, b in zip(p, q, strict=True)
        )
        if not any(profile):
            continue
        purifier = ProfileMix(space=Finite(size), at_epsilon=epsilon, profile=profile)
        assert proves_epsilon(purifier.step(), None, epsilon)
        rows = rows_of(purifier)
        assert certainly_pure(pushed(rows, p), pushed(rows, q), epsilon)
        weight = purifier.mixing_weight * (1 - HAIR)
        drawn = [F(entry, sum(profile)) for entry in profile]
        laws = [
            {z: (1 - weight) * law[z] + weight * drawn[z] for z in range(size)} for law in (p, q)
        ]
        assert certainly_impure(laws[0], laws[1], epsilon)


# --- random bases --------------------------------------------------------------------------------

counts = st.lists(st.integers(0, 10**4), min_size=2, max_size=6).filter(any)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(EPSILONS))
def test_the_smallest_weight_is_enough_for_random_bases(data: Any, epsilon: Fraction) -> None:
    first = data.draw(counts)
    size = len(first)
    second = data.draw(st.lists(st.integers(0, 10**4), min_size=size, max_size=size).filter(any))
    p, q = ({z: F(n, sum(law)) for z, n in enumerate(law)} for law in (first, second))
    with ctx.workprec(BITS):
        delta = max(float(hockey_stick(a, b, epsilon)) for a, b in ((p, q), (q, p)))
        if delta == 0:
            return
        log_delta = to_float_up((ball(delta) * (1 + ball(F(1, 2**50)))).log())
    log_mass = UniformMixing(size=size, weight=F(1, 2)).log_mass
    weight = smallest_weight(epsilon=epsilon, log_delta=log_delta, log_mass=log_mass)
    if weight == 1:
        return
    purifier = FiniteMix(space=Finite(size), mixing_weight=weight)
    assert purifier.proves(epsilon, ApproxDP(epsilon, min(log_delta, 0.0)))
    rows = rows_of(purifier)
    laws = [pushed(rows, list(law.values())) for law in (p, q)]
    assert certainly_pure(laws[0], laws[1], epsilon)


CHEAP = sorted(set(MIXING) - {"kernel-linf-2d", "gaussian-2d-fine"})


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(CHEAP), st.sampled_from(EPSILONS))
def test_every_channel_is_pure_on_random_bases_on_all_inputs(
    data: Any, name: str, epsilon: Fraction
) -> None:
    """A common law tilted twice by at most e^(ε/2), and δ of anything: it is (ε, δ)-DP."""
    purifier = MIXING[name]
    rows = rows_of(purifier)
    root, most = exp_below(epsilon / 2), exp_below(purifier.log_delta_required(epsilon))
    delta = min(most, F(1))

    def law() -> list[Fraction]:
        weights = data.draw(
            st.lists(st.integers(0, 100), min_size=len(rows), max_size=len(rows)).filter(any)
        )
        return [F(n, sum(weights)) for n in weights]

    common, laws = law(), []
    for _ in range(2):
        tilt = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        tilted = [c * (root if up else 1) for c, up in zip(common, tilt, strict=True)]
        total, extra = sum(tilted), law()
        mixture = [(1 - delta) * c / total + delta * x for c, x in zip(tilted, extra, strict=True)]
        laws.append(pushed(rows, mixture))
    assert certainly_pure(laws[0], laws[1], epsilon)


# --- the paper's Algorithms 1 and 2 --------------------------------------------------------------

BUDGETS = [(F(0), F(1, 10)), (F(1), F(1)), (F(1, 10), F(2))]


def factor_of(base: Fraction) -> Fraction:
    return exp_below(base) if base else F(1)


@pytest.mark.parametrize("log_delta", [-3.0, -8.0])
@pytest.mark.parametrize(("base", "extra"), BUDGETS)
@pytest.mark.parametrize("name", BODIES)
def test_algorithm_one_is_pure_at_theorem_w_s_radius(
    name: str, base: Fraction, extra: Fraction, log_delta: float
) -> None:
    purifier = algorithm_one(BODIES[name], base=base, extra=extra, log_delta=log_delta)
    assert purifier.proves(base + extra, ApproxDP(base, log_delta))
    assert not purifier.proves((base + extra) * (1 - F(1, 10**9)), ApproxDP(base, log_delta))
    assert is_pure(
        rows_of(purifier),
        factor=factor_of(base),
        delta=exp_below(log_delta),
        epsilon=base + extra,
    )


@pytest.mark.parametrize("log_delta", [-3.0, -8.0, -20.0])
@pytest.mark.parametrize(("base", "extra"), BUDGETS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_algorithm_two_is_pure_at_theorem_w_s_radius(
    size: int, base: Fraction, extra: Fraction, log_delta: float
) -> None:
    purifier = algorithm_two(size, base=base, extra=extra, log_delta=log_delta)
    assert purifier.proves(base + extra, ApproxDP(base, log_delta))
    assert is_pure(
        rows_of(purifier),
        factor=factor_of(base),
        delta=exp_below(log_delta),
        epsilon=base + extra,
    )


def test_theorem_w_is_nearly_tight_for_a_base_without_epsilon() -> None:
    """On an interval, ε = 0 and small ε': the accepted δ is within 6 % of what T0 allows."""
    purifier = algorithm_one(BODIES["grid-1d"], base=F(0), extra=F(1, 10), log_delta=-8.0)
    found = spare_nats(rows_of(purifier), epsilon=F(1, 10), log_delta=-8.0)
    assert found > 0
    assert found < 0.06


# --- Theorem K in the plane, by densities --------------------------------------------------------


@pytest.mark.parametrize("scale", [F(1, 3), F(1, 2)], ids=str)
def test_disc_smoothing_has_pure_densities_in_the_plane(scale: Fraction) -> None:
    """l2, d = 2: certified densities of all rows at points of the plane; rounding comes after."""
    epsilon = F(1)
    purifier = KernelMix(
        body=body_of(Ball(2, 1).lattice(1)), noise_norm=2, scale=scale, mixing_weight=W
    )
    log_delta = purifier.log_delta_required(epsilon)
    centers = [tuple(int(k) for k in purifier.body.centered(v)) for v in values_of(purifier)]
    assert len(centers) == 9
    points = list(itertools.product([F(n, 3) for n in range(-1, 16, 2)], repeat=2))
    rows: list[dict[Any, Any]] = []
    for c in centers:
        law = {}
        for x, y in points:
            near = (x - c[0]) ** 2 + (y - c[1]) ** 2
            drawn = disc_uniform_density(x * x + y * y, purifier.body.radius, scale, 100)
            kept = disc_noise_density(near, scale)
            law[x, y] = (1 - ball(W)) * kept + ball(W) * drawn
        rows.append(law)
    delta = exp_below(log_delta)
    assert is_pure(rows, factor=exp_below(epsilon), delta=delta, epsilon=epsilon)
    assert is_broken(rows, factor=exp_below(epsilon), delta=delta * 40, epsilon=epsilon)


# -- literal readings of the paper that fail (docs/errata.md) -------------------------------------


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


def test_theorem_w_has_no_slack_for_the_printed_volume() -> None:
    """d = 1, q = 2: the printed volume is 1/Γ(3/2) times as large, the radius 11 % too small.

    The paper's own lemma has room for that. A base with ε = 0 and a small ε', where Theorem W is
    within 6 % of tight, has not.
    """
    extra, log_delta = F(1, 10), -8.0
    purifier = algorithm_one(
        body_of(Box(0, 1).grid(3)), base=F(0), extra=extra, log_delta=log_delta
    )
    claim = {"factor": F(1), "delta": exp_below(log_delta), "epsilon": extra}
    assert is_pure(rows_of(purifier), **claim)
    shrunk = replace(purifier, scale=purifier.scale * F(math.gamma(1.5)))
    assert is_broken(rows_of(shrunk), **claim)
