"""The minimizer is found as accurately as asked, whichever way, and bad steps cannot stop it."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from regression.fits import fit_logistic, fit_multinomial
from regression.test_certified_gradient import LOSSES, loss_of, rows_of
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import RealKNorm
from zerodelta.regression import minimum
from zerodelta.regression.certified_losses import BalancedLogistic, CertifiedLoss, IntegerRows
from zerodelta.regression.minimum import (
    CertifiedGradient,
    Objective,
    PreciseObjective,
    QuasiNewton,
    accelerated,
    certified_minimum,
    finish,
)
from zerodelta.regression.objective import Shape, plan_logistic
from zerodelta.testing import replayed

STRENGTH = Fraction(3, 2)


def noise_of(loss: CertifiedLoss, d: int, scale: int = 3) -> RealKNorm:
    many = loss.outputs > 1
    return RealKNorm(
        rows=d, columns=loss.outputs, centered=many, scale=scale, bits=ReplayBits("noise")
    )


class FixedNoise:
    """Noise of a chosen size."""

    def __init__(self, value: Fraction) -> None:
        self.value = value

    def within(self, error: Fraction) -> list[Fraction]:
        return [self.value]


def distance(one: list[Fraction], two: list[Fraction]) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, two, strict=True)))


def minimized(
    rows: IntegerRows, loss: CertifiedLoss, digits: int, scale: int = 3
) -> list[Fraction]:
    return certified_minimum(
        rows,
        loss,
        noise_of(loss, rows.dimension, scale),
        strength=STRENGTH,
        error=Fraction(1, 10**digits),
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (60, 3), (40, 310)])
def test_each_accuracy_is_kept(name: str, n: int, d: int) -> None:
    rows, loss = rows_of("even", n, d), loss_of(name, n)
    best = minimized(rows, loss, 40)
    for digits in (6, 10, 25):
        assert distance(minimized(rows, loss, digits), best) <= 1.001 * 10**-digits


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_vanishes_at_the_minimum(name: str) -> None:
    rows, loss = rows_of("spiky", 50, 4), loss_of(name, 50)
    found = minimized(rows, loss, 30)
    linear = noise_of(loss, 4).within(Fraction(1, 10**40))
    objective = PreciseObjective(rows=rows, loss=loss, strength=STRENGTH, linear=linear)
    gradient = objective.gradient(found, Fraction(1, 10**40))
    assert distance(gradient, [Fraction(0)] * len(gradient)) <= 1.6e-30


def test_noise_of_any_size_is_minimized() -> None:
    rows, loss = rows_of("even", 30, 2), loss_of("logistic", 30)
    found, best = minimized(rows, loss, 9, 10**25), minimized(rows, loss, 12, 10**25)
    assert distance(found, best) <= 1.01e-9


@pytest.mark.parametrize("factor", [float("nan"), float("inf"), 0.0, -1.0, 1e9])
def test_steps_as_bad_as_they_like_do_not_stop_the_precise_way(factor: float) -> None:
    rows, loss = rows_of("even", 6, 2), loss_of("huber", 6)
    linear = noise_of(loss, 2).within(Fraction(1, 10**20))
    objective = PreciseObjective(rows=rows, loss=loss, strength=STRENGTH, linear=linear)

    def bad(gradient: Floats) -> Floats:
        return gradient * factor

    found = finish(objective, [Fraction(0)] * 2, bad, Fraction(1, 10**4))
    gradient = objective.gradient(found, Fraction(1, 10**12))
    assert distance(gradient, [Fraction(0)] * 2) <= 1.0001e-4


@pytest.mark.parametrize("name", LOSSES)
def test_accelerated_steps_alone_reach_the_target(name: str) -> None:
    rows, loss = rows_of("even", 400, 3), loss_of(name, 400)
    linear = np.random.default_rng(0).normal(size=(3, loss.outputs))
    objective = Objective(rows=rows, loss=loss, strength=1.5, linear=linear)
    found = accelerated(objective, np.zeros(linear.shape), 1e-9)
    assert np.linalg.norm(objective.gradient(found)) < 2e-9


def test_accelerated_steps_stay_where_the_gradient_vanishes() -> None:
    rows, loss = IntegerRows(values=np.zeros((3, 1))), loss_of("logistic", 3)
    objective = Objective(rows=rows, loss=loss, strength=1.0, linear=np.array([[-0.5]]))
    assert accelerated(objective, np.array([[0.5]]), 1e-9).tolist() == [[0.5]]


def test_no_size_of_noise_makes_empty_rows_raise() -> None:
    """Where a float gradient cannot be certified, zero rows give one that is exactly 0."""
    plan = plan_logistic(Shape.of(rows=5, dimension=1, epsilon=1, intercept=False))
    rows = IntegerRows(values=np.zeros((5, 1)))
    loss = BalancedLogistic(roundness=plan.roundness, shift=plan.shift)
    far = float(plan.channel.error * plan.strength) * 2.0**53
    for size in np.geomspace(far / 40, far * 1.2, 25):
        fixed: Any = FixedNoise(Fraction(float(size)))
        found = certified_minimum(
            rows, loss, fixed, strength=plan.strength, error=plan.channel.error
        )
        exact = [-Fraction(float(size)) / plan.strength]
        assert distance(list(found), exact) <= float(plan.channel.error)


@pytest.mark.parametrize("size", [2**60 + 127, 2**80 + 2**26 + 1, 3 * 10**20 + 1])
def test_what_the_noise_loses_as_a_float_is_doubted(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the noise is large its rounding to floats is more than all that was asked for."""
    rows, loss = rows_of("even", 6, 1), loss_of("huber", 6)
    told: list[tuple[float, float]] = []

    def spy(objective: Objective, *given: Any) -> None:
        told.append((float(objective.linear[0, 0]), given[-1]))

    monkeypatch.setattr(minimum, "_certify", spy)
    error, drawn = Fraction(1, 10**3), Fraction(size)
    found = certified_minimum(rows, loss, FixedNoise(drawn), strength=STRENGTH, error=error)  # type: ignore[arg-type]
    assert len(found) == 1
    for linear, doubt in told:
        lost = abs(Fraction(linear) - drawn)
        assert lost > error * STRENGTH
        assert doubt >= lost + error * STRENGTH / 64  # what `within` was allowed to be off by
    assert told


