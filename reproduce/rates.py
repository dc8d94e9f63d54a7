"""Measure errors along one variable, fit their power, and compare it with the paper's.

A slope is compared with the power in the paper's rate. Where it is another one, the only
explanation that counts is a prediction: the exact formula of the mechanism (its noise scale, its
steps, its δ) evaluated at the same points, nothing fitted, with the same sign and size of the
difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["Experiment", "Point", "Predict", "Series", "Task", "fit", "summarize", "verdict"]

Floats: TypeAlias = npt.NDArray[np.float64]
Point: TypeAlias = Mapping[str, float]
"""The public numbers of one run, such as n, d and epsilon."""

Measure: TypeAlias = Callable[[str, Point, str], list[float]]
"""measure(variant, point, label): the errors on each instance, with random bits named by label."""

Predict: TypeAlias = Callable[[str, Point], float]
"""predict(variant, point): the error of the exact formula there, NaN where there is none."""

Verdict: TypeAlias = Literal["agrees", "explained", "unexplained"]

TOLERANCE = 0.15
"""Slopes agree if they are this close, or within two standard errors of the measurement."""

_LEAST_SHARE = 0.5
"""How much of a difference a prediction has to have to explain it; a negative share is a sign."""

_RESAMPLES = 400


@final
@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A row of Table 1 or 2: what to run, along which variables, and what the paper says of it."""

    key: str
    problem: str
    label: str
    """The paper's theorem, lemma or algorithm."""
    quantity: str
    """What is measured."""
    setting: str
    """The data and the parameters, in words."""
    variants: Mapping[str, str]
    """Name and description, such as "after": "Algorithm 4"."""
    formulas: Mapping[str, str]
    """The paper's rate of each variant."""
    exponents: Mapping[str, Mapping[str, float]]
    """Variant, variable: the power in the paper's rate."""
    base: Mapping[str, float]
    sweeps: Mapping[str, tuple[float, ...]]
    quick: Mapping[str, tuple[float, ...]]
    repeats: int
    quick_repeats: int
    measure: Measure
    predicted: Predict | None = None
    """The error that the exact formula gives at a point; nothing in it is fitted."""
    average: Literal["mean", "median", "upper"] = "mean"
    """What is drawn of the repeats; "upper" is the 90 % quantile."""
    own_repeats: Mapping[str, int] = field(default_factory=dict)
    """Where a variant needs another number of repeats than `repeats`."""
    own_base: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Where a variant needs other fixed numbers than `base` (its noise is so much smaller)."""
    own_sweeps: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """"variant/variable": other values than in `sweeps`."""
    own_quick: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The same for `quick`."""
    quick_base: Mapping[str, float] = field(default_factory=dict)
    """Smaller fixed numbers for a quick run, for all variants."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """How a variable is called in a picture, where its name does not do."""

    def tasks(self, *, quick: bool, most: int | None = None) -> list[Task]:
        """Return every run of this row; each point of a sweep is one task.

        `most` limits the repeats of a point.
        """
        sweeps, own = (self.quick, self.own_quick) if quick else (self.sweeps, self.own_sweeps)
        return [
            Task(
                experiment=self.key,
                variant=variant,
                variable=name,
                value=value,
                repeats=self._repeats(variant, quick, most),
                quick=quick,
            )
            for name, values in sweeps.items()
            for variant in self.variants
            for value in own.get(f"{variant}/{name}", values)
        ]

    def _repeats(self, variant: str, quick: bool, most: int | None) -> int:
        wanted = self.quick_repeats if quick else self.own_repeats.get(variant, self.repeats)
        return wanted if most is None else min(wanted, most)

    def axis(self, variable: str) -> str:
        """Return how a variable is called in tables and pictures."""
        return self.axes.get(variable, {"epsilon": "ε"}.get(variable, variable))

    def note(self, *, quick: bool, most: int | None = None) -> str:
        """Return what was measured on what, and how often."""
        repeats = sorted({task.repeats for task in self.tasks(quick=quick, most=most)})
        often = " or ".join(map(str, repeats))
        return (
            f"{self.label}. Measured: {self.quantity}. {self.setting[:1].upper()}"
            f"{self.setting[1:]}. {often} repeats a point."
        )

    def run(self, task: Task) -> list[list[float]]:
        """Return for each repeat the errors on each instance."""
        point = self.point(task)
        return [
            self.measure(task.variant, point, f"{task.name}/{repeat}")
            for repeat in range(task.repeats)
        ]

    def point(self, task: Task) -> Point:
        """Return the public numbers of a task."""
        return {**self.fixed(task.variant, quick=task.quick), task.variable: task.value}

    def fixed(self, variant: str, *, quick: bool) -> dict[str, float]:
        """Return the numbers at which a variant stays while another one varies."""
        own = self.own_base.get(variant, {})
        return {**self.base, **own, **(self.quick_base if quick else {})}


@final
@dataclass(frozen=True, kw_only=True)
class Task:
    """One point of one curve."""

    experiment: str
    variant: str
    variable: str
    value: float
    repeats: int
    quick: bool = False

    @property
    def name(self) -> str:
        """A label for the random bits: equal tasks draw equal bits."""
        return f"reproduce/{self.experiment}/{self.variant}/{self.variable}={self.value:g}"


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """One measured curve: beside it the predicted one, and the slopes of both and of the paper."""

    variant: str
    variable: str
    values: list[float]
    errors: list[float]
    deviations: list[float]
    predicted: list[float] | None
    """The exact formula at the same values, or None where the row has none."""
    slope: float | None
    """None in a quick run: two points and a repeat or two are no slope."""
    slope_error: float | None
    predicted_slope: float | None
    exponent: float | None
    """The power in the paper's rate."""
    verdict: Verdict | None

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        if self.verdict == "explained":
            formula = f"{self.predicted_slope:+.2f}".replace("-", "−")
            return f"explained: at these parameters the exact formula gives {formula}"
        return self.verdict or ""

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "words": self.words}


