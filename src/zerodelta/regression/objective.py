"""Plan a private regression from public numbers: loss, noise, accuracy and expected error.

A plan is a function of ε, the shape of the data and public bounds. The rules for loss and strength
use NSR = N^1.5/(nε), N the number of parameters: the ratio of the noise to what can be learned.
They were tuned by hand on synthetic data and affect accuracy only: `docs/theory.md` C9 proves ε
for any choice. `bench/tasks_forecasts.py` checks the forecasts on data on which nothing was tuned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from zerodelta.channels.channel import NumericalError
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import RealKNorm
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_flag, as_usable_epsilon
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.regression import (
    HuberObjectivePerturbation,
    LogisticObjectivePerturbation,
    SoftmaxObjectivePerturbation,
)
from zerodelta.privacy.theorems.theorem import PureTheorem
from zerodelta.regression.certified_losses import CertifiedLoss, IntegerRows
from zerodelta.regression.minimum import certified_minimum
from zerodelta.spaces import Ball
from zerodelta.value import value

# -- Expected -------------------------------------------------------------------------------------
# What forecasts assume of unseen rows, and the temperature of a classifier's probabilities.

_ENOUGH = 20.0
"""The smallest `informed` at which `temperature` uses the forecast of the noise unchanged."""


@value
class Expected:
    """Assume how much rows vary, evenly in all directions, and how much a model explains.

    Forecasts use these numbers, and no fit does. Rows that vary unevenly have larger errors than
    forecast.
    """

    signal: float
    """Root mean square of what a model predicts: targets within 1, or log-odds."""

    row_length: float = math.sqrt(0.5)
    """Root mean square distance of a row from the mean row, as a part of the rows' bound.

    Errors follow its inverse square: 1 for rows on a sphere, 3 for rows in a cube, 2 by default.
    """

    def updated(self, *, row_length: Rational | None, signal: Rational | None) -> Expected:
        """Return a copy with the numbers that the user passed; None keeps the default.

        >>> LOG_ODDS.updated(row_length="0.3", signal=None)
        Expected(signal=2.0, row_length=0.3)
        """
        length = self.row_length if row_length is None else _positive(row_length, "row_length")
        require(
            length <= 1,
            "row_length",
            row_length,
            expected="a part of data_norm, at most 1",
            remedy="pass the typical distance of a row from the mean row over data_norm",
        )
        return Expected(
            signal=self.signal if signal is None else _positive(signal, "signal"),
            row_length=length,
        )

    @property
    def spread(self) -> float:
        """The variance of rows, summed over columns, scaled to length 1 with their constant 1/2."""
        return 0.8 * self.row_length**2

    def variances(self, columns: int, *, intercept: bool) -> tuple[float, ...]:
        """Return the mean square of rows along each of `columns` directions, the intercept's last.

        >>> LOG_ODDS.updated(row_length=1, signal=None).variances(3, intercept=True)
        (0.4, 0.4, 0.2)
        """
        if not intercept:
            return (self.row_length**2 / columns,) * columns
        return (self.spread / (columns - 1),) * (columns - 1) + (0.2,)

    @property
    def explained(self) -> float:
        """The mean square of the predictions."""
        return self.signal**2

    @property
    def curvature(self) -> float:
        """The mean curvature of the logistic loss for normally distributed log-odds.

        The approximation σ(t) ≈ Φ(t√(π/8)) makes the mean of the slope a closed formula.

        >>> [round(Expected(signal=s).curvature, 2) for s in (1, 2, 4)]  # true: 0.21, 0.15, 0.09
        [0.21, 0.16, 0.09]
        """
        return 0.25 * math.sqrt(self.flatness)

    @property
    def flatness(self) -> float:
        """The ratio of the curvature along the signal to the mean curvature.

        Rows far out along the signal are classified with certainty, and curve the loss least.

        >>> [round(Expected(signal=s).flatness, 2) for s in (1, 2, 4)]  # true: 0.70, 0.40, 0.16
        [0.72, 0.39, 0.14]
        """
        return 1 / (1 + math.pi / 8 * self.explained)

    def shrunk(self, penalty: float) -> float:
        """Return the excess mean logistic loss caused by a penalty of `penalty`/2 · log-odds².

        The penalty multiplies log-odds by a number t < 1, which has the excess
        (2/π)(√(1+at²) - √(1+a) + a(1-t)/√(1+a)), a = πs²/8: the integral of the curvature.

        >>> nothing_learned = LOG_ODDS.shrunk(math.inf)
        >>> 0 < LOG_ODDS.shrunk(0.1) < nothing_learned < math.log(2)
        True
        """
        a = math.pi / 8 * self.explained
        low, high = 0.0, 1.0
        for _ in range(50):  # bisect for the t where the penalized loss has slope 0
            t = (low + high) / 2
            rises = t / math.sqrt(1 + a * t * t) + 4 * penalty * t > math.sqrt(self.flatness)
            low, high = (low, t) if rises else (t, high)
        difference = math.sqrt(1 + a * low * low) - math.sqrt(1 + a)
        return max(0.0, 2 / math.pi * (difference + a * (1 - low) * math.sqrt(self.flatness)))


TARGETS = Expected(signal=0.3)
"""Targets in [-1, 1] whose best linear predictions have a root mean square of 0.3."""

LOG_ODDS = Expected(signal=2.0)
"""Labels of which the best classifier predicts four in five."""


def limited(excess: float, ceiling: float) -> float:
    """Return a forecast that levels off at `ceiling`, the excess loss of noise alone."""
    return excess * ceiling / (excess + ceiling)


def temperature(*, noise: float, informed: float) -> float:
    """Return the number, at least 1, that a private classifier divides its scores by.

    Where noise dominates, probabilities computed from noisy log-odds have a larger log loss than
    equal probabilities. The divisor is a function of public numbers, so that it costs no privacy,
    and the same for all classes, so that it changes no prediction.

    `noise` is the variance that noise is expected to give to the log-odds of two classes.
    `informed` is the length of the path of θ from 0 along the mean gradient over the variance of
    the noise of a coordinate: n/Λ over that variance for noise in an objective, the sum of all
    steps over it for a descent. Where log-odds are known up to a variance V, their mean probability
    is that of log-odds/√(1 + πV/8); where `informed` is small, V is enlarged. Half of the root had
    the smallest log loss, as penalty and margin have shrunk the scores already
    (`bench/defaults_classifiers.py` prints log losses with and without).

    >>> temperature(noise=0.5, informed=100), round(temperature(noise=15, informed=2.5), 1)
    (1.0, 9.7)
    """
    weak = max(1.0, _ENOUGH / max(informed, 1e-9))
    return max(1.0, math.sqrt(1 + math.pi / 8 * noise * weak**2) / 2)


def _positive(value: Rational, name: str) -> float:
    return float(as_positive(value, name))


_U = 2.0**-53
_SQUARED_LENGTH = Fraction(5, 4)
"""Squared length of a row of length 1 with the constant 1/2 that stands for the intercept."""

_ERROR_FACTOR = 1.4
"""The certified error bound that a fit must reach is this multiple of the rounding error of a
gradient in floats. The margin is for the length of the gradient at the point found."""

_NUMERICAL_SHARES = (2.0**-14, 2.0**-5)
"""The smallest and the largest part of ε that is spent on numerical error."""

_INFINITE_PENALTY = 1e12
"""The ratio of penalty to the data's part of the Hessian in a model that has learned nothing."""

