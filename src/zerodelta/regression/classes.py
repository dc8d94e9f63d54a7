"""Fit classifiers from noisy sums of each class, and forecast which classifier errs least.

A row adds to the block of sums of its class only, so that ε is not split over classes.
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
from zerodelta.value import published, value

_STEPS = 1 << 20
"""Half the width of the bounds, or the radius of the ball, in steps: far below any noise."""

_RADIUS = 0.4
"""The radius of the ball of an l2 block, as a part of the distance from the middle of the bounds to
a corner."""

_CONSTANT = Fraction(3, 10)
"""The number that stands for a row in the count of an l2 block, as a part of that radius."""

# Prior beliefs about the numbers of rows and the class means. Like the two constants above they
# were chosen on the data sets of `bench/tables_classifiers.py`, which prints the accuracy.
_UNUSABLE = 0.1
"""The likely part of rows that are not usable."""
_UNEQUAL = 0.5
"""The likely relative deviation of a class's number of rows from the average class."""
_SMALLEST_CLASS = 0.3
"""The smallest number of rows of a class, as a part of the average class."""
_SMALLEST_WEIGHT = 0.02
"""The smallest weight of a class mean against the mean of all rows."""


@value(eq=False)
class ClassBlocks:
    """Sum, by class, 1, the features x in [-1, 1], and 2|x|²/d - 1 of each row.

    With ``norm=2`` rows are projected to a ball, and squares are not summed.
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
        """The number of coordinates of a block."""
        return 1 + self.columns + (self.norm == math.inf)

    @property
    def radius(self) -> float:
        """The largest norm of the features of a row, in the unit of the scaled columns."""
        return 1.0 if self.norm == math.inf else _RADIUS * math.sqrt(self.columns)

    @property
    def constant(self) -> int:
        """The integer that stands for one row in the count."""
        return _STEPS if self.norm == math.inf else int(_CONSTANT * _STEPS)

    def coordinates(self, features: Floats) -> IntegerArray:
        """Return the coordinates that rows without missing cells add to their blocks.

        No coordinate exceeds 2^20 (``norm=inf``), squared features add up to at most 2^40
        (``norm=2``).

        >>> bounds = ColumnBounds(lower=np.zeros(2), upper=np.full(2, 4.0))
        >>> blocks = ClassBlocks(bounds=bounds, classes=3)
        >>> (blocks.coordinates(np.array([[4.0, 9.0], [2.0, 1.0]])) / 2**20).tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, -0.5, -0.75]]
        """
        scaled = self.bounds.scaled(features)
        coordinates = np.empty((len(scaled), self.dimension), dtype=np.int64)
        coordinates[:, 0] = self.constant
        if self.norm == 2:
            ball = FixedPoint.ball(dimension=self.columns, bound=self.radius, steps=_STEPS)
            coordinates[:, 1:] = ball.quantize(scaled)
            return coordinates
        integers = np.rint(scaled * _STEPS).astype(np.int64)
        coordinates[:, 1 : 1 + self.columns] = integers
        total = np.einsum("ij,ij->i", integers, integers)
        coordinates[:, -1] = 2 * total // (self.columns * _STEPS) - _STEPS
        return coordinates

    def measure(self, rows: Rows) -> IntegerArray:
        """Return the exact sums, class by class; the last column of the rows is the class index.

        A row with a missing cell, or of no class, adds nothing.
        """

        def part(block: Block) -> IntegerArray:
            """Return the sums of each class's coordinates over a block."""
            usable = ~np.isnan(block).any(axis=1)
            places = block[usable, -1].astype(np.int64)
            sums = np.zeros((self.classes, self.dimension), dtype=np.int64)
            np.add.at(sums, places, self.coordinates(block[usable, :-1]))
            return sums.reshape(-1)

        return rows.total(
            part,
            list(range(self.columns + 1)),
            shape=(self.classes * self.dimension,),
            bound=_STEPS,
        )

    def noise(self, epsilon: Fraction, neighbors: Neighbors) -> NoisyBlocks:
        """Calibrate noise to ε, for a replaced row that leaves one block and joins another."""
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
            blocks = np.split(sums, self.classes)
            return np.concatenate([ball.apply(block, bits) for block in blocks])

        return NoisyBlocks(
            blocks=self,
            apply=apply,
            step=ball.step(quantum=None, blocks=True),
            deviation=float(ball.scale) * math.sqrt(self.dimension + 1) * self.radius / _STEPS,
        )


