"""MWEM releases: certificates re-derived by hand, public numbers only, errors within the bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from zerodelta.errors import ParameterError
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.paper.algorithm_14_16 import (
    embedded_mwem,
    mwem,
    paper_rho,
    paper_rounds,
    plan_embedded,
)
from zerodelta.paper.multiplicative_weights import (
    best_rounds,
    plan_multiset,
    pure_mwem,
    round_epsilon,
    sampling_error,
)
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.queries import Marginals

WORKLOAD = Marginals(dimension=3)


def test_the_pure_chain_is_rederived_by_hand() -> None:
    steps = pure_mwem(np.ones((9, 3)), workload=WORKLOAD, epsilon="3/4", rounds=5).certificate.steps
    assert [step.theorem for step in steps] == ["permute-and-flip", "rounded-laplace"]
    choice, noise = (dict(step.numbers) for step in steps)
    assert (choice["count"], noise["count"]) == (5, 5)
    per_round = 2 / Fraction(choice["scale"]) + 1 / Fraction(noise["scale"])
    assert 5 * per_round == Fraction(3, 4)


def test_the_zcdp_chain_is_rederived_by_hand() -> None:
    """T (ε_0²/8 + ε_0²/2) <= 5/8 ρ for ε_0 = √(ρ/T): the paper charges ρ."""
    steps = mwem(np.ones((9, 3)), workload=WORKLOAD, rounds=7, rho="1/5").certificate.steps
    scales = [Fraction(step.numbers["scale"]) for step in steps]
    share = 1 / scales[1]
    assert 2 / scales[0] == share
    assert Fraction(1, 5) * (1 - Fraction(1, 10**15)) <= 7 * share**2 <= Fraction(1, 5)


def test_the_multiset_chain_meets_b1_by_hand() -> None:
    plan = plan_multiset(rows=100, workload=WORKLOAD, epsilon=1, sample_size=6, rounds=9)
    select, measure = plan.rounds.select, plan.rounds.measure
    assert isinstance(measure, RoundedGaussian)
    rho = 9 * (select.epsilon**2 / 8 + 1 / (2 * measure.variance))
    log_size = math.log(math.comb(8 + 6 - 1, 6))
    target = math.log(0.01 / 0.99) + math.log(math.e - 1) - log_size
    order = max(2.0, 1 + (1 + math.sqrt(1 + 4 * -target / float(rho))) / 2)
    orders = np.linspace(1.01, 2 * order, 20_000)
    profile = (orders - 1) * (orders * float(rho) - 1 + np.log1p(-1 / orders)) - np.log(orders)
    assert profile.min() == pytest.approx(target, rel=1e-4)


def test_paper_parameters() -> None:
    assert paper_rho(epsilon=2, log_delta=-16.0) == Fraction(1, 64)
    with pytest.raises(ParameterError, match="8 ln"):
        paper_rho(epsilon=9, log_delta=-1.0)
    assert round_epsilon(rho=2, rounds=1) ** 2 <= 2
    with pytest.raises(ParameterError):  # δ would exceed 1
        plan_embedded(
            rows=9, workload=WORKLOAD, epsilon=10**6 + 1, base_epsilon=10**6, sample_size=1
        )
    rounds = paper_rounds(
        rows=10**4,
        workload=Marginals(dimension=10),
        epsilon=1,
        log_delta=-100.0,
        failure=0.01,
    )
    assert rounds == round(math.sqrt(10 / 100) * 10**4 / math.log(180 / 0.01))
    plan = plan_embedded(rows=10**4, workload=Marginals(dimension=10), epsilon=2)
    assert plan.sample_size == 100
    assert plan.epsilon == 2


def test_the_pure_default_has_a_smaller_bound_than_purified_mwem() -> None:
    """A10: each at its own best (T, m)."""
    workload, n = Marginals(dimension=10), 10_000
    pure = best_rounds(rows=n, workload=workload, epsilon=1)
    mine = pure_mwem(np.zeros((n, 10)), workload=workload, epsilon=1, rounds=pure).error
    purified = min(
        plan_multiset(rows=n, workload=workload, epsilon=1, sample_size=m, rounds=rounds).error
        for m in (10, 30, 100)
        for rounds in (30, 100, 300, 1000)
    )
    assert isinstance(mine, float)
    assert mine < purified
    assert sampling_error(queries=workload.queries, sample_size=100) == pytest.approx(
        math.sqrt(math.log(360) / 200)
    )


def test_a_million_rows_of_eight_columns() -> None:
    """20 000 bits of code: sizes and weights that decimal text cannot hold."""
    rows = np.zeros((10**6, 8), dtype=np.int8)
    rows[::2] = 1
    release = embedded_mwem(rows, workload=Marginals(dimension=8), epsilon=2, rounds=2)
    assert release.value.shape == (2500, 8)
    certificate = release.certificate
    assert certificate.status is Status.PROVEN
    assert certificate.steps[-1].numbers["weight"] == "2^-20000"
    assert verify(certificate.to_json(), epsilon=2)
    assert "2^-20000" in certificate.explain()