_RESIDUAL = 0.0225
"""The mean squared residual that forecasts assume of a linear model, for targets in [-1, 1]."""


@value
class RegressionPlan:
    """The public numbers of a fit, all fixed before a row is read."""

    rows: int
    columns: int
    """The features and, with an intercept, the constant column."""
    epsilon: Fraction
    base: Step
    """The step of theorem C9, for the exact minimizer."""
    channel: NumericalError
    """The channel of theorem N: it publishes an approximate minimizer with noise."""
    strength: Fraction
    noise_scale_squared: Fraction
    shift: Fraction
    """The margin added to the loss."""
    threshold: Fraction
    """The residual, in units of half the target's range, from which the Huber loss is linear."""
    predicted_error: float
    """Expected excess of the mean loss (Huber: squared error) for rows as in `Expected`.

    Only the shape of the data is known. For evenly spread rows with a moderate signal the forecast
    is right within a factor of 4. Rows much shorter than their bound, and strong signals, have
    errors 10 times larger and more, unless `expected` describes them.
    """
    blind_error: float
    """The expected excess of a model that has learned nothing."""
    temperature: float = 1.0
    """The divisor of a classifier's scores before they become probabilities."""

    @property
    def roundness(self) -> Fraction:
        """The parameter a of the balanced logistic loss."""
        return Fraction(self.base.numbers["roundness"])

    @property
    def steps(self) -> tuple[Step, Step]:
        """The certificate's two steps: theorem C9, then theorem N."""
        return self.base, self.channel.step()

    @property
    def claim(self) -> PureDP:
        """Pure ε-DP."""
        return PureDP(self.epsilon)

    def publish(self, rows: IntegerRows, loss: CertifiedLoss, bits: BitSource) -> Floats:
        """Draw noise, minimize with a certified error bound, publish θ of shape (d, outputs)."""
        noise = RealKNorm(
            rows=rows.dimension,
            columns=loss.outputs,
            centered=loss.outputs > 1,
            scale_squared=self.noise_scale_squared,
            bits=bits,
        )
        exact = certified_minimum(
            rows, loss, noise, strength=self.strength, error=self.channel.error
        )
        return self.channel.apply(exact, bits).reshape(rows.dimension, loss.outputs)


