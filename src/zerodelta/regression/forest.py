"""Classify by a forest with public random splits and noisy class counts in its leaves (theory P1).

Splits are drawn before a row is read, from the public bounds only, so that only the counts cost ε.
Every row is in one leaf of each of T trees: it adds T to the sum of all counts.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.regression.classes import forest_error
from zerodelta.regression.encoded_columns import ColumnBounds
from zerodelta.spine.plan import Facts, Method, ReleasePlan
from zerodelta.value import published, value

_Places: TypeAlias = npt.NDArray[np.int64]

_MAXIMUM_CELLS = 1 << 24
_MAXIMUM_TREES, _MAXIMUM_DEPTH = 100, 16
_TREES_PER_VOTE = 5
"""The number of trees that count as one independent vote in a probability: all trees see the same
rows. Chosen on the data sets of `bench/tables_classifiers.py`."""


@published
@value(eq=False)
class Splits:
    """Complete trees: the feature and the threshold, in [-1, 1], of each node, level by level."""

    features: _Places
    """Of shape (trees, 2^depth - 1)."""
    thresholds: Floats

    @staticmethod
    def draw(*, trees: int, depth: int, columns: int, seed: int) -> Splits:
        """Draw features uniformly, and thresholds in the middle half of the node's interval.

        >>> splits = Splits.draw(trees=2, depth=3, columns=5, seed=0)
        >>> splits.features.shape, bool(np.all(np.abs(splits.thresholds) < 1))
        ((2, 7), True)
        """
        rng = np.random.default_rng(seed)
        nodes = (1 << depth) - 1
        features = rng.integers(0, columns, size=(trees, nodes))
        middle = rng.uniform(0.25, 0.75, size=(trees, nodes))
        thresholds = np.empty((trees, nodes))
        all_trees = np.arange(trees)
        # the box of each node of a level, in all trees at once
        lower = np.full((1, trees, columns), -1.0)
        upper = np.full((1, trees, columns), 1.0)
        for level in range(depth):
            first = (1 << level) - 1
            child_lower, child_upper = [], []
            for place in range(1 << level):
                node = first + place
                feature = features[:, node]
                low, high = lower[place], upper[place]
                ends = low[all_trees, feature], high[all_trees, feature]
                cut = ends[0] + middle[:, node] * (ends[1] - ends[0])
                thresholds[:, node] = cut
                left_upper, right_lower = high.copy(), low.copy()
                left_upper[all_trees, feature] = right_lower[all_trees, feature] = cut
                child_lower += [low, right_lower]
                child_upper += [left_upper, high]
            lower, upper = np.stack(child_lower), np.stack(child_upper)
        return Splits(features=features, thresholds=thresholds)

    @property
    def trees(self) -> int:
        """The number of trees."""
        return len(self.features)

    @property
    def depth(self) -> int:
        """The number of splits between the root and a leaf."""
        return int(self.features.shape[1] + 1).bit_length() - 1

    def leaves(self, scaled: Floats, tree: int) -> _Places:
        """Return the index of each row's leaf, among the 2^depth leaves of a tree."""
        node = np.zeros(len(scaled), dtype=np.int64)
        all_rows = np.arange(len(scaled))
        for _ in range(self.depth):
            cell = scaled[all_rows, self.features[tree, node]]
            node = 2 * node + 1 + (cell > self.thresholds[tree, node])
        return np.asarray(node - self.features.shape[1], dtype=np.int64)


@published
@value(eq=False)
class Forest:
    """A released forest: the logarithms of the class probabilities in each leaf."""

    splits: Splits
    scores: Floats
    """Of shape (trees, leaves, classes)."""
    bounds: ColumnBounds
    classes: tuple[Any, ...] = ()
    temperature: float = 1.0
    """The divisor of scores before they become probabilities, computed from public numbers."""

    def decision(self, rows: Any) -> Floats:
        """Return one score for each class; a missing number is the middle of its bounds."""
        scaled = self.bounds.scaled(np.asarray(rows, dtype=np.float64))
        scaled = np.where(np.isnan(scaled), 0.0, scaled)
        total = np.zeros((len(scaled), self.scores.shape[2]))
        for tree, scores in enumerate(self.scores):
            total += scores[self.splits.leaves(scaled, tree)]
        return total


