"""Tables: values, errors and forecasts, what is known without the rows, frames, and mistakes."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zerodelta as zd
from zerodelta.data.keys import Bins, GroupKey, GroupKeys
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.sums import whole_counts
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise, _PowerSums
from zerodelta.privacy.statistics import EXPECTED
from zerodelta.tables.grouped import Table, grouped
from zerodelta.tables.parts import TableColumn
from zerodelta.tables.table import GOALS, TablePlan, plan_table
from zerodelta.testing import replayed

RNG = np.random.default_rng(16)
N = 3000
CITIES = ["oslo", "rome"]
FRAME = pd.DataFrame(
    {
        "city": RNG.choice(["oslo", "rome", "bern"], N, p=[0.5, 0.3, 0.2]),
        "age": RNG.integers(0, 100, N),
        "income": np.minimum(RNG.gamma(3.0, 15_000, N), 199_000),
        "member": RNG.random(N) < 0.3,
        "joined": RNG.choice(["2024-01-31", "2024-03-01", "2024-03-31"], N),
        "person": np.arange(N) // 2,
    }
)
FRAME.loc[::7, "income"] = np.nan
KINDS: dict[str, Any] = {
    "city": zd.category(CITIES, other=True),
    "age": zd.number(0, 120, missing=None),
    "income": zd.number(0, 200_000),
    "member": zd.boolean(),
    "joined": zd.date("2024-01-01", "2024-03-31"),
}


def people(**options: Any) -> Any:
    return zd.open(FRAME, columns=KINDS, **options)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise: what is left are quantized values."""
    for kind in (PartitionNoise, BlockNoise):
        monkeypatch.setattr(kind, "apply", lambda _self, sums, _bits: np.array(sums, dtype=object))


# Values.

ALL = ["count", "sum", "mean", "variance", "std"]


def expected(frame: pd.DataFrame, by: list[Any], column: str) -> pd.DataFrame:
    groups = frame.groupby(by, observed=False)[column]
    return pd.DataFrame(
        {
            "count": groups.count(),
            "sum": groups.sum(),
            "mean": groups.mean(),
            "variance": groups.var(ddof=0),
            "std": groups.std(ddof=0),
        }
    )


def labels_of(shown: Any, name: str) -> list[Any]:
    return list(dict.fromkeys(shown[name]))


@pytest.mark.usefixtures("quiet")
def test_whole_numbers_of_a_small_range_are_groups_like_any_other() -> None:
    cells = [
        0,
        1,
        1,
        3,
        4,
        -1,
        2.6,
        1.4,
        None,
        "3",
        "x",
        np.inf,
        1e308,
        "1e400",
        "2020-01-01",
        10**30,
    ]
    counts = {0: 1, 1: 3, 2: 0, 3: 3}  # numbers are rounded; those out of range are in no group
    frame = pd.DataFrame({"age": pd.Series(cells, dtype=object), "x": 1.0})
    kind, x = zd.number(0, 3, integer=True), zd.number(0, 2, missing=None)
    opened = zd.open(frame, columns={"age": kind, "x": x})
    for release in (
        zd.count(opened, by="age", epsilon=1),
        zd.table(opened, by=["age"], of={"x": "mean"}, epsilon=1),
        zd.count(frame[["age"]], by={"age": kind}, epsilon=1),
    ):
        shown = release.value
        assert dict(zip(shown["age"], shown["count"], strict=True)) == counts
        assert "key-counts" not in [step.theorem for step in release.certificate.steps]
    by_both = zd.count(opened, by={"age": kind, "x": zd.bins([0, 1, 2])}, epsilon=1).value
    assert labels_of(by_both, "age") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kinds", "listed"),
    [
        ([(-500, 499)], True),
        ([(0, 1000)], False),
        ([(2**50, 2**50 + 3)], False),  # so large that a float may not tell them apart
        ([(0, 3), (0, 10**9)], False),
        ([(0, 999), (0, 999)], True),
        ([(0, 999), (0, 999), (0, 99)], False),  # more than 2^24 groups
    ],
    ids=str,
)
def test_whole_numbers_are_listed_up_to_a_limit(kinds: list[Any], listed: bool) -> None:
    columns = {str(i): zd.number(*ends, integer=True) for i, ends in enumerate(kinds)}
    rows = grouped(zd.open(np.zeros((2, len(kinds))), columns=columns), by=list(columns), of={})
    assert (rows.universe is None) is listed


