"""Planned descents: certificates, endings, what iterates may depend on, and the published point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from study.stages import Stage, Unreadable, gradients_in, line_data, read
from zerodelta.channels.kernels import SmoothMix
from zerodelta.channels.mixes import GaussianMix, GridMix
from zerodelta.data import pieces as progress
from zerodelta.data.source import Protection
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball, Box
from zerodelta.study.minimize import minimize, plan_minimize
from zerodelta.testing import replayed
from zerodelta.training.descent import Descent, Iterates, StepSizes, _Search, plan_descent
from zerodelta.training.gradient_sums import GRADIENT, Gradients
from zerodelta.training.gradients import gradients_of
from zerodelta.training.losses import Logistic, Multinomial, Squared
from zerodelta.training.models import TanhNetwork

F = Fraction


# --- the schedule ------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0, "1/2", "9/10"])
@pytest.mark.parametrize("average", [0, "1/5", 1])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_weights_say_how_far_each_gradient_moves_the_point(
    momentum: Any, average: Any, count: int
) -> None:
    """A huge ball projects nothing, so the point is linear: one impulse at a time."""
    sizes = StepSizes(count=count, first="3/2", momentum=momentum, average=average)
    ball = Ball(1, 10**6)
    for unfinished in (False, True)[: 1 + (count > 1 and momentum == 0)]:
        weights = sizes.weights(unfinished=unfinished)
        for impulse in range(len(weights)):
            iterates = Iterates(ball=ball, sizes=sizes, unit=1.0)
            for t in range(len(weights)):
                iterates.step(np.array([int(t == impulse)]))
            assert math.isclose(-iterates.point()[0], weights[impulse], rel_tol=1e-9)


@pytest.mark.parametrize("unfinished", [False, True])
def test_noise_is_where_it_hurts_least(unfinished: bool) -> None:
    sizes = StepSizes(count=100, first=1)
    scale = F(7, 3)
    weights = sizes.weights(unfinished=unfinished)
    flat = math.sqrt(len(weights) * float((weights**2).sum()))
    best = float(weights.sum())  # Cauchy-Schwarz, with a variance for each round
    assert best <= sizes.spread(unfinished=unfinished) < 1.02 * best < flat
    variances = sizes.variances(scale, unfinished=unfinished)
    assert sum(count for count, _ in variances) == len(weights)
    spent = sum(count / v for count, v in variances)
    assert 0.999999 / scale < spent <= 1 / scale
    each = np.repeat([float(v) for _, v in variances], [count for count, _ in variances])
    published = math.sqrt(float((weights**2 * each).sum()))
    expected = sizes.spread(unfinished=unfinished) * math.sqrt(scale)
    assert math.isclose(published, expected, rel_tol=1e-6)


# --- plans -------------------------------------------------------------------------------------


def planned(radius: Any, epsilon: Any = 1, dimension: int = 2, **sizes: Any) -> Descent:
    made = linear(radius, dimension)
    return plan_descent(
        made,
        ball=Ball(dimension, radius),
        epsilon=epsilon,
        mixing_probability="1/100",
        sizes=StepSizes(**{"count": 20, "first": 1, **sizes}),
    )


def linear(radius: Any, dimension: int = 2) -> Gradients:
    data = np.resize(line_data(1000), (1000, dimension))
    labels = line_data(1000)[:, 2]
    return gradients_of(data, labels, loss=Logistic(), radius=radius, data_norm=1)


NOISY = ("1/100", "1/100")
"""A radius and an ε at which noise is wider than the ball."""


@pytest.mark.parametrize(
    ("dimension", "radius", "epsilon", "ending"),
    [(1, 5, 1, GridMix), (10, 5, 1, GaussianMix), (2, *NOISY, SmoothMix), (10, *NOISY, SmoothMix)],
)
def test_the_least_predicted_noise_is_chosen(
    dimension: int, radius: Any, epsilon: Any, ending: type
) -> None:
    """A lattice while the ball is larger than the noise, the raw last step when it is not."""
    made = planned(radius, epsilon, dimension)
    assert type(made.channel) is ending
    assert made.error == min(error for _, error in made.endings)
    verify(made.release_plan().certificate(SystemBits()))
    assert made.endings[0][0] in repr(made)


def test_the_certificate_lists_rounds_sensitivity_noise_and_channel() -> None:
    for made in (planned(5), planned(*NOISY)):
        certificate = made.release_plan().certificate(ReplayBits("plan"))
        *internal, channel = certificate.steps
        assert sum(int(step.numbers["count"]) for step in internal) == made.sizes.count
        assert {step.numbers["sensitivity_squared"] for step in internal} == {made.squared}
        assert channel.theorem == (
            "gaussian-smoothing" if isinstance(made.channel, SmoothMix) else "grid-mixing"
        )
        assert certificate.claim == PureDP(made.epsilon)
        assert certificate.status is Status.PROVEN
        assert any(str(made.rows) in line for line in certificate.public)


@pytest.mark.parametrize(("radius", "epsilon"), [(5, 1), NOISY])
def test_a_certificate_with_less_noise_is_refused(radius: Any, epsilon: Any) -> None:
    """Half a per cent less variance, L for 2L, or one round more: none of them verifies."""
    made = planned(radius, epsilon)
    less = tuple((count, v * F(995, 1000)) for count, v in made.variances)
    more = ((made.variances[0][0] + 3, made.variances[0][1]), *made.variances[1:])
    for broken in (replace(made, variances=less), replace(made, variances=more)):
        with pytest.raises(CertificateError):
            broken.release_plan().certificate(ReplayBits("plan"))


def bases(
    ball: Ball, spacings: Iterable[Fraction], sums: Iterable[Any], unit: float = 1e-6
) -> None:
    """Assert that S2's radius ⌊r/s⌋ holds in integers, whatever came before."""
    halves: tuple[Any, ...] = (0, "1/2")
    for noisy, spacing, momentum, average in itertools.product(sums, spacings, halves, halves):
        sizes = StepSizes(count=4, first=3, momentum=momentum, average=average)
        iterates = Iterates(ball=ball, sizes=sizes, unit=unit)
        for factor in (1, -3, 1):
            iterates.step(factor * np.array(noisy, dtype=object))
            base = iterates.base(spacing)
            assert all(type(k) is int for k in base)
            assert sum(k * k for k in base) <= (ball.radius // spacing) ** 2
        assert ball.contains(iterates.theta)


def test_the_base_of_the_last_step_is_an_integer_point_of_the_ball() -> None:
    wild = np.random.default_rng(5).integers(-(10**6), 10**6, size=(20, 3)).tolist()
    bases(Ball(3, 2, center=[1, 0, -5]), [F(1, 977)], [*wild, [2**70, -(2**900), 5]])


def test_a_base_is_a_point_whatever_overflows() -> None:
    """Velocities, and the number of lattice units in a radius."""
    sums = ([2**900, 0], [-(2**900), 2**900], [5, -(2**1000)])
    spacings = (F(1, 977), F(1, 10**310), F(1, 10**400))
    bases(Ball(2, 1, center=[1, 0]), spacings, sums, unit=1e300)
    beyond = [F(1, (1 << 63) + side * (1 << 59)) for side in range(2, 30)]
    bases(Ball(3, 1), beyond, [[-(10**7), 400, 0]])  # whole beyond 64 bits, too


def test_a_base_between_two_lattice_points_is_within_the_smaller_radius() -> None:
    """r/s is no integer: rounding to the nearest point must not leave the ball."""
    spacings = (F(2, 7), F(3, 10), F(2, 3), F(4, 3))
    bases(Ball(2, 1), spacings, ([9, 0], [-9, 0], [9, 9], [-5, 7]), unit=1.0)


# --- the run -----------------------------------------------------------------------------------


class Recording(Gradients):
    """Sums that are given, and the parameters at which they were asked for."""

    def __init__(self, sums: Any) -> None:
        self.rows, self.dimension, self.bound = 10, 2, 100
        self.quantum, self.callers_function = F(1, 100), False
        self.sums, self.asked = sums, []  # type: ignore[var-annotated]

    def total(self, theta: Any, chosen: Any = None) -> Any:
        self.asked.append(theta.copy())
        return self.sums[len(self.asked) - 1]


@pytest.mark.parametrize(("radius", "mixing_probability"), [(5, "1/100"), ("1/1000", "1/100")])
def test_parameters_are_a_function_of_noisy_sums(
    radius: Any, mixing_probability: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other sums and noise that cancels the difference, the gradients are asked alike."""
    shift = np.array([17, -4])
    first = [np.array([k, -k]) for k in (3, 50, -20)]
    asked = []
    for sums, offset in ((first, 0 * shift), ([s + shift for s in first], -shift)):
        gradients = Recording(sums)
        made = plan_descent(
            gradients,
            ball=Ball(2, radius),
            epsilon=1,
            mixing_probability=mixing_probability,
            sizes=StepSizes(count=3, first=1),
        )

        def apply(self: Any, sums: Any, bits: Any, offset: Any = offset) -> Any:
            return sums + offset

        monkeypatch.setattr(RoundedGaussian, "apply", apply)
        value = made.run(gradients, ReplayBits("same"))
        asked.append((gradients.asked, value))
    assert np.array_equal(asked[0][0], asked[1][0])
    assert np.array_equal(asked[0][1], asked[1][1])


def test_a_raw_last_step_goes_from_where_the_others_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In lattice units, and one unit is what one integer of the last sum moves the point by."""
    made = planned(*NOISY, average=0)
    assert isinstance(made.channel, SmoothMix)
    handed: list[Any] = []
    monkeypatch.setattr(RoundedGaussian, "apply", lambda self, sums, bits: sums)

    def apply(self: Any, raw: Any, bits: Any) -> Any:
        handed.append(raw)
        return np.zeros(2)

    monkeypatch.setattr(SmoothMix, "apply", apply)
    sums = [np.array([-3000 - i, 1000]) for i in range(made.sizes.count)]
    made.run(Recording(sums), ReplayBits("raw"))
    iterates, spacing = made.iterates(), float(made.channel.spacing)
    for each in sums[:-1]:
        iterates.step(each)
    before = (handed[0] + sums[-1]).astype(np.float64) * spacing
    assert np.abs(iterates.point()).min() > 100 * spacing
    np.testing.assert_allclose(before, iterates.point(), atol=spacing)
    iterates.step(sums[-1])
    np.testing.assert_allclose(
        handed[0].astype(np.float64) * spacing, iterates.point(), atol=spacing
    )


def test_noise_is_added_until_the_rounds_keep_what_was_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounding of the scale, of a variance or of a weight must not be what a claim rests on."""
    variances, weight = StepSizes.variances, _Search.weight

    def less(self: Any, scale: Fraction, **how: Any) -> Any:
        return tuple((n, v * F(999_995, 10**6)) for n, v in variances(self, scale, **how))

    cases: list[tuple[Any, dict[str, Any]]] = [
        ((5,), {}),
        (NOISY, {}),
        ((*NOISY, 10), {"count": 3}),
    ]
    for given, sizes in cases:
        with monkeypatch.context() as patched:
            patched.setattr(StepSizes, "variances", less)
            patched.setattr(_Search, "weight", lambda self, slack: weight(self, slack) * 0.97)
            made = planned(*given, **sizes)
        assert isinstance(made.channel, SmoothMix) is (given != (5,))
        assert verify(made.release_plan().certificate(SystemBits()), epsilon=made.epsilon)


def test_a_raw_last_step_is_not_weighed_for_units() -> None:
    """S2 is about the move of the last step for one replaced row."""
    made = linear(NOISY[0])
    for unit, max_rows in ((None, 1), ("who", 1), ("who", 3)):
        descent = plan_descent(
            made,
            ball=Ball(2, NOISY[0]),
            epsilon=NOISY[1],
            mixing_probability="1/100",
            sizes=StepSizes(count=20, first=1),
            protection=Protection(unit=unit, max_rows=max_rows),
        )
        assert isinstance(descent.channel, SmoothMix) is (unit is None)
        assert any("S2" in name for name, _ in descent.endings) is (unit is None)


def test_every_round_and_every_ending_draws_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise drawn is the noise of the certificate, round by round."""
    for made in (planned(5), planned(*NOISY)):
        drawn: list[tuple[Fraction, Fraction]] = []
        real = RoundedGaussian.apply

        def apply(self: Any, sums: Any, bits: Any, real: Any = real, drawn: Any = drawn) -> Any:
            drawn.append((self.sensitivity_squared, self.variance))
            return real(self, sums, bits)

        monkeypatch.setattr(RoundedGaussian, "apply", apply)
        gradients = read(linear(made.ball.radius))
        made.run(gradients, ReplayBits("noise"))
        monkeypatch.setattr(RoundedGaussian, "apply", real)
        steps = made.release_plan().certificate(ReplayBits("plan")).steps[:-1]
        listed = [
            (F(step.numbers["sensitivity_squared"]), F(step.numbers["variance"]))
            for step in steps
            for _ in range(int(step.numbers["count"]))
        ]
        assert drawn == listed


@pytest.mark.parametrize("epsilon", [1, 50])
@pytest.mark.parametrize("count", [1, 20])
def test_the_channel_has_the_last_word(
    epsilon: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step cannot end raw; with twenty either ending may be planned."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 2))
    gradients = gradients_of(rows, rows[:, 0], loss=Squared(label_bound=1), radius=1, data_norm=1)
    descent = plan_descent(
        gradients,
        ball=Ball(2, 1),
        epsilon=epsilon,
        mixing_probability="1/100",
        sizes=StepSizes(count=count, first="1/2"),
    )
    handed: list[Any] = []

    def marked(self: Any, value: Any, bits: Any) -> Any:
        handed.append(value)
        return np.array([0.25, -0.125])

    monkeypatch.setattr(type(descent.channel), "apply", marked)
    published = descent.run(read(gradients), ReplayBits("descent"))
    assert published.tolist() == [0.25, -0.125]
    assert len(handed) == 1


# --- minimize ----------------------------------------------------------------------------------


@replayed("descent")
def test_a_logistic_regression_is_learned_and_the_study_closed() -> None:
    stage = Stage(line_data(5000), Ball(2, 10))
    release = minimize(stage, Logistic(), data_norm=1)
    assert stage.release is release
    direction = release.value / np.linalg.norm(release.value)
    assert direction @ np.array([2.0, -1.0]) / math.sqrt(5) > 0.99
    assert release.certificate.status is Status.PROVEN
    assert "not private" in repr(release) or "replayed" in repr(release).lower()


def test_the_label_may_be_any_column() -> None:
    data = line_data(800)
    moved = data[:, [2, 0, 1]]
    for rows, label in ((data, -1), (data, "2"), (moved, 0), (moved, "0")):
        with replayed("same"):
            release = minimize(Stage(rows, Ball(2, 10)), Logistic(), data_norm=1, label=label)
        if rows is data and label == -1:
            first = release.value
        assert np.array_equal(release.value, first)


@replayed("descent")
def test_three_classes_are_learned() -> None:
    rng = np.random.default_rng(2)
    centers = np.array([[0.8, 0.0], [-0.4, 0.7], [-0.4, -0.7]])
    labels = rng.integers(0, 3, 6000)
    x = centers[labels] + 0.2 * rng.normal(size=(6000, 2))
    loss = Multinomial(classes=(0, 1, 2))
    stage = Stage(np.column_stack([x, labels]), Ball(6, 5))
    release = minimize(stage, loss, data_norm="3/2")
    guessed = (x @ release.value.reshape(2, 3)).argmax(axis=1)
    assert (guessed == labels).mean() > 0.95
    assert release.certificate.status is Status.PROVEN


def squared_gradient(theta: Any, rows: Any) -> Any:
    residual = rows[:, 0] * theta[0] + rows[:, 1] * theta[1] - rows[:, 2]
    return rows[:, :2] * residual[:, None]


@replayed("descent")
def test_a_function_is_asserted_and_reaches_the_same_place() -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, size=(4000, 2))
    rows = np.column_stack([x, x @ np.array([0.5, -0.25])])
    ours = minimize(Stage(rows, Ball(2, 1)), Squared(label_bound=1), data_norm="3/2", clip=1)
    theirs = minimize(Stage(rows, Ball(2, 1)), squared_gradient, clip=1, step="1/2")
    for release, status in ((ours, Status.PROVEN), (theirs, Status.ASSERTED)):
        assert release.certificate.status is status
        assert np.linalg.norm(release.value - [0.5, -0.25]) < 0.15
    assert GRADIENT in theirs.certificate.assumed
    assert GRADIENT not in ours.certificate.assumed


def test_layers_are_clipped_each_to_its_own_norm() -> None:
    def gradient(theta: Any, rows: Any) -> Any:
        return np.tile([3.0, 4.0, 0.0, 100.0], (len(rows), 1))

    stage = Stage(np.zeros((3, 2)), Ball(4, 1))
    made, gradients = gradients_in(stage, gradient, layers=[(2, 1), (2, "1/4")])
    mean = gradients.total(np.zeros(4)).astype(float) * float(gradients.quantum) / 3
    assert np.allclose(mean, [0.6, 0.8, 0.0, 0.25], atol=1e-5)
    assert math.isclose(made.clip, math.hypot(1, 0.25), rel_tol=1e-5)
    assert made.bound**2 >= sum(lattice.steps**2 for lattice in gradients._lattices)  # type: ignore[attr-defined]


def failing(theta: Any, rows: Any) -> Any:
    if (rows[:, 0] > 0).any():
        raise RuntimeError(rows[0, 0])
    return np.full((len(rows), 2), np.nan)


def test_failing_functions_and_wild_rows_never_surface() -> None:
    rows = np.array([[1.0, math.nan, 2.0], [math.inf, 1e300, -1e300], [0.0, 0.0, 0.0]])
    objectives: list[Any] = [failing, squared_gradient]
    for objective in objectives:
        release = minimize(Stage(rows, Ball(2, 1)), objective)
        assert Ball(2, 1).contains(release.value)
    release = minimize(Stage(rows, Ball(2, 1)), Logistic(), data_norm=1)
    assert Ball(2, 1).contains(release.value)


def test_a_plan_reads_no_row_and_a_bad_one_raises_before_any() -> None:
    closed = Stage(Unreadable(), Ball(2, 1))
    plan_minimize(closed, Logistic(), data_norm=1)
    plan_minimize(closed, squared_gradient)
    network = TanhNetwork(lower=(0, 0), upper=(1, 1))
    plan_minimize(Stage(Unreadable(), Ball(33, 1)), network)
    with pytest.raises(AssertionError, match="a row was read"):
        minimize(closed, Logistic(), data_norm=1)
    for change in (
        {"data_norm": None},
        {"label": "nobody"},
        {"label": 3},
        {"steps": 0},
        {"step": 0},
        {"momentum": 1},
        {"momentum": -1},
        {"average": 2},
        {"clip": -1},
        {"layers": [(2, 1)]},
    ):
        options: dict[str, Any] = {"data_norm": 1, **change}
        with pytest.raises(ParameterError):
            minimize(closed, Logistic(), **options)
    for space in (Ball(3, 1), Ball(2, 1, norm=1), Box([0, 0], [1, 1])):
        with pytest.raises(ParameterError):
            minimize(Stage(Unreadable(), space), Logistic(), data_norm=1)
    with pytest.raises(ParameterError):
        minimize(closed, squared_gradient, layers=[(3, 1)])


def test_the_progress_bar_shows_rounds_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained() -> str:
        minimize(Stage(line_data(100), Ball(2, 1), rounds=3), Logistic(), data_norm=1)
        out, err = capsys.readouterr()
        assert out == ""
        return err

    assert trained() == ""  # nobody looks at what is captured
    monkeypatch.setattr(progress, "_is_terminal", lambda: True)
    assert trained() == ""  # it takes less than two seconds
    monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
    monkeypatch.setattr(progress, "_REFRESH_INTERVAL", 0.0)
    assert "rounds" in trained()


def test_the_start_is_the_center_also_away_from_zero() -> None:
    data = line_data(3000)
    ball = Ball(2, 3, center=[8, -4])
    release = minimize(Stage(data, ball), Logistic(), data_norm=1)
    assert ball.contains(release.value)


def test_a_descent_spends_the_whole_plan() -> None:
    rows = line_data(200)
    asked = Stage(rows, Ball(2, 1))
    asked.mean(0, bounds=(-1, 1))
    with pytest.raises(ParameterError, match="whole plan"):
        asked.minimize(Logistic(), data_norm=1)
    done = Stage(rows, Ball(2, 1))
    done.minimize(Logistic(), data_norm=1)
    with pytest.raises(ParameterError, match="closed"):
        done.minimize(Logistic(), data_norm=1)


def test_the_planned_descent_can_be_read_before() -> None:
    study = Stage(Unreadable(), Ball(2, 1))
    assert "rounds on 1000 rows" in repr(study.plan_minimize(Logistic(), data_norm=1))
