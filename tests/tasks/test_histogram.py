"""Histograms: the exact law of noise fitted to counts, all small neighbors, forecasts."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from mechanisms.exact_laws import counts_law
from purity import assert_pure
from reference.chi_square import goodness_of_fit
from tasks.noise_laws import law
from tasks.spying import first, recorded
from zerodelta.audit.exact import (
    certainly_impure,
    certainly_pure,
    datasets,
    neighbors,
)
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import rounded_count_noise
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import CountNoise
from zerodelta.privacy.parameters import Neighbors
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Facts
from zerodelta.tasks.distributions import HistogramQuestion, histogram, histogram_methods
from zerodelta.testing import replayed

EPSILON = Fraction(2, 3)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2)])
def test_the_hexagon_law_is_a_law_and_the_sampler_has_it(scale: Fraction) -> None:
    reach = range(-6, 7)
    law = {cell: float(p) for cell, p in counts_law((0, 0), scale=scale, window=reach).items()}
    assert sum(law.values()) == pytest.approx(1, abs=4 * math.exp(-6.5 / float(scale)) * 8)
    bits = ReplayBits("hexagon")
    draws = 5_000
    drawn = Counter(
        tuple(rounded_count_noise(dimension=2, scale=scale, bits=bits).tolist())
        for _ in range(draws)
    )
    cells = [cell for cell, p in law.items() if p * draws > 10]
    counts = [drawn[cell] for cell in cells]
    expected = [law[cell] for cell in cells]
    rest = draws - sum(counts)
    assert goodness_of_fit([*counts, rest], [*expected, 1 - sum(expected)]) > 1e-4


@pytest.mark.parametrize("dimension", [1, 2, 3, 8])
def test_the_noise_has_the_norm_and_the_error_it_should(dimension: int) -> None:
    """E‖z‖ = d·b in every K-norm; 3000 draws, a standard error below 2 %."""
    bits = ReplayBits("norms")
    noise = np.array(
        [rounded_count_noise(dimension=dimension, scale=500, bits=bits) for _ in range(3000)]
    )
    up, down = np.maximum(noise, 0).sum(axis=1), np.maximum(-noise, 0).sum(axis=1)
    assert np.maximum(up, down).mean() == pytest.approx(500 * dimension, rel=0.08)
    stated = CountNoise(dimension=dimension, scale=Fraction(500)).error()
    assert np.abs(noise).mean() == pytest.approx(stated, rel=0.08)


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(8)])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_error_of_a_count_is_that_after_rounding(dimension: int, scale: Fraction) -> None:
    """Σ P(|round(z)| > k) of the exact law of one coordinate; large scales differ by little."""
    law = CountNoise(dimension=dimension, scale=scale).law(unit=Fraction(1))
    tails = (law.noise.tail(k + Fraction(1, 2)) for k in range(math.ceil(100 * scale)))
    exact = sum(float(tail.mid()) for tail in tails)
    assert CountNoise(dimension=dimension, scale=scale).error() == pytest.approx(exact, rel=1e-9)
    continuous = 16 * dimension / (dimension + 1)
    assert CountNoise(dimension=dimension, scale=Fraction(8)).error() == pytest.approx(
        continuous, rel=1e-3
    )


@pytest.mark.parametrize(
    ("universe", "unknown", "method"),
    [
        (1, None, "auto"),
        (2, None, "auto"),
        (2, None, "laplace"),
        (2, 1, "auto"),
        (3, 0, "auto"),
        (3, None, "laplace"),
    ],
)
def test_histograms_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, universe: int, unknown: Any, method: str
) -> None:
    """Items in and outside the universe, three rows; the law of what is handed to the noise."""
    calls: list[Any] = []
    for mechanism in (CountNoise, PartitionNoise):
        calls.append(recorded(monkeypatch, mechanism, "apply", first))
    found = {}
    for items in datasets([*range(universe), 77], 2 if universe == 3 else 3):
        histogram(list(items), universe=universe, unknown=unknown, epsilon=EPSILON, method=method)
        (used,) = [found_calls for found_calls in calls if found_calls]
        noise, counts, *_ = used[-1]
        found[items] = noise, tuple(int(c) for c in counts)
    pairs = {(found[a], found[b]) for a, b in neighbors(found)}
    full, half = (lambda each, f=f: law(each[0], each[1], f) for f in (1, Fraction(1, 2)))
    assert_pure(full, pairs, epsilon=EPSILON, tight=True, mistake=half)


def test_the_noise_of_one_count_does_not_cover_two() -> None:
    """A mutant: the move (+1, -1) measured as 1 in l1 is 2: Laplace noise of scale 1/ε leaks 2ε."""
    mechanism = PartitionNoise.for_epsilon(
        epsilon=EPSILON, cells=2, neighbors=Neighbors.ADD_REMOVE, method="laplace"
    )
    assert mechanism.scale == 1 / EPSILON
    assert certainly_impure(law(mechanism, (1, 2)), law(mechanism, (2, 1)), EPSILON)
    fitted = CountNoise.for_epsilon(epsilon=EPSILON, dimension=2)
    assert certainly_pure(law(fitted, (1, 2)), law(fitted, (2, 1)), EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize("universe", [2, 3, 20])
def test_forecasts_are_what_is_measured_and_the_pick_is_the_best(universe: int) -> None:
    """2000 repetitions of at least two counts: a standard error below 3 %."""
    items = np.arange(1000) % universe
    truth = np.bincount(items)
    measured, forecast = {}, {}
    for method in ("k-norm", "laplace"):
        releases = [
            histogram(items, universe=universe, epsilon=1, method=method) for _ in range(2000)
        ]
        measured[method] = float(np.mean([np.abs(r.value - truth).mean() for r in releases]))
        forecast[method] = float(releases[0].error)
        assert 1 / 1.15 < measured[method] / forecast[method] < 1.15
    assert histogram_methods(epsilon=1, universe=universe)[0].name == "k-norm"
    assert min(forecast, key=lambda name: forecast[name]) == "k-norm"


def test_a_count_follows_from_the_others_only_of_a_public_number() -> None:
    coded = HistogramQuestion(universe=Finite(3), coded=True)
    assert coded.plan(Facts(rows=50), 1).noise is None
    for facts in (
        Facts(rows=50, may_miss=True),
        Facts(rows=None, expected_rows=50),
        Facts(rows=None, expected_rows=50, neighbors=Neighbors.ADD_REMOVE),
    ):
        for method in ("auto", "laplace"):
            noise = replace(coded, method=method).plan(facts, 1).noise
            assert noise is not None
            assert noise.family != "counts" or noise.dimension == 3


@pytest.mark.parametrize("edges", [(0, 5), (2, 10), (0, 5, 9), (1, 5, 10), (3, 4, 5)])
def test_bins_that_leave_rows_out_do_not_add_up_to_all_of_them(edges: tuple[int, ...]) -> None:
    kinds = {"x": zd.number(0, 10, missing=None)}
    cells = np.array([(x,) for x in (0.5, 2.5, 4.5, 6.5, 9.5, 9.5)], dtype=[("x", float)])
    people = zd.open(cells, columns=kinds)
    whole = zd.histogram(people["x"], bins=[-1, 5, 11], epsilon=1000)
    assert whole.value.tolist() == [3, 3]
    assert whole.noise is None
    some = zd.histogram(people["x"], bins=list(edges), epsilon=1000)
    inside = [sum(a <= x < b for (x,) in cells) for a, b in itertools.pairwise(edges)]
    assert some.value.tolist() == inside
    assert some.noise is not None


def test_only_laplace_noise_is_for_rows_that_come_and_go() -> None:
    """One count moves by one, and independent noise is for just that."""
    (method,) = histogram_methods(epsilon=1, universe=5, neighbors=Neighbors.ADD_REMOVE)
    assert method.name == "laplace"
    people = zd.open(
        np.array([0.0, 1.0, 1.0]),
        columns={"0": zd.category([0, 1, 2])},
        neighbors="add-remove",
        expected_rows=3,
    )
    certificate = zd.histogram(people["0"], epsilon=1).certificate
    assert [step.theorem for step in certificate.steps] == ["partition-laplace"]
    assert zd.verify(certificate, epsilon=1, neighbors="add-remove")


def test_large_universes_use_laplace_noise_and_larger_ones_are_refused() -> None:
    assert histogram_methods(epsilon=1, universe=10**5)[0].name == "laplace"
    assert len(histogram([5], universe=10**5, epsilon=1).value) == 10**5
    with pytest.raises(zd.errors.ParameterError, match="group the items"):
        histogram([5], universe=2**27, epsilon=1)


def test_counts_far_beyond_64_bits_never_raise() -> None:
    for _ in range(30):
        release = histogram(
            [0, 1], universe=list(range(40)), epsilon="3e-18", unknown=0, method="laplace"
        )
        assert sum(release.value.tolist()) == 2


def test_a_release_keeps_the_law_of_its_noise() -> None:
    """Where the counts add up to n, the last one has the noise of all others: no simple law."""
    for method, family in (("k-norm", "counts"), ("laplace", "geometric")):
        public: dict[str, Any] = {"universe": 3, "epsilon": "1/2", "method": method}
        release = histogram([0, 1], **public)
        assert release.noise is not None
        assert release.noise.family == family
        scale = release.certificate.steps[0].numbers["scale"]
        assert (release.noise.scale, release.noise.unit) == (Fraction(str(scale)), Fraction(1))
        assert histogram([0, 1], unknown=0, **public).noise is None


def test_a_count_that_follows_from_the_others_has_their_noise() -> None:
    """All counts together are the public number of items, so the last one is not exact."""
    items = [0] * 30 + [1] * 20 + [2] * 50
    found = [
        replayed(f"rest {i}")(zd.histogram)(items, universe=3, unknown=2, epsilon=1).value
        for i in range(20)
    ]
    assert {int(value.sum()) for value in found} == {100}
    assert len({int(value[2]) for value in found}) > 3
