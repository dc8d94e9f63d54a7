"""Losses and their exact integer gradient sums: slopes, sensitivity, failures in rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import zerodelta as zd
from data.opening import opened
from study.stages import read
from zerodelta.data.arrays import ArraySource
from zerodelta.errors import ParameterError
from zerodelta.privacy.steps import Status
from zerodelta.training import gradients as callable_gradients
from zerodelta.training import gradients as linear_gradients
from zerodelta.training.gradient_sums import Examples, Gradients
from zerodelta.training.gradients import CallableGradients, LinearGradients
from zerodelta.training.gradients import gradients_of as planned_gradients
from zerodelta.training.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from zerodelta.training.models import TanhNetwork

SINGLE: dict[str, Loss] = {
    "logistic": Logistic(),
    "hinge": Hinge(),
    "squared": Squared(label_bound=2),
    "huber": Huber(label_bound=2, threshold="1/2"),
}
LOSSES: dict[str, Loss] = {**SINGLE, "multinomial": Multinomial(classes=(0, 1, 2))}
by_single = pytest.mark.parametrize("name", SINGLE)
by_loss = pytest.mark.parametrize("name", LOSSES)


def gradients_of(*data: Any, **options: Any) -> Gradients:
    made: Gradients = read(planned_gradients(*data, **options))
    return made


def table(rows: int, dimension: int, label: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(abs(hash((rows, dimension))) % 2**32)
    features = rng.normal(size=(rows, dimension))
    classes = 3 if label == "multinomial" else 2
    numbers = label in ("squared", "huber")
    labels = rng.normal(size=rows) if numbers else rng.integers(0, classes, rows)
    return features, labels.astype(np.float64)


@by_single
def test_the_slope_is_the_derivative_of_the_value(name: str) -> None:
    loss, step = LOSSES[name], 1e-6
    margins = np.linspace(-3, 3, 41) + 0.0123
    for label in loss.read(np.array([0.0, 1.0])):
        labels = np.full_like(margins, label)
        rise = loss.value(margins + step, labels) - loss.value(margins - step, labels)
        assert np.allclose(loss.slope(margins, labels), rise / (2 * step), atol=1e-5)


@by_single
def test_slopes_stay_within_their_bound(name: str) -> None:
    loss = LOSSES[name]
    margins, labels = np.linspace(-5, 5, 101), loss.read(np.array([0.0, 1.0, 99.0, -99.0]))
    for label in labels[np.isfinite(labels)]:
        slopes = loss.slope(margins, np.full_like(margins, label))
        assert np.abs(slopes).max() <= loss.slope_bound(Fraction(5))


@by_loss
def test_a_row_has_the_same_gradient_whatever_the_other_rows_are(name: str) -> None:
    features, labels = table(101, 7, name)
    theta = np.linspace(-1, 1, 7 * LOSSES[name].outputs)
    whole = LOSSES[name].gradients(theta, features, labels)
    order = np.argsort(features[:, 0])
    mixed = LOSSES[name].gradients(theta, features[order], labels[order])
    assert np.array_equal(whole[order], mixed)
    features[50], labels[50] = math.nan, math.inf
    changed = LOSSES[name].gradients(theta, features, labels)
    assert np.array_equal(np.delete(whole, 50, 0), np.delete(changed, 50, 0))
    assert not changed[50].any()


@by_loss
def test_the_integer_sum_is_the_sum_of_the_gradients(name: str) -> None:
    features, labels = table(300, 4, name)
    gradients = gradients_of(features, labels, loss=LOSSES[name], radius=1, data_norm=10)
    assert gradients.status is Status.PROVEN
    theta = np.resize([0.5, -0.25, 0.125, 0.3], 4 * LOSSES[name].outputs) / LOSSES[name].outputs
    exact = gradients.total(theta, None).astype(np.float64) * float(gradients.quantum)
    expected = LOSSES[name].gradients(theta, features, labels).sum(axis=0)
    assert np.allclose(exact, expected, atol=300 * 10 * float(gradients.lipschitz) * 2**-14)
    chosen = np.arange(0, 300, 3)
    part = gradients.total(theta, chosen)
    others = np.setdiff1d(np.arange(300), chosen)
    assert np.array_equal(part + gradients.total(theta, others), gradients.total(theta, None))


@by_loss
@pytest.mark.parametrize("clip", [None, "1/3"])
def test_one_row_is_within_the_bound_in_integers(name: str, clip: Any) -> None:
    """The premise of every certificate of SGD: ‖Σ - Σ'‖ <= 2·bound, exactly."""
    extremes = [0.0, 1e-9, 0.7, -1.0, 5.0, 1e300, math.nan, math.inf]
    rows = np.array(list(itertools.product(extremes, repeat=2)))
    labels = np.resize([0.0, 1.0, 1e300, math.nan, -3.0], len(rows))
    gradients = gradients_of(rows, labels, loss=LOSSES[name], radius=2, data_norm=1, clip=clip)
    for start in ([0.0, 0.0], [2.0, 0.0], [1e9, math.nan]):
        theta = np.resize(start, gradients.dimension)
        for i in range(len(rows)):
            one = [int(k) for k in gradients.total(theta, np.array([i]))]
            assert sum(k * k for k in one) <= gradients.bound**2
    if clip is not None:
        assert gradients.lipschitz <= Fraction(1, 3)


