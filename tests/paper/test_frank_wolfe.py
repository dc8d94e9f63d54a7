"""Algorithms 5, 6, 7 and pure Frank-Wolfe: parameters, certificates, utility, bad input."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.errors import CertificateError
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.paper import algorithm_05_06 as algorithm_05
from zerodelta.paper import algorithm_05_06 as algorithm_06
from zerodelta.paper import algorithm_07_08 as algorithm_07
from zerodelta.paper.algorithm_05_06 import approximate_frank_wolfe
from zerodelta.paper.algorithm_07_08 import pure_frank_wolfe
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.composition import transcript_claim
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training import polytopes
from zerodelta.training.frank_wolfe import (
    VertexSteps,
    _digits,
    _number,
    best_iterations,
    frank_wolfe_pure,
    step_epsilon,
    transcript_step_epsilon,
)
from zerodelta.training.losses import Loss, Squared
from zerodelta.training.polytopes import Hull, L1Ball

PLANE = Ball(2, 1, norm=1)
DATA = np.tile([0.5, -1.0], (3000, 1))


def pulled(theta: Any, rows: Any) -> Any:
    return theta - rows


GIVEN: dict[str, Any] = {"loss": pulled, "domain": PLANE, "lipschitz": 2, "iterations": 5}


def approximate(data: Any = DATA, **changes: Any) -> Any:
    return approximate_frank_wolfe(data, **{**GIVEN, "epsilon": 1, "log_delta": -20.0, **changes})


def purified(data: Any = DATA, **changes: Any) -> Any:
    return pure_frank_wolfe(data, **{**GIVEN, "epsilon": 2, **changes})


def modern(data: Any = DATA, **changes: Any) -> Any:
    return frank_wolfe_pure(data, **{**GIVEN, "epsilon": 1, **changes})


RELEASES = [approximate, purified, modern]


# Algorithm 5


def test_frank_wolfe_meets_its_bound_at_every_length() -> None:
    """2Γ/(T+2) with Γ = 4β‖C‖₁², on a random quadratic of l1-smoothness max |A_ij|."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        root = rng.normal(size=(6, 6))
        matrix, shift = root @ root.T, rng.normal(size=6)

        def loss(theta: Any, matrix: Any = matrix, shift: Any = shift) -> float:
            return float(theta @ matrix @ theta / 2 - shift @ theta)

        def slope(theta: Any, matrix: Any = matrix, shift: Any = shift) -> Any:
            return matrix @ theta - shift

        gamma = polytopes.curvature(smoothness=float(np.abs(matrix).max()), length=1)
        best = loss(algorithm_05.frank_wolfe(slope, domain=Ball(6, 1, norm=1), iterations=20000))
        for length in (1, 3, 10, 100):
            theta = algorithm_05.frank_wolfe(slope, domain=Ball(6, 1, norm=1), iterations=length)
            bound = polytopes.optimization_error(curvature=gamma, iterations=length)
            assert loss(theta) - best <= bound
            assert np.abs(theta).sum() <= 1 + 1e-12


def test_a_hull_with_the_corners_of_the_ball_gives_the_same_iterates() -> None:
    corners = [[0, 1.0], [0, -1.0], [1.0, 0], [-1.0, 0]]
    one = algorithm_05.frank_wolfe(lambda t: t - [0.3, 0.1], domain=PLANE, iterations=50)
    other = algorithm_05.frank_wolfe(lambda t: t - [0.3, 0.1], domain=corners, iterations=50)
    assert np.allclose(one, other)


# parameters


def test_the_certificate_proves_the_steps_that_are_taken() -> None:
    for iterations, log_delta in ((10, -20.0), (1000, -50.0), (50, -5000.0)):
        share = step_epsilon(
            epsilon=1, log_delta=log_delta, iterations=iterations, composition="advanced"
        )
        taken = transcript_claim([(PureDP(share, bounded_range=True), iterations)])
        assert taken.log_delta(1) <= log_delta
        if share > Fraction(1, iterations):  # else basic composition proves more
            larger = PureDP(share * Fraction(105, 100), bounded_range=True)
            assert transcript_claim([(larger, iterations)]).log_delta(1) > log_delta
        best = step_epsilon(epsilon=1, log_delta=log_delta, iterations=iterations)
        assert best == max(share, Fraction(1, iterations))


