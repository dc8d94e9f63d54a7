"""Trees of depth two over public thresholds, and how many rows each classifies right."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource, public_table
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.training.feature_table import column_position
from zerodelta.value import value

Splits: TypeAlias = list[tuple[int, Column, float]]
"""Position, name and threshold of every question that may be asked."""

_LABELS = ((0, 0), (0, 1), (1, 0), (1, 1))


@value
class Split:
    """A question of one column: is it above the threshold? `labels` are for no and yes."""

    column: Column
    threshold: float
    labels: tuple[float, float]


@value
class DecisionTree:
    """First one question, then another one that depends on its answer.

    >>> yes = Split(column=1, threshold=0.5, labels=(1, 0))
    >>> no = Split(column=1, threshold=0.5, labels=(0, 1))
    >>> tree = DecisionTree(column=0, threshold=0.5, below=no, above=yes)
    >>> tree.predict(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    column: Column
    threshold: float
    below: Split
    above: Split

    def predict(self, rows: Any) -> Floats:
        """Return the label of each row of an array or a data frame; predictions are not private."""
        table, columns = public_table(rows), ArraySource(rows).columns

        def answers(split: Split | DecisionTree) -> npt.NDArray[np.bool_]:
            above: npt.NDArray[np.bool_] = (
                table[:, column_position(split.column, columns, "column")] > split.threshold
            )
            return above

        below, above = (
            np.where(answers(side), side.labels[1], side.labels[0])
            for side in (self.below, self.above)
        )
        labels: Floats = np.where(answers(self), above, below).astype(np.float64)
        return labels


def tree_of(index: int, splits: Splits, classes: tuple[float, ...]) -> DecisionTree:
    """Return the tree whose score has this place among all `tree_scores`."""

    def side(option: int) -> Split:
        place, labels = divmod(option, len(_LABELS))
        no, yes = (classes[c] for c in _LABELS[labels])
        _, column, threshold = splits[place]
        return Split(column=column, threshold=threshold, labels=(no, yes))

    sides = len(_LABELS) * len(splits)
    root, rest = divmod(index, sides**2)
    below, above = divmod(rest, sides)
    _, column, threshold = splits[root]
    return DecisionTree(column=column, threshold=threshold, below=side(below), above=side(above))


def tree_scores(
    rows: Rows, splits: Splits, label: int, classes: tuple[float, ...]
) -> npt.NDArray[Any]:
    """Return how many rows each tree classifies right: by root, side below, side above.

    A side is a split and its two labels, 4·split + 2·(label for no) + (label for yes). Every entry
    has sensitivity one.
    """
    low, high = _right([_pairs(rows, splits, label, value) for value in classes])
    scores: npt.NDArray[Any] = low[:, :, None] + high[:, None, :]
    return scores


def _pairs(rows: Rows, splits: Splits, label: int, value: float) -> npt.NDArray[Any]:
    """Return how many rows of one class are above each two thresholds (0: no threshold)."""
    used = sorted({place for place, _, _ in splits})

    def above(block: Floats) -> Floats:
        counted = (block[:, label] == value) & ~np.isnan(block[:, used]).any(axis=1)
        answers = [block[:, place] > threshold for place, _, threshold in splits]
        return np.stack([counted, *(counted & yes for yes in answers)], axis=1).astype(np.float64)

    lattice = FixedPoint.box(dimension=len(splits) + 1, lower=-1, upper=1, steps=1)
    return rows.gram(above, lattice)


def _right(tables: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows classified right below and above each root, by (second split, labels)."""
    low, high = [], []
    for labels in _LABELS:
        no, yes = (tables[c] for c in labels)
        high.append(no[1:, :1] - no[1:, 1:] + yes[1:, 1:])
        low.append(no[0, 0] - no[1:, :1] - no[:1, 1:] + no[1:, 1:] + yes[:1, 1:] - yes[1:, 1:])
    count = len(tables[0]) - 1
    return (
        np.stack(low, axis=2).reshape(count, -1),
        np.stack(high, axis=2).reshape(count, -1),
    )
