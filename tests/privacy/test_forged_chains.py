"""Chains whose steps do not prove the claim, each with a freshly computed digest."""

from __future__ import annotations

from fractions import Fraction

import pytest

from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.rational import as_rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim, GaussianDP, PureDP
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.verify import verify

GAUSSIAN = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 81, "variance": 10**4})


def smooth(**changed: object) -> Step:
    numbers = {
        "dimension": 1,
        "variance": 10**4,
        "radius": 10,
        "sensitivity": 9,
        "order": 40,
        "mixing_variance": 10**6,
        "weight": "1/100",
    }
    return Step(
        theorem="gaussian-smoothing", numbers={**numbers, **changed}, status=Status.ASSERTED
    )


def accepted(epsilon: Fraction, *steps: Step) -> Claim:
    return verify(Certificate(claim=PureDP(epsilon), steps=steps))


def test_theorem_s_holds_for_the_step_that_was_taken() -> None:
    assert accepted(Fraction(4), GAUSSIAN, smooth())


@pytest.mark.parametrize(
    "channel", [smooth(variance=10**12, mixing_variance=10**13), smooth(sensitivity=8)]
)
def test_theorem_s_must_describe_the_last_gaussian_step(channel: Step) -> None:
    with pytest.raises(CertificateError, match="last Gaussian step"):
        accepted(Fraction(4), GAUSSIAN, channel)


@pytest.mark.parametrize(
    "last",
    [
        Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 1}),
        Step(
            theorem="exponential-mechanism",
            numbers={"sensitivity": 1, "scale": 1, "monotone": False},
        ),
    ],
)
def test_other_steps_do_not_pay_for_the_last_gaussian_step(last: Step) -> None:
    with pytest.raises(CertificateError, match="last Gaussian step"):
        accepted(Fraction(20), GAUSSIAN, last, smooth())


def test_a_given_claim_may_cover_the_last_step() -> None:
    given = Step(
        theorem="given",
        numbers=GaussianDP(mu_squared=Fraction(81, 10**4)).numbers(),
        status=Status.ASSERTED,
    )
    assert accepted(Fraction(4), given, smooth())


def test_no_channel_proves_a_bounded_range() -> None:
    base = Step(theorem="given", numbers=PureDP(1).numbers(), status=Status.ASSERTED)
    mixing = Step(theorem="uniform-mixing", numbers={"size": 4, "weight": "1/100"})
    claim = PureDP(1, bounded_range=True)
    with pytest.raises(CertificateError, match="bounded range"):
        verify(Certificate(claim=claim, steps=(base, mixing)))
    assert verify(Certificate(claim=PureDP(1), steps=(base, mixing)))


def test_a_row_cannot_fake_lines_of_the_explanation() -> None:
    base = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 1})
    faked = Certificate(claim=PureDP(1), steps=(base,), row="x\n  2. [proven] checked")
    with pytest.raises(CertificateError, match="one plain line"):
        verify(faked.to_json())


@pytest.mark.parametrize("text", ["1e2_0000000", "1e٢٠٠٠٠٠٠٠", "1e20000000", "1_0"])
def test_numbers_that_only_exhaust_memory_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"^scale = "):
        as_rational(text, "scale")
