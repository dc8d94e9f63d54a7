"""Fit linear classifiers by noise in the objective, or by a private descent (theory C9, C1)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.regression.certified_losses import BalancedLogistic, CertifiedLoss, Softmax
from zerodelta.regression.encoded_columns import (
    ColumnBounds,
    Encoding,
    RowBox,
    as_radius,
)
from zerodelta.regression.features import Features, LongRows
from zerodelta.regression.objective import (
    LOG_ODDS,
    Expected,
    RegressionPlan,
    Shape,
    limited,
    plan_logistic,
    plan_multinomial,
    softmax_curvature,
    temperature,
)
from zerodelta.regression.rows import ClassLabels, LabeledRows
from zerodelta.spaces import Ball
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.spine.run import plan_diagnosis, planned, post_processed, run
from zerodelta.spine.verbs import inside_same_release
from zerodelta.study.study import Study
from zerodelta.training.losses import Logistic, Loss, Multinomial
from zerodelta.value import value

_DESCENT_STEPS = 100
_DESCENT_RADIUS = 3
"""The radius of the ball in which a descent searches, over the root of the number of coefficients.
Both were chosen by hand; no script fits them."""


@value
class ClassifierQuestion:
    """Ask for a `LinearModel` of public classes, for rows of bounded length.

    `softmax`: whether two classes have one line each, as three or more always have.

    **Neighbors**: replace-one, where the number of rows is public, or one unit of the data set.
    **Guarantee**: pure ε-DP (theorems C9 and N): the minimizer of the balanced logistic or softmax
    loss with K-norm noise in the objective, computed with a certified error bound. Time is not
    covered.
    **Public**: ε, `data_norm`, `classes`, the shape of the data. Longer rows are clipped; a row
    with a missing cell, or whose label is not a class, is the zero row.
    **Error**: the expected excess of the mean log loss over that of the best line, for a moderate
    signal. Rows of an array are assumed to be spread evenly within `data_norm`; rows of a data set
    in a corner of their bounds, where clipping does most harm: the last quarter of each column's
    bounds (`RowBox`). The true excess depends on unseen data.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> question = ClassifierQuestion(classes=(False, True), data_norm=1)
    >>> model = question.release(rows, rows[:, 0] > 0, epsilon=4).value
    >>> model.decision([[0.7, 0], [-0.7, 0]])[:, 0] > 0
    array([ True, False])
    """

    classes: tuple[Any, ...]
    data_norm: Rational | None = None
    intercept: bool = True
    method: str = "auto"
    softmax: bool = False
    encoding: Encoding | None = None
    """The map from columns of a data set to features; None for an array or a frame."""
    bounds: ColumnBounds | None = None
    """Bounds that the columns of an array or a frame are scaled by. With them, or with an encoding,
    `data_norm` bounds scaled rows; its default is chosen by forecasts (`RowBox.best`)."""
    radius: Rational | None = None
    """Instead of `data_norm`: the largest length of scaled rows, as a part of a corner's."""

    def __post_init__(self) -> None:
        require(
            self.radius is None or (self.data_norm is None and self._box is not None),
            "radius",
            self.radius,
            expected="None where data_norm is passed, or bounds are unknown",
            remedy="pass radius= without data_norm=, and with bounds= unless the rows are a data "
            "set, which declares them",
        )

    @property
    def outputs(self) -> int:
        """The number of lines of the model."""
        return len(self.classes) if self.softmax or len(self.classes) > 2 else 1

    @property
    def _box(self) -> RowBox | None:
        """The public box of scaled rows; None where only `data_norm` is known."""
        if self.encoding is not None:
            return self.encoding.box
        return None if self.bounds is None else self.bounds.box

    def with_data_norm(self, facts: Facts, epsilon: Rational) -> ClassifierQuestion:
        """Return the question with a `data_norm`: the user's, or the one with the best forecast."""
        box = self._box
        if box is None or self.data_norm is not None:
            return self
        if self.radius is not None:
            norm = box.reach(as_radius(self.radius))
        else:
            shape = self._shape(facts, epsilon)

            def error(norm: float) -> float:
                expected = box.expected(norm, LOG_ODDS)
                return self._objective(replace(shape, expected=expected)).predicted_error

            norm = box.best(error, blind=self._objective(shape).blind_error)
        return replace(self, data_norm=norm, radius=None)

    def _shape(self, facts: Facts, epsilon: Rational) -> Shape:
        """Return the public numbers of the regression."""
        return Shape.of(
            rows=facts.planned_rows,
            dimension=facts.width - 1,
            epsilon=epsilon,
            intercept=self.intercept,
        )

    def _objective(self, shape: Shape) -> RegressionPlan:
        """Plan noise in the objective of the logistic or the softmax loss."""
        several = self.outputs > 1
        return plan_multinomial(shape, classes=self.outputs) if several else plan_logistic(shape)

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose noise in the objective, or a descent in a study, by forecast.

        The plan of a descent has no steps: its study plans them. An unusable row is the zero row,
        so the number of rows is a public parameter of the plan.
        """
        facts.only_replaced()
        if self._box is not None and self.data_norm is None:
            return self.with_data_norm(facts, epsilon).plan(facts, epsilon)
        features = self.features(facts.width - 1)
        shape, classes, outputs = self._shape(facts, epsilon), self.classes, self.outputs
        plan = self._objective(shape)
        methods = self._applicable(self._forecast(shape, plan), facts, features)
        chosen = choose(methods, self.method)

        def answer(rows: Rows, bits: BitSource) -> Any:
            """Quantize the rows, publish a noisy minimum of the loss, and return the model."""
            integers, places = features.integers(rows, signed=outputs == 1)
            loss: CertifiedLoss
            if outputs == 1:
                loss = BalancedLogistic(roundness=plan.roundness, shift=plan.shift)
            else:
                loss = Softmax(outputs=outputs, labels=places.astype(np.int64), shift=plan.shift)
            theta = plan.publish(integers, loss, bits)
            return features.model(
                theta, encoding=self.encoding, classes=classes, temperature=plan.temperature
            )

        return ReleasePlan(
            claim=plan.claim,
            steps=plan.steps if chosen.name == "objective" else (),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=(
                *(*facts.counted, "the number of features", "data_norm", "the classes"),
                *([] if self.bounds is None else ["bounds on the features"]),
            ),
            row="one row: all of its features and its label",
        )

    def features(self, columns: int) -> Features:
        """Return the map from rows with this number of columns to integers."""
        return Features.of(columns, self.data_norm, self.intercept, bounds=self.bounds)

    def _forecast(self, shape: Shape, plan: RegressionPlan) -> tuple[Method, ...]:
        """Return the methods with forecasts; within known bounds, those of rows in a corner."""
        box, classes = self._box, len(self.classes)
        if box is None:
            return _methods(plan, LOG_ODDS, classes=classes)
        norm = float(self.features(shape.dimension).data_norm)
        expected = box.expected(norm, LOG_ODDS)
        methods = _methods(
            self._objective(replace(shape, expected=expected)), expected, classes=classes
        )
        return ranked(
            *(
                replace(m, error=box.worst(norm, error=m.error, blind=plan.blind_error))
                for m in methods
            )
        )

    def _applicable(
        self, methods: tuple[Method, ...], facts: Facts, features: Features
    ) -> tuple[Method, ...]:
        """Return the applicable methods; refuse "objective" by name if rows exceed the memory."""
        large = self.encoding is not None and facts.too_large(
            features.width, self.method, in_memory="objective", other="descent"
        )
        return tuple(m for m in methods if not (large and m.name == "objective"))

    def release(
        self,
        rows: Any,
        labels: Any,
        *,
        epsilon: Rational,
        diagnostics: Rational | None = None,
    ) -> Release:
        """Plan and run the fit; a plan without steps means descent in a study instead."""
        read, encode = ClassLabels(self.classes), self.encoding
        source = LabeledRows(rows, labels, read=read, encode=encode)
        row_epsilon = as_usable_epsilon(epsilon) / source.protection.max_rows
        question = self.with_data_norm(source.facts, row_epsilon)
        features = question.features(len(source.columns) - 1)
        diagnosis = as_diagnosis(
            diagnostics, source.declared, beyond=LongRows(encode=encode, features=features)
        )
        plan = planned(question, source, epsilon, facts=source.facts, diagnosis=diagnosis)
        if plan.steps:
            return run(plan, source, diagnosis=plan_diagnosis(diagnosis, epsilon))
        width, outputs = features.width, self.outputs
        loss: Loss = Logistic() if outputs == 1 else Multinomial(classes=tuple(range(outputs)))
        study = inside_same_release(Study)(
            LabeledRows(rows, labels, read=read, encode=encode, prepare=features, width=width),
            epsilon=epsilon,
            publish=Ball(width * outputs, _DESCENT_RADIUS * (math.isqrt(width * outputs) + 1)),
            rounds=_DESCENT_STEPS,
            functions=False,
            diagnostics=diagnosis,
        )
        release = study.minimize(loss, data_norm=1)
        row_epsilon = study.plan.epsilon / study.plan.max_rows
        divisor = descent_temperature(
            epsilon=row_epsilon, n=source.rows, columns=width, classes=len(self.classes)
        )
        theta = release.value.reshape(width, outputs)
        model = features.model(theta, encoding=encode, classes=self.classes, temperature=divisor)
        error = choose(plan.methods, self.method).error
        return post_processed(release, value=model, error=error)


def classifier_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    classes: int | None = None,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods to fit a classifier, best first: softmax, or logistic for two classes.

    Errors are expected excesses of the mean loss, for rows and a signal as in `Expected`.

    >>> [m.name for m in classifier_methods(epsilon=1, n=10_000, dimension=10)]
    ['objective', 'descent']
    """
    expected = LOG_ODDS.updated(row_length=row_length, signal=signal)
    shape = Shape.of(
        rows=n, dimension=dimension, epsilon=epsilon, intercept=intercept, expected=expected
    )
    count = 2 if classes is None else classes
    plan = plan_logistic(shape) if count == 2 else plan_multinomial(shape, classes=count)
    return _methods(plan, expected, classes=count)


