"""Tasks on columns of a data set: what arrays give, and units, by exact laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from data.opening import opened
from tasks.noise_laws import assert_chosen_purely
from zerodelta.testing import replayed
from zerodelta.training.features import Splits, tree_scores

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 100),
    "income": zd.number(-1000, 3000),
    "member": zd.boolean(),
    "city": zd.category(["oslo", "rome"], other=True),
    "note": zd.text(length=20),
}
NUMBERS = ["age", "income", "member"]
ENDS = ([0, -1000, 0], [100, 3000, 1])


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age, income = rng.uniform(-10, 110, rows), rng.uniform(-1000, 3000, rows)
    table = pd.DataFrame({"who": np.arange(rows) // 3, "age": age, "income": income})
    table["member"] = age + income / 50 > 60
    table["city"] = rng.choice(["oslo", "rome", "bonn"], rows)
    table["note"] = "words"
    table.loc[::9, "age"] = np.nan
    return table


def people(**options: Any) -> Any:
    return zd.open(frame(), columns=COLUMNS, **options)


def kmeans(data: Any, method: str, **given: Any) -> Any:
    return zd.kmeans(data, clusters=2, epsilon=2, method=method, **given)


def tree(data: Any, **given: Any) -> Any:
    thresholds: dict[Any, Any] = {"age": [30, 60], "income": [0, 1000]}
    return zd.decision_tree(data, label="member", thresholds=thresholds, epsilon=1, **given)


def features(data: Any, method: Any, **given: Any) -> Any:
    return zd.select_features(data, target="member", size=1, epsilon=2, method=method, **given)


def fixed(data: Any, **given: Any) -> Any:
    models = {"first": 0, "second": 1}
    return zd.select_model(data, models, epsilon=1, score=_score, bounds=(-9, 9), **given)


def _score(column: int, rows: Any) -> Any:
    return rows[:, column] / (100 + 2900 * column)


def trained(data: Any, **given: Any) -> Any:
    models = {
        name: zd.models.NetworkModel(
            features=[name], label="member", lower=(low,), upper=(high,), units=2
        )
        for name, low, high in (("age", 0, 100), ("income", -1000, 3000))
    }
    return zd.select_model(data, models, epsilon=2, rounds=2, **given)


TASKS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "k-means, histogram": (lambda d, **g: kmeans(d, "histogram", **g), {"bounds": ENDS}),
    "k-means, lloyd": (lambda d, **g: kmeans(d, "lloyd", **g), {"bounds": ENDS}),
    "k-means, one center": (lambda d, **g: kmeans(d, "one-center", **g), {"bounds": ENDS}),
    "tree": (tree, {}),
    "features, stepwise": (
        lambda d, **g: features(d, "stepwise", **g),
        {"bounds": ([0, -1000], [100, 3000]), "target_bounds": (0, 1)},
    ),
    "features, gram": (
        lambda d, **g: features(d, "gram", **g),
        {"bounds": ([0, -1000], [100, 3000]), "target_bounds": (0, 1)},
    ),
    "fixed models": (fixed, {}),
    "trained models": (trained, {}),
}
every = pytest.mark.parametrize("task", TASKS)


@every
def test_what_is_released_is_what_the_frame_gives(task: str) -> None:
    ask, given = TASKS[task]
    declared = replayed("a release")(ask)(people(), columns=NUMBERS)
    plain = replayed("a release")(ask)(frame(), columns=NUMBERS, **given)
    np.testing.assert_array_equal(declared.value, plain.value)
    assert (declared.error, declared.certificate.steps) == (plain.error, plain.certificate.steps)


def test_trees_are_pure_for_every_change_of_a_unit_and_half_the_noise_is_caught() -> None:
    """Exact laws of all 16 trees of one split; up to three rows of a unit, of which two count."""
    splits: Splits = [(0, "x", 0.5)]
    columns = {"x": zd.number(0, 1), "y": zd.boolean()}
    rows = list(itertools.product((0.0, 1.0), repeat=2))

    def data(unit: tuple[tuple[float, ...], ...]) -> Any:
        table = [("other", 1.0, 1.0), *(("ann", *row) for row in unit)]
        named = pd.DataFrame(table, columns=["who", "x", "y"])
        return zd.open(named, columns=columns, unit="who", max_rows=2)

    release = zd.decision_tree(data(()), label="y", thresholds={"x": [0.5]}, epsilon=1)
    scale = Fraction(release.certificate.steps[0].numbers["scale"])
    sets = [s for n in range(1, 4) for s in itertools.combinations_with_replacement(rows, n)]
    handed = {
        unit: (scale, tuple(tree_scores(opened(data(unit)), splits, 1, (0.0, 1.0)).flat))
        for unit in sets
    }
    assert_chosen_purely(handed, itertools.combinations(sets, 2), epsilon=1)


def test_a_row_without_cells_scores_nothing() -> None:
    """A comparison holds for no NaN, so rows that were dropped would all vote for the second."""
    few = people().where("age > 100000")  # clipped to 100: no row is left
    releases = [
        zd.select_model(
            few,
            {"above": 1, "not above": 0},
            columns=["income"],
            epsilon=1,
            score=lambda above, rows: (rows[:, 0] > 0) == above,
        )
        for _ in range(24)
    ]
    assert {release.value for release in releases} == {"above", "not above"}


def test_only_the_columns_that_are_asked_are_read() -> None:
    """A tree takes those of its thresholds and its label; features are chosen by name."""
    assert tree(people()).value.column in ("age", "income")
    release = zd.select_features(
        people(), target="member", features=["income"], size=1, epsilon=1, method="stepwise"
    )
    assert release.value == ("income",)
