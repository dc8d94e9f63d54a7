"""Model selection: training inside a study, permute-and-flip where nothing is trained."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from sampling import Replace
from tasks.noise_laws import assert_chosen_purely
from tasks.spying import recorded, zero
from zerodelta.audit.exact import neighbors
from zerodelta.channels.purification import plan
from zerodelta.errors import ParameterError
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.models import LinearPredictor, NetworkModel
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Finite
from zerodelta.study.plan import FUNCTIONS
from zerodelta.study.study import Study
from zerodelta.tasks.models import (
    FIT,
    PARAMETERS,
    SCORE,
    ModelQuestion,
    blocks_for,
    can_decide,
    select_model,
    vote_or_study,
)
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


@pytest.mark.parametrize("bounds", [(0, 1), (-3, 1)])
def test_a_choice_among_fixed_candidates_is_exactly_epsilon(
    bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the range for one candidate, none for the other, against the opposite."""
    calls, handed = recorded(monkeypatch, PermuteAndFlip, "select", zero), {}
    low, high = bounds
    for row in itertools.product((low - 5, low, high, high + 5), repeat=2):
        table = np.array([row, (low, high)], dtype=np.float64)
        select_model(
            table, {"a": 0, "b": 1}, score=lambda c, r: r[:, c], bounds=bounds, epsilon="3/2"
        )
        mechanism, scores = calls[-1][:2]
        handed[row] = mechanism.scale, tuple(int(score) for score in scores)
    pairs = itertools.combinations(handed, 2)
    assert_chosen_purely(handed, pairs, epsilon=Fraction(3, 2), tight="149/100")


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


# -- models that a block can train: a vote or a study ----------------------------------------------

DEGREES = {"constant": 0, "line": 1, "parabola": 2, "quartic": 4}