def test_clipping_is_per_example_and_not_of_the_slope() -> None:
    """A short row keeps its full slope; only a long one is cut."""
    rows, labels = np.array([[1.0], [0.1]]), np.array([-1.0, -1.0])
    loss = Squared(label_bound=1)
    gradients = gradients_of(rows, labels, loss=loss, radius=1, data_norm=1, clip="1/4")
    unit = float(gradients.quantum)
    long, short = (float(gradients.total(np.zeros(1), np.array([i]))[0]) * unit for i in (0, 1))
    assert math.isclose(long, 0.25, rel_tol=1e-3)
    assert math.isclose(short, 0.1, rel_tol=1e-3)


@pytest.mark.parametrize("cap", [3, 40, 2**13])
def test_slopes_of_several_outputs_are_cut_to_a_row_s_largest_and_hardly_further(cap: int) -> None:
    """Every row keeps what it may add: rounded toward zero, never dropped."""
    features, labels = table(300, 2, "multinomial")
    loss = LOSSES["multinomial"]
    made: Any = gradients_of(features, labels, loss=loss, radius=2, data_norm=2)
    margins = np.random.default_rng(2).normal(size=(300, 3)) * 2.0**50
    slopes = made._slopes(margins, labels, np.full(300, float(cap)))
    lengths = np.sqrt((slopes**2).sum(axis=1))
    assert (slopes == np.rint(slopes)).all()
    assert ((slopes**2).sum(axis=1) <= cap**2).all()
    full = made._slopes(margins, labels, np.full(300, 2.0**20))
    over = (full**2).sum(axis=1) > cap**2
    assert over.any()
    assert (lengths[over] > cap - math.sqrt(3)).all()


@by_loss
def test_order_batches_and_threads_never_change_the_sum(name: str) -> None:
    """The same integers from arrays, blocks of any size, any order, and any number of threads."""
    loss = LOSSES[name]
    features, labels = table(1001, 33, name)
    theta = np.linspace(-1, 1, 33 * loss.outputs)

    def total(examples: Examples) -> Any:
        made = LinearGradients(examples, loss=loss, radius=9, data_norm=6, clip=3)
        return read(made).total(theta)

    expected = total(Examples.of_arrays(features, labels))
    flipped = np.asfortranarray(features[::-1])
    assert np.array_equal(total(Examples.of_arrays(flipped, labels[::-1])), expected)
    joined = np.column_stack([labels, features])
    for batch in (1, 7, 1001):
        source = ArraySource(joined, batch=batch)
        assert np.array_equal(total(Examples.of(source, label=0)), expected)
    halves = [Examples.of_arrays(features[s], labels[s]) for s in (np.s_[:500], np.s_[500:])]
    assert np.array_equal(sum(total(half) for half in halves), expected)
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert np.array_equal(total(Examples.of_arrays(features, labels)), expected)