@pytest.mark.parametrize("size", [0, 1, 2**40])
def test_the_error_of_the_noise_itself_is_doubted(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A float is its own rounding, and still `within` may have been off by a 64th."""
    told: list[float] = []
    monkeypatch.setattr(minimum, "_certify", lambda *given: told.append(given[-1]))
    noise, error = FixedNoise(Fraction(size)), Fraction(1, 10**3)
    rows, loss = rows_of("even", 6, 1), loss_of("huber", 6)
    certified_minimum(rows, loss, noise, strength=STRENGTH, error=error)  # type: ignore[arg-type]
    assert told
    assert min(told) >= error * STRENGTH / 64


@pytest.mark.parametrize(
    ("error", "good"), [(0.5, True), (0.99, True), (1.01, False), (9.0, False)]
)
def test_a_gradient_is_certified_with_its_error_and_what_is_not_seen(
    error: float, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A computed gradient of 0 proves nothing if its error, or the noise's, is the whole target."""
    rows, loss = rows_of("even", 6, 1), loss_of("huber", 6)
    objective = Objective(rows=rows, loss=loss, strength=1.5, linear=np.zeros((1, 1)))
    steps = QuasiNewton(lambda gradient: gradient * 0)
    for errs, unseen in ((error, 0.0), (0.0, error)):
        certain = CertifiedGradient(value=np.zeros((1, 1)), error=errs)
        monkeypatch.setattr(minimum, "certified_gradient", lambda *_, c=certain, **__: c)
        found = minimum._certify(objective, np.zeros((1, 1)), steps, 1.0, unseen)
        assert (found is not None) == good


@pytest.mark.parametrize("error", [Fraction(1, 10), Fraction(1, 10**6)])
def test_no_way_may_leave_a_longer_gradient_than_strength_times_error(
    error: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distance from the minimizer is at most the gradient's length over the strength."""
    reached: list[float] = []
    finished: list[Fraction] = []
    asked: list[Fraction] = []

    class Asked(FixedNoise):
        def within(self, error: Fraction) -> list[Fraction]:
            asked.append(error)
            return super().within(error)

    def finish_at(_: Any, start: list[Fraction], __: Any, target: Fraction) -> list[Fraction]:
        finished.append(target)
        return start

    monkeypatch.setattr(minimum, "_certify", lambda *given: reached.append(given[3]))
    monkeypatch.setattr(minimum, "finish", finish_at)
    noise: Any = Asked(Fraction(3))
    rows, loss = rows_of("even", 6, 1), loss_of("huber", 6)
    certified_minimum(rows, loss, noise, strength=STRENGTH, error=error)
    assert 0 < max(reached) <= error * STRENGTH
    assert 0 < finished[-1] + asked[-1] <= error * STRENGTH


def test_a_lost_fast_way_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever `approach` returns, accelerated or precise steps end at the same minimizer."""
    rows, loss = rows_of("even", 200, 3), loss_of("logistic", 200)
    best = minimized(rows, loss, 20)
    for start in (0.0, 1e3, float("nan")):
        theta = np.full((3, 1), start)
        for solve in (lambda g: g * 0, lambda g: g * float("nan"), lambda g: g * 1e-2):
            steps = QuasiNewton(solve)

            def lost(*_: object, at: Floats = theta, by: QuasiNewton = steps) -> object:
                return at, by

            monkeypatch.setattr(minimum, "approach", lost)
            assert distance(minimized(rows, loss, 8), best) <= 1.001e-8


def test_thinning_and_quasi_newton_steps_find_the_minimum_of_all_rows() -> None:
    chance = np.random.default_rng(5)
    raw = chance.normal(size=(40_000, 6))
    raw /= np.linalg.norm(raw, axis=1, keepdims=True)
    rows = IntegerRows(values=np.trunc(raw * 2**22 * 0.999999))
    loss = loss_of("logistic", 40_000)
    found = np.array([float(x) for x in minimized(rows, loss, 7)]).reshape(6, 1)
    linear = np.array([float(x) for x in noise_of(loss, 6).within(Fraction(1, 10**15))])
    objective = Objective(rows=rows, loss=loss, strength=1.5, linear=linear.reshape(6, 1))
    assert np.linalg.norm(objective.gradient(found)) < 1.5e-7


def test_noise_has_its_law_and_keeps_to_its_space() -> None:
    bits, draws = ReplayBits("law"), 3000
    scalar = np.array(
        [
            float(RealKNorm(rows=1, scale=2, bits=bits).within(Fraction(1, 2**40))[0])
            for _ in range(draws)
        ]
    )
    grid = np.sort(scalar)
    laplace = np.where(grid < 0, np.exp(grid / 2) / 2, 1 - np.exp(-grid / 2) / 2)
    assert np.abs(laplace - np.arange(draws) / draws).max() < 2.2 / draws**0.5
    pair = RealKNorm(rows=5, columns=4, centered=True, scale=1, bits=bits)
    lines = np.array([float(x) for x in pair.within(Fraction(1, 2**60))]).reshape(5, 4)
    assert np.abs(lines.sum(axis=1)).max() < 1e-14
    squares = [
        sum(
            float(x) ** 2
            for x in RealKNorm(
                rows=2, columns=3, centered=True, scale_squared="1/4", bits=bits
            ).within(Fraction(1, 2**40))
        )
        for _ in range(1000)
    ]
    assert abs(np.mean(squares) / (4 * 5 / 4) - 1) < 0.15  # N (N+1) scale² with N = 4


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_rows_do_not_need_the_slow_ways(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows carry all of the curvature, and a sample of them misleads."""

    def slow(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(minimum, "accelerated", slow)
    monkeypatch.setattr(minimum, "finish", slow)
    rows = np.random.default_rng(0).normal(size=(40_000, 10))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fit = fit_logistic if classes == 2 else fit_multinomial
    public: dict[str, Any] = {"epsilon": 10, "data_norm": 1, "classes": range(classes)}
    release = replayed("s")(fit)(rows, rows[:, 0] > 0, **public)
    assert release.value.decision(rows).shape[0] == 40_000


def _mixed(rng: np.random.Generator, n: int) -> Any:
    two = rng.uniform(-0.5, 0.5, size=(n, 2))
    return np.column_stack([two, two @ [0.37, 0.61], two @ [0.11, -0.7]])


def _categories(rng: np.random.Generator, n: int) -> Any:
    """Sums of equal rows round the same way."""
    one = np.eye(4)[rng.integers(4, size=n)]
    return np.column_stack([one, one.sum(axis=1)]) * 0.37


def _equal(_: np.random.Generator, n: int) -> Any:
    return np.full((n, 3), 0.37)


@pytest.mark.parametrize("epsilon", [10, 200, 10**3, 10**6])
@pytest.mark.parametrize("rows_like", [_mixed, _categories, _equal])
@pytest.mark.parametrize("fit", [fit_logistic, fit_multinomial])
def test_columns_that_say_the_same_need_no_slow_way(
    fit: Any, rows_like: Any, epsilon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The penalty, a thousandth or less, is all that bends the loss along their differences."""

    def slow(*_: Any) -> Any:
        raise AssertionError("neither accelerated steps nor Arb are needed here")

    monkeypatch.setattr(minimum, "accelerated", slow)
    monkeypatch.setattr(minimum, "finish", slow)
    rng = np.random.default_rng(0)
    rows = rows_like(rng, 20_000)
    labels = (rows[:, 0] + rng.normal(size=len(rows)) / 3 > 0.1).astype(int)
    release = fit(rows, labels, epsilon=epsilon, data_norm=1, classes=[0, 1])
    assert np.isfinite(release.value.coefficients).all()


def test_fits_at_once_leave_the_threads_as_they_were() -> None:
    before = [library["num_threads"] for library in threadpool_info()]
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(3000, 2))

    def fit(_: int) -> Any:
        return fit_logistic(rows, rows[:, 0] > 0, epsilon=1, data_norm=1, classes=[False, True])

    with ThreadPoolExecutor(3) as several:
        found = list(several.map(fit, range(9)))
    assert len(found) == 9
    assert [library["num_threads"] for library in threadpool_info()] == before
