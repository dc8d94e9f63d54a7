"""Questions: what they sum, by how much a row can move it, and how that is paid for (R, R2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerodelta.data.isolation import reveal
from zerodelta.data.row_queries import box_lattice, norm_lattice, public_rows, row_query
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite
from zerodelta.study import queries as internal_queries
from zerodelta.study.plan import StudyPlan
from zerodelta.study.study import Study
from zerodelta.testing import replayed

F = Fraction
ROWS = np.array([[0.25, 1.0], [0.5, 0.0], [1.0, 1.0], [0.0, 1.0]])


def made(rows: Any = ROWS, **changes: Any) -> Study:
    options: dict[str, Any] = {
        "epsilon": 1,
        "publish": Finite(2),
        "rounds": 10,
        "bounds": (0, 1),
        "data_norm": 2,
        "selects": True,
        **changes,
    }
    return Study(rows, **options)


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rowwise", [False, True])
def test_answers_without_noise_are_the_statistics(noiseless: Any, rowwise: bool) -> None:
    study, x = made(rowwise=rowwise), ROWS
    close = pytest.approx
    assert float(study.count(lambda rows: rows[:, 0] >= 0.5)) == 2
    assert float(study.count("1")) == 3
    assert float(study.sum(0)) == close(x[:, 0].sum(), abs=1e-5)
    assert float(study.mean("0")) == close(x[:, 0].mean(), abs=1e-5)
    assert reveal(study.mean([0, 1])) == close(x.mean(axis=0), abs=1e-5)
    assert float(study.mean(lambda rows: 4 * rows[:, 0], bounds=(-2, 2))) == close(5 / 4, abs=1e-5)
    long = x / np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    assert reveal(study.gradient([0, 1], clip=1)) == close(long.mean(axis=0), abs=1e-5)
    assert reveal(study.sum([0, 1], norm_bound=1)) == close(long.sum(axis=0), abs=1e-5)
    assert reveal(study.histogram(1, size=3)).tolist() == [1, 3, 0]
    assert reveal(study.covariance(centered=False)) == close(x.T @ x / 4, abs=1e-3)
    assert study.size == 4


def test_the_covariance_without_noise_is_numpy_s(noiseless: Any) -> None:
    found = reveal(made().covariance())
    assert found == pytest.approx(np.cov(ROWS, rowvar=False, bias=True), abs=1e-3)
    assert found.tolist() == found.T.tolist()
    one = reveal(made().covariance(0))
    assert one == pytest.approx(np.array([[ROWS[:, 0].var()]]), abs=1e-3)


def test_one_number_is_a_number_and_several_are_a_vector(noiseless: Any) -> None:
    study = made()
    assert study.sum(0).shape == study.mean([0]).shape == study.select([0, 1]).shape == ()
    assert study.sum([0, 1]).shape == (2,)
    assert study.covariance().shape == (2, 2)


def test_a_choice_is_the_largest_score_when_it_is_clear() -> None:
    rows = np.tile([0.0, 1.0, 0.5], (200000, 1))
    with replayed("clear"):
        assert int(made(rows).select([0, 1, 2])) == 1


def test_keys_that_are_none_count_nowhere(noiseless: Any) -> None:
    keys = np.array([0, 1, 1, -1, 2, 0.5, math.nan, math.inf, 1e300])
    assert reveal(made(keys).histogram(0, size=2)).tolist() == [1, 2]


def test_the_noise_has_the_planned_variance(noiseless: Any) -> None:
    study = made(rounds=[1, 2, 5])
    mu_squared = study.plan.mu_squared
    study.count(0)
    study.sum([0, 1])
    study.gradient([0, 1], clip="1/3")
    variances = [variance for _, variance in noiseless]
    steps = 1 << 20
    assert variances == [
        4 / (F(1, 8) * mu_squared),  # ±1: a count moves by 2 half-steps
        4 * steps**2 * 2 / (F(2, 8) * mu_squared),  # both coordinates of a box
        4 * steps**2 / (F(5, 8) * mu_squared),  # the diameter of a ball
    ]


# --- what a row can move -------------------------------------------------------------------------

EXTREMES = [0.0, 1.0, -1.0, 0.5, 3.0, math.nan, -math.inf, 1e300]
PAIRS = list(itertools.product(EXTREMES, repeat=2))
QUESTIONS: dict[str, tuple[Callable[[Study], Any], float]] = {  # and the part that is reached
    "count": (lambda s: s.count(lambda rows: rows[:, 0] > 0.5), 1),
    "sum": (lambda s: s.sum(0), 1),
    "sum of two": (lambda s: s.sum([0, 1]), 1),
    "mean of a wild function": (lambda s: s.mean(lambda r: np.exp(r) - 1, bounds=(-1, 1)), 1),
    "gradient": (lambda s: s.gradient([0, 1], clip=1), 1),
    "gradient of a wild function": (lambda s: s.gradient(lambda r: r * r - 5, clip="1/7"), 0.5),
    "histogram": (lambda s: s.histogram(0, size=3), 1),
    "histogram of one cell": (lambda s: s.histogram(0, size=1), 0.5),
    "second moments": (lambda s: s.covariance(data_norm=1, centered=False), 1 - 1e-4),
    "covariance": (lambda s: s.covariance(data_norm=1), 0.7),
    "variance": (lambda s: s.covariance(0, data_norm=1), 0.5),
    "a part of the budget": (lambda s: s.sum(0, share="1/3"), 1),
}


def spent(question: Callable[[Study], Any], seen: Any, **options: Any) -> Fraction:
    """The largest Σ ‖Δ‖²/σ² over all pairs of rows, as a part of what the share allows."""
    share, totals = F(1, 10), []
    for pair in PAIRS:
        seen.clear()
        study = made(np.array([pair]), **options)
        question(study)
        share = 1 - study._shares._remaining
        totals.append([([*sums], variance) for sums, variance in seen])
    worst = F(0)
    for a, b in itertools.combinations(totals, 2):
        mu_squared = sum(
            (
                F(sum((x - y) ** 2 for x, y in zip(p, q, strict=True))) / variance
                for (p, variance), (q, _) in zip(a, b, strict=True)
            ),
            F(0),
        )
        worst = max(worst, mu_squared)
    return worst / (share * study.plan.mu_squared)


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_row_moves_an_answer_by_more_than_its_share(name: str, noiseless: Any) -> None:
    """The premise of R2, in integers and fractions, on rows of every kind."""
    question, reached = QUESTIONS[name]
    assert reached <= spent(question, noiseless) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_little_less_noise_is_caught(
    name: str, noiseless: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, reached = QUESTIONS[name]
    variance = StudyPlan.variance

    def less(self: StudyPlan, squared: Any, share: Fraction) -> Fraction:
        return variance(self, squared, share) * F(reached) * F(999, 1000)

    monkeypatch.setattr(StudyPlan, "variance", less)
    assert spent(question, noiseless) > 1


def test_a_covariance_that_spends_its_share_twice_is_caught(
    noiseless: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the mean were free: both parts with the whole share."""
    noised = internal_queries.InternalQueries._noised

    def whole(self: Any, sums: Any, squared: int, share: Fraction) -> Any:
        return noised(self, sums, squared, 2 * share)

    monkeypatch.setattr(internal_queries.InternalQueries, "_noised", whole)
    assert spent(QUESTIONS["covariance"][0], noiseless) > 1


