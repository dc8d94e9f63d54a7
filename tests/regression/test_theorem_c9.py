"""Theorem C9 against exact densities, with two classes and with more."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_mat

import zerodelta as zd
from regression.densities import Derivatives, Logistic, Record, huber, loss_of_privacy
from regression.fits import fit_multinomial
from sampling import Replace
from zerodelta.audit.exact import datasets, neighbors
from zerodelta.exact.logs import ball, precision
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems import regression as theorem
from zerodelta.privacy.theorems.regression import SoftmaxObjectivePerturbation
from zerodelta.regression.certified_losses import STEPS, Softmax
from zerodelta.regression.objective import Shape, plan_multinomial

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


@pytest.mark.parametrize(
    "minimum",
    [
        theorem.HuberObjectivePerturbation(noise_epsilon=Fraction(1), strength=Fraction(1)),
        theorem.KNormSufficientStatistics.read({"target_weight": 1, "scale": 1}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_add_remove_is_refused(minimum: Any) -> None:
    with pytest.raises(zd.errors.GuaranteeError, match="replace"):
        minimum.claim(Neighbors.ADD_REMOVE)


def test_regularization_that_costs_more_than_epsilon_is_refused() -> None:
    with pytest.raises(zd.errors.GuaranteeError, match="raise the strength"):
        huber_within(Fraction(1, 10), Fraction(1))


# -- several classes ------------------------------------------------------------------------------


F = Fraction
SoftmaxRecord = tuple[tuple[Fraction, ...], int]
Theta = tuple[tuple[Fraction, ...], ...]
"""One line for each feature, one entry for each class; lines add up to 0."""


@dataclass(frozen=True)
class Fit:
    """A scale of noise, a strength and a shift of the loss."""

    classes: int
    scale_squared: Fraction
    strength: Fraction
    shift: Fraction

    def log_density(self, theta: Theta, data: Sequence[SoftmaxRecord]) -> arb:
        """ln of exp(-‖v‖/scale) det(dv/dθ), up to one constant.

        The Hessian is taken on all matrices: it is Λ on constant lines, whatever the data.
        """
        labels = np.array([label for _, label in data])
        loss = Softmax(outputs=self.classes, labels=labels, shift=self.shift)
        lam, width = ball(self.strength), len(theta)
        size = width * self.classes
        slope = [[lam * ball(entry) for entry in line] for line in theta]
        bend = [[lam * int(a == b) for b in range(size)] for a in range(size)]
        for row, (x, label) in enumerate(data):
            features = [ball(part) for part in x]
            margins = [
                sum((f * ball(line[k]) for f, line in zip(features, theta, strict=True)), arb(0))
                for k in range(self.classes)
            ]
            pulls = loss.slope_arb(margins, row)
            p = [pull + int(k == label) for k, pull in enumerate(pulls)]
            places = list(itertools.product(range(width), range(self.classes)))
            for a, (i, k) in enumerate(places):
                slope[i][k] += features[i] * pulls[k]
                for b, (j, m) in enumerate(places):
                    bend[a][b] += features[i] * features[j] * p[k] * (int(k == m) - p[m])
        square = sum((entry * entry for line in slope for entry in line), arb(0))
        length = square.sqrt() if square > 0 else arb(0).union(square.abs_upper().sqrt())
        return -length / ball(self.scale_squared).sqrt() + arb_mat(bend).det().log()


def centered(*entries: Fraction | int) -> tuple[Fraction, ...]:
    """Entries and the one that makes their sum 0."""
    exact = [F(entry) for entry in entries]
    return (*exact, -sum(exact, F(0)))


FAR = [F(k) for k in (-60, -12, -4, -1, 0, 1, 3, 12, 60)]
NEAR = [F(k) for k in (-30, -2, 0, 1, 30)]
LINE: list[tuple[Fraction, ...]] = [(F(-1),), (F(1, 2),), (F(1),)]
PLANE: list[tuple[Fraction, ...]] = [(F(1), F(0)), (F(-3, 5), F(4, 5)), (F(0), F(-1))]
SHAPES: dict[str, tuple[int, list[Theta], list[tuple[Fraction, ...]]]] = {
    "2 classes": (2, [(centered(a),) for a in FAR], LINE),
    "3 classes": (3, [(centered(a, b),) for a, b in itertools.product(FAR, repeat=2)], LINE),
    "2 classes, 2 features": (
        2,
        [(centered(a), centered(b)) for a, b in itertools.product(NEAR, repeat=2)],
        PLANE,
    ),
    "3 classes, 2 features": (
        3,
        [(centered(a, b), centered(b, a)) for a, b in itertools.product(NEAR, repeat=2)],
        PLANE[:2],
    ),
}


def largest_loss(fit: Fit, points: Sequence[Theta], tables: dict[Any, list[SoftmaxRecord]]) -> arb:
    """The largest |ln ratio| of the densities of neighbors, over points."""
    pairs = list(neighbors(tables))
    largest = arb(0)
    with precision(160):
        for theta in points:
            density = {name: fit.log_density(theta, data) for name, data in tables.items()}
            for a, b in pairs:
                largest = largest.max(abs(density[a] - density[b]))
    return largest


def softmax_worst(name: str, fit: Fit, count: int) -> arb:
    """The largest loss over all neighboring datasets of so many records."""
    _, points, rows = SHAPES[name]
    records = list(itertools.product(rows, range(fit.classes)))
    tables = {rows: list(rows) for rows in datasets(records, count)}
    return largest_loss(fit, points, tables)


def noise_for(epsilon: Fraction, strength: Fraction, classes: int) -> Fraction:
    """The square of the scale that the theorem asks for."""
    fit = SoftmaxObjectivePerturbation(noise_epsilon=epsilon, strength=strength, classes=classes)
    return 8 / fit.within(epsilon).noise_epsilon ** 2


SOFTMAX_PAIRS = [(F(1), F(1)), (F(1), F(2)), (F(3), F(1)), (F(1), F(24)), (F(1, 2), F(6))]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("shift", [0, 2, 20])
@pytest.mark.parametrize(("epsilon", "strength"), SOFTMAX_PAIRS)
def test_no_two_records_are_further_apart_than_the_theorem_says(
    name: str, shift: int, epsilon: Fraction, strength: Fraction
) -> None:
    classes = SHAPES[name][0]
    fit = Fit(classes, noise_for(epsilon, strength, classes), strength, F(shift))
    loss = softmax_worst(name, fit, 1)
    assert loss <= ball(epsilon)
    if shift == 20:  # wrong labels pull as hard as they can
        assert loss > ball(epsilon * F(3, 5))


@pytest.mark.parametrize("name", ["2 classes", "2 classes, 2 features"])
@pytest.mark.parametrize(("epsilon", "strength"), SOFTMAX_PAIRS)
def test_no_two_datasets_are_further_apart_than_the_theorem_says(
    name: str, epsilon: Fraction, strength: Fraction
) -> None:
    """Two records, one of them replaced."""
    fit = Fit(2, noise_for(epsilon, strength, 2), strength, F(2))
    assert softmax_worst(name, fit, 2) <= ball(epsilon)


def test_the_theorem_is_attained() -> None:
    fit = Fit(2, noise_for(F(1), F(24), 2), F(24), F(20))
    assert ball(F(9999, 10000)) < softmax_worst("2 classes", fit, 1) <= 1


MUTANTS: dict[str, tuple[Fraction, Fraction, str]] = {
    "half the noise": (F(1, 4), F(2), "3 classes"),
    "slopes of norm 1": (F(1, 2), F(2), "2 classes"),
    "half the noise, two features": (F(1, 4), F(24), "2 classes, 2 features"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_too_little_noise_is_caught(mutant: str) -> None:
    factor, strength, name = MUTANTS[mutant]
    classes = SHAPES[name][0]
    fit = Fit(classes, noise_for(F(1), strength, classes) * factor, strength, F(20))
    assert softmax_worst(name, fit, 1) > 1


@pytest.mark.parametrize(("name", "shift"), [("2 classes", 2), ("3 classes", 20)])
def test_a_dropped_determinant_is_caught(name: str, shift: int) -> None:
    """All of ε for the noise, nothing for the curvature."""
    fit = Fit(SHAPES[name][0], F(8), F(1), F(shift))
    assert softmax_worst(name, fit, 1) > 1


# --- the numbers of a real fit -------------------------------------------------------------------


class Handed(Exception):  # noqa: N818  (not an error: what the solver was handed)
    pass


def handed(rows: Any, labels: Any, replace: Replace) -> tuple[Fit, list[SoftmaxRecord]]:
    """What `fit_multinomial` gives to its noise and its solver: exact rows, labels and scales."""
    seen: dict[str, Any] = {}

    def noise(**given: Any) -> None:
        seen.update(given)

    def solver(integers: Any, loss: Any, _: Any, *, strength: Fraction, error: Fraction) -> Any:
        seen.update(integers=integers, loss=loss, strength=strength)
        raise Handed

    replace("RealKNorm", noise)
    replace("certified_minimum", solver)
    with pytest.raises(Handed):
        fit_multinomial(
            rows, labels, epsilon=EPSILON, data_norm=1, classes=[0, 1, 2], intercept=False
        )
    assert (seen["columns"], seen["centered"]) == (3, True)
    loss = seen["loss"]
    assert isinstance(loss, Softmax)
    exact = [tuple(F(int(k), STEPS) for k in row) for row in seen["integers"].values]
    assert all(sum(part * part for part in row) <= 1 for row in exact)
    fit = Fit(3, seen["scale_squared"], seen["strength"], loss.shift)
    return fit, list(zip(exact, loss.labels.tolist(), strict=True))


EPSILON = F(2)
UNIVERSE = [(-1.0, 0), (0.6, 1), (1e9, 2), (1.0, 0), (math.nan, 1), (0.5, 7)]
"""Rows that are too long, missing, or of no class."""


def test_a_real_fit_spends_less_than_what_theorem_n_leaves(replace: Replace) -> None:
    """Rows and scales as the solver gets them; the rest of ε is for its error (theory N)."""
    plan = plan_multinomial(
        Shape.of(rows=2, dimension=1, epsilon=EPSILON, intercept=False), classes=3
    )
    left = EPSILON - 2 * plan.channel.error / plan.channel.scale
    tables, fits = {}, set()
    for rows in datasets(UNIVERSE, 2):
        features = np.array([[x] for x, _ in rows])
        fit, tables[rows] = handed(features, [label for _, label in rows], replace)
        fits.add(fit)
    (fit,) = fits
    loss = largest_loss(fit, SHAPES["3 classes"][1], tables)
    assert 0 < left < EPSILON
    assert loss <= ball(left)
    quiet = Fit(3, fit.scale_squared / 4, fit.strength, fit.shift)
    assert largest_loss(quiet, SHAPES["3 classes"][1], tables) > ball(EPSILON)