@value(eq=False)
class ForestQuestion:
    """Ask for the number of rows of each class in each leaf of public trees."""

    bounds: ColumnBounds
    classes: tuple[Any, ...]
    seed: int
    """The seed of the splits, which are public; noise has no seed."""
    trees: int | None = None
    """The number of trees; None: chosen by the planner."""
    depth: int | None = None
    """The depth of every tree; None: chosen by the planner."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the number and the depth of the trees by n·ε, draw them, calibrate the noise."""
        exact, expected = as_usable_epsilon(epsilon), facts.planned_rows
        columns, classes = len(self.bounds.lower), len(self.classes)
        trees, depth = self._size(max(1.0, expected * float(exact)))
        shape = (trees, 1 << depth, classes)
        cells = math.prod(shape)
        require(
            cells <= _MAXIMUM_CELLS,
            "max_depth",
            depth,
            expected=f"at most 2^24 counts in all: {trees} trees have {cells}",
            remedy="pass a smaller max_depth or n_estimators",
        )
        splits = Splits.draw(trees=trees, depth=depth, columns=columns, seed=self.seed)
        noise = PartitionNoise.for_epsilon(
            epsilon=exact,
            cells=cells,
            row_total=trees,
            neighbors=facts.neighbors,
            method="laplace",
        )
        error = forest_error(epsilon=exact, n=expected, classes=classes)

        def part(block: Block) -> IntegerArray:
            """Return a block's number of rows of each class in each leaf of each tree."""
            usable = ~np.isnan(block).any(axis=1)
            scaled = self.bounds.scaled(block[usable, :-1])
            places = block[usable, -1].astype(np.int64)
            counts = np.empty((trees, shape[1] * classes), dtype=np.int64)
            for tree in range(trees):
                keys = splits.leaves(scaled, tree) * classes + places
                counts[tree] = np.bincount(keys, minlength=counts.shape[1])
            return counts.reshape(-1)

        def answer(rows: Rows, bits: BitSource) -> Forest:
            """Return a forest whose leaves score classes by noisy counts."""
            counts = rows.total(part, list(range(columns + 1)), shape=(cells,), bound=1)
            noisy = noise.apply(counts, bits).astype(np.float64).reshape(shape)
            # the scale of the noise as a pseudo-count: leaves of noise alone get equal classes
            smoothed = np.maximum(noisy, 0.0) + float(noise.scale)
            return Forest(
                splits=splits,
                scores=np.log(smoothed / smoothed.sum(axis=2, keepdims=True)),
                bounds=self.bounds,
                classes=self.classes,
                temperature=max(1.0, trees / _TREES_PER_VOTE),
            )

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=error,
            methods=(
                Method(
                    name="forest",
                    error=error,
                    spends=f"ε on the counts of {trees} trees of {1 << depth} leaves",
                    why="splits are random and public; every row is in every tree",
                ),
            ),
            public=(
                *facts.counted,
                "the number of features",
                "bounds on the features",
                "the classes",
                "all splits, drawn before a row was read",
            ),
            row="one row: all of its features and its label",
        )

    def _size(self, size: float) -> tuple[int, int]:
        """Return the number of trees and their depth for `size` = n·ε.

        The rules were chosen on the data sets of `bench/tables_classifiers.py`.
        """
        trees = max(1, min(_MAXIMUM_TREES, round(math.sqrt(size) / 4)))
        depth = max(2, min(_MAXIMUM_DEPTH, round(math.log2(size) / 2 + 0.7)))
        if self.trees is not None:
            trees = as_count(self.trees, "n_estimators", minimum=1)
        if self.depth is not None:
            depth = as_count(self.depth, "max_depth", minimum=1)
            require(
                depth <= _MAXIMUM_DEPTH,
                "max_depth",
                depth,
                expected=f"at most {_MAXIMUM_DEPTH}",
                remedy="pass a smaller depth",
            )
            return trees, depth
        while trees * len(self.classes) << depth > _MAXIMUM_CELLS and depth > 2:
            depth -= 1
        return trees, depth