def test_a_score_moves_by_at_most_the_sensitivity_of_its_choice(choices: Any) -> None:
    """Each score by at most the sensitivity, and with the ε of its share: ε²/8 = share·ρ."""
    for pair in PAIRS:
        study = made(np.array([pair]))
        study.select(lambda rows: np.stack([rows[:, 0], -rows[:, 1], rows[:, 0] - 1], axis=1))
    moves = [
        max(abs(x - y) for x, y in zip(a[0], b[0], strict=True))
        for a, b in itertools.combinations(choices, 2)
    ]
    mechanism = choices[0][1]
    assert max(moves) == mechanism.sensitivity
    assert mechanism.epsilon == study.plan.selection_epsilon(F(1, 10))
    assert not mechanism.monotone


# --- what is refused -----------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Study], Any], str]] = {
    "no bounds": (lambda s: s.sum(0), r"bounds=\(0, 1\)"),
    "no bounds of a choice": (lambda s: s.select([0, 1]), r"bounds=\(0, 1\)"),
    "no norm": (lambda s: s.covariance(), "data_norm=1.0"),
    "no clipping": (lambda s: s.gradient(0, clip=None), "clip=1.0"),  # type: ignore[arg-type]
    "a negative norm": (lambda s: s.sum(0, norm_bound=-1), "bound"),
    "bounds for other columns": (lambda s: s.sum(0, bounds=([0, 0], [1, 1])), "lower"),
    "an unknown column": (lambda s: s.count("z"), "column"),
    "a negative column": (lambda s: s.count(-1), "column"),
    "two keys": (lambda s: s.histogram([0, 1], size=2), "one key"),
    "no cells": (lambda s: s.histogram(0, size=0), "size"),
    "no share": (lambda s: s.count(0, share=0), "share"),
    "a mean over the block": (
        lambda s: s.count(lambda rows: rows[:, 0] > rows[:, 0].mean()),
        "one by one",
    ),
    "a rank": (
        lambda s: s.sum(lambda rows: rows[:, 0].argsort().argsort(), bounds=(0, 9)),
        "one by one",
    ),
    "a place": (lambda s: s.sum(lambda rows: np.arange(len(rows)), bounds=(0, 9)), "one by one"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_missing_is_refused_with_the_remedy(what: str) -> None:
    question, remedy = REFUSED[what]
    study = made(bounds=None, data_norm=None)
    with pytest.raises(ParameterError, match=remedy):
        question(study)
    assert study._shares.untouched


def test_a_choice_must_be_planned() -> None:
    with pytest.raises(ParameterError, match="selects=True"):
        made(selects=False).select([0, 1])


def test_a_function_sees_one_row_at_a_time_when_it_must() -> None:
    def shapes(rowwise: bool) -> set[int]:
        seen: set[int] = set()

        def look(rows: Any) -> Any:
            seen.add(len(rows))
            return rows[:, 0]

        study = made(np.zeros((50, 1)), rowwise=rowwise)
        study.count(look)
        return seen

    assert 50 in shapes(False)
    assert 50 not in shapes(True)


def test_a_question_leaves_the_rows_alone() -> None:
    rows = ROWS.copy()

    def meddles(block: Any) -> Any:
        block[:] = 7
        return block[:, 0]

    study = made(rows)
    study.mean(meddles)
    assert np.array_equal(rows, ROWS)


# --- made-up rows --------------------------------------------------------------------------------


@given(
    st.integers(1, 6),
    st.one_of(st.none(), st.tuples(st.integers(-9, 0), st.integers(1, 9))),
    st.one_of(st.none(), st.fractions(min_value="1/9", max_value=9)),
)
def test_made_up_rows_lie_within_what_is_public(columns: int, bounds: Any, norm: Any) -> None:
    rows = public_rows(columns, bounds, norm)
    assert rows.shape == (7, columns)
    assert len(np.unique(rows, axis=0)) == 7
    low, high = bounds or (-1, 1)
    if norm is None:
        assert (rows >= low).all()
        assert (rows <= high).all()
    else:
        assert (np.linalg.norm(rows, axis=1) <= float(norm) * (1 + 1e-12)).all()


def test_an_example_takes_the_place_of_made_up_rows() -> None:
    """A function that only works on rows of a certain kind is tried on such rows."""

    def picky(rows: Any) -> Any:
        if not np.isin(rows[:, 1], [10.0, 20.0]).all():
            raise ValueError
        return rows[:, 0]

    rows = np.array([[0.5, 10.0], [0.75, 20.0], [1.0, 30.0]])
    with pytest.raises(ParameterError, match="example"):
        made(rows).count(picky)
    assert made(rows, example=np.array([[0.0, 10.0], [1.0, 20.0]])).count(picky).shape == ()


def test_a_question_knows_its_distance() -> None:
    """‖Σ-Σ'‖² <= 4 steps², times the dimension in a box."""

    def squared(lattice: Any, function: Any) -> int:
        query = row_query(
            function, columns=("x", "y"), probe=ROWS, rowwise=False, lattice=lattice, quiet=False
        )
        return query.sensitivity_squared

    assert squared(box_lattice((0, 1), steps=1), 0) == 4
    assert squared(box_lattice((0, 1), steps=10), [0, 1]) == 800
    assert squared(norm_lattice(1, "norm", steps=10), [0, 1]) == 400
