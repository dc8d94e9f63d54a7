"""Classifiers made of sums of each class: one block of noise a class; which to expect most of.

A row adds to the block of its own class only, so that ε is not split over classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.partition_noise import BlockNoise
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.regression.classifiers import classifier_methods
from zerodelta.regression.encoded_columns import ColumnBounds, Encoding
from zerodelta.regression.rows import ClassLabels, LabeledRows
from zerodelta.spine.plan import Facts, Method, Question, ReleasePlan, ranked
from zerodelta.spine.run import ask
from zerodelta.value import value

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
    """What a row adds to the block of its class: 1, its features x in [-1, 1], and 2|x|²/d - 1.

    With ``norm=2`` rows are projected to a ball, and have no squares.
    """

    bounds: ColumnBounds
    classes: int
    norm: float = math.inf

    @property
    def columns(self) -> int:
        """The number of features."""
        return len(self.bounds.lower)

    @property
    def dimension(self) -> int:
        """The coordinates of a block."""
        return 1 + self.columns + (self.norm == math.inf)

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
        total = np.einsum("ij,ij->i", integers, integers)
        found[:, -1] = 2 * total // (self.columns * _STEPS) - _STEPS
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


# -- Which classifier to expect the most of, by public numbers; measured, not derived -------------
# The curves were fitted to runs on iris, wine, breast cancer and digits with other seeds than
# those of `bench/tables_classifiers.py`, which prints what became of them.

_HALF = 0.14
"""Noise over signal at which class means have lost half of what there is to learn."""

_FOREST_HALF = 2.3
"""√(nε) for each class at which a forest has lost half of what there is to learn."""

_LEFT = {
    "nearest centroid": 0.10,
    "nearest centroid, l2": 0.12,
    "forest": 0.2,
    "logistic": 0.06,
}
"""The part of all mistakes that a model makes that sees no noise, on the data of the bench."""

_BLOCKS = {
    "nearest centroid": lambda d: (d + 3) * (d + 4) / 3,
    # a ball of radius 0.4 √d cuts more of what tells classes apart the more features there are
    "nearest centroid, l2": lambda d: 0.4**2 * 1.09 * d * (d + 2) * (1 + d / 30),
}
"""The variance of the noise on a sum, in units of (2/ε)²."""


def means_error(name: str, *, epsilon: Fraction, n: int, dimension: int, classes: int) -> float:
    """Forecast the error rate of a classifier made of class statistics.

    >>> few, many = (
    ...     means_error("nearest centroid", epsilon=Fraction(1), n=n, dimension=4, classes=3)
    ...     for n in (10, 10_000)
    ... )
    >>> 0.6 < few < 2 / 3, many < 0.09
    (True, True)
    """
    deviation = 2 / float(epsilon) * math.sqrt(_BLOCKS[name](dimension))
    ratio = deviation * classes / max(1, n) / math.sqrt(dimension)
    return _rate(name, ratio**2 / (ratio**2 + _HALF**2), classes)


def forest_error(*, epsilon: Fraction, n: int, classes: int) -> float:
    """Forecast the error rate of a forest.

    >>> round(forest_error(epsilon=Fraction(1), n=10_000, classes=2), 2)
    0.1
    """
    reach = math.sqrt(max(1, n) * float(epsilon)) / classes
    return _rate("forest", 1 / (1 + (reach / _FOREST_HALF) ** 2), classes)


def compare_classifiers(
    *, epsilon: Rational, n: int, dimension: int, classes: int
) -> tuple[Method, ...]:
    """Return all classifiers with the error rates to expect, best first.

    >>> compare_classifiers(epsilon=1, n=1257, dimension=64, classes=10)[0].name
    'nearest centroid'
    """
    exact, rows = as_usable_epsilon(epsilon), as_count(n, "n", minimum=1)
    d = as_count(dimension, "dimension", minimum=1)
    count = as_count(classes, "classes", minimum=2)
    lost, all_of_it = (
        next(
            method.error
            for method in classifier_methods(epsilon=exact, n=size, dimension=d, classes=count)
            if method.name == "objective"
        )
        for size in (rows, 1)
    )
    share = min(1.0, lost / all_of_it) ** 2  # mistakes are fewer than the log loss makes believe
    reasons = {
        "nearest centroid": "NearestCentroid: one block of noise for each class, wherever rows lie",
        "nearest centroid, l2": 'NearestCentroid(block="l2"): for rows around the middle of their '
        "bounds; useless for rows in a corner",
    }
    return ranked(
        *(
            Method(
                name=name,
                error=means_error(name, epsilon=exact, n=rows, dimension=d, classes=count),
                spends="ε on the sums of each class, not split over classes",
                why=why,
            )
            for name, why in reasons.items()
        ),
        Method(
            name="forest",
            error=forest_error(epsilon=exact, n=rows, classes=count),
            spends="ε on the counts of all leaves of all trees",
            why="RandomForestClassifier: public random splits; the only one that is not linear",
        ),
        Method(
            name="logistic",
            error=_rate("logistic", share, count),
            spends="ε on the objective",
            why="LogisticRegression: no other has so good a line, where there are enough rows",
        ),
    )


def _rate(name: str, lost: float, classes: int) -> float:
    """Return the error rate if this part of what there is to learn is lost to noise."""
    left = _LEFT[name]
    return (1 - 1 / classes) * (left + (1 - left) * lost)


# -- A classifier made of class statistics: the nearest mean (theory G2) --------------------------

_VARIANCE = 0.12
_VARIANCE_TRUST = 0.1**2
_LEAST_VARIANCE = 0.02
_BALL_VARIANCE = 0.15
"""The variance within a class to expect of features in [-1, 1], how well that is known, the
smallest that is believed, and that of rows in a ball. Tuned, as are the temperatures, on the data
of `bench/tables_classifiers.py`."""

_BELIEVED = 4.0
"""Variances of so many deviations of their noise are believed, however small."""

_RESOLUTION = 2.0**-18
"""No variance is smaller than the rounding of squares lets it be known."""

_EVEN = 0.1
"""Numbers of rows are used as prior probabilities if their noise is below this part of a class."""


@value(eq=False)
class ClassModel:
    """A mean, a variance and a prior probability for each class, of columns scaled to [-1, 1]."""

    means: Floats
    """Of shape (classes, columns)."""
    variances: Floats
    """Of shape (classes, columns), or (1, 1) if all are alike: then with the noise of the means."""
    priors: Floats
    """Probabilities, equal ones where noise hides the numbers of rows."""
    temperature: float
    """What scores are divided by before they become probabilities; public numbers alone say it."""
    bounds: ColumnBounds
    classes: tuple[Any, ...] = ()
    radius: float = math.inf
    """Scaled rows are projected to a ball of this radius."""

    @property
    def centers(self) -> Floats:
        """The means in the units of the data."""
        return np.asarray(self.means * self.bounds.half + self.bounds.middle)

    def decision(self, rows: Any) -> Floats:
        """Return one score for each class; a missing number is the middle of its bounds."""
        scaled = self.bounds.scaled(np.asarray(rows, dtype=np.float64))
        scaled = np.where(np.isnan(scaled), 0.0, scaled)
        scaled = in_ball(scaled, self.radius)
        scores = np.empty((len(scaled), len(self.means)))
        variances = np.broadcast_to(self.variances, self.means.shape)
        for place, (mean, variance) in enumerate(zip(self.means, variances, strict=True)):
            squares = (scaled - mean) ** 2 / variance + np.log(variance)
            scores[:, place] = math.log(self.priors[place]) - squares.sum(axis=1) / 2
        return scores


@value(eq=False)
class CentroidQuestion:
    """The mean row of each class is asked for."""

    bounds: ColumnBounds
    classes: tuple[Any, ...]
    block: str = "max"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Calibrate one block of noise for each class."""
        norm = as_block(self.block)
        ball = norm == 2
        name = "nearest centroid" + ", l2" * ball
        blocks = ClassBlocks(bounds=self.bounds, classes=len(self.classes), norm=norm)
        noise = blocks.noise(as_usable_epsilon(epsilon), facts.neighbors)
        expected = facts.planned_rows
        ratio = noise.ratio(expected)
        temperature = 1 + (ratio / 0.4) ** 2 if ball else 3 * (1 + (ratio / 0.2) ** 2)

        def model(sums: ClassSums) -> ClassModel:
            means, left = class_means(sums)
            variance = _BALL_VARIANCE
            if not ball:
                within = (sums.squares.sum() / sums.total + 1) / 2 - float(
                    sums.counts @ (means**2).mean(axis=1) / sums.total
                )
                doubt = len(means) * (sums.deviation / sums.total) ** 2 / 4
                variance = max(_least(doubt), _VARIANCE + (within - _VARIANCE) * _trust(doubt))
            return ClassModel(
                means=means,
                variances=np.full((1, 1), variance + left),
                priors=_priors(sums, noise, expected),
                temperature=temperature,
                bounds=self.bounds,
                classes=self.classes,
                radius=blocks.radius if ball else math.inf,
            )

        return _plan(name, noise, model, facts, epsilon)