def plan_logistic(shape: Shape) -> RegressionPlan:
    """Choose roundness, shift and penalty of a logistic loss, and plan its noisy fit.

    >>> plan = plan_logistic(Shape.of(rows=10_000, dimension=10, epsilon=1))
    >>> [step.theorem for step in plan.steps]
    ['logistic-objective-perturbation', 'numerical-error']
    """
    expected, noise = shape.expected or LOG_ODDS, shape.noise_to_signal
    # Tuned by hand on synthetic data: more noise asks for a less round loss, a larger margin and a
    # stronger penalty. Any values are private (theory C9).
    roundness = _short(0.25 + 0.44 * _clip(math.log(0.004 / noise) / math.log(4)))
    shift = 0.35 * _clip(math.log(noise / 0.012) / math.log(4))
    shift += 0.65 * _clip(math.log(noise / 0.05) / math.log(10))
    largest = math.exp(float(roundness)) / 2  # the slope that scaling the loss makes 1
    strength = _short(shape.strength(min(6, 1 + 5 * noise)) / largest)
    numerical = shape.numerical(5.0, 2.0, strength, curvature=expected.curvature / largest)
    fit = LogisticObjectivePerturbation(
        noise_epsilon=numerical.remaining, strength=strength, roundness=roundness
    ).within(numerical.remaining)
    return shape.plan(
        numerical,
        fit,
        scale_squared=(2 / fit.noise_epsilon) ** 2,
        shift=_short(shift),
        expected=expected,
        unit=largest,
        bias=lambda part: expected.shrunk(part * expected.curvature),
        ceiling=2 * math.log(2),
        flatness=expected.flatness,
    )


def plan_huber(shape: Shape) -> RegressionPlan:
    """Return the plan of the method "huber", for targets scaled to [-1, 1].

    >>> plan = plan_huber(Shape.of(rows=10_000, dimension=10, epsilon=1))
    >>> plan.steps[0].theorem, 0.1 < plan.threshold < 0.2
    ('huber-objective-perturbation', True)
    """
    expected, noise = shape.expected or TARGETS, shape.noise_to_signal
    # Tuned by hand on synthetic data: the noise is added in units of the threshold, so a small one
    # means little noise; too small a one loses accuracy as the median does.
    threshold = _short(min(2.0, 0.125 * max(1.0, 0.005 / noise) ** 0.6))
    strength = _short(shape.strength(2 + 10 * noise))
    slope_error = 2.5 + 1 / float(threshold)
    curvature = 1 / math.sqrt(1 + 2 * _RESIDUAL / float(threshold) ** 2)
    # With a small threshold the loss is nearly absolute, and its minimizer nearly the median, whose
    # variance is π/2 times that of the mean, even without noise.
    sampling_error = (
        (math.pi / 2 - 1) * (1 - curvature) ** 2 * _RESIDUAL * shape.columns / max(1, shape.rows)
    )
    numerical = shape.numerical(slope_error, 2.0, strength, curvature=curvature)
    fit = HuberObjectivePerturbation(noise_epsilon=numerical.remaining, strength=strength).within(
        numerical.remaining
    )
    return shape.plan(
        numerical,
        fit,
        scale_squared=(2 / fit.noise_epsilon) ** 2,
        threshold=threshold,
        expected=expected,
        unit=2 * float(threshold) ** 2 / curvature,  # squares have curvature 2 everywhere
        bias=lambda part: expected.explained * (part / (1 + part)) ** 2 + sampling_error,
        ceiling=expected.explained,
    )