@value(eq=False)
class NoisyBlocks:
    """Class blocks with calibrated noise."""

    blocks: ClassBlocks
    apply: Callable[[IntegerArray, BitSource], IntegerArray]
    step: Step
    deviation: float
    """The standard deviation of the noise of a sum, in the unit of the scaled columns."""

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noisy number of rows of a class."""
        return self.deviation * _STEPS / self.blocks.constant / self.blocks.radius

    def ratio(self, expected_rows: int) -> float:
        """Return the noise of a class mean over √d, the distance of classes with d features."""
        blocks = self.blocks
        class_rows = max(1, expected_rows) / blocks.classes
        return self.deviation / class_rows / math.sqrt(blocks.columns)

    def release(
        self, rows: Rows, bits: BitSource, *, expected_rows: int, is_maximum: bool
    ) -> ClassSums:
        """Measure the sums, add noise, and estimate the numbers of rows.

        `is_maximum`: there are no more rows than `expected_rows`.
        """
        blocks = self.blocks
        noisy = self.apply(blocks.measure(rows), bits).astype(np.float64)
        table = noisy.reshape(blocks.classes, blocks.dimension)
        counts, total = _counts(
            table[:, 0] / blocks.constant,
            deviation=self.count_deviation,
            expected=max(1, expected_rows),
            is_maximum=is_maximum,
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
    """Noisy sums of the classes, in the unit of the scaled columns."""

    counts: Floats
    """Estimates of the numbers of rows, shrunk toward equal classes."""
    total: float
    """The estimated number of usable rows."""
    features: Floats
    squares: Floats
    deviation: float
    """The standard deviation of the noise of a sum."""
    radius: float = math.inf
    """The largest length of a row."""


def _counts(
    noisy: Floats, *, deviation: float, expected: int, is_maximum: bool
) -> tuple[Floats, float]:
    """Estimate the number of rows of each class, and of all, from noisy counts.

    Estimates are shrunk toward prior beliefs: most rows are usable, classes are about equally
    large, and none has less than about a third of its share.
    """
    classes, noisy_total = len(noisy), float(noisy.sum())
    # A prior of variance `prior` and an observation with this noise: the posterior mean moves from
    # the prior's mean toward the observation by the part prior/(prior + noise).
    prior = (_UNUSABLE * expected) ** 2
    total = expected + (noisy_total - expected) * prior / (prior + classes * deviation**2)
    total = max(min(total, expected) if is_maximum else total, expected / 4)
    average = total / classes
    prior = (_UNEQUAL * average) ** 2
    differences = noisy + (total - noisy_total) / classes - average
    counts = average + differences * prior / (prior + deviation**2)
    return np.maximum(counts, _SMALLEST_CLASS * average), total


def class_means(sums: ClassSums) -> tuple[Floats, float]:
    """Return the mean row of each class, shrunk toward the mean of all rows, and its noise.

    The mean squared difference between classes, less that of the noise, decides how far means are
    shrunk. They stay inside the bounds of rows. The second number is the mean square of the noise
    in a coordinate after shrinking.
    """
    counts, noise = sums.counts[:, None], (sums.deviation / sums.counts[:, None]) ** 2
    middle = np.clip(sums.features.sum(axis=0) / sums.total, -1.0, 1.0)
    differences = sums.features / counts - middle
    signal = max(0.0, float(np.mean(differences**2) - np.mean(noise)))
    weight = np.maximum(_SMALLEST_WEIGHT, signal / (signal + noise))
    means = np.clip(middle + weight * differences, -1.0, 1.0)
    remaining_noise = float((counts * weight * noise).sum() / sums.total)
    return in_ball(means, sums.radius), remaining_noise


def in_ball(rows: Floats, radius: float) -> Floats:
    """Project rows to the ball of this radius around 0."""
    if radius == math.inf:
        return rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(lengths, radius)))


def as_block(block: str) -> float:
    """Return the norm of a block by its name.

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


# -- Forecast the error of each classifier from public numbers; measured, not derived -------------
# The curves were fitted to runs on iris, wine, breast cancer and digits with other seeds than
# those of `bench/tables_classifiers.py`, which compares forecasts and results.

_HALF_LOST = 0.14
"""Noise over signal at which the excess error of class means is half of that of guessing."""

_FOREST_HALF_LOST = 2.3
"""√(nε) for each class at which the excess error of a forest is half of that of guessing."""