def _plan(
    name: str,
    noise: NoisyBlocks,
    model: Callable[[ClassSums], ClassModel],
    facts: Facts,
    epsilon: Rational,
) -> ReleasePlan[Rows]:
    exact, expected, public = as_usable_epsilon(epsilon), facts.planned_rows, facts.rows is not None
    blocks = noise.blocks
    error = means_error(
        name, epsilon=exact, n=expected, dimension=blocks.columns, classes=blocks.classes
    )

    def answer(rows: Rows, bits: BitSource) -> ClassModel:
        return model(noise.release(rows, bits, expected_rows=expected, most=public))

    return ReleasePlan(
        claim=PureDP(exact, neighbors=facts.neighbors),
        steps=(noise.step,),
        answer=answer,
        error=error,
        methods=(
            Method(
                name=name,
                error=error,
                spends=f"ε on {blocks.dimension} sums of each class",
                why="a row is in one class: ε is not split over classes",
            ),
        ),
        public=(*facts.counted, "the number of features", "bounds on the features", "the classes"),
        row="one row: all of its features and its label",
    )


def _priors(sums: ClassSums, noise: NoisyBlocks, expected: int) -> Floats:
    classes = len(sums.counts)
    if noise.count_deviation >= _EVEN * expected / classes:
        return np.full(classes, 1 / classes)
    return np.asarray(sums.counts / sums.counts.sum())


def _trust(noise: float) -> float:
    """Return how far a variance is believed that is known up to noise of this mean square."""
    return _VARIANCE_TRUST / (_VARIANCE_TRUST + noise)


def _least(noise: float) -> float:
    """Return the smallest variance that is believed: less where its own noise is far below.

    In bounds that are much wider than the rows all variances are small, and a floor above them
    would make the prior probabilities decide. None is below what noise leaves open: a variance that
    noise made small would make wrong probabilities sure.
    """
    deviation = math.sqrt(noise)
    floor = min(_LEAST_VARIANCE, max(_BELIEVED * deviation, _RESOLUTION))
    return max(floor, deviation * math.sqrt(_trust(noise)))


def fit_classes(
    question: Question,
    rows: Any,
    labels: Any,
    *,
    classes: tuple[Any, ...],
    epsilon: Fraction,
    diagnostics: Rational | None = None,
) -> Release:
    """Ask for a model of labeled rows: arrays, frames, or two selections of one data set."""
    encode = Encoding.of(rows.kinds) if isinstance(rows, Dataset) else None
    source = LabeledRows(rows, labels, read=ClassLabels(classes), encode=encode)
    diagnosis = as_diagnosis(diagnostics, source.declared)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis, facts=source.facts)
