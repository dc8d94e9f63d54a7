"""Quantiles in tables: exact on all neighbors of tiny data, shares of ε, values and names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from exact.joint_laws import joint_law
from purity import assert_pure
from sampling import Replace
from tasks.noise_laws import product
from tasks.test_quantiles import spied
from tasks.test_table_is_private import Handed, Rows, added, handed, norm, replaced, table
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms import quantile_plan
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.tables.table import GOALS
from zerodelta.testing import replayed

__all__ = ["handed"]  # a fixture

EPSILON = Fraction(3, 4)
KEY, VALUE = zd.category([0, 1]), zd.number(0, 2, integer=True)
LEVELS = ["1/3", "2/3"]
CELLS = [*itertools.product((0.0, 1.0), (0.0, 1.0, 2.0, math.nan)), (5.0, 2.0)]
"""Two groups; a row with another key is in neither, and one without a value in no quantile."""


def ask(rows: Rows, relation: str, by: Any, of: Any) -> zd.records.Release:
    columns = {"0": KEY, "1": VALUE}
    if relation == "unit":
        ids = np.array([[*row, 7.0] for row in rows] + [[0.0, 1.0, 8.0]])
        people = zd.open(ids, columns=columns, unit="2", max_rows=2, units=2)
        return zd.table(people, by=by, of=of, epsilon=EPSILON)
    options: dict[str, Any] = {}
    if relation == "add-remove":
        options = {"neighbors": relation, "expected_rows": 2}
    data = table(rows, columns, **options)
    chosen = data.where("`1` >= 1") if relation == "where" else data
    return zd.table(chosen, by=by, of=of, epsilon=EPSILON)


def neighbors(relation: str) -> Iterator[tuple[Rows, Rows]]:
    if relation == "add-remove":
        return added(CELLS, 2)
    if relation == "unit":
        cells = [(0.0, 0.0), (0.0, 2.0), (1.0, 2.0), (5.0, 0.0)]
        lists = [each for size in (1, 2) for each in itertools.combinations(cells, size)]
        return itertools.combinations(lists, 2)
    return replaced(CELLS, 2)


@pytest.mark.parametrize("by", ["0", None])
@pytest.mark.parametrize("relation", ["replace", "where", "add-remove", "unit"])
def test_quantiles_and_counts_of_a_table_cost_epsilon_together(
    monkeypatch: pytest.MonkeyPatch,
    replace: Replace,
    handed: list[Handed],
    relation: str,
    by: str | None,
) -> None:
    """What is drawn from each group, and what is counted: each costs its share, no more."""
    monkeypatch.setattr(quantile_plan, "aimed_levels", lambda levels, **_: tuple(levels))
    monkeypatch.setattr(quantile_plan, "MOST_CELLS", 0)  # counts of so few points would win
    calls, known = spied(replace), {}

    def seen(rows: Rows) -> Any:
        if rows not in known:
            handed.clear()
            calls.clear()
            release = ask(rows, relation, by, {"1": [{"quantiles": LEVELS}]})
            shares = [part.epsilon for part in release.plan.parts]  # type: ignore[attr-defined]
            drawn = tuple((tuple(r), tuple(gaps), rate) for r, gaps, rate in calls)
            known[rows] = drawn, tuple(handed), tuple(shares)
        return known[rows]

    pairs = [(seen(a), seen(b)) for a, b in neighbors(relation)]
    units = 2 if relation == "unit" else 1
    (shares,) = {each[2] for each in known.values()}  # nothing of them is the rows'
    assert sum(shares) * units == EPSILON
    assert {len(each[0]) for each in known.values()} == {1 if by is None else 2}
    share = shares[-1] * units
    laws, sharp = (
        {
            drawn: product([joint_law(r, 3, gaps, times * rate) for r, gaps, rate in drawn])
            for drawn in {e[0] for p in pairs for e in p}
        }
        for times in (1, 8)
    )
    moved = {(a[0], b[0]) for a, b in pairs}
    # with an eighth of the noise some pair costs more: so few rows are not the worst ones
    assert_pure(laws, moved, epsilon=share, mistake=sharp)
    for a, b in pairs:
        for (one, before), (_, after) in zip(a[1], b[1], strict=True):
            away = [x - y for x, y in zip(before, after, strict=True)]
            assert norm(one, away) / one.scale <= shares[0] * units


def test_counts_of_all_points_of_all_groups_cost_their_share(
    monkeypatch: pytest.MonkeyPatch, handed: list[Handed]
) -> None:
    """A small grid is counted: the points of both groups, and the rows."""
    monkeypatch.setattr(
        quantile_plan, "choose", lambda methods, _: next(m for m in methods if m.name == "counts")
    )
    known: dict[Rows, list[Handed]] = {}
    for a, b in replaced(CELLS, 2):
        for rows in (a, b):
            if rows not in known:
                handed.clear()
                release = ask(rows, "replace", "0", {"1": [{"quantiles": LEVELS}]})
                known[rows] = list(handed)
        parts = release.plan.parts  # type: ignore[attr-defined]
        for part, (noise, before), (_, after) in zip(parts, known[a], known[b], strict=True):
            away = [x - y for x, y in zip(before, after, strict=True)]
            assert norm(noise, away) / noise.scale <= part.epsilon
    assert {noise.cells for noise, _ in known[a]} == {2, 6}
    assert sum(part.epsilon for part in parts) == EPSILON


N = 40_000
RNG = np.random.default_rng(19)
FRAME = pd.DataFrame(
    {
        "city": RNG.choice(["oslo", "rome", "bern"], N, p=[0.5, 0.3, 0.2]),
        "age": RNG.integers(0, 100, N),
        "income": np.minimum(RNG.gamma(3.0, 15_000, N), 199_000),
    }
)
KINDS = {
    "city": zd.category(["oslo", "rome"], other=True),
    "age": zd.number(0, 120, integer=True, missing=None),
    "income": zd.number(0, 200_000),
}
ASKED: Any = {"income": [{"quantiles": [0.1, 0.9]}, "median", "mean"], "age": "median"}


@pytest.mark.parametrize("relation", ["replace", "where", "add-remove"])
@pytest.mark.parametrize("by", [None, "city", {"age": zd.bins([0, 30, 120])}])
def test_quantiles_are_near_those_of_their_groups(relation: str, by: Any) -> None:
    options: Any = {"neighbors": relation, "expected_rows": N} if relation == "add-remove" else {}
    data, frame = zd.open(FRAME, columns=KINDS, **options), FRAME
    if relation == "where":
        data, frame = data.where("age >= 20"), FRAME[FRAME["age"] >= 20]
    release = zd.table(data, by=by, of=ASKED, epsilon=8)
    assert zd.verify(release.certificate, epsilon=8, neighbors=options.get("neighbors", "replace"))
    shown = release.value
    groups = [frame]
    if by == "city":
        cities = frame["city"].replace("bern", "other")
        groups = [frame[cities == city] for city in ("oslo", "rome", "other")]
    elif by is not None:
        groups = [frame[frame["age"] < 30], frame[frame["age"] >= 30]]
    assert len(shown) == len(groups)
    for place, group in enumerate(groups):
        for name, level in (("q10", 0.1), ("q90", 0.9), ("median", 0.5)):
            rank = (group["income"] <= shown[f"income_{name}"][place]).mean()
            off = shown[f"income_{name}_rank_error"][place] / len(group)
            assert abs(rank - level) < 12 * off + 1e-3
        assert abs(shown["age_median"][place] - group["age"].median()) <= 1


def test_the_plan_shows_the_shares_and_what_errors_are() -> None:
    data = zd.open(FRAME, columns=KINDS)
    for goal in GOALS:
        release = zd.table(data, by="city", of=ASKED, epsilon=1, goal=goal)
        plan: Any = release.plan
        assert sum(part.epsilon for part in plan.parts) == 1
        assert "income, 3 quantiles of a group by one draw" in str(plan)
        assert " rows (" in str(plan)
        assert "income_q10 " in str(release.error)
    sizes = [
        max(error / unit for name, (error, unit) in part.errors.items() if name != "count")
        for part in zd.table(data, by="city", of=ASKED, epsilon=1, goal=GOALS[1]).plan.parts  # type: ignore[attr-defined]
    ]
    assert max(sizes) / min(sizes) < 1.05


def test_shares_are_corrected_where_few_levels_can_be_drawn() -> None:
    """The ends need so many rows that errors of quantiles do not go with 1/ε."""
    few = zd.open(FRAME[:6000], columns=KINDS)
    asked: Any = {"income": [{"quantiles": [0.05, 0.95]}, "std"]}
    plan: Any = zd.table(few, by="city", of=asked, epsilon="1/2", goal=GOALS[1]).plan
    sizes = [
        max(error / unit for name, (error, unit) in part.errors.items() if name != "count")
        for part in plan.parts
    ]
    assert max(sizes) / min(sizes) < 1.5


def test_names_of_levels_and_order() -> None:
    data = zd.open(FRAME, columns=KINDS)
    of: Any = {"income": ["median", {"quantiles": [0.025, "1/2", 0.9]}]}
    value = zd.table(data, of=of, epsilon=1).value
    assert list(value.columns) == [
        *("count", "count_error", "income_median", "income_median_rank_error"),
        *("income_q2.5", "income_q2.5_rank_error", "income_q90", "income_q90_rank_error"),
    ]
    assert value["count"].tolist() == [N]


def test_a_group_without_rows_draws_quantiles_like_any_other() -> None:
    kinds = {**KINDS, "city": zd.category(["oslo", "nobody"])}
    data = zd.open(FRAME, columns=kinds)
    runs = [zd.table(data, by="city", of={"income": "median"}, epsilon=1).value for _ in range(8)]
    assert all(run["city"].tolist() == ["oslo", "nobody"] for run in runs)
    assert len({run["income_median"][1] for run in runs}) > 4
    assert all(0 <= run["income_median"][1] <= 200_000 for run in runs)


def test_rank_errors_are_those_that_are_measured() -> None:
    """Within 1.5 times, for rows that lie evenly."""
    groups, size = 8, 2000
    frame = pd.DataFrame(
        {"key": np.repeat(np.arange(groups), size), "x": np.tile(np.arange(size) / size, groups)}
    )
    data = zd.open(
        frame, columns={"key": zd.category(range(groups)), "x": zd.number(0, 1, missing=None)}
    )
    bits, wrong = ReplayBits("table quantiles"), []
    for _ in range(25):
        shown = replayed(bits)(zd.table)(
            data, by="key", of={"x": [{"quantiles": [0.25, 0.5, 0.75]}]}, epsilon=1
        ).value
        for name, level in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
            wrong.append(np.abs(shown[f"x_{name}"] * size - level * size).mean())
    told = shown["x_q25_rank_error"][0]
    assert 1 / 1.5 < told / np.mean(wrong) < 1.5


def test_only_quantiles_of_all_rows_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is public: no ε goes to it."""
    monkeypatch.setattr(PartitionNoise, "apply", None)
    release = zd.table(zd.open(FRAME, columns=KINDS), of={"income": ["median"]}, epsilon=1)
    assert release.certificate.steps[0].theorem == "joint-quantiles"
    assert release.value["count_error"].tolist() == [0]
