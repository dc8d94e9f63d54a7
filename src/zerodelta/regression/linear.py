"""Fit a linear regression by the method with the smallest predicted error (theory C9, C10.5).

Rows become integers and targets numbers in [-1, 1] first, so that both methods see the same bounded
rows. Forecasts of squared errors are for these scaled targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from zerodelta.data.rows import Rows
from zerodelta.errors import is_name
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.regression.certified_losses import STEPS, PseudoHuber
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.features import Features, LongRows
from zerodelta.regression.objective import TARGETS, Shape, plan_huber
from zerodelta.regression.rows import LabeledRows, Targets, declared_bounds, unit_encoding
from zerodelta.regression.statistics import LENGTH, plan_statistics
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.spine.run import plan_diagnosis, planned, run
from zerodelta.value import value

_ELSEWHERE = {
    "adassp": "zerodelta.paper.lattice_adassp",
    "descent": "zerodelta.Study(...).minimize",
}


@value
class LinearQuestion:
    """Ask for a `LinearModel` with one line, for rows of bounded length and bounded targets.

    `method`: "huber" (noise in the objective of the pseudo-Huber loss), "statistics" (matrix
    Laplace or K-norm noise on XᵀX and Xᵀy), or "auto", the one with the smaller predicted error.
    `zerodelta.paper` has regression by purified Gaussian statistics, `lattice_adassp`.

    **Neighbors**: replace-one, where the number of rows is public, or one unit of the data set.
    **Guarantee**: pure ε-DP, proven (theorems C9 and N; C10.5 or W2).
    **Public**: ε, `data_norm`, `bounds_y`, the shape of the data. Longer rows and larger targets
    are clipped; a row with a missing cell, or a non-numeric target, is the zero row.
    **Error**: the expected excess of the mean squared error. For a data set rows are assumed to
    fill a quarter of each column's bounds, else to fill `data_norm` evenly. The true excess depends
    on unseen data; shorter rows have 10 times as much or more.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(20_000, 2))
    >>> targets = 3 * rows[:, 0] + 1
    >>> question = LinearQuestion.of(rows, targets, data_norm=1, bounds_y=(-2, 4))
    >>> model = question.release(rows, targets, epsilon=4).value
    >>> model.decision([[0.7, 0], [-0.7, 0]])[:, 0].round(1)
    array([ 3.1, -1.1])
    """

    data_norm: Rational | None
    bounds_y: tuple[Rational, Rational] | None
    intercept: bool = True
    method: str = "auto"
    encoding: Encoding | None = None
    """The map from columns of a data set to features; None for an array or a frame."""

    @staticmethod
    def of(
        rows: Any,
        targets: Any,
        *,
        data_norm: Rational | None = None,
        bounds_y: tuple[Rational, Rational] | None = None,
        intercept: bool = True,
        method: str = "auto",
    ) -> LinearQuestion:
        """Return the question; bounds that are not passed are those that a data set declares."""
        encoding = unit_encoding(rows, intercept)
        if encoding is not None:
            declared = declared_bounds(targets)
            bounds_y = declared if bounds_y is None else bounds_y
            data_norm = encoding.box.corner if data_norm is None else data_norm
        return LinearQuestion(
            data_norm=data_norm,
            bounds_y=bounds_y,
            intercept=intercept,
            method=method,
            encoding=encoding,
        )

    @property
    def _targets(self) -> Targets:
        return Targets.of(self.bounds_y, self.intercept)

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose noise in a Huber objective or in XᵀX and Xᵀy, by forecast, and calibrate it.

        An unusable row is the zero row, so the number of rows is a public parameter of the plan.
        """
        facts.only_replaced()
        features = Features.of(facts.width - 1, self.data_norm, self.intercept)
        targets = self._targets
        expected = TARGETS
        if self.encoding is not None:  # columns vary less than their bounds allow
            expected = self.encoding.box.expected(float(features.data_norm), TARGETS)
        shape = Shape.of(
            rows=facts.planned_rows,
            dimension=features.dimension,
            epsilon=epsilon,
            intercept=features.intercept,
            expected=expected,
        )
        applicable = self._applicable(facts, features.width)
        # a method that the user names is the only one to plan; an unknown name plans all, for the
        # message of `choose`
        named = [name for name in applicable if is_name(self.method, [name])]
        candidates = {name: _PLANNERS[name](shape) for name in named or applicable}
        methods = ranked(*(candidate.method for candidate in candidates.values()))
        chosen = candidates[choose(methods, self.method, elsewhere=_ELSEWHERE).name]
        features = replace(features, length=chosen.length)

        def answer(rows: Rows, bits: BitSource) -> Any:
            theta = chosen.fit(features, rows, bits)
            return features.model(theta.reshape(-1, 1), targets=targets, encoding=self.encoding)

        return ReleasePlan(
            claim=PureDP(shape.epsilon),
            steps=chosen.steps,
            answer=answer,
            error=chosen.method.error * targets.half**2,
            methods=methods,
            public=(*facts.counted, "the number of features", "data_norm", "bounds_y"),
            row="one row: all of its features and its target",
        )

    def _applicable(self, facts: Facts, width: int) -> list[str]:
        """Return the applicable methods; refuse "huber" by name if rows exceed the memory."""
        large = self.encoding is not None and facts.too_large(
            width, self.method, in_memory="huber", other="statistics"
        )
        # "huber" would copy a cluster's rows to this machine: only if the user names it
        sums_only = large or (facts.remote and self.method == "auto")
        return [name for name in _PLANNERS if not (sums_only and name == "huber")]

    def release(
        self,
        rows: Any,
        targets: Any,
        *,
        epsilon: Rational,
        diagnostics: Rational | None = None,
    ) -> Release:
        """Plan the fit, and run the plan on these rows."""
        source = LabeledRows(rows, targets, read=self._targets, encode=self.encoding)
        features = Features.of(len(source.columns) - 1, self.data_norm, self.intercept)
        diagnosis = as_diagnosis(
            diagnostics,
            source.declared,
            beyond=LongRows(encode=self.encoding, features=features),
        )
        plan = planned(self, source, epsilon, facts=source.facts, diagnosis=diagnosis)
        return run(plan, source, diagnosis=plan_diagnosis(diagnosis, epsilon))


