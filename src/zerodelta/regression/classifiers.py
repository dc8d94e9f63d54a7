"""Linear classifiers: noise in the objective, or a descent on internal answers (theory C9, C1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.data.source import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.parameters import as_flag
from zerodelta.privacy.release import Release
from zerodelta.regression.certified_losses import BalancedLogistic, CertifiedLoss, Softmax
from zerodelta.regression.expected import LOG_ODDS, Expected, limited, temperature
from zerodelta.regression.labeled_rows import ClassLabels, Features, LabeledRows, as_classes
from zerodelta.regression.objective_plan import (
    RegressionPlan,
    plan_logistic,
    plan_multinomial,
    softmax_curvature,
)
from zerodelta.spaces import Ball
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.study.study import Study
from zerodelta.training.losses import Logistic, Loss, Multinomial

__all__ = [
    "ClassifierQuestion",
    "descent_temperature",
    "fit_logistic",
    "fit_multinomial",
    "logistic_methods",
    "multinomial_methods",
]

_STEPS = 100
_LENGTH = 3
"""A descent looks for coefficients of rows of length 1 up to so many times the root of their
number."""


def fit_logistic(
    rows: Any,
    labels: Any,
    *,
    epsilon: Rational,
    data_norm: Rational | None = None,
    classes: Sequence[Any] | None = None,
    intercept: bool = True,
    bits: BitSource | None = None,
) -> Release:
    """Fit a classifier for two classes by private logistic regression.

    Parameters
    ----------
    rows : array, list of rows or data frame
        Longer rows are clipped to `data_norm`; one with a missing cell counts as the zero row.
    labels : array, list or series
        Where one is no class its row counts as the zero row.
    epsilon : number
        The privacy parameter of this release.
    data_norm : number
        A public bound on the l2 norm of a row.
    classes : sequence of labels
        All that can occur; public.
    intercept : bool
        Whether scores at the origin may differ from 0.
    bits : BitSource, optional
        For tests; by default the operating system's.

    Returns
    -------
    Release
        Of a `LinearModel` with one line of coefficients, positive for the second class.

    Notes
    -----
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: pure ε-DP (theorems C9 and N): the minimizer of the balanced logistic loss with
    K-norm noise in the objective, computed with a certified error bound. Running time is not
    covered.
    **Error**: the expected excess of the mean loss if rows were spread evenly; the true one
    depends on unseen data.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> release = fit_logistic(rows, rows[:, 0] > 0, epsilon=4, data_norm=1, classes=[False, True])
    >>> release.value.decision([[0.7, 0], [-0.7, 0]])[:, 0] > 0
    array([ True, False])

    """
    known = as_classes(classes)
    few = len(known) == 2
    require(few, "classes", classes, expected="two labels", remedy="use fit_multinomial for more")
    return ClassifierQuestion(
        classes=known, data_norm=data_norm, intercept=intercept, method="objective"
    ).release(rows, labels, epsilon=epsilon, bits=bits)


def fit_multinomial(
    rows: Any,
    labels: Any,
    *,
    epsilon: Rational,
    data_norm: Rational | None = None,
    classes: Sequence[Any] | None = None,
    intercept: bool = True,
    bits: BitSource | None = None,
) -> Release:
    """Fit a classifier for several classes by private softmax regression, all classes jointly.

    Parameters, neighbors, guarantee and error are those of `fit_logistic`; the `LinearModel` has
    one line of coefficients for each class.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> labels = np.digitize(rows[:, 0], [-0.2, 0.2])
    >>> release = fit_multinomial(rows, labels, epsilon=4, data_norm=1, classes=[0, 1, 2])
    >>> release.value.decision([[-0.7, 0], [0.7, 0]]).argmax(axis=1)
    array([0, 2])
    """
    return ClassifierQuestion(
        classes=as_classes(classes),
        data_norm=data_norm,
        intercept=intercept,
        method="objective",
        softmax=True,
    ).release(rows, labels, epsilon=epsilon, bits=bits)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierQuestion:
    """A linear classifier is asked for public classes and rows of bounded length.

    `softmax`: whether two classes are told apart by two lines, as more of them always are.
    """

    classes: tuple[Any, ...]
    data_norm: Rational | None
    intercept: bool = True
    method: str = "auto"
    softmax: bool = False

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan noise in the objective; the label's class is the last column."""
        return self._plan(facts, *self._weighed(facts, epsilon))

    def release(
        self, rows: Any, labels: Any, *, epsilon: Rational, bits: BitSource | None = None
    ) -> Release:
        """Plan, and run the plan on these rows."""
        source = LabeledRows(rows, labels, read=ClassLabels(self.classes))
        plan, methods = self._weighed(source.facts, epsilon)
        chosen = choose(methods, self.method)
        if chosen.name == "descent":
            return self._descend(rows, labels, plan, chosen.error, bits)
        return run(self._plan(source.facts, plan, methods), source, bits=bits)

    def _features(self, columns: int) -> Features:
        return Features.of(columns, self.data_norm, self.intercept)

    def _weighed(
        self, facts: Facts, epsilon: Rational
    ) -> tuple[RegressionPlan, tuple[Method, ...]]:
        """Return the plan of noise in the objective, and the methods that were weighed."""
        shape: dict[str, Any] = {"rows": facts.planned_rows, "dimension": facts.width - 1}
        shape |= {"epsilon": epsilon, "intercept": self.intercept}
        self._features(facts.width - 1)  # refuses what is malformed
        plan = (
            plan_multinomial(**shape, classes=len(self.classes))
            if self.softmax or len(self.classes) > 2
            else plan_logistic(**shape)
        )
        return plan, _methods(plan, LOG_ODDS, classes=len(self.classes))

    def _plan(
        self, facts: Facts, plan: RegressionPlan, methods: tuple[Method, ...]
    ) -> ReleasePlan[Rows]:
        features, classes = self._features(facts.width - 1), self.classes
        softmax = self.softmax or len(classes) > 2

        def answer(rows: Rows, bits: BitSource) -> Any:
            integers, places = features.integers(rows, signed=not softmax)
            loss: CertifiedLoss
            if softmax:
                labels = places.astype(np.int64)
                loss = Softmax(outputs=len(classes), labels=labels, shift=plan.shift)
            else:
                loss = BalancedLogistic(roundness=plan.roundness, shift=plan.shift)
            theta = plan.publish(integers, loss, bits)
            return features.model(theta, classes=classes, temperature=plan.temperature)

        return ReleasePlan(
            claim=plan.claim,
            steps=plan.steps,
            answer=answer,
            error=plan.predicted_error,
            methods=methods,
            public=("the number of rows", "the number of features", "data_norm", "the classes"),
            row="one row: all of its features and its label",
        )

    def _descend(
        self, rows: Any, labels: Any, plan: RegressionPlan, error: float, bits: BitSource | None
    ) -> Release:
        """Let a study plan the descent and take the ticket."""
        read, n = ClassLabels(self.classes), plan.rows
        features = self._features(plan.columns - as_flag(self.intercept, "intercept"))
        outputs = 1 if len(self.classes) == 2 else len(self.classes)
        loss: Loss = Logistic() if outputs == 1 else Multinomial(classes=tuple(range(outputs)))
        size = plan.columns * outputs
        study = Study(
            LabeledRows(rows, labels, read=read, prepare=features, width=features.width),
            epsilon=plan.epsilon,
            publish=Ball(size, _LENGTH * (math.isqrt(size) + 1)),
            rounds=_STEPS,
            functions=False,
            bits=bits,
        )
        release = study.minimize(loss, data_norm=1)
        divisor = descent_temperature(
            epsilon=plan.epsilon, n=n, columns=plan.columns, classes=len(self.classes)
        )
        theta = release.value.reshape(plan.columns, outputs)
        model = features.model(theta, classes=self.classes, temperature=divisor)
        return replace(release, value=model, error=error)