def test_margins_are_the_same_in_any_layout() -> None:
    features, labels = table(1001, 33, "logistic")
    theta = np.linspace(-1, 1, 33)
    first, again = (
        read(LinearGradients(Examples.of_arrays(*data), loss=Logistic(), radius=5, data_norm=6))
        for data in ((features, labels), (np.asfortranarray(features[::-1]), labels[::-1]))
    )
    assert np.array_equal(first.margins(theta), again.margins(theta)[::-1])


def test_a_function_sees_features_then_the_label_in_blocks() -> None:
    seen = []

    def gradient(theta: Any, rows: Any) -> Any:
        seen.append(rows.copy())
        return rows[:, :2]

    rows = np.arange(12.0).reshape(4, 3) / 100
    source = ArraySource(rows, batch=3)
    made = read(
        CallableGradients(Examples.of(source, label=1), gradient=gradient, radius=1, clip=1)
    )
    seen.clear()  # it was tried on public rows
    total = made.total(np.zeros(2))
    assert [len(block) for block in seen] == [3, 1]
    assert np.array_equal(np.vstack(seen), rows[:, [0, 2, 1]])
    sums = total.astype(float) * float(made.quantum)
    assert np.allclose(sums, rows[:, [0, 2]].sum(axis=0), atol=1e-5)


def test_multinomial_slopes_are_softmax_minus_the_class() -> None:
    loss, step = Multinomial(classes=(5, 7, 9)), 1e-6
    margins = np.random.default_rng(0).normal(size=(20, 3))
    labels = loss.read(np.resize([5.0, 7.0, 9.0], 20))
    slopes = loss.slope(margins, labels)
    for c in range(3):
        moved = margins + step * (np.arange(3) == c)
        rise = (loss.value(moved, labels) - loss.value(margins, labels)) / step
        assert np.allclose(slopes[:, c], rise, atol=1e-5)
    assert np.allclose(slopes.sum(axis=1), 0)
    assert np.sqrt((slopes**2).sum(axis=1)).max() <= loss.slope_bound(Fraction(1))
    huge = loss.slope(np.array([[1e300, -1e300, 0.0]]), np.array([1.0]))
    assert np.array_equal(huge, [[1.0, -1.0, 0.0]])


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_a_network_has_the_gradient_of_its_loss(classes: Any) -> None:
    network = TanhNetwork(lower=(-1, -1), upper=(1, 1), classes=classes, units=5)
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.uniform(-1, 1, (9, 2)), rng.integers(0, len(classes), 9)])
    theta, step = network.start() + 0.1 * rng.normal(size=network.parameters), 1e-6

    def losses(theta: Any) -> Any:
        logits = network.logits(theta, rows[:, :2])
        if network.outputs == 1:
            logits = np.column_stack([np.zeros(9), logits])
        own = logits[np.arange(9), rows[:, 2].astype(int)]
        return np.log(np.exp(logits).sum(axis=1)) - own

    found = network.gradient(theta, rows)
    for j in range(network.parameters):
        rise = losses(theta + step * (np.arange(len(theta)) == j)) - losses(theta)
        assert np.allclose(found[:, j], rise / step, atol=1e-3)


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_a_network_treats_rows_one_by_one_to_the_last_bit(classes: Any) -> None:
    """What `proven` rests on: position, batch and company of a row change nothing."""
    network = TanhNetwork(lower=(-1, -1, 0), upper=(1, 1, 2), classes=classes)
    rng = np.random.default_rng(6)
    rows = np.column_stack([rng.normal(size=(101, 3)), rng.integers(0, len(classes), 101)])
    rows[7, 0], rows[8, 3] = math.nan, 9.0
    theta = network.start()
    whole = network.gradient(theta, rows)
    assert np.isnan(whole[7]).any()
    assert np.isnan(whole[8]).any()
    assert np.isfinite(np.delete(whole, [7, 8], axis=0)).all()
    order = rng.permutation(101)
    assert np.array_equal(network.gradient(theta, rows[order]), whole[order], equal_nan=True)
    for i in range(101):
        assert np.array_equal(network.gradient(theta, rows[i : i + 1])[0], whole[i], equal_nan=True)