def plan_multinomial(shape: Shape, *, classes: int) -> RegressionPlan:
    """Choose shift and penalty of a softmax loss, and plan its noisy fit.

    >>> shape = Shape.of(rows=10_000, dimension=10, epsilon=1)
    >>> plan_multinomial(shape, classes=3).steps[0].theorem
    'softmax-objective-perturbation'
    """
    classes = as_count(classes, "classes", minimum=2)
    shape = replace(shape, outputs=classes)
    expected, noise = shape.expected or LOG_ODDS, shape.noise_to_signal
    shift = 2 * _clip(math.log(noise / 0.01) / math.log(10))
    strength = _short(shape.strength(min(24, 0.8 * classes + 2 + 20 * noise)))
    curvature = softmax_curvature(classes, expected)
    relative = curvature / expected.curvature
    numerical = shape.numerical(
        20 + 2 * math.log2(classes), math.sqrt(8), strength, curvature=curvature
    )
    fit = SoftmaxObjectivePerturbation(
        noise_epsilon=numerical.remaining, strength=strength, classes=classes
    ).within(numerical.remaining)
    return shape.plan(
        numerical,
        fit,
        scale_squared=8 / fit.noise_epsilon**2,
        shift=_short(shift),
        expected=expected,
        unit=1.0,
        bias=lambda part: (classes - 1) * relative * expected.shrunk(part * expected.curvature),
        ceiling=2 * math.log(classes),
        flatness=expected.flatness,
    )


def softmax_curvature(classes: int, expected: Expected) -> float:
    """Return the mean curvature of the softmax loss: about 1/(2C) at a moderate signal."""
    return 0.5 / classes * expected.curvature / LOG_ODDS.curvature


class _Numerical(NamedTuple):
    """The accuracy of the computation, the ε it costs, and the remaining ε for the objective."""

    error: Fraction
    cost: Fraction
    remaining: Fraction
    strength: Fraction
    curvature: float