def test_too_many_bins_are_told_as_such() -> None:
    """Whole numbers that are cut into bins are no keys to be found."""
    columns = {each: zd.number(0, 999, integer=True) for each in "01"}
    data, many = zd.open(np.zeros((2, 2)), columns=columns), zd.bins(range(5000))
    with pytest.raises(zd.errors.ParameterError, match=r"^by = .*2\^24"):
        zd.count(data, by={"0": many, "1": many}, epsilon=1)


@pytest.mark.parametrize("of", [["income"], ["age"], ["income", "age"]], ids=str)
@pytest.mark.parametrize("relation", ["replace", "add-remove", "where", "unit"])
@pytest.mark.usefixtures("quiet")
def test_without_noise_a_table_is_that_of_the_rows(of: list[str], relation: str) -> None:
    frame, data = FRAME, people()
    if relation == "add-remove":
        data = people(neighbors=relation, expected_rows=N)
    elif relation == "where":
        frame, data = FRAME[FRAME["age"] >= 30], people().where("age >= 30")
    elif relation == "unit":
        data = people(unit="person", max_rows=2)
    release = zd.table(
        data, by=["city", "member"], of=dict.fromkeys(of, ALL), epsilon=4, goal=GOALS[1]
    )
    shown = release.value
    cities = pd.Categorical(frame["city"].replace("bern", "other"), [*CITIES, "other"])
    assert list(zip(shown["city"], shown["member"], strict=True)) == [
        (city, member) for city in [*CITIES, "other"] for member in (False, True)
    ]
    keyed = frame.assign(city=cities)
    assert (
        shown["count"].tolist() == keyed.groupby(["city", "member"], observed=False).size().tolist()
    )
    for name in of:
        wanted = expected(keyed, ["city", "member"], name)
        for statistic in ALL:
            found, true = shown[f"{name}_{statistic}"], wanted[statistic]
            assert found.to_numpy() == pytest.approx(true.to_numpy(), rel=2e-3), statistic


@pytest.mark.usefixtures("quiet")
def test_keys_are_categories_booleans_dates_and_bins() -> None:
    by = {"age": zd.bins([0, 18, 65, 120]), "joined": KINDS["joined"]}
    shown = zd.count(people(), by=by, epsilon=1).value
    bins = pd.cut(FRAME["age"], [0, 18, 65, 120], right=False)
    months = pd.Categorical(FRAME["joined"].str[:7], ["2024-01", "2024-02", "2024-03"])
    wanted = FRAME.groupby([bins, months], observed=False).size()
    assert shown["count"].tolist() == wanted.tolist()
    assert shown["age"].tolist()[::3] == ["[0, 18)", "[18, 65)", "[65, 120]"]
    assert shown["joined"].tolist()[:3] == ["2024-01", "2024-02", "2024-03"]


@pytest.mark.usefixtures("quiet")
def test_numbers_are_clipped_to_their_declared_bounds_and_then_cut() -> None:
    cells = np.array([-5.0, 0.0, 1.0, 2.0, 3.0, 99.0, math.nan])
    declared = zd.open(cells, columns={"0": zd.number(0, 3, missing=None)})
    cut = zd.bins([0, 1, 2, 3])
    assert zd.count(declared, by={"0": cut}, epsilon=1).value["count"].tolist() == [2, 2, 3]
    assert zd.count(cells, by={"0": cut}, epsilon=1).value["count"].tolist() == [1, 1, 2]
    assert zd.histogram(declared, "0", bins=[0, 1, 2, 3], epsilon=99).value.tolist() == [2, 2, 3]
    assert zd.histogram(declared, "0", bins=3, epsilon=99).value.tolist() == [2, 2, 3]
    assert zd.histogram(cells, bins=[0, 1, 2, 3], epsilon=99).value.tolist() == [1, 1, 2]
    assert zd.histogram(cells, bins=cut, epsilon=99).value.tolist() == [1, 1, 2]


