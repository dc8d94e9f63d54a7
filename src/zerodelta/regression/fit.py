"""Private logistic, multinomial and Huber regression: one engine, pure on a computer (theory C9).

K-norm noise is put into the objective; its minimizer is computed with a sure error and published
with a whisper of noise on a lattice. All three functions differ in their loss only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational
from zerodelta.exact.real_k_norm import RealKNorm
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.issue import issue
from zerodelta.privacy.release import Release
from zerodelta.regression.balanced_logistic import BalancedLogistic
from zerodelta.regression.integer_rows import Floats, IntegerRows
from zerodelta.regression.loss import Loss
from zerodelta.regression.minimum import certified_minimum
from zerodelta.regression.objective_plan import (
    RegressionPlan,
    plan_huber,
    plan_logistic,
    plan_multinomial,
)
from zerodelta.regression.pseudo_huber import PseudoHuber
from zerodelta.regression.reading import (
    Features,
    as_classes,
    as_target_bounds,
    read_classes,
    read_targets,
    target_scale,
)
from zerodelta.regression.softmax import Softmax

__all__ = ["LinearModel", "fit_huber", "fit_logistic", "fit_multinomial"]

_ROW = "one row: all of its features and its label"
_PUBLIC = ("the number of rows", "the number of features", "data_norm")


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinearModel:
    """Coefficients and intercepts for rows as they were given: rows @ coefficients.T + intercept.

    One line for two classes (positive: the second) or a regression, else one line for each class.
    """

    coefficients: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]
    classes: tuple[Any, ...] = ()
    temperature: float = 1.0
    """What scores are divided by before they become probabilities; public numbers alone say it."""

    def decision(self, rows: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
        """Return the linear predictors of rows, one line for each row."""
        values: npt.NDArray[np.float64] = np.asarray(rows) @ self.coefficients.T + self.intercept
        return values


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

    **Releases** a `LinearModel` with one line of coefficients, positive for the second class.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: pure ε-DP (theorems C9 and N): the minimizer of the balanced logistic loss with
    K-norm noise in the objective, computed with a sure error. Running time is not covered.
    **Public**: ε, `data_norm`, `classes`, the shape of the data. Longer rows are shortened to
    `data_norm`; rows with a missing cell or a label that is no class count as empty.
    **Error**: the expected excess of the mean loss if rows were spread evenly; the true one
    depends on unseen data.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> release = fit_logistic(rows, rows[:, 0] > 0, epsilon=1, data_norm=1, classes=[False, True])
    >>> bool(release.value.coefficients[0, 0] > abs(release.value.coefficients[0, 1]))
    True
    """
    known = as_classes(classes)
    if len(known) != 2:
        raise ParameterError(
            "classes", classes, expected="two labels", remedy="use fit_multinomial for more"
        )
    features, source = Features.of(rows, data_norm, intercept)
    plan = plan_logistic(
        rows=source.count, dimension=features.dimension, epsilon=epsilon, intercept=intercept
    )

    def read() -> tuple[IntegerRows, Loss]:
        signs = np.array([-1.0, 1.0, 0.0])[read_classes(labels, known, source.count)]
        loss = BalancedLogistic(roundness=plan.roundness, shift=plan.shift)
        return features.integers(source, signs), loss  # place -1 is the last sign, 0

    theta, certificate = _fit(plan, read, bits, public=(*_PUBLIC, "the classes"))
    lines, constants = features.coefficients(theta)
    model = LinearModel(
        coefficients=lines, intercept=constants, classes=known, temperature=plan.temperature
    )
    return Release(value=model, certificate=certificate, error=plan.predicted_error)


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

    **Releases** a `LinearModel` with one line of coefficients for each class.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: pure ε-DP (theorems C9 and N). Running time is not covered.
    **Public**: ε, `data_norm`, `classes`, the shape of the data; rows as in `fit_logistic`.
    **Error**: the expected excess of the mean loss if rows were spread evenly; the true one
    depends on unseen data.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> labels = np.digitize(rows[:, 0], [-0.2, 0.2])
    >>> release = fit_multinomial(rows, labels, epsilon=1, data_norm=1, classes=[0, 1, 2])
    >>> release.value.coefficients.shape, bool(release.value.coefficients[2, 0] > 0)
    ((3, 2), True)
    """
    known = as_classes(classes)
    features, source = Features.of(rows, data_norm, intercept)
    plan = plan_multinomial(
        rows=source.count,
        dimension=features.dimension,
        classes=len(known),
        epsilon=epsilon,
        intercept=intercept,
    )

    def read() -> tuple[IntegerRows, Loss]:
        places = read_classes(labels, known, source.count)
        integers = features.integers(source, (places >= 0).astype(np.float64))
        loss = Softmax(outputs=len(known), labels=np.maximum(places, 0), shift=plan.shift)
        return integers, loss

    theta, certificate = _fit(
        plan, read, bits, public=(*_PUBLIC, "the classes"), classes=len(known)
    )
    lines, constants = features.coefficients(theta)
    model = LinearModel(
        coefficients=lines, intercept=constants, classes=known, temperature=plan.temperature
    )
    return Release(value=model, certificate=certificate, error=plan.predicted_error)


def fit_huber(
    rows: Any,
    targets: Any,
    *,
    epsilon: Rational,
    data_norm: Rational | None = None,
    bounds_y: tuple[Rational, Rational] | None = None,
    intercept: bool = True,
    bits: BitSource | None = None,
) -> Release:
    """Fit a linear regression with the pseudo-Huber loss.

    **Releases** a `LinearModel` with one line of coefficients.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: pure ε-DP (theorems C9 and N). Running time is not covered.
    **Public**: ε, `data_norm`, `bounds_y`, the shape of the data. Targets are cut to `bounds_y`;
    rows as in `fit_logistic`, and those whose target is NaN or no number count as empty.
    **Error**: the expected excess of the mean squared error if rows were spread evenly; the true
    one depends on unseen data.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> release = fit_huber(rows, 3 * rows[:, 0] + 1, epsilon=1, data_norm=1, bounds_y=(-2, 4))
    >>> bool(abs(release.value.coefficients[0, 0] - 3) < 1)
    True
    """
    bounds = as_target_bounds(bounds_y)
    features, source = Features.of(rows, data_norm, intercept)
    plan = plan_huber(
        rows=source.count, dimension=features.dimension, epsilon=epsilon, intercept=intercept
    )

    def read() -> tuple[IntegerRows, Loss]:
        scaled = read_targets(targets, bounds, source.count, intercept=features.intercept)
        scaled = scaled / float(plan.threshold)
        known = np.isfinite(scaled)
        integers = features.integers(source, known.astype(np.float64))
        return integers, PseudoHuber(targets=np.where(known, scaled, 0.0))

    theta, certificate = _fit(plan, read, bits, public=(*_PUBLIC, "bounds_y"))
    middle, half = target_scale(bounds, features.intercept)
    lines, constants = features.coefficients(theta * (half * float(plan.threshold)))
    model = LinearModel(coefficients=lines, intercept=constants + middle)
    return Release(value=model, certificate=certificate, error=plan.predicted_error * half**2)


def _fit(
    plan: RegressionPlan,
    read: Callable[[], tuple[IntegerRows, Loss]],
    bits: BitSource | None,
    *,
    public: tuple[str, ...],
    classes: int = 1,
) -> tuple[Floats, Certificate]:
    """Certify the plan, read the rows, draw the noise, minimize, publish: θ of (d, outputs)."""
    source = SystemBits() if bits is None else bits
    certificate = issue(claim=plan.claim, steps=plan.steps, bits=source, row=_ROW, public=public)
    integers, loss = read()
    noise = RealKNorm(
        rows=integers.dimension,
        columns=classes,
        centered=classes > 1,
        scale_squared=plan.noise_scale_squared,
        bits=source,
    )
    exact = certified_minimum(
        integers, loss, noise, strength=plan.strength, error=plan.channel.error
    )
    published = plan.channel.apply(exact, source)
    return published.reshape(integers.dimension, classes), certificate
