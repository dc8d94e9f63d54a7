"""The public plan of a private regression: loss, noise, target accuracy, and what to expect of it.

A function of ε, the shape of the data and public bounds. The rules for loss and strength were
tuned on synthetic data (`docs/theory.md` C9 proves ε for any choice); NSR = N^1.5/(nε), N the
number of parameters, tells how much of what is learned will be noise.
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
# What forecasts of a regression's error assume of unseen rows, and probabilities that follow.

_ENOUGH = 20.0
"""`informed` from which the forecast of the noise is taken as it is."""


@value
class Expected:
    """Rows that vary so much, evenly in all directions, and a model that explains so much.

    No fit depends on it. Rows that vary unevenly have larger errors than forecast.
    """

    signal: float
    """Root mean square of what a model predicts: targets within 1, or log-odds."""

    row_length: float = math.sqrt(0.5)
    """Root mean square distance of a row from the mean row, as a part of the rows' bound.

    Errors follow its inverse square: 1 for rows on a sphere, 3 for rows in a cube, 2 by default.
    """

    def given(self, *, row_length: Rational | None, signal: Rational | None) -> Expected:
        """Return these numbers where the user knows better.

        >>> LOG_ODDS.given(row_length="0.3", signal=None)
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
        """The rows' variance, over all columns, if rows with their constant 1/2 have length 1."""
        return 0.8 * self.row_length**2

    def variances(self, columns: int, *, intercept: bool) -> tuple[float, ...]:
        """Return the mean squares along each of so many directions, the intercept's the last.

        >>> LOG_ODDS.given(row_length=1, signal=None).variances(3, intercept=True)
        (0.4, 0.4, 0.2)
        """
        if not intercept:
            return (self.row_length**2 / columns,) * columns
        return (self.spread / (columns - 1),) * (columns - 1) + (0.2,)

    @property
    def explained(self) -> float:
        """The mean square of what is predicted."""
        return self.signal**2

    @property
    def curvature(self) -> float:
        """The mean curvature of the logistic loss where log-odds are normal.

        σ(t) is about Φ(t√(π/8)); the mean of its slope is known then.

        >>> [round(Expected(signal=s).curvature, 2) for s in (1, 2, 4)]  # true: 0.21, 0.15, 0.09
        [0.21, 0.16, 0.09]
        """
        return 0.25 * math.sqrt(self.flatness)

    @property
    def flatness(self) -> float:
        """The part of that curvature that there is along the signal.

        Rows far out along it are told apart with certainty, and curve the loss the least.

        >>> [round(Expected(signal=s).flatness, 2) for s in (1, 2, 4)]  # true: 0.70, 0.40, 0.16
        [0.72, 0.39, 0.14]
        """
        return 1 / (1 + math.pi / 8 * self.explained)

    def shrunk(self, penalty: float) -> float:
        """Return the excess of the mean logistic loss if `penalty`/2 squared log-odds are added.

        Log-odds shrunk by t have the excess (2/π)(√(1+at²) - √(1+a) + a(1-t)/√(1+a)), a = πs²/8:
        the integral of the curvature, which grows on the way.

        >>> nothing_learned = LOG_ODDS.shrunk(math.inf)
        >>> 0 < LOG_ODDS.shrunk(0.1) < nothing_learned < math.log(2)
        True
        """
        a = math.pi / 8 * self.explained
        low, high = 0.0, 1.0
        for _ in range(50):
            t = (low + high) / 2
            rises = t / math.sqrt(1 + a * t * t) + 4 * penalty * t > math.sqrt(self.flatness)
            low, high = (low, t) if rises else (t, high)
        left = math.sqrt(1 + a * low * low) - math.sqrt(1 + a)
        return max(0.0, 2 / math.pi * (left + a * (1 - low) * math.sqrt(self.flatness)))


TARGETS = Expected(signal=0.3)
"""Targets in [-1, 1] of which a linear model explains 0.3."""

LOG_ODDS = Expected(signal=2.0)
"""Labels of which the best classifier tells four in five."""


def limited(excess: float, most: float) -> float:
    """Return a forecast that levels off at what a model without any slope loses."""
    return excess * most / (excess + most)


def temperature(*, noise: float, informed: float) -> float:
    """Return what a private classifier divides its scores by before they become probabilities.

    At least 1. Where noise dominates, probabilities made of noisy log-odds are worse than equal
    ones. A function of public numbers, so that it costs no privacy, and the same for all classes,
    so that it changes no prediction.

    `noise` is the variance that noise is expected to give to the log-odds of two classes, and
    `informed` the path of θ from 0 along the mean gradient over the variance of the noise of a
    coordinate: n/Λ over that variance for noise in an objective, the sum of all steps over it for a
    descent. Where log-odds are known up to a variance V, their mean probability is that of
    log-odds/√(1 + πV/8); where the rows say little, they count as noise too. Half of the root
    is least harmful: penalty and margin have shrunk the scores already
    (`bench/defaults_classifiers.py` prints log losses with and without).

    >>> temperature(noise=0.5, informed=100), round(temperature(noise=15, informed=2.5), 1)
    (1.0, 9.7)
    """
    weak = max(1.0, _ENOUGH / max(informed, 1e-9))
    return max(1.0, math.sqrt(1 + math.pi / 8 * noise * weak**2) / 2)