@pytest.mark.usefixtures("quiet")
def test_short_forms_are_tables_of_one_statistic() -> None:
    data = people()
    options: dict[str, Any] = {"by": "city", "epsilon": 1}
    for verb in (zd.sum, zd.mean, zd.variance, zd.std):
        name = verb.__name__
        short = verb(data, ["income", "age"], **options).value
        long = zd.table(data, of={"income": [name], "age": name}, **options).value
        pd.testing.assert_frame_equal(short, long)
    counts = zd.count(data, "income", **options).value
    there = FRAME.assign(city=FRAME["city"].replace("bern", "other"))
    wanted = there.groupby("city")["income"].count()
    assert counts["income_count"].tolist() == [wanted[city] for city in counts["city"]]
    assert zd.count(data, **options).value.columns.tolist() == ["city", "count", "count_error"]


@pytest.mark.usefixtures("quiet")
def test_all_rows_are_one_group() -> None:
    old = FRAME[FRAME["age"] >= 30]
    for data, frame in ((people(), FRAME), (people().where("age >= 30"), old)):
        shown = zd.table(data, of={"income": ["mean", "count"], "age": "std"}, epsilon=4).value
        assert len(shown) == 1
        assert shown["count"][0] == len(frame)
        assert shown["income_count"][0] == frame["income"].count()
        assert shown["income_mean"][0] == pytest.approx(frame["income"].mean(), rel=1e-3)
        assert shown["age_std"][0] == pytest.approx(frame["age"].std(ddof=0), rel=1e-3)
        spread = zd.variance(data, ["income", "age"], epsilon=4).value
        wanted = frame[["income", "age"]].var(ddof=0)
        assert spread == pytest.approx(wanted.to_numpy(), rel=1e-3)
        assert zd.std(data, "age", epsilon=4).value == pytest.approx(spread[1] ** 0.5, rel=1e-3)


@pytest.mark.usefixtures("quiet")
def test_a_missing_value_of_an_array_is_the_middle_unless_it_is_skipped() -> None:
    cells = np.array([0.0, 10.0, math.nan, math.nan])
    found = {
        how: zd.variance(cells, bounds=(0, 10), missing=how, epsilon=1).value
        for how in (None, "skip", 10)
    }
    assert found == pytest.approx({None: 12.5, "skip": 25.0, 10: 18.75}, rel=1e-2)
    keyed = np.array([[0.0, 0.0], [0.0, 10.0], [1.0, math.nan], [1.0, 2.0]])
    by: Any = {"0": zd.category([0, 1])}
    options: dict[str, Any] = {"bounds": (0, 10), "epsilon": 1}
    shown = zd.mean(keyed, "1", by=by, **options).value
    assert shown["1_mean"] == pytest.approx([5, 3.5], abs=0.01)
    skipped = zd.mean(keyed, "1", by=by, missing="skip", **options).value
    assert skipped["1_mean"] == pytest.approx([5, 2], abs=0.01)
    assert skipped["count"].tolist() == [2, 2]


# What is known without the rows.


def test_totals_are_forced_only_where_every_row_counts_and_their_number_is_public() -> None:
    other: dict[str, Any] = {"by": {"city": KINDS["city"]}, "epsilon": "1/4"}
    for _ in range(5):
        assert zd.count(people(), **other).value["count"].sum() == N
        assert zd.mean(people(), "income", **other).value["count"].sum() == N
    private = [
        people().where("age < 999"),
        people(neighbors="add-remove", expected_rows=N),
        people(unit="person", max_rows=2),
        zd.open(FRAME, columns={**KINDS, "city": zd.category(["oslo", "rome", "bern"])}),
    ]
    for data in private:
        totals = {zd.count(data, by="city", epsilon="1/4").value["count"].sum() for _ in range(8)}
        assert len(totals) > 1
    public = zd.count(people(), **other).certificate.public
    assert any(re.fullmatch(r"the number of rows, \d+", each) for each in public)
    private_too = zd.count(private[0], by="city", epsilon=1).certificate.public
    assert "the number of rows" not in str(private_too)


def test_a_mean_without_rows_is_the_middle_of_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionNoise, "apply", lambda _self, sums, _bits: sums * 0 - 1)
    shown = zd.table(people(), by="city", of={"income": ["mean", "std"]}, epsilon=1).value
    assert shown["income_mean"].tolist() == [100_000] * 3
    assert shown["income_mean_error"].tolist() == [EXPECTED * 100_000] * 3


def test_a_group_without_rows_publishes_noise_like_any_other() -> None:
    nobody: dict[str, Any] = {
        "by": {"city": zd.category(["oslo", "nobody", "rome"])},
        "bounds": (0, 200_000),
    }
    runs = [zd.mean(FRAME, "income", epsilon=1, **nobody).value for _ in range(20)]
    assert all(run["city"].tolist() == ["oslo", "nobody", "rome"] for run in runs)
    assert len({run["count"][1] for run in runs}) > 2
    assert len({run["income_mean"][1] for run in runs}) > 2


