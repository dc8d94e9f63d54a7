"""Tables, trees, models and features where a row comes or goes: exact, on all small data sets.

What a task hands to its mechanism is recorded for each data set of up to a few rows; no pair that
differs in one row loses more than ε, some lose all of it, and with half the noise they lose more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from tasks.noise_laws import assert_chosen_purely
from tasks.spying import recorded, zero
from zerodelta.data.arrays import ArraySource
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.spine.run import planned
from zerodelta.tasks.statistics import MeanQuestion

NAN = float("nan")
EPSILON = Fraction(3, 2)
Rows = tuple[tuple[float, ...], ...]


def data_sets(cells: Sequence[tuple[float, ...]], most: int) -> list[Rows]:
    """Each data set of 0 up to so many rows once, whatever the order of its rows."""
    return [
        rows
        for count in range(most + 1)
        for rows in itertools.combinations_with_replacement(cells, count)
    ]


def removals(keys: Sequence[Rows]) -> Iterator[tuple[Rows, Rows]]:
    for key in keys:
        for place in range(len(key)):
            yield key, key[:place] + key[place + 1 :]


def opened(rows: Rows, columns: dict[str, Any]) -> Any:
    """Return the data set; 3 rows are expected, whatever there are."""
    table = np.array(rows, dtype=np.float64).reshape(-1, len(columns))
    return zd.open(table, columns=columns, neighbors="add-remove", expected_rows=3)


def certified(release: zd.records.Release) -> None:
    claim = zd.verify(release.certificate, epsilon=EPSILON, neighbors="add-remove", proven=False)
    assert claim == zd.purification.PureDP(EPSILON, neighbors=zd.records.Neighbors.ADD_REMOVE)
    assert "how many rows are expected" in str(release.certificate.public)


# -- tables ---------------------------------------------------------------------------------------

KINDS = {"0": zd.category([0, 1, 2]), "1": zd.boolean()}
ENTRIES = list(itertools.product((0.0, 2.0, 9.0), (0.0, 1.0, NAN)))
"""9 is out of the domain, and a missing cell counts nowhere."""


@pytest.mark.parametrize(
    ("workload", "moved"), [(1, 2), (2, 1), ([("0",), ("1",), ("0", "1")], None)], ids=str
)
@pytest.mark.parametrize("task", [zd.answer_queries, zd.synthesize])
def test_tables_lose_epsilon_at_most_where_a_row_comes_or_goes(
    monkeypatch: pytest.MonkeyPatch, task: Callable[..., Any], workload: Any, moved: int | None
) -> None:
    """A row adds one to one cell of each table: Laplace noise loses its l1 distance over b."""
    calls = recorded(monkeypatch, PartitionNoise, "apply", lambda sums, _: np.asarray(sums))
    keys, found = data_sets(ENTRIES, 2), {}
    for key in keys:
        release = task(opened(key, KINDS), workload=workload, epsilon=EPSILON)
        noise, sums, *_ = calls[-1]
        found[key] = noise, sums.tolist()
    certified(release)
    losses = set()
    for a, b in removals(keys):
        (noise, one), (_, two) = found[a], found[b]
        losses.add(sum(abs(x - y) for x, y in zip(one, two, strict=True)) / noise.scale)
    assert max(losses) == EPSILON
    assert moved is None or noise.row_total == moved


def test_only_noise_on_cells_is_for_rows_that_come_and_go() -> None:
    people = opened(((0.0, 1.0),), KINDS)
    for method in ("counts", "k-norm", "mwem"):
        with pytest.raises(zd.errors.ParameterError, match=r"laplace.*private.*replaced"):
            zd.answer_queries(people, epsilon=1, method=method)
    assert zd.answer_queries(people, epsilon=1, method="laplace").certificate.steps[0].numbers[
        "scale"
    ] == Fraction(1)


def test_the_noise_of_twice_epsilon_for_replaced_rows() -> None:
    rows = np.column_stack([np.arange(600) % 3, np.arange(600) % 2]).astype(float)
    added = zd.open(rows, columns=KINDS, neighbors="add-remove", expected_rows=600)
    one, two = (
        zd.answer_queries(people, epsilon=epsilon, method="laplace").certificate.steps[0]
        for people, epsilon in ((added, 1), (zd.open(rows, columns=KINDS), 2))
    )
    assert one.numbers["scale"] == two.numbers["scale"]
    assert (one.neighbors.value, two.neighbors.value) == ("add-remove", "replace")


# -- choices --------------------------------------------------------------------------------------


def test_trees_are_pure_where_a_row_comes_or_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 16 trees of one split: a row adds 0 or 1 to the score of each."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    keys = data_sets(list(itertools.product((0.0, 1.0, NAN), (0.0, 1.0))), 2)
    columns, handed = {"0": zd.number(0, 1), "1": zd.boolean()}, {}
    for key in keys:
        release = zd.decision_tree(
            opened(key, columns), label="1", thresholds={"0": ["1/2"]}, epsilon=EPSILON
        )
        mechanism, scores, *_ = calls[-1]
        handed[key] = mechanism.scale, tuple(int(score) for score in scores)
    certified(release)
    assert len(handed[keys[-1]][1]) == 16
    assert_chosen_purely(handed, removals(keys), epsilon=EPSILON)


@pytest.mark.parametrize("bounds", [(0, 1), (-3, 1), (2, 3)])
def test_fixed_models_are_pure_where_a_row_comes_or_goes(
    monkeypatch: pytest.MonkeyPatch, bounds: tuple[int, int]
) -> None:
    """One row may move one score up and the other down; without a score it moves neither."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    low, high = bounds
    keys = data_sets(list(itertools.product((low - 5, low, high, NAN), repeat=2)), 2)
    kind, handed = zd.number(-9, 9), {}
    for key in keys:
        release = zd.select_model(
            opened(key, {"0": kind, "1": kind}),
            {"a": 0, "b": 1},
            score=lambda column, rows: rows[:, column],
            bounds=bounds,
            epsilon=EPSILON,
        )
        mechanism, scores, *_ = calls[-1]
        handed[key] = mechanism.scale, tuple(int(score) for score in scores)
    certified(release)
    assert_chosen_purely(handed, removals(keys), epsilon=EPSILON)


