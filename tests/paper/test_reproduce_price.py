"""The price of δ = 0: every method has the ε it says, and the noise it predicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from reproduce.price import (
    EPSILON,
    LENGTH,
    METHODS,
    PURIFIED,
    Method,
    best_lattice,
    better_from,
    digits,
    findings,
    price,
    theorem_w,
)

from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.sum_noise import KNorm, RoundedGaussian
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, laplace_scale
from zerodelta.privacy.claims import ApproxDP, GaussianDP

ROWS = 4096


def test_the_rows_are_integers_within_their_public_length() -> None:
    rows = digits()
    assert rows.shape == (1797, 64)
    assert np.abs(rows).max() <= 8
    assert np.linalg.norm(rows, axis=1).max() <= LENGTH


@pytest.mark.parametrize("name", ["direct", "composed"])
def test_directly_pure_methods_spend_epsilon_once(name: str) -> None:
    method = Method.of(name, rows=ROWS)
    assert isinstance(method.noise, KNorm)
    assert method.noise.sensitivity == 2 * LENGTH
    assert method.times * method.noise.claim.exact_epsilon == EPSILON


@pytest.mark.parametrize("name", PURIFIED)
def test_purified_methods_have_the_noise_that_their_channel_needs(name: str) -> None:
    method = Method.of(name, rows=ROWS)
    noise, channel = method.noise, method.channel
    assert isinstance(noise, RoundedGaussian)
    run = GaussianDP(mu_squared=noise.sensitivity_squared / noise.variance)
    if not isinstance(channel, AlgorithmOne):
        assert run.log_delta(EPSILON) <= best_lattice(rows=ROWS).log_delta_required(EPSILON)
        return
    base = channel.base_epsilon
    needed = laplace_scale(
        norm=2,
        dimension=64,
        diameter=2 * channel.body.radius,
        weight=channel.mixing_weight,
        claim=ApproxDP(base, run.log_delta(base)),
        epsilon=base,
        extra_epsilon=EPSILON - base,
    )
    assert channel.scale >= needed


def test_the_gaussian_mechanism_has_its_delta() -> None:
    noise = Method.of("approximate", rows=ROWS).noise
    assert isinstance(noise, RoundedGaussian)
    claim = GaussianDP(mu_squared=noise.sensitivity_squared / noise.variance)
    assert claim.log_delta(EPSILON) == pytest.approx(math.log(1e-6), rel=1e-4)
    assert claim.log_delta(EPSILON) <= math.log(1e-6)


@pytest.mark.parametrize("rows", [256, 65_536])
def test_chosen_parameters_predict_less_noise_than_the_printed_ones(rows: int) -> None:
    errors = {name: Method.of(name, rows=rows).predicted() for name in METHODS}
    assert errors["mixing"] < errors["theorem_w"] < errors["printed"]
    assert errors["composed"] == pytest.approx(10 * errors["direct"])
    assert errors["direct"] == pytest.approx(2 * math.sqrt(64 * 65) / rows)
    chosen = theorem_w(rows=rows)
    assert 0 < chosen["base_epsilon"] < EPSILON


def test_errors_are_those_predicted_where_the_ball_does_not_cut_them() -> None:
    """64 coordinates and 8 repeats: the mean square has a standard error of about 6 %."""
    data: Any = price(sizes=(65_536,), repeats=8)
    for name in METHODS:
        ratio = data["errors"][name][0] / data["predicted"][name][0]
        assert 0.75 < ratio < 1.25


def test_equal_labels_publish_equal_means() -> None:
    method, sums = Method.of("printed", rows=ROWS), digits().sum(axis=0)
    one, same, other = (method.publish(sums, ReplayBits(label)) for label in ("a", "a", "b"))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def fake(**errors: list[float]) -> dict[str, Any]:
    return {
        "sizes": [10, 100, 1000],
        "methods": METHODS,
        "errors": {name: errors.get(name, [2.0, 2.0, 2.0]) for name in METHODS},
        "nothing": [1.0, 1.0, 1.0],
    }


def test_what_is_better_counts_only_if_it_stays_so() -> None:
    data = fake(printed=[0.5, 1.5, 0.5], mixing=[2.0, 0.5, 0.5], direct=[0.5, 0.5, 1.5])
    found = {name: better_from(data, name, data["nothing"]) for name in METHODS}
    assert (found["printed"], found["mixing"], found["direct"]) == (1000, 100, None)


def test_the_findings_are_those_of_the_numbers() -> None:
    better = findings(fake(mixing=[1.0, 1.0, 0.5], approximate=[0.25] * 3))
    assert METHODS["mixing"] + ": 2;" in better[0]
    assert METHODS["mixing"] + ": 1000;" in better[1]
    assert better[2].startswith("Purification pays where one")
    assert better[2].endswith(METHODS["mixing"] + ".")
    worse = findings(fake(direct=[0.1] * 3, composed=[0.2] * 3))
    assert worse[2].startswith("Purification does not pay where one")
    assert worse[3].startswith("Purification does not pay where 100")
