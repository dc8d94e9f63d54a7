"""`apply` on every path of its draws, at every value of the small cases, the ends included.

Each draw is answered from a script that knows its exact law, so that the law of what `apply`
publishes is an exact table of fractions. It is compared with the channel's matrix, entry by entry.
Continuous noise has no such table: a stand-in law takes its place, the same on both sides, and the
numbers that noise is asked for are compared too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import ctx

from channels.cases import BODIES, MIXING, algorithm_one, algorithm_two
from channels.channel_laws import lattice_of, mixed, published, row, values_of
from sampling import replaced
from tasks.scripted import Ask, ScriptedBits, draw, paths
from zerodelta.audit.exact import ExpRational
from zerodelta.channels.channel import NumericalError
from zerodelta.channels.kernels import KernelMix, SmoothMix
from zerodelta.channels.mixes import GaussianMix, LaplaceMix, ProfileMix
from zerodelta.paper.algorithm_01_02 import AlgorithmOne
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.spaces import Ball, Box, Finite, GridLattice

F = Fraction
Table = dict[Any, Any]
FINITE = [name for name in MIXING if not name.startswith(("gaussian", "laplace", "kernel", "cube"))]
NOISY = [name for name in MIXING if name not in FINITE]
PRIOR = ProfileMix(space=Finite(3), at_epsilon=F(1, 5), profile=(F(1, 10), F(0), F(1, 7)))


def below(limit: int, *, size: int, bits: Any) -> Any:
    return np.array([draw(dict.fromkeys(range(limit), F(1, limit))) for _ in range(size)])


def below_each(limits: Any, *, bits: Any) -> Any:
    return np.array([draw(dict.fromkeys(range(k), F(1, k))) for k in map(int, limits)])


def weighted(weights: Any, *, size: int, bits: Any) -> Any:
    law = {i: F(int(weight), sum(weights)) for i, weight in enumerate(weights) if weight}
    return np.array([draw(law) for _ in range(size)])


def coin(probability: Fraction, *, size: int, bits: Any) -> Any:
    return np.array([draw({True: probability, False: 1 - probability}) for _ in range(size)])


def coin_exp(exponent: Fraction, *, size: int, bits: Any) -> Any:
    likely = ExpRational.exp(-exponent)
    return np.array([draw({True: likely, False: 1 - likely}) for _ in range(size)])


SCRIPTED = {
    "bernoulli": coin,
    "uniform_below": below,
    "categorical": weighted,
    "uniform_below_each": below_each,
    "bernoulli_exp": coin_exp,
}


def law_of_apply(purifier: Any, value: Any) -> Table:
    """The exact law of what a reader sees."""
    read = purifier.space.index if hasattr(purifier, "space") else seen
    law: Table = {}
    with replaced(SCRIPTED):
        runs = paths(lambda: read(purifier.apply(value, ScriptedBits())), exact=True)
        for _, probability, outcome in runs:
            law[outcome] = law.get(outcome, 0) + probability
    return law


def seen(point: Any) -> tuple[float, ...]:
    return tuple(round(float(x), 9) + 0.0 for x in point)


def as_seen(purifier: Any, law: Table) -> Table:
    """A law of integers as one of what a reader sees of them."""
    merged: Table = {}
    for outcome, probability in law.items():
        key = published(purifier, outcome)
        merged[key] = merged.get(key, 0) + probability
    return {key: probability for key, probability in merged.items() if probability != 0}


def all_values(purifier: Any) -> Iterator[Any]:
    """Every value of the small case, and what is not one: beyond both ends, NaN, nonsense."""
    yield from values_of(purifier)
    if hasattr(purifier, "space"):
        yield from ("no element", None, -1, 10**6)
        return
    d = lattice_of(purifier).dimension
    for far in (-1e300, -3.0, 3.0, 1e300, np.inf, np.nan):
        yield np.full(d, far)
    yield None


@pytest.mark.parametrize("name", FINITE)
def test_apply_has_exactly_its_law_at_every_value(name: str) -> None:
    purifier = MIXING[name]
    for value in all_values(purifier):
        law = law_of_apply(purifier, value)
        assert sum(law.values()) == 1
        assert law == as_seen(purifier, row(purifier, value))


def test_a_profile_prior_has_exactly_its_law_at_every_value() -> None:
    for value in all_values(PRIOR):
        assert law_of_apply(PRIOR, value) == as_seen(PRIOR, row(PRIOR, value))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_algorithm_two_has_exactly_its_law_at_every_value(size: int) -> None:
    purifier = algorithm_two(size, base=F(1, 10), extra=F(1, 10), log_delta=-5.0)
    for value in all_values(purifier):
        law, expected = law_of_apply(purifier, value), row(purifier, value)
        assert set(law) == set(expected)
        with ctx.workprec(256):
            for outcome, probability in law.items():
                difference = probability.ball() - expected[outcome]
                assert difference.contains(0)
                assert difference.rad() < 1e-30


def test_a_local_kernel_always_has_all_of_its_cells_inside_the_grid() -> None:
    """Independent of the matrix above: each reachable start, counted by hand."""
    purifier: Any = MIXING["local-1d"]  # 5 cells, kernels of 3
    reached = []
    for place in range(5):
        value = purifier.lattice.points(np.array([place]))
        law = law_of_apply(purifier, value)
        cells = [as_cell(purifier.lattice, point) for point, p in law.items() if p > F(1, 10)]
        reached.append(sorted(cells))
    assert reached == [[0, 1, 2], [0, 1, 2], [1, 2, 3], [2, 3, 4], [2, 3, 4]]


def as_cell(lattice: GridLattice, point: tuple[float, ...]) -> int:
    return int(lattice.quantize(np.array(point))[0])


# --- continuous noise: a stand-in law on both sides ----------------------------------------------

STEPS = {-2: F(1, 7), 0: F(1, 2), 1: F(5, 14)}
"""Noise that is neither symmetric nor small: what is dropped, halved or mirrored shows."""


class Noises:
    """Stand-ins for the samplers, which note what they are asked for."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def lines(self, name: str) -> Any:
        def sampler(*, size: int, bits: Any, **numbers: Any) -> Any:
            self.asked[name] = {**numbers, "size": size}
            return np.array([draw(STEPS) for _ in range(size)])

        return sampler

    def vector(self, name: str) -> Any:
        def sampler(*, dimension: int, size: int, bits: Any, **numbers: Any) -> Any:
            self.asked[name] = {**numbers, "dimension": dimension, "size": size}
            return np.array([[draw(STEPS) for _ in range(dimension)] for _ in range(size)])

        return sampler

    def scripted(self) -> dict[str, Any]:
        return SCRIPTED | {
            "rounded_gaussian": self.lines("gaussian"),
            "rounded_laplace": self.lines("laplace"),
            "rounded_k_norm": self.vector("noise"),
            "rounded_uniform_plus_k_norm": self.vector("uniform"),
        }


