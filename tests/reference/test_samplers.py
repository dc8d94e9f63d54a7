from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from reference import probabilities, samplers
from reference.chi_square import goodness_of_fit, tally, two_sample
from reference.probabilities import Law

P_MIN = 1e-4
N = 6000


def check(draw: Callable[[], int], law: Law, lo: int, hi: int, n: int = N) -> None:
    counts = tally((draw() for _ in range(n)), lo, hi)
    assert goodness_of_fit(counts, law.cells(lo, hi)) > P_MIN


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(9, 4)])
def test_bernoulli_exp(x: Fraction) -> None:
    rng = random.Random(11)
    hits = sum(samplers.bernoulli_exp(x, rng.randrange) for _ in range(N))
    p = float(probabilities.exp_rational(-x))
    if x == 0:
        assert hits == N
    else:
        assert goodness_of_fit([hits, N - hits], [p, 1 - p]) > P_MIN


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10, 3)])
def test_discrete_laplace(scale: Fraction) -> None:
    rng = random.Random(12)
    law = probabilities.DiscreteLaplace(scale)
    check(lambda: samplers.discrete_laplace(scale, rng.randrange), law, -25, 25)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(50, 3)])
def test_discrete_gaussian(variance: Fraction) -> None:
    rng = random.Random(13)
    law = probabilities.DiscreteGaussian(variance)
    check(lambda: samplers.discrete_gaussian(variance, rng.randrange), law, -15, 15)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10, 3)])
def test_rounded_laplace(scale: Fraction) -> None:
    rng = random.Random(14)
    law = probabilities.rounded_laplace(scale)
    check(lambda: samplers.rounded_laplace(scale, rng.randrange), law, -25, 25)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_karney_against_gaussian_probabilities(sigma: Fraction) -> None:
    rng = random.Random(15)
    law = probabilities.rounded_gaussian(sigma * sigma)
    edge = int(4 * sigma) + 1
    check(lambda: samplers.rounded_gaussian(sigma, rng.randrange), law, -edge, edge, 10000)


def test_karney_cells_finer_than_the_first_digits() -> None:
    # σ beyond the first 16 digits: rounding has to extend the uniform
    rng = random.Random(16)
    sigma = 1 << 40
    values = [samplers.rounded_gaussian(sigma, rng.randrange) for _ in range(4000)]
    odd = sum(v % 2 for v in values)
    assert goodness_of_fit([odd, 4000 - odd], [0.5, 0.5]) > P_MIN
    law = probabilities.rounded_gaussian(16)
    coarse = [(v + (1 << 37)) >> 38 for v in values]
    assert goodness_of_fit(tally(coarse, -13, 13), law.cells(-13, 13)) > P_MIN


def test_lazy_uniform_comparisons() -> None:
    rng = random.Random(17)
    for step in (1, 4):
        hits = [0, 0]
        for _ in range(3000):
            u, v = (samplers.LazyUniform(rng.randrange, step) for _ in range(2))
            below = u.below_affine(v, Fraction(1, 2), Fraction(1, 4))
            hits[below] += 1
            assert u.below_affine(v, Fraction(1, 2), Fraction(1, 4)) == below  # no second opinion
            assert u.below(1)
            assert not u.below(0)
        assert goodness_of_fit(hits, [0.5, 0.5]) > P_MIN  # E[V/2 + 1/4] = 1/2


def replaying(picks: Iterable[int]) -> samplers.RandBelow:
    left = iter(picks)
    return lambda limit: next(left)


def outcomes(draw: Callable[[samplers.RandBelow], list[int]], limits: list[int]) -> list[int]:
    """How often each result occurs over all that `randbelow` can return, once each."""
    drawn = (draw(replaying(picks)) for picks in itertools.product(*map(range, limits)))
    return list(Counter(map(tuple, drawn)).values())


@pytest.mark.parametrize(("places", "size"), [(1, 1), (5, 0), (5, 2), (6, 3), (5, 4), (4, 4)])
def test_all_subsets_occur_equally_often(places: int, size: int) -> None:
    limits = [top + 1 for top in range(places - size, places)]
    counts = outcomes(lambda r: samplers.subset(places, size, r), limits)
    assert counts == [math.factorial(size)] * math.comb(places, size)


@pytest.mark.parametrize(("universe", "size"), [(1, 3), (4, 3), (2, 5), (3, 0)])
def test_all_multisets_occur_equally_often(universe: int, size: int) -> None:
    limits = [top + 1 for top in range(universe - 1, universe + size - 1)]
    counts = outcomes(lambda r: samplers.multiset(universe, size, r), limits)
    assert counts == [math.factorial(size)] * math.comb(universe + size - 1, size)


SCORES = [3, 0, 5, 4, 5, -2]


def test_permute_and_flip() -> None:
    rng = random.Random(18)
    scale = Fraction(5, 2)
    counts = [0] * len(SCORES)
    for _ in range(N):
        counts[samplers.permute_and_flip(SCORES, scale, rng.randrange)] += 1
    p = [float(x) for x in probabilities.permute_and_flip(SCORES, scale)]
    assert goodness_of_fit(counts, p) > P_MIN


def test_exponential_mechanism() -> None:
    rng = random.Random(19)
    scale = Fraction(5, 2)
    counts = [0] * len(SCORES)
    for _ in range(N):
        counts[samplers.exponential_mechanism(SCORES, scale, rng.randrange)] += 1
    p = [float(x) for x in probabilities.exponential_mechanism(SCORES, scale)]
    assert goodness_of_fit(counts, p) > P_MIN
    q = [float(x) for x in probabilities.permute_and_flip(SCORES, scale)]
    assert goodness_of_fit(counts, q) < 1e-6  # the two mechanisms are told apart


def test_rounded_and_discrete_laplace_are_told_apart() -> None:
    rng = random.Random(20)
    rounded = [samplers.rounded_laplace(1, rng.randrange) for _ in range(N)]
    discrete = [samplers.discrete_laplace(1, rng.randrange) for _ in range(N)]
    assert two_sample(rounded, discrete) < 1e-6
    cells = probabilities.DiscreteLaplace(1).cells(-8, 8)
    assert goodness_of_fit(tally(rounded, -8, 8), cells) < 1e-6


@pytest.mark.parametrize(
    "call", [lambda r: samplers.bernoulli(2, r), lambda r: samplers.bernoulli_exp(-1, r)]
)
def test_bad_arguments(call: Callable[[samplers.RandBelow], bool]) -> None:
    with pytest.raises(ValueError, match="probability"):
        call(random.Random(0).randrange)
