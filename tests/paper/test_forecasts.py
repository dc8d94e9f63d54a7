"""The forecasts of Algorithms 9 to 16: numbers from public inputs, near what is measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from paper.free_releases import bounded_local_sensitivity, free_propose_test_release
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.noisy_test import ClearLead
from zerodelta.mechanisms.stable_queries import CustomQuery, Median
from zerodelta.paper.algorithm_09_10_11 import (
    propose_test_release,
    pure_bounded_local_sensitivity,
    pure_propose_test_release,
    split_in_three,
)
from zerodelta.paper.algorithm_12_13 import (
    adassp,
    embedded_mode,
    lattice_adassp,
    mode,
    pure_adassp,
    wrong_probability,
)
from zerodelta.paper.algorithm_14_16 import approximate_mwem, embedded_mwem, multiset_mwem, mwem
from zerodelta.paper.multiplicative_weights import pure_mwem
from zerodelta.queries import LinearQueries, Marginals
from zerodelta.testing import replayed

F = Fraction
PLANE = zd.Box([-50, -50], [50, 50]).grid(100_001)
FLAT: dict[str, Any] = {
    "query": CustomQuery(
        function=lambda rows: (0.0, 0.0),
        grid=PLANE,
        stability=lambda rows, bound: 10**6,
        local=lambda rows: 0,
        change="0.001",
    )
}
MEDIAN: dict[str, Any] = {"query": Median(bounds=(-50, 50), steps=5000)}
STABLE: dict[str, Callable[..., zd.records.Release]] = {
    "9": lambda **kw: propose_test_release(
        np.zeros(400), **MEDIAN, proposed_bound=1, epsilon=2, delta=1e-12, **kw
    ),
    "9, two coordinates": lambda **kw: propose_test_release(
        [0], **FLAT, proposed_bound=1, epsilon=2, delta=1e-12, **kw
    ),
    "10": lambda **kw: pure_propose_test_release(
        np.zeros(400),
        **MEDIAN,
        proposed_bound=1,
        epsilon=3,
        delta=1e-8,
        mixing_weight="1e-5",
        **kw,
    ),
    "10, mostly its own noise": lambda **kw: pure_propose_test_release(
        [0],
        **FLAT,
        proposed_bound="0.01",
        epsilon=3,
        delta=1e-8,
        mixing_weight="1e-4",
        **kw,
    ),
    "C3": lambda **kw: free_propose_test_release(
        [0], **FLAT, proposed_bound=1, epsilon=1, test_share="1/3", **kw
    ),
    "11": lambda **kw: pure_bounded_local_sensitivity(
        [0], **FLAT, epsilon=1, delta=1e-9, mixing_weight="1e-4", **kw
    ),
    "C4": lambda **kw: bounded_local_sensitivity(
        [0], **FLAT, epsilon=1, mixing_weight="1e-6", **kw
    ),
}


@pytest.mark.parametrize("name", STABLE)
def test_the_error_of_a_stable_query_is_forecast(name: str) -> None:
    """The mean of 200 absolute errors has a standard error of about 7 %."""
    bits = ReplayBits(f"forecast {name}")
    found = [np.abs(replayed(bits)(STABLE[name])().value).mean() for _ in range(200)]
    assert np.mean(found) == pytest.approx(STABLE[name]().error, rel=0.2)


def test_no_forecast_exceeds_the_box() -> None:
    release = pure_bounded_local_sensitivity(
        [0.0] * 9, **MEDIAN, epsilon="1/10", delta=1e-9, mixing_weight="0.1"
    )
    assert release.error == pytest.approx(100.0, rel=1e-3)


@pytest.mark.parametrize("items", [2, 9, 1024])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 7])
def test_the_lead_forecast_for_a_mode_is_the_smallest(items: int, epsilon: Any) -> None:
    lead = mode([0], universe=items, epsilon=epsilon).error
    assert isinstance(lead, float)
    wrong = [
        wrong_probability(points=items, epsilon=epsilon, gap=int(lead) + more) for more in (-1, 0)
    ]
    assert wrong[1] <= 0.1 < wrong[0]


def test_the_lead_of_a_test_for_every_probability() -> None:
    test = ClearLead.for_epsilon(epsilon=F(1, 2), items=5)
    assert test.lead_for(0.0) == math.inf
    assert test.lead_for(1.0) == 0
    for failed in (1e-9, 0.1, 0.5, 0.9, 0.999):
        lead = int(test.lead_for(failed))
        assert test.fails(lead) <= failed * (1 + 1e-9)
        assert lead == 0 or test.fails(lead - 1) > failed


def test_the_lead_forecast_for_the_paper_s_mode() -> None:
    lead = embedded_mode([0], universe=1024, epsilon=2).error
    assert isinstance(lead, float)
    bits = ReplayBits("the lead of the paper's mode")
    hits = {
        gap: sum(
            replayed(bits)(embedded_mode)([77] * gap, universe=1024, epsilon=2).value == 77
            for _ in range(400)
        )
        for gap in (int(lead), int(0.95 * lead))
    }
    assert hits[int(lead)] >= 0.85 * 400  # 9 of 10, 3.3 standard deviations less
    assert hits[int(0.95 * lead)] < 0.5 * 400
    assert embedded_mode([0], universe=4, epsilon=2).error == math.inf  # ω = 1/4
    assert mode([0], universe=1, epsilon=1).error == 0


LINEAR: dict[str, Any] = {"data_norm": 2, "target_bound": 3}
FITS: dict[str, Callable[..., zd.records.Release]] = {
    "13": lambda x, y, **kw: adassp(x, y, epsilon=1, delta=1e-12, **LINEAR, **kw),
    "13 pure": lambda x, y, **kw: pure_adassp(x, y, epsilon=2, **LINEAR, **kw),
    "C6": lambda x, y, **kw: lattice_adassp(
        x, y, epsilon=1, mixing_weight="1e-12", resolution=1 << 24, **LINEAR, **kw
    ),
}


@pytest.mark.parametrize("rows", [3000, 100_000])
@pytest.mark.parametrize("name", FITS)
def test_the_error_of_adassp_is_forecast(name: str, rows: int) -> None:
    """With a penalty (few rows: mostly bias) and without."""
    rng, d = np.random.default_rng(1), 4
    x = rng.normal(size=(rows, d))
    x *= 2 * math.sqrt(1 / 2) / np.linalg.norm(x, axis=1, keepdims=True)  # as forecasts assume
    theta = np.full(d, 0.3 * 3 / math.sqrt(2))  # a signal of 0.3 times the bound
    bits = ReplayBits(f"forecast {name}")
    excess = []
    for _ in range(12):
        release = replayed(bits)(FITS[name])(x, x @ theta)
        excess.append(((x @ (release.value - theta)) ** 2).mean())
    assert isinstance(release.error, float)
    assert release.error / 2 < np.mean(excess) < 2 * release.error


WORKLOAD = Marginals(dimension=6)
QUERIES: dict[str, Callable[..., zd.records.Release]] = {
    "14": lambda rows, w=WORKLOAD: mwem(rows, workload=w, rounds=60, rho="1/10"),
    "14, approximate": lambda rows, w=WORKLOAD: approximate_mwem(
        rows, workload=w, rounds=60, epsilon=2, delta=1e-12
    ),
    "16": lambda rows, w=WORKLOAD: embedded_mwem(rows, workload=w, epsilon=2),
    "C7": lambda rows, w=WORKLOAD: multiset_mwem(
        rows, workload=w, epsilon=1, sample_size=60, rounds=60
    ),
    "pure": lambda rows, w=WORKLOAD: pure_mwem(rows, workload=w, epsilon=1),
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_error_bound_of_query_release_holds(name: str) -> None:
    rng = np.random.default_rng(2)
    rows = (rng.random((50_000, 6)) < np.linspace(0.05, 0.6, 6)).astype(int)
    rows[:, 5] = rows[:, 4]
    truth, errors = WORKLOAD.answers(rows), []
    for _ in range(5):
        release = QUERIES[name](rows)
        synthetic = release.value.ndim == 2
        answers = (
            WORKLOAD.answers(release.value)
            if synthetic
            else WORKLOAD.totals(release.value) / release.value.sum()
        )
        errors.append(np.abs(answers - truth).max())
    assert isinstance(release.error, float)
    assert 0 < np.mean(errors) < release.error
    if name == "pure":  # it beats the uniform distribution by far
        assert np.mean(errors) < np.abs(WORKLOAD.totals(np.full(64, 1 / 64)) - truth).max() / 4
    assert np.isfinite(QUERIES[name](rows[:1]).value).all()  # one row is enough


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "pure"])
def test_the_plan_of_query_release_says_how_long_it_takes(name: str) -> None:
    """In proportion to the rounds, and to a table of the queries where there is one."""
    small = LinearQueries(np.eye(8, dtype=int))
    large = LinearQueries(np.eye(1024, dtype=int))
    quick, slow = (QUERIES[name](np.zeros(400), w).seconds for w in (small, large))
    assert quick is not None
    assert slow is not None
    assert 0 < 5 * quick < slow


def test_the_parts_of_epsilon_in_algorithms_10_and_11() -> None:
    assert split_in_three("3/2", "1/4") == (F(3, 2), F(1, 4), F(1))
    assert split_in_three(1, None) == (F(1), F(1, 3), F(1, 3))
    for total, base in ((1, "1/2"), (1, 1), (0, None), (1, 0), (1, "x")):
        with pytest.raises(zd.errors.ParameterError):
            split_in_three(total, base)


def test_delta_and_its_logarithm_mean_the_same() -> None:
    pairs = [
        [
            embedded_mode([3] * 99, universe=64, epsilon=2, **given).certificate.steps[0].numbers
            for given in ({"delta": F(1, 1 << 40)}, {"log_delta": -40 * math.log(2)})
        ],
        [
            pure_adassp([[0.1]] * 9, [0.1] * 9, epsilon=2, **LINEAR, **given)
            .certificate.steps[0]
            .numbers
            for given in ({"delta": F(1, 1 << 40)}, {"log_delta": -40 * math.log(2)})
        ],
    ]
    for key, (one, other) in zip(("threshold", "multiplier_squared"), pairs, strict=True):
        assert float(F(str(one[key]))) == pytest.approx(float(F(str(other[key]))), rel=1e-12)