def linear_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods to fit a linear regression, best first, for targets in [-1, 1].

    Errors are expected excesses of the mean squared error, for rows and a signal as in `Expected`.

    >>> [m.name for m in linear_methods(epsilon=1, n=10_000, dimension=10)]
    ['huber', 'statistics']
    >>> linear_methods(epsilon=1, n=10**6, dimension=1)[0].name
    'statistics'
    """
    shape = Shape.of(
        rows=as_count(n, "n"),
        dimension=dimension,
        epsilon=epsilon,
        intercept=intercept,
        expected=TARGETS.updated(row_length=row_length, signal=signal),
    )
    return ranked(*(planner(shape).method for planner in _PLANNERS.values()))


@value
class _Candidate:
    """A planned method: forecast, certificate steps, and the function that fits θ."""

    method: Method
    steps: tuple[Step, ...]
    fit: Callable[[Features, Rows, BitSource], Floats]
    length: int = STEPS
    """The length of the longest row in integer steps."""


def _huber(shape: Shape) -> _Candidate:
    """Plan noise in the objective of the pseudo-Huber loss."""
    plan = plan_huber(shape)
    numerical_share = float(2 * plan.channel.error / plan.channel.scale / shape.epsilon)

    def fit(features: Features, rows: Rows, bits: BitSource) -> Floats:
        integers, labels = features.integers(rows)
        loss = PseudoHuber(targets=labels / float(plan.threshold))
        return plan.publish(integers, loss, bits) * float(plan.threshold)

    method = Method(
        name="huber",
        error=plan.predicted_error,
        spends=f"ε on the objective, {numerical_share:.1%} of it on numerical error",
        why=f"{shape.columns} noisy numbers, and slopes that no outlier can enlarge",
    )
    return _Candidate(method=method, steps=plan.steps, fit=fit)


def _statistics(shape: Shape) -> _Candidate:
    """Plan noise on XᵀX and Xᵀy."""
    plan = plan_statistics(shape)

    def fit(features: Features, rows: Rows, bits: BitSource) -> Floats:
        return plan.fit(features, rows, bits)

    method = Method(
        name="statistics",
        error=plan.predicted_error,
        spends=f"ε on {plan.dimension} sums together",
        why="no bias: best for few features and many rows"
        if shape.columns <= 4
        else f"the noise of {plan.dimension} sums for {shape.columns} coefficients",
    )
    return _Candidate(method=method, steps=(plan.step,), fit=fit, length=LENGTH)


_PLANNERS: dict[str, Callable[[Shape], _Candidate]] = {
    "huber": _huber,
    "statistics": _statistics,
}
