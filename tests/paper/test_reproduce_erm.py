"""Rows 1 to 3 of Table 1, Table 2 and the price of δ = 0: what is predicted and counted."""

from __future__ import annotations

import doctest
import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from reproduce import curves, drawing, erm_rows, page, rates, table_2, tightness
from reproduce.erm_rows import (
    SGD,
    STRONG_STEPS,
    STRONGLY_CONVEX,
    DescentSetup,
    average_variance,
    convex_bound,
    two_points,
)
from reproduce.frank_wolfe_row import FRANK_WOLFE, iterations, spread_rows
from reproduce.price import (
    EPSILON,
    LENGTH,
    METHODS,
    PURIFIED,
    Method,
    best_lattice,
    better_from,
    digits,
    findings,
    price,
    theorem_w,
)
from reproduce.rates import Point, fit
from reproduce.table_2 import RUN_TIME, UTILITY, gradient_count, grid_cells

from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.sum_noise import KNorm, RoundedGaussian
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, laplace_scale
from zerodelta.paper.algorithm_05_06 import approximate_frank_wolfe
from zerodelta.paper.algorithm_07_08 import printed_measurements, pure_frank_wolfe
from zerodelta.paper.baselines import grid_points, laplace_noisy_descent
from zerodelta.privacy.claims import ApproxDP, GaussianDP
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training.frank_wolfe import frank_wolfe_pure
from zerodelta.training.losses import Hinge