def test_a_network_that_only_descends_from_ours_is_caller_asserted() -> None:
    """It may do anything with the other rows."""

    class Other(TanhNetwork):
        def logits(self, theta: Any, features: Any) -> Any:
            return TanhNetwork.logits(self, theta, features) + features.sum()

    status = [
        gradients_of(
            np.zeros((9, 2)), np.zeros(9), loss=made.gradient, radius=1, clip=1, dimension=size
        ).status
        for kind in (TanhNetwork, Other)
        for made in [kind(lower=(-1, -1), upper=(1, 1), units=2)]
        for size in [made.parameters]
    ]
    assert status == [Status.PROVEN, Status.ASSERTED]


def test_networks_are_checked() -> None:
    for options in (
        {"lower": (0,), "upper": (1, 1)},
        {"lower": (), "upper": ()},
        {"lower": (1,), "upper": (1,)},
        {"lower": (0,), "upper": (1,), "classes": (1,)},
        {"lower": (0,), "upper": (1,), "classes": (1, 1)},
        {"lower": (0,), "upper": (1,), "units": 0},
    ):
        with pytest.raises(ParameterError):
            TanhNetwork(**options)


def test_every_margin_and_every_sum_of_a_block_is_an_integer_that_floats_hold() -> None:
    """Then BLAS rounds nothing, whatever the order in which it adds."""
    rows, slopes = linear_gradients._ROW_STEPS, linear_gradients._SLOPE_STEPS
    assert rows <= 2**24  # of float32
    # parameters may be 1e-9 outside the ball, and are rounded
    assert rows * linear_gradients._PARAMETER_STEPS <= 2**52
    assert rows * slopes * linear_gradients._MAXIMUM_ROWS <= 2**53
    assert (rows * slopes) ** 2 <= 2**62  # caps are found in 64 bits