def _positive(value: Rational, name: str) -> float:
    return float(as_positive(value, name))


_U = 2.0**-53
_INTERCEPT = Fraction(5, 4)
"""Squared length of a row of length 1 and the constant 1/2 that stands for the intercept."""

_ROOM = 1.4
"""So many times the error of the gradient in floats is aimed at; the rest is for its length."""

_SHARES = (2.0**-14, 2.0**-5)
"""Between these parts of ε is spent on numerical error."""

_ALL = 1e12
"""A penalty so many times the data's part of the Hessian leaves nothing of what they say."""

_RESIDUAL = 0.0225
"""Forecasts assume this mean square of what a linear model leaves of targets in [-1, 1]."""


@value
class RegressionPlan:
    """Everything about a fit that is fixed before a value is read."""

    rows: int
    columns: int
    """The features, and the constant one of the intercept."""
    epsilon: Fraction
    base: Step
    """Theorem C9: what the exact minimizer costs."""
    channel: NumericalError
    """Theorem N: what publishing a computed minimizer adds."""
    strength: Fraction
    noise_scale_squared: Fraction
    shift: Fraction
    """The margin added to the loss."""
    threshold: Fraction
    """The residual, in units of half the target's range, from which the Huber loss is linear."""
    predicted_error: float
    """Expected excess of the mean loss (Huber: squared error) on the rows that are expected.

    Of the data only its shape is known. Evenly spread rows with a moderate signal are within a
    factor of 4; rows much shorter than their bound and strong signals have errors 10 times larger
    and more, unless `expected` says so.
    """
    blind_error: float
    """The same of a model that has learned nothing."""
    temperature: float = 1.0
    """What a classifier's scores are divided by before they become probabilities."""

    @property
    def roundness(self) -> Fraction:
        """The parameter a of the balanced logistic loss."""
        return Fraction(self.base.numbers["roundness"])

    @property
    def steps(self) -> tuple[Step, Step]:
        """The two steps of the certificate."""
        return self.base, self.channel.step()

    @property
    def claim(self) -> PureDP:
        """What the release satisfies."""
        return PureDP(self.epsilon)

    def publish(self, rows: IntegerRows, loss: CertifiedLoss, bits: BitSource) -> Floats:
        """Draw the noise, minimize with a certified error bound, publish θ of (d, outputs)."""
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
    """Return the plan of logistic regression.

    >>> plan = plan_logistic(Shape.of(rows=10_000, dimension=10, epsilon=1))
    >>> [step.theorem for step in plan.steps]
    ['logistic-objective-perturbation', 'numerical-error']
    """
    expected, noise = shape.expected or LOG_ODDS, shape.noise_to_signal
    roundness = _short(0.25 + 0.44 * _clip(math.log(0.004 / noise) / math.log(4)))
    shift = 0.35 * _clip(math.log(noise / 0.012) / math.log(4))
    shift += 0.65 * _clip(math.log(noise / 0.05) / math.log(10))
    largest = math.exp(float(roundness)) / 2  # the slope that scaling the loss makes 1
    strength = _short(shape.strength(min(6, 1 + 5 * noise)) / largest)
    numerical = shape.numerical(5.0, 2.0, strength, curvature=expected.curvature / largest)
    fit = LogisticObjectivePerturbation(
        noise_epsilon=numerical.left, strength=strength, roundness=roundness
    ).within(numerical.left)
    return shape.plan(
        numerical,
        fit,
        scale_squared=(2 / fit.noise_epsilon) ** 2,
        shift=_short(shift),
        expected=expected,
        unit=largest,
        bias=lambda part: expected.shrunk(part * expected.curvature),
        most=2 * math.log(2),
        flatness=expected.flatness,
    )


def plan_huber(shape: Shape) -> RegressionPlan:
    """Return the plan of the method "huber", for targets scaled to [-1, 1].

    >>> plan = plan_huber(Shape.of(rows=10_000, dimension=10, epsilon=1))
    >>> plan.steps[0].theorem, 0.1 < plan.threshold < 0.2
    ('huber-objective-perturbation', True)
    """
    expected, noise = shape.expected or TARGETS, shape.noise_to_signal
    threshold = _short(min(2.0, 0.125 * max(1.0, 0.005 / noise) ** 0.6))
    strength = _short(shape.strength(2 + 10 * noise))
    slope_error = 2.5 + 1 / float(threshold)
    curvature = 1 / math.sqrt(1 + 2 * _RESIDUAL / float(threshold) ** 2)
    # without privacy it errs otherwise than least squares: as the median does, if less so
    other = (
        (math.pi / 2 - 1) * (1 - curvature) ** 2 * _RESIDUAL * shape.columns / max(1, shape.rows)
    )
    numerical = shape.numerical(slope_error, 2.0, strength, curvature=curvature)
    fit = HuberObjectivePerturbation(noise_epsilon=numerical.left, strength=strength).within(
        numerical.left
    )
    return shape.plan(
        numerical,
        fit,
        scale_squared=(2 / fit.noise_epsilon) ** 2,
        threshold=threshold,
        expected=expected,
        unit=2 * float(threshold) ** 2 / curvature,  # squares have curvature 2 everywhere
        bias=lambda part: expected.explained * (part / (1 + part)) ** 2 + other,
        most=expected.explained,
    )


