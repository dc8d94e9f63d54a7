"""Softmax objective perturbation: the exact density of the minimizer, on all small neighbors.

The noise is v = -(Σ slopes + Λθ) on matrices whose lines add up to 0, so the density at θ is that
of the noise at v times the determinant of the Hessian there. Slopes are those of the shipped loss.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_mat

from regression.fits import fit_multinomial
from sampling import Replace
from zerodelta.audit.exact import datasets, neighbors
from zerodelta.exact.logs import ball, precision
from zerodelta.privacy.theorems.regression import SoftmaxObjectivePerturbation
from zerodelta.regression.certified_losses import STEPS, Softmax
from zerodelta.regression.objective import Shape, plan_multinomial

F = Fraction
Record = tuple[tuple[Fraction, ...], int]
Theta = tuple[tuple[Fraction, ...], ...]
"""One line for each feature, one entry for each class; lines add up to 0."""


@dataclass(frozen=True)
class Fit:
    """A scale of noise, a strength and a shift of the loss."""

    classes: int
    scale_squared: Fraction
    strength: Fraction
    shift: Fraction

    def log_density(self, theta: Theta, data: Sequence[Record]) -> arb:
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


def largest_loss(fit: Fit, points: Sequence[Theta], tables: dict[Any, list[Record]]) -> arb:
    """The largest |ln ratio| of the densities of neighbors, over points."""
    pairs = list(neighbors(tables))
    largest = arb(0)
    with precision(160):
        for theta in points:
            density = {name: fit.log_density(theta, data) for name, data in tables.items()}
            for a, b in pairs:
                largest = largest.max(abs(density[a] - density[b]))
    return largest


def worst(name: str, fit: Fit, count: int) -> arb:
    """The largest loss over all neighboring datasets of so many records."""
    _, points, rows = SHAPES[name]
    records = list(itertools.product(rows, range(fit.classes)))
    tables = {rows: list(rows) for rows in datasets(records, count)}
    return largest_loss(fit, points, tables)


def noise_for(epsilon: Fraction, strength: Fraction, classes: int) -> Fraction:
    """The square of the scale that the theorem asks for."""
    fit = SoftmaxObjectivePerturbation(noise_epsilon=epsilon, strength=strength, classes=classes)
    return 8 / fit.within(epsilon).noise_epsilon ** 2


PAIRS = [(F(1), F(1)), (F(1), F(2)), (F(3), F(1)), (F(1), F(24)), (F(1, 2), F(6))]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("shift", [0, 2, 20])
@pytest.mark.parametrize(("epsilon", "strength"), PAIRS)
def test_no_two_records_are_further_apart_than_the_theorem_says(
    name: str, shift: int, epsilon: Fraction, strength: Fraction
) -> None:
    classes = SHAPES[name][0]
    fit = Fit(classes, noise_for(epsilon, strength, classes), strength, F(shift))
    loss = worst(name, fit, 1)
    assert loss <= ball(epsilon)
    if shift == 20:  # wrong labels pull as hard as they can
        assert loss > ball(epsilon * F(3, 5))


@pytest.mark.parametrize("name", ["2 classes", "2 classes, 2 features"])
@pytest.mark.parametrize(("epsilon", "strength"), PAIRS)
def test_no_two_datasets_are_further_apart_than_the_theorem_says(
    name: str, epsilon: Fraction, strength: Fraction
) -> None:
    """Two records, one of them replaced."""
    fit = Fit(2, noise_for(epsilon, strength, 2), strength, F(2))
    assert worst(name, fit, 2) <= ball(epsilon)


def test_the_theorem_is_attained() -> None:
    fit = Fit(2, noise_for(F(1), F(24), 2), F(24), F(20))
    assert ball(F(9999, 10000)) < worst("2 classes", fit, 1) <= 1


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
    assert worst(name, fit, 1) > 1


@pytest.mark.parametrize(("name", "shift"), [("2 classes", 2), ("3 classes", 20)])
def test_a_dropped_determinant_is_caught(name: str, shift: int) -> None:
    """All of ε for the noise, nothing for the curvature."""
    fit = Fit(SHAPES[name][0], F(8), F(1), F(shift))
    assert worst(name, fit, 1) > 1


# --- the numbers of a real fit -------------------------------------------------------------------


class Handed(Exception):  # noqa: N818  (not an error: what the solver was handed)
    pass


def handed(rows: Any, labels: Any, replace: Replace) -> tuple[Fit, list[Record]]:
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