def curve(rows: int = 3000) -> Any:
    """A parabola with noise: lower degrees miss it, higher ones fit the noise."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=rows)
    return np.column_stack([x, 0.5 * x**2 + rng.normal(0, 0.1, size=rows)])


def fit(degree: int, rows: Any) -> Any:
    return np.polyfit(rows[:, 0], rows[:, 1], degree)


def score(degree: int, parameters: Any, rows: Any) -> Any:
    return -np.minimum(np.abs(np.polyval(parameters, rows[:, 0]) - rows[:, 1]), 1)


def train(study: Study, degree: int) -> Any:
    return [study.mean(1, bounds=(0, 1))]


OPTIONS: dict[str, Any] = {"fit": fit, "score": score, "bounds": (-1, 0)}
STUDY: dict[str, Any] = {"train": train, "rounds": 1}


def test_a_vote_of_blocks_finds_the_best_model() -> None:
    release = select_model(curve(), DEGREES, epsilon=4, **OPTIONS)
    assert release.value in ("parabola", "quartic")
    assert [step.theorem for step in release.certificate.steps] == ["permute-and-flip"]
    assert release.certificate.status.value == "asserted"
    assert FIT in release.certificate.assumed
    assert FUNCTIONS not in release.certificate.assumed
    assert "the number of blocks, 5" in release.certificate.public
    assert "of 5 votes behind" in str(release.error)
    assert "a vote: every block trains without noise" in str(release.error)
    assert zd.verify(release.certificate, epsilon=4)


def test_each_half_of_a_block_is_scored_by_what_the_other_trained() -> None:
    """One that repeats its rows is right about those, and about no others."""
    seen: list[tuple[list[float], list[float]]] = []

    def repeats(model: str, rows: Any) -> Any:
        return rows[:, 0].tolist()

    def known(model: str, rows_known: Any, rows: Any) -> Any:
        seen.append((rows_known, rows[:, 0].tolist()))
        return np.isin(rows[:, 0], rows_known) if model == "memory" else np.full(len(rows), 0.1)

    candidates = {"memory": "memory", "rule": "rule"}
    question = ModelQuestion(candidates=candidates, fit=repeats, score=known)
    assert question._of_block(np.arange(11.0)[:, None]) == "rule"
    assert all(set(trained).isdisjoint(scored) for trained, scored in seen)
    assert sorted(seen[0][1] + seen[1][1]) == list(np.arange(11.0))


def test_scores_are_clipped_and_nan_is_the_middle() -> None:
    def odd(model: Any, _: Any, rows: Any) -> Any:
        return np.full(len(rows), model)

    def chosen(*models: float) -> str:
        named = {str(model): model for model in models}
        question = ModelQuestion(
            candidates=named, fit=lambda model, rows: None, score=odd, bounds=(0, 4)
        )
        return question._of_block(np.zeros((6, 1)))

    assert chosen(1.0, np.nan) == "nan"
    assert chosen(3.0, np.nan) == "3.0"
    assert chosen(4.0, np.inf) == "4.0"  # tied: the first
    assert chosen(-np.inf, 0.0) == "-inf"


def test_auto_takes_the_vote_where_votes_can_decide_and_the_study_elsewhere() -> None:
    def theorem(rows: int, **options: Any) -> tuple[str, str]:
        given = {**OPTIONS, **STUDY, "epsilon": 1, **options}
        release = select_model(curve(rows), DEGREES, **given)
        return release.certificate.steps[0].theorem, str(release.error)

    voted, why = theorem(1000)
    assert voted == "permute-and-flip"
    assert "large enough to choose" in why
    for options in ({"epsilon": "1/10"}, {"least_rows": 500}):
        studied, why = theorem(1000, **options)
        assert studied == "adaptive-gaussian"
        assert "if blocks are too small to choose" in why
    assert theorem(1000, method="study")[0] == "adaptive-gaussian"
    assert theorem(1000, method="vote", least_rows=500)[0] == "permute-and-flip"


def test_the_advisor_weighs_the_same() -> None:
    methods = vote_or_study(n=1000, options=4, epsilon=1)
    assert tuple(zd.advise("select_model", n=1000, options=4, epsilon=1)) == methods
    assert tuple(zd.advise("vote", n=1000, options=4, epsilon=1)) == methods
    few = zd.advise("vote", n=1000, options=4, epsilon="1/10")
    assert few.best.name == "study"
    assert few.methods[1].error == np.inf


def test_a_study_trains_few_numbers_better_and_a_vote_many() -> None:
    """As bench/vote_or_study.py measured: columns have 1, polynomials of degree 8 have 9."""

    def picked(n: int, epsilon: str, parameters: int) -> str:
        return vote_or_study(n=n, options=8, epsilon=epsilon, parameters=parameters)[0].name

    for n, epsilon in ((300, "1"), (1000, "1/4"), (1000, "1"), (5000, "1/4")):
        assert picked(n, epsilon, 9) == "vote"
        assert picked(n, epsilon, 1) == "study"
    # evidence §6, where the study trains on a Gram matrix of 45 numbers
    assert all(picked(n, "1", 45) == "vote" for n in (500, 3000, 20_000))
    assert picked(300, "1/4", 9) == "study"  # so few votes cannot decide
    weak = vote_or_study(n=3000, options=28, epsilon="1/2", parameters=30, least_rows=300)
    assert weak[0].name == "study"


def test_numbers_that_are_trained_are_counted_on_made_up_rows() -> None:
    def counted(found: Any) -> int:
        question = ModelQuestion(
            candidates={"a": 0, "b": 1},
            fit=lambda model, rows: found,
            made_up_rows=np.zeros((4, 2)),
        )
        return question._parameters()

    assert counted(np.zeros((3, 4))) == 12
    assert counted(0.5) == counted([]) == 1
    assert counted(object()) == counted([[1], [2, 3]]) == PARAMETERS


def test_blocks_decide_from_twice_their_noise_on() -> None:
    for options, epsilon in itertools.product((2, 8, 100), (Fraction(1, 4), Fraction(2))):
        blocks = blocks_for(options, epsilon, 10**9)
        assert can_decide(options, epsilon, blocks)
        assert can_decide(options, epsilon, -(-blocks // 4))
        assert not can_decide(options, epsilon, blocks // 4 - 1)
        assert blocks_for(options, epsilon, 10) == 3


def test_a_vote_among_models_is_pure_on_all_neighbors(
    monkeypatch: pytest.MonkeyPatch, replace: Replace
) -> None:
    """Three rows in three blocks, dealt in every way that the bits can: votes move by one."""
    calls, handed = recorded(monkeypatch, PermuteAndFlip, "select", zero), {}
    epsilon, deals = Fraction(3, 4), list(itertools.product(range(3), repeat=3))
    tables = list(itertools.product((0.0, 1.0), repeat=3))
    for rows, deal in itertools.product(tables, deals):
        replace("uniform_below", lambda bound, *, size, bits, d=deal: list(d))
        select_model(
            np.array(rows)[:, None],
            {"zeros": 0, "ones": 1},
            epsilon=epsilon,
            fit=lambda model, rows: model,
            score=lambda model, found, rows: rows[:, 0] == found,
        )
        mechanism, votes = calls[-1][:2]
        assert sum(votes) == 3
        handed[rows, deal] = mechanism.scale, tuple(map(int, votes))
    pairs = [((a, d), (b, d)) for a, b in neighbors(tables) for d in deals]
    assert_chosen_purely(handed, pairs, epsilon=epsilon, tight=epsilon / 2)


def test_data_sets_vote_with_codes_and_units() -> None:
    cells = np.zeros(600, dtype=[("id", "U4"), ("city", "U4"), ("age", float)])
    cells["id"] = [str(i // 2) for i in range(600)]
    cells["city"], cells["age"] = np.where(np.arange(600) % 2, "rome", "oslo"), 40
    kinds = {
        "id": zd.text(4),
        "city": zd.category(["oslo", "rome"]),
        "age": zd.number(0, 120, missing=None),
    }
    people = zd.open(cells, columns=kinds)[["city", "age"]]

    def by_code(model: int, rows: Any) -> Any:
        return np.bincount(rows[~np.isnan(rows[:, 0]), 0].astype(int), minlength=2)

    release = select_model(
        people,
        {"a": 0, "b": 1},
        epsilon=4,
        fit=by_code,
        score=lambda model, counts, rows: np.full(len(rows), model),
    )
    assert release.value == "b"
