"""The certified gradient is never further off than it says, whatever the rows and parameters."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zerodelta.exact.arrays import Floats
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.regression.certified_losses import (
    STEPS,
    BalancedLogistic,
    CertifiedLoss,
    IntegerRows,
    Point,
    PseudoHuber,
    Softmax,
)
from zerodelta.regression.minimum import PreciseObjective, certified_gradient

KINDS = ["even", "spiky", "same", "tiny"]
LOSSES = ["logistic", "huber", "softmax"]
SCALES = [0.0, 1e-3, 3.0, 1e3, 1e9]


def rows_of(kind: str, n: int, d: int) -> IntegerRows:
    chance = np.random.default_rng([n, d])
    signs = chance.choice([-1.0, 1.0], size=(n, 1))
    if kind == "even":
        raw = chance.normal(size=(n, d))
        raw *= chance.random((n, 1)) / np.linalg.norm(raw, axis=1, keepdims=True)
        values = np.trunc(raw * (STEPS - 1))
    elif kind == "spiky":  # all of the length in one column, which varies
        values = np.zeros((n, d))
        values[np.arange(n), chance.integers(0, d, n)] = STEPS * signs[:, 0]
    elif kind == "same":  # every error has the same sign
        values = np.full((n, d), float(int(STEPS / np.sqrt(d)))) * signs
    else:
        values = chance.integers(-1, 2, size=(n, d)).astype(np.float64)
    assert (values**2).sum(axis=1).max() <= STEPS**2
    return IntegerRows(values=values)


def loss_of(name: str, n: int) -> CertifiedLoss:
    chance = np.random.default_rng(n)
    if name == "logistic":
        return BalancedLogistic(roundness=Fraction(1, 4), shift=Fraction(1, 2))
    if name == "huber":
        return PseudoHuber(targets=chance.uniform(-16, 16, n))
    return Softmax(outputs=3, labels=chance.integers(0, 3, n), shift=Fraction(1))


def true_error(
    rows: IntegerRows, loss: CertifiedLoss, point: Point, linear: Floats, value: Floats
) -> float:
    exact = PreciseObjective(
        rows=rows,
        loss=loss,
        strength=Fraction(3, 2),
        linear=[Fraction(float(entry)) for entry in linear.flat],
    ).gradient(point.exact(), Fraction(1, 2**120))
    pairs = zip(exact, value.flat, strict=True)
    return math.sqrt(sum((e - Fraction(float(v))) ** 2 for e, v in pairs))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(0, 2), (70, 3), (60, 300), (20, 1100)])
def test_the_error_is_within_its_bound(n: int, d: int, kind: str, name: str, scale: float) -> None:
    rows = rows_of(kind, n, d) if n else IntegerRows(values=np.zeros((0, d)))
    loss, chance = loss_of(name, n), np.random.default_rng([n, d, 1])
    point = Point.near(chance.normal(size=(d, loss.outputs)) * scale)
    linear = chance.normal(size=(d, loss.outputs))
    found = certified_gradient(rows, loss, point, strength=1.5, linear=linear)
    assert true_error(rows, loss, point, linear, found.value) <= found.error
    assert found.error < 1e-6 * (1 + scale)


@pytest.mark.parametrize(("name", "most"), [("logistic", 17), ("huber", 24), ("softmax", 60)])
def test_the_bound_does_not_grow_with_the_parameters(name: str, most: float) -> None:
    """It is at most what `plan` counts on, per row and in units of 2^-53."""
    rows, loss = rows_of("even", 500, 4), loss_of(name, 500)
    direction = np.random.default_rng(0).normal(size=(4, loss.outputs))
    for scale in (0.1, 1.0, 30.0, 600.0, 1e6):
        point = Point.near(direction * scale)
        linear = np.zeros(direction.shape)
        found = certified_gradient(rows, loss, point, strength=2.0**-60, linear=linear)
        assert found.error < most * 500 * 2.0**-53


def test_dropping_the_low_limb_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, loss = rows_of("same", 70, 3), loss_of("huber", 70)
    point, linear = Point.near(np.full((3, 1), 2.7)), np.zeros((3, 1))
    halved = Point.limbs

    def high_only(self: Point) -> tuple[Floats, Floats, int]:
        high, low, bits = halved(self)
        return high, low * 0, bits

    monkeypatch.setattr(Point, "limbs", high_only)
    wrong = certified_gradient(rows, loss, point, strength=1.5, linear=linear)
    monkeypatch.undo()
    assert true_error(rows, loss, point, linear, wrong.value) > wrong.error


def test_slopes_in_single_precision_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, loss = rows_of("same", 70, 3), loss_of("logistic", 70)
    point, linear = Point.near(np.full((3, 1), 1.3)), np.zeros((3, 1))
    exact = np.clip
    monkeypatch.setattr(
        np, "clip", lambda a, low, high: exact(a, low, high).astype(np.float32) * 1.0
    )
    wrong = certified_gradient(rows, loss, point, strength=1.5, linear=linear)
    monkeypatch.undo()
    assert true_error(rows, loss, point, linear, wrong.value) > wrong.error


class StatedSlopes:
    """What `certified_gradient` asks of a loss; slopes and radii are stated outright."""

    outputs, only_differences = 1, False

    def __init__(self, middle: Floats, radius: Floats) -> None:
        self.stated = FloatBalls(middle, radius)

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        return FloatBalls(self.stated.middle[:, where], self.stated.radius[:, where])


@pytest.mark.parametrize("radius", [2.0**-60, 2.0**-40, 1e-3])
def test_every_slope_within_its_radius_is_covered(radius: float) -> None:
    """Slopes of 0 give a computed gradient of 0; each may be `radius`, all the same way."""
    n = 50
    loss: Any = StatedSlopes(np.zeros((1, n)), np.full((1, n), radius))
    rows = IntegerRows(values=np.full((n, 1), float(STEPS)))
    nothing = np.zeros((1, 1))
    found = certified_gradient(rows, loss, Point.near(nothing), strength=1.0, linear=nothing)
    assert found.value.tolist() == [[0.0]]
    assert found.error >= n * radius


def test_what_floats_lose_in_slopes_below_the_exact_digits_is_covered() -> None:
    """Rows p, q and -(p + q) of equal slopes cancel; their products in floats do not quite."""
    chance, n = np.random.default_rng(3), 900
    pairs = chance.integers(1, STEPS // 2, size=(n // 3, 2)).astype(np.float64)
    values = np.column_stack([pairs, -pairs.sum(axis=1)]).reshape(n, 1)
    slopes = np.repeat(chance.uniform(2.0**-21, 2.0**-20, n // 3), 3)
    loss: Any = StatedSlopes(slopes[None], np.zeros((1, n)))
    nothing = np.zeros((1, 1))
    rows = IntegerRows(values=values)
    found = certified_gradient(rows, loss, Point.near(nothing), strength=1.0, linear=nothing)
    exact = sum(
        (Fraction(s) * int(k) for s, k in zip(slopes, values[:, 0], strict=True)), Fraction(0)
    )
    assert exact == 0
    assert 0 < abs(found.value[0, 0]) <= found.error


def test_unknown_slopes_are_not_certified() -> None:
    rows = rows_of("even", 8, 2)
    loss = PseudoHuber(targets=np.full(8, np.inf))
    linear = np.zeros((2, 1))
    found = certified_gradient(rows, loss, Point.near(linear), strength=1.0, linear=linear)
    assert not found.error <= 1e300


@pytest.mark.parametrize("d", [1, 3, 256, 300, 5000])
def test_limbs_are_exact_and_their_products_fit(d: int) -> None:
    chance = np.random.default_rng(d)
    for theta in (chance.normal(size=(d, 2)), np.eye(d, 2) * 1e-7, np.full((d, 2), 1e300)):
        point = Point.near(theta)
        high, low, bits = point.limbs()
        again = [int(h) * 2**bits + int(x) for h, x in zip(high.flat, low.flat, strict=True)]
        assert again == point.integers.flatten().tolist()
        for limb in (high, low):
            lengths = [sum(int(x) ** 2 for x in limb[:, column]) for column in range(2)]
            assert max(lengths) * STEPS**2 <= (2**53) ** 2
        length = float(np.abs(theta).max()) * math.sqrt(2 * d)
        assert np.abs(point.floats() - theta).max() <= length * 2.0**-52


def test_a_moved_point_is_where_the_step_leads() -> None:
    chance = np.random.default_rng(0)
    point = Point.near(chance.normal(size=(7, 1)))
    for scale in (1e-14, 1e-3, 1.0, 1e6):
        step = chance.normal(size=(7, 1)) * scale
        moved = point.moved(step).exact()
        ideal = [x - Fraction(float(s)) for x, s in zip(point.exact(), step.flat, strict=True)]
        gap = max(abs(a - b) for a, b in zip(moved, ideal, strict=True))
        assert gap <= Fraction(max(1.0, scale)) / 2**50
    back = point.moved(point.floats()).floats()
    assert np.abs(back).max() < 1e-15