@pytest.mark.parametrize("fitted", [-3, 0, 1])
def test_features_lose_epsilon_at_most_where_a_row_comes_or_goes(
    monkeypatch: pytest.MonkeyPatch, fitted: int
) -> None:
    """Fits are fixed, as an answer is; losses of two fits and two choices add up."""
    steps = 1 << 20
    fits = recorded(
        monkeypatch, KNorm, "apply", lambda sums, _: np.full(len(sums), fitted * steps, np.int64)
    )
    choices = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    keys = data_sets(list(itertools.product((-1.0, 1.0, NAN), (-1.0, 1.0), (-1.0, 1.0))), 2)
    kind, found = zd.number(-1, 1), {}
    for key in keys:
        fits.clear()
        choices.clear()
        release = zd.select_features(
            opened(key, {"0": kind, "1": kind, "2": kind}),
            target="2",
            size=2,
            epsilon=EPSILON,
            method="stepwise",
        )
        found[key] = (
            [(noise.scale, [int(k) for k in sums]) for noise, sums, *_ in fits],
            [(flip.scale, [int(score) for score in scores]) for flip, scores, *_ in choices],
        )
    certified(release)
    largest = Fraction(0)
    for a, b in removals(keys):
        spent = Fraction(0)
        for part, times in ((0, 1), (1, 2)):  # a choice of scores that move by Δ loses 2Δ/b
            for (scale, one), (_, two) in zip(found[a][part], found[b][part], strict=True):
                far = max(abs(x - y) for x, y in zip(one, two, strict=True))
                spent += times * Fraction(far) / scale
        largest = max(largest, spent)
    assert EPSILON * Fraction(3, 4) <= largest <= EPSILON


