"""S2 is false if the last step's own cost is left out of ρ: such a certificate must fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from zerodelta.errors import CertificateError, ParameterError
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.smoothing import GaussianStep, smoothing_slack
from zerodelta.privacy.verify import verify

LAST = GaussianStep(dimension=1, variance=Fraction(1), radius=Fraction(10), sensitivity=Fraction(5))


def test_a_history_cheaper_than_its_last_step_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^rho = .*last step"):
        smoothing_slack(
            LAST, rho=LAST.rho / 2, order=2, mixing_variance=200, weight="1/2", epsilon=1
        )


def test_a_certificate_that_leaves_out_the_last_step_is_rejected() -> None:
    base = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 10**6})
    channel = Step(
        theorem="gaussian-smoothing",
        numbers={
            "dimension": 1,
            "variance": 1,
            "radius": 10,
            "sensitivity": 5,
            "order": 5,
            "mixing_variance": 1000,
            "weight": "1/2",
        },
    )
    with pytest.raises(CertificateError, match="last Gaussian step"):
        verify(Certificate(claim=PureDP(1), steps=(base, channel)))
