"""Algorithms 1 and 2 by enumeration and measurement, Theorems 1 and 3, Appendices C and D."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from channels.channel_laws import row, rows_of
from channels.verdicts import exp_below, is_pure, output_pairs, pushed
from purity import assert_impure, assert_pure
from zerodelta.audit.exact import (
    ExpRational,
    datasets,
    hockey_stick,
    max_log_ratio,
    neighbors,
)
from zerodelta.channels.mixes import FiniteMix
from zerodelta.errors import CertificateError, GuaranteeError, ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.paper.algorithm_01_02 import (
    AlgorithmTwo,
    channel_for,
    choice_channel_for,
    code_length,
    corollary_1,
    printed_theorem_1,
    purify_ball,
    purify_choice,
    theorem_1,
    theorem_3,
    theorem_3_log_delta,
)
from zerodelta.paper.appendices import channel_for as appendix_channel_for
from zerodelta.paper.appendices import (
    continuous_example,
    mix_choice,
    mix_on_grid,
    mixed_epsilon,
    printed_epsilon,
    printed_net,
    worst_epsilon,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import ApproxDP, PureDP, calibrate
from zerodelta.privacy.parameters import log_of_delta
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball, Box, Finite
from zerodelta.testing import replayed

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


def test_corollary_1_refuses_one_row_and_no_dimension() -> None:
    for rows, dimension in ((1, 1), (10, 0)):
        with pytest.raises(ParameterError):
            corollary_1(rows=rows, dimension=dimension)


# -- Algorithm 2 ----------------------------------------------------------------------------------


EPSILON = F(7, 10)
"""Above ln 2, so that a base whose ratios are at most 2 is (EPSILON, δ)-DP."""


def base_law(rows: tuple[int, ...], size: int, delta: Fraction) -> list[Fraction]:
    """The mode with probability δ, else an item with probability (1 + its count)/(size + n)."""
    counts = Counter(rows)
    mode = min(counts, key=lambda item: (-counts[item], item))
    noisy = [(1 - delta) * F(1 + counts[y], size + len(rows)) for y in range(size)]
    noisy[mode] += delta
    return noisy


def outputs(channel: AlgorithmTwo, size: int, delta: Fraction) -> dict[Any, Any]:
    """The exact output law of the release for every dataset of two rows."""
    rows = [row(channel, value) for value in range(size)]
    return {table: pushed(rows, base_law(table, size, delta)) for table in datasets(range(size), 2)}


@pytest.mark.parametrize("delta", [F(1, 10), F(1, 10**6)], ids=str)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_algorithm_2_is_pure_on_all_neighboring_datasets(size: int, delta: Fraction) -> None:
    tables = list(datasets(range(size), 2))
    bases = {t: dict(enumerate(base_law(t, size, delta))) for t in tables}
    for a, b in neighbors(tables):  # the base really is (EPSILON, δ)-DP
        found = hockey_stick(bases[a], bases[b], epsilon_exp=2)
        assert isinstance(found, ExpRational)
        assert found <= delta
    channel = choice_channel_for(
        space=Finite(size), epsilon=2 * EPSILON, log_delta=log_of_delta(delta)
    )
    assert_pure(outputs(channel, size, delta), epsilon=2 * EPSILON)


def test_without_its_noise_algorithm_2_is_not_pure() -> None:
    """The mutant must be caught: mixing with 2^-d alone does not remove a δ of 1/10."""
    size, delta = 4, F(9, 10)
    channel = choice_channel_for(
        space=Finite(size), epsilon=2 * EPSILON, log_delta=log_of_delta(delta)
    )
    assert_impure(outputs(replace(channel, scale=F(1, 20)), size, delta), epsilon=2 * EPSILON)


@pytest.mark.parametrize("d", range(1, 13))
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)], ids=str)
def test_theorem_3_holds_exactly_for_every_code_length(d: int, epsilon: Fraction) -> None:
    channel = choice_channel_for(
        space=Finite(1 << d),
        epsilon=2 * epsilon,
        log_delta=theorem_3_log_delta(code_length=d, base_epsilon=epsilon),
    )
    flip = math.exp(-1 / (2 * float(channel.scale))) / 2
    success = (1 - 2.0**-d) * (1 - flip) ** d + 4.0**-d
    printed = 1 - 2.0**-d - d / 2 * math.exp(-d)  # weaker by the product of the two
    assert success >= theorem_3(d) >= printed


def test_the_delta_of_theorem_3_is_the_printed_one() -> None:
    for d in (1, 5, 12):
        printed = d * (math.log(0.5) - 3 * math.log(2 * d))
        assert math.isclose(theorem_3_log_delta(code_length=d, base_epsilon="1/2"), printed)
        assert theorem_3_log_delta(code_length=d, base_epsilon="1/2") < printed + 1e-12


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_every_size_and_every_value_give_an_element(size: int) -> None:
    space = Finite(size)
    for value in (0, size - 1, size, -1, None, math.nan, "no"):
        release = purify_choice(value, space=space, epsilon=2, log_delta=-30.0)
        assert space.contains(release.value)
        assert verify(release.certificate)
        assert release.certificate.claim.log_delta(2) == -math.inf


def test_codes_beyond_the_space_stand_for_the_first_element() -> None:
    assert code_length(5) == 3
    channel = choice_channel_for(space=Finite(5), epsilon=2, log_delta=-5.0)
    law = row(channel, 4)
    assert set(law) == set(range(5))


@pytest.mark.parametrize("size", [1 << 14_500, (1 << 14_500) - 1], ids=["power", "other"])
def test_sizes_that_decimal_text_cannot_hold(size: int) -> None:
    release = replayed("long")(purify_choice)(
        size - 2,
        space=Finite(size),
        epsilon=2,
        log_delta=theorem_3_log_delta(code_length=14_500, base_epsilon=1),
    )
    assert release.value == size - 2
    certificate = release.certificate
    assert certificate.steps[-1].numbers["weight"] == "2^-14500"
    assert Certificate.from_json(certificate.to_json()) == certificate
    for text in (repr(release), certificate.explain(), repr(certificate), certificate.summary):
        assert len(text) < 10_000
    live = purify_choice(5, space=Finite(size), epsilon=2, log_delta=-1e6)
    assert verify(live.certificate.to_json())


def test_a_space_beyond_all_powers_is_refused_as_a_parameter() -> None:
    with pytest.raises(ParameterError, match="smaller space"):
        purify_choice(5, space=Finite(1 << 1_000_001), epsilon=2, log_delta=-1e9)


# -- Appendices C and D ---------------------------------------------------------------------------


CASES = [
    (size, epsilon, log_delta, weight)
    for size in (2, 3, 50)
    for epsilon in (F(1, 10), F(1))
    for log_delta in (-1.0, -5.0, -20.0)
    for weight in (F(1, 100), F(1, 3))
]


def numbers(case: tuple[int, Fraction, float, Fraction]) -> dict[str, Any]:
    return dict(zip(("size", "base_epsilon", "log_delta", "mixing_weight"), case, strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_b1_is_never_worse_than_the_cited_bound_and_never_less_than_the_truth(case: Any) -> None:
    options = numbers(case)
    proven = float(mixed_epsilon(**options))
    assert worst_epsilon(**options) <= proven * (1 + 1e-9)
    assert proven <= printed_epsilon(**options)


def test_the_worst_loss_is_attained_by_an_extreme_base() -> None:
    for size, weight, delta in ((2, F(1, 3), F(1, 10)), (3, F(1, 20), F(1, 100))):
        channel = FiniteMix(space=Finite(size), mixing_weight=weight)
        pairs = output_pairs(rows_of(channel), F(2), delta)
        found = max(float(max_log_ratio(a, b)) for a, b in pairs)
        worst = worst_epsilon(
            size=size,
            base_epsilon=F(math.log(2)),
            log_delta=math.log(delta),
            mixing_weight=weight,
        )
        assert math.isclose(found, worst, rel_tol=1e-9)


@pytest.mark.parametrize(("log_delta", "less"), [(-2.0, F(999, 1000)), (-8.0, F(3, 4))])
def test_mixing_is_pure_at_what_it_claims_and_cannot_claim_less(
    log_delta: float, less: Fraction
) -> None:
    weight = F(1, 20)
    options: dict[str, Any] = {
        "base_epsilon": F(1, 2),
        "log_delta": log_delta,
        "mixing_weight": weight,
    }
    total = mixed_epsilon(size=3, **options)
    release = mix_choice(1, space=Finite(3), epsilon=total, **options)
    with pytest.raises(GuaranteeError, match="mixing proves"):
        mix_choice(1, space=Finite(3), epsilon=total * less, **options)
    certificate = release.certificate
    assert verify(certificate)
    claim = certificate.claim
    assert isinstance(claim, PureDP)
    channel = FiniteMix(space=Finite(3), mixing_weight=weight)
    assert is_pure(
        rows_of(channel),
        factor=exp_below(F(1, 2)),
        delta=exp_below(log_delta),
        epsilon=claim.exact_epsilon,
    )
    with pytest.raises(CertificateError):
        verify(Certificate(claim=PureDP(claim.exact_epsilon * less), steps=certificate.steps))


def test_the_continuous_example_keeps_its_delta() -> None:
    point, rest = continuous_example(delta=F(1, 7), mixing_weight=F(2, 3))
    assert point + rest == 1  # the printed masses do not add up (A12)
    assert point == F(1, 21)


@pytest.mark.parametrize(("dimension", "loss"), [(2, 1.633), (3, 0.914), (4, 0.429)])
def test_the_printed_net_breaks_its_claim_in_low_dimension(dimension: int, loss: float) -> None:
    """A12: δK^d/ω tends to 2/(log d)^d as δ falls, which is far more than ε for small d."""
    net = printed_net(
        side=1,
        dimension=dimension,
        base_epsilon=F(1, 10),
        log_delta=-40.0 * dimension,
        mixing_weight=F(1, 100),
    )
    assert net.claimed_epsilon == 0.2
    assert abs(net.worst_epsilon - loss) < 0.001
    limit = math.log1p(0.99 * 2 / math.log(dimension) ** dimension)
    assert math.isclose(net.worst_epsilon, limit, rel_tol=1e-9)
    assert net.worst_epsilon > 2 * net.claimed_epsilon


def test_the_printed_net_divides_by_zero_in_one_dimension() -> None:
    with pytest.raises(ParameterError, match="at least 2"):
        printed_net(side=1, dimension=1, base_epsilon=1, log_delta=-9.0, mixing_weight="1/9")


def test_the_grid_done_right_is_pure_at_the_base_epsilon() -> None:
    box, epsilon, log_delta, weight = Box(0, 1), F(1), -4.0, F(1, 5)
    channel = appendix_channel_for(
        box=box, epsilon=epsilon, log_delta=log_delta, mixing_weight=weight
    )
    assert channel.lattice.cells > 5
    assert is_pure(
        rows_of(channel),
        factor=exp_below(epsilon),
        delta=exp_below(log_delta),
        epsilon=epsilon,
    )


def test_the_grid_done_right_is_the_finest_that_delta_allows() -> None:
    for d in (1, 2, 5):
        box = Box(0, 1, dimension=d)
        channel = appendix_channel_for(box=box, epsilon=1, log_delta=-20.0, mixing_weight=F(1, 100))
        finer = type(channel)(lattice=box.grid(channel.lattice.cells + 1), mixing_weight=F(1, 100))
        assert channel.proves(1, ApproxDP(1, -20.0))
        assert not finer.proves(1, ApproxDP(1, -20.0))
        release = mix_on_grid(
            [math.nan] * d, box=box, epsilon=1, log_delta=-20.0, mixing_weight=F(1, 100)
        )
        assert verify(release.certificate)
        assert box.contains(release.value)


def test_a_delta_that_no_grid_can_take_is_refused() -> None:
    with pytest.raises(GuaranteeError, match="add noise"):
        mix_on_grid(0.5, box=Box(0, 1), epsilon=1, log_delta=-1.0, mixing_weight="1/100")