# -- a mean of complete rows within a norm --------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("related", ["replace", "where", "add-remove"])
def test_a_mean_of_complete_rows_loses_epsilon_at_most(
    monkeypatch: pytest.MonkeyPatch, norm: float, related: str
) -> None:
    """Rows are replaced, dropped or come and go, beside another: in integers."""
    calls = recorded(monkeypatch, KNorm, "apply", lambda sums, _: np.asarray(sums))
    kinds = {"0": zd.number(-9, 9), "1": zd.number(-9, 9)}
    rows = list(itertools.product((0.0, 1.0, -1.0, NAN, 9.0), repeat=2))
    found: list[tuple[Any, list[int]]] = []
    for row in [(), *((row,) for row in rows)] if related == "add-remove" else ((r,) for r in rows):
        table = np.array([(1.0, 0.0), *row], dtype=np.float64)
        if related == "add-remove":
            people = zd.open(table, columns=kinds, neighbors=related, expected_rows=3)
        else:
            people = zd.open(table, columns=kinds)
        people = people.where("`0` != 0") if related == "where" else people
        release = zd.mean(people, data_norm=1, norm=norm, epsilon=EPSILON)
        found.append((calls[-1][0], [int(k) for k in calls[-1][1]]))
    asked = "add-remove" if related == "add-remove" else "replace"
    assert zd.verify(release.certificate, epsilon=EPSILON, neighbors=asked)
    pairs = [(found[0], each) for each in found[1:]]
    if related != "add-remove":
        pairs = list(itertools.combinations(found, 2))
    far = 0.0
    for (noise, one), (_, two) in pairs:
        moved = [x - y for x, y in zip(one, two, strict=True)]
        if norm == 2:
            assert sum(k**2 for k in moved) <= noise.sensitivity**2
        far = max(far, float(np.linalg.norm(np.array(moved, dtype=float), norm)))
        assert far <= noise.sensitivity
    assert far > 0.999 * noise.sensitivity


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_mean_of_complete_rows_is_theirs(norm: float) -> None:
    rows = np.array([(0.5, 0.25), (-0.25, 0.5), (NAN, 1.0), (1.0, NAN), (0.25, 0.0)])
    people = zd.open(rows, columns={"0": zd.number(-1, 1), "1": zd.number(-1, 1)})
    release = zd.mean(people, data_norm=1, norm=norm, epsilon=10**6)
    np.testing.assert_allclose(release.value, [1 / 6, 1 / 4], atol=1e-3)
    none = zd.mean(people.where("`0` > 1"), data_norm=1, norm=norm, epsilon=10**6)
    assert float(np.abs(none.value).max()) <= 1
    plan = planned(MeanQuestion(data_norm=1, norm=norm), ArraySource(rows, missing="skip"), 1)
    assert plan.complete_error is not None
    assert plan.complete_error <= plan.error


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_mean_of_complete_rows_follows_from_the_noisy_numbers_alone(
    monkeypatch: pytest.MonkeyPatch, norm: float
) -> None:
    """How many rows are complete is not used a second time, without noise."""
    handed: list[Any] = []

    def apply(self: Any, sums: Any, bits: Any) -> Any:
        handed.append(sums if not handed else handed[0])
        return handed[0]

    monkeypatch.setattr(KNorm, "apply", apply)
    kinds = {"0": zd.number(-1, 1), "1": zd.number(-1, 1)}
    rows = [(0.5, 0.25), (-0.25, 0.5), (NAN, 1.0), (0.25, 0.0)]
    values = [
        zd.mean(zd.open(np.array(some), columns=kinds), data_norm=1, norm=norm, epsilon=1).value
        for some in (rows, [*rows[1:], (NAN, NAN)])
    ]
    assert values[0].tolist() == values[1].tolist()
