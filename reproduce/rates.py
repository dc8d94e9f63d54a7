"""Errors measured along one variable at a time, and the power of it that fits them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["Experiment", "Point", "Series", "Task", "fit", "summarize"]

Floats: TypeAlias = npt.NDArray[np.float64]
Point: TypeAlias = Mapping[str, float]
"""The public numbers of one run, such as n, d and epsilon."""

Measure: TypeAlias = Callable[[str, Point, str], list[float]]
"""measure(variant, point, label): the errors on each instance, with random bits named by label."""

TOLERANCE = 0.15
"""A slope agrees with the paper if it is this close, or within two standard errors of that."""


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
    average: Literal["mean", "median"] = "mean"
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
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a slope is another one than the paper's: "variant/variable" or "variable"."""

    def tasks(self, *, quick: bool) -> list[Task]:
        """Return every run of this row; each point of a sweep is one task."""
        sweeps, own = (self.quick, self.own_quick) if quick else (self.sweeps, self.own_sweeps)
        repeats = self.quick_repeats if quick else self.repeats
        return [
            Task(
                experiment=self.key,
                variant=variant,
                variable=name,
                value=value,
                repeats=repeats,
                quick=quick,
            )
            for name, values in sweeps.items()
            for variant in self.variants
            for value in own.get(f"{variant}/{name}", values)
        ]

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
    """One measured curve with its slope."""

    variant: str
    variable: str
    values: list[float]
    errors: list[float]
    deviations: list[float]
    slope: float
    slope_error: float
    exponent: float | None
    agrees: bool | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))


def fit(values: Floats, errors: Floats) -> float:
    """Return the least-squares slope of ln error against ln value.

    >>> round(fit(np.array([1.0, 2.0, 4.0]), np.array([8.0, 4.0, 2.0])), 9)
    -1.0
    """
    x, y = np.log(values), np.log(np.maximum(errors, 1e-300))
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def summarize(
    experiment: Experiment, variant: str, variable: str, runs: Mapping[float, list[list[float]]]
) -> Series:
    """Return the curve of one variant along one variable: the worst instance at each point."""
    values = sorted(runs)
    tables = [np.array(runs[value]) for value in values]  # (repeats, instances) each
    errors = np.array([_worst(table, experiment.average) for table in tables])
    generator = np.random.default_rng(20260101)
    draws = []
    for _ in range(200):  # bootstrap over repeats
        chosen = [table[generator.integers(0, len(table), len(table))] for table in tables]
        draws.append([_worst(table, experiment.average) for table in chosen])
    drawn = np.array(draws)
    several = len(tables[0]) > 1
    slopes = [fit(np.array(values), row) for row in drawn]
    slope, spread = fit(np.array(values), errors), float(np.std(slopes)) if several else math.nan
    exponent = experiment.exponents.get(variant, {}).get(variable)
    margin = max(TOLERANCE, 2 * spread if several else 0.0)
    agrees = None if exponent is None else bool(abs(slope - exponent) <= margin)
    reasons = experiment.reasons
    rough = "too few points and repeats to tell" if len(values) < 3 else "no reason known"
    reason = reasons.get(f"{variant}/{variable}", reasons.get(variable, rough))
    return Series(
        variant=variant,
        variable=variable,
        values=values,
        errors=errors.tolist(),
        deviations=np.std(drawn, axis=0).tolist(),
        slope=slope,
        slope_error=spread,
        exponent=exponent,
        agrees=agrees,
        reason="" if agrees is not False else reason,
    )


def _worst(table: Floats, average: str) -> float:
    center = np.median if average == "median" else np.mean
    return float(np.max(center(table, axis=0)))
