"""Theorem S needs the last step's whole cost in the *Gaussian* part of a stated claim."""

from __future__ import annotations

from fractions import Fraction

import pytest

from zerodelta.privacy.composition import Composed, gaussian_share
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.smoothing import GaussianStep, best_mixing_variance
from zerodelta.privacy.verify import proves_epsilon

LAST = GaussianStep(
    dimension=1, variance=Fraction(100), radius=Fraction(10), sensitivity=Fraction(1)
)
CHANNEL = Step(
    theorem="gaussian-smoothing",
    numbers={
        "dimension": 1,
        "variance": LAST.variance,
        "radius": LAST.radius,
        "sensitivity": LAST.sensitivity,
        "order": 8,
        "mixing_variance": best_mixing_variance(LAST, 8),
        "weight": "1/2",
    },
)


def claim(share: Fraction) -> Composed:
    """So much of the step's ρ as Gaussian DP, and a pure step that costs far more than the rest."""
    return Composed(mu_squared=2 * LAST.rho * share, pure=((Fraction(1, 4), False, 1),))


def test_the_whole_step_in_the_gaussian_part_is_enough() -> None:
    assert proves_epsilon(CHANNEL, claim(Fraction(1)), Fraction(3))


@pytest.mark.parametrize(
    "share", [Fraction(0), Fraction(1, 2), Fraction(3, 4), Fraction(999, 1000)]
)
def test_a_pure_step_does_not_pay_for_the_gaussian_one(share: Fraction) -> None:
    assert not proves_epsilon(CHANNEL, claim(share), Fraction(3))


def test_a_zcdp_part_holds_the_step_if_its_rho_does() -> None:
    rest = ((Fraction(1, 4), False, 1),)
    assert gaussian_share(Composed(mu_squared=Fraction(1, 3), rho=Fraction(1, 4))) == Fraction(5, 6)
    assert proves_epsilon(CHANNEL, Composed(rho=LAST.rho, pure=rest), Fraction(3))
    assert not proves_epsilon(CHANNEL, Composed(rho=LAST.rho * 3 / 4, pure=rest), Fraction(3))