NOISELESS_ERROR = {
    "nearest centroid": 0.10,
    "nearest centroid, l2": 0.12,
    "forest": 0.2,
    "logistic": 0.06,
}
"""The error rate of a model without noise over that of guessing, on the data of the bench."""

_NOISE_VARIANCES = {
    "nearest centroid": lambda d: (d + 3) * (d + 4) / 3,
    # a ball of radius 0.4 √d clips more of the difference of classes the more features there are
    "nearest centroid, l2": lambda d: 0.4**2 * 1.09 * d * (d + 2) * (1 + d / 30),
}
"""The variance of the noise of a sum, in units of (2/ε)²."""


def means_error(name: str, *, epsilon: Fraction, n: int, dimension: int, classes: int) -> float:
    """Forecast the error rate of a classifier made of class statistics.

    >>> few, many = (
    ...     means_error("nearest centroid", epsilon=Fraction(1), n=n, dimension=4, classes=3)
    ...     for n in (10, 10_000)
    ... )
    >>> 0.6 < few < 2 / 3, many < 0.09
    (True, True)
    """
    deviation = 2 / float(epsilon) * math.sqrt(_NOISE_VARIANCES[name](dimension))
    ratio = deviation * classes / max(1, n) / math.sqrt(dimension)
    return _rate(name, ratio**2 / (ratio**2 + _HALF_LOST**2), classes)


def forest_error(*, epsilon: Fraction, n: int, classes: int) -> float:
    """Forecast the error rate of a forest.

    >>> round(forest_error(epsilon=Fraction(1), n=10_000, classes=2), 2)
    0.1
    """
    information = math.sqrt(max(1, n) * float(epsilon)) / classes
    return _rate("forest", 1 / (1 + (information / _FOREST_HALF_LOST) ** 2), classes)


def compare_classifiers(
    *, epsilon: Rational, n: int, dimension: int, classes: int
) -> tuple[Method, ...]:
    """Return all classifiers with their expected error rates, best first.

    >>> compare_classifiers(epsilon=1, n=1257, dimension=64, classes=10)[0].name
    'nearest centroid'
    """
    exact, rows = as_usable_epsilon(epsilon), as_count(n, "n", minimum=1)
    d = as_count(dimension, "dimension", minimum=1)
    count = as_count(classes, "classes", minimum=2)
    excess, blind_excess = (  # the log loss of a fit to n rows, and to one: nothing learned
        next(
            method.error
            for method in classifier_methods(epsilon=exact, n=size, dimension=d, classes=count)
            if method.name == "objective"
        )
        for size in (rows, 1)
    )
    lost = min(1.0, excess / blind_excess) ** 2  # the error rate rises later than the log loss
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
            error=_rate("logistic", lost, count),
            spends="ε on the objective",
            why="LogisticRegression: the best line of all, where there are enough rows",
        ),
    )


def _rate(name: str, lost: float, classes: int) -> float:
    """Return an error rate between that without noise (`lost` = 0) and guessing (1)."""
    noiseless = NOISELESS_ERROR[name]
    return (1 - 1 / classes) * (noiseless + (1 - noiseless) * lost)


# -- Classify by the nearest class mean (theory G2) -----------------------------------------------
# Tuned, as are the temperatures, on the data of `bench/tables_classifiers.py`.

_VARIANCE = 0.12
"""The expected variance within a class of features in [-1, 1]."""

_VARIANCE_PRIOR = 0.1**2
"""The mean squared error of that expectation."""

_VARIANCE_FLOOR = 0.02
"""The smallest estimate of that variance, unless noise is far below it."""

_BALL_VARIANCE = 0.15
"""The expected variance within a class of rows in a ball, whose squares are not summed."""

_SIGNIFICANT = 4.0
"""An estimated variance of this many standard deviations of its noise may be below the floor."""

_RESOLUTION = 2.0**-18
"""The smallest variance that the rounding of squares leaves visible."""

_LARGEST_PRIOR_NOISE = 0.1
"""The largest noise of a count, as a part of an average class, at which counts become priors."""