@pytest.mark.parametrize("total", [0, 1, 7, 10**12])
def test_whole_counts_are_nearest_and_add_up(total: int) -> None:
    for size in (1, 2, 5, 100):
        noisy = RNG.normal(total / size, 5, size)
        assert whole_counts(noisy).tolist() == np.rint(np.maximum(noisy, 0)).tolist()
        if total:
            found = whole_counts(noisy, total=total)
            assert (found >= 0).all()
            assert found.sum() == total
            shift = (total - noisy.sum()) / size
            if (noisy + shift > 0).all():
                assert np.abs(found - noisy - shift).max() < 1


# Errors and shares.

KEYS = GroupKeys(keys=(GroupKey(name="key", labels=tuple(range(40))),))
SHAPES: dict[str, dict[str, Any]] = {
    "a count": {"of": {}},
    "a mean": {"of": {"a": ["mean", "sum"]}},
    "a mean, skipping": {"of": {"a": ["mean", "count"]}, "missing": "skip"},
    "a std": {"of": {"a": ["mean", "variance", "std"]}},
    "two columns": {"of": {"a": ["mean"], "b": ["mean", "sum", "std"]}},
    "two columns, skipping": {"of": {"a": ["std"], "b": ["mean", "std"]}, "missing": "skip"},
    "add-remove": {"of": {"a": ["mean", "std"]}, "neighbors": "add-remove"},
    "one group": {"of": {"a": ["mean", "std"]}, "groups": 1},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_forecasts_and_errors_are_those_that_are_measured(shape: dict[str, Any]) -> None:
    """Within 1.5 times; means of groups lie anywhere, values are spread evenly over half the width.

    The standard error of a mean over 100 cells is about 8 %.
    """
    groups, size = shape.get("groups", 40), 500
    rng, bits = np.random.default_rng(3), ReplayBits("forecast")
    widths = {"a": 10.0, "b": 3.0}
    kinds = {
        name: zd.number(-width, width, missing=shape.get("missing"))
        for name, width in widths.items()
    }
    relation = shape.get("neighbors", "replace")
    found: dict[str, list[Any]] = {}
    for _ in range(10 if groups > 1 else 100):
        keys = np.repeat(np.arange(groups), size)
        frame = {"key": keys}
        for name, width in widths.items():
            middle = rng.uniform(-width / 2, width / 2, groups)
            frame[name] = middle[keys] + rng.uniform(-width / 2, width / 2, len(keys))
        table = pd.DataFrame(frame)
        data = zd.open(
            table,
            columns={"key": zd.category(range(groups)), **kinds},
            neighbors=relation,
            expected_rows=None if relation == "replace" else len(table),
        )
        if shape["of"]:
            release = replayed(bits)(zd.table)(data, by="key", of=shape["of"], epsilon=1)
        else:
            release = replayed(bits)(zd.count)(data, by="key", epsilon=1)
        shown = release.value
        found.setdefault("count", []).append((shown["count"] - size, shown["count_error"]))
        for name, statistics in shape["of"].items():
            true = expected(table, ["key"], name)
            for each in statistics:
                column = f"{name}_{each}"
                wrong = shown[column].to_numpy() - true[each].to_numpy()
                found.setdefault(column, []).append((wrong, shown[f"{column}_error"]))
    plan: Any = release.plan
    for column, runs in found.items():
        measured = np.mean([np.abs(wrong).mean() for wrong, _ in runs])
        told = np.mean([np.mean(error) for _, error in runs])
        assert 1 / 1.5 < told / measured < 1.5, (column, told, measured)
        forecast = plan.errors[column][0]
        assert 1 / 1.5 < forecast / measured < 1.5, (column, forecast, measured)


def asked(name: str, *statistics: str, missing: bool = False, upper: int = 1) -> TableColumn:
    return TableColumn(
        name=name, bounds=(Fraction(0), Fraction(upper)), missing=missing, statistics=statistics
    )


def test_columns_are_measured_together_where_that_is_better() -> None:
    options: dict[str, Any] = {"epsilon": Fraction(1), "keys": KEYS, "expected_rows": 40_000}
    together = plan_table(columns=[asked("a", "mean"), asked("b", "mean", upper=9)], **options)
    assert len(together.parts) == 1
    # a variance errs by z₂ - 2μz₁ + μ²z₀, on average over μ, in (1/ε²): two triples at half of ε
    # have 96, 64, 96 for z₂, z₁, z₀ and 32 between z₂ and z₀: 222; a block of 7 sums has 96 for
    # each coordinate, so 48, 96, 96 and 48: 227
    skipping = [asked(name, "std", missing=True) for name in "ab"]
    apart = plan_table(columns=skipping, **options)
    assert [part.epsilon for part in apart.parts] == [Fraction(1, 2)] * 2


@pytest.mark.parametrize("goal", GOALS)
def test_shares_reach_the_goal_and_add_up_to_epsilon(goal: str) -> None:
    options: dict[str, Any] = {"epsilon": Fraction(3), "keys": KEYS, "expected_rows": 4_000_000}
    columns = [asked("a", "std", missing=True), asked("b", "mean", missing=True)]
    plan = plan_table(columns=columns, goal=goal, **options)
    if len(plan.parts) == 1:  # the block was better: ask for shares
        plan = plan_table(columns=[columns[1]], goal=goal, others=[_alone(columns[0])], **options)
    assert sum(part.epsilon for part in plan.parts) == 3
    sizes = [  # rows are counted in both
        [error / unit for name, (error, unit) in part.errors.items() if name != "count"]
        for part in plan.parts
    ]
    if goal == "equal shares":  # a block of two columns would be better: each is one part here
        assert [part.epsilon for part in plan.parts] == [Fraction(3, 2)] * 2
    elif goal == "equal relative error":
        assert max(sizes[0]) == pytest.approx(max(sizes[1]), rel=2e-3)
    else:  # what a part adds to the sum, over its share, is the same for both
        each = [
            sum(x * x for x in part) / float(share.epsilon)
            for part, share in zip(sizes, plan.parts, strict=True)
        ]
        assert each[0] == pytest.approx(each[1], rel=5e-3)
    assert f"goal: {goal}" in str(plan)


def factors(plan: TablePlan) -> list[float]:
    """How many times as wrong each part is as it would be alone."""
    return [
        max(error / plan.alone[name] for name, (error, _) in part.errors.items() if name != "count")
        for part in plan.parts
    ]


QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
EIGHT = GroupKeys(keys=(GroupKey(name="city", labels=tuple("abcdefgh")),))


def spread(**options: Any) -> TablePlan:
    """Mean and quartiles by 8 groups."""
    column = replace(asked("income", "mean", upper=100), levels=QUARTILES)
    return plan_table(keys=EIGHT, columns=[column], **options)


@pytest.mark.parametrize("rows", [1000, 20_000, 10**6])
@pytest.mark.parametrize("epsilon", ["1/100", "1/10", "1"])
def test_of_two_parts_none_is_more_than_twice_as_wrong_as_alone(rows: int, epsilon: str) -> None:
    """Also where quantiles need so many rows that their ranks are nearly a guess."""
    plan = spread(epsilon=Fraction(epsilon), expected_rows=rows)
    assert len(plan.parts) == 2
    assert sum(part.epsilon for part in plan.parts) == Fraction(epsilon)
    assert max(factors(plan)) < 2.005


def test_what_a_part_would_be_alone_is_what_it_is_alone() -> None:
    options: dict[str, Any] = {"epsilon": Fraction(1, 10), "expected_rows": 20_000}
    plan = spread(**options)
    only = {
        "mean": plan_table(keys=EIGHT, columns=[asked("income", "mean", upper=100)], **options),
        "count": plan_table(keys=EIGHT, columns=[], **options),
        "median": plan_table(
            keys=EIGHT, columns=[replace(asked("age"), levels=QUARTILES)], **options
        ),
    }
    assert plan.alone["income_mean"] == only["mean"].errors["income_mean"][0]
    assert plan.alone["count"] == only["mean"].errors["count"][0]
    assert only["median"].alone["count"] == only["count"].errors["count"][0]
    assert f"; alone ± {plan.alone['income_mean']:.3g})" in str(plan)
    assert "alone" not in str(only["mean"])


class Falling:
    """A part whose error goes with 1/ε^power."""

    in_ranks, steps, text = False, (), "made up"

    def __init__(self, name: str, epsilon: Fraction, power: float) -> None:
        self.epsilon = epsilon
        self.errors = {name: (float(epsilon) ** -power, 1.0)}


def test_shares_are_corrected_where_errors_do_not_go_with_epsilon() -> None:
    """At 1/k of ε, an error that goes with 1/ε² is k² times as large."""

    def planned(**powers: float) -> Any:
        makers: Any = [
            lambda epsilon, name=name, power=power: Falling(name, epsilon, power)
            for name, power in powers.items()
        ]
        options: Any = {"rows": 100, "expected_rows": 100, "others": makers}
        return plan_table(epsilon=Fraction(1), keys=GroupKeys(), columns=[], **options)

    assert factors(planned(a=1, b=1, c=1)) == pytest.approx([3, 3, 3])
    assert [part.epsilon for part in planned(a=1, b=0.5).parts] == [Fraction(1, 2)] * 2
    enough = planned(a=1.5, b=0.5, c=1)  # b has something to give, so that all are within 3 times
    assert max(factors(enough)) < 3.01
    assert float(enough.parts[2].epsilon) == pytest.approx(1 / 3, abs=2e-3)
    short = factors(planned(a=2, b=1))  # 1/a + 1/a² = 1: none can have 2, both get as near to it
    assert short == pytest.approx([(3 + math.sqrt(5)) / 2] * 2, rel=0.02)


def test_weights_are_shares_for_what_matters_more() -> None:
    options: dict[str, Any] = {"epsilon": Fraction(1), "expected_rows": 10**6}
    weighed = spread(weights={"income_mean": 3}, **options)
    assert [part.epsilon for part in weighed.parts] == [Fraction(3, 4), Fraction(1, 4)]
    half = dict.fromkeys(["income_q25", "income_median", "income_q75"], "1/2")
    counted = spread(weights={**half, "count": 0.001}, **options)
    assert float(counted.parts[0].epsilon) == pytest.approx(2 / 3, abs=1e-4)
    for goal in GOALS[1:]:
        plain = spread(goal=goal, **options)
        more = spread(goal=goal, weights={"income_mean": 3}, **options)
        assert more.parts[0].epsilon > plain.parts[0].epsilon
        assert sum(part.epsilon for part in more.parts) == 1


def test_a_table_takes_weights_and_its_record_has_them() -> None:
    of: Any = {"income": ["mean", "median"]}
    release = zd.table(people(), by="city", of=of, epsilon=8, weights={"income_mean": 3})
    plan: Any = release.plan
    assert [part.epsilon for part in plan.parts] == [6, 2]
    assert zd.verify(release.certificate, epsilon=8)
    assert release.record is not None
    assert release.record.parameters["weights"] == {"income_mean": 3}


def _alone(column: TableColumn) -> Any:
    def make(epsilon: Fraction) -> Any:
        (part,) = plan_table(
            epsilon=epsilon, keys=KEYS, columns=[column], expected_rows=4_000_000
        ).parts
        return part

    return make


def test_the_number_of_groups_changes_no_noise() -> None:
    scales = set()
    for groups in (10, 1000):
        keys = GroupKeys(keys=(GroupKey(name="key", labels=tuple(range(groups))),))
        plan = plan_table(
            epsilon=Fraction(1), keys=keys, columns=[asked("a", "std")], expected_rows=10**6
        )
        (part,) = plan.parts
        noise: Any = part.moments.noise  # type: ignore[union-attr]
        scales.add((noise.method, noise.scale))
    assert len(scales) == 1


def test_many_columns_are_one_block() -> None:
    columns = [asked(f"c{i}", "mean") for i in range(300)]
    options: dict[str, Any] = {"epsilon": Fraction(1), "keys": KEYS, "expected_rows": 10**6}
    (part,) = plan_table(columns=columns, **options).parts
    assert len(part.errors) == 301
    counts = [asked(f"c{i}", "count", missing=True) for i in range(300)]
    parts = plan_table(columns=counts, **options).parts
    assert sum(part.epsilon for part in parts) == 1
    assert min(part.epsilon for part in parts) > Fraction(1, 400)


# Certificates and what is kept.


def test_the_sums_of_a_block_can_be_sent_to_workers() -> None:
    key = GroupKey(
        name="a", labels=("x", "y"), bins=Bins(edges=(Fraction(0), Fraction(1), Fraction(2)))
    )
    work = _PowerSums(keys=GroupKeys(keys=(key,)), lattices=(), degrees=(), missing=())
    block = np.array([[0.5], [1.5], [2.0], [3.0], [math.nan]])
    assert pickle.loads(pickle.dumps(work))(block).tolist() == [[1], [2]]


# Frames.


def test_a_file_gives_a_table_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "pandas DataFrame.csv"
    FRAME.to_csv(path, index=False)
    shown = zd.mean(zd.open(path, columns=KINDS), "income", by="city", epsilon=1).value
    assert isinstance(shown, Table)
    assert shown.columns == ("city", "count", "count_error", "income_mean", "income_mean_error")
    assert shown.keys == ("city",)
    assert (shown.shape, tuple(shown)) == ((3, 5), shown.columns)
    assert shown["city"].tolist() == [*CITIES, "other"]
    assert [line["count"] for line in shown.lines()] == shown["count"].tolist()
    for kind, made in (("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)):
        assert isinstance(shown.to_frame(kind), made)
    assert isinstance(shown.to_frame(), pd.DataFrame)
    with pytest.raises(zd.errors.ParameterError, match="pandas"):
        shown.to_frame("spark")
    with pytest.raises(zd.errors.ParameterError, match='did you mean "income_mean"'):
        shown["income_men"]


def test_keys_are_escaped_wherever_they_are_shown() -> None:
    bad = Table({"<b>key": ["<script>", "a\x1b[2J\nb"]}, {"count": np.array([1, 2])})
    page = bad._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<b>" not in page
    assert "\x1b" not in repr(bad)
    assert len(repr(bad).splitlines()) == 3
    long = Table({"key": list(range(500))}, {"count": np.arange(500)})
    assert "… 480 more" in repr(long)
    assert "… 480 more" in long._repr_html_()


def test_the_release_and_its_plan_can_be_read() -> None:
    release = zd.table(people(), by="city", of={"income": ["mean"]}, epsilon=1)
    assert "income_mean" in repr(release)
    assert "for a group of 1000 rows" in str(release.error)
    assert "table of 3 groups by city, planned for 1000 rows each" in str(release.plan)
    assert zd.variance(people(), "age", epsilon=1).error < 10  # type: ignore[operator]


# Mistakes.

INCOME = {"income": ["mean"]}
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "undeclared key": ({"by": "citty", "of": INCOME}, 'did you mean "city"'),
    "undeclared column": ({"by": "city", "of": {"height": "mean"}}, "declared column"),
    "empty of": ({"by": "city", "of": {}}, "zd.count"),
    "no statistics": ({"by": "city", "of": {"income": []}}, "one statistic or more"),
    "of is a list": ({"by": "city", "of": ["income"]}, "statistics of one column"),
    "unknown statistic": ({"by": "city", "of": {"income": ["average"]}}, '"mean"'),
    "a misspelled one": ({"by": "city", "of": {"income": ["meen"]}}, 'did you mean "mean"'),
    "no levels": ({"by": "city", "of": {"income": [{"quantiles": []}]}}, "list of 1 to"),
    "one level": ({"by": "city", "of": {"income": {"quantiles": 0.5}}}, "list of 1 to"),
    "a level of 2": ({"by": "city", "of": {"income": [{"quantiles": [2]}]}}, "from 0 to 1"),
    "a misspelled dict": ({"by": "city", "of": {"income": [{"quantile": [0.5]}]}}, "quantiles"),
    "the median of a text": ({"by": "member", "of": {"city": "median"}}, "numbers or booleans"),
    "numbers as keys": ({"by": "age", "of": INCOME}, "zd.bins"),
    "bins of a category": ({"by": {"city": zd.bins([0, 1])}, "of": INCOME}, "column of numbers"),
    "declared twice": ({"by": {"city": zd.category(["a"])}, "of": INCOME}, "was declared"),
    "key twice": ({"by": ["city", "city"], "of": INCOME}, "each once"),
    "key of no kind": ({"by": {"city": 3}, "of": INCOME}, "zd.bins"),
    "mean of a category": ({"by": "member", "of": {"city": "mean"}}, "numbers or booleans"),
    "unknown goal": ({"by": "city", "of": INCOME, "goal": "best"}, "equal relative error"),
    "weight of a column": (
        {"by": "city", "of": INCOME, "weights": {"income": 3}},
        'did you mean "income_mean"',
    ),
    "weights in a list": ({"by": "city", "of": INCOME, "weights": ["income_mean"]}, "by name"),
    "huge weight": ({"by": "city", "of": INCOME, "weights": {"income_mean": "1e5000"}}, "1e-6 to"),
    "tiny weight": ({"by": "city", "of": INCOME, "weights": {"income_mean": 1e-320}}, "1e-6 to"),
    "no weight": ({"by": "city", "of": INCOME, "weights": {"income_mean": 0}}, "weights"),
    "bad bounds": ({"by": "city", "of": INCOME, "bounds": {"income": (2, 1)}}, "lower < upper"),
    "missing": ({"by": "city", "of": INCOME, "missing": 3}, "was declared"),
}


@pytest.mark.parametrize(("options", "match"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused_with_the_remedy(options: dict[str, Any], match: str) -> None:
    with pytest.raises(zd.errors.ParameterError, match=match):
        zd.table(people(), epsilon=1, **options)


BARE: dict[str, tuple[dict[str, Any], str]] = {
    "undeclared key": ({"by": "city"}, r"zd.category\(\[…\], other=True\)"),
    "no bounds": ({"by": {"city": KINDS["city"]}, "bounds": None}, "known without the rows"),
    "any text": ({"by": {"city": zd.text(9)}}, "a stated alphabet"),
    "any long text": ({"by": {"city": zd.text(5000, alphabet="ab")}}, "4096 characters"),
    "numbers as keys": ({"by": {"city": zd.number(0, 9)}}, "zd.bins"),
    "bins beside texts": (
        {"by": {"city": zd.text(9, alphabet="ab"), "age": zd.bins([0, 9])}},
        "nobody listed",
    ),
    "too many false keys": (
        {"by": {"city": zd.text(9, alphabet="ab")}, "false_keys": 2**25},
        r"2\^24",
    ),
    "too many quantiles": (
        {
            "by": {"age": zd.bins(range(2000)), "person": zd.bins(range(2000))},
            "of": {"income": [{"quantiles": [i / 10 for i in range(10)]}]},
        },
        r"2\^24",
    ),
    "no such column": ({"by": {"town": KINDS["city"]}}, "town"),
    "key and value": ({"by": {"income": KINDS["city"]}}, "zd.bins"),
    "a key called count": (
        {"data": FRAME.rename(columns={"city": "count"}), "by": {"count": KINDS["city"]}},
        "rename",
    ),
    "too many groups": (
        {"by": {"age": zd.bins(range(5000)), "person": zd.bins(range(5000))}},
        r"2\^24",
    ),
}


@pytest.mark.parametrize(("options", "match"), BARE.values(), ids=BARE)
def test_mistakes_with_bare_frames_are_refused_with_the_remedy(
    options: dict[str, Any], match: str
) -> None:
    with pytest.raises(zd.errors.ParameterError, match=match):
        zd.table(**{"data": FRAME, "of": INCOME, "bounds": (0, 1), "epsilon": 1, **options})


def test_present_values_by_group_need_declared_columns() -> None:
    with pytest.raises(zd.errors.ParameterError, match=r"zd\.open"):
        zd.count(FRAME, "income", by={"city": KINDS["city"]}, epsilon=1)


def test_typed_texts_of_bare_frames_are_refused_where_numbers_are_needed() -> None:
    texts = pl.from_pandas(FRAME).with_columns(pl.col("income").cast(pl.String))
    by = {"city": KINDS["city"]}
    with pytest.raises(zd.errors.ParameterError, match="numbers or booleans"):
        zd.mean(texts, "income", by=by, bounds=(0, 1), epsilon=1)
    with pytest.raises(zd.errors.ParameterError, match="numbers or booleans"):
        zd.count(texts, by={"income": zd.bins([0, 1])}, epsilon=1)
    cells = FRAME.astype({"income": object})
    assert len(zd.mean(cells, "income", by=by, bounds=(0, 1), epsilon=1).value) == 3
    declared = zd.open(texts, columns=KINDS)
    assert len(zd.mean(declared, "income", by="city", epsilon=1).value) == 3


@pytest.mark.parametrize("edges", [[0], [], [0, 0], [0, 2, 1], "012", 5, [0, "x"], [0, math.nan]])
def test_bins_that_do_not_rise_are_refused(edges: Any) -> None:
    with pytest.raises(zd.errors.ParameterError, match="bins"):
        zd.bins(edges)
