"""Models that a block can train: a vote or a study, by what is forecast, and the law of a vote."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from sampling import Replace
from tasks.spying import recorded, zero
from zerodelta.audit.exact import certainly_pure, permute_and_flip_law
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.study.plan import FUNCTIONS
from zerodelta.study.study import Study
from zerodelta.tasks.models import (
    FIT,
    PARAMETERS,
    ModelQuestion,
    blocks_for,
    can_decide,
    select_model,
    vote_or_study,
)

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
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    epsilon, deals = Fraction(3, 4), list(itertools.product(range(3), repeat=3))
    votes: dict[Any, list[Any]] = {}
    for rows in itertools.product((0.0, 1.0), repeat=3):
        for deal in deals:
            replace("uniform_below", lambda bound, *, size, bits, d=deal: list(d))
            select_model(
                np.array(rows)[:, None],
                {"zeros": 0, "ones": 1},
                epsilon=epsilon,
                fit=lambda model, rows: model,
                score=lambda model, found, rows: rows[:, 0] == found,
            )
            mechanism, counted = calls[-1][:2]
            votes.setdefault(rows, []).append((mechanism.scale, list(map(int, counted))))
    moved = 0
    for one, two in itertools.permutations(votes, 2):
        if sum(a != b for a, b in zip(one, two, strict=True)) > 1:
            continue
        for (scale, before), (_, after) in zip(votes[one], votes[two], strict=True):
            assert sum(before) == sum(after) == 3
            laws = [permute_and_flip_law(each, scale=scale) for each in (before, after)]
            assert certainly_pure(laws[0], laws[1], epsilon)
            moved += not certainly_pure(laws[0], laws[1], epsilon * Fraction(1, 2))
    assert moved


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