@by_loss
@pytest.mark.parametrize("rows", [31, 32, 33, 64, 200])
def test_blocks_of_any_size_add_up_to_the_sum_of_single_rows(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with rows and labels that do not count; what fills the last block adds nothing."""
    features, labels = table(rows, 3, name)
    features[5, 1], labels[[2, rows - 1]] = math.nan, math.nan
    theta = np.linspace(-1, 1, 3 * LOSSES[name].outputs)
    how: dict[str, Any] = {"loss": LOSSES[name], "radius": 2, "data_norm": 2}
    single = [
        gradients_of(features[[i]], labels[[i]], **how).total(theta).tolist() for i in range(rows)
    ]
    assert not any(single[2])
    assert not any(single[rows - 1])
    monkeypatch.setattr(linear_gradients, "_MAXIMUM_ROWS", 32)
    found = gradients_of(features, labels, **how)
    expected = [sum(column) for column in zip(*single, strict=True)]
    assert found.total(theta).tolist() == expected
    assert found.total_once(theta).tolist() == expected  # type: ignore[attr-defined]


@by_loss
def test_parameters_beyond_the_ball_count_as_their_projection(name: str) -> None:
    features, labels = table(50, 3, name)
    made: Any = gradients_of(features, labels, loss=LOSSES[name], radius=2, data_norm=2)
    theta = np.linspace(-1, 1, 3 * LOSSES[name].outputs)
    for factor in (2.0**4, 2.0**14):
        far = theta * factor
        assert made.total(far).tolist() == made.total(made.ball.project(far)).tolist()


def test_the_type_of_a_sum_tells_nothing_of_a_private_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does a guess of it decide whether 64 bits hold the sum."""
    monkeypatch.setattr(callable_gradients, "_GRADIENT_STEPS", 1 << 52)
    columns = {"x": zd.number(-1, 1), "y": zd.number(0, 1)}
    for rows in (1, 2**12):
        cells = np.ones(rows, dtype=[("x", float), ("y", float)])
        people = zd.open(cells, columns=columns, neighbors="add-remove", expected_rows=2)
        examples = Examples.of(people, label="y")
        ones = CallableGradients(
            examples, gradient=lambda theta, block: np.ones((len(block), 1)), radius=1, clip=1
        )
        linear = LinearGradients(examples, loss=Logistic(), radius=1, data_norm=1)
        totals = [made.on(opened(people)).total(np.zeros(1)) for made in (ones, linear)]
        assert [total.dtype for total in totals] == [object, object]
        assert totals[0].tolist() == [rows * 2**52]


def test_labels_outside_the_classes_count_as_nothing() -> None:
    rows = np.ones((3, 1))
    made = gradients_of(rows, np.array([0.0, 7.0, 1.0]), loss=Hinge(), radius=1, data_norm=1)
    totals = [int(made.total(np.zeros(1), np.array([i]))[0]) for i in range(3)]
    assert totals[1] == 0
    assert totals[0] == -totals[2] == made.bound


def flaky(theta: Any, rows: Any) -> Any:
    if (rows[:, 0] > 2).any():
        raise RuntimeError("a row says so")
    with np.errstate(divide="warn"):
        return rows[:, :1] / rows[:, :1] * np.ones((1, 2))


def test_a_function_that_fails_on_rows_makes_them_count_as_nothing() -> None:
    rows = np.array([[1.0], [3.0], [0.0]])
    made = gradients_of(rows, loss=flaky, radius=1, clip=1, dimension=2)
    assert made.status is Status.ASSERTED
    alone = gradients_of(rows[:1], loss=flaky, radius=1, clip=1, dimension=2)
    assert np.array_equal(made.total(np.zeros(2), None), alone.total(np.zeros(2), None))


class Homemade(Loss):
    def read(self, labels: Any) -> Any:
        return labels

    def value(self, margins: Any, labels: Any) -> Any:
        return margins

    def slope(self, margins: Any, labels: Any) -> Any:
        return margins - margins.mean()  # one row moves all others

    def slope_bound(self, margin: Fraction) -> Fraction:
        return margin


@pytest.mark.parametrize(
    "change",
    [
        {"data_norm": None},
        {"data_norm": 0},
        {"radius": -1},
        {"clip": 0},
        {"clip": "1e-12"},
        {"labels": None},
        {"labels": np.zeros(3)},
        {"features": np.zeros((0, 2))},
        {"features": np.zeros((4, 0))},
        {"loss": Homemade()},
        {"loss": "logistic"},
        {"loss": lambda theta, rows: np.zeros((len(rows), 9)), "clip": 1},
        {"loss": flaky, "clip": None},
    ],
    ids=lambda case: "-".join(case),
)
def test_bad_parameters_are_refused(change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"loss": Logistic(), "radius": 1, "data_norm": 1, **change}
    features = options.pop("features", np.zeros((4, 2)))
    labels = options.pop("labels", np.zeros(4))
    with pytest.raises(ParameterError):
        gradients_of(features, labels, **options)


def test_classes_and_bounds_of_losses_are_checked() -> None:
    for build in (
        lambda: Logistic(classes=(1, 1)),
        lambda: Hinge(classes=(0, 1, 2)),  # type: ignore[arg-type]
        lambda: Multinomial(classes=(0,)),
        lambda: Multinomial(classes=(0, 1, 1)),
        lambda: Squared(label_bound=0),
        lambda: Huber(label_bound=1, threshold=-1),
    ):
        with pytest.raises(ParameterError):
            build()
