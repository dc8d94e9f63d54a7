"""Several quantiles and distribution functions: what is drawn, values, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from data.opening import opened
from exact.joint_laws import joint_law
from purity import assert_pure
from sampling import Replace
from tasks.related import Relation
from tasks.test_laws_of_data_sets import EPSILON, RELATIONS, certified
from zerodelta.data.arrays import ArraySource
from zerodelta.data.keys import GroupKey, GroupKeys
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.exact.integers import uniform_multiset
from zerodelta.mechanisms import ranks as near_ranks
from zerodelta.mechanisms.joint_quantiles import CELL_BITS
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.quantile_plan import aimed_levels, plan_quantiles
from zerodelta.mechanisms.ranks import as_points
from zerodelta.mechanisms.runs import CumulativeCounts
from zerodelta.spine.plan import Facts
from zerodelta.tasks.distributions import CdfQuestion
from zerodelta.tasks.quantiles import QuantilesQuestion

F = Fraction
each_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
NINE = [i / 10 for i in range(1, 10)]


def spied(replace: Replace) -> list[tuple[list[int], list[Fraction], Fraction]]:
    """The cells of the rows, the gaps and the rate of every draw."""
    calls: list[Any] = []

    def record(runs: Any, gaps: Any, *, rate: Fraction, bits: Any) -> list[int]:
        rows = runs.borders(0, runs.count)[1:-1] >> CELL_BITS
        calls.append((rows.tolist(), list(gaps), rate))
        return [0] * (len(gaps) - 1)

    replace("joint_points", record)
    return calls


@each_relation
@pytest.mark.parametrize("all_levels", [False, True])
def test_quantiles_are_pure_on_every_pair_of_neighbors(
    replace: Replace, relation: Relation, all_levels: bool
) -> None:
    """What is drawn is the law of the rows that count, at parts of their own number.

    So few rows are asked for three levels: of two both are drawn, of four the ends and the middle.
    """
    calls, laws = spied(replace), {}
    asked = ["1/3", "2/3"] if all_levels else ["1/5", "2/5", "3/5", "4/5"]
    wanted = [F(1, 3)] * 3 if all_levels else [F(1, 5), F(3, 10), F(3, 10), F(1, 5)]
    for key in relation.keys:
        people = relation.open(key, zd.number(0, 3))
        release = zd.quantiles(people, "0", q=asked, grid=4, epsilon=EPSILON, method="joint")
        rows, gaps, rate = calls[-1]
        counted = relation.counted(key)
        assert rows == sorted(counted)
        assert gaps == [len(rows) * part for part in wanted]
        laws[key] = tuple(rows), tuple(gaps), rate
    exact = {each: joint_law(each[0], 4, each[1], each[2]) for each in set(laws.values())}
    certified(release, relation)
    pairs = {(laws[a], laws[b]) for a, b in relation.pairs}
    assert_pure(exact, pairs, epsilon=EPSILON)


TIES = {
    "quantiles": lambda people: zd.quantiles(people, "0", q=NINE[::4], epsilon="1/100"),
    "cdf": lambda people: zd.cdf(people, "0", epsilon="1/100"),
    "a median by group": lambda people: zd.table(
        people, by="1", of={"0": ["median"]}, epsilon="1/50"
    ),
}


@pytest.mark.parametrize("ask", TIES.values(), ids=TIES)
@pytest.mark.parametrize("held", [1 << 21, 1000], ids=["sorted", "counted"])
def test_equal_rows_on_the_default_grid_are_drawn_without_a_word(
    monkeypatch: pytest.MonkeyPatch, replace: Replace, ask: Any, held: int
) -> None:
    """No drawn run is empty: an empty one would be an error that depends on the rows."""
    drawn: list[int] = []

    def members(universe: int, **options: Any) -> Any:
        drawn.append(universe)
        return uniform_multiset(universe, **options)

    monkeypatch.setattr(near_ranks, "_HELD", held)
    replace("joint_ranks.uniform_multiset", members)
    equal = pd.DataFrame({"0": np.full(19_240, 5.0), "1": 0})
    people = zd.open(
        equal,
        columns={"0": zd.number(0, 10), "1": zd.category([0, 1])},
        neighbors="add-remove",
        expected_rows=len(equal),
    )
    for _ in range(12):
        ask(people)
    assert min(drawn) > 0
    assert max(drawn) > 1 << 53  # places that floats do not have


def codes(*columns: int) -> GroupKeys:
    return GroupKeys(keys=tuple(GroupKey(name=str(column), labels=(0, 1)) for column in columns))


def test_by_group_every_group_is_drawn_from_its_own_rows(replace: Replace) -> None:
    """Codes that are none are in no group, nor are missing values; an empty group is drawn too."""
    calls = spied(replace)
    table = np.array([[0, 1, 3], [0, 1, 1], [1, 0, 2], [np.nan, 0, 1], [5, 0, 1], [0, 0, np.nan]])
    plan = plan_quantiles(
        epsilon=F(1),
        levels=[F(1, 4), F(1, 2), F(3, 4)],
        points=as_points((0, 3), 4),
        expected_rows=4000,
        skip=True,
        groups=4,
        method="joint",
    )
    rows = opened(ArraySource(table, missing="skip"))
    found = plan.by_group(rows, ReplayBits("groups"), keys=codes(0, 1), column=2)
    assert found.shape == (4, 3)
    assert [call[0] for call in calls] == [[], [1, 3], [2], []]
    assert [sum(call[1]) for call in calls] == [0, 2, 1, 0]
    mechanism: Any = plan.mechanism
    assert all(call[1] == [len(call[0]) * g for g in mechanism.gaps] for call in calls)
    assert {call[2] for call in calls} == {1 / (8 * (1 - min(mechanism.gaps)))}
    assert plan.claim == zd.purification.PureDP(1)
    named = opened(ArraySource(pd.DataFrame({"g": [0, 1, 1], "v": [0, 3, 3]})))
    four = GroupKeys(keys=(GroupKey(name="g", labels=tuple(range(4))),))
    plan.by_group(named, ReplayBits("groups"), keys=four, column="v")
    assert [call[0] for call in calls[4:]] == [[0], [3, 3], [], []]


def test_by_group_counts_share_one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Any] = []

    def record(self: Any, sums: Any, bits: Any) -> Any:
        handed.append((self, sums.tolist()))
        return sums

    monkeypatch.setattr(PartitionNoise, "apply", record)
    table = np.array([[0, 0.0], [0, 2.0], [1, 1.0], [2, 1.0], [1, 1.0]])
    plan = plan_quantiles(
        epsilon=F(1),
        levels=[F(1, 2)],
        points=as_points((0, 2), 3),
        expected_rows=5,
        skip=True,
        groups=2,
        method="counts",
    )
    found = plan.by_group(opened(ArraySource(table)), ReplayBits("x"), keys=codes(0), column=1)
    ((noise, sums),) = handed
    assert sums == [1, 0, 1, 0, 2, 0]
    assert noise.cells == 6
    assert plan.claim == zd.purification.PureDP(1) == noise.claim
    assert found.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("cells", [4, 100])
def test_a_row_is_in_as_many_counts_as_the_noise_is_for(
    monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    """P1: what one row adds to all counts together is the total that the noise is calibrated to."""
    handed: list[Any] = []

    def record(self: Any, sums: Any, bits: Any) -> Any:
        handed.append((self.row_total, sums))
        return sums

    monkeypatch.setattr(PartitionNoise, "apply", record)
    counts = CumulativeCounts.for_epsilon(epsilon=1, cells=cells)
    none = np.zeros((1, cells), dtype=np.int64)
    for cell in range(cells):
        one = none.copy()
        one[0, cell] = 1
        counts.release(one, SystemBits())
        total, sums = handed[-1]
        assert sums.sum() == total
        assert sums.min() == 0


@pytest.mark.parametrize("method", ["joint", "counts", "auto"])
def test_values_rise_with_their_levels_in_the_order_asked(method: str) -> None:
    ages = np.arange(20_000) % 100
    asked = [0.905, 0.105, 0.505, 0.105]
    release = zd.quantiles(ages, q=asked, bounds=(0, 120), grid=121, epsilon=4, method=method)
    assert release.value.tolist() == [90.0, 10.0, 50.0, 10.0]
    claim = zd.verify(release.certificate, epsilon=4)
    assert claim == zd.purification.PureDP(4)


def test_a_margin_of_more_rows_than_there_are_leaves_the_middle() -> None:
    use = {"points": 2**40, "epsilon": 1.0}
    asked = (F(1, 5), F(1, 2))
    huge = aimed_levels(asked, rows=9, margin=10**400, **use)  # type: ignore[arg-type]
    assert huge == aimed_levels(asked, rows=9, margin=9, **use)  # type: ignore[arg-type]


def test_one_level_is_a_quantile() -> None:
    rows = np.arange(10_000) % 100
    one = zd.quantiles(rows, q=[0.5, 0.5], bounds=(0, 99), grid=100, epsilon=2)
    same = zd.quantile(rows, q=0.5, bounds=(0, 99), grid=100, epsilon=2)
    assert one.certificate.steps == same.certificate.steps
    assert one.value.tolist() in ([49.0, 49.0], [50.0, 50.0])
    joint = zd.quantiles(rows, q=[0.5], bounds=(0, 99), grid=100, epsilon=2, method="joint")
    assert joint.certificate.steps[0].theorem == "joint-quantiles"


def test_levels_of_few_rows_are_fewer() -> None:
    """Rule R: about (nε/20)^(2/3) levels, at least three, as far apart as those of the call."""
    asked = [F(i, 100) for i in range(1, 100)]
    use = {"points": 2**40, "epsilon": 1.0}
    few = aimed_levels(asked, rows=1000, **use)  # type: ignore[arg-type]
    assert len(few) == 13  # 50^(2/3) = 13.6
    assert (few[0], few[-1]) == (F(1, 100), F(99, 100))
    inside = aimed_levels(asked, rows=1000, margin=55, **use)  # type: ignore[arg-type]
    assert len(inside) == 13
    assert (inside[0], inside[-1]) == (F(55, 1000), F(945, 1000))
    assert aimed_levels(asked, rows=10**6, **use) == tuple(asked)  # type: ignore[arg-type]
    assert aimed_levels(asked, rows=80, **use) == (asked[0], F(1, 2), asked[-1])  # type: ignore[arg-type]
    quartiles = (F(1, 4), F(1, 2), F(3, 4))
    assert aimed_levels(quartiles, rows=5, **use) == quartiles  # type: ignore[arg-type]
    assert aimed_levels(quartiles, rows=5, margin=9, **use) == (F(1, 2),)  # type: ignore[arg-type]
    many = [F(i, 1000) for i in range(1, 1000)]
    assert len(aimed_levels(many, rows=10**9, **use)) == 99  # type: ignore[arg-type]
    exact = aimed_levels([F(0), F(1)], rows=1000, points=2**40, epsilon=1.0)
    assert exact == (F(0), F(1))


@pytest.mark.parametrize(("spread", "most"), [(1, 20), (20, 30)])
def test_quartiles_of_few_rows_are_three_points(spread: int, most: int) -> None:
    """300 rows at ε = 1/4, which fill their bounds or the lowest twentieth of them."""
    quartiles, errors = [0.25, 0.5, 0.75], []
    for seed in range(60):
        rows = np.sort(np.random.default_rng(seed).uniform(0, 1, 300))
        found = zd.quantiles(rows, q=quartiles, bounds=(0, spread), epsilon="1/4").value
        assert len(set(found)) == 3
        errors.append(np.abs(np.searchsorted(rows, found) - 300 * np.array(quartiles)))
    assert np.mean(errors) < most


def test_small_grids_are_counted_where_that_is_better() -> None:
    def plan(points: int, levels: int) -> str:
        question = QuantilesQuestion(
            q=tuple(F(i, levels + 1) for i in range(1, levels + 1)), bounds=(0, 1), grid=points
        )
        methods = question.plan(Facts(rows=10_000), 1).methods
        return methods[0].name

    assert [plan(121, 99), plan(256, 99), plan(16, 19)] == ["counts"] * 3
    assert [plan(121, 9), plan(1024, 19), plan(1 << 20, 99)] == ["joint"] * 3


def test_quantiles_are_drawn_from_a_refined_grid_and_published_on_the_public_one() -> None:
    release = zd.quantiles([3.0] * 1000, q=NINE, bounds=(0, 10), grid=11, epsilon=2, method="joint")
    assert release.value.tolist() == [3.0] * 9


def test_levels_between_those_drawn_rise_too(replace: Replace) -> None:
    """Whatever points are drawn, also where a line between two of them is rounded up."""
    asked = [F(i, 200) for i in range(1, 200)]
    plan = plan_quantiles(
        epsilon=F(1),
        levels=asked,
        points=as_points((-1, 1), None),
        expected_rows=1000,
        skip=False,
        method="joint",
    )
    mechanism: Any = plan.mechanism
    assert len(mechanism.levels) == 13
    draw, rows = np.random.default_rng(4), opened(ArraySource(np.zeros(3)))
    for _ in range(50):
        points = np.sort(draw.integers(0, 1 << 40, 13)) << CELL_BITS
        replace("joint_points", lambda *_, p=points, **__: p.tolist())
        values = plan.answer(rows, SystemBits())
        assert (np.diff(values) >= 0).all()
        assert values[0] == plan.points.value(int(points[0]) >> CELL_BITS)
        assert values[-1] == plan.points.value(int(points[-1]) >> CELL_BITS)


@pytest.mark.parametrize("cells", [8, 64])
def test_the_forecast_of_cumulative_counts_is_the_measured_error(cells: int) -> None:
    counts = CumulativeCounts.for_epsilon(epsilon="1/2", cells=cells, total=1000 * cells)
    exact = np.full(cells, 1000)
    bits = ReplayBits("counts")
    found = np.array([counts.release(exact, bits)[0] for _ in range(400)])
    measured = np.abs(found - np.cumsum(exact)).mean()
    assert measured / 1.2 < counts.rank_error < measured * 1.2
    assert np.allclose(found[:, -1], 1000 * cells)


def test_cumulative_counts_are_exact_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionNoise, "apply", lambda self, sums, bits: sums)
    for cells in (1, 5, 50, 90):
        exact = np.arange(cells) % 7
        for total in (None, int(exact.sum())):
            counts = CumulativeCounts.for_epsilon(epsilon=1, cells=cells, total=total)
            assert np.allclose(counts.release(exact, SystemBits())[0], np.cumsum(exact))


def test_a_distribution_function_says_which_share_is_up_to_each_value() -> None:
    ages = np.arange(100_000) % 100
    release = zd.cdf(ages, at=[17, 17.5, 64], bounds=(0, 120), epsilon=2)
    assert np.abs(release.value - [0.18, 0.18, 0.65]).max() < 1e-3
    assert zd.verify(release.certificate, epsilon=2) == zd.purification.PureDP(2)
    steps = zd.cdf(ages, bounds=(0, 120), epsilon=2)
    assert abs(float(steps.value([49.5])[0]) - 0.5) < 0.02
    plan = CdfQuestion(at=(1.0,)).plan(Facts(rows=None, expected_rows=50, may_miss=True), 1)
    assert "the number of rows" not in str(plan.public)
    skipping = zd.open(np.array([1.0, np.nan] * 20_000), columns={"0": zd.number(0, 3)})
    assert abs(zd.cdf(skipping, at=[0, 2], epsilon=2).value - [0, 1]).max() < 1e-3