def test_purification_never_pays_with_the_delta_of_the_paper() -> None:
    """Theory A11: per step, advanced composition at δ = 2ω/(nk)^k gives less than ε/T."""
    for rows, dimension in ((10**3, 10**3), (10**5, 10**4), (10**7, 10**6)):
        length = algorithm_07.printed_iterations(
            rows=rows, base_epsilon=1, smoothness=1, length=1, lipschitz=1
        )
        k = algorithm_07.printed_measurements(iterations=length, dimension=dimension, rows=rows)
        log_delta = algorithm_07.printed_log_delta(
            measurements=k, rows=rows, mixing_weight=Fraction(1, rows)
        )
        hidden = step_epsilon(
            epsilon=1, log_delta=log_delta, iterations=length, composition="advanced"
        )
        assert hidden < Fraction(1, length)


def test_transcripts_beat_composition_for_few_vertices_only() -> None:
    """Theory A11's ratios: 1.70 at 2, 1.2 at 4, 0.98 at 8, 0.51 at 2000 vertices."""
    ratios = [
        float(
            4000
            * transcript_step_epsilon(
                epsilon=1, vertices=vertices, iterations=4000, mixing_weight="0.01"
            )
        )
        for vertices in (2, 4, 8, 2000)
    ]
    assert ratios == pytest.approx([1.70, 1.2, 0.98, 0.51], abs=0.01)


def test_auto_takes_the_larger_epsilon_per_step() -> None:
    line = Ball(1, 1, norm=1)
    few = modern(DATA[:, :1], domain=line, iterations=200)
    many = modern(np.zeros((10, 50)), domain=Ball(50, 1, norm=1), iterations=20)
    assert [step.theorem for step in few.certificate.steps] == [
        "exponential-mechanism",
        "uniform-mixing",
    ]
    assert [step.theorem for step in many.certificate.steps] == ["permute-and-flip"]
    assert many.certificate.steps[0].numbers["count"] == 20