def logistic_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods to fit a classifier for two classes, best first.

    Errors are expected excesses of the mean logistic loss, for rows and a signal as in `Expected`.

    >>> [m.name for m in logistic_methods(epsilon=1, n=10_000, dimension=10)]
    ['objective', 'descent']
    """
    expected = LOG_ODDS.given(row_length=row_length, signal=signal)
    plan = plan_logistic(
        rows=n, dimension=dimension, epsilon=epsilon, intercept=intercept, expected=expected
    )
    return _methods(plan, expected, classes=2)


def multinomial_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    classes: int,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods to fit a classifier for several classes, best first.

    >>> multinomial_methods(epsilon=1, n=10_000, dimension=10, classes=3)[0].name
    'objective'
    """
    expected = LOG_ODDS.given(row_length=row_length, signal=signal)
    plan = plan_multinomial(
        rows=n,
        dimension=dimension,
        classes=classes,
        epsilon=epsilon,
        intercept=intercept,
        expected=expected,
    )
    return _methods(plan, expected, classes=classes)


def descent_temperature(*, epsilon: Rational, n: int, columns: int, classes: int) -> float:
    """Return what the scores of a descent are divided by before they are probabilities.

    The noise of a coordinate is held below 1.4 by a shorter path: `Study.minimize` keeps it to a
    part of the ball's radius. Of several classes the one with the largest noise decides the loss,
    and the path is shared among all: the divisor grows with their number (fitted to small real
    data, see `bench/defaults_classifiers.py`).
    """
    noise = _descent_noise(as_positive(epsilon, "epsilon"), n, columns * (classes - 1))
    held = min(noise, 1.4)
    return temperature(
        noise=held**2 * (1 if classes == 2 else classes**2 / 2) * (LOG_ODDS.spread + 0.2),
        informed=2 * _STEPS * held / noise / held**2,
    )


