"""What estimators hand to their mechanisms, over all neighbors of tiny data: no tolerance."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from tasks.related import certified_beside, opened_beside, tables_beside
from tasks.spying import first, recorded
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.regression.classes import ClassBlocks
from zerodelta.regression.encoded_columns import ColumnBounds
from zerodelta.regression.forest import Splits
from zerodelta.sklearn import NearestCentroid, RandomForestClassifier

EPSILON = Fraction(3, 4)
STEPS = 1 << 20
CELLS = [-5.0, 0.0, 1.0, 2.0, math.inf, math.nan]
"""Within and beyond the bounds (0, 2), and missing."""
LABELS = ["a", "b", "elsewhere"]
ROWS = list(itertools.product(CELLS, [0.0, 2.0, math.nan], LABELS))
CORNERS = [row for row in ROWS if row[0] in (-5.0, 2.0) and row[1] in (0.0, 2.0)]
COLUMNS = {"x": zd.number(0, 2), "z": zd.number(0, 2), "y": zd.category(["a", "b"])}
each_relation = pytest.mark.parametrize("relation", ["replace", "add-remove", "unit"])


def handed_by(calls: list[tuple[Any, ...]], model: Any, relation: str) -> list[tuple[Any, Any]]:
    """What was handed to the mechanism for all pairs of neighbors; ε is proven for them."""
    tables, neighbors = tables_beside(ROWS, (1.0, 2.0, "a"), relation, of_unit=CORNERS)
    found = []
    for rows in tables:
        calls.clear()
        data = opened_beside(rows, COLUMNS, relation)
        model.fit(data[["x", "z"]], data["y"])
        sums = np.concatenate([np.asarray(call[1], dtype=object) for call in calls])
        found.append(sums.astype(np.int64))
    certified_beside(model.certificate_, relation, EPSILON)
    assert model.certificate_.status.value == "proven"
    return neighbors(found)


@each_relation
def test_blocks_move_by_what_the_noise_covers_and_reach_it(
    monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    """The norm of G2: the sum over classes of the largest coordinate."""
    calls = recorded(monkeypatch, BlockNoise, "apply", first)
    model = NearestCentroid(epsilon=EPSILON)
    pairs = handed_by(calls, model, relation)
    noise = calls[-1][0]
    moved = [np.abs(a - b).reshape(2, noise.dimension).max(axis=1).sum() for a, b in pairs]
    assert max(moved) == EPSILON * noise.scale
    assert max(moved) == {"replace": 2, "add-remove": 1, "unit": 4}[relation] * STEPS


@each_relation
def test_l2_blocks_move_by_what_the_noise_covers(
    monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    """The sum over classes of the l2 norms; squared norms and the limit are integers."""
    calls = recorded(monkeypatch, KNorm, "apply", first)
    model = NearestCentroid(epsilon=EPSILON, block="l2")
    pairs = handed_by(calls, model, relation)
    noise = calls[-1][0]
    limit, most = EPSILON * noise.scale, 0.0
    for a, b in pairs:
        squares = [int(one) for one in ((a - b).reshape(2, -1).astype(object) ** 2).sum(axis=1)]
        # √s + √t <= m, in integers
        rest = limit**2 - sum(squares)
        assert rest >= 0
        assert 4 * squares[0] * squares[1] <= rest**2
        most = max(most, sum(map(math.sqrt, squares)))
    assert most > 0.999 * limit


@each_relation
def test_counts_of_two_trees_move_by_two_for_each_row_that_moves(
    monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    calls = recorded(monkeypatch, PartitionNoise, "apply", first)
    model = RandomForestClassifier(epsilon=EPSILON, n_estimators=2, max_depth=2, random_state=7)
    pairs = handed_by(calls, model, relation)
    noise = calls[-1][0]
    assert (noise.cells, noise.row_total) == (2 * 4 * 2, 2)
    moved = [int(np.abs(a - b).sum()) for a, b in pairs]
    assert max(moved) == EPSILON * noise.scale
    assert max(moved) == {"replace": 4, "add-remove": 2, "unit": 8}[relation]


def test_every_row_of_a_class_is_in_one_leaf_of_every_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand: a row goes right where it exceeds the threshold, level by level."""
    calls = recorded(monkeypatch, PartitionNoise, "apply", first)
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, size=(40, 3)), rng.integers(0, 2, size=40)  # noqa: N806
    model = RandomForestClassifier(
        epsilon=1, bounds=(-1, 1), classes=[0, 1], n_estimators=3, max_depth=3, random_state=1
    ).fit(X, y)
    splits = Splits.draw(trees=3, depth=3, columns=3, seed=1)
    wanted = np.zeros((3, 8, 2), dtype=int)
    for row, label in zip(X, y, strict=True):
        for tree in range(3):
            node, leaf = 0, 0
            for _ in range(3):
                right = row[splits.features[tree, node]] > splits.thresholds[tree, node]
                node, leaf = 2 * node + 1 + right, 2 * leaf + right
            wanted[tree, leaf, label] += 1
    np.testing.assert_array_equal(calls[-1][1], wanted.reshape(-1))
    assert (wanted.sum(axis=(1, 2)) == 40).all()
    np.testing.assert_array_equal(model.forest_.splits.features, splits.features)


def test_splits_are_inside_what_is_left_of_a_feature_and_follow_from_the_seed() -> None:
    splits, again, other = (
        Splits.draw(trees=5, depth=4, columns=2, seed=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(splits.thresholds, again.thresholds)
    assert (splits.thresholds != other.thresholds).any()
    for tree in range(5):
        for node in range(15):
            low, high = -1.0, 1.0
            place = node
            while place:  # up to the root: what is left of this feature
                parent = (place - 1) // 2
                if splits.features[tree, parent] == splits.features[tree, node]:
                    cut = splits.thresholds[tree, parent]
                    low, high = (max(low, cut), high) if place % 2 == 0 else (low, min(high, cut))
                place = parent
            quarter = (high - low) / 4
            assert low + quarter <= splits.thresholds[tree, node] <= high - quarter


def test_no_coordinate_of_a_block_exceeds_its_bound() -> None:
    """Over a lattice of rows, whatever the rounding of squares."""
    values = [-1.0, -0.7, -1 / 3, 0.0, 1e-7, 0.5, 0.9999999, 1.0]
    rows = np.array(list(itertools.product(values, repeat=3)))
    bounds = ColumnBounds(lower=np.full(3, -1.0), upper=np.full(3, 1.0))
    blocks = ClassBlocks(bounds=bounds, classes=2)
    found = blocks.coordinates(rows)
    assert np.abs(found).max() == STEPS
    np.testing.assert_allclose(found[:, 1:4] / STEPS, rows, atol=2.0**-20)
    wanted = (2 * rows**2 - 1).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found[:, 4:] / STEPS, wanted, atol=2.0**-17)
