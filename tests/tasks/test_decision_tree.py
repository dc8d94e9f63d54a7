"""Trees of depth two: every tree's score is what it classifies right, and moves by one."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from data.opening import opened
from tasks.noise_laws import assert_chosen_purely
from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Column
from zerodelta.exact.rational import Rational
from zerodelta.privacy.verify import verify
from zerodelta.tasks.features import decision_tree
from zerodelta.training.features import DecisionTree, Split, Splits, tree_scores

SPLITS: Splits = [(0, 0, 0.5), (1, 1, 0.5), (1, 1, 1.5)]
THRESHOLDS: dict[Column, list[Rational]] = {0: [0.5], 1: [0.5, 1.5]}


def trees(splits: Splits) -> list[DecisionTree]:
    """All trees, in the order of the scores."""
    sides = [
        Split(column=column, threshold=threshold, labels=labels)
        for _, column, threshold in splits
        for labels in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    ]
    return [
        DecisionTree(column=column, threshold=threshold, below=below, above=above)
        for (_, column, threshold), below, above in itertools.product(splits, sides, sides)
    ]


def scores(rows: Any, splits: Splits = SPLITS) -> Any:
    source = opened(ArraySource(rows))
    return tree_scores(source, splits, rows.shape[1] - 1, (0.0, 1.0)).reshape(-1)


def test_every_tree_is_scored_by_the_rows_it_classifies_right() -> None:
    rows = np.random.default_rng(1).integers(0, 3, size=(40, 3)).astype(np.float64)
    right = [int((tree.predict(rows) == rows[:, 2]).sum()) for tree in trees(SPLITS)]
    assert scores(rows).tolist() == right
    assert len(right) == 16 * 3**3


def test_a_row_at_a_threshold_is_scored_as_it_is_classified() -> None:
    splits: Splits = [(0, 0, 1.0), (1, 1, 0.0), (1, 1, 2.0)]
    for row in itertools.product((0.0, 1.0, 2.0), (0.0, 1.0, 2.0), (0.0, 1.0)):
        rows = np.array([row])
        right = [int(tree.predict(rows)[0] == row[2]) for tree in trees(splits)]
        assert scores(rows, splits).tolist() == right


def test_a_row_with_a_missing_cell_scores_for_no_tree() -> None:
    for row in ((np.nan, 1.0, 1.0), (1.0, np.nan, 0.0), (1.0, 1.0, np.nan)):
        assert not scores(np.array([row])).any()


def test_replacing_a_row_moves_every_score_by_one_at_most() -> None:
    """Each row alone scores 0 or 1 for each tree, whatever is in it; both occur."""
    values = (0.0, 1.0, 2.0, np.nan, -np.inf)
    for row in itertools.product(values, repeat=3):
        assert set(scores(np.array([row])).tolist()) <= {0, 1}
    assert set(scores(np.array([[0.0, 0.0, 1.0]])).tolist()) == {0, 1}


def test_trees_are_pure_over_all_neighbors_and_half_the_noise_is_caught() -> None:
    """Exact laws of all 16 trees of one split, where the only row is replaced, epsilon 1."""
    certificate = decision_tree(np.zeros((1, 2)), thresholds={0: [0.5]}, epsilon=1).certificate
    scale = Fraction(certificate.steps[0].numbers["scale"])
    rows = list(itertools.product((0.0, 1.0), repeat=2))
    handed = {row: (scale, tuple(scores(np.array([row]), [(0, 0, 0.5)]).tolist())) for row in rows}
    assert_chosen_purely(handed, itertools.combinations(rows, 2), epsilon=1)


def test_an_exclusive_or_is_found() -> None:
    """No split pays off by itself, so trees grown split by split do not see it."""
    rows = np.random.default_rng(5).integers(0, 2, size=(3000, 5)).astype(np.float64)
    rows[:, 4] = rows[:, 1] != rows[:, 3]
    release = decision_tree(rows, thresholds={0: [0.5], 1: [0.5], 2: [0.5], 3: [0.5]}, epsilon=1)
    assert (release.value.predict(rows) == rows[:, 4]).all()
    assert verify(release.certificate)
    assert release.certificate.status.value == "proven"


def test_named_columns_and_other_classes() -> None:
    x = np.random.default_rng(5).uniform(0, 1, size=(2000, 2))
    labels = np.where(x[:, 1] > 0.3, 7.0, 5.0)
    frame = pd.DataFrame(np.column_stack([x, labels]), columns=["a", "b", "y"])
    release = decision_tree(
        frame, label="y", classes=(5, 7), thresholds={"a": [0.5], "b": ["0.3"]}, epsilon=2
    )
    assert (release.value.predict(frame) == labels).all()