def stand_in(dimension: int) -> Table:
    """The law of a vector of stand-in noise."""
    law: Table = {}
    for vector in itertools.product(STEPS, repeat=dimension):
        law[vector] = math.prod((STEPS[step] for step in vector), start=F(1))
    return law


def scripted_law(purifier: Any, value: Any, noises: Noises) -> Table:
    law: Table = {}
    with replaced(noises.scripted()):
        runs = paths(lambda: seen(purifier.apply(value, ScriptedBits())), exact=True)
        for _, probability, outcome in runs:
            law[outcome] = law.get(outcome, 0) + probability
    return law


def shifted(law: Table, center: Any) -> Table:
    return {
        tuple(int(c) + step for c, step in zip(center, vector, strict=True)): p
        for vector, p in law.items()
    }


def check_noisy(purifier: Any, value: Any) -> dict[str, Any]:
    """Compare the law of `apply` with the definition of the channel; return what was asked for."""
    noises, lattice = Noises(), lattice_of(purifier)
    noise = stand_in(lattice.dimension)
    if hasattr(purifier, "body"):
        kept = shifted(noise, purifier.body.centered(value))
    else:
        kept = {tuple(map(int, lattice.quantize(value))): F(1)}
    expected = as_seen(purifier, mixed(kept, noise, purifier.mixing_weight))
    assert scripted_law(purifier, value, noises) == expected
    return noises.asked