@value
class Shape:
    """Public numbers of a regression: rows, features and ε, and the assumptions of forecasts."""

    rows: int
    dimension: int
    epsilon: Fraction
    intercept: bool
    expected: Expected | None = None
    outputs: int = 1

    @staticmethod
    def of(
        *,
        rows: int,
        dimension: int,
        epsilon: Rational,
        intercept: bool = True,
        expected: Expected | None = None,
    ) -> Shape:
        """Check the numbers and return the shape."""
        return Shape(
            rows=as_count(rows, "rows"),
            dimension=as_count(dimension, "dimension", minimum=1),
            epsilon=as_usable_epsilon(epsilon),
            intercept=as_flag(intercept, "intercept"),
            expected=expected,
        )

    @property
    def columns(self) -> int:
        """The number of features, plus one for the constant column of an intercept."""
        return self.dimension + self.intercept

    @property
    def parameters(self) -> int:
        """The dimension N of the noise."""
        return self.columns * max(1, self.outputs - 1)

    @property
    def noise_to_signal(self) -> float:
        """NSR = N^1.5/(nε): the ratio of the noise to what can be learned."""
        return math.sqrt(self.parameters) ** 3 / (max(1, self.rows) * float(self.epsilon))

    def strength(self, times_epsilon: float) -> float:
        """Return the penalty Λ = times_epsilon/ε for rows of length 1.

        With an intercept, a row and its constant are scaled to length 1 together, so Λ is divided
        by the square of that scale.
        """
        squared = float(_SQUARED_LENGTH) if self.intercept else 1.0
        return times_epsilon / float(self.epsilon) / squared

    def numerical(
        self, slope_error: float, diameter: float, strength: Fraction, *, curvature: float
    ) -> _Numerical:
        """Choose an accuracy that floats reach, and the part of ε for it that costs least in total.

        `slope_error` is the rounding error of slopes in floats, in units of 2^-53. Spending a part
        x of ε costs 2x of the excess risk in noise of the objective and (n κ r)²/(N d x²) in noise
        of the output, r the error, κ the mean curvature. Any choice is private.
        """
        noise = 6 * self.parameters * diameter / float(self.epsilon)
        size = noise + 16 * float(strength) * math.sqrt(self.parameters)
        adding = 2.0**-19 * math.sqrt(self.outputs) * (2**13 + self.rows / 64)
        gradient = _U * (_ERROR_FACTOR * self.rows * (slope_error + adding) + 64 * size)
        error = _short(gradient / float(strength))
        # 2x + m/x² is smallest at x = m^(1/3)
        m = (self.rows * curvature * float(error)) ** 2 / (self.parameters * self.columns)
        share = _short(min(max(m ** (1 / 3), _NUMERICAL_SHARES[0]), _NUMERICAL_SHARES[1]))
        cost, remaining = self.epsilon * share, self.epsilon * (1 - share)
        return _Numerical(error, cost, remaining, strength, curvature)

    def plan(
        self,
        numerical: _Numerical,
        fit: PureTheorem,
        *,
        scale_squared: Fraction,
        expected: Expected,
        unit: float,
        bias: Callable[[float], float],
        ceiling: float,
        flatness: float = 1.0,
        shift: Fraction = Fraction(0),
        threshold: Fraction = Fraction(1),
    ) -> RegressionPlan:
        """Forecast the error of noisy fit `fit`, and plan it with its numerical-error channel.

        `bias` is the excess loss of a fit without noise, as a function of the penalty over the
        data's part of the Hessian, and `ceiling` that of noise alone. `flatness` is the ratio of
        the curvature along the signal to the mean curvature.
        """
        strength, entries = numerical.strength, self.columns * self.outputs
        scale = 2 * numerical.error / numerical.cost
        reach = (self.rows + 64 * self.parameters * math.isqrt(math.ceil(scale_squared))) / strength
        channel = NumericalError(
            space=Ball(entries, _power_of_two_above(float(reach) + 1)),
            error=numerical.error,
            scale=scale,
            spacing=_power_of_two_above(float(scale)) / 16,
            status=Status.PROVEN,
        )
        # Each of the N coordinates of v has E v² = (N+1)·scale². Along a direction of variance λ,
        # with curvature κ, the Hessian is h = nκλ + Λ, and v moves the minimum by v/h.
        variances = expected.variances(self.columns, intercept=self.intercept)
        noise = (self.parameters + 1) * float(scale_squared) * self.parameters / self.columns
        excess = bias(float(strength) / (max(1, self.rows) * numerical.curvature * variances[0]))
        scores = 0.0  # the noise variance of a row's scores, summed over outputs
        for place, variance in enumerate(variances):
            curved = numerical.curvature * variance * (flatness if place == 0 else 1.0)
            moved = noise / (self.rows * curved + float(strength)) ** 2
            excess += unit / 2 * curved * moved
            scores += variance * moved
        informed = self.rows * strength / (scale_squared * (self.parameters + 1)) / Fraction(unit)
        return RegressionPlan(
            rows=self.rows,
            columns=self.columns,
            epsilon=self.epsilon,
            base=fit.step(),
            channel=channel,
            strength=strength,
            noise_scale_squared=scale_squared,
            shift=shift,
            threshold=threshold,
            predicted_error=limited(excess, ceiling),
            blind_error=limited(bias(_INFINITE_PENALTY), ceiling),
            temperature=temperature(
                noise=scores if self.outputs == 1 else 2 * scores / (self.outputs - 1),
                informed=float(informed),
            ),
        )


def _clip(value: float) -> float:
    """Clip a number to [0, 1]."""
    return min(max(value, 0.0), 1.0)


def _short(value: float) -> Fraction:
    """Round a number >= 0 up to 16 significant bits, so that it is exact as a float."""
    if value == 0:
        return Fraction(0)
    unit = Fraction(2) ** (math.frexp(value)[1] - 16)
    return math.ceil(Fraction(value) / unit) * unit


def _power_of_two_above(value: float) -> Fraction:
    return Fraction(2) ** math.frexp(value)[1]
