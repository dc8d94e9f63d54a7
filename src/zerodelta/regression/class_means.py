"""Classifiers made of class statistics: nearest mean and naive Bayes (theory G2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.regression.class_blocks import (
    ClassBlocks,
    ClassSums,
    NoisyBlocks,
    Squares,
    as_block,
    class_means,
    in_ball,
)
from zerodelta.regression.classifier_forecast import means_error
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.label_values import ClassLabels
from zerodelta.regression.labeled_rows import LabeledRows
from zerodelta.spine.facts import Facts, Question
from zerodelta.spine.methods import Method
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.value import value

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

_OWN_VARIANCE = 0.1
"""Classes have variances of their own where noise is below this part of them."""


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
        noise = _noise(self, "none" if ball else "mean", norm, facts, epsilon)
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
                radius=noise.blocks.radius if ball else math.inf,
            )

        return _plan(name, noise, model, facts, epsilon)


@value(eq=False)
class BayesQuestion:
    """The mean and the variance of each feature in each class are asked for."""

    bounds: ColumnBounds
    classes: tuple[Any, ...]

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Calibrate one block of noise for each class."""
        noise = _noise(self, "each", math.inf, facts, epsilon)
        expected = facts.planned_rows

        def model(sums: ClassSums) -> ClassModel:
            means, _ = class_means(sums)
            return ClassModel(
                means=means,
                variances=_variances(sums, means),
                priors=_priors(sums, noise, expected),
                temperature=6 * (1 + (noise.ratio(expected) / 0.05) ** 2),
                bounds=self.bounds,
                classes=self.classes,
            )

        return _plan("naive Bayes", noise, model, facts, epsilon)


def _noise(
    question: CentroidQuestion | BayesQuestion,
    squares: Squares,
    norm: float,
    facts: Facts,
    epsilon: Rational,
) -> NoisyBlocks:
    blocks = ClassBlocks(
        bounds=question.bounds, classes=len(question.classes), squares=squares, norm=norm
    )
    return blocks.noise(as_usable_epsilon(epsilon), facts.neighbors)


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


def _variances(sums: ClassSums, means: Floats) -> Floats:
    """Return the variances of the features in each class, as alike as noise asks for.

    Where noise is large all features have one, then all classes share those of the features.
    """
    counts, total = sums.counts[:, None], sums.total
    noise = len(means) * (sums.deviation / total) ** 2 / 4
    shared = (sums.squares.sum(axis=0) / total + 1) / 2 - (counts * means**2).sum(axis=0) / total
    middle = float(shared.mean())
    # noise in the means lowers it, too
    average = min(1.0, max(_least(noise), _VARIANCE + (middle - _VARIANCE) * _trust(noise)))
    spread = max(0.0, float(shared.var()) - noise)
    apart = (shared - middle) * (spread / (spread + noise))
    least = min(max(average / 4, min(average, math.sqrt(noise))), _BELIEVED * math.sqrt(noise))
    shared = np.clip(average + apart, least, 1.0)
    own = (sums.squares / counts + 1) / 2 - means**2
    doubt = (sums.deviation / counts) ** 2 / 4
    weight = shared**2 / (shared**2 + doubt / _OWN_VARIANCE**2)
    return np.asarray(np.clip(shared + weight * (own - shared), shared / 4, 4 * shared))


def fit_classes(
    question: Question,
    rows: Any,
    labels: Any,
    *,
    classes: tuple[Any, ...],
    epsilon: Fraction,
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
) -> Release:
    """Ask for a model of labeled rows: arrays, frames, or two selections of one data set."""
    encode = Encoding.of(rows.kinds) if isinstance(rows, Dataset) else None
    source = LabeledRows(rows, labels, read=ClassLabels(classes), encode=encode)
    beside = diagnosis(diagnostics, source.declared)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside, facts=source.facts)