def numbers_of(purifier: Any) -> dict[str, Any]:
    """The noise that the channel's certificate speaks of."""
    step, d = purifier.step().numbers, lattice_of(purifier).dimension
    if isinstance(purifier, GaussianMix):
        return {"gaussian": {"variance": F(step["variance"]), "size": d}}
    if isinstance(purifier, LaplaceMix):
        return {"laplace": {"scale": F(step["scale"]), "size": d}}
    width = step["side"] if "side" in step else step["diameter"]
    norm = purifier.noise_norm if isinstance(purifier, KernelMix) else 1
    noise = {"scale": F(step["scale"]), "dimension": d, "size": 1}
    around = {"ball_norm": purifier.body.norm, "noise_norm": norm, "radius": F(width, 2)}
    return {"noise": {**noise, "norm": norm}, "uniform": {**noise, **around}}


@pytest.mark.parametrize("name", NOISY)
def test_noise_goes_where_the_channel_says_at_every_value(name: str) -> None:
    purifier = MIXING[name]
    for value in all_values(purifier):
        assert check_noisy(purifier, value) == numbers_of(purifier)


@pytest.mark.parametrize("name", BODIES)
def test_noise_goes_where_algorithm_one_says_at_every_value(name: str) -> None:
    purifier: AlgorithmOne = algorithm_one(BODIES[name], base=F(1), extra=F(1), log_delta=-4.0)
    for value in all_values(purifier):
        assert check_noisy(purifier, value) == numbers_of(purifier)


@pytest.mark.parametrize("place", list(itertools.product((-4, -1, 0, 3), repeat=2)))
def test_a_smoothed_step_is_published_as_it_is_or_replaced(place: tuple[int, ...]) -> None:
    step = GaussianStep(dimension=2, variance=F(9), radius=F(4), sensitivity=F(2))
    ball = Ball(2, 1, center=[5, 0])
    purifier = SmoothMix(
        space=ball,
        step_taken=step,
        spacing=F(1, 4),
        mixing_weight=F(1, 20),
        order=F(3),
        mixing_variance=F(12),
    )

    def point(integers: tuple[int, ...]) -> tuple[float, ...]:
        return seen(ball.project(np.array([5, 0]) + np.array(integers) / 4))

    noises, law = Noises(), mixed({place: F(1)}, stand_in(2), F(1, 20))
    expected: Table = {}
    for integers, probability in law.items():
        expected[point(integers)] = expected.get(point(integers), 0) + probability
    assert scripted_law(purifier, np.array(place), noises) == expected
    assert noises.asked == {"gaussian": {"variance": F(12), "size": 2}}


@pytest.mark.parametrize("value", [-1e9, -1.25, -0.3, 0.0, 0.4, 1.1, 1e9])
def test_numerical_noise_surrounds_the_value_cut_to_the_ball(value: float) -> None:
    purifier = NumericalError(space=Ball(1, 1), error=F(1, 100), scale=F(1, 8), spacing=F(1, 4))
    noises = Noises()
    law = scripted_law(purifier, np.array([value]), noises)
    expected: Table = {}
    for step, probability in STEPS.items():  # the stand-in leaves the center to its caller
        key = seen([min(max(step / 4, -1.0), 1.0)])
        expected[key] = expected.get(key, 0) + probability
    assert law == expected
    center = min(max(F(value), F(-1)), F(1)) * 4
    asked = {"norm": 2, "dimension": 1, "scale": F(1, 2), "size": 1, "center": [center]}
    assert noises.asked == {"noise": asked}


def test_a_draw_that_is_not_scripted_is_noticed() -> None:
    purifier = MIXING["grid-1d"]
    with pytest.raises(AssertionError, match="not scripted"):
        purifier.apply(np.array([0.0]), ScriptedBits())
    with replaced(SCRIPTED), pytest.raises(Ask):
        purifier.apply(Box(-1, "1/3").middle(), ScriptedBits())