def fit(values: Floats, errors: Floats) -> float:
    """Return the least-squares slope of ln error against ln value.

    >>> round(fit(np.array([1.0, 2.0, 4.0]), np.array([8.0, 4.0, 2.0])), 9)
    -1.0
    """
    x, y = np.log(values), np.log(np.maximum(errors, 1e-300))
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def verdict(
    *, slope: float, error: float, exponent: float, predicted: float | None = None
) -> Verdict:
    """Return whether a measured slope is the paper's, or that of the exact formula, or neither.

    A prediction explains a difference only if it lies on the same side of the paper's exponent as
    the measurement, at least half as far away, and as close to the measurement as an exponent that
    agrees.

    >>> verdict(slope=-1.9, error=0.01, exponent=-2)
    'agrees'
    >>> verdict(slope=-1.7, error=0.01, exponent=-2, predicted=-1.75)
    'explained'
    >>> verdict(slope=-1.7, error=0.01, exponent=-2, predicted=-2.2)
    'unexplained'
    >>> verdict(slope=-1.7, error=0.14, exponent=-2, predicted=-1.95)
    'unexplained'
    """
    margin = max(TOLERANCE, 2 * error)
    if abs(slope - exponent) <= margin:
        return "agrees"
    if predicted is None or abs(slope - predicted) > margin:
        return "unexplained"
    share = (predicted - exponent) / (slope - exponent)
    return "explained" if share >= _LEAST_SHARE else "unexplained"


def summarize(
    experiment: Experiment,
    variant: str,
    variable: str,
    runs: Mapping[float, list[list[float]]],
    *,
    quick: bool = False,
) -> Series:
    """Return the curve of one variant along one variable: the worst instance at each point."""
    values = sorted(runs)
    tables = [np.array(runs[value]) for value in values]  # (repeats, instances) each
    errors = np.array([_worst(table, experiment.average) for table in tables])
    drawn = _resampled(tables, experiment.average)
    predicted = _predictions(experiment, variant, variable, values, quick=quick)
    exponent = experiment.exponents.get(variant, {}).get(variable)
    slope = error = formula = judgment = None
    if not quick:
        x = np.array(values)
        slope, error = fit(x, errors), float(np.std([fit(x, row) for row in drawn]))
        formula = None if predicted is None else fit(x, np.array(predicted))
        if exponent is not None:
            judgment = verdict(slope=slope, error=error, exponent=exponent, predicted=formula)
    return Series(
        variant=variant,
        variable=variable,
        values=values,
        errors=errors.tolist(),
        deviations=np.std(drawn, axis=0).tolist(),
        predicted=predicted,
        slope=slope,
        slope_error=error,
        predicted_slope=formula,
        exponent=exponent,
        verdict=judgment,
    )


def _predictions(
    experiment: Experiment, variant: str, variable: str, values: list[float], *, quick: bool
) -> list[float] | None:
    if experiment.predicted is None:
        return None
    fixed = experiment.fixed(variant, quick=quick)
    errors = [float(experiment.predicted(variant, {**fixed, variable: value})) for value in values]
    return errors if all(math.isfinite(error) and error > 0 for error in errors) else None


def _resampled(tables: list[Floats], average: str) -> Floats:
    """Return bootstrap curves over repeats, spread like independent repetitions of the whole.

    r repeats drawn again from r repeats vary too little, by the factor √((r-1)/r): divided out.
    """
    generator = np.random.default_rng(20260101)
    curves = np.empty((_RESAMPLES, len(tables)))
    for column, table in enumerate(tables):
        count = len(table)
        chosen = generator.integers(0, count, (_RESAMPLES, count))
        worst_curves = np.array([_worst(table[rows], average) for rows in chosen])
        center = worst_curves.mean()
        wider = math.sqrt(count / (count - 1)) if count > 1 else 1.0
        curves[:, column] = np.maximum(center + wider * (worst_curves - center), center * 1e-3)
    return curves


def _worst(table: Floats, average: str) -> float:
    if average == "upper":
        return float(np.max(np.quantile(table, 0.9, axis=0)))
    center = np.median if average == "median" else np.mean
    return float(np.max(center(table, axis=0)))