def descent_temperature(*, epsilon: Rational, n: int, columns: int, classes: int) -> float:
    """Return the divisor of the scores of a descent before they become probabilities.

    `Study.minimize` shortens its steps so that the noise of a coordinate stays below a part of the
    ball's radius, here 1.4. With several classes the one with the largest noise decides the loss,
    and all share the path, so the divisor grows with their number. The constants were fitted to the
    small real data sets of `bench/defaults_classifiers.py`.
    """
    noise = _descent_noise(as_positive(epsilon, "epsilon"), n, columns * (classes - 1))
    limited_noise = min(noise, 1.4)
    return temperature(
        noise=limited_noise**2 * (1 if classes == 2 else classes**2 / 2) * (LOG_ODDS.spread + 0.2),
        informed=2 * _DESCENT_STEPS * limited_noise / noise / limited_noise**2,
    )


def _methods(plan: RegressionPlan, expected: Expected, *, classes: int) -> tuple[Method, ...]:
    """Return both methods with forecasts, those of `plan` and of a descent."""
    outputs, columns = classes - 1, plan.columns
    descent = _descent_error(plan, expected, classes)
    numerical_share = float(2 * plan.channel.error / plan.channel.scale / plan.epsilon)
    return ranked(
        Method(
            name="objective",
            error=plan.predicted_error,
            spends=f"ε on the objective, {numerical_share:.2%} of it on numerical error",
            why=f"one draw of noise for {columns * outputs} coefficients, none on the way there",
        ),
        Method(
            name="descent",
            error=limited(descent, 2 * math.log(classes)),
            spends=f"ε on a lattice of {columns * outputs} dimensions, {_DESCENT_STEPS} internal "
            "gradients",
            why="Study.minimize: every step adds noise; pays for losses that are not convex",
        ),
    )