@pytest.mark.parametrize("module", [curves, drawing, erm_rows, page, rates, table_2, tightness])
def test_the_examples_of_reproduce_are_right(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def prediction(experiment: Any, variant: str, point: Point) -> float:
    return float(experiment.predicted(variant, point))


@pytest.mark.parametrize("variant", list(SGD.variants))
def test_row_1_predicts_the_forecast_of_its_releases(variant: str) -> None:
    point = {"n": 300, "d": 3, "epsilon": 2, "L": 2, "C": 0.5}
    setup = DescentSetup.of(variant, point)
    features, labels, _ = two_points(300, 3, norm=2.0)
    release = setup.release(features, labels, loss=Hinge(classes=(0, 1)), steps=setup.balanced())
    assert prediction(SGD, variant, point) == pytest.approx(release.error, rel=1e-4)
    claim: Any = release.certificate.claim
    assert claim.exact_epsilon == 2
    assert hasattr(claim, "exact_log_delta") == (variant == "before")


@pytest.mark.parametrize("variant", list(SGD.variants))
def test_row_1_is_linear_in_the_lipschitz_constant_and_the_diameter(variant: str) -> None:
    base = {"n": 300, "d": 3, "epsilon": 2, "L": 1, "C": 1}
    for name in ("L", "C"):
        doubled = prediction(SGD, variant, {**base, name: 2})
        assert doubled == pytest.approx(2 * prediction(SGD, variant, base))


def test_noise_and_steps_cost_the_same_in_row_1() -> None:
    setup = DescentSetup.of("before", {"n": 5000, "d": 4, "epsilon": 1})
    steps = setup.balanced()
    noise = setup.dimension * setup.noise(steps) ** 2
    assert noise == pytest.approx(setup.rows**2, rel=1e-3)  # dσ² = (nL)²
    # a quarter of the noise's share in the bound is left after four times as many steps
    assert convex_bound(setup, steps=4 * steps) < convex_bound(setup, steps=steps)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_average_of_a_quadratics_descent_has_these_weights(steps: int) -> None:
    """Each z_s = 1 alone: the recursion of `descend` with λ = 1, and its weighted average."""
    weights = []
    for s in range(1, steps + 1):
        theta, average, mass = 0.0, 0.0, 0.0
        for t in range(1, steps + 1):
            theta -= 2 / (t + 1) * (theta - (1.0 if t == s else 0.0))
            mass += t + 1
            average += (theta - average) * (t + 1) / mass
        weights.append(average)
    assert sum(weights) == pytest.approx(1)
    assert average_variance(steps) == pytest.approx(sum(w * w for w in weights))


def test_row_2_predicts_the_variance_of_the_average() -> None:
    point = {"n": 10_000, "d": 5, "epsilon": 2, "L": 1, "lambda": 2}
    setup = DescentSetup.of("before", point)
    per_step = setup.noise(STRONG_STEPS) / (10_000 * 2)
    known = 2 / 2 * 5 * per_step**2 * average_variance(STRONG_STEPS)
    assert prediction(STRONGLY_CONVEX, "before", point) == pytest.approx(known)


def test_row_2_agrees_with_its_prediction_within_the_errors_of_chance() -> None:
    """Squares of 2 normal numbers, 30 runs: a mean of 60 has standard error √(2/60) = 0.18."""
    point = {"n": 4000, "d": 2, "epsilon": 4, "L": 1, "lambda": 1}
    found = [STRONGLY_CONVEX.measure("after", point, f"row 2/{i}")[0] for i in range(30)]
    ratio = np.mean(found) / prediction(STRONGLY_CONVEX, "after", point)
    assert abs(ratio - 1) < 3 * 0.18  # the bits are replayed


@pytest.mark.parametrize("steps", [4, 8, 16, 32])
def test_exact_frank_wolfe_steps_leave_a_sixth_of_one_over_t_of_a_mean_on_t_vertices(
    steps: int,
) -> None:
    """T vertices with weights 2t/(T(T+1)) instead of 1/T: (2(2T+1)/(3T(T+1)) - 1/T)/2."""
    mean = spread_rows(steps, steps, vertices=steps, length=1.0).mean(axis=0)
    theta = np.zeros(steps)
    for t in range(steps):
        theta *= 1 - 2 / (t + 2)
        theta[np.argmin(theta - mean)] += 2 / (t + 2)
    left = float(((theta - mean) ** 2).sum()) / 2
    assert left == pytest.approx((2 * (2 * steps + 1) / (3 * steps * (steps + 1)) - 1 / steps) / 2)
    assert 0.08 < left * steps < 0.17


def test_row_3_runs_the_sketch_and_the_sparse_recovery() -> None:
    for name, values in FRANK_WOLFE.sweeps.items():
        for value in values:
            point: Any = {**FRANK_WOLFE.base, name: value}
            rounds = iterations("after", point)
            lines = printed_measurements(
                iterations=rounds, dimension=int(point["d"]), rows=int(point["n"])
            )
            assert 3 <= rounds <= 8
            assert 16 * rounds <= lines < point["d"]
    assert printed_measurements(iterations=5, dimension=4000, rows=324) == 80


def test_row_3_declares_a_bound_on_gradients_that_holds() -> None:
    for name, values in FRANK_WOLFE.sweeps.items():
        for value in values:
            point = {**FRANK_WOLFE.base, name: value}
            assert point["L"] >= 2 * point["beta"] * point["C"]


def test_row_3_chooses_steps_that_cost_as_much_as_their_noise() -> None:
    point: Any = {"n": 10**7, "d": 100, "epsilon": 1, "L": 2, "beta": 0.5, "C": 0.5}
    for variant, share in (("modern", 1), ("after", 0.5), ("plain", 0.5)):
        rounds = iterations(variant, point)
        noise = 4 * 2 * 0.5 * math.log(200) * rounds / (10**7 * share)
        assert noise == pytest.approx(0.5 * 0.5**2 / rounds, rel=0.02)
    slope = fit(
        np.array([1e6, 1e7, 1e8]),
        np.array([float(iterations("before", {**point, "n": n})) for n in (10**6, 10**7, 10**8)]),
    )
    assert slope == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize("variant", ["before", "plain", "modern"])
def test_row_3_predicts_the_forecast_of_its_releases(variant: str) -> None:
    point: Any = {"n": 400, "d": 30, "epsilon": 8, "L": 2, "beta": 1, "C": 1}
    rounds = iterations(variant, point)
    rows = spread_rows(400, 30, vertices=rounds, length=1.0)
    common: dict[str, Any] = {
        "loss": lambda theta, rows: theta - rows,
        "domain": Ball(30, 1, norm=1),
        "lipschitz": 2,
        "epsilon": 8,
        "iterations": rounds,
        "smoothness": 1,
    }
    if variant == "before":
        error: Any = approximate_frank_wolfe(rows, log_delta=math.log(1e-6), **common).error
    elif variant == "modern":
        error = frank_wolfe_pure(rows, method="composition", **common).error
    else:
        error = pure_frank_wolfe(rows, measurements=30, **common).error
    found = prediction(FRANK_WOLFE, variant, point)
    # with a channel the forecast adds the rounding to a lattice, an eighth of the noise at most
    assert found * (1 - 1e-4) <= error <= found * (1.13 if variant == "plain" else 1 + 1e-4)


def test_the_gradients_of_algorithm_4_are_counted_from_the_printed_integers() -> None:
    n, d, half = 1000, 5, 1
    nats = math.log(n * n / 2) + d * math.log(16 * d * n * n)  # Corollary 1
    batch, steps = (
        math.ceil(2 * math.sqrt(d * nats / half)),
        math.ceil((n * half) ** 2 / (d * nats)),
    )
    assert gradient_count("purified", {"n": n, "d": d, "epsilon": 2}) == batch * steps
    assert gradient_count("laplace", {"n": n, "d": d, "epsilon": 2}) == n * 200


def test_the_printed_count_has_the_powers_of_the_theorem() -> None:
    for name, power in (("n", 2), ("epsilon", 1.5), ("d", -1)):
        values = RUN_TIME.sweeps[name]
        counts = [
            float(gradient_count("purified", {**RUN_TIME.base, name: value})) for value in values
        ]
        assert abs(fit(np.array(values), np.array(counts)) - power) < 0.06


@pytest.mark.parametrize("variant", list(RUN_TIME.variants))
def test_rounding_to_integers_changes_a_count_by_little(variant: str) -> None:
    for name, values in RUN_TIME.sweeps.items():
        for value in values:
            point = {**RUN_TIME.base, name: value}
            counted = RUN_TIME.measure(variant, point, "")[0]
            assert counted == pytest.approx(prediction(RUN_TIME, variant, point), rel=0.05)


def test_laplace_descent_is_predicted_as_its_release_says() -> None:
    point = {"n": 500, "d": 3, "epsilon": 2}
    features, labels, _ = two_points(500, 3)
    release = replayed("x")(laplace_noisy_descent)(
        features,
        labels,
        loss=Hinge(classes=(0, 1)),
        epsilon=2,
        radius=Fraction(1, 2),
        data_norm=1,
    )
    assert prediction(UTILITY, "laplace", point) == pytest.approx(release.error, rel=1e-3)


def test_the_exponential_mechanism_is_predicted_by_its_law() -> None:
    n, total = 12, Fraction(1)
    cells = grid_cells(n, 1, total)
    points = grid_points(ball=Ball(1, Fraction(1, 2)), cells=cells)[:, 0]
    length = two_points(n, 1)[2]
    # the score of θ is minus the sum of the losses, its sensitivity 2Lr = 1: weight e^(ε score/2)
    weights = [math.exp(float(total) * n * length * theta / 2) for theta in points]
    known = sum(w * length * (0.5 - t) for w, t in zip(weights, points, strict=True)) / sum(weights)
    found = prediction(UTILITY, "exponential", {"n": n, "d": 1, "epsilon": 1})
    assert found == pytest.approx(known)


# -- the price of δ = 0 ---------------------------------------------------------------------------


ROWS = 4096


def test_the_rows_are_integers_within_their_public_length() -> None:
    rows = digits()
    assert rows.shape == (1797, 64)
    assert np.abs(rows).max() <= 8
    assert np.linalg.norm(rows, axis=1).max() <= LENGTH


@pytest.mark.parametrize("name", ["direct", "composed"])
def test_directly_pure_methods_spend_epsilon_once(name: str) -> None:
    method = Method.of(name, rows=ROWS)
    assert isinstance(method.noise, KNorm)
    assert method.noise.sensitivity == 2 * LENGTH
    assert method.times * method.noise.claim.exact_epsilon == EPSILON


@pytest.mark.parametrize("name", PURIFIED)
def test_purified_methods_have_the_noise_that_their_channel_needs(name: str) -> None:
    method = Method.of(name, rows=ROWS)
    noise, channel = method.noise, method.channel
    assert isinstance(noise, RoundedGaussian)
    run = GaussianDP(mu_squared=noise.sensitivity_squared / noise.variance)
    if not isinstance(channel, AlgorithmOne):
        assert run.log_delta(EPSILON) <= best_lattice(rows=ROWS).log_delta_required(EPSILON)
        return
    base = channel.base_epsilon
    needed = laplace_scale(
        norm=2,
        dimension=64,
        diameter=2 * channel.body.radius,
        weight=channel.mixing_weight,
        claim=ApproxDP(base, run.log_delta(base)),
        epsilon=base,
        extra_epsilon=EPSILON - base,
    )
    assert channel.scale >= needed


def test_the_gaussian_mechanism_has_its_delta() -> None:
    noise = Method.of("approximate", rows=ROWS).noise
    assert isinstance(noise, RoundedGaussian)
    claim = GaussianDP(mu_squared=noise.sensitivity_squared / noise.variance)
    assert claim.log_delta(EPSILON) == pytest.approx(math.log(1e-6), rel=1e-4)
    assert claim.log_delta(EPSILON) <= math.log(1e-6)


@pytest.mark.parametrize("rows", [256, 65_536])
def test_chosen_parameters_predict_less_noise_than_the_printed_ones(rows: int) -> None:
    errors = {name: Method.of(name, rows=rows).predicted() for name in METHODS}
    assert errors["mixing"] < errors["theorem_w"] < errors["printed"]
    assert errors["composed"] == pytest.approx(10 * errors["direct"])
    assert errors["direct"] == pytest.approx(2 * math.sqrt(64 * 65) / rows)
    chosen = theorem_w(rows=rows)
    assert 0 < chosen["base_epsilon"] < EPSILON


def test_errors_are_those_predicted_where_the_ball_does_not_cut_them() -> None:
    """64 coordinates and 8 repeats: the mean square has a standard error of about 6 %."""
    data: Any = price(sizes=(65_536,), repeats=8)
    for name in METHODS:
        ratio = data["errors"][name][0] / data["predicted"][name][0]
        assert 0.75 < ratio < 1.25


def test_equal_labels_publish_equal_means() -> None:
    method, sums = Method.of("printed", rows=ROWS), digits().sum(axis=0)
    one, same, other = (method.publish(sums, ReplayBits(label)) for label in ("a", "a", "b"))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def fake(**errors: list[float]) -> dict[str, Any]:
    return {
        "sizes": [10, 100, 1000],
        "methods": METHODS,
        "errors": {name: errors.get(name, [2.0, 2.0, 2.0]) for name in METHODS},
        "nothing": [1.0, 1.0, 1.0],
    }


def test_what_is_better_counts_only_if_it_stays_so() -> None:
    data = fake(printed=[0.5, 1.5, 0.5], mixing=[2.0, 0.5, 0.5], direct=[0.5, 0.5, 1.5])
    found = {name: better_from(data, name, data["nothing"]) for name in METHODS}
    assert (found["printed"], found["mixing"], found["direct"]) == (1000, 100, None)


def test_the_findings_are_those_of_the_numbers() -> None:
    better = findings(fake(mixing=[1.0, 1.0, 0.5], approximate=[0.25] * 3))
    assert METHODS["mixing"] + ": 2;" in better[0]
    assert METHODS["mixing"] + ": 1000;" in better[1]
    assert better[2].startswith("Purification pays where one")
    assert better[2].endswith(METHODS["mixing"] + ".")
    worse = findings(fake(direct=[0.1] * 3, composed=[0.2] * 3))
    assert worse[2].startswith("Purification does not pay where one")
    assert worse[3].startswith("Purification does not pay where 100")
