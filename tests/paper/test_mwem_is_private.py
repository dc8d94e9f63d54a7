"""MWEM by exact enumeration over all neighboring small datasets: no tolerance, mutants caught."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from channels.channel_laws import row as channel_law
from paper.mwem_laws import neighboring, transcripts
from zerodelta.audit.exact import (
    ExpRational,
    certainly_impure,
    certainly_pure,
    hockey_stick,
    max_log_ratio,
)
from zerodelta.channels.mixes import FiniteMix
from zerodelta.exact.integers import integer_weights
from zerodelta.exact.logs import ball
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from zerodelta.mechanisms.sum_noise import RoundedGaussian, RoundedLaplace
from zerodelta.paper.algorithm_14_16 import paper_round_mechanisms, plan_embedded
from zerodelta.paper.multiplicative_weights import (
    Measurement,
    Rounds,
    SamplePlan,
    plan_multiset,
    pure_rounds,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.verify import verify
from zerodelta.queries import LinearQueries, Marginals, Workload

SQUARE = Marginals(dimension=2, order=2)
CORNERS = [(0, 0), (0, 1), (1, 0), (1, 1)]
GRADED = LinearQueries([[0, 1, 2], [2, 0, 1]])
EPSILON = Fraction(1)

Law = dict[Any, Any]


def transcript_laws(universe: list[Any], rows: int, mwem: Rounds) -> list[tuple[Law, Law]]:
    pairs = neighboring(universe, rows)
    laws = {
        data: {path: p for path, p, _ in transcripts(data, mwem)}
        for data in {data for pair in pairs for data in pair}
    }
    return [(laws[a], laws[b]) for a, b in pairs]


@pytest.mark.parametrize(
    ("workload", "universe", "rows", "rounds"),
    [
        (SQUARE, CORNERS, 2, 1),
        (SQUARE, CORNERS, 3, 1),
        (SQUARE, CORNERS, 2, 2),
        (Marginals(dimension=2, order=1), CORNERS, 1, 2),
        (GRADED, [0, 1, 2], 2, 1),
        (GRADED, [0, 1, 2], 1, 2),
    ],
)
def test_pure_mwem_loses_at_most_epsilon_on_all_neighbors(
    workload: Workload, universe: list[Any], rows: int, rounds: int
) -> None:
    """All that the release depends on is the transcript, so its law is enough."""
    mwem = pure_rounds(epsilon=EPSILON, rounds=rounds, workload=workload)
    pairs = transcript_laws(universe, rows, mwem)
    for p, q in pairs:
        assert sum(p.values(), ExpRational.of(0)) == 1
        assert certainly_pure(p, q, EPSILON)
    assert max(float(max_log_ratio(p, q)) for p, q in pairs) > 0.6


@pytest.mark.parametrize("mutant", ["choice", "measurement"])
def test_pure_mwem_with_too_little_noise_is_caught(mutant: str) -> None:
    """Leaving out the 2 of the choice (A10), or measuring with half of the noise."""
    mwem = pure_rounds(epsilon=EPSILON, rounds=1, workload=SQUARE)
    if mutant == "choice":
        mwem = replace(
            mwem, select=PermuteAndFlip(sensitivity=Fraction(1), scale=mwem.select.scale / 2)
        )
    else:
        assert isinstance(mwem.measure, RoundedLaplace)
        quieter = RoundedLaplace(sensitivity=Fraction(1), scale=mwem.measure.scale / 2)
        mwem = replace(mwem, measure=quieter)
    pairs = transcript_laws(CORNERS, 2, mwem)
    assert any(certainly_impure(p, q, EPSILON) for p, q in pairs)


@pytest.mark.parametrize("rounds", [1, 2])
def test_algorithm_14_is_within_its_zcdp_and_approximate_claims(rounds: int) -> None:
    """The δ of every neighboring pair is at most the certified profile of ρ-zCDP."""
    rho = Fraction(1, 4)
    mwem = paper_round_mechanisms(rho=rho, rounds=rounds, workload=SQUARE)
    pairs = transcript_laws(CORNERS, 2, mwem)
    certificate = Certificate(claim=ApproxDP("1/2", -1.4), steps=mwem.steps())
    assert verify(certificate)
    with ctx.workprec(200):
        for pair in pairs:
            p, q = ({path: mass.ball() for path, mass in law.items()} for law in pair)
            for a, b in ((p, q), (q, p)):
                delta = hockey_stick(a, b, "1/2")
                assert isinstance(delta, arb)
                assert delta < arb(-1.4).exp()
                divergence = sum((x * (x / b[path]).log() for path, x in a.items()), arb(0))
                assert divergence < ball(rho)


def published_laws(universe: list[Any], rows: int, plan: SamplePlan) -> list[tuple[Law, Law]]:
    """Laws of the published index: MWEM, exact sampling and the channel."""
    m, size = plan.sample_size, plan.rounds.workload.universe
    channel = {
        sample: channel_law(plan.channel, plan.encode(np.array(sample)))
        for sample in itertools.product(range(size), repeat=m)
    }

    def law(data: tuple[Any, ...]) -> Law:
        with ctx.workprec(512):
            drafts: Law = dict.fromkeys(channel, arb(0))
            for _, p, average in transcripts(data, plan.rounds):
                weights = [int(weight) for weight in integer_weights(average)]
                mass = p.ball() if isinstance(p, ExpRational) else p
                for sample in channel:
                    share = Fraction(1)
                    for item in sample:
                        share *= Fraction(weights[item], sum(weights))
                    drafts[sample] += mass * ball(share)
            total: Law = {}
            for sample, mass in drafts.items():
                for z, p in channel[sample].items():
                    part = p if isinstance(p, arb) else ball(p)
                    total[z] = total.get(z, arb(0)) + mass * part
            return total

    pairs = neighboring(universe, rows)
    laws = {data: law(data) for data in {data for pair in pairs for data in pair}}
    return [(laws[a], laws[b]) for a, b in pairs]


def quiet(plan: SamplePlan, factor: int) -> SamplePlan:
    """The plan with far less noise in the internal rounds: what its certificate does not cover."""
    measure: Measurement
    noisy = plan.rounds.measure
    if isinstance(noisy, RoundedGaussian):
        measure = RoundedGaussian(
            sensitivity_squared=noisy.sensitivity_squared, variance=noisy.variance / factor**2
        )
    else:
        measure = RoundedLaplace(sensitivity=Fraction(1), scale=noisy.scale / factor)
    select = ExponentialMechanism(sensitivity=Fraction(1), scale=plan.rounds.select.scale / factor)
    return replace(plan, rounds=replace(plan.rounds, select=select, measure=measure))


IDENTITY = LinearQueries([[1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("workload", "universe", "rows", "sample", "rounds"),
    [(SQUARE, CORNERS, 2, 2, 1), (SQUARE, CORNERS, 2, 1, 2), (IDENTITY, [0, 1, 2], 3, 2, 1)],
)
def test_multiset_mixing_is_pure_on_all_neighbors(
    workload: Workload, universe: list[Any], rows: int, sample: int, rounds: int
) -> None:
    plan = plan_multiset(
        rows=rows,
        workload=workload,
        epsilon=EPSILON,
        sample_size=sample,
        rounds=rounds,
        mixing_weight="0.01",
    )
    for p, q in published_laws(universe, rows, plan):
        assert certainly_pure(p, q, EPSILON)


def test_multiset_mixing_of_rounds_it_does_not_cover_is_caught() -> None:
    """One query of three values pushes p by e^(±1/2) only, so many silent rounds are needed."""
    plan = plan_multiset(
        rows=3, workload=IDENTITY, epsilon="1/10", sample_size=3, rounds=2, mixing_weight="0.01"
    )
    assert all(certainly_pure(p, q, "1/10") for p, q in published_laws([0, 1, 2], 3, plan))
    pairs = published_laws([0, 1, 2], 3, quiet(plan, 10_000))
    assert any(certainly_impure(p, q, "1/10") for p, q in pairs)


@pytest.mark.parametrize(("sample", "rounds"), [(1, 1), (1, 2), (2, 1)])
def test_the_binary_embedding_is_pure_on_all_neighbors(sample: int, rounds: int) -> None:
    """|X| = 3, so some codes stand for no sample; ε + ε' = 2."""
    plan = plan_embedded(
        rows=2,
        workload=IDENTITY,
        epsilon=2,
        sample_size=sample,
        rounds=rounds,
    )
    assert plan.encode(np.array([2, 1][:sample])) == [2, 5][sample - 1]  # digits to the base 3
    for p, q in published_laws([0, 1, 2], 2, plan):
        assert certainly_pure(p, q, 2)


def test_dropping_the_mixing_is_not_certified() -> None:
    """The same rounds with a hundredth of the weight: the chain refuses."""
    plan = plan_multiset(rows=10, workload=SQUARE, epsilon=1, sample_size=3, rounds=4)
    steps = plan.rounds.steps()
    good = Certificate(claim=PureDP(1), steps=plan.steps())
    assert verify(good)
    assert isinstance(plan.channel, FiniteMix)
    weaker = FiniteMix(space=plan.channel.space, mixing_weight=Fraction(1, 10_000))
    with pytest.raises(Exception, match="understated"):
        verify(Certificate(claim=PureDP(1), steps=(*steps, weaker.step())))