def test_the_best_number_of_iterations_balances_the_error() -> None:
    options: Any = {"smoothness": 1, "lipschitz": 1, "domain": Ball(50, 1, norm=1)}
    best = best_iterations(rows=1000, epsilon=10, **options)

    def error(iterations: int) -> float:
        release = modern(
            np.zeros((1000, 50)), epsilon=10, iterations=iterations, method="composition", **options
        )
        return float(release.error)

    assert best == 66
    assert error(best) <= min(error(best // 2), error(2 * best))
    assert best_iterations(rows=1, epsilon="1e-9", **options) == 1


def test_the_printed_parameters_are_whole_and_in_range() -> None:
    assert algorithm_07.printed_mixing_weight(rows=1) == Fraction(1, 2)
    assert algorithm_07.printed_log_delta(measurements=1, rows=1, mixing_weight="1/2") < 0
    log_delta = algorithm_07.printed_log_delta(
        measurements=2000, rows=10**6, mixing_weight="1/1000000"
    )
    assert log_delta == pytest.approx(math.log(2e-6) - 2000 * math.log(2e9))
    assert algorithm_07.printed_measurements(iterations=500, dimension=40, rows=10) == 40


# certificates


@pytest.mark.parametrize("release", RELEASES)
def test_a_users_gradient_is_asserted_and_a_built_in_loss_is_proven(release: Any) -> None:
    class Mine(Loss):  # a subclass may look at other rows
        def read(self, labels: Any) -> Any:
            return labels

        def value(self, margins: Any, labels: Any) -> Any:
            return margins

        def slope(self, margins: Any, labels: Any) -> Any:
            return margins - margins.mean()

        def slope_bound(self, margin: Fraction) -> Fraction:
            return Fraction(1)

    class Descended(Squared):  # it may do anything with the other rows, too
        pass

    def status(**options: Any) -> Status:
        found: Status = release(DATA[:20], **options).certificate.steps[0].status
        return found

    line = Ball(1, 1, norm=1)
    assert status(loss=Descended(label_bound=1), domain=line) is Status.ASSERTED
    assert status() is Status.ASSERTED
    assert status(rowwise=True) is Status.ASSERTED
    assert status(loss=Squared(label_bound=1), domain=line) is Status.PROVEN
    assert status(loss=Mine(), domain=line) is Status.ASSERTED


def test_an_understated_delta_is_refused() -> None:
    certificate = approximate(iterations=200).certificate
    assert certificate.claim.log_delta(1) == -20.0
    for claim in (ApproxDP(1, -20.5), ApproxDP("99/100", -20.0), PureDP(1)):
        with pytest.raises(CertificateError, match="do not prove"):
            verify(replace(certificate, claim=claim, digest=""))


def test_algorithm_7_chain_rederived_by_hand() -> None:
    release = purified(
        np.zeros((1000, 200)), domain=Ball(200, 1, norm=1), iterations=2, measurements=40
    )
    choice, channel = release.certificate.steps
    assert choice.theorem == "exponential-mechanism"
    sensitivity, count = choice.numbers["sensitivity"], choice.numbers["count"]
    assert (sensitivity, count) == (2 << 20, 2)  # 2B: theory A11
    share = 2 * sensitivity / Fraction(choice.numbers["scale"])
    assert share == Fraction(1, 2)  # ε/T beats advanced composition here
    assert channel.theorem == "wasserstein-transport"
    numbers = channel.numbers
    delta = math.exp(
        algorithm_07.printed_log_delta(measurements=40, rows=1000, mixing_weight="1/1000") / 40
    )
    weight = float(Fraction(numbers["weight"]))
    assert weight == 1 / 1000
    shrink = ((1 - weight) / ((1 + math.e) * weight)) ** (1 / 40) * delta
    radius = math.sqrt(40) * float(Fraction(numbers["diameter"])) * shrink
    assert float(Fraction(numbers["scale"])) == pytest.approx(2 * radius, rel=1e-9)  # ε' = 1
    printed = 8 / (1000 * math.sqrt(40)) * 2  # 2Δ/ε' of the paper, in units of θ
    spacing = 4 / float(Fraction(numbers["diameter"]))
    assert float(Fraction(numbers["scale"])) * spacing < printed  # Theorem W
    assert release.certificate.claim.exact_epsilon == 2


# utility


def test_all_three_find_the_minimum_with_enough_rows() -> None:
    data = np.tile([0.5, -1.0], (200_000, 1))
    for release in RELEASES:
        options: dict[str, Any] = {"iterations": 40, "smoothness": 1}
        if release is not approximate:  # else a random answer, once in a hundred runs
            options["mixing_weight"] = "1e-9"
        found = release(data, **options)
        assert np.abs(found.value - [0.25, -0.75]).max() < 0.1
        assert isinstance(found.error, float)


def test_the_predicted_error_bounds_the_measured_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(4000, 10))
    y = np.clip(0.6 * x[:, 0] - 0.3 * x[:, 1], -1, 1)

    def loss(theta: Any) -> float:
        return float(np.mean((x @ theta - y) ** 2) / 2)

    gaps = []
    for _ in range(10):
        found = frank_wolfe_pure(
            x,
            y,
            loss=Squared(label_bound=1),
            domain=Ball(10, 1, norm=1),
            lipschitz=2,
            smoothness=1,
            epsilon=2,
            method="composition",
        )
        gaps.append(loss(found.value))
        assert np.abs(found.value).sum() <= 1 + 1e-12
    assert np.mean(gaps) <= found.error


def test_a_sketched_release_stays_in_the_ball() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(5000, 120)) * 0.01
    data[:, 7] += 0.9
    for weight in (None, "99/100"):  # the second publishes a uniform point most of the time
        found = purified(
            data, domain=Ball(120, 1, norm=1), lipschitz=1, iterations=2, measurements=40,
            mixing_weight=weight,
        )  # fmt: skip
        assert found.value.shape == (120,)
        assert np.abs(found.value).sum() <= 1 + 1e-9
        assert isinstance(found.error, float)
        assert found.seconds is not None


