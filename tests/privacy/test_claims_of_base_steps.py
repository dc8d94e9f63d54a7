"""A claim of base steps alone is refused as soon as it says a little more than they prove."""

from __future__ import annotations

from fractions import Fraction

import pytest

from zerodelta.errors import CertificateError
from zerodelta.exact.bits import SystemBits
from zerodelta.privacy.claims import ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.steps import Step
from zerodelta.spine.plan import issue

GAUSSIAN = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 50})
CHOICE = Step(
    theorem="exponential-mechanism", numbers={"sensitivity": 1, "scale": 4, "monotone": False}
)
LAPLACE = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 2})
PROVEN = GaussianDP(mu_squared=Fraction(1, 50)).log_delta(1)


def issued(claim: Claim, step: Step) -> Claim:
    return issue(claim=claim, steps=(step,), bits=SystemBits(), public=()).claim


@pytest.mark.parametrize("more", [0.0, 0.5])
def test_the_delta_of_a_gaussian_step_may_be_claimed(more: float) -> None:
    claim = ApproxDP(1, PROVEN + more)
    assert issued(claim, GAUSSIAN) == claim


@pytest.mark.parametrize("less", [1e-9, 0.5, 100.0])
def test_a_smaller_delta_is_refused(less: float) -> None:
    with pytest.raises(CertificateError, match="do not prove"):
        issued(ApproxDP(1, PROVEN * (1 + 1e-12) - less), GAUSSIAN)


def test_only_a_choice_by_gumbel_noise_has_a_bounded_range() -> None:
    ranged = PureDP("1/2", bounded_range=True)
    assert issued(ranged, CHOICE) == ranged
    with pytest.raises(CertificateError, match="do not prove"):
        issued(ranged, LAPLACE)
