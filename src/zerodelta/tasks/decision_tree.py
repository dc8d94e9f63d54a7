"""The best tree of depth two over public thresholds, chosen among all of them at once (C10.1).

How many rows a tree classifies right moves by at most one with a row, so that one score decides
and permute-and-flip over *all* trees is pure; splits need not pay off one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Column
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Release
from zerodelta.spine.transition import issue_for, opened
from zerodelta.tasks.feature_table import column_position

__all__ = ["DecisionTree", "Split", "Splits", "decision_tree", "tree_of", "tree_scores"]

Floats: TypeAlias = npt.NDArray[np.float64]

Splits: TypeAlias = list[tuple[int, Column, float]]
"""Position, name and threshold of every question that may be asked."""

_MOST_TREES = 1 << 23
_LABELS = ((0, 0), (0, 1), (1, 0), (1, 1))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """A question of one column: is it above the threshold? `labels` are for no and yes."""

    column: Column
    threshold: float
    labels: tuple[float, float]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
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
        """Return the label of each row of an array or a data frame."""
        source = rows if isinstance(rows, Source) else ArraySource(rows)
        table = np.concatenate([*opened(source).blocks(), np.empty((0, len(source.columns)))])

        def answers(column: Column, threshold: float) -> npt.NDArray[np.bool_]:
            found: npt.NDArray[np.bool_] = (
                table[:, column_position(column, source.columns, "column")] > threshold
            )
            return found

        sides = [
            np.where(answers(side.column, side.threshold), side.labels[1], side.labels[0])
            for side in (self.below, self.above)
        ]
        chosen: Floats = np.where(answers(self.column, self.threshold), sides[1], sides[0])
        return chosen.astype(np.float64)


def decision_tree(
    rows: Any,
    *,
    label: Column = -1,
    classes: tuple[float, float] = (0, 1),
    thresholds: Mapping[Column, Sequence[Rational]] | None = None,
    epsilon: Rational,
    bits: BitSource | None = None,
) -> Release:
    """Publish the tree of depth two that classifies (nearly) most rows right.

    All trees over the given thresholds take part, 16 s³ of them for s thresholds, so a first
    question that only pays off with the second (an exclusive or) is found. A study, or one choice
    after the other, would need more noise: here a single score of sensitivity 1 decides.

    **Releases**: a `DecisionTree`.
    **Neighbors**: replace-one (the number of rows is public).
    **Guarantee**: pure ε-DP by permute-and-flip (C10.1), `proven`.
    **Public**: the columns and thresholds, the classes. A row with a missing cell in one of
    them, or with another label, counts for no tree.
    **Error**: rows classified right are at most (2/ε) ln(16 s³) fewer than the best tree's, on
    average; the release says which part of all rows that is.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(0, 1, size=(4000, 2))
    >>> data = np.column_stack([x, (x[:, 0] > 0.5) != (x[:, 1] > 0.5)])
    >>> release = decision_tree(data, thresholds={0: [0.25, 0.5], 1: [0.5, 0.75]}, epsilon=1)
    >>> bool((release.value.predict(data) == data[:, 2]).all()), release.certificate.status.value
    (True, 'proven')
    """
    source = rows if isinstance(rows, Source) else ArraySource(rows)
    if source.rows < 1:
        raise ParameterError("rows", "no rows", expected="some rows", remedy="pass the data")
    answer = column_position(label, source.columns, "label")
    splits = _splits(thresholds, source.columns, answer)
    first, second = _checked_classes(classes)
    bits = SystemBits() if bits is None else bits
    flip = PermuteAndFlip.for_epsilon(epsilon=epsilon, sensitivity=1)
    count = len(splits)
    certificate = issue_for(
        source,
        claim=PureDP(flip.epsilon),
        steps=(flip.step(),),
        bits=bits,
        public=("columns, thresholds and classes", "the number of rows"),
    )
    scores = tree_scores(source, splits, answer, (first, second))
    chosen = flip.select(scores.reshape(-1), bits)
    return Release(
        value=tree_of(chosen, splits, (first, second)),
        certificate=certificate,
        error=flip.error(16 * count**3) / source.rows,
    )


def tree_of(index: int, splits: Splits, classes: tuple[float, float]) -> DecisionTree:
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
    source: Source, splits: Splits, label: int, classes: tuple[float, float]
) -> npt.NDArray[Any]:
    """Return how many rows each tree classifies right: by root, side below, side above.

    A side is a split and its two labels, 4·split + 2·(label for no) + (label for yes). Replacing a
    row moves every entry by at most one.
    """
    low, high = _right([_pairs(source, splits, label, value) for value in classes])
    scores: npt.NDArray[Any] = low[:, :, None] + high[:, None, :]
    return scores


def _pairs(source: Source, splits: Splits, label: int, value: float) -> npt.NDArray[Any]:
    """Return how many rows of one class are above each two thresholds (0: no threshold)."""
    used = sorted({place for place, _, _ in splits})

    def above(rows: Floats) -> Floats:
        counted = (rows[:, label] == value) & ~np.isnan(rows[:, used]).any(axis=1)
        answers = [rows[:, place] > threshold for place, _, threshold in splits]
        return np.stack([counted, *(counted & yes for yes in answers)], axis=1).astype(np.float64)

    lattice = FixedPoint.box(dimension=len(splits) + 1, lower=-1, upper=1, steps=1)
    return opened(source).gram(above, lattice)


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


def _splits(
    thresholds: Mapping[Column, Sequence[Rational]] | None, columns: Sequence[str], label: int
) -> Splits:
    """Return (position, name, threshold) of every question that may be asked."""
    if not isinstance(thresholds, Mapping) or not thresholds:
        raise ParameterError(
            "thresholds",
            thresholds,
            expected="public thresholds for at least one column",
            remedy="pass thresholds={column: [20, 40, 60], …}, chosen without looking at the rows",
        )
    found = [
        (place, column, float(as_rational(value, "thresholds")))
        for column, values in thresholds.items()
        for place in [column_position(column, columns, "thresholds")]
        for value in values
    ]
    trees = 16 * len(found) ** 3
    if not found or trees > _MOST_TREES or label in {place for place, _, _ in found}:
        raise ParameterError(
            "thresholds",
            f"{len(found)} of them",
            expected="1 to 80 in all, none of them of the label",
            remedy="pass fewer columns or coarser thresholds",
        )
    return found


def _checked_classes(classes: tuple[float, float]) -> tuple[float, float]:
    listed = classes if isinstance(classes, tuple) else ()
    read = [float(as_rational(label, "classes")) for label in listed]
    if len(read) != 2 or read[0] == read[1]:
        raise ParameterError(
            "classes", classes, expected="two different labels", remedy="pass classes=(0, 1), say"
        )
    return read[0], read[1]