def plan_multinomial(shape: Shape, *, classes: int) -> RegressionPlan:
    """Return the plan of softmax regression.

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
        noise_epsilon=numerical.left, strength=strength, classes=classes
    ).within(numerical.left)
    return shape.plan(
        numerical,
        fit,
        scale_squared=8 / fit.noise_epsilon**2,
        shift=_short(shift),
        expected=expected,
        unit=1.0,
        bias=lambda part: (classes - 1) * relative * expected.shrunk(part * expected.curvature),
        most=2 * math.log(classes),
        flatness=expected.flatness,
    )


def softmax_curvature(classes: int, expected: Expected) -> float:
    """Return the mean curvature of the softmax loss: about 1/(2C) at a moderate signal."""
    return 0.5 / classes * expected.curvature / LOG_ODDS.curvature


class _Numerical(NamedTuple):
    """How accurately to compute, what part of ε that costs, and what is left of it."""

    error: Fraction
    cost: Fraction
    left: Fraction
    strength: Fraction
    curvature: float


@value
class Shape:
    """What is public of a problem: its rows, features and ε, and what forecasts assume of it."""

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
        """Check the numbers."""
        return Shape(
            rows=as_count(rows, "rows"),
            dimension=as_count(dimension, "dimension", minimum=1),
            epsilon=as_usable_epsilon(epsilon),
            intercept=as_flag(intercept, "intercept"),
            expected=expected,
        )

    @property
    def columns(self) -> int:
        """The features, and the constant one of the intercept."""
        return self.dimension + self.intercept

    @property
    def parameters(self) -> int:
        """The dimension N of the noise."""
        return self.columns * max(1, self.outputs - 1)

    @property
    def noise_to_signal(self) -> float:
        """NSR: how much of what is learned will be noise."""
        return math.sqrt(self.parameters) ** 3 / (max(1, self.rows) * float(self.epsilon))

    def strength(self, times_epsilon: float) -> float:
        """Return Λ = times_epsilon/ε for rows scaled to length 1 without the intercept."""
        squared = float(_INTERCEPT) if self.intercept else 1.0
        return times_epsilon / float(self.epsilon) / squared

    def numerical(
        self, slope_error: float, diameter: float, strength: Fraction, *, curvature: float
    ) -> _Numerical:
        """Choose the accuracy that floats reach and the part of ε that costs least in total.

        `slope_error` is what slopes err by in floats, in units of 2^-53. Spending a part x of ε
        costs 2x of the excess risk in noise of the objective and (n κ r)²/(N d x²) in noise of
        the output, r the error, κ the mean curvature. Any choice is private.
        """
        noise = 6 * self.parameters * diameter / float(self.epsilon)
        size = noise + 16 * float(strength) * math.sqrt(self.parameters)
        adding = 2.0**-19 * math.sqrt(self.outputs) * (2**13 + self.rows / 64)
        gradient = _U * (_ROOM * self.rows * (slope_error + adding) + 64 * size)
        error = _short(gradient / float(strength))
        moved = (self.rows * curvature * float(error)) ** 2 / (self.parameters * self.columns)
        share = _short(min(max(moved ** (1 / 3), _SHARES[0]), _SHARES[1]))
        cost, left = self.epsilon * share, self.epsilon * (1 - share)
        return _Numerical(error, cost, left, strength, curvature)

    def plan(
        self,
        numerical: _Numerical,
        fit: PureTheorem,
        *,
        scale_squared: Fraction,
        expected: Expected,
        unit: float,
        bias: Callable[[float], float],
        most: float,
        flatness: float = 1.0,
        shift: Fraction = Fraction(0),
        threshold: Fraction = Fraction(1),
    ) -> RegressionPlan:
        """Return the plan; `bias` is what a fit without noise loses, `most` a fit of noise alone.

        `bias` is a function of the penalty over the data's part of the Hessian; `flatness` is the
        part of the mean curvature that there is along the signal.
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
        scores = 0.0  # the variance of all scores of a row that is noise
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
            predicted_error=limited(excess, most),
            blind_error=limited(bias(_ALL), most),
            temperature=temperature(
                noise=scores if self.outputs == 1 else 2 * scores / (self.outputs - 1),
                informed=float(informed),
            ),
        )


def _clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _short(value: float) -> Fraction:
    """Return a dyadic of 16 significant bits at or just above a number >= 0: exact as a float."""
    if value == 0:
        return Fraction(0)
    unit = Fraction(2) ** (math.frexp(value)[1] - 16)
    return math.ceil(Fraction(value) / unit) * unit


def _power_of_two_above(value: float) -> Fraction:
    return Fraction(2) ** math.frexp(value)[1]
