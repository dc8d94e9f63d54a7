"""Appendix C: mixing, its cited bound and B1; Appendix D: the printed net and the right one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from channels.channel_laws import rows_of
from channels.verdicts import exp_below, is_pure, output_pairs
from zerodelta.audit.exact import max_log_ratio
from zerodelta.channels.mixes import FiniteMix
from zerodelta.errors import CertificateError, GuaranteeError, ParameterError
from zerodelta.paper.appendices import (
    channel_for,
    continuous_example,
    mix_choice,
    mix_on_grid,
    mixed_epsilon,
    printed_epsilon,
    printed_net,
    worst_epsilon,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Box, Finite

F = Fraction
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
    channel = channel_for(box=box, epsilon=epsilon, log_delta=log_delta, mixing_weight=weight)
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
        channel = channel_for(box=box, epsilon=1, log_delta=-20.0, mixing_weight=F(1, 100))
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