@published
@value(eq=False)
class ClassModel:
    """A mean, a variance and a prior probability for each class, of columns scaled to [-1, 1]."""

    means: Floats
    """Of shape (classes, columns)."""
    variances: Floats
    """Of shape (classes, columns), or (1, 1) if equal; that one includes the noise of the means."""
    priors: Floats
    """Prior probabilities, equal ones where noise hides the numbers of rows."""
    temperature: float
    """The divisor of scores before they become probabilities, computed from public numbers."""
    bounds: ColumnBounds
    classes: tuple[Any, ...] = ()
    radius: float = math.inf
    """The radius of the ball to which scaled rows are projected."""

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
    """Ask for the mean row of each class."""

    bounds: ColumnBounds
    classes: tuple[Any, ...]
    block: str = "max"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Calibrate noise for each class's sums, and plan the model of class means."""
        norm = as_block(self.block)
        ball = norm == 2
        name = "nearest centroid" + ", l2" * ball
        blocks = ClassBlocks(bounds=self.bounds, classes=len(self.classes), norm=norm)
        noisy_blocks = blocks.noise(as_usable_epsilon(epsilon), facts.neighbors)
        expected = facts.planned_rows
        ratio = noisy_blocks.ratio(expected)
        # tuned on the data of `bench/tables_classifiers.py`
        temperature = 1 + (ratio / 0.4) ** 2 if ball else 3 * (1 + (ratio / 0.2) ** 2)

        def model(sums: ClassSums) -> ClassModel:
            """Return the centroid model: class means, one variance, and class frequencies."""
            means, means_noise = class_means(sums)
            variance = _BALL_VARIANCE
            if not ball:
                # the mean square of all rows, less the mean square of the class means
                within = (sums.squares.sum() / sums.total + 1) / 2 - float(
                    sums.counts @ (means**2).mean(axis=1) / sums.total
                )
                noise = len(means) * (sums.deviation / sums.total) ** 2 / 4
                shrunk = _VARIANCE + (within - _VARIANCE) * _variance_weight(noise)
                variance = max(_smallest_variance(noise), shrunk)
            return ClassModel(
                means=means,
                variances=np.full((1, 1), variance + means_noise),
                priors=_priors(sums, noisy_blocks, expected),
                temperature=temperature,
                bounds=self.bounds,
                classes=self.classes,
                radius=blocks.radius if ball else math.inf,
            )

        return _plan(name, noisy_blocks, model, facts, epsilon)


def _plan(
    name: str,
    noise: NoisyBlocks,
    model: Callable[[ClassSums], ClassModel],
    facts: Facts,
    epsilon: Rational,
) -> ReleasePlan[Rows]:
    """Return the plan that publishes the `model` of noisy class sums."""
    exact, expected, public = as_usable_epsilon(epsilon), facts.planned_rows, facts.rows is not None
    blocks = noise.blocks
    error = means_error(
        name, epsilon=exact, n=expected, dimension=blocks.columns, classes=blocks.classes
    )

    def answer(rows: Rows, bits: BitSource) -> ClassModel:
        return model(noise.release(rows, bits, expected_rows=expected, is_maximum=public))

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
    """Return noisy class frequencies, or equal ones where public numbers forecast much noise."""
    classes = len(sums.counts)
    if noise.count_deviation >= _LARGEST_PRIOR_NOISE * expected / classes:
        return np.full(classes, 1 / classes)
    return np.asarray(sums.counts / sums.counts.sum())


def _variance_weight(noise: float) -> float:
    """Return the weight of a measured variance against `_VARIANCE`; `noise` is a mean square."""
    return _VARIANCE_PRIOR / (_VARIANCE_PRIOR + noise)


def _smallest_variance(noise: float) -> float:
    """Return the floor of a variance estimate whose noise has this mean square.

    In bounds much wider than the rows all variances are small, and a fixed floor above them would
    let the prior probabilities decide every prediction: so little noise lowers the floor. It stays
    above the estimate's standard deviation, since a variance that is small by the noise alone makes
    wrong predictions with high confidence.
    """
    deviation = math.sqrt(noise)
    floor = min(_VARIANCE_FLOOR, max(_SIGNIFICANT * deviation, _RESOLUTION))
    return max(floor, deviation * math.sqrt(_variance_weight(noise)))


def fit_classes(
    question: Question,
    rows: Any,
    labels: Any,
    *,
    classes: tuple[Any, ...],
    epsilon: Fraction,
    diagnostics: Rational | None = None,
) -> Release:
    """Release a model of labeled rows: arrays, frames, or two selections of one data set."""
    encode = Encoding.of(rows.kinds) if isinstance(rows, Dataset) else None
    source = LabeledRows(rows, labels, read=ClassLabels(classes), encode=encode)
    diagnosis = as_diagnosis(diagnostics, source.declared)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis, facts=source.facts)
