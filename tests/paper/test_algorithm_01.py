"""Algorithm 1 as the paper calls it: certificates, Theorem 1 with A3's correction, Corollary 1."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zerodelta.errors import CertificateError, GuaranteeError, ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.paper.algorithm_01_02 import (
    channel_for,
    corollary_1,
    printed_theorem_1,
    purify_ball,
    theorem_1,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP, calibrate
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball

F = Fraction
NORMS = (1.0, 2.0, math.inf)


def printed_log_radius(*, dimension: int, norm: float, radius: float, log_ratio: float) -> float:
    """ln Δ of Line 2 as printed, Δ = 2 d^(1-1/q) R (δ/2ω)^(1/d); `log_ratio` = ln(δ/2ω)."""
    spread = math.log(2) + (1 - 1 / norm) * math.log(dimension) + math.log(radius)
    return spread + log_ratio / dimension


def lengths(errors: Any, norm: float) -> Any:
    return np.linalg.norm(errors, ord=norm, axis=1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_theorem_1_with_its_correction_bounds_the_measured_error(
    norm: float, dimension: int
) -> None:
    ball, weight = Ball(dimension, 1, norm=norm), F(1, 20)
    channel = channel_for(
        ball=ball,
        epsilon=2,
        log_delta=-4.0 * dimension - 3,
        mixing_weight=weight,
    )
    spacing = 1 / channel.body.radius
    start = np.zeros(dimension)
    start[0] = 0.5
    bits = ReplayBits(f"theorem 1 {norm} {dimension}")
    errors = np.stack([channel.apply(start, bits) - start for _ in range(600)])
    for measured in {1.0, norm}:
        found = lengths(errors, measured)
        bound = theorem_1(
            dimension=dimension,
            norm=norm,
            diameter=2.0,
            scale=float(channel.scale) * spacing,
            mixing_weight=float(weight),
            spacing=spacing,
            error_norm=measured,
        )
        doubled = 2 if measured == 1 else 1  # projection may double the noise in l_1
        assert found.mean() - 4 * found.std() / math.sqrt(len(found)) <= doubled * bound


def test_the_noise_has_the_size_that_theorem_1_counts() -> None:
    """In l2 and high dimension √(2d) b is what is measured: the bound is not slack."""
    d = 60
    channel = channel_for(
        ball=Ball(d, 1),
        epsilon=2,
        log_delta=-700.0,
        mixing_weight=F(1, 10**6),
    )
    bits = ReplayBits("size of the noise")
    found = np.mean([np.linalg.norm(channel.apply(np.zeros(d), bits)) for _ in range(200)])
    noise = math.sqrt(2 * d) * float(channel.scale) / channel.body.radius
    assert 0.9 < found / noise < 1.05


def test_the_printed_l1_bound_is_too_small_for_an_l2_ball() -> None:
    """A3: d b = 4 d^(2-1/q) R (δ/2ω)^(1/d)/ε' exceeds the printed 4Rd(δ/2ω)^(1/d)/ε'."""
    for d in (2, 10):
        log_ratio = -50.0 - math.log(0.02)
        radius = printed_log_radius(dimension=d, norm=2, radius=1.0, log_ratio=log_ratio)
        mean_l1 = d * 2 * math.exp(radius)
        power = math.exp(log_ratio / d)
        printed = printed_theorem_1(dimension=d, radius=1.0, scale_power=power)
        assert math.isclose(mean_l1 / printed, math.sqrt(d))


def test_the_noise_is_at_most_the_printed_one_read_as_a_diameter() -> None:
    for norm in NORMS:
        for d in (1, 3, 20):
            channel = channel_for(
                ball=Ball(d, 1, norm=norm),
                epsilon=2,
                log_delta=-10.0 * d,
                mixing_weight=F(1, 100),
            )
            printed = printed_log_radius(
                dimension=d, norm=norm, radius=2.0, log_ratio=-10.0 * d - math.log(0.02)
            )
            assert float(channel.scale) / channel.body.radius < 2 * math.exp(printed)


@pytest.mark.parametrize("dimension", [1, 2, 4, 8])
def test_corollary_1_bounds_the_measured_error(dimension: int) -> None:
    rows, epsilon = 10, 0.5
    chosen = corollary_1(rows=rows, dimension=dimension, diameter=4)
    ball = Ball(dimension, 2)
    channel = channel_for(
        ball=ball,
        epsilon=2 * epsilon,
        log_delta=chosen.log_delta,
        mixing_weight=chosen.mixing_weight,
    )
    spacing = 2 / channel.body.radius
    assert math.sqrt(2 * dimension) * float(channel.scale) * spacing <= 4 / (rows**2 * epsilon)
    bits, start = ReplayBits(f"corollary 1 {dimension}"), np.full(dimension, 0.1)
    found = [np.linalg.norm(channel.apply(start, bits) - start) for _ in range(500)]
    noise = float(np.std(found)) / math.sqrt(len(found))
    assert np.mean(found) - 4 * noise <= chosen.error_bound(2 * epsilon)


def test_corollary_1_has_the_printed_delta_in_units_where_the_diameter_is_one() -> None:
    for n, d in ((2, 1), (100, 3), (10**5, 20)):
        exact = math.log(2) - 2 * math.log(n) - d * math.log(16 * d * n * n)
        assert math.isclose(corollary_1(rows=n, dimension=d).log_delta, exact, rel_tol=1e-12)


def release(**changes: Any) -> Any:
    options: dict[str, Any] = {
        "ball": Ball(2, 1),
        "epsilon": F(3, 2),
        "base_epsilon": F(1),
        "log_delta": -40.0,
        "mixing_weight": F(1, 100),
    }
    return purify_ball(changes.pop("value", np.zeros(2)), **{**options, **changes})


def test_without_base_steps_the_certificate_is_the_callers_word() -> None:
    certificate = release().certificate
    assert verify(certificate)
    assert certificate.status is Status.ASSERTED
    assert [step.theorem for step in certificate.steps] == ["given", "wasserstein-transport"]


def gaussian_step(log_delta: float) -> Step:
    plan = calibrate(epsilon=1, log_delta=log_delta, sensitivity=2)
    assert plan.variance is not None
    return RoundedGaussian(sensitivity_squared=F(4), variance=plan.variance).step()


def test_with_proven_base_steps_the_certificate_is_proven_and_cannot_be_lowered() -> None:
    certificate = release(base_steps=(gaussian_step(-40.0),)).certificate
    assert verify(certificate)
    assert certificate.status is Status.PROVEN
    lower = Certificate(claim=PureDP(F(1499, 1000)), steps=certificate.steps)
    with pytest.raises(CertificateError):
        verify(lower)


def test_base_steps_that_do_not_reach_delta_are_refused() -> None:
    with pytest.raises(GuaranteeError, match="add noise"):
        release(base_steps=(gaussian_step(-39.0),))


@pytest.mark.parametrize("value", [np.nan, None, "x", [1e300, -1e300], [np.nan, 1.0], 7, object()])
def test_any_value_becomes_a_point_of_the_ball(value: Any) -> None:
    for norm in NORMS:
        ball = Ball(2, 1, norm=norm)
        assert ball.contains(release(value=value, ball=ball).value)


@pytest.mark.parametrize("log_delta", [-1e6, -1e-3])
def test_extreme_deltas_still_give_noise_that_proves_epsilon(log_delta: float) -> None:
    for norm in NORMS:
        for d in (1, 7):
            made = release(ball=Ball(d, 3, norm=norm), log_delta=log_delta, value=np.zeros(d))
            assert verify(made.certificate)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0},
        {"base_epsilon": -1},
        {"base_epsilon": 0},
        {"base_epsilon": F(3, 2)},
        {"delta": "1e-9"},
        {"log_delta": None},
        {"log_delta": None, "delta": 0.0},
        {"mixing_weight": 1},
        {"mixing_weight": 0},
        {"log_delta": 1.0},
        {"log_delta": -math.inf},
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        release(**change)


def test_corollary_1_refuses_one_row_and_no_dimension() -> None:
    for rows, dimension in ((1, 1), (10, 0)):
        with pytest.raises(ParameterError):
            corollary_1(rows=rows, dimension=dimension)
