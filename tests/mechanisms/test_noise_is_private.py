"""Noise on sums and choices: exact laws on all tiny neighbors cost what is claimed, no more.

Laplace and cube noise are compared exactly (equality included), Gaussian and disc noise by
certified balls. In each case half the noise is caught.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, ctx

from mechanisms.exact_laws import cube_pmf, disc_pmf
from purity import HAIR, assert_impure, assert_pure
from zerodelta.audit.exact import (
    ExpRational,
    Law,
    certainly_impure,
    certainly_pure,
    datasets,
    exponential_mechanism_law,
    hockey_stick,
    max_log_ratio,
    neighbors,
    permute_and_flip_law,
    rounded_gaussian_pmf,
    rounded_gaussian_tail,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
    worst_ratio,
)
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection
from zerodelta.mechanisms.sum_noise import KNorm, RoundedGaussian, RoundedLaplace

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(5, 2)]


def laplace_law(center: int, scale: Fraction, low: int, high: int) -> dict[float, ExpRational]:
    pmf = partial(rounded_laplace_pmf, scale=scale)
    tail = partial(rounded_laplace_tail, scale=scale)
    return shifted(pmf, tail, center=center, low=low, high=high)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_on_a_sum_is_exactly_epsilon(epsilon: Fraction) -> None:
    """Rows in {0, 1, 2}: replacing one moves the sum by 2 at most, and some pair by 2."""
    mechanism = RoundedLaplace.for_epsilon(epsilon=epsilon, sensitivity=2)
    laws = {rows: laplace_law(sum(rows), mechanism.scale, -1, 5) for rows in datasets(range(3), 2)}
    pairs = list(neighbors(laws))
    assert len(pairs) == 18
    short = mechanism.scale * Fraction(999, 1000)
    less = {rows: laplace_law(sum(rows), short, -1, 5) for rows in laws}
    assert_pure(laws, pairs, epsilon=epsilon, tight=True, mistake=less)
    worst = worst_ratio(laws, pairs)
    assert abs(sum(worst.pair[0]) - sum(worst.pair[1])) == 2
    assert float(worst.log_ratio) == pytest.approx(float(epsilon), rel=1e-12)


def test_laplace_on_counts_is_exactly_epsilon() -> None:
    """One replaced row moves two counts by 1: l1 sensitivity 2; the joint law, both counts."""
    epsilon = Fraction(3, 4)
    mechanism = RoundedLaplace.for_epsilon(epsilon=epsilon, sensitivity=2)

    def law(rows: tuple[int, ...], scale: Fraction) -> Law:
        counts = [rows.count(key) for key in (0, 1)]
        each = [laplace_law(count, scale, -1, 3) for count in counts]
        return {(a, b): each[0][a] * each[1][b] for a, b in itertools.product(each[0], each[1])}

    laws = {rows: law(rows, mechanism.scale) for rows in datasets(range(3), 2)}
    half = {rows: law(rows, mechanism.scale / 2) for rows in laws}
    assert_pure(laws, epsilon=epsilon, tight=True, mistake=half)


def test_truncating_instead_of_rounding_is_caught() -> None:
    """q + trunc(noise) doubles the mass at 0: the loss is ε + ln 2 (theory R)."""
    scale = RoundedLaplace.for_epsilon(epsilon=1, sensitivity=1).scale

    def truncated(k: int) -> ExpRational:
        below = ExpRational.exp(-abs(k) / scale)
        beyond = ExpRational.exp(-(abs(k) + 1) / scale)
        mass: ExpRational = (below - beyond) * (1 if k == 0 else Fraction(1, 2))
        return mass

    p = {k: truncated(k) for k in range(-3, 5)}
    q = {k: truncated(k - 1) for k in range(-3, 5)}
    assert certainly_impure(p, q, Fraction(3, 2))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_the_cube_law_is_a_law(scale: Fraction) -> None:
    """max|round(z)| <= m with the probability that Gamma(2) <= m + 1/2."""
    for most in range(4):
        reach = range(-most, most + 1)
        cells = (cube_pmf(i, j, scale) for i in reach for j in reach)
        x = (most + Fraction(1, 2)) / scale
        assert sum(cells, ExpRational.of(0)) == 1 - (1 + x) * ExpRational.exp(-x)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_cube_noise_is_exactly_epsilon(epsilon: Fraction) -> None:
    """Rows in {0, 1}²: one replacement moves both coordinates, linf sensitivity 1."""
    mechanism = KNorm.for_epsilon(epsilon=epsilon, norm=math.inf, dimension=2, sensitivity=1)
    window = list(itertools.product(range(-3, 5), repeat=2))

    def law(center: tuple[int, ...], scale: Fraction) -> Law:
        return {(i, j): cube_pmf(i - center[0], j - center[1], scale) for i, j in window}

    rows = list(itertools.product((0, 1), repeat=2))
    laws = {row: law(row, mechanism.scale) for row in rows}
    for a, b in itertools.combinations(rows, 2):
        assert certainly_pure(laws[a], laws[b], epsilon)
        assert certainly_impure(laws[a], laws[b], epsilon - HAIR)
        half = law(a, mechanism.scale / 2), law(b, mechanism.scale / 2)
        assert certainly_impure(*half, epsilon)


def test_disc_noise_is_epsilon_and_nearly_tight() -> None:
    """l2 sensitivity 1, scale 3: certified integrals over cells, shifted along an axis."""
    mechanism = KNorm.for_epsilon(epsilon="1/3", norm=2, dimension=2, sensitivity=1)
    assert mechanism.scale == 3
    cells = [(8, 0), (2, 1), (-2, 2)]
    p = {cell: disc_pmf(*cell, 3) for cell in cells}
    q = {cell: disc_pmf(cell[0] + 1, cell[1], 3) for cell in cells}
    assert certainly_pure(p, q, "1/3")
    assert certainly_impure(p, q, "0.333")


def gaussian_law(center: int, variance: Fraction, reach: int) -> dict[float, arb]:
    pmf = partial(rounded_gaussian_pmf, variance=variance)
    tail = partial(rounded_gaussian_tail, variance=variance)
    return shifted(pmf, tail, center=center, low=-reach, high=reach)


def log_delta(variance: Fraction, shift: int, epsilon: Fraction, reach: int) -> arb:
    """ln of the exact δ; joining the tails loses nothing, as the ratio is monotone."""
    law, other = gaussian_law(shift, variance, reach), gaussian_law(0, variance, reach)
    with ctx.workprec(256):
        total = hockey_stick(law, other, epsilon)
        assert isinstance(total, arb)
        return total.log()


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 4), Fraction(1), Fraction(3)])
@pytest.mark.parametrize(
    ("variance", "shift"),
    [(Fraction(1, 2), 1), (Fraction(4), 1), (Fraction(4), 3), (Fraction(90), 10)],
)
def test_gaussian_delta_is_at_most_what_is_claimed(
    epsilon: Fraction, variance: Fraction, shift: int
) -> None:
    mechanism = RoundedGaussian(sensitivity_squared=Fraction(shift**2), variance=variance)
    exact = log_delta(variance, shift, epsilon, reach=60)
    assert exact <= mechanism.claim.log_delta(epsilon)
    if variance > 50:
        assert float(exact) == pytest.approx(mechanism.claim.log_delta(epsilon), abs=0.02)
    assert log_delta(variance / 2, shift, epsilon, reach=60) > mechanism.claim.log_delta(epsilon)


# -- choices --------------------------------------------------------------------------------------


Scores = tuple[int, ...]
Exact = Callable[..., dict[int, ExpRational]]

EPSILON = Fraction(3, 4)
BOTH = pytest.mark.parametrize(
    ("mechanism", "law"),
    [(ExponentialMechanism, exponential_mechanism_law), (PermuteAndFlip, permute_and_flip_law)],
    ids=["exponential", "permute-and-flip"],
)


def neighboring_scores(*, monotone: bool) -> Iterator[tuple[Scores, Scores]]:
    """All pairs of three scores from 0..2 (the first 0: laws are shift invariant) 1 apart."""
    moves = (0, 1) if monotone else (-1, 0, 1)
    for rest in itertools.product(range(3), repeat=2):
        for move in itertools.product(moves, repeat=3):
            scores = (0, *rest)
            yield scores, tuple(s + m for s, m in zip(scores, move, strict=True))


@BOTH
@pytest.mark.parametrize("monotone", [False, True])
def test_selection_is_pure_on_all_tiny_scores(
    mechanism: type[Selection], law: Exact, monotone: bool
) -> None:
    scale = mechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=monotone).scale
    pairs = neighboring_scores(monotone=monotone)
    assert_pure(partial(law, scale=scale), pairs, epsilon=EPSILON)


@BOTH
@pytest.mark.parametrize(
    ("monotone", "scores", "moved"),
    [(False, (0, 60, 60), (1, 59, 59)), (True, (0, 60, 60), (0, 61, 61))],
)
def test_selection_is_nearly_tight_and_too_little_noise_is_caught(
    mechanism: type[Selection], law: Exact, monotone: bool, scores: Scores, moved: Scores
) -> None:
    scale = mechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=monotone).scale
    pair = law(scores, scale=scale), law(moved, scale=scale)
    assert certainly_pure(*pair, EPSILON)
    assert float(max_log_ratio(*pair)) > 0.9999 * float(EPSILON)
    for factor in (Fraction(1, 2), Fraction(99, 100)):
        mutant = law(scores, scale=scale * factor), law(moved, scale=scale * factor)
        assert certainly_impure(*mutant, EPSILON)


@BOTH
def test_the_monotone_rate_on_scores_that_move_both_ways_is_caught(
    mechanism: type[Selection], law: Exact
) -> None:
    scale = mechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=True).scale
    assert_impure(partial(law, scale=scale), neighboring_scores(monotone=False), epsilon=EPSILON)


def has_range(p: dict[int, ExpRational], q: dict[int, ExpRational], epsilon: Fraction) -> bool:
    """Whether max ln p/q - min ln p/q <= ε, exactly."""
    factor = ExpRational.exp(epsilon)
    return all(p[i] * q[j] <= factor * q[i] * p[j] for i in p for j in p)


@pytest.mark.parametrize("monotone", [False, True])
def test_the_exponential_mechanism_has_bounded_range(monotone: bool) -> None:
    mechanism = ExponentialMechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=monotone)
    assert mechanism.claim.bounded_range
    law = exponential_mechanism_law
    for scores, moved in neighboring_scores(monotone=monotone):
        pair = law(scores, scale=mechanism.scale), law(moved, scale=mechanism.scale)
        assert has_range(*pair, EPSILON)


def test_permute_and_flip_at_the_bounded_range_rate_is_caught() -> None:
    """Scores (0, 0) against (1, -1): range and Kullback-Leibler loss exceed ε and ε²/8 (R2)."""
    mechanism = PermuteAndFlip.for_epsilon(epsilon=EPSILON, sensitivity=1)
    assert not mechanism.claim.bounded_range
    p = permute_and_flip_law((0, 0), scale=mechanism.scale)
    q = permute_and_flip_law((1, -1), scale=mechanism.scale)
    assert not has_range(p, q, EPSILON)
    with ctx.workprec(128):
        loss = sum(((p[i].ball() / q[i].ball()).log() * p[i].ball() for i in p), arb(0))
        epsilon = arb(3) / 4
        assert loss.overlaps((epsilon - (2 - (-epsilon).exp()).log()) / 2)
        assert loss > epsilon**2 / 8
        assert loss < epsilon * (epsilon / 2).tanh()


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    for scores in itertools.product(range(4), repeat=3):
        gaps = [max(scores) - score for score in scores]
        losses = []
        for law in (permute_and_flip_law, exponential_mechanism_law):
            exact = law(scores, scale=2)
            losses.append(sum((exact[i] * gap for i, gap in enumerate(gaps)), ExpRational.of(0)))
        assert losses[0] <= losses[1]
        bound = ExponentialMechanism(sensitivity=Fraction(1), scale=Fraction(2)).error(len(scores))
        assert float(losses[1]) <= bound


def test_the_first_of_the_options_that_are_only_bounded_is_itself() -> None:
    """Whichever place of the rest wins is handed on, and not drawn a second time."""
    far = -(10**9)
    for mechanism in (
        ExponentialMechanism(sensitivity=Fraction(1), scale=Fraction(1)),
        PermuteAndFlip(sensitivity=Fraction(1), scale=Fraction(1)),
    ):
        for place in range(4):
            scores, members = np.array([far, 0]), np.array([1, 4])
            for i in range(10):
                found = mechanism.select_member(
                    scores,
                    members,
                    ReplayBits(f"{place} {i}"),
                    rest=[0 if at == place else far for at in range(4)].__getitem__,
                )
                assert found == (1, place)
