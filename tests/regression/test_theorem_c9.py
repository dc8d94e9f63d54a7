"""Theorem C9 against exact densities: never exceeded, nearly attained, and mutants are found."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
from flint import arb

import zerodelta as zd
from regression.densities import Derivatives, Logistic, Record, huber, loss_of_privacy
from zerodelta.exact.logs import ball, precision
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems import regression as theorem

EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(3)]
STRENGTHS = [Fraction(1), Fraction(5, 2), Fraction(12)]
PAIRS = [(epsilon, strength / epsilon) for epsilon, strength in product(EPSILONS, STRENGTHS)]
ROUNDNESS = [Fraction(1, 4), Fraction(45, 64)]


def record(chance: random.Random, spread: int) -> Record:
    x = Fraction(chance.choice([-64, 64, chance.randint(-64, 64)]), 64)
    return x, Fraction(chance.randint(-spread, spread), 16)


def worst(
    derivatives: Derivatives,
    *,
    rate: Fraction,
    strength: Fraction,
    trials: int,
    label: str,
) -> arb:
    """The largest loss found over random neighbors, and points, in either order."""
    chance = random.Random(label)
    largest = arb(-100)
    for _ in range(trials):
        common = [record(chance, 80) for _ in range(chance.choice([0, 0, 1, 3]))]
        one, two = [*common, record(chance, 400)], [*common, record(chance, 400)]
        for _ in range(4):
            theta = Fraction(chance.randint(-640, 640), 64)
            found = loss_of_privacy(theta, one, two, derivatives, rate=rate, strength=strength)
            largest = largest.max(abs(found))
    return largest


def huber_within(epsilon: Fraction, strength: Fraction) -> Fraction:
    fit = theorem.HuberObjectivePerturbation(noise_epsilon=epsilon, strength=strength)
    return fit.within(epsilon).noise_epsilon


@pytest.mark.parametrize(("epsilon", "strength"), PAIRS)
def test_no_pair_of_huber_fits_is_further_apart_than_the_theorem_says(
    epsilon: Fraction, strength: Fraction
) -> None:
    noise = huber_within(epsilon, strength)
    found = worst(huber, rate=noise / 2, strength=strength, trials=400, label="huber")
    assert found <= ball(epsilon)


@pytest.mark.parametrize("a", ROUNDNESS)
@pytest.mark.parametrize(("epsilon", "strength"), PAIRS)
def test_no_pair_of_logistic_fits_is_further_apart_than_the_theorem_says(
    epsilon: Fraction, strength: Fraction, a: Fraction
) -> None:
    fit = theorem.LogisticObjectivePerturbation(
        noise_epsilon=epsilon, strength=strength, roundness=a
    )
    noise = fit.within(epsilon).noise_epsilon
    loss = Logistic(a, Fraction(1, 2))
    found = worst(loss, rate=noise / 2, strength=strength, trials=400, label="logistic")
    assert found <= ball(epsilon)


def huber_extreme(theta: Fraction, residual: Fraction) -> tuple[list[Record], list[Record]]:
    """A record with this residual at θ against one that pulls the other way as hard as it can."""
    return [(Fraction(1), theta - residual)], [(Fraction(1), theta + 10**6)]


def attained(strength: Fraction, *, rate: Fraction) -> arb:
    """The largest loss over records that meet every inequality of the proof with equality."""
    theta = Fraction(-100)  # so that v has one sign, and slopes of opposite signs add up
    residuals = [*(Fraction(k, 32) for k in range(200)), Fraction(10**4)]
    largest = arb(-100)
    for residual in residuals:
        pair = huber_extreme(theta, residual)
        loss = loss_of_privacy(theta, *pair, huber, rate=rate, strength=strength)
        largest = largest.max(loss)
    return largest


@pytest.mark.parametrize(("epsilon", "strength"), PAIRS)
def test_the_theorem_is_attained_by_huber_fits(epsilon: Fraction, strength: Fraction) -> None:
    noise = huber_within(epsilon, strength)
    found = attained(strength, rate=noise / 2)
    assert ball(epsilon * Fraction(999, 1000)) < found <= ball(epsilon)


def test_half_the_noise_is_found() -> None:
    noise = huber_within(Fraction(1), Fraction(1))
    assert attained(Fraction(1), rate=noise) > 1


def test_a_dropped_determinant_is_found() -> None:
    assert attained(Fraction(1), rate=Fraction(1, 2)) > 1


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_supremum_is_the_largest_of_many_values(strength: Fraction) -> None:
    noise, a = Fraction(1), Fraction(1, 4)
    with precision(128):
        points = [ball(Fraction(1, 2**40)), *(ball(Fraction(k, 512)) for k in range(1, 4096))]
        slopes = [(-u).exp() for u in points]
        squares = [(u / ball(a)) ** 2 for u in points]
        values = [
            0.5 + 0.5 * q + (1 + q * s / (1 + s) / ball(strength)).log()
            for q, s in zip(slopes, squares, strict=True)
        ]
        largest = values[0]
        for value in values:
            largest = largest.max(value)
    claimed = theorem.LogisticObjectivePerturbation(
        noise_epsilon=noise, strength=strength, roundness=a
    ).cost(Neighbors.REPLACE)
    assert largest <= ball(claimed)
    assert ball(claimed) - largest < 1e-5


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_supremum_for_huber_is_the_largest_of_many_values(strength: Fraction) -> None:
    with precision(128):
        largest = ball(Fraction(0))
        for k in range(4097):  # residuals tan πt, where the slope is sin πt and the rest cos³ πt
            sine, cosine = ball(Fraction(k, 8192)).sin_cos_pi()
            largest = largest.max(0.5 + 0.5 * sine + (1 + cosine**3 / ball(strength)).log())
    claimed = theorem.HuberObjectivePerturbation(noise_epsilon=Fraction(1), strength=strength).cost(
        Neighbors.REPLACE
    )
    assert largest <= ball(claimed)
    assert ball(claimed) - largest < 1e-5


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_softmax_slopes_and_curvatures_stay_below_what_is_charged(classes: int) -> None:
    """For random p: slope and determinant of one record, at its trace t, are within the charge."""
    chance, strength, noise = random.Random(classes), Fraction(2), Fraction(1)
    claimed = theorem.SoftmaxObjectivePerturbation(
        noise_epsilon=noise, strength=strength, classes=classes
    ).cost(Neighbors.REPLACE)
    for _ in range(200):
        powers = [arb(chance.uniform(-6, 6)).exp() for _ in range(classes)]
        total = sum(powers, arb(0))
        p = [power / total for power in powers]
        slope = (sum((q * q for q in p), arb(0)) - 2 * p[0] + 1).sqrt() / arb(8).sqrt()
        # det(I + (diag p - ppᵀ)/Λ) = Π(1 + p_i/Λ) (1 - Σ p_i²/(Λ + p_i))
        charge = sum(((1 + q / 2).log() for q in p), arb(0))
        charge += (1 - sum((q * q / (2 + q) for q in p), arb(0))).log()
        assert arb(0.5) + slope + charge <= ball(claimed)


def test_add_remove_is_refused() -> None:
    with pytest.raises(zd.errors.GuaranteeError, match="replace"):
        theorem.HuberObjectivePerturbation(noise_epsilon=Fraction(1), strength=Fraction(1)).claim(
            Neighbors.ADD_REMOVE
        )


def test_regularization_that_costs_more_than_epsilon_is_refused() -> None:
    with pytest.raises(zd.errors.GuaranteeError, match="raise the strength"):
        huber_within(Fraction(1, 10), Fraction(1))