def _methods(plan: RegressionPlan, expected: Expected, *, classes: int) -> tuple[Method, ...]:
    outputs, columns = classes - 1, plan.columns
    descent = _descent(plan, expected, classes)
    part = float(2 * plan.channel.error / plan.channel.scale / plan.epsilon)
    return ranked(
        Method(
            name="objective",
            error=plan.predicted_error,
            spends=f"ε on the objective, {part:.2%} of it on numerical error",
            why=f"one draw of noise for {columns * outputs} coefficients, none on the way there",
        ),
        Method(
            name="descent",
            error=limited(descent, 2 * math.log(classes)),
            spends=f"ε on a lattice of {columns * outputs} dimensions, {_STEPS} internal gradients",
            why="Study.minimize: every step adds noise; pays for losses that are not convex",
        ),
    )


def _descent(plan: RegressionPlan, expected: Expected, classes: int) -> float:
    """Forecast: noise 2RT/(√3 n μ) a coordinate, and what so few steps leave undone.

    Steps have length 4, what the curvature of at most 1/4 allows, and shrink to 0.
    """
    outputs, columns = classes - 1, plan.columns
    curvature = softmax_curvature(classes, expected) if outputs > 1 else expected.curvature
    size = columns * outputs
    noise = _descent_noise(plan.epsilon, plan.rows, size)
    pull = curvature * expected.spread / columns
    left = min(1.0, 1.5 / (4 * pull * _STEPS))
    behind = 2 * curvature * outputs * math.exp(-4 * pull * _STEPS)
    return pull / 2 * size * noise**2 * left + behind


def _descent_noise(epsilon: Fraction, n: int, size: int) -> float:
    """Return the noise of a coordinate if all steps have their full length."""
    mu = float(epsilon) / math.sqrt(2 * (size * math.log(max(n, 2)) + 7))
    return 2 * 4 * _STEPS / (math.sqrt(3) * max(1, n) * mu)
