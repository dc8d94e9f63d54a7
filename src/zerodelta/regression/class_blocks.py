"""Sums of the rows of each class, with one block of noise for each class (theory P3, G2).

A row adds to the block of its own class only, so that ε is not split over classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.partition_noise import BlockNoise
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.value import value

Squares: TypeAlias = Literal["none", "mean", "each"]

_STEPS = 1 << 20
"""Half the width of the bounds, or the radius of the ball, in steps: far below any noise."""

_RADIUS = 0.4
"""Rows of an l2 block reach so far on the way from the middle of the bounds to a corner."""

_CONSTANT = Fraction(3, 10)
"""What a row of an l2 block counts as, as a part of that radius."""

# What is likely before a row is read; the constants are those that bench/tables_classifiers.py uses
_UNUSABLE = 0.1
_UNEQUAL = 0.5
_FEWEST = 0.3
_LEAST_WEIGHT = 0.02


@value(eq=False)
class ClassBlocks:
    """What a row adds to the block of its class: 1, its features in [-1, 1], and squares.

    `squares`: "mean", one coordinate for 2|x|²/d - 1; "each", one for 2x² - 1 of every feature.
    With ``norm=2`` rows are projected to a ball, and have no squares.
    """

    bounds: ColumnBounds
    classes: int
    squares: Squares = "mean"
    norm: float = math.inf

    @property
    def columns(self) -> int:
        """The number of features."""
        return len(self.bounds.lower)

    @property
    def dimension(self) -> int:
        """The coordinates of a block."""
        return 1 + self.columns + {"none": 0, "mean": 1, "each": self.columns}[self.squares]

    @property
    def radius(self) -> float:
        """The largest norm of the features of a row, in the unit of the scaled columns."""
        return 1.0 if self.norm == math.inf else _RADIUS * math.sqrt(self.columns)

    @property
    def constant(self) -> int:
        """What a row counts as, in steps."""
        return _STEPS if self.norm == math.inf else int(_CONSTANT * _STEPS)

    def coordinates(self, features: Floats) -> IntegerArray:
        """Return what rows without missing cells add to their blocks.

        No coordinate exceeds 2^20 (``norm=inf``), squared features add up to at most 2^40
        (``norm=2``).

        >>> bounds = ColumnBounds(lower=np.zeros(2), upper=np.full(2, 4.0))
        >>> blocks = ClassBlocks(bounds=bounds, classes=3)
        >>> (blocks.coordinates(np.array([[4.0, 9.0], [2.0, 1.0]])) / 2**20).tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, -0.5, -0.75]]
        """
        scaled = self.bounds.scaled(features)
        found = np.empty((len(scaled), self.dimension), dtype=np.int64)
        found[:, 0] = self.constant
        if self.norm == 2:
            ball = FixedPoint.ball(dimension=self.columns, bound=self.radius, steps=_STEPS)
            found[:, 1:] = ball.quantize(scaled)
            return found
        integers = np.rint(scaled * _STEPS).astype(np.int64)
        found[:, 1 : 1 + self.columns] = integers
        if self.squares == "mean":
            total = np.einsum("ij,ij->i", integers, integers)
            found[:, -1] = 2 * total // (self.columns * _STEPS) - _STEPS
        elif self.squares == "each":
            found[:, 1 + self.columns :] = 2 * integers**2 // _STEPS - _STEPS
        return found

    def measure(self, rows: Rows) -> IntegerArray:
        """Return the exact sums, class by class; the last column of the rows is the class's place.

        A row with a missing cell, or of no class, adds nothing.
        """

        def part(block: Block) -> IntegerArray:
            usable = ~np.isnan(block).any(axis=1)
            places = block[usable, -1].astype(np.int64)
            found = np.zeros((self.classes, self.dimension), dtype=np.int64)
            np.add.at(found, places, self.coordinates(block[usable, :-1]))
            return found.reshape(-1)

        return rows.total(
            part,
            list(range(self.columns + 1)),
            shape=(self.classes * self.dimension,),
            bound=_STEPS,
        )

    def noise(self, epsilon: Fraction, neighbors: Neighbors) -> NoisyBlocks:
        """Return the noise with this ε: a replaced row leaves one block and joins another."""
        if self.norm == math.inf:
            block = BlockNoise.for_epsilon(
                epsilon=epsilon,
                blocks=self.classes,
                dimension=self.dimension,
                row_bound=_STEPS,
                neighbors=neighbors,
            )
            spread = math.sqrt((self.dimension + 1) * (self.dimension + 2) / 3)
            return NoisyBlocks(
                blocks=self,
                apply=block.apply,
                step=block.step(),
                deviation=float(block.scale) * spread / _STEPS,
            )
        # the length of (x, constant), rounded up
        length = math.isqrt(_STEPS**2 + self.constant**2) + 1
        ball = KNorm.for_epsilon(
            epsilon=epsilon,
            norm=2,
            dimension=self.dimension,
            sensitivity=length * (2 if neighbors is Neighbors.REPLACE else 1),
            neighbors=neighbors,
        )

        def apply(sums: IntegerArray, bits: BitSource) -> IntegerArray:
            each = np.split(sums, self.classes)
            return np.concatenate([ball.apply(block, bits) for block in each])

        return NoisyBlocks(
            blocks=self,
            apply=apply,
            step=ball.step(quantum=None, blocks=True),
            deviation=float(ball.scale) * math.sqrt(self.dimension + 1) * self.radius / _STEPS,
        )


@value(eq=False)
class NoisyBlocks:
    """The noise on the blocks, and what it is in the unit of the scaled columns."""

    blocks: ClassBlocks
    apply: Callable[[IntegerArray, BitSource], IntegerArray]
    step: Step
    deviation: float
    """The standard deviation of a coordinate's sum."""

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the number of rows of a class."""
        return self.deviation * _STEPS / self.blocks.constant / self.blocks.radius

    def ratio(self, expected_rows: int) -> float:
        """Return the noise of a class mean over what √d features tell classes apart by."""
        blocks = self.blocks
        each = max(1, expected_rows) / blocks.classes
        return self.deviation / each / math.sqrt(blocks.columns)

    def release(self, rows: Rows, bits: BitSource, *, expected_rows: int, most: bool) -> ClassSums:
        """Measure, add noise, and estimate; `most`: there are no more rows than expected."""
        blocks = self.blocks
        noisy = self.apply(blocks.measure(rows), bits).astype(np.float64)
        table = noisy.reshape(blocks.classes, blocks.dimension)
        counts, total = _counts(
            table[:, 0] / blocks.constant,
            deviation=self.count_deviation,
            expected=max(1, expected_rows),
            most=most,
        )
        first = 1 + blocks.columns
        return ClassSums(
            counts=counts,
            total=total,
            features=table[:, 1:first] * (blocks.radius / _STEPS),
            squares=table[:, first:] / _STEPS,
            deviation=self.deviation,
            radius=blocks.radius if blocks.norm == 2 else math.inf,
        )


@value(eq=False)
class ClassSums:
    """Noisy sums of the classes, in the unit of the scaled columns; numbers of rows are shrunk."""

    counts: Floats
    total: float
    features: Floats
    squares: Floats
    deviation: float
    radius: float = math.inf
    """No row is longer."""


def _counts(noisy: Floats, *, deviation: float, expected: int, most: bool) -> tuple[Floats, float]:
    """Return the number of rows of each class, and of all, as far as noise lets them be told.

    Most rows may be expected to count, and no class to have less than about a third of its share.
    """
    classes, found = len(noisy), float(noisy.sum())
    trust = (_UNUSABLE * expected) ** 2
    total = expected + (found - expected) * trust / (trust + classes * deviation**2)
    total = max(min(total, expected) if most else total, expected / 4)
    each = total / classes
    trust = (_UNEQUAL * each) ** 2
    apart = noisy + (total - found) / classes - each
    counts = each + apart * trust / (trust + deviation**2)
    return np.maximum(counts, _FEWEST * each), total


def class_means(sums: ClassSums) -> tuple[Floats, float]:
    """Return the mean row of each class, moved to that of all as far as noise makes them differ.

    The mean squared difference, less that of the noise, says how much of it is to be believed. No
    mean is outside what rows are inside of. The second number is the noise that is left: its mean
    square in a coordinate.
    """
    counts, noise = sums.counts[:, None], (sums.deviation / sums.counts[:, None]) ** 2
    middle = np.clip(sums.features.sum(axis=0) / sums.total, -1.0, 1.0)
    apart = sums.features / counts - middle
    signal = max(0.0, float(np.mean(apart**2) - np.mean(noise)))
    weight = np.maximum(_LEAST_WEIGHT, signal / (signal + noise))
    means = np.clip(middle + weight * apart, -1.0, 1.0)
    left = float((counts * weight * noise).sum() / sums.total)
    return in_ball(means, sums.radius), left


def in_ball(rows: Floats, radius: float) -> Floats:
    """Return rows, the longer ones projected to a ball of this radius."""
    if radius == math.inf:
        return rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(lengths, radius)))


def as_block(block: str) -> float:
    """Return the norm that a block is named for.

    >>> as_block("max"), as_block("l2")
    (inf, 2.0)
    """
    names = {"max": math.inf, "l2": 2.0}
    require(
        isinstance(block, str) and block in names,
        "block",
        block,
        expected='"max" or "l2"',
        remedy='pass "l2" if most rows lie around the middle of their bounds, else "max"',
    )
    return names[block]