def _descent_error(plan: RegressionPlan, expected: Expected, classes: int) -> float:
    """Forecast the excess loss of a descent: its noise, and the distance it does not cover.

    Each coordinate has noise 2RT/(√3 n μ). Steps start with length R = 4, which a curvature of at
    most 1/4 allows, and shrink to 0.
    """
    outputs, columns = classes - 1, plan.columns
    curvature = softmax_curvature(classes, expected) if outputs > 1 else expected.curvature
    size = columns * outputs
    noise = _descent_noise(plan.epsilon, plan.rows, size)
    pull = curvature * expected.spread / columns
    # later steps pull earlier noise toward the minimizer, so that only a part of it remains
    remaining = min(1.0, 1.5 / (4 * pull * _DESCENT_STEPS))
    undone = 2 * curvature * outputs * math.exp(-4 * pull * _DESCENT_STEPS)
    return pull / 2 * size * noise**2 * remaining + undone


def _descent_noise(epsilon: Fraction, n: int, size: int) -> float:
    """Return the noise of a coordinate if all steps have their full length."""
    # about the Gaussian budget μ that purification to ε leaves for a lattice of `size` dimensions
    mu = float(epsilon) / math.sqrt(2 * (size * math.log(max(n, 2)) + 7))
    return 2 * 4 * _DESCENT_STEPS / (math.sqrt(3) * max(1, n) * mu)