# what data may do: nothing but move the value


@pytest.mark.parametrize("release", RELEASES)
def test_a_gradient_that_fails_on_rows_or_on_hidden_iterates_is_a_zero_gradient(
    release: Any,
) -> None:
    def moody(theta: Any, rows: Any) -> Any:
        if theta.any():
            return "no" if theta[0] > 0 else np.ones((len(rows), 7))
        if (rows > 2).any():
            raise RuntimeError("secret")
        return theta - rows

    data = DATA[:50].copy()
    data[3] = 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            assert release(data, loss=moody).value.shape == (2,)


def test_long_gradients_are_clipped_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of a million times the bound moves the choice no more than one at the bound."""
    calm, wild = np.full((2, 1), 0.5), np.array([[0.5], [1e6]])
    line = Ball(1, 1, norm=1)
    seen: list[list[int]] = []

    def first(self: PermuteAndFlip, scores: Any, bits: Any) -> int:
        seen.append(scores.tolist())
        return 0

    monkeypatch.setattr(PermuteAndFlip, "select", first)
    for data in (calm, wild):
        modern(data, domain=line, lipschitz=1, steps=10, iterations=1, method="composition")
    assert seen == [[-10, 10], [-15, 15]]


def test_sources_and_frames_and_labels_are_read_alike() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, size=(40, 2)), rng.uniform(-1, 1, size=40)
    together = np.column_stack([x, y])
    values = [
        replayed("same")(frank_wolfe_pure)(
            *data,
            loss=Squared(label_bound=1),
            domain=PLANE,
            lipschitz=2,
            epsilon=5,
            iterations=4,
        ).value.tolist()
        for data in ((x, y), (together,), (ArraySource(together, batch=7),))
    ]
    assert values[0] == values[1] == values[2]


def test_vertices_are_numbered_as_the_scores_are() -> None:
    ball, hull = L1Ball(dimension=2, radius=Fraction(3)), Hull(np.array([[1.0, 2.0], [-3.0, 0.5]]))
    assert [ball.vertex(i).tolist() for i in range(4)] == [[-3, 0], [0, -3], [3, 0], [0, 3]]
    assert ball.scores(np.array([5, -7])).tolist() == [5, -7, -5, 7]
    assert hull.length == Fraction(7, 2)
    assert hull.scores(hull.row(np.array([[1.0, 1.0]]))[0]).tolist() == [-3.0, 2.5]


def test_a_transcript_is_the_number_that_was_mixed() -> None:
    for base in (2, 3, 10):
        for chosen in itertools.product(range(base), repeat=3):
            number = _number(list(chosen), base)
            assert 0 <= number < base**3
            assert _digits(number, base, 3) == list(chosen)
    assert _number([1, 0, 2], 3) == 11


def test_what_the_vertices_of_a_hull_see_is_clipped_where_it_cannot_be() -> None:
    """|<s, g>| <= L1 * largest l1 norm of a vertex: such a product is kept as it is."""
    hull = Hull(np.array([[3.0, -1.0], [-1.0, 0.0]]))
    lattice = hull.lattice(Fraction(1, 2), 1000)
    products = hull.row(np.array([[0.5, -0.5]]))  # 2 and -1/2, the largest product 4 * 1/2
    assert lattice.quantize(products).tolist() == [[1000, -250]]
    assert lattice.quantize(2 * products).tolist() == [[1000, -500]]


def test_diagnostics_are_a_part_of_the_same_epsilon() -> None:
    rows = zd.open(np.full((30, 2), 0.5), columns={"0": zd.number(-1, 1), "1": zd.number(-1, 1)})
    for method in ("composition", "transcript"):
        release = modern(rows, method=method, diagnostics="1/10", epsilon=1)
        assert release.diagnostics is not None
        assert release.certificate.claim == PureDP(1)
        assert verify(release.certificate, epsilon=1, proven=False)


def test_the_printed_noise_is_half_of_what_is_needed() -> None:
    """Theory A11: the step of the printed scale is √2 ε/√(T ℓ), not half of it."""
    scale = algorithm_06.printed_noise_scale(
        lipschitz=1, length=1, iterations=50, epsilon=1, log_delta=-30.0, rows=100
    )
    moved = 2 / 100  # 2 L₁ ‖C‖₁/n: the paper has the sensitivity of adding a record
    assert 2 * moved / scale == pytest.approx(math.sqrt(2) / math.sqrt(50 * 30))


# forecasts and defaults


@pytest.mark.parametrize("release", [approximate, purified])
def test_without_smoothness_the_forecast_is_that_of_a_quadratic_loss(release: Any) -> None:
    """β = L₁/‖C‖₁, at most the trivial 2L₁‖C‖₁ of the internal steps."""
    ours, said = release(iterations=300), release(iterations=300, smoothness=2)
    assert ours.error == said.error
    assert ours.error > 16 / 302  # 2Γ/(T + 2), Γ = 4β‖C‖₁² = 8
    assert approximate(iterations=1).error == 4.0


@pytest.mark.parametrize("release", [approximate, purified])
def test_the_default_number_of_steps_is_the_papers(release: Any) -> None:
    step = release(iterations=None).certificate.steps[0]
    if release is purified:
        wanted = math.ceil(math.sqrt(3000))  # √(β‖C‖₁nε/L₁), ε = 1 inside and β‖C‖₁ = L₁
    else:
        noise = 2 * math.sqrt(8 * 20) * math.log(4) / 3000  # at T = 1
        steps = range(1, 10**4)
        wanted = min(steps, key=lambda t: 2 / t + noise * math.sqrt(t))  # Γ = β‖C‖₁² = 2
    assert abs(step.numbers["count"] - wanted) <= 1


def test_the_seconds_of_a_run_grow_with_all_that_it_does() -> None:
    base = purified(iterations=5).seconds
    assert purified(iterations=10).seconds == 2 * base
    assert purified(np.tile(DATA, (4, 1)), iterations=5).seconds > base
    wide: dict[str, Any] = {"domain": Ball(120, 1, norm=1), "iterations": 2}
    plain, sketched = (purified(np.zeros((9, 120)), measurements=k, **wide) for k in (120, 40))
    assert sketched.seconds > plain.seconds


def test_a_row_that_changes_the_shape_of_a_block_adds_nothing_and_hides_no_other() -> None:
    def gradient(theta: Any, rows: Any) -> Any:
        return rows[:, :1] if (rows > 1).any() else np.ones((len(rows), 2))

    how: dict[str, Any] = {"loss": gradient, "domain": Ball(2, 1, norm=1), "labels": None}
    rows = np.zeros((9, 2))
    steps = VertexSteps.plan(rows, lipschitz=1, iterations=1, steps=8, rowwise=False, **how)
    lattice = steps.polytope.lattice(1, 8)
    sums = []
    for odd in (0.0, 7.0):
        rows[4] = odd
        sums.append(opened(ArraySource(rows)).sum(steps._summand(np.zeros(2)), lattice).tolist())
    assert sums == [[72, 72], [64, 64]]


def test_the_products_with_a_hull_s_vertices_are_those_of_each_row_alone() -> None:
    """BLAS adds in an order that depends on how many rows there are."""
    rng = np.random.default_rng(0)
    hull = Hull(rng.normal(size=(40, 60)))
    gradients = rng.normal(size=(37, 60))
    whole = hull.row(gradients)
    assert np.array_equal(whole, np.concatenate([hull.row(row[None]) for row in gradients]))
    assert np.array_equal(whole[::-1], hull.row(gradients[::-1].copy()))
