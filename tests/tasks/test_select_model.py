"""Model selection: training inside a study, permute-and-flip where nothing is trained."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zerodelta.audit.exact import certainly_impure, certainly_pure, permute_and_flip_law
from zerodelta.channels.purification import plan
from zerodelta.errors import ParameterError
from zerodelta.models import LinearPredictor, NetworkModel
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Finite
from zerodelta.study.plan import FUNCTIONS
from zerodelta.study.study import Study
from zerodelta.tasks.models import SCORE, select_model
from zerodelta.training.losses import Logistic, Squared

LOUD: dict[str, Any] = {"epsilon": 2000, "mixing_probability": "1e-12"}
"""So little noise, and so rarely a random candidate, that the best one must win."""


def products(rows: int = 1500) -> Any:
    """Four features; the label is whether the product of features 0 and 2 is positive."""
    x = np.random.default_rng(2).uniform(-1, 1, size=(rows, 4))
    return np.column_stack([x, x[:, 0] * x[:, 2] > 0])


def networks() -> dict[str, NetworkModel]:
    ends: dict[str, Any] = {"lower": (-1, -1), "upper": (1, 1), "units": 4}
    return {f"{a}{b}": NetworkModel(features=(a, b), **ends) for a, b in ((0, 1), (1, 3), (0, 2))}


def same(column: int, rows: Any) -> Any:
    return rows[:, column] == rows[:, -1]


FIXED = {"first": 0, "second": 1, "third": 2}


def fixed_rows(rows: int = 2000) -> Any:
    table = np.random.default_rng(4).integers(0, 2, size=(rows, 4)).astype(np.float64)
    table[:, 3] = table[:, 2]
    return table


def test_fixed_candidates_are_chosen_by_permute_and_flip_and_the_release_says_so() -> None:
    release = select_model(fixed_rows(), FIXED, epsilon=2, score=same)
    assert release.value == "third"
    assert [step.theorem for step in release.certificate.steps] == ["permute-and-flip"]
    assert "permute-and-flip" in str(release.error)
    assert verify(release.certificate)
    assert release.certificate.status.value == "asserted"
    single = select_model(fixed_rows(30), FIXED, epsilon=2, score=same, rowwise=True)
    assert single.certificate.status.value == "asserted"  # one row at a time it may still remember
    assert all(SCORE in found.certificate.assumed for found in (release, single))


def test_trained_candidates_are_chosen_in_a_study() -> None:
    release = select_model(products(), networks(), **LOUD, rounds=15)
    assert release.value == "02"
    assert release.certificate.steps[0].theorem == "adaptive-gaussian"
    assert release.certificate.status.value == "proven"
    assert verify(release.certificate)


def test_the_study_spends_exactly_what_the_names_allow() -> None:
    release = select_model(
        products(20), networks(), epsilon="1/2", rounds=2, mixing_probability="1/1000"
    )
    expected = plan(Finite(["01", "13", "02"]), epsilon="1/2", mixing_probability="1/1000")
    first, last = release.certificate.steps
    assert first.numbers["rounds"] == 3 * 2 + 1
    assert Fraction(first.numbers["mu_squared"]) == expected.calibration.mu_squared
    assert last == expected.purifier.step()


def test_linear_models_are_trained_with_their_losses() -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, size=(2000, 3))
    rows = np.column_stack([x, x[:, 1] > 0.2])
    models = {
        name: LinearPredictor(features=(i,), loss=Logistic(), data_norm=1)
        for i, name in enumerate("abc")
    }
    assert select_model(rows, models, **LOUD, rounds=15).value == "b"
    rows[:, 3] = 0.5 - x[:, 2]
    models = {
        name: LinearPredictor(features=(i,), loss=Squared(label_bound=2), data_norm=1, radius=2)
        for i, name in enumerate("abc")
    }
    assert select_model(rows, models, **LOUD, rounds=15).value == "c"


def means(study: Study, column: int) -> Any:
    return study.mean(column, bounds=(0, 1))


def near(column: int, mean: Any, rows: Any) -> Any:
    return 1 - np.abs(rows[:, column] - mean)


def test_callers_train_and_score_their_own() -> None:
    """The column that is nearest to its own hidden mean."""
    rows = np.random.default_rng(1).uniform(size=(3000, 3))
    rows[:, 1] = 0.5 + rows[:, 1] / 100
    release = select_model(rows, FIXED, **LOUD, train=means, score=near, rounds=1, bounds=(0, 1))
    assert release.value == "second"
    assert release.certificate.status.value == "asserted"


def test_a_training_that_fails_still_publishes() -> None:
    calls: list[int] = []

    def fails(study: Study, column: int) -> Any:
        calls.append(column)
        if len(calls) > len(FIXED):  # not in the rehearsal
            raise RuntimeError(str(means(study, column)))
        return means(study, column)

    release = select_model(fixed_rows(40), FIXED, epsilon=1, train=fails, score=near, rounds=2)
    assert len(calls) == len(FIXED) + 1
    assert release.value in FIXED
    assert verify(release.certificate)


def test_a_training_that_asks_too_much_is_refused_before_rows_are_read() -> None:
    def greedy(study: Study, column: int) -> Any:
        return [means(study, column) for _ in range(50)][-1]

    with pytest.raises(ParameterError, match="more queries than the plan"):
        select_model(fixed_rows(40), FIXED, epsilon=1, train=greedy, score=near, rounds=2)


def test_a_callers_models_are_asserted_also_row_by_row() -> None:
    for rowwise in (False, True):
        certificate = select_model(
            fixed_rows(20), FIXED, epsilon=1, train=means, score=near, rounds=1, rowwise=rowwise
        ).certificate
        assert certificate.status.value == "asserted"
        assert FUNCTIONS in certificate.assumed
    built_in = select_model(products(20), networks(), epsilon=1, rounds=1).certificate
    assert built_in.status.value == "proven"
    assert FUNCTIONS not in built_in.assumed


def test_fixed_candidates_are_pure_over_all_neighbors_and_half_the_noise_is_caught() -> None:
    """Exact laws: two rows of scores 0 or 1 for two candidates, epsilon 3/4."""
    universe = list(itertools.product((0, 1), repeat=2))
    epsilon, scale = Fraction(3, 4), Fraction(2) / Fraction(3, 4)
    step = select_model(
        np.array([[0.0, 1.0]]), {"a": 0, "b": 1}, epsilon=epsilon, score=lambda c, r: r[:, c]
    ).certificate.steps[0]
    unit = Fraction(step.numbers["sensitivity"])  # the lattice's integers for a range of 1
    assert Fraction(step.numbers["scale"]) / unit == scale
    caught = False
    for first, second, other in itertools.product(universe, repeat=3):
        before, after = (
            [a + b for a, b in zip(first, row, strict=True)] for row in (second, other)
        )
        laws = [permute_and_flip_law(scores, scale=scale) for scores in (before, after)]
        assert certainly_pure(laws[0], laws[1], epsilon)
        halved = [permute_and_flip_law(scores, scale=scale / 2) for scores in (before, after)]
        caught = caught or certainly_impure(halved[0], halved[1], epsilon)
    assert caught


def test_only_our_own_models_are_proven() -> None:
    """A model or a loss of the caller's might look at other rows, so it must come as functions."""

    class Mine(LinearPredictor):
        pass

    class Loss(Logistic):
        pass

    with pytest.raises(ParameterError, match="train= and score="):
        select_model(
            products(10),
            {"mine": Mine(features=(0,), loss=Logistic(), data_norm=1)},
            epsilon=1,
            rounds=2,
        )
    with pytest.raises(ParameterError, match="train any other loss"):
        LinearPredictor(features=(0,), loss=Loss(), data_norm=1)


def test_what_a_built_in_model_makes_of_a_row_does_not_depend_on_the_batch() -> None:
    rows = products(300)
    rows[::7, 1] = np.nan
    columns = tuple("01234")
    linear = LinearPredictor(features=(0, 1, 3), loss=Logistic(), data_norm=1)
    for model in (networks()["01"], linear):
        theta = model.start(columns) + 0.1
        for function in (model.gradient, model.score):
            with np.errstate(all="ignore"):  # as `evaluate` does
                whole = function(theta, rows, columns)
                parts = [function(theta, rows[i : i + 9], columns) for i in range(0, 300, 9)]
            assert np.array_equal(np.concatenate(parts), whole, equal_nan=True)
            assert np.isfinite(whole).any()
